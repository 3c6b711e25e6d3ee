"""Bounds on the rounding errors of a certificate, for the numbers that stored floats are.

A sum of k products differs from its exact value by at most ``gamma(k)`` times the sum of their
sizes, in whatever order it is taken, ``gamma(k) = k u / (1 - k u)`` with ``u = 2^-53`` (Higham
2002, "Accuracy and stability of numerical algorithms", chapter 3). Everything here follows from
that, from Cauchy and Schwarz, and from three properties of the losses: their slopes or their
curvature are bounded, their smallest value is zero, and zero is their conjugate's value at zero.
With ``r_i = ||x_i||``, m terms in a margin and n rows:

    (1)  |z_i - z^_i|   <=  e_i = gamma(m) r_i ||w||  (+ u |y_i| for a residual)
    (2)  sum s_i phi_i  <=  its value at z^  +  min(slope sum s_i e_i,
                                sqrt(2 curvature value sum s_i e_i^2) + ...)
    (3)  ||v - v^||     <=  eps = gamma(n) C sum |a_i| r_i
    (4)  R*(v)          <=  C sum a_i z_i - R(w) + (||v^ - w|| + eps)^2 / 2     for any w and its z
    (5)  R*(v)          <=  (||v^|| + eps)^2 / 2

Bound (3) is large if n is. (4) needs it only squared, or beside a distance that is nearly zero
at the optimum; the better of (4) and (5) counts. A free intercept asks for ``sum a_i = 0``, which
rounding misses: the bound is then that of the dual point whose heavier sign is shortened by exactly
what is missing.

The account is made once, here, for every machine and every place of the rows. Sizes
(:class:`RowSizes`, :class:`PointSizes`, :class:`LossSizes`) are sums that a pass over the rows adds
up; :func:`bound_sums` and :func:`sums_of_values` turn them, and the sums of
:mod:`saddlesvm.problem.sums`, into the four numbers of a certificate with a bound on the error of
each. `docs/how/certificate.md` has the derivation; :mod:`saddlesvm.problem.short_sums` has sums
that hardly round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from saddlesvm.problem.loss import Loss, traits_of
from saddlesvm.problem.penalties import holds_square
from saddlesvm.problem.regularizer import Regularizer, square
from saddlesvm.problem.terms import BLOCK, in_blocks
from saddlesvm.rows.layouts import Rows
from saddlesvm.runtime.compiled import arithmetic

# Of arithmetic, in units of the last place; derived from the operations, rounded up. Counts of
# roundings below have 4 or 8 to spare, for the few operations beside a sum (a factor, a root).
UNIT = 2.0**-53  # of a rounding to the nearest double, relative
MARGIN_UNITS = 6  # roundings of a margin beside its product's: of the offset, and of its scale
LABEL_UNITS = 4.0  # of a target as it is taken off a score, and as an offset is taken off it before
OFFSET_UNITS = 2.0  # of an offset as it is added to a margin
LOSS_UNITS = 32  # of phi, and of phi* beside |phi*| + 2 |a y|, as losses compute them
EXPONENTIAL_UNITS = 160  # the same of losses with exponentials and logarithms
LEAF = 512  # terms that are added up before they are added to a sum, at most
PAIRED = 64.0  # additions that a term meets in NumPy's sum of a block, at most: it adds in pairs
SLACK = 1.01  # the sums of sizes are rounded too: far more than gamma of any number of rows
SQUARED_UNDERFLOW = 1e-290  # what squares that underflow can have lost of a squared norm
UNDERFLOW = 1e-300  # the same of an objective, for each row and feature
LARGEST = ("terms", "longest", "largest_label")  # sizes that are the largest of any row

Around = Callable[[float], float]
Value = TypeVar("Value", float, np.ndarray)


# ---- Units


def gamma(count: float) -> float:
    """``k u / (1 - k u)``, the relative error of k roundings; infinite if they leave nothing."""
    part = count * UNIT
    return part / (1.0 - part) if part < 1.0 else math.inf


def radii(norms: np.ndarray) -> np.ndarray:
    """``||x_i||`` from squared norms, no smaller than it is."""
    return np.sqrt(norms + SQUARED_UNDERFLOW)


def norm_of(w: np.ndarray) -> float:
    """``||w||``, no smaller than it is."""
    return SLACK * math.sqrt(square(w))


def norm_of_half(half: float) -> float:
    """``||w||`` from half its square, no smaller than it is."""
    return SLACK * math.sqrt(2.0 * half)


def growth_of_square(norm: float, distance: float) -> float:
    """Bound the growth of half a squared norm as its point moves, with room for rounding."""
    # (norm + distance)^2 / 2 - norm^2 / 2 = distance (norm + distance / 2).
    return distance * (norm + distance)


def loss_units(loss: Loss) -> int:
    """Units of rounding that a loss is allowed in its value and its conjugate."""
    return EXPONENTIAL_UNITS if traits_of(loss).exponentials else LOSS_UNITS


class Bounded(NamedTuple):
    """A number as it was computed, and by how much the exact number can be larger (`off`)."""

    value: float
    off: float = 0.0


# ---- Sizes of the loss, of the rows and of a point


class LossSizes(NamedTuple):
    """What bounds on the rounding of a loss' sums over the rows need to know of it.

    Attributes
    ----------
    slope, bend : float
        Its largest slope and second derivative; infinite for a loss without.
    additions : float
        That a row's term goes through at most.
    share : float
        The relative error of a sum of its values, or of its conjugates.
    growth : float
        The largest slope of its logarithm: e^(growth t) is the most by which t can multiply it.
    """

    slope: float
    bend: float
    additions: float
    share: float
    growth: float = math.inf


@lru_cache(maxsize=64, typed=True)
def loss_sizes(loss: Loss, rows: float) -> LossSizes:
    """The sizes of a loss that is summed over so many rows.

    A term is added up among LEAF of them at most, then with the sums of others. Sums in pairs
    need fewer additions (Higham 2002, section 4.2).
    """
    additions = LEAF + rows / LEAF + 8.0
    slope = max(map(abs, (*loss.bounds(-1.0, 1.0), *loss.bounds(1.0, 1.0))))
    growth = loss.growth() if hasattr(loss, "growth") else math.inf
    share = gamma(additions + loss_units(loss))
    return LossSizes(slope, loss.largest_curvature(), additions, share, growth)


class RowSizes(NamedTuple):
    """Sizes of the rows that bounds on rounding need, for any point.

    Attributes
    ----------
    rows : float
        Number of them.
    terms : float
        Products that a margin is the sum of, at most.
    weight, reach, squares : float
        Sums over the rows of ``s_i``, ``s_i ||x_i||`` and ``s_i ||x_i||^2``.
    longest : float
        The largest ``||x_i||``.
    """

    rows: float
    terms: float
    weight: float
    reach: float
    squares: float
    longest: float


class PointSizes(NamedTuple):
    """Sizes of a point that bounds on rounding need; sums over rows may be added part by part.

    Attributes
    ----------
    labels, label_squares : float
        Of ``s_i |y_i|`` and ``s_i y_i^2``; zero for classification losses.
    pulled, paired : float
        Of ``|a_i| ||x_i||`` and ``|a_i y_i|``.
    positive, negative : float
        Of the positive and of the negative ``a_i``; asked for by free intercepts only.
    largest_label : float
        The largest ``|y_i|``.
    """

    labels: float
    label_squares: float
    pulled: float
    paired: float
    positive: float = 0.0
    negative: float = 0.0
    largest_label: float = 0.0


def largest_among(*kinds: type[RowSizes] | type[PointSizes]) -> list[int]:
    """The places of sizes that are no sums, in arrays of the sizes of these kinds in a row."""
    names = [name for kind in kinds for name in kind._fields]
    return [place for place, name in enumerate(names) if name in LARGEST]


def add_sizes(sizes: np.ndarray, more: np.ndarray, largest: list[int]) -> None:
    """Add the sizes of further rows to the sizes of some, in place.

    Parameters
    ----------
    sizes, more : ndarray of shape (..., m)
    largest : list of int
        The places of sizes that are no sums, see :func:`largest_among`.
    """
    most = np.maximum(sizes[..., largest], more[..., largest])
    sizes += more
    sizes[..., largest] = most


def row_sizes(X: Rows, norms: np.ndarray, weights: np.ndarray, members: np.ndarray) -> RowSizes:
    """The sizes of the members among the rows; an empty array of weights means 1."""
    weight = reach = squares = largest = 0.0
    for _, rows in in_blocks(members, norms.size):
        # Squares of a tiny row may have underflowed.
        norm = norms[rows] + SQUARED_UNDERFLOW
        largest = max(largest, float(norm.max(initial=0.0)))
        # sum_i s_i, sum_i s_i ||x_i|| and sum_i s_i ||x_i||^2, for bounds (1) and (2).
        if weights.size:
            s = weights[rows]
            weight += float(s.sum())
            reach += float(s @ np.sqrt(norm))
            squares += float(s @ norm)
        else:
            weight += norm.size
            reach += float(np.sqrt(norm).sum())
            squares += float(norm.sum())
    terms = X.longest_row + 1.0
    return RowSizes(float(members.size), terms, weight, reach, squares, math.sqrt(largest))


def point_sizes(
    loss: Loss,
    y: np.ndarray,
    norms: np.ndarray,
    weights: np.ndarray,
    members: np.ndarray | slice,
    alpha: np.ndarray,
    *,
    signs: bool = False,
) -> PointSizes:
    """The sizes of a dual point and of the labels; `signs` asks for the sums of both signs."""
    is_residual = traits_of(loss).task == "regression"
    labels = label_squares = pulled = paired = positive = negative = largest = 0.0
    for _, rows in in_blocks(members, norms.size):
        a = alpha[rows]
        size = np.abs(a)
        # sum_i |a_i| ||x_i||: no pull is longer, and its rounding is in proportion.
        pulled += float(size @ radii(norms[rows]))
        # Residuals z - y round in proportion to the targets; y is -1 or +1 otherwise.
        if is_residual:
            label = np.abs(y[rows])
            weighted = label
            if weights.size:
                weighted = weights[rows] * label
            labels += float(weighted.sum())
            label_squares += float(weighted @ label)
            largest = max(largest, float(label.max(initial=0.0)))
            paired += float(size @ label)
        else:
            paired += float(size.sum())
        if signs:
            positive += float(np.maximum(a, 0.0).sum())
            negative += float(np.maximum(-a, 0.0).sum())
    return PointSizes(labels, label_squares, pulled, paired, positive, negative, largest)


# ---- The primal: errors of margins, and what they can add to the sum of losses


class MarginErrors(NamedTuple):
    """How far a margin can be off: ``of_rows ||x_i|| + of_labels |y_i| + of_all``."""

    of_rows: float
    of_labels: float
    of_all: float


def margin_errors(rows: RowSizes, norm: float, offset: float, shifted: bool) -> MarginErrors:
    """The errors of the margins of weights of this norm, bound (1).

    Parameters
    ----------
    norm : float
        ``||w||``, the virtual feature's weight included.
    offset : float
        That is added to the margins.
    shifted : bool
        An offset was taken off the targets instead.
    """
    if norm == 0.0 and offset == 0.0 and not shifted:
        return MarginErrors(0.0, 0.0, 0.0)
    of_rows = gamma(rows.terms + MARGIN_UNITS) * norm
    return MarginErrors(of_rows, LABEL_UNITS * UNIT, OFFSET_UNITS * UNIT * abs(offset))


def paid_rounding(
    loss: LossSizes,
    paid: float,
    rows: RowSizes,
    point: PointSizes,
    errors: MarginErrors,
    around: Around | None = None,
) -> float:
    """Bound how far ``sum s_i phi_i`` can be above the computed sum `paid`: bound (2).

    Parameters
    ----------
    errors : MarginErrors
    around : callable, optional
        The same sum with a number added to all margins; asked if the sum is zero, or if the loss
        has neither a largest slope nor a largest curvature.
    """
    # With slopes of at most L: L sum s_i e_i. The sums of s_i e_i and, below, of s_i e_i^2 are made
    # of the three parts of e_i.
    first = errors.of_rows * rows.reach
    first += errors.of_labels * point.labels
    first += errors.of_all * rows.weight
    slip = loss.slope * first if math.isfinite(loss.slope) else math.inf

    # With |phi'| <= G phi: no row pays more than e^(G e_i) times as much.
    most = errors.of_rows * rows.longest
    most += errors.of_labels * point.largest_label
    most += errors.of_all
    if loss.growth * most < 1.0:
        slip = min(slip, paid * math.expm1(loss.growth * most))

    # With a curvature of at most B, |phi'| <= sqrt(2 B phi); then Cauchy and Schwarz over the rows.
    if math.isfinite(loss.bend):
        second = errors.of_rows * errors.of_rows * rows.squares
        second += errors.of_labels * errors.of_labels * point.label_squares
        second += errors.of_all * errors.of_all * rows.weight
        second *= 3.0  # (a + b + c)^2 <= 3 (a^2 + b^2 + c^2)
        slip = min(slip, math.sqrt(2.0 * loss.bend * paid * second) + 0.5 * loss.bend * second)

    # phi is convex: over `most`, it grows by no more than most / reach times what it grows over a
    # longer `reach`, and that is less than its value there.
    if around is not None and first > 0.0 and (slip == math.inf or paid == 0.0):
        reach = most
        if paid != 0.0:
            reach = max(1.0, most)
        slip = min(slip, most / reach * (around(reach) + around(-reach)))

    # The sum itself was rounded.
    return slip + loss.share * (paid + slip)


# ---- The dual: errors of conjugates, and the sum that a free intercept asks for


def conjugate_rounding(loss: LossSizes, sizes: float, point: PointSizes) -> float:
    """Bound how far ``sum s_i phi_i*`` can be above its computed value.

    `sizes` is the sum of the sizes of its terms.

    That a variable may miss its bound by a few units of its last place is included: all of them,
    shortened by as much, are feasible, and a conjugate, which is convex and zero at zero, grows by
    no more than that share of its size.
    """
    return loss.share * (sizes + 2.0 * point.paired)


def unbalance(
    point: PointSizes, count: float, total: float = 0.0, additions: float | None = None
) -> float:
    """The share to shorten the heavier sign's variables by, so that the sum is `total` exactly.

    Parameters
    ----------
    count : float
        Number of variables.
    additions : float, optional
        That a variable met in the sums of both signs; by default as in array code.
    """
    if additions is None:
        # A term is added in pairs within its block of rows, then the blocks one after the other.
        additions = PAIRED + count / BLOCK
    sign_rounding = gamma(additions)
    missing = abs(point.positive - point.negative - total)
    missing += sign_rounding * (point.positive + point.negative)
    missing += UNIT * abs(total)
    heavier = point.negative
    if point.positive - point.negative > total:
        heavier = point.positive
    if heavier > 0.0:
        return SLACK * missing / heavier
    return math.inf if missing > 0.0 else 0.0


class Move(NamedTuple):
    """By how much dual variables must still move for their sum to be exactly as required.

    Attributes
    ----------
    charged : float
        What that can add to the sum of the conjugates.
    pulled : float
        ``sum_i |move_i| ||x_i||``.
    share : float
        No ``|move_i|`` is larger than this share of ``|a_i|``; infinite if that says nothing.
    """

    charged: float = 0.0
    pulled: float = 0.0
    share: float = 0.0


STILL = Move()


class Room(NamedTuple):
    """The way of variables up to their upper bounds.

    Attributes
    ----------
    way, pulled : float
        Its sum, and ``sum_i way_i ||x_i||``; infinite if a variable has no bound.
    charged : float
        The sum of the conjugates' sizes up there.
    """

    way: float
    pulled: float
    charged: float


def move_to_sum(
    point: PointSizes,
    count: float,
    charged: float,
    total: float = 0.0,
    room: Callable[[], Room] | None = None,
    additions: float | None = None,
) -> Move:
    """Return how `count` variables must still move for their sum to be exactly `total`.

    Variables of the heavier sign are shortened, see :func:`unbalance`. If none can be, and the sum
    is too small, all go towards their upper bounds by the same share of the way.

    Parameters
    ----------
    charged : float
        The sum of the conjugates' sizes.
    room : callable, optional
        Asked for the way to the upper bounds if it is needed; when left out, variables are
        shortened only.
    additions : float, optional
        See :func:`unbalance`.
    """
    share = unbalance(point, count, total, additions)
    if math.isfinite(share):
        # A conjugate is convex and zero at zero: a shorter variable costs at most its share more.
        return Move(share * charged, share * point.pulled, share)
    missing = total - (point.positive - point.negative)
    if room is None or missing < 0.0:
        return Move(share, share, share)
    way, pulled, at_top = room()
    if way == 0.0:
        # All are at their bounds, whose sum is the total.
        return STILL
    missing += gamma(count + 8.0) * (point.positive + point.negative) + UNIT * abs(total)
    share = math.inf
    if way < math.inf:
        share = SLACK * missing / way
    return Move(share * (charged + at_top), SLACK * share * pulled, math.inf)


# ---- The four numbers of a certificate


class LossSums(NamedTuple):
    """The sums over the rows of a certificate: weights with margins z, and a dual point a.

    The sums of products are infinite if the margins with this dual point are not known.

    Attributes
    ----------
    paid : float
        Of the losses, ``s_i phi_i(z_i)``.
    conjugates : float
        Of ``s_i phi_i*(-a_i / s_i)``.
    products : float
        Of ``a_i z_i``; C times it is v . w.
    conjugate_sizes, product_sizes : float
        Of the sizes of the terms of these two, in proportion to which they round.
    """

    paid: float
    conjugates: float
    products: float
    conjugate_sizes: float
    product_sizes: float


class Sums(NamedTuple):
    """The four numbers that a certificate is made of, and what rounding can have done to them.

    Attributes
    ----------
    paid : float
        ``sum_i s_i phi_i`` at the margins of the primal point.
    conjugates : float
        ``sum_i s_i phi_i*(-a_i / s_i)`` of the dual point.
    regularizer : float
        ``R(w)`` of the primal point; half the squared norm, mostly.
    regularizer_conjugate : float
        ``R*(v)`` of the dual point, ``v = C sum_i a_i x_i``.
    primal_rounding, dual_rounding : float
        By how much rounding can have made the primal objective that these give too small, and the
        dual objective too large, in the C form.
    at_zero : float
        The dual objective of the dual point zero, in the C form; -inf if that point is not
        feasible.
    """

    paid: float
    conjugates: float
    regularizer: float
    regularizer_conjugate: float
    primal_rounding: float = 0.0
    dual_rounding: float = 0.0
    at_zero: float = 0.0


@arithmetic
def primal_of(C: float, paid: Value, regularizer: Value) -> Value:
    """The primal objective ``R(w) + C sum_i s_i phi_i``: computed nowhere else."""
    return regularizer + C * paid


@arithmetic
def dual_of(C: float, conjugates: Value, regularizer_conjugate: Value) -> Value:
    """The dual objective ``-C sum_i s_i phi_i*(-a_i / s_i) - R*(v)``: computed nowhere else."""
    return -C * conjugates - regularizer_conjugate


def assemble_sums(
    C: float,
    paid: Bounded,
    conjugates: Bounded,
    regularizer: Bounded,
    regularizer_conjugate: Bounded,
) -> Sums:
    """The four numbers with bounds on their rounding: every certificate's account is made here."""
    above = regularizer.off + C * paid.off
    below = regularizer_conjugate.off + C * conjugates.off
    return Sums(
        paid=paid.value,
        conjugates=conjugates.value,
        regularizer=regularizer.value,
        regularizer_conjugate=regularizer_conjugate.value,
        primal_rounding=SLACK * above,
        dual_rounding=SLACK * below,
    )


class NearPull(NamedTuple):
    """A pull, and bounds on its errors; arrays of shape (d + 1,), the intercept's place last.

    Attributes
    ----------
    pull : ndarray
        ``C sum_i a_i x_i``.
    sizes : ndarray
        ``C sum_i |a_i x_ij|``, no smaller than it is.
    errors : ndarray
        Of each place of the pull, at most.
    """

    pull: np.ndarray
    sizes: np.ndarray
    errors: np.ndarray


class Facts(NamedTuple):
    """What a certificate needs to know of a problem beside the sums over its rows."""

    loss: LossSizes
    C: float
    regularizer: Regularizer
    rows: RowSizes


def bound_sums(
    facts: Facts,
    sums: LossSums,
    sizes: PointSizes,
    w: np.ndarray,
    pull: np.ndarray | None,
    *,
    errors: MarginErrors | None = None,
    move: Move | None = None,
    around: Around | None = None,
    near: NearPull | None = None,
) -> Sums:
    """The sums of a certificate with bounds on their rounding.

    Parameters
    ----------
    facts : Facts
    sums : LossSums
        Of w and the dual point.
    sizes : PointSizes
    w : ndarray of shape (d + 1,)
    pull : ndarray of shape (d + 1,), optional
        ``v(alpha)`` as computed from the rows; without it w is taken for it, whose own rounding is
        left out.
    errors : MarginErrors, optional
        Of the margins of w; by default, of w without an offset.
    move : Move, optional
        How the dual variables must still move for their sum to be as required; by default,
        variables of the heavier sign are shortened for a free intercept.
    around : callable, optional
        See :func:`paid_rounding`.
    near : NearPull, optional
        If the pull is known better, and the penalty holds no square: it is taken instead.
    """
    loss, C, regularizer, rows = facts
    own = regularizer.value(w)
    norm = norm_of_half(own) if regularizer.is_half_square else norm_of(w)

    # R(w) is a sum over the features, with the term of rows that are left out.
    added = own
    if regularizer.fixed.size:
        added = own + 2.0 * float(np.abs(regularizer.fixed) @ np.abs(w))
    units = gamma(w.size + 4.0) * added

    errors = errors or margin_errors(rows, norm, 0.0, shifted=False)
    if move is None:
        move = STILL
        if regularizer.intercept.constrained:
            move = move_to_sum(sizes, rows.rows, sums.conjugate_sizes)

    # Products that underflow; the norm of tiny weights is zero itself.
    underflow = 0.0
    if sizes.pulled != 0.0 or regularizer.penalised_part(w).any():
        underflow = UNDERFLOW * (1.0 + C) * (rows.rows + w.size)

    # v . w - R(w), the first part of bound (4), by the margins: v . w = C sum a_i z_i. The products
    # are off by bound (1) on the margins, and their sum by the additions.
    products_off = gamma(rows.terms + MARGIN_UNITS) * norm * sizes.pulled
    products_off += gamma(loss.additions + 4.0) * sums.product_sizes
    through = Bounded(C * sums.products - own, C * products_off + units)

    # How far the exact pull of the variables is from the computed one, bound (3), and from that to
    # the pull of variables with the sum asked for.
    drift = gamma(rows.rows + 8.0) * C * sizes.pulled
    shift = C * move.pulled
    if pull is None:
        reached = through
    elif regularizer.is_plain or holds_square(regularizer.penalty):
        reached = bound_conjugate(regularizer, w, pull, through, drift, shift)
    else:
        # R* is finite within bounds only: the dual point is shortened until its pull is inside.
        distance: float | np.ndarray = drift + shift + 4.0 * UNIT * norm_of(pull)
        if near is not None:
            pull = near.pull
            distance = near.errors + move.share * near.sizes + 4.0 * UNIT * np.abs(pull)
        shorter = regularizer.find_shortening(pull, distance)
        # Conjugates are convex and zero at zero: shorter variables cost at most that share of them.
        off = C * sums.conjugate_sizes * shorter
        reached = Bounded(regularizer.conjugate((1.0 - shorter) * pull), off)
    if pull is not None:
        reached = Bounded(reached.value, reached.off + underflow)
    paid_off = paid_rounding(loss, sums.paid, rows, sizes, errors, around)
    conjugates_off = conjugate_rounding(loss, sums.conjugate_sizes, sizes) + move.charged
    return assemble_sums(
        C,
        Bounded(sums.paid, paid_off),
        Bounded(sums.conjugates, conjugates_off),
        Bounded(own, units + underflow),
        reached,
    )


def bound_conjugate(
    regularizer: Regularizer,
    w: np.ndarray,
    pull: np.ndarray,
    through: Bounded,
    drift: float,
    shift: float,
) -> Bounded:
    """R* of the exact pull by bound (4) or (5), whichever is better.

    Parameters
    ----------
    through : Bounded
        ``v . w - R(w)``.
    drift, shift : float
        How far the exact pull can be from the computed pull, and that from the pull of the balanced
        dual point.
    """
    # Bound (5): R* at the computed pull, and what the way to the exact one can add.
    value = regularizer.conjugate(pull)
    rounded = drift
    if regularizer.is_plain:
        norm = norm_of_half(value)
    else:
        # Weights are computed from the pull.
        rounded = drift + 4.0 * UNIT * norm_of(pull)
        norm = norm_of(regularizer.penalised_part(regularizer.weights(pull)))
    direct = Bounded(value, gamma(w.size + 4.0) * value + growth_of_square(norm, rounded + shift))
    if not regularizer.is_plain or through.off == math.inf:
        return direct

    # Bound (4): R*(v) = v . w - R(w) + ||v - w||^2 / 2, the last term by the computed pull.
    apart = 0.5 * square(regularizer.penalised_part(w - pull))
    off = through.off + gamma(w.size + 4.0) * apart
    off += growth_of_square(math.sqrt(2.0 * apart), drift)
    off += shift * (norm + drift + shift)
    return min(direct, Bounded(through.value + apart, off), key=sum)


# ---- Models that are known by their values at the rows: kernel machines


class ValueSums(NamedTuple):
    """Sums over the rows that the certificate of a model known by its values is made of.

    Attributes
    ----------
    paid, conjugates, charged : float
        Of the losses, and of the conjugates and their sizes.
    paired : float
        Of ``|a_i|``, or ``|a_i y_i|`` of a regression.
    rows : RowSizes
        With sums of the errors of the values in the place of the rows' lengths.
    away : float
        How far, in the feature space, the dual point is from a point inside its bounds.
    """

    paid: float
    conjugates: float
    charged: float
    paired: float
    rows: RowSizes
    away: float


def sums_of_values(
    loss: LossSizes,
    C: float,
    found: ValueSums,
    halves: tuple[Bounded, Bounded],
    asked: Bounded,
    moves: Sequence[Move],
) -> Sums:
    """The sums of the certificate of a model known by its values, with bounds on their rounding.

    Parameters
    ----------
    halves : pair of Bounded
        Half the squared norms of the model and of the dual point.
    asked : Bounded
        What the offsets cost beside the losses, divided by C.
    moves : sequence of Move
        Of the dual variables of each side.
    """
    paid, conjugates, charged, paired, rows, away = found
    own, reached = halves
    point = PointSizes(0.0, 0.0, 0.0, paired)

    # The rows' lengths stand for the errors themselves, so that these count once.
    above = paid_rounding(loss, paid, rows, point, MarginErrors(1.0, 0.0, 0.0))
    below = conjugate_rounding(loss, charged, point) + sum(move.charged for move in moves)

    # Half a squared norm at the dual point that is feasible exactly.
    norm = math.sqrt(2.0 * max(reached.value + reached.off, 0.0))
    distance = away + C * sum(move.pulled for move in moves)
    reached = Bounded(reached.value, reached.off + growth_of_square(norm, distance))
    paid_and_asked = Bounded(paid + asked.value, above + asked.off)
    return assemble_sums(C, paid_and_asked, Bounded(conjugates, below), own, reached)
