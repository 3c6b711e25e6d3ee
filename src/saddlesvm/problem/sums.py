"""Sums over the rows that certificates are made of, always in float64, and the maps between w and dual variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.problem import terms as in_numpy
from saddlesvm.problem.loss import conjugate, subgradient, value
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rounding import LEAF
from saddlesvm.problem.terms import Pointwise, Terms, is_small, weight_of
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.passes import Part
from saddlesvm.rows.prefetch import next_ahead
from saddlesvm.runtime.compiled import kernel
from saddlesvm.runtime.small import beside

SUMS = 5  # that a certificate takes from the rows


@beside(in_numpy.loss_sums, is_small)
@kernel
def loss_sums(terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray) -> Any:
    """Sums over the members of ``s phi(z + offset)``, ``s phi*(-a / s)``, ``a z``, and the sizes of the last two."""
    paid = conjugates = coupled = charged = crossed = 0.0
    for start in range(0, members.size, LEAF):  # leaf by leaf: see rounding.loss_sizes
        p = c = q = sizes = crossings = 0.0
        for k in range(start, min(start + LEAF, members.size)):
            i = members[k]
            s = weight_of(terms.weights, i)
            p += s * value(terms.loss, z[k] + offset, terms.y[i])
            one, pair = conjugate(terms.loss, alpha[i], terms.y[i], s), alpha[i] * z[k]
            c += one
            q += pair
            sizes += abs(one)
            crossings += abs(pair)
        paid, conjugates, coupled = paid + p, conjugates + c, coupled + q
        charged, crossed = charged + sizes, crossed + crossings
    return paid, conjugates, coupled, charged, crossed


@kernel
def margin_sums(terms: Terms, members: np.ndarray, w: np.ndarray, alpha: np.ndarray, pulled: np.ndarray) -> Any:
    """The same sums for the margins of w, one row after the other, so that no margin need be kept.

    ``sum_i a_i x_i`` is added to `pulled` while the rows are at hand, unless it is empty.
    """
    paid = conjugates = coupled = charged = crossed = 0.0
    for start in range(0, members.size, LEAF):
        p = c = q = sizes = crossings = 0.0
        for k in range(start, min(start + LEAF, members.size)):
            i = members[k]
            next_ahead(terms.X, members, k)
            s, z = weight_of(terms.weights, i), rows.dot(terms.X, i, w)
            p += s * value(terms.loss, z, terms.y[i])
            one, pair = conjugate(terms.loss, alpha[i], terms.y[i], s), alpha[i] * z
            c += one
            q += pair
            sizes += abs(one)
            crossings += abs(pair)
            if pulled.size > 0 and alpha[i] != 0.0:
                rows.axpy(terms.X, i, alpha[i], pulled)
        paid, conjugates, coupled = paid + p, conjugates + c, coupled + q
        charged, crossed = charged + sizes, crossed + crossings
    return paid, conjugates, coupled, charged, crossed


@beside(in_numpy.conjugate_sum, is_small)
@kernel
def conjugate_sum(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, factor: float) -> float:
    """Sum over the members of ``s phi*(-factor a / s)``."""
    total = 0.0
    for k in range(members.size):
        i = members[k]
        total += conjugate(terms.loss, factor * alpha[i], terms.y[i], weight_of(terms.weights, i))
    return total


@beside(in_numpy.dual_of_margins, is_small)
@kernel
def dual_of_margins(terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray) -> None:
    """``alpha_i = -s_i phi_i'(z_i + offset)`` for the members: dual feasible by definition of the conjugate."""
    for k in range(members.size):
        i = members[k]
        alpha[i] = -weight_of(terms.weights, i) * subgradient(terms.loss, z[k] + offset, terms.y[i])


def dual_weights(problem: Problem, alpha: Any) -> np.ndarray:
    """``w(alpha) = C sum_i alpha_i x_i`` in float64, shape (d + 1,), or (K, d + 1) for `alpha` of shape (n_all, K); the
    virtual feature is included."""
    return problem.pulled(problem.passes.pull(alpha))


def margins(problem: Problem, w: np.ndarray) -> np.ndarray:
    """``x_i . w`` of the members in float64; the virtual feature is included."""
    return problem.passes.margins(w)


def sums_of_margins(problem: Problem, w: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """:func:`margin_sums` of the members, shape (5,): one pass over the rows."""

    if problem.in_arrays:
        return np.array(loss_sums(problem.pointwise, problem.members, margins(problem, w), 0.0, alpha))

    def of_part(part: Part, sums: np.ndarray) -> None:
        sums += margin_sums(problem.terms_of(part), part.rows, w, part.of(alpha), np.empty(0))

    return problem.passes.total(of_part, SUMS)


def sums_and_pull(problem: Problem, w: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """:func:`sums_of_margins` and :func:`dual_weights` in one pass over the rows; in array code by two."""
    if problem.in_arrays:
        return sums_of_margins(problem, w, alpha), dual_weights(problem, alpha)

    def of_part(part: Part, found: np.ndarray) -> None:
        found[:SUMS] += margin_sums(problem.terms_of(part), part.rows, w, part.of(alpha), found[SUMS:])

    found = problem.passes.total(of_part, SUMS + w.size)
    return found[:SUMS], problem.pulled(found[SUMS:])
