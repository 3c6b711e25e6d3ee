"""A mark of the rows and labels of a fit: their number, and a fingerprint of some of them.

A model keeps the mark, so that later computations can say whether their data are the data of the
fit. Values count as float32, and dense and sparse rows alike, so that a file and the arrays that
were read from it have one mark.

It reads a few rows only, so that every fit can afford it. `problem.fingerprint` reads all rows: a
checkpoint must not be continued by another fit.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saddlesvm.runtime.data_types import LabelsLike, Matrix

MARK = re.compile(r"[0-9]{1,18}-[0-9a-f]{8}")  # number of rows, and fingerprint
SAMPLED = 32  # rows that are read for the fingerprint; enough to notice another file or order


def mark_data(X: Matrix, y: Any = None) -> str:
    """Return the mark of rows, and of their labels if there are any.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : array-like of shape (n,) or (n, k), optional
    """
    n = X.shape[0]
    sample = sampled_rows(n)
    checksum = zlib.crc32(_row_bytes(X, sample), X.shape[1])
    if y is not None:
        checksum = zlib.crc32(_label_bytes(y, sample), checksum)
    return f"{n}-{checksum:08x}"


@lru_cache(maxsize=64)
def sampled_rows(n: int) -> np.ndarray:
    """Return all of n rows if they are few, else some at even distances, with both ends."""
    if n <= SAMPLED:
        return np.arange(n)
    return np.arange(SAMPLED) * (n - 1) // (SAMPLED - 1)


def is_mark(given: object) -> bool:
    """Return True for a text that has the form of a mark."""
    return isinstance(given, str) and MARK.fullmatch(given) is not None


def describe_difference(mark: str, X: Matrix, y: LabelsLike | None = None) -> str:
    """Say how data differ from the data of a mark; return an empty text if they do not."""
    if mark_data(X, y) == mark:
        return ""
    n_fitted = int(mark.split("-")[0])
    n = X.shape[0]
    if n_fitted != n:
        difference = f"the model was fitted to {n_fitted:,} rows, and these are {n:,}"
    else:
        difference = f"rows, their order or their labels differ ({n:,} rows in both)"
    return f"not the rows of the fit: {difference}"


def _row_bytes(X: Matrix, sample: np.ndarray) -> bytes:
    """Return positions and values of the nonzero entries of some rows, dense and sparse alike."""
    some = X[sample]
    # Values beyond single precision become infinite: they mark the rows all the same.
    with np.errstate(over="ignore"):
        if not sparse.issparse(some):
            values = np.asarray(some).astype(np.float32).ravel()
            places = values.nonzero()[0]
            return places.tobytes() + values[places].tobytes()
        some = sparse.csr_array(some).astype(np.float32)
    some.sum_duplicates()
    some.eliminate_zeros()
    # The position that each entry has in the flattened dense rows.
    lengths = np.diff(some.indptr)
    starts = np.repeat(np.arange(sample.size, dtype=np.int64), lengths) * X.shape[1]
    return (starts + some.indices).tobytes() + some.data.tobytes()


def _label_bytes(y: ArrayLike, sample: np.ndarray) -> bytes:
    """Return labels of some rows: numbers as float32, whatever their type, and others as text."""
    if sparse.issparse(y):
        return _row_bytes(sparse.csr_array(y), sample)
    some = np.asarray(y)[sample]
    if some.dtype.kind in "biuf":
        return some.astype(np.float32).tobytes()
    return "\n".join(map(str, some.ravel().tolist())).encode()
