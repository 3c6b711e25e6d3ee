"""NumPy `.npz` archives: dense X and y, a saved CSR matrix and y, or images and their labels."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.blocks import Block, Source, rows_in
from saddlesvm.data.errors import DataError
from saddlesvm.data.streams import is_compressed, reading
from saddlesvm.data.table import Label, Raw, float_type, shorten

__all__ = ["npz_source", "read_npz"]

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
    _refuse_unreadable(path, label)
    with _opened(path) as archive:
        return _from_arrays(archive, path, label, n_features)


def _refuse_unreadable(path: Path, label: Label) -> None:
    if is_compressed(path):
        raise DataError(f"{path}: is a compressed .npz; decompress it first (an .npz is a zip file already)")
    if isinstance(label, int) and label is not False:
        raise DataError(f"{path}: label={label!r}; the labels of an .npz are chosen by the name of their array")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with reading(path):
        try:
            # opened here, because numpy leaves the file open when it finds the archive damaged
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                yield archive
        except DataError:
            raise
        except (ValueError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile) as error:
            raise DataError(f"{path}: is not a readable .npz of plain arrays: {error}") from None


def _from_arrays(archive: Any, path: Path, label: Label, n_features: int | None) -> Raw:
    rows, found = _chosen(list(archive.keys()), path, label, n_features)
    X = _sparse(archive, path) if rows is None else archive[rows]
    _check_shape(path, str(rows), X.shape)
    if X.ndim > 2:
        X = X.reshape(len(X), -1) if len(X) else X.reshape(0, int(np.prod(X.shape[1:])))
    return Raw(X, None if found is None else archive[found])


def _check_shape(path: Path, rows: str, shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        raise DataError(f"{path}: the array {rows!r} has shape {shape}; rows and columns are needed")


def _chosen(names: list[str], path: Path, label: Label, n_features: int | None) -> tuple[str | None, str | None]:
    """The names of the rows (None for a sparse matrix) and of the labels (None for none)."""
    rows = None if set(_CSR) <= set(names) else next((name for name in _DENSE if name in names), None)
    if rows is None and not set(_CSR) <= set(names):
        needed = f"one of {', '.join(_DENSE)}, or {', '.join(_CSR)} of a CSR matrix"
        raise DataError(f"{path}: holds no rows: its arrays are {shorten(names)}; needed is {needed}")
    wanted = (label,) if isinstance(label, str) else _LABELS
    found = None if label is False else next((name for name in wanted if name in names), None)
    if found is None and label is not False and (label is not None or n_features is None):
        needed = " or ".join(str(name) for name in wanted)
        raise DataError(f"{path}: holds no labels: its arrays are {shorten(names)}; needed is {needed}")
    return rows, found


def npz_source(path: Path, *, label: Label = None, n_features: int | None = None) -> Source:
    """The rows of a `.npz` archive some at a time; see :func:`read_npz`.

    Labels, row pointers, and what is stored column by column, are read at once.
    """
    _refuse_unreadable(path, label)
    with _opened(path) as archive:
        rows, found = _chosen(archive.files, path, label, n_features)
        y = None if found is None else archive[found]
        streams = rows is not None and not _Member.header_of(archive, rows).fortran
        csr = rows is None and _layout_of(archive) == "csr"
        shape = _Member.header_of(archive, rows).shape if rows else tuple(int(size) for size in archive["shape"])
        dtype = _Member.header_of(archive, rows or "data").dtype
    _check_shape(path, str(rows), shape)
    if dtype.kind not in "biuf":
        raise DataError(f"{path}: the features are of type {dtype}; they must be real numbers")
    if y is not None and y.shape not in ((shape[0],), (shape[0], 1)):
        raise DataError(f"{path}: has {shape[0]} rows and labels of shape {y.shape}; one label a row is needed")

    def blocks(n_bytes: int) -> Iterator[Block]:
        with _opened(path) as archive:
            parts = (
                _dense_parts(archive, str(rows), n_bytes) if streams
                else _csr_parts(archive, n_bytes) if csr
                else _parts(read_npz(path, label=label, n_features=n_features).X, n_bytes)
            )  # fmt: skip
            start = 0
            for X in parts:
                stop = start + X.shape[0]
                yield Block(X, None if y is None else y[start:stop].ravel(), None, stop / shape[0])
                start = stop

    return Source(
        str(path),
        "npz",
        sparse=rows is None,
        width=math.prod(shape[1:]),
        dtype=float_type(dtype),
        has_labels=y is not None,
        n_bytes=path.stat().st_size,
        blocks=blocks,
    )


class _Member:
    """An array of an archive that is read from its beginning to its end, some entries at a time."""

    def __init__(self, archive: Any, name: str) -> None:
        self.file = archive.zip.open(f"{name}.npy")
        version = np.lib.format.read_magic(self.file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, fortran, self.dtype = read(self.file)
        self.fortran = fortran and len(self.shape) > 1

    @classmethod
    def header_of(cls, archive: Any, name: str) -> _Member:
        """Shape and type of an array, without reading it."""
        member = cls(archive, name)
        member.file.close()
        return member

    def take(self, count: int) -> np.ndarray[Any, Any]:
        """The next `count` entries."""
        data = self.file.read(count * self.dtype.itemsize)
        if len(data) != count * self.dtype.itemsize:
            raise ValueError("an array ends before its header says")
        return np.frombuffer(data, dtype=self.dtype)


def _dense_parts(archive: Any, name: str, n_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
    member = _Member(archive, name)
    n, width = member.shape[0], math.prod(member.shape[1:])
    step = rows_in(n_bytes, 8 * width)
    for start in range(0, n, step):
        count = min(step, n - start)
        yield member.take(count * width).reshape(count, width)


def _csr_parts(archive: Any, n_bytes: int) -> Iterator[sp.csr_matrix]:
    indptr, (n, d) = archive["indptr"], archive["shape"]
    data, indices = _Member(archive, "data"), _Member(archive, "indices")
    if indptr.shape != (n + 1,) or indptr[0] != 0 or (np.diff(indptr) < 0).any() or data.shape != indices.shape:
        raise ValueError("the parts of the CSR matrix do not fit together")
    start = 0
    while start < n:
        stop = int(np.searchsorted(indptr, indptr[start] + n_bytes // 16, side="right")) - 1
        stop = min(max(stop, start + 1), int(n))
        count = int(indptr[stop] - indptr[start])
        values, columns = data.take(count), indices.take(count)
        if count and not 0 <= columns.min() <= columns.max() < d:
            raise ValueError(f"column indices of the CSR matrix must be from 0 to {d - 1}")
        yield sp.csr_matrix((values, columns, indptr[start : stop + 1] - indptr[start]), shape=(stop - start, int(d)))
        start = stop


def _parts(X: Any, n_bytes: int) -> Iterator[Any]:
    X = X.tocsr() if sp.issparse(X) else X
    step = rows_in(n_bytes, 16 * (X.nnz if sp.issparse(X) else X.size) / max(X.shape[0], 1))
    for start in range(0, X.shape[0], step):
        yield X[start : start + step]


def _sparse(archive: Any, path: Path) -> Any:
    layout = _layout_of(archive)
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


def _layout_of(archive: Any) -> str:
    layout = archive["format"].item() if "format" in archive else "csr"
    return layout.decode("ascii", errors="replace") if isinstance(layout, bytes) else str(layout)
