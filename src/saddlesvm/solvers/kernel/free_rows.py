"""The dual of a kernel problem over the rows whose variables are within their bounds: linear equations, solved at once.

With the others fixed, and ``f = K beta``, the free variables F of an optimum solve

    (K + diag(r))_FF d + b = (y - f - r beta -+ tube)_F,        sum d = what the sum of beta lacks,

the second where the intercept is free. A step goes along d as far as the bounds allow. The variables that reach one
stay there, and the others are solved for again: the step of an active set method. Which of the fixed ones should leave
their bounds, pair steps find out.

Source: Nocedal and Wright (2006), "Numerical Optimization", section 16.5.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from saddlesvm.problem.kernel import KernelProblem

RIDGE = 1e-12  # on the diagonal, relative to the largest kernel value: what has no curvature goes to its bounds
TURNS = 3  # full steps, each of which corrects the rounding of the one before


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
