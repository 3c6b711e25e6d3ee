"""The automatic solver: dual coordinate descent, watched by its own progress, with a second-order finish.

Coordinate descent is unbeatable early and hopeless late on ill-conditioned problems. The automatic solver predicts the
work that coordinate descent has left from how fast its estimate of the gap falls. It predicts the work of the Newton
steps from the sizes of the problem and the number of rows that bend. It changes over to the finish when the Newton
steps are cheaper, and changes back when the finish takes far more work than predicted. It makes its first prediction
early, because Newton's method suits smooth losses whose bending rows span the features: there it needs no good start
and few steps. Where such a problem has many more rows than features, or is steep, the solver begins with Newton's
method. Where R is not half a square, the column solver takes the place of Newton's method; where R holds no square, it
works alone. All predictions count operations, not seconds: no decision depends on the clock, and a fit is repeatable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import is_cornerless, is_smooth
from saddlesvm.problem.penalties import holds_square, parts_of
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.device import refuse_device
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.compiled import is_at_hand
from saddlesvm.solvers.automatic.choosing import (
    BEND,
    NEXT_PREDICTION,
    Choosing,
    ChosenState,
    descent_epochs,
    fall_rate,
    followed_gaps,
    in_words,
    left_at,
    newton_steps,
    passes_cost,
    prediction_cost,
    sampled_epochs,
    steepness,
    steps_cost,
)
from saddlesvm.solvers.base import Budget, nothing
from saddlesvm.solvers.columns.solver import Columns
from saddlesvm.solvers.costs import CALLS, epoch_cost, lead
from saddlesvm.solvers.dcd import descend
from saddlesvm.solvers.newton import BlockNewton, is_device, suits
from saddlesvm.solvers.second_order.equations import NewtonEquations
from saddlesvm.solvers.second_order.first_point import (
    bending,
    coordinate_curvature,
    learns_from_steps,
    needs_no_proximity,
    sample_shares,
)
from saddlesvm.solvers.second_order.linear_algebra import factor_cost
from saddlesvm.solvers.second_order.newton import Newton, NewtonState
from saddlesvm.solvers.small.newton import SMALL, small_phase
from saddlesvm.solvers.threaded.descent import with_threads

FIRST_PREDICTIONS = (2.0, 4.0, 8.0)  # epochs
PLENTY = 2.25  # bending rows per feature above which the rows that still bend later on span the features, too
SOON = 0.15  # share of the finish's predicted work before a change-over, if that is less than the first predictions
CHEAP = 4.0  # epochs that a Newton step may cost for a smooth problem to begin with Newton's method
STEEP = 1.0  # curvature ``C phi'' ||x_i||^2`` of the median row above which the first epochs make no progress
# Epochs that coordinate descent must have left for the column solver to finish an elastic net, besides the work of its
# models, whose number is rough: measured on rcv1-binary at C = 100, where descent takes a tenth of the time to 1e-4.
FEATURES_LEFT, MODELS = 100.0, 100.0
# Rows a feature from which Newton's method in array code begins, and from which it is as quick as with compiled code if
# there are many features: measured, 20,000 x 300, 4,000 x 150.
TALL, TALLER = 20, 40
# Curvature C ||x_i||^2 of the median row below which descent solves a kinked loss in some ten epochs, and features
# above which a pass in array code takes longer than an epoch of descent: measured, 20,000 x 10 ... 20,000 x 300.
EASY, FEW_FOR_KINKS = 10.0, 64
# Steepness below which descent solves smooth losses in some five epochs, and features from which
# these are quicker than ten passes: 0.06 to 0.48 of the time on Fashion-MNIST (20,000 x 784) and
# 20,000 x 256, 0.7 to 1.6 on 20,000 x 200.
GENTLE = 4.5
LONG_ROWS = 128
COORDINATES, FINISH, FEATURES = "coordinate descent", "Newton", "columns"
BLOCKS = "Newton by blocks"


@dataclass
class AutoState(ChosenState):
    """The state of a run.

    Attributes
    ----------
    begun : bool
        Whether the first solver is chosen.
    equations : NewtonEquations, optional
        Those of the finish, while it is not at work.
    """

    phase: str = COORDINATES
    begun: bool = False
    equations: NewtonEquations | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Auto(Choosing):
    """Coordinate descent with a second-order finish, each while it is the cheaper one.

    Parameters
    ----------
    memory : float, default=1e9
        Bytes that factored matrices of the finish may take.
    begin : {"coordinate descent", "Newton"}, default="coordinate descent"
        Which solver begins when a starting point is given. Begin with "Newton" where the fit of a neighbouring problem
        ended with it. At a neighbour's weights, smooth problems with cheap Newton steps begin with it anyway.

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
    phases: ClassVar[tuple[str, ...]] = (COORDINATES, FINISH, FEATURES, BLOCKS, *SMALL)
    any_penalty: ClassVar[bool] = True
    without_square: ClassVar[bool] = True
    memory: float = 1e9
    begin: str = COORDINATES

    def __post_init__(self) -> None:
        one_of("begin", self.begin, (COORDINATES, FINISH))
        if not self.memory > 0.0:
            raise ValueError(f"memory must be positive; got {self.memory!r}")

    def needs_rows(self, problem: Problem) -> bool:
        """Whether a run visits single rows: where only passes over all are to be had, Newton's method works alone."""
        return not problem.penalty.identity()

    def begins_at_weights(self, problem: Problem) -> bool:
        """Return True if Newton's method begins and the loss is smooth: multipliers follow from weights."""
        return is_smooth(problem.loss) and self._first_phase(problem) == BLOCKS

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> AutoState:
        """Begin with coordinate descent, unless an option or the size of the problem says otherwise."""
        state = AutoState(w=nothing(), seed=seed, begun=True, phase=self._first_phase(problem))
        state.inner = self.at_work(problem, state).init(problem, seed, start)
        state.update()
        state.course.promised = np.inf
        if state.phase != COORDINATES:
            return state
        state.course.next_prediction = max(FIRST_PREDICTIONS[0], prediction_cost(problem))
        if not problem.penalty.identity():
            return state
        state.begun = start is not None or is_gentle(problem)
        if start is None and is_smooth(problem.loss):
            state.course.add(0.0, 1.0)
        if start is not None and (self.begin == FINISH or self._is_near(problem, state, start)):
            self._begin_with(state, Newton(memory=self.memory).init(problem, seed, start))
        return state

    @staticmethod
    def _first_phase(problem: Problem) -> str:
        """The solver that a run begins with, as far as the kind of the problem decides."""
        if (phase := small_phase(problem)) is not None:
            return phase
        if is_device(problem):
            if not suits(problem):
                refuse_device(problem.place)
            return BLOCKS
        if problem.in_arrays and suits(problem) and is_cheap_by_blocks(problem):
            return BLOCKS
        if not holds_square(problem.penalty):
            return FEATURES
        return COORDINATES if problem.holds_rows else FINISH

    def _choose(self, problem: Problem, state: AutoState, target: float) -> None:
        """Choose the first solver where no starting point is given."""
        state.begun = True
        if self._from_samples(problem, state, target) < np.inf:
            inner = Newton(memory=self.memory).init(problem, state.seed)
            if is_cornerless(problem.loss) or inner.active > problem.n_features:
                self._begin_with(state, inner, " on samples of the rows")
            else:  # discard the samples' solution, keep its cost
                state.base_rows, state.base_epochs = inner.rows_touched, inner.epochs
        elif self._is_steep(problem, state):
            self._begin_with(state, Newton(memory=self.memory, warm_up=0).init(problem, state.seed))

    @staticmethod
    def _begin_with(state: AutoState, inner: NewtonState, where: str = "") -> None:
        state.phase, state.inner, state.course.promised = FINISH, inner, np.inf
        inner.equations, state.equations = inner.equations or state.equations, None
        state.decision = f"epoch 0: beginning with Newton's method{where}"
        state.update()
        state.course.gap_then = state.estimate

    def _from_samples(self, problem: Problem, state: AutoState, target: float) -> float:
        """Predicted cost of a fit to this relative gap, in epochs of coordinate descent, if it begins with Newton's
        method on samples of the rows; infinite if it would not."""
        if not is_smooth(problem.loss) or not sample_shares(problem):
            return np.inf
        descent = descent_epochs(problem, target)
        if sampled_epochs(problem, target, 0.0) >= descent:
            return np.inf
        if state.equations is None:
            state.equations = NewtonEquations(problem, self.memory)
        learns, share = learns_from_steps(problem), BEND[is_cornerless(problem.loss)]
        first = state.equations.expected_at_first(problem.members.size, steepness(problem), learns=learns)
        epochs = sampled_epochs(problem, target, share * first / lead(problem))
        return epochs if epochs < descent else np.inf

    def _is_near(self, problem: Problem, state: AutoState, start: Point) -> bool:
        """Whether one or two cheap Newton steps from a neighbour's weights most likely solve the problem."""
        return start.w is not None and needs_no_proximity(problem, state.alpha) and self._is_cheap(problem, state)

    def _is_steep(self, problem: Problem, state: AutoState) -> bool:
        """Whether the problem is so steep, and Newton steps so cheap, that Newton's method should begin at zero."""
        steep = is_cornerless(problem.loss) and steepness(problem) >= STEEP
        return steep and self._is_cheap(problem, state)

    def _is_cheap(self, problem: Problem, state: AutoState) -> bool:
        return self._step_cost(problem, state) <= CHEAP * epoch_cost(problem)

    def step(self, problem: Problem, state: AutoState, budget: Budget) -> AutoState:
        """Do a step of the solver at work, and make a prediction when one is due."""
        if not state.begun:
            self._choose(problem, state, budget.relative_gap)
        return super().step(problem, state, budget)

    def next_prediction(self, problem: Problem, epochs: float) -> float:
        """The epoch of the next prediction: the first ones are early, and none costs more than the work it predicts."""
        later = (first for first in FIRST_PREDICTIONS if first > epochs + 1e-9)
        return max(next(later, super().next_prediction(problem, epochs)), epochs + prediction_cost(problem))

    def check_progress(self, problem: Problem, state: AutoState, target: float) -> None:
        """Change to coordinate descent where rounding ends small steps early, or the finish has done too much work."""
        if (
            state.phase in (BLOCKS, *SMALL)
            and problem.holds_rows
            and state.inner.stuck
            and state.estimate > target > 0.0
        ):
            phase = COORDINATES if holds_square(problem.penalty) else FEATURES
            self.change(problem, state, phase, "nothing to gain in small steps: changing over")
        elif state.phase == FINISH:
            cost = passes_cost(problem) + state.inner.equations.cost
            self.change_back(problem, state, COORDINATES, cost, state.inner.best.primal)

    def predict(self, problem: Problem, state: AutoState, target: float) -> None:
        """Compare the work that either solver has left; note the decision in words, and change over if it says so."""
        epochs, gaps = _until_now(state).T
        gaps = followed_gaps(problem, np.append(gaps, state.estimate))
        rate = fall_rate(np.column_stack([epochs, gaps[:-1]]))
        if state.epochs < state.course.rests_until or rate is None or not np.inf > state.estimate > target:
            return
        left, epoch = left_at(rate, float(gaps[-1]), target), epoch_cost(problem)
        if not problem.penalty.identity():
            spare = left - FEATURES_LEFT  # looked at first: the cost of the models takes a pass over the rows
            if spare > 0.0 and parts_of(problem.penalty) and spare > self._models_cost(problem, state) / epoch:
                self.change(problem, state, FEATURES, "the column solver finishes")
            return
        passes = passes_cost(problem)
        predictions = min(math.log1p(left / state.epochs) / math.log(NEXT_PREDICTION), left / prediction_cost(problem))
        here = left * epoch + CALLS * predictions
        steps = newton_steps(problem.loss, state.estimate, target)
        there, change, or_else = np.inf, False, ""
        if here > steps * passes:
            there = steps_cost(self._step_cost(problem, state), passes, steps)
            late, early = FIRST_PREDICTIONS[-1], needs_no_proximity(problem, state.alpha, PLENTY)
            soon = state.epochs >= (min(late, SOON * there / epoch) if early else late) - 1e-9
            change = soon and there < here
            or_else = f", or about {steps:.0f} Newton steps of {there / steps / epoch:.2g} epochs"
        falling = f"falling {100.0 * (1.0 - math.exp(-rate)):.2g} % an epoch" if rate > 0.0 else "not falling"
        verdict = "changing over" if change else "staying"
        why = f"gap {state.estimate:.1e}, {falling}; {in_words(left)}{or_else}: {verdict}"
        state.decision = f"epoch {state.epochs:.0f}: {why}"
        state.remark = state.decision
        if change:
            state.course.begin(there, state.estimate)
            self.change(problem, state, FINISH, why)

    @staticmethod
    def _models_cost(problem: Problem, state: AutoState) -> float:
        """Rough seconds of the column solver's models: each has a factor over the support, or over the rows that bend.

        The first epochs say too little about either.
        """
        size = min(problem.members.size, problem.n_features)
        if state.epochs >= SOON * FEATURES_LEFT:
            support = np.count_nonzero(problem.regularizer.weights(state.w.astype(np.float64)))
            size = min(int(np.count_nonzero(bending(problem, state.alpha))), int(support))
        return MODELS * factor_cost(size)

    def _step_cost(self, problem: Problem, state: AutoState) -> float:
        """Rough seconds of a Newton step whose Hessian has the rows that bend at the present point."""
        return passes_cost(problem) + self._solving_cost(problem, state)

    def _solving_cost(self, problem: Problem, state: AutoState) -> float:
        """Rough seconds that the equations of such a step take."""
        bend = bending(problem, state.alpha)
        if state.equations is None:
            state.equations = NewtonEquations(problem, self.memory)
        active = np.flatnonzero(bend)
        if not active.size:
            return 0.0
        if is_cornerless(problem.loss):
            bend *= problem.C * problem.loss.largest_curvature()
            return state.equations.expected(active, bend) / lead(problem)
        return state.equations.cheapest(active, bend).cost / lead(problem)

    def change(self, problem: Problem, state: AutoState, phase: str, why: str) -> None:
        """Hand the present point to another solver, and the equations to the finish or back."""
        if state.phase == FINISH:
            state.equations = state.inner.equations
        if phase == FEATURES and state.phase == COORDINATES:
            state.inner.w = problem.regularizer.weights(state.w.astype(np.float64))
        super().change(problem, state, phase, why)
        if phase == FINISH:
            state.inner.equations, state.equations = state.equations, None

    def on_stall(self, problem: Problem, state: AutoState) -> AutoState | None:
        """Change over to Newton's method where coordinate descent stalls before a prediction recommends the change.

        Change back once where Newton's method stalls.
        """
        if state.phase == FEATURES or is_device(problem):
            return None
        if state.phase == FINISH:
            return self.back_once(problem, state, COORDINATES) if problem.holds_rows else None
        if parts_of(problem.penalty) is None:
            return None
        finish = FINISH if problem.penalty.identity() else FEATURES
        self.change(problem, state, finish, "no progress: changing over")
        state.course.promised = np.inf
        return state

    def at_work(self, problem: Problem, state: AutoState) -> Any:
        """The solver at work."""
        if state.phase in SMALL:
            return SMALL[state.phase]
        if state.phase == BLOCKS:
            return BlockNewton()
        if state.phase == FEATURES:
            return Columns()
        return Newton(memory=self.memory) if state.phase == FINISH else with_threads(problem)


def is_cheap_by_blocks(problem: Problem) -> bool:
    """Whether Newton's method in array code is the cheapest way from the start: many rows for each feature.

    A kinked loss takes it some twenty passes: descent is quicker where it is easy, or where rows are long. For smooth
    losses it is if rows are long, and few or easy. But the kernels of descent may have to be compiled, which takes
    seconds.
    """
    if problem.sparse or problem.members.size < TALL * problem.n_features:
        return False
    has_long_rows = problem.n_features > FEW_FOR_KINKS
    if is_smooth(problem.loss):
        is_short = problem.members.size < TALLER * problem.n_features
        is_easy = has_long_rows and (is_short or steepness(problem) < STEEP or is_gentle(problem))
    else:
        is_easy = has_long_rows or coordinate_curvature(problem) < EASY
    return not (is_easy and is_at_hand(descend))


def is_gentle(problem: Problem) -> bool:
    """Return True for dense rows, long and many, and a smooth loss that descent solves in some five epochs."""
    if problem.sparse or not is_smooth(problem.loss):
        return False
    is_tall = problem.members.size >= TALL * problem.n_features
    return is_tall and problem.n_features > LONG_ROWS and steepness(problem) < GENTLE


def _until_now(state: AutoState) -> np.ndarray:
    """Epochs and estimates over all rows; the present epoch, with the lowest estimate known, is appended."""
    gaps, now = state.course.gaps, [state.epochs, state.estimate]
    if not gaps.size:
        return np.array([now])
    return gaps if now[0] <= gaps[-1, 0] else np.vstack([gaps, [now[0], min(now[1], gaps[-1, 1])]])
