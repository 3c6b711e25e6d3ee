"""Dual coordinate descent with shrinking.

With ``b_i = a_i y_i`` the negated dual is minimised one coordinate at a time. Its slope along b_i is
``G = y_i x_i.w - 1 (+ b_i / 2s for the squared hinge)``, and the projected slope PG is G where the bounds let b_i move
and 0 where they do not. A row that sits at a bound with ``G > M`` (lower) or ``G < m`` (upper), M and m the largest and
smallest PG of the pass before, is set aside. When the others are done, all rows come back and are checked again.

Four things differ from the papers. Where the fit stops on its gap, the gap, not M and m, decides when to stop; so the
solver sets rows aside at a tenth of these bounds, and keeps the bounds when the rows come back. A row set aside still
counts in the objective that the estimate of the gap is relative to. Where few rows were active, the solver checks the
others in the order of the data, for next to none of them moves. And it shuffles short runs of neighbouring rows, not
single rows: memory delivers runs faster. Longer runs would be faster still, but their shuffled order converges as if
there were fewer rows.

The losses with an absolute value in their conjugate have a corner at zero where they shrink in the same way; their left
and right slopes take the place of G (Ho and Lin 2012, "Large-scale linear support vector regression", section 4).

Source: Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), "A dual coordinate descent method for large-scale linear
SVM", algorithms 1 and 3; Fan and others (2008), LIBLINEAR, appendix on stopping.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.intercepts import move_offset
from saddlesvm.problem.loss import dual_step, is_smooth, slopes
from saddlesvm.problem.penalties import score
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.terms import Terms, weight_of
from saddlesvm.rows.layouts import axpy
from saddlesvm.rows.prefetch import prefetch_next
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.compiled import inlined, kernel, record_of
from saddlesvm.runtime.randomness import copy_items, deal
from saddlesvm.solvers.base import (
    EPOCH_METERS,
    Budget,
    DualAscent,
    DualState,
    Place,
    end_of_epoch,
    nothing,
    residual_and_loss,
)

GAP, PROJECTED_GRADIENT, WEIGHT_CHANGE, BOTH = range(4)
STOPPING = {"gap": GAP, "projected_gradient": PROJECTED_GRADIENT, "weight_change": WEIGHT_CHANGE, "both": BOTH}
# Meters of a run, beside those of an epoch. Of the last pass: the bounds M and m, the range of the projected slopes,
# the change of w. Of the present pass: its length in rows (0: no pass is under way), the rows it set aside, its largest
# and smallest projected slope so far. Of the run: its passes; the estimate of the last pass over all rows; whether the
# solver's own rule is met; its row visits, and its row visits when the last pass over all rows ended; whether the next
# pass visits the rows in the order of the data.
METERS = record_of(
    *(EPOCH_METERS.names or ()), "bound_M", "bound_m", "range", "change", "length", "dropped", "largest", "smallest",
    "passes", "known", "satisfied", "visits", "known_at", "in_order",
)  # fmt: skip

BEGUN = ("length", "residual", "paid", "coupled")  # meters that are zero where no pass is under way
RECHECK = 0.05  # share of the last gap over all rows: once the active rows' gap is below it, all rows come back
EAGER = 0.1  # share of the bounds M and m beyond which a row is set aside, where the fit stops on its gap
FEW = 0.25  # share of the rows: where fewer were active, the pass that checks the others is in the order of the data
NEAR_BYTES = 2_000_000  # bytes of rows that stay in the cache: below them single rows are shuffled, not runs


class Deck(NamedTuple):
    """The rows of a run, and the orders in which passes visit them.

    Attributes
    ----------
    members, order : ndarray of shape (n,)
        All rows; and the active rows, in the first places of `order`. Both ascend.
    sequence : ndarray of shape (n,)
        The order of the present pass.
    runs : ndarray
        Room for the runs of neighbours that are shuffled, see :func:`~saddlesvm.runtime.randomness.deal`.
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
    """The dual point, its weights, and two arrays that may be empty.

    `before` holds the weights a pass ago, for the rule on the change of w; `offset` the multiplier of a free intercept.
    """

    alpha: np.ndarray
    w: np.ndarray
    before: np.ndarray
    offset: np.ndarray


class Goal(NamedTuple):
    """When a call of the kernel ends: after `visits` row visits, or after a pass whose estimate is at most `target`."""

    visits: int
    target: float


class Rules(NamedTuple):
    """The options as the kernel takes them."""

    permutation: bool
    run: int  # neighbouring rows that stay together in the random order
    near: int  # active rows up to which single rows are shuffled
    eager: float  # share of the bounds M and m beyond which a row is set aside; 0: no row is
    stopping: int
    threshold: float
    passes: float  # passes over the active rows, at most
    smooth: bool  # whether the loss is smooth


@inlined
def begin_pass(deck: Deck, rules: Rules, active: int, meters: Any) -> None:
    """Lay out the order of a pass over the active rows."""
    if rules.permutation and meters.in_order == 0.0:
        run = rules.run if active > rules.near else 1
        deal(deck.random, deck.order, active, run, deck.runs, deck.sequence)
    else:
        copy_items(deck.order, active, deck.sequence)
    meters.length, meters.dropped, meters.largest, meters.smallest = active, 0.0, -np.inf, np.inf
    meters.in_order = 0.0


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
def move_of(w: np.ndarray, before: np.ndarray) -> float:
    """Return ``||w - before||``, and copy w to `before` for the next pass."""
    total = 0.0
    for j in range(before.size):
        total += (w[j] - before[j]) ** 2
        before[j] = w[j]
    return np.sqrt(total)


@inlined
def end_of_pass(deck: Deck, rules: Rules, w: np.ndarray, before: np.ndarray, meters: np.ndarray) -> int:
    """Judge a pass: note its figures, set new bounds, and call all rows back when the active rows are done.

    Returns how many rows are active then.
    """
    m = meters[0]
    whole = m.length == deck.members.size
    active = int(m.length)
    if m.dropped > 0.0:
        active = drop_aside(deck, active)
    end_of_epoch(meters, whole)
    m.range = max(m.largest - m.smallest, 0.0)
    m.bound_M = rules.eager * m.largest if m.largest > 0.0 else np.inf
    m.bound_m = rules.eager * m.smallest if m.smallest < 0.0 else -np.inf
    m.passes += 1.0
    m.visits += m.length
    m.length = 0.0
    judged, floor = np.inf, 0.0
    if rules.stopping == GAP:
        floor = RECHECK * m.known
    else:
        judged = m.range if rules.stopping != WEIGHT_CHANGE else 0.0
        if rules.stopping != PROJECTED_GRADIENT:
            m.change = move_of(w, before)
            judged = max(judged, m.change)
    if whole:
        follows = m.known_at == m.visits - deck.members.size
        earlier, m.known, m.known_at = m.known, m.estimate, m.visits
        if rules.smooth and follows and m.known < earlier < np.inf:
            m.estimate *= np.sqrt(m.known / earlier)  # a pass saw its rows half a pass ago on average
        m.satisfied = 1.0 if judged <= rules.threshold else 0.0
    elif judged <= rules.threshold or m.range == 0.0 or m.estimate <= floor:
        active = call_back(deck, rules, meters, active)
    return active


@kernel
def call_back(deck: Deck, rules: Rules, meters: np.ndarray, active: int) -> int:
    """Make all rows active again, where `active` were; return their number.

    Under the papers' stopping rules the next pass sets no row aside.
    """
    copy_items(deck.members, deck.order.size, deck.order)
    if rules.stopping == GAP:
        meters[0].in_order = 1.0 if active < FEW * deck.order.size else 0.0
    else:
        meters[0].bound_M, meters[0].bound_m = np.inf, -np.inf
    return deck.order.size


@inlined
def projected(left: float, right: float) -> float:
    """The slope that a dual variable can still follow, `left` or `right`; zero where the variable is optimal."""
    return right if right < 0.0 else (left if left > 0.0 else 0.0)


@kernel
def descend(
    terms: Terms, deck: Deck, rules: Rules, iterate: Iterate, place: Place, goal: Goal, meters: np.ndarray
) -> Any:
    """Passes over the active rows, until the goal is reached or the solver's own rule is met: the place in the pass,
    the active rows, and the visits done."""
    X, C, m, visits = terms.X, terms.C, meters[0], goal.visits
    alpha, w, before, offset = iterate
    position, active = place
    done = 0
    while done < visits:
        if m.length == 0.0:
            begin_pass(deck, rules, active, m)
        length = int(m.length)
        bound_M, bound_m = (m.bound_M, m.bound_m) if rules.eager > 0.0 else (np.inf, -np.inf)
        largest, smallest = m.largest, m.smallest
        residuals = losses = coupled = 0.0
        dropped = 0
        stop = min(length, position + visits - done)
        done += stop - position
        for p in range(position, stop):
            if length > rules.near:
                prefetch_next(X, deck.sequence, p, length, alpha, terms.y, terms.norms)
            i = deck.sequence[p]
            a, s, z = alpha[i], weight_of(terms.weights, i), score(terms.penalty, X, i, w, 1.0)
            residual, paid = residual_and_loss(terms, i, a, z)
            residuals += residual
            losses += paid
            coupled += a * z
            left, right = slopes(terms.loss, a, z, terms.y[i], s)
            if right > bound_M and left < bound_m:  # asked first: late in a fit it ends most visits
                deck.aside[i] = 1
                dropped += 1
                continue
            slope = projected(left, right)
            largest, smallest = max(largest, slope), min(smallest, slope)
            step = dual_step(terms.loss, a, z, terms.y[i], C * terms.norms[i], s)
            if step != 0.0:
                alpha[i] = a + step
                axpy(X, i, C * step, w)
        position = stop
        m.largest, m.smallest = largest, smallest
        m.dropped += dropped
        m.residual += residuals
        m.paid += losses
        m.coupled += coupled
        if position == length:
            position = 0
            active = end_of_pass(deck, rules, w, before, meters)
            move_offset(w, offset)
            if m.satisfied > 0.0 or m.passes >= rules.passes or m.estimate <= goal.target:
                break
    return position, active, done


def near_rows(problem: Problem) -> int:
    """The number of rows that fit into the cache: below this number their order does not change the speed."""
    return int(NEAR_BYTES / (problem.values_per_row * problem.dtype.itemsize))


@dataclass
class DCDState(DualState):
    """The dual state, the other arrays of the :class:`Deck`, and the weights of a pass ago (for the rule on w)."""

    sequence: np.ndarray = field(default_factory=nothing)
    blocks: np.ndarray = field(default_factory=nothing)
    aside: np.ndarray = field(default_factory=nothing)
    before: np.ndarray = field(default_factory=nothing)


def deck_of(problem: Problem, state: DCDState) -> Deck:
    """The rows of a run as the kernel takes them."""
    return Deck(problem.members, state.order, state.sequence, state.blocks, state.aside, state.random)


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
        Stop by the fit's relative gap only ("gap"); or also if, over all rows, the range of the projected slopes (Hsieh
        and others 2008), the norm of the change of w in a pass, or both, are at most `threshold`. Under these rules of
        the papers a certificate observes a run, and never changes it.
    threshold : float, default=1e-4
        Tolerance of the solver's own rule.
    max_passes : int, optional
        Also stop after this many passes over the active rows. LIBLINEAR calls such passes iterations. The fit's
        `max_iter` counts epochs instead: as many row visits as there are rows.
    run_length : int, default=4
        Number of neighbouring rows that stay together in the random order, so that memory is read in longer pieces; 1
        permutes single rows, as the papers do. Active rows of less than 2 MB in total are always permuted one by one.

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
    any_rows: ClassVar[bool] = True
    permutation: bool = True
    shrinking: bool = True
    stopping: str = "gap"
    threshold: float = 1e-4
    max_passes: int | None = None
    run_length: int = 4

    @property
    def ends_itself(self) -> bool:
        return self.stopping != "gap" or self.max_passes is not None

    def exhausted(self, state: DCDState) -> bool:
        return bool(state.meters["passes"][0] >= (self.max_passes or np.inf))

    def __post_init__(self) -> None:
        one_of("stopping", self.stopping, tuple(STOPPING))
        if not self.threshold > 0.0:
            raise ValueError(f"threshold must be positive; got {self.threshold!r}")
        if self.max_passes is not None and not self.max_passes >= 1:
            raise ValueError(f"max_passes must be at least 1, or None for no limit; got {self.max_passes!r}")
        if not self.run_length >= 1:
            raise ValueError(f"run_length must be at least 1; got {self.run_length!r}")

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> DCDState:
        """Begin at zero or at the given dual point, with all rows active."""
        meters = np.zeros(1, METERS)
        for name in ("bound_M", "estimate", "known", "change"):
            meters[name] = np.inf
        meters["bound_m"] = -np.inf
        n, run = problem.members.size, self.rules(problem).run
        arrays = {
            "sequence": problem.members.copy(),
            "blocks": np.zeros(n // run + 2 if run > 1 else 0, dtype=problem.members.dtype),
            "aside": np.zeros(problem.y.size, dtype=np.uint8),
        }
        # Under the papers' rules no certificate rebuilds w, so rounding must not add up.
        precision = None if self.stopping == "gap" else np.float64
        state = self.begun(DCDState, problem, seed, start, precision, meters=meters, **arrays)
        if self.stopping in ("weight_change", "both"):
            state.before = state.w.copy()
        return state

    def rules(self, problem: Problem) -> Rules:
        """The options as the kernel takes them."""
        near = near_rows(problem)
        eager = EAGER if self.stopping == "gap" else 1.0
        return Rules(
            self.permutation,
            int(self.run_length) if problem.members.size > near else 1,
            near,
            eager if self.shrinking else 0.0,
            STOPPING[self.stopping],
            float(self.threshold),
            float(self.max_passes or np.inf),
            is_smooth(problem.loss),
        )

    def step(self, problem: Problem, state: DCDState, budget: Budget) -> DCDState:
        """Pass over the active rows, with at most ``budget.rows`` row visits."""
        state.position, state.active, done = descend(
            problem.terms,
            deck_of(problem, state),
            self.rules(problem),
            Iterate(state.alpha, state.w, state.before, state.offset),
            Place(state.position, state.active),
            Goal(budget.rows, budget.relative_gap),
            state.meters,
        )
        meters = state.meters[0]
        self.count(state, done)
        state.satisfied, state.change = bool(meters["satisfied"]), float(meters["change"])
        state.estimate = float(meters["estimate"])
        state.known, state.known_at = float(meters["known"]), float(meters["known_at"]) / state.order.size
        return state

    def certified(self, problem: Problem, state: DCDState, evaluation: Evaluation) -> Any:
        """Take the rebuilt weights over; call all rows back if the gap is far above what the active rows show.

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
            state.active = call_back(deck_of(problem, state), self.rules(problem), state.meters, state.active)
            state.position = 0
        return super().certified(problem, state, evaluation)
