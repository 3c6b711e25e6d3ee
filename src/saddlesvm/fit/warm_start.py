"""The starting point of a problem: from a solution for another C, or from given weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from saddlesvm.problem.bounds import dual_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.responses import best_scale
from saddlesvm.problem.sums import bring_back, conjugate_sum, dual_of_margins, dual_weights, margins

SCALE_PRECISION = 0.02  # relative precision of the factor that scales a starting point; guessed


def start_from_duals(
    problem: Problem, duals: np.ndarray, former_C: float, w: np.ndarray | None = None
) -> Point:
    """Return a feasible starting point from the dual variables of a problem with another C.

    The function tries three points: the duals as they are, cut to their bounds (right for the rows
    inside their bounds, and if C falls), the duals scaled with C (right for the rows at their upper
    bound, and if C grows; DeCoste and Wagstaff 2000, "Alpha seeding for support vector machines"),
    and the sub-gradients at the former weights' margins (right for smooth losses). It scales each
    for the best dual objective, and returns the best point.

    Parameters
    ----------
    problem : Problem
    duals : ndarray of shape (n_all,)
        ``former_C * alpha`` of the former problem: the dual variables of the C form.
    former_C : float
    w : ndarray of shape (d + 1,), optional
        Weights of the former problem, for the solvers that can begin from them.
    """
    return Point(w, _choose_best(problem, _candidates(problem, duals, former_C, w)))


def start_from_weights(problem: Problem, w: np.ndarray) -> Point:
    """Return given weights with dual variables: the scaled sub-gradients at their margins.

    If w is optimal and the loss smooth, these are the optimal dual variables; rows at the corner of
    a loss get some value between its slopes. The scale is the best for the dual objective.

    Parameters
    ----------
    problem : Problem
    w : ndarray of shape (d + 1,)
    """
    return Point(w, _choose_best(problem, iter([_sub_gradients(problem, w)])))


def _choose_best(problem: Problem, candidates: Iterator[np.ndarray]) -> np.ndarray:
    """Return the candidate with the best dual objective, scaled; zeros if none beats them."""
    best = np.zeros(problem.y.size)
    best_dual = 0.0
    for alpha in candidates:
        # Make the candidate feasible: inside its bounds, and with the sum of a free intercept.
        bring_back(problem.pointwise, problem.members, alpha)
        alpha = problem.balance(alpha)

        # Find the factor t with the largest dual objective of t * alpha.
        weights = dual_weights(problem, alpha)
        factor = best_scale(problem, alpha, weights, SCALE_PRECISION)
        conjugates = conjugate_sum(problem.pointwise, problem.members, alpha, factor)
        conjugate_of_weights = problem.regularizer.conjugate_along(weights)(factor)
        dual = dual_of(problem.C, conjugates, conjugate_of_weights)
        if dual > best_dual:
            best = factor * alpha
            best_dual = dual
    return best


def _sub_gradients(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Return the sub-gradients of the losses at the margins of w, as dual variables."""
    alpha = np.zeros(problem.y.size)
    dual_of_margins(problem.pointwise, problem.members, margins(problem, w), 0.0, alpha)
    return alpha


def _candidates(
    problem: Problem, duals: np.ndarray, former_C: float, w: np.ndarray | None
) -> Iterator[np.ndarray]:
    """Yield the points that :func:`start_from_duals` tries."""
    # Divided by the new C, the duals stay as they are; by the former C, they are scaled with C.
    for divisor in {problem.C, former_C}:
        alpha = np.zeros(duals.size)
        alpha[problem.members] = duals[problem.members] / divisor
        yield alpha
    if w is not None and former_C != problem.C:
        yield _sub_gradients(problem, w)
