"""Rows of a design matrix, dense or CSR, of every type of number that is kept, in memory or mapped from a file.

A kernel calls ``dot(X, i, w)``, ``axpy(X, i, c, w)`` and ``squared_norm(X, i)`` without regard to layout or precision:
types choose among the bodies below. Only this file unrolls loops; only :mod:`saddlesvm.rows.prefetch` prefetches.

An intercept that is a feature of constant value `bias` is appended virtually: ``w`` has one place more than X has
columns, and row i reads ``(x_i, bias)``. With ``bias = 0`` that place stays untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from saddlesvm.rows.matrix import CSR, Dense, Rows, body_for
from saddlesvm.rows.prefetch import next_ahead, row_ahead
from saddlesvm.rows.small_types import FLOATS, in_place, number, precision_of, widened
from saddlesvm.runtime.compiled import kernel, number_in, operation
from saddlesvm.runtime.small import beside, is_little

if TYPE_CHECKING:
    from numba.core import types

AT_ONCE = 2**13  # rows per list of those with a coefficient
U = np.uint64
DENSE_SPEED, SPARSE_TIME = 3e10, 1e-9  # bytes a second, seconds a value
silent = np.errstate(all="ignore")


def _read_only(array: np.ndarray) -> np.ndarray:
    """A base-class view that cannot be written: one compiled kernel then serves memory and mapped files alike."""
    view = np.asarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def as_rows(X: Any, bias: float = 0.0) -> Rows:
    """View a C-contiguous array or a CSR matrix as rows, without a copy.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Of float32 or float64; dense ones also of half precision, whole numbers and bool.
    bias : float, default=0.0
        Value of the virtual constant feature; 0 for none.

    Raises
    ------
    TypeError
        X is neither.
    """
    if not (isinstance(X, np.ndarray) or sparse.issparse(X)):
        raise TypeError(f"rows are a NumPy array or a CSR matrix; got {type(X).__name__}")
    if sparse.issparse(X):
        return CSR(_read_only(X.data), _read_only(X.indices), _read_only(X.indptr), float(bias), int(X.shape[1]))
    return Dense(_read_only(X if X.dtype in FLOATS else in_place(X)), float(bias))


def check_layout(X: Any) -> None:
    """Raise TypeError for rows of a type that is not known here: none is taken for CSR."""
    if not isinstance(X, (Dense, CSR)):
        raise TypeError(
            f"rows of type {type(X).__name__} are not known: give Dense or CSR rows, or a place (Passes) with "
            "parts of these types"
        )


def n_rows(X: Rows) -> int:
    """Number of rows."""
    return X.values.shape[0] if isinstance(X, Dense) else X.indptr.size - 1


def n_features(X: Rows) -> int:
    """Number of columns, the virtual one not counted."""
    return X.values.shape[1] if isinstance(X, Dense) else X.n_features


def n_values(X: Rows) -> int:
    """Number of stored values."""
    return X.values.size if isinstance(X, Dense) else int(X.indptr[-1])


def longest_row(X: Rows) -> int:
    """Stored values of the longest row; the number of columns where that is less, or X is dense."""
    if isinstance(X, Dense):
        return int(X.values.shape[1])
    if X.indptr.size < 2:
        return 0
    longest = max(int(np.diff(X.indptr[k : k + AT_ONCE + 1]).max()) for k in range(0, X.indptr.size - 1, AT_ONCE))
    return min(longest, int(X.n_features))


def reading_time(X: Rows, values: float) -> float:
    """A rough lower bound on the seconds of a pass, in order, over rows with `values` stored values."""
    return values * (X.values.itemsize / DENSE_SPEED if isinstance(X, Dense) else SPARSE_TIME)


def dtype_of(X: Rows) -> np.dtype:
    """Precision of weights that go with the stored values: float32 or float64."""
    return precision_of(X.values.dtype if isinstance(X, Dense) else X.data.dtype)


def is_small(X: Rows) -> bool:
    """Whether NumPy suffices for passes over these rows."""
    if isinstance(X, Dense):
        return is_little(X.values.size, *X.values.shape)
    return is_little(X.data.size, X.indptr.size - 1, X.n_features)


def matrix_of(X: Rows) -> Any:
    """The rows as a NumPy array or SciPy matrix, without the virtual feature, and without a copy."""
    if isinstance(X, Dense):
        return X.values
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.indptr.size - 1, X.n_features))


def float64_matrix(X: Rows) -> Any:
    """The rows in float64, without the virtual feature: an array, or a CSR array."""
    if isinstance(X, Dense):
        plain = X.values.dtype in FLOATS
        return X.values.astype(np.float64, copy=False) if plain else widened(X.values, np.float64)
    begin, end = X.indptr[0], X.indptr[-1]  # rows that are a piece of a file's begin within its arrays
    data, indptr = X.data[begin:end].astype(np.float64, copy=False), X.indptr - begin if begin else X.indptr
    return sparse.csr_array((data, X.indices[begin:end], indptr), shape=(X.indptr.size - 1, X.n_features))


def _zero_of(w: Any) -> Any:
    """The zero of the precision that `w` is summed in."""
    return number_in(w)(0)


def _pick_dot(X: types.Type, i: types.Type, w: types.Type) -> Callable[..., Any]:
    zero = _zero_of(w)

    def of_dense(X: Any, i: Any, w: Any) -> Any:
        row = X.values[U(i)]
        total = zero
        for j in range(row.size):
            total += number(row[j]) * w[j]
        return np.float64(total) + X.bias * np.float64(w[w.size - 1])

    def of_csr(X: Any, i: Any, w: Any) -> Any:
        p, stop = U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)])
        whole = p + ((stop - p) & ~U(3))
        a = b = c = d = zero
        while p < whole:
            a += X.data[p] * w[U(X.indices[p])]
            b += X.data[p + U(1)] * w[U(X.indices[p + U(1)])]
            c += X.data[p + U(2)] * w[U(X.indices[p + U(2)])]
            d += X.data[p + U(3)] * w[U(X.indices[p + U(3)])]
            p += U(4)
        while p < stop:
            a += X.data[p] * w[U(X.indices[p])]
            p += U(1)
        return np.float64((a + b) + (c + d)) + X.bias * np.float64(w[w.size - 1])

    return body_for(X, of_dense, of_csr)


@operation(_pick_dot)
def dot(X: Rows, i: int, w: np.ndarray) -> float:
    """``x_i . w``, summed in the precision of `w`; the virtual feature is included."""
    row = as_dense_row(X, i)
    return float(row @ w)


def _pick_axpy(X: types.Type, i: types.Type, c: types.Type, w: Any) -> Callable[..., Any]:
    cast = number_in(w)

    def of_dense(X: Any, i: Any, c: Any, w: Any) -> Any:
        row = X.values[U(i)]
        factor = cast(c)
        for j in range(row.size):
            w[j] += factor * number(row[j])
        if X.bias != 0.0:
            w[w.size - 1] += cast(c * X.bias)

    def of_csr(X: Any, i: Any, c: Any, w: Any) -> Any:
        p, stop = U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)])
        factor = cast(c)
        while p < stop:
            w[U(X.indices[p])] += factor * X.data[p]
            p += U(1)
        if X.bias != 0.0:
            w[w.size - 1] += cast(c * X.bias)

    return body_for(X, of_dense, of_csr)


@operation(_pick_axpy)
def axpy(X: Rows, i: int, c: float, w: np.ndarray) -> None:
    """``w += c x_i``, in the precision of `w`; the virtual feature is included, if it is not zero."""
    w += c * as_dense_row(X, i)[: w.size]  # without the feature, w need not have a place for it


def _pick_squared_norm(X: types.Type, i: types.Type) -> Callable[..., Any]:
    def of_dense(X: Any, i: Any) -> Any:
        row = X.values[U(i)]
        total = X.bias * X.bias
        for j in range(row.size):
            x = np.float64(number(row[j]))
            total += x * x
        return total

    def of_csr(X: Any, i: Any) -> Any:
        total = X.bias * X.bias
        p, stop = U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)])
        while p < stop:
            total += np.float64(X.data[p]) * np.float64(X.data[p])
            p += U(1)
        return total

    return body_for(X, of_dense, of_csr)


@operation(_pick_squared_norm)
def squared_norm(X: Rows, i: int) -> float:
    """``||x_i||^2`` in float64; the virtual feature is included."""
    row = as_dense_row(X, i)
    return float(row @ row)


def as_dense_row(X: Rows, i: int) -> np.ndarray:
    """Row i in float64 with the virtual feature as its last entry, shape (d + 1,): the plain reference."""
    row = np.zeros(n_features(X) + 1)
    if isinstance(X, Dense):
        row[:-1] = widened(X.values[i])
    else:
        part = slice(X.indptr[i], X.indptr[i + 1])
        np.add.at(row, X.indices[part], X.data[part])
    row[-1] = X.bias
    return row


@silent
def norms_of_few(X: Rows, members: np.ndarray, norms: np.ndarray) -> None:
    """:func:`norms_of` in NumPy and SciPy, for few values."""
    values = float64_matrix(X)
    if isinstance(X, Dense):
        squares = np.einsum("ij,ij->i", values, values)
    else:
        values.data = values.data * values.data
        squares = values @ np.ones(values.shape[1])
    norms[:] = squares[members] + X.bias * X.bias


@silent
def dot_few(X: Rows, members: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """:func:`dot_rows` in NumPy and SciPy, summed in float64 or better than in the precision of `w`."""
    z = float64_matrix(X) @ w[:-1].astype(np.float64, copy=False)
    z += X.bias * float(w[-1])
    out[:] = z[members]


@silent
def combine_few(X: Rows, chosen: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """``out += sum_k factors[k] x_chosen[k]`` in NumPy and SciPy, each row chosen once at most."""
    values = float64_matrix(X)
    spread = np.zeros(values.shape[0])
    spread[chosen] = factors
    out[:-1] += spread @ values
    out[-1] += X.bias * float(factors.sum())


@beside(norms_of_few, is_small)
@kernel
def norms_of(X: Rows, members: np.ndarray, norms: np.ndarray) -> None:
    """``norms[k] = ||x_i||^2`` for the k-th member i."""
    for k in range(members.size):
        next_ahead(X, members, k)
        norms[k] = squared_norm(X, members[k])


@kernel
def add_in_lists(X: Rows, members: np.ndarray, coefficients: np.ndarray, w: np.ndarray, chosen: np.ndarray) -> None:
    """:func:`add_rows` in portions: list the rows with a coefficient in `chosen`, up to its length, then add them."""
    for start in range(0, members.size, chosen.size):
        count = 0
        for k in range(start, min(start + chosen.size, members.size)):
            chosen[count] = members[k]
            count += coefficients[members[k]] != 0.0
        for k in range(count):
            row_ahead(X, chosen, k, count)
            axpy(X, chosen[k], coefficients[chosen[k]], w)


def add_rows(X: Rows, members: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
    """``w += sum over members i of coefficients[i] x_i``, in the precision of `w`; `coefficients` has length n."""
    if is_small(X):
        combine_few(X, members, coefficients[members], w)
    else:
        add_in_lists(X, members, coefficients, w, np.empty_like(members, shape=AT_ONCE))


@beside(dot_few, is_small)
@kernel
def dot_rows(X: Rows, members: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """``out[k] = x_i . w`` for the k-th member i, summed in the precision of `w`."""
    for k in range(members.size):
        next_ahead(X, members, k)
        out[k] = dot(X, members[k], w)
