"""The sums that certificates of many small kernel problems are made of, in compiled code.

The problems have the points of two classes each, share the kernel matrix of all points, and have a free intercept. The
sums are those of :mod:`saddlesvm.problem.kernel_certificate`, which turns them into certificates, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddlesvm.problem.intercepts import best_offset, offset_slope
from saddlesvm.problem.loss import Loss, value
from saddlesvm.problem.rounding import UNIT
from saddlesvm.problem.sums import loss_sums
from saddlesvm.problem.terms import Pointwise, weight_of
from saddlesvm.rows.row_table import Table
from saddlesvm.runtime.compiled import inlined, kernel
from saddlesvm.runtime.small import compiled_of

NEAR = 1e-12  # relative distance of offsets, and slope for each row, that count as zero
FAR = 1e300  # beyond every kink
SUMS = (
    "offset", "paid", "conjugates", "charged", "paired_norm", "positive", "negative",
    "slip", "slip_squares", "largest_slip", "beta_slip", "beta_f", "alpha_length", "away_length", "beta_length",
)  # fmt: skip

offset_of = compiled_of(best_offset)
sums_of = compiled_of(loss_sums)


class PairProblems(NamedTuple):
    """Problems of two classes, with their rows one problem after the other, and in each one class after the other.

    Attributes
    ----------
    table : Table
        Kernel values.
    begins : ndarray of shape (pairs + 1,)
        Where the rows of each begin, and their number.
    starts : ndarray of shape (pairs, 3)
        Zero, rows of the first class, and rows of both.
    columns : ndarray of shape (pairs, 2)
        The first point of each class; the others follow.
    y, low, high, ridge, lengths : ndarray of shape (rows,)
        Labels, the box of beta, what is added to the diagonal, and ``sqrt(k(x_i, x_i))`` or more.
    weights : ndarray of shape (rows,) or (0,)
    bases : ndarray of shape (2, rows)
        See :class:`~saddlesvm.rows.kernel_errors.KernelErrors`.
    mixing : ndarray of shape (pairs, 3, 3)
        The same.
    leaves : ndarray of shape (pairs,)
        Products that are added up before they are added to the sum of so many.
    C : float
    """

    table: Table
    begins: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ridge: np.ndarray
    lengths: np.ndarray
    weights: np.ndarray
    bases: np.ndarray
    mixing: np.ndarray
    leaves: np.ndarray
    C: float


@inlined
def kernel_sums(pairs: PairProblems, k: int, beta: np.ndarray, leaf_sums: np.ndarray, f: np.ndarray) -> None:
    """``f = K beta`` of problem k, leaf by leaf as in :func:`~saddlesvm.rows.kernels.expand`.

    `beta`, `f` and the room for the sums of a leaf are of shape (m,).
    """
    table, starts, columns, leaf = pairs.table, pairs.starts[k], pairs.columns[k], pairs.leaves[k]
    for t in range(f.size):
        f[t] = leaf_sums[t] = 0.0
    held = 0
    for part in range(2):
        for j in range(starts[part], starts[part + 1]):
            if beta[j] == 0.0:
                continue
            row = table.values[table.slots[columns[part] + j - starts[part]]]
            for other in range(2):
                first, end, column = starts[other], starts[other + 1], columns[other]
                into, values, b = leaf_sums[first:end], row[column : column + end - first], beta[j]
                for t in range(into.size):
                    into[t] += b * values[t]
            held += 1
            if held == leaf:
                held = 0
                for t in range(f.size):
                    f[t] += leaf_sums[t]
                    leaf_sums[t] = 0.0
    for t in range(f.size):
        f[t] += leaf_sums[t]


@inlined
def midway(terms: Pointwise, members: np.ndarray, f: np.ndarray, best: float) -> float:
    """The middle of the interval of best offsets around one, for a loss with kinks where ``f + b = y``; see
    :func:`~saddlesvm.problem.kernel_certificate.best_midway`."""
    near, below, above, inside = NEAR * (1.0 + abs(best)), -FAR, FAR, False
    for t in range(f.size):
        kink = terms.y[t] - f[t]
        inside |= abs(kink - best) <= near
        below = max(below, kink if kink < best - near else -FAR)
        above = min(above, kink if kink > best + near else FAR)
    for side in range(2):
        low = best if inside and side == 1 else below
        high = best if inside and side == 0 else above
        middle = 0.5 * (low + high)
        if low > -FAR and high < FAR:
            slope, _ = offset_slope(terms, members, f, middle)
            if abs(slope) <= NEAR * f.size:
                return middle
    return best


@inlined
def size_sums(pairs: PairProblems, k: int, terms: Pointwise, offset: float, beta: np.ndarray, f: np.ndarray,
              alpha: np.ndarray, found: np.ndarray) -> None:  # fmt: skip
    """The sums over the rows of problem k that bounds on rounding are made of, into their places among :data:`SUMS`.

    The errors of values count in rows that may pay a loss, see
    :func:`~saddlesvm.problem.kernel_certificate.may_pay`.
    """
    first = pairs.begins[k]
    none = one = two = norm = positive = negative = 0.0
    for t in range(f.size):
        size = abs(beta[t])
        none += size
        one += size * pairs.bases[0, first + t]
        two += size * pairs.bases[1, first + t]
        norm += beta[t] * f[t]
        positive += max(alpha[t], 0.0)
        negative += max(-alpha[t], 0.0)
    mix = pairs.mixing[k]
    flat = mix[0, 0] * none + mix[0, 1] * one + mix[0, 2] * two
    by_first = mix[1, 0] * none + mix[1, 1] * one + mix[1, 2] * two
    by_second = mix[2, 0] * none + mix[2, 1] * one + mix[2, 2] * two
    slip = squares = largest = beta_slip = beta_f = alpha_length = away = beta_length = 0.0
    for t in range(f.size):
        off = flat + by_first * pairs.bases[0, first + t] + by_second * pairs.bases[1, first + t]
        e, s, size = off + 4.0 * UNIT * (abs(offset) + abs(f[t])), weight_of(pairs.weights, first + t), abs(beta[t])
        length, z, y = pairs.lengths[first + t], f[t] + offset, terms.y[t]
        if value(terms.loss, z - 2.0 * e, y) == 0.0 and value(terms.loss, z + 2.0 * e, y) == 0.0:
            e = 0.0
        slip += s * e
        squares += s * e * e
        largest = max(largest, e)
        beta_slip += size * off
        beta_f += size * abs(f[t])
        alpha_length += abs(alpha[t]) * length
        away += abs(beta[t] - pairs.C * alpha[t]) * length
        beta_length += size * length
    found[4], found[5], found[6] = norm, positive, negative
    found[7], found[8], found[9], found[10], found[11] = slip, squares, largest, beta_slip, beta_f
    found[12], found[13], found[14] = alpha_length, away, beta_length


@kernel
def certificate_sums(pairs: PairProblems, loss: Loss, kinked: bool, live: np.ndarray, members: np.ndarray,
                     beta: np.ndarray, f: np.ndarray, found: np.ndarray) -> None:  # fmt: skip
    """What certificates of the problems `live` are made of.

    Parameters
    ----------
    kinked : bool
        The loss has a kink where the margin is 1, and no curvature.
    members : ndarray
        0, 1, 2 and so on, as many as a problem has rows at most.
    beta : ndarray of shape (rows,)
        Feasible but for rounding.
    f : ndarray of shape (2, rows)
        Overwritten: ``K beta``, and ``beta / C`` within its bounds.
    found : ndarray of shape (pairs, sums)
        Overwritten for those that are live: :data:`SUMS`.
    """
    for k in live:
        first, end = pairs.begins[k], pairs.begins[k + 1]
        rows, own, values, alpha = members[: end - first], beta[first:end], f[0][first:end], f[1][first:end]
        kernel_sums(pairs, k, own, alpha, values)
        for t in range(own.size):
            alpha[t] = min(max(own[t], pairs.low[first + t]), pairs.high[first + t]) / pairs.C
        terms = Pointwise(loss, pairs.y[first:end], pairs.weights[first:end], False)
        offset = offset_of(terms, rows, values, 0.0, 0.0)
        if kinked:
            offset = midway(terms, rows, values, offset)
        paid, conjugates, _, charged, _ = sums_of(terms, rows, values, offset, alpha)
        found[k, 0], found[k, 1], found[k, 2], found[k, 3] = offset, paid, conjugates, charged
        size_sums(pairs, k, terms, offset, own, values, alpha, found[k])
