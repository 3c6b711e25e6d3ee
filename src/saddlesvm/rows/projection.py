"""Squared norms of functions projected on the span of a few points' kernel functions: upper bounds, rounding counted.

A function has the values v at the points, whose kernel matrix is K. Its projection has the squared norm

    v' K^-1 v  =  2 v'u - u'K u + r' K^-1 r  <=  2 v'u - u'K u + ||r||^2 / least,        r = v - K u,

whatever u is; u near ``K^-1 v`` makes the last term negligible. `least` is a lower bound on the eigenvalues of K: a
Cholesky factorisation of ``K - s I`` that succeeds proves that they are above ``s - gamma(m + 1) trace(K)``.

Source: Rump (2006), "Verification of positive definiteness".
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from saddlesvm.rows.kernel_errors import SLACK, KernelErrors
from saddlesvm.rows.kernels import Matrix, expand

UNIT = 2.0**-53  # of a rounding to the nearest double, relative
ITERATIONS = 8  # of the power method for the norm of an inverse
SHARES = (0.5, 0.1, 0.02)  # of the smallest eigenvalue, as it is estimated: shifts that are tried


def smallest_eigenvalue(K: np.ndarray, inverse: np.ndarray, errors: KernelErrors) -> float:
    """A lower bound on the eigenvalues of the exact kernel matrix of some points; it may be below zero.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        The matrix as it is computed; its lower triangle counts.
    inverse : ndarray of shape (m, m)
        The transposed inverse of its Cholesky factor, nearly.
    errors : KernelErrors
        Of the points.
    """
    m, x = K.shape[0], np.ones(K.shape[0])
    for _ in range(ITERATIONS):
        x /= np.linalg.norm(x)
        x = inverse @ (inverse.T @ x)
    around = 1.0 / float(np.linalg.norm(x))
    off = float(errors.of_expansion(np.ones(m), UNIT).max(initial=0.0))  # no less than the norm of all values' errors
    off += SLACK * (m + 4.0) * UNIT * float(np.abs(K.diagonal()).sum())
    for share in SHARES:
        shifted = K.copy()
        shifted[np.diag_indices(m)] -= share * around
        try:
            cholesky(shifted, lower=True, check_finite=False, overwrite_a=True)
        except LinAlgError:
            continue
        return share * around - off
    return -off


def projected_squares(
    points: Matrix, errors: KernelErrors, inverse: np.ndarray, least: float, values: np.ndarray, slips: np.ndarray
) -> np.ndarray:
    """At most the squared norms of functions projected on the span of the points' kernel functions, shape (k,).

    Parameters
    ----------
    points : array or CSR matrix of shape (m, d), float64
    errors : KernelErrors
        Of the points.
    inverse, least
        See :func:`smallest_eigenvalue`; where `least` is zero, the bounds are infinite.
    values, slips : ndarray of shape (m, k)
        The functions' values at the points, and how far these can be off.
    """
    m = values.shape[0]
    u = inverse @ (inverse.T @ values)
    u += inverse @ (inverse.T @ (values - expand(errors.kernel, points, points, u)))
    again = expand(errors.kernel, points, points, u)
    own = np.column_stack([errors.of_expansion(one, UNIT) for one in u.T])
    size = np.abs(u)
    off = (size * (2.0 * slips + own)).sum(axis=0)
    off += SLACK * (m + 8.0) * UNIT * (size * (2.0 * np.abs(values) + np.abs(again))).sum(axis=0)
    rest = np.linalg.norm(np.abs(values - again) + slips + own + UNIT * np.abs(values), axis=0)
    far = rest * rest / least if least > 0.0 else np.where(rest > 0.0, np.inf, 0.0)
    return np.asarray((u * (2.0 * values - again)).sum(axis=0) + SLACK * (off + far))
