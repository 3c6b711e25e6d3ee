"""Where Newton's method begins if the dual variables have a given sum, as those of a one-class machine.

Zero has another sum, so the first dual variables all go the same share of the way to their upper bounds: w is then the
mean of the rows, times the sum. The objective of such a machine is ``R(w)`` plus a term of the first degree in w and
the intercept: multiply C by a number, and the solution is multiplied by it. So C says nothing about the size of the
margins, nor does the length of the rows alone. The first proximity is measured by the first margins themselves.
"""

from __future__ import annotations

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import dual_weights, margins

SHARE = 0.1  # of the median size of the first margins
SEEN = 10_000  # margins, roughly, from which that median is taken
NOTHING = 1e-10  # squared norm of w, relative to what its terms could add up to, that counts as zero
NOTHING_TO_FIND = "the optimum is w = 0: nu is too small, or the rows lie around the origin"


def evenly(problem: Problem) -> Point:
    """The first point: dual variables the same share of the way to their bounds, w of these, and its best intercept."""
    alpha = problem.intercept.balanced(problem.pointwise, problem.members, np.zeros(problem.y.size))
    w = dual_weights(problem, alpha)
    w[-1] = 0.0
    offset = problem.intercept.best(problem.pointwise, problem.members, margins(problem, w), 0.0)
    w[-1] = offset / problem.scale
    return Point(w, alpha)


def reach(problem: Problem, w: np.ndarray) -> float:
    """The first proximity: a share of the median size of the margins of w; positive."""
    seen = problem.members[:: max(1, problem.members.size // SEEN)]
    few = problem.passes.among(seen).margins(w)
    return SHARE * float(np.median(np.abs(few))) or problem.C


def is_nothing(problem: Problem, half_norm: float) -> bool:
    """Whether a feasible dual point of a given sum other than zero has a w that is as good as zero.

    Objectives and gap go to zero together there, and the relative gap does not fall.
    """
    size = problem.C * problem.intercept.asked
    return not problem.intercept.homogeneous and 2.0 * half_norm <= NOTHING * size * size
