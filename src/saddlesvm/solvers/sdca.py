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
from saddlesvm.runtime.randomness import below, draw, make_random, shuffle
from saddlesvm.solvers.base import (
    CYCLIC,
    EPOCH_METERS,
    PERMUTATION,
    REPLACEMENT,
    Budget,
    DualAscent,
    DualState,
    check_iterations,
    end_of_epoch,
    nothing,
    residual_and_loss,
)

SAMPLINGS = {"permutation": PERMUTATION, "replacement": REPLACEMENT, "cyclic": CYCLIC}
CHOICES = 0x5DEECE66D  # tells the seed of random outputs from that of the rows


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
    """The dual state, and what an average or a random output needs of the present window of steps.

    Attributes
    ----------
    total, since : ndarray of shape (n_all,) or (0,)
        The lazy sum of the window's iterates, see :class:`Average`.
    candidate : ndarray of shape (n_all,) or (0,)
        A random iterate of the window, once step `drawn` is reached.
    output : ndarray of shape (n_all,) or (0,)
        The average, or the random iterate, of the last window that ended, once `has_output` is true.
    choice : ndarray of shape (1,), uint64
        The generator of random outputs: the draws of rows do not depend on the output.
    clock, window_start, window_end, drawn : int
        In steps: so far, the bounds of the window, and the step whose iterate is kept.
    """

    total: np.ndarray = field(default_factory=nothing)
    since: np.ndarray = field(default_factory=nothing)
    candidate: np.ndarray = field(default_factory=nothing)
    output: np.ndarray = field(default_factory=nothing)
    choice: np.ndarray = field(default_factory=nothing)
    clock: int = 0
    window_start: int = 0
    window_end: int = 0
    drawn: int = 0
    has_output: bool = False


@dataclass(frozen=True)
class SDCA(DualAscent):
    """Stochastic dual coordinate ascent.

    A certificate observes a run, and never changes it.

    Parameters
    ----------
    sampling : {"permutation", "replacement", "cyclic"}, default="permutation"
        A new random order each epoch, independent draws, or the order of the data.
    start : {"zero", "sgd"}, default="zero"
        Begin at alpha = 0 or with one epoch of Modified-SGD. A given starting point replaces either.
    output : {"last", "average", "random"}, default="last"
        The last iterate; or, of a run of T steps, the average of the iterates before steps T/2 + 1, ..., T, or a random
        one of these, as in the paper. T is `iterations`; without it, the last 2, 4, 8, ... epochs that are done.
    iterations : int, optional
        End after this many steps, a row each (those of Modified-SGD are not counted).

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
    iterations: int | None = None

    def __post_init__(self) -> None:
        one_of("sampling", self.sampling, tuple(SAMPLINGS))
        one_of("start", self.start, ("zero", "sgd"))
        one_of("output", self.output, ("last", "average", "random"))
        check_iterations(self.iterations)

    @property
    def ends_itself(self) -> bool:
        return self.iterations is not None

    def exhausted(self, state: SDCAState) -> bool:
        return self.iterations is not None and state.clock >= self.iterations

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> SDCAState:
        """Zeros, the given dual point, or an epoch of Modified-SGD."""
        state = self.begun(SDCAState, problem, seed, start, precision=np.float64, meters=np.zeros(1, EPOCH_METERS))
        alpha, order = state.alpha, state.order
        if self.start == "sgd" and (start is None or start.alpha is None):
            if not problem.penalty.identity():
                raise ValueError(f"start='sgd' needs penalty='l2' (half a square); got {problem.penalty}")
            if self.sampling != "cyclic":
                shuffle(state.random, order, order.size)
            modified_sgd(problem.terms, order, alpha, state.w)
            self.count(state, order.size)
        if self.output == "average":
            state.total = np.zeros(alpha.size)
            state.since = np.zeros(alpha.size, dtype=np.int64)
        if self.output == "random":
            state.candidate = alpha.copy()
            state.choice = make_random(seed ^ CHOICES)
        if self.output != "last":
            state.output = np.zeros(alpha.size)
        # The iterates of the first window belong to no output: it is the first half of the run, or the first epoch.
        state.window_end = order.size if self.iterations is None else max(1, self.iterations // 2)
        return state

    def step(self, problem: Problem, state: SDCAState, budget: Budget) -> SDCAState:
        """Visit at most ``budget.rows`` rows."""
        goal = state.clock + budget.rows
        if self.iterations is not None:
            goal = min(goal, self.iterations)
        if self.output == "last":
            self._visit(problem, state, goal - state.clock, budget.relative_gap)
            return state
        while state.clock < goal:
            stop = min(goal, state.window_end)
            # Stop at the iterate that a random output keeps.
            if self.output == "random" and state.clock == state.drawn:
                state.candidate[:] = state.alpha
            elif self.output == "random" and state.clock < state.drawn:
                stop = min(stop, state.drawn)
            self._visit(problem, state, stop - state.clock, 0.0)
            if state.clock == state.window_end:
                self.end_window(state)
        return state

    def end_window(self, state: SDCAState) -> None:
        """Note the output of the window that ends, and begin the next one, which ends at twice its start."""
        if self.output == "average":
            total = state.total + state.alpha * (state.clock - state.since)
            state.output[:] = total / (state.clock - state.window_start)
            state.total[:] = 0.0
            state.since[:] = state.clock
        else:
            state.output[:] = state.candidate
        state.has_output = state.window_start > 0
        state.window_start = state.window_end
        state.window_end = 2 * state.window_start if self.iterations is None else self.iterations
        if self.output == "random" and state.window_end > state.window_start:
            state.drawn = state.window_start + draw(state.choice, state.window_end - state.window_start)

    def solution(self, problem: Problem, state: SDCAState) -> Point:
        """The dual point that `output` asks for; with the running w if it is the last iterate."""
        return Point(alpha=state.output) if state.has_output else super().solution(problem, state)

    def certified(self, problem: Problem, state: SDCAState, evaluation: Evaluation) -> Any:
        """Leave the iterates alone; a free intercept, which the paper does not have, takes its best value."""
        if problem.intercept.constrained and self.output == "last":
            return super().certified(problem, state, evaluation)
        return state

    def _visit(self, problem: Problem, state: SDCAState, visits: int, target: float) -> None:
        """Take so many steps, or fewer if an epoch's estimate of the gap is below the target."""
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
