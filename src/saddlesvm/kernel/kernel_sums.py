"""The sums over the rows behind the certificate of every kernel problem, in compiled code.

A problem has one or several groups of rows, each with an offset of its own: two classes share it;
the machines with nu have it for each class, or for each side of a tube. Many small problems stand
one after another, so that a single call serves them all: that takes a tenth of the time of array
code for problems of some hundred rows.

The values ``f = K beta`` of a model come with bounds on their errors, from
:mod:`saddlesvm.kernel.kernel_errors` or :mod:`saddlesvm.kernel.rough_values`. The account of all
rounding is made by :func:`saddlesvm.problem.bounds.sums_of_values`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.bounds import (
    LEAF,
    PAIRED as IN_PAIRS,
    UNIT,
    Bounded,
    Move,
    PointSizes,
    Room,
    RowSizes,
    ValueSums,
    gamma,
    loss_sizes,
    move_to_sum,
    sums_of_values,
)
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.loss import Loss, traits_of
from saddlesvm.problem.problem import Strength
from saddlesvm.problem.terms import weight_of
from saddlesvm.runtime.compiled import inlined, kernel

NEAR = 1e-12  # relative distance of offsets, and slope for each row, that count as zero
FAR = 1e300  # beyond every kink
ROUNDING = 1e-15  # relative, of an offset
SHORT = 32  # variables of one sign that are added up before they are added to the sum
# The places of the sums of a problem in the array that certificate_sums fills.
SUMS = (
    "paid",  # losses
    "conjugates",
    "charged",  # sizes of the conjugates
    "paired",  # sizes of alpha, times the sizes of targets
    "slip",  # s_i e_i: what errors e_i of the scores may change in the losses
    "slip_squares",  # s_i e_i^2
    "largest_slip",  # the largest e_i
    "away",  # |beta_i - C alpha_i| times the lengths of the rows
    "length",  # |beta_i| times the lengths of the rows
)
PAID, CONJUGATES, CHARGED, PAIRED, SLIP, SLIP_SQUARES, LARGEST_SLIP, AWAY, LENGTH = range(9)
COMMON = len(SUMS)
# Behind them the numbers of each group.
GROUP = (
    "offset",
    "rows",
    "positive",  # sizes of the positive alpha, and of the negative
    "negative",
    "alpha_length",  # |alpha_i| sqrt(k(x_i, x_i))
    "room",  # distances of alpha to their upper bounds; zero if the group's total is zero
    "room_length",  # the same times the lengths
    "charged_at_top",  # sizes of the conjugates at the upper bounds; or zero, as before
)
OFFSET, ROWS, POSITIVE, NEGATIVE, ALPHA_LENGTH, ROOM, ROOM_LENGTH, CHARGED_AT_TOP = range(8)
PLACES = len(GROUP)


class JudgedRows(NamedTuple):
    """The rows of kernel problems, problem by problem and group by group.

    Attributes
    ----------
    groups : int ndarray of shape (problems, groups + 1)
        First row of each group, and the end of the last group.
    totals : ndarray of shape (problems, groups)
        The sums that the dual variables of each group must have, divided by C.
    y, lengths, top : ndarray of shape (rows,)
        Labels or targets, ``sqrt(k(x_i, x_i))`` or more, and the upper bounds of alpha.
    weights : ndarray of shape (rows,) or (0,)
    C : float
    """

    groups: np.ndarray
    totals: np.ndarray
    y: np.ndarray
    lengths: np.ndarray
    top: np.ndarray
    weights: np.ndarray
    C: float


class BoxedLoss(NamedTuple):
    """Any loss that kernel solvers take, by its numbers: compiled code has the same text for all.

    ``phi*(-a) = tube |a| - a y`` between two bounds of a, so that with u = y - z

        phi(z) = max_a  a u - tube |a|,    a at a bound, or zero if |u| <= tube.

    Attributes
    ----------
    tube : float
    least, most : float
        The bounds of a if y is at most 0.
    low, high : float
        The bounds if y is positive.
    residual : bool
        It depends on ``z - y`` only.
    """

    tube: float
    least: float
    most: float
    low: float
    high: float
    residual: bool


def boxed_loss(loss: Any) -> BoxedLoss:
    """Return the numbers of a loss with a ``tube``."""
    least, most = loss.bounds(-1.0, 1.0)
    low, high = loss.bounds(1.0, 1.0)
    return BoxedLoss(
        tube=float(loss.tube()),
        least=float(least),
        most=float(most),
        low=float(low),
        high=float(high),
        residual=traits_of(loss).task == "regression",
    )


@inlined
def best_dual(loss: BoxedLoss, u: float, y: float) -> float:
    """Return the dual variable of a margin of weight 1: at a bound, or anywhere at a kink."""
    if u > loss.tube:
        return loss.high if y > 0.0 else loss.most
    if u < -loss.tube:
        return loss.low if y > 0.0 else loss.least
    return 0.0


@inlined
def loss_value(loss: BoxedLoss, u: float, y: float) -> float:
    """Return the loss of a row of weight 1, the maximum over its dual variable."""
    a = best_dual(loss, u, y)
    return a * u - loss.tube * abs(a)


@inlined
def conjugate_value(loss: BoxedLoss, a: float, y: float) -> float:
    """Return what a row subtracts from the dual, within its bounds."""
    return loss.tube * abs(a) - a * y


@kernel
def best_offsets(
    judged: JudgedRows, loss: BoxedLoss, live: np.ndarray, f: np.ndarray, offsets: np.ndarray
) -> None:  # fmt: skip
    """Find the best offset of each group of the problems `live`, by bisection.

    If all of an interval is best, it is the middle, as in LIBSVM: no slope changes between two
    kinks.

    Parameters
    ----------
    f : ndarray of shape (rows,)
    offsets : ndarray of shape (problems, groups)
        Overwritten for the live problems.
    """
    for k in live:
        for group in range(judged.totals.shape[1]):
            total = judged.totals[k, group]
            first = judged.groups[k, group]
            end = judged.groups[k, group + 1]
            b = 0.0
            low = -FAR
            high = FAR
            width = 1.0
            flat = NEAR * (end - first + abs(total))
            while width < FAR:
                # The slope of the objective in b.
                slope = total
                for i in range(first, end):
                    y = judged.y[i]
                    s = weight_of(judged.weights, i)
                    slope -= s * best_dual(loss, y - f[i] - b, y)
                if abs(slope) <= flat:
                    break
                # The best offset lies between low and high.
                if slope > 0.0:
                    high = b
                else:
                    low = b
                # The middle, or a wider step while an end is open.
                is_open = low == -FAR or high == FAR
                aim = b - math.copysign(width, slope) if is_open else 0.5 * (low + high)
                width *= 2.0
                if abs(aim - b) <= ROUNDING * (1.0 + abs(b)):
                    break
                b = aim
            offsets[k, group] = b
            # A flat stretch ends at the nearest kinks: take its middle.
            if abs(slope) <= flat:
                below = -FAR
                above = FAR
                near = NEAR * (1.0 + abs(b))
                for i in range(first, end):
                    for side in range(2):
                        kink = judged.y[i] - f[i] + (loss.tube if side else -loss.tube)
                        below = max(below, kink if kink <= b + near else -FAR)
                        above = min(above, kink if kink >= b - near else FAR)
                if below > -FAR and above < FAR:
                    offsets[k, group] = 0.5 * (below + above)


@kernel
def certificate_sums(
    judged: JudgedRows,
    loss: BoxedLoss,
    live: np.ndarray,
    point: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    offsets: np.ndarray,
    found: np.ndarray,
) -> None:
    """Compute the sums that certificates of the problems `live` need.

    Errors of scores count for rows that may pay a loss. The sums of the distances to the upper
    bounds stay zero if a total is zero.

    Parameters
    ----------
    point : tuple of four ndarrays of shape (rows,)
        The model's f with bounds on its errors; beta and alpha of the dual point.
    offsets : ndarray of shape (problems, groups)
    found : ndarray of shape (problems, sums)
        Overwritten for the live problems: :data:`SUMS`, and :data:`GROUP` for each group.
    """
    for k in live:
        sums = found[k]
        sums[:] = 0.0
        for group in range(judged.totals.shape[1]):
            own = sums[COMMON + group * PLACES : COMMON + (group + 1) * PLACES]
            first = judged.groups[k, group]
            end = judged.groups[k, group + 1]
            own[OFFSET] = offsets[k, group]
            own[ROWS] = end - first
            has_total = judged.totals[k, group] != 0.0
            # Losses and conjugates are summed leaf by leaf: their rounding is that of
            # bounds.loss_sizes.
            for start in range(first, end, LEAF):
                add_leaf(judged, loss, point, (start, min(start + LEAF, end)), has_total, sums, own)


@inlined
def add_leaf(
    judged: JudgedRows,
    loss: BoxedLoss,
    point: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    rows: tuple[int, int],
    has_total: bool,
    sums: np.ndarray,
    own: np.ndarray,
) -> None:
    """Add a leaf of rows to the sums of a problem and of a group."""
    values, errors, betas, alphas = point
    offset = own[OFFSET]
    paid = conjugates = charged = positive = negative = 0.0
    for i in range(rows[0], rows[1]):
        f = values[i]
        b = betas[i]
        a = alphas[i]
        y = judged.y[i]
        s = weight_of(judged.weights, i)
        size = abs(b)
        length = judged.lengths[i]
        label = abs(y) if loss.residual else 0.0
        u = y - f - offset
        conjugate = conjugate_value(loss, a, y)
        paid += s * loss_value(loss, u, y)
        conjugates += conjugate
        charged += abs(conjugate)
        # e bounds the error of the margin. It counts if the row may pay within twice of it, because
        # the ends are rounded; a convex loss that is zero at both ends is zero between them.
        e = errors[i] + 4.0 * UNIT * (abs(offset) + abs(f) + label)
        if loss_value(loss, u - 2.0 * e, y) + loss_value(loss, u + 2.0 * e, y) == 0.0:
            e = 0.0
        sums[PAIRED] += abs(a) * label if loss.residual else abs(a)
        sums[SLIP] += s * e
        sums[SLIP_SQUARES] += s * e * e
        sums[LARGEST_SLIP] = max(sums[LARGEST_SLIP], e)
        sums[AWAY] += abs(b - judged.C * a) * length
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
            top = judged.top[i]
            own[ROOM] += top - a
            own[ROOM_LENGTH] += (top - a) * length
            own[CHARGED_AT_TOP] += abs(conjugate_value(loss, top, y))
    sums[PAID] += paid
    sums[CONJUGATES] += conjugates
    sums[CHARGED] += charged
    own[POSITIVE] += positive
    own[NEGATIVE] += negative


def certificate_of_sums(
    loss: Loss,
    strength: Strength,
    totals: Sequence[float],
    numbers: Sequence[float],
    halves: tuple[Bounded, Bounded],
) -> Certificate:
    """Return the certificate of a problem.

    Parameters
    ----------
    totals : sequence of float
        Of the groups; empty if no intercept is free.
    numbers : sequence of float
        As :func:`certificate_sums` has computed them.
    halves : pair of Bounded
        Half the squared norms of the model and of the dual point.
    """
    paid, conjugates, charged, paired, slip, squares, largest, away, length = numbers[:COMMON]
    groups = [numbers[k : k + PLACES] for k in range(COMMON, len(numbers), PLACES)]
    n = sum(group[ROWS] for group in groups)
    # A free intercept needs sums that rounding misses: the cost of a move of alpha to them is
    # bounded.
    moves = [
        move_of_group(group, total, charged) for group, total in zip(groups, totals, strict=False)
    ]
    # A group with a given sum pays its offset times that sum.
    offset_costs = [total * group[OFFSET] for group, total in zip(groups, totals, strict=False)]
    asked = Bounded(sum(offset_costs), gamma(8.0) * sum(map(abs, offset_costs)))
    # In place of the rows' lengths, the bounds on the errors of their scores.
    errors = RowSizes(rows=n, terms=0.0, weight=0.0, reach=slip, squares=squares, longest=largest)
    found = ValueSums(
        paid=paid,
        conjugates=conjugates,
        charged=charged,
        paired=paired,
        rows=errors,
        # beta and C alpha differ by rounding and by the box: so far may their functions be apart.
        away=away + UNIT * length,
    )
    sums = sums_of_values(loss_sizes(loss, n), strength.C, found, halves, asked, moves)
    if any(totals):
        # Zero is not feasible: it proves nothing.
        sums = sums._replace(at_zero=-math.inf)
    return Certificate.from_sums(strength, sums)


def move_of_group(group: Sequence[float], total: float, charged: float) -> Move:
    """Return the move of a group's duals to their sum; `charged` sums the conjugates' sizes."""
    # A move depends on these sizes of the dual variables alone.
    sizes = PointSizes(
        labels=0.0,
        label_squares=0.0,
        pulled=group[ALPHA_LENGTH],
        paired=0.0,
        positive=group[POSITIVE],
        negative=group[NEGATIVE],
    )
    room = Room(way=group[ROOM], pulled=group[ROOM_LENGTH], charged=group[CHARGED_AT_TOP])
    # The kernel adds SHORT variables, then their sum; few rows meet no more than in array code.
    additions = max(IN_PAIRS, SHORT + group[ROWS] / SHORT + 8.0)
    return move_to_sum(sizes, group[ROWS], charged, total, lambda: room, additions)


def half_square(beta: np.ndarray, f: np.ndarray, slips: np.ndarray) -> Bounded:
    """Return half the squared norm, ``beta' f / 2``; `slips` bound the errors of the values f."""
    size = np.abs(beta)
    error = float(size @ slips) + gamma(beta.size + 4.0) * float(size @ np.abs(f))
    return Bounded(half_norm(beta, f), 0.5 * error)


def half_norm(beta: np.ndarray, f: np.ndarray) -> float:
    """Return ``1/2 ||w||^2`` of ``w = sum_i beta_i k(x_i, .)``, whose values are ``f = K beta``."""
    return 0.5 * float(beta @ f)
