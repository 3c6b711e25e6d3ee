"""Dual coordinate ascent on the kernel matrix of a working set: one coordinate at a time, or a pair at a time.

Both minimise ``(1/2) beta' (K + diag(ridge)) beta - y' beta`` over a box, from a point with gradient `g`, and change
`beta` and `g` in place; the pairs keep ``sum_i beta_i`` as it is.
"""

from __future__ import annotations

import numpy as np

from saddlesvm.runtime.compiled import allocating_kernel, kernel

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


@kernel
def ascend_pairs(
    K: np.ndarray,
    ridge: np.ndarray,
    g: np.ndarray,
    beta: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    accuracy: float,
    most: int,
) -> int:
    """Pair steps until the violation is at most `accuracy` or `most` were made; the number of steps made.

    ``i = argmax {-g_t : beta_t < high_t}``, ``j = argmax {(g_t - g_i)^2 / a_it : beta_t > low_t, g_t > g_i}`` with
    ``a_it = K_ii + K_tt - 2 K_it`` (Fan, Chen and Lin 2005, WSS 2); then ``beta_i += s``, ``beta_j -= s`` with
    ``s = (g_j - g_i) / a_ij`` cut to the box.
    """
    for step in range(most):
        i = -1
        for t in range(g.size):
            if beta[t] < high[t] and (i < 0 or g[t] < g[i]):
                i = t
        if i < 0:
            return step
        Ki, own = K[i], K[i, i] + ridge[i]
        j, best, worst = -1, 0.0, 0.0
        for t in range(g.size):
            slope = g[t] - g[i]
            if beta[t] > low[t] and slope > 0.0:
                worst = max(worst, slope)
                gain = slope * slope / max(own + K[t, t] + ridge[t] - 2.0 * Ki[t], TAU)
                if gain > best:
                    j, best = t, gain
        if j < 0 or worst <= accuracy:
            return step
        curvature = max(own + K[j, j] + ridge[j] - 2.0 * Ki[j], TAU)
        room_i, room_j = high[i] - beta[i], beta[j] - low[j]
        s = min((g[j] - g[i]) / curvature, room_i, room_j)
        beta[i] = high[i] if s == room_i else beta[i] + s
        beta[j] = low[j] if s == room_j else beta[j] - s
        Kj = K[j]
        for t in range(g.size):
            g[t] += s * (Ki[t] - Kj[t])
        g[i] += s * ridge[i]
        g[j] -= s * ridge[j]
    return most


@kernel
def ascend_singly(
    K: np.ndarray,
    ridge: np.ndarray,
    g: np.ndarray,
    beta: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    accuracy: float,
    most: int,
) -> int:
    """Single steps, largest gain first, until the violation is at most `accuracy`; the number of steps made.

    ``s_t = clip(beta_t - g_t / q_t) - beta_t`` with ``q_t = K_tt + r_t`` gains ``-s_t g_t - q_t s_t^2 / 2``.
    """
    for step in range(most):
        i, best, worst, s = -1, 0.0, 0.0, 0.0
        for t in range(g.size):
            if (g[t] < 0.0 and beta[t] < high[t]) or (g[t] > 0.0 and beta[t] > low[t]):
                q = max(K[t, t] + ridge[t], TAU)
                move = min(max(beta[t] - g[t] / q, low[t]), high[t]) - beta[t]
                gain = -move * (g[t] + 0.5 * q * move)
                worst = max(worst, abs(g[t]))
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
