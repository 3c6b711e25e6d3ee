"""Newton's equations of small problems: ``P + C Z' diag(bend) Z`` of runs over the same rows.

If the penalty P is the identity, a matrix that is computed and factored in single precision differs
from the exact one by about the unit roundoff times its trace. Up to a tenth of the identity, runs
take as many steps as with exact matrices: a step is corrected by the next one, whose right side is
computed in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

# Columns up to which whole products of several runs at once take less time than their halves, one
# after the other: measured.
FEW_COLUMNS = 32
# Part of a matrix' largest diagonal entry that is added to it if rounding makes it singular, and
# the factor by which that grows from one of so many tries to the next: guessed.
RAISED = 1e-14
RAISED_FURTHER = 100.0
TRIES = 5
SINGLE_TRACE = 0.1 * 2.0**24  # largest trace of a matrix in single precision: derived, see above
SINGLE_SIZES = 1e-12, 1e12  # of squared norms and of C, whose products single precision then holds
# Products that make a matrix, from which single precision saves more than its copy of the rows
# costs: measured, 3 and 12 matrices of 150 x 5 to 2,000 x 21 (26 November 2026).
SINGLE_WORK = 100_000


def product_of_rows(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the inner products of the rows of two arrays, shape (K,)."""
    found: np.ndarray = np.matmul(one[:, None, :], other[:, :, None])[:, 0, 0]
    return found


inner: Callable[[np.ndarray, np.ndarray], np.ndarray]
inner = getattr(np, "vecdot", product_of_rows)  # NumPy 2 has it, in a third of the time


def products(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the product of each row with a matrix.

    One by one, so that a run's numbers are those of the run alone, bit for bit.
    """
    found: np.ndarray = np.matmul(rows[:, None], matrix)[:, 0]
    return found


class Factor(NamedTuple):
    """A Cholesky factor, and LAPACK's routine that solves equations with it."""

    factor: np.ndarray
    routine: Any


class SmallEquations:
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
        Column by column if they are few: the rows' weights are then multiplied along the rows.
    """

    def __init__(self, Z: np.ndarray, penalty: np.ndarray, C: float) -> None:
        self.exact = Precision(Z, penalty, dpotrf, dpotrs)
        self.C = C
        self.Z = self.exact.Z

    @cached_property
    def norms(self) -> np.ndarray | None:
        """The squared norms of the rows; None if single precision does not do or saves nothing."""
        if self.Z.size * self.Z.shape[1] < SINGLE_WORK:
            return None
        norms = np.einsum("ij,ij->i", self.Z, self.Z)
        low, high = SINGLE_SIZES
        in_range = low < float(norms.max()) < high and low < self.C < high
        return norms + low if in_range and self.exact.penalty.all() else None

    @cached_property
    def single(self) -> Precision:
        """The rows in single precision."""
        penalty = self.exact.penalty.astype(np.float32)
        return Precision(self.Z.astype(np.float32), penalty, spotrf, spotrs)

    def factors(self, bends: np.ndarray) -> list[Factor]:
        """Return the factors of the matrices of runs, for second derivatives of shape (K, n)."""
        # The second derivatives of the rows' terms of the objective, C s_i phi_i''.
        bends = self.C * bends
        if self.norms is None:
            return self.exact.factors(bends)

        # The trace of Z' diag(bend) Z says which matrices single precision holds well enough.
        is_enough = inner(bends, self.norms[None]) <= SINGLE_TRACE
        if is_enough.all():
            return self.single.factors(bends)
        found = []
        for bend, enough in zip(bends[:, None], is_enough.tolist(), strict=True):
            precision = self.single if enough else self.exact
            found += precision.factors(bend)
        return found


class Precision:
    """The rows, and LAPACK's routines, of one precision."""

    def __init__(self, Z: np.ndarray, penalty: np.ndarray, factor: Any, routine: Any) -> None:
        self.has_few = Z.shape[1] <= FEW_COLUMNS
        self.Z = np.asfortranarray(Z) if self.has_few else Z
        self.penalty = penalty
        self.factor = factor
        self.routine = routine

    def factors(self, bends: np.ndarray) -> list[Factor]:
        """Return the factors for second derivatives times C."""
        bends = bends.astype(self.Z.dtype, copy=False)
        if self.has_few:
            matrices = np.matmul(bends[:, None] * self.Z.T, self.Z)
        else:
            matrices = np.array([self._product(bend) for bend in bends])
        # The diagonals of all matrices, as a view.
        matrices.reshape(len(bends), -1)[:, :: self.penalty.size + 1] += self.penalty
        return [self._factor(matrix) for matrix in matrices]

    def _product(self, bend: np.ndarray) -> np.ndarray:
        """Return ``Z' diag(bend) Z``, of which the BLAS computes half."""
        Z = self.Z
        # Rows without a second derivative add nothing; the BLAS sees that A'A is symmetric.
        chosen = bend > 0.0
        if not chosen.all():
            Z = Z[chosen]
            bend = bend[chosen]
        scaled = Z * np.sqrt(bend)[:, None]
        product: np.ndarray = scaled.T @ scaled
        return product

    def _factor(self, matrix: np.ndarray) -> Factor:
        """Return the factor of a matrix, raised if it is singular; not finite if in vain."""
        factor, failed = self.factor(matrix)
        lift = RAISED * float(matrix.diagonal().max()) if failed else 0.0
        for _ in range(TRIES):
            if not failed:
                return Factor(factor, self.routine)
            # The lifts add up, each RAISED_FURTHER times the last.
            matrix = matrix.copy()
            matrix.flat[:: matrix.shape[0] + 1] += lift
            factor, failed = self.factor(matrix)
            lift *= RAISED_FURTHER
        return Factor(np.full_like(matrix, np.nan) if failed else factor, self.routine)


def solve(factors: list[Factor], right: np.ndarray) -> np.ndarray:
    """Return the solutions of the equations of each run, in double precision.

    They are not finite if there is no factor.
    """
    found = np.empty(right.shape)
    for k, (factor, routine) in enumerate(factors):
        found[k] = routine(factor, right[k])[0]
    return found
