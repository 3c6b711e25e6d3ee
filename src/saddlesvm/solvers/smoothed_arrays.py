"""The kernels of smoothed losses in NumPy and SciPy, for small problems.

A second text, since compilation is what a small problem waits for: the first `decision_bounds` of
200 x 5 rows take less than 0.01 s of processor time from a source installation, and 2.87 s by the
compiled kernels alone; later calls take as long by either (27 November 2026).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.problem.loss import methods_of
from saddlesvm.problem.terms import Pointwise, chosen as chosen_terms, weights_of, within_bounds
from saddlesvm.rows.layouts import combine_rows, dot_by_blocks
from saddlesvm.rows.matrix import CSR, Rows
from saddlesvm.solvers.base import AT_BOUND, SAME_SLOPES

silent = np.errstate(all="ignore")


@silent
def response(terms: Any, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The multipliers ``a(z)`` and ``-a'(z) >= 0``, with the proximal term where there is one."""
    loss, methods, s, q = terms.loss, methods_of(terms.loss), weights_of(terms), terms.q
    if q == 0.0:
        bend = np.broadcast_to(s * methods.curvature(loss, z, terms.y), z.shape)
        return -s * methods.subgradient(loss, z, terms.y), bend
    return smoothed_response(terms, z)


def smoothed_response(terms: Any, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both with a proximal term; ``-a'`` is 0 at the bounds and corners of the dual term."""
    loss, methods, s, q, y, centre = (
        terms.loss,
        methods_of(terms.loss),
        weights_of(terms),
        terms.q,
        terms.y,
        terms.centre,
    )
    assert methods.dual_step is not None
    a = within_bounds(methods, loss, centre + methods.dual_step(loss, centre, z, y, q, s), y, s)
    left, right = methods.slopes(loss, a, z + q * (a - centre), y, s)
    inside = left == right
    if terms.kinked:
        low, high = methods.bounds(loss, y, s)
        return a, (inside & (np.minimum(a - low, high - a) > AT_BOUND * s)) / q
    again = a + methods.dual_step(loss, a, z + q * (a - centre), y, q, s)
    a = np.where(inside, within_bounds(methods, loss, again, y, s), a)
    bend = s * methods.curvature(loss, z + q * (a - centre), y)
    return a, np.where(inside, bend / (1.0 + q * bend), 0.0)


@silent
def respond(terms: Any, z: np.ndarray, answers: Any) -> None:
    """:func:`saddlesvm.solvers.smoothed.respond`."""
    loss, methods, s, y = terms.loss, methods_of(terms.loss), weights_of(terms), terms.y
    a, h = response(terms, z)
    answers.alpha[:] = a
    answers.bend[:] = terms.C * h
    paid = (s * methods.value(loss, z, y)).sum()
    coupled = (a * z).sum()
    if terms.q == 0.0:
        # Fenchel's equality at slopes: phi(z) + phi*(-a) + a z = 0.
        conjugates = -(paid + coupled)
    else:
        conjugates = methods.conjugate(loss, a, y, s).sum()
    answers.sums[:] += (paid, conjugates, coupled, np.count_nonzero(h > 0.0))


def respond_to_weights(
    terms: object,
    X: Rows,
    members: np.ndarray,
    w: np.ndarray,
    z: np.ndarray,
    answers: Any,
    pulled: np.ndarray,
) -> None:
    """:func:`saddlesvm.solvers.smoothed.respond_to_weights`."""
    dot_by_blocks(X, members, w, z)
    respond(terms, z, answers)
    combine_rows(X, members, answers.alpha, pulled)


@silent
def bending_rows(
    terms: Pointwise, members: np.ndarray, alpha: np.ndarray, mask: np.ndarray
) -> None:
    """:func:`saddlesvm.solvers.smoothed.bending_rows`."""
    y, s = chosen_terms(terms, members)
    left, right = methods_of(terms.loss).slopes(terms.loss, alpha[members], 0.0, y, s)
    mask[members] = (left > -np.inf) & (right < np.inf) & (right - left < SAME_SLOPES)


def slope_along(terms: Any, z: np.ndarray, dz: np.ndarray, tau: float) -> tuple[float, float]:
    """:func:`saddlesvm.solvers.smoothed.slope_along`."""
    a, h = response(terms, z + tau * dz)
    return -terms.C * float((a * dz).sum()), terms.C * float((h * dz * dz).sum())


def hessian_diagonal(X: Rows, active: np.ndarray, bend: np.ndarray, out: np.ndarray) -> None:
    """:func:`saddlesvm.solvers.smoothed.hessian_diagonal`."""
    part, factors = X.float64_matrix()[active], bend[active]
    if not X.sparse:
        out[:-1] += factors @ (part * part)
    else:
        part.data = part.data * part.data
        out[:-1] += factors @ part
    out[-1] += X.bias * X.bias * float(factors.sum())


def add_outer_sparse(X: CSR, chosen: np.ndarray, factors: np.ndarray, upper: np.ndarray) -> None:
    """:func:`saddlesvm.solvers.smoothed.add_outer_sparse`."""
    part = X.float64_matrix()[chosen]
    scaled = part.T * factors
    products = sparse.triu(scaled @ part).tocoo()
    upper[products.row, products.col] += products.data
    upper[:-1, -1] += X.bias * np.asarray(scaled.sum(axis=1)).ravel()
    upper[-1, -1] += X.bias * X.bias * float(factors.sum())
