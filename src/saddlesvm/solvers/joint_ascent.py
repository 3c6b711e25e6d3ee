"""Dual ascent for Crammer and Singer's machine: a row's block of variables at a time.

With a variable for each row i and class k, ``w_k = C sum_i a_ik x_i``, ``e_ik = 0`` for the row's
own class and 1 for its rivals, ``G_k = e_ik + x_i . w_k`` and ``A = C ||x_i||^2``, a row's block is
replaced by the minimiser of

    (A / 2) sum_k (a_k - a_ik)^2 + sum_k G_k (a_k - a_ik)    with  sum_k a_k = 0,  a_k <= s_i [k =
    y_i],

which is ``a_k = min(s_i [k = y_i], (beta - B_k) / A)``, ``B_k = G_k - A a_ik``, with the threshold
beta that makes the sum zero. Sorting the B of the rivals finds beta exactly.

A pass visits the rows in random order. A row works on some of its classes: a rival whose variable
is zero, with a slope below that of every class that may still rise, is set aside, and so is a row
that has no rival left. All classes of all rows come back before the end.

Source: Keerthi, Sundararajan, Chang, Hsieh and Lin (2008), "A sequential dual method for large
scale multi-class linear SVMs"; Crammer and Singer (2001), "On the algorithmic implementation of
multiclass kernel-based vector machines", section 6, for the threshold; Fan and others (2008),
LIBLINEAR, appendix E.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.sums import dual_weights
from saddlesvm.problem.terms import Terms, weight_of
from saddlesvm.rows.class_rows import add_row, dots
from saddlesvm.rows.prefetch import prefetch_next
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.compiled import inlined, kernel, record_of
from saddlesvm.runtime.randomness import make_random, shuffle
from saddlesvm.solvers.base import (
    SAME_SLOPES,
    Budget,
    PassPosition,
    SolverBase,
    State,
    empty_array,
    is_fine,
)

# The sums of a pass, the largest difference of two slopes of a row, and the primal objective
# (divided by C) that the estimate of the gap is relative to: the objective at the last certificate
# or at the last pass over all rows.
METERS = record_of("residual", "paid", "coupled", "spread", "scale")
LEAST_SCALE = 1e-300  # of the objective, by which an estimate is divided; derived
# Share of the last gap over all rows: once the active rows' gap is below it, all rows come back; a
# guess.
RECHECK = 0.1
# Stored values scored between two looks at the time: some 10 ms; measured.
SCORED_VALUES = 4_000_000
SHORT_CLASSES = 2**15  # classes up to which two bytes hold the number of one; derived


class VariableTable(NamedTuple):
    """The variables of all rows and classes, and the classes and rows that are active.

    Attributes
    ----------
    alpha : ndarray of shape (n_all, K)
        Dual variables.
    classes : ndarray of shape (n_all, K)
        The class numbers in each row's own order: active classes first.
    counts : ndarray of shape (n_all,)
        How many classes of each row are active.
    own : ndarray of shape (n_all,)
        The class of each row.
    order : ndarray of shape (n,)
        Row numbers, active rows first.
    random : ndarray of shape (1,), uint64
        The generator of the orders.
    """

    alpha: np.ndarray
    classes: np.ndarray
    counts: np.ndarray
    own: np.ndarray
    order: np.ndarray
    random: np.ndarray


class Scratch(NamedTuple):
    """Room for the numbers of a row, one for each class."""

    z: np.ndarray  # scores, in the precision of the weights
    G: np.ndarray  # slopes
    B: np.ndarray  # of the threshold
    rivals: np.ndarray  # the B of the rivals, sorted


class JointBlock(NamedTuple):
    """One row: its number, class, weight, variables, and its classes in its own order."""

    i: int
    own: int
    s: float
    a: np.ndarray
    classes: np.ndarray


@inlined
def threshold(B: np.ndarray, count: int, own: int, A: float, s: float, rivals: np.ndarray) -> float:
    """Return the beta with ``sum_q min(s [q = own], (beta - B_q) / A) = 0`` over `count` places."""
    # The B of the rivals, sorted from the largest on.
    others = 0
    for q in range(count):
        if q == own:
            continue
        p = others
        while p > 0 and rivals[p - 1] < B[q]:
            rivals[p] = rivals[p - 1]
            p -= 1
        rivals[p] = B[q]
        others += 1
    # If the own variable is below s, beta is the mean of its B and the r largest of the
    # rivals', with the first r at which the next B no longer exceeds the mean.
    beta = B[own]
    r = 0
    while r < others and beta < (r + 1) * rivals[r]:
        beta += rivals[r]
        r += 1
    beta /= r + 1
    if beta - B[own] <= A * s:
        return beta
    # Else the rivals' variables sum to -s, and beta is the mean of the r largest
    # less A s / r. (A s is added only if the variables are of its size: if C is large,
    # rounding would hide them.)
    beta = rivals[0] - A * s
    r = 1
    while r < others and beta < r * rivals[r]:
        beta += rivals[r]
        r += 1
    return beta / r


@inlined
def row_slopes(
    block: JointBlock, count: int, scratch: Scratch
) -> tuple[float, float, float, float, float]:
    """Compute the slopes G of the first `count` classes of a row, and what they say about the row.

    Returns the least slope of a class that may rise, the largest slope, ``a . z``, the row's share
    of the gap, and its loss.
    """
    _, own, s, a, classes = block
    z = scratch.z
    G = scratch.G
    low = np.inf
    high = -np.inf
    coupled = 0.0
    residual = 0.0
    for q in range(count):
        k = classes[q]
        # G_k = e_ik + z_k, and the upper bound of a_k.
        if k == own:
            G[k] = z[k]
            bound = s
        else:
            G[k] = z[k] + 1.0
            bound = 0.0
        high = max(high, G[k])
        coupled += a[k] * z[k]
        residual += a[k] * G[k]
        if a[k] < bound:
            low = min(low, G[k])
    # The loss: the best class, its margin included, ahead of the own one.
    paid = s * (high - G[own])
    return low, high, coupled, residual + paid, paid


@inlined
def set_aside(block: JointBlock, count: int, G: np.ndarray, low: float) -> int:
    """Move rivals at zero with slopes below `low` behind the active classes; return the rest."""
    classes = block.classes
    q = 0
    while q < count:
        # a_k = 0 is the upper bound of a rival: it stays there if its slope is below that of every
        # class that may rise. It changes places with the last active class.
        k = classes[q]
        if k != block.own and block.a[k] >= 0.0 and G[k] < low:
            count -= 1
            classes[q] = classes[count]
            classes[count] = k
        else:
            q += 1
    return count


@inlined
def take_rival(block: JointBlock, count: int) -> None:
    """Give a row of zeros its best variables: its whole weight against the first rival."""
    _, own, s, a, classes = block
    a[own] = 0.0
    for q in range(count):
        # The first rival takes s, and nothing is left for the next ones.
        k = classes[q]
        if k != own:
            taken = s - a[own]
            a[k] = -taken
            a[own] += taken


@inlined
def update_block(
    terms: Terms, block: JointBlock, count: int, W: np.ndarray, scratch: Scratch
) -> None:
    """Give the first `count` classes of a row their best variables, and move the weights."""
    i, own, s, a, classes = block
    B = scratch.B
    A = terms.C * terms.norms[i]
    if A == 0.0:
        take_rival(block, count)
        return
    # B_k = G_k - A a_k, and the threshold beta.
    place = -1
    for q in range(count):
        k = classes[q]
        B[q] = scratch.G[k] - A * a[k]
        if k == own:
            place = q
    beta = threshold(B, count, place, A, s, scratch.rivals)
    # a_k = min(s [k = y], (beta - B_k) / A). The sum of the rivals keeps the own
    # variable above zero.
    for q in range(count):
        k = classes[q]
        bound = s if k == own else 0.0
        new = min(bound, (beta - B[q]) / A)
        if new != a[k]:
            add_row(terms.X, i, terms.C * (new - a[k]), W, k)
            a[k] = new


@inlined
def visit_row(
    terms: Terms,
    block: JointBlock,
    count: int,
    W: np.ndarray,
    scratch: Scratch,
    shrinking: bool,
    meters: np.ndarray,
) -> int:
    """Improve the block of a row with `count` active classes; return how many are active then."""
    m = meters[0]
    # Scores of the active classes; what they say is added to the sums of the pass.
    dots(terms.X, block.i, W, block.classes, count, scratch.z)
    low, high, coupled, residual, paid = row_slopes(block, count, scratch)
    m.residual += residual
    m.paid += paid
    m.coupled += coupled
    if shrinking:
        count = set_aside(block, count, scratch.G, low)
    # The block is optimal if the slopes of all classes that may move are the same.
    if count > 1 and high - low > SAME_SLOPES:
        m.spread = max(m.spread, high - low)
        update_block(terms, block, count, W, scratch)
    return count


@kernel
def ascend(
    terms: Terms,
    table: VariableTable,
    W: np.ndarray,
    scratch: Scratch,
    place: PassPosition,
    most: int,
    shrinking: bool,
    meters: np.ndarray,
) -> Any:
    """Visit rows until the pass ends or `most` scores are computed.

    Returns the position in the pass, the active rows, the scores computed, and the passes that
    ended (0 or 1).
    """
    alpha, classes, counts, codes, order, random = table
    position, active = place
    m = meters[0]
    done = 0
    # A pass begins with a new order, and with sums of zero.
    if position == 0:
        shuffle(random, order, active)
        m.residual = 0.0
        m.paid = 0.0
        m.coupled = 0.0
        m.spread = 0.0
    while position < active and done < most:
        prefetch_next(terms.X, order, position, active, counts, codes, terms.norms)
        i = order[position]
        block = JointBlock(i, codes[i], weight_of(terms.weights, i), alpha[i], classes[i])
        done += counts[i]
        counts[i] = visit_row(terms, block, counts[i], W, scratch, shrinking, meters)
        if counts[i] > 1:
            position += 1
        else:
            # No rival is left: the row changes places with the last active one.
            active -= 1
            order[position] = order[active]
            order[active] = i
    passes = 0
    if position >= active:
        position = 0
        passes = 1
    return position, active, done, passes


@dataclass
class JointAscentState(State):
    """The state of an ascent; ``w`` holds the weights of all classes in the layout of the rows.

    Attributes
    ----------
    alpha, classes, counts, order, random
        As of :class:`VariableTable`.
    scored : int
        Scores ``x_i . w_k`` computed so far; n K of them are an epoch.
    known, known_at : float
        The last gap over all rows, and its epoch.
    whole : bool
        Whether the current pass goes over all classes of all rows.
    """

    alpha: np.ndarray = field(default_factory=empty_array)
    classes: np.ndarray = field(default_factory=empty_array)
    counts: np.ndarray = field(default_factory=empty_array)
    order: np.ndarray = field(default_factory=empty_array)
    random: np.ndarray = field(default_factory=empty_array)
    meters: np.ndarray = field(default_factory=empty_array)
    position: int = 0
    scored: int = 0
    known: float = np.inf
    known_at: float = 0.0
    whole: bool = True

    def visit(self, problem: JointProblem, most: int, shrinking: bool) -> tuple[int, int]:
        """Visit rows until the pass ends or `most` scores are computed.

        Returns the scores computed, and the passes that ended.
        """
        K = problem.n_classes
        # Room for a row's numbers is made for each call, which visits many rows.
        G, B, rivals = np.empty((3, K))
        position, active, done, passes = ascend(
            problem.terms,
            VariableTable(
                self.alpha, self.classes, self.counts, problem.codes, self.order, self.random
            ),
            self.w,
            Scratch(np.empty(K, self.w.dtype), G, B, rivals),
            PassPosition(self.position, self.active),
            most,
            shrinking,
            self.meters,
        )
        # NumPy's numbers where nothing is compiled.
        self.position = int(position)
        self.active = int(active)
        self.scored += int(done)
        self.epochs = self.scored / (self.order.size * K)
        self.rows_touched = self.scored // K
        return int(done), passes

    def end_pass(self) -> bool:
        """Estimate the relative gap from the sums of a pass; return True if it took all rows."""
        m = self.meters[0]
        whole = self.whole
        self.whole = False
        # P / C = the losses + (1/2) sum_i a_i . z_i, since C sum_i a_i . z_i = ||W||^2 (if the
        # scores were all of the same W).
        if whole:
            m["scale"] = m["paid"] + 0.5 * m["coupled"]
        self.estimate = float(m["residual"] / max(m["scale"], LEAST_SCALE))
        if whole:
            self.known = self.estimate
            self.known_at = self.epochs
        return whole

    def call_back(self) -> None:
        """Make all classes of all rows active again."""
        self.counts[:] = self.classes.shape[1]
        self.active = self.order.size
        self.position = 0
        self.whole = True


@dataclass(frozen=True)
class JointAscent(SolverBase):
    """Dual ascent over a row's block of variables, for a :class:`JointProblem`."""

    name: ClassVar[str] = "crammer_singer"
    shrinking: bool = True

    def init(
        self, problem: JointProblem, seed: int, start: Point | None = None
    ) -> JointAscentState:
        """Begin at zero or at the given dual point, with all rows and classes active."""
        n = problem.y.size
        K = problem.n_classes
        alpha = np.zeros((n, K))
        if start is not None and start.alpha is not None:
            if start.alpha.shape != (n, K):
                raise ValueError(
                    f"the starting dual point has shape {start.alpha.shape}; the problem "
                    f"needs {n, K}"
                )
            alpha[:] = start.alpha
        # Without shrinking, as published, no certificate rebuilds W, so rounding must not add up.
        precision = problem.dtype if self.shrinking else np.float64
        W = np.zeros(problem.X.weights_shape(K), precision)
        if alpha.any():
            problem.X.by_class(W)[:] = dual_weights(problem, alpha)
        classes = np.empty((n, K), dtype=np.int16 if K < SHORT_CLASSES else np.int32)
        # Every row begins with its classes in the same order, all active.
        classes[:] = np.arange(K)
        return JointAscentState(
            w=W,
            alpha=alpha,
            classes=classes,
            counts=np.full(n, K, dtype=np.int32),
            order=problem.members.copy(),
            random=make_random(seed),
            meters=np.zeros(1, METERS),
            active=problem.members.size,
        )

    def step(self, problem: JointProblem, state: JointAscentState, budget: Budget) -> State:
        """Pass over the active rows; compute at most as many scores as ``budget.rows`` rows have.

        The step ends with a pass over all classes of all rows, whose gap is then known.
        """
        K = problem.n_classes
        left = budget.rows * K
        # The clock is looked at every so many scores.
        at_once = max(K, int(SCORED_VALUES / problem.values_per_row))
        done = 0
        while left > 0 and not (done and time_is_up()):
            done, passes = state.visit(problem, min(left, at_once), self.shrinking)
            left -= done
            if not passes:
                continue
            if state.end_pass():
                break
            # The active rows are done: look at all rows again.
            if state.meters["spread"][0] <= SAME_SLOPES or state.estimate <= RECHECK * state.known:
                state.call_back()
            if state.estimate <= budget.relative_gap:
                break
        return state

    def solution(self, problem: JointProblem, state: JointAscentState) -> Point:
        """Return the last iterate."""
        return Point(problem.X.by_class(state.w), state.alpha, tracks=True)

    def learn_from_certificate(
        self, problem: JointProblem, state: JointAscentState, evaluation: Evaluation
    ) -> State:
        """Take the rebuilt weights over; call classes back if the gap is far above the estimate.

        Without shrinking, as published, a certificate observes, and never changes a run.
        """
        if not self.shrinking:
            return state
        certificate = evaluation.certificate
        state.known = certificate.relative_gap
        state.known_at = state.epochs
        # Later estimates are relative to the certified objective.
        state.meters["scale"] = certificate.primal / (problem.unit * problem.C)
        if state.known > 2.0 * state.estimate:
            state.call_back()
        # Close to the optimum float32 weights are too coarse.
        if state.w.dtype != np.float64 and is_fine(problem, certificate):
            state.w = state.w.astype(np.float64)
        W = problem.X.by_class(state.w)
        W[:, :-1] = evaluation.coef
        if problem.scale:
            W[:, -1] = evaluation.intercept / problem.scale
        return state
