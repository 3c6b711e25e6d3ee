"""Rows of a design matrix, dense or CSR, float32 or float64, in memory or mapped from a file.

A kernel calls ``dot(X, i, w)``, ``axpy(X, i, c, w)``, ``squared_norm(X, i)`` and ``look_ahead(...)`` and never knows
which layout or precision it works on: the bodies below are chosen by type. Prefetching and unrolling live here only.

An intercept that is a feature of constant value `bias` is appended virtually: ``w`` has one place more than X has
columns, and row i reads ``(x_i, bias)``. With ``bias = 0`` that place stays untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_name
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.numpy_support import as_dtype
from scipy import sparse

from saddlesvm.runtime.compiled import inlined, kernel, operation, python_class

AT_ONCE = 2**13  # rows of which those with a coefficient are listed at once
U = np.uint64
HEADER_AHEAD = 12  # rows whose places in memory (and dual variable, label, norm) are fetched
SPARSE_AHEAD = 6  # sparse rows whose values are fetched, into the second cache
FIRST_CACHE, SECOND_CACHE = 3, 2  # of the processor, as the instruction counts them
# Dense rows are fetched as it suits the kind of processor (by whose name Numba keeps its kernels apart).
WHOLE_ROWS = get_host_cpu_name().startswith("znver")
# AMD's, as measured on Zen 5: whole, so many bytes ahead, but one row at least and so many at most. In their order, the
# processor fetches shorter rows by itself.
WHOLE_BYTES, WHOLE_MOST, WHOLE_LEAST = 6144, 16, 256
# The two ends of a row so many bytes ahead, and four rows at least: its pages are looked up by the time it is fetched.
ENDS_BYTES, ENDS_LEAST = 32768, 4
# Others, as measured on Intel's Xeon: the first half, so many bytes at most, and the processor notices the rest; long
# rows two ahead, others six; short ones whole, into the second cache. In their order, rows of these sizes only.
HALF_MOST, LONG, LONG_AHEAD, ROW_AHEAD, SHORT = 2048, 2048, 2, 6, 512
STREAM_LEAST, STREAM_MOST, STREAM_BYTES, STREAM_ROWS = 128, 2048, 4000, 8
LINE = 64  # bytes in a cache line
DENSE_SPEED, SPARSE_TIME = 3e10, 1e-9  # bytes a second, seconds a value


class Dense(NamedTuple):
    """Rows of a C-contiguous array of shape (n, d), with a virtual constant feature `bias`."""

    values: np.ndarray
    bias: float


class CSR(NamedTuple):
    """Rows of a compressed sparse row matrix with sorted, unique indices, and a virtual constant feature `bias`."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    bias: float
    n_features: int


Rows = Dense | CSR


def _read_only(array: np.ndarray) -> np.ndarray:
    """A base-class view that cannot be written: one compiled kernel then serves memory and mapped files alike."""
    view = np.asarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


def as_rows(X: Any, bias: float = 0.0) -> Rows:
    """View a C-contiguous array or a CSR matrix as rows, without a copy.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
    bias : float, default=0.0
        Value of the virtual constant feature; 0 for none.
    """
    if sparse.issparse(X):
        return CSR(_read_only(X.data), _read_only(X.indices), _read_only(X.indptr), float(bias), int(X.shape[1]))
    return Dense(_read_only(X), float(bias))


def n_rows(X: Rows) -> int:
    """Number of rows."""
    return X.values.shape[0] if isinstance(X, Dense) else X.indptr.size - 1


def n_features(X: Rows) -> int:
    """Number of columns, the virtual one not counted."""
    return X.values.shape[1] if isinstance(X, Dense) else X.n_features


def n_values(X: Rows) -> int:
    """Number of stored values."""
    return X.values.size if isinstance(X, Dense) else int(X.indptr[-1])


def reading_time(X: Rows, values: float) -> float:
    """Seconds of a pass in their order over rows with so many stored values, at least, roughly."""
    return values * (X.values.itemsize / DENSE_SPEED if isinstance(X, Dense) else SPARSE_TIME)


def dtype_of(X: Rows) -> np.dtype:
    """Precision of the stored values."""
    return X.values.dtype if isinstance(X, Dense) else X.data.dtype


def _zero_of(w: Any) -> Any:
    """The zero of the precision that `w` is summed in."""
    return as_dtype(w.dtype).type(0)


def _prefetch_into(cache: int) -> Any:
    """The instruction that asks the processor for a cache line; it never faults."""

    @intrinsic  # type: ignore[untyped-decorator,unused-ignore]
    def prefetch_line(typingctx: Any, array: types.Array, offset: types.Integer) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            byte = ir.IntType(8).as_pointer()
            start = builder.bitcast(view.data, byte)
            place = builder.gep(start, [arguments[1]])
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
            name = "llvm.prefetch.p0i8" if getattr(byte, "is_opaque", False) is False else "llvm.prefetch.p0"
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, [place, i32(0), i32(cache), i32(1)])
            return context.get_dummy_value()

        return types.void(array, types.uint64), generate

    return prefetch_line


# Bring the cache line that lies so many bytes behind the start of an array near, or into the second cache.
prefetch_line: Callable[..., None] = _prefetch_into(FIRST_CACHE)
prefetch_line_far: Callable[..., None] = _prefetch_into(SECOND_CACHE)


@inlined
def prefetch_item(array: np.ndarray, i: int) -> None:
    """Bring the cache line of ``array[i]`` near."""
    prefetch_line(array, U(i) * U(array.itemsize))


def _range_by(line: Callable[..., None]) -> Callable[..., None]:
    """The loop over the cache lines of ``array[start:stop]``, each fetched by `line`."""

    @inlined
    def prefetch_range(array: np.ndarray, start: Any, stop: Any) -> None:
        byte, end = U(start) * U(array.itemsize), U(stop) * U(array.itemsize)
        while byte < end:
            line(array, byte)
            byte += U(LINE)

    return prefetch_range


prefetch_range = _range_by(prefetch_line)
prefetch_range_far = _range_by(prefetch_line_far)


def _pick_dot(X: types.Type, i: types.Type, w: types.Type) -> Callable[..., Any]:
    zero = _zero_of(w)

    def of_dense(X: Any, i: Any, w: Any) -> Any:
        row = X.values[U(i)]
        total = zero
        for j in range(row.size):
            total += row[j] * w[j]
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

    return of_dense if python_class(X) is Dense else of_csr


@operation(_pick_dot)
def dot(X: Rows, i: int, w: np.ndarray) -> float:
    """``x_i . w``, summed in the precision of `w`; the virtual feature is included."""
    row = as_dense_row(X, i)
    return float(row @ w)


def _pick_axpy(X: types.Type, i: types.Type, c: types.Type, w: Any) -> Callable[..., Any]:
    cast = as_dtype(w.dtype).type

    def of_dense(X: Any, i: Any, c: Any, w: Any) -> Any:
        row = X.values[U(i)]
        factor = cast(c)
        for j in range(row.size):
            w[j] += factor * row[j]
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

    return of_dense if python_class(X) is Dense else of_csr


@operation(_pick_axpy)
def axpy(X: Rows, i: int, c: float, w: np.ndarray) -> None:
    """``w += c x_i``, in the precision of `w`; the virtual feature is included."""
    w += c * as_dense_row(X, i)


def _pick_squared_norm(X: types.Type, i: types.Type) -> Callable[..., Any]:
    def of_dense(X: Any, i: Any) -> Any:
        row = X.values[U(i)]
        total = X.bias * X.bias
        for j in range(row.size):
            total += np.float64(row[j]) * np.float64(row[j])
        return total

    def of_csr(X: Any, i: Any) -> Any:
        total = X.bias * X.bias
        p, stop = U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)])
        while p < stop:
            total += np.float64(X.data[p]) * np.float64(X.data[p])
            p += U(1)
        return total

    return of_dense if python_class(X) is Dense else of_csr


@operation(_pick_squared_norm)
def squared_norm(X: Rows, i: int) -> float:
    """``||x_i||^2`` in float64; the virtual feature is included."""
    row = as_dense_row(X, i)
    return float(row @ row)


def _pick_row_ahead(X: types.Type, order: types.Type, p: types.Type, end: types.Type) -> Callable[..., Any]:
    def of_dense(X: Any, order: Any, p: Any, end: Any) -> Any:
        width = X.values.shape[1]
        size = max(width * X.values.itemsize, 1)
        ahead = max(ENDS_BYTES // size, ENDS_LEAST)
        if p + ahead < end:
            start = U(order[p + ahead]) * U(size)
            prefetch_line_far(X.values, start)
            prefetch_line_far(X.values, start + U(size - 1))
        ahead = min(max(WHOLE_BYTES // size, 1), WHOLE_MOST)
        if p + ahead < end:
            start = U(order[p + ahead]) * U(width)
            prefetch_range(X.values, start, start + U(width))

    def half_of_dense(X: Any, order: Any, p: Any, end: Any) -> Any:
        width, size = X.values.shape[1], X.values.itemsize
        ahead = LONG_AHEAD if width * size >= LONG else ROW_AHEAD
        if p + ahead < end:
            start = U(order[p + ahead]) * U(width)
            if width * size >= SHORT:
                prefetch_range(X.values, start, start + U(min(width // 2, HALF_MOST // size)))
            else:
                prefetch_range_far(X.values, start, start + U(width))

    def of_csr(X: Any, order: Any, p: Any, end: Any) -> Any:
        if p + HEADER_AHEAD < end:
            prefetch_item(X.indptr, order[p + HEADER_AHEAD])
        if p + SPARSE_AHEAD < end:
            i = U(order[p + SPARSE_AHEAD])
            start, stop = X.indptr[i], X.indptr[i + U(1)]
            prefetch_range_far(X.data, start, stop)
            prefetch_range_far(X.indices, start, stop)

    return of_csr if python_class(X) is CSR else of_dense if WHOLE_ROWS else half_of_dense


@operation(_pick_row_ahead)
def row_ahead(X: Rows, order: np.ndarray, p: int, end: int) -> None:
    """Fetch the row that is soon to come after place `p` of `order` (which ends at `end`); changes nothing."""


def _pick_next_ahead(X: types.Type, members: types.Type, k: types.Type) -> Callable[..., Any]:
    def of_dense(X: Any, members: Any, k: Any) -> Any:
        if X.values.shape[1] * X.values.itemsize >= WHOLE_LEAST:
            row_ahead(X, members, k, members.size)

    def half_of_dense(X: Any, members: Any, k: Any) -> Any:
        width, size = X.values.shape[1], X.values.itemsize
        if STREAM_LEAST <= width * size <= STREAM_MOST:
            ahead = min(STREAM_BYTES // (width * size), STREAM_ROWS)
            if k + ahead < members.size:
                start = U(members[k + ahead]) * U(width)
                prefetch_range(X.values, start, start + U(width // 2))

    def of_csr(X: Any, members: Any, k: Any) -> Any:
        pass

    return of_csr if python_class(X) is CSR else of_dense if WHOLE_ROWS else half_of_dense


@operation(_pick_next_ahead)
def next_ahead(X: Rows, members: np.ndarray, k: int) -> None:
    """Fetch the row that is soon to come after the k-th member, where they are all rows, or nearly, in their order."""


@inlined
def look_ahead(
    X: Rows, order: np.ndarray, p: int, end: int, alpha: np.ndarray, y: np.ndarray, norms: np.ndarray
) -> None:
    """Fetch what the visits after place `p` of `order` (which ends at `end`) will need; changes nothing."""
    if p + HEADER_AHEAD < end:
        i = order[p + HEADER_AHEAD]
        prefetch_item(alpha, i)
        prefetch_item(y, i)
        prefetch_item(norms, i)
    row_ahead(X, order, p, end)


def as_dense_row(X: Rows, i: int) -> np.ndarray:
    """Row i in float64 with the virtual feature as its last entry, shape (d + 1,): the plain reference."""
    row = np.zeros(n_features(X) + 1)
    if isinstance(X, Dense):
        row[:-1] = X.values[i]
    else:
        part = slice(X.indptr[i], X.indptr[i + 1])
        np.add.at(row, X.indices[part], X.data[part])
    row[-1] = X.bias
    return row


@kernel
def norms_of(X: Rows, members: np.ndarray, norms: np.ndarray) -> None:
    """``norms[k] = ||x_i||^2`` for the k-th member i."""
    for k in range(members.size):
        next_ahead(X, members, k)
        norms[k] = squared_norm(X, members[k])


@kernel
def add_in_lists(X: Rows, members: np.ndarray, coefficients: np.ndarray, w: np.ndarray, chosen: np.ndarray) -> None:
    """:func:`add_rows`, those with a coefficient listed in `chosen` first, as many at once as it has places for."""
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
    add_in_lists(X, members, coefficients, w, np.empty_like(members, shape=AT_ONCE))


@kernel
def dot_rows(X: Rows, members: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """``out[k] = x_i . w`` for the k-th member i, summed in the precision of `w`."""
    for k in range(members.size):
        next_ahead(X, members, k)
        out[k] = dot(X, members[k], w)
