"""Read zip files of plain arrays that may be damaged or hostile, without trusting their sizes.

Models, checkpoints and ``.npz`` data are zip files of ``NAME.npy``. An :class:`Archive` first
checks the directory of such a file: number, names, sizes and packing of the members. Then it checks
the header of each array, whose shape must explain its size to the byte. Only then does it allocate
an array, and fills it piece by piece.
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
from typing import IO, Any, Literal

import numpy as np

from saddlesvm.data.errors import DataError

# The exceptions that a damaged file raises, here and in the libraries. Readers turn each into a
# message of one line.
DAMAGE = (
    OSError, ValueError, KeyError, TypeError, IndexError, EOFError, RuntimeError, AttributeError,
    AssertionError, ArithmeticError, SyntaxError, MemoryError, NotImplementedError, struct.error,
    zlib.error, zipfile.BadZipFile,
)  # fmt: skip

# Limits. They are guesses with room to spare: no file that this package writes comes near them.
_DIRECTORY_BYTES = 1 << 21  # bytes of a zip file's directory: some 20,000 members
_SLACK_BYTES = 1 << 24  # bytes that any file may expand to, however small it is
_TEXT_SLACK = 1 << 23  # bytes of JSON that any file may hold
_TEXT_RATIO = 16  # bytes of JSON for each byte of the file, beyond the slack
_NODES = 400_000  # values that the JSON of any file may have
_NODE_BYTES = 6  # bytes of the file for each further value, which takes ten times that in memory

_DEFLATE_RATIO = 1032  # the highest ratio of unpacked to packed bytes that deflate can reach
_PIECE = 1 << 20  # bytes that are read at a time
_PLAIN_KINDS = frozenset("biufcUS")  # NumPy's kinds of numbers, bools and text
_MOST_DIMENSIONS = 32  # NumPy's own limit before version 2


@dataclass(frozen=True)
class ArrayHeader:
    """Shape, order and type of an array in a file."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype

    @property
    def n_bytes(self) -> int:
        """Bytes of the values."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def order(self) -> Literal["C", "F"]:
        """NumPy's letter for the order of the values."""
        return "F" if self.fortran else "C"


def read_header(file: IO[bytes]) -> ArrayHeader:
    """Read the header of a ``.npy`` array, and leave the file at the first value.

    Raises
    ------
    ValueError, SyntaxError and others of :data:`DAMAGE`
        The header is damaged, or the array holds objects.
    """
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(
            f"an array of the .npy version {version[0]}.{version[1]}; "
            "versions 1.0 and 2.0 can be read"
        )
    try:
        shape, fortran, dtype = readers[version](file)
    except tokenize.TokenError as error:
        # NumPy also tries headers of Python 2, and fails so on a damaged one.
        raise ValueError(f"an array with a damaged header: {error}") from None

    # Values of objects would be unpickled, and unpickling runs code.
    if dtype.hasobject or (dtype.kind not in _PLAIN_KINDS and dtype.names is None):
        raise ValueError(f"an array of type {dtype}; numbers, bools and text are allowed")
    # With values of no bytes, any shape would explain the size of the file.
    if not dtype.itemsize:
        raise ValueError(f"an array of type {dtype.str!r}, whose values take no bytes")
    has_odd_size = any(type(size) is not int or size < 0 for size in shape)
    if has_odd_size or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"an array of shape {shorten_text(shape)}")
    return ArrayHeader(shape, bool(fortran), dtype)


def shorten_text(value: Any, most: int = 80) -> str:
    """Return `value` as text for a message, cut to `most` characters."""
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= most:
        return text
    return f"{text[:most]} ..."


class _BoundedFile:
    """A file that refuses to read more bytes at once than its bound, if it has a bound."""

    def __init__(self, file: IO[bytes], bound: int | None) -> None:
        self.file = file
        self.bound = bound

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
        How many bytes of memory reading may use for each byte of the file, beyond 16 MB. Members
        that are stored unpacked never exceed the size of the file.
    others : tuple of str
        Names of members that are not arrays.
    lenient : bool, default=False
        If True, skip members that are neither arrays nor in `others`, instead of refusing the file.

    Raises
    ------
    ValueError, zipfile.BadZipFile and others of :data:`DAMAGE`
        The directory is too large, a member occurs twice, is not named as an array, is encrypted or
        packed in an unusual way, or has a size that the file cannot hold.
    """

    def __init__(
        self,
        file: IO[bytes],
        *,
        expansion: int,
        others: tuple[str, ...] = (),
        lenient: bool = False,
    ) -> None:
        self.n_bytes = file.seek(0, 2)
        file.seek(0)
        # `ZipFile` reads the directory at once, as long as it claims to be: bound that one read.
        bounded: Any = _BoundedFile(file, _DIRECTORY_BYTES)
        self.zip = zipfile.ZipFile(bounded)
        bounded.bound = None

        self.members: dict[str, zipfile.ZipInfo] = {}
        for member in self.zip.infolist():
            if member.filename in others or _is_array_name(member.filename):
                self._check_member(member)
                self.members[member.filename.removesuffix(".npy")] = member
            elif not lenient:
                name = shorten_text(repr(member.filename))
                raise ValueError(f"it holds {name}, which is not an array")

        # Members may overlap in a hostile file, and so claim more bytes than the file has.
        packed = sum(member.compress_size for member in self.members.values())
        if packed > self.n_bytes:
            raise ValueError(f"its members take {packed} bytes of a file of {self.n_bytes}")
        self.budget = max(_SLACK_BYTES, expansion * self.n_bytes)
        self.left = self.budget
        # A lenient reader reads some members only, so that all of them may exceed the budget.
        if not lenient:
            self._spend(sum(member.file_size for member in self.members.values()))
            self.left = self.budget

    def _spend(self, n_bytes: int) -> None:
        """Count bytes that are read, and refuse them if the budget is exceeded."""
        self.left -= n_bytes
        if self.left < 0:
            total = self.budget - self.left
            raise ValueError(
                f"it would expand from {self.n_bytes} bytes to {total}; {self.budget} are allowed"
            )

    def _check_member(self, member: zipfile.ZipInfo) -> None:
        """Raise an error if a member occurs twice, is packed unusually, or states a false size."""
        name = shorten_text(repr(member.filename))
        size = member.file_size
        packed = member.compress_size
        if member.filename.removesuffix(".npy") in self.members:
            raise ValueError(f"it holds {name} twice")
        is_encrypted = member.flag_bits & 1
        is_stored = member.compress_type == zipfile.ZIP_STORED
        is_deflated = member.compress_type == zipfile.ZIP_DEFLATED
        if is_encrypted or not (is_stored or is_deflated):
            raise ValueError(f"its {name} is encrypted, or packed in an unusual way")
        # 64 bytes more than the ratio allows, because an empty stream takes some bytes, too.
        if (is_stored and size != packed) or size > _DEFLATE_RATIO * packed + 64:
            raise ValueError(f"its {name} says {size} bytes, packed to {packed}")

    def __contains__(self, name: str) -> bool:
        return name in self.members

    @property
    def names(self) -> list[str]:
        """The names of the members, without ``.npy``."""
        return list(self.members)

    def text(self, name: str) -> bytes:
        """Return the bytes of a member that is not an array, or of an array of uint8."""
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
        """Return a member of JSON as Python values."""
        return parse_json(self.text(name), self.n_bytes)

    def header(self, name: str) -> ArrayHeader:
        """Return shape and type of an array; they must explain the size of its member."""
        with self.zip.open(self.members[name]) as file:
            return self._read_header(name, file)

    def _read_header(self, name: str, file: IO[bytes]) -> ArrayHeader:
        """Read the header of an array, and compare its shape with the bytes that follow it."""
        header = read_header(file)
        available = self.members[name].file_size - file.tell()
        if header.n_bytes != available:
            raise ValueError(
                f"its array {name} of shape {shorten_text(header.shape)} needs "
                f"{header.n_bytes} bytes; it has {available}"
            )
        return header

    def read(self, name: str, room: np.ndarray | None = None) -> np.ndarray:
        """Read an array, into `room` if that has its shape, type and order.

        The checksum is compared at the end.
        """
        with self.zip.open(self.members[name]) as file:
            header = self._read_header(name, file)
            self._spend(header.n_bytes)
            fits = (
                room is not None
                and room.shape == header.shape
                and room.dtype == header.dtype
                and room.flags.c_contiguous
                and not header.fortran
            )
            if room is None or not fits:
                room = np.empty(header.shape, header.dtype, order=header.order)

            # A flat view in the order of the file. An array without values has no bytes to view.
            flat = (room.T if header.fortran else room).reshape(-1)
            if flat.nbytes:
                _fill(file, memoryview(flat.view(np.uint8).data))
            if file.read(1):
                raise ValueError(f"its array {name} is longer than its header says")
            if flat.nbytes and flat.dtype.kind == "U" and _code_points(flat).max() > sys.maxunicode:
                raise ValueError(f"its array {name} holds text with characters that do not exist")
        return room

    @contextmanager
    def open_array(self, name: str) -> Iterator[tuple[ArrayHeader, IO[bytes]]]:
        """Open an array, so that the caller reads its values some at a time."""
        with self.zip.open(self.members[name]) as file:
            yield self._read_header(name, file), file

    def close(self) -> None:
        """Forget the directory; the file stays open."""
        self.zip.close()


def _code_points(text: np.ndarray) -> np.ndarray:
    """Return the code points of an array of text, which NumPy does not check."""
    return text.view(np.dtype(np.uint32).newbyteorder(text.dtype.byteorder))


def _is_array_name(name: str) -> bool:
    """Return True for the name of an array in the top folder of an archive."""
    return name.endswith(".npy") and "/" not in name and "\\" not in name


def _fill(file: IO[bytes], room: memoryview) -> None:
    """Fill `room` from a file, piece by piece."""
    while room:
        piece = file.read(min(_PIECE, len(room)))
        if not piece:
            raise EOFError("an array ends before its header says")
        room[: len(piece)] = piece
        room = room[len(piece) :]


def check_format(header: Any, where: object, what: str, name: str, version: int) -> None:
    """Check the name and the version of the format that a header states.

    Parameters
    ----------
    header : dict
        Its entries ``"format"`` and ``"version"`` are checked.
    where : object
        The file in messages.
    what : str
        What is needed, in messages, for example "saddlesvm model".
    name : str
        The name of the format.
    version : int
        The newest version that can be read.

    Raises
    ------
    DataError
        The header is of another format, or of a newer version.
    """
    if not isinstance(header, dict) or header.get("format") != name:
        raise DataError(f"{where}: is not a {what}: its header does not say {name!r}")
    stated = header.get("version")
    if type(stated) is not int or stated < 1:
        raise DataError(f"{where}: is damaged: its version is {shorten_text(stated)}")
    if stated > version:
        raise DataError(
            f"{where}: is a {what} of version {shorten_text(stated)}; "
            f"this saddlesvm reads versions up to {version}; install a newer one"
        )


@contextmanager
def open_archive(path: Path, **options: Any) -> Iterator[Archive]:
    """Open the :class:`Archive` in a file, with its options."""
    with path.open("rb") as file:
        archive = Archive(file, **options)
        try:
            yield archive
        finally:
            archive.close()


def parse_json(text: bytes, n_bytes: int) -> Any:
    """Parse JSON from a file of `n_bytes`, unless it would take many times its size in memory.

    Raises
    ------
    ValueError
        The text is not JSON, is nested too deeply, or has too many values.
    """
    # Each value follows a comma or an opening bracket, so that this counts at least all values.
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
