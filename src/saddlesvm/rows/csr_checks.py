"""Whether the indices of CSR matrices are in range, in order and unique: a quick check, and checks that find the fault.

No operation asks for the indices of a row to be in order, only for each to occur once: the quick check is enough for
rows in order; the others are checked with a mark for each feature.
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
    """Whether NumPy goes through so many indices as fast."""
    return indices.size <= Most.indices


def few_in_order(indices: np.ndarray, indptr: np.ndarray, n_features: int) -> bool:
    """:func:`all_in_order` in NumPy."""
    if indptr[0] != 0 or indptr[-1] > indices.size or (indptr[1:] < indptr[:-1]).any():
        return False
    named = indices[: indptr[-1]]
    if not named.size:
        return True
    if named.min() < 0 or named.max() >= n_features:
        return False
    falls = np.flatnonzero(named[1:] <= named[:-1]) + 1
    return bool(np.isin(falls, indptr).all())


def first_repeat_of_few(indices: np.ndarray, indptr: np.ndarray, seen: np.ndarray) -> int:
    """:func:`first_repeat` in NumPy."""
    if indptr[0] != 0 or indptr[-1] > indices.size:
        return -2
    if (back := np.flatnonzero(indptr[1:] < indptr[:-1])).size:
        return -2 - int(back[0])
    named = indices[: indptr[-1]]
    row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    if (out := np.flatnonzero((named < 0) | (named >= seen.size))).size:
        return -2 - int(row[out[0]])
    place = np.sort(row * np.int64(seen.size) + named)
    twice = np.flatnonzero(place[1:] == place[:-1])
    return int(place[twice[0]] // seen.size) if twice.size else -1


@beside(few_in_order, is_small)
@kernel
def all_in_order(indices: np.ndarray, indptr: np.ndarray, n_features: int) -> bool:
    """Whether all indices are in range and ascend strictly within their rows, and the row pointers ascend: quickly."""
    if indptr[0] != 0 or indptr[indptr.size - 1] > indices.size:
        return False
    for i in range(indptr.size - 1):
        if indptr[i + 1] < indptr[i]:
            return False
    bad = 0
    for i in range(indptr.size - 1):
        start, stop = U(indptr[i]), U(indptr[i + 1])
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
    """The first row of a CSR matrix that names a column twice, in any order; -1 if none does.

    Out of range counts as -2 - i, so that the two can be distinguished. `seen` has a place for each column, all -1.
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
    """:func:`first_repeat` of a CSR matrix."""
    if X.indices.size < X.shape[1]:  # NumPy sorts the indices, and needs no mark for each column
        return first_repeat_of_few(X.indices, X.indptr, np.broadcast_to(-1, X.shape[1]))
    return int(first_repeat(X.indices, X.indptr, np.full(X.shape[1], -1, dtype=X.indptr.dtype)))


def canonical(X: Any) -> Any:
    """A CSR matrix whose indices are in range and unique in their row: X itself, or a copy with duplicates summed.

    In which order they come in a row does not matter.

    Raises
    ------
    ValueError
        An index is out of range, or the row pointers are not ascending.
    """
    if X.data.size != X.indices.size or X.indptr.size != X.shape[0] + 1:
        raise ValueError("the sparse matrix is malformed: data, indices and indptr have lengths that do not fit")
    fine = all_in_order(X.indices, X.indptr, X.shape[1])
    release_pages(X)
    if fine:
        return X
    bad = first_fault(X)
    if bad == -1:
        return X
    if bad <= -2:
        raise ValueError(
            f"the sparse matrix is malformed in row {-2 - bad}: column indices must be from 0 to {X.shape[1] - 1}, "
            "and row pointers ascending"
        )
    repaired = X.copy()
    repaired.has_canonical_format = False
    repaired.sum_duplicates()
    return repaired


def without_spare_end(X: Any) -> Any:
    """X itself, or a CSR matrix over the same values without those behind the last row.

    scipy lets the arrays be longer than ``indptr[-1]``, and some of its sums count what is there.
    """
    if not sparse.issparse(X) or X.format != "csr" or X.data.size != X.indices.size:
        return X
    end = int(X.indptr[-1])
    if not 0 <= end < X.data.size:
        return X
    trimmed = copy.copy(X)
    trimmed.data, trimmed.indices = X.data[:end], X.indices[:end]
    return trimmed


def in_range(X: Any) -> bool:
    """Whether a CSR matrix names none but its own columns, and its parts fit together."""
    fine = X.data.size == X.indices.size and X.indptr.size == X.shape[0] + 1 and X.indptr[0] == 0
    if not fine or X.indptr[-1] > X.indices.size or (X.indptr[1:] < X.indptr[:-1]).any():
        return False
    return not X.indices.size or bool(X.indices.min() >= 0 and X.indices.max() < X.shape[1])
