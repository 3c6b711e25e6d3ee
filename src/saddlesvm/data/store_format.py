"""The format of a store: its files, the contents of ``store.json``, and the checks on both.

A store is a folder of plain ``.npy`` files and ``store.json``. ``docs/reference/store-format.md``
describes it for other programs. Opening a store compares the header with the beginning and the size
of every file, and reads no values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from saddlesvm.data.archives import (
    DAMAGE,
    check_format,
    fits,
    is_finite,
    parse_json,
    read_header,
    shorten_text,
)
from saddlesvm.data.column_positions import check_names
from saddlesvm.data.errors import DataError, refuse_special
from saddlesvm.rows.small_types import FLOATS, SMALL, bfloat16, type_name

FORMAT_NAME = "saddlesvm-store"
FORMAT_VERSION = 1
HEADER = "store.json"
PARTIAL = ".partial"  # the end of the names of folders that are being written

LAYOUT_WORDS = {"dense": "dense rows", "csr": "sparse rows"}
MOST_ROWS = 2**62  # rows or features: what the indices of any machine can count
INTEGERS = (np.dtype("<i4"), np.dtype("<i8"))
FLOAT64 = np.dtype("<f8")
# The fields of a header, as :func:`fits` compares them.
NUMBERS = {
    "kind": "numbers",
    "smallest": is_finite,
    "largest": is_finite,
    "classes": (None, [is_finite]),
    "counts": (None, [int]),
}
TEXTS = {"kind": "text", "classes": [str], "counts": [int]}
FIELDS = {
    "layout": str,
    "shape": [int],
    "dtype": str,
    "n_values": int,
    "n_nonzero": (None, int),
    "labels": (None, NUMBERS, TEXTS),
    "weights": bool,
    "feature_names": (None, [str]),
    "label_name": (None, str),
    "missing values": (None, str),
    "sources": (None, [{"path": str, "format": str, "rows": int, "bytes": int}]),
}
# The types that an array may have, and its shape.
Expected: TypeAlias = tuple[tuple[np.dtype, ...], tuple[int, ...]]


@dataclass(frozen=True)
class StoredArray:
    """An array of a store, whose file was compared with what the header says.

    Attributes
    ----------
    path : Path
    dtype : dtype
    shape : tuple of int
    offset : int
        Bytes of the file before the values.
    """

    path: Path
    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int

    @property
    def n_bytes(self) -> int:
        """Size of the values in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def map(self) -> np.ndarray:
        """Map the array read-only; an empty array cannot be mapped, and is made in memory.

        Raises
        ------
        DataError
            The file was changed since the store was opened, or the system does not map it.
        """
        # Check again: reading beyond the end of a mapped file kills the process.
        open_array(self.path, (self.dtype,), self.shape)
        if not self.n_bytes:
            return np.empty(self.shape, dtype=self.dtype)
        try:
            return np.memmap(
                self.path, dtype=self.dtype, mode="r", offset=self.offset, shape=self.shape
            )
        except OSError as error:
            raise DataError(f"{self.path}: cannot be mapped: {error.strerror or error}") from None


def open_array(path: Path, allowed: tuple[np.dtype, ...], shape: tuple[int, ...]) -> StoredArray:
    """Compare the beginning and the size of a ``.npy`` file with what a store needs, and return it.

    Raises
    ------
    DataError
        The file is missing, truncated, longer than it must be, or holds another array.
    """
    refuse_special(path)
    try:
        with path.open("rb") as file:
            header = read_header(file)
            offset = file.tell()
            size = file.seek(0, 2)
    except FileNotFoundError:
        raise DataError(f"{path}: is missing: the store is damaged") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except DAMAGE:
        raise DataError(f"{path}: is damaged: it does not start as a .npy file does") from None
    # An array column by column would be mapped as its transpose.
    is_by_column = header.fortran and len(header.shape) > 1 and math.prod(header.shape) > 1
    dtype = next((candidate for candidate in allowed if candidate == header.dtype), None)
    if dtype is None or header.shape != shape or is_by_column:
        order = ", column by column" if is_by_column else ""
        needed = " or ".join(map(type_name, allowed))
        raise DataError(
            f"{path}: holds {header.dtype} of shape {shorten_text(header.shape)}{order}; "
            f"{HEADER} says {needed} of shape {shape}"
        )
    n_needed = offset + header.n_bytes
    if size != n_needed:
        fault = "is damaged"
        if size < n_needed:
            fault = "is truncated"
        raise DataError(f"{path}: {fault}: it has {size} bytes; {n_needed} are needed")
    return StoredArray(path, dtype, shape, offset)


def read_store_header(folder: Path) -> dict[str, Any]:
    """Read ``store.json``, and check that it is the header of a store.

    Raises
    ------
    DataError
        There is no such folder, it is not a store, or a store of a newer version.
    """
    if not folder.exists():
        raise DataError(f"{folder}: no such store")
    if not folder.is_dir():
        raise DataError(
            f"{folder}: is a file; a store is a folder with a {HEADER} "
            "(saddlesvm convert makes stores)"
        )
    if folder.name.endswith(PARTIAL):
        raise DataError(
            f"{folder}: is left over from an interrupted conversion; remove it, and convert again"
        )
    # The header is text from a stranger: bound what it may take before it is parsed.
    path = folder / HEADER
    refuse_special(path)
    try:
        text = path.read_bytes()
        header = parse_json(text, len(text))
    except FileNotFoundError:
        raise DataError(f"{folder}: is not a store: it has no {HEADER}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, MemoryError) as error:
        raise DataError(f"{path}: is damaged: it is not JSON ({error})") from None
    check_format(header, path, "header of a store", FORMAT_NAME, FORMAT_VERSION)
    found: dict[str, Any] = header
    return found


def open_arrays(header: dict[str, Any], folder: Path) -> dict[str, StoredArray]:
    """Check the header, and open the arrays that it promises, by name.

    Raises
    ------
    DataError
        Something is missing from the header, contradicts the rest, or differs from the files; the
        message names it.
    """
    try:
        expected = _check_header(header)
    except DataError as error:
        raise DataError(f"{folder / HEADER}: {error}") from None
    for name in ("labels", "weights"):
        if name not in expected and (folder / f"{name}.npy").exists():
            raise DataError(
                f"{folder / HEADER}: is damaged: it says that there are no {name}, "
                f"but there is {name}.npy"
            )
    return {
        name: open_array(folder / f"{name}.npy", allowed, shape)
        for name, (allowed, shape) in expected.items()
    }


def _check_header(header: dict[str, Any]) -> dict[str, Expected]:
    """Check that a header agrees with itself, and return what each array must be."""
    if "labels" not in header:
        raise DataError("is damaged: 'labels' is missing")
    for name, pattern in FIELDS.items():
        if not fits(header.get(name), pattern):
            raise DataError(f"is damaged: its {name} is {shorten_text(header.get(name))}")
    # The header may be anybody's: its numbers must agree before one of them is used.
    layout = header["layout"]
    n_values = header["n_values"]
    labels = header["labels"]
    if layout not in ("dense", "csr"):
        raise DataError(f"the layout is {layout!r}; allowed are 'dense' and 'csr'")
    if len(header["shape"]) != 2 or not all(0 < size < MOST_ROWS for size in header["shape"]):
        raise DataError(f"is damaged: its shape is {shorten_text(header['shape'])}")
    n, d = header["shape"]
    if n_values < 0 or (layout == "dense" and n_values != n * d):
        raise DataError("is damaged: the shape and the number of values contradict each other")
    if labels is not None and labels["classes"] is not None:
        classes = labels["classes"]
        if len(labels["counts"] or ()) != len(classes) or len({*classes}) != len(classes):
            raise DataError("is damaged: the labels do not have a count for each class")
    if len(header.get("feature_names") or ()) > d:
        raise DataError(f"is damaged: feature_names must be at most {d} texts")

    # The types and shapes of the arrays.
    dtype = _value_type(header["dtype"])
    expected: dict[str, Expected] = {"values": ((dtype,), (n, d))}
    if layout == "csr":
        if dtype not in FLOATS:
            raise DataError(f"sparse rows are of type {dtype}; allowed are float32 and float64")
        expected = {
            "values": ((dtype,), (n_values,)),
            "indices": (INTEGERS, (n_values,)),
            "indptr": (INTEGERS, (n + 1,)),
        }
    if labels is not None:
        # Numbers are stored as they are, texts as the numbers of their classes.
        label_types: tuple[np.dtype, ...] = (FLOAT64, INTEGERS[1])
        if labels["kind"] == "text":
            label_types = INTEGERS[:1]
        expected["labels"] = (label_types, (n,))
    if header["weights"]:
        expected["weights"] = ((FLOAT64,), (n,))
    return expected


def _value_type(name: str) -> np.dtype:
    """Return the type of the values that a header names."""
    allowed = {type_name(dtype): dtype for dtype in (*FLOATS, *SMALL)}
    if name not in allowed:
        raise DataError(
            f"the type of the values is {shorten_text(name)}; allowed are {', '.join(allowed)}"
        )
    # bfloat16 is a record of sixteen bits, which has an order of bytes already.
    if allowed[name] == bfloat16:
        return bfloat16
    return allowed[name].newbyteorder("<")


def check_alike(headers: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """Raise a `DataError` for rows that cannot be put into one matrix, by what headers say of them.

    Parameters
    ----------
    headers : sequence of dict
        With layout, shape, labels, weights and feature_names, as in ``store.json``.
    names : sequence of str
        What the headers describe, in messages.
    """
    first = headers[0]
    for other, name in zip(headers[1:], names[1:], strict=True):
        if other["layout"] != first["layout"]:
            raise DataError(
                f"{name}: holds {LAYOUT_WORDS[other['layout']]}; "
                f"{names[0]} holds {LAYOUT_WORDS[first['layout']]}"
            )
        # Sparse rows may differ in width: a column that is missing is 0.
        width = other["shape"][1]
        if other["layout"] == "dense" and width != first["shape"][1]:
            raise DataError(f"{name}: has {width} features; {names[0]} has {first['shape'][1]}")
        for part in ("labels", "weights"):
            if bool(other[part]) != bool(first[part]):
                raise DataError(f"{name} and {names[0]}: one has {part} and the other has none")
        check_names(name, other.get("feature_names"), names[0], first.get("feature_names"))
