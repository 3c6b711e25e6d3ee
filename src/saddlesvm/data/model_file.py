"""The file of a saved model: a zip of ``model.json`` and a ``NAME.npy`` for each array.

`numpy.load` opens it, too. Nothing in it is ever executed. The header is::

    {
        "format": "saddlesvm-model",
        "version": 1,
        "kind": "LinearSVC",
        "arrays": ["coef", ...],
        "meta": {...},
    }

Its version grows if an old reader can no longer make sense of a new file.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.archives import (
    DAMAGE,
    LONGEST_FAULT,
    Archive,
    check_format,
    matches,
    open_archive,
    shorten_text,
)
from saddlesvm.data.errors import DataError, atomic_write, refuse_special

FORMAT_NAME = "saddlesvm-model"
FORMAT_VERSION = 1

_HEADER = "model.json"
_KINDS = "biufcUS"  # NumPy's kinds of numbers, bools and text
# Bytes of memory for each byte of a model file, beyond 16 MB; a guess, since most weights may be 0.
_EXPANSION = 100
_FIRST_BYTES = b"PK\x03\x04"  # of a zip file
_NAME_OFFSET = 30  # bytes of a zip file before the name of its first member
# Bytes; larger arrays are stored unpacked, which no limit on expansion refuses.
_STORED_BYTES = 1 << 20
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)  # of all members: the same model gives the same bytes


def save_model(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, Any],
    meta: Mapping[str, object] | None = None,
) -> None:
    """Save a model; the same model always gives the same bytes.

    Parameters
    ----------
    path : str or path
        Replaced only when the new file is complete and on disk.
    kind : str
        What the arrays make up, such as "LinearSVC".
    arrays : mapping of str to ndarray
        Numbers, bools and text. An object array of str is stored as text; other objects are
        refused.
    meta : mapping, optional
        What JSON can hold: None, bool, numbers (infinity and NaN too), str, lists and dicts with
        str keys. NumPy scalars become plain numbers.

    Raises
    ------
    DataError
        An array or a value that cannot be stored, or a path that cannot be written; an old file of
        this name stays as it is.
    """
    where = os.fspath(path)
    refuse_special(path)
    plain = {name: _plain_array(name, array, where) for name, array in arrays.items()}
    header = {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "kind": kind,
        "arrays": list(plain),
        "meta": dict(meta or {}),
    }
    try:
        text = json.dumps(header, indent=1, default=_plain_number)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: the model's metadata cannot be saved: {error}") from None
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_entry(_HEADER), text)
        for name, array in plain.items():
            entry = _entry(f"{name}.npy", is_packed=array.nbytes < _STORED_BYTES)
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load_model(
    path: str | os.PathLike[str],
) -> tuple[str, dict[str, np.ndarray], dict[str, Any]]:
    """Load a model saved by `save_model`.

    Returns
    -------
    kind : str
    arrays : dict of str to ndarray
    meta : dict

    Raises
    ------
    DataError
        There is no such file, or it is damaged, not a saddlesvm model, or of a newer version.
    """
    where = os.fspath(path)
    refuse_special(path)
    if not Path(path).is_file():
        raise DataError(f"{where}: no such file; a saved model is needed")
    if not zipfile.is_zipfile(path):
        raise DataError(f"{where}: is not a saved saddlesvm model, or is truncated")
    try:
        with open_archive(Path(path), _EXPANSION) as archive:
            header = _read_header(archive, where)
            arrays = {name: archive.read(name) for name in header["arrays"]}
            for name, array in arrays.items():
                if array.dtype.kind not in _KINDS:
                    raise ValueError(f"its array {name!r} holds neither numbers nor text")
    except DataError:
        raise
    except DAMAGE as error:
        fault = shorten_text(str(error), LONGEST_FAULT)
        raise DataError(f"{where}: is a damaged model file: {fault}") from None
    return header["kind"], arrays, header["meta"]


def is_model(path: str | os.PathLike[str]) -> bool:
    """Return True if a file looks as if `save_model` wrote it (it may still be damaged)."""
    if not Path(path).is_file():
        return False
    with open(path, "rb") as file:
        start = file.read(_NAME_OFFSET + len(_HEADER))
    # The header is the first member.
    return start.startswith(_FIRST_BYTES) and start[_NAME_OFFSET:] == _HEADER.encode()


def _entry(name: str, is_packed: bool = True) -> zipfile.ZipInfo:
    """Return the entry of a member in the directory, with the same date for all."""
    entry = zipfile.ZipInfo(name, date_time=_FIXED_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED
    entry.external_attr = 0o644 << 16
    return entry


def _plain_array(name: str, array: np.ndarray, where: str) -> np.ndarray:
    """Return an array of numbers, bools or text, or raise a `DataError`."""
    array = np.asarray(array)
    if array.dtype == object and all(isinstance(item, str) for item in array.flat):
        array = array.astype(str)
    if array.dtype.kind not in _KINDS:
        raise DataError(
            f"{where}: the array {name!r} is of type {array.dtype}; "
            "numbers, bools and text are allowed"
        )
    return array


def _plain_number(value: object) -> object:
    """Return a NumPy scalar as a number that JSON can hold."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is of type {type(value).__name__}, which JSON cannot hold")


def _read_header(archive: Archive, where: str) -> dict[str, Any]:
    """Read the header, and compare it with the arrays of the file."""
    if _HEADER not in archive.zip.namelist():
        raise DataError(f"{where}: is not a saved saddlesvm model: it has no {_HEADER}")
    header = archive.json(_HEADER)
    check_format(header, where, "saved saddlesvm model", FORMAT_NAME, FORMAT_VERSION)
    if not matches(header, {"kind": str, "arrays": [str], "meta": dict}):
        raise ValueError(f"kind, arrays or meta is missing from its {_HEADER}")
    differing = sorted({*header["arrays"]} ^ {*archive.names})
    if differing:
        odd = shorten_text(repr(differing[0]))
        raise ValueError(f"{_HEADER} and its arrays differ, in {odd}")
    return header
