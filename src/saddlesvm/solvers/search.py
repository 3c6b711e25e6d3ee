"""The search along a line: back to a place at which a convex function has nearly no slope.

Newton's step from a point ends at a trial point. If the slope there is positive, the least point
lies between; it is found by the secants of the slope, which needs scores and multipliers only, and
no row. If no scores are kept, a cubic through values and slopes at both ends says at which point
the next pass should look.

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large scale linear SVMs",
which search exactly; a tenth of the first slope is left here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

LEFT = 0.1  # share of the first slope that may be left; guessed: exact searches save no step
LEFT_BEYOND = 0.02  # the same where the slope is positive; guessed
WIDEN = 10.0  # factor by which the place moves on at once, at most
MOST = 30  # places to look at: each halves the slope at least now and then
SHORTER = (0.02, 0.7)  # factor of a step that went too far, at least and at most; guessed
PLACES = tuple(2.0**k for k in (-6, -4, -3, -2, -1, 1, 2, 3))  # on a line whose end is 1; guessed
ENOUGH = 0.6  # share of the fall to the best place with which the end of a step is taken; guessed
MARGIN = 0.1  # share of the interval to its ends that is left out, so that the interval shrinks


def find_least(slope_at: Callable[[float], float], first: float, last: float) -> float:
    """Return about the place at which a convex function is least: between 0 and 1, or beyond.

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
    for _ in range(MOST):
        if slope >= 0.0:
            break
        # Still downhill: on to the zero of the secant, or ten times as far where that is further.
        ahead = (low * slope - place * at_low) / (slope - at_low) if slope > at_low else np.inf
        low = place
        at_low = slope
        place = min(ahead, WIDEN * place)
        slope = slope_at(place)
        if abs(slope) <= LEFT * abs(first):
            return place
    high = place
    at_high = slope
    was_low = False
    was_high = False
    for _ in range(MOST):
        # The zero of the secant, not too close to either end.
        place = (low * at_high - high * at_low) / (at_high - at_low)
        inner = MARGIN * (high - low)
        place = min(max(place, low + inner), high - inner)
        slope = slope_at(place)
        # A place before the least one has a lower value than 0; beyond it, the slope has to be small.
        if -LEFT * abs(first) <= slope <= LEFT_BEYOND * abs(first):
            return place
        if slope < 0.0:
            low = place
            at_low = slope
            # The same end moves again: half the slope of the other draws the secant's zero to it (Illinois).
            at_high *= 0.5 if was_low else 1.0
        else:
            high = place
            at_high = slope
            at_low *= 0.5 if was_high else 1.0
        was_low = slope < 0.0
        was_high = not was_low
    return low if low > 0.0 else place


def find_better(before: float, after: float, line: np.ndarray) -> float:
    """The place of a line, among a few, that is much lower than its end; 0 if none is.

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
    place = 0.5
    bend = first + last - 3.0 * (after - before)
    inside = bend * bend - first * last
    if np.isfinite(inside) and inside >= 0.0:
        root = math.sqrt(inside)
        below = last - first + 2.0 * root
        if below > 0.0:
            place = 1.0 - (last + root - bend) / below
    return min(max(place, SHORTER[0]), SHORTER[1])
