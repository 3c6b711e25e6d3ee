"""Compiled kernels of smoothed losses: multipliers, search along a line, the Hessian's diagonal.

The terms that Newton's method sees are the rows' losses, smoothed by a proximal term of the dual
(Rockafellar 1976; for support vector machines Yan and Li 2020, "An efficient augmented Lagrangian
method for support vector machine"):

    e_i(z) = max_a  -s_i phi_i*(-a / s_i) - a z - (q / 2) (a - c_i)^2,      e_i'(z) = -a_i(z),

``c_i`` the centre, ``q >= 0`` the proximity. The maximiser is the one of a coordinate step whose
squared row norm is q; with ``q = 0`` the term is the loss itself.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddlesvm.problem import terms as in_numpy
from saddlesvm.problem.loss import (
    Loss,
    bounds,
    conjugate,
    curvature,
    dual_step,
    is_smooth,
    methods_of,
    slopes,
    subgradient,
    value,
)
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.terms import Pointwise, weight_of
from saddlesvm.rows.layouts import U, axpy, dot
from saddlesvm.rows.matrix import Rows, body_for
from saddlesvm.rows.prefetch import prefetch_member
from saddlesvm.rows.small_types import number
from saddlesvm.rows.sparse_products import add_outer_products
from saddlesvm.runtime.compiled import inlined, kernel, operation
from saddlesvm.runtime.small import beside
from saddlesvm.solvers import smoothed_arrays
from saddlesvm.solvers.base import AT_BOUND, SAME_SLOPES
from saddlesvm.solvers.bracket import lowest_on_line

if TYPE_CHECKING:
    from numba.core import types

    from saddlesvm.rows.matrix import CSR, Dense

STILL_NEAR = 32  # rows that are read again while they are in the cache
is_small = attrgetter("is_small")  # whether NumPy suffices for products with rows


NO_CENTRE = np.empty(0)


class SmoothedTerms(NamedTuple):
    """The members' losses with a proximal term.

    Arrays have a place for each member, so that loops become vector code.

    Attributes
    ----------
    loss : Loss
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,) or (0,)
    C : float
    centre : ndarray of shape (n,) or (0,)
    q : float
        Proximity; 0 for none, and then no centre is needed.
    kinked : bool
        The loss is not smooth.
    small : bool
        NumPy does the work.
    """

    loss: Loss
    y: np.ndarray
    weights: np.ndarray
    C: float
    centre: np.ndarray = NO_CENTRE
    q: float = 0.0
    kinked: bool = False
    small: bool = False


def smoothed_terms(
    problem: Problem, centre: np.ndarray = NO_CENTRE, q: float = 0.0
) -> SmoothedTerms:
    """Return the terms of a problem's members; the centre has a place for each member."""
    loss, y, weights, _ = problem.member_terms
    small = problem.is_small and (q == 0.0 or methods_of(loss).dual_step is not None)
    return SmoothedTerms(loss, y, weights, problem.C, centre, q, not is_smooth(loss), small)


class Line(NamedTuple):
    """The objective along a direction.

    ``linear tau + quadratic tau^2 / 2 + C sum_i e_i(z_i + tau dz_i)``.

    Attributes
    ----------
    z, dz : ndarray of shape (n,)
        Margins of the members, and how they change.
    linear, quadratic : float
        Of the regulariser.
    """

    z: np.ndarray
    dz: np.ndarray
    linear: float
    quadratic: float


class Answers(NamedTuple):
    """The rows' multipliers and sums at given margins; kernels write them into these arrays.

    Attributes
    ----------
    alpha, bend : ndarray of shape (n,)
        Multipliers, and second derivatives of the terms, times C.
    sums : ndarray of shape (4,)
        Over the rows: ``s phi(z)``, ``s phi*(-a / s)`` and ``a z``, which a certificate needs, and
        how many have a second derivative.
    """

    alpha: np.ndarray
    bend: np.ndarray
    sums: np.ndarray

    @classmethod
    def room(cls, n: int) -> Answers:
        """Room for those of n rows."""
        return cls(np.empty(n), np.empty(n), np.zeros(4))


@inlined
def within_bounds(loss: Loss, a: float, y: float, s: float) -> float:
    """Return `a`, moved back to its bound if rounding took it beyond."""
    if conjugate(loss, a, y, s) < np.inf:
        return a
    low, high = bounds(loss, y, s)
    return min(max(a, low), high)


@inlined
def response(loss: Loss, z: float, y: float, s: float) -> tuple[float, float]:
    """Return ``a(z)`` and ``-a'(z) >= 0`` of a row without a proximal term."""
    return -s * subgradient(loss, z, y), s * curvature(loss, z, y)


@inlined
def smoothed_response(
    terms: SmoothedTerms, k: int, z: float, y: float, s: float
) -> tuple[float, float]:
    """Return both with the proximal term; ``-a'`` is 0 at bounds and corners of the dual term."""
    loss = terms.loss
    q = terms.q
    centre = terms.centre[k]
    a = within_bounds(loss, centre + dual_step(loss, centre, z, y, q, s), y, s)
    proximal = z + q * (a - centre)
    left, right = slopes(loss, a, proximal, y, s)
    if left != right:
        return a, 0.0
    if terms.kinked:
        low, high = bounds(loss, y, s)
        return a, (1.0 / q if min(a - low, high - a) > AT_BOUND * s else 0.0)
    # What an inexact step has left.
    a = within_bounds(loss, a + dual_step(loss, a, proximal, y, q, s), y, s)
    proximal = z + q * (a - centre)
    bend = s * curvature(loss, proximal, y)
    return a, bend / (1.0 + q * bend)


@inlined
def respond_between(
    terms: SmoothedTerms, z: np.ndarray, answers: Answers, start: int, stop: int
) -> None:
    """Compute the multipliers of the members from `start` to `stop`, and add to the sums.

    One loop has a proximal term and one has not. With the choice inside a single loop, the logistic
    loss would not become vector instructions (51 instead of 4 ns per row).
    """
    loss = terms.loss
    C = terms.C
    q = terms.q
    alpha = answers.alpha
    bend = answers.bend
    sums = answers.sums
    paid = conjugates = coupled = active = 0.0
    if q == 0.0:
        for k in range(U(start), U(stop)):
            s = weight_of(terms.weights, k)
            y = terms.y[k]
            a, h = response(loss, z[k], y, s)
            alpha[k] = a
            bend[k] = C * h
            paid += s * value(loss, z[k], y)
            coupled += a * z[k]
            active += h > 0.0
        conjugates = -(paid + coupled)  # a is the slope at z, and Fenchel's inequality an equality
    else:
        for k in range(U(start), U(stop)):
            s = weight_of(terms.weights, k)
            y = terms.y[k]
            a, h = smoothed_response(terms, k, z[k], y, s)
            alpha[k] = a
            bend[k] = C * h
            paid += s * value(loss, z[k], y)
            conjugates += conjugate(loss, a, y, s)
            coupled += a * z[k]
            active += h > 0.0
    sums[0] += paid
    sums[1] += conjugates
    sums[2] += coupled
    sums[3] += active


@beside(smoothed_arrays.respond, in_numpy.is_small)
@kernel
def respond(terms: SmoothedTerms, z: np.ndarray, answers: Answers) -> None:
    """Compute the multipliers and sums of all members at their margins."""
    respond_between(terms, z, answers, 0, z.size)


def answers_at(terms: SmoothedTerms, z: np.ndarray) -> Answers:
    """Return the multipliers and sums of all members at their margins."""
    answers = Answers.room(z.size)
    respond(terms, z, answers)
    return answers


@beside(smoothed_arrays.respond_to_weights, in_numpy.is_small)
@kernel
def respond_to_weights(
    terms: SmoothedTerms,
    X: Rows,
    members: np.ndarray,
    w: np.ndarray,
    z: np.ndarray,
    answers: Answers,
    pulled: np.ndarray,
) -> None:
    """:func:`respond` at the margins of w, which are put into z; ``pulled += sum_i a_i x_i``.

    Memory delivers every row once: the kernel takes a few rows at a time, which are in the cache at
    their second use.
    """
    for start in range(0, members.size, STILL_NEAR):
        stop = min(start + STILL_NEAR, members.size)
        for k in range(start, stop):
            prefetch_member(X, members, k)
            z[k] = dot(X, members[k], w)
        respond_between(terms, z, answers, start, stop)
        for k in range(start, stop):
            if answers.alpha[k] != 0.0:
                axpy(X, members[k], answers.alpha[k], pulled)


@beside(smoothed_arrays.bending_rows, in_numpy.is_small)
@kernel
def bending_rows(
    terms: Pointwise, members: np.ndarray, alpha: np.ndarray, mask: np.ndarray
) -> None:
    """Set ``mask[i] = 1`` for members with a dual variable inside its bounds and off a corner."""
    for i in members:
        left, right = slopes(terms.loss, alpha[i], 0.0, terms.y[i], weight_of(terms.weights, i))
        mask[i] = 1.0 if left > -np.inf and right < np.inf and right - left < SAME_SLOPES else 0.0


@beside(smoothed_arrays.slope_along, in_numpy.is_small)
@kernel
def slope_along(
    terms: SmoothedTerms, z: np.ndarray, dz: np.ndarray, tau: float
) -> tuple[float, float]:
    """First and second derivative by tau of ``C sum_i e_i(z_i + tau dz_i)``."""
    slope = bend = 0.0
    if terms.q == 0.0:
        for k in range(z.size):
            a, h = response(terms.loss, z[k] + tau * dz[k], terms.y[k], weight_of(terms.weights, k))
            slope -= a * dz[k]
            bend += h * dz[k] * dz[k]
    else:
        for k in range(z.size):
            a, h = smoothed_response(
                terms, k, z[k] + tau * dz[k], terms.y[k], weight_of(terms.weights, k)
            )
            slope -= a * dz[k]
            bend += h * dz[k] * dz[k]
    return terms.C * slope, terms.C * bend


def inner(one: np.ndarray, other: np.ndarray) -> float:
    """Return an inner product without BLAS, whose threads would take the fit's cores."""
    return float(np.einsum("i,i", one, other))


def search(
    terms: SmoothedTerms,
    line: Line,
    alpha: np.ndarray,
    bend: np.ndarray,
    alpha_at_one: np.ndarray,
    tolerance: float,
) -> float:
    """Return about the minimiser over tau >= 0 along a line; 0 if the function does not fall.

    `alpha` and `bend` are the multipliers and second derivatives at 0, `alpha_at_one` the
    multipliers at 1, or empty. 1 is returned if it is known to do, else what
    :func:`~saddlesvm.solvers.bracket.lowest_on_line` finds.
    """
    z, dz, linear, quadratic = line
    begin = linear - terms.C * inner(alpha, dz)
    if not begin < 0.0:
        return 0.0
    if (
        alpha_at_one.size
        and abs(linear + quadratic - terms.C * inner(alpha_at_one, dz)) <= -tolerance * begin
    ):
        return 1.0
    rise = quadratic + inner(bend * dz, dz)

    def derivatives(tau: float) -> tuple[float, float]:
        slope, bent = slope_along(terms, z, dz, tau)
        return linear + tau * quadratic + slope, quadratic + bent

    return lowest_on_line(derivatives, begin, -begin / rise if rise > 0.0 else 1.0, tolerance)


def _pick_add_squares(
    X: types.Type, i: types.Type, c: types.Type, w: types.Type
) -> Callable[..., None]:
    def of_dense(X: Dense, i: int, c: float, w: np.ndarray) -> None:
        row = X.values[i]
        for j in range(row.size):
            x = np.float64(number(row[j]))
            w[j] += c * x * x
        w[w.size - 1] += c * X.bias * X.bias

    def of_csr(X: CSR, i: int, c: float, w: np.ndarray) -> None:
        for p in range(U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)])):
            w[U(X.indices[p])] += c * np.float64(X.data[p]) * np.float64(X.data[p])
        w[w.size - 1] += c * X.bias * X.bias

    return body_for("add_squares", X, of_dense, of_csr)


@operation(_pick_add_squares)
def add_squares(X: Rows, i: int, c: float, w: np.ndarray) -> None:
    """``w += c x_i^2``, element by element; the virtual feature is included."""
    row = X.dense_row(i)
    w += c * row * row


@beside(smoothed_arrays.hessian_diagonal, is_small)
@kernel
def hessian_diagonal(X: Rows, active: np.ndarray, bend: np.ndarray, out: np.ndarray) -> None:
    """``out += the diagonal of sum over active i of bend[i] x_i x_i'``."""
    for k in range(active.size):
        add_squares(X, active[k], bend[active[k]], out)


add_outer_sparse = beside(smoothed_arrays.add_outer_sparse, is_small)(add_outer_products)
