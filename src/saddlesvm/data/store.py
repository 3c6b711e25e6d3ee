"""A store: rows and labels in a folder of plain arrays, mapped when they are used."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from saddlesvm.data.blocks import Block, common_type, concatenate, stack_blocks
from saddlesvm.data.errors import DataError
from saddlesvm.data.store_format import (
    HEADER,
    PART,
    PARTIAL,
    StoredArray,
    check_alike,
    open_arrays,
    read_store_header,
)
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.rows.csr_checks import all_in_order
from saddlesvm.rows.files import release_pages
from saddlesvm.rows.memory_plan import FITS, available_memory, memory_bytes
from saddlesvm.runtime.data_types import LabelsLike, Matrix, RowsLike

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

BLOCK_BYTES = 1 << 24  # bytes of rows that are copied at a time; a guess
BLOCK_VALUES = 1 << 21  # values that are written at a time; a guess


class Store:
    """Rows, labels and optional weights in a folder, mapped from its files.

    Opening compares the header with the size and type of every file, so that a truncated store is
    found without reading it. The indices of sparse rows are checked once, when `X` is first used. A
    store is written by :meth:`create`, by :class:`~saddlesvm.data.StoreWriter`, or by ``saddlesvm
    convert``. A pickled store holds its path only.

    Parameters
    ----------
    path : str or path
        The folder.

    Attributes
    ----------
    path : Path
        Absolute.
    header : dict
        The contents of ``store.json``; if rows were appended, of all parts together.
    shape : tuple of int
        Rows and features.
    dtype : dtype
        float32 or float64; of dense rows also float16, bfloat16, int8, uint8 or bool.
    layout : {"dense", "csr"}
    n_values : int
        Number of stored values.
    classes : ndarray or None
        The distinct labels in ascending order; None if there are no labels, or too many to be
        classes.
    n_parts : int
        1, and 1 more for each time that rows were appended.

    Raises
    ------
    DataError
        The folder is not a store, of a newer version, damaged or truncated; the message names the
        file and the reason.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from saddlesvm import Store
    >>> folder = tempfile.mkdtemp()
    >>> store = Store.create(f"{folder}/tiny.store", np.eye(3), np.array([1, -1, 1]))
    >>> store.shape, store.layout, store.classes.tolist()
    ((3, 3), 'dense', [-1, 1])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        first = StorePart.open(Path(path))
        self._parts = [first, *(StorePart.open(folder) for folder in _appended_folders(Path(path)))]
        _check_parts(self._parts)
        self.header = first.header
        if len(self._parts) > 1:
            self.header = _combine_headers(self._parts)

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return Store, (str(self.path),)

    def __repr__(self) -> str:
        return f"Store({os.fspath(self.path)!r})"

    def __len__(self) -> int:
        return self.shape[0]

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        X: RowsLike,
        y: LabelsLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        dtype: object = None,
        overwrite: bool = False,
        feature_names: Sequence[str] | None = None,
        label_name: str | None = None,
    ) -> Store:
        """Write arrays that are in memory (or mapped) as a store, and open it.

        Parameters
        ----------
        path : str or path
            The folder; it appears when all its files are complete.
        X : array-like or sparse matrix of shape (n, d)
            Stored as it is if it is float32 or float64, or dense and float16, bfloat16, int8, uint8
            or bool; other numbers are stored as float32 if that holds every number of their type,
            else as float64.
        y : array-like of shape (n,), optional
            Numbers or text.
        sample_weight : array-like of shape (n,), optional
        dtype : dtype, optional
            Type of the values, instead of the type of X.
        overwrite : bool, default=False
            Replace a store of that name.
        feature_names : sequence of str, optional
        label_name : str, optional

        Raises
        ------
        DataError
            Bad data, or a path that exists or cannot be written.
        """
        with StoreWriter(
            path,
            dtype=dtype,
            overwrite=overwrite,
            feature_names=feature_names,
            label_name=label_name,
        ) as writer:
            _write_blocks(writer, X, y, sample_weight)
        return cls(path)

    def append(
        self, X: Matrix, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Store:
        """Add rows as a further part; the old rows are not written again.

        The part is a store in the folder ``part-2``, ``part-3`` and so on, which appears when it is
        complete. Processes that have the store open keep its old rows. `X` of a store with parts is
        put together for each use, in memory or in a temporary file: ``saddlesvm convert OLD NEW``
        makes one part of all.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Dense rows are as wide as the rows of the store.
        y : array-like of shape (n,), optional
            Needed if, and only if, the store has labels.
        sample_weight : array-like of shape (n,), optional
            Needed if, and only if, the store has weights.

        Returns
        -------
        Store
            Opened anew.

        Raises
        ------
        DataError
            Rows of another width or layout, missing or unexpected labels, or a full disk.
        """
        # The new rows must be like the first part: layout, width, kind of labels, weights.
        first = self._parts[0]
        labels = None if y is None else np.asarray(y)
        kind = None
        if labels is not None:
            kind = {"kind": "text"}
            if labels.dtype.kind in "biuf":
                kind = {"kind": "numbers"}
        if np.ndim(X) != 2:
            raise DataError(f"{self.path}: got rows of shape {np.shape(X)}; a matrix is needed")
        given = {
            "layout": "csr" if sp.issparse(X) else "dense",
            "shape": np.shape(X),
            "labels": kind,
            "weights": sample_weight is not None,
        }
        check_alike([first.header, given], [str(self.path), "the new rows"])
        # The part appears only when it is complete; two processes cannot take one number.
        target = self.path / f"{PART}{len(_appended_folders(self.path)) + 2}"
        with StoreWriter(target, dtype=first.dtype) as writer:
            _write_blocks(writer, X, labels, sample_weight)
            if target.exists():
                raise DataError(
                    f"{self.path}: another process has appended rows meanwhile; append these again"
                )
        return Store(self.path)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """Return the rows of a dense store, mapped; scikit-learn's transformers take them so."""
        if self.layout != "dense":
            raise TypeError(
                f"{self.path}: holds sparse rows: give its X, a CSR matrix over its files"
            )
        rows = np.asarray(self.X)
        if copy or (dtype is not None and rows.dtype != dtype):
            return rows.astype(dtype)
        return rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        n, d = self.header["shape"]
        return n, d

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self._parts[0].dtype

    @property
    def layout(self) -> Literal["dense", "csr"]:
        """The layout of the rows: "dense" or "csr"."""
        return self._parts[0].layout

    @property
    def n_parts(self) -> int:
        """Number of parts: 1, and 1 more for each time that rows were appended."""
        return len(self._parts)

    @property
    def n_values(self) -> int:
        """Number of stored values."""
        return int(self.header["n_values"])

    @property
    def zero_based(self) -> bool | None:
        """True if the features of the original LIBSVM text counted from 0; None without it."""
        for source in self.header.get("sources") or ():
            if source.get("zero_based") is not None:
                return bool(source["zero_based"])
        return None

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(array.n_bytes for part in self._parts for array in part.arrays.values())

    @cached_property
    def X(self) -> Any:
        """The rows, shape (n, d): a read-only `numpy.memmap`, or a CSR matrix over memory maps.

        The rows of several parts are put together, in memory or, if they take more than half of it,
        in a temporary file.
        """
        return self.matrix()

    def matrix(self, n_features: int | None = None) -> Any:
        """Return the rows; a CSR matrix is widened to `n_features` columns.

        Raises
        ------
        DataError
            The store has more features, its rows are dense, or its indices are damaged.
        """
        return join_stores([self], None, n_features)[0]

    def blocks(self, n_bytes: int) -> list[tuple[int, int]]:
        """Split the rows into runs that take at most `n_bytes` each, or have a single row.

        A run lies within a part.

        Parameters
        ----------
        n_bytes : int
            Limit for the values and, in CSR, the indices and row pointers of a run.

        Returns
        -------
        list of tuple of int
            First row of each run, and the first row after it.
        """
        runs = []
        before = 0
        for part in self._parts:
            runs += [(before + start, before + stop) for start, stop in part.blocks(n_bytes)]
            before += part.shape[0]
        return runs

    def read(self, start: int, stop: int) -> tuple[Matrix, np.ndarray | None, np.ndarray | None]:
        """Return rows, labels and weights from row `start` to row `stop`.

        Labels or weights that the store lacks are None. Rows of one part are mapped, rows of
        several parts are copied.

        Raises
        ------
        DataError
            The indices or the labels are damaged.
        """
        pieces: list[Block] = []
        before = 0
        for part in self._parts:
            low = max(start - before, 0)
            high = max(low, min(stop - before, part.shape[0]))
            # Without any row, the last part gives empty arrays of the right types.
            is_empty = not pieces and part is self._parts[-1]
            if low < high or is_empty:
                pieces.append(part.read(low, high, self.shape[1]))
            before += part.shape[0]
        rows = stack_blocks(pieces)
        return rows.X, rows.y, rows.weights

    @cached_property
    def y(self) -> np.ndarray | None:
        """The labels, shape (n,), None without labels; numbers are mapped, text is decoded."""
        return concatenate([part.labels(0, part.shape[0]) for part in self._parts])

    @cached_property
    def sample_weight(self) -> np.ndarray | None:
        """The weights of the rows, shape (n,), mapped; None if all are 1."""
        return concatenate([part.weights(0, part.shape[0]) for part in self._parts])

    @cached_property
    def classes(self) -> np.ndarray | None:
        """The distinct labels, ascending; None without labels, or with too many to be classes."""
        labels = self.header["labels"]
        if labels is None or labels["classes"] is None:
            return None
        if labels["kind"] == "text":
            return np.array(labels["classes"], dtype=str)
        types = [part.arrays["labels"].dtype for part in self._parts]
        return np.array(labels["classes"], dtype=np.result_type(*types))


class StorePart(NamedTuple):
    """A folder of a store.

    Attributes
    ----------
    path : Path
    header : dict
    arrays : dict of str to StoredArray
    checked : list of bool
        Holds True as soon as the indices are known to be in range.
    """

    path: Path
    header: dict[str, Any]
    arrays: dict[str, StoredArray]
    checked: list[bool]

    @classmethod
    def open(cls, folder: Path) -> StorePart:
        """Read the header of a folder, and compare it with the files; reads no values."""
        header = read_store_header(folder)
        return cls(folder.absolute(), header, open_arrays(header, folder), [])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        n, d = self.header["shape"]
        return n, d

    @property
    def layout(self) -> Literal["dense", "csr"]:
        """The layout of the rows."""
        layout: Literal["dense", "csr"] = self.header["layout"]
        return layout

    @property
    def dtype(self) -> np.dtype:
        """Type of the values."""
        return self.arrays["values"].dtype

    @property
    def kind_of_labels(self) -> str | None:
        """The kind of the labels, "numbers" or "text"; None without labels."""
        labels = self.header["labels"]
        if labels is None:
            return None
        return str(labels["kind"])

    def matrix(self, width: int) -> Any:
        """Return the rows, mapped; the first call checks the indices of CSR rows."""
        values = self.arrays["values"].map()
        if self.layout == "dense":
            return values
        indices = self.arrays["indices"].map()
        indptr = self.arrays["indptr"].map()
        # Give an empty matrix its arrays: SciPy's constructor would scan, and may copy, them.
        X = sp.csr_matrix((self.shape[0], width), dtype=values.dtype)
        X.data = values
        X.indices = indices
        X.indptr = indptr
        if not self.checked:
            if int(indptr[-1]) != indices.size or not all_in_order(indices, indptr, self.shape[1]):
                raise DataError(
                    f"{self.arrays['indices'].path}: is damaged: row pointers must ascend to "
                    f"{indices.size}, and the indices of a row from 0 to at most "
                    f"{self.shape[1] - 1}"
                )
            # The check has read the whole file: give its memory back.
            release_pages(X)
            self.checked.append(True)
        X.has_sorted_indices = True
        X.has_canonical_format = True
        return X

    def read(self, start: int, stop: int, width: int) -> Block:
        """Return some rows, with their labels and weights."""
        X = self.matrix(width)
        # SciPy copies what it slices.
        if (start, stop) != (0, self.shape[0]):
            X = X[start:stop]
        return Block(X, self.labels(start, stop), self.weights(start, stop))

    def labels(self, start: int, stop: int) -> np.ndarray | None:
        """Return the labels of some rows; None without labels."""
        if "labels" not in self.arrays:
            return None
        labels = self.arrays["labels"].map()[start:stop]
        if self.kind_of_labels == "numbers":
            return labels
        classes = np.array(self.header["labels"]["classes"], dtype=str)
        # A damaged file may hold any code.
        if labels.size and not 0 <= labels.min() <= labels.max() < classes.size:
            raise DataError(
                f"{self.arrays['labels'].path}: is damaged: it holds a code without a class"
            )
        return classes[labels]

    def weights(self, start: int, stop: int) -> np.ndarray | None:
        """Return the weights of some rows, mapped; None without weights."""
        if "weights" not in self.arrays:
            return None
        return self.arrays["weights"].map()[start:stop]

    def blocks(self, n_bytes: int) -> list[tuple[int, int]]:
        """Split the rows into runs of at most `n_bytes`, as :meth:`Store.blocks`."""
        n, d = self.shape
        if self.layout == "dense":
            step = max(1, n_bytes // (d * self.dtype.itemsize))
            return [(start, min(start + step, n)) for start in range(0, n, step)]
        # The bytes of all rows before each row.
        indptr = self.arrays["indptr"].map()
        entry_bytes = self.dtype.itemsize + self.arrays["indices"].dtype.itemsize
        before = indptr.astype(np.int64) * entry_bytes + np.arange(n + 1) * indptr.itemsize
        runs = []
        start = 0
        while start < n:
            # The last end at which the run is small enough, but at least one row.
            stop = int(np.searchsorted(before, before[start] + n_bytes, side="right")) - 1
            stop = max(start + 1, stop)
            runs.append((start, stop))
            start = stop
        return runs


def is_store(path: str | os.PathLike[str]) -> bool:
    """Return True for a folder that is, or was meant to be, a store."""
    folder = Path(path)
    return folder.is_dir() and ((folder / HEADER).is_file() or folder.name.endswith(PARTIAL))


def join_stores(
    stores: Sequence[Any], memory: object = None, n_features: int | None = None
) -> tuple[Matrix, np.ndarray | None, np.ndarray | None]:
    """Return the rows of stores, below each other, with their labels and weights.

    The rows of a single store without further parts are mapped. Others are read into memory or, if
    they take more than half of it, copied into a temporary file, which is removed when the rows are
    no longer used. Labels or weights that the stores lack are None.

    Parameters
    ----------
    stores : sequence of Store, str or path
    memory : int, str or None
        What a fit may take; by default the memory that is available.
    n_features : int, optional
        The features that are expected; sparse rows with fewer features are widened to it.

    Raises
    ------
    DataError
        The stores do not go together: dense and sparse rows, other features, or labels or weights
        in only some of them; or they have more features than expected.
    """
    opened = [store if isinstance(store, Store) else Store(store) for store in stores]
    parts = [part for store in opened for part in store._parts]
    _check_parts(parts)
    is_sparse = parts[0].layout == "csr"
    dtype = common_type([part.dtype for part in parts])
    width = max(part.shape[1] for part in parts)
    if n_features is not None:
        # Columns without a value cost a sparse matrix nothing.
        if width > n_features or (width < n_features and not is_sparse):
            raise DataError(f"{opened[0].path}: has {width} features; {n_features} are expected")
        width = n_features
    if len(parts) > 1:
        if memory is None:
            budget = available_memory()
        else:
            budget = memory_bytes(memory)
        if sum(store.n_bytes for store in opened) > FITS * budget:
            return _join_in_file(opened, width, dtype)
    rows = stack_blocks([part.read(0, part.shape[0], width) for part in parts], dtype)
    return rows.X, rows.y, rows.weights


def _join_in_file(
    stores: Sequence[Store], width: int, dtype: np.dtype
) -> tuple[Matrix, np.ndarray | None, np.ndarray | None]:
    """Copy the rows of several stores into a temporary store, removed when no longer used."""
    folder = tempfile.mkdtemp(prefix="saddlesvm-")
    try:
        with StoreWriter(Path(folder, "rows.store"), dtype=dtype, n_features=width) as writer:
            for store in stores:
                for start, stop in store.blocks(BLOCK_BYTES):
                    writer.append(*store.read(start, stop))
        joined = Store(Path(folder, "rows.store"))
        values = joined.X
        if joined.layout == "csr":
            values = joined.X.data
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # The values keep the map of their file alive; with them goes the folder.
    weakref.finalize(values.base, shutil.rmtree, folder, ignore_errors=True)
    return joined.X, joined.y, joined.sample_weight


def _check_parts(parts: Sequence[StorePart]) -> None:
    """Raise a `DataError` for folders whose rows cannot be put into one matrix."""
    check_alike([part.header for part in parts], [str(part.path) for part in parts])


def _appended_folders(folder: Path) -> list[Path]:
    """Return the folders of the rows that were appended, in order; an error if any is missing."""
    numbers = set()
    for child in folder.iterdir():
        number = child.name.removeprefix(PART)
        if child.name.startswith(PART) and number.isascii() and number.isdigit():
            numbers.add(int(number))
    missing = sorted(set(range(2, max(numbers, default=1) + 1)) - numbers)
    if missing:
        raise DataError(f"{folder / (PART + str(missing[0]))}: is missing: the store is damaged")
    return [folder / f"{PART}{number}" for number in sorted(numbers)]


def _combine_headers(parts: Sequence[StorePart]) -> dict[str, object]:
    """Return what the headers of all parts say together."""
    headers = [part.header for part in parts]
    # The number of values other than zero is known only if every part says it.
    counts = [header.get("n_nonzero") for header in headers]
    known = [count for count in counts if count is not None]
    n_nonzero = None
    if len(known) == len(headers):
        n_nonzero = sum(known)
    width = max(header["shape"][1] for header in headers)
    return headers[0] | {
        "shape": [sum(header["shape"][0] for header in headers), width],
        "n_values": sum(header["n_values"] for header in headers),
        "n_nonzero": n_nonzero,
        "labels": _combine_labels([header["labels"] for header in headers]),
        "sources": [source for header in headers for source in header.get("sources") or ()],
    }


def _combine_labels(labels: Sequence[Any]) -> dict[str, Any] | None:
    """Return what the headers of all parts say of the labels together."""
    if labels[0] is None:
        return None
    combined = {"kind": labels[0]["kind"], "classes": None, "counts": None}
    # The classes are known only if every part lists them.
    if all(part["classes"] is not None for part in labels):
        counts: dict[Any, int] = {}
        for part in labels:
            for name, count in zip(part["classes"], part["counts"], strict=True):
                counts[name] = counts.get(name, 0) + count
        combined["classes"] = sorted(counts)
        combined["counts"] = [counts[name] for name in sorted(counts)]
    if labels[0]["kind"] == "numbers":
        combined["smallest"] = min(part["smallest"] for part in labels)
        combined["largest"] = max(part["largest"] for part in labels)
    return combined


def _write_blocks(writer: StoreWriter, X: Any, y: object, sample_weight: ArrayLike | None) -> None:
    """Write arrays some rows at a time."""
    if sp.issparse(X):
        X = X.tocsr()
        n_values = X.nnz
    else:
        X = np.asarray(X)
        n_values = X.size
    given = {"y": y, "sample_weight": sample_weight}
    columns = {name: np.asarray(values) for name, values in given.items() if values is not None}
    n = X.shape[0] if X.ndim else 0
    for name, column in columns.items():
        if column.shape != (n,):
            raise DataError(
                f"{writer.name}: {n} rows and {name} of shape {column.shape}; "
                "one for each row is needed"
            )
    values_of_row = n_values // max(n, 1)
    step = max(1, BLOCK_VALUES // max(values_of_row, 1))
    for start in range(0, n, step):
        some = slice(start, start + step)
        writer.append(X[some], **{name: column[some] for name, column in columns.items()})
