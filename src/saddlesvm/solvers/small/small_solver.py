"""The solver of small problems: which method, and its runs as states of a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import has_bounded_slopes, traits_of
from saddlesvm.problem.penalties import L1
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.matrix import is_little
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget, SolverBase, State, empty_array
from saddlesvm.solvers.curvature import coordinate_curvature
from saddlesvm.solvers.small.dense import BestPoints, Small
from saddlesvm.solvers.small.interior_point import InteriorRuns
from saddlesvm.solvers.small.runs import Runs, advance
from saddlesvm.solvers.small.small_newton import NewtonRuns

# The phases of small problems, in the words of a trace.
DENSE = "dense Newton"
INTERIOR = "interior point"
# A dense problem counts as small here if it has at most so many times the values of
# :func:`~saddlesvm.rows.matrix.is_little`, and if the loss has kinks, only with at least this
# ``C ||x_i||^2`` of the median row: descent solves easier problems in a few epochs. Measured on
# digits and on 2,000 x 95 to 30,000 x 8: beside the solvers for any size, smooth losses take .46 to
# 1.12 of the time up to 2.5 times, and .6 to 1.57 at 4 times; the hinge .36 to 1.02 with C = 1 and
# 100, and 3 to 4 with C = .01 (27 November 2026).
TIMES_LITTLE = 2.5
LEAST_CURVATURE = 10.0


def begin_runs(phase: str, small: Small, u: np.ndarray) -> Runs:
    """Return the runs of a phase; Newton's method begins near the weights u."""
    if phase == DENSE:
        return NewtonRuns(small, u)
    return InteriorRuns(small)


def solve_together(phase: str, small: Small, relative_gap: float, most: int) -> BestPoints:
    """Solve problems from zero, several only without a free intercept; return the best points.

    A run ends at the relative gap, if rounding leaves nothing to gain, or after `most` steps.
    """
    zero = np.zeros(small.Z.shape[1])
    runs = begin_runs(phase, small, zero)
    best = BestPoints(small)
    if runs.step_together:
        advance(runs, best, relative_gap, most)
        return best
    # One run after the other.
    for k in range(len(small.y)):
        live = np.array([k])
        advance(begin_runs(phase, small.pick(live), zero), best, relative_gap, most, live)
    return best


@dataclass
class SmallState(State):
    """The state of a run on a small problem; an epoch is one step.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        The best weights so far.
    alpha : ndarray of shape (n_all,)
        The best dual point so far.
    small : Small
        The problem as a matrix.
    runs : Runs
        The point that the run stands at.
    best_points : BestPoints
        The best of its points.
    """

    estimate_is_gap: bool = True
    alpha: np.ndarray = field(default_factory=empty_array)
    small: Small = field(kw_only=True, repr=False)
    runs: Runs = field(kw_only=True, repr=False)
    best_points: BestPoints = field(kw_only=True, repr=False)

    @property
    def stuck(self) -> bool:
        """True if rounding leaves nothing to gain."""
        return bool(self.best_points.stuck[0])

    def show_best(self, problem: Problem) -> None:
        """Take over the best weights and dual variables, and their gap."""
        self.w = self.small.feature_weights(self.best_points.u)[0]
        self.alpha = problem.scatter(self.best_points.a[0])
        self.estimate = float(self.best_points.gaps()[0])


@dataclass(frozen=True)
class SmallSolver(SolverBase):
    """A method for small problems, one of the phases above, as a solver."""

    name: ClassVar[str] = "small"
    phase: str

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> SmallState:
        """Begin at zero, or at the starting point."""
        small = Small(problem)
        with blas_for(0.0), np.errstate(all="ignore"):
            u = small.starting_weights(start)
            best = BestPoints(small)
            runs = begin_runs(self.phase, small, u)
            if start is not None and start.alpha is not None and start.alpha.any():
                best.keep(np.arange(1), small.evaluate(u[None], problem.gather(start.alpha)[None]))
            state = SmallState(
                empty_array(), active=problem.members.size, small=small, runs=runs, best_points=best
            )
            state.show_best(problem)
        return state

    def step(self, problem: Problem, state: SmallState, budget: Budget) -> SmallState:
        """Do steps until the gap is as small as asked for, or the budget is used up."""
        best = state.best_points
        before = int(best.steps[0])
        # A step visits all rows.
        most = max(1, budget.rows // state.small.size)
        if not state.stuck and state.estimate > budget.relative_gap:
            with blas_for(0.0), np.errstate(all="ignore"):
                advance(state.runs, best, budget.relative_gap, most)
            state.show_best(problem)
        taken = int(best.steps[0]) - before
        state.rows_touched += taken * state.small.size
        # If there is nothing to do, that counts as an epoch, too.
        state.epochs += float(max(taken, 1))
        state.active = state.runs.count_active()
        state.remark = f"{self.phase}, step {best.steps[0]}: {state.active} rows are active"
        return state

    def solution(self, problem: Problem, state: SmallState) -> Point:
        """Return the best primal and the best dual point so far."""
        return Point(state.w, state.alpha)

    def last_point(self, problem: Problem, state: SmallState) -> Point:
        """Return the point of the last step; the best one if a resumed run has done none."""
        found = state.best_points.last
        if found is None:
            return self.solution(problem, state)
        return Point(state.small.feature_weights(found.u)[0], problem.scatter(found.alpha[0]))


SMALL = {phase: SmallSolver(phase) for phase in (DENSE, INTERIOR)}


def small_phase(problem: Problem) -> str | None:
    """Return the name of the solver of a small problem; None if the solvers here do not take it.

    They take problems with few values, whose penalty is half a square, or the l1 norm if the loss
    is made of lines and parabolas.
    """
    intercept = problem.intercept
    if type(problem) is not Problem or not problem.holds_rows or not intercept.homogeneous:
        return None
    # The l1 norm: the interior point method needs pieces of parabolas, and more rows than features.
    if isinstance(problem.penalty, L1):
        is_tall = problem.n_features < problem.members.size
        has_pieces = traits_of(problem.loss).parabolic
        phase = None
        if is_tall and has_pieces and not intercept.constrained:
            phase = INTERIOR
    elif not problem.is_plain:
        phase = None
    # Half a square: Newton's method if the loss has slopes everywhere, else the interior point.
    elif problem.is_smooth:
        phase = DENSE
    elif has_bounded_slopes(problem.loss):
        phase = INTERIOR
    else:
        phase = None
    if phase is None or not is_small_enough(problem):
        return None
    return phase


def is_small_enough(problem: Problem) -> bool:
    """Return True if the solvers here take less time than those for problems of any size."""
    if problem.is_small:
        return True
    # Larger ones are dense, so that NumPy makes their sums anyway.
    if problem.sparse or not problem.in_arrays:
        return False
    X = problem.X
    if not is_little(X.n_values, X.n_rows, problem.n_features, times=TIMES_LITTLE):
        return False
    return problem.is_smooth or coordinate_curvature(problem) >= LEAST_CURVATURE
