"""Rows that are there several times with different labels."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.rows.small_types import widened


def same_rows(X: Any) -> np.ndarray:
    """A number for each row of a dense or CSR matrix, shape (n,); rows with the same values share it."""
    if sparse.issparse(X):
        kept = X.copy()
        kept.eliminate_zeros()
        ends, indices, data = kept.indptr, kept.indices, kept.data
        keys: dict[bytes, int] = {}
        return np.array(
            [keys.setdefault(indices[a:b].tobytes() + data[a:b].tobytes(), len(keys)) for a, b in pairwise(ends)],
            dtype=np.int64,
        )
    plain = np.ascontiguousarray(widened(X, np.float64) + 0.0)  # no row differs by the sign of a zero
    rows = plain.view(np.dtype((np.void, plain.shape[1] * plain.itemsize)))[:, 0]
    return np.asarray(np.unique(rows, return_inverse=True)[1]).ravel()


def contradictions(X: Any, labels: np.ndarray) -> list[np.ndarray]:
    """The numbers of rows with the same values whose labels are not all the same, a group each, largest first."""
    keys = same_rows(X)
    order = np.argsort(keys, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    found = [one for one in groups if one.size > 1 and (labels[one] != labels[one[0]]).any()]
    return sorted(found, key=lambda one: (-one.size, int(one[0])))
