"""Arithmetic that losses share: clipping, the proximal step of the absolute value, one-sided slopes at bounds."""

from __future__ import annotations

import math

from saddlesvm.runtime.compiled import inlined

INF = math.inf
EDGE = 1.0 + 1e-15  # relative slack at a bound: a + (s - a) may miss s by a rounding error


@inlined
def clip(value: float, low: float, high: float) -> float:
    """`value`, or the nearer end of [low, high]."""
    return min(max(value, low), high)


@inlined
def soft_threshold(value: float, width: float) -> float:
    """`value` brought towards zero by `width`: the proximal step of the absolute value."""
    return math.copysign(max(abs(value) - width, 0.0), value)


@inlined
def box_slopes(b: float, g: float, upper: float) -> tuple[float, float]:
    """One-sided slopes of the negated dual with slope `g` inside [0, upper]."""
    return (-INF if b <= 0.0 else g), (INF if b >= upper else g)


@inlined
def absolute_slopes(a: float, g: float, eps: float, upper: float) -> tuple[float, float]:
    """One-sided slopes of the negated dual with slope ``g`` and ``eps abs(a)`` added, inside [-upper, upper]."""
    left = g + eps if a > 0.0 else g - eps
    right = g - eps if a < 0.0 else g + eps
    return (-INF if a <= -upper else left), (INF if a >= upper else right)


@inlined
def interval_slopes(a: float, g: float, low: float, high: float) -> tuple[float, float]:
    """One-sided slopes of the negated dual with slope `g` inside [low, high]."""
    return (-INF if a <= low else g), (INF if a >= high else g)
