"""An intercept free of penalty: the best offset of some margins, and dual variables whose sum is zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.problem.losses import curvature, slopes, subgradient
from saddlesvm.problem.problem import Pointwise, weight_of
from saddlesvm.runtime.compiled import kernel

SEARCH_STEPS = 200


@kernel
def offset_slope(terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float) -> Any:
    """First and second derivative of ``sum_i s_i phi_i(z_i + offset)`` by the offset."""
    slope = bend = 0.0
    for k in range(members.size):
        i = members[k]
        s = weight_of(terms.weights, i)
        slope += s * subgradient(terms.loss, z[k] + offset, terms.y[i])
        bend += s * curvature(terms.loss, z[k] + offset, terms.y[i])
    return slope, bend


@kernel
def best_offset(terms: Pointwise, members: np.ndarray, z: np.ndarray, start: float) -> float:
    """The offset that minimises ``sum_i s_i phi_i(z_i + offset)``: guarded Newton on its monotone derivative."""
    slope, bend = offset_slope(terms, members, z, start)
    if slope == 0.0:
        return start
    width, low, high = 1.0, start, start
    while width < 1e18:
        other = start - width if slope > 0.0 else start + width
        there, _ = offset_slope(terms, members, z, other)
        if there * slope <= 0.0:
            low, high = min(start, other), max(start, other)
            break
        start, width = other, 2.0 * width
    t = 0.5 * (low + high)
    for _ in range(SEARCH_STEPS):
        slope, bend = offset_slope(terms, members, z, t)
        if slope == 0.0:
            break
        if slope > 0.0:
            high = t
        else:
            low = t
        newton = t - slope / bend if bend > 0.0 else low
        t_next = newton if low < newton < high else 0.5 * (low + high)
        if abs(t_next - t) <= 1e-15 * (1.0 + abs(t)):
            break
        t = t_next
    return t


@kernel
def balance(terms: Pointwise, members: np.ndarray, alpha: np.ndarray) -> None:
    """Make ``sum_i alpha_i`` zero by shortening variables of the heavier sign, inner ones first; stays feasible."""
    positive = negative = inner_positive = inner_negative = 0.0
    for i in members:
        a = alpha[i]
        left, right = slopes(terms.loss, a, 0.0, terms.y[i], weight_of(terms.weights, i))
        inner = left > -np.inf and right < np.inf
        if a > 0.0:
            positive += a
            inner_positive += a if inner else 0.0
        else:
            negative -= a
            inner_negative -= a if inner else 0.0
    excess = positive - negative
    heavy, inner_heavy = (positive, inner_positive) if excess > 0.0 else (negative, inner_negative)
    sign = 1.0 if excess > 0.0 else -1.0
    inner_only = inner_heavy >= abs(excess)
    divisor = inner_heavy if inner_only else heavy
    factor = 1.0 - abs(excess) / divisor if divisor > 0.0 else 1.0
    for i in members:
        if alpha[i] * sign > 0.0:
            left, right = slopes(terms.loss, alpha[i], 0.0, terms.y[i], weight_of(terms.weights, i))
            if not inner_only or (left > -np.inf and right < np.inf):
                alpha[i] *= factor
