"""Compute scores of a linear model on many rows, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from saddlesvm.rows.files import is_mapped, release_pages
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.passes import Passes
from saddlesvm.rows.small_types import widen

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import Matrix

BLOCK_VALUES = 4_000_000  # values of rows that are widened at a time; a guess
# The same for rows that are mapped from files, whose pages count as memory while they are used.
MAPPED_VALUES = 500_000


def dense_weights(coef: Any) -> np.ndarray:
    """Return weights, dense or sparse, of shape (d,) or (k, d), as an array of shape (k, d)."""
    return np.atleast_2d(coef.toarray() if sparse.issparse(coef) else coef)


def parts_of_rows(X: Any, least: int = 1) -> Iterator[slice]:
    """Yield neighbouring rows, some at a time, so that work on each part takes little memory.

    The pages of rows that are mapped from files are released after each part.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    least : int, default=1
        Values of a part, at least.
    """
    n = X.shape[0]
    values_of_row = X.nnz // max(n, 1) if sparse.issparse(X) else X.shape[1]
    is_file = is_mapped(X)
    # Parts of mapped rows are smaller: their pages are released after each part.
    most = max(least, MAPPED_VALUES if is_file else BLOCK_VALUES)
    step = max(1, most // max(values_of_row, 1))
    for start in range(0, n, step):
        yield slice(start, start + step)
        if is_file:
            release_pages(X)


def linear_scores(
    X: Matrix | Passes,
    coef: np.ndarray | sparse.csr_array | sparse.csr_matrix,
    intercept: np.ndarray,
) -> np.ndarray:
    """Return ``X @ coef.T + intercept`` in float64, shape (n, k), without widening the whole of X.

    Rows that are mapped from files take the memory of some of them at a time.

    Parameters
    ----------
    X : ndarray of any type that is kept in place, CSR matrix, or Passes, of shape (n, d)
    coef : ndarray of shape (k, d) or (d,), or sparse matrix of shape (k, d), float64
    intercept : ndarray of shape (k,)
    """
    n = X.shape[0]
    if isinstance(X, Passes):
        # Rows in a place of their own answer with margins, a pass for each output.
        columns = [X.margins(np.append(w, 0.0)) for w in dense_weights(coef)]
        return np.column_stack(columns) + intercept
    if not sparse.issparse(coef):
        coef = np.atleast_2d(coef)
    scores = np.empty((n, coef.shape[0]))
    # Rows of float64 in memory need no copy, and so no parts.
    is_ready = X.dtype == np.float64 and not is_mapped(X)
    for part in [slice(0, n)] if is_ready else parts_of_rows(X):
        rows = X if is_ready else X[part]
        if sparse.issparse(X):
            products = rows @ coef.T
            scores[part] = products.toarray() if sparse.issparse(products) else products
        elif sparse.issparse(coef):
            scores[part] = widen(rows, np.float64) @ coef.T
        else:
            np.matmul(widen(rows, np.float64), coef.T, out=scores[part])
    scores += intercept
    return scores


def scores_of_rows(X: Rows, W: np.ndarray) -> np.ndarray:
    """Return ``x_i . w_k`` of all rows in float64, with the virtual feature, shape (n, K).

    `W` has shape (K, d + 1).
    """
    return linear_scores(X.matrix, W[:, :-1], X.bias * W[:, -1])
