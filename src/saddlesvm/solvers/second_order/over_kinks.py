"""A step past corners: Newton's model, in which the rows taken along keep their true losses.

At the point w0 of a pass, with H the matrix of the other rows that bend and v the pull of all rows but those taken
along,

    min over w of  1/2 w'Rw - v.w + 1/2 (w - w0)'H (w - w0) + C sum_{i taken} s_i phi_i(x_i.w).

With ``R + H = LL'`` and ``u = L'w`` that is a problem of the usual kind over few rows ``L^-1 x_i``, which the
second-order method for rows in memory solves. Without a row taken along it is Newton's step. A free intercept is
charged a small part of the rows' own curvature, times the square of its move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.proven_sums import Sums, objectives
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.problem.sums import loss_sums, margins
from saddlesvm.rows.layouts import Rows, as_rows, n_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Best
from saddlesvm.solvers.second_order.corners import Corners, Taken, joined
from saddlesvm.solvers.second_order.equations import FREE_PENALTY
from saddlesvm.solvers.second_order.kernels import combine
from saddlesvm.solvers.second_order.linear_algebra import BLAS_SPEED, cholesky, widened
from saddlesvm.solvers.second_order.newton import Newton

CAREFUL = 0.03  # gap of the model's solution, relative to its fall so far
ROUNDED = 1e-13  # the same, relative to the objective: rounding hides less
MOST_STEPS = 60  # Newton steps on the model
HELD = 1e-3  # share of the rows' own curvature along a free intercept that its move is charged
AT_ONCE = 1024  # rows that are widened and solved for together


class Model(NamedTuple):
    """The model of the step besides the matrix and the rows taken along.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        The point looked at.
    pull : ndarray of shape (d + 1,)
        ``C sum_i a_i x_i`` over all rows.
    primal : float
        The objective there, in the C form.
    curvature : float
        ``C sum_i s_i phi_i'' ||x_i||^2`` over all rows.
    loss : Loss
    C : float
    regularizer : Regularizer
    memory : float
        Bytes for factors.
    """

    w: np.ndarray
    pull: np.ndarray
    primal: float
    curvature: float
    loss: Loss
    C: float
    regularizer: Regularizer
    memory: float


class Step(NamedTuple):
    """A step, by how much the model falls, and the least share of a diagonal entry that is left to its pivot."""

    step: np.ndarray
    fall: float
    alike: float

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.step.nbytes + 16


def step_over_kinks(matrix: np.ndarray, corners: Corners, model: Model) -> Step:
    """The step to the model's minimum; `matrix`, used up, is that of the other rows, its lower triangle."""
    w, diagonal = model.w, np.arange(model.w.size)
    bent = model.regularizer.curvature(w)
    lift = np.maximum(bent, FREE_PENALTY)
    if model.regularizer.intercept.constrained:
        lift[-1] = max(FREE_PENALTY, HELD * model.curvature / w.size)
    matrix[diagonal, diagonal] += lift
    lifted = matrix[diagonal, diagonal]
    pull = model.pull.copy()
    taken = joined(corners.pieces) if corners.pieces else None
    count = 0 if taken is None else taken.alpha.size
    if taken is not None:
        combine(taken.X, np.arange(count), -model.C * taken.alpha, pull)
    with blas_for(w.size**2 * (w.size / 3.0 + count) / BLAS_SPEED):
        try:
            factor = np.tril(cholesky(matrix))
        except np.linalg.LinAlgError:
            gradient = bent * w - model.pull
            return Step(-gradient / lifted, 0.5 * float(gradient @ (gradient / lifted)), 0.0)
        ahead = -solve_triangular(factor, bent * w - pull, lower=True)
        fall = 0.5 * float(ahead @ ahead)
        if taken is not None:
            known = factor.T @ w  # L'w0
            problem = _problem(_shortened(taken.X, factor), known + ahead, taken, model)
            found, fall = _solved(problem, known, taken.alpha, model)
            ahead = found - known
        step = solve_triangular(factor, ahead, lower=True, trans="T")
    return Step(step, fall, float((factor.diagonal() ** 2 / lifted).min()))


def _shortened(X: Rows, factor: np.ndarray) -> np.ndarray:
    """``L^-1 x_i`` of all rows, shape (n, d + 1)."""
    count = n_rows(X)
    found = np.empty((count, factor.shape[0]))
    for start in range(0, count, AT_ONCE):
        some = np.arange(start, min(start + AT_ONCE, count))
        found[some] = solve_triangular(factor, widened(X, some, np.ones(some.size)).T, lower=True).T
    return found


def _problem(rows: np.ndarray, pulled: np.ndarray, taken: Taken, model: Model) -> Problem:
    """The problem over the rows taken along; its last place, that of a virtual feature, is zero."""
    members, X = np.arange(len(rows), dtype=np.int32), as_rows(rows)
    return Problem(
        X=X,
        y=taken.y,
        loss=model.loss,
        C=model.C,
        weights=taken.weights,
        norms=squared_norms(X, members.size),
        members=members,
        n=members.size,
        fixed=np.append(pulled, 0.0),
    )


def _solved(problem: Problem, start: np.ndarray, alpha: np.ndarray, model: Model) -> tuple[np.ndarray, float]:
    """The model's minimum, and by how much it is lower than the start."""
    solver = Newton(warm_up=0, memory=model.memory)
    begin = np.append(start, 0.0)
    paid = loss_sums(problem.pointwise, problem.members, margins(problem, begin), 0.0, alpha)[0]
    begun = objectives(problem.C, Sums(float(paid), 0.0, problem.regularizer.value(begin), 0.0))[0]
    state = solver.init(problem, 0, Point(begin, alpha))

    def enough(best: Best) -> float:
        return max(CAREFUL * (begun - best.primal), ROUNDED * abs(model.primal))

    state = solver.steps_until(problem, state, enough, MOST_STEPS)
    return state.best.w[:-1], begun - state.best.primal
