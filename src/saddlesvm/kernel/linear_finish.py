"""The end of a hard kernel problem whose matrix is held whole: a linear problem over a factor of it.

Where C is huge, steps along pairs of variables creep: each gains a little of an objective that bends hardly at all.
With ``K = L L'``, rank r, the kernel problem is the linear one over the rows of L, which takes some fifteen steps of
the interior point method whatever C is, or more of Newton's method with a squared loss and a huge C
(:mod:`saddlesvm.solvers.small`). Its dual point is one of the kernel problem. It shows which variables are at their
bounds; linear equations give the others. With ``f = K beta``, the free variables F of an optimum solve

    (K + diag(r))_FF d + b = (y - f - r beta -+ tube)_F,        sum d = what the sum of beta lacks,

the second where the intercept is free. A step goes along d as far as the bounds allow. The variables that reach one
stay there, and the others are solved for again: the step of an active set method. Which of the fixed ones should leave
their bounds, pair steps find out.

Source: Fine and Scheinberg (2001), "Efficient SVM training using low-rank kernel representations"; Nocedal and Wright
(2006), "Numerical Optimization", section 16.5.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dposv, dpstrf

from saddlesvm.kernel.kernel_certificate import nearest_feasible
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.problem.intercepts import Absent, Intercept
from saddlesvm.problem.loss import has_array_methods, has_bounded_slopes, is_smooth
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.small.interior_point import InteriorPoint
from saddlesvm.solvers.small.newton import SmallNewton

RANK = 1e-14  # share of the largest kernel value of a point with itself below which a pivot counts as zero
FIXED = 2e6  # updates of slopes, in pair steps, that take as long as twenty Newton steps on nothing
OF_STEP = 40  # such updates that a pair step takes besides those of its rows
MOST_STEPS = 300  # Newton's method with a squared loss takes some 20 more for each factor of 100 in C
RIDGE = 1e-12  # on the diagonal, relative to the largest kernel value: what has no curvature goes to its bounds
TURNS = 3  # full steps, each of which corrects the rounding of the one before


def can_finish(problem: KernelProblem) -> bool:
    """Whether a linear problem over a factor of the matrix is the same problem."""
    loss = problem.loss
    plain = problem.table is not None and problem.views is None and not problem.groups
    return plain and has_array_methods(loss) and (is_smooth(loss) or has_bounded_slopes(loss))


def work_of(problem: KernelProblem) -> float:
    """Pair steps that are as much work as the finish.

    It takes some 20 Newton steps of ``n r^2`` multiplications, in a matrix product. In a pair step each of n
    multiplications takes 20 times as long.
    """
    rank = min(problem.n, problem.X.shape[1]) if is_linear(problem) else problem.n
    return FIXED / (problem.n + OF_STEP) + float(rank) ** 2


def is_linear(problem: KernelProblem) -> bool:
    """Whether the kernel matrix is that of the rows' own products."""
    return problem.kernel.metric == "linear"


def linear_dual(problem: KernelProblem, relative_gap: float) -> np.ndarray | None:
    """A feasible dual point, shape (n,), of the linear problem over a factor of the matrix; None where rounding leaves
    none.

    Parameters
    ----------
    problem : KernelProblem
    relative_gap : float
        To come to, if rounding allows.
    """
    weights = problem.weights if problem.weights.size else None
    own: Intercept = problem.intercept if problem.intercept.constrained else Absent()
    rows = as_rows(factor_of(problem), own.scale)  # a regularized intercept is a part of the kernel
    linear = make_problem(rows, problem.y, problem.loss, C=problem.C, weights=weights, intercept=own)
    solver = SmallNewton() if is_smooth(problem.loss) else InteriorPoint()
    state = solver.init(linear, 0)
    state = solver.step(linear, state, Budget(MOST_STEPS * problem.n, relative_gap))
    return nearest_feasible(problem, problem.C * state.alpha) if np.isfinite(state.alpha).all() else None


def factor_of(problem: KernelProblem) -> np.ndarray:
    """L, shape (n, r), with ``L L'`` the kernel matrix of the problem, but for rounding: the rows themselves, where the
    kernel is their product and they are short."""
    X = problem.X
    if not is_linear(problem) or X.shape[1] >= problem.n:
        assert problem.gram is not None
        return factor(problem.gram + problem.offset)
    rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    extra = np.full((problem.n, 1), math.sqrt(problem.offset))
    return np.ascontiguousarray(np.hstack([rows, extra]) if problem.offset else rows)


def factor(gram: np.ndarray) -> np.ndarray:
    """L, shape (n, r), with ``L L' = gram``, but for rounding.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
    """
    found, order, rank, _ = dpstrf(gram, lower=1, tol=RANK * float(np.abs(gram.diagonal()).max()))
    rank = max(int(rank), 1)
    L = np.empty((gram.shape[0], rank))
    L[order - 1] = np.tril(found)[:, :rank]
    return L


def solved_within(problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
    """The dual point of the best values of the free rows, shape (n,), those that reach a bound on the way fixed there.

    Parameters
    ----------
    problem : KernelProblem
        Without views and groups, with a table of kernel rows.
    beta : ndarray of shape (n,)
        A feasible dual point.
    """
    held = problem.table
    assert held is not None
    beta, (low, high), ridge = beta.copy(), problem.box(), problem.ridge()
    if problem.tube:  # the slope jumps at zero: each variable stays on its side
        low, high = np.where(beta > 0.0, 0.0, low), np.where(beta < 0.0, 0.0, high)
    total = problem.C * problem.intercept.total
    largest, full = float(held.table.diagonal.max()) + problem.offset, 0
    while full < TURNS:
        free = np.flatnonzero((beta > low) & (beta < high) & ((beta != 0.0) | (problem.tube == 0.0)))
        if free.size == 0:
            break
        rows = held.rows(free)
        f = rows @ beta + problem.offset * beta.sum()
        wish = problem.y[free] - f - ridge[free] * beta[free] - problem.tube * np.sign(beta[free])
        K = rows[:, free] + problem.offset
        K.flat[:: free.size + 1] += ridge[free] + RIDGE * largest
        lacking = total - float(beta.sum()) if problem.intercept.constrained else None
        step = best_step(K, wish, lacking)
        if not np.isfinite(step).all():
            break
        room = np.where(step > 0.0, high[free], low[free]) - beta[free]
        share = np.divide(room, step, out=np.full(free.size, np.inf), where=step != 0.0)
        length = min(1.0, float(share.min()))
        full += length == 1.0
        beta[free] = np.where(share <= length, beta[free] + room, beta[free] + length * step)
    return beta


def best_step(K: np.ndarray, wish: np.ndarray, lacking: float | None) -> np.ndarray:
    """The change of the free variables that their equations ask for, shape (free,); not finite where rounding makes the
    matrix indefinite.

    Parameters
    ----------
    K : ndarray of shape (free, free)
        With the ridge; overwritten.
    wish : ndarray of shape (free,)
        How steeply the dual rises along each.
    lacking : float, optional
        What the changes sum to.
    """
    if lacking is None:
        _, step, failed = dposv(K, wish, lower=1)
        return step if not failed else np.full(wish.size, np.nan)
    size = float(K.diagonal().mean())
    K += size  # nothing else changes where the sum is given, and a linear kernel's matrix gains the rank that it needs
    _, found, failed = dposv(K, np.column_stack([wish, np.ones(wish.size)]), lower=1)
    if failed:
        return np.full(wish.size, np.nan)
    moved, level = found.T
    return moved - ((moved.sum() - lacking) / level.sum()) * level
