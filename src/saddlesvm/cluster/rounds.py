"""The dual in parts: partitions improve their dual variables, and a share of all changes is taken.

For what neither fits on a worker nor takes Newton's method or the active set: the elastic net, and
piecewise linear losses with very many features. A round sends w to the partitions and gets back the
sum of their changes, with the sums that certify the point that the round began with. A share of the
changes is taken that never lowers a dual objective.

Any dual variables are feasible. So a lost worker costs time only: its partitions begin at zero
again, and w is computed from the dual variables that are left.

A partition with rows of one class only proposes what helps that class; the next partition takes it
back. If partitions differ that much, as in sorted data, their rows are mixed once, before
the first round: 8,000 sorted rows in four partitions (hinge, C = 1) have a gap above 0.5 after 40
rounds without it, and below 0.05 with it.

3,000 rows in four partitions (elastic net, C = 0.002): some ten rounds. At C = 1 with many rows a
partition it takes hundreds.

Source: Ma, Smith, Jaggi and others (2015), "Adding vs. averaging in distributed primal-dual
optimization", algorithm 1; the local solver is :class:`~saddlesvm.solvers.dcd.DCD`.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import LARGEST, ROW_SIZES, SIZES, ClusterMethod, ClusterPlan, Solution
from saddlesvm.cluster.partition import Partition, join_partitions, take_rows
from saddlesvm.cluster.tasks import Answer, add_costs, count_bytes, measure_cost
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.bounds import PointSizes, Sums, add_sizes, bound_sums
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import SUMS, conjugate_sum, sums_of_margins
from saddlesvm.rows.passes import InMemory
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.threaded.aggregation import follow, measure_rho, new_scaling, safe_share

if TYPE_CHECKING:
    from collections.abc import Sequence

PASSES = 3.0  # over its rows that a partition does in a round; a guess
SEED_STEP = 7919  # between the seeds of two rounds: a prime
ALIKE = (
    0.2  # share of the rows (or of the targets' variance) that differs among partitions; a guess
)
MOST_HANDS = 16  # partitions to which one partition deals out its rows, at most; a guess


# What a partition does.


class Duals(NamedTuple):
    """The dual variables of a partition, shape (problems, n), and the change that it proposes."""

    alpha: np.ndarray
    change: np.ndarray

    def after(self, shares: np.ndarray) -> np.ndarray:
        """Return the dual variables with a share of the change."""
        return self.alpha + shares[:, None] * self.change


class DualOrder(NamedTuple):
    """The question of a round to every partition.

    Attributes
    ----------
    shares : ndarray of shape (problems,)
        The share of the last round's change to take.
    sigmas : ndarray of shape (problems,)
        How much partitions interfere.
    live : ndarray of shape (problems,)
        The problems that are still worked on.
    loss : Loss
    C : float
    seed : int
    """

    shares: np.ndarray
    sigmas: np.ndarray
    live: np.ndarray
    loss: Loss
    C: float
    seed: int


class DualReport(NamedTuple):
    """The report of some partitions on a round: sums over their rows for each problem.

    Attributes
    ----------
    moves : ndarray of shape (problems, d + 1)
        The changes of w that are proposed.
    found : ndarray of shape (problems, SUMS)
        The sums of :func:`~saddlesvm.problem.sums.loss_sums` at the point that the round began
        with.
    proposed : ndarray of shape (problems,)
        The conjugates at the point that is proposed.
    squares : ndarray of shape (problems,)
        The squared norms of each partition's change of w.
    sizes : ndarray of shape (problems, SIZES)
        The sizes that bounds on rounding need, if the report is to prove something.
    """

    moves: np.ndarray
    found: np.ndarray
    proposed: np.ndarray
    squares: np.ndarray
    sizes: np.ndarray


def empty_report(problems: int, width: int) -> DualReport:
    """Return the report of no row."""
    return DualReport(
        moves=np.zeros((problems, width)),
        found=np.zeros((problems, SUMS)),
        proposed=np.zeros(problems),
        squares=np.zeros(problems),
        sizes=np.zeros((problems, SIZES)),
    )


@add_costs
def add_reports(reports: list[DualReport]) -> DualReport:
    """Add several reports, in their order."""
    total = DualReport(*(field.copy() for field in reports[0]))
    for report in reports[1:]:
        for sums, more in zip(total[:-1], report[:-1], strict=True):
            sums += more
        add_sizes(total.sizes, report.sizes, LARGEST)
    return total


def zero_duals(part: Partition, problems: int) -> Duals:
    """Return dual variables of zero."""
    return Duals(np.zeros((problems, part.size)), np.zeros((problems, part.size)))


class Improved(NamedTuple):
    """The dual variables of a partition after a round, which stay there, and its report."""

    duals: Duals
    report: DualReport

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return count_bytes(self.report)


@measure_cost
def improve(part: Partition, duals: Duals, W: np.ndarray, order: DualOrder) -> Improved:
    """Take the share of the last change, then propose a new change against the shared weights W."""
    # Take the share of the last proposal that the sum of all proposals could bear.
    alpha = duals.after(order.shares)
    change = np.zeros_like(alpha)
    report = empty_report(*W.shape)
    live = np.flatnonzero(order.live).tolist() if part.size else []
    for k, problem in zip(live, part.problems(order.loss, order.C, live), strict=True):
        if not problem.members.size:
            continue
        report.found[k] = sums_of_margins(problem, W[k], alpha[k])
        # Local dual ascent from alpha; sigma allows for what other partitions add to w meanwhile.
        proposal, move = descend(problem, alpha[k], W[k], order.sigmas[k], order.seed + k)
        change[k] = proposal - alpha[k]
        report.moves[k] = move
        report.proposed[k] = conjugate_sum(problem.pointwise, problem.members, proposal, 1.0)
        report.squares[k] = move @ move
    return Improved(Duals(alpha, change), report)


def descend(
    problem: Problem, alpha: np.ndarray, w: np.ndarray, sigma: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Improve dual variables by coordinate descent; return them, and the change of w.

    The partition's quadratic term is scaled by sigma (equation 9): that is descent with ``sigma C``
    in the place of C, on a w of its own that moves sigma times as far.
    """
    # sigma C in the place of C scales the quadratic term of the dual (equation 9).
    scaled = replace(problem, C=sigma * problem.C)
    solver = DCD()
    state = solver.init(scaled, seed)
    state.alpha = alpha.copy()
    state.w = w.copy()
    state.offset = np.empty(0)
    visits = max(1, round(PASSES * problem.members.size))
    state = solver.step(scaled, state, Budget(visits))
    return state.alpha, (state.w - w) / sigma


def take_duals(answer: Answer) -> Duals:
    """Return the dual variables that stay there."""
    duals: Duals = answer.found.duals
    return duals


def take_report(answer: Answer) -> Answer:
    """Return the report, with what it cost."""
    return answer._replace(found=answer.found.report)


def pull_rows(part: Partition, duals: Duals, order: DualOrder) -> np.ndarray:
    """Return the partition's part of the dual sum, ``C sum_i a_i x_i``, shape (problems, d + 1)."""
    alpha = duals.after(order.shares)
    kind = np.int32 if part.size < 2**31 else np.int64
    passes = InMemory(part.X, np.arange(part.size, dtype=kind), 1.0)
    return order.C * np.stack([passes.pull(own) for own in alpha])


@measure_cost
def sum_rows(part: Partition, duals: Duals, W: np.ndarray, order: DualOrder) -> DualReport:
    """Return the sums of the certificate of W and the dual variables; nothing is changed."""
    alpha = duals.after(order.shares)
    report = empty_report(len(W), 0)
    numbers = range(len(W)) if part.size else range(0)
    for k, problem in enumerate(part.problems(order.loss, order.C, numbers)):
        if problem.members.size:
            report.found[k] = sums_of_margins(problem, W[k], alpha[k])
            report.sizes[k] = (*problem.row_sizes, *problem.point_sizes(alpha[k]))
    return report


# What the client does.


class DualsLost(Exception):
    """Dual variables were lost; the rounds go on with others, which determine w."""


class DualRounds(ClusterMethod):
    """The rounds under way; they begin at zero."""

    proves_itself = False  # w moves with the rounds, and is computed anew for a proof

    def __init__(
        self,
        plan: ClusterPlan,
        engine: Engine,
        watch: Callable[[dict[str, object]], object] | None = None,
        start: np.ndarray | None = None,
    ) -> None:
        super().__init__(plan, engine, watch, start)
        self.pulls = self.W.copy()  # the dual sums, which are the weights if the penalty is l2
        self.shares = np.zeros(plan.problems)
        self.scaling = np.tile(new_scaling(), (plan.problems, 1))
        self.duals = [engine.run(zero_duals, part, plan.problems) for part in engine.parts]

    def advance(self, live: list[int], stop: Any) -> list[ClusterMethod]:
        """Do a round; compute w anew if dual variables were lost."""
        try:
            return super().advance(live, stop)
        except DualsLost:
            self.rebuild()
            return [self]

    def order(self) -> DualOrder:
        """Return the question of the next round."""
        plan = self.plan
        sigmas = self.scaling["sigma"][:, 0].copy()
        seed = plan.seed + SEED_STEP * self.rounds
        return DualOrder(self.shares, sigmas, self.live, plan.loss, plan.C, seed)

    def one_round(self) -> Outcome | None:
        """Let the partitions propose changes, certify the point before them, and take a share."""
        began = time.perf_counter()
        answer = self.improve()
        report: DualReport = answer.found
        for k in np.flatnonzero(self.live).tolist():
            regularizer = self.plan.regularizer
            paid, conjugates = report.found[k, :2].tolist()
            charged = regularizer.value(self.W[k])
            sums = Sums(paid, conjugates, charged, regularizer.conjugate(self.pulls[k]))
            self.live[k] = self.is_open(self.keep_better(k, sums, self.W[k]))
        self.rounds += 1
        sent_down = self.W.nbytes * len(self.engine.parts)
        sigma = float(self.scaling["sigma"].max())
        self.record(answer, time.perf_counter() - began, sent_down, sigma=sigma)
        if self.live.any():
            self.take(report)
            return None
        # The certificates of rounds are estimates: rounding adds up in w.
        if self.confirm():
            return Outcome.CERTIFIED
        left = [self.best[k] for k in np.flatnonzero(self.live)]
        is_rounding = all(certificate.limited(self.plan.tol) for certificate in left)
        return Outcome.LIMITED_BY_ROUNDING if is_rounding else None

    def improve(self) -> Answer:
        """Let every partition improve its dual variables; return the sum of their reports."""
        former = self.duals
        with self.keep_what_is_left(former):
            W = self.engine.send(self.W.copy())
            order = self.order()
            answers = []
            for part, duals in zip(self.engine.parts, former, strict=True):
                answers.append(self.engine.run(improve, part, duals, W, order))
            self.duals = [self.engine.run(take_duals, answer) for answer in answers]
            reports = [self.engine.run(take_report, answer) for answer in answers]
            total: Answer = self.engine.add_up(reports, add_reports)
        return total

    @contextmanager
    def keep_what_is_left(self, former: Sequence[object]) -> Iterator[None]:
        """After a loss go on from the dual variables that are left, and raise DualsLost."""
        try:
            yield
        except Exception as loss:
            is_known = self.engine.survive(loss)
            left = []
            # The newest dual variables that are left, or those of the round before, or zero.
            for part, duals, before in zip(self.engine.parts, self.duals, former, strict=True):
                if is_known and self.engine.has(duals):
                    left.append(duals)
                elif is_known and self.engine.has(before):
                    left.append(before)
                else:
                    left.append(self.engine.run(zero_duals, part, self.plan.problems))
            self.duals = left
            raise DualsLost from loss

    def take(self, report: DualReport) -> None:
        """Take the share of each problem's proposals with the largest sure rise of its dual.

        R* is 1-smooth if the penalty holds half a square: a dual sum that moves by m raises it by
        at most ``w . m + ||m||^2 / 2``. So the partitions' steps are the same for the elastic net.
        """
        self.shares = np.zeros(self.plan.problems)
        for k in np.flatnonzero(self.live):
            move = report.moves[k]
            square = float(move @ move)
            fallen = report.found[k, 1] - report.proposed[k]
            gain = self.plan.C * fallen - float(self.W[k] @ move)
            self.shares[k] = safe_share(gain, square)
            self.pulls[k] += self.shares[k] * move
            # Sigma follows how much the partitions interfered.
            measure_rho(self.scaling[k], square, report.squares[k])
            follow(self.scaling[k], len(self.engine.parts))
        self.set_weights()

    def set_weights(self) -> None:
        """Set the weights that belong to the dual sums."""
        self.W = self.pulls
        if not self.plan.penalty.identity():
            self.W = np.stack([self.plan.regularizer.weights(pull) for pull in self.pulls])

    def rebuild(self) -> None:
        """Compute w from the dual variables that there are."""
        self.shares = np.zeros(self.plan.problems)
        pulls = None
        while pulls is None:
            with suppress(DualsLost), self.keep_what_is_left(self.duals):
                order = self.order()
                pairs = zip(self.engine.parts, self.duals, strict=True)
                shares = [self.engine.run(pull_rows, part, duals, order) for part, duals in pairs]
                pulls = self.engine.add_up(shares, sum)
        self.pulls = pulls
        self.set_weights()

    def sum_all(self, W: np.ndarray) -> DualReport:
        """Return the sums of the certificate of W and the dual variables."""
        with self.keep_what_is_left(self.duals):
            there = self.engine.send(W)
            order = self.order()
            pairs = zip(self.engine.parts, self.duals, strict=True)
            reports = [
                self.engine.run(sum_rows, part, duals, there, order) for part, duals in pairs
            ]
            total: DualReport = self.engine.add_up(reports, add_reports).found
        return total

    def confirm(self) -> bool:
        """Prove the point with weights computed anew; the rounds go on from these if that fails."""
        self.rebuild()
        self.live[:] = True
        self.best = self.unknown()
        report = self.sum_all(self.W)
        for k in range(self.plan.problems):
            sums = self.prove_problem(report, k, self.W[k])
            self.live[k] = self.is_open(self.keep_better(k, sums, self.W[k]))
        return not self.live.any()

    def finished(self, index: int) -> Solution:
        """Return the best model, with a proof."""
        assert self.end is not None
        is_proven = self.end[0] in (Outcome.CERTIFIED, Outcome.LIMITED_BY_ROUNDING)
        if not (is_proven and self.has_models()):
            self.prove()
        return super().finished(index)

    def prove(self) -> None:
        """Prove the best models against the present dual variables."""
        report = None
        while report is None:
            self.rebuild()
            with suppress(DualsLost):
                report = self.sum_all(self.best_W)
        for k in range(self.plan.problems):
            sums = self.prove_problem(report, k, self.best_W[k])
            self.best[k] = Certificate.of(self.plan.strength, sums)

    def prove_problem(self, report: DualReport, k: int, model: np.ndarray) -> Sums:
        """Return the sums of a model and of the dual variables of the pulls, rounding bounded."""
        sizes = report.sizes[k]
        point = PointSizes(*sizes[ROW_SIZES:].tolist())
        found = tuple(report.found[k].tolist())
        return bound_sums(self.plan.facts(sizes), found, point, model, self.pulls[k])


def certify_zero(plan: ClusterPlan, engine: Engine) -> list[Certificate]:
    """Return the certificates of zero weights and zero dual variables."""
    rounds = DualRounds(plan, engine)
    rounds.prove()
    return rounds.best


# Mixing the rows of partitions.


def take_census(part: Partition) -> np.ndarray:
    """Count the rows, and the rows of each class; for targets their sum and sum of squares."""
    y = part.y
    if part.split.classes:
        sums = np.bincount(y.astype(np.intp), minlength=part.split.classes).astype(np.float64)
    else:
        sums = np.array([y.sum(), y @ y])
    return np.append(float(part.size), sums)


def needs_mixing(census: np.ndarray, classes: int) -> bool:
    """Return True if partitions differ much more from the whole than mixed partitions would.

    Parameters
    ----------
    census : ndarray of shape (partitions, numbers)
    classes : int
        0 for targets.
    """
    sizes = census[:, :1]
    sums = census[:, 1:]
    n = float(sizes.sum())
    if n == 0.0 or (sizes > 0.0).sum() < 2:
        return False
    if classes:
        # Rows that would have to move for the same share of each class everywhere.
        expected = sizes * sums.sum(axis=0) / n
        return 0.5 * float(np.abs(sums - expected).sum()) > ALIKE * n
    # Variance between partitions beside that of all targets.
    mean = sums[:, 0].sum() / n
    spread = sums[:, 1].sum() - n * mean**2
    filled = sizes[:, 0] > 0.0
    between = float((sums[filled, 0] ** 2 / sizes[filled, 0]).sum()) - n * mean**2
    return spread > 0.0 and between > ALIKE * spread


def deal_rows(part: Partition, hands: int, seed: int) -> list[Partition]:
    """Deal the rows of a partition out at random, in `hands` parts of nearly the same size."""
    order = np.random.default_rng(seed).permutation(part.size)
    return [take_rows(part, np.sort(chosen)) for chosen in np.array_split(order, hands)]


def join_hands(*pieces: Partition) -> Partition:
    """Return one partition of all these rows."""
    return join_partitions(pieces)


def mix_partitions(
    parts: Sequence[object], seed: int, submit: Callable[..., object]
) -> list[object]:
    """Return as many partitions, each with a random share of the rows of several.

    Partition j takes the i-th hand of partition ``j + i stride``: each hand is taken once, and
    comes from far away in the order of the partitions. `submit` makes the tasks.
    """
    count = len(parts)
    hands = min(count, MOST_HANDS)
    stride = -(-count // hands)
    # A stride without a common divisor deals each hand once.
    if np.gcd(stride, count) > 1 and stride * hands != count:
        stride = next(step for step in range(stride, count + 1) if np.gcd(step, count) == 1)
    dealt = [submit(deal_rows, part, hands, seed + k) for k, part in enumerate(parts)]
    mixed = []
    for j in range(count):
        own = []
        for i in range(hands):
            own.append(submit(operator.itemgetter(i), dealt[(j + i * stride) % count]))
        mixed.append(submit(join_hands, *own))
    return mixed
