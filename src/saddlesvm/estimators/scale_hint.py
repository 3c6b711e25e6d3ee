"""A hint for a fit that did not reach its gap: the features have very different scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from saddlesvm.rows.passes import Passes
from saddlesvm.rows.scores import parts_of_rows
from saddlesvm.rows.small_types import widen

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import RowsLike

# Ratio of the largest to the smallest norm of a feature above which scaling helps; a guess.
SPREAD = 100.0


def scale_hint(X: RowsLike) -> list[str]:
    """Return what to do about features of very different scales, an empty list if nothing.

    All rows are read: in a sample, a feature that is rare would look smaller than it is.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        There is no hint for rows in a place of their own, whose values cannot be read.
    """
    if isinstance(X, Passes):
        return []
    columns, norms = feature_norms(X)
    if not norms.size:
        return []
    largest = int(np.argmax(norms))
    smallest = int(np.argmin(norms))
    if norms[largest] <= SPREAD * norms[smallest]:
        return []
    return [
        f"the norms of the features spread over a factor of {norms[largest] / norms[smallest]:.1e} "
        f"(largest: column {columns[largest]}, smallest: column {columns[smallest]}). "
        "Scale them to similar size before training (saddlesvm train --standardize; in Python "
        "StandardScaler, or MaxAbsScaler for sparse data): coordinate methods then need far fewer "
        "epochs, and the penalty treats the features alike"
    ]


def feature_norms(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the features with a nonzero value, and their norms."""
    if sparse.issparse(X) and X.nnz < X.shape[1]:
        # Fewer values than features: avoid an array of all features.
        columns, place = np.unique(X.indices[: X.nnz], return_inverse=True)
        squares = np.bincount(place, np.square(X.data[: X.nnz], dtype=np.float64), columns.size)
        is_used = squares > 0.0
        return columns[is_used], np.sqrt(squares[is_used])

    # Sum the squares of each column, some rows at a time.
    d = X.shape[1]
    squares = np.zeros(d)
    for rows in parts_of_rows(X, least=d):
        part = X[rows]
        if sparse.issparse(part):
            squares += np.bincount(part.indices, np.square(part.data, dtype=np.float64), d)
        else:
            part = widen(part, np.float64)
            squares += np.einsum("ij,ij->j", part, part)
    columns = np.flatnonzero(squares)
    return columns, np.sqrt(squares[columns])
