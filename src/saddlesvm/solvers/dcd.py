"""Dual coordinate descent with shrinking.

With ``b_i = a_i y_i`` the negated dual is minimised one coordinate at a time. Its slope along b_i
is ``G = y_i x_i.w - 1 (+ b_i / 2s for the squared hinge)``, and the projected slope PG is G if the
bounds let b_i move that way, else 0. A row that sits at a bound with ``G > M`` (lower) or ``G < m``
(upper), M and m the largest and smallest PG of the pass before, is set aside. When the others are
done, all rows come back and are checked again.

Four things differ from the papers. If the fit stops on its gap, the gap, not M and m, decides when
to stop; so the solver sets rows aside at a tenth of these bounds, and keeps the bounds when the
rows come back. A row set aside still counts in the objective that the estimate of the gap is
relative to. If few rows were active, the solver checks the others in the order of the data, for
next to none of them moves. And it shuffles short runs of neighbouring rows, not single rows: memory
delivers runs faster. Longer runs would be faster still, but their shuffled order converges as if
there were fewer rows.

The losses with an absolute value in their conjugate have a corner at zero, at which they shrink in
the same way; their left and right slopes take the place of G (Ho and Lin 2012, "Large-scale linear
support vector regression", section 4).

Stochastic dual coordinate ascent (:mod:`saddlesvm.solvers.sdca`) is the same loop with other
orders, in which no row is set aside.

Source: Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), "A dual coordinate descent method for
large-scale linear SVM", algorithms 1 and 3; Fan and others (2008), LIBLINEAR, appendix on stopping.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.intercepts import move_offset
from saddlesvm.problem.loss import dual_step, slopes
from saddlesvm.problem.penalties import score
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.terms import Terms, weight_of
from saddlesvm.rows.layouts import axpy
from saddlesvm.rows.prefetch import prefetch_next
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.compiled import inlined, kernel, record_of
from saddlesvm.runtime.randomness import below, copy_items, deal
from saddlesvm.solvers.base import (
    CYCLIC,
    EPOCH_METERS,
    PERMUTATION,
    REPLACEMENT,
    Budget,
    DualAscent,
    DualState,
    PassPosition,
    empty_array,
    end_of_epoch,
    residual_and_loss,
)

GAP, PROJECTED_GRADIENT, WEIGHT_CHANGE, BOTH = range(4)
STOPPING = {
    "gap": GAP,
    "projected_gradient": PROJECTED_GRADIENT,
    "weight_change": WEIGHT_CHANGE,
    "both": BOTH,
}
# Meters of a run, beside those of an epoch. Of the last pass: the bounds M and m, the range of the
# projected slopes, the change of w. Of the present pass: its length in rows (0: no pass is under
# way), the rows it set aside, its largest and smallest projected slope so far. Of the run: its
# passes; the estimate of the last pass over all rows; whether the solver's own rule is met; its
# row visits, and its row visits when the last pass over all rows ended; whether the next pass
# visits the rows in the order of the data.
METERS = record_of(
    *(EPOCH_METERS.names or ()), "bound_M", "bound_m", "range", "change", "length", "dropped",
    "largest", "smallest", "passes", "known", "satisfied", "visits", "known_at", "in_order",
)  # fmt: skip

BEGUN = ("length", "residual", "paid", "coupled")  # meters that are zero if no pass is under way
# Share of the last gap over all rows: once the active rows' gap is below it, all rows come back; a
# guess.
RECHECK = 0.05
# Share of the bounds M and m beyond which a row is set aside, if the fit stops on its gap;
# measured.
EAGER = 0.1
# A pass over all rows of a loss with kinks leaves at least this part of the gap that it has seen;
# measured: 0.3 to 0.9 of it are left where gaps fall fast (a9a, rcv1, Fashion-MNIST, C <= 0.1).
KINKED_FALL = 0.5
# Share of the rows: if fewer were active, the pass that checks the others is in the order of the
# data; a guess.
FEW = 0.25
# Bytes of rows that stay in the cache: below them single rows are shuffled, not runs; measured.
NEAR_BYTES = 2_000_000


class Deck(NamedTuple):
    """The rows of a run, and the orders in which passes visit them.

    Attributes
    ----------
    members, order : ndarray of shape (n,)
        All rows; and the active rows, in the first places of `order`. Both ascend if rows are set
        aside.
    sequence : ndarray of shape (n,)
        The order of the present pass. It may be `order` itself: each pass then shuffles the order
        of the one before.
    runs : ndarray
        Room for the runs of neighbours that are shuffled, see
        :func:`~saddlesvm.runtime.randomness.deal`.
    aside : ndarray of shape (n_all,), uint8
        1 for the rows that the present pass set aside.
    random : ndarray of shape (1,), uint64
    """

    members: np.ndarray
    order: np.ndarray
    sequence: np.ndarray
    runs: np.ndarray
    aside: np.ndarray
    random: np.ndarray


class Iterate(NamedTuple):
    """The dual point and its weights; the other arrays are empty if they are not needed.

    Attributes
    ----------
    alpha : ndarray of shape (n_all,)
    w : ndarray of shape (d + 1,)
    before : ndarray of shape (d + 1,) or (0,)
        The weights a pass ago, for the rule on the change of w.
    offset : ndarray of shape (1,) or (0,)
        The multiplier of a free intercept.
    lag : ndarray of shape (n_all,) or (0,)
        The sum of the steps of each variable, each times its number, for an average of the
        iterates: before the steps 1, ..., T these are ``a_T - (the steps from then on)``, so that
        their mean is ``a_T - lag / T``.
    """

    alpha: np.ndarray
    w: np.ndarray
    before: np.ndarray
    offset: np.ndarray
    lag: np.ndarray


class Goal(NamedTuple):
    """When a call of the kernel ends, and the number of the steps before it."""

    visits: int  # row visits, at most
    target: float  # the call also ends after a pass whose estimate of the gap is at most this
    clock: int  # steps before the call, for `lag`


class Rules(NamedTuple):
    """The options as the kernel takes them."""

    order: int  # PERMUTATION, CYCLIC or REPLACEMENT
    run: int  # neighbouring rows that stay together in the random order
    near: int  # active rows up to which single rows are shuffled
    eager: float  # share of the bounds M and m beyond which a row is set aside; 0: no row is
    stopping: int
    threshold: float
    passes: float  # passes over the active rows, at most
    least_fall: float  # least part of a pass's gap that may be left at its end; 1: no correction


@inlined
def begin_pass(deck: Deck, rules: Rules, active: int, meters: Any) -> None:
    """Lay out the order of a pass over the active rows."""
    if rules.order == CYCLIC or meters.in_order > 0.0:
        copy_items(deck.order, active, deck.sequence)
    elif rules.order == REPLACEMENT:
        for k in range(active):
            deck.sequence[k] = deck.order[below(deck.random, active)]
    else:
        run = rules.run if active > rules.near else 1
        deal(deck.random, deck.order, active, run, deck.runs, deck.sequence)
    meters.length = active
    meters.dropped = 0.0
    meters.largest = -np.inf
    meters.smallest = np.inf
    meters.in_order = 0.0


@inlined
def projected_slope(left: float, right: float) -> float:
    """Return PG: the slope that a dual variable can still follow, or 0 if it is optimal."""
    if right < 0.0:
        return right
    return max(left, 0.0)


@inlined
def visit_rows(
    terms: Terms,
    deck: Deck,
    rules: Rules,
    iterate: Iterate,
    start: int,
    stop: int,
    clock: int,
    meters: np.ndarray,
) -> None:
    """Visit the rows at the places `start` to `stop` of the present pass."""
    alpha, w, _, _, lag = iterate
    m = meters[0]
    length = int(m.length)
    residuals = 0.0
    losses = 0.0
    coupled = 0.0
    dropped = 0
    largest = m.largest
    smallest = m.smallest
    for p in range(start, stop):
        if length > rules.near:
            prefetch_next(terms.X, deck.sequence, p, length, alpha, terms.y, terms.norms)
        i = deck.sequence[p]
        a = alpha[i]
        s = weight_of(terms.weights, i)
        z = score(terms.penalty, terms.X, i, w, 1.0)
        # The row's share of the gap, its loss and a_i z_i: their sums estimate the relative gap.
        residual, paid = residual_and_loss(terms, i, a, z)
        residuals += residual
        losses += paid
        coupled += a * z
        # Shrinking: G, from the left and from the right, beyond M and m. (This comes before the
        # step, because late in a fit it ends most visits.)
        left, right = slopes(terms.loss, a, z, terms.y[i], s)
        if right > m.bound_M and left < m.bound_m:
            deck.aside[i] = 1
            dropped += 1
            continue
        slope = projected_slope(left, right)
        largest = max(largest, slope)
        smallest = min(smallest, slope)
        # The best place of a_i with the others fixed, and w = C sum_i a_i x_i.
        step = dual_step(terms.loss, a, z, terms.y[i], terms.C * terms.norms[i], s)
        if step != 0.0:
            alpha[i] = a + step
            axpy(terms.X, i, terms.C * step, w)
            if lag.size:
                lag[i] += step * (clock + p - start + 1)
    m.residual += residuals
    m.paid += losses
    m.coupled += coupled
    m.dropped += dropped
    m.largest = largest
    m.smallest = smallest


@inlined
def drop_aside(deck: Deck, active: int) -> int:
    """Remove the rows that were set aside from the active ones, and return how many are left."""
    kept = 0
    for k in range(active):
        i = deck.order[k]
        deck.order[kept] = i
        kept += 1 - deck.aside[i]
        deck.aside[i] = 0
    return kept


@inlined
def weight_change(w: np.ndarray, before: np.ndarray) -> float:
    """Return ``||w - before||``, and copy w to `before` for the next pass."""
    total = 0.0
    for j in range(before.size):
        total += (w[j] - before[j]) ** 2
        before[j] = w[j]
    return np.sqrt(total)


@inlined
def own_measure(rules: Rules, w: np.ndarray, before: np.ndarray, meters: Any) -> float:
    """Return what the papers' stopping rules compare with the threshold; infinite without them."""
    if rules.stopping == GAP:
        return np.inf
    if rules.stopping == PROJECTED_GRADIENT:
        return meters.range
    meters.change = weight_change(w, before)
    if rules.stopping == WEIGHT_CHANGE:
        return meters.change
    return max(meters.range, meters.change)


@inlined
def end_pass(
    deck: Deck, rules: Rules, w: np.ndarray, before: np.ndarray, meters: np.ndarray
) -> int:
    """Judge a pass, and call all rows back if the active rows are done; return the active rows."""
    m = meters[0]
    active = int(m.length)
    is_whole = active == deck.members.size
    if m.dropped > 0.0:
        active = drop_aside(deck, active)
    end_of_epoch(meters, is_whole)
    # M and m of the next pass.
    m.range = max(m.largest - m.smallest, 0.0)
    m.bound_M = np.inf
    m.bound_m = -np.inf
    if rules.eager > 0.0 and m.largest > 0.0:
        m.bound_M = rules.eager * m.largest
    if rules.eager > 0.0 and m.smallest < 0.0:
        m.bound_m = rules.eager * m.smallest
    m.passes += 1.0
    m.visits += m.length
    m.length = 0.0
    measure = own_measure(rules, w, before, meters[0])
    if is_whole:
        follows = m.known_at == m.visits - deck.members.size
        earlier = m.known
        m.known = m.estimate
        m.known_at = m.visits
        # A pass saw its rows half a pass ago on average: half of what the last pass gained is to
        # come.
        if follows and m.known < earlier < np.inf:
            m.estimate *= max(np.sqrt(m.known / earlier), rules.least_fall)
        m.satisfied = 1.0 if measure <= rules.threshold else 0.0
        return active
    # The active rows are done by the papers' rule, or by a small share of the last gap over all
    # rows.
    floor = RECHECK * m.known if rules.stopping == GAP else 0.0
    if measure <= rules.threshold or m.range == 0.0 or m.estimate <= floor:
        active = call_back(deck, rules, meters, active)
    return active


@kernel
def call_back(deck: Deck, rules: Rules, meters: np.ndarray, active: int) -> int:
    """Make all rows active again, when `active` were; return their number.

    Under the papers' stopping rules the next pass sets no row aside.
    """
    copy_items(deck.members, deck.order.size, deck.order)
    if rules.stopping == GAP:
        meters[0].in_order = 1.0 if active < FEW * deck.order.size else 0.0
    else:
        meters[0].bound_M = np.inf
        meters[0].bound_m = -np.inf
    return deck.order.size


@kernel
def descend(
    terms: Terms,
    deck: Deck,
    rules: Rules,
    iterate: Iterate,
    place: PassPosition,
    goal: Goal,
    meters: np.ndarray,
) -> tuple[int, int, int]:
    """Make passes over the active rows until the goal is reached or the solver's own rule is met.

    Returns the place in the pass, the active rows, and the visits done.
    """
    m = meters[0]
    position, active = place
    done = 0
    while done < goal.visits:
        if m.length == 0.0:
            begin_pass(deck, rules, active, m)
        length = int(m.length)
        stop = min(length, position + goal.visits - done)
        visit_rows(terms, deck, rules, iterate, position, stop, goal.clock + done, meters)
        done += stop - position
        position = stop
        if position == length:
            position = 0
            active = end_pass(deck, rules, iterate.w, iterate.before, meters)
            move_offset(iterate.w, iterate.offset)
            if m.satisfied > 0.0 or m.passes >= rules.passes or m.estimate <= goal.target:
                break
    return position, active, done


def near_rows(problem: Problem) -> int:
    """Return how many rows fit into the cache, in which their order does not change the speed."""
    return int(NEAR_BYTES / (problem.values_per_row * problem.dtype.itemsize))


def new_meters() -> np.ndarray:
    """Return the meters of a run that begins."""
    meters = np.zeros(1, METERS)
    for name in ("bound_M", "estimate", "known", "change"):
        meters[name] = np.inf
    meters["bound_m"] = -np.inf
    return meters


@dataclass
class DCDState(DualState):
    """The dual state, the other arrays of the :class:`Deck`, and the weights of a pass ago."""

    sequence: np.ndarray = field(default_factory=empty_array)
    blocks: np.ndarray = field(default_factory=empty_array)
    aside: np.ndarray = field(default_factory=empty_array)
    before: np.ndarray = field(default_factory=empty_array)
    lag: np.ndarray = field(default_factory=empty_array)

    def deck(self, problem: Problem) -> Deck:
        """Return the rows of the run as the kernel takes them."""
        return Deck(
            problem.members, self.order, self.sequence, self.blocks, self.aside, self.random
        )

    def descend(self, problem: Problem, rules: Rules, goal: Goal) -> int:
        """Make passes until the goal is reached; return the row visits done."""
        self.position, self.active, done = descend(
            problem.terms,
            self.deck(problem),
            rules,
            Iterate(self.alpha, self.w, self.before, self.offset, self.lag),
            PassPosition(self.position, self.active),
            goal,
            self.meters,
        )
        self.rows_touched += done
        self.epochs = self.rows_touched / self.order.size
        meters = self.meters[0]
        self.estimate = float(meters["estimate"])
        self.known = float(meters["known"])
        self.known_at = float(meters["known_at"]) / self.order.size
        self.satisfied = bool(meters["satisfied"])
        self.change = float(meters["change"])
        return int(done)


@dataclass(frozen=True)
class DCD(DualAscent):
    """Dual coordinate descent with shrinking.

    Parameters
    ----------
    permutation : bool, default=True
        Visit the rows in a new random order each pass, or always in the order of the data.
    shrinking : bool, default=True
        Set aside the rows whose dual variable is at a bound, with a slope that keeps it there.
    stopping : {"gap", "projected_gradient", "weight_change", "both"}, default="gap"
        Stop by the fit's relative gap only ("gap"); or also if, over all rows, the range of the
        projected slopes (Hsieh and others 2008), the norm of the change of w in a pass, or both,
        are at most `threshold`. Under these rules of the papers a certificate observes a run, and
        never changes it.
    threshold : float, default=1e-4
        Tolerance of the solver's own rule.
    max_passes : int, optional
        Also stop after this many passes over the active rows. LIBLINEAR calls such passes
        iterations. The fit's `max_iter` counts epochs instead: as many row visits as there are
        rows.
    run_length : int, default=4
        Number of neighbouring rows that stay together in the random order, so that memory is read
        in longer pieces; 1 permutes single rows, as the papers do. Active rows of less than 2 MB in
        total are always permuted one by one.

    Examples
    --------
    >>> from saddlesvm import DCD, LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(
    ...     solver=DCD(shrinking=False), C=0.01, tol=1e-2, random_state=0
    ... ).fit(notes.X, notes.y)
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "dcd"
    any_penalty: ClassVar[bool] = True
    permutation: bool = True
    shrinking: bool = True
    stopping: str = "gap"
    threshold: float = 1e-4
    max_passes: int | None = None
    run_length: int = 4

    @property
    def ends_itself(self) -> bool:
        """Return True if a rule of its own ends a run."""
        return self.stopping != "gap" or self.max_passes is not None

    def exhausted(self, state: DCDState) -> bool:
        """Return True if a run has made its passes."""
        return self.max_passes is not None and bool(state.meters["passes"][0] >= self.max_passes)

    def __post_init__(self) -> None:
        one_of("stopping", self.stopping, tuple(STOPPING))
        if not self.threshold > 0.0:
            raise ValueError(f"threshold must be positive; got {self.threshold!r}")
        if self.max_passes is not None and not self.max_passes >= 1:
            raise ValueError(
                f"max_passes must be at least 1, or None for no limit; got {self.max_passes!r}"
            )
        if not self.run_length >= 1:
            raise ValueError(f"run_length must be at least 1; got {self.run_length!r}")

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> DCDState:
        """Begin at zero or at the given dual point, with all rows active."""
        n = problem.members.size
        run = self.rules(problem).run
        # Under the papers' rules no certificate rebuilds w, so rounding must not add up.
        precision = None if self.stopping == "gap" else np.float64
        state = self.begin(
            DCDState,
            problem,
            seed,
            start,
            precision,
            meters=new_meters(),
            sequence=problem.members.copy(),
            blocks=np.zeros(n // run + 2 if run > 1 else 0, dtype=problem.members.dtype),
            aside=np.zeros(problem.y.size, dtype=np.uint8),
        )
        if self.stopping in ("weight_change", "both"):
            state.before = state.w.copy()
        return state

    def rules(self, problem: Problem) -> Rules:
        """Return the options as the kernel takes them."""
        near = near_rows(problem)
        eager = 0.0
        if self.shrinking:
            eager = EAGER if self.stopping == "gap" else 1.0
        return Rules(
            order=PERMUTATION if self.permutation else CYCLIC,
            run=int(self.run_length) if problem.members.size > near else 1,
            near=near,
            eager=eager,
            stopping=STOPPING[self.stopping],
            threshold=float(self.threshold),
            passes=float(self.max_passes or np.inf),
            least_fall=0.0 if problem.is_smooth else KINKED_FALL,
        )

    def step(self, problem: Problem, state: DCDState, budget: Budget) -> DCDState:
        """Pass over the active rows, with at most ``budget.rows`` row visits."""
        state.descend(problem, self.rules(problem), Goal(budget.rows, budget.relative_gap, 0))
        return state

    def learn_from_certificate(
        self, problem: Problem, state: DCDState, evaluation: Evaluation
    ) -> DCDState:
        """Take the rebuilt weights over; call all rows back if the gap is far above the estimate.

        Under the papers' stopping rules a certificate observes, and never changes a run.
        """
        if self.stopping != "gap":
            return state
        known = evaluation.certificate.relative_gap
        state.meters["known"] = known
        if state.active < state.order.size and known > 2.0 * state.meters["estimate"][0]:
            state.aside[:] = 0
            for name in BEGUN:
                state.meters[name] = 0.0
            deck = state.deck(problem)
            state.active = call_back(deck, self.rules(problem), state.meters, state.active)
            state.position = 0
        return super().learn_from_certificate(problem, state, evaluation)
