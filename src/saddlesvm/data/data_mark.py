"""A mark of the rows and labels of a fit: their number, and a fingerprint of some of them.

A model keeps the mark, so that what is computed from data later can say whether they are those of
the fit. Values count as float32, and dense and sparse rows alike, so that a file and the arrays
that were read from it have one mark.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np
from scipy import sparse

FORM = re.compile(r"[0-9]{1,18}-[0-9a-f]{8}")  # of a mark
SAMPLED = 32  # rows that are read for the fingerprint, at even distances


def mark_data(X: Any, y: Any = None) -> str:
    """Return the mark of rows, and of their labels if there are any.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k), optional
    """
    n = X.shape[0]
    chosen = np.arange(n) if n <= SAMPLED else np.arange(SAMPLED) * (n - 1) // (SAMPLED - 1)
    found = zlib.crc32(_bytes_of_rows(X, chosen), X.shape[1])
    if y is not None:
        found = zlib.crc32(_bytes_of_labels(y, chosen), found)
    return f"{n}-{found:08x}"


def is_mark(given: Any) -> bool:
    """Return True for a text that has the form of a mark."""
    return isinstance(given, str) and FORM.fullmatch(given) is not None


def describe_difference(mark: str, X: Any, y: Any = None) -> str:
    """Say how data differ from those that a mark was made of; empty if nothing is found."""
    own = mark_data(X, y)
    if own == mark:
        return ""
    rows, others = int(mark.split("-")[0]), X.shape[0]
    if rows != others:
        return f"not the rows of the fit: the model was fitted to {rows:,} rows, and these are {others:,}"
    return f"not the rows of the fit: rows, their order or their labels differ ({rows:,} rows in both)"


def _bytes_of_rows(X: Any, chosen: np.ndarray) -> bytes:
    """The places and values of what is not zero in some rows."""
    some = X[chosen]
    # Values beyond single precision become infinite: they mark the rows all the same.
    with np.errstate(over="ignore"):
        if not sparse.issparse(some):
            values = np.asarray(some).astype(np.float32)
            places = np.flatnonzero(values)
            return places.tobytes() + values.ravel()[places].tobytes()
        some = sparse.csr_array(some).astype(np.float32)
    some.sum_duplicates()
    some.eliminate_zeros()
    lengths = np.diff(some.indptr)
    places = np.repeat(np.arange(chosen.size, dtype=np.int64), lengths) * X.shape[1]
    return (places + some.indices).tobytes() + some.data.tobytes()


def _bytes_of_labels(y: Any, chosen: np.ndarray) -> bytes:
    """Labels of some rows: numbers as float32, whatever their type, and others as text."""
    if sparse.issparse(y):
        return _bytes_of_rows(sparse.csr_array(y), chosen)
    some = np.asarray(y)[chosen]
    if some.dtype.kind in "biuf":
        return some.astype(np.float32).tobytes()
    return "\n".join(map(str, some.ravel().tolist())).encode()
