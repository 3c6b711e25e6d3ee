"""The automatic solver: it predicts the seconds of each solver and runs the quickest.

    small rows                 Newton's method or the interior point method in NumPy
    penalty without a square   the column solver
    dense rows, many more      Newton's method, unless descent is quick and its kernels are at hand
      rows than features
    else                       dual coordinate descent; then a finish

On ill-conditioned problems coordinate descent is quick at first and slow near the optimum. The fall
of its estimated gap says how many epochs it has left. The sizes of the problem and the number of
rows that bend say what a Newton step takes. When Newton's steps take less time, they finish;
when they take far more than was predicted, descent goes on. If R is not half a square, the column
solver finishes. A steep smooth problem, or one that is posed near its optimum, begins with Newton's
method.

Predictions are seconds on one core of 2024, by operations, and never read the clock: a fit is
repeatable. Compilation counts: kernels that are not in the cache take seconds, and array code none.
The last decision, in words, is the remark of each line of a trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import Loss, Shape, traits_of
from saddlesvm.problem.penalties import holds_square
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.device import refuse_device
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.compiled import is_at_hand
from saddlesvm.solvers.base import EPOCH_ROUNDING, empty_array
from saddlesvm.solvers.columns.solver import Columns
from saddlesvm.solvers.costs import CALLS, epoch_cost, values_cost
from saddlesvm.solvers.curvature import coordinate_curvature, count_bending, needs_no_proximity
from saddlesvm.solvers.dcd import DCD, descend
from saddlesvm.solvers.linear_algebra import factor_cost
from saddlesvm.solvers.memory_equations import expected_seconds
from saddlesvm.solvers.newton import Newton, has_share, is_device, suits
from saddlesvm.solvers.phases import (
    NEXT_PREDICTION,
    Choosing,
    ChosenState,
    epochs_to_target,
    fall_rate,
    followed_gaps,
    in_words,
)
from saddlesvm.solvers.small.small_solver import SMALL, small_phase

if TYPE_CHECKING:
    from saddlesvm.solvers.base import SolverBase

# Epochs of descent before the first prediction: two estimates of the gap are the least that have a
# rate; and before a finish that needs a good start, measured on the cells of benchmarks/peers.
FIRST_PREDICTION = 2.0
GOOD_START = 8.0
# Share of the finish's seconds after which it may begin before these end; measured: with 0.15
# Fashion-MNIST, logistic loss, takes 1.3 times as long.
SOON = 0.1

# Newton steps: (the least number, steps per power of ten that the gap falls by). Measured on the
# cells of benchmarks/peers.
STEPS = {Shape.SMOOTH: (3.0, 0.5), Shape.CORNERED: (4.0, 0.8), Shape.KINKED: (6.0, 3.5)}
AGAIN = 0.4  # share of the first factor's seconds for each later one; measured on the same cells
KINKED_CALLS = 3e-4  # seconds of a step's calls, kinked loss: factors follow rows; measured
TERMS = 1e-8  # seconds of a step for each row, besides a pass over the values; measured
# Rows that bend, per feature, from which the rows that bend later span the features, too. A guess.
PLENTY = 2.25
# Newton's method begins at zero if the median row's curvature is above STEEP, where first epochs of
# descent make no progress, and if a step takes no more than CHEAP epochs. Measured: without it a9a,
# logistic, C = 100, takes 1.3 times as long; C = 1, 1.15 times; squared hinge, C = 0.1 to 1000,
# 1.05 to 1.25 times (27 November 2026).
STEEP = 1.0  # C phi'' ||x_i||^2
CHEAP = 4.0  # epochs
# It also begins on dense rows that are too many for array code, if the steepness of a smooth loss
# is at least SLOPING: a share of the rows gives the first steps. Measured: at steepness 20 it takes
# 0.7 to 1.1 times as long as descent and a finish (150,000 x 100 and 100,000 x 512 float32); at 2
# and below 0.9 to 2.4 times with 256 and 512 features (27 November 2026).
SLOPING = 5.0
# Epochs that descent must have left for the column solver to finish an elastic net, and the factors
# of its models, whose number is rough. Measured on rcv1-binary at C = 100, where descent takes a
# tenth of its time to 1e-4.
FEATURES_LEFT = 100.0  # epochs
MODELS = 100.0  # factors
# Rows a feature from which Newton's method in array code begins. Measured on 4,000 x 150 to
# 20,000 x 300: with 25 and 27 it takes .75 to .9 times as long as descent and a finish at C = 1 and
# above, and as long below.
TALL = 20
# C ||x_i||^2 of the median row below which descent solves a kinked loss in some ten epochs:
# measured, made rows, 20,000 x 10 to 300. Above it descent takes 2 to 2.7 times as long at C = 1
# and 100 with 100 and 300 features (27 November 2026).
EASY = 10.0

COORDINATES = "coordinate descent"
FINISH = "Newton"
FEATURES = "columns"


@dataclass
class AutoState(ChosenState):
    """The state of a run.

    Attributes
    ----------
    has_chosen_first : bool
        True if it is decided whether Newton's method begins instead of descent.
    finish_cost : float
        Predicted seconds of the finish so far, since it began.
    """

    phase: str = COORDINATES
    has_chosen_first: bool = False
    finish_cost: float = 0.0


@dataclass(frozen=True)
class Auto(Choosing):
    """The default solver: coordinate descent or Newton's method, by their predicted cost.

    Parameters
    ----------
    memory : float, default=1e9
        Bytes that the factored matrices of Newton's method may take.
    begin : {"coordinate descent", "Newton"}, default="coordinate descent"
        Which solver begins when a starting point is given. Begin with "Newton" if the fit of a
        neighbouring problem ended with it. At a neighbour's weights, smooth problems with cheap
        Newton steps begin with it anyway.

    Examples
    --------
    >>> from saddlesvm import Auto, LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(solver=Auto(memory=2e9), C=0.01, tol=1e-2, random_state=0).fit(
    ...     notes.X, notes.y
    ... )
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "auto"
    phases: ClassVar[tuple[str, ...]] = (COORDINATES, FINISH, FEATURES, *SMALL)
    any_penalty: ClassVar[bool] = True
    without_square: ClassVar[bool] = True
    memory: float = 1e9
    begin: str = COORDINATES

    def __post_init__(self) -> None:
        one_of("begin", self.begin, (COORDINATES, FINISH))
        if not self.memory > 0.0:
            raise ValueError(f"memory must be positive; got {self.memory!r}")

    def needs_rows(self, problem: Problem) -> bool:
        """Return True if a run visits single rows; without them Newton's method works alone."""
        return not problem.is_plain

    def begins_at_weights(self, problem: Problem) -> bool:
        """Return True if Newton's method begins, and dual variables follow from weights."""
        return problem.is_smooth and choose_first(problem)[0] == FINISH

    @cached_property
    def finish(self) -> Newton:
        """The solver of the finish."""
        return Newton(memory=self.memory)

    # ---- The first solver

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> AutoState:
        """Begin with the solver that the kind of the problem asks for, else with descent."""
        phase, why = choose_first(problem)
        state = AutoState(w=empty_array(), seed=seed, has_chosen_first=True, phase=phase)
        state.decision = f"epoch 0: {why}"
        state.inner = self.at_work(problem, state).init(problem, seed, start)
        state.update()
        state.course.predicted_work = np.inf
        if state.phase != COORDINATES:
            return state
        state.course.next_prediction = max(FIRST_PREDICTION, prediction_cost(problem))
        if not problem.is_plain:
            return state
        state.has_chosen_first = start is not None
        if start is None and problem.is_smooth:
            state.course.add(0.0, 1.0)
        if start is not None and (self.begin == FINISH or self._is_near(problem, state, start)):
            self._begin_with_newton(problem, state, start)
        return state

    def step(self, problem: Problem, state: AutoState, budget: Any) -> AutoState:
        """Do a step of the solver at work, and make a prediction when one is due."""
        if not state.has_chosen_first:
            state.has_chosen_first = True
            if self._is_steep(problem, state):
                self._begin_with_newton(problem, state)
        return super().step(problem, state, budget)

    def _begin_with_newton(
        self, problem: Problem, state: AutoState, start: Point | None = None
    ) -> None:
        """Let Newton's method begin, at zero if no point is given."""
        where = "" if start is None else " at the given point"
        solver = Newton(warm_up=0, memory=self.memory)
        state.phase = FINISH
        state.inner = solver.init(problem, state.seed, start)
        state.finish_cost = 0.0
        state.course.predicted_work = np.inf
        state.decision = f"epoch 0: beginning with Newton's method{where}"
        state.update()
        state.course.gap_then = state.estimate

    def _is_near(self, problem: Problem, state: AutoState, start: Point) -> bool:
        """Return True if one or two cheap Newton steps from a neighbour's weights may suffice."""
        if start.w is None or not needs_no_proximity(problem, state.alpha):
            return False
        return self._is_cheap(problem, state)

    def _is_steep(self, problem: Problem, state: AutoState) -> bool:
        """Return True if descent makes no progress at first, and Newton steps are cheap."""
        # With corners, other rows bend after each step unless a share of the rows gives the first.
        may_begin = problem.is_cornerless or (problem.is_smooth and has_share(problem))
        if not may_begin or steepness(problem) < STEEP:
            return False
        return self._is_cheap(problem, state)

    def _is_cheap(self, problem: Problem, state: AutoState) -> bool:
        """Return True if a Newton step takes no more than CHEAP epochs."""
        step_cost = self._step_cost(problem, count_bending(problem, state.alpha))
        return step_cost <= CHEAP * epoch_cost(problem)

    # ---- The change to a finish, and back

    def next_prediction(self, problem: Problem, epochs: float) -> float:
        """Return the epoch of the next prediction; none costs more than the work it predicts."""
        return max(NEXT_PREDICTION * epochs, epochs + prediction_cost(problem))

    def predict(self, problem: Problem, state: AutoState, target: float) -> None:
        """Compare the seconds that descent and a finish have left, and change over if it pays."""
        # How fast the gap falls, from the gaps of the later part of the run; the present gap is put
        # behind them.
        epochs, gaps = _gaps_so_far(state).T
        gaps = followed_gaps(problem, np.append(gaps, state.estimate))
        present_gap = float(gaps[-1])
        rate = fall_rate(np.column_stack([epochs, gaps[:-1]]))
        if rate is None or not np.inf > state.estimate > target:
            return
        if state.epochs < state.course.rests_until:
            return
        epoch_seconds = epoch_cost(problem)
        epochs_left = epochs_to_target(rate, present_gap, target)

        if not problem.is_plain:
            # The spare epochs come first: the cost of the models takes a pass over the rows.
            spare_epochs = epochs_left - FEATURES_LEFT
            has_spare = spare_epochs > 0.0
            if has_spare and spare_epochs > self._models_cost(problem, state) / epoch_seconds:
                self.change(problem, state, FEATURES, "the column solver finishes")
            return

        # Seconds of descent, with the predictions that it will make on the way.
        predictions = min(
            math.log1p(epochs_left / state.epochs) / math.log(NEXT_PREDICTION),
            epochs_left / prediction_cost(problem),
        )
        descent_seconds = epochs_left * epoch_seconds + CALLS * predictions

        # Seconds of Newton's steps; their equations are looked at only if passes alone take less.
        passes = passes_cost(problem)
        steps = newton_steps(problem.loss, state.estimate, target)
        newton_seconds = np.inf
        pays = False
        newton_in_words = ""
        if descent_seconds > steps * passes:
            step_cost = self._step_cost(problem, count_bending(problem, state.alpha))
            newton_seconds = steps_cost(step_cost, passes, steps)
            # Smooth problems whose bending rows span the features need no good start.
            soonest = GOOD_START
            if needs_no_proximity(problem, state.alpha, PLENTY):
                soonest = min(soonest, SOON * newton_seconds / epoch_seconds)
            may_change = state.epochs >= soonest - EPOCH_ROUNDING
            pays = may_change and newton_seconds < descent_seconds
            each = newton_seconds / steps / epoch_seconds
            newton_in_words = f", or about {steps:.0f} Newton steps of {each:.2g} epochs"
        falling = "not falling"
        if rate > 0.0:
            falling = f"falling {100.0 * (1.0 - math.exp(-rate)):.2g} % an epoch"
        verdict = "changing over" if pays else "staying"
        left = in_words(epochs_left)
        why = f"gap {state.estimate:.1e}, {falling}; {left}{newton_in_words}: {verdict}"
        state.decision = f"epoch {state.epochs:.0f}: {why}"
        state.remark = state.decision
        if pays:
            state.course.begin(newton_seconds, state.estimate)
            self.change(problem, state, FINISH, why)

    def check_progress(self, problem: Problem, state: AutoState, target: float) -> None:
        """Return to descent if rounding ends small steps early, or the finish has done too much."""
        if state.estimate <= target:
            return
        if state.phase == FINISH:
            inner = state.inner
            if inner.stuck and problem.holds_rows and target > 0.0:
                self.back_once(problem, state, COORDINATES)
                return
            # What the passes and equations so far were expected to take.
            solving = self._step_cost(problem, inner.active) - passes_cost(problem)
            finish_cost = inner.epochs * passes_cost(problem) + inner.steps * solving
            cost = max(finish_cost - state.finish_cost, 0.0)
            state.finish_cost = finish_cost
            self.change_back(problem, state, COORDINATES, cost, inner.best.primal)
        elif state.phase in SMALL and state.inner.stuck and target > 0.0:
            phase = COORDINATES if holds_square(problem.penalty) else FEATURES
            self.change(problem, state, phase, "nothing to gain in small steps: changing over")

    def on_stall(self, problem: Problem, state: AutoState) -> AutoState | None:
        """Change to the finish if descent stalls before a prediction says so; and back once."""
        if state.phase == FEATURES or is_device(problem):
            return None
        if state.phase == FINISH:
            return self.back_once(problem, state, COORDINATES) if problem.holds_rows else None
        finish = FINISH if problem.is_plain else FEATURES
        self.change(problem, state, finish, "no progress: changing over")
        state.course.predicted_work = np.inf
        return state

    def change(self, problem: Problem, state: AutoState, phase: str, why: str) -> None:
        """Hand the present point to another solver."""
        if phase == FEATURES and state.phase == COORDINATES:
            # Descent tracks the pull v = C sum_i a_i x_i; the column solver begins at its weights.
            state.inner.w = problem.regularizer.weights(state.w.astype(np.float64))
        state.finish_cost = 0.0
        super().change(problem, state, phase, why)

    def at_work(self, problem: Problem, state: AutoState) -> SolverBase:
        """Return the solver at work."""
        if state.phase in SMALL:
            return SMALL[state.phase]
        if state.phase == FEATURES:
            return Columns()
        return self.finish if state.phase == FINISH else DCD()

    # ---- Seconds of the finish

    def _step_cost(self, problem: Problem, active: int) -> float:
        """Return the seconds of a Newton step with the equations of so many rows that bend."""
        condition = steepness(problem) if problem.is_cornerless else np.inf
        return passes_cost(problem) + expected_seconds(problem, active, condition, self.memory)

    @staticmethod
    def _models_cost(problem: Problem, state: AutoState) -> float:
        """Return the seconds of the column solver's models, a factor each."""
        size = min(problem.members.size, problem.n_features)
        # The first epochs say too little about either.
        if state.epochs >= SOON * FEATURES_LEFT:
            support = np.count_nonzero(problem.regularizer.weights(state.w.astype(np.float64)))
            size = min(count_bending(problem, state.alpha), int(support))
        return MODELS * factor_cost(size)


def choose_first(problem: Problem) -> tuple[str, str]:
    """Return the solver that begins, as far as the kind of the problem says, and why."""
    small = small_phase(problem)
    if small is not None:
        return small, f"{small}: the problem is small"
    if is_device(problem):
        if not suits(problem):
            refuse_device(problem.place)
        return FINISH, f"{FINISH}: the rows are on a device"
    if is_tall(problem) or (suits(problem) and is_cheap_by_blocks(problem)):
        return FINISH, f"{FINISH}: {problem.members.size / problem.n_features:.3g} rows a feature"
    if not holds_square(problem.penalty):
        return FEATURES, f"{FEATURES}: the penalty holds no square"
    if not problem.holds_rows:
        return FINISH, f"{FINISH}: single rows are not to be had"
    return COORDINATES, f"{COORDINATES}, until the gap falls too slowly"


def is_cheap_by_blocks(problem: Problem) -> bool:
    """Return True if Newton's method in array code is the cheapest way from the start."""
    is_short = problem.members.size < TALL * problem.n_features
    if problem.sparse or is_short:
        return False
    # Descent is quicker if its first epochs close most of the gap.
    if problem.is_smooth:
        is_easy = steepness(problem) < STEEP
    else:
        is_easy = coordinate_curvature(problem) < EASY
    # Kernels of descent that are not in the cache take seconds to compile: longer than such a fit.
    return not (is_easy and is_at_hand(descend))


def is_tall(problem: Problem) -> bool:
    """Return True for a smooth loss on dense rows, too many for array code, if a share helps."""
    if problem.sparse or problem.in_arrays or not problem.is_smooth:
        return False
    if not (problem.is_plain and problem.intercept.homogeneous and problem.holds_rows):
        return False
    return has_share(problem) and steepness(problem) >= SLOPING


def steepness(problem: Problem) -> float:
    """Return ``C phi'' ||x_i||^2`` of the median row: the larger, the slower the descent."""
    return coordinate_curvature(problem) * problem.loss.largest_curvature()


def newton_steps(loss: Loss, gap: float, target: float) -> float:
    """Return the Newton steps from one relative gap to another."""
    least, per_digit = STEPS[traits_of(loss).shape]
    return least + per_digit * math.log10(gap / target)


def steps_cost(first: float, passes: float, steps: float) -> float:
    """Return the seconds of Newton steps; the first takes `first`, of which `passes` are its pass.

    Later steps make a pass each, and factor for AGAIN of the time.
    """
    return first + (steps - 1.0) * (passes + AGAIN * (first - passes))


def prediction_cost(problem: Problem) -> float:
    """Return the epochs that a prediction costs, at least one."""
    return max(1.0, CALLS / epoch_cost(problem))


def passes_cost(problem: Problem) -> float:
    """Return the seconds of a Newton step without its equations."""
    calls = CALLS if problem.is_smooth else KINKED_CALLS
    return values_cost(problem) + TERMS * problem.members.size + calls


def _gaps_so_far(state: AutoState) -> np.ndarray:
    """Return the rows (epoch, gap) of a run, the present epoch included, shape (k, 2)."""
    gaps = state.course.gaps
    if not gaps.size:
        return np.array([[state.epochs, state.estimate]])
    last_epoch, last_gap = gaps[-1]
    if state.epochs <= last_epoch:
        return gaps
    # The present estimate may be one over the active rows alone, and higher than the last one.
    return np.vstack([gaps, [state.epochs, min(state.estimate, last_gap)]])
