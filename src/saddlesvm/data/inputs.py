"""Inputs that are accepted as rows besides arrays.

These are Arrow tables, data frames, arrays of other libraries, data sets of h5py and zarr (read by
slices), rows that are dicts, and stores, of which several may be parts of one data set.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer

from saddlesvm.data.arrow_columns import arrow_matrix, is_arrow
from saddlesvm.data.store import Store, is_store, join_stores
from saddlesvm.rows.files import mapping_of
from saddlesvm.rows.memory_plan import available_memory, memory_bytes

SLICE_BYTES = 1 << 24  # bytes of rows that are read or copied at a time; a guess
# Share of the memory: sliced rows up to this size are read into it, larger ones into a file.
READ_SHARE = 0.5


def as_matrix(X: Any, estimator: Any, *, reset: bool) -> tuple[Any, Any]:
    """Return rows as scikit-learn can check them, and the names of their columns, if any.

    Parameters
    ----------
    X : object
        Anything but an array: a store or several, a table, rows that are dicts, and what
        :func:`open_rows` takes.
    estimator : estimator or None
        Its `memory` is what rows may take; its features are the columns of rows that are dicts,
        unless `reset` is True.
    reset : bool

    Raises
    ------
    ValueError
        Rows that are dicts are given to a function, or to a model that knows no names.
    """
    memory = getattr(estimator, "memory", None)
    if are_stores(X):
        X = join_stores(X, memory)[0]
    if isinstance(X, Store):
        X = _rows_of_store(X, memory)
    X, names = open_rows(X, memory)
    if not are_dicts(X):
        return X, names_of_frame(X) if names is None else names
    if estimator is None:
        raise ValueError(
            "rows that are dicts can be given to fit and predict only; make a matrix of them first "
            "(sklearn.feature_extraction.DictVectorizer)"
        )
    if not reset and not hasattr(estimator, "feature_names_in_"):
        raise ValueError(
            "rows that are dicts need a model that was trained on dicts or on columns with names"
        )
    return rows_of_dicts(X, None if reset else estimator.feature_names_in_)


def _rows_of_store(store: Store, memory: Any) -> Any:
    """Return the rows of a store, whose parts are joined in the memory that a fit may take."""
    if store.n_parts > 1:
        return join_stores([store], memory)[0]
    return store.X


def open_rows(X: Any, memory: Any = None) -> tuple[Any, list[str] | None]:
    """Return rows as an array, and the names of their columns, if they have any.

    Parameters
    ----------
    X : object
        With ``__arrow_c_stream__``, ``__arrow_c_array__`` or ``__arrow_array__``: columns of
        numbers, or a single column of lists, which is taken without a copy. With ``__dlpack__``:
        the arrays of other libraries. With ``shape``, ``dtype`` and slices: it is read. A lazy
        frame of polars becomes a data frame. Anything else is returned as it is.
    memory : int, str or None
        The memory that a fit may take: sliced rows that are larger than half of it are copied into
        a file, and mapped.

    Raises
    ------
    ValueError
        Columns do not hold numbers, or pyarrow is needed and not installed.
    """
    if isinstance(X, (np.ndarray, list, tuple)) or sparse.issparse(X):
        return X, None
    if hasattr(X, "__dask_graph__"):
        return X, None
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        X = X.collect()
    # scikit-learn takes data frames, but not lists in their columns.
    if is_arrow(X) and (not _is_data_frame(X) or _has_lists(X)):
        return arrow_matrix(X)
    X = as_numpy(X)
    if _takes_slices(X):
        return _read_slices(X, None if memory is None else memory_bytes(memory)), None
    return X, None


def as_numpy(values: Any) -> Any:
    """Return an array of another library as NumPy's, without a copy if it supports DLPack.

    Anything else is returned as it is: scikit-learn converts it, or says why it cannot.
    """
    if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
        return values
    # pyarrow's DLPack has numbers alone, and NumPy warns if it fails.
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return np.asarray(values)
    try:
        return np.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return values


def _is_data_frame(X: Any) -> bool:
    """Return True for a data frame of pandas or polars."""
    if not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return False
    return hasattr(X, "iloc") or hasattr(X, "to_pandas")


def names_of_frame(X: Any) -> list[str] | None:
    """Return the column names of a data frame other than pandas', else None.

    scikit-learn notes pandas' names itself, but not in every version the names of other frames.
    """
    if not _is_data_frame(X) or hasattr(X, "iloc"):
        return None
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def _has_lists(X: Any) -> bool:
    """Return True if a column of a data frame holds lists."""
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        text = str(dtype).lower()
        if text.startswith(("list", "array", "fixed_size_list")) or "list<" in text:
            return True
        if text == "object" and len(X) and isinstance(X[name].iloc[0], (list, tuple, np.ndarray)):
            return True
    return False


def _takes_slices(X: Any) -> bool:
    """Return True for rows that are read by slices: a data set of HDF5, an array of zarr."""
    if hasattr(X, "iloc") or hasattr(X, "__dlpack__") or hasattr(X, "__array_interface__"):
        return False
    shape = getattr(X, "shape", None)
    is_matrix = isinstance(shape, tuple) and len(shape) == 2
    return is_matrix and hasattr(X, "dtype") and hasattr(X, "__getitem__")


def by_rows(X: np.ndarray, memory: Any = None) -> np.ndarray:
    """Return a matrix that is mapped column by column in C order; others as they are.

    ``np.save`` of an array in Fortran's order writes such files. The matrix is read some rows at a
    time, into memory or, if that is too small, into a file.
    """
    if X.flags.c_contiguous or not X.flags.f_contiguous or mapping_of(X) is None:
        return X
    return _read_slices(X, available_memory() if memory is None else memory_bytes(memory))


def _read_slices(X: Any, memory: int | None) -> np.ndarray:
    """Read all rows into memory or, if that is too small, into a temporary file."""
    shape = (int(X.shape[0]), int(X.shape[1]))
    dtype = np.dtype(X.dtype)
    row_bytes = max(1, shape[1] * dtype.itemsize)
    if memory is None or shape[0] * row_bytes <= READ_SHARE * memory:
        rows = np.empty(shape, dtype)
    else:
        rows = _map_temporary_file(shape, dtype)
    step = max(1, SLICE_BYTES // row_bytes)
    for start in range(0, shape[0], step):
        rows[start : start + step] = X[start : start + step]
    if isinstance(rows, np.memmap):
        rows.flush()
    return rows


def _map_temporary_file(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Return an array in a new file, which is removed when the array is no longer used."""
    handle, path = tempfile.mkstemp(prefix="saddlesvm-", suffix=".rows")
    os.close(handle)
    rows: np.memmap[Any, Any] = np.memmap(path, dtype=dtype, mode="w+", shape=shape)
    weakref.finalize(rows.base, _remove_file, path)
    return rows


def _remove_file(path: str) -> None:
    """Remove a file if it is still there."""
    if os.path.exists(path):
        os.unlink(path)


def are_dicts(X: Any) -> bool:
    """Return True for a list of rows that are dicts."""
    return isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], Mapping)


def rows_of_dicts(X: Any, names: Any = None) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the rows as a CSR array, and the names of its columns.

    A number is the value of its feature, a text makes a feature ``name=text`` of value 1; features
    that a row does not name are zero.

    Parameters
    ----------
    X : list of dicts
    names : sequence of str, optional
        Names of the columns: features with other names are left out, as by DictVectorizer. By
        default all names that the rows have.

    Raises
    ------
    ValueError
        A row is not a dict, or a value is neither a number nor text.
    """
    for i, row in enumerate(X):
        if not isinstance(row, Mapping):
            kind = type(row).__name__
            raise ValueError(f"row {i} is not a dict but {kind}: all rows must be dicts, or none")
    maker = DictVectorizer()
    try:
        if names is None:
            matrix = maker.fit_transform(X)
        else:
            maker.feature_names_ = [str(name) for name in names]
            maker.vocabulary_ = {name: k for k, name in enumerate(maker.feature_names_)}
            matrix = maker.transform(X)
    except TypeError as error:
        raise ValueError(
            "the names in a row that is a dict must be texts, and the values numbers or texts: "
            f"{error}"
        ) from None
    return sparse.csr_array(matrix), np.array(maker.feature_names_, dtype=object)


def are_stores(X: Any) -> bool:
    """Return True for a list of stores, opened or by their paths."""
    if not isinstance(X, (list, tuple)) or not X:
        return False
    return all(map(_is_store_or_path, X))


def _is_store_or_path(item: Any) -> bool:
    """Return True for a store, or the path of a store."""
    if isinstance(item, Store):
        return True
    return isinstance(item, (str, os.PathLike)) and is_store(item)


def parts_of(X: Any, y: Any, sample_weight: Any, memory: Any = None) -> tuple[Any, Any, Any]:
    """Return rows, labels and weights; without `y`, they are the labels and weights of a store.

    Weights that are given replace the weights of the store. Several stores in a list are joined,
    below each other, in the `memory` that a fit may take or in a file.
    """
    if are_stores(X):
        rows, labels, weights = join_stores(X, memory)
    elif isinstance(X, Store) and y is None:
        rows = _rows_of_store(X, memory)
        labels = X.y
        weights = X.sample_weight
    else:
        return X, y, sample_weight
    if y is not None:
        return rows, y, sample_weight
    return rows, labels, weights if sample_weight is None else sample_weight
