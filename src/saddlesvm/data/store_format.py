"""The format of a store: its files, the contents of its header, and the checks on both.

A store is a folder of plain ``.npy`` files and ``store.json``. ``docs/stores.md`` describes it for other programs; the
writer and the reader of this package both use this file.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import dtype_to_descr

from saddlesvm.data.archives import DAMAGE, parsed_json, read_header, short
from saddlesvm.data.errors import DataError, refuse_special
from saddlesvm.rows.small_types import FLOATS, bfloat16, type_name

FORMAT_NAME = "saddlesvm-store"
FORMAT_VERSION = 1
HEADER = "store.json"
NOTE = "missing values"  # the field that tells what a conversion did with them
PARTIAL = ".partial"

_NPY_LENGTH = 128
_MOST = 2**62  # rows or features: what the indices of any machine can count
_INTEGERS = ("<i4", "<i8")
BFLOAT16 = "bfloat16"
_ALLOWED = {
    "values": ("<f4", "<f8", "<f2", BFLOAT16, "|i1", "|u1", "|b1"),
    "indices": _INTEGERS,
    "indptr": _INTEGERS,
    "labels": ("<f8", *_INTEGERS),
    "weights": ("<f8",),
}


@dataclass(frozen=True)
class ArrayFile:
    """One array of a store as the header describes it; opening compares this with the file.

    Attributes
    ----------
    path : Path
    dtype : dtype
        Little-endian, one of those that the array may have.
    shape : tuple of int
    crc32 : int
        `zlib.crc32` of the array's bytes, the header of the ``.npy`` file left out.
    """

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    crc32: int

    @property
    def n_bytes(self) -> int:
        """Size of the array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def offset(self) -> int:
        """The offset of the array in its file, after comparing the file's header and size with what they must be.

        Raises
        ------
        DataError
            The file is missing, truncated, longer than it must be, or holds another array.
        """
        refuse_special(self.path)
        try:
            with self.path.open("rb") as file:
                found = read_header(file)
                offset = file.tell()
                size = file.seek(0, 2)
        except FileNotFoundError:
            raise DataError(f"{self.path}: is missing: the store is damaged") from None
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        except DAMAGE:
            raise DataError(f"{self.path}: is damaged: it does not start as a .npy file does") from None
        by_column = found.fortran and len(found.shape) > 1
        if found.shape != self.shape or found.dtype != self.dtype or (by_column and math.prod(found.shape) > 1):
            actual = f"{found.dtype} of shape {short(found.shape)}{', column by column' if by_column else ''}"
            raise DataError(f"{self.path}: holds {actual}; {HEADER} says {self.dtype} of shape {self.shape}")
        if size != offset + self.n_bytes:
            what = "is truncated" if size < offset + self.n_bytes else "is damaged"
            raise DataError(f"{self.path}: {what}: it has {size} bytes; {offset + self.n_bytes} are needed")
        return offset

    def map(self) -> np.ndarray[Any, Any]:
        """The array, mapped read-only (one without entries cannot be mapped, and is a plain one).

        Raises
        ------
        DataError
            As :meth:`offset`, or the system does not map the file.
        """
        offset = self.offset()
        if not self.n_bytes:
            return np.empty(self.shape, dtype=self.dtype)
        try:
            return np.memmap(self.path, dtype=self.dtype, mode="r", offset=offset, shape=self.shape)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be mapped: {error.strerror or error}") from None


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The first 128 bytes of a ``.npy`` file (version 1.0): the same length whatever the shape, to be written again."""
    facts = f"{{'descr': {dtype_to_descr(dtype)!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    padding = _NPY_LENGTH - len(b"\x93NUMPY\x01\x00") - 2 - len(facts) - 1
    text = facts + " " * padding + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("ascii")


def read_store_header(folder: Path) -> dict[str, Any]:
    """Read and check ``store.json``.

    Raises
    ------
    DataError
        There is no such folder, it is not a store, or a store of a newer version.
    """
    if not folder.exists():
        raise DataError(f"{folder}: no such store")
    if not folder.is_dir():
        raise DataError(f"{folder}: is a file; a store is a folder with a {HEADER} (saddlesvm convert writes one)")
    if folder.name.endswith(PARTIAL):
        raise DataError(f"{folder}: is left from an interrupted conversion; convert again (it removes this folder)")
    path = folder / HEADER
    refuse_special(path)
    try:
        text = path.read_bytes()
        header = parsed_json(text, len(text))
    except FileNotFoundError:
        raise DataError(f"{folder}: is not a store: it has no {HEADER}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, MemoryError) as error:
        raise DataError(f"{path}: is damaged: it is not JSON ({error})") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT_NAME:
        raise DataError(f"{path}: is not the header of a store: it does not say {FORMAT_NAME!r}")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise DataError(f"{path}: is damaged: the version is {version!r}")
    if version > FORMAT_VERSION:
        allowed = f"this saddlesvm reads versions up to {FORMAT_VERSION}; install a newer one"
        raise DataError(f"{path}: is of a store of version {version}; {allowed}")
    return header


def expected_arrays(header: dict[str, Any], folder: Path) -> dict[str, ArrayFile]:
    """The arrays that a header promises, by name, after checking that header and arrays agree with each other.

    Raises
    ------
    DataError
        Something is missing from the header, or contradicts the rest; the message names it.
    """
    try:
        return _expected_arrays(header, folder)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        what = f"{error} is missing" if isinstance(error, KeyError) else "an entry is of the wrong kind"
        raise DataError(f"{folder / HEADER}: is damaged: {what}") from None


def _expected_arrays(header: dict[str, Any], folder: Path) -> dict[str, ArrayFile]:
    layout, (n, d), n_values = header["layout"], header["shape"], header["n_values"]
    if not all(type(size) is int and 0 < size < _MOST for size in (n, d)) or type(n_values) is not int:
        raise DataError(f"{folder / HEADER}: is damaged: the shape is {header['shape']!r} with {n_values!r} values")
    shapes: dict[str, tuple[int, ...]]
    if layout == "dense":
        shapes = {"values": (n, d)}
    elif layout == "csr":
        shapes = {"values": (n_values,), "indices": (n_values,), "indptr": (n + 1,)}
    else:
        raise DataError(f"{folder / HEADER}: the layout is {layout!r}; allowed are 'dense' and 'csr'")
    if (header["labels"] is None) != ("labels" not in header["arrays"]):
        raise DataError(f"{folder / HEADER}: is damaged: what it says of the labels contradicts itself")
    if header["labels"] is not None:
        _check_labels(header["labels"], folder)
        shapes["labels"] = (n,)
    _check_names(header, d, folder)
    _check_note(header.get(NOTE), d, folder)
    if "weights" in header["arrays"]:
        shapes["weights"] = (n,)
    arrays = {name: _array_of(name, header["arrays"][name], shape, folder) for name, shape in shapes.items()}
    _check_numbers(header["row_norms"], "smallest", "largest")
    kept = arrays["values"].dtype
    if layout == "csr" and kept not in FLOATS:
        raise DataError(
            f"{folder / HEADER}: sparse rows are of type {header['dtype']!r}; allowed are float32 and float64"
        )
    if type_name(kept) != header["dtype"] or n_values < 0 or (layout == "dense" and n_values != n * d):
        raise DataError(f"{folder / HEADER}: is damaged: dtype, shape and number of values contradict each other")
    return arrays


def _array_of(name: str, said: dict[str, Any], shape: tuple[int, ...], folder: Path) -> ArrayFile:
    if tuple(said["shape"]) != shape:
        raise DataError(f"{folder / HEADER}: is damaged: {name} has shape {said['shape']}; {list(shape)} is needed")
    if said["dtype"] not in _ALLOWED[name]:
        allowed = ", ".join(_ALLOWED[name])
        raise DataError(f"{folder / HEADER}: {name} is of type {said['dtype']!r}; allowed are {allowed}")
    dtype = bfloat16 if said["dtype"] == BFLOAT16 else np.dtype(said["dtype"])
    return ArrayFile(folder / f"{name}.npy", dtype, shape, int(said["crc32"], 16))


def code_of(dtype: np.dtype[Any]) -> str:
    """A type as the header writes it."""
    return BFLOAT16 if dtype == bfloat16 else dtype.str


def _check_labels(labels: dict[str, Any], folder: Path) -> None:
    kind, classes, counts = labels["kind"], labels["classes"], labels["counts"]
    if kind not in ("numbers", "text"):
        raise DataError(f"{folder / HEADER}: the kind of the labels is {kind!r}; allowed are 'numbers' and 'text'")
    wanted = (str,) if kind == "text" else (int, float)
    listed = isinstance(classes, list) and all(type(one) in wanted for one in classes)
    if listed and kind == "numbers" and not all(abs(one) <= sys.float_info.max for one in classes):
        raise DataError(f"{folder / HEADER}: is damaged: a class is not finite")
    counted = (
        isinstance(counts, list) and listed and len(counts) == len(classes) and all(type(n) is int for n in counts)
    )
    if not counted and (kind == "text" or classes is not None or counts is not None):
        raise DataError(f"{folder / HEADER}: is damaged: the classes are not {kind} with a count each")
    if kind == "numbers":
        _check_numbers(labels, "smallest", "largest")


def _check_names(header: dict[str, Any], width: int, folder: Path) -> None:
    """Names, and where the rows came from: they may be missing, and must not be something else."""
    names, sources = header.get("feature_names"), header.get("sources", [])
    if names is not None and (len(names) > width or not all(isinstance(name, str) for name in names)):
        raise DataError(f"{folder / HEADER}: is damaged: feature_names must be at most {width} texts")
    if not isinstance(header.get("label_name"), (str, type(None))):
        raise DataError(f"{folder / HEADER}: is damaged: label_name must be text")
    if not isinstance(header.get("n_nonzero"), (int, type(None))):
        raise DataError(f"{folder / HEADER}: is damaged: n_nonzero must be a number")
    for source in sources:
        plain = isinstance(source["path"], str) and isinstance(source["format"], str)
        if not plain or any(type(source[name]) is not int for name in ("rows", "bytes")):
            raise DataError(f"{folder / HEADER}: is damaged: a source is not described correctly")


def _check_note(noted: Any, width: int, folder: Path) -> None:
    """The note on missing values: it may be left out, and must not be something else."""
    if noted is None:
        return
    fine = isinstance(noted, dict) and noted.get("how") in ("drop", "mean") and type(noted.get("count")) is int
    values = noted.get("values") if fine else None
    if not isinstance(values, list) or len(values) not in (0, width):
        raise DataError(f"{folder / HEADER}: is damaged: the field {NOTE!r} is not described correctly")
    _check_numbers(dict(enumerate(values)), *range(len(values)))


def _check_numbers(said: dict[Any, Any], *names: Any) -> None:
    """Raise TypeError for a value that is no number."""
    if any(type(said[name]) not in (int, float) or not abs(said[name]) <= sys.float_info.max for name in names):
        raise TypeError
