"""Stochastic dual coordinate ascent.

One step picks a row i and moves its dual variable to the best place, the others fixed:

    d = argmax  -s phi_i*(-(a_i + d) / s) - d x_i.w - (C ||x_i||^2 / 2) d^2,     a_i += d,     w += C d x_i

so that ``w = w(a)`` throughout. Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for
regularized loss minimization", procedures SDCA, SDCA-Perm (section 3) and Modified-SGD (section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.intercepts import move_offset
from saddlesvm.problem.loss import dual_step
from saddlesvm.problem.penalties import score
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.terms import Terms, weight_of
from saddlesvm.rows.layouts import axpy, dot
from saddlesvm.rows.prefetch import prefetch_next
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.compiled import kernel
from saddlesvm.runtime.randomness import below, draw, shuffle
from saddlesvm.solvers.base import (
    CYCLIC,
    EPOCH_METERS,
    PERMUTATION,
    REPLACEMENT,
    Budget,
    DualAscent,
    DualState,
    end_of_epoch,
    nothing,
    residual_and_loss,
)

SAMPLINGS = {"permutation": PERMUTATION, "replacement": REPLACEMENT, "cyclic": CYCLIC}


class Draws(NamedTuple):
    """The order in which rows are visited, and the position in the epoch."""

    order: np.ndarray
    sampling: int
    random: np.ndarray
    position: int


class Iterate(NamedTuple):
    """The dual point, its weights, and the multiplier of a free intercept (empty without one)."""

    alpha: np.ndarray
    w: np.ndarray
    offset: np.ndarray


class Average(NamedTuple):
    """The sums from which the average of the iterates is computed.

    ``total[i]`` sums alpha[i] over the steps up to step ``since[i]`` of the clock, which counts row visits; both arrays
    are empty when no average is wanted.
    """

    total: np.ndarray
    since: np.ndarray
    clock: int


@kernel
def ascend(
    terms: Terms, draws: Draws, iterate: Iterate, average: Average, visits: int, target: float, meters: np.ndarray
) -> Any:
    """Visit rows; at the end of each epoch note an estimate of the relative gap and stop if it is below `target`.

    Returns the place in the order and the visits done.
    """
    order, sampling, random, position = draws
    alpha, w, offset = iterate
    total, since, clock = average
    X, C, n, sums = terms.X, terms.C, order.size, meters[0]
    done = 0
    while done < visits:
        if position == 0 and sampling == PERMUTATION:
            shuffle(random, order, n)
        stop = min(n, position + visits - done)
        done += stop - position
        for p in range(position, stop):
            prefetch_next(X, order, p, n, alpha, terms.y, terms.norms)
            i = order[below(random, n)] if sampling == REPLACEMENT else order[p]
            a, z = alpha[i], score(terms.penalty, X, i, w, 1.0)
            residual, paid = residual_and_loss(terms, i, a, z)
            sums.residual += residual
            sums.paid += paid
            sums.coupled += a * z
            step = dual_step(terms.loss, a, z, terms.y[i], C * terms.norms[i], weight_of(terms.weights, i))
            clock += 1
            if step != 0.0:
                if total.size:
                    total[i] += a * (clock - since[i])
                    since[i] = clock
                alpha[i] = a + step
                axpy(X, i, C * step, w)
        position = stop
        if position == n:
            position = 0
            end_of_epoch(meters, True)
            move_offset(w, offset)
            if sums.estimate <= target:
                break
    return position, done


@kernel
def modified_sgd(terms: Terms, order: np.ndarray, alpha: np.ndarray, w: np.ndarray) -> None:
    """One epoch of Modified-SGD: row t is optimised as if only the first t rows existed, ``w_t = n C / t sum a_i x_i``.

    On return alpha holds the dual variables and w is ``C sum_i a_i x_i``.
    """
    n = order.size
    whole = n * terms.C
    for t in range(n):
        prefetch_next(terms.X, order, t, n, alpha, terms.y, terms.norms)
        i = order[t]
        z = dot(terms.X, i, w) * (whole / max(t, 1))
        q = whole / (t + 1) * terms.norms[i]
        alpha[i] = dual_step(terms.loss, 0.0, z, terms.y[i], q, weight_of(terms.weights, i))
        if alpha[i] != 0.0:
            axpy(terms.X, i, alpha[i], w)
    for j in range(w.size):
        w[j] *= terms.C


@dataclass
class SDCAState(DualState):
    """The dual state, and what an average or a random output needs of the second half of the run.

    Windows end at epochs 1, 2, 4, 8 ...; the current window and the one before it together cover at least the second
    half of the run. `total` (with `since` and `clock`) gathers the current window's sum of iterates, `earlier` holds
    the sum of the window before. `candidate` is a random iterate of the current window, `chosen` one of both windows.
    """

    total: np.ndarray = field(default_factory=nothing)
    since: np.ndarray = field(default_factory=nothing)
    earlier: np.ndarray = field(default_factory=nothing)
    chosen: np.ndarray = field(default_factory=nothing)
    candidate: np.ndarray = field(default_factory=nothing)
    clock: int = 0
    window_start: int = 0
    earlier_start: int = 0


@dataclass(frozen=True)
class SDCA(DualAscent):
    """Stochastic dual coordinate ascent.

    Parameters
    ----------
    sampling : {"permutation", "replacement", "cyclic"}, default="permutation"
        A new random order each epoch, independent draws, or the order of the data.
    start : {"zero", "sgd"}, default="zero"
        Begin at alpha = 0 or with one epoch of Modified-SGD. A given starting point replaces either.
    output : {"last", "average", "random"}, default="last"
        The last iterate, the average of (at least) the second half of them, or a random one of these.

    Examples
    --------
    >>> from saddlesvm import SDCA, LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(solver=SDCA(start="sgd"), C=0.01, tol=1e-2, random_state=0).fit(
    ...     notes.X, notes.y
    ... )
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "sdca"
    any_penalty: ClassVar[bool] = True
    any_rows: ClassVar[bool] = True
    sampling: str = "permutation"
    start: str = "zero"
    output: str = "last"

    def __post_init__(self) -> None:
        one_of("sampling", self.sampling, tuple(SAMPLINGS))
        one_of("start", self.start, ("zero", "sgd"))
        one_of("output", self.output, ("last", "average", "random"))

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> SDCAState:
        """Zeros, the given dual point, or an epoch of Modified-SGD."""
        state = self.begun(SDCAState, problem, seed, start, meters=np.zeros(1, EPOCH_METERS))
        alpha, order = state.alpha, state.order
        if self.start == "sgd" and (start is None or start.alpha is None):
            if not problem.penalty.identity():
                raise ValueError(f"start='sgd' needs penalty='l2' (half a square); got {problem.penalty}")
            if self.sampling != "cyclic":
                shuffle(state.random, order, order.size)
            modified_sgd(problem.terms, order, alpha, state.w)
            self.count(state, order.size)
        if self.output == "average":
            state.total, state.earlier = np.zeros(alpha.size), np.zeros(alpha.size)
            state.since = np.zeros(alpha.size, dtype=np.int64)
        if self.output == "random":
            state.chosen, state.candidate = alpha.copy(), alpha.copy()
        return state

    def step(self, problem: Problem, state: SDCAState, budget: Budget) -> SDCAState:
        """Visit at most ``budget.rows`` rows, or a whole epoch where the output is an average or random."""
        n = state.order.size
        if self.output == "last":
            self._visit(problem, state, budget.rows, budget.relative_gap)
            return state
        cut = draw(state.random, n) if self.output == "random" else 0
        if cut:
            self._visit(problem, state, cut, 0.0)
        if self.output == "random":
            _keep_one(state, n)
        self._visit(problem, state, n - cut, 0.0)
        if state.clock // n >= max(1, 2 * state.window_start // n):
            _next_window(state)
        return state

    def solution(self, problem: Problem, state: SDCAState) -> Point:
        """The dual point that `output` asks for; with the running w where it is the last iterate."""
        if self.output == "random":
            return Point(alpha=state.chosen)
        if self.output == "average" and state.clock > state.earlier_start:
            current = state.total + state.alpha * (state.clock - state.since)
            return Point(alpha=(state.earlier + current) / (state.clock - state.earlier_start))
        return super().solution(problem, state)

    def certified(self, problem: Problem, state: SDCAState, evaluation: Evaluation) -> Any:
        """Take the rebuilt weights over."""
        return super().certified(problem, state, evaluation) if self.output == "last" else state

    def _visit(self, problem: Problem, state: SDCAState, visits: int, target: float) -> None:
        state.position, done = ascend(
            problem.terms,
            Draws(state.order, SAMPLINGS[self.sampling], state.random, state.position),
            Iterate(state.alpha, state.w, state.offset),
            Average(state.total, state.since, state.clock),
            visits,
            target,
            state.meters,
        )
        state.clock += done
        self.count(state, done)
        state.estimate = float(state.meters["estimate"][0]) if state.rows_touched > state.order.size else np.inf


def _keep_one(state: SDCAState, n: int) -> None:
    """Reservoir sampling of one iterate an epoch, over both windows and over the current one."""
    epoch = state.clock // n
    if draw(state.random, epoch - state.earlier_start // n + 1) == 0:
        state.chosen[:] = state.alpha
    if draw(state.random, epoch - state.window_start // n + 1) == 0:
        state.candidate[:] = state.alpha


def _next_window(state: SDCAState) -> None:
    """The current window becomes the earlier one; a new one begins."""
    if state.total.size:
        state.earlier = state.total + state.alpha * (state.clock - state.since)
        state.total[:] = 0.0
        state.since[:] = state.clock
    if state.chosen.size:
        state.chosen[:] = state.candidate
    state.earlier_start, state.window_start = state.window_start, state.clock
