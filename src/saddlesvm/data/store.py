"""A store: rows and labels in a folder of plain arrays, mapped when they are used."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from saddlesvm.data.errors import DataError
from saddlesvm.data.store_format import HEADER, PARTIAL, map_array, map_arrays, read_store_header
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.rows.csr_checks import all_in_order
from saddlesvm.rows.files import release_pages
from saddlesvm.runtime.data_types import LabelsLike, Matrix, RowsLike

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

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
        The contents of ``store.json``.
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
        self.header = read_store_header(Path(path))
        # Type and shape of each array. The maps go: many open stores would take many file handles.
        arrays = map_arrays(self.header, Path(path))
        self._arrays = {name: (array.dtype, array.shape) for name, array in arrays.items()}
        self._has_checked_indices = False

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
        feature_names : sequence of str, optional
        label_name : str, optional

        Raises
        ------
        DataError
            Bad data, or a path that exists or cannot be written.
        """
        with StoreWriter(
            path, dtype=dtype, feature_names=feature_names, label_name=label_name
        ) as writer:
            _write_blocks(writer, X, y, sample_weight)
        return cls(path)

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
        return self._arrays["values"][0]

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
        """True if the features of the original LIBSVM text counted from 0; None without it."""
        for source in self.header.get("sources") or ():
            if source.get("zero_based") is not None:
                return bool(source["zero_based"])
        return None

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(math.prod(shape) * dtype.itemsize for dtype, shape in self._arrays.values())

    @cached_property
    def X(self) -> Any:
        """The rows, shape (n, d): a read-only `numpy.memmap`, or a CSR matrix over memory maps."""
        return self.matrix()

    def matrix(self, n_features: int | None = None) -> Any:
        """Return the rows, mapped; a CSR matrix is widened to `n_features` columns.

        Raises
        ------
        DataError
            The store has more features, its rows are dense, or its indices are damaged.
        """
        n, d = self.shape
        width = d if n_features is None else n_features
        # Columns without a value cost a sparse matrix nothing.
        if width < d or (width > d and self.layout == "dense"):
            raise DataError(f"{self.path}: has {d} features; {width} are expected")
        values = self._map("values")
        if self.layout == "dense":
            return values
        indices = self._map("indices")
        indptr = self._map("indptr")
        # Give an empty matrix its arrays: SciPy's constructor would scan, and may copy, them.
        X = sp.csr_matrix((n, width), dtype=values.dtype)
        X.data = values
        X.indices = indices
        X.indptr = indptr
        # The first call checks the indices, which reads the whole file: give its memory back.
        if not self._has_checked_indices:
            if int(indptr[-1]) != indices.size or not all_in_order(indices, indptr, d):
                raise DataError(
                    f"{self.path / 'indices.npy'}: is damaged: row pointers must ascend to "
                    f"{indices.size}, and the indices of a row from 0 to at most {d - 1}"
                )
            release_pages(X)
            self._has_checked_indices = True
        X.has_sorted_indices = True
        X.has_canonical_format = True
        return X

    def blocks(self, n_bytes: int) -> list[tuple[int, int]]:
        """Split the rows into runs that take at most `n_bytes` each, or have a single row.

        Parameters
        ----------
        n_bytes : int
            Limit for the values and, in CSR, the indices and row pointers of a run.

        Returns
        -------
        list of tuple of int
            First row of each run, and the first row after it.
        """
        n, d = self.shape
        if self.layout == "dense":
            step = max(1, n_bytes // (d * self.dtype.itemsize))
            return [(start, min(start + step, n)) for start in range(0, n, step)]
        # The bytes of all rows before each row.
        indptr = self._map("indptr")
        entry_bytes = self.dtype.itemsize + self._arrays["indices"][0].itemsize
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

    def read(self, start: int, stop: int) -> tuple[Matrix, np.ndarray | None, np.ndarray | None]:
        """Return rows, labels and weights from row `start` to row `stop`.

        Labels or weights that the store lacks are None. Dense rows are mapped, sparse rows copied.

        Raises
        ------
        DataError
            The indices or the labels are damaged.
        """
        return self.matrix()[start:stop], self._labels(start, stop), self._weights(start, stop)

    @cached_property
    def y(self) -> np.ndarray | None:
        """The labels, shape (n,), None without labels; numbers are mapped, text is decoded."""
        return self._labels(0, self.shape[0])

    @cached_property
    def sample_weight(self) -> np.ndarray | None:
        """The weights of the rows, shape (n,), mapped; None if all are 1."""
        return self._weights(0, self.shape[0])

    def _map(self, name: str) -> np.ndarray:
        """Map an array; check it again, as reading beyond the end of a file kills the process."""
        dtype, shape = self._arrays[name]
        return map_array(self.path / f"{name}.npy", (dtype,), shape)

    def _labels(self, start: int, stop: int) -> np.ndarray | None:
        """Return the labels of some rows; None without labels."""
        if "labels" not in self._arrays:
            return None
        labels = self._map("labels")[start:stop]
        if self.header["labels"]["kind"] == "numbers":
            return labels
        classes = np.array(self.header["labels"]["classes"], dtype=str)
        # A damaged file may hold any code.
        if labels.size and not 0 <= labels.min() <= labels.max() < classes.size:
            raise DataError(
                f"{self.path / 'labels.npy'}: is damaged: it holds a code without a class"
            )
        return classes[labels]

    def _weights(self, start: int, stop: int) -> np.ndarray | None:
        """Return the weights of some rows, mapped; None without weights."""
        if "weights" not in self._arrays:
            return None
        return self._map("weights")[start:stop]

    @cached_property
    def classes(self) -> np.ndarray | None:
        """The distinct labels, ascending; None without labels, or with too many to be classes."""
        labels = self.header["labels"]
        if labels is None or labels["classes"] is None:
            return None
        if labels["kind"] == "text":
            return np.array(labels["classes"], dtype=str)
        return np.array(labels["classes"], dtype=self._arrays["labels"][0])


def is_store(path: str | os.PathLike[str]) -> bool:
    """Return True for a folder that is, or was meant to be, a store."""
    folder = Path(path)
    return folder.is_dir() and ((folder / HEADER).is_file() or folder.name.endswith(PARTIAL))


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
