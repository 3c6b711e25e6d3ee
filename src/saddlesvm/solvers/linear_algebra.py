"""Cholesky factors of matrices that rounding may have made indefinite, and their cost."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs

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


def factor_cost(size: int) -> float:
    """Return the rough seconds of :func:`cholesky`."""
    return size**3 / (3.0 * BLAS_SPEED)
