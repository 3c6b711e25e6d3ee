"""Read zip files of plain arrays that may be damaged or hostile, without trusting their sizes.

Models, checkpoints and ``.npz`` data are zip files of ``NAME.npy``. An :class:`Archive` allocates
an array only if the shape in its header explains the size of its member, and if all members
together are not many times as large as the file.
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

# The exceptions that a damaged file raises, here and in the libraries. Readers turn each into a
# message of one line.
DAMAGE = (
    OSError, ValueError, KeyError, TypeError, IndexError, EOFError, RuntimeError, AttributeError,
    AssertionError, ArithmeticError, SyntaxError, MemoryError, NotImplementedError, struct.error,
    zlib.error, zipfile.BadZipFile, tokenize.TokenError,
)  # fmt: skip

# Limits. They are guesses with room to spare: no file that this package writes comes near them.
_SLACK_BYTES = 1 << 24  # bytes that any file may expand to, however small it is
_TEXT_SLACK = 1 << 23  # bytes of JSON that any file may hold
_TEXT_RATIO = 16  # bytes of JSON for each byte of the file, beyond the slack
_NODES = 400_000  # values that the JSON of any file may have
_NODE_BYTES = 6  # bytes of the file for each further value, which takes ten times that in memory
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others unpack without a limit
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
    shape, fortran, dtype = readers[version](file)

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


def shorten_text(value: object, most: int = 80) -> str:
    """Return `value` as text for a message, cut to `most` characters."""
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= most:
        return text
    return f"{text[:most]} ..."


class Archive:
    """A zip file of arrays.

    Parameters
    ----------
    file : binary file
        Open for reading.
    expansion : int
        How many bytes of memory reading may use for each byte of the file, beyond 16 MB.
    others : tuple of str
        Names of members that are not arrays.
    lenient : bool, default=False
        If True, skip members that are neither arrays nor in `others`, instead of refusing the file.

    Raises
    ------
    ValueError, zipfile.BadZipFile and others of :data:`DAMAGE`
        A member occurs twice, is not named as an array, or is packed in an unusual way, or the
        members are too large.
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
        self.budget = max(_SLACK_BYTES, expansion * self.n_bytes)
        self.left = self.budget
        self.zip = zipfile.ZipFile(file)
        self.members: dict[str, zipfile.ZipInfo] = {}
        for member in self.zip.infolist():
            name = member.filename
            is_array = name.endswith(".npy") and "/" not in name and "\\" not in name
            if not is_array and name not in others:
                if lenient:
                    continue
                raise ValueError(f"it holds {shorten_text(repr(name))}, which is not an array")
            if name.removesuffix(".npy") in self.members:
                raise ValueError(f"it holds {shorten_text(repr(name))} twice")
            if member.compress_type not in _PACKINGS:
                raise ValueError(f"its {shorten_text(repr(name))} is packed in an unusual way")
            self.members[name.removesuffix(".npy")] = member
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

    def __contains__(self, name: str) -> bool:
        return name in self.members

    @property
    def names(self) -> list[str]:
        """The names of the members, without ``.npy``."""
        return list(self.members)

    def json(self, name: str) -> Any:
        """Return Python values from a member of JSON, or from an array of its bytes."""
        member = self.members[name]
        most = _TEXT_SLACK + _TEXT_RATIO * self.n_bytes
        if member.file_size > most:
            raise ValueError(f"its {name} has {member.file_size} bytes; {most} are allowed")
        if member.filename.endswith(".npy"):
            text = self.read(name).tobytes()
        else:
            text = self.zip.read(member)
        return parse_json(text, self.n_bytes)

    def header(self, name: str) -> ArrayHeader:
        """Return shape and type of an array; they must explain the size of its member."""
        member = self.members[name]
        with self.zip.open(member) as file:
            header = read_header(file)
            available = member.file_size - file.tell()
        if header.n_bytes != available:
            raise ValueError(
                f"its array {name} of shape {shorten_text(header.shape)} needs "
                f"{header.n_bytes} bytes; it has {available}"
            )
        return header

    def read(self, name: str) -> np.ndarray:
        """Read an array, and compare its checksum."""
        self._spend(self.header(name).n_bytes)
        with self.zip.open(self.members[name]) as file:
            array: np.ndarray[Any, Any] = np.lib.format.read_array(file, allow_pickle=False)
            if file.read(1):
                raise ValueError(f"its array {name} is longer than its header says")
        # NumPy does not check the code points of text.
        if array.size and array.dtype.kind == "U":
            points = array.ravel().view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
            if points.max() > sys.maxunicode:
                raise ValueError(f"its array {name} holds text with characters that do not exist")
        return array


def check_format(header: object, where: object, what: str, name: str, version: int) -> None:
    """Raise DataError unless a header states a format and its version.

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
        The version that can be read.
    """
    if not isinstance(header, dict) or header.get("format") != name:
        raise DataError(f"{where}: is not a {what}: its header does not say {name!r}")
    if header.get("version") != version:
        stated = shorten_text(repr(header.get("version")))
        raise DataError(f"{where}: is a {what} of version {stated}; version {version} can be read")


@contextmanager
def open_archive(path: Path, **options: Any) -> Iterator[Archive]:
    """Open the :class:`Archive` in a file, with its options."""
    with path.open("rb") as file:
        yield Archive(file, **options)


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


def fits(value: Any, pattern: object) -> bool:
    """Return True if a value of JSON fits a pattern.

    A type stands for its values, a text or None for itself, and a function for the values for which
    it is true; a list for lists of what it holds, a dict for dicts with these entries (or, with the
    key `str`, for dicts of such values), and a tuple for any of its patterns.
    """
    if isinstance(pattern, tuple):
        return any(fits(value, one) for one in pattern)
    if isinstance(pattern, list):
        return isinstance(value, list) and all(fits(item, pattern[0]) for item in value)
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return False
        if str in pattern:
            return all(fits(item, pattern[str]) for item in value.values())
        return all(fits(value.get(name), one) for name, one in pattern.items())
    if isinstance(pattern, type):
        return type(value) is pattern
    return bool(pattern(value)) if callable(pattern) else value == pattern


def is_finite(value: Any) -> bool:
    """Return True for a number that is finite as a float; whole numbers of JSON may be larger."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max
