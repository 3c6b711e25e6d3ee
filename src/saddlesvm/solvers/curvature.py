"""How an objective bends: the curvature of a coordinate step, and the rows that bend."""

from __future__ import annotations

import numpy as np

from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.smoothed import bending_rows

TYPICAL_ROWS = 10_000  # rows, roughly, from which a median is taken; derived: its error is 1 %


def coordinate_curvature(problem: Problem) -> float:
    """Return the median curvature of a coordinate step, ``C ||x_i||^2``."""
    few = problem.members[:: max(1, problem.members.size // TYPICAL_ROWS)]
    norms = problem.norms[few]
    norms = norms[norms > 0.0]
    return problem.C * float(np.median(norms)) if norms.size else problem.C


def count_bending(problem: Problem, alpha: np.ndarray) -> int:
    """Return how many members bend at a dual point.

    At zero all of them count, as they do there if the loss is smooth.
    """
    if not alpha.any():
        return int(problem.members.size)
    mask = np.zeros(problem.y.size)
    bending_rows(problem.pointwise, problem.members, alpha, mask)
    return int(np.count_nonzero(mask))


def needs_no_proximity(problem: Problem, alpha: np.ndarray, per_feature: float = 1.0) -> bool:
    """Return True for a smooth loss whose bending rows span the features.

    If its derivative has corners, other rows bend after each step: there must be more than
    `per_feature` of them per feature.
    """
    if not problem.is_smooth or problem.is_cornerless:
        return problem.is_smooth
    return count_bending(problem, alpha) > per_feature * problem.n_features
