"""Newton's method and the active-set method over partitions: a round is a pass.

No row reaches the client. A round passes over every row on its worker, and certifies a point. The
client gets a gradient and a matrix for Newton's method
(:mod:`saddlesvm.solvers.newton_over_passes`). Piecewise linear losses take the active-set method
(:mod:`saddlesvm.solvers.active_set`): the pull of nearly all rows is enough, and the
free rows, a bounded number, go to one worker, which solves the problem over them and sends back
weights and the sums of a dual point.

The partitions keep nothing from one round to the next: if a worker dies, the round is done again.
The number of rounds does not depend on the number of partitions.

Fashion-MNIST (60,000 x 784, ten classes, to 1e-6): 15 to 21 rounds of smooth losses at C = 1 and
100.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saddlesvm.cluster.method import LARGEST, ROW_SIZES, ClusterMethod, ClusterPlan
from saddlesvm.cluster.partition import Partition
from saddlesvm.cluster.tasks import NO_LIMIT, TaskLimit, limit_task
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.bounds import add_sizes
from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.solvers.active_set import ActiveSet
from saddlesvm.solvers.newton_over_passes import NewtonOverPasses
from saddlesvm.solvers.over_passes import PassSums, Question, Setting

if TYPE_CHECKING:
    from saddlesvm.cluster.dask_engine import DaskEngine

ROW_BYTES = 48  # of a row brought together, besides its values: label, weight, norm; derived
# Times its share of the room that a partition may use, as free rows are uneven; a guess.
UNEVEN = 2.0
FACTORS = 2.5e8  # bytes that factored matrices of the problem over the free rows may take; a guess
MOST_ROUNDS = 60  # rounds of the active-set method at most; it takes six to sixteen; a guess
# Bytes of the matrices that a partition sends in a round; beyond, products travel; a guess.
MOST_BYTES = 64e6


class PassOrder(NamedTuple):
    """The question of a round: the problems that are left, and what to find out about each."""

    problems: list[int]
    questions: list[Question]
    loss: Loss
    C: float
    n: int


class PassAnswers(NamedTuple):
    """The answers of some rows to the questions of a round.

    Attributes
    ----------
    sums : list of PassSums
        For each problem.
    sizes : ndarray of shape (problems, ROW_SIZES)
        The sizes of the rows that bounds on rounding need.
    """

    sums: list[Any]
    sizes: np.ndarray


def answer_pass(part: Partition, order: PassOrder) -> PassAnswers:
    """Answer the questions of a round for the rows of a partition."""
    sums = [question.empty() for question in order.questions]
    sizes = np.zeros((len(sums), ROW_SIZES))
    if not part.size:
        return PassAnswers(sums, sizes)
    # Questions may take rows along: a partition gives up to twice its share, as they are uneven.
    share = min(1.0, UNEVEN * part.size / order.n)
    for k, problem in enumerate(part.problems(order.loss, order.C, order.problems)):
        if problem.members.size:
            question = order.questions[k].limit_to_share(share)
            question.add_to(sums[k], problem.terms, problem.members, seed=part.number)
            sizes[k] = problem.row_sizes
    return PassAnswers(sums, sizes)


def add_answers(answers: list[PassAnswers]) -> PassAnswers:
    """Add the answers of several partitions, in their order, and leave them as they are."""
    first, *others = answers
    totals = [sums.copy() for sums in first.sums]
    sizes = first.sizes.copy()
    for other in others:
        for total, more in zip(totals, other.sums, strict=True):
            total.add(more)
        add_sizes(sizes, other.sizes, LARGEST)
    return PassAnswers(totals, sizes)


def pick_sums(answers: PassAnswers, number: int) -> Any:
    """Return the sums for one of the problems, with the rows taken along."""
    return answers.sums[number]


def drop_taken_rows(answers: PassAnswers) -> PassAnswers:
    """Return what the client gets: the sums, without the rows taken along."""
    return answers._replace(sums=[sums.without_rows() for sums in answers.sums])


def solve_on_worker(found: PassSums, model: Any, limit: TaskLimit = NO_LIMIT) -> Any:
    """Solve the problem over the rows brought together, which are left as they are."""
    with limit_task(limit):
        return model.solve(found.copy()).without_rows()


def room_for_rows(n: int, n_bytes: int, problems: int, memory: float) -> int:
    """Return how many rows of a problem may be brought together, if n rows take `n_bytes`."""
    return max(int(memory / problems / (n_bytes / max(n, 1) + ROW_BYTES)), 1)


def has_small_matrices(loss: Loss, n_features: int, problems: int) -> bool:
    """Return True if Newton's method takes the loss, and its matrices may travel in every round."""
    return is_smooth(loss) and 8.0 * problems * (n_features + 1) ** 2 <= MOST_BYTES


def begin_method(plan: ClusterPlan, w: np.ndarray, most: int) -> Any:
    """Begin the method of the loss for one problem, at these weights if it is Newton's.

    `most` rows may be taken along; see :func:`room_for_rows`.
    """
    if is_smooth(plan.loss):
        return NewtonOverPasses.begin(w, plan.n, free=plan.scale if plan.free else 0.0)
    method = ActiveSet.begin(np.zeros(w.size), most, plan.n)
    # A sample of the rows comes first if there is no room for all.
    method.width = np.inf if method.room >= 1.0 else 0.0
    return method


class PassRounds(ClusterMethod):
    """Newton's method under way, or the active-set method for a piecewise linear loss.

    Parameters
    ----------
    plan, engine, watch
        As for :class:`~saddlesvm.cluster.method.ClusterMethod`.
    most : int, default=0
        Rows of a problem that may be brought together, for the active set.
    """

    def __init__(
        self,
        plan: ClusterPlan,
        engine: DaskEngine,
        watch: Callable[[dict[str, object]], object] | None = None,
        *,
        most: int = 0,
    ) -> None:
        super().__init__(plan, engine, watch)
        self.most = most
        self.setting = Setting(plan.loss, plan.C, plan.regularizer, plan.tol, FACTORS)
        self.methods = [begin_method(plan, w.copy(), most) for w in self.best_W]

    def one_round(self) -> Outcome | None:
        """Do a pass, find the next points, and certify the points of the pass."""
        left = np.flatnonzero(self.live).tolist()
        held, answers = self.ask(left, [self.methods[k].question() for k in left])

        # Each method learns from its sums, and may ask for a problem over the rows taken along.
        orders = []
        for number, k in enumerate(left):
            model = self.methods[k].learn_from_pass(self.setting, answers.sums[number])
            if model is not None:
                orders.append((number, model))
        solve = functools.partial(solve_on_worker, limit=self.limit_for(len(orders)))
        solutions = self.engine.map_each(held, pick_sums, solve, orders)
        for (number, _), solution in zip(orders, solutions, strict=True):
            self.methods[left[number]].learn_from_solution(self.setting, solution)

        for number, k in enumerate(left):
            method = self.methods[k]
            facts = self.plan.facts(answers.sizes[number])
            self.certify_problem(k, method.bound_sums(facts), method.model)
        # The active set goes on where steps of Newton's method overshoot.
        for k in np.flatnonzero(self.live).tolist():
            method = self.methods[k]
            self.methods[k] = ActiveSet.follow(method, self.plan.loss, self.most) or method
        self.record()
        return self.find_outcome()

    def ask(self, problems: list[int], questions: list[Question]) -> tuple[Any, PassAnswers]:
        """Ask all partitions; return the answers, kept on the workers, and the client's share."""
        order = PassOrder(problems, questions, self.plan.loss, self.plan.C, self.plan.n)
        held = self.engine.persist(answer_pass, add_answers, order)
        return held, self.engine.fetch(held, drop_taken_rows)

    def find_outcome(self) -> Outcome | None:
        """Return the outcome if nothing is left to do; end if the method does not suit."""
        outcome = super().find_outcome()
        left = np.flatnonzero(self.live).tolist()
        if outcome is None and any(self.methods[k].gives_up(MOST_ROUNDS) for k in left):
            reason = "more rows are free than may be brought together on a worker"
            self.end = Outcome.NO_PROGRESS, reason
        return outcome

    def is_limited(self, k: int) -> bool:
        """Return True if rounding hides the rest of a problem's gap, or what Newton could gain."""
        method = self.methods[k]
        has_ended = method.ended and not isinstance(method, ActiveSet)
        return bool(has_ended or super().is_limited(k))
