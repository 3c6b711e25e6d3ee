"""Bring rows that will be read soon into the processor's caches.

How far ahead depends on the layout of the rows. The operations take the rows of
:mod:`saddlesvm.rows.layouts`, and pick their bodies by type. They change no values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.rows.matrix import body_for
from saddlesvm.runtime.compiled import inlined, instruction, operation

if TYPE_CHECKING:
    from numba.core import types

    from saddlesvm.rows.matrix import CSR, Dense, Rows

U = np.uint64
# Rows ahead whose addresses, dual variables, labels and norms are fetched; guessed.
HEADER_AHEAD = 12
SPARSE_AHEAD = 6  # sparse rows ahead whose values are fetched into the second cache; guessed

# Bytes: dense rows are fetched so far ahead, at least LEAST_AHEAD and at most MOST_AHEAD rows.
# Of a row the first ITSELF bytes are fetched; the processor itself fetches the rest, and if rows
# are read in order, also longer rows, and the second half of others. Measured on Intel's Xeon.
AHEAD_BYTES = 6144
LEAST_AHEAD = 2
MOST_AHEAD = 8
ITSELF = 2048
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


def _pick_prefetch_row(
    X: types.Type, order: types.Type, p: types.Type, end: types.Type
) -> Callable[..., None]:
    def of_dense(X: Dense, order: np.ndarray, p: int, end: int) -> None:
        width = X.values.shape[1]
        size = X.values.itemsize
        ahead = min(max(AHEAD_BYTES // max(width * size, 1), LEAST_AHEAD), MOST_AHEAD)
        if p + ahead < end:
            start = U(order[p + ahead]) * U(width)
            prefetch_range(X.values, start, start + U(min(width, ITSELF // size)))

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

    return body_for(X, of_dense, of_csr)


@operation(_pick_prefetch_row)
def prefetch_row(X: Rows, order: np.ndarray, p: int, end: int) -> None:
    """Fetch the row that is some places after place `p` of `order`, which ends at `end`."""


def _pick_prefetch_member(X: types.Type, members: types.Type, k: types.Type) -> Callable[..., None]:
    def of_dense(X: Dense, members: np.ndarray, k: int) -> None:
        width = X.values.shape[1]
        size = max(width * X.values.itemsize, 1)
        ahead = min(2 * ITSELF // size, MOST_AHEAD)
        if size <= ITSELF and k + ahead < members.size:
            start = U(members[k + ahead]) * U(width)
            prefetch_range(X.values, start, start + U(width // 2))

    def of_csr(X: object, members: object, k: object) -> None:
        pass

    return body_for(X, of_dense, of_csr)


@operation(_pick_prefetch_member)
def prefetch_member(X: Rows, members: np.ndarray, k: int) -> None:
    """Fetch a dense row some places after the k-th member, if rows are read in order."""


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
    prefetch_row(X, order, p, end)
