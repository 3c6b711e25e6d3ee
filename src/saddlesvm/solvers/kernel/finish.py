"""The end of a hard kernel problem whose matrix is held whole: a linear problem over a factor of it.

Where C is huge, steps along pairs of variables creep: each gains a little of an objective that bends hardly at all.
With ``K = L L'``, rank r, the kernel problem is the linear one over the rows of L, whose weights u are found in some
fifteen steps of the interior point method whatever C is, or in more of Newton's method with a squared loss and a huge C
(:mod:`saddlesvm.solvers.small`). Its dual point is one of the kernel problem, and its model is that of the coefficients

    beta = sum over r chosen points,     L_chosen' beta = u,     so that  K beta = L u  and  beta' K beta = ||u||^2.

The model of the dual point itself would be far from u: its r directions are sums of n terms of size C.

Source: Fine and Scheinberg (2001), "Efficient SVM training using low-rank kernel representations".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpstrf, dtrtrs

from saddlesvm.problem.array_losses import has_array_methods
from saddlesvm.problem.intercepts import Absent, Intercept
from saddlesvm.problem.kernel import KernelProblem
from saddlesvm.problem.kernel_certificate import nearest_feasible
from saddlesvm.problem.loss import has_bounded_slopes, is_smooth
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.deadline import time_is_up
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.small.interior_point import InteriorPoint
from saddlesvm.solvers.small.newton import SmallNewton

__all__ = ["Finish", "can_finish", "finish", "work_of"]

RANK = 1e-14  # share of the largest kernel value of a point with itself below which a pivot counts as zero
NEWTON_STEPS = 20.0  # that the linear problem takes, mostly
PRODUCT = 0.05  # time of a multiplication in a matrix product, relative to one in a pair step
FIXED = 50_000.0  # pair steps that are as much work as the calls of a Newton step on nothing
MOST_STEPS = 300  # Newton's method with a squared loss takes some 20 more for each factor of 100 in C


class Finish(NamedTuple):
    """What the linear problem found.

    Attributes
    ----------
    model : ndarray of shape (n,)
        Coefficients of the model.
    beta : ndarray of shape (n,)
        A feasible dual point.
    estimate : float
        The relative gap between the two, without what rounding does in the kernel problem.
    """

    model: np.ndarray
    beta: np.ndarray
    estimate: float


def can_finish(problem: KernelProblem) -> bool:
    """Whether a linear problem over a factor of the matrix is the same problem."""
    loss = problem.loss
    plain = problem.gram is not None and problem.views is None and not problem.groups
    return plain and has_array_methods(loss) and (is_smooth(loss) or has_bounded_slopes(loss))


def work_of(problem: KernelProblem) -> float:
    """Pair steps that are as much work as the finish: ``n r^2`` multiplications a Newton step, ``n`` a pair step."""
    return FIXED + NEWTON_STEPS * PRODUCT * float(problem.n) ** 2


def finish(problem: KernelProblem, relative_gap: float) -> Finish | None:
    """Solve a problem by the linear one over a factor of its matrix; None where rounding leaves no solution.

    Parameters
    ----------
    problem : KernelProblem
    relative_gap : float
        To come to, if rounding allows.
    """
    assert problem.gram is not None
    L, chosen = factor(problem.gram + problem.offset)  # a regularized intercept is a part of the kernel
    weights = problem.weights if problem.weights.size else None
    own: Intercept = problem.intercept if problem.intercept.constrained else Absent()
    rows = as_rows(L, own.scale)
    linear = make_problem(rows, problem.y, problem.loss, C=problem.C, weights=weights, intercept=own)
    solver = SmallNewton() if is_smooth(problem.loss) else InteriorPoint()
    state = solver.init(linear, 0)
    budget = Budget(L.shape[0], relative_gap)
    while not state.stuck and state.estimate > relative_gap and state.steps < MOST_STEPS and not time_is_up():
        state = solver.step(linear, state, budget)
    if not (np.isfinite(state.w).all() and np.isfinite(state.alpha).all()):
        return None
    coefficients, failed = dtrtrs(L[chosen], state.w[: L.shape[1]], lower=1, trans=1)
    if failed:
        return None
    model = np.zeros(problem.n)
    model[chosen] = coefficients
    return Finish(model, nearest_feasible(problem, problem.C * state.alpha), float(state.estimate))


def factor(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L with ``L L' = gram``, but for rounding, and the points whose rows in L are a triangle.

    Parameters
    ----------
    gram : ndarray of shape (n, n)

    Returns
    -------
    L : ndarray of shape (n, r)
    chosen : ndarray of shape (r,)
        ``L[chosen]`` is lower triangular with a positive diagonal.
    """
    found, order, rank, _ = dpstrf(gram, lower=1, tol=RANK * float(np.abs(gram.diagonal()).max()))
    rank = max(int(rank), 1)
    L = np.empty((gram.shape[0], rank))
    L[order - 1] = np.tril(found)[:, :rank]
    return L, order[:rank] - 1
