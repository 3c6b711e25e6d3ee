"""How an objective bends: the curvature of a coordinate step, and the rows that bend."""

from __future__ import annotations

import numpy as np

from saddlesvm.problem.loss import Loss, methods_of
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.terms import silent, weights_or_one
from saddlesvm.solvers.base import SAME_SLOPES

# Rows, roughly, from which a median is taken, and by which rows that bend are counted; derived: the
# error of a median is 1 %.
TYPICAL_ROWS = 10_000


def bends_at_zero(loss: Loss) -> bool:
    """Return False for a loss of labels that is linear around zero scores."""
    return not is_classification(loss) or loss.curvature(0.0, 1.0) > 0.0


def coordinate_curvature(problem: Problem) -> float:
    """Return the median curvature of a coordinate step, ``C ||x_i||^2``."""
    few = problem.members[:: max(1, problem.members.size // TYPICAL_ROWS)]
    norms = problem.norms[few]
    norms = norms[norms > 0.0]
    return problem.C * float(np.median(norms)) if norms.size else problem.C


def count_bending(problem: Problem, alpha: np.ndarray) -> int:
    """Return how many members bend at a dual point, of very many rows as far as a sample says.

    At zero all of them count, as they do there if the loss is smooth.
    """
    if not alpha.any():
        return int(problem.members.size)
    step = max(1, problem.members.size // TYPICAL_ROWS)
    return step * int(np.count_nonzero(is_bending(problem, problem.members[::step], alpha)))


@silent
def is_bending(problem: Problem, rows: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return which of some rows have a dual variable inside its bounds and off a corner."""
    terms = problem.pointwise
    s = weights_or_one(terms.weights, rows)
    left, right = methods_of(terms.loss).slopes(terms.loss, alpha[rows], 0.0, terms.y[rows], s)
    bending: np.ndarray = (left > -np.inf) & (right < np.inf) & (right - left < SAME_SLOPES)
    return bending


def needs_no_proximity(problem: Problem, alpha: np.ndarray, per_feature: float = 1.0) -> bool:
    """Return True for a smooth loss whose bending rows span the features.

    If its derivative has corners, other rows bend after each step: there must be more than
    `per_feature` of them per feature.
    """
    if not problem.is_smooth or problem.is_cornerless:
        return problem.is_smooth
    return count_bending(problem, alpha) > per_feature * problem.n_features
