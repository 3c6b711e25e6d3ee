"""The search along a line: back to where a convex function has nearly no slope.

Newton's step from a point ends at a trial point. Where the slope there is positive, the least point lies between; it
is found by the secants of the slope, which needs scores and multipliers only, and no row.

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large scale linear SVMs",
which search exactly; a tenth of the first slope is left here.
"""

from __future__ import annotations

from collections.abc import Callable

LEFT = 0.1  # share of the first slope that may be left; guessed: exact searches save no step
MOST = 30  # places to look at: each halves the slope at least now and then
MARGIN = 0.1  # share of the interval to its ends that is left out, so that the interval shrinks


def find_least(slope_at: Callable[[float], float], first: float, last: float) -> float:
    """The place between 0 and 1 where a convex function is least, nearly.

    Parameters
    ----------
    slope_at : callable
        The slope at a place.
    first, last : float
        The slopes at 0, negative, and at 1, positive.
    """
    low = 0.0
    high = 1.0
    at_low = first
    at_high = last
    place = 1.0
    for _ in range(MOST):
        # The zero of the secant, not too close to either end.
        place = (low * at_high - high * at_low) / (at_high - at_low)
        inner = MARGIN * (high - low)
        place = min(max(place, low + inner), high - inner)
        slope = slope_at(place)
        if abs(slope) <= LEFT * abs(first):
            break
        if slope < 0.0:
            low = place
            at_low = slope
        else:
            high = place
            at_high = slope
    return place
