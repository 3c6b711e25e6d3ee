"""Newton's method over partitions: a round is a step, and what travels is a gradient and a matrix.

Each partition sends sums over its rows at the weights that it gets
(:mod:`saddlesvm.solvers.second_order.row_statistics`); the driver factors the matrix of all rows and goes one step
further (:mod:`saddlesvm.solvers.second_order.over_passes`). Where the matrices would be too many bytes, a round is a
product of the matrix and a vector instead (:mod:`saddlesvm.solvers.second_order.conjugate`). The partitions keep
nothing from one round to the next: a worker that dies takes nothing with it, and the number of rounds does not depend
on the number of partitions. Every round computes the pull of the multipliers from the rows: every certificate is a
proof.

Where steps would go from corner to corner of the loss' derivative, the rows about to come to one, a bounded number, go
to a worker together with the matrix of the others, and the step past their corners is found there
(:mod:`saddlesvm.solvers.second_order.over_kinks`). No row reaches the client.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saddlesvm.cluster.asking import Asked, AskingRounds, Found, findings_of
from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.part import Part
from saddlesvm.cluster.rounds import Training
from saddlesvm.cluster.tasks import Answer, measured
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.loss import Loss, is_cornerless, is_smooth, loss_name
from saddlesvm.solvers.second_order.corners import Corners, share_of
from saddlesvm.solvers.second_order.over_kinks import Model, Step, step_over_kinks
from saddlesvm.solvers.second_order.over_passes import NewtonOverPasses
from saddlesvm.solvers.second_order.row_statistics import RowStatistics, add_statistics

FACTORS = 2.5e8  # bytes that factored matrices of the model over the rows taken along may take
MOST_BYTES = 64e6  # of the matrices that a partition sends in a round: beyond, products with them travel instead


@dataclass
class Seen:
    """What rows tell of a problem: their sums, and those taken along because they come to a corner of the loss."""

    sums: RowStatistics
    corners: Corners = field(default_factory=Corners)

    def add(self, other: Seen) -> None:
        """Add what other rows tell."""
        self.sums.add(other.sums)
        self.corners.add(other.corners)

    def copy(self) -> Seen:
        """The same, which may be added to."""
        whole = Seen(RowStatistics(*(one.copy(order="K") for one in self.sums)))
        whole.corners.add(self.corners)
        return whole

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.sums.nbytes + self.corners.nbytes


@measured
def statistics_at(part: Part, asked: Asked) -> Found:
    """The sums over a partition's rows for each problem that is left."""
    found = Found.nothing([Seen(RowStatistics.nothing(ask)) for ask in asked.questions])
    for problem, ask, seen, sizes in found.over(part, asked):
        add_statistics(problem.terms, problem.members, ask, seen.sums, np.empty(0), seen.corners)
        sizes[:] = *problem.row_sizes, *seen.sums.sizes
    return found


def sums_alone(answer: Answer) -> Answer:
    """What comes to the client: no row, and a matrix only where it takes the step itself."""
    nowhere = np.zeros((0, 0))
    each = [Seen(one.sums._replace(matrix=nowhere) if one.corners.visited else one.sums) for one in answer.found.each]
    return answer._replace(found=answer.found._replace(each=each))


@measured
def step_there(seen: Seen, model: Model) -> Step:
    """The step past the corners of the rows taken along."""
    return step_over_kinks(seen.sums.matrix.copy(order="F"), seen.corners, model)


def is_suited(loss: Loss, n_features: int, problems: int) -> bool:
    """Whether the method takes the loss, and its matrices are small enough to travel in every round."""
    return is_smooth(loss) and 8.0 * problems * (n_features + 1) ** 2 <= MOST_BYTES


class NewtonRounds(AskingRounds):
    """Newton's method under way.

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
        there, answer = self.ask(statistics_at, left, [self.runs[k].ask() for k in left], sums_alone)
        gaps = [self.learn(k, seen.sums, sizes) for k, seen, sizes in zip(left, *answer.found, strict=True)]
        self.go_past_corners(there, left, answer.found.each, gaps)
        done = [gap <= self.plan.tol or self.runs[k].ended for k, gap in zip(left, gaps, strict=True)]
        if self.plan.free and (last := [k for k, near in zip(left, done, strict=True) if near]):
            _, proofs = self.ask(statistics_at, last, [self.runs[k].ask_balanced() for k in last], sums_alone)
            for k, seen, sizes in zip(last, *proofs.found, strict=True):
                run = self.runs[k]
                self.certify_problem(k, run.balanced(self.facts(sizes), seen.sums), run.model)
        self.rounds += 1
        self.record(answer, time.perf_counter() - began)
        return self.outcome(lambda k: self.runs[k].ended or self.best[k].limited(self.plan.tol))

    def learn(self, k: int, sums: RowStatistics, sizes: np.ndarray) -> float:
        """Choose the next point of a problem, and certify the one that its round was about; returns the gap it expects.

        With a free intercept a certificate takes another pass, with balanced multipliers.
        """
        plan, newton = self.plan, self.runs[k]
        gap = newton.take(plan.C, plan.regularizer, sums)
        self.W[k] = newton.at
        if not plan.free:
            self.certify_problem(k, newton.proven(self.facts(sizes)), newton.model)
        return gap

    def go_past_corners(self, there: Any, problems: list[int], seen: list[Seen], gaps: list[float]) -> None:
        """Take the steps of the problems whose rows near a corner were taken along, and renew their gaps."""
        plan, due = self.plan, [place for place, k in enumerate(problems) if self.runs[k].due]
        posed = []
        for place in due:
            newton, curvature = self.runs[problems[place]], float(seen[place].sums.bent[1])
            posed.append((place, newton.model_of(plan.loss, plan.C, plan.regularizer, curvature, FACTORS)))
        for place, step in zip(due, self.engine.map_each(there, findings_of, step_there, posed), strict=True):
            newton = self.runs[problems[place]]
            gaps[place] = newton.go(step.found, plan.regularizer)
            self.W[problems[place]] = newton.at
