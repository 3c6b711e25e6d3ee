"""Blocks of rows, read from files; the next block is read while the present one is worked on.

The rows are cut into chunks of some megabytes of neighbours, and a block is any choice of chunks:
each sweep draws anew which chunks form a block. Chunks are copied from the file with plain reads
into one of two buffers that are reused: only these count as memory of the process. The system
caches pages of the files too, and drops them when something else needs the space.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.rows import layouts as rows
from saddlesvm.rows.matrix import CSR, Rows, check_norms, read_only
from saddlesvm.runtime.data_types import RowsLike

AHEAD = 8  # chunks that the system is asked to fetch while one is read and looked at

# All threads share one position in a file that is read without `preadv`.
ONE_POSITION = threading.Lock()


def read_at(file: int, buffer: memoryview, position: int) -> int:
    """Read bytes of a file from `position` into a buffer, with one call; return how many."""
    if hasattr(os, "preadv"):
        return os.preadv(file, [buffer], position)
    # Without preadv a file has one position, which threads take in turn.
    with ONE_POSITION:
        os.lseek(file, position, os.SEEK_SET)
        read = os.read(file, len(buffer))
    buffer[: len(read)] = read
    return len(read)


class FilePlace(NamedTuple):
    """The place of an array's bytes in a file."""

    path: str
    offset: int


def mapping_of(array: object) -> np.memmap | None:
    """Return the memory map that an array is, or is a view of."""
    while array is not None and not isinstance(getattr(array, "base", None), mmap.mmap):
        array = getattr(array, "base", None)
    return array if isinstance(array, np.memmap) else None


def place_of(array: np.ndarray) -> FilePlace | None:
    """Return the place of a memory-mapped array, or of a contiguous view of it, in its file.

    None for arrays that are in memory, and for private mappings (mode "c"), which may differ from
    their file.
    """
    owner = mapping_of(array)
    if owner is None or owner.filename is None or owner.mode == "c" or not array.flags.c_contiguous:
        return None
    offset = int(owner.offset) + array.ctypes.data - owner.ctypes.data
    return FilePlace(os.fspath(owner.filename), offset)


def is_mapped(X: RowsLike) -> bool:
    """Return True if the values of a matrix, dense or CSR, are mapped from a file."""
    return place_of(np.asarray(getattr(X, "data", X) if hasattr(X, "indptr") else X)) is not None


def release_pages(X: Any) -> None:
    """Release the pages that this process has read of a mapped matrix, if the system can do that.

    They stay in the system's cache, and count as memory of the process no longer.
    """
    for array in (X.data, X.indices) if hasattr(X, "indptr") else (X,):
        owner = mapping_of(array)
        if owner is not None and place_of(array) is not None and hasattr(mmap, "MADV_DONTNEED"):
            pages: Any = owner.base
            pages.madvise(mmap.MADV_DONTNEED)


class Column:
    """An array whose pieces along the first axis are read from its file, or copied from memory."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.place = place_of(array)
        self.item = array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
        self.file: int | None = None
        if self.place is not None:
            self.file = os.open(self.place.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))

    def read(self, start: int, stop: int, out: np.ndarray) -> None:
        """Fill the contiguous `out` with the items from `start` to `stop`.

        Raises
        ------
        OSError
            The file cannot be read, or ends too early.
        """
        if self.file is None or self.place is None:
            np.copyto(out, self.array[start:stop])
            return
        position = self.place.offset + start * self.item
        # The system may return fewer bytes than asked for: read on until all are there.
        left = memoryview(out.reshape(-1).view(np.uint8).data)
        while left:
            try:
                done = read_at(self.file, left, position)
            except OSError as error:
                raise OSError(error.errno, error.strerror, self.place.path) from None
            if not done:
                raise OSError(
                    f"{self.place.path}: ends before byte {position + len(left)}: it was cut off"
                )
            position = position + done
            left = left[done:]

    def expect(self, start: int, stop: int) -> None:
        """Ask the system to fetch the items from `start` to `stop` in the background."""
        if (
            self.file is not None
            and self.place is not None
            and hasattr(os, "posix_fadvise")
            and start < stop
        ):
            # The system reads on while this thread computes; without such a call nothing is lost.
            length = (stop - start) * self.item
            os.posix_fadvise(
                self.file, self.place.offset + start * self.item, length, os.POSIX_FADV_WILLNEED
            )

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            os.close(self.file)
        self.file = None


class RowBlock(NamedTuple):
    """Some chunks of rows in memory, in sequence.

    Attributes
    ----------
    X : Dense or CSR
        The values of all m rows, in a buffer that the block after the next reuses.
    numbers : ndarray of shape (m,)
        The rows' numbers in the whole matrix.
    """

    X: Rows
    numbers: np.ndarray


Buffer = list[np.ndarray]  # memory for a block of dense or CSR rows


class BlockReader:
    """Reads blocks of rows, the next block in the background.

    Parameters
    ----------
    X : Dense or CSR
        Rows over arrays that are mapped from files (or in memory), with the virtual feature.
    edges : ndarray of shape (n_chunks + 1,)
        The first row of each chunk, and the number of rows.
    per_block : int
        Chunks in a block, at most.
    norms : ndarray of shape (n,)
        Receives the squared norms of the rows when each chunk is read for the first time.
    """

    def __init__(self, X: Rows, edges: np.ndarray, per_block: int, norms: np.ndarray) -> None:
        self.X = X
        self.edges = edges
        self.per_block = per_block
        self.norms = norms
        self.columns = [Column(array) for array in X.arrays]
        self.starts = np.asarray(X.indptr[edges], dtype=np.int64) if X.sparse else edges
        self.normed = np.zeros(self.n_chunks, dtype=bool)
        self.buffers: list[Buffer] = []
        self.bytes_read = 0
        self.thread: ThreadPoolExecutor | None = None
        self.pending: tuple[tuple[int, ...], Future[RowBlock]] | None = None

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return self.edges.size - 1

    @property
    def n_blocks(self) -> int:
        """Number of blocks in a sweep."""
        return -(-self.n_chunks // self.per_block)

    def __enter__(self) -> BlockReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the read under way, then release buffers and files."""
        if self.thread is not None:
            # A read under way writes to a buffer that must not go before.
            self.thread.shutdown(wait=True, cancel_futures=True)
        self.thread = None
        self.pending = None
        self.buffers = []
        for column in self.columns:
            column.close()

    def fetch(self, chunks: Sequence[int], then: Sequence[int] = ()) -> RowBlock:
        """Return the block of some chunks; read the block of `then` ahead.

        Raises
        ------
        BadRowError
            A value is NaN or infinite; the message names row and column.
        OSError
            A file cannot be read.
        """
        wanted = tuple(chunks)
        reading = None
        if self.pending is not None:
            # The reader may have begun this block.
            begun_chunks, begun_reading = self.pending
            if begun_chunks == wanted:
                reading = begun_reading
        if reading is None:
            reading = self._start(wanted)
        block = reading.result()
        self.pending = None
        if len(then):
            self.pending = (tuple(then), self._start(tuple(then)))
        return block

    def _start(self, chunks: tuple[int, ...]) -> Future[RowBlock]:
        if self.thread is None:
            self.thread = ThreadPoolExecutor(1, thread_name_prefix="saddlesvm-reader")
            most_rows = self.per_block * int(np.diff(self.edges).max())
            most_values = self.per_block * int(np.diff(self.starts).max())
            self.buffers = [self._make_buffer(most_rows, most_values) for _ in range(2)]
        self.buffers.reverse()  # the other one belongs to the block that is worked on
        return self.thread.submit(self._read, chunks, self.buffers[0])

    def _make_buffer(self, most_rows: int, most_values: int) -> Buffer:
        """Return memory for a block of so many rows and stored values."""
        shapes: list[tuple[int, ...]] = [(most_values,), (most_values,), (most_rows + 1,)]
        if not self.X.sparse:
            shapes = [(most_rows, self.X.n_features)]
        arrays = zip(shapes, self.columns, strict=True)
        return [np.empty(shape, column.array.dtype) for shape, column in arrays]

    def _read(self, chunks: tuple[int, ...], buffer: Buffer) -> RowBlock:
        # The places of the chunks in the buffer: of their rows, and of their values.
        parts = [slice(int(self.edges[chunk]), int(self.edges[chunk + 1])) for chunk in chunks]
        ends = np.cumsum([0, *(part.stop - part.start for part in parts)])
        values = np.cumsum([0, *(self.starts[chunk + 1] - self.starts[chunk] for chunk in chunks)])
        X = self._view(buffer, int(ends[-1]), int(values[-1]))
        # The system fetches the next chunks while this one is read and its norms are computed.
        for chunk in chunks[1:AHEAD]:
            self._expect(chunk)
        for k, chunk in enumerate(chunks):
            for later in chunks[k + AHEAD : k + AHEAD + 1]:
                self._expect(later)
            self._fill(buffer, chunk, int(ends[k]), int(values[k]))
            if not self.normed[chunk]:
                self._compute_norms(X.between(int(ends[k]), int(ends[k + 1])), parts[k])
                self.normed[chunk] = True
        numbers = np.concatenate([np.arange(part.start, part.stop) for part in parts])
        return RowBlock(X, numbers)

    def _spans(self, chunk: int) -> list[tuple[int, int]]:
        """Return the places of a chunk's items in each of the columns."""
        first_row = int(self.edges[chunk])
        end_row = int(self.edges[chunk + 1])
        if not self.X.sparse:
            return [(first_row, end_row)]
        # Values, column numbers, and row pointers: one more than there are rows.
        values = (int(self.starts[chunk]), int(self.starts[chunk + 1]))
        return [values, values, (first_row, end_row + 1)]

    def _expect(self, chunk: int) -> None:
        for column, span in zip(self.columns, self._spans(chunk), strict=True):
            column.expect(*span)

    def _fill(self, buffer: Buffer, chunk: int, row: int, value: int) -> None:
        """Read a chunk to the places behind `row` and `value` of the buffer."""
        # Values and column numbers are placed by value, row pointers and dense rows by row.
        firsts = [row]
        if self.X.sparse:
            firsts = [value, value, row]
        for column, array, first, (start, stop) in zip(
            self.columns, buffer, firsts, self._spans(chunk), strict=True
        ):
            column.read(start, stop, array[first : first + stop - start])
            self.bytes_read += (stop - start) * column.item
        if len(self.columns) > 1:
            # The chunk's row pointers count values from the beginning of the file: shift them.
            pointers = buffer[2][row : row + int(self.edges[chunk + 1] - self.edges[chunk]) + 1]
            pointers += pointers.dtype.type(value - int(self.starts[chunk]))

    def _view(self, buffer: Buffer, count: int, values: int) -> Rows:
        """Return the rows of a block as kernels take them."""
        if not self.X.sparse:
            return rows.as_rows(buffer[0][:count], self.X.bias)
        data, indices, indptr = buffer
        # Kernels are compiled for read-only arrays.
        matrix = (
            read_only(data[:values]),
            read_only(indices[:values]),
            read_only(indptr[: count + 1]),
        )
        return CSR(*matrix, self.X.bias, self.X.n_features)

    def _compute_norms(self, chunk_rows: Rows, part: slice) -> None:
        """Compute the norms of a chunk at its first reading, and check them for overflow."""
        norms = np.empty(part.stop - part.start)
        rows.norms_of(chunk_rows, np.arange(norms.size), norms)
        self.norms[part] = check_norms(norms, chunk_rows, part.start)


def stacked_rows(pieces: list[Any]) -> Rows:
    """Stack matrices of the same kind into a single matrix; each is freed as it is copied.

    Parameters
    ----------
    pieces : list of Dense or of CSR
        Empty afterwards, so that the memory of the rows is hardly ever taken twice.
    """
    first = pieces[0]
    if not first.sparse:
        values = [piece.values for piece in pieces]
        pieces.clear()
        return first._replace(values=_poured(values))
    # The pointers of each piece begin where the values of the piece before it end.
    ends = np.cumsum([0, *(piece.indptr[-1] for piece in pieces)])
    shifted = [piece.indptr[1:] + end for piece, end in zip(pieces, ends[:-1], strict=True)]
    indptr = read_only(np.concatenate([first.indptr[:1], *shifted]).astype(first.indptr.dtype))
    data = [piece.data for piece in pieces]
    indices = [piece.indices for piece in pieces]
    pieces.clear()
    return CSR(_poured(data), _poured(indices), indptr, first.bias, first.n_features)


def _poured(parts: list[np.ndarray]) -> np.ndarray:
    """Stack arrays along the first axis; each is freed as it is copied."""
    whole = np.empty((sum(len(part) for part in parts), *parts[0].shape[1:]), parts[0].dtype)
    done = 0
    # Taken from the end of the list, each part is freed when it is copied.
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[done : done + len(part)] = part
        done += len(part)
    return read_only(whole)
