"""Compiled kernels of the second-order finish: the multipliers, the search along a line, products with the Hessian.

The terms that Newton's method sees are the rows' losses, smoothed by a proximal term of the dual (Rockafellar 1976;
for support vector machines Yan and Li 2020, "An efficient augmented Lagrangian method for support vector machine"):

    e_i(z) = max_a  -s_i phi_i*(-a / s_i) - a z - (q / 2) (a - c_i)^2,      e_i'(z) = -a_i(z),

``c_i`` the centre, ``q >= 0`` the proximity. The maximiser is the one of a coordinate step whose squared row norm is q;
with ``q = 0`` the term is the loss itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from saddlesvm.compiled import inlined, kernel, operation, python_class
from saddlesvm.losses import Loss, conjugate, curvature, dual_step, slopes, subgradient, value
from saddlesvm.problem import Pointwise, Terms, weight_of
from saddlesvm.rows import CSR, Dense, Rows, U, axpy, dot, next_ahead, row_ahead

SEARCH_STEPS = 100
WIDEN = 10.0  # the search along a line looks at most so many times further at once


class Smoothing(NamedTuple):
    """The proximal term of a problem.

    Attributes
    ----------
    centre : ndarray of shape (n_all,)
    q : float
        Proximity; 0 for none.
    kinked : bool
        The loss is not smooth.
    """

    centre: np.ndarray
    q: float
    kinked: bool


class Answers(NamedTuple):
    """What the rows answer to margins; kernels put it there.

    Attributes
    ----------
    alpha, bend : ndarray of shape (n_all,)
        Multipliers, and second derivatives of the terms, times C.
    sums : ndarray of shape (4,)
        Over the rows: ``s phi(z)``, ``s phi*(-a / s)`` and ``a z``, which a certificate needs, and how many have a
        second derivative.
    """

    alpha: np.ndarray
    bend: np.ndarray
    sums: np.ndarray


@inlined
def feasible(loss: Loss, a: float, y: float, s: float) -> float:
    """`a`, brought back to the bound that rounding took it over."""
    if conjugate(loss, a, y, s) < np.inf:
        return a
    a = np.copysign(min(abs(a), s), a)
    return a if conjugate(loss, a, y, s) < np.inf else 0.0


@inlined
def response(loss: Loss, smoothing: Smoothing, i: int, z: float, y: float, s: float) -> Any:
    """``a(z)`` and ``-a'(z) >= 0`` of row i; the latter is zero at the bounds and corners of the dual term."""
    q, centre = smoothing.q, smoothing.centre[i]
    if q == 0.0:
        return -s * subgradient(loss, z, y), s * curvature(loss, z, y)
    a = feasible(loss, centre + dual_step(loss, centre, z, y, q, s), y, s)
    proximal = z + q * (a - centre)
    left, right = slopes(loss, a, proximal, y, s)
    if left != right:
        return a, 0.0
    if smoothing.kinked:
        return a, 1.0 / q
    a = feasible(loss, a + dual_step(loss, a, proximal, y, q, s), y, s)  # what an inexact step has left
    proximal = z + q * (a - centre)
    bend = s * curvature(loss, proximal, y)
    return a, bend / (1.0 + q * bend)


@inlined
def respond_one(terms: Any, C: float, i: int, z: float, smoothing: Smoothing, answers: Answers) -> None:
    """Note what row i answers to its margin."""
    s, y, sums = weight_of(terms.weights, i), terms.y[i], answers.sums
    a, h = response(terms.loss, smoothing, i, z, y, s)
    answers.alpha[i] = a
    answers.bend[i] = C * h
    paid, coupled = s * value(terms.loss, z, y), a * z
    sums[0] += paid
    # Without a proximal term a is the slope at z, and Fenchel's inequality an equality.
    sums[1] += conjugate(terms.loss, a, y, s) if smoothing.q > 0.0 else -(paid + coupled)
    sums[2] += coupled
    sums[3] += h > 0.0


@kernel
def respond(
    terms: Pointwise, C: float, members: np.ndarray, z: np.ndarray, smoothing: Smoothing, answers: Answers
) -> None:
    """What the members answer to their margins."""
    for k in range(members.size):
        respond_one(terms, C, members[k], z[k], smoothing, answers)


@kernel
def respond_to_weights(
    terms: Terms,
    members: np.ndarray,
    w: np.ndarray,
    z: np.ndarray,
    smoothing: Smoothing,
    answers: Answers,
    pulled: np.ndarray,
) -> None:
    """:func:`respond` at the margins of w, which are put into z; ``pulled += sum_i a_i x_i``. Reads every row once."""
    for k in range(members.size):
        i = members[k]
        next_ahead(terms.X, members, k)
        z[k] = dot(terms.X, i, w)
        respond_one(terms, terms.C, i, z[k], smoothing, answers)
        if answers.alpha[i] != 0.0:
            axpy(terms.X, i, answers.alpha[i], pulled)


@kernel
def bending_rows(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, mask: np.ndarray) -> None:
    """Set ``mask[i] = 1`` for members whose dual variable is strictly inside its bounds and off a corner."""
    for i in members:
        left, right = slopes(terms.loss, alpha[i], 0.0, terms.y[i], weight_of(terms.weights, i))
        mask[i] = 1.0 if left > -np.inf and right < np.inf and right - left < 1e-12 else 0.0


@inlined
def slope_along(
    terms: Pointwise, C: float, members: np.ndarray, z: np.ndarray, dz: np.ndarray, tau: float, smoothing: Smoothing
) -> Any:
    """First and second derivative by tau of ``C sum_i e_i(z_i + tau dz_i)``."""
    slope = bend = 0.0
    for k in range(members.size):
        i = members[k]
        s = weight_of(terms.weights, i)
        a, h = response(terms.loss, smoothing, i, z[k] + tau * dz[k], terms.y[i], s)
        slope -= a * dz[k]
        bend += h * dz[k] * dz[k]
    return C * slope, C * bend


@kernel
def search(
    terms: Pointwise,
    C: float,
    members: np.ndarray,
    z: np.ndarray,
    dz: np.ndarray,
    smoothing: Smoothing,
    alpha: np.ndarray,
    bend: np.ndarray,
    alpha_at_one: np.ndarray,
    linear: float,
    quadratic: float,
    tolerance: float,
) -> float:
    """The minimiser over tau >= 0 of ``linear tau + quadratic tau^2 / 2 + C sum_i e_i(z_i + tau dz_i)``, given the
    multipliers and second derivatives at zero, and the multipliers at one (or an empty array).

    One where that is known and will do, else Newton's method on the derivative, which is monotone, guarded by a bracket
    that is halved where it is slow; done when the derivative has fallen to `tolerance` times what it was at zero. Zero
    when the function does not fall.
    """
    begin, rise, at_one = linear, quadratic, linear + quadratic
    for k in range(members.size):
        begin -= C * alpha[members[k]] * dz[k]
        rise += bend[members[k]] * dz[k] * dz[k]
    if not begin < 0.0:
        return 0.0
    if alpha_at_one.size:
        for k in range(members.size):
            at_one -= C * alpha_at_one[members[k]] * dz[k]
        if abs(at_one) <= -tolerance * begin:
            return 1.0
    low, high = 0.0, np.inf
    tau = -begin / rise if rise > 0.0 else 1.0
    before = np.inf
    for _ in range(SEARCH_STEPS):
        slope, bent = slope_along(terms, C, members, z, dz, tau, smoothing)
        residual, rise = linear + tau * quadratic + slope, quadratic + bent
        if abs(residual) <= -tolerance * begin:
            break
        if residual < 0.0:
            low = tau
        else:
            high = tau
        newton = tau - residual / rise if rise > 0.0 else np.inf
        slow = abs(residual) > 0.5 * before
        before = abs(residual)
        if high == np.inf:
            tau_next = min(newton, WIDEN * tau)
        elif low < newton < high and not slow:
            tau_next = newton
        else:
            tau_next = 0.5 * (low + high)
        if tau_next == tau or not np.isfinite(tau_next):
            break
        tau = tau_next
    return tau


@kernel
def hessian_product(X: Rows, active: np.ndarray, bend: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """``out += sum over active i of bend[i] x_i (x_i . v)``."""
    for k in range(active.size):
        row_ahead(X, active, k, active.size)
        i = active[k]
        axpy(X, i, bend[i] * dot(X, i, v), out)


@kernel
def combine(X: Rows, chosen: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """``out += sum_k factors[k] x_chosen[k]``."""
    for k in range(chosen.size):
        axpy(X, chosen[k], factors[k], out)


@kernel
def fill(X: Rows, chosen: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """``out[k] = factors[k] x_chosen[k]`` in the precision of `out`, the virtual feature in the last column."""
    for k in range(chosen.size):
        out[k, :] = 0.0
        axpy(X, chosen[k], factors[k], out[k])


def _pick_add_squares(X: types.Type, i: types.Type, c: types.Type, w: types.Type) -> Callable[..., Any]:
    def of_dense(X: Any, i: Any, c: Any, w: Any) -> Any:
        row = X.values[i]
        for j in range(row.size):
            w[j] += c * np.float64(row[j]) * np.float64(row[j])
        w[w.size - 1] += c * X.bias * X.bias

    def of_csr(X: Any, i: Any, c: Any, w: Any) -> Any:
        for p in range(U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)])):
            w[U(X.indices[p])] += c * np.float64(X.data[p]) * np.float64(X.data[p])
        w[w.size - 1] += c * X.bias * X.bias

    return of_dense if python_class(X) is Dense else of_csr


@operation(_pick_add_squares)
def add_squares(X: Rows, i: int, c: float, w: np.ndarray) -> None:
    """``w += c x_i^2``, element by element; the virtual feature is included."""


@kernel
def hessian_diagonal(X: Rows, active: np.ndarray, bend: np.ndarray, out: np.ndarray) -> None:
    """``out += the diagonal of sum over active i of bend[i] x_i x_i'``."""
    for k in range(active.size):
        add_squares(X, active[k], bend[active[k]], out)


@kernel
def add_outer_sparse(X: CSR, chosen: np.ndarray, factors: np.ndarray, upper: np.ndarray) -> None:
    """``upper += the upper triangle of sum_k factors[k] x_chosen[k] x_chosen[k]'``, CSR rows with sorted indices."""
    last = upper.shape[0] - 1
    for k in range(chosen.size):
        start, stop = U(X.indptr[chosen[k]]), U(X.indptr[chosen[k] + 1])
        for p in range(start, stop):
            row, c = upper[U(X.indices[p])], factors[k] * np.float64(X.data[p])
            for r in range(p, stop):
                row[U(X.indices[r])] += c * np.float64(X.data[r])
            row[last] += c * X.bias
        upper[last, last] += factors[k] * X.bias * X.bias


@kernel
def gram_sparse(
    X: CSR,
    chosen: np.ndarray,
    data: np.ndarray,
    places: np.ndarray,
    indptr: np.ndarray,
    out: np.ndarray,
) -> None:
    """``out[k, l] = x_chosen[k] . x_l`` with the rows l given by columns: `places` and `data` of each feature."""
    for k in range(chosen.size):
        row = out[k]
        row[:] = X.bias * X.bias
        for p in range(U(X.indptr[chosen[k]]), U(X.indptr[chosen[k] + 1])):
            j, c = U(X.indices[p]), np.float64(X.data[p])
            for r in range(U(indptr[j]), U(indptr[j + U(1)])):
                row[U(places[r])] += c * np.float64(data[r])
