"""The largest C at which no feature has a weight: the beginning of a path of sparse models.

Weights of zero are optimal exactly if some multipliers ``a_i`` of the losses at them pull no
feature too strongly:

    C max_j |sum_i a_i x_ij| <= l1,     a_i in -s_i dphi_i(b),

with the best intercept b beside such weights. Without an intercept b is zero, and a
free intercept does not depend on C: the largest C is then a quotient. A penalised intercept
moves with C, and the quotient with it: the first crossing is looked for. If b is at a kink of
the losses, the multipliers of some rows are not determined: some are taken, so that the C found may
be smaller than the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import dual_of_margins

# Distance on both sides of an offset, relative to 1 + |offset|, in which a kink is one at it.
NEAR = 1e-9
# Factor between values of C that are looked at on the way to the first crossing.
STEP = math.sqrt(2.0)
# of C, relative to the one without an intercept
LARGEST = 2.0**60
SMALLEST = 2.0**-60
SLOPE_WIDTH = 1e18  # offsets beyond which none is looked for


def largest_empty_C(problem: Problem) -> float:
    """Return the largest C up to which every solution has weights of zero alone, in user's units.

    For a loss with kinks it is a C with such solutions, which may be smaller than the largest.
    The C of the problem itself does not matter. Infinite if no C has a weight, as with features
    that are all zero; 0 for a penalty without an l1 norm.
    """
    _, l1 = problem.penalty.factors()
    if l1 == 0.0:
        return 0.0
    empty = EmptyModels(problem)
    free = problem.intercept.constrained
    offset = problem.intercept.best(problem.pointwise, problem.members, empty.nowhere, 0.0)
    # The weights are zero as long as C max_j |sum_i a_i x_ij| <= l1.
    strongest = empty.pull(offset, 0.0 if free else None)
    found = l1 / strongest if strongest > 0.0 else math.inf
    # A penalised intercept changes with C, and the multipliers with it.
    if problem.intercept.present and not free:
        found = first_crossing(lambda C: l1 - C * empty.pull(*empty.balance(C)), found)
    return found * problem.share


def first_crossing(room: Callable[[float], float], start: float) -> float:
    """The first place where `room`, positive near zero, becomes negative; else infinite."""
    if not math.isfinite(start):
        start = 1.0
    low = start
    high = start
    # A bracket: positive at its low end, negative at its high end.
    while room(low) < 0.0:
        low, high = low / STEP, low
        if low < SMALLEST * start:
            return 0.0
    while room(high) >= 0.0:
        low = high
        high = high * STEP
        if high > LARGEST * start:
            return math.inf
    return float(brentq(room, low, high, xtol=1e-300, rtol=8.9e-16))


class EmptyModels:
    """The models of a problem without weights, of any C.

    Their intercepts, and how their rows pull at the features.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.nowhere = np.zeros(problem.members.size)
        self.smooth = problem.is_smooth

    def multipliers(self, offset: float) -> np.ndarray:
        """``-s_i phi_i'(offset)`` of all rows, shape (n_all,)."""
        alpha = np.zeros(self.problem.y.size)
        # Without weights all margins are the offset.
        dual_of_margins(self.problem.pointwise, self.problem.members, self.nowhere, offset, alpha)
        return alpha

    def balance(self, C: float) -> tuple[float, float | None]:
        """Return the offset that a penalised intercept gives all margins at this C.

        And the sum of its multipliers; None if that may be any.
        """
        scale = self.problem.scale
        square, l1 = self.problem.regularizer.intercept_factors

        def slope(offset: float) -> float:
            charged = square * offset / scale + (math.copysign(l1, offset) if offset else 0.0)
            return charged / scale - C * float(self.multipliers(offset).sum())

        still = slope(0.0)
        if abs(still) * scale <= l1 or still == 0.0:
            return 0.0, None
        # The slope of l1 |b| on the side to which the intercept goes.
        tilt = math.copysign(l1 / scale, still)
        near = 0.0
        far = -math.copysign(1.0, still)
        # The interval doubles until the slope has changed its sign.
        while slope(far) * still > 0.0 and abs(far) < SLOPE_WIDTH:
            near = far
            far = 2.0 * far
        ends = (
            (lambda offset: slope(offset) if offset else still - tilt),
            min(near, far),
            max(near, far),
        )
        offset = float(brentq(*ends, xtol=1e-300, rtol=8.9e-16))
        return offset, (square * offset / scale + math.copysign(l1, offset)) / (C * scale)

    def pull(self, offset: float, total: float | None) -> float:
        """``max_j |sum_i a_i x_ij|`` of multipliers at this offset, with this sum if given."""
        problem = self.problem
        if self.smooth:
            return float(
                np.abs(problem.passes.pull(self.multipliers(offset))[:-1]).max(initial=0.0)
            )
        # At a kink a multiplier may have any value between those on both sides: all go the same
        # share of their way, so far that the sum is right if one is given.
        near = NEAR * (1.0 + abs(offset))
        below = self.multipliers(offset - near)
        above = self.multipliers(offset + near)
        way = above - below
        share = 0.5
        if total is not None and way.any():
            share = (total - float(below.sum())) / float(way.sum())
        alpha = below + min(max(share, 0.0), 1.0) * way
        return float(np.abs(problem.passes.pull(alpha)[:-1]).max(initial=0.0))
