"""Read NumPy's ``.npz`` archives and ``.npy`` arrays.

An archive holds dense X and y, a saved CSR or CSC matrix and y, or images and their labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.archives import (
    DAMAGE,
    Archive,
    ArrayHeader,
    open_archive,
    read_header,
    shorten_text,
)
from saddlesvm.data.blocks import Block, ReadOptions, Source, label_parts, rows_in
from saddlesvm.data.data_table import Label, float_type, shorten, stored_type
from saddlesvm.data.errors import DataError
from saddlesvm.data.streams import is_compressed, reading
from saddlesvm.rows.small_types import kept_type

# Bytes of memory for each byte of a compressed file, beyond 16 MB; a guess. A conversion reads some
# rows at a time, and has no limit.
EXPANSION = 200
_CSR = ("data", "indices", "indptr", "shape")  # names of arrays of `scipy.sparse.save_npz`
_DENSE = ("X", "x", "data", "images")
_LABELS = ("y", "label", "labels", "target")
_VALUE_BYTES = 8  # bytes of a dense value in memory
_ENTRY_BYTES = 16  # bytes of a value and its column, and of a value read and cast


def read_npz(path: Path, how: ReadOptions) -> Block:
    """Read a `.npz` archive without unpickling anything.

    The rows are either `data`, `indices`, `indptr` and `shape` (CSR, as `scipy.sparse.save_npz`
    writes it; CSC too), or the first array found of `X`, `x`, `data`, `images`; rows of more than a
    single dimension are flattened. The labels are the first of `y`, `label`, `labels`, `target`, or
    the array named by `label`. Other arrays are ignored.

    Raises
    ------
    DataError
        The archive is damaged or has no such arrays; the message lists the arrays it has.
    """
    _refuse_unreadable(path, how.label)
    with _open_npz(path) as archive:
        rows, labels = _choose_arrays(archive.names, path, how.label, how.n_features)
        X = _read_sparse(archive, path) if rows is None else archive.read(rows)
        _check_shape(path, str(rows), X.shape)
        # Flatten images; -1 cannot stand for their size if there are none.
        if X.ndim > 2:
            X = X.reshape(len(X), math.prod(X.shape[1:]))
        return Block(X, None if labels is None else archive.read(labels))


def read_npy(path: Path, how: ReadOptions) -> Block:
    """Map the rows of a `.npy` file, and the labels in another file, which `label` names.

    Raises
    ------
    DataError
        A file is damaged, holds objects, or no rows; no file of labels is named, but labels are
        needed.
    """
    X = _map_npy(path)
    _check_shape(path, path.name, X.shape)
    X = X.reshape(len(X), -1) if X.ndim > 2 else X
    if how.label is False or (how.label is None and how.n_features is not None):
        return Block(X, None)
    if not isinstance(how.label, str):
        raise DataError(
            f"{path}: holds rows without labels; name the .npy file that holds them: label='y.npy'"
        )
    return Block(X, np.asarray(_map_npy(Path(how.label))))


def npy_source(path: Path, how: ReadOptions) -> Source:
    """Return the rows of a `.npy` file, mapped, as a source; see :func:`read_npy`."""
    mapped = read_npy(path, how)
    if mapped.X.dtype.kind not in "biuf":
        raise DataError(
            f"{path}: the features are of type {mapped.X.dtype}; they must be real numbers"
        )
    # Check the labels before any row is read.
    n, width = mapped.X.shape
    if mapped.y is not None and len(mapped.y) != n:
        raise DataError(
            f"{path}: has {n} rows and {len(mapped.y)} labels in {how.label}; "
            "one label for each row is needed"
        )
    return Source(
        str(path),
        "npy",
        sparse=False,
        width=width,
        dtype=float_type(mapped.X.dtype),
        has_labels=mapped.y is not None,
        n_bytes=path.stat().st_size,
        blocks=lambda n_bytes: label_parts(_split_rows(mapped.X, n_bytes), mapped.y, n),
        whole=lambda _: mapped,
    )


def _map_npy(path: Path) -> np.ndarray:
    """Map the array in a `.npy` file."""
    with reading(path):
        if is_compressed(path):
            raise DataError(
                f"{path}: is a compressed .npy, which cannot be mapped; decompress it first"
            )
        try:
            with path.open("rb") as file:
                header = read_header(file)
                start = file.tell()
            if start + header.n_bytes > path.stat().st_size:
                raise ValueError("it ends before its last value")
            return np.memmap(path, header.dtype, "r", start, header.shape, header.order)
        except DAMAGE as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"{path}: is not a readable .npy of plain numbers or text: {reason}"
            ) from None


def _refuse_unreadable(path: Path, label: Label) -> None:
    """Raise a `DataError` for a compressed archive, or labels that are given by a position."""
    if is_compressed(path):
        raise DataError(
            f"{path}: is a compressed .npz; decompress it first (an .npz is a zip file already)"
        )
    if isinstance(label, int) and label is not False:
        raise DataError(
            f"{path}: label={label!r} is a position; an .npz needs the name of its array of labels"
        )


@contextmanager
def _open_npz(path: Path) -> Iterator[Archive]:
    """Open an archive, and turn what is wrong with it into a `DataError`."""
    try:
        with reading(path), open_archive(path, expansion=EXPANSION, lenient=True) as archive:
            yield archive
    except DataError:
        raise
    except DAMAGE as error:
        raise DataError(f"{path}: is not a readable .npz of plain arrays: {error}") from None


def _check_shape(path: Path, rows: str, shape: tuple[int, ...]) -> None:
    """Raise a `DataError` for an array that does not have rows and columns."""
    if len(shape) < 2:
        raise DataError(
            f"{path}: the array {rows!r} has shape {shape}; rows and columns are needed"
        )


def _choose_arrays(
    names: list[str], path: Path, label: Label, n_features: int | None
) -> tuple[str | None, str | None]:
    """Return the names of the rows (None for a sparse matrix) and of the labels (None for none)."""
    rows = None
    if not set(_CSR) <= set(names):
        rows = next((name for name in _DENSE if name in names), None)
        if rows is None:
            raise DataError(
                f"{path}: holds no rows: its arrays are {shorten(names)}; needed is one of "
                f"{', '.join(_DENSE)}, or {', '.join(_CSR)} of a CSR matrix"
            )
    if label is False:
        return rows, None
    wanted = (label,) if isinstance(label, str) else _LABELS
    labels = next((name for name in wanted if name in names), None)
    # Labels may be missing only if a model reads rows of known width, to predict their labels.
    if labels is None and (label is not None or n_features is None):
        raise DataError(
            f"{path}: holds no labels: its arrays are {shorten(names)}; "
            f"needed is {' or '.join(wanted)}"
        )
    return rows, labels


def npz_source(path: Path, how: ReadOptions) -> Source:
    """Return the rows of a `.npz` archive as a source; see :func:`read_npz`.

    Labels, row pointers, and arrays that are stored column by column, are read at once.
    """
    _refuse_unreadable(path, how.label)
    # The headers tell shape and type, so that bad data are refused before rows are read.
    with _open_npz(path) as archive:
        rows, labels = _choose_arrays(archive.names, path, how.label, how.n_features)
        y = None if labels is None else archive.read(labels)
        header = archive.header(rows or "data")
        dtype = header.dtype
        is_row_by_row = rows is not None and not (header.fortran and len(header.shape) > 1)
        is_csr = rows is None and _sparse_format(archive) == "csr"
        shape = header.shape if rows else _csr_shape(archive)
    _check_shape(path, str(rows), shape)
    if dtype.kind not in "biuf" and kept_type(dtype) is None:
        raise DataError(f"{path}: the features are of type {dtype}; they must be real numbers")
    if y is not None and y.shape not in ((shape[0],), (shape[0], 1)):
        raise DataError(
            f"{path}: has {shape[0]} rows and labels of shape {y.shape}; "
            "one label for each row is needed"
        )

    def blocks(n_bytes: int) -> Iterator[Block]:
        with _open_npz(path) as archive:
            # Rows one after the other, or the whole array if it is stored column by column.
            if is_row_by_row:
                parts = _dense_parts(archive, str(rows), n_bytes)
            elif is_csr:
                parts = _csr_parts(archive, n_bytes)
            else:
                parts = _split_rows(read_npz(path, how).X, n_bytes)
            yield from label_parts(parts, y, shape[0])

    return Source(
        str(path),
        "npz",
        sparse=rows is None,
        width=math.prod(shape[1:]),
        dtype=float_type(dtype) if rows is None else stored_type(dtype),
        has_labels=y is not None,
        n_bytes=path.stat().st_size,
        blocks=blocks,
        whole=lambda _: read_npz(path, how),
    )


def _read_values(file: IO[bytes], dtype: np.dtype, count: int) -> np.ndarray:
    """Read the next `count` values of an array."""
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise ValueError("an array ends before its header says")
    return np.frombuffer(data, dtype=dtype)


def _dense_parts(archive: Archive, name: str, n_bytes: int) -> Iterator[Any]:
    """Yield the rows of an array, about `n_bytes` at a time."""
    with archive.open_array(name) as (header, file):
        n = header.shape[0]
        width = math.prod(header.shape[1:])
        step = rows_in(n_bytes, _VALUE_BYTES * width)
        for start in range(0, n, step):
            count = min(step, n - start)
            yield _read_values(file, header.dtype, count * width).reshape(count, width)


def _csr_parts(archive: Archive, n_bytes: int) -> Iterator[Any]:
    """Yield the rows of a CSR matrix, about `n_bytes` at a time."""
    n, d = _csr_shape(archive)
    _check_csr_headers(archive, n)
    indptr = archive.read("indptr")
    _check_pointers(indptr, archive.header("indices"))
    with (
        archive.open_array("data") as (values_header, data),
        archive.open_array("indices") as (header, indices),
    ):
        start = 0
        while start < n:
            # As many rows as have `n_bytes` of entries, but at least one.
            last_entry = indptr[start] + n_bytes // _ENTRY_BYTES
            stop = int(np.searchsorted(indptr, last_entry, side="right")) - 1
            stop = min(max(stop, start + 1), n)

            count = int(indptr[stop] - indptr[start])
            values = _read_values(data, values_header.dtype, count)
            columns = _read_values(indices, header.dtype, count)
            if count and not 0 <= columns.min() <= columns.max() < d:
                raise ValueError(f"column indices of the CSR matrix must be from 0 to {d - 1}")
            pointers = indptr[start : stop + 1] - indptr[start]
            yield sp.csr_matrix((values, columns, pointers), shape=(stop - start, d))
            start = stop


def _csr_shape(archive: Archive) -> tuple[int, int]:
    """Return the numbers of rows and columns that a sparse matrix states."""
    header = archive.header("shape")
    if header.shape != (2,) or header.dtype.kind not in "iu":
        raise ValueError(
            f"its shape is an array of {header.dtype} of shape {shorten_text(header.shape)}; "
            "2 numbers are needed"
        )
    n, d = archive.read("shape").tolist()
    if n < 0 or d < 0:
        raise ValueError(f"its shape is ({n}, {d}); numbers of at least 0 are needed")
    return n, d


def _check_csr_headers(archive: Archive, n_pointers: int) -> None:
    """Refuse parts of a sparse matrix whose types or lengths disagree, before reading them."""
    data, indices, indptr = (archive.header(name) for name in _CSR[:3])
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise ValueError(
            f"its indices and indptr are of types {indices.dtype} and {indptr.dtype}; "
            "whole numbers are needed"
        )
    if len(data.shape) != 1 or data.shape != indices.shape or indptr.shape != (n_pointers + 1,):
        raise ValueError("the parts of the CSR matrix do not fit together")


def _check_pointers(indptr: np.ndarray, indices: ArrayHeader) -> None:
    """Refuse row pointers that do not start at 0, decrease, or exceed the entries."""
    decreases = (indptr[1:] < indptr[:-1]).any()
    if indptr[0] != 0 or decreases or int(indptr[-1]) > indices.shape[0]:
        raise ValueError("the parts of the CSR matrix do not fit together")


def _split_rows(X: Any, n_bytes: int) -> Iterator[Any]:
    """Yield rows in memory, about `n_bytes` at a time."""
    if sp.issparse(X):
        X = X.tocsr()
        n_values = X.nnz
    else:
        n_values = X.size
    n = X.shape[0]
    step = rows_in(n_bytes, _ENTRY_BYTES * n_values / max(n, 1))
    for start in range(0, n, step):
        part = X[start : start + step]
        yield part if sp.issparse(X) else np.asarray(part)


def _read_sparse(archive: Archive, path: Path) -> Any:
    """Read a saved sparse matrix."""
    layout = _sparse_format(archive)
    kinds = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
    if layout not in kinds:
        raise DataError(
            f"{path}: is a sparse matrix in the format {shorten_text(repr(layout))}; "
            "allowed are csr and csc"
        )
    try:
        shape = _csr_shape(archive)
        # One pointer for each row of a CSR matrix, and for each column of a CSC matrix.
        _check_csr_headers(archive, shape[layout == "csc"])
        data, indices, indptr = (archive.read(name) for name in _CSR[:3])
        _check_pointers(indptr, archive.header("indices"))
        matrix = kinds[layout]((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: is not a valid {layout.upper()} matrix: {error}") from None
    return matrix


def _sparse_format(archive: Archive) -> str:
    """Return the format that a sparse matrix states, "csr" if it states none."""
    if "format" not in archive:
        return "csr"
    header = archive.header("format")
    if header.shape != () or header.dtype.kind not in "US":
        raise ValueError("its array 'format' is not text")
    layout = archive.read("format").item()
    return layout.decode("ascii", errors="replace") if isinstance(layout, bytes) else str(layout)
