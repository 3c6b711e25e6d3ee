"""Sums over the rows that certificates are made of, and the maps between w and dual variables.

All of it is array code over blocks of rows, for every size and layout of the rows. NumPy adds the
terms of a block in pairs, so that a term meets fewer additions than the account of rounding allows
for (:func:`~.bounds.loss_sizes`).
"""

from __future__ import annotations

import numpy as np

from saddlesvm.problem.bounds import LossSums
from saddlesvm.problem.loss import methods_of
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.terms import (
    BLOCK,
    Pointwise,
    Terms,
    in_blocks,
    silent,
    weights_or_one,
    within_bounds,
)
from saddlesvm.rows.layouts import add_rows, dot_rows
from saddlesvm.rows.passes import Part

SUMS = len(LossSums._fields)  # numbers that a certificate takes from the rows


@silent
def loss_sums(
    terms: Pointwise | Terms, members: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray
) -> LossSums:
    """The sums over the rows that a certificate takes.

    Parameters
    ----------
    terms : Pointwise or Terms
    members : ndarray of shape (m,)
        Rows, ascending.
    z : ndarray of shape (m,)
        Their margins.
    offset : float
        That is added to the margins.
    alpha : ndarray of shape (n,)
        Dual variables of all rows.
    """
    loss = terms.loss
    methods = methods_of(loss)
    weighted = terms.weights.size > 0
    totals = np.zeros(SUMS)
    for places, rows in in_blocks(members, terms.y.size):
        y = terms.y[rows]
        s = terms.weights[rows] if weighted else 1.0
        a = alpha[rows]
        # Block by block, so that the arrays of all five terms stay in the cache.
        paid = methods.value(loss, z[places] + offset, y)
        if weighted:
            paid = s * paid
        # s phi*(-a / s), and a z, whose sum is v . w / C.
        conjugates = methods.conjugate(loss, a, y, s)
        products = a * z[places]
        totals += (
            paid.sum(),
            conjugates.sum(),
            products.sum(),
            np.abs(conjugates).sum(),
            np.abs(products).sum(),
        )
    return LossSums(*totals.tolist())


def sums_at_zero(problem: Problem, alpha: np.ndarray) -> LossSums:
    """:func:`loss_sums` of the members at zero margins: no row is read."""
    zeros = np.broadcast_to(0.0, problem.members.shape)
    return loss_sums(problem.pointwise, problem.members, zeros, 0.0, alpha)


@silent
def conjugate_sum(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, factor: float) -> float:
    """Sum over the members of ``s phi*(-factor a / s)``."""
    methods = methods_of(terms.loss)
    total = 0.0
    for _, rows in in_blocks(members, terms.y.size):
        s = weights_or_one(terms.weights, rows)
        total += float(methods.conjugate(terms.loss, factor * alpha[rows], terms.y[rows], s).sum())
    return total


@silent
def dual_of_margins(
    terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray
) -> None:
    """Set ``alpha_i = -s_i phi_i'(z_i + offset)`` for the members: these are dual feasible."""
    methods = methods_of(terms.loss)
    for places, rows in in_blocks(members, terms.y.size):
        slopes = methods.subgradient(terms.loss, z[places] + offset, terms.y[rows])
        alpha[rows] = -weights_or_one(terms.weights, rows) * slopes


@silent
def bring_back(terms: Pointwise, members: np.ndarray, alpha: np.ndarray) -> None:
    """Bring every member's dual variable back to its bounds, in place."""
    methods = methods_of(terms.loss)
    for _, rows in in_blocks(members, terms.y.size):
        s = weights_or_one(terms.weights, rows)
        alpha[rows] = within_bounds(methods, terms.loss, alpha[rows], terms.y[rows], s)


def dual_weights(problem: Problem, alpha: np.ndarray) -> np.ndarray:
    """``w(alpha) = C sum_i alpha_i x_i`` in float64, the virtual feature included.

    Its shape is (d + 1,), or (K, d + 1) for `alpha` of shape (n_all, K).
    """
    return problem.scale_pull(problem.passes.pull(alpha))


def margins(problem: Problem, w: np.ndarray) -> np.ndarray:
    """``x_i . w`` of the members in float64; the virtual feature is included."""
    return problem.passes.margins(w)


def sums_of_margins(problem: Problem, w: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """:func:`loss_sums` of the members at the margins of w, shape (5,): one pass over the rows."""
    return _sums_over_rows(problem, w, alpha, SUMS)


def sums_and_pull(
    problem: Problem, w: np.ndarray, alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """:func:`sums_of_margins` and :func:`dual_weights` in one pass over the rows."""
    if _is_device(problem):
        return sums_of_margins(problem, w, alpha), dual_weights(problem, alpha)
    found = _sums_over_rows(problem, w, alpha, SUMS + w.size)
    return found[:SUMS], problem.scale_pull(found[SUMS:])


def _sums_over_rows(problem: Problem, w: np.ndarray, alpha: np.ndarray, size: int) -> np.ndarray:
    """The sums of a pass that keeps no margins; behind them the rows times `alpha`, if asked."""
    if _is_device(problem):
        return np.array(
            loss_sums(problem.pointwise, problem.members, margins(problem, w), 0.0, alpha)
        )
    w = np.ascontiguousarray(w, dtype=np.float64)

    def add_part(part: Part, found: np.ndarray) -> None:
        terms = problem.terms_of(part)
        a = part.pick(alpha)
        for start in range(0, part.rows.size, BLOCK):
            rows = part.rows[start : start + BLOCK]
            # The margins of a block serve its sums and are then forgotten.
            z = np.empty(rows.size)
            dot_rows(part.X, rows, w, z)
            found[:SUMS] += loss_sums(terms, rows, z, 0.0, a)
            if size > SUMS:
                # The rows are still in the cache.
                add_rows(part.X, rows, a, found[SUMS:])

    return problem.passes.total(add_part, size)


def _is_device(problem: Problem) -> bool:
    """Return True if no part of the rows can be handed out."""
    return problem.place is not None and problem.place.in_arrays
