"""The end of a hard kernel problem that holds its matrix: a linear problem over a factor of it.

If C is huge, steps along pairs of variables creep: each gains a little of an objective that hardly
bends. With ``K = L L'``, rank r, the kernel problem is the linear problem over the rows of L, which
takes some fifteen steps of the interior point method (:mod:`saddlesvm.solvers.small`), whatever C
is. Its dual point is a dual point of the kernel problem, and shows which variables are at their
bounds. Linear equations give the others.
With ``f = K beta``, the free variables F of an optimum solve

    K_FF d + b = (y - f -+ tube)_F,        sum d = what the sum of beta lacks,

the second if the intercept is free. A step goes along d as far as the bounds allow. The variables
that reach a bound stay there, and the others are solved for again: the step of an active-set
method. Pair steps find out which of the fixed variables should leave their bounds.

Source: Fine and Scheinberg (2001), "Efficient SVM training using low-rank kernel representations";
Nocedal and Wright (2006), "Numerical Optimization", section 16.5.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dposv, dpstrf

from saddlesvm.kernel.kernel_certificate import nearest_feasible
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.problem.intercepts import Absent, Intercept
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.small.dense import Small
from saddlesvm.solvers.small.small_solver import INTERIOR, solve_together

RANK = 1e-14  # share of the largest k(x, x) below which a pivot counts as zero
# Updates of slopes, in pair steps, that take as long as twenty Newton steps on nothing (measured)
FIXED = 2e6
OF_STEP = 40  # updates that a pair step takes besides those of its rows (measured)
MOST_STEPS = 300  # of the interior point method (guessed)
# On the diagonal, relative to the largest k(x, x): what has no curvature goes to its bounds
RIDGE = 1e-12
TURNS = 3  # full steps, each of which corrects the rounding of the one before


def can_finish(problem: KernelProblem) -> bool:
    """Return True if a linear problem over a factor of the matrix is the same problem."""
    return problem.table is not None and problem.views is None and not problem.groups


def work_of(problem: KernelProblem) -> float:
    """Return how many pair steps are as much work as the finish."""
    # The finish takes some 20 Newton steps of n r^2 multiplications, in a matrix product. In a pair
    # step each of n multiplications takes 20 times as long: that makes r^2 steps.
    rank = problem.n
    if is_linear(problem):
        rank = min(problem.n, problem.X.shape[1])
    return FIXED / (problem.n + OF_STEP) + float(rank) ** 2


def is_linear(problem: KernelProblem) -> bool:
    """Return True if the kernel matrix is that of the rows' own products."""
    return problem.kernel.metric == "linear"


def linear_dual(problem: KernelProblem, relative_gap: float) -> np.ndarray | None:
    """Return a feasible dual point of the linear problem over a factor, or None.

    Parameters
    ----------
    relative_gap : float
        The gap to reach, if rounding allows.
    """
    weights = None
    if problem.weights.size:
        weights = problem.weights
    intercept: Intercept = Absent()
    if problem.intercept.constrained:
        intercept = problem.intercept
    rows = as_rows(factor_of(problem), intercept.scale)
    linear = make_problem(
        rows, problem.y, problem.loss, C=problem.C, weights=weights, intercept=intercept
    )
    with blas_for(0.0), np.errstate(all="ignore"):
        best = solve_together(INTERIOR, Small(linear), relative_gap, MOST_STEPS)
    alpha = linear.scatter(best.a[0])
    if not np.isfinite(alpha).all():
        return None
    return nearest_feasible(problem, problem.C * alpha)


def factor_of(problem: KernelProblem) -> np.ndarray:
    """Return L with ``L L'`` the kernel matrix but for rounding; or the rows, if fewer."""
    X = problem.X
    if not is_linear(problem) or X.shape[1] >= problem.n:
        assert problem.gram is not None
        return factor(problem.gram)
    rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    return np.ascontiguousarray(rows)


def factor(gram: np.ndarray) -> np.ndarray:
    """Return L, shape (n, r), with ``L L' = gram`` but for rounding."""
    # LAPACK's Cholesky with pivoting: row k of its factor is row order[k] of the matrix.
    tolerance = RANK * float(np.abs(gram.diagonal()).max())
    found, order, rank, _ = dpstrf(gram, lower=1, tol=tolerance)
    rank = max(int(rank), 1)
    L = np.empty((gram.shape[0], rank))
    L[order - 1] = np.tril(found)[:, :rank]
    return L


def solve_free_rows(problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
    """Return the dual point with the best free values; rows that reach a bound are fixed.

    Parameters
    ----------
    problem : KernelProblem
        Without views and groups, with a table of kernel rows.
    beta : ndarray of shape (n,)
        A feasible dual point.
    """
    held = problem.table
    assert held is not None
    beta = beta.copy()
    low, high = problem.box()
    if problem.tube:
        # The slope jumps at zero: each variable stays on its side.
        low = np.where(beta > 0.0, 0.0, low)
        high = np.where(beta < 0.0, 0.0, high)
    total = problem.C * problem.intercept.total
    largest = float(held.table.diagonal.max())
    full_steps = 0
    while full_steps < TURNS:
        free = np.flatnonzero(
            (beta > low) & (beta < high) & ((beta != 0.0) | (problem.tube == 0.0))
        )
        if free.size == 0:
            break
        # The right-hand side: the slope of the dual along each free variable.
        rows = held.rows(free)
        slope = problem.y[free] - rows @ beta - problem.tube * np.sign(beta[free])
        K = rows[:, free]
        K.flat[:: free.size + 1] += RIDGE * largest
        # With a free intercept the sum of beta is given: the step makes up for what it lacks.
        lacking = None
        if problem.intercept.constrained:
            lacking = total - float(beta.sum())
        step = best_step(K, slope, lacking)
        if not np.isfinite(step).all():
            break
        # Go as far as the bounds allow; the variables that stop the step are set to their bounds.
        room = np.where(step > 0.0, high[free], low[free]) - beta[free]
        share = np.divide(room, step, out=np.full(free.size, np.inf), where=step != 0.0)
        length = min(1.0, float(share.min()))
        full_steps += length == 1.0
        beta[free] = np.where(share <= length, beta[free] + room, beta[free] + length * step)
    return beta


def best_step(K: np.ndarray, slope: np.ndarray, lacking: float | None) -> np.ndarray:
    """Return the change of the free variables; not finite if the matrix is indefinite.

    Parameters
    ----------
    K : ndarray of shape (free, free)
        Overwritten.
    slope : ndarray of shape (free,)
        Slopes of the dual.
    lacking : float, optional
        The sum of the changes, if it is given.
    """
    if lacking is None:
        # K step = slope
        _, step, failed = dposv(K, slope, lower=1)
        if failed:
            return np.full(slope.size, np.nan)
        return step
    # A constant on all values changes nothing if the sum is given, and adds the rank that a linear
    # kernel may lack.
    K += float(K.diagonal().mean())
    # K step = slope - b 1 with the intercept b that gives sum(step) = lacking: solve for slope and
    # for 1, then b follows.
    _, solutions, failed = dposv(K, np.column_stack([slope, np.ones(slope.size)]), lower=1)
    if failed:
        return np.full(slope.size, np.nan)
    of_slope, of_ones = solutions.T
    b = (of_slope.sum() - lacking) / of_ones.sum()
    return of_slope - b * of_ones
