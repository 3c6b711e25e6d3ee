"""Bounds on the rounding errors of kernel values and of sums of them.

With ``r_i = ||x_i||`` and g = gamma(d + 8), the relative error of an inner product of d terms and a
few more roundings (Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1):

    linear          |k - k^|  <=  g r_i r_j
    rbf             |k - k^|  <=  g gamma (r_i + r_j)^2    (the parts of distances cancel)
    poly            |k - k^|  <=  (p + 1) g (gamma r_i r_j + |c|)^p
    sigmoid         |k - k^|  <=  g (gamma r_i r_j + |c|)

Values of a precomputed kernel or of a function of the user's are the kernel: only sums of them are
rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from saddlesvm.kernel.mercer import Kernel, Matrix, in_float64, leaf_of, squares_of

SLACK = 1.01  # factor for the rounding of the bounds themselves
TINY = 2.0**-1000  # at least the part of a kernel value that underflows
DIAGONAL = 32  # rows whose values k(x, x) a function of the user's gives at once


@dataclass(frozen=True, eq=False)
class KernelErrors:
    """Bounds for the rows of a training set.

    Attributes
    ----------
    kernel : Kernel
    d : int
        Number of features.
    radii : ndarray of shape (n,)
        ``||x_i||``; for kernels without rows the same as `lengths`.
    lengths : ndarray of shape (n,)
        ``sqrt(k(x_i, x_i))``, or more: the length of the row in the feature space.
    """

    kernel: Kernel
    d: int
    radii: np.ndarray
    lengths: np.ndarray

    def select(self, chosen: np.ndarray) -> KernelErrors:
        """Return the bounds for some rows; of a precomputed kernel, for their part of it."""
        return replace(self, radii=self.radii[chosen], lengths=self.lengths[chosen])

    def bound_expansion(self, coefficients: np.ndarray, unit: float) -> np.ndarray:
        """Return bounds on the errors of ``f_i = sum_j beta_j k(x_i, x_j)``, shape (n,).

        `unit` is the unit of rounding.
        """
        size = np.abs(coefficients)
        return mix_errors(self.mixing(size.size, unit), self.bases, size)

    @cached_property
    def bases(self) -> np.ndarray:
        """Return 1 and two functions of the points, whose products with each other bound errors.

        The radii have the square root of gamma as a factor: powers of gamma alone underflow for
        large rows, and powers of the radii alone overflow.
        """
        metric = self.kernel.metric
        r = self.radii
        one = np.ones(r.size)
        nothing = np.zeros(r.size)
        if self.kernel.precomputed or callable(metric):
            return np.stack([one, self.lengths, nothing])
        scaled = math.sqrt(abs(self.kernel.gamma)) * r
        with np.errstate(over="ignore"):  # an infinite bound is true
            match metric:
                case "rbf":
                    return np.stack([one, scaled, scaled * scaled])
                case "poly":
                    return np.stack([one, scaled**self.kernel.degree, nothing])
                case "sigmoid":
                    return np.stack([one, scaled, nothing])
                case _:
                    return np.stack([one, r, nothing])

    def mixing(self, count: int, unit: float) -> np.ndarray:
        """Return the matrix of the bilinear form of the errors in the `bases`, shape (3, 3).

        Parameters
        ----------
        count : int
            Of points.
        unit : float
            Of a rounding.
        """
        kernel = self.kernel
        found = np.zeros((3, 3))
        g = SLACK * (self.d + 8.0) * unit
        leaf = leaf_of(count)
        # Relative rounding of a sum that goes leaf by leaf: products, their sums, the sum of these.
        summed = SLACK * (leaf + count / leaf + 6.0) * unit
        c = abs(kernel.coef0)
        if kernel.precomputed or callable(kernel.metric):
            found[1, 1] = summed
            return found
        match kernel.metric:
            case "linear":
                found[1, 1] = g + summed
            case "rbf":
                # g gamma (r_i + r_j)^2, and a rounding of values up to 1 in the sum.
                found[2, 0] = found[0, 2] = g
                found[1, 1] = 2.0 * g
                found[0, 0] = 2.0 * g + summed
            case "poly":
                p = kernel.degree
                # (u + v)^p <= 2^(p - 1) (u^p + v^p) takes gamma r_i r_j and |c| apart.
                power = (p + 1.0) * g
                most = max(p, 1.0)
                share = (power + 16.0 * most * unit + summed) * 2.0 ** (most - 1.0)
                found[1, 1] = share
                found[0, 0] = share * c**p
            case "sigmoid":
                found[1, 1] = g
                found[0, 0] = g * c + g + summed
        found[0, 0] += TINY
        return found


def mix_errors(mixing: np.ndarray, bases: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the error of ``sum_j beta_j k(x_i, x_j)`` at each point i, at most.

    Parameters
    ----------
    mixing : ndarray of shape (3, 3)
    bases : ndarray of shape (3, points)
        See :attr:`KernelErrors.bases`.
    sizes : ndarray of shape (points,)
        ``|beta_j|``.
    """
    # A bilinear form in the bases of both points: sum over j first.
    return np.asarray((mixing @ (bases @ sizes)) @ bases)


def kernel_errors(kernel: Kernel, X: Matrix) -> KernelErrors:
    """Return the bounds for the rows of X; with a precomputed kernel, X is its matrix."""
    d = int(X.shape[1])
    if kernel.precomputed:
        lengths = np.sqrt(np.abs(X.diagonal().astype(np.float64)))
        return KernelErrors(kernel, d, lengths, lengths)
    if callable(kernel.metric):
        lengths = np.sqrt(np.abs(_own_values(kernel, X)))
        return KernelErrors(kernel, d, lengths, lengths)
    radii = SLACK * np.sqrt(np.concatenate([squares_of(part) for part in in_float64(X)]) + 1e-290)
    return KernelErrors(kernel, d, radii, _lengths(kernel, radii))


def _lengths(kernel: Kernel, r: np.ndarray) -> np.ndarray:
    """Return ``sqrt(k(x, x))``, or more, of rows with these radii."""
    match kernel.metric:
        case "linear":
            return r
        case "poly":
            return (abs(kernel.gamma) * r * r + abs(kernel.coef0)) ** (0.5 * kernel.degree)
        case _:
            return np.ones(r.size)


def _own_values(kernel: Kernel, X: Matrix) -> np.ndarray:
    """Return ``k(x_i, x_i)``, computed for some rows at once."""
    blocks = [X[start : start + DIAGONAL] for start in range(0, X.shape[0], DIAGONAL)]
    return np.concatenate([np.diagonal(kernel(one, one)) for one in blocks])
