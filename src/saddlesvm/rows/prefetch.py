"""Rows that will be read soon, brought into the processor's caches: how far ahead suits which layout and processor.

The operations take the rows of :mod:`saddlesvm.rows.layouts`, and pick their bodies by type. They change no values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_name
from numba.core import cgutils, types
from numba.extending import intrinsic

from saddlesvm.runtime.compiled import INTERPRETED, inlined, operation

U = np.uint64
HEADER_AHEAD = 12  # rows ahead whose addresses (and dual variable, label, norm) are fetched
SPARSE_AHEAD = 6  # sparse rows ahead whose values are fetched into the second cache
FIRST_CACHE, SECOND_CACHE = 3, 2  # caches of the processor, as the instruction numbers them
# How dense rows are fetched depends on the processor; Numba keys its cache by the processor's name too.
WHOLE_ROWS = get_host_cpu_name().startswith("znver")
# AMD, measured on Zen 5: fetch whole rows WHOLE_BYTES bytes ahead, at least 1 and at most WHOLE_MOST rows ahead. Where
# rows are read in order, the processor itself fetches those shorter than WHOLE_LEAST bytes.
WHOLE_BYTES, WHOLE_MOST, WHOLE_LEAST = 6144, 16, 256
# Touch both ends of the row ENDS_BYTES bytes ahead, at least ENDS_LEAST rows: the processor then has its pages looked
# up by the time the row is fetched.
ENDS_BYTES, ENDS_LEAST = 32768, 4
# Other processors, measured on Intel's Xeon: fetch the first half of a row, at most HALF_MOST bytes; the processor
# itself then fetches the rest. Rows above LONG bytes are fetched LONG_AHEAD rows ahead, others ROW_AHEAD; rows below
# SHORT bytes whole, into the second cache. Where rows are read in order, only those of STREAM_LEAST to STREAM_MOST
# bytes are fetched.
HALF_MOST, LONG, LONG_AHEAD, ROW_AHEAD, SHORT = 2048, 2048, 2, 6, 512
STREAM_LEAST, STREAM_MOST, STREAM_BYTES, STREAM_ROWS = 128, 2048, 4000, 8
LINE = 64  # bytes in a cache line


def _prefetch_into(cache: int) -> Any:
    """The instruction that asks the processor for a cache line; it never faults."""
    if INTERPRETED:
        return lambda array, offset: None

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


# Bring the cache line at a byte offset from the start of an array into the first cache, or into the second one.
prefetch_line: Callable[..., None] = _prefetch_into(FIRST_CACHE)
prefetch_line_far: Callable[..., None] = _prefetch_into(SECOND_CACHE)


@inlined
def prefetch_item(array: np.ndarray, i: int) -> None:
    """Bring the cache line of ``array[i]`` into the first cache."""
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


def _is_sparse(X: Any) -> bool:
    """Whether the Numba type is that of compressed rows."""
    return "indptr" in X.fields


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

    return of_csr if _is_sparse(X) else of_dense if WHOLE_ROWS else half_of_dense


@operation(_pick_row_ahead)
def row_ahead(X: Any, order: np.ndarray, p: int, end: int) -> None:
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

    return of_csr if _is_sparse(X) else of_dense if WHOLE_ROWS else half_of_dense


@operation(_pick_next_ahead)
def next_ahead(X: Any, members: np.ndarray, k: int) -> None:
    """Fetch a row that comes soon after the k-th member; for members that are (nearly) all rows, in order."""


@inlined
def look_ahead(
    X: Any, order: np.ndarray, p: int, end: int, alpha: np.ndarray, y: np.ndarray, norms: np.ndarray
) -> None:
    """Fetch what the visits after place `p` of `order` (which ends at `end`) will need; changes nothing."""
    if p + HEADER_AHEAD < end:
        i = order[p + HEADER_AHEAD]
        prefetch_item(alpha, i)
        prefetch_item(y, i)
        prefetch_item(norms, i)
    row_ahead(X, order, p, end)
