"""A store: rows and labels in a folder of plain arrays, which opens at once and is read only where it is used."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.blocks import check_names
from saddlesvm.data.errors import DataError
from saddlesvm.data.store_format import HEADER, PART, PARTIAL, StoredArray, open_arrays, read_store_header
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.rows.csr_checks import all_in_order
from saddlesvm.rows.files import release_pages
from saddlesvm.rows.memory_plan import FITS, available_memory, memory_bytes
from saddlesvm.rows.small_types import FLOATS, precision_of, widened

BLOCK_BYTES = 1 << 24  # of rows that are copied at a time
BLOCK_VALUES = 1 << 21  # of arrays that are written at a time
ROWS = {"dense": "dense rows", "csr": "sparse rows"}


class Store:
    """Rows, labels and optional weights in a folder, mapped from its files and never read into memory whole.

    Opening compares the header with the size and type of every file, so that a truncated store is found without
    reading it. The indices of sparse rows are checked once, when `X` is first used. A store is written by
    :meth:`create`, by :class:`~saddlesvm.data.StoreWriter`, or by ``saddlesvm convert``. It can be pickled: only its
    path is.

    Parameters
    ----------
    path : str or path
        The folder.

    Attributes
    ----------
    path : Path
        Absolute.
    header : dict
        The contents of ``store.json``; of a store with appended rows those of all parts together.
    shape : tuple of int
        Rows and features.
    dtype : dtype
        float32 or float64; of dense rows also float16, bfloat16, int8, uint8 or bool.
    layout : {"dense", "csr"}
    n_values : int
        Stored values.
    classes : ndarray or None
        The distinct labels in ascending order; None without labels, or with too many to be classes.
    n_parts : int
        1, and 1 more for each time that rows were appended.

    Raises
    ------
    DataError
        The folder is not a store, a newer one, damaged or truncated; the message names the file and the reason.

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
        first = Part.open(Path(path))
        self._parts = [first, *(Part.open(folder) for folder in _appended(Path(path)))]
        check_alike(self._parts)
        self.header = first.header if len(self._parts) == 1 else _header_of_all(self._parts)

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
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        dtype: Any = None,
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
            Stored as it is, if it is float32 or float64, or dense and float16, bfloat16, int8, uint8 or bool; other
            numbers as float32, if that holds every number of their type, or else as float64.
        y : array-like of shape (n,), optional
            Numbers or text.
        sample_weight : array-like of shape (n,), optional
        dtype : dtype, optional
            Of the values, in place of that of X.
        overwrite : bool, default=False
            Replace a store of that name.
        feature_names : sequence of str, optional
        label_name : str, optional

        Raises
        ------
        DataError
            Bad data, or a path that exists or cannot be written.
        """
        options: dict[str, Any] = {"feature_names": feature_names, "label_name": label_name}
        with StoreWriter(path, dtype=dtype, overwrite=overwrite, **options) as writer:
            _write_blocks(writer, X, y, sample_weight)
        return cls(path)

    def append(self, X: Any, y: Any = None, sample_weight: Any = None) -> Store:
        """Add rows as a further part, without writing the rows that are there again.

        The part is a store of its own in the folder ``part-2``, ``part-3`` and so on, which appears when it is
        complete. Processes that have the store open keep its old rows. `X` of a store with parts is put together for
        each use, in memory or in a temporary file: ``saddlesvm convert OLD NEW`` makes one part of all.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Dense rows are as wide as those of the store.
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
        first = self._parts[0]
        given = np.asarray(y) if y is not None else None
        kind = first.kind_of_labels
        found = None if given is None else "numbers" if given.dtype.kind in "biuf" else "text"
        layout = "csr" if sp.issparse(X) else "dense"
        if layout != first.layout:
            raise DataError(f"{self.path}: holds {ROWS[first.layout]}; got {ROWS[layout]}")
        if np.ndim(X) != 2 or (layout == "dense" and np.shape(X)[1] != self.shape[1]):
            raise DataError(f"{self.path}: has {self.shape[1]} features; got rows of shape {np.shape(X)}")
        if found != kind:
            said = "no labels" if kind is None else f"labels that are {kind}"
            raise DataError(f"{self.path}: has {said}; got {'none' if found is None else found} with the new rows")
        if (sample_weight is not None) != ("weights" in first.arrays):
            has = "weights" if "weights" in first.arrays else "no weights"
            raise DataError(f"{self.path}: has {has}; give sample_weight if, and only if, the store has weights")
        target = self.path / f"{PART}{len(_appended(self.path)) + 2}"
        with StoreWriter(target, dtype=first.dtype) as writer:
            _write_blocks(writer, X, given, sample_weight)
            if target.exists():
                raise DataError(f"{self.path}: another process has appended rows meanwhile; append these again")
        return Store(self.path)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The rows of a dense store as an array, mapped, so that it can be X of scikit-learn's transformers."""
        if self.layout != "dense":
            raise TypeError(f"{self.path}: holds sparse rows: give its X, a CSR matrix over its files")
        rows = np.asarray(self.X)
        return rows.astype(dtype) if copy or (dtype is not None and rows.dtype != dtype) else rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        n, d = self.header["shape"]
        return n, d

    @property
    def dtype(self) -> np.dtype[Any]:
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
        """Whether the features of the original LIBSVM text counted from 0; None for other sources."""
        known = [one.get("zero_based") for one in self.header.get("sources", ())]
        return next((bool(one) for one in known if one is not None), None)

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(array.n_bytes for part in self._parts for array in part.arrays.values())

    @cached_property
    def X(self) -> Any:
        """The rows, shape (n, d): a read-only `numpy.memmap`, or a CSR matrix over read-only memory maps.

        The rows of several parts are put together, in memory or, where they take more than half of it, in a temporary
        file.
        """
        return self.matrix()

    def matrix(self, n_features: int | None = None) -> Any:
        """The rows; a CSR matrix with `n_features` columns, where that is more than the store has.

        Raises
        ------
        DataError
            The store has more features, its rows are dense, or its indices are damaged.
        """
        d = self.shape[1]
        width = d if n_features is None else n_features
        if width < d or (width != d and self.layout == "dense"):
            raise DataError(f"{self.path}: has {d} features; {width} are expected")
        if self.n_parts == 1:
            return self._parts[0].matrix(width)
        return joined([self], None, width)[0]

    def blocks(self, n_bytes: int) -> list[tuple[int, int]]:
        """Cut the rows into runs of neighbours that need at most `n_bytes` each (or are one row), in order.

        A run lies within one part.

        Parameters
        ----------
        n_bytes : int
            Limit for the values and, in CSR, the indices and row pointers of a run.

        Returns
        -------
        list of tuple of int
            First row of each run, and the first one after it.
        """
        runs = []
        before = 0
        for part in self._parts:
            runs += [(before + start, before + stop) for start, stop in part.blocks(n_bytes)]
            before += part.shape[0]
        return runs

    def read(self, start: int, stop: int) -> tuple[Any, np.ndarray[Any, Any] | None, np.ndarray[Any, Any] | None]:
        """Rows, labels and weights from row `start` to row `stop`; None for labels or weights that the store lacks.

        Rows of one part are mapped, rows of several are copied.

        Raises
        ------
        DataError
            The indices or the labels are damaged.
        """
        pieces: list[tuple[Any, Any, Any]] = []
        before = 0
        for part in self._parts:
            low = max(start - before, 0)
            high = max(low, min(stop - before, part.shape[0]))
            if low < high or (not pieces and part is self._parts[-1]):
                pieces.append((part.matrix(self.shape[1])[low:high], part.labels(low, high), part.weights(low, high)))
            before += part.shape[0]
        return _stacked(pieces, self.layout == "csr")

    @cached_property
    def y(self) -> np.ndarray[Any, Any] | None:
        """The labels, shape (n,): numbers are mapped, text is made from its codes; None without labels."""
        labels = [part.labels(0, part.shape[0]) for part in self._parts]
        return _end_to_end(labels)

    @cached_property
    def sample_weight(self) -> np.ndarray[Any, Any] | None:
        """The weights of the rows, shape (n,), mapped; None when all are 1."""
        weights = [part.weights(0, part.shape[0]) for part in self._parts]
        return _end_to_end(weights)

    @cached_property
    def classes(self) -> np.ndarray[Any, Any] | None:
        """The distinct labels in ascending order; None without labels, or with too many to be classes."""
        labels = self.header["labels"]
        if labels is None or labels["classes"] is None:
            return None
        types = [part.arrays["labels"].dtype for part in self._parts]
        return np.array(labels["classes"], dtype=str if labels["kind"] == "text" else np.result_type(*types))


class Part(NamedTuple):
    """One folder of a store: its header, and its arrays by name."""

    path: Path
    header: dict[str, Any]
    arrays: dict[str, StoredArray]
    checked: list[bool]  # holds True once the indices are known to be in range

    @classmethod
    def open(cls, folder: Path) -> Part:
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
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.arrays["values"].dtype

    @property
    def kind_of_labels(self) -> str | None:
        """ "numbers" or "text"; None without labels."""
        return None if self.header["labels"] is None else str(self.header["labels"]["kind"])

    def matrix(self, width: int) -> Any:
        """The rows, mapped; of CSR rows the indices are checked when this is first called."""
        values = self.arrays["values"].map()
        if self.layout == "dense":
            return values
        indices = self.arrays["indices"].map()
        indptr = self.arrays["indptr"].map()
        # SciPy's constructor would scan, and may copy, the indices
        X = sp.csr_matrix((self.shape[0], width), dtype=values.dtype)
        X.data, X.indices, X.indptr = values, indices, indptr
        if not self.checked:
            if int(indptr[-1]) != indices.size or not all_in_order(indices, indptr, self.shape[1]):
                raise DataError(
                    f"{self.arrays['indices'].path}: is damaged: row pointers must ascend to {indices.size}, and the "
                    f"indices of a row from 0 to at most {self.shape[1] - 1}"
                )
            release_pages(X)
            self.checked.append(True)
        X.has_sorted_indices = True
        X.has_canonical_format = True
        return X

    def labels(self, start: int, stop: int) -> np.ndarray[Any, Any] | None:
        """The labels of some rows; None without labels."""
        if "labels" not in self.arrays:
            return None
        labels = self.arrays["labels"].map()[start:stop]
        if self.kind_of_labels == "numbers":
            return labels
        classes = np.array(self.header["labels"]["classes"], dtype=str)
        if labels.size and not 0 <= labels.min() <= labels.max() < classes.size:
            raise DataError(f"{self.arrays['labels'].path}: is damaged: it holds a code without a class")
        return classes[labels]

    def weights(self, start: int, stop: int) -> np.ndarray[Any, Any] | None:
        """The weights of some rows, mapped; None without weights."""
        return self.arrays["weights"].map()[start:stop] if "weights" in self.arrays else None

    def blocks(self, n_bytes: int) -> list[tuple[int, int]]:
        """Runs of rows of at most `n_bytes`, as :meth:`Store.blocks`."""
        n, d = self.shape
        if self.layout == "dense":
            step = max(1, n_bytes // (d * self.dtype.itemsize))
            return [(start, min(start + step, n)) for start in range(0, n, step)]
        indptr = self.arrays["indptr"].map()
        entry = self.dtype.itemsize + self.arrays["indices"].dtype.itemsize
        runs = []
        start = 0
        while start < n:
            begin = start

            def size(stop: int, begin: int = begin) -> int:
                return (stop - begin) * indptr.itemsize + int(indptr[stop] - indptr[begin]) * entry

            start = max(begin + 1, bisect_right(range(n + 1), n_bytes, lo=begin + 1, key=size) - 1)
            runs.append((begin, start))
        return runs


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder that is, or was meant to be, a store."""
    folder = Path(path)
    return folder.is_dir() and ((folder / HEADER).is_file() or folder.name.endswith(PARTIAL))


def joined(stores: Sequence[Any], memory: Any = None, n_features: int | None = None) -> tuple[Any, Any, Any]:
    """The rows of several stores one below the other, with their labels and weights (None where they have none).

    They are read into memory, or, where they take more than half of it, copied into a file of the folder for temporary
    files, which goes when the rows are no longer used.

    Parameters
    ----------
    stores : sequence of Store, str or path
    memory : int, str or None
        What a fit may take; by default the memory that is available.
    n_features : int, optional
        Sparse rows with fewer are widened to it.

    Raises
    ------
    DataError
        They do not go together: dense and sparse rows, other features, labels or weights in some of them only.
    """
    opened = [one if isinstance(one, Store) else Store(one) for one in stores]
    parts = [part for one in opened for part in one._parts]
    check_alike(parts)
    sparse = parts[0].layout == "csr"
    dtype = common_type([part.dtype for part in parts])
    width = max(part.shape[1] for part in parts)
    width = max(width, n_features or 0) if sparse else width
    most = FITS * (available_memory() if memory is None else memory_bytes(memory))
    if sum(one.n_bytes for one in opened) > most:
        return _joined_in_file(opened, width, dtype)
    pieces = [(part.matrix(width), part.labels(0, part.shape[0]), part.weights(0, part.shape[0])) for part in parts]
    X, y, weights = _stacked(pieces, sparse, dtype)
    return X, y, weights


def _joined_in_file(stores: Sequence[Store], width: int, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """The rows of several stores in a temporary store, which goes when the rows are no longer used."""
    folder = tempfile.mkdtemp(prefix="saddlesvm-")
    try:
        with StoreWriter(Path(folder, "rows.store"), dtype=dtype, n_features=width) as writer:
            for store in stores:
                for start, stop in store.blocks(BLOCK_BYTES):
                    writer.append(*store.read(start, stop))
        made = Store(Path(folder, "rows.store"))
        values = made.X.data if made.layout == "csr" else made.X
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(values.base, shutil.rmtree, folder, ignore_errors=True)
    return made.X, made.y, made.sample_weight


def check_alike(parts: Sequence[Part]) -> None:
    """Raise a `DataError` for folders whose rows cannot stand in one matrix."""
    first = parts[0]
    for part in parts[1:]:
        if part.layout != first.layout:
            raise DataError(f"{part.path}: holds {ROWS[part.layout]}; {first.path} holds {ROWS[first.layout]}")
        if part.layout == "dense" and part.shape[1] != first.shape[1]:
            raise DataError(f"{part.path}: has {part.shape[1]} features; {first.path} has {first.shape[1]}")
        for name in ("labels", "weights"):
            if (name in part.arrays) != (name in first.arrays):
                raise DataError(f"{part.path} and {first.path}: one has {name} and the other has none")
        if part.kind_of_labels != first.kind_of_labels:
            raise DataError(f"{part.path}: the labels are numbers in some of the stores, and text in others")
        ours = part.header.get("feature_names")
        theirs = first.header.get("feature_names")
        check_names(str(part.path), ours, str(first.path), theirs)


def common_type(dtypes: Sequence[np.dtype[Any]], unchanged: bool = True) -> np.dtype[Any]:
    """The type of a store of sources: theirs, if it is one and no value is changed; else a float that holds all."""
    if unchanged and all(one == dtypes[0] for one in dtypes):
        return dtypes[0]
    return np.result_type(*map(precision_of, dtypes))


def _appended(folder: Path) -> list[Path]:
    """The folders of the rows that were appended, in order.

    Raises
    ------
    DataError
        One of them is missing.
    """
    numbers = set()
    for one in folder.iterdir():
        number = one.name.removeprefix(PART)
        if one.name.startswith(PART) and number.isascii() and number.isdigit():
            numbers.add(int(number))
    missing = sorted(set(range(2, max(numbers, default=1) + 1)) - numbers)
    if missing:
        raise DataError(f"{folder / (PART + str(missing[0]))}: is missing: the store is damaged")
    return [folder / f"{PART}{number}" for number in sorted(numbers)]


def _header_of_all(parts: Sequence[Part]) -> dict[str, Any]:
    """What the headers of all parts say together."""
    headers = [part.header for part in parts]
    nonzero = [header.get("n_nonzero") for header in headers]
    known = [count for count in nonzero if count is not None]
    width = max(header["shape"][1] for header in headers)
    return headers[0] | {
        "shape": [sum(header["shape"][0] for header in headers), width],
        "n_values": sum(header["n_values"] for header in headers),
        "n_nonzero": sum(known) if len(known) == len(nonzero) else None,
        "labels": _labels_of_all([header["labels"] for header in headers]),
        "sources": [source for header in headers for source in header.get("sources", ())],
    }


def _labels_of_all(labels: Sequence[Any]) -> dict[str, Any] | None:
    """What the headers of all parts say of the labels together."""
    if labels[0] is None:
        return None
    counts: dict[Any, int] | None = {}
    for one in labels:
        if counts is None or one["classes"] is None:
            counts = None
            continue
        for name, count in zip(one["classes"], one["counts"], strict=True):
            counts[name] = counts.get(name, 0) + count
    classes = None if counts is None else sorted(counts)
    found = {"kind": labels[0]["kind"], "classes": classes}
    found["counts"] = None if counts is None else [counts[name] for name in sorted(counts)]
    if labels[0]["kind"] == "numbers":
        found["smallest"] = min(one["smallest"] for one in labels)
        found["largest"] = max(one["largest"] for one in labels)
    return found


def _write_blocks(writer: StoreWriter, X: Any, y: Any, sample_weight: Any) -> None:
    """Write arrays some rows at a time."""
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    y = None if y is None else np.asarray(y)
    weights = None if sample_weight is None else np.asarray(sample_weight)
    n = X.shape[0] if X.ndim else 0
    for column, what in ((y, "labels"), (weights, "weights")):
        if column is not None and column.shape != (n,):
            raise DataError(f"{writer.name}: {n} rows and {what} of shape {column.shape}; one a row is needed")
    a_row = (X.nnz if sp.issparse(X) else X.size) // max(n, 1)
    step = max(1, BLOCK_VALUES // max(a_row, 1))
    for start in range(0, n, step):
        part = slice(start, start + step)
        writer.append(X[part], None if y is None else y[part], None if weights is None else weights[part])


def _stacked(pieces: Sequence[tuple[Any, Any, Any]], sparse: bool, dtype: Any = None) -> tuple[Any, Any, Any]:
    """Rows, labels and weights one below the other; a single piece is returned as it is."""
    matrices = [X for X, _, _ in pieces]
    dtype = common_type([X.dtype for X in matrices]) if dtype is None else dtype
    if len(pieces) == 1:
        X = matrices[0]
    elif sparse:
        X = sp.vstack(matrices, format="csr", dtype=dtype)
    else:
        X = np.concatenate([widened(one, dtype) if dtype in FLOATS else one for one in matrices])
    return X, _end_to_end([y for _, y, _ in pieces]), _end_to_end([weights for _, _, weights in pieces])


def _end_to_end(columns: Sequence[Any]) -> Any:
    """Labels or weights of several parts one after the other; None if there are none."""
    if columns[0] is None:
        return None
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
