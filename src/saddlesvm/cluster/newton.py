"""Newton's method over partitions: a round is a step, and what travels is a gradient and a matrix.

Each partition looks at its rows at the weights that it gets, and sends sums over them
(:mod:`saddlesvm.solvers.second_order.row_statistics`); the driver factors the matrix of all rows and goes one step
further (:mod:`saddlesvm.solvers.second_order.over_passes`). Where the matrices would be too many bytes, a round is a
product of the matrix and a vector instead (:mod:`saddlesvm.solvers.second_order.conjugate`). The partitions keep
nothing from one round to the next: a worker that dies takes nothing with it, and the number of rounds does not depend
on the number of partitions. Every look computes the pull of the multipliers from the rows, so that every certificate is
a proof.

Where steps would go from corner to corner of the loss' derivative, the rows about to come to one, a bounded number, go
to a worker together with the matrix of the others, and the step past their corners is found there
(:mod:`saddlesvm.solvers.second_order.over_kinks`). No row reaches the client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.cluster.part import LARGEST, SIZES, Part
from saddlesvm.cluster.rounds import Engine, Rounds, Training
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.loss import Loss, is_cornerless, is_smooth, loss_name
from saddlesvm.problem.proven_sums import Sums
from saddlesvm.problem.rounding import add_sizes
from saddlesvm.solvers.second_order.corners import Corners, share_of
from saddlesvm.solvers.second_order.over_kinks import Model, Step, step_over_kinks
from saddlesvm.solvers.second_order.over_passes import NewtonOverPasses
from saddlesvm.solvers.second_order.row_statistics import Ask, RowStatistics, add_statistics

FACTORS = 2.5e8  # bytes that factored matrices of the model over the rows taken along may take
MOST_BYTES = 64e6  # of the matrices that a partition sends in a round: beyond, products with them travel instead


class Asks(NamedTuple):
    """The question of a round to every partition: for each problem that is left its number and its :class:`Ask`."""

    problems: list[int]
    asks: list[Ask]
    loss: Loss
    C: float

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return sum(ask.nbytes for ask in self.asks)


class Answers(NamedTuple):
    """The answers of a partition, or of several together.

    Attributes
    ----------
    told : list of RowStatistics
        For each problem that was asked about.
    sizes : ndarray of shape (problems, SIZES)
        The sizes that bounds on rounding need, of the rows and of their multipliers.
    corners : list of Corners
        The rows taken along for each problem, where they are asked for.
    work, longest : float
        Seconds of work, summed over the partitions, and of the slowest partition.
    parts : int
        Number of partitions.
    """

    told: list[RowStatistics]
    sizes: np.ndarray
    corners: list[Corners]
    work: float
    longest: float
    parts: int

    @property
    def nbytes(self) -> int:
        """Bytes that a partition sends, in the mean."""
        taken = sum(one.nbytes for one in self.corners) // max(self.parts, 1)
        return sum(one.nbytes for one in self.told) + self.sizes.nbytes + taken + 24


def look_at(part: Part, asked: Asks) -> Answers:
    """A round of a partition: look at its rows for each problem that is left."""
    began = time.perf_counter()
    tolds, sizes = [RowStatistics.nothing(ask) for ask in asked.asks], np.zeros((len(asked.asks), SIZES))
    corners = [Corners() for _ in tolds]
    for number, ask, told, size, near in zip(*asked[:2], tolds, sizes, corners, strict=True):
        if part.size:
            problem = part.problem(number, asked.loss, asked.C)
            if not problem.members.size:
                continue
            add_statistics(problem.terms, problem.members, ask, told, np.empty(0), near)
            size[:] = *problem.row_sizes, *told.sizes
    spent = time.perf_counter() - began
    return Answers(tolds, sizes, corners, spent, spent, 1)


def together(answers: list[Answers]) -> Answers:
    """The sum of the answers of several partitions, in their order; what they told is left as it is."""
    first, *others = answers
    told, sizes = [RowStatistics(*(one.copy(order="K") for one in each)) for each in first.told], first.sizes.copy()
    for other in others:
        for mine, theirs in zip(told, other.told, strict=True):
            mine.add(theirs)
        add_sizes(sizes, other.sizes, LARGEST)
    corners = [joined(each) for each in zip(*(one.corners for one in answers), strict=True)]
    work, longest = sum(one.work for one in answers), max(one.longest for one in answers)
    return Answers(told, sizes, corners, work, longest, sum(one.parts for one in answers))


def joined(given: Sequence[Corners]) -> Corners:
    """The rows that several partitions take along."""
    whole = Corners()
    for one in given:
        whole.add(one)
    return whole


class Heard(NamedTuple):
    """The part of the answers that the client receives: no row, and a matrix only where it takes the step itself."""

    told: list[RowStatistics]
    sizes: np.ndarray
    nbytes: int
    work: float
    longest: float
    parts: int


def heard(answers: Answers) -> Heard:
    """The part that the client receives."""
    nowhere = np.zeros((0, 0))
    told = [
        one._replace(matrix=nowhere) if near.seen else one
        for one, near in zip(answers.told, answers.corners, strict=True)
    ]
    return Heard(told, answers.sizes, answers.nbytes, *answers[3:])


def taken_along(answers: Answers, place: int) -> tuple[np.ndarray, Corners]:
    """The matrix of one of the problems, and the rows taken along."""
    return answers.told[place].matrix, answers.corners[place]


def step_there(given: tuple[np.ndarray, Corners], model: Model) -> Step:
    """The step past the corners of the rows taken along."""
    matrix, corners = given
    return step_over_kinks(matrix.copy(order="F"), corners, model)


def is_suited(loss: Loss, n_features: int, problems: int) -> bool:
    """Whether the method takes the loss, and its matrices are small enough to travel in every round."""
    return is_smooth(loss) and 8.0 * problems * (n_features + 1) ** 2 <= MOST_BYTES


class NewtonRounds(Rounds):
    """Newton's method under way, a batch for the loop like :class:`~saddlesvm.cluster.rounds.Rounds`.

    Parameters
    ----------
    plan : Training
    engine : Engine
    watch : callable, optional
    start : ndarray of shape (problems, d + 1), optional
    most : int, default=0
        Rows of a problem that a round may bring together on a worker.

    Raises
    ------
    ValueError
        The loss is not smooth.
    """

    proves_itself = True

    def __init__(
        self,
        plan: Training,
        engine: Engine,
        watch: Callable[[dict[str, Any]], Any] | None = None,
        start: np.ndarray | None = None,
        *,
        most: int = 0,
    ) -> None:
        if not is_smooth(plan.loss):
            raise ValueError(
                f"Newton's method over partitions takes smooth losses only, not {loss_name(plan.loss)}: use "
                "solver='auto' or 'rounds', or loss='squared_hinge'"
            )
        super().__init__(plan, engine, watch)
        wide = not is_suited(plan.loss, plan.n_features, plan.problems)
        bent = not (wide or is_cornerless(plan.loss))
        room = share_of(plan.n, plan.n_features + 1, most) if bent else 0.0
        self.runs = [
            NewtonOverPasses.begin(w.copy(), plan.loss, wide, room) for w in (self.W if start is None else start)
        ]

    def one_round(self) -> Outcome | None:
        """A round; CERTIFIED where it has proven every problem."""
        began = time.perf_counter()
        left = np.flatnonzero(self.live).tolist()
        there, answers = self.answers(left, [self.runs[k].ask() for k in left])
        gaps = [self.learn(k, told, sizes) for k, told, sizes in zip(left, answers.told, answers.sizes, strict=True)]
        self.go_past_corners(there, left, answers, gaps)
        done = [gap <= self.plan.tol or self.runs[k].ended for k, gap in zip(left, gaps, strict=True)]
        if self.plan.free and (last := [k for k, near in zip(left, done, strict=True) if near]):
            _, proofs = self.answers(last, [self.runs[k].ask_balanced() for k in last])
            for k, told, sizes in zip(last, proofs.told, proofs.sizes, strict=True):
                self.note(k, self.runs[k].balanced(self.facts(sizes), told))
        self.rounds += 1
        self.record(answers, time.perf_counter() - began)
        if not self.live.any():
            return Outcome.CERTIFIED
        ended = [self.runs[k].ended or self.best[k].limited(self.plan.tol) for k in np.flatnonzero(self.live)]
        return Outcome.LIMITED_BY_ROUNDING if all(ended) and self.plan.tol > 0.0 else None

    def answers(self, problems: list[int], asks: list[Ask]) -> tuple[Any, Heard]:
        """The sum of the answers of all partitions: left where they are, and what the client gets of it."""
        asked = Asks(problems, asks, self.plan.loss, self.plan.C)
        there = self.engine.persist(look_at, together, asked)
        found = self.engine.returned(there, heard)
        self.restarts, self.sent = self.engine.restarts, asked.nbytes
        return there, found

    def learn(self, k: int, told: RowStatistics, sizes: np.ndarray) -> float:
        """Choose the next point of a problem, and certify the one that its round looked at; returns the gap it expects.

        With a free intercept a certificate takes another look, with balanced multipliers.
        """
        plan, newton = self.plan, self.runs[k]
        gap = newton.take(plan.C, plan.regularizer, told)
        self.W[k] = newton.at
        if not plan.free:
            self.note(k, newton.proven(self.facts(sizes)))
        return gap

    def go_past_corners(self, there: Any, problems: list[int], answers: Heard, gaps: list[float]) -> None:
        """Take the steps of the problems whose rows near a corner were taken along, and renew their gaps."""
        plan, due = self.plan, [place for place, k in enumerate(problems) if self.runs[k].due]
        posed = []
        for place in due:
            newton, curvature = self.runs[problems[place]], float(answers.told[place].bent[1])
            posed.append((place, newton.model_of(plan.loss, plan.C, plan.regularizer, curvature, FACTORS)))
        for place, step in zip(due, self.engine.map_each(there, taken_along, step_there, posed), strict=True):
            newton = self.runs[problems[place]]
            gaps[place] = newton.go(step, plan.regularizer)
            self.W[problems[place]] = newton.at

    def note(self, k: int, sums: Sums) -> None:
        """Certify the point that a problem's last round looked at."""
        seen = Certificate.of(self.plan.strength, sums)
        if seen.primal <= self.best[k].primal:
            self.best_W[k] = self.runs[k].model
        self.best[k] = self.best[k].better_of(seen)
        self.live[k] = not self.best[k].relative_gap <= self.plan.tol or self.plan.tol == 0.0
