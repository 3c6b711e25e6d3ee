"""Compressed files read to their last byte: any data after a compressed stream must be another such stream.

Python's own bzip2 and xz files silently stop at the first byte that they do not understand; the classes here refuse
such a file. They decompress only as much as the caller reads, and xz gets no more memory than its highest preset needs.

bzip2 is decompressed on all cores: a block begins with 48 fixed bits, at any bit of the file; the bits between two such
marks are made a file of their own, for Python's `bz2`, which lets other threads run. A file with anything unusual is
read in the ordinary way.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from typing import IO, Any

from saddlesvm.runtime.threads import threads_ahead, usable_cores

PIECE = 1 << 18
MEMORY = 1 << 27  # bytes: twice what the dictionary of the highest preset takes
PADDING = 4  # bytes: zeros after an xz stream come in multiples of this


class OverFile(io.RawIOBase):
    """A file made from another while it is read, from one end to the other; closed with that one.

    Parameters
    ----------
    file : binary file
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def piece(self, size: int) -> bytes | memoryview:
        """At most `size` bytes more; none at the end."""
        raise NotImplementedError

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a part of `buffer`; 0 at the end. Raises what :meth:`piece` does."""
        data = self.piece(len(buffer)) if len(buffer) else b""
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file below too."""
        if not self.closed:
            self._file.close()
        super().close()


class Decompressed(OverFile):
    """The streams of a file, one after the other.

    Parameters
    ----------
    raw : binary file
        At the beginning of the first stream.
    make : callable
        Gives a new decompressor, as `bz2` and `lzma` have them.
    padding : int
        Zeros between streams and behind the last come in multiples of this; 0 for none.
    """

    def __init__(self, raw: IO[bytes], make: Callable[[], Any], padding: int = 0) -> None:
        super().__init__(raw)
        self._make, self._padding = make, padding
        self._engine = make()
        self._input = b""

    def piece(self, size: int) -> bytes:
        """The next decompressed bytes.

        Raises
        ------
        EOFError
            A stream is not whole.
        OSError, lzma.LZMAError
            A stream is damaged, or something else stands behind it.
        """
        data = b""
        while not data and not (self._engine.eof and not self._next_stream()):
            if not self._input and self._engine.needs_input:
                self._input = self._file.read(PIECE)
                if not self._input:
                    raise EOFError("the compressed data end too early")
            data, self._input = self._engine.decompress(self._input, size), b""
        return data

    def _next_stream(self) -> bool:
        """Make ready for what stands behind the end of a stream, if anything does."""
        rest = self._engine.unused_data or self._file.read(PIECE)
        zeros = 0
        while self._padding and rest and not rest.strip(b"\0"):
            zeros += len(rest)
            rest = self._file.read(PIECE)
        if self._padding:
            zeros += len(rest) - len(rest.lstrip(b"\0"))
            rest = rest.lstrip(b"\0")
            if zeros % self._padding:
                raise lzma.LZMAError("there are bytes after the end of the compressed data")
        if rest:
            self._engine, self._input = self._make(), rest
        return bool(rest)


def open_bz2(raw: IO[bytes]) -> IO[bytes]:
    """A bzip2 file, decompressed."""
    return io.BufferedReader(Decompressed(raw, bz2.BZ2Decompressor), PIECE)


def open_xz(raw: IO[bytes]) -> IO[bytes]:
    """An xz file, decompressed."""
    return io.BufferedReader(Decompressed(raw, _new_xz, PADDING), PIECE)


def _new_xz() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)


BLOCK, END = 0x314159265359, 0x177245385090
MARK_BITS, CRC_BITS = 48, 32
CRC_MASK = (1 << CRC_BITS) - 1
MARK_BYTES = 11  # bytes that a mark and the checksum after it may touch
HEAD, HEAD_BYTES, HEAD_BITS = re.compile(rb"BZh[1-9]"), 4, 32
PIECE_BESIDE = 1 << 20  # bytes of a file that are searched for marks at a time
MOST_WORKERS = 16


def open_parallel_bz2(raw: IO[bytes]) -> IO[bytes]:
    """Decompress a bzip2 file that is open at its beginning; from one end to the other, no seeking."""
    workers = min(usable_cores(), MOST_WORKERS)
    return open_bz2(raw) if workers < 2 else io.BufferedReader(SideBySide(raw, workers), PIECE_BESIDE)


class SideBySide(OverFile):
    """The decompressed file; where something is unusual, the rest of it in the ordinary way."""

    def __init__(self, raw: IO[bytes], workers: int) -> None:
        super().__init__(raw)
        self._parts: Generator[bytes, None, None] = _parts(raw, workers)
        self._left = memoryview(b"")
        self._given = 0

    def piece(self, size: int) -> memoryview:
        """The next decompressed bytes."""
        while not self._left and (part := self._next()) is not None:
            self._left = memoryview(part)
        data, self._left = self._left[:size], self._left[size:]
        self._given += len(data)
        return data

    def _next(self) -> bytes | None:
        try:
            return next(self._parts, None)
        except (OSError, ValueError, EOFError):
            self._parts.close()
            self._parts = _plain_parts(self._file, self._given)
            return next(self._parts, None)

    def close(self) -> None:
        """Stop decompressing, and close the file below."""
        self._parts.close()
        super().close()


def _plain_parts(raw: IO[bytes], skip: int) -> Generator[bytes, None, None]:
    """The decompressed file from place `skip` on, in the ordinary way, with its errors."""
    raw.seek(0)
    file = open_bz2(raw)
    while skip:
        skip -= len(file.read(min(PIECE_BESIDE, skip)))
    while part := file.read(PIECE_BESIDE):
        yield part
    file.detach()  # type: ignore[attr-defined]


def _parts(raw: IO[bytes], workers: int) -> Generator[bytes, None, None]:
    """The decompressed blocks in order; some of those to come are worked on."""
    waiting: deque[Future[bytes]] = deque()
    with threads_ahead(workers) as pool:
        for alone in _blocks_alone(raw):
            waiting.append(pool.submit(bz2.decompress, alone))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _blocks_alone(raw: IO[bytes]) -> Iterator[bytes]:
    """Each block as a bzip2 file of its own; the checksum over all of them is compared at the end."""
    data, searched, start, total, whole = b"", 0, -1, 0, False
    due = HEAD_BITS  # where the mark behind the head of a stream begins
    while piece := raw.read(PIECE_BESIDE):
        data += piece
        for place, mark, crc in _marks(data, searched):
            if start >= 0:
                yield _alone(data, start, place)
            elif place != due or not HEAD.fullmatch(data[due // 8 - HEAD_BYTES : due // 8]):
                raise ValueError("there are bytes between two streams")
            if mark == BLOCK:
                start, whole, total = place, False, (total << 1 | total >> 31) & CRC_MASK ^ crc
            elif crc != total:
                raise ValueError("the checksum of the whole is wrong")
            else:
                start, whole, total = -1, True, 0
                due = 8 * -(-(place + MARK_BITS + CRC_BITS) // 8) + HEAD_BITS
        kept = start // 8 if start >= 0 else max(0, len(data) - 2 * MARK_BYTES)
        data, due = data[kept:], due - 8 * kept
        searched, start = len(data), start - 8 * kept if start >= 0 else -1
    if not whole:
        raise EOFError
    if due - HEAD_BITS != 8 * len(data):
        raise ValueError("there are bytes after the last stream")


def _marks(data: bytes, searched: int) -> list[tuple[int, int, int]]:
    """Place (in bits), kind and checksum of the marks that were not whole in the first `searched` bytes."""
    found = []
    first = max(0, searched - MARK_BYTES)
    for mark in (BLOCK, END):
        for shift in range(8):
            inner = (mark << 8 - shift).to_bytes(7, "big")[1:-1]  # what a mark at this bit always holds
            byte = data.find(inner, first) - 1
            while byte >= -1:
                place = 8 * byte + shift
                stop = place + MARK_BITS + CRC_BITS
                if byte >= 0 and 8 * searched < stop <= 8 * len(data):
                    bits = int.from_bytes(data[byte : byte + MARK_BYTES].ljust(MARK_BYTES, b"\0"), "big")
                    bits >>= 8 * MARK_BYTES - shift - MARK_BITS - CRC_BITS
                    if bits >> CRC_BITS & (1 << MARK_BITS) - 1 == mark:
                        found.append((place, mark, bits & CRC_MASK))
                byte = data.find(inner, byte + 2) - 1
    return sorted(found)


def _alone(data: bytes, start: int, stop: int) -> bytes:
    """The bits from `start` to `stop`, a block, between the beginning and the end of a bzip2 file."""
    last = -(-stop // 8)
    size = stop - start
    bits = int.from_bytes(data[start // 8 : last], "big") >> 8 * last - stop
    bits &= (1 << size) - 1
    crc = bits >> size - MARK_BITS - CRC_BITS & CRC_MASK
    bits = (bits << MARK_BITS | END) << CRC_BITS | crc
    size += MARK_BITS + CRC_BITS
    return b"BZh9" + (bits << -size % 8).to_bytes(-(-size // 8), "big")
