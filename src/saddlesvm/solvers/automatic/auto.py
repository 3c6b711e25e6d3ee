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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.loss import is_cornerless, is_smooth
from saddlesvm.problem.penalties import holds_square, parts_of
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.durable import demand, growing, part_of
from saddlesvm.solvers.automatic.predictions import (
    LOOK,
    Promise,
    descent_epochs,
    fall_rate,
    in_words,
    left_at,
    look_cost,
    newton_steps,
    passes_cost,
    sampled_epochs,
    steepness,
    steps_cost,
)
from saddlesvm.solvers.base import Budget, SolverBase, State, nothing, one_of
from saddlesvm.solvers.columns.solver import Columns
from saddlesvm.solvers.costs import epoch_cost, lead
from saddlesvm.solvers.second_order.equations import NewtonEquations
from saddlesvm.solvers.second_order.first_point import sample_shares
from saddlesvm.solvers.second_order.newton import Newton, NewtonState, bending, needs_no_proximity
from saddlesvm.solvers.small.dense import SmallSolver, fits
from saddlesvm.solvers.small.interior_point import InteriorPoint
from saddlesvm.solvers.small.newton import SmallNewton
from saddlesvm.solvers.threaded.descent import with_threads

LOOKS = (2.0, 4.0, 8.0)  # epochs at which the first predictions are made
NEXT_LOOK = 1.25  # factor from the epoch of one later prediction to the epoch of the next
PLENTY = 2.25  # bending rows per feature above which the rows that still bend later on span the features, too
SOON, LATE = 0.15, 8.0  # before a change-over: share of the finish's predicted work, and epochs, whichever is less
CHEAP = 4.0  # epochs that a Newton step may cost for a smooth problem to begin with Newton's method
BEND_AT_LAST = 0.5  # rough share of the rows that bend after the samples, where the loss' derivative has corners
STEEP = 1.0  # curvature ``C phi'' ||x_i||^2`` of the median row above which the first epochs make no progress
FEATURES_LEFT = 100.0  # epochs that coordinate descent must have left for the column solver to finish an elastic net
COORDINATES, FINISH, FEATURES = "coordinate descent", "Newton", "columns"
DENSE, INTERIOR = "dense Newton", "interior point"  # of small problems
SMALL: dict[str, SmallSolver] = {DENSE: SmallNewton(), INTERIOR: InteriorPoint()}


def small_phase(problem: Problem) -> str | None:
    """The solver of a problem that is small; None where it is not."""
    if not fits(problem):
        return None
    phase = DENSE if is_smooth(problem.loss) else INTERIOR
    return phase if phase in SMALL else None


@dataclass
class AutoState(State):
    """The state of a run: which solver is at work (`phase`), and what the predictions go by.

    Attributes
    ----------
    alpha : ndarray of shape (n_all,)
        Dual point of the solver at work.
    begun : bool
        Whether the first solver is chosen.
    seen : ndarray of shape (k, 2)
        Epochs and estimates of coordinate descent, from which its rate is measured.
    promise : Promise
        The work predicted for the finish.
    inner : State
        That of the solver at work.
    equations : NewtonEquations, optional
        Those of the finish, while it is not at work.
    """

    alpha: np.ndarray = growing()
    seen: np.ndarray = growing(0, 2)
    phase: str = COORDINATES
    begun: bool = False
    seed: int = 0
    next_prediction: float = LOOKS[0]
    base_epochs: float = 0.0
    base_rows: int = 0
    promise: Promise = field(default_factory=Promise)
    decision: str = ""
    inner: Any = field(default=None, repr=False, metadata={"prefix": "inner_"})
    equations: NewtonEquations | None = field(default=None, repr=False, metadata={"prefix": "equations_"})

    def check_restored(self, problem: Any) -> None:
        super().check_restored(problem)
        self.inner.check_restored(problem)


@dataclass(frozen=True)
class Auto(SolverBase):
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
    any_penalty: ClassVar[bool] = True
    without_square: ClassVar[bool] = True
    memory: float = 1e9
    begin: str = COORDINATES

    def check(self) -> None:
        one_of("begin", self.begin, (COORDINATES, FINISH))
        if not self.memory > 0.0:
            raise ValueError(f"memory must be positive; got {self.memory!r}")

    def needs_rows(self, problem: Problem) -> bool:
        """Whether a run visits single rows: where only passes over all are to be had, Newton's method works alone."""
        return not problem.penalty.identity()

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> AutoState:
        """Begin with coordinate descent, unless told otherwise or the problem is small."""
        if (phase := small_phase(problem)) is not None:
            state = AutoState(w=nothing(), phase=phase, seed=seed, begun=True)
            state.inner = SMALL[phase].init(problem, seed, start)
            return _mirror(state)
        if not holds_square(problem.penalty):
            columns = Columns().init(problem, seed, start)
            return _mirror(AutoState(w=columns.w, inner=columns, seed=seed, begun=True, phase=FEATURES))
        if not problem.passes.holds_rows:
            finish = Newton(memory=self.memory).init(problem, seed, start)
            state = AutoState(w=finish.w, inner=finish, seed=seed, begun=True, phase=FINISH)
            state.promise.promised = np.inf
            return _mirror(state)
        inner = with_threads(problem).init(problem, seed, start)
        state = AutoState(w=inner.w, inner=inner, seed=seed, active=inner.active)
        _mirror(state)
        state.next_prediction = max(LOOKS[0], look_cost(problem))
        if not problem.penalty.identity():
            state.begun = True
            return state
        if start is None and is_smooth(problem.loss):
            state.seen = np.array([[0.0, 1.0]])
        if start is not None:
            state.begun = True
            if self.begin == FINISH or self._is_near(problem, state, start):
                self._begin_with(state, Newton(memory=self.memory).init(problem, seed, start))
        return state

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
        state.phase, state.inner, state.promise.promised = FINISH, inner, np.inf
        inner.equations, state.equations = inner.equations or state.equations, None
        state.decision = f"epoch 0: beginning with Newton's method{where}"
        _mirror(state)
        state.promise.gap_then = state.estimate

    def epochs_from_samples(self, problem: Problem, target: float) -> float:
        """Predicted cost of a fit to this relative gap, in epochs of coordinate descent, where it would begin with
        Newton's method on samples of the rows; infinite where it would not."""
        return self._from_samples(problem, AutoState(w=nothing(), alpha=np.zeros(problem.y.size)), target)

    def _from_samples(self, problem: Problem, state: AutoState, target: float) -> float:
        """The prediction of `epochs_from_samples`, with the run's own equations."""
        if not is_smooth(problem.loss) or not sample_shares(problem):
            return np.inf
        descent, passes = descent_epochs(problem, target), passes_cost(problem)
        if sampled_epochs(problem, target, passes) >= descent:
            return np.inf
        share = 1.0 if is_cornerless(problem.loss) else BEND_AT_LAST
        epochs = sampled_epochs(problem, target, passes + share * self._solving_cost(problem, state))
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
        if state.phase == FINISH:
            return self._newton_step(problem, state, budget)
        if state.phase in SMALL:
            return self._small_step(problem, state, budget)
        if state.phase == FEATURES:
            state.inner = Columns().step(problem, state.inner, budget)
            return _mirror(state)
        rows = max(1, round((state.next_prediction - state.epochs) * problem.members.size))
        until = Budget(min(budget.rows, rows), budget.relative_gap, budget.seconds)
        state.inner = with_threads(problem).step(problem, state.inner, until)
        _mirror(state)
        _note(state)
        if state.epochs >= state.next_prediction - 1e-9:
            later = next((look for look in LOOKS if look > state.epochs + 1e-9), NEXT_LOOK * state.epochs)
            state.next_prediction = max(later, state.epochs + look_cost(problem))
            if np.inf > state.estimate > budget.relative_gap > 0.0:
                self._predict(problem, state, budget.relative_gap)
        return state

    def _small_step(self, problem: Problem, state: AutoState, budget: Budget) -> AutoState:
        """A step on a small problem; where rounding ends it early, go on as with any other problem."""
        state.inner = SMALL[state.phase].step(problem, state.inner, budget)
        _mirror(state)
        if state.inner.stuck and state.estimate > budget.relative_gap > 0.0:
            self._change(problem, state, COORDINATES, "nothing to gain in small steps: changing over")
        return state

    def _newton_step(self, problem: Problem, state: AutoState, budget: Budget) -> AutoState:
        state.inner = Newton(memory=self.memory).step(problem, state.inner, budget)
        _mirror(state)
        cost = passes_cost(problem) + state.inner.equations.cost
        if state.promise.broken(cost, state.estimate, state.inner.best.primal):
            fall = f"from {state.promise.gap_then:.1e} to {state.estimate:.1e} only"
            why = f"{state.inner.steps} Newton steps brought the gap {fall}: changing back"
            self._change(problem, state, COORDINATES, why)
        return state

    def _predict(self, problem: Problem, state: AutoState, target: float) -> None:
        """Compare the work that either solver has left; note the decision in words, and change over if it says so."""
        rate = fall_rate(_until_now(state))
        if state.epochs < state.promise.rests_until or rate is None:
            return
        left = left_at(rate, state.estimate, target)
        if not problem.penalty.identity():
            if left > FEATURES_LEFT and parts_of(problem.penalty) is not None:
                self._change(problem, state, FEATURES, "the column solver finishes")
            return
        epoch = epoch_cost(problem)
        passes = passes_cost(problem)
        looks = min(math.log1p(left / state.epochs) / math.log(NEXT_LOOK), left / look_cost(problem))
        here = left * epoch + LOOK * looks
        steps = newton_steps(problem.loss, state.estimate, target)
        there, change, or_else = np.inf, False, ""
        if here > steps * passes:
            there = steps_cost(self._step_cost(problem, state), passes, steps)
            early = needs_no_proximity(problem, state.alpha, PLENTY)
            soon = state.epochs >= (min(LATE, SOON * there / epoch) if early else LATE) - 1e-9
            change = soon and there < here
            or_else = f", or about {steps:.0f} Newton steps of {there / steps / epoch:.2g} epochs"
        falling = f"falling {100.0 * (1.0 - math.exp(-rate)):.2g} % an epoch" if rate > 0.0 else "not falling"
        verdict = "changing over" if change else "staying"
        why = f"gap {state.estimate:.1e}, {falling}; {in_words(left)}{or_else}: {verdict}"
        state.decision = f"epoch {state.epochs:.0f}: {why}"
        state.remark = state.decision
        if change:
            state.promise.begin(there, state.estimate)
            self._change(problem, state, FINISH, why)

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

    def _change(self, problem: Problem, state: AutoState, phase: str, why: str) -> None:
        """Hand the present point to the other solver."""
        if state.phase == FINISH:
            state.w, state.alpha = state.inner.best.w, state.inner.best.alpha
            state.equations = state.inner.equations
            state.promise.rest(state.epochs)
        state.base_epochs, state.base_rows = state.epochs, state.rows_touched
        state.decision = f"epoch {state.epochs:.0f}: {why}"
        state.seen = np.empty((0, 2))
        if phase == FEATURES:
            state.w = problem.regularizer.weights(state.w.astype(np.float64))
        self._enter(problem, state, phase)

    def _enter(self, problem: Problem, state: AutoState, phase: str) -> None:
        state.phase = phase
        start = Point(state.w.astype(np.float64), state.alpha)
        state.inner = self._at_work(problem, state).init(problem, state.seed, start)
        if phase == FINISH:
            state.inner.equations, state.equations = state.equations, None
        state.base_epochs, state.base_rows = state.epochs, state.rows_touched
        _mirror(state)

    def like(self, problem: Problem, state: AutoState, stored: Mapping[str, Any]) -> AutoState:
        """A state whose solver at work is that of the stored one."""
        phase, zeros = stored.get("phase"), Point(np.zeros(problem.n_features + 1), np.zeros(problem.y.size))
        demand(phase in (COORDINATES, FINISH, FEATURES, *SMALL), f"its phase is {str(phase)[:40]!r}")
        state.phase = str(phase)
        solver = self._at_work(problem, state)
        threads = [np.size(stored.get("inner_bounds", (0, 1))) - 1, getattr(solver, "threads", 1)]
        demand(threads[0] == threads[1], f"it is of a fit with {threads[0]} threads, and this one has {threads[1]}")
        state.inner = solver.like(problem, solver.init(problem, state.seed, zeros), part_of(stored, "inner_"))
        state.w = state.inner.w
        state.equations = NewtonEquations(problem, self.memory) if "equations_way" in stored else None
        return state

    def resumed(self, problem: Problem, state: AutoState) -> AutoState:
        """Let the solver at work make anew what it needs."""
        state.inner = self._at_work(problem, state).resumed(problem, state.inner)
        if state.equations is not None:
            state.equations.renew()
        return state

    def solution(self, problem: Problem, state: AutoState) -> Point:
        """The point of the solver at work."""
        return self._at_work(problem, state).solution(problem, state.inner)

    def last_point(self, problem: Problem, state: AutoState) -> Point:
        """The last point of the solver at work."""
        point: Point = self._at_work(problem, state).last_point(problem, state.inner)
        return point

    def certified(self, problem: Problem, state: AutoState, evaluation: Evaluation) -> AutoState:
        """Pass the certificate on to the solver at work."""
        state.inner = self._at_work(problem, state).certified(problem, state.inner, evaluation)
        state.w = state.inner.w
        return state

    def on_stall(self, problem: Problem, state: AutoState) -> AutoState | None:
        """Change over to Newton's method where coordinate descent stalls before a prediction recommends the change.

        Where Newton's method stalls because no row bends, and so has no curvature to use, change back once.
        """
        if state.phase == FEATURES:
            return None
        if state.phase == FINISH:
            if state.inner.active or state.promise.patience > 1.0 or not problem.passes.holds_rows:
                return None
            self._change(problem, state, COORDINATES, "no row bends: changing back")
            return state
        if parts_of(problem.penalty) is None:
            return None
        finish = FINISH if problem.penalty.identity() else FEATURES
        self._change(problem, state, finish, "no progress: changing over")
        state.promise.promised = np.inf
        return state

    def _at_work(self, problem: Problem, state: AutoState) -> Any:
        if state.phase in SMALL:
            return SMALL[state.phase]
        if state.phase == FEATURES:
            return Columns()
        return Newton(memory=self.memory) if state.phase == FINISH else with_threads(problem)


def _mirror(state: AutoState) -> AutoState:
    """Copy the progress of the solver at work into the state of the run."""
    inner = state.inner
    state.w, state.alpha = inner.w, inner.best.alpha if state.phase in (FINISH, FEATURES) else inner.alpha
    state.rows_touched = state.base_rows + inner.rows_touched
    state.epochs = state.base_epochs + inner.epochs
    state.estimate, state.proven = inner.estimate, inner.proven
    state.active, state.change = inner.active, inner.change
    state.remark = " | ".join(filter(None, (state.decision, inner.remark)))
    return state


def _note(state: AutoState) -> None:
    """Remember a new estimate over all rows; estimates over the active rows alone rise when the others come back.

    An estimate of zero is left out: with a free intercept the dual variables may not sum to zero yet.
    """
    inner = state.inner
    epoch = state.base_epochs + inner.known_at
    if inner.known_at > 0.0 and (not state.seen.size or epoch > state.seen[-1, 0]) and 0.0 < inner.known < np.inf:
        state.seen = np.vstack([state.seen, [epoch, inner.known]])


def _until_now(state: AutoState) -> np.ndarray:
    """Epochs and estimates over all rows; the present epoch, with the lowest estimate known, is appended."""
    seen, now = state.seen, [state.epochs, state.estimate]
    if not seen.size:
        return np.array([now])
    return seen if now[0] <= seen[-1, 0] else np.vstack([seen, [now[0], min(now[1], seen[-1, 1])]])
