"""Open data files: find their compression and format, and raise errors that name the file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from saddlesvm.data.errors import DataError, refuse_special
from saddlesvm.data.store_format import HEADER, PARTIAL

FORMATS = (
    "LIBSVM text, CSV, TSV (each plain or compressed with gzip, bzip2 or xz), "
    "Parquet (.parquet), Feather or Arrow IPC (.feather, .arrow), NumPy (.npz, .npy), "
    "an MNIST-style idx file, or a store; in Python, fit a data frame that pandas read from others"
)
PIECE = 1 << 18  # bytes of a compressed file that are read at a time; a guess
XZ_MEMORY = 1 << 27  # bytes: twice what the dictionary of the highest preset takes
# Bytes of a line in compressed text; a line takes some six times its size in memory. A guess.
LONGEST_LINE = 1 << 23
_SAMPLE_BYTES = 1 << 16  # bytes that tell the format
_SAMPLE_LINES = 50  # lines that tell LIBSVM text from CSV
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMPRESSED_ENDINGS = {".gz", ".bz2", ".xz"}
_BY_ENDING = {
    ".csv": "csv",
    ".tsv": "csv",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".npy": "npy",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
}
_IDX = re.compile(rb"\x00\x00[\x08\x09\x0b-\x0e][\x01-\x08]", re.DOTALL)
_INDEX_VALUE = re.compile(r"\s-?\d+:[^\s,;]+(?=\s|$)")


class DecompressedFile(io.RawIOBase):
    """The streams of a bzip2 or xz file, one after the other.

    `bz2.open` and `lzma.open` silently stop at the first byte that does not begin a stream; here it
    is an error. Only as much is decompressed as the caller reads.
    """

    def __init__(self, file: IO[bytes], make: Callable[[], Any]) -> None:
        self._file = file
        self._make = make
        self._engine = make()
        self._input = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a part of `buffer` with the next decompressed bytes; return 0 at the end.

        Raises
        ------
        EOFError
            A stream is not whole.
        OSError, lzma.LZMAError
            A stream is damaged, or something else follows it.
        """
        data = b""
        while buffer and not data:
            if self._engine.eof:
                # A stream ends here, and another one may follow.
                self._input = self._engine.unused_data or self._file.read(PIECE)
                if not self._input:
                    return 0
                self._engine = self._make()
            if not self._input and self._engine.needs_input:
                self._input = self._file.read(PIECE)
                if not self._input:
                    raise EOFError("the compressed data end too early")
            data = self._engine.decompress(self._input, len(buffer))
            self._input = b""
        buffer[: len(data)] = data
        return len(data)


class ShortLinesFile(io.RawIOBase):
    """Decompressed text without huge lines, which a small file may hold, see `LONGEST_LINE`."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        self._length = 0  # bytes of the line that is being read, so far

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a part of `buffer`; raises DataError if a line is too long."""
        text = self._file.read(len(buffer))
        end = text.rfind(b"\n") + 1
        if end:
            self._length = 0
        self._length += len(text) - end
        if self._length > LONGEST_LINE:
            raise DataError(
                f"{self._path}: holds a line of more than {LONGEST_LINE >> 20} MB; "
                "decompress the file first if that is intended"
            )
        buffer[: len(text)] = text
        return len(text)


def open_gzip(raw: IO[bytes]) -> IO[bytes]:
    """Open a gzip file, decompressed."""
    return cast("IO[bytes]", gzip.GzipFile(fileobj=raw, mode="rb"))


def open_bz2(raw: IO[bytes]) -> IO[bytes]:
    """Open a bzip2 file, decompressed."""
    return io.BufferedReader(DecompressedFile(raw, bz2.BZ2Decompressor), PIECE)


def open_xz(raw: IO[bytes]) -> IO[bytes]:
    """Open an xz file, decompressed with no more memory than its highest preset needs."""
    make = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
    return io.BufferedReader(DecompressedFile(raw, make), PIECE)


# The first bytes of compressed files.
_OPENERS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": open_gzip,
    b"BZh": open_bz2,
    b"\xfd7zXZ\x00": open_xz,
}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors below the format (no access, damage, not text) into a `DataError`."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; a file is needed") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: is not UTF-8 text (byte {error.object[error.start]:#04x})"
        ) from None
    except EOFError:
        raise DataError(f"{path}: is truncated: the compressed data end too early") from None
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: is damaged: {error}") from None
    except MemoryError:
        raise DataError(f"{path}: needs more memory than there is") from None
    except OSError as error:
        # Without words of the system, it is the decompressor that complains.
        fault = f"is damaged: {error}"
        if error.strerror:
            fault = f"cannot be read: {error.strerror}"
        raise DataError(f"{path}: {fault}") from None


def _find_opener(path: Path) -> Callable[[IO[bytes]], IO[bytes]] | None:
    """Return what opens a compressed file, None if the file is not compressed."""
    with reading(path), path.open("rb") as file:
        head = file.read(8)
    return next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)


def is_compressed(path: Path) -> bool:
    """Return True if the file starts as a gzip, bzip2 or xz file does."""
    return _find_opener(path) is not None


@contextmanager
def open_bytes(
    path: Path, has_lines: bool = False
) -> Iterator[tuple[IO[bytes], Callable[[], float]]]:
    """Open a file, decompressed as its first bytes say, and tell the share that was read.

    A compressed file that `has_lines` may not have huge ones.
    """
    opener = _find_opener(path)
    size = max(1, path.stat().st_size)
    with path.open("rb") as raw:
        file: IO[bytes] = raw
        if opener is not None:
            file = opener(raw)
            if has_lines:
                file = io.BufferedReader(ShortLinesFile(file, path), PIECE)
        yield file, lambda: raw.tell() / size


@contextmanager
def open_text(path: Path) -> Iterator[tuple[io.TextIOWrapper, Callable[[], float]]]:
    """Open UTF-8 text as :func:`open_bytes`; a byte order mark is skipped."""
    with open_bytes(path, has_lines=True) as (file, share):
        yield io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), share


def line_blocks(path: Path, n_bytes: int) -> Generator[tuple[bytes, float], None, None]:
    """Yield whole lines of a file, about `n_bytes` at a time, and the share that was read by then.

    Every block ends with a newline.
    """
    with open_bytes(path, has_lines=True) as (file, share):
        parts: list[bytes] = []
        text = file.read(n_bytes).removeprefix(_BYTE_ORDER_MARK)
        while text:
            # Keep what follows the last newline for the next block.
            end = text.rfind(b"\n") + 1
            parts.append(text[: end or len(text)])
            if end:
                yield b"".join(parts), share()
                parts = [text[end:]]
            text = file.read(n_bytes)
        rest = b"".join(parts)
        if rest:
            yield rest + b"\n", 1.0


def format_of(path: Path) -> str:
    """Return the format of a file by the ending of its name, or else by its content.

    Returns
    -------
    str
        "libsvm", "csv", "parquet", "arrow", "npz", "npy", "idx" or "store".

    Raises
    ------
    DataError
        The file is empty or not a regular file, or neither its name nor its content is of a known
        format; a folder is no store.
    """
    if path.is_dir():
        if (path / HEADER).exists() or path.name.endswith(PARTIAL):
            return "store"
        raise DataError(f"{path}: is a folder and no store (it has no {HEADER}); give a file")
    refuse_special(path, "data are read more than once: write them to a file first")
    with reading(path), open_bytes(path) as (file, _):
        sample = file.read(_SAMPLE_BYTES)
    if not sample.strip():
        raise DataError(f"{path}: is empty; at least one row is needed")
    # "rows.csv.gz" is a CSV file.
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSED_ENDINGS:
        endings.pop()
    if endings and endings[-1] in _BY_ENDING:
        return _BY_ENDING[endings[-1]]
    # The ending says nothing: look at the first bytes.
    format = _format_of_binary(sample) or _format_of_text(sample)
    if format is None:
        raise DataError(f"{path}: is in no format known here; allowed are {FORMATS}")
    return format


def _format_of_binary(sample: bytes) -> str | None:
    """Return the binary format that begins with these bytes, None if there is none."""
    if sample.startswith(b"PAR1"):
        return "parquet"
    if sample.startswith((b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")):
        return "arrow"
    if sample.startswith(b"\x93NUMPY"):
        return "npy"
    if sample.startswith(b"PK\x03\x04"):
        return "npz"
    if _IDX.match(sample):
        return "idx"
    return None


def _format_of_text(sample: bytes) -> str | None:
    """Return the text format whose lines these are, None if there is none."""
    if b"\x00" in sample:
        return None
    text = sample.decode("utf-8", errors="replace")
    lines = [line.split("#")[0] for line in text.splitlines()[:_SAMPLE_LINES]]
    lines = [line for line in lines if line.strip()]
    # The last line of a full sample may be cut anywhere.
    if len(text) == _SAMPLE_BYTES and len(lines) > 1:
        lines.pop()

    # LIBSVM text has index:value in most lines, even if it has commas in others.
    n_pairs = sum(_INDEX_VALUE.search(line) is not None for line in lines)
    if 2 * n_pairs > len(lines):
        return "libsvm"
    first = text.lstrip().split("\n", 1)[0]
    if first[:1] not in "{[<#" and any(mark in first for mark in ",;\t"):
        return "csv"
    return "libsvm" if n_pairs else None
