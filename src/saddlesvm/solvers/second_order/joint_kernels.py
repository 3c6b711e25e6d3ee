"""The compiled parts of the second-order finish of the joint machines, :mod:`saddlesvm.solvers.second_order.joint`.

At scores z a row's variables are the maximisers of ``-a . G - (q / 2) ||a - c||^2`` over its dual feasible set, with
``G_k = e_ik + z_k``: ``(beta - B_k) / q`` between their bounds, with ``B_k = G_k - q c_k`` and the threshold beta that
makes their sum zero. That is the block of a coordinate step with q in the place of ``C ||x_i||^2``, so that both share
their thresholds (:mod:`saddlesvm.solvers.joint_steps`). With F for the f classes strictly between their bounds, the
variables change with the scores by ``-(1 / q) (I_F - 1 1' / f)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.joint_losses import JointLoss
from saddlesvm.rows.class_rows import add_row, dots
from saddlesvm.rows.layouts import Rows, axpy
from saddlesvm.runtime.compiled import allocating_kernel, allocating_search, inlined, kernel, record_of
from saddlesvm.solvers.joint_steps import loss_of_slopes, threshold

# Sums over rows: losses times weights, own variables, and ``a . G``.
SUMS = record_of("paid", "gained", "coupled")
LINE = record_of("slope", "bend")


class SmoothedRows(NamedTuple):
    """The parts of the smoothed losses of all rows.

    Attributes
    ----------
    loss : JointLoss
    own : ndarray of shape (n,)
        Classes of the rows.
    weights : ndarray of shape (n,)
        Zero for rows that take no part.
    centre : ndarray of shape (n, K)
    q : float
    """

    loss: JointLoss
    own: np.ndarray
    weights: np.ndarray
    centre: np.ndarray
    q: float


class FreeRows(NamedTuple):
    """The rows with two classes or more strictly between their bounds, and these classes.

    Attributes
    ----------
    rows : ndarray of shape (m,)
    classes : ndarray of shape (n, K)
        Of every row; those between their bounds first, in ascending order.
    counts : ndarray of shape (n,)
        How many these are; 0 instead of 1.
    """

    rows: np.ndarray
    classes: np.ndarray
    counts: np.ndarray


@inlined
def between(a: float, own: bool, s: float) -> bool:
    """Whether a variable is below its upper bound; the sum of the rivals' keeps the own one above zero."""
    return a < s if own else a < 0.0


@inlined
def bounded(a: float, own: bool, s: float) -> float:
    """A variable brought below its upper bound."""
    return min(s if own else 0.0, a)


@inlined
def candidates(B: np.ndarray, own: int, least: float, few: np.ndarray, found: np.ndarray) -> Any:
    """Collect the classes with ``B_k > least`` and the own one, in ascending order, and their B.

    Returns how many there are, and the place of the own one.
    """
    count, place = 0, 0
    for k in range(B.size):
        if B[k] > least or k == own:
            if k == own:
                place = count
            few[count], found[count] = k, B[k]
            count += 1
    return count, place


@allocating_search
def respond(
    terms: SmoothedRows, Z: np.ndarray, alpha: np.ndarray, classes: np.ndarray, counts: np.ndarray, sums: np.ndarray
) -> None:
    """The rows' variables at the scores Z, the classes between their bounds, and the sums of a certificate."""
    n, K = Z.shape
    G, B, room, kept = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    few, every, q = np.empty(K, dtype=np.int64), np.arange(K), terms.q
    total = sums[0]
    total.paid = total.gained = total.coupled = 0.0
    for i in range(n):
        own, s, c, a, z = terms.own[i], terms.weights[i], terms.centre[i], alpha[i], Z[i]
        counts[i] = 0
        for k in range(K):
            G[k] = z[k] + 1.0
            B[k] = G[k] - q * c[k]
            a[k] = 0.0
        if s == 0.0:
            continue
        G[own], B[own] = z[own], -np.inf
        largest = B[0]
        for k in range(K):
            largest = max(largest, B[k])
        B[own] = z[own] - q * c[own]
        # The threshold is no smaller than this: classes with a B below it stay at zero.
        count, place = candidates(B, own, largest - q * s, few, kept)
        beta = threshold(kept, count, place, q, s, room)
        free, taken, coupled = 0, 0.0, 0.0
        for p in range(count):
            k, value = few[p], (beta - kept[p]) / q
            if between(value, k == own, s):
                classes[i, free] = k
                free += 1
            if k != own:
                a[k] = bounded(value, False, s)
                taken -= a[k]
                coupled += a[k] * G[k]
        a[own] = min(s, taken)
        counts[i] = free if free > 1 else 0
        total.paid += s * loss_of_slopes(G, every, K, own)
        total.gained += a[own]
        total.coupled += coupled + a[own] * G[own]


@allocating_search
def slope_along(terms: SmoothedRows, Z: np.ndarray, change: np.ndarray, t: float, line: np.ndarray) -> None:
    """First and second derivative of the sum of the smoothed losses at ``Z + t change``, along `change`."""
    n, K = Z.shape
    B, room, kept = np.empty(K), np.empty(K), np.empty(K)
    few, q = np.empty(K, dtype=np.int64), terms.q
    found = line[0]
    found.slope = found.bend = 0.0
    for i in range(n):
        own, s, c, z, u = terms.own[i], terms.weights[i], terms.centre[i], Z[i], change[i]
        if s == 0.0:
            continue
        for k in range(K):
            B[k] = z[k] + t * u[k] + 1.0 - q * c[k]
        own_B, B[own] = B[own] - 1.0, -np.inf
        largest = B[0]
        for k in range(K):
            largest = max(largest, B[k])
        B[own] = own_B
        # The threshold is no smaller than this: classes with a B below it stay at zero.
        count, place = candidates(B, own, largest - q * s, few, kept)
        beta = threshold(kept, count, place, q, s, room)
        free, first, second, slope = 0, 0.0, 0.0, 0.0
        for p in range(count):
            k, value = few[p], (beta - kept[p]) / q
            if between(value, k == own, s):
                free += 1
                first += u[k]
                second += u[k] * u[k]
            slope -= bounded(value, k == own, s) * u[k]
        found.slope += slope
        if free > 1:
            found.bend += max(0.0, second - first * first / free) / q


@allocating_kernel
def bent_jointly(X: Rows, free_rows: FreeRows, D: np.ndarray, t: float, out: np.ndarray) -> None:
    """``out_k += t sum_i u_ik x_i`` with ``u_i = (I_F - 1 1' / f) (D x_i)``, in the precision of D and `out`."""
    classes, counts = free_rows.classes, free_rows.counts
    z = np.empty(classes.shape[1], dtype=D.dtype)
    for i in free_rows.rows:
        count = counts[i]
        dots(X, i, D, classes[i], count, z)
        mean = 0.0
        for p in range(count):
            mean += z[classes[i, p]]
        mean /= count
        for p in range(count):
            k = classes[i, p]
            add_row(X, i, t * (z[k] - mean), out, k)


@allocating_kernel
def add_blocks(X: Rows, free_rows: FreeRows, t: float, width: int, out: np.ndarray) -> None:
    """Add ``t sum_i (I_F - 1 1' / f) (x) x_i x_i'`` in the upper triangle, a block of `width` features a class."""
    row = np.empty(width)
    for i in free_rows.rows:
        row[:] = 0.0
        axpy(X, i, 1.0, row)
        count = free_rows.counts[i]
        for p in range(count):
            above = free_rows.classes[i, p] * width
            for r in range(p, count):
                beside = free_rows.classes[i, r] * width
                factor = t * ((1.0 if p == r else 0.0) - 1.0 / count)
                for j in range(width):
                    line, share = out[above + j], factor * row[j]
                    for m in range(j if p == r else 0, width):
                        line[beside + m] += share * row[m]


@kernel
def shares_of(free_rows: FreeRows, t: float, parts: np.ndarray) -> None:
    """``parts[i, k] = t (1 - 1 / f)`` for the classes between their bounds; the others are left as they are."""
    for i in free_rows.rows:
        count = free_rows.counts[i]
        for p in range(count):
            parts[i, free_rows.classes[i, p]] = t * (1.0 - 1.0 / count)
