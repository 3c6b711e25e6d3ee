"""NumPy `.npz` archives: dense X and y, a saved CSR matrix and y, or images and their labels."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.errors import DataError
from saddlesvm.data.streams import is_compressed, reading
from saddlesvm.data.table import Label, Raw, shorten

__all__ = ["read_npz"]

_CSR = ("data", "indices", "indptr", "shape")
_DENSE = ("X", "x", "data", "images")
_LABELS = ("y", "label", "labels", "target")


def read_npz(path: Path, *, label: Label = None, n_features: int | None = None) -> Raw:
    """Read a `.npz` archive without unpickling anything.

    The rows are either `data`, `indices`, `indptr` and `shape` (CSR, as `scipy.sparse.save_npz` writes it; CSC too), or
    the first that is there of `X`, `x`, `data`, `images`; rows of more than one dimension are flattened. The labels
    are the first of `y`, `label`, `labels`, `target`, or the array named by `label`. Other arrays are not looked at.

    Raises
    ------
    DataError
        The archive is damaged or has no such arrays; the message lists those it has.
    """
    if is_compressed(path):
        raise DataError(f"{path}: is a compressed .npz; decompress it first (an .npz is a zip file already)")
    if isinstance(label, int) and label is not False:
        raise DataError(f"{path}: label={label!r}; the labels of an .npz are chosen by the name of their array")
    with reading(path):
        try:
            # opened here, because numpy leaves the file open when it finds the archive damaged
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                return _from_arrays(archive, path, label, n_features)
        except DataError:
            raise
        except (ValueError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile) as error:
            raise DataError(f"{path}: is not a readable .npz of plain arrays: {error}") from None


def _from_arrays(archive: Any, path: Path, label: Label, n_features: int | None) -> Raw:
    names = list(archive.keys())
    rows = None if set(_CSR) <= set(names) else next((name for name in _DENSE if name in names), None)
    if rows is None and not set(_CSR) <= set(names):
        needed = f"one of {', '.join(_DENSE)}, or {', '.join(_CSR)} of a CSR matrix"
        raise DataError(f"{path}: holds no rows: its arrays are {shorten(names)}; needed is {needed}")
    wanted = (label,) if isinstance(label, str) else _LABELS
    found = None if label is False else next((name for name in wanted if name in names), None)
    if found is None and label is not False and (label is not None or n_features is None):
        needed = " or ".join(str(name) for name in wanted)
        raise DataError(f"{path}: holds no labels: its arrays are {shorten(names)}; needed is {needed}")
    X = _sparse(archive, path) if rows is None else archive[rows]
    if X.ndim < 2:
        raise DataError(f"{path}: the array {rows!r} has shape {X.shape}; rows and columns are needed")
    if X.ndim > 2:
        X = X.reshape(len(X), -1) if len(X) else X.reshape(0, int(np.prod(X.shape[1:])))
    return Raw(X, None if found is None else archive[found])


def _sparse(archive: Any, path: Path) -> Any:
    layout = archive["format"].item() if "format" in archive else "csr"
    layout = layout.decode("ascii", errors="replace") if isinstance(layout, bytes) else str(layout)
    kinds = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
    if layout not in kinds:
        raise DataError(f"{path}: is a sparse matrix in the format {layout!r}; allowed are csr and csc")
    parts = tuple(archive[name] for name in _CSR[:3])
    try:
        matrix = kinds[layout](parts, shape=tuple(int(size) for size in archive["shape"]))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: is not a valid {layout.upper()} matrix: {error}") from None
    return matrix
