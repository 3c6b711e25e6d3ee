"""The sums that certificates of many small kernel problems are made of, in compiled code.

The rows of a problem stand in parts of one sign and of consecutive points, and groups of parts have a free intercept
each: two classes of points share one, the machines with nu have one for each class, or for each side of a tube. The
sums are those of :mod:`saddlesvm.kernel.kernel_certificate`, which turns them into certificates, too.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.kernel.row_table import Table
from saddlesvm.problem.bounds import LEAF, UNIT
from saddlesvm.problem.loss import Shape, traits_of
from saddlesvm.problem.terms import weight_of
from saddlesvm.runtime.compiled import inlined, kernel

NEAR = 1e-12  # relative distance of offsets, and slope for each row, that count as zero
FAR = 1e300  # beyond every kink
SUMS = (
    "paid", "conjugates", "charged", "paired_norm", "paired", "slip", "slip_squares", "largest_slip", "beta_slip",
    "beta_f", "away_length", "beta_length",
)  # fmt: skip
ROUNDING = 1e-15  # relative, of an offset


class OfGroup(NamedTuple):
    """The sums of a group of rows, and its offset.

    Attributes
    ----------
    offset, rows : float
    positive, negative : float
        Of the sizes of the positive and of the negative alpha.
    alpha_length : float
        Of ``|alpha_i| sqrt(k(x_i, x_i))``.
    room, room_length, charged_at_top : float
        Of the ways of alpha to their upper bounds, the same times the lengths, and the sizes of the conjugates there;
        zero where the total is zero.
    """

    offset: float
    rows: float
    positive: float
    negative: float
    alpha_length: float
    room: float
    room_length: float
    charged_at_top: float


COMMON, PLACES = len(SUMS), len(OfGroup._fields)


class Programs(NamedTuple):
    """Problems with their rows one problem after the other, in each one part after the other.

    Attributes
    ----------
    table : Table
        Kernel values.
    begins : ndarray of shape (problems + 1,)
        Where the rows of each begin, and their number.
    starts : ndarray of shape (problems, parts + 1)
        Where the rows of each part begin within the problem, and the rows of all parts.
    columns : ndarray of shape (problems, parts)
        The first point of each part; the others follow.
    signs : ndarray of shape (parts,)
        -1.0 and 1.0: the kernel value of two rows is that of their points times both signs.
    groups : ndarray of shape (groups + 1,)
        The first part of each group, and the number of parts.
    totals : ndarray of shape (problems, groups)
        The sums of the dual variables of each group, divided by C.
    tube : float
        See :class:`~saddlesvm.kernel.kernel_problem.KernelProblem`.
    y, low, high, ridge, lengths : ndarray of shape (rows,)
        Labels or targets, the box of beta, what is added to the diagonal, and ``sqrt(k(x_i, x_i))`` or more.
    weights : ndarray of shape (rows,) or (0,)
    bases : ndarray of shape (2, rows)
        See :class:`~saddlesvm.kernel.kernel_errors.KernelErrors`.
    mixing : ndarray of shape (problems, 3, 3)
        The same.
    leaves : ndarray of shape (problems,)
        Products that are added up before they are added to the sum of so many.
    C : float
    """

    table: Table
    begins: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    signs: np.ndarray
    groups: np.ndarray
    totals: np.ndarray
    tube: float
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


class BoxedLoss(NamedTuple):
    """Any loss that kernel solvers can have, by the numbers that it is made of: compiled code has one version for all.

    ``phi*(-a) = tube |a| - a y + ridge a^2 / 2`` between two bounds of a, so that with u = y - z

        phi(z) = max_a  a u - tube |a| - ridge a^2 / 2,      a = soft(u, tube) / ridge  within its bounds.

    Attributes
    ----------
    tube, ridge : float
    least, most : float
        The bounds of a where y is at most 0.
    low, high : float
        The bounds where y is positive.
    kinked : bool
        It has kinks, and no curvature.
    residual : bool
        It depends on ``z - y`` only.
    """

    tube: float
    ridge: float
    least: float
    most: float
    low: float
    high: float
    kinked: bool
    residual: bool

    @classmethod
    def of(cls, loss: Any) -> BoxedLoss:
        """A loss with a ``ridge``, in these numbers."""
        tube = float(loss.tube()) if hasattr(loss, "tube") else 0.0
        (least, most), (low, high) = loss.bounds(-1.0, 1.0), loss.bounds(1.0, 1.0)
        kinked, residual = traits_of(loss).shape is Shape.KINKED, traits_of(loss).task == "regression"
        numbers = float(loss.ridge()), float(least), float(most), float(low), float(high)
        return cls(tube, *numbers, kinked, residual)


@inlined
def response(loss: BoxedLoss, u: float, y: float) -> tuple[float, bool]:
    """The dual variable of a row of weight 1 that answers a margin, zero at a kink; and whether it bends there."""
    low, high = (loss.low, loss.high) if y > 0.0 else (loss.least, loss.most)
    beyond = max(u - loss.tube, 0.0) + min(u + loss.tube, 0.0)
    if loss.ridge > 0.0:
        a = min(max(beyond / loss.ridge, low), high)
        return a, a != 0.0 and low < a < high
    return (high if beyond > 0.0 else low if beyond < 0.0 else 0.0), False


@inlined
def paid_at(loss: BoxedLoss, u: float, y: float) -> float:
    """The loss of a row of weight 1."""
    a, _ = response(loss, u, y)
    return a * u - loss.tube * abs(a) - 0.5 * loss.ridge * a * a


@inlined
def conjugate_at(loss: BoxedLoss, a: float, y: float, s: float) -> float:
    """What a row of weight s subtracts from the dual, within its bounds."""
    return loss.tube * abs(a) - a * y + 0.5 * loss.ridge * a * a / s


@kernel
def expand_each(programs: Programs, live: np.ndarray, beta: np.ndarray, f: np.ndarray) -> None:
    """``f = K beta`` of the problems `live`, leaf by leaf as in :func:`~saddlesvm.kernel.mercer.expand`, and alpha.

    Parameters
    ----------
    beta : ndarray of shape (rows,)
    f : ndarray of shape (2, rows)
        Overwritten: the values, and ``beta / C`` within its bounds.
    """
    for k in live:
        begin, end = programs.begins[k], programs.begins[k + 1]
        columns, starts = programs.columns[k], programs.starts[k]
        values, leaf_sums, held = f[0][begin:end], f[1][begin:end], 0
        for t in range(values.size):
            values[t] = leaf_sums[t] = 0.0
        for part in range(columns.size):
            for j in range(starts[part], starts[part + 1]):
                if beta[begin + j] == 0.0:
                    continue
                row = programs.table.values[programs.table.slots[columns[part] + j - starts[part]]]
                for other in range(columns.size):
                    b = beta[begin + j] * programs.signs[part] * programs.signs[other]
                    first, last, column = starts[other], starts[other + 1], columns[other]
                    into, of_row = leaf_sums[first:last], row[column : column + last - first]
                    for t in range(into.size):
                        into[t] += b * of_row[t]
                held += 1
                if held == programs.leaves[k]:
                    held = 0
                    for t in range(values.size):
                        values[t] += leaf_sums[t]
                        leaf_sums[t] = 0.0
        for t in range(values.size):
            values[t] += leaf_sums[t]
        for i in range(begin, end):
            f[1, i] = min(max(beta[i], programs.low[i]), programs.high[i]) / programs.C


@kernel
def best_offsets(programs: Programs, loss: BoxedLoss, live: np.ndarray, f: np.ndarray, offsets: np.ndarray) -> None:
    """The best offset of each group of the problems `live`, by guarded Newton steps.

    Where all of an interval is best, for a loss with kinks, it is the middle, as in
    :func:`~saddlesvm.kernel.kernel_certificate.best_midway`: no slope changes between two kinks.

    Parameters
    ----------
    f : ndarray of shape (rows,)
    offsets : ndarray of shape (problems, groups)
        Overwritten for those that are live.
    """
    for k in live:
        for group in range(programs.groups.size - 1):
            starts, total = programs.starts[k], programs.totals[k, group]
            first = programs.begins[k] + starts[programs.groups[group]]
            end = programs.begins[k] + starts[programs.groups[group + 1]]
            b, low, high, width, flat = 0.0, -FAR, FAR, 1.0, NEAR * (end - first + abs(total))
            while width < FAR:
                slope, bend = total, 0.0
                for i in range(first, end):
                    y, s = programs.y[i], weight_of(programs.weights, i)
                    a, within = response(loss, y - f[i] - b, y)
                    slope -= s * a
                    bend += s if within else 0.0
                if abs(slope) <= (flat if loss.kinked else 0.0):
                    break
                if slope > 0.0:
                    high = b
                else:
                    low = b
                aim = b - slope * loss.ridge / bend if bend > 0.0 else FAR
                if not low < aim < high:
                    open_end = low == -FAR or high == FAR
                    aim = b - math.copysign(width, slope) if open_end else 0.5 * (low + high)
                    width *= 2.0
                if abs(aim - b) <= ROUNDING * (1.0 + abs(b)):
                    break
                b = aim
            offsets[k, group] = b
            if loss.kinked and abs(slope) <= flat:
                below, above, near = -FAR, FAR, NEAR * (1.0 + abs(b))
                for i in range(first, end):
                    for way in range(2):
                        kink = programs.y[i] - f[i] + (loss.tube if way else -loss.tube)
                        below = max(below, kink if kink <= b + near else -FAR)
                        above = min(above, kink if kink >= b - near else FAR)
                if below > -FAR and above < FAR:
                    offsets[k, group] = 0.5 * (below + above)


@kernel
def certificate_sums(programs: Programs, loss: BoxedLoss, live: np.ndarray,
                     point: tuple[np.ndarray, np.ndarray, np.ndarray], offsets: np.ndarray,
                     found: np.ndarray) -> None:  # fmt: skip
    """What certificates of the problems `live` are made of.

    The errors of values count in rows that may pay a loss, see
    :func:`~saddlesvm.kernel.kernel_certificate.may_pay`. The sums of the ways to the upper bounds
    stay zero where a total is zero.

    Parameters
    ----------
    point : tuple of three ndarrays of shape (rows,)
        beta, f and alpha.
    offsets : ndarray of shape (problems, groups)
    found : ndarray of shape (problems, sums)
        Overwritten for those that are live: :data:`SUMS`, and those of :class:`OfGroup` for each group.
    """
    for k in live:
        begin, mix, sums = programs.begins[k], programs.mixing[k], found[k]
        sums[:] = none = one = two = 0.0
        for i in range(begin, programs.begins[k + 1]):
            size = abs(point[0][i])
            none, one, two = none + size, one + size * programs.bases[0, i], two + size * programs.bases[1, i]
        flat = mix[0, 0] * none + mix[0, 1] * one + mix[0, 2] * two
        by_first = mix[1, 0] * none + mix[1, 1] * one + mix[1, 2] * two
        by_second = mix[2, 0] * none + mix[2, 1] * one + mix[2, 2] * two
        for group in range(programs.groups.size - 1):
            offset, own = offsets[k, group], sums[COMMON + group * PLACES : COMMON + (group + 1) * PLACES]
            first = begin + programs.starts[k, programs.groups[group]]
            end = begin + programs.starts[k, programs.groups[group + 1]]
            own[0], own[1] = offset, end - first
            for start in range(first, end, LEAF):  # leaf by leaf: see bounds.loss_sizes
                paid = conjugates = charged = positive = negative = 0.0
                for i in range(start, min(start + LEAF, end)):
                    b, f, a, y = point[0][i], point[1][i], point[2][i], programs.y[i]
                    s, size, length = weight_of(programs.weights, i), abs(b), programs.lengths[i]
                    label, u = abs(y) if loss.residual else 0.0, y - f - offset
                    conjugate = conjugate_at(loss, a, y, s)
                    paid += s * paid_at(loss, u, y)
                    conjugates += conjugate
                    charged += abs(conjugate)
                    off = flat + by_first * programs.bases[0, i] + by_second * programs.bases[1, i]
                    e = off + 4.0 * UNIT * (abs(offset) + abs(f) + label)
                    e = e if paid_at(loss, u - 2.0 * e, y) + paid_at(loss, u + 2.0 * e, y) > 0.0 else 0.0
                    top, upwards = programs.high[i] / programs.C, programs.totals[k, group] != 0.0
                    sums[3] += b * f
                    sums[4] += abs(a) * label if loss.residual else abs(a)
                    sums[5], sums[6], sums[7] = sums[5] + s * e, sums[6] + s * e * e, max(sums[7], e)
                    sums[8], sums[9] = sums[8] + size * off, sums[9] + size * abs(f)
                    sums[10], sums[11] = sums[10] + abs(b - programs.C * a) * length, sums[11] + size * length
                    positive += max(a, 0.0)
                    negative += max(-a, 0.0)
                    own[4] += abs(a) * length
                    if upwards:
                        own[5], own[6] = own[5] + (top - a), own[6] + (top - a) * length
                        own[7] += abs(conjugate_at(loss, top, y, s))
                sums[0], sums[1], sums[2] = sums[0] + paid, sums[1] + conjugates, sums[2] + charged
                own[2] += positive
                own[3] += negative
