"""Check that the indices of CSR matrices are in range and unique in their rows.

No operation needs the indices of a row to be in order, only each to occur once. A quick check is
enough for rows in order; others are checked with a mark for each feature.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.rows.files import release_pages
from saddlesvm.rows.layouts import U
from saddlesvm.runtime.compiled import kernel
from saddlesvm.runtime.small import Most, beside


def is_small(indices: np.ndarray) -> bool:
    """Return True if NumPy needs no longer for so many indices."""
    return indices.size <= Most.indices


def few_in_order(indices: np.ndarray, indptr: np.ndarray, n_features: int) -> bool:
    """Return what :func:`all_in_order` does, in NumPy."""
    if indptr[0] != 0 or indptr[-1] > indices.size or (indptr[1:] < indptr[:-1]).any():
        return False
    # An index that does not exceed the one before must begin a row.
    named = indices[: indptr[-1]]
    if not named.size:
        return True
    if named.min() < 0 or named.max() >= n_features:
        return False
    falls = np.flatnonzero(named[1:] <= named[:-1]) + 1
    return bool(np.isin(falls, indptr).all())


def first_repeat_of_few(indices: np.ndarray, indptr: np.ndarray, seen: np.ndarray) -> int:
    """Return what :func:`first_repeat` does, in NumPy."""
    if indptr[0] != 0 or indptr[-1] > indices.size:
        return -2
    falling = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falling.size:
        return -2 - int(falling[0])
    named = indices[: indptr[-1]]
    row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    outside = np.flatnonzero((named < 0) | (named >= seen.size))
    if outside.size:
        return -2 - int(row[outside[0]])
    # Positions in the flattened dense matrix: equal ones are neighbours once they are sorted.
    position = np.sort(row * np.int64(seen.size) + named)
    twice = np.flatnonzero(position[1:] == position[:-1])
    return int(position[twice[0]] // seen.size) if twice.size else -1


@beside(few_in_order, is_small)
@kernel
def all_in_order(indices: np.ndarray, indptr: np.ndarray, n_features: int) -> bool:
    """Return True if row pointers ascend, and indices are in range and ascend in their rows."""
    if indptr[0] != 0 or indptr[indptr.size - 1] > indices.size:
        return False
    for i in range(indptr.size - 1):
        if indptr[i + 1] < indptr[i]:
            return False
    # Faults are counted, not searched for, so that several indices are compared at a time.
    bad = 0
    for i in range(indptr.size - 1):
        start = U(indptr[i])
        stop = U(indptr[i + 1])
        if start == stop:
            continue
        bad += (indices[start] < 0) + (indices[stop - U(1)] >= n_features)
        for p in range(start, stop - U(1)):
            bad += indices[p + U(1)] <= indices[p]
        if bad:
            return False
    return True


@beside(first_repeat_of_few, is_small)
@kernel
def first_repeat(indices: np.ndarray, indptr: np.ndarray, seen: np.ndarray) -> int:
    """Return the first row of a CSR matrix that names a column twice; -1 if none does.

    -2 - i stands for an index out of range in row i. `seen` has a place for each column, all -1.
    """
    if indptr[0] != 0 or indptr[indptr.size - 1] > indices.size:
        return -2
    for i in range(indptr.size - 1):
        if indptr[i + 1] < indptr[i]:
            return -2 - i
    answer = -1
    for i in range(indptr.size - 1):
        for p in range(U(indptr[i]), U(indptr[i + 1])):
            j = indices[p]
            if j < 0 or j >= seen.size:
                return -2 - i
            if answer < 0 and seen[j] == i:
                answer = i
            seen[j] = i
    return answer


def first_fault(X: Any) -> int:
    """Return the :func:`first_repeat` of a CSR matrix."""
    # NumPy sorts the indices, and needs no mark for each column.
    if X.indices.size < X.shape[1]:
        return first_repeat_of_few(X.indices, X.indptr, np.broadcast_to(-1, X.shape[1]))
    return int(first_repeat(X.indices, X.indptr, np.full(X.shape[1], -1, dtype=X.indptr.dtype)))


def canonical(X: Any) -> Any:
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
    fault = first_fault(X)
    if fault == -1:
        return X
    if fault <= -2:
        raise ValueError(
            f"the sparse matrix is malformed in row {-2 - fault}: column indices must be from 0 to "
            f"{X.shape[1] - 1}, and row pointers ascending"
        )
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
    trimmed = copy.copy(X)
    trimmed.data = X.data[:end]
    trimmed.indices = X.indices[:end]
    return trimmed


def in_range(X: Any) -> bool:
    """Return True if the parts of a CSR matrix fit together, and all its columns exist."""
    if X.data.size != X.indices.size or X.indptr.size != X.shape[0] + 1:
        return False
    if X.indptr[0] != 0 or X.indptr[-1] > X.indices.size or (X.indptr[1:] < X.indptr[:-1]).any():
        return False
    return not X.indices.size or bool(X.indices.min() >= 0 and X.indices.max() < X.shape[1])
