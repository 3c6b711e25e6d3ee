"""Crammer and Singer's machine by dual ascent over one row's block of variables at a time.

For row i, with ``G_k = e_ik + x_i . w_k`` and ``A = C ||x_i||^2``, the block is replaced by the minimiser of

    (A / 2) sum_k (a_k - a_ik)^2 + sum_k G_k (a_k - a_ik)    with  sum_k a_k = 0,  a_k <= s_i [k = y_i],

which is ``a_k = min(s_i [k = y_i], (beta - B_k) / A)``, ``B_k = G_k - A a_ik``, with the threshold beta that makes the
sum zero (:mod:`saddlesvm.solvers.joint_steps`). A row's rivals are the classes other than its own. The solver sets
aside a rival that sits at its bound with a slope below that of every class off its bound, and a row that has no rival
left. All rivals and rows come back before the end.

The work that the ascent has left is predicted from how fast its gap falls, and that of Newton's method
(:mod:`saddlesvm.solvers.best_rival`) from the sizes of the problem. Where Newton's method is predicted to reach
the end sooner, it finishes. All predictions count operations, and never read the clock.

Source: Keerthi, Sundararajan, Chang, Hsieh and Lin (2008), "A sequential dual method for large scale multi-class
linear SVMs"; Crammer and Singer (2001), section 6, for the threshold; Fan and others (2008), LIBLINEAR, appendix E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.crammer_singer import JointProblem, dense_rows
from saddlesvm.problem.sums import dual_weights
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.base import SAME_SLOPES, Budget, SolverBase, is_fine, nothing
from saddlesvm.solvers.best_rival import JointNewton, finish_fits, step_cost, steps_between
from saddlesvm.solvers.costs import joint_epoch_cost
from saddlesvm.solvers.joint_ascent import AscentState, ListedState, TableState
from saddlesvm.solvers.phases import Choosing, ChosenState, epochs_left, in_words

ASCENT, FINISH = "crammer_singer", "Newton"
FIRST_PREDICTION = 4.0  # epochs
RECHECK = 0.1  # share of the last gap over all rows: once the active rows' gap is below it, all rows come back
SCORED_VALUES = 4_000_000  # stored values that are scored between two looks at the time: some 10 ms of work


@dataclass(frozen=True)
class JointAscent(SolverBase):
    """Dual ascent over one row's block of variables, for :class:`~saddlesvm.problem.crammer_singer.JointProblem`."""

    name: ClassVar[str] = ASCENT
    shrinking: bool = True

    def init(self, problem: JointProblem, seed: int, start: Point | None = None) -> AscentState:
        """Begin at zero or at the given dual point, with all rows and classes active."""
        shape, lists = (problem.y.size, problem.n_classes), self.shrinking and problem.many_variables
        given: Any = None if start is None else start.alpha
        if given is None:
            given = sparse.csr_array(shape) if lists else np.zeros(shape)
        if given.shape != shape:
            raise ValueError(f"the starting dual point has shape {given.shape}; the problem needs {shape}")
        alpha: Any = sparse.csr_array(given) if lists else np.array(dense_rows(given), dtype=np.float64)
        # Without shrinking the method is the published one: no certificate rebuilds W, so rounding must not add up.
        W = problem.new_weights(problem.dtype if self.shrinking else np.float64)
        if alpha.nnz if lists else alpha.any():
            problem.by_class(W)[:] = dual_weights(problem, alpha)
        return (ListedState if lists else TableState).begun(problem, alpha, W, seed)

    def step(self, problem: JointProblem, state: Any, budget: Budget) -> Any:
        """Pass over the active rows and classes; compute at most as many scores as ``budget.rows`` rows have.

        The step ends with a pass over all classes of all rows, whose gap is then known.
        """
        K = problem.n_classes
        left = budget.rows * K
        at_once = max(K, int(SCORED_VALUES / problem.values_per_row))
        done = 0
        while left > 0 and not (done and time_is_up()):
            done, passes = state.visit(problem, min(left, at_once), self.shrinking)
            left -= done
            if not passes:
                continue
            if state.end_pass():
                break
            if state.meters["spread"][0] <= SAME_SLOPES or state.estimate <= RECHECK * state.known:
                state.call_back()
            if state.estimate <= budget.relative_gap:
                break
        return state

    def solution(self, problem: JointProblem, state: Any) -> Point:
        """The last iterate."""
        return Point(problem.by_class(state.w), state.duals(), tracks=True)

    def certified(self, problem: Any, state: Any, evaluation: Evaluation) -> Any:
        """Take the rebuilt weights over; call all classes back if the gap is far above what the active ones show.

        Without shrinking, as published, a certificate observes, and never changes a run.
        """
        if not self.shrinking:
            return state
        certificate = evaluation.certificate
        state.known, state.known_at = certificate.relative_gap, state.epochs
        state.meters["scale"] = certificate.primal / (problem.unit * problem.C)
        if state.known > 2.0 * state.estimate:
            state.call_back()
        if state.w.dtype != np.float64 and is_fine(problem, certificate):
            state.w = state.w.astype(np.float64)
        W = problem.by_class(state.w)
        W[:, :-1] = evaluation.coef
        if problem.scale:
            W[:, -1] = evaluation.intercept / problem.scale
        return state


@dataclass
class JointState(ChosenState):
    """The state of a run; `q` is the proximity of the finish when it was last at work."""

    phase: str = ASCENT
    q: float = 0.0

    @property
    def point(self) -> Point:
        """The point that the other solver goes on from, with variables of shape (n_all, K), in a CSR array or not."""
        inner = self.inner
        return Point(inner.w.astype(np.float64), inner.duals()) if isinstance(inner, AscentState) else super().point


@dataclass(frozen=True)
class CrammerSinger(Choosing):
    """Dual ascent over one row's block of variables, for :class:`~saddlesvm.problem.crammer_singer.JointProblem`.

    Where the ascent would take long, Newton's method finishes.

    Parameters
    ----------
    shrinking : bool, default=True
        Set aside the classes of a row, and the rows, whose variables sit at their bounds.
    """

    name: ClassVar[str] = ASCENT
    phases: ClassVar[tuple[str, ...]] = (ASCENT, FINISH)
    shrinking: bool = True

    def at_work(self, problem: JointProblem, state: JointState) -> Any:
        """The solver at work."""
        return JointNewton(q=state.q) if state.phase == FINISH else JointAscent(self.shrinking)

    def init(self, problem: JointProblem, seed: int, start: Point | None = None) -> JointState:
        """Begin at zero or at the given dual point, with the ascent."""
        state = JointState(w=nothing(), seed=seed)
        state.inner = self.at_work(problem, state).init(problem, seed, start)
        state.course.next_prediction = FIRST_PREDICTION
        state.update()
        return state

    def work(self, problem: JointProblem, state: JointState, budget: Budget) -> None:
        super().work(problem, state, budget)
        if state.phase == FINISH:
            state.q = state.inner.q

    def check_progress(self, problem: JointProblem, state: JointState, target: float) -> None:
        """Change back where Newton's method has done far more work than predicted."""
        self.change_back(problem, state, ASCENT, state.inner.cost)

    def next_prediction(self, problem: JointProblem, epochs: float) -> float:
        return super().next_prediction(problem, max(epochs, FIRST_PREDICTION))

    def predict(self, problem: JointProblem, state: JointState, target: float) -> None:
        """Compare the work that either has left, and hand over to the finish where it has less."""
        course = state.course
        left = epochs_left(problem, course.gaps, target)
        if left is None or state.epochs < course.rests_until or not finish_fits(problem):
            return
        gap = float(course.gaps[-1, 1])
        if gap <= target:
            return
        steps = steps_between(gap, target)
        here, there = left * joint_epoch_cost(problem), steps * step_cost(problem, state.inner.duals())
        if here > there:
            course.begin(there, gap)
            why = f"gap {gap:.1e}, {in_words(left)}, or about {steps:.0f} Newton steps: changing over"
            self.change(problem, state, FINISH, why)

    def on_stall(self, problem: JointProblem, state: JointState) -> JointState | None:
        """Let the finish go on where the ascent stalls, and the ascent, once, where the finish does."""
        if state.phase == FINISH:
            return self.back_once(problem, state, ASCENT)
        if state.course.patience > 1.0 or not finish_fits(problem):
            return None
        state.course.begin(np.inf, state.estimate)
        self.change(problem, state, FINISH, "no progress: changing over")
        return state
