"""Read NumPy's ``.npz`` archives and ``.npy`` arrays.

An archive holds dense X and y, a saved CSR or CSC matrix and y, or images and their labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.archives import DAMAGE, Archive, open_archive, shorten_text
from saddlesvm.data.blocks import Block, Source, rows_in
from saddlesvm.data.data_table import shorten, stored_type
from saddlesvm.data.errors import DataError
from saddlesvm.data.reading import Label, Reading
from saddlesvm.data.streams import is_compressed, reading
from saddlesvm.rows.small_types import kept_type

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import Matrix

# Bytes of memory for each byte of a compressed file, beyond 16 MB; a guess.
EXPANSION = 200
_CSR = ("data", "indices", "indptr", "shape")  # names of arrays of `scipy.sparse.save_npz`
_DENSE = ("X", "x", "data", "images")
_LABELS = ("y", "label", "labels", "target")
_ENTRY_BYTES = 16  # bytes of a value and its column, and of a value read and cast


def npz_source(path: Path, how: Reading) -> Source:
    """Return the rows of a `.npz` archive as a source, without unpickling anything.

    The rows are either `data`, `indices`, `indptr` and `shape` (CSR, as `scipy.sparse.save_npz`
    writes it; CSC too), or the first array found of `X`, `x`, `data`, `images`. The labels are the
    first of `y`, `label`, `labels`, `target`, or the array named by `label`. Other arrays are
    ignored.

    Raises
    ------
    DataError
        The archive is damaged or has no such arrays; the message lists the arrays it has.
    """
    if is_compressed(path):
        raise DataError(
            f"{path}: is a compressed .npz; decompress it first (an .npz is a zip file already)"
        )
    if isinstance(how.label, int) and how.label is not False:
        raise DataError(
            f"{path}: label={how.label!r} is a position; "
            "an .npz needs the name of its array of labels"
        )
    try:
        with reading(path), open_archive(path, EXPANSION) as archive:
            rows, labels = _choose_arrays(archive.names, path, how.label, how.n_features)
            # A CSR matrix is several arrays; dense rows are one.
            if rows is None:
                X = _read_sparse(archive, path)
            else:
                X = archive.read(rows)
            y = None
            if labels is not None:
                y = archive.read(labels)
    except DataError:
        raise
    except DAMAGE as error:
        raise DataError(f"{path}: is not a readable .npz of plain arrays: {error}") from None
    return array_source(path, "npz", X, y)


def npy_source(path: Path, how: Reading) -> Source:
    """Return the rows of a `.npy` file, mapped, and the labels in another file, as a source.

    Raises
    ------
    DataError
        A file is damaged, holds objects, or no rows; no file of labels is named, but labels are
        needed.
    """
    X = _map_npy(path)
    if how.label is False or (how.label is None and how.n_features is not None):
        return array_source(path, "npy", X, None)
    if not isinstance(how.label, str):
        raise DataError(
            f"{path}: holds rows without labels; name the .npy file that holds them: label='y.npy'"
        )
    return array_source(path, "npy", X, np.asarray(_map_npy(Path(how.label))))


def array_source(path: Path, format: str, X: Any, y: np.ndarray | None) -> Source:
    """Return rows in memory, or mapped, as a source; images are flattened to rows.

    Raises
    ------
    DataError
        The rows are not numbers, or have no columns, or the labels are not one for each row.
    """
    if X.ndim < 2:
        raise DataError(f"{path}: the rows have shape {X.shape}; rows and columns are needed")
    n = X.shape[0]
    # -1 cannot stand for the size of images if there are none.
    if X.ndim > 2:
        X = X.reshape(n, math.prod(X.shape[1:]))
    if X.dtype.kind not in "biuf" and kept_type(X.dtype) is None:
        raise DataError(f"{path}: the features are of type {X.dtype}; they must be real numbers")
    if y is not None and y.shape not in ((n,), (n, 1)):
        raise DataError(
            f"{path}: has {n} rows and labels of shape {y.shape}; one label for each row is needed"
        )
    return Source(
        str(path),
        format,
        sparse=sp.issparse(X),
        width=X.shape[1],
        dtype=stored_type(X),
        has_labels=y is not None,
        n_bytes=path.stat().st_size,
        blocks=lambda n_bytes: split_rows(X, y, n_bytes),
    )


def _map_npy(path: Path) -> np.ndarray:
    """Map the array in a `.npy` file."""
    with reading(path):
        if is_compressed(path):
            raise DataError(
                f"{path}: is a compressed .npy, which cannot be mapped; decompress it first"
            )
        try:
            mapped: np.ndarray = np.lib.format.open_memmap(path, mode="r")
        except DAMAGE as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"{path}: is not a readable .npy of plain numbers or text: {reason}"
            ) from None
        return mapped


def _choose_arrays(
    names: list[str], path: Path, label: Label, n_features: int | None
) -> tuple[str | None, str | None]:
    """Return the names of the rows (None for a sparse matrix) and of the labels (None for none)."""
    rows = None
    if not set(_CSR) <= set(names):
        rows = next((name for name in _DENSE if name in names), None)
        if rows is None and "intercept" in names:
            raise DataError(f"{path}: is a saved model, not data; a model stands before the data")
        if rows is None:
            raise DataError(
                f"{path}: holds no rows: its arrays are {shorten(names)}; needed is one of "
                f"{', '.join(_DENSE)}, or {', '.join(_CSR)} of a CSR matrix"
            )
    if label is False:
        return rows, None
    wanted: tuple[str, ...] = _LABELS
    if isinstance(label, str):
        wanted = (label,)
    labels = next((name for name in wanted if name in names), None)
    # Labels may be missing only if a model reads rows of known width, to predict their labels.
    if labels is None and (label is not None or n_features is None):
        raise DataError(
            f"{path}: holds no labels: its arrays are {shorten(names)}; "
            f"needed is {' or '.join(wanted)}"
        )
    return rows, labels


def split_rows(X: Any, y: np.ndarray | None, n_bytes: int) -> Iterator[Block]:
    """Yield rows in memory, and their labels, about `n_bytes` at a time."""
    if sp.issparse(X):
        X = X.tocsr()
    n = X.shape[0]
    n_values = X.nnz if sp.issparse(X) else X.size
    step = rows_in(n_bytes, _ENTRY_BYTES * n_values / max(n, 1))
    for start in range(0, n, step):
        some = slice(start, start + step)
        # If the block has all rows, take the matrix as it is: a slice of a sparse one is a copy.
        rows = X
        if step < n:
            rows = X[some]
        labels = None
        if y is not None:
            labels = y[some].ravel()
        yield Block(rows, labels, share=min(start + step, n) / n)


def _read_sparse(archive: Archive, path: Path) -> Matrix:
    """Read a saved CSR or CSC matrix."""
    layout = "csr"
    if "format" in archive.names:
        # SciPy stores the name of the layout as an array of bytes.
        layout = "".join(archive.read("format").astype(str).ravel())
    kinds = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
    if layout not in kinds:
        raise DataError(
            f"{path}: is a sparse matrix in the format {shorten_text(repr(layout))}; "
            "allowed are csr and csc"
        )
    data, indices, indptr, shape = (archive.read(name) for name in _CSR)
    types = [part.dtype for part in (indices, indptr, shape)]
    if any(dtype.kind not in "iu" for dtype in types):
        raise ValueError(
            f"its indices, indptr and shape are of the types {shorten(types)}; "
            "whole numbers are needed"
        )
    # A damaged file may have indices of any size: SciPy's full check finds them.
    try:
        matrix = kinds[layout]((data, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: is not a valid {layout.upper()} matrix: {error}") from None
    return matrix
