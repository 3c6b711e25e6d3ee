"""Compressed files read to their last byte: any data after a compressed stream must be another such stream.

Python's own bzip2 and xz files silently stop at the first byte that they do not understand; the classes here refuse
such a file. They decompress only as much as the caller reads, and xz gets no more memory than its highest preset needs.
"""

from __future__ import annotations

import bz2
import io
import lzma
from collections.abc import Callable
from typing import IO, Any

__all__ = ["OverFile", "open_bz2", "open_xz"]

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
