"""The format of a store: its files, the contents of ``store.json``, and the checks on both.

A store is a folder of plain ``.npy`` files and ``store.json``. ``docs/reference/store-format.md``
describes it for other programs. Opening a store compares the header with the beginning and the size
of every file, and reads no values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.archives import DAMAGE, check_format, is_finite, matches, shorten_text
from saddlesvm.data.column_positions import check_names
from saddlesvm.data.errors import DataError, refuse_special
from saddlesvm.rows.small_types import FLOATS, SMALL, bfloat16, type_name

FORMAT_NAME = "saddlesvm-store"
FORMAT_VERSION = 1
HEADER = "store.json"
PARTIAL = ".partial"  # the end of the names of folders that are being written

LAYOUT_WORDS = {"dense": "dense rows", "csr": "sparse rows"}
MOST_ROWS = 2**62  # rows or features: what the indices of any machine can count
# The types that arrays may have. bfloat16 is a record of sixteen bits, whose order is known.
SPARSE_VALUES = tuple(dtype.newbyteorder("<") for dtype in FLOATS)
DENSE_VALUES = (
    *SPARSE_VALUES,
    *(dtype if dtype == bfloat16 else dtype.newbyteorder("<") for dtype in SMALL),
)
INTEGERS = (np.dtype("<i4"), np.dtype("<i8"))
FLOAT64 = np.dtype("<f8")
# Numbers are stored as they are, texts as the numbers of their classes.
LABEL_TYPES = {"numbers": (FLOAT64, INTEGERS[1]), "text": INTEGERS[:1]}


def is_size(value: Any) -> bool:
    """Return True for a number of rows or features."""
    return type(value) is int and 0 < value < MOST_ROWS


# The fields of a header, as :func:`matches` compares them.
NUMBERS = {
    "kind": "numbers",
    "smallest": is_finite,
    "largest": is_finite,
    "classes": (None, [is_finite]),
    "counts": (None, [int]),
}
TEXTS = {"kind": "text", "classes": [str], "counts": [int]}
FIELDS = {
    "layout": ("dense", "csr"),
    "shape": [is_size],
    "n_values": lambda value: type(value) is int and value >= 0,
    "n_nonzero": (None, int),
    "labels": (None, NUMBERS, TEXTS),
    "weights": bool,
    "feature_names": (None, [str]),
    "label_name": (None, str),
    "sources": (None, [{"path": str, "format": str, "rows": int, "bytes": int}]),
}


def map_array(path: Path, allowed: Sequence[np.dtype], shape: tuple[int, ...]) -> np.memmap:
    """Map a ``.npy`` file read-only, if it holds what a store needs.

    Raises
    ------
    DataError
        The file is missing, truncated, longer than it must be, or holds another array.
    """
    refuse_special(path)
    try:
        array: Any = np.lib.format.open_memmap(path, mode="r")
        n_further = path.stat().st_size - array.offset - array.nbytes
    except FileNotFoundError:
        raise DataError(f"{path}: is missing: the store is damaged") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be mapped: {error.strerror or error}") from None
    except DAMAGE as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: is damaged or truncated: {reason}") from None
    # An array column by column would be read as its transpose.
    is_by_column = not array.flags.c_contiguous
    if array.dtype not in allowed or array.shape != shape or is_by_column:
        order = ", column by column" if is_by_column else ""
        needed = " or ".join(map(type_name, allowed))
        raise DataError(
            f"{path}: holds {type_name(array.dtype)} of shape {shorten_text(array.shape)}{order}; "
            f"{needed} of shape {shape} is needed"
        )
    if n_further:
        raise DataError(f"{path}: is damaged: it has {n_further} bytes after its array")
    return array


def read_store_header(folder: Path) -> dict[str, Any]:
    """Read ``store.json``, and check that it is the header of a store.

    Raises
    ------
    DataError
        There is no such folder, it is not a store, or a store of a newer version; or a field of the
        header is missing or contradicts the rest.
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
    path = folder / HEADER
    refuse_special(path)
    try:
        header = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{folder}: is not a store: it has no {HEADER}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except DAMAGE as error:
        raise DataError(f"{path}: is damaged: it is not JSON ({error})") from None
    check_format(header, path, "header of a store", FORMAT_NAME, FORMAT_VERSION)
    found: dict[str, Any] = header
    if "labels" not in found:
        raise DataError(f"{path}: is damaged: 'labels' is missing")
    for name, pattern in FIELDS.items():
        if not matches(found.get(name), pattern):
            raise DataError(f"{path}: is damaged: its {name} is {shorten_text(found.get(name))}")
    if len(found["shape"]) != 2 or len(found.get("feature_names") or ()) > found["shape"][1]:
        raise DataError(f"{path}: is damaged: its shape is {shorten_text(found['shape'])}")
    labels = found["labels"] or {"classes": None}
    classes = labels.get("classes")
    if "classes" not in labels:
        raise DataError(f"{path}: is damaged: the classes of its labels are missing")
    if classes is not None:
        counts = labels.get("counts") or ()
        if len(counts) != len(classes) or len({*classes}) != len(classes):
            raise DataError(f"{path}: is damaged: the labels do not have a count for each class")
    return found


def map_arrays(header: dict[str, Any], folder: Path) -> dict[str, np.memmap]:
    """Map the arrays that a header promises, by name.

    Raises
    ------
    DataError
        An array is missing, not as the header says, or one more than the header says.
    """
    n, d = header["shape"]
    n_values = header["n_values"]
    expected: dict[str, tuple[Sequence[np.dtype], tuple[int, ...]]]
    expected = {"values": (DENSE_VALUES, (n, d))}
    if header["layout"] == "csr":
        expected = {
            "values": (SPARSE_VALUES, (n_values,)),
            "indices": (INTEGERS, (n_values,)),
            "indptr": (INTEGERS, (n + 1,)),
        }
    if header["labels"] is not None:
        expected["labels"] = (LABEL_TYPES[header["labels"]["kind"]], (n,))
    if header["weights"]:
        expected["weights"] = ((FLOAT64,), (n,))
    for name in ("labels", "weights"):
        if name not in expected and (folder / f"{name}.npy").exists():
            raise DataError(
                f"{folder / HEADER}: is damaged: it says that there are no {name}, "
                f"but there is {name}.npy"
            )
    return {
        name: map_array(folder / f"{name}.npy", allowed, shape)
        for name, (allowed, shape) in expected.items()
    }


def check_alike(headers: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """Raise a `DataError` for rows that cannot be put into one matrix, by what headers say of them.

    Parameters
    ----------
    headers : sequence of dict
        With layout, shape, labels, weights, feature_names and label_name, as in ``store.json``.
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
        label_names = (other.get("label_name"), first.get("label_name"))
        if None not in label_names and label_names[0] != label_names[1]:
            raise DataError(
                f"{name}: the labels are from the column {label_names[0]!r}; those of {names[0]} "
                f"are from {label_names[1]!r}: name the column with label (--label)"
            )
