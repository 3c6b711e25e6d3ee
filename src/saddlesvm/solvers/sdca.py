"""Stochastic dual coordinate ascent.

One step picks a row i and moves its dual variable to the best place, the others fixed:

    d = argmax  -s phi_i*(-(a_i + d) / s) - d x_i.w - (C ||x_i||^2 / 2) d^2,     a_i += d,     w +=
    C d x_i

so that ``w = w(a)`` throughout. This is the loop of :mod:`saddlesvm.solvers.dcd`, in the orders of
the paper and without shrinking. What the paper adds is here: the start by Modified-SGD, and the
outputs.

Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for regularized
loss minimization", procedures SDCA, SDCA-Perm (section 3) and Modified-SGD (section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.loss import dual_step
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.terms import Terms, weight_of
from saddlesvm.rows.layouts import axpy, dot
from saddlesvm.rows.prefetch import prefetch_next
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.compiled import kernel
from saddlesvm.runtime.randomness import draw, make_random, shuffle
from saddlesvm.solvers.base import (
    CYCLIC,
    PERMUTATION,
    REPLACEMENT,
    Budget,
    DualAscent,
    check_iterations,
    empty_array,
)
from saddlesvm.solvers.dcd import GAP, DCDState, Goal, Rules, near_rows, new_meters

if TYPE_CHECKING:
    from saddlesvm.solvers.base import State

SAMPLINGS = {"permutation": PERMUTATION, "replacement": REPLACEMENT, "cyclic": CYCLIC}
CHOICES = 0x5DEECE66D  # tells the seed of random outputs from that of the rows; arbitrary


@kernel
def modified_sgd(terms: Terms, order: np.ndarray, alpha: np.ndarray, w: np.ndarray) -> None:
    """Make one epoch of Modified-SGD: row t is optimised as if only the first t rows existed.

    On return alpha holds the dual variables and w is ``C sum_i a_i x_i``.
    """
    n = order.size
    for t in range(n):
        prefetch_next(terms.X, order, t, n, alpha, terms.y, terms.norms)
        i = order[t]
        # During the loop w is sum_i a_i x_i. With t rows before this one, and C n = 1 / lambda,
        # the paper's weights are w_t = (n C / t) w, and the step is that of n C / (t + 1) in the
        # place of C.
        z = dot(terms.X, i, w) * (n * terms.C / max(t, 1))
        q = n * terms.C / (t + 1) * terms.norms[i]
        alpha[i] = dual_step(terms.loss, 0.0, z, terms.y[i], q, weight_of(terms.weights, i))
        if alpha[i] != 0.0:
            axpy(terms.X, i, alpha[i], w)
    for j in range(w.size):
        w[j] *= terms.C


@dataclass
class SDCAState(DCDState):
    """The state of the loop, and what an average or a random output needs of the window of steps.

    Attributes
    ----------
    candidate : ndarray of shape (n_all,) or (0,)
        A random iterate of the window, once step `drawn` is reached.
    output : ndarray of shape (n_all,) or (0,)
        The average, or the random iterate, of the last window that ended, once `has_output` is
        true.
    choice : ndarray of shape (1,), uint64
        The generator of random outputs: the draws of rows do not depend on the output.
    clock, window_start, window_end, drawn : int
        In steps: so far, the bounds of the window, and the step whose iterate is kept.
    """

    candidate: np.ndarray = field(default_factory=empty_array)
    output: np.ndarray = field(default_factory=empty_array)
    choice: np.ndarray = field(default_factory=empty_array)
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
        Begin at alpha = 0 or with one epoch of Modified-SGD. A given starting point replaces
        either.
    output : {"last", "average", "random"}, default="last"
        The last iterate; or, of a run of T steps, the average of the iterates before steps T/2 + 1,
        ..., T, or a random one of these, as in the paper. T is `iterations`; without it, the last
        2, 4, 8, ... epochs that are done.
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
        """Return True if a run ends after a number of steps."""
        return self.iterations is not None

    def exhausted(self, state: SDCAState) -> bool:
        """Return True if a run has made its steps."""
        return self.iterations is not None and state.clock >= self.iterations

    def rules(self, problem: Problem) -> Rules:
        """Return the options as the loop takes them: no row is set aside."""
        return Rules(
            order=SAMPLINGS[self.sampling],
            run=1,
            near=near_rows(problem),
            eager=0.0,
            stopping=GAP,
            threshold=0.0,
            passes=np.inf,
            least_fall=1.0,
        )

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> SDCAState:
        """Begin at zeros, at the given dual point, or with an epoch of Modified-SGD."""
        n = problem.members.size
        # No certificate rebuilds w, so rounding must not add up.
        # The loop deals no runs of neighbours and sets no row aside: it needs no room for them.
        state = self.begin(
            SDCAState,
            problem,
            seed,
            start,
            precision=np.float64,
            meters=new_meters(),
            blocks=np.zeros(0, dtype=problem.members.dtype),
            aside=np.zeros(0, dtype=np.uint8),
        )
        alpha = state.alpha
        if self.start == "sgd" and (start is None or start.alpha is None):
            if not problem.is_plain:
                raise ValueError(
                    f"start='sgd' needs penalty='l2' (half a square); got {problem.penalty}"
                )
            if self.sampling != "cyclic":
                shuffle(state.random, state.order, n)
            modified_sgd(problem.terms, state.order, alpha, state.w)
            state.rows_touched = n
            state.epochs = 1.0
        # Permutations shuffle the order of the epoch before; independent draws need an order apart.
        state.sequence = state.order.copy() if self.sampling == "replacement" else state.order
        if self.output == "average":
            state.lag = np.zeros(alpha.size)
        if self.output == "random":
            state.candidate = alpha.copy()
            state.choice = make_random(seed ^ CHOICES)
        if self.output != "last":
            state.output = np.zeros(alpha.size)
        # The iterates of the first window belong to no output: it is the first half of the run, or
        # the first epoch.
        state.window_end = n if self.iterations is None else max(1, self.iterations // 2)
        return state

    def step(self, problem: Problem, state: SDCAState, budget: Budget) -> SDCAState:
        """Visit at most ``budget.rows`` rows."""
        goal = state.clock + budget.rows
        if self.iterations is not None:
            goal = min(goal, self.iterations)
        if self.output == "last":
            self._ascend(problem, state, goal - state.clock, budget.relative_gap)
            return state
        while state.clock < goal:
            stop = min(goal, state.window_end)
            # Stop at the iterate that a random output keeps.
            if self.output == "random" and state.clock == state.drawn:
                state.candidate[:] = state.alpha
            elif self.output == "random" and state.clock < state.drawn:
                stop = min(stop, state.drawn)
            self._ascend(problem, state, stop - state.clock, 0.0)
            if state.clock == state.window_end:
                self._end_window(state)
        return state

    def _ascend(self, problem: Problem, state: SDCAState, visits: int, target: float) -> None:
        """Take so many steps, or fewer if an epoch's estimate of the gap is below the target."""
        goal = Goal(visits, target, state.clock - state.window_start)
        state.clock += state.descend(problem, self.rules(problem), goal)
        # The sums of the first epoch are of variables that were not visited yet.
        if state.rows_touched <= state.order.size:
            state.estimate = np.inf

    def _end_window(self, state: SDCAState) -> None:
        """Note the output of the window that ends, and begin the next one, twice as long."""
        if self.output == "average":
            state.output[:] = state.alpha - state.lag / (state.clock - state.window_start)
            state.lag[:] = 0.0
        else:
            state.output[:] = state.candidate
        state.has_output = state.window_start > 0
        state.window_start = state.window_end
        state.window_end = 2 * state.window_start
        if self.iterations is not None:
            state.window_end = self.iterations
        length = state.window_end - state.window_start
        if self.output == "random" and length > 0:
            state.drawn = state.window_start + draw(state.choice, length)

    def solution(self, problem: Problem, state: SDCAState) -> Point:
        """Return the dual point that `output` asks for, the last one with its weights."""
        if state.has_output:
            return Point(alpha=state.output)
        return super().solution(problem, state)

    def learn_from_certificate(
        self, problem: Problem, state: SDCAState, evaluation: Evaluation
    ) -> State:
        """Leave the iterates alone; but a free intercept, which is not in the paper, moves."""
        if problem.intercept.constrained and self.output == "last":
            return super().learn_from_certificate(problem, state, evaluation)
        return state
