"""A solver from outside the package that reads rows by passes alone: gradient steps, wherever the rows are.

Source: Barzilai and Borwein (1988), "Two-point step size gradient methods", equation 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import dual_of_margins
from saddlesvm.solvers.base import Budget, SolverBase, State


@dataclass
class DescentState(State):
    """The state of a run; `back` and `slope` are the last point and the gradient there."""

    back: np.ndarray = field(default_factory=lambda: np.empty(0))
    slope: np.ndarray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class TwoPointDescent(SolverBase):
    """Steps along the gradient, each as long as the last change of the gradient asks for."""

    name: ClassVar[str] = "two-point"
    over_passes: ClassVar[bool] = True

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> DescentState:
        """Begin at zero, or at given weights; for smooth losses without a free intercept."""
        if problem.intercept.constrained or not is_smooth(problem.loss):
            raise ValueError("the solver 'two-point' is for smooth losses, and has no free intercept")
        known = start is not None and start.w is not None
        w = np.array(start.w, dtype=np.float64) if known else np.zeros(problem.n_features + 1)  # type: ignore[union-attr]
        return DescentState(w=w, active=problem.members.size)

    def step(self, problem: Problem, state: DescentState, budget: Budget) -> DescentState:
        """A pass for the margins, one for the gradient, and a step."""
        alpha = np.zeros(problem.y.size)
        dual_of_margins(problem.pointwise, problem.members, problem.passes.margins(state.w), 0.0, alpha)
        gradient = state.w - problem.C * problem.passes.pull(alpha)
        if state.back.size:
            moved = state.w - state.back
            turned = gradient - state.slope
            length = moved @ moved / max(moved @ turned, 1e-300)
        else:
            squares = problem.norms[problem.members].sum()
            length = 1.0 / (1.0 + problem.C * problem.loss.largest_curvature() * squares)
        state.back = state.w
        state.slope = gradient
        state.w = state.w - length * gradient
        state.rows_touched += problem.members.size
        state.epochs += 1.0
        return state

    def solution(self, problem: Problem, state: Any) -> Point:
        """The weights; the certificate makes dual variables of them."""
        return Point(state.w)
