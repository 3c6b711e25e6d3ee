"""A search along a line by first and second derivatives: Newton's method in a bracket.

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large
scale linear SVMs".
"""

from __future__ import annotations

import math

import numpy as np

# Derivative along the line at the end of the search, relative to its value at the start; a guess.
LINE_TOLERANCE = 0.1
WIDEN = 10.0  # factor by which the search extends its step at once, at most; a guess


class Bracket:
    """The lowest place of a convex function along a line, between two places that come closer.

    Newton's method on the derivative, which is monotone; the bracket is halved if it is slow. A
    rise without curvature counts as small nowhere: it may go on from the minimum, however far that
    is.

    Parameters
    ----------
    begin : float
        The derivative at zero. If it is not negative, or not finite, the search has ended at zero.
    tau : float
        The first place to look at.
    tolerance : float
        Share of the derivative at zero that may be left.

    Attributes
    ----------
    tau : float
        The place to look at.
    going : bool
        True if the search goes on.
    """

    __slots__ = ("before", "enough", "going", "high", "low", "tau")

    def __init__(self, begin: float, tau: float = 1.0, tolerance: float = LINE_TOLERANCE) -> None:
        self.going = -np.inf < begin < 0.0
        self.tau = tau if self.going else 0.0
        self.enough = -tolerance * begin
        self.low = 0.0
        self.high = np.inf
        self.before = np.inf

    def follow(self, residual: float, rise: float) -> float:
        """Return the next place by both derivatives at this one; the same place at the end."""
        tau = self.tau
        if not self.going:
            return tau
        size = abs(residual)
        if size <= self.enough and (residual <= 0.0 or rise > 0.0):
            self.going = False
            return tau

        # The minimum lies between low and high.
        if residual < 0.0:
            self.low = tau
        else:
            self.high = tau
        newton = tau - residual / rise if rise > 0.0 else np.inf
        if self.high == np.inf:
            following = min(newton, WIDEN * tau)
        elif self.low < newton < self.high and not size > 0.5 * self.before:
            following = newton
        else:
            # Newton's method is slow, or leaves the bracket: halve it.
            following = 0.5 * (self.low + self.high)
        self.before = size
        self.going = following != tau and math.isfinite(following)
        self.tau = following if self.going else tau
        return self.tau
