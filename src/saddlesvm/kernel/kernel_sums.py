"""The sums behind certificates of many small kernel problems, in compiled code.

The rows of a problem stand in parts of the same sign and of consecutive points. Groups of parts
have a free intercept each: two classes of points share it, the machines with nu have it for each
class, or for each side of a tube. The sums are as in :mod:`saddlesvm.kernel.kernel_certificate`;
the bounds on rounding in them are as in :mod:`saddlesvm.kernel.kernel_errors`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.kernel.row_table import KernelTable
from saddlesvm.problem.bounds import LEAF, UNIT
from saddlesvm.problem.loss import Shape, traits_of
from saddlesvm.problem.terms import weight_of
from saddlesvm.runtime.compiled import inlined, kernel

NEAR = 1e-12  # relative distance of offsets, and slope for each row, that count as zero
FAR = 1e300  # beyond every kink
ROUNDING = 1e-15  # relative, of an offset
# The places of the sums of a problem in the array that certificate_sums fills.
SUMS = (
    "paid",  # losses
    "conjugates",
    "charged",  # sizes of the conjugates
    "paired_norm",  # beta' f, the squared norm
    "paired",  # sizes of alpha, times those of targets
    "slip",  # s_i e_i: what errors e_i of the scores may change in the losses
    "slip_squares",  # s_i e_i^2
    "largest_slip",  # the largest e_i
    "beta_slip",  # |beta_i| times the errors of f_i
    "beta_f",  # |beta_i f_i|
    "away_length",  # |beta_i - C alpha_i| times the lengths of the rows
    "beta_length",  # |beta_i| times the lengths of the rows
)
(
    PAID,
    CONJUGATES,
    CHARGED,
    NORM,
    PAIRED,
    SLIP,
    SLIP_SQUARES,
    LARGEST_SLIP,
    BETA_SLIP,
    BETA_F,
    AWAY,
    LENGTH,
) = range(12)


class GroupSums(NamedTuple):
    """The sums of a group of rows, and its offset.

    Attributes
    ----------
    offset, rows : float
    positive, negative : float
        Of the sizes of the positive and of the negative alpha.
    alpha_length : float
        Of ``|alpha_i| sqrt(k(x_i, x_i))``.
    room, room_length, charged_at_top : float
        Of the distances of alpha to their upper bounds, the same times the lengths, and the sizes
        of the conjugates there; zero if the total is zero.
    """

    offset: float
    rows: float
    positive: float
    negative: float
    alpha_length: float
    room: float
    room_length: float
    charged_at_top: float


SHORT = 32  # variables of one sign that are added up before they are added to the sum
COMMON = len(SUMS)
PLACES = len(GroupSums._fields)
OFFSET, ROWS, POSITIVE, NEGATIVE, ALPHA_LENGTH, ROOM, ROOM_LENGTH, CHARGED_AT_TOP = range(8)


class Programs(NamedTuple):
    """Problems whose rows stand problem by problem, and part by part.

    Attributes
    ----------
    table : KernelTable
        Kernel values.
    begins : ndarray of shape (problems + 1,)
        First row of each problem, and the number of rows.
    starts : ndarray of shape (problems, parts + 1)
        First row of each part within the problem, and the rows of all parts.
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
        Labels or targets, the box of beta, what is added to the diagonal, and ``sqrt(k(x_i, x_i))``
        or more.
    weights : ndarray of shape (rows,) or (0,)
    bases : ndarray of shape (2, rows)
        See :class:`~saddlesvm.kernel.kernel_errors.KernelErrors`.
    mixing : ndarray of shape (problems, 3, 3)
        The same.
    leaves : ndarray of shape (problems,)
        How many products are added up before their sum is added to the whole.
    C : float
    """

    table: KernelTable
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
    """Any loss that kernel solvers take, by its numbers: compiled code has the same text for all.

    ``phi*(-a) = tube |a| - a y + ridge a^2 / 2`` between two bounds of a, so that with u = y - z

        phi(z) = max_a  a u - tube |a| - ridge a^2 / 2,    a = soft(u, tube) / ridge  in its bounds.

    Attributes
    ----------
    tube, ridge : float
    least, most : float
        The bounds of a if y is at most 0.
    low, high : float
        The bounds if y is positive.
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
        """Return the numbers of a loss with a ``ridge``."""
        least, most = loss.bounds(-1.0, 1.0)
        low, high = loss.bounds(1.0, 1.0)
        return cls(
            tube=float(loss.tube()) if hasattr(loss, "tube") else 0.0,
            ridge=float(loss.ridge()),
            least=float(least),
            most=float(most),
            low=float(low),
            high=float(high),
            kinked=traits_of(loss).shape is Shape.KINKED,
            residual=traits_of(loss).task == "regression",
        )


@inlined
def best_dual(loss: BoxedLoss, u: float, y: float) -> tuple[float, bool]:
    """Return the dual variable of a margin of weight 1, and whether the loss bends there."""
    low = loss.low if y > 0.0 else loss.least
    high = loss.high if y > 0.0 else loss.most
    beyond = max(u - loss.tube, 0.0) + min(u + loss.tube, 0.0)
    if loss.ridge > 0.0:
        a = min(max(beyond / loss.ridge, low), high)
        return a, a != 0.0 and low < a < high
    # Without curvature the answer is at a bound, or anywhere at a kink.
    if beyond > 0.0:
        return high, False
    if beyond < 0.0:
        return low, False
    return 0.0, False


@inlined
def loss_value(loss: BoxedLoss, u: float, y: float) -> float:
    """Return the loss of a row of weight 1, the maximum over its dual variable."""
    a, _ = best_dual(loss, u, y)
    return a * u - loss.tube * abs(a) - 0.5 * loss.ridge * a * a


@inlined
def conjugate_value(loss: BoxedLoss, a: float, y: float, s: float) -> float:
    """Return what a row of weight s subtracts from the dual, within its bounds."""
    return loss.tube * abs(a) - a * y + 0.5 * loss.ridge * a * a / s


@kernel
def expand_each(programs: Programs, live: np.ndarray, beta: np.ndarray, f: np.ndarray) -> None:
    """Compute ``f = K beta`` and alpha of the problems `live`, summed as in ``mercer.expand``.

    Parameters
    ----------
    beta : ndarray of shape (rows,)
    f : ndarray of shape (2, rows)
        Overwritten: the values, and ``beta / C`` within its bounds.
    """
    for k in live:
        begin = programs.begins[k]
        end = programs.begins[k + 1]
        columns = programs.columns[k]
        starts = programs.starts[k]
        values = f[0][begin:end]
        leaf_sums = f[1][begin:end]
        held = 0
        for t in range(values.size):
            values[t] = 0.0
            leaf_sums[t] = 0.0
        # Add the kernel row of every support vector j, a stretch for each part.
        for part in range(columns.size):
            for j in range(starts[part], starts[part + 1]):
                if beta[begin + j] == 0.0:
                    continue
                row = programs.table.values[programs.table.slots[columns[part] + j - starts[part]]]
                for other in range(columns.size):
                    b = beta[begin + j] * programs.signs[part] * programs.signs[other]
                    first = starts[other]
                    last = starts[other + 1]
                    column = columns[other]
                    into = leaf_sums[first:last]
                    of_row = row[column : column + last - first]
                    for t in range(into.size):
                        into[t] += b * of_row[t]
                # A full leaf goes into the sum: each product takes part in few additions.
                held += 1
                if held == programs.leaves[k]:
                    held = 0
                    for t in range(values.size):
                        values[t] += leaf_sums[t]
                        leaf_sums[t] = 0.0
        for t in range(values.size):
            values[t] += leaf_sums[t]
        # The leaf sums make room for alpha.
        for i in range(begin, end):
            f[1, i] = min(max(beta[i], programs.low[i]), programs.high[i]) / programs.C


@kernel
def best_offsets(
    programs: Programs, loss: BoxedLoss, live: np.ndarray, f: np.ndarray, offsets: np.ndarray
) -> None:  # fmt: skip
    """Find the best offset of each group of the problems `live`, by guarded Newton steps.

    If all of an interval is best, for a loss with kinks, it is the middle, as in
    :func:`~saddlesvm.kernel.kernel_certificate.best_midway`: no slope changes between two kinks.

    Parameters
    ----------
    f : ndarray of shape (rows,)
    offsets : ndarray of shape (problems, groups)
        Overwritten for the live problems.
    """
    for k in live:
        for group in range(programs.groups.size - 1):
            starts = programs.starts[k]
            total = programs.totals[k, group]
            first = programs.begins[k] + starts[programs.groups[group]]
            end = programs.begins[k] + starts[programs.groups[group + 1]]
            b = 0.0
            low = -FAR
            high = FAR
            width = 1.0
            flat = NEAR * (end - first + abs(total))
            while width < FAR:
                # The slope of the objective in b, and its second derivative but for the ridge.
                slope = total
                bend = 0.0
                for i in range(first, end):
                    y = programs.y[i]
                    s = weight_of(programs.weights, i)
                    a, within = best_dual(loss, y - f[i] - b, y)
                    slope -= s * a
                    bend += s if within else 0.0
                if abs(slope) <= (flat if loss.kinked else 0.0):
                    break
                # The best offset lies between low and high.
                if slope > 0.0:
                    high = b
                else:
                    low = b
                # Newton's step; if it leaves the bracket, the middle, or a wider step while an end
                # is open.
                aim = b - slope * loss.ridge / bend if bend > 0.0 else FAR
                if not low < aim < high:
                    is_open = low == -FAR or high == FAR
                    aim = b - math.copysign(width, slope) if is_open else 0.5 * (low + high)
                    width *= 2.0
                if abs(aim - b) <= ROUNDING * (1.0 + abs(b)):
                    break
                b = aim
            offsets[k, group] = b
            # A flat stretch ends at the nearest kinks: take its middle.
            if loss.kinked and abs(slope) <= flat:
                below = -FAR
                above = FAR
                near = NEAR * (1.0 + abs(b))
                for i in range(first, end):
                    for side in range(2):
                        kink = programs.y[i] - f[i] + (loss.tube if side else -loss.tube)
                        below = max(below, kink if kink <= b + near else -FAR)
                        above = min(above, kink if kink >= b - near else FAR)
                if below > -FAR and above < FAR:
                    offsets[k, group] = 0.5 * (below + above)


@inlined
def error_of_values(programs: Programs, k: int, beta: np.ndarray) -> tuple[float, float, float]:
    """Return ``flat``, ``first``, ``second`` of the error of f in problem k.

    This is :meth:`~saddlesvm.kernel.kernel_errors.KernelErrors.of_expansion`.
    """
    none = 0.0
    one = 0.0
    two = 0.0
    # Sums of |beta|, alone and times each of the two functions that bound errors.
    for i in range(programs.begins[k], programs.begins[k + 1]):
        size = abs(beta[i])
        none = none + size
        one = one + size * programs.bases[0, i]
        two = two + size * programs.bases[1, i]
    mix = programs.mixing[k]
    flat = mix[0, 0] * none + mix[0, 1] * one + mix[0, 2] * two
    by_first = mix[1, 0] * none + mix[1, 1] * one + mix[1, 2] * two
    by_second = mix[2, 0] * none + mix[2, 1] * one + mix[2, 2] * two
    return flat, by_first, by_second


@kernel
def certificate_sums(
    programs: Programs,
    loss: BoxedLoss,
    live: np.ndarray,
    point: tuple[np.ndarray, np.ndarray, np.ndarray],
    offsets: np.ndarray,
    found: np.ndarray,
) -> None:
    """Compute the sums that certificates of the problems `live` need.

    Errors of scores count for rows that may pay a loss, see
    :func:`~saddlesvm.kernel.kernel_certificate.may_pay`. The sums of the distances to the upper
    bounds stay zero if a total is zero.

    Parameters
    ----------
    point : tuple of three ndarrays of shape (rows,)
        beta, f and alpha.
    offsets : ndarray of shape (problems, groups)
    found : ndarray of shape (problems, sums)
        Overwritten for the live problems: :data:`SUMS`, and those of :class:`GroupSums` for each
        group.
    """
    for k in live:
        sums = found[k]
        sums[:] = 0.0
        errors = error_of_values(programs, k, point[0])
        for group in range(programs.groups.size - 1):
            own = sums[COMMON + group * PLACES : COMMON + (group + 1) * PLACES]
            first = programs.begins[k] + programs.starts[k, programs.groups[group]]
            end = programs.begins[k] + programs.starts[k, programs.groups[group + 1]]
            own[OFFSET] = offsets[k, group]
            own[ROWS] = end - first
            has_total = programs.totals[k, group] != 0.0
            # Losses and conjugates are summed leaf by leaf: their rounding is that of
            # bounds.loss_sizes.
            for start in range(first, end, LEAF):
                add_leaf(
                    programs,
                    loss,
                    point,
                    errors,
                    (start, min(start + LEAF, end)),
                    has_total,
                    sums,
                    own,
                )


@inlined
def add_leaf(
    programs: Programs,
    loss: BoxedLoss,
    point: tuple[np.ndarray, np.ndarray, np.ndarray],
    errors: tuple[float, float, float],
    rows: tuple[int, int],
    has_total: bool,
    sums: np.ndarray,
    own: np.ndarray,
) -> None:
    """Add a leaf of rows to the sums of a problem and of a group."""
    flat, by_first, by_second = errors
    offset = own[OFFSET]
    paid = conjugates = charged = positive = negative = 0.0
    for i in range(rows[0], rows[1]):
        b = point[0][i]
        f = point[1][i]
        a = point[2][i]
        y = programs.y[i]
        s = weight_of(programs.weights, i)
        size = abs(b)
        length = programs.lengths[i]
        label = abs(y) if loss.residual else 0.0
        u = y - f - offset
        conjugate = conjugate_value(loss, a, y, s)
        paid += s * loss_value(loss, u, y)
        conjugates += conjugate
        charged += abs(conjugate)
        # e bounds the error of the margin; it counts if the row may pay within twice of it.
        off = flat + by_first * programs.bases[0, i] + by_second * programs.bases[1, i]
        e = off + 4.0 * UNIT * (abs(offset) + abs(f) + label)
        e = e if loss_value(loss, u - 2.0 * e, y) + loss_value(loss, u + 2.0 * e, y) > 0.0 else 0.0
        sums[NORM] += b * f
        sums[PAIRED] += abs(a) * label if loss.residual else abs(a)
        sums[SLIP] += s * e
        sums[SLIP_SQUARES] += s * e * e
        sums[LARGEST_SLIP] = max(sums[LARGEST_SLIP], e)
        sums[BETA_SLIP] += size * off
        sums[BETA_F] += size * abs(f)
        sums[AWAY] += abs(b - programs.C * a) * length
        sums[LENGTH] += size * length
        positive += max(a, 0.0)
        negative += max(-a, 0.0)
        # Short sums add up to the long one, so that rounding errors stay small.
        if (i - rows[0]) % SHORT == SHORT - 1:
            own[POSITIVE] += positive
            own[NEGATIVE] += negative
            positive = negative = 0.0
        own[ALPHA_LENGTH] += abs(a) * length
        if has_total:
            top = programs.high[i] / programs.C
            own[ROOM] += top - a
            own[ROOM_LENGTH] += (top - a) * length
            own[CHARGED_AT_TOP] += abs(conjugate_value(loss, top, y, s))
    sums[PAID] += paid
    sums[CONJUGATES] += conjugates
    sums[CHARGED] += charged
    own[POSITIVE] += positive
    own[NEGATIVE] += negative
