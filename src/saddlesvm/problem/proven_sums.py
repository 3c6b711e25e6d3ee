"""The sums that certificates are made of, with what rounding can have done to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from saddlesvm.problem.penalties import holds_square, is_block
from saddlesvm.problem.regularizer import Regularizer, square
from saddlesvm.problem.rounding import (
    MARGIN_UNITS,
    SLACK,
    STILL,
    UNDERFLOW,
    UNIT,
    Around,
    Bounded,
    LossSizes,
    MarginErrors,
    Move,
    PointSizes,
    RowSizes,
    conjugate_rounding,
    gamma,
    margin_errors,
    moved,
    paid_rounding,
    to_the_sum,
)

Value = TypeVar("Value", float, np.ndarray)


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
        By how much rounding can have made the primal objective that these give too small, and the dual one too large,
        in the C form (:mod:`saddlesvm.problem.rounding`).
    at_zero : float
        The dual objective of the dual point zero, in the C form; -inf where that point is not feasible.
    """

    paid: float
    conjugates: float
    regularizer: float
    regularizer_conjugate: float
    primal_rounding: float = 0.0
    dual_rounding: float = 0.0
    at_zero: float = 0.0


def primal_of(C: float, paid: Value, charged: Value) -> Value:
    """The primal objective in the C form, of the sum of losses and the regulariser: it is computed nowhere else."""
    return charged + C * paid


def dual_of(C: float, conjugates: Value, charged: Value) -> Value:
    """The dual objective in the C form, of the sum of conjugates and R*: it is computed nowhere else."""
    return -C * conjugates - charged


def accounted(C: float, paid: Bounded, conjugates: Bounded, own: Bounded, reached: Bounded) -> Sums:
    """The four numbers with all that rounding can have done to them: every certificate's account is made here.

    Parameters
    ----------
    own, reached : Bounded
        The regulariser of the primal point, and its conjugate of the dual point.
    """
    above, below = own.off + C * paid.off, reached.off + C * conjugates.off
    return Sums(paid.value, conjugates.value, own.value, reached.value, SLACK * above, SLACK * below)


class NearPull(NamedTuple):
    """A pull, and how far from it the exact one may be; arrays of shape (d + 1,), the virtual feature's place last.

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


def summed(
    facts: Facts,
    found: tuple[float, ...],
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
    found : tuple of float
        What :func:`loss_sums` found for w and the dual point; the third and the fifth infinite where w has no margins
        with this dual point.
    sizes : PointSizes
    w : ndarray of shape (d + 1,)
    pull : ndarray of shape (d + 1,), optional
        ``v(alpha)`` as computed from the rows; without it w is taken for it, whose own rounding is left out.
    errors : MarginErrors, optional
        Of the margins of w; those of w without an offset when left out.
    move : Move, optional
        What the dual variables must still do for their sum to be the one asked for; when left out, those of the heavier
        sign are shortened for a free intercept.
    around : callable, optional
        See :func:`paid_rounding`.
    near : NearPull, optional
        Where the pull is known better, and the penalty holds no square: it is taken instead.
    """
    paid, conjugates, coupled, charged, crossed = found
    loss, C, regularizer, rows = facts
    own, norm = regularizer.value(w), norm_of(w)
    added = own if not regularizer.fixed.size else own + 2.0 * float(np.abs(regularizer.fixed) @ np.abs(w))
    units = gamma(w.size + 4.0) * added
    errors = errors or margin_errors(rows, norm, 0.0, shifted=False)
    if move is None:
        free = regularizer.intercept.constrained
        move = to_the_sum(sizes, rows.rows, charged, regularizer.intercept.total) if free else STILL
    there = regularizer.intercept.penalised(w).any() or sizes.pulled > 0.0  # the norm of tiny weights is zero itself
    underflow = UNDERFLOW * (1.0 + C) * (rows.rows + w.size) if there else 0.0
    pairs = C * (gamma(rows.terms + MARGIN_UNITS) * norm * sizes.pulled + gamma(loss.additions + 4.0) * crossed)
    through = Bounded(C * coupled - own, pairs + units)
    drift, shift = gamma(rows.rows + 8.0) * C * sizes.pulled, C * move.pulled
    if pull is None:
        reached = through
    elif holds_square(regularizer.penalty):
        reached = _reached(regularizer, w, pull, through, drift, shift)
    else:
        distance: float | np.ndarray = drift + shift + 4.0 * UNIT * norm_of(pull)
        if near is not None:
            pull, distance = near.pull, near.errors + move.share * near.sizes + 4.0 * UNIT * np.abs(near.pull)
        shorter = regularizer.beyond(pull, distance)
        reached = Bounded(regularizer.conjugate((1.0 - shorter) * pull), C * charged * shorter)
    return accounted(
        C,
        Bounded(paid, paid_rounding(loss, paid, rows, sizes, errors, around)),
        Bounded(conjugates, conjugate_rounding(loss, charged, sizes) + move.charged),
        Bounded(own, units + underflow),
        Bounded(reached.value, reached.off + (0.0 if pull is None else underflow)),
    )


def _reached(
    regularizer: Regularizer, w: np.ndarray, pull: np.ndarray, through: Bounded, drift: float, shift: float
) -> Bounded:
    """R* of the exact pull, in the better of two ways (see the module on rounding).

    Parameters
    ----------
    through : Bounded
        ``v . w - R(w)``.
    drift, shift : float
        How far the exact pull can be from the one that was computed, and from that to the balanced dual point's.
    """
    plain = regularizer.penalty.identity()
    units = w.size + 4.0 if is_block(regularizer.penalty) else 4.0  # a block's norm is a sum of its own
    rounded = drift if plain else drift + units * UNIT * norm_of(pull)
    norm, value = norm_of(regularizer.intercept.penalised(regularizer.weights(pull))), regularizer.conjugate(pull)
    direct = Bounded(value, gamma(w.size + 4.0) * value + moved(norm, rounded + shift))
    if not plain or through.off == math.inf:
        return direct
    apart = regularizer.apart(w, pull)
    off = through.off + gamma(w.size + 4.0) * apart + moved(math.sqrt(2.0 * apart), drift)
    off += shift * (norm + drift + shift)
    return min(direct, Bounded(through.value + apart, off), key=sum)


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
        How far, in the feature space, the dual point is from one inside its bounds.
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
    around: Around | None = None,
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
    around : callable, optional
        See :func:`paid_rounding`.
    """
    paid, conjugates, charged, paired, rows, away = found
    point, (own, reached) = PointSizes(0.0, 0.0, 0.0, paired), halves
    above = paid_rounding(loss, paid, rows, point, MarginErrors(1.0, 0.0, 0.0), around)
    below = conjugate_rounding(loss, charged, point) + sum(move.charged for move in moves)
    norm = math.sqrt(2.0 * max(reached.value + reached.off, 0.0))
    distance = away + C * sum(move.pulled for move in moves)
    reached = Bounded(reached.value, reached.off + moved(norm, distance))
    return accounted(C, Bounded(paid + asked.value, above + asked.off), Bounded(conjugates, below), own, reached)


def norm_of(w: np.ndarray) -> float:
    """``||w||``, no smaller than it is."""
    return SLACK * math.sqrt(square(w))
