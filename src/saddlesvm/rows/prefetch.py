"""Bring rows that will be read soon into the processor's caches.

How far ahead depends on the layout of the rows and on the processor. The operations take the rows
of :mod:`saddlesvm.rows.layouts`, and pick their bodies by type. They change no values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.rows.matrix import body_for
from saddlesvm.runtime.compiled import inlined, instruction, operation
from saddlesvm.runtime.lazy import LateFunction

if TYPE_CHECKING:
    from numba.core import types

    from saddlesvm.rows.matrix import CSR, Dense, Rows

U = np.uint64
processor = LateFunction("llvmlite.binding:get_host_cpu_name")
HEADER_AHEAD = 12  # rows ahead whose addresses (and dual variable, label, norm) are fetched
SPARSE_AHEAD = 6  # sparse rows ahead whose values are fetched into the second cache

# AMD, measured on Zen 5: fetch whole rows WHOLE_BYTES bytes ahead, at least 1 and at most
# WHOLE_MOST rows ahead. If rows are read in order, the processor itself fetches rows shorter than
# WHOLE_LEAST bytes.
WHOLE_BYTES = 6144
WHOLE_MOST = 16
WHOLE_LEAST = 256
# Touch both ends of the row ENDS_BYTES bytes ahead, at least ENDS_LEAST rows: the processor then
# knows its pages by the time the row is fetched.
ENDS_BYTES = 32768
ENDS_LEAST = 4
# Other processors, measured on Intel's Xeon: fetch the first half of a row, at most HALF_MOST
# bytes; the processor itself then fetches the rest. Rows above LONG bytes are fetched LONG_AHEAD
# rows ahead, others ROW_AHEAD; rows below SHORT bytes whole, into the second cache.
HALF_MOST = 2048
LONG = 2048
LONG_AHEAD = 2
ROW_AHEAD = 6
SHORT = 512
# If rows are read in order, only rows of STREAM_LEAST to STREAM_MOST bytes are fetched,
# STREAM_BYTES bytes ahead, at most STREAM_ROWS rows.
STREAM_LEAST = 128
STREAM_MOST = 2048
STREAM_BYTES = 4000
STREAM_ROWS = 8
LINE = 64  # bytes in a cache line


# Bring the cache line at a byte offset from the start of an array into the first or second cache.
prefetch_line = instruction("prefetch_line", lambda array, offset: None)
prefetch_line_far = instruction("prefetch_line_far", lambda array, offset: None)


@inlined
def prefetch_item(array: np.ndarray, i: int) -> None:
    """Bring the cache line of ``array[i]`` into the first cache."""
    prefetch_line(array, U(i) * U(array.itemsize))


def _make_range_loop(line: Callable[..., None]) -> Callable[..., None]:
    """Return a loop over the cache lines of ``array[start:stop]`` that calls `line` for each."""

    @inlined
    def prefetch_range(array: np.ndarray, start: int | np.integer, stop: int | np.integer) -> None:
        # Whole lines from the first byte of the range to its last.
        byte = U(start) * U(array.itemsize)
        end = U(stop) * U(array.itemsize)
        while byte < end:
            line(array, byte)
            byte += U(LINE)

    return prefetch_range


prefetch_range = _make_range_loop(prefetch_line)
prefetch_range_far = _make_range_loop(prefetch_line_far)


@functools.cache
def fetches_whole_rows() -> bool:
    """Return True if dense rows are fetched whole on this processor."""
    # Numba keys its cache by the name of the processor, so that the answer may be compiled in.
    return processor().startswith("znver")


def _pick_row_ahead(
    X: types.Type, order: types.Type, p: types.Type, end: types.Type
) -> Callable[..., None]:
    def of_dense(X: Dense, order: np.ndarray, p: int, end: int) -> None:
        width = X.values.shape[1]
        size = max(width * X.values.itemsize, 1)
        # Touch both ends of a row far ahead.
        ahead = max(ENDS_BYTES // size, ENDS_LEAST)
        if p + ahead < end:
            start = U(order[p + ahead]) * U(size)
            prefetch_line_far(X.values, start)
            prefetch_line_far(X.values, start + U(size - 1))
        # Fetch a nearer row whole.
        ahead = min(max(WHOLE_BYTES // size, 1), WHOLE_MOST)
        if p + ahead < end:
            start = U(order[p + ahead]) * U(width)
            prefetch_range(X.values, start, start + U(width))

    def half_of_dense(X: Dense, order: np.ndarray, p: int, end: int) -> None:
        width = X.values.shape[1]
        size = X.values.itemsize
        # The first half of a row, of which the processor itself fetches the rest; short rows whole.
        ahead = LONG_AHEAD if width * size >= LONG else ROW_AHEAD
        if p + ahead < end:
            start = U(order[p + ahead]) * U(width)
            if width * size >= SHORT:
                prefetch_range(X.values, start, start + U(min(width // 2, HALF_MOST // size)))
            else:
                prefetch_range_far(X.values, start, start + U(width))

    def of_csr(X: CSR, order: np.ndarray, p: int, end: int) -> None:
        # The address of a row first, its values and indices later.
        if p + HEADER_AHEAD < end:
            prefetch_item(X.indptr, order[p + HEADER_AHEAD])
        if p + SPARSE_AHEAD < end:
            i = U(order[p + SPARSE_AHEAD])
            start = X.indptr[i]
            stop = X.indptr[i + U(1)]
            prefetch_range_far(X.data, start, stop)
            prefetch_range_far(X.indices, start, stop)

    def nothing_ahead(X: object, order: object, p: object, end: object) -> None:
        pass

    return body_for(
        "row_ahead", X, of_dense if fetches_whole_rows() else half_of_dense, of_csr, nothing_ahead
    )


@operation(_pick_row_ahead)
def row_ahead(X: Rows, order: np.ndarray, p: int, end: int) -> None:
    """Fetch the row that comes soon after place `p` of `order`, which ends at `end`."""


def _pick_next_ahead(X: types.Type, members: types.Type, k: types.Type) -> Callable[..., None]:
    def of_dense(X: Dense, members: np.ndarray, k: int) -> None:
        if X.values.shape[1] * X.values.itemsize >= WHOLE_LEAST:
            row_ahead(X, members, k, members.size)

    def half_of_dense(X: Dense, members: np.ndarray, k: int) -> None:
        width = X.values.shape[1]
        size = X.values.itemsize
        if STREAM_LEAST <= width * size <= STREAM_MOST:
            # A fixed distance in bytes, so that short and long rows are fetched in equal time.
            ahead = min(STREAM_BYTES // (width * size), STREAM_ROWS)
            if k + ahead < members.size:
                start = U(members[k + ahead]) * U(width)
                prefetch_range(X.values, start, start + U(width // 2))

    def of_others(X: object, members: object, k: object) -> None:
        pass

    return body_for(
        "next_ahead", X, of_dense if fetches_whole_rows() else half_of_dense, of_others, of_others
    )


@operation(_pick_next_ahead)
def next_ahead(X: Rows, members: np.ndarray, k: int) -> None:
    """Fetch a row that comes soon after the k-th member; members are nearly all rows, in order."""


@inlined
def prefetch_next(
    X: Rows,
    order: np.ndarray,
    p: int,
    end: int,
    alpha: np.ndarray,
    y: np.ndarray,
    norms: np.ndarray,
) -> None:
    """Fetch what the visits after place `p` of `order`, which ends at `end`, will need."""
    if p + HEADER_AHEAD < end:
        i = order[p + HEADER_AHEAD]
        prefetch_item(alpha, i)
        prefetch_item(y, i)
        prefetch_item(norms, i)
    row_ahead(X, order, p, end)
