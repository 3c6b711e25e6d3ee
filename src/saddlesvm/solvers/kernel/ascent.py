"""Dual coordinate ascent on the kernel matrix of a working set, one coordinate at a time.

It minimises ``(1/2) beta' (K + diag(ridge)) beta - y' beta + tube sum_i |beta_i|`` over a box, from a point where the
part without absolute values has gradient `g`, and changes `beta` and `g` in place;
:mod:`saddlesvm.solvers.kernel.pairs` does so in pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddlesvm.problem.arithmetic import soft_threshold
from saddlesvm.rows.row_table import Table, holds, whole_table
from saddlesvm.runtime.compiled import allocating_kernel, inlined, kernel

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
    """The quadratic program over a working set of m rows, one group after the other, each of one or more parts.

    Attributes
    ----------
    table : Table
        Kernel values; of m points, or fewer where rows are signed views of the same points.
    ridge, low, high : ndarray of shape (m,)
    tube : float
    starts : ndarray of shape (parts + 1,)
        Where the rows of each part begin, and m.
    columns : ndarray of shape (parts,)
        The point of the first row of each part; the others follow.
    signs : ndarray of shape (parts,)
        -1.0 and 1.0: the kernel value of two rows is that of their points times both signs.
    groups : ndarray of shape (groups + 1,)
        The first part of each group, and the number of parts.
    offset : float
        Added to all kernel values; zero where pairs are moved.
    """

    table: Table
    ridge: np.ndarray
    low: np.ndarray
    high: np.ndarray
    tube: float
    starts: np.ndarray
    columns: np.ndarray
    signs: np.ndarray
    groups: np.ndarray
    offset: float = 0.0


def plain(
    K: np.ndarray, ridge: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], tube: float, starts: np.ndarray
) -> Small:
    """The program whose rows are points of their own, with a part for each group."""
    parts = starts[:-1], np.ones(starts.size - 1), np.arange(starts.size)
    return Small(whole_table(K), ridge, *bounds, tube, starts, *parts)


@inlined
def rising(g: float, b: float, tube: float) -> float:
    """The slope of the program along a coordinate that rises from b."""
    return g + (tube if b >= 0.0 else -tube)


@inlined
def falling(g: float, b: float, tube: float) -> float:
    """The slope of the program along a coordinate that falls from b, counted upwards."""
    return g + (tube if b > 0.0 else -tube)


@kernel
def ascend_singly(small: Small, g: np.ndarray, beta: np.ndarray, accuracy: float, most: int) -> int:
    """Single steps, largest gain first, until the violation is at most `accuracy`, or a kernel row is needed that is
    computed elsewhere; the number of steps made.

    ``s_t = clip(soft(beta_t - g_t / q_t, tube / q_t)) - beta_t`` with ``q_t = K_tt + r_t`` gains
    ``-s_t g_t - q_t s_t^2 / 2`` and what the absolute value falls by.
    """
    table, ridge, low, high, tube = small.table, small.ridge, small.low, small.high, small.tube
    own, offset = table.diagonal, small.offset
    for step in range(most):
        i, best, worst, s = -1, 0.0, 0.0, 0.0
        for t in range(g.size):
            up, down = rising(g[t], beta[t], tube), falling(g[t], beta[t], tube)
            if (up < 0.0 and beta[t] < high[t]) or (down > 0.0 and beta[t] > low[t]):
                q = max(own[t] + offset + ridge[t], TAU)
                aim = soft_threshold(beta[t] - g[t] / q, tube / q)
                move = min(max(aim, low[t]), high[t]) - beta[t]
                gain = -move * (g[t] + 0.5 * q * move) - tube * (abs(beta[t] + move) - abs(beta[t]))
                worst = max(worst, -up if up < 0.0 else down)
                if gain > best:
                    i, best, s = t, gain, move
        if i < 0 or worst <= accuracy:
            return step
        if not holds(table, i):
            return step
        beta[i] = min(max(beta[i] + s, low[i]), high[i])
        Ki = table.values[table.slots[i]]
        for t in range(g.size):
            g[t] += s * (Ki[t] + offset)
        g[i] += s * ridge[i]
    return most
