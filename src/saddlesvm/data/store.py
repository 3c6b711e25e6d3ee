"""A store: rows and labels in a folder of plain arrays, which opens at once and is read only where it is used."""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.blocks import position_of
from saddlesvm.data.errors import DataError
from saddlesvm.data.store_format import HEADER, NOTE, PARTIAL, ArrayFile, expected_arrays, read_store_header
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.data.streams import reading
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.csr_checks import all_in_order
from saddlesvm.rows.passes import squared_norms

_BLOCK_BYTES = 1 << 24
_BLOCK_VALUES = 1 << 21  # of arrays that are written
_OWN = frozenset((  # fields of the header that a writer writes itself
    "format", "version", "written by", "layout", "shape", "dtype", "n_values", "n_nonzero", "labels", "row_norms",
    "feature_names", "label_name", "arrays", "sources", "read with",
))  # fmt: skip


class Store:
    """Rows, labels and optional weights in a folder, mapped from its files and never read into memory whole.

    Opening compares the header with the size and type of every file, so that a truncated store is found without
    reading it; :meth:`verify` reads everything. A store is written by :meth:`create`, by
    :class:`~saddlesvm.data.StoreWriter`, or by ``saddlesvm convert``. It can be pickled: only its path is.

    Parameters
    ----------
    path : str or path
        The folder.

    Attributes
    ----------
    path : Path
        Absolute.
    header : dict
        The contents of ``store.json``.
    shape : tuple of int
        Rows and features.
    dtype : dtype
        float32 or float64; of dense rows also float16, :data:`~saddlesvm.bfloat16`, int8, uint8 or bool.
    layout : {"dense", "csr"}
    n_values : int
        Stored values.
    classes : ndarray or None
        The distinct labels in ascending order; None without labels, or with too many to be classes.

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
        self.header = read_store_header(Path(path))
        self._arrays = expected_arrays(self.header, Path(path))
        for array in self._arrays.values():
            array.offset()

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
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        y = None if y is None else np.asarray(y)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        n = X.shape[0] if X.ndim else 0
        for column, what in ((y, "labels"), (weights, "weights")):
            if column is not None and column.shape != (n,):
                raise DataError(f"{os.fspath(path)}: {n} rows and {what} of shape {column.shape}; one a row is needed")
        named: dict[str, Any] = {"feature_names": feature_names, "label_name": label_name}
        with StoreWriter(path, dtype=dtype, overwrite=overwrite, **named) as writer:
            a_row = (X.nnz if sp.issparse(X) else X.size) // max(n, 1)
            step = max(1, _BLOCK_VALUES // max(a_row, 1))
            for start in range(0, n, step):
                part = slice(start, start + step)
                writer.append(X[part], None if y is None else y[part], None if weights is None else weights[part])
        return cls(path)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The rows of a dense store as an array, mapped, so that it can be X of scikit-learn's transformers."""
        if self.layout != "dense":
            raise TypeError(f"{self.path}: holds sparse rows: give its X, a CSR matrix over its files")
        rows = np.asarray(self.X)
        return rows.astype(dtype) if copy or (dtype is not None and rows.dtype != dtype) else rows

    def append(self, X: Any, y: Any = None, sample_weight: Any = None) -> Store:
        """Add rows: a new store is written block by block, and replaces this one when it is complete.

        Processes that have the store open keep its old rows. Until the end, the disk holds both stores. The checksums
        and norms of the old rows are computed again.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
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
        self._rewritten(self.path, None, (X, y, sample_weight), overwrite=True)
        return Store(self.path)

    def narrow(
        self, path: str | os.PathLike[str], columns: Sequence[str | int] | slice, *, overwrite: bool = False
    ) -> Store:
        """A store of some of the columns, with the same labels and weights.

        Parameters
        ----------
        path : str or path
            The folder to make.
        columns : sequence of str or int, or slice
            By name or position, in the order that they are to have.
        overwrite : bool, default=False

        Raises
        ------
        DataError
            There is no such column, or the path exists.
        """
        places = narrowed(columns, self.header.get("feature_names"), self.shape[1], str(self.path))
        self._rewritten(path, places, None, overwrite=overwrite)
        return Store(path)

    def _rewritten(self, path: str | os.PathLike[str], places: list[int] | None, more: Any, *, overwrite: bool) -> None:
        """Write the rows to a store, some columns of them, or with more rows after them."""
        names = self.header.get("feature_names")
        names = names if places is None or names is None else [names[place] for place in places]
        known = {"n_features": self.shape[1] if places is None else len(places), "feature_names": names}
        options: dict[str, Any] = known | {"dtype": self.dtype, "label_name": self.header.get("label_name")}
        with StoreWriter(path, overwrite=overwrite, **options) as writer:
            for start, stop in self.blocks(_BLOCK_BYTES):
                X = self.X[start:stop] if places is None else self.X[start:stop][:, places]
                weights = None if self.sample_weight is None else self.sample_weight[start:stop]
                writer.append(X, self.labels(start, stop), weights)
            if more is not None:
                writer.append(*more)
            writer.sources = list(self.header.get("sources", ()))
            own = _OWN if places is None else _OWN | {NOTE, "encoder"}  # what says what each column is
            writer.further = {name: one for name, one in self.header.items() if name not in own}

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        n, d = self.header["shape"]
        return n, d

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self._arrays["values"].dtype

    @property
    def layout(self) -> Literal["dense", "csr"]:
        """The layout of the rows: "dense" or "csr"."""
        layout: Literal["dense", "csr"] = self.header["layout"]
        return layout

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
        return sum(array.n_bytes for array in self._arrays.values())

    @cached_property
    def X(self) -> Any:
        """The rows, shape (n, d): a read-only `numpy.memmap`, or a CSR matrix over read-only memory maps."""
        return self.matrix()

    def matrix(self, n_features: int | None = None) -> Any:
        """The rows; a CSR matrix with `n_features` columns, where that is more than the store has.

        Raises
        ------
        DataError
            The store has more features, or its rows are dense.
        """
        n, d = self.shape
        width = d if n_features is None else n_features
        if width < d or (width != d and self.layout == "dense"):
            raise DataError(f"{self.path}: has {d} features; {width} are expected")
        values = self._arrays["values"].map()
        if self.layout == "dense":
            return values
        return _matrix_over(values, self._arrays["indices"].map(), self._arrays["indptr"].map(), (n, width))

    def blocks(self, n_bytes: int) -> list[tuple[int, int]]:
        """Cut the rows into runs of neighbours that need at most `n_bytes` each (or are one row), in order.

        Parameters
        ----------
        n_bytes : int
            Limit for the values and, in CSR, the indices and row pointers of a run.

        Returns
        -------
        list of tuple of int
            First row of each run, and the first one after it.
        """
        n, d = self.shape
        if self.layout == "dense":
            step = max(1, n_bytes // (d * self.dtype.itemsize))
            return [(start, min(start + step, n)) for start in range(0, n, step)]
        indptr = self._arrays["indptr"].map()
        entry = self.dtype.itemsize + self._arrays["indices"].dtype.itemsize
        runs, start = [], 0
        while start < n:
            begin = start

            def size(stop: int, begin: int = begin) -> int:
                return (stop - begin) * indptr.itemsize + int(indptr[stop] - indptr[begin]) * entry

            start = max(begin + 1, bisect_right(range(n + 1), n_bytes, lo=begin + 1, key=size) - 1)
            runs.append((begin, start))
        return runs

    @cached_property
    def y(self) -> np.ndarray[Any, Any] | None:
        """The labels, shape (n,): numbers are mapped, text is made from its codes; None without labels."""
        return self.labels(0, len(self))

    def labels(self, start: int, stop: int) -> np.ndarray[Any, Any] | None:
        """The labels of the rows from `start` to `stop`; None without labels.

        Raises
        ------
        DataError
            There is a code that stands for no class.
        """
        if "labels" not in self._arrays:
            return None
        labels = self._arrays["labels"].map()[start:stop]
        if self.header["labels"]["kind"] == "numbers":
            return labels
        classes = np.array(self.header["labels"]["classes"], dtype=str)
        if labels.size and not 0 <= labels.min() <= labels.max() < classes.size:
            raise DataError(f"{self._arrays['labels'].path}: is damaged: it holds a code without a class")
        return classes[labels]

    @cached_property
    def sample_weight(self) -> np.ndarray[Any, Any] | None:
        """The weights of the rows, shape (n,), mapped; None when all are 1."""
        return self._arrays["weights"].map() if "weights" in self._arrays else None

    @cached_property
    def classes(self) -> np.ndarray[Any, Any] | None:
        """The distinct labels in ascending order; None without labels, or with too many to be classes."""
        labels = self.header["labels"]
        if labels is None or labels["classes"] is None:
            return None
        dtype = str if labels["kind"] == "text" else self._arrays["labels"].dtype
        return np.array(labels["classes"], dtype=dtype)

    def verify(self, advance: Callable[[int], Any] | None = None) -> Store:
        """Read everything: compare the checksums, and check that all values are finite and all indices in place.

        Parameters
        ----------
        advance : callable, optional
            Called with a number of bytes each time that many were read.

        Returns
        -------
        Store
            Itself.

        Raises
        ------
        DataError
            Naming the file that is damaged.
        """
        for array in self._arrays.values():
            _compare_checksum(array, advance or (lambda n_bytes: None))
        self._check_rows()
        return self

    def _check_rows(self) -> None:
        design = rows.as_rows(self.X)
        path = self._arrays["values"].path
        if design.sparse:
            fine = all_in_order(design.indices, design.indptr, self.shape[1])
            if not fine or int(design.indptr[-1]) != self.n_values:
                raise DataError(f"{self._arrays['indices'].path}: indices are out of range or do not ascend in a row")
        for start, stop in self.blocks(_BLOCK_BYTES):
            part = rows.as_rows(self.X[start:stop])
            if not np.isfinite(squared_norms(part)).all():
                raise DataError(f"{path}: holds a value that is not finite, in rows {start + 1} to {stop}")


def narrowed(columns: Sequence[str | int] | slice, names: list[str] | None, width: int, source: str) -> list[int]:
    """The positions of chosen columns.

    Raises
    ------
    DataError
        There is no such column, or none is chosen.
    """
    if isinstance(columns, slice):
        places = list(range(*columns.indices(width)))
    else:
        places = [position_of(one, names, width, source, "column") for one in columns]
    if not places or len(set(places)) != len(places):
        what = "a column twice" if places else "none"
        raise DataError(f"{source}: columns={columns!r} chooses {what}; different columns are needed, one at least")
    return places


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder that is, or was meant to be, a store."""
    folder = Path(path)
    return folder.is_dir() and ((folder / HEADER).is_file() or folder.name.endswith(PARTIAL))


def _matrix_over(values: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """A CSR matrix over arrays as they are: SciPy's constructor would scan, and may copy, the indices."""
    matrix = sp.csr_matrix(shape, dtype=values.dtype)
    matrix.data, matrix.indices, matrix.indptr = values, indices, indptr
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def _compare_checksum(array: ArrayFile, advance: Callable[[int], Any]) -> None:
    found = 0
    with reading(array.path), array.path.open("rb") as file:
        file.seek(array.offset())
        while part := file.read(_BLOCK_BYTES):
            found = zlib.crc32(part, found)
            advance(len(part))
    if found != array.crc32:
        raise DataError(f"{array.path}: is damaged: its checksum is {found:08x}; {HEADER} says {array.crc32:08x}")
