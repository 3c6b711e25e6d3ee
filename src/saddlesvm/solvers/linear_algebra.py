"""Dense linear algebra on blocks of rows: Cholesky factors, and sums of squares."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import get_lapack_funcs

from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.places import FLOAT64, Memory
from saddlesvm.rows.sparse_products import add_outer_products

# Values of a block of rows that are widened to float64, or transposed, at once; a guess.
BLOCK_VALUES = 1_000_000
# Operations a second of the BLAS, of which only ratios to other costs matter; measured.
BLAS_SPEED = 3e10
LIFTS = 1e-4  # share of the largest diagonal that may be added to a matrix, at most; a guess


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """Return the lower factor of a Fortran-ordered positive definite matrix.

    The diagonal is raised if rounding has made the matrix indefinite.

    Raises
    ------
    numpy.linalg.LinAlgError
        The matrix is far from positive definite, or not finite.
    """
    diagonal = np.arange(matrix.shape[0])
    largest = float(matrix[diagonal, diagonal].max(initial=0.0))
    (potrf,) = get_lapack_funcs(("potrf",), (matrix,))
    lift = 0.0
    # What is added grows a hundredfold until the factor exists.
    while lift < LIFTS:
        work = matrix if lift == 0.0 else matrix.copy(order="F")
        work[diagonal, diagonal] += lift * largest
        factor, failed = potrf(work, lower=1, clean=0, overwrite_a=lift > 0.0)
        if not failed:
            return factor
        lift = max(50.0 * float(np.finfo(matrix.dtype).eps), 100.0 * lift)
    raise np.linalg.LinAlgError("the Newton matrix is not positive definite")


def blocks(chosen: np.ndarray, width: int) -> list[np.ndarray]:
    """Return `chosen` in parts whose widened rows hold about BLOCK_VALUES values."""
    size = max(16, BLOCK_VALUES // width)
    return [chosen[k : k + size] for k in range(0, chosen.size, size)]


def full_rows(X: Rows, chosen: np.ndarray) -> np.ndarray:
    """Return the chosen rows in float64 with the virtual feature, shape (chosen, d + 1)."""
    block = Memory(X, chosen).read(slice(0, chosen.size), FLOAT64)
    values = block.toarray() if X.sparse else block
    return np.column_stack([values, np.full(chosen.size, X.bias)])


def factor_cost(size: int) -> float:
    """Return the rough seconds of :func:`cholesky`."""
    return size**3 / (3.0 * BLAS_SPEED)


def sum_outer(X: Rows, chosen: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return ``sum_k factors_k x_chosen[k] x_chosen[k]'`` in its lower triangle, in Fortran order.

    The factors are not negative.
    """
    width = X.n_features + 1
    total = np.zeros((width, width), order="F")
    # Few values are multiplied as dense rows: without a compilation.
    if X.sparse and not X.is_small:
        add_outer_products(X, chosen, factors, total.T)
        return total
    for part, share in zip(blocks(chosen, width), blocks(factors, width), strict=True):
        rows = full_rows(X, part)
        rows *= np.sqrt(share)[:, None]
        total += rows.T @ rows
    return total


def sum_squares(X: Rows, factors: np.ndarray) -> np.ndarray:
    """Return ``sum_i factors_i x_i^2``, element by element, shape (d + 1,)."""
    total = np.zeros(X.n_features + 1)
    if X.sparse:
        squares = np.square(X.data, dtype=np.float64)
        shape = (factors.size, X.n_features)
        total[:-1] = factors @ sparse.csr_matrix((squares, X.indices, X.indptr), shape=shape)
        total[-1] = X.bias * X.bias * float(factors.sum())
        return total
    places = np.arange(factors.size)
    for part in blocks(places, total.size):
        total += factors[part] @ np.square(full_rows(X, part))
    return total
