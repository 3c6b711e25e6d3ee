"""Bounds on the rounding errors of kernel values and of sums of them.

With ``r_i = ||x_i||`` and g = gamma(d + 8), the relative error of an inner product of d terms and a few more roundings:

    linear          |k - k^|  <=  g r_i r_j
    rbf             |k - k^|  <=  g gamma (r_i + r_j)^2       (squared distances are taken apart: they cancel)
    poly, p >= 1    |k - k^|  <=  (p + 1) g (gamma r_i r_j + |c|)^p
    poly, p < 1     |k - k^|  <=  g^p (gamma r_i r_j + |c|)^p   (its slope at 0 is infinite)
    sigmoid         |k - k^|  <=  g (gamma r_i r_j + |c|)
    laplacian, chi2, cosine     <=  2 g          additive chi2  <=  g sqrt(d) (r_i + r_j)

Values of a precomputed kernel or of a function of the user's are the kernel: only sums of them are rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from saddlesvm.kernel.mercer import Kernel, Matrix, in_float64, leaf_of, squares_of

SLACK = 1.01  # the bounds are rounded too
TINY = 2.0**-1000  # no less than the part of a kernel value that underflows
LOST = 1e-140  # no less than the part of (x - z)^2 / (x + z) that underflows
DIAGONAL = 32  # rows of which a function's own values are asked for at once


@dataclass(frozen=True, eq=False)
class KernelErrors:
    """Bounds for the rows of one training set.

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

    def among(self, chosen: np.ndarray) -> KernelErrors:
        """Bounds for some of the rows; of a precomputed kernel their own part of the matrix is meant."""
        return replace(self, radii=self.radii[chosen], lengths=self.lengths[chosen])

    def of_expansion(self, coefficients: np.ndarray, unit: float, centres: np.ndarray | None = None) -> np.ndarray:
        """How far ``f_i = sum_j beta_j k(x_i, x_j)`` can be off, shape (n,); `unit` is that of a rounding.

        The coefficients are those of all rows, or of `centres` among them.
        """
        size, (first, second) = np.abs(coefficients), self.bases
        ours = slice(None) if centres is None else centres
        sums = np.array([size.sum(), size @ first[ours], size @ second[ours]])
        flat, by_first, by_second = (self.mixing(size.size, unit) @ sums).tolist()
        return flat + by_first * first + by_second * second

    @cached_property
    def bases(self) -> np.ndarray:
        """Two functions of the points, of which and of 1 the errors are made; shape (2, n).

        The square root of gamma is a factor of the radii: powers of gamma alone underflow for large rows, and powers of
        the radii alone overflow.
        """
        metric, r = self.kernel.metric, self.radii
        nothing = np.zeros(r.size)
        if self.kernel.precomputed or callable(metric):
            return np.stack([self.lengths, nothing])
        scaled = math.sqrt(abs(self.kernel.gamma)) * r
        with np.errstate(over="ignore"):  # an infinite bound is true
            match metric:
                case "rbf":
                    return np.stack([scaled, scaled * scaled])
                case "poly" | "polynomial":
                    return np.stack([scaled**self.kernel.degree, nothing])
                case "sigmoid":
                    return np.stack([scaled, nothing])
                case _:
                    return np.stack([r, nothing])

    def mixing(self, count: int, unit: float) -> np.ndarray:
        """The matrix that turns the sums of ``|beta_j|``, and of its products with both functions in `bases`, into the
        coefficients of 1 and of these functions in the error; shape (3, 3).

        Parameters
        ----------
        count : int
            Of points.
        unit : float
            Of a rounding.
        """
        kernel, found = self.kernel, np.zeros((3, 3))
        g = SLACK * (self.d + 8.0) * unit
        leaf = leaf_of(count)
        summed = SLACK * (leaf + count / leaf + 6.0) * unit  # products, their sums, the sum of these
        c = abs(kernel.coef0)
        if kernel.precomputed or callable(kernel.metric):
            found[1, 1] = summed
            return found
        match kernel.metric:
            case "linear":
                found[1, 1] = g + summed
            case "rbf":
                found[2, 0] = found[0, 2] = g
                found[1, 1], found[0, 0] = 2.0 * g, 2.0 * g + summed
            case "poly" | "polynomial":
                p = kernel.degree
                power = (p + 1.0) * g if p >= 1.0 else g**p if p > 0.0 else 0.0
                most = max(p, 1.0)
                share = (power + 16.0 * most * unit + summed) * 2.0 ** (most - 1.0)
                found[1, 1], found[0, 0] = share, share * c**p
            case "sigmoid":
                found[1, 1], found[0, 0] = g, g * c + g + summed
            case "additive_chi2":
                found[1, 0] = found[0, 1] = (g + summed) * np.sqrt(self.d)
            case "chi2":
                # The squares of small differences underflow, which may change the exponent by this much.
                lost = abs(kernel.gamma) * self.d * LOST
                found[0, 0] = 2.0 * g + summed + lost
            case _:
                found[0, 0] = 2.0 * g + summed
        found[0, 0] += TINY
        return found


def kernel_errors(kernel: Kernel, X: Matrix) -> KernelErrors:
    """Bounds for the rows of X; for a precomputed kernel X is its matrix."""
    d = int(X.shape[1])
    if kernel.precomputed:
        lengths = np.sqrt(np.abs(X.diagonal().astype(np.float64)))
        return KernelErrors(kernel, d, lengths, lengths)
    if callable(kernel.metric):
        lengths = np.sqrt(np.abs(_own_values(kernel, X)))
        return KernelErrors(kernel, d, lengths, lengths)
    radii = SLACK * np.sqrt(np.concatenate([squares_of(part) for part in in_float64(X)]) + 1e-290)
    return KernelErrors(kernel, d, radii, _lengths(kernel, d, radii))


def _lengths(kernel: Kernel, d: int, r: np.ndarray) -> np.ndarray:
    match kernel.metric:
        case "linear":
            return r
        case "poly" | "polynomial":
            return (abs(kernel.gamma) * r * r + abs(kernel.coef0)) ** (0.5 * kernel.degree)
        case "additive_chi2":
            return np.sqrt(2.0 * np.sqrt(d) * r)
        case _:
            return np.ones(r.size)


def _own_values(kernel: Kernel, X: Matrix) -> np.ndarray:
    """``k(x_i, x_i)``, some rows at once."""
    blocks = [X[start : start + DIAGONAL] for start in range(0, X.shape[0], DIAGONAL)]
    return np.concatenate([np.diagonal(kernel(one, one)) for one in blocks])
