"""The search along a line: back to a place at which a convex function has nearly no slope.

A place t on the line is the point ``start + t (end - start)``: 0 is the point that a step began at,
1 its end. If the slope at the end is positive, the function is least between the two; the place is
found by the secants of the slope, which need scores and dual variables, and no row. If no scores
are kept, a cubic through values and slopes at both ends says where the next pass should look.

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large
scale linear SVMs". They search exactly; here a tenth of the first slope is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

# A slope counts as zero if its size is at most this share of the first slope; guessed: exact
# searches save no step. Beyond the least place, where the slope is positive, it has to be smaller.
FLAT = 0.1
FLAT_BEYOND = 0.02
WIDEN = 10.0  # factor by which a place downhill moves on at once, at most; guessed
# Places to look at, downhill, and then between two places; guessed: each halves the slope now and
# then.
MOST_PLACES = 30
SHORTER = (0.02, 0.7)  # factor of a step that went too far, at least and at most; guessed
# Places at which a pass computes losses beside those at the end of the step; guessed.
PLACES = tuple(2.0**k for k in (-6, -4, -3, -2, -1, 1, 2, 3))
# The end of a step is taken if it has this share of the fall to the best place; guessed.
ENOUGH = 0.6
# A place between two others keeps this share of their distance from both, so that the interval
# shrinks; guessed.
MARGIN = 0.1


def find_least(slope_at: Callable[[float], float], first: float, last: float) -> float:
    """Return a place, between 0 and 1 or beyond, at which a convex function is about least.

    Parameters
    ----------
    slope_at : callable
        The slope at a place.
    first, last : float
        The slopes at 0, negative, and at 1.
    """
    low = 0.0
    at_low = first
    place = 1.0
    slope = last
    for _ in range(MOST_PLACES):
        if slope >= 0.0:
            break
        # Still downhill: on to the zero of the secant, but at most ten times as far. A slope that
        # does not rise has a secant without a zero ahead.
        ahead = np.inf
        if slope > at_low:
            ahead = (low * slope - place * at_low) / (slope - at_low)
        low = place
        at_low = slope
        place = min(ahead, WIDEN * place)
        slope = slope_at(place)
        if abs(slope) <= FLAT * abs(first):
            return place
    # The least place is between low, where the slope is negative, and high, where it is positive.
    high = place
    at_high = slope
    was_low = False
    was_high = False
    for _ in range(MOST_PLACES):
        # The zero of the secant, not too close to either end.
        place = (low * at_high - high * at_low) / (at_high - at_low)
        inner = MARGIN * (high - low)
        place = min(max(place, low + inner), high - inner)
        slope = slope_at(place)
        # The value at a place before the least one is lower than at 0; beyond it, the slope has to
        # be small for that.
        if -FLAT * abs(first) <= slope <= FLAT_BEYOND * abs(first):
            return place
        if slope < 0.0:
            low = place
            at_low = slope
            # If the same end moves again, half the slope of the other end draws the zero of the
            # secant towards that end (the Illinois method).
            if was_low:
                at_high *= 0.5
        else:
            high = place
            at_high = slope
            if was_high:
                at_low *= 0.5
        was_low = slope < 0.0
        was_high = not was_low
    return low if low > 0.0 else place


def find_better(before: float, after: float, line: np.ndarray) -> float:
    """Return the one of `PLACES` with the lowest value if its end is much higher; else 0.

    Parameters
    ----------
    before, after : float
        The values at 0 and at 1.
    line : ndarray
        The values at `PLACES`.
    """
    values = np.nan_to_num(line, nan=np.inf)
    best = int(values.argmin())
    fall = before - float(values[best])
    # Written so that an end whose value is NaN is left as well.
    if fall > 0.0 and not before - after >= ENOUGH * fall:
        return PLACES[best]
    return 0.0


def find_lowest(before: float, after: float, first: float, last: float) -> float:
    """Return the place between 0 and 1 at which the cubic through both ends of a step is lowest.

    Parameters
    ----------
    before, after : float
        The values at 0 and at 1.
    first, last : float
        The slopes there.

    Source: Nocedal and Wright (2006), "Numerical optimization", equation 3.59.
    """
    # In the words of the source: d1 = g0 + g1 - 3 (f1 - f0), d2 = (d1^2 - g0 g1)^(1/2), and the
    # lowest place is 1 - (g1 + d2 - d1) / (g1 - g0 + 2 d2).
    place = 0.5
    d1 = first + last - 3.0 * (after - before)
    d2_squared = d1 * d1 - first * last
    if np.isfinite(d2_squared) and d2_squared >= 0.0:
        d2 = math.sqrt(d2_squared)
        denominator = last - first + 2.0 * d2
        if denominator > 0.0:
            place = 1.0 - (last + d2 - d1) / denominator
    return min(max(place, SHORTER[0]), SHORTER[1])
