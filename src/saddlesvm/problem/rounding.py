"""Bounds on the rounding errors of a certificate: bounds that hold for the numbers that the stored floats are.

A sum of k products differs from its exact value by at most ``gamma(k)`` times the sum of their sizes, in whatever order
it is taken, ``gamma(k) = k u / (1 - k u)`` with ``u = 2^-53`` (Higham 2002, "Accuracy and stability of numerical
algorithms", chapter 3). Everything here follows from that, from Cauchy and Schwarz, and from three properties of the
losses: their slopes or their curvature are bounded, their smallest value is zero, and zero is their conjugate's value
at zero. With ``r_i = ||x_i||``, m terms in a margin and n rows:

    |z_i - z^_i|      <=  e_i = gamma(m) r_i ||w||  (+ u |y_i| for a residual)
    sum s_i phi_i     <=  its value at z^  +  min(slope sum s_i e_i,  sqrt(2 curvature value sum s_i e_i^2) + ...)
    ||v - v^||        <=  eps = gamma(n) C sum |a_i| r_i
    R*(v)             <=  C sum a_i z_i - R(w) + (||v^ - w|| + eps)^2 / 2        for any w with its margins z
    R*(v)             <=  (||v^|| + eps)^2 / 2

The third line is large where n is. The fourth needs it only squared, or beside a distance that is nearly zero at the
optimum; the better of the last two counts. A free intercept asks for ``sum a_i = 0``, which rounding misses: the bound
is then that of the dual point whose heavier sign is shortened by exactly what is missing.

`docs/certificate.md` has the derivation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.loss import Loss, traits_of
from saddlesvm.rows.layouts import Rows

UNIT = 2.0**-53  # of a rounding to the nearest double, relative
LEAF = 512  # rows whose terms are added up before they are added to the sum
MARGIN_UNITS = 6  # roundings of a margin beside those of its product: the offset's, and the intercept's in other units
LOSS_UNITS, EXPONENTIAL_UNITS = 32, 160  # of phi, and of phi* beside |phi*| + 2 |a y|, as losses compute them
SLACK = 1.01  # the sums of sizes are rounded too
SQUARED_UNDERFLOW = 1e-290  # what squares that underflow can have lost of a squared norm
UNDERFLOW = 1e-300  # the same of an objective, for each row and feature
Around = Callable[[float], float]
CHUNK = 2**18  # rows whose sizes are added up at once


def gamma(count: float) -> float:
    """``k u / (1 - k u)``: the relative error of k roundings at most; infinite where they leave nothing."""
    part = count * UNIT
    return part / (1.0 - part) if part < 1.0 else math.inf


class Bounded(NamedTuple):
    """A number as it was computed, and by how much the exact one can be larger."""

    value: float
    off: float = 0.0


class LossSizes(NamedTuple):
    """What bounds on the rounding of a loss' sums over the rows need to know of it.

    Attributes
    ----------
    slope, bend : float
        Its largest slope and second derivative; infinite for one without.
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
    """The sizes of a loss that is summed over so many rows: a term is added up in its leaf, then among the leaves."""
    additions = LEAF + rows / LEAF + 8.0
    slope = max(map(abs, (*loss.bounds(-1.0, 1.0), *loss.bounds(1.0, 1.0))))
    growth = loss.growth() if hasattr(loss, "growth") else math.inf
    return LossSizes(slope, loss.largest_curvature(), additions, gamma(additions + loss_units(loss)), growth)


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
    """Sizes of a point that bounds on rounding need: sums over the rows, that may be added part by part.

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


LARGEST = ("terms", "longest", "largest_label")  # the sizes that are the largest of any row, and no sums


def largest_among(*kinds: type[RowSizes] | type[PointSizes]) -> list[int]:
    """The places of the sizes that are no sums, in arrays with the sizes of these kinds one after the other."""
    return [place for place, name in enumerate(name for kind in kinds for name in kind._fields) if name in LARGEST]


def add_sizes(sizes: np.ndarray, more: np.ndarray, largest: list[int]) -> None:
    """Add the sizes of further rows to those of some, in place.

    Parameters
    ----------
    sizes, more : ndarray of shape (..., m)
    largest : list of int
        The places of those that are no sums, see :func:`largest_among`.
    """
    most = np.maximum(sizes[..., largest], more[..., largest])
    sizes += more
    sizes[..., largest] = most


def radii(norms: np.ndarray) -> np.ndarray:
    """``||x_i||`` from squared norms, no smaller than it is."""
    return np.sqrt(norms + SQUARED_UNDERFLOW)


def row_sizes(X: Rows, norms: np.ndarray, weights: np.ndarray, members: np.ndarray) -> RowSizes:
    """The sizes of the members among the rows; an empty array of weights means 1."""
    weight = reach = squares = largest = 0.0
    for chosen in _chunks(members, norms.size):
        norm = norms[chosen] + SQUARED_UNDERFLOW
        largest = max(largest, float(norm.max(initial=0.0)))
        if weights.size:
            s = weights[chosen]
            weight, reach = weight + float(s.sum()), reach + _product(s, np.sqrt(norm))
            squares += _product(s, norm)
        else:
            weight, reach, squares = weight + norm.size, reach + float(np.sqrt(norm).sum()), squares + float(norm.sum())
    return RowSizes(float(members.size), X.longest_row + 1.0, weight, reach, squares, math.sqrt(largest))


def point_sizes(
    loss: Loss, y: np.ndarray, norms: np.ndarray, weights: np.ndarray, members: np.ndarray, alpha: np.ndarray,
    *, signs: bool = False,
) -> PointSizes:  # fmt: skip
    """The sizes of a dual point and of the labels; `signs` asks for the sums of both signs."""
    sums, residual = np.zeros(7), traits_of(loss).task == "regression"
    for chosen in _chunks(members, norms.size):
        a = alpha[chosen]
        size = np.abs(a)
        sums[2] += _product(size, radii(norms[chosen]))
        if residual:
            label = np.abs(y[chosen])
            weighted = weights[chosen] * label if weights.size else label
            sums[0] += float(weighted.sum())
            sums[1] += _product(weighted, label)
            sums[6] = max(sums[6], float(label.max(initial=0.0)))
            sums[3] += _product(size, label)
        else:
            sums[3] += float(size.sum())
        if signs:
            sums[4] += float(np.maximum(a, 0.0).sum())
            sums[5] += float(np.maximum(-a, 0.0).sum())
    return PointSizes(*sums.tolist())


class MarginErrors(NamedTuple):
    """How far margins, as losses see them, can be off: ``of_rows ||x_i|| + of_labels |y_i| + of_all``."""

    of_rows: float
    of_labels: float
    of_all: float


def margin_errors(rows: RowSizes, norm: float, offset: float, shifted: bool) -> MarginErrors:
    """The errors of the margins of weights of this norm.

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
    return MarginErrors(gamma(rows.terms + MARGIN_UNITS) * norm, 4.0 * UNIT, 2.0 * UNIT * abs(offset))


def paid_rounding(
    loss: LossSizes, paid: float, rows: RowSizes, point: PointSizes, errors: MarginErrors, around: Around | None = None
) -> float:
    """By how much ``sum s_i phi_i`` can be above the sum `paid` that was computed.

    Parameters
    ----------
    errors : MarginErrors
    around : callable, optional
        The same sum with a number added to all margins; asked where the sum is zero, or the loss has neither a largest
        slope nor a largest curvature: phi is convex, so that what it is at both ends bounds what it is between.
    """
    first = errors.of_rows * rows.reach + errors.of_labels * point.labels + errors.of_all * rows.weight
    most = errors.of_rows * rows.longest + errors.of_labels * point.largest_label + errors.of_all
    slip = loss.slope * first if math.isfinite(loss.slope) else math.inf
    if loss.growth * most < 1.0:
        slip = min(slip, paid * math.expm1(loss.growth * most))
    if math.isfinite(loss.bend):
        second = (
            errors.of_rows * errors.of_rows * rows.squares + errors.of_labels * errors.of_labels * point.label_squares
        )
        second = 3.0 * (second + errors.of_all * errors.of_all * rows.weight)
        slip = min(slip, math.sqrt(2.0 * loss.bend * paid * second) + 0.5 * loss.bend * second)
    if around is not None and first > 0.0 and (slip == math.inf or paid == 0.0):
        reach = most if paid == 0.0 else max(1.0, most)
        slip = min(slip, most / reach * (around(reach) + around(-reach)))
    return slip + loss.share * (paid + slip)


def conjugate_rounding(loss: LossSizes, sizes: float, point: PointSizes) -> float:
    """By how much ``sum s_i phi_i*`` can be above the computed sum of terms whose sizes add up to `sizes`.

    That a variable may miss its bound by a few units of its last place is included: all of them, shortened by as much,
    are feasible, and a conjugate, which is convex and zero at zero, grows by no more than that share of its size.
    """
    return loss.share * (sizes + 2.0 * point.paired)


def unbalance(point: PointSizes, count: float, total: float = 0.0) -> float:
    """The share by which the variables of the heavier sign must be shortened for their sum to be `total` exactly.

    `count` is the number of variables.
    """
    sign_rounding = gamma(64.0 + count / CHUNK)  # NumPy adds in pairs
    missing = abs(point.positive - point.negative - total)
    missing += sign_rounding * (point.positive + point.negative) + UNIT * abs(total)
    heavier = point.positive if point.positive - point.negative > total else point.negative
    return SLACK * missing / heavier if heavier > 0.0 else (math.inf if missing > 0.0 else 0.0)


class Move(NamedTuple):
    """By how much dual variables must still move for their sum to be exactly the one asked for.

    Attributes
    ----------
    charged : float
        What that can add to the sum of the conjugates.
    pulled : float
        ``sum_i |move_i| ||x_i||``.
    share : float
        No ``|move_i|`` is larger than this share of ``|a_i|``; infinite where that says nothing.
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
        Its sum, and ``sum_i way_i ||x_i||``; infinite where a variable has no bound.
    charged : float
        The sum of the conjugates' sizes up there.
    """

    way: float
    pulled: float
    charged: float


def to_the_sum(
    point: PointSizes, count: float, charged: float, total: float = 0.0, room: Callable[[], Room] | None = None
) -> Move:
    """How `count` variables must still move for their sum to be exactly `total`.

    Those of the heavier sign are shortened, see :func:`unbalance`. Where none can be, and the sum is too small, all go
    towards their upper bounds by the same share of the way.

    Parameters
    ----------
    charged : float
        The sum of the conjugates' sizes.
    room : callable, optional
        Asked for the way to the upper bounds where it is needed; when left out, variables are shortened only.
    """
    share = unbalance(point, count, total)
    if math.isfinite(share):
        return Move(share * charged, share * point.pulled, share)
    missing = total - (point.positive - point.negative)
    if room is None or missing < 0.0:
        return Move(share, share, share)
    way, pulled, at_top = room()
    if way == 0.0:  # all are at their bounds, whose sum is the total
        return STILL
    missing += gamma(count + 8.0) * (point.positive + point.negative) + UNIT * abs(total)
    share = SLACK * missing / way if way < math.inf else math.inf
    return Move(share * (charged + at_top), SLACK * share * pulled, math.inf)


def moved(norm: float, distance: float) -> float:
    """By how much half a squared norm can grow as its point moves so far, with room for rounding."""
    return distance * (norm + distance)


def loss_units(loss: Loss) -> int:
    """Units of rounding that a loss is allowed in its value and its conjugate."""
    return EXPONENTIAL_UNITS if traits_of(loss).exponentials else LOSS_UNITS


def _chunks(members: np.ndarray, count: int) -> Any:
    """The members, some at a time, as what picks them; slices where all rows are members."""
    for start in range(0, members.size, CHUNK):
        stop = min(start + CHUNK, members.size)
        yield slice(start, stop) if members.size == count else members[start:stop]


def _product(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.einsum("i,i", one, other))  # not BLAS: see regularizer.square
