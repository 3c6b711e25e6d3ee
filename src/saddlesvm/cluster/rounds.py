"""The dual in parts: partitions improve their dual variables, and a share of all changes is taken.

For what neither fits on a worker nor takes Newton's method or the active set: the elastic net, and
piecewise linear losses with very many features. A round sends w to the partitions. They prove the
point that the round began with, and return the pull of its dual variables and the sum of their
changes. A share of the changes is taken that never lowers a dual objective.

Any dual variables are feasible. So a lost worker costs time only: its partitions begin at zero
again, and the next round computes w from the dual variables that are left.

A partition with rows of one class only proposes what helps that class; the next partition takes it
back. If partitions differ that much, as in sorted data, their rows are mixed once, before
the first round: 8,000 sorted rows in four partitions (hinge, C = 1) have a gap above 0.5 after 40
rounds without it, and below 0.05 with it.

3,000 rows in four partitions (elastic net, C = 0.002): some ten rounds. At C = 1 with many rows a
partition it takes hundreds.

Source: Ma, Smith, Jaggi and others (2015), "Adding vs. averaging in distributed primal-dual
optimization", algorithm 1 and equations (9) and (11); the local solver is
:class:`~saddlesvm.solvers.dcd.DCD`.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import LARGEST, ROW_SIZES, SIZES, ClusterMethod, ClusterPlan
from saddlesvm.cluster.partition import Partition, join_partitions, take_rows
from saddlesvm.cluster.tasks import Answer, add_costs, measure_cost
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.bounds import LossSums, PointSizes, add_sizes, bound_sums
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import SUMS, conjugate_sum, sums_and_pull
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.dcd import DCD

PASSES = 3.0  # over its rows that a partition does in a round; a guess
SEED_STEP = 7919  # between the seeds of two rounds: a prime
# Share of the rows (or of the targets' variance) that differs among partitions; a guess.
ALIKE = 0.2
FADING = 0.9  # weight of the earlier rho in the new one, if rho falls; a guess
MOST_HANDS = 16  # partitions to which one partition deals out its rows, at most; a guess


# What a partition does.


class Duals(NamedTuple):
    """The dual variables of a partition, shape (problems, n), and the change that it proposes.

    They stay with the partition: of what a task returns, they are no bytes that travel.
    """

    alpha: np.ndarray
    change: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return 0

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
    passes : float
        Passes over its rows that a partition does; 0 for a report alone.
    """

    shares: np.ndarray
    sigmas: np.ndarray
    live: np.ndarray
    loss: Loss
    C: float
    seed: int
    passes: float = PASSES


class DualReport(NamedTuple):
    """The report of some partitions on a round: sums over their rows for each problem.

    Attributes
    ----------
    moves : ndarray of shape (problems, d + 1)
        The changes of the pulls that are proposed.
    pulls : ndarray of shape (problems, d + 1)
        The dual sums ``C sum_i a_i x_i`` at the point that the round began with.
    found : ndarray of shape (problems, SUMS)
        The sums of :func:`~saddlesvm.problem.sums.loss_sums` at the point that the round began
        with.
    proposed : ndarray of shape (problems,)
        The conjugates at the point that is proposed.
    squares : ndarray of shape (problems,)
        The squared norms of each partition's change of the pull.
    sizes : ndarray of shape (problems, SIZES)
        The sizes that bounds on rounding need.
    """

    moves: np.ndarray
    pulls: np.ndarray
    found: np.ndarray
    proposed: np.ndarray
    squares: np.ndarray
    sizes: np.ndarray


def empty_report(problems: int, width: int) -> DualReport:
    """Return the report of no row."""
    return DualReport(
        moves=np.zeros((problems, width)),
        pulls=np.zeros((problems, width)),
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


@measure_cost
def improve(
    part: Partition, duals: Duals, W: np.ndarray, order: DualOrder
) -> tuple[Duals, DualReport]:
    """Take the share of the last change, report, and propose a new change against the weights W."""
    # Take the share of the last proposal that the sum of all proposals could bear.
    alpha = duals.after(order.shares)
    change = np.zeros_like(alpha)
    report = empty_report(*W.shape)
    live = np.flatnonzero(order.live).tolist() if part.size else []
    for k, problem in zip(live, part.problems(order.loss, order.C, live), strict=True):
        if not problem.members.size:
            continue
        # The certificate of W and the dual variables, in one pass.
        report.found[k], report.pulls[k] = sums_and_pull(problem, W[k], alpha[k])
        report.sizes[k] = (*problem.row_sizes, *problem.point_sizes(alpha[k]))
        report.proposed[k] = report.found[k, 1]
        if order.passes == 0.0:
            continue
        # Local dual ascent from alpha; sigma allows for what other partitions add to w meanwhile.
        visits = max(1, round(order.passes * problem.members.size))
        seed = order.seed + k
        proposal, move = descend(problem, alpha[k], W[k], order.sigmas[k], visits, seed)
        change[k] = proposal - alpha[k]
        report.moves[k] = move
        report.proposed[k] = conjugate_sum(problem.pointwise, problem.members, proposal, 1.0)
        report.squares[k] = move @ move
    return Duals(alpha, change), report


def descend(
    problem: Problem, alpha: np.ndarray, w: np.ndarray, sigma: float, visits: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Improve dual variables by coordinate descent; return them, and the change of the pull.

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
    state = solver.step(scaled, state, Budget(visits))
    return state.alpha, (state.w - w) / sigma


def take_duals(answer: Answer) -> Duals:
    """Return the dual variables that stay there."""
    duals: Duals = answer.found[0]
    return duals


def take_report(answer: Answer) -> Answer:
    """Return the report, with what it cost."""
    return answer._replace(found=answer.found[1])


# What the client does.


class DualRounds(ClusterMethod):
    """The rounds under way; they begin at zero."""

    def begin(self) -> None:
        """Begin at dual variables of zero."""
        problems = self.plan.problems
        self.pulls = self.W.copy()  # the dual sums, which are the weights if the penalty is l2
        self.shares = np.zeros(problems)
        self.rhos = np.ones(problems)
        self.sigmas = np.ones(problems)
        self.duals = [self.engine.run(zero_duals, part, problems) for part in self.engine.parts]

    def one_round(self) -> Outcome | None:
        """Let the partitions propose changes, certify the point before them, and take a share."""
        began = time.perf_counter()
        answer = self.improve()
        self.certify(answer.found)
        self.rounds += 1
        sent_down = self.W.nbytes * len(self.engine.parts)
        sigma = float(self.sigmas.max())
        self.record(answer, time.perf_counter() - began, sent_down, sigma=sigma)
        self.take(answer.found)
        return self.find_outcome()

    def improve(self, passes: float = PASSES) -> Answer:
        """Let every partition improve its dual variables; return the sum of their reports.

        After a loss the partitions only report, since w belongs to dual variables that are gone.
        """
        while True:
            former = self.duals
            try:
                W = self.engine.send(self.W.copy())
                order = self.order(passes)
                answers = []
                for part, duals in zip(self.engine.parts, former, strict=True):
                    answers.append(self.engine.run(improve, part, duals, W, order))
                self.duals = [self.engine.run(take_duals, answer) for answer in answers]
                reports = [self.engine.run(take_report, answer) for answer in answers]
                total: Answer = self.engine.add_up(reports, add_reports)
                return total
            except Exception as loss:
                is_known = self.engine.survive(loss)
                self.duals = self.find_left(former, is_known)
                self.shares[:] = 0.0
                passes = 0.0

    def order(self, passes: float = PASSES) -> DualOrder:
        """Return the question of the next round."""
        plan = self.plan
        seed = plan.seed + SEED_STEP * self.rounds
        shares = self.shares.copy()
        sigmas = self.sigmas.copy()
        return DualOrder(shares, sigmas, self.live.copy(), plan.loss, plan.C, seed, passes)

    def find_left(self, former: Sequence[object], is_known: bool) -> list[object]:
        """Return the newest dual variables that are left, or those of the round before, or zero."""
        left: list[object] = []
        for part, duals, before in zip(self.engine.parts, self.duals, former, strict=True):
            if is_known and self.engine.has(duals):
                left.append(duals)
            elif is_known and self.engine.has(before):
                left.append(before)
            else:
                left.append(self.engine.run(zero_duals, part, self.plan.problems))
        return left

    def certify(self, report: DualReport) -> None:
        """Certify the weights and the dual variables that a round began with."""
        for k in np.flatnonzero(self.live).tolist():
            self.pulls[k] = report.pulls[k]
            sizes = report.sizes[k]
            point = PointSizes(*sizes[ROW_SIZES:].tolist())
            found = LossSums(*report.found[k].tolist())
            sums = bound_sums(self.plan.facts(sizes), found, point, self.W[k], self.pulls[k])
            self.certify_problem(k, sums, self.W[k])

    def take(self, report: DualReport) -> None:
        """Take the share of each problem's proposals with the largest sure rise of its dual.

        R* is 1-smooth if the penalty holds half a square: a dual sum that moves by m raises it by
        at most ``w . m + ||m||^2 / 2``. So the partitions' steps are the same for the elastic net.
        """
        self.shares[:] = 0.0
        for k in np.flatnonzero(self.live).tolist():
            move = report.moves[k]
            square = float(move @ move)
            fallen = report.found[k, 1] - report.proposed[k]
            gain = self.plan.C * fallen - float(self.W[k] @ move)
            self.shares[k] = safe_share(gain, square)
            self.pulls[k] += self.shares[k] * move
            self.follow_interference(k, square, float(report.squares[k]))
        self.W = np.stack([self.plan.regularizer.weights(pull) for pull in self.pulls])

    def follow_interference(self, k: int, square_of_sum: float, sum_of_squares: float) -> None:
        """Let sigma of problem k follow how much the partitions interfered in a round."""
        # rho = ||sum_k v_k||^2 / sum_k ||v_k||^2 (sigma'_min of equation 11); 1 if nothing moved.
        rho = 1.0
        if sum_of_squares > 0.0:
            rho = square_of_sum / sum_of_squares
        # It rises at once and falls slowly. The number of partitions is always safe.
        self.rhos[k] = max(rho, FADING * self.rhos[k] + (1.0 - FADING) * rho)
        self.sigmas[k] = np.clip(self.rhos[k], 1.0, len(self.engine.parts))


def safe_share(linear_gain: float, square_of_sum: float) -> float:
    """Return the share of a change, in [0, 1], with the largest sure rise of the dual.

    The rise is at least ``share linear_gain - share^2 square_of_sum / 2``, because the gain without
    the quadratic term is concave.
    """
    if linear_gain >= 0.5 * square_of_sum:
        return 1.0
    return max(linear_gain / square_of_sum, 0.0)


def certify_zero(plan: ClusterPlan, engine: Engine) -> list[Certificate]:
    """Return the certificates of zero weights and zero dual variables."""
    rounds = DualRounds(plan, engine)
    rounds.certify(rounds.improve(passes=0.0).found)
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
