"""A solver from outside the package: dual coordinate ascent that goes forth and back over the rows, in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from saddlesvm import register_solver
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.base import Budget, DualState, SolverBase, start_alpha


@register_solver
@dataclass(frozen=True)
class ForthAndBack(SolverBase):
    """Maximise the dual over one row after the other, first to last and last to first; no free intercept.

    Parameters
    ----------
    back : bool, default=True
        False begins again at the first row.
    """

    name: ClassVar[str] = "forth-and-back"
    back: bool = True

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> DualState:
        """Zeros, or the given dual point; nothing is drawn at random."""
        if problem.intercept.constrained:
            raise ValueError("the solver 'forth-and-back' has no free intercept: use intercept='regularized'")
        order = problem.members.copy()
        w = np.zeros(problem.n_features + 1)
        alpha = start_alpha(problem, start)
        return DualState(w=w, alpha=alpha, order=order, active=order.size)

    def step(self, problem: Problem, state: DualState, budget: Budget) -> DualState:
        """Visit ``budget.rows`` rows: ``alpha_i += argmax of the dual along alpha_i``."""
        rows = {i: problem.X.dense_row(i) for i in problem.members.tolist()}
        w = problem.C * sum(state.alpha[i] * row for i, row in rows.items())
        for _ in range(budget.rows):
            back, place = divmod(state.rows_touched, state.order.size)
            i = int(state.order[-1 - place if self.back and back % 2 else place])
            s = float(problem.weights[i]) if problem.weights.size else 1.0
            q = problem.C * problem.norms[i]
            change = problem.loss.dual_step(state.alpha[i], float(rows[i] @ w), problem.y[i], q, s)
            state.alpha[i] += change
            w += problem.C * change * rows[i]
            state.rows_touched += 1
        state.w = w
        state.epochs = state.rows_touched / state.order.size
        return state

    def solution(self, problem: Problem, state: Any) -> Point:
        """The dual point; the certificate makes the weights of it."""
        return Point(alpha=state.alpha)
