"""Opening files: find compression and format, and raise errors that name the file."""

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
from typing import IO, Any, TypeAlias, cast

from saddlesvm.data.errors import DataError, refuse_special
from saddlesvm.data.store_format import HEADER, PARTIAL
from saddlesvm.runtime.threads import threads_ahead

Opener: TypeAlias = Callable[[IO[bytes]], IO[bytes]]


FORMATS = (
    "LIBSVM text, CSV, TSV, JSON lines (each plain or compressed with gzip, bzip2 or xz), Parquet (.parquet), Feather "
    "or Arrow IPC (.feather, .arrow), NumPy (.npz, .npy), an MNIST-style idx file, a store, or a folder with a folder "
    "of text files for each class"
)


class OverFile(io.RawIOBase):
    """A file made from another while it is read, from one end to the other; closed with that one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def piece(self, size: int) -> bytes:
        """At most `size` bytes more; none at the end."""
        raise NotImplementedError

    def readable(self) -> bool:
        """Return True."""
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
    """The streams of a bzip2 or xz file, one after the other.

    `bz2.open` and `lzma.open` silently stop at the first byte that is no such stream; here it is an error. Only as much
    is decompressed as the caller reads.
    """

    def __init__(self, file: IO[bytes], make: Callable[[], Any]) -> None:
        super().__init__(file)
        self._make = make
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
        while not data:
            if self._engine.eof:
                # Another stream may follow.
                self._input = self._engine.unused_data or self._file.read(PIECE)
                if not self._input:
                    return b""
                self._engine = self._make()
            if not self._input and self._engine.needs_input:
                self._input = self._file.read(PIECE)
                if not self._input:
                    raise EOFError("the compressed data end too early")
            data = self._engine.decompress(self._input, size)
            self._input = b""
        return data


class Gzip(gzip.GzipFile):
    """Closes the compressed file too."""

    def close(self) -> None:
        """Close both files."""
        raw: Any = self.fileobj
        super().close()
        if raw is not None:
            raw.close()


class ShortLines(OverFile):
    """Decompressed text, refused if a line is longer than :data:`LONGEST_LINE`: a small file may hold a huge one."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        super().__init__(file)
        self._path = path
        self._length = 0

    def piece(self, size: int) -> bytes:
        """The next bytes of the text.

        Raises
        ------
        DataError
            A line is too long.
        """
        text = self._file.read(size)
        end = text.rfind(b"\n") + 1
        self._length = len(text) - end if end else self._length + len(text)
        if self._length > LONGEST_LINE:
            longest = f"{LONGEST_LINE >> 20} MB"
            raise DataError(
                f"{self._path}: holds a line of more than {longest}; decompress the file first if that is intended"
            )
        return text


def open_gzip(raw: IO[bytes]) -> IO[bytes]:
    """A gzip file, decompressed."""
    return cast("IO[bytes]", Gzip(fileobj=raw, mode="rb"))


def open_bz2(raw: IO[bytes]) -> IO[bytes]:
    """A bzip2 file, decompressed."""
    return io.BufferedReader(Decompressed(raw, bz2.BZ2Decompressor), PIECE)


def open_xz(raw: IO[bytes]) -> IO[bytes]:
    """An xz file, decompressed with no more memory than its highest preset needs."""
    make = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
    return io.BufferedReader(Decompressed(raw, make), PIECE)


PIECE = 1 << 18  # bytes of a compressed file that are read at a time
XZ_MEMORY = 1 << 27  # bytes: twice what the dictionary of the highest preset takes
_COMPRESSED: dict[bytes, Opener] = {b"\x1f\x8b": open_gzip, b"BZh": open_bz2, b"\xfd7zXZ\x00": open_xz}
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
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
}
_SAMPLE = 1 << 16
LONGEST_LINE = 1 << 23  # bytes of a line in compressed text; a line takes some six times its size in memory
_IDX = re.compile(rb"\x00\x00[\x08\x09\x0b-\x0e][\x01-\x08]", re.DOTALL)
_INDEX_VALUE = re.compile(r"\s-?\d+:[^\s,;]+(?=\s|$)")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what can go wrong below the format (no access, damaged compression, not text) into a `DataError`."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; a file is needed") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text (byte {error.object[error.start]:#04x})") from None
    except EOFError:
        raise DataError(f"{path}: is truncated: the compressed data end too early") from None
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: is damaged: {error}") from None
    except MemoryError:
        raise DataError(f"{path}: needs more memory than there is") from None
    except OSError as error:
        what = f"cannot be read: {error.strerror}" if error.strerror else f"is damaged: {error}"
        raise DataError(f"{path}: {what}") from None


def _opener(path: Path) -> Opener | None:
    with reading(path), path.open("rb") as file:
        head = file.read(8)
    return next((opener for magic, opener in _COMPRESSED.items() if head.startswith(magic)), None)


def is_compressed(path: Path) -> bool:
    """Whether the file starts as a gzip, bzip2 or xz file does."""
    return _opener(path) is not None


def _limited(file: IO[bytes], path: Path) -> IO[bytes]:
    """Decompressed text whose lines have a limit."""
    return io.BufferedReader(ShortLines(file, path), PIECE)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressing as its first bytes say (its name does not matter)."""
    opener, raw = _opener(path), path.open("rb")
    return raw if opener is None else opener(raw)


def open_lines(path: Path) -> IO[bytes]:
    """Open a text file as :func:`open_bytes` does; a line of compressed text is at most :data:`LONGEST_LINE` long."""
    opener, raw = _opener(path), path.open("rb")
    return raw if opener is None else _limited(opener(raw), path)


@contextmanager
def open_counted(path: Path) -> Iterator[tuple[IO[bytes], Callable[[], float]]]:
    """Open text as :func:`open_lines` does, to be read once, with a function that says how much was read, 0 to 1."""
    opener, size = _opener(path), max(1, path.stat().st_size)
    with path.open("rb") as raw, raw if opener is None else _limited(opener(raw), path) as file:
        yield file, lambda: raw.tell() / size


def line_blocks(path: Path, n_bytes: int) -> Generator[tuple[bytes, float], None, None]:
    """Whole lines of a file, about `n_bytes` at a time, and the share of the file that was read by then.

    Every block ends with a newline. The next one is read, and decompressed, while the caller works on this one.
    """
    blocks = _line_blocks(path, n_bytes)
    with threads_ahead(1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            yield block


def _line_blocks(path: Path, n_bytes: int) -> Generator[tuple[bytes, float], None, None]:
    with open_counted(path) as (file, share):
        parts: list[bytes] = []
        text = file.read(n_bytes).removeprefix(_BYTE_ORDER_MARK)
        while text:
            end = text.rfind(b"\n") + 1
            parts.append(text[: end or len(text)])
            if end:
                yield b"".join(parts), share()
                parts = [text[end:]]
            text = file.read(n_bytes)
        rest = b"".join(parts)
        if rest:
            yield rest + b"\n", 1.0


def binary_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, decompressed, without a byte order mark."""
    with open_lines(path) as file:
        first = file.readline().removeprefix(_BYTE_ORDER_MARK)
        if first:
            yield first
        yield from file


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a file as UTF-8 text (a byte order mark is skipped), decompressing where needed."""
    return io.TextIOWrapper(open_lines(path), encoding="utf-8-sig", newline="")


def format_of(path: Path) -> str:
    """Find the format: from the name's ending where that is a known one, from the content otherwise.

    Returns
    -------
    str
        "libsvm", "csv", "jsonl", "parquet", "arrow", "npz", "npy", "idx", "store" or "folder".

    Raises
    ------
    DataError
        The file is empty or no regular file, or neither its name nor its content is of a format known here; a folder
        is neither a store nor holds folders.
    """
    if path.is_dir():
        if (path / HEADER).exists() or path.name.endswith(PARTIAL):
            return "store"
        if any(one.is_dir() and not one.name.startswith(".") for one in path.iterdir()):
            return "folder"
        raise DataError(
            f"{path}: is a folder, and not a store (it has no {HEADER}), nor has it a folder of text files for each "
            "class; a file or a store is needed"
        )
    refuse_special(path, "data are read more than once: write them to a file first")
    with reading(path), open_bytes(path) as file:
        sample = file.read(_SAMPLE)
    if not sample.strip():
        raise DataError(f"{path}: is empty; at least one row is needed")
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSED_ENDINGS:
        endings.pop()
    known = _BY_ENDING.get(endings[-1]) if endings else None
    found = known or _sniff(sample)
    if found is None:
        raise DataError(f"{path}: is in no format known here; allowed are {FORMATS}")
    return found


def _sniff(sample: bytes) -> str | None:
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
    if b"\x00" in sample:
        return None
    text = sample.decode("utf-8", errors="replace")
    lines = [line for line in (raw.split("#")[0] for raw in text.splitlines()[:50]) if line.strip()]
    if len(text) == _SAMPLE and len(lines) > 1:
        lines.pop()
    pairs = sum(_INDEX_VALUE.search(line) is not None for line in lines)
    if 2 * pairs > len(lines):
        return "libsvm"
    first = text.lstrip().split("\n", 1)[0]
    if first.startswith('{"') and first.rstrip().endswith("}") and '":' in first:
        return "jsonl"
    if first[:1] not in "{[<#" and any(mark in first for mark in ",;\t"):
        return "csv"
    return "libsvm" if pairs else None
