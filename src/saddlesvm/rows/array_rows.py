"""The kernels over rows in NumPy and SciPy, for few values."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.rows.matrix import Dense, Rows
from saddlesvm.rows.small_types import FLOATS, widened
from saddlesvm.runtime.small import is_little

silent = np.errstate(all="ignore")


def is_small(X: Rows) -> bool:
    """Whether NumPy suffices for passes over these rows."""
    if isinstance(X, Dense):
        return is_little(X.values.size, *X.values.shape)
    return is_little(X.data.size, X.indptr.size - 1, X.n_features)


def matrix(X: Rows) -> Any:
    """The rows in float64, without the virtual feature: an array, or a CSR array."""
    if isinstance(X, Dense):
        plain = X.values.dtype in FLOATS
        return X.values.astype(np.float64, copy=False) if plain else widened(X.values, np.float64)
    begin, end = X.indptr[0], X.indptr[-1]  # rows that are a piece of a file's begin within its arrays
    data, indptr = X.data[begin:end].astype(np.float64, copy=False), X.indptr - begin if begin else X.indptr
    return sparse.csr_array((data, X.indices[begin:end], indptr), shape=(X.indptr.size - 1, X.n_features))


@silent
def norms_of(X: Rows, members: np.ndarray, norms: np.ndarray) -> None:
    """:func:`saddlesvm.rows.layouts.norms_of`."""
    values = matrix(X)
    if isinstance(X, Dense):
        squares = np.einsum("ij,ij->i", values, values)
    else:
        values.data = values.data * values.data
        squares = values @ np.ones(values.shape[1])
    norms[:] = squares[members] + X.bias * X.bias


@silent
def dot_rows(X: Rows, members: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """:func:`saddlesvm.rows.layouts.dot_rows`, summed in float64 or better than in the precision of `w`."""
    z = matrix(X) @ w[:-1].astype(np.float64, copy=False)
    z += X.bias * float(w[-1])
    out[:] = z[members]


@silent
def combine(X: Rows, chosen: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """``out += sum_k factors[k] x_chosen[k]``, each row chosen once at most."""
    values = matrix(X)
    spread = np.zeros(values.shape[0])
    spread[chosen] = factors
    out[:-1] += spread @ values
    out[-1] += X.bias * float(factors.sum())
