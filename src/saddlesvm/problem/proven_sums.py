"""The sums that certificates are made of, with what rounding can have done to them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import holds_square, is_block
from saddlesvm.problem.regularizer import Regularizer, square
from saddlesvm.problem.rounding import (
    MARGIN_UNITS,
    SLACK,
    UNDERFLOW,
    UNIT,
    Around,
    MarginErrors,
    Move,
    PointSizes,
    RowSizes,
    conjugate_rounding,
    depth,
    gamma,
    margin_errors,
    paid_rounding,
)


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


def objectives(C: float, sums: Sums) -> tuple[float, float]:
    """The primal and the dual objective in the C form: the only place where they are computed."""
    return sums.regularizer + C * sums.paid, -C * sums.conjugates - sums.regularizer_conjugate


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


STILL = Move()


class Facts(NamedTuple):
    """What a certificate needs to know of a problem beside the sums over its rows."""

    loss: Loss
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
    move: Move = STILL,
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
    move : Move
        What the dual variables must still do for their sum to be the one asked for; nothing when left out.
    around : callable, optional
        See :func:`paid_rounding`.
    near : NearPull, optional
        Where the pull is known better, and the penalty holds no square: it is taken instead.
    """
    paid, conjugates, coupled, charged, crossed = found
    loss, C, regularizer, rows = facts
    own, norm = regularizer.value(w), norm_of(w)
    errors = errors or margin_errors(rows, norm, 0.0, shifted=False)
    above = C * paid_rounding(loss, paid, rows, sizes, errors, around) + gamma(w.size + 4.0) * own
    below = C * (conjugate_rounding(loss, rows, charged, sizes) + move.charged)
    there = regularizer.intercept.penalised(w).any() or sizes.pulled > 0.0  # the norm of tiny weights is zero itself
    underflow = UNDERFLOW * (1.0 + C) * (rows.rows + w.size) if there else 0.0
    pairs = C * (gamma(rows.terms + MARGIN_UNITS) * norm * sizes.pulled + gamma(depth(rows.rows) + 4.0) * crossed)
    if pull is None:
        off = pairs + gamma(w.size + 4.0) * own
        return Sums(paid, conjugates, own, C * coupled - own, SLACK * (above + underflow), SLACK * (below + off))
    drift, shift = gamma(rows.rows + 8.0) * C * sizes.pulled, C * move.pulled
    if holds_square(regularizer.penalty):
        through = C * coupled - own, pairs + gamma(w.size + 4.0) * own
        reached, off = _reached(regularizer, w, pull, through, drift, shift)
    else:
        distance: float | np.ndarray = drift + shift + 4.0 * UNIT * norm_of(pull)
        if near is not None:
            pull, distance = near.pull, near.errors + move.share * near.sizes + 4.0 * UNIT * np.abs(near.pull)
        shorter = regularizer.beyond(pull, distance)
        reached, off = regularizer.conjugate((1.0 - shorter) * pull), C * charged * shorter
    above, below = SLACK * (above + underflow), SLACK * (below + off + underflow)
    return Sums(paid, conjugates, own, reached, above, below)


def _reached(
    regularizer: Regularizer, w: np.ndarray, pull: np.ndarray, through: tuple[float, float], drift: float, shift: float
) -> tuple[float, float]:
    """R* of the exact pull and by how much it can be larger, in the better of two ways (see the module on rounding).

    Parameters
    ----------
    through : (float, float)
        ``v . w - R(w)`` with the error it can have.
    drift, shift : float
        How far the exact pull can be from the one that was computed, and from that to the balanced dual point's.
    """
    plain = regularizer.penalty.identity()
    units = w.size + 4.0 if is_block(regularizer.penalty) else 4.0  # a block's norm is a sum of its own
    rounded = drift if plain else drift + units * UNIT * norm_of(pull)
    reached = norm_of(regularizer.intercept.penalised(regularizer.weights(pull)))
    direct = regularizer.conjugate(pull)
    error = gamma(w.size + 4.0) * direct + (rounded + shift) * (reached + rounded + shift)
    if not plain:
        return direct, error
    apart = regularizer.apart(w, pull)
    value, off = through[0] + apart, through[1] + gamma(w.size + 4.0) * apart
    off += drift * (math.sqrt(2.0 * apart) + drift) + shift * (reached + drift + shift)
    return (value, off) if value + off < direct + error else (direct, error)


def norm_of(w: np.ndarray) -> float:
    """``||w||``, no smaller than it is."""
    return SLACK * math.sqrt(square(w))
