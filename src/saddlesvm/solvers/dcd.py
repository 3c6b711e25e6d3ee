"""Dual coordinate descent with shrinking.

With ``b_i = a_i y_i`` the negated dual is minimised one coordinate at a time. Its slope along b_i is
``G = y_i x_i.w - 1 (+ b_i / 2s for the squared hinge)``, and the projected slope PG is G where the bounds let b_i move
and 0 where they do not. A row that sits at a bound with ``G > M`` (lower) or ``G < m`` (upper), M and m the largest and
smallest PG of the pass before, is set aside. When the others are done, all rows come back and are checked again.

What the papers do not have: where the fit stops on its gap, nothing rests on the bounds M and m, and a tenth of them is
used, also when the rows come back. A row set aside still counts in the objective that the estimate of the gap is
relative to. Where few rows were active, the check of the others, of which next to none moves, is in the order of the
data. And the random order is one of short runs of neighbouring rows, which come from memory faster than single ones;
longer runs would be faster still, but a shuffled order of them converges as if there were fewer rows.

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
from saddlesvm.problem.losses import dual_step, is_smooth, slopes
from saddlesvm.problem.problem import Problem, Terms, weight_of
from saddlesvm.rows.layouts import axpy, dot, dtype_of, look_ahead
from saddlesvm.runtime.compiled import inlined, kernel
from saddlesvm.runtime.randomness import copy_items, deal, seeded
from saddlesvm.solvers.base import (
    COUPLED,
    ESTIMATE,
    PAID,
    RESIDUAL,
    Budget,
    DualState,
    SolverBase,
    end_of_epoch,
    move_offset,
    nothing,
    one_of,
    refresh_weights,
    residual_and_loss,
    start_alpha,
    start_offset,
    start_weights,
)

GAP, PROJECTED_GRADIENT, WEIGHT_CHANGE = 0, 1, 2
STOPPING = {"gap": GAP, "projected_gradient": PROJECTED_GRADIENT, "weight_change": WEIGHT_CHANGE}
# Further places among the meters: the bounds M and m, the range of the projected slopes and the change of w of the last
# pass; the length of the present one (0: none is under way), the rows it set aside and its range so far; the passes;
# the estimate of the last one over all rows; whether the solver's own rule is met; the visits so far, and those when
# that last one ended; whether the next one is in the order of the data.
BOUND_M, BOUND_m, RANGE, CHANGE, LENGTH, DROPPED, LARGEST, SMALLEST, PASSES, KNOWN, SATISFIED = range(5, 16)
VISITS, KNOWN_AT, IN_ORDER, METERS = range(16, 20)

RECHECK = 0.05  # of the last gap over all rows: once the active ones are below it, the others are looked at again
EAGER = 0.1  # of the bounds M and m, where the fit stops on its gap
FEW = 0.25  # of the rows: where so few were active, a pass to check the others is in the order of the data
NEAR_BYTES = 2**21  # rows that take less than this are near anyway, and visited one by one


class Deck(NamedTuple):
    """The rows of a run: all of them, those active (both ascending), and the order of the present pass."""

    members: np.ndarray
    order: np.ndarray
    sequence: np.ndarray
    blocks: np.ndarray
    aside: np.ndarray


class Rules(NamedTuple):
    """The options as the kernel takes them."""

    permutation: bool
    run: int  # rows that stay together
    near: int  # active rows up to which none need to
    eager: float  # share of the bounds beyond which a row is set aside; 0: none is
    stopping: int
    threshold: float
    passes: float
    smooth: bool  # the loss


@inlined
def begin_pass(deck: Deck, rules: Rules, random: np.ndarray, active: int, meters: np.ndarray) -> None:
    """Lay out the order of a pass over the active rows."""
    if rules.permutation and meters[IN_ORDER] == 0.0:
        run = rules.run if active > rules.near else 1
        deal(random, deck.order, active, run, deck.blocks, deck.sequence)
    else:
        copy_items(deck.order, active, deck.sequence)
    meters[LENGTH], meters[DROPPED], meters[LARGEST], meters[SMALLEST] = active, 0.0, -np.inf, np.inf
    meters[IN_ORDER] = 0.0


@inlined
def drop_aside(deck: Deck, active: int) -> int:
    """Take the rows that were set aside out of the active ones; how many are left."""
    kept = 0
    for k in range(active):
        i = deck.order[k]
        deck.order[kept] = i
        kept += 1 - deck.aside[i]
        deck.aside[i] = 0
    return kept


@inlined
def move_of(w: np.ndarray, before: np.ndarray) -> float:
    """``||w - before||``, and w is the next one's `before`."""
    total = 0.0
    for j in range(before.size):
        total += (w[j] - before[j]) ** 2
        before[j] = w[j]
    return np.sqrt(total)


@inlined
def end_of_pass(deck: Deck, rules: Rules, w: np.ndarray, before: np.ndarray, meters: np.ndarray) -> int:
    """Judge a pass: note its figures and set new bounds; call all rows back when the active ones are done.

    Returns how many rows are active now.
    """
    whole = meters[LENGTH] == deck.members.size
    active = int(meters[LENGTH])
    if meters[DROPPED] > 0.0:
        active = drop_aside(deck, active)
    end_of_epoch(meters, whole)
    meters[RANGE] = max(meters[LARGEST] - meters[SMALLEST], 0.0)
    meters[BOUND_M] = rules.eager * meters[LARGEST] if meters[LARGEST] > 0.0 else np.inf
    meters[BOUND_m] = rules.eager * meters[SMALLEST] if meters[SMALLEST] < 0.0 else -np.inf
    meters[PASSES] += 1.0
    meters[VISITS] += meters[LENGTH]
    meters[LENGTH] = 0.0
    judged, floor = np.inf, 0.0
    if rules.stopping == PROJECTED_GRADIENT:
        judged = meters[RANGE]
    elif rules.stopping == WEIGHT_CHANGE:
        meters[CHANGE] = judged = move_of(w, before)
    else:
        floor = RECHECK * meters[KNOWN]
    if whole:
        follows = meters[KNOWN_AT] == meters[VISITS] - deck.members.size
        earlier, meters[KNOWN], meters[KNOWN_AT] = meters[KNOWN], meters[ESTIMATE], meters[VISITS]
        if rules.smooth and follows and meters[KNOWN] < earlier < np.inf:
            meters[ESTIMATE] *= np.sqrt(meters[KNOWN] / earlier)  # the rows were seen half a pass ago
        meters[SATISFIED] = 1.0 if judged <= rules.threshold else 0.0
    elif judged <= rules.threshold or meters[RANGE] == 0.0 or meters[ESTIMATE] <= floor:
        active = call_back(deck, rules, meters, active)
    if meters[PASSES] >= rules.passes:
        meters[SATISFIED] = 1.0
    return active


@kernel
def call_back(deck: Deck, rules: Rules, meters: np.ndarray, active: int) -> int:
    """All rows are active again, after so many were; by the rules of the papers none is set aside in the next pass."""
    copy_items(deck.members, deck.order.size, deck.order)
    if rules.stopping == GAP:
        meters[IN_ORDER] = 1.0 if active < FEW * deck.order.size else 0.0
    else:
        meters[BOUND_M], meters[BOUND_m] = np.inf, -np.inf
    return deck.order.size


@kernel
def descend(
    terms: Terms,
    deck: Deck,
    rules: Rules,
    random: np.ndarray,
    alpha: np.ndarray,
    w: np.ndarray,
    before: np.ndarray,
    offset: np.ndarray,
    position: int,
    active: int,
    visits: int,
    target: float,
    meters: np.ndarray,
) -> Any:
    """Passes over the active rows, until the visits are used up, the estimate is at most `target`, or the solver's own
    rule is met: the place in the pass, the active rows, and the visits done."""
    X, C = terms.X, terms.C
    done = 0
    while done < visits:
        if meters[LENGTH] == 0.0:
            begin_pass(deck, rules, random, active, meters)
        length, bound_M, bound_m = int(meters[LENGTH]), meters[BOUND_M], meters[BOUND_m]
        largest, smallest = meters[LARGEST], meters[SMALLEST]
        residuals = losses = coupled = 0.0
        dropped = 0
        stop = min(length, position + visits - done)
        done += stop - position
        for p in range(position, stop):
            if length > rules.near:
                look_ahead(X, deck.sequence, p, length, alpha, terms.y, terms.norms)
            i = deck.sequence[p]
            a, s, z = alpha[i], weight_of(terms.weights, i), dot(X, i, w)
            residual, paid = residual_and_loss(terms, i, a, z)
            residuals += residual
            losses += paid
            coupled += a * z
            left, right = slopes(terms.loss, a, z, terms.y[i], s)
            if rules.eager > 0.0 and right > bound_M and left < bound_m:
                deck.aside[i] = 1
                dropped += 1
                continue
            projected = right if right < 0.0 else (left if left > 0.0 else 0.0)
            largest, smallest = max(largest, projected), min(smallest, projected)
            step = dual_step(terms.loss, a, z, terms.y[i], C * terms.norms[i], s)
            if step != 0.0:
                alpha[i] = a + step
                axpy(X, i, C * step, w)
        position = stop
        meters[LARGEST], meters[SMALLEST] = largest, smallest
        meters[DROPPED] += dropped
        meters[RESIDUAL] += residuals
        meters[PAID] += losses
        meters[COUPLED] += coupled
        if position == length:
            position = 0
            active = end_of_pass(deck, rules, w, before, meters)
            move_offset(w, offset)
            if meters[SATISFIED] > 0.0 or meters[ESTIMATE] <= target:
                break
    return position, active, done


def near_rows(problem: Problem) -> int:
    """How many rows stay in the cache, so that their order is of no account."""
    return int(NEAR_BYTES / (problem.values_per_row * dtype_of(problem.X).itemsize))


@dataclass
class DCDState(DualState):
    """The dual state; what else the :class:`Deck` holds; the weights a pass ago (for the rule on the change of w)."""

    sequence: np.ndarray = field(default_factory=nothing)
    blocks: np.ndarray = field(default_factory=nothing)
    aside: np.ndarray = field(default_factory=nothing)
    before: np.ndarray = field(default_factory=nothing)


@dataclass(frozen=True)
class DCD(SolverBase):
    """Dual coordinate descent with shrinking.

    Parameters
    ----------
    permutation : bool, default=True
        Visit the rows in a new random order each pass, or always in the order of the data.
    shrinking : bool, default=True
        Set rows aside that sit at a bound and are pushed against it.
    stopping : {"gap", "projected_gradient", "weight_change"}, default="gap"
        Leave stopping to the fit's relative gap, or also stop when, over all rows, the range of the projected
        slopes (Hsieh and others 2008) or the norm of the change of w in a pass is at most `threshold`.
    threshold : float, default=1e-4
        Tolerance of the solver's own rule.
    max_passes : int, optional
        Also stop after this many passes over the active rows, be they many or few (what LIBLINEAR counts as
        iterations; the fit's `max_iter` counts visits of as many rows as there are).
    run_length : int, default=4
        Neighbouring rows that stay together in the random order, so that memory is read in longer pieces; 1 permutes
        single rows, as the papers do. Rows that take less than 2 MB together are near anyway, and go singly.
    """

    name: ClassVar[str] = "dcd"
    permutation: bool = True
    shrinking: bool = True
    stopping: str = "gap"
    threshold: float = 1e-4
    max_passes: int | None = None
    run_length: int = 4

    @property
    def ends_itself(self) -> bool:
        return self.stopping != "gap" or self.max_passes is not None

    def check(self) -> None:
        one_of("stopping", self.stopping, tuple(STOPPING))
        if not self.threshold > 0.0:
            raise ValueError(f"threshold must be positive; got {self.threshold!r}")
        if self.max_passes is not None and not self.max_passes >= 1:
            raise ValueError(f"max_passes must be at least 1, or None for no limit; got {self.max_passes!r}")
        if not self.run_length >= 1:
            raise ValueError(f"run_length must be at least 1; got {self.run_length!r}")

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> DCDState:
        """Zeros or the given dual point; all rows active."""
        alpha = start_alpha(problem, start)
        w = start_weights(problem, alpha, start)
        meters = np.zeros(METERS)
        meters[BOUND_M], meters[BOUND_m], meters[ESTIMATE], meters[KNOWN] = np.inf, -np.inf, np.inf, np.inf
        meters[CHANGE] = np.inf
        n, run = problem.members.size, self.rules(problem).run
        return DCDState(
            w=w,
            alpha=alpha,
            order=problem.members.copy(),
            random=seeded(seed),
            offset=start_offset(problem, start),
            meters=meters,
            active=n,
            sequence=np.empty_like(problem.members),
            blocks=np.empty(n // run + 2 if run > 1 else 0, dtype=problem.members.dtype),
            aside=np.zeros(problem.y.size, dtype=np.uint8),
            before=w.astype(np.float64) if self.stopping == "weight_change" else nothing(),
        )

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
        """Passes over the active rows, at most ``budget.rows`` visits."""
        state.position, state.active, done = descend(
            problem.terms,
            Deck(problem.members, state.order, state.sequence, state.blocks, state.aside),
            self.rules(problem),
            state.random,
            state.alpha,
            state.w,
            state.before,
            state.offset,
            state.position,
            state.active,
            budget.rows,
            budget.relative_gap,
            state.meters,
        )
        state.rows_touched += done
        state.epochs = state.rows_touched / state.order.size
        state.satisfied, state.change = bool(state.meters[SATISFIED]), float(state.meters[CHANGE])
        state.estimate = float(state.meters[ESTIMATE])
        state.known, state.known_at = float(state.meters[KNOWN]), float(state.meters[KNOWN_AT]) / state.order.size
        return state

    def solution(self, problem: Problem, state: DCDState) -> Point:
        """The last iterate."""
        return Point(state.w, state.alpha, tracks=True)

    def certified(self, problem: Problem, state: DCDState, evaluation: Evaluation) -> DCDState:
        """Take the rebuilt weights over; call all rows back when the gap is not where the active rows see it."""
        known = evaluation.certificate.relative_gap
        state.meters[KNOWN] = known
        if state.active < state.order.size and known > 2.0 * state.meters[ESTIMATE]:
            state.aside[:] = 0
            state.meters[[LENGTH, RESIDUAL, PAID, COUPLED]] = 0.0
            deck = Deck(problem.members, state.order, state.sequence, state.blocks, state.aside)
            state.active = call_back(deck, self.rules(problem), state.meters, state.active)
            state.position = 0
        return refresh_weights(problem, state, evaluation)
