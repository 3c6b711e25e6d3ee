"""Crammer and Singer's machine: ascent over one row's block at a time, and Newton's method.

The ascent (:mod:`saddlesvm.solvers.joint_ascent`) begins. The work that it has left is predicted
from how fast its gap falls, and that of Newton's method (:mod:`saddlesvm.solvers.best_rival`) from
the sizes of the problem. If Newton's method is predicted to reach the end sooner, it finishes. All
predictions count operations, and never read the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.solvers.base import Budget, empty_array
from saddlesvm.solvers.best_rival import JointNewton, finish_fits, step_cost, steps_between
from saddlesvm.solvers.costs import joint_epoch_cost
from saddlesvm.solvers.joint_ascent import JointAscent
from saddlesvm.solvers.phases import Choosing, ChosenState, epochs_left, in_words

if TYPE_CHECKING:
    from saddlesvm.solvers.base import SolverBase

ASCENT = "crammer_singer"
FINISH = "Newton"
FIRST_PREDICTION = 4.0  # epochs; a guess


@dataclass
class JointState(ChosenState):
    """The state of a run; `q` is the proximity of the finish when it was last at work."""

    phase: str = ASCENT
    q: float = 0.0


@dataclass(frozen=True)
class CrammerSinger(Choosing):
    """Dual ascent over one row's block of variables, and Newton's method to finish.

    Parameters
    ----------
    shrinking : bool, default=True
        Set aside the classes of a row, and the rows, whose variables sit at their bounds.
    """

    name: ClassVar[str] = ASCENT
    phases: ClassVar[tuple[str, ...]] = (ASCENT, FINISH)
    shrinking: bool = True

    def at_work(self, problem: JointProblem, state: JointState) -> SolverBase:
        """Return the solver at work."""
        if state.phase == FINISH:
            return JointNewton(q=state.q)
        return JointAscent(self.shrinking)

    def init(self, problem: JointProblem, seed: int, start: Point | None = None) -> JointState:
        """Begin at zero or at the given dual point, with the ascent."""
        state = JointState(w=empty_array(), seed=seed)
        state.inner = self.at_work(problem, state).init(problem, seed, start)
        state.course.next_prediction = FIRST_PREDICTION
        state.update()
        return state

    def work(self, problem: JointProblem, state: JointState, budget: Budget) -> None:
        """Do a bounded amount of work with the solver at work."""
        super().work(problem, state, budget)
        if state.phase == FINISH:
            state.q = state.inner.q

    def check_progress(self, problem: JointProblem, state: JointState, target: float) -> None:
        """Change back if Newton's method has done far more work than predicted."""
        self.change_back(problem, state, ASCENT, state.inner.cost)

    def next_prediction(self, problem: JointProblem, epochs: float) -> float:
        """Return the epoch of the prediction that follows `epochs`."""
        return super().next_prediction(problem, max(epochs, FIRST_PREDICTION))

    def predict(self, problem: JointProblem, state: JointState, target: float) -> None:
        """Compare the work that either has left, and hand over to the finish if it has less."""
        course = state.course
        left = epochs_left(problem, course.gaps, target)
        if left is None or state.epochs < course.rests_until or not finish_fits(problem):
            return
        # The last gap over all rows, from which either method would go on.
        gap = float(course.gaps[-1, 1])
        if gap <= target:
            return
        steps = steps_between(gap, target)
        # Both ways to the target are priced in the same rough seconds.
        ascent_work = left * joint_epoch_cost(problem)
        newton_work = steps * step_cost(problem, state.inner.alpha)
        if ascent_work > newton_work:
            course.begin(newton_work, gap)
            why = (
                f"gap {gap:.1e}, {in_words(left)}, or about {steps:.0f} Newton steps: changing over"
            )
            self.change(problem, state, FINISH, why)

    def on_stall(self, problem: JointProblem, state: JointState) -> JointState | None:
        """Let the finish go on if the ascent stalls, and the ascent, once, if the finish does."""
        if state.phase == FINISH:
            return self.back_once(problem, state, ASCENT)
        if state.course.patience > 1.0 or not finish_fits(problem):
            return None
        state.course.begin(np.inf, state.estimate)
        self.change(problem, state, FINISH, "no progress: changing over")
        return state
