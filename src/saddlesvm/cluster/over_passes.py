"""Newton's method and the active-set method over partitions: a round is a pass, and no row reaches the client.

A round passes over every row, where it is, and certifies a point. Of Newton's method a gradient and a matrix travel
(:mod:`saddlesvm.solvers.newton_over_passes`); where the matrices would be too many bytes, a round is a product of
the matrix and a vector instead. Of the active-set method (:mod:`saddlesvm.solvers.second_order.active_set`) the pull of
nearly all rows is enough. A bounded number of rows, those that are free or about to come to a corner of the loss'
derivative, go to one worker, which solves the problem over them, and sends back weights and the sums of a dual point.

The partitions keep nothing from one round to the next: a worker that dies takes nothing with it, and the number of
rounds hardly depends on the number of partitions. Where there is room for all rows,
:mod:`saddlesvm.cluster.one_worker` needs no rounds at all.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.part import LARGEST, SIZES, Part
from saddlesvm.cluster.rounds import Rounds, Training
from saddlesvm.cluster.tasks import ANY_TIME, Answer, Until, bytes_of, combined, measured, working_until
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.bounds import Sums, add_sizes
from saddlesvm.problem.loss import Loss, is_smooth, loss_name
from saddlesvm.solvers.newton_over_passes import NewtonOverPasses
from saddlesvm.solvers.second_order.active_set import ActiveSet
from saddlesvm.solvers.second_order.driver import OverPasses, PassSums, Setting

A_ROW = 48  # bytes of a row brought together, besides its values: label, weight, norm, multiplier, number
UNEVEN = 2.0  # times its share of the room that a partition may use: free rows are not spread evenly
FACTORS = 2.5e8  # bytes that factored matrices of the problem over them may take
MOST_ROUNDS = 60  # rounds of the active-set method, at most
MOST_BYTES = 64e6  # of the matrices that a partition sends in a round: beyond, products with them travel instead


class Asked(NamedTuple):
    """What a round asks of every partition: the numbers of the problems that are left, and a question about each."""

    problems: list[int]
    questions: list[Any]
    loss: Loss
    C: float
    n: int


class Found(NamedTuple):
    """The answers of a partition, or of several together.

    Attributes
    ----------
    each : list of PassSums
        The sums for each problem that was asked about.
    sizes : ndarray of shape (problems, SIZES)
        The sizes that bounds on rounding need, of the rows and of their multipliers.
    """

    each: list[Any]
    sizes: np.ndarray


@measured
def answers_of(part: Part, asked: Asked) -> Found:
    """The answers of a partition's rows to the question about each problem that is left."""
    share = min(1.0, UNEVEN * part.size / asked.n)
    found = Found([one.empty() for one in asked.questions], np.zeros((len(asked.questions), SIZES)))
    if not part.size:
        return found
    problems = part.problems(asked.loss, asked.C, asked.problems)
    for problem, question, sums, sizes in zip(problems, asked.questions, *found, strict=True):
        if problem.members.size:
            question.of_share(share).add_to(sums, problem.terms, problem.members, seed=part.place)
            sizes[:] = *problem.row_sizes, *sums.sizes
    return found


@combined
def together(answers: list[Found]) -> Found:
    """The sum of the answers of several partitions, in their order; the answers are left as they are."""
    first, *others = answers
    each, sizes = [one.copy() for one in first.each], first.sizes.copy()
    for other in others:
        for mine, theirs in zip(each, other.each, strict=True):
            mine.add(theirs)
        add_sizes(sizes, other.sizes, LARGEST)
    return Found(each, sizes)


def sums_of_problem(answer: Answer, place: int) -> Any:
    """The sums for one of the problems."""
    return answer.found.each[place]


def sums_alone(answer: Answer) -> Answer:
    """What comes to the client: sums, and how many rows the partitions send, a row once for every problem."""
    sums = answer.found._replace(each=[one.without_rows() for one in answer.found.each])
    return answer._replace(found=(sums, rows_sent(answer.found)))


def rows_sent(found: Found) -> int:
    """Rows that the partitions send, a row once for every problem."""
    return sum(piece.y.size for one in found.each for piece in one.pieces_taken)


@measured
def solve_there(found: PassSums, model: Any, until: Until = ANY_TIME) -> Any:
    """Solve for the rows brought together, which are left as they are."""
    with working_until(until):
        return model.solve(found.copy()).without_rows()


def room_for(n: int, n_bytes: int, problems: int, memory: float) -> int:
    """Rows of a problem that may be brought together, where the values of `n` rows take `n_bytes`."""
    return max(int(memory / problems / (n_bytes / max(n, 1) + A_ROW)), 1)


def is_suited(loss: Loss, n_features: int, problems: int) -> bool:
    """Whether Newton's method takes the loss, and its matrices are small enough to travel in every round."""
    return is_smooth(loss) and 8.0 * problems * (n_features + 1) ** 2 <= MOST_BYTES


class PassRounds(Rounds):
    """The base class of methods over passes under way.

    Parameters
    ----------
    plan : Training
    engine : Engine
    watch : callable, optional
    start : ndarray of shape (problems, d + 1), optional
        Where Newton's method begins.
    most : int, default=0
        Rows of a problem that a round may bring together on a worker, see :func:`room_for`.
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
        super().__init__(plan, engine, watch)
        self.setting = Setting(plan.loss, plan.C, plan.regularizer, plan.tol, FACTORS)
        self.runs = [self.begun(w.copy(), most) for w in (self.W if start is None else start)]

    def begun(self, w: np.ndarray, most: int) -> Any:
        """The method at its beginning."""
        raise NotImplementedError

    def has_ended(self, k: int) -> bool:
        """Whether rounding hides what is left of a problem's gap."""
        return self.best[k].limited(self.plan.tol)

    def one_round(self) -> Outcome | None:
        """A round; CERTIFIED where it has proven every problem."""
        began = time.perf_counter()
        left = np.flatnonzero(self.live).tolist()
        there, answer = self.ask(left, [self.runs[k].question() for k in left])
        found, rows = answer.found
        taken = [self.runs[k].take(self.setting, one) for k, one in zip(left, found.each, strict=True)]
        posed = [(place, model) for place, model in enumerate(taken) if model is not None]
        solve = functools.partial(solve_there, until=self.until(len(posed)))
        solved = self.engine.map_each(there, sums_of_problem, solve, posed)
        self.restarts = self.engine.restarts
        for (place, _), solution in zip(posed, solved, strict=True):
            self.runs[left[place]].learn(self.setting, solution.found)
        self.certify_points(left, found)
        self.rounds += 1
        slowest = answer.longest + max((one.longest for one in solved), default=0.0)
        sent = answer.sent + sum(one.sent for one in solved)
        self.record(answer._replace(sent=sent, longest=slowest), time.perf_counter() - began)
        self.trace[-1]["rows_sent"] = rows
        open_ones = np.flatnonzero(self.live).tolist()
        if not open_ones:
            return Outcome.CERTIFIED
        if self.plan.tol > 0.0 and all(self.has_ended(k) for k in open_ones):
            return Outcome.LIMITED_BY_ROUNDING
        if any(self.runs[k].gives_up(MOST_ROUNDS) for k in open_ones):
            self.end = Outcome.NO_PROGRESS, "more rows are free than may be brought together on a worker"
        return None

    def ask(self, problems: list[int], questions: list[Any]) -> tuple[Any, Answer]:
        """The answers of all partitions: left where they are, and what the client gets of them."""
        asked = Asked(problems, questions, self.plan.loss, self.plan.C, self.plan.n)
        there = self.engine.persist(answers_of, together, asked)
        answer = self.engine.returned(there, sums_alone)
        self.restarts, self.sent = self.engine.restarts, bytes_of(questions)
        return there, answer

    def certify_problem(self, k: int, sums: Sums, model: np.ndarray) -> None:
        """Certify the point that a problem's last round asked about, or the best one so far."""
        self.keep_better(k, sums, model)
        self.live[k] = self.is_open(self.best[k])

    def certify_points(self, problems: list[int], found: Found) -> None:
        """Certify the points of a round; where the multipliers have another sum than a free intercept asks for, another
        pass balances them, once the gap seems small enough."""
        due: list[int] = []
        for k, sizes in zip(problems, found.sizes, strict=True):
            run: OverPasses = self.runs[k]
            self.W[k] = run.at
            if self.plan.free and not run.balances:
                due += [k] if run.estimate <= self.plan.tol or run.ended else []
            elif run.proves(self.setting.regularizer.intercept):
                self.certify_problem(k, run.proven(self.facts(sizes)), run.model)
        if due:
            _, answer = self.ask(due, [self.runs[k].ask_balanced() for k in due])
            proofs, _ = answer.found
            for k, sums, sizes in zip(due, *proofs, strict=True):
                self.certify_problem(k, self.runs[k].balanced(self.facts(sizes), sums), self.runs[k].model)


class NewtonRounds(PassRounds):
    """Newton's method under way.

    Raises
    ------
    ValueError
        The loss is not smooth.
    """

    def begun(self, w: np.ndarray, most: int) -> NewtonOverPasses:
        """The method at its beginning."""
        plan = self.plan
        if not is_smooth(plan.loss):
            raise ValueError(
                f"Newton's method over partitions takes smooth losses only, not {loss_name(plan.loss)}: use "
                "solver='auto' or 'rounds', or loss='squared_hinge'"
            )
        wide = not is_suited(plan.loss, plan.n_features, plan.problems)
        return NewtonOverPasses.begin(w, plan.n, wide=wide, free=plan.scale if plan.free else 0.0)

    def has_ended(self, k: int) -> bool:
        """Whether rounding hides what is left of a problem's gap, or what a step could gain."""
        return self.runs[k].ended or super().has_ended(k)


class ActiveSetRounds(PassRounds):
    """The active-set method under way; it begins at the solution of a sample, where there is no room for all rows."""

    def begun(self, w: np.ndarray, most: int) -> ActiveSet:
        """The method at its beginning."""
        run = ActiveSet.begin(np.zeros(w.size), most, self.plan.n)
        run.width = np.inf if run.room >= 1.0 else 0.0
        return run
