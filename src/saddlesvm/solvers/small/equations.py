"""Newton's equations of small problems: matrices ``P + C Z' diag(bend) Z`` of several runs over the same rows.

Where the penalty P is the identity, a matrix that is computed and factored in single precision differs from the exact
one by about the unit roundoff times its trace. Up to a tenth of the identity, runs take as many steps as with exact
matrices: a step is corrected by the next one, whose right side is computed in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

FEW_COLUMNS = 32  # of rows, up to which whole products of several runs at once take less time than their halves alone
RAISED = 1e-14  # part of a matrix' largest diagonal entry that is added to it where rounding makes it singular
SINGLE_TRACE = 0.1 * 2.0**24  # largest trace of a matrix in single precision
SINGLE_SIZES = 1e-12, 1e12  # of squared norms and of C, whose products single precision then holds
# Products that make a matrix, from which single precision saves more than its copy of the rows costs:
# measured, 3 and 12 matrices of 150 x 5 to 2,000 x 21 (26 November 2026).
SINGLE_WORK = 100_000


def product_of_rows(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The inner products of the rows of two arrays, shape (K,)."""
    found: np.ndarray = np.matmul(one[:, None, :], other[:, :, None])[:, 0, 0]
    return found


inner: Callable[[np.ndarray, np.ndarray], np.ndarray]
inner = getattr(np, "vecdot", product_of_rows)  # NumPy 2 has it, in a third of the time


class Factor(NamedTuple):
    """A Cholesky factor, and LAPACK's routine that solves equations with it."""

    factor: np.ndarray
    solution: Any


class Equations:
    """The equations over some rows.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
    penalty : ndarray of shape (m,)
        The diagonal of P.
    C : float

    Attributes
    ----------
    Z : ndarray of shape (n, m)
        Column by column where there are few: the weights of the rows are then multiplied along the rows.
    """

    def __init__(self, Z: np.ndarray, penalty: np.ndarray, C: float) -> None:
        self.exact, self.C = Precision(Z, penalty, dpotrf, dpotrs), C
        self.Z = self.exact.Z

    @cached_property
    def norms(self) -> np.ndarray | None:
        """The squared norms of the rows; None where single precision is never enough."""
        # Few products take no longer in double precision.
        if self.Z.size * self.Z.shape[1] < SINGLE_WORK:
            return None
        norms, (low, high) = np.einsum("ij,ij->i", self.Z, self.Z), SINGLE_SIZES
        enough = low < float(norms.max()) < high and low < self.C < high and self.exact.penalty.all()
        return norms + low if enough else None

    @cached_property
    def single(self) -> Precision:
        """The rows in single precision."""
        return Precision(self.Z.astype(np.float32), self.exact.penalty.astype(np.float32), spotrf, spotrs)

    def factors(self, bends: np.ndarray) -> list[Factor]:
        """The Cholesky factors of the matrices of runs, for their second derivatives of shape (K, n)."""
        bends = self.C * bends
        if self.norms is None:
            return self.exact.factors(bends)
        enough = inner(bends, self.norms[None]) <= SINGLE_TRACE
        if enough.all():
            return self.single.factors(bends)
        each = zip(bends[:, None], enough, strict=True)
        return [(self.single if fine else self.exact).factors(one)[0] for one, fine in each]


class Precision:
    """The rows, and the routines, of one precision."""

    def __init__(self, Z: np.ndarray, penalty: np.ndarray, factor: Any, solution: Any) -> None:
        self.few = Z.shape[1] <= FEW_COLUMNS
        self.Z = np.asfortranarray(Z) if self.few else Z
        self.penalty, self.factor, self.solution = penalty, factor, solution

    def factors(self, bends: np.ndarray) -> list[Factor]:
        """The factors for second derivatives times C."""
        bends = bends.astype(self.Z.dtype, copy=False)
        if self.few:
            matrices = np.matmul(bends[:, None] * self.Z.T, self.Z)
        else:
            matrices = np.array([self._half(bend) for bend in bends])
        matrices.reshape(len(bends), -1)[:, :: self.penalty.size + 1] += self.penalty
        return list(map(self._factor_of, matrices))

    def _half(self, bend: np.ndarray) -> np.ndarray:
        """``Z' diag(bend) Z``, of which BLAS computes half."""
        Z, chosen = self.Z, bend > 0.0
        if not chosen.all():
            Z, bend = Z[chosen], bend[chosen]
        scaled = Z * np.sqrt(bend)[:, None]
        product: np.ndarray = scaled.T @ scaled
        return product

    def _factor_of(self, matrix: np.ndarray) -> Factor:
        """The factor of a matrix, raised where rounding makes it singular; not finite where that does not help."""
        factor, failed = self.factor(matrix)
        lift = RAISED * float(matrix.diagonal().max()) if failed else 0.0
        for _ in range(5):
            if not failed:
                break
            matrix = matrix.copy()
            matrix.flat[:: matrix.shape[0] + 1] += lift
            factor, failed = self.factor(matrix)
            lift *= 100.0
        return Factor(np.full_like(matrix, np.nan) if failed else factor, self.solution)


def solved(factors: list[Factor], rhs: np.ndarray) -> np.ndarray:
    """The solutions of the equations of each run, in double precision; not finite where there is no factor."""
    found = np.empty(rhs.shape)
    for k, (factor, solution) in enumerate(factors):
        found[k] = solution(factor, rhs[k])[0]
    return found
