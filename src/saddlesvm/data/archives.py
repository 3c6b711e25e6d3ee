"""Read zip files of plain arrays that may be damaged or hostile, without trusting their sizes.

Models, checkpoints and ``.npz`` data are zip files of ``NAME.npy``. An :class:`Archive` allocates
an array only if the shape in its header explains the size of its member, and if what was read is
not many times as large as the file.
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

LONGEST_FAULT = 300  # characters of a library's error in a message; a guess
# Limits. They are guesses with room to spare: no file that this package writes comes near them.
_SLACK_BYTES = 1 << 24  # bytes that any file may expand to, however small it is
_NODES = 400_000  # values that the JSON of any file may have
_NODE_BYTES = 6  # bytes of the file for each further value, which takes ten times that in memory
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others unpack without a limit
_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def shorten_text(value: object, most: int = 80) -> str:
    """Return `value` as text for a message, cut to `most` characters."""
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= most:
        return text
    return f"{text[:most]} ..."


class Archive:
    """A zip file of arrays; other members are read only by their names.

    Parameters
    ----------
    file : binary file
        Open for reading.
    expansion : int
        How many bytes of memory reading may use for each byte of the file, beyond 16 MB.

    Attributes
    ----------
    names : list of str
        The names of the arrays, without ``.npy``.

    Raises
    ------
    ValueError, zipfile.BadZipFile and others of :data:`DAMAGE`
        A member occurs twice.
    """

    def __init__(self, file: IO[bytes], expansion: int) -> None:
        self.n_bytes = file.seek(0, 2)
        self.budget = max(_SLACK_BYTES, expansion * self.n_bytes)
        self.left = self.budget
        self.zip = zipfile.ZipFile(file)
        members = self.zip.namelist()
        if len({*members}) < len(members):
            raise ValueError("it holds two members of the same name")
        self.names = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]

    def _open(self, name: str) -> IO[bytes]:
        """Open a member, whose size counts; the size in the directory limits what is unpacked."""
        member = self.zip.getinfo(name)
        if member.compress_type not in _PACKINGS:
            raise ValueError(f"its {shorten_text(repr(name))} is packed in an unusual way")
        self.left -= member.file_size
        if self.left < 0:
            total = self.budget - self.left
            raise ValueError(
                f"it would expand from {self.n_bytes} bytes to {total}; {self.budget} are allowed"
            )
        return self.zip.open(member)

    def json(self, name: str) -> Any:
        """Return Python values from a member of JSON."""
        with self._open(name) as file:
            return parse_json(file.read(), self.n_bytes)

    def read(self, name: str) -> np.ndarray:
        """Read an array, and compare its checksum."""
        with self._open(f"{name}.npy") as file:
            version = np.lib.format.read_magic(file)
            if version not in _HEADER_READERS:
                raise ValueError(f"its array {name} is of the .npy version {version}")
            shape, _, dtype = _HEADER_READERS[version](file)
            n_values = math.prod(shape)
            if dtype.hasobject:
                raise ValueError(
                    f"its array {name} holds Python objects; save it as numbers or as text, with "
                    ".astype(float) or .astype(str)"
                )
            # Allocate only if the shape explains the size; values of no bytes explain no size.
            available = self.zip.getinfo(f"{name}.npy").file_size - file.tell()
            if n_values * dtype.itemsize != available or (n_values and not dtype.itemsize):
                raise ValueError(
                    f"its array {name} of type {dtype} and shape {shorten_text(shape)} "
                    f"does not fit its {available} bytes"
                )
            file.seek(0)
            array: np.ndarray[Any, Any] = np.lib.format.read_array(file, allow_pickle=False)
            # Reading beyond the end compares the checksum.
            file.read(1)
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
def open_archive(path: Path, expansion: int) -> Iterator[Archive]:
    """Open the :class:`Archive` in a file."""
    with path.open("rb") as file:
        yield Archive(file, expansion)


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


def matches(value: Any, pattern: object) -> bool:
    """Return True if a value of JSON fits a pattern.

    A type stands for its values, a text or None for itself, and a function for the values for which
    it is true; a list for lists of what it holds, a dict for dicts with these entries (or, with the
    key `str`, for dicts of such values), and a tuple for any of its patterns.
    """
    if isinstance(pattern, tuple):
        return any(matches(value, one) for one in pattern)
    if isinstance(pattern, list):
        return isinstance(value, list) and all(matches(item, pattern[0]) for item in value)
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return False
        if str in pattern:
            return all(matches(item, pattern[str]) for item in value.values())
        return all(matches(value.get(name), one) for name, one in pattern.items())
    if isinstance(pattern, type):
        return type(value) is pattern
    return bool(pattern(value)) if callable(pattern) else value == pattern


def is_finite(value: Any) -> bool:
    """Return True for a number that is finite as a float; whole numbers of JSON may be larger."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max
