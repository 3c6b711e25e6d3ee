"""Dual coordinate descent with shrinking.

With ``b_i = a_i y_i`` the negated dual is minimised one coordinate at a time. Its slope along b_i is
``G = y_i x_i.w - 1 (+ b_i / 2s for the squared hinge)``, and the projected slope PG is G where the bounds let b_i move
and 0 where they do not. A row that sits at a bound with ``G > M`` (lower) or ``G < m`` (upper), M and m the largest and
smallest PG of the pass before, is set aside. When the others are done, all rows come back and are checked again.

The losses with an absolute value in their conjugate have a corner at zero where they shrink in the same way; their left
and right slopes take the place of G (Ho and Lin 2012, "Large-scale linear support vector regression", section 4).

Source: Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), "A dual coordinate descent method for large-scale linear
SVM", algorithms 1 and 3; Fan and others (2008), LIBLINEAR, appendix on stopping.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.certificate import Evaluation, Point, weight_of
from saddlesvm.compiled import kernel
from saddlesvm.losses import dual_step, slopes
from saddlesvm.problem import Problem, Terms
from saddlesvm.randomness import seeded, shuffle
from saddlesvm.rows import axpy, dot, look_ahead
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

STOPPING = ("gap", "projected_gradient", "weight_change")
# Further places among the meters: the running range of a pass, what is kept from one to the next, and whether one is
# under way.
LARGEST, SMALLEST, BOUND_M, BOUND_m, RANGE, UNDER_WAY, METERS = range(5, 12)

RECHECK = 0.1  # of the last gap over all rows: once the active ones are below it, the others are looked at again


@kernel
def descend(
    terms: Terms,
    order: np.ndarray,
    random: np.ndarray,
    alpha: np.ndarray,
    w: np.ndarray,
    offset: np.ndarray,
    position: int,
    active: int,
    visits: int,
    permute: bool,
    shrink: bool,
    meters: np.ndarray,
    floor: float,
) -> Any:
    """Visit the first `active` rows of `order`; a row set aside changes places with the last active one.

    At the end of a pass note its figures; return when its estimate is at most `floor`, or when the visits are used up:
    the place in the order, the active rows, the visits done and the passes ended.
    """
    X, C = terms.X, terms.C
    done = passes = 0
    while done < visits:
        if meters[UNDER_WAY] == 0.0:
            if permute:
                shuffle(random, order, active)
            meters[LARGEST], meters[SMALLEST], meters[UNDER_WAY] = -np.inf, np.inf, 1.0
        while position < active and done < visits:
            look_ahead(X, order, position, active, alpha, terms.y, terms.norms)
            i = order[position]
            a, s, z = alpha[i], weight_of(terms.weights, i), dot(X, i, w)
            done += 1
            left, right = slopes(terms.loss, a, z, terms.y[i], s)
            if shrink and right > meters[BOUND_M] and left < meters[BOUND_m]:
                active -= 1
                order[position], order[active] = order[active], i
                continue
            projected = right if right < 0.0 else (left if left > 0.0 else 0.0)
            meters[LARGEST] = max(meters[LARGEST], projected)
            meters[SMALLEST] = min(meters[SMALLEST], projected)
            residual, paid = residual_and_loss(terms, i, a, z)
            meters[RESIDUAL] += residual
            meters[PAID] += paid
            meters[COUPLED] += a * z
            step = dual_step(terms.loss, a, z, terms.y[i], C * terms.norms[i], s)
            if step != 0.0:
                alpha[i] = a + step
                axpy(X, i, C * step, w)
            position += 1
        if position >= active:
            position = 0
            passes += 1
            meters[UNDER_WAY] = 0.0
            end_of_epoch(meters)
            meters[RANGE] = meters[LARGEST] - meters[SMALLEST]
            meters[BOUND_M] = meters[LARGEST] if meters[LARGEST] > 0.0 else np.inf
            meters[BOUND_m] = meters[SMALLEST] if meters[SMALLEST] < 0.0 else -np.inf
            move_offset(w, offset)
            if meters[ESTIMATE] <= floor or meters[RANGE] <= 0.0:
                break
    return position, active, done, passes


@dataclass
class DCDState(DualState):
    """The dual state; the weights a pass ago (for the rule on the change of w); the last gap seen over all rows."""

    before: np.ndarray = field(default_factory=nothing)
    known: float = np.inf


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
    """

    name: ClassVar[str] = "dcd"
    permutation: bool = True
    shrinking: bool = True
    stopping: str = "gap"
    threshold: float = 1e-4

    def check(self) -> None:
        one_of("stopping", self.stopping, STOPPING)
        if not self.threshold > 0.0:
            raise ValueError(f"threshold must be positive; got {self.threshold!r}")

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> DCDState:
        """Zeros or the given dual point; all rows active."""
        alpha = start_alpha(problem, start)
        w = start_weights(problem, alpha, start)
        meters = np.zeros(METERS)
        meters[BOUND_M], meters[BOUND_m], meters[ESTIMATE] = np.inf, -np.inf, np.inf
        return DCDState(
            w=w,
            alpha=alpha,
            order=problem.members.copy(),
            random=seeded(seed),
            offset=start_offset(problem, start),
            meters=meters,
            active=problem.members.size,
            before=w.copy() if self.stopping == "weight_change" else nothing(),
        )

    def step(self, problem: Problem, state: DCDState, budget: Budget) -> DCDState:
        """Passes over the active rows, at most ``budget.rows`` visits."""
        n, left = state.order.size, budget.rows
        while left > 0:
            state.position, state.active, done, passes = descend(
                problem.terms,
                state.order,
                state.random,
                state.alpha,
                state.w,
                state.offset,
                state.position,
                state.active,
                left,
                self.permutation,
                self.shrinking,
                state.meters,
                max(budget.relative_gap, RECHECK * state.known) if self.stopping == "gap" else np.inf,
            )
            left -= done
            state.rows_touched += done
            if passes and self._end_of_pass(state, state.active == n, budget.relative_gap):
                break
        state.epochs = state.rows_touched / n
        return state

    def _end_of_pass(self, state: DCDState, whole: bool, target: float) -> bool:
        """Judge a pass: call all rows back when the active ones are done; True when the fit should look."""
        estimate, spread = float(state.meters[ESTIMATE]), float(state.meters[RANGE])
        if self.stopping == "weight_change":
            state.change = float(np.linalg.norm(state.w.astype(np.float64) - state.before))
            state.before = state.w.astype(np.float64)
        judged = {"gap": np.inf, "projected_gradient": spread, "weight_change": state.change}[self.stopping]
        state.estimate = estimate
        if whole:
            state.satisfied = judged <= self.threshold
            state.known = estimate
        elif judged <= self.threshold or spread <= 0.0 or estimate <= RECHECK * state.known:
            self._call_back(state)
        return estimate <= target or state.satisfied

    @staticmethod
    def _call_back(state: DCDState) -> None:
        """All rows are active again, and none is set aside in the next pass."""
        state.active, state.position = state.order.size, 0
        state.meters[UNDER_WAY] = state.meters[RESIDUAL] = state.meters[PAID] = state.meters[COUPLED] = 0.0
        state.meters[BOUND_M], state.meters[BOUND_m] = np.inf, -np.inf

    def solution(self, problem: Problem, state: DCDState) -> Point:
        """The last iterate."""
        return Point(state.w, state.alpha, tracks=True)

    def certified(self, problem: Problem, state: DCDState, evaluation: Evaluation) -> DCDState:
        """Take the rebuilt weights over; call all rows back when the gap is not where the active rows see it."""
        state.known = evaluation.certificate.relative_gap
        if state.active < state.order.size and state.known > 2.0 * state.meters[ESTIMATE]:
            self._call_back(state)
        return refresh_weights(problem, state, evaluation)
