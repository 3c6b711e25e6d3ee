"""Check that the indices of CSR matrices are in range and unique in their rows.

No operation needs the indices of a row to be in order, only each to occur once. A quick check is
enough for rows in order; the positions of others are sorted.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.rows.files import release_pages

BLOCK = 2**20  # indices that are checked together; a guess: some arrays of 4 MB


def all_in_order(indices: np.ndarray, indptr: np.ndarray, n_features: int) -> bool:
    """Return True if row pointers ascend, and indices are in range and ascend in their rows."""
    if indptr[0] != 0 or indptr[-1] > indices.size or (indptr[1:] < indptr[:-1]).any():
        return False
    for rows in blocks_of_rows(indptr):
        ends = indptr[rows.start : rows.stop + 1]
        named = indices[ends[0] : ends[-1]]
        starts = ends - ends[0]
        # SciPy looks in a single pass whether the indices ascend in each row; no values are needed.
        values = np.broadcast_to(np.int8(0), named.shape)
        shape = (starts.size - 1, n_features)
        if not sparse.csr_array((values, named, starts), shape=shape).has_canonical_format:
            return False
        # The first and the last index of each row are then its least and its largest.
        filled = starts[1:] > starts[:-1]
        first = named[starts[:-1][filled]]
        last = named[starts[1:][filled] - 1]
        if named.size and (first.min() < 0 or last.max() >= n_features):
            return False
    return True


def first_repeat(indices: np.ndarray, indptr: np.ndarray, n_features: int) -> int:
    """Return the first row of a CSR matrix that names a column twice; -1 if none does.

    -2 - i stands for an index out of range in row i, or a row pointer that falls.
    """
    if indptr[0] != 0 or indptr[-1] > indices.size:
        return -2
    # Row pointers first: the other checks rely on them.
    falling = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falling.size:
        return -2 - int(falling[0])
    answer = -1
    for rows in blocks_of_rows(indptr):
        ends = indptr[rows.start : rows.stop + 1]
        named = indices[ends[0] : ends[-1]]
        row = np.repeat(np.arange(rows.start, rows.stop), np.diff(ends))
        outside = np.flatnonzero((named < 0) | (named >= n_features))
        if outside.size:
            return -2 - int(row[outside[0]])
        # A repeat is known; the rest is still searched for indices out of range.
        if answer >= 0:
            continue
        # Positions in the flattened dense matrix: equal ones are neighbours once they are sorted.
        position = np.sort(row * np.int64(n_features) + named)
        twice = np.flatnonzero(position[1:] == position[:-1])
        if twice.size:
            answer = int(position[twice[0]] // n_features)
    return answer


def blocks_of_rows(indptr: np.ndarray) -> Iterator[slice]:
    """Yield neighbouring rows with about BLOCK indices, or a single row with more."""
    count = indptr.size - 1
    start = 0
    while start < count:
        # The last row that ends within BLOCK indices; at least one row.
        stop = int(np.searchsorted(indptr, indptr[start] + BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), count)
        yield slice(start, stop)
        start = stop


def canonical(X: sparse.csr_array | sparse.csr_matrix) -> sparse.csr_array | sparse.csr_matrix:
    """Return X, or a copy with duplicates summed, so that indices are unique in their row.

    The order of the indices in a row does not matter.

    Raises
    ------
    ValueError
        An index is out of range, or the row pointers do not ascend.
    """
    if X.data.size != X.indices.size or X.indptr.size != X.shape[0] + 1:
        raise ValueError(
            "the sparse matrix is malformed: data, indices and indptr have lengths that do not fit"
        )
    is_ordered = all_in_order(X.indices, X.indptr, X.shape[1])
    # The check has read mapped files: give their memory back.
    release_pages(X)
    if is_ordered:
        return X
    fault = first_repeat(X.indices, X.indptr, X.shape[1])
    if fault == -1:
        return X
    if fault <= -2:
        raise ValueError(
            f"the sparse matrix is malformed in row {-2 - fault}: column indices must be from 0 to "
            f"{X.shape[1] - 1}, and row pointers ascending"
        )
    # SciPy must not trust its cached flag.
    repaired = X.copy()
    repaired.has_canonical_format = False
    repaired.sum_duplicates()
    return repaired


def without_spare_end(X: Any) -> Any:
    """Return X, or a CSR matrix over the same values without the values behind the last row.

    SciPy lets the arrays be longer than ``indptr[-1]``, and some of its sums count the rest.
    """
    if not sparse.issparse(X) or X.format != "csr" or X.data.size != X.indices.size:
        return X
    end = int(X.indptr[-1])
    if not 0 <= end < X.data.size:
        return X
    # A shallow copy: the arrays are views of the same values.
    trimmed = copy.copy(X)
    trimmed.data = X.data[:end]
    trimmed.indices = X.indices[:end]
    return trimmed


def in_range(X: sparse.csr_array | sparse.csr_matrix) -> bool:
    """Return True if the parts of a CSR matrix fit together, and all its columns exist."""
    if X.data.size != X.indices.size or X.indptr.size != X.shape[0] + 1:
        return False
    if X.indptr[0] != 0 or X.indptr[-1] > X.indices.size or (X.indptr[1:] < X.indptr[:-1]).any():
        return False
    return not X.indices.size or bool(X.indices.min() >= 0 and X.indices.max() < X.shape[1])
