"""NumPy's `.npz` archives (dense X and y, a saved CSR matrix and y, or images and their labels) and `.npy` arrays.

MNIST-style idx files have a magic number, the sizes, then the values; images and labels are two files.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.archives import DAMAGE, Archive, ArrayHeader, open_archive, read_header, short
from saddlesvm.data.blocks import WHOLE, Block, Reading, Source, labelled, rows_in
from saddlesvm.data.errors import DataError
from saddlesvm.data.streams import is_compressed, open_bytes, reading
from saddlesvm.data.table import Label, float_type, shorten, stored_type
from saddlesvm.rows.small_types import kept_type

_CSR = ("data", "indices", "indptr", "shape")
_DENSE = ("X", "x", "data", "images")
_EXPANSION = 200  # memory per byte of a compressed file, at most, beyond 16 or 64 MB; a conversion has no limit
_LABELS = ("y", "label", "labels", "target")


def read_npz(path: Path, how: Reading) -> Block:
    """Read a `.npz` archive without unpickling anything.

    The rows are either `data`, `indices`, `indptr` and `shape` (CSR, as `scipy.sparse.save_npz` writes it; CSC too), or
    the first existing one of `X`, `x`, `data`, `images`; rows of more than one dimension are flattened. The labels are
    the first of `y`, `label`, `labels`, `target`, or the array named by `label`. Other arrays are ignored.

    Raises
    ------
    DataError
        The archive is damaged or has no such arrays; the message lists those it has.
    """
    _refuse_unreadable(path, how.label)
    with _opened(path) as archive:
        return _from_arrays(archive, path, how)


def read_npy(path: Path, how: Reading) -> Block:
    """The rows of a `.npy` file, mapped, and the labels in another one, which `label` names.

    Raises
    ------
    DataError
        A file is damaged, holds objects, or no rows; no file of labels is named where labels are needed.
    """
    X = _mapped(path)
    _check_shape(path, path.name, X.shape)
    X = X.reshape(len(X), -1) if X.ndim > 2 else X
    if how.label is False or (how.label is None and how.n_features is not None):
        return Block(X, None)
    if not isinstance(how.label, str):
        raise DataError(f"{path}: holds rows without labels; name the .npy file that holds them: label='y.npy'")
    return Block(X, np.asarray(_mapped(Path(how.label))))


def npy_source(path: Path, how: Reading) -> Source:
    """The rows of a `.npy` file, mapped; see :func:`read_npy`."""
    raw = read_npy(path, how)
    if raw.X.dtype.kind not in "biuf":
        raise DataError(f"{path}: the features are of type {raw.X.dtype}; they must be real numbers")
    n, width = raw.X.shape
    if raw.y is not None and len(raw.y) != n:
        raise DataError(f"{path}: has {n} rows and {len(raw.y)} labels in {how.label}; one label a row is needed")
    dtype, n_bytes = float_type(raw.X.dtype), path.stat().st_size
    return Source(
        str(path), "npy", False, width, dtype, raw.y is not None, n_bytes,
        blocks=lambda n_bytes: labelled(_parts(raw.X, n_bytes), raw.y, n),
        whole=lambda _: raw,
    )  # fmt: skip


def _mapped(path: Path) -> np.ndarray[Any, Any]:
    with reading(path):
        if is_compressed(path):
            raise DataError(f"{path}: is a compressed .npy; decompress it first: it is mapped, not read")
        try:
            with path.open("rb") as file:
                header = read_header(file)
                place = file.tell()
            if place + header.n_bytes > path.stat().st_size:
                raise ValueError("it ends before its last value")
            return np.memmap(path, header.dtype, "r", place, header.shape, "F" if header.fortran else "C")
        except DAMAGE as error:
            found = " ".join(str(error).split())
            raise DataError(f"{path}: is not a readable .npy of plain numbers or text: {found}") from None


def _refuse_unreadable(path: Path, label: Label) -> None:
    if is_compressed(path):
        raise DataError(f"{path}: is a compressed .npz; decompress it first (an .npz is a zip file already)")
    if isinstance(label, int) and label is not False:
        raise DataError(f"{path}: label={label!r} is a position; an .npz needs the name of its array of labels")


@contextmanager
def _opened(path: Path) -> Iterator[Archive]:
    try:
        with reading(path), open_archive(path, expansion=_EXPANSION, lenient=True) as archive:
            yield archive
    except DataError:
        raise
    except DAMAGE as error:
        raise DataError(f"{path}: is not a readable .npz of plain arrays: {error}") from None


def _from_arrays(archive: Archive, path: Path, how: Reading) -> Block:
    rows, found = _chosen(archive.names, path, how.label, how.n_features)
    X = _sparse(archive, path) if rows is None else archive.read(rows)
    _check_shape(path, str(rows), X.shape)
    if X.ndim > 2:
        X = X.reshape(len(X), -1) if len(X) else X.reshape(0, int(np.prod(X.shape[1:])))
    return Block(X, None if found is None else archive.read(found))


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


def npz_source(path: Path, how: Reading) -> Source:
    """The rows of a `.npz` archive some at a time; see :func:`read_npz`.

    Labels, row pointers, and what is stored column by column, are read at once.
    """
    _refuse_unreadable(path, how.label)
    with _opened(path) as archive:
        rows, found = _chosen(archive.names, path, how.label, how.n_features)
        y = None if found is None else archive.read(found)
        header = archive.header(rows or "data")
        streams = rows is not None and not (header.fortran and len(header.shape) > 1)
        csr = rows is None and _layout_of(archive) == "csr"
        shape = header.shape if rows else _csr_shape(archive)
        dtype = header.dtype
    _check_shape(path, str(rows), shape)
    if dtype.kind not in "biuf" and kept_type(dtype) is None:
        raise DataError(f"{path}: the features are of type {dtype}; they must be real numbers")
    if y is not None and y.shape not in ((shape[0],), (shape[0], 1)):
        raise DataError(f"{path}: has {shape[0]} rows and labels of shape {y.shape}; one label a row is needed")

    def blocks(n_bytes: int) -> Iterator[Block]:
        with _opened(path) as archive:
            parts = (
                _dense_parts(archive, str(rows), n_bytes) if streams
                else _csr_parts(archive, n_bytes) if csr
                else _parts(read_npz(path, how).X, n_bytes)
            )  # fmt: skip
            yield from labelled(parts, y, shape[0])

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


def _take(file: IO[bytes], dtype: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
    """The next `count` values of an array that is read from its beginning to its end."""
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise ValueError("an array ends before its header says")
    return np.frombuffer(data, dtype=dtype)


def _dense_parts(archive: Archive, name: str, n_bytes: int) -> Iterator[np.ndarray[Any, Any]]:
    with archive.opened(name) as (header, file):
        n, width = header.shape[0], math.prod(header.shape[1:])
        step = rows_in(n_bytes, 8 * width)
        for start in range(0, n, step):
            count = min(step, n - start)
            yield _take(file, header.dtype, count * width).reshape(count, width)


def _csr_parts(archive: Archive, n_bytes: int) -> Iterator[sp.csr_matrix]:
    n, d = _csr_shape(archive)
    _refuse_csr(archive, n)
    indptr = archive.read("indptr")
    _refuse_pointers(indptr, archive.header("indices"))
    with archive.opened("data") as (values_header, data), archive.opened("indices") as (header, indices):
        start = 0
        while start < n:
            stop = int(np.searchsorted(indptr, indptr[start] + n_bytes // 16, side="right")) - 1
            stop = min(max(stop, start + 1), n)
            count = int(indptr[stop] - indptr[start])
            values, columns = _take(data, values_header.dtype, count), _take(indices, header.dtype, count)
            if count and not 0 <= columns.min() <= columns.max() < d:
                raise ValueError(f"column indices of the CSR matrix must be from 0 to {d - 1}")
            yield sp.csr_matrix((values, columns, indptr[start : stop + 1] - indptr[start]), shape=(stop - start, d))
            start = stop


def _csr_shape(archive: Archive) -> tuple[int, int]:
    """The numbers of rows and columns that a sparse matrix states."""
    header = archive.header("shape")
    if header.shape != (2,) or header.dtype.kind not in "iu":
        raise ValueError(
            f"its shape is an array of {header.dtype} of shape {short(header.shape)}; 2 numbers are needed"
        )
    n, d = archive.read("shape").tolist()
    if n < 0 or d < 0:
        raise ValueError(f"its shape is ({n}, {d}); numbers of at least 0 are needed")
    return n, d


def _refuse_csr(archive: Archive, n_pointers: int) -> None:
    """Refuse parts of a sparse matrix whose types or lengths disagree, before reading them."""
    data, indices, indptr = (archive.header(name) for name in _CSR[:3])
    whole = indices.dtype.kind in "iu" and indptr.dtype.kind in "iu"
    if not whole:
        raise ValueError(
            f"its indices and indptr are of types {indices.dtype} and {indptr.dtype}; whole numbers are needed"
        )
    if len(data.shape) != 1 or data.shape != indices.shape or indptr.shape != (n_pointers + 1,):
        raise ValueError("the parts of the CSR matrix do not fit together")


def _refuse_pointers(indptr: np.ndarray[Any, Any], indices: ArrayHeader) -> None:
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or int(indptr[-1]) > indices.shape[0]:
        raise ValueError("the parts of the CSR matrix do not fit together")


def _parts(X: Any, n_bytes: int) -> Iterator[Any]:
    X = X.tocsr() if sp.issparse(X) else X
    step = rows_in(n_bytes, 16 * (X.nnz if sp.issparse(X) else X.size) / max(X.shape[0], 1))
    for start in range(0, X.shape[0], step):
        yield X[start : start + step] if sp.issparse(X) else np.asarray(X[start : start + step])


def _sparse(archive: Archive, path: Path) -> Any:
    layout = _layout_of(archive)
    kinds = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}
    if layout not in kinds:
        raise DataError(f"{path}: is a sparse matrix in the format {short(repr(layout))}; allowed are csr and csc")
    try:
        shape = _csr_shape(archive)
        _refuse_csr(archive, shape[layout == "csc"])
        data, indices, indptr = (archive.read(name) for name in _CSR[:3])
        _refuse_pointers(indptr, archive.header("indices"))
        matrix = kinds[layout]((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: is not a valid {layout.upper()} matrix: {error}") from None
    return matrix


def _layout_of(archive: Archive) -> str:
    if "format" not in archive:
        return "csr"
    header = archive.header("format")
    if header.shape != () or header.dtype.kind not in "US":
        raise ValueError("its array 'format' is not text")
    layout = archive.read("format").item()
    return layout.decode("ascii", errors="replace") if isinstance(layout, bytes) else str(layout)


_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_DIMENSIONS = 8
_SLACK_BYTES = 1 << 26  # bytes that any file may expand to
_PIECE = 1 << 20
_ENDINGS = ("", ".gz", ".bz2", ".xz")


def idx_source(path: Path, how: Reading) -> Source:
    """The images in an idx file, each flattened to a row, and the labels from the file beside it, read at once.

    ``train-images-idx3-ubyte.gz`` goes with ``train-labels-idx1-ubyte.gz``: "images" becomes "labels" and "idx3"
    becomes "idx1"; either may be compressed or not. The values stay as they are (0 to 255 for bytes).

    Raises
    ------
    DataError
        A magic number that is not idx, a length that is not the one in the header, labels that are missing or not as
        many as the images.
    """
    if how.label is not None and how.label is not False:
        raise DataError(f"{path}: label={how.label!r}; the labels of an idx file are in the file beside it")
    with reading(path), open_bytes(path) as file:
        shape, dtype = _head(file, path)
    if len(shape) < 2:
        raise DataError(f"{path}: has {len(shape)} dimension, as labels have; give the images file")
    beside = None if how.label is False else _labels_beside(path, required=how.n_features is None)
    y = None if beside is None else next(_values(beside, WHOLE), np.empty(0))
    if y is not None and y.shape != shape[:1]:
        raise DataError(f"{beside}: has labels of shape {y.shape}; {path.name} has {shape[0]} images, one label each")
    width = math.prod(shape[1:])

    n_bytes = path.stat().st_size + (0 if beside is None else beside.stat().st_size)
    return Source(
        str(path), "idx", False, width, stored_type(dtype), y is not None, n_bytes,
        blocks=lambda n_bytes: labelled(
            (images.reshape(-1, width) for images in _values(path, rows_in(n_bytes, width * 8))), y, shape[0]
        ),
    )  # fmt: skip


def _values(path: Path, step: int) -> Iterator[np.ndarray[Any, Any]]:
    """The values of an idx file, `step` images or labels at a time."""
    with reading(path), open_bytes(path) as file:
        shape, dtype = _head(file, path)
        one = math.prod(shape[1:]) * dtype.itemsize
        for start in range(0, shape[0], step):
            stop = min(start + step, shape[0])
            data = _read_up_to(file, (stop - start) * one + (stop == shape[0]))
            if len(data) != (stop - start) * one:
                _refuse_size(path, shape, dtype, start * one + len(data))
            yield np.frombuffer(data, dtype=dtype).reshape(stop - start, *shape[1:])


def _head(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array in an idx file, from its first bytes."""
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _TYPES or head[3] == 0:
        raise DataError(f"{path}: starts with {head.hex(' ')}; an idx file starts with 00 00, a type and a dimension")
    if head[3] > _MOST_DIMENSIONS:
        raise DataError(f"{path}: says that it has {head[3]} dimensions; {_MOST_DIMENSIONS} are allowed")
    sizes = file.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise DataError(f"{path}: is truncated: its header ends after {4 + len(sizes)} bytes")
    shape, dtype = struct.unpack(f">{head[3]}I", sizes), np.dtype(_TYPES[head[2]])
    promised, most = math.prod(shape) * dtype.itemsize, max(_SLACK_BYTES, _EXPANSION * path.stat().st_size)
    if promised > most:
        size = " x ".join(map(str, shape))
        raise DataError(f"{path}: its header says {size}, which is {promised} bytes; a file of its size has {most}")
    return shape, dtype


def _read_up_to(file: IO[bytes], count: int) -> bytes:
    """The next `count` bytes, or fewer at the end; memory grows only with the bytes that exist."""
    pieces = []
    while count and (piece := file.read(min(count, _PIECE))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _refuse_size(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], length: int) -> None:
    promised = math.prod(shape) * dtype.itemsize
    found = f"more than {promised}" if length > promised else f"only {length}"
    size = " x ".join(map(str, shape))
    raise DataError(f"{path}: holds {found} bytes of values; its header says {size}, which is {promised} bytes")


def _labels_beside(path: Path, *, required: bool) -> Path | None:
    stem = path.name
    for ending in _ENDINGS[1:]:
        stem = stem.removesuffix(ending)
    name = re.sub(r"idx\d", "idx1", stem.replace("images", "labels"))
    tried = [path.with_name(name + ending) for ending in _ENDINGS]
    found = next((file for file in tried if name != stem and file.is_file()), None)
    if found is None and required:
        hint = f"{name}[.gz] is not there" if name != stem else "its name does not hold the word 'images'"
        raise DataError(f"{path}: its labels are not beside it: {hint}")
    return found
