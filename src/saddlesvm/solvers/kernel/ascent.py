"""Dual coordinate ascent on the kernel matrix of a working set: one coordinate at a time, or a pair at a time.

Both minimise ``(1/2) beta' (K + diag(ridge)) beta - y' beta + tube sum_i |beta_i|`` over a box, from a point where the
part without absolute values has gradient `g`, and change `beta` and `g` in place; the pairs keep the sum of each group
as it is. A step ends where a coordinate reaches zero, if there is a tube: the slope jumps there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddlesvm.problem.slopes import soft_threshold
from saddlesvm.runtime.compiled import allocating_kernel, inlined, kernel, searching_kernel

NEVER = 1e300  # a slope that no step follows
LANES = 8  # values of which the least is found one by one
TAU = 1e-12  # the least curvature along a coordinate or a pair, as in LIBSVM
COLUMNS = 2048  # columns of the kernel rows that are summed while their part of f is near


@allocating_kernel
def submatrix(table: np.ndarray, slots: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """``table[slots][:, columns]`` without the copy of whole rows."""
    out = np.empty((slots.size, columns.size), table.dtype)
    for i in range(slots.size):
        row = table[slots[i]]
        for j in range(columns.size):
            out[i, j] = row[columns[j]]
    return out


@kernel
def add_kernel_rows(table: np.ndarray, slots: np.ndarray, delta: np.ndarray, f: np.ndarray) -> None:
    """``f += sum_k delta[k] table[slots[k]]``, summed in float64."""
    for start in range(0, f.size, COLUMNS):
        end = min(f.size, start + COLUMNS)
        for k in range(slots.size):
            row, d = table[slots[k]], delta[k]
            for j in range(start, end):
                f[j] += d * row[j]


class Small(NamedTuple):
    """The quadratic program over a working set of m rows, one group after the other.

    Attributes
    ----------
    K : ndarray of shape (points, points)
        Kernel values; m points, or fewer where rows are signed views of the same points.
    ridge, low, high : ndarray of shape (m,)
    tube : float
    starts : ndarray of shape (groups + 1,)
        Where the rows of each group begin, and m.
    columns : ndarray of shape (groups,)
        The point of the first row of each group; the others follow.
    signs : ndarray of shape (groups,)
        -1.0 and 1.0: the kernel value of two rows is that of their points times both signs.
    """

    K: np.ndarray
    ridge: np.ndarray
    low: np.ndarray
    high: np.ndarray
    tube: float
    starts: np.ndarray
    columns: np.ndarray
    signs: np.ndarray


def plain(
    K: np.ndarray, ridge: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], tube: float, starts: np.ndarray
) -> Small:
    """The program whose rows are points of their own."""
    return Small(K, ridge, *bounds, tube, starts, starts[:-1], np.ones(starts.size - 1))


@inlined
def rising(g: float, b: float, tube: float) -> float:
    """The slope of the program along a coordinate that rises from b."""
    return g + (tube if b >= 0.0 else -tube)


@inlined
def falling(g: float, b: float, tube: float) -> float:
    """The slope of the program along a coordinate that falls from b, counted upwards."""
    return g + (tube if b > 0.0 else -tube)


@inlined
def ways(b: float, low: float, high: float, tube: float) -> tuple[float, float]:
    """What the tube adds to the slope upwards and downwards from b; beyond every slope where b can not go there."""
    up = (tube if b >= 0.0 else -tube) if b < high else NEVER
    down = (tube if b > 0.0 else -tube) if b > low else -NEVER
    return up, down


@inlined
def least_of(values: np.ndarray, scratch: np.ndarray) -> float:
    """The least of some values: halves are compared place by place, then the halves of what is left, and so on."""
    size = (values.size + 1) // 2
    for t in range(size):
        scratch[t] = values[t]
    for t in range(values.size - size):
        scratch[t] = min(scratch[t], values[size + t])
    while size > LANES:
        half = (size + 1) // 2
        for t in range(size - half):
            scratch[t] = min(scratch[t], scratch[half + t])
        size = half
    least = NEVER
    for t in range(size):
        least = min(least, scratch[t])
    return least


@inlined
def place_of(value: float, values: np.ndarray) -> int:
    """The first place of a value; the last place where it is nowhere, as after an overflow."""
    t = 0
    while t < values.size - 1 and values[t] != value:
        t += 1
    return t


@searching_kernel
def ascend_pairs(small: Small, g: np.ndarray, beta: np.ndarray, accuracy: float, most: int) -> int:
    """Pair steps until the violation is at most `accuracy` or `most` were made; the number of steps made.

    ``i = argmax {-g_t : beta_t < high_t}``, ``j = argmax {(g_t - g_i)^2 / a_it : beta_t > low_t, g_t > g_i}`` with
    ``a_it = K_ii + K_tt - 2 K_it`` (Fan, Chen and Lin 2005, WSS 2), in the group where that is largest; then
    ``beta_i += s``, ``beta_j -= s`` with ``s = (g_j - g_i) / a_ij`` cut to the box.

    Extremes are found without their places first, by loops without branches, several rows at a time.
    """
    K, ridge, low, high, tube, starts, columns, signs = small
    own, up, down = np.empty(g.size), np.empty(g.size), np.empty(g.size)
    values, scratch = np.empty(g.size), np.empty(g.size)
    for group in range(columns.size):
        for t in range(starts[group], starts[group + 1]):
            point = columns[group] + t - starts[group]
            own[t] = K[point, point] + ridge[t]
            up[t], down[t] = ways(beta[t], low[t], high[t], tube)
    for step in range(most):
        i, j, side, best, worst, least = -1, -1, 0, 0.0, 0.0, 0.0
        for group in range(columns.size):
            first, end = starts[group], starts[group + 1]
            slopes, upwards, downwards, bends = g[first:end], up[first:end], down[first:end], own[first:end]
            found, room = values[first:end], scratch[first:end]
            for t in range(found.size):
                found[t] = slopes[t] + upwards[t]
            lowest = least_of(found, room)
            if lowest >= 0.5 * NEVER:
                continue
            p = first + place_of(lowest, found)
            across = K[columns[group] + p - first][columns[group] : columns[group] + end - first]
            bend = own[p]
            for t in range(found.size):
                found[t] = -(slopes[t] + downwards[t])
            steepest = -least_of(found, room) - lowest
            for t in range(found.size):
                slope = min(found[t] + lowest, 0.0)
                found[t] = -slope * slope / max(bend + bends[t] - 2.0 * across[t], TAU)
            worst = max(worst, steepest)
            gained = -least_of(found, room)
            if gained > best:
                i, j, side, best, least = p, first + place_of(-gained, found), group, gained, lowest
        if j < 0 or worst <= accuracy:
            return step
        shift = columns[side] - starts[side]
        Ki, Kj = K[i + shift], K[j + shift]
        top = 0.0 if tube > 0.0 and beta[i] < 0.0 < high[i] else high[i]
        floor = 0.0 if tube > 0.0 and beta[j] > 0.0 > low[j] else low[j]
        room_i, room_j = top - beta[i], beta[j] - floor
        s = min((g[j] + down[j] - least) / max(own[i] + own[j] - 2.0 * Ki[j + shift], TAU), room_i, room_j)
        beta[i] = top if s == room_i else beta[i] + s
        beta[j] = floor if s == room_j else beta[j] - s
        up[i], down[i] = ways(beta[i], low[i], high[i], tube)
        up[j], down[j] = ways(beta[j], low[j], high[j], tube)
        for group in range(columns.size):
            slopes, first = g[starts[group] : starts[group + 1]], columns[group]
            move = s * signs[side] * signs[group]
            rises, falls = Ki[first : first + slopes.size], Kj[first : first + slopes.size]
            for t in range(slopes.size):
                slopes[t] += move * (rises[t] - falls[t])
        g[i] += s * ridge[i]
        g[j] -= s * ridge[j]
    return most


@kernel
def ascend_singly(small: Small, g: np.ndarray, beta: np.ndarray, accuracy: float, most: int) -> int:
    """Single steps, largest gain first, until the violation is at most `accuracy`; the number of steps made.

    ``s_t = clip(soft(beta_t - g_t / q_t, tube / q_t)) - beta_t`` with ``q_t = K_tt + r_t`` gains
    ``-s_t g_t - q_t s_t^2 / 2`` and what the absolute value falls by.
    """
    K, ridge, low, high, tube = small.K, small.ridge, small.low, small.high, small.tube
    for step in range(most):
        i, best, worst, s = -1, 0.0, 0.0, 0.0
        for t in range(g.size):
            up, down = rising(g[t], beta[t], tube), falling(g[t], beta[t], tube)
            if (up < 0.0 and beta[t] < high[t]) or (down > 0.0 and beta[t] > low[t]):
                q = max(K[t, t] + ridge[t], TAU)
                aim = soft_threshold(beta[t] - g[t] / q, tube / q)
                move = min(max(aim, low[t]), high[t]) - beta[t]
                gain = -move * (g[t] + 0.5 * q * move) - tube * (abs(beta[t] + move) - abs(beta[t]))
                worst = max(worst, -up if up < 0.0 else down)
                if gain > best:
                    i, best, s = t, gain, move
        if i < 0 or worst <= accuracy:
            return step
        beta[i] = min(max(beta[i] + s, low[i]), high[i])
        Ki = K[i]
        for t in range(g.size):
            g[t] += s * Ki[t]
        g[i] += s * ridge[i]
    return most
