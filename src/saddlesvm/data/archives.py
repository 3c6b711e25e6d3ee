"""Untrusted zip files of plain arrays: their claims are compared with the file before any memory is allocated.

Models, checkpoints and ``.npz`` data are zip files of ``NAME.npy``. An :class:`Archive` first checks the directory of
such a file (number, names, sizes and packing of the members), then the header of each array, whose shape must explain
its size to the byte. Only then it makes an array, and fills it piece by piece.
"""

from __future__ import annotations

import json
import math
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from saddlesvm.data.errors import DataError

# The exceptions that reading a damaged file raises, here and in the libraries; readers turn each into one line.
DAMAGE = (
    OSError, ValueError, KeyError, TypeError, IndexError, EOFError, RuntimeError, AttributeError, AssertionError,
    ArithmeticError, SyntaxError, MemoryError, NotImplementedError, struct.error, zlib.error, zipfile.BadZipFile,
)  # fmt: skip

_DIRECTORY_BYTES = 1 << 21  # bytes of a zip file's directory, at most: some 20,000 members
_SLACK_BYTES = 1 << 24  # bytes that any file may expand to
_TEXT_SLACK = 1 << 23  # bytes of JSON that any file may hold
_TEXT_RATIO = 16
_NODES = 400_000  # values that the JSON of any file may have
_NODE_BYTES = 6  # bytes of the file per further value, which takes some ten times that in memory
_DEFLATE_MOST = 1032  # highest quotient of unpacked and packed bytes that deflate reaches
_PIECE = 1 << 20
_PLAIN = frozenset("biufcUS")


@dataclass(frozen=True)
class ArrayHeader:
    """Shape, order and type of an array in a file, and the bytes of its values."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """Bytes of the values."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes]) -> ArrayHeader:
    """The header of a ``.npy`` array; moves the file to the byte after it.

    Raises
    ------
    ValueError, SyntaxError and others of :data:`DAMAGE`
        It is none, or is of an array of objects.
    """
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"an array of the .npy version {version[0]}.{version[1]}; versions 1.0 and 2.0 are read")
    try:
        shape, fortran, dtype = readers[version](file)
    except tokenize.TokenError as error:  # raised when NumPy tries headers of Python 2
        raise ValueError(f"an array with a damaged header: {error}") from None
    if dtype.hasobject or (dtype.kind not in _PLAIN and dtype.names is None):
        raise ValueError(f"an array of type {dtype}; numbers, bools and text are allowed")
    if not dtype.itemsize:
        raise ValueError(f"an array of type {dtype.str!r}, whose values take no bytes")
    if any(type(size) is not int or size < 0 for size in shape) or len(shape) > 32:
        raise ValueError(f"an array of shape {short(shape)}")
    return ArrayHeader(shape, bool(fortran), dtype)


def short(value: Any, most: int = 80) -> str:
    """`value` as text for a message, cut to `most` characters."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]} ..."


class _Bounded:
    """A file that refuses to read more bytes at once than its bound, while one is set."""

    def __init__(self, file: IO[bytes], bound: int | None) -> None:
        self.file, self.bound = file, bound

    def read(self, count: int = -1) -> bytes:
        if self.bound is not None and count > self.bound:
            raise ValueError(f"its directory has {count} bytes; {self.bound} are allowed")
        return self.file.read(count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class Archive:
    """A zip file of arrays, whose directory was checked.

    Parameters
    ----------
    file : binary file
        Open for reading.
    expansion : int
        Quotient of memory and file size that reading may reach beyond 16 MB. Members stored unpacked never exceed the
        file's size.
    others : tuple of str
        Names of members that are no arrays.
    lenient : bool, default=False
        Skip members that are neither arrays nor in `others`, instead of refusing the file.

    Raises
    ------
    ValueError, zipfile.BadZipFile and others of :data:`DAMAGE`
        Too large a directory, a member that occurs twice, has a name that is none of an array, is encrypted or packed
        in an unusual way, or sizes that the file cannot hold.
    """

    def __init__(self, file: IO[bytes], *, expansion: int, others: tuple[str, ...] = (), lenient: bool = False) -> None:
        self.n_bytes = file.seek(0, 2)
        file.seek(0)
        bounded: Any = _Bounded(file, _DIRECTORY_BYTES)
        self.zip = zipfile.ZipFile(bounded)
        bounded.bound = None
        self.members: dict[str, zipfile.ZipInfo] = {}
        for member in self.zip.infolist():
            if member.filename in others or _is_array(member.filename):
                self._check(member)
                self.members[member.filename.removesuffix(".npy")] = member
            elif not lenient:
                raise ValueError(f"it holds {short(repr(member.filename))}, which is not an array")
        packed = sum(member.compress_size for member in self.members.values())
        self.most = self.left = max(_SLACK_BYTES, expansion * self.n_bytes)
        if packed > self.n_bytes:
            raise ValueError(f"its members take {packed} bytes of a file of {self.n_bytes}")
        if not lenient:
            self._spend(sum(member.file_size for member in self.members.values()))
            self.left = self.most

    def _spend(self, n_bytes: int) -> None:
        """Count the bytes read against the allowed total."""
        self.left -= n_bytes
        if self.left < 0:
            total = self.most - self.left
            raise ValueError(f"it would expand from {self.n_bytes} bytes to {total}; {self.most} are allowed")

    def _check(self, member: zipfile.ZipInfo) -> None:
        name, size, packed = member.filename, member.file_size, member.compress_size
        if name.removesuffix(".npy") in self.members:
            raise ValueError(f"it holds {short(repr(name))} twice")
        stored = member.compress_type == zipfile.ZIP_STORED
        if member.flag_bits & 1 or not (stored or member.compress_type == zipfile.ZIP_DEFLATED):
            raise ValueError(f"its {short(repr(name))} is encrypted, or packed in an unusual way")
        if (stored and size != packed) or size > _DEFLATE_MOST * packed + 64:
            raise ValueError(f"its {short(repr(name))} says {size} bytes, packed to {packed}")

    def __contains__(self, name: str) -> bool:
        return name in self.members

    @property
    def names(self) -> list[str]:
        """The names of the members, ``.npy`` left out."""
        return list(self.members)

    def text(self, name: str) -> bytes:
        """A member that is no array, or the bytes of one of uint8."""
        member = self.members[name]
        most = _TEXT_SLACK + _TEXT_RATIO * self.n_bytes
        if member.file_size > most:
            raise ValueError(f"its {name} has {member.file_size} bytes; {most} are allowed")
        if not member.filename.endswith(".npy"):
            return self.zip.read(member)
        array = self.read(name)
        if array.dtype != np.uint8 or array.ndim != 1:
            raise ValueError(f"its {name} is not a text")
        return array.tobytes()

    def json(self, name: str) -> Any:
        """A member as JSON."""
        return parsed_json(self.text(name), self.n_bytes)

    def header(self, name: str) -> ArrayHeader:
        """Shape and type of an array, which must explain the size of the member."""
        with self.zip.open(self.members[name]) as file:
            return self._header(name, file)

    def _header(self, name: str, file: IO[bytes]) -> ArrayHeader:
        found = read_header(file)
        promised, there = found.n_bytes, self.members[name].file_size - file.tell()
        if promised != there:
            raise ValueError(f"its array {name} of shape {short(found.shape)} needs {promised} bytes; it has {there}")
        return found

    def read(self, name: str, room: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """An array; into `room` where that has its shape, type and order.

        The checksum is compared at the end.
        """
        with self.zip.open(self.members[name]) as file:
            found = self._header(name, file)
            self._spend(found.n_bytes)
            fits = room is not None and room.shape == found.shape and room.dtype == found.dtype
            if room is None or not fits or found.fortran or not room.flags.c_contiguous:
                room = np.empty(found.shape, found.dtype, order="F" if found.fortran else "C")
            # a view of the transposed array, where that is the contiguous one; one without values has no bytes to view
            flat = (room.T if found.fortran else room).reshape(-1)
            if flat.nbytes:
                _fill(file, memoryview(flat.view(np.uint8).data))
            if file.read(1):
                raise ValueError(f"its array {name} is longer than its header says")
            if flat.nbytes and flat.dtype.kind == "U" and _codes(flat).max() > sys.maxunicode:
                raise ValueError(f"its array {name} holds text with characters that do not exist")
        return room

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[ArrayHeader, IO[bytes]]]:
        """An array to be read some values at a time."""
        with self.zip.open(self.members[name]) as file:
            yield self._header(name, file), file

    def close(self) -> None:
        """Forget the directory; the file stays open."""
        self.zip.close()


def _codes(text: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The code points of an array of text, which NumPy does not check."""
    return text.view(np.dtype(np.uint32).newbyteorder(text.dtype.byteorder))


def _is_array(name: str) -> bool:
    return name.endswith(".npy") and "/" not in name and "\\" not in name


def _fill(file: IO[bytes], room: memoryview) -> None:
    while room:
        piece = file.read(min(_PIECE, len(room)))
        if not piece:
            raise EOFError("an array ends before its header says")
        room[: len(piece)] = piece
        room = room[len(piece) :]


def check_stated(header: Any, where: object, what: str, name: str, version: int) -> None:
    """Check the name and the version of the format that a header states: `version` is the newest one that is read.

    Raises
    ------
    DataError
        It is of another format, or of a newer version; `what` says what is needed.
    """
    if not isinstance(header, dict) or header.get("format") != name:
        raise DataError(f"{where}: is not a {what}: its header does not say {name!r}")
    stated = header.get("version")
    if type(stated) is not int or stated < 1:
        raise DataError(f"{where}: is damaged: its version is {short(stated)}")
    if stated > version:
        allowed = f"this saddlesvm reads versions up to {version}; install a newer one"
        raise DataError(f"{where}: is a {what} of version {short(stated)}; {allowed}")


@contextmanager
def open_archive(path: Path, **options: Any) -> Iterator[Archive]:
    """The :class:`Archive` in a file; its options."""
    with path.open("rb") as file:
        archive = Archive(file, **options)
        try:
            yield archive
        finally:
            archive.close()


def parsed_json(text: bytes, n_bytes: int) -> Any:
    """JSON from a file of `n_bytes`, unless it would take many times its size in memory.

    Raises
    ------
    ValueError
        It is no JSON, nested too deeply, or of too many values.
    """
    nodes = text.count(b",") + text.count(b"[") + text.count(b"{")
    most = _NODES + n_bytes // _NODE_BYTES
    if nodes > most:
        raise ValueError(f"its JSON has about {nodes} values; {most} are allowed")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("its JSON is not UTF-8 text") from None
