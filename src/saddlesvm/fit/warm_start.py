"""The starting point of a problem: from the solution of one with the same rows and another C, or from given weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from saddlesvm.problem.bounds import dual_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.responses import best_scale
from saddlesvm.problem.sums import bring_back, conjugate_sum, dual_of_margins, dual_weights, margins

SCALE_PRECISION = 0.02  # relative precision of the factor that scales a starting point


def carried(problem: Problem, duals: np.ndarray, former_C: float, w: np.ndarray | None = None) -> Point:
    """A feasible starting point, made from the dual variables (in the C form) of a problem that differs in C.

    The function tries three points: the duals as they are, cut to their bounds (right for the rows inside their bounds,
    and when C falls), the duals scaled with C (right for the rows at their upper bound, and when C grows; DeCoste and
    Wagstaff 2000, "Alpha seeding for support vector machines"), and the sub-gradients at the former weights' margins
    (right for smooth losses). It scales each for the best dual objective, and returns the best point.

    Parameters
    ----------
    problem : Problem
    duals : ndarray of shape (n_all,)
        ``former_C * alpha`` of the former problem.
    former_C : float
    w : ndarray of shape (d + 1,), optional
        Weights of the former problem, for the solvers that can begin from them.
    """
    return Point(w, _best_scaled(problem, _candidates(problem, duals, former_C, w)))


def from_weights(problem: Problem, w: np.ndarray) -> Point:
    """Given weights, with the sub-gradients at their margins, scaled for the best dual objective, as dual variables.

    Where w is optimal and the loss smooth, these are the optimal dual variables; rows at the corner of a loss get some
    value between its slopes.

    Parameters
    ----------
    problem : Problem
    w : ndarray of shape (d + 1,)
    """
    return Point(w, _best_scaled(problem, iter([_at_margins(problem, w)])))


def _best_scaled(problem: Problem, candidates: Iterator[np.ndarray]) -> np.ndarray:
    """The candidate, cut to its bounds and scaled, with the best dual objective; zeros where that is better."""
    best, value = np.zeros(problem.y.size), 0.0
    for alpha in candidates:
        bring_back(problem.pointwise, problem.members, alpha)
        alpha = problem.balanced(alpha)
        reached = dual_weights(problem, alpha)
        factor = best_scale(problem, alpha, reached, SCALE_PRECISION)
        conjugates = conjugate_sum(problem.pointwise, problem.members, alpha, factor)
        reached_conjugate = problem.regularizer.conjugate_along(reached)(factor)
        dual = dual_of(problem.C, conjugates, reached_conjugate)
        if dual > value:
            best, value = factor * alpha, dual
    return best


def _at_margins(problem: Problem, w: np.ndarray) -> np.ndarray:
    """The sub-gradients at the margins of w."""
    alpha = np.zeros(problem.y.size)
    dual_of_margins(problem.pointwise, problem.members, margins(problem, w), 0.0, alpha)
    return alpha


def _candidates(problem: Problem, duals: np.ndarray, former_C: float, w: np.ndarray | None) -> Iterator[np.ndarray]:
    for divisor in {problem.C, former_C}:
        alpha = np.zeros(duals.size)
        alpha[problem.members] = duals[problem.members] / divisor
        yield alpha
    if w is not None and former_C != problem.C:
        yield _at_margins(problem, w)
