"""Inputs accepted as rows besides arrays: Arrow data, DLPack, and what is read by slices, as with h5py and zarr."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data.arrow import arrow_matrix, is_arrow
from saddlesvm.rows.files import mapping_of
from saddlesvm.rows.memory_plan import available_memory, memory_bytes

__all__ = ["by_rows", "opened"]

SLICE_BYTES = 1 << 24  # of rows that are read by slices, at a time
SHARE = 0.5  # of the memory: rows by slices up to this size are read into it, larger ones into a file


def opened(X: Any, memory: Any = None) -> tuple[Any, list[str] | None]:
    """Rows as an array where they are given as something else, and the names of their columns, where those have any.

    Parameters
    ----------
    X : object
        With ``__arrow_c_stream__``, ``__arrow_c_array__`` or ``__arrow_array__``: columns of numbers, or one column of
        lists, which is taken without a copy. With ``__dlpack__`` and without ``__array__``. With ``shape``, ``dtype``
        and slices. Anything else is returned as it is.
    memory : int, str or None
        What a fit may take: rows by slices that are larger than half of it are copied into a file, and mapped.

    Raises
    ------
    ValueError
        Columns that are no numbers, or pyarrow, which is needed, is not installed.
    """
    if isinstance(X, np.ndarray) or sparse.issparse(X) or isinstance(X, (list, tuple)):
        return X, None
    if hasattr(X, "__dask_graph__"):
        return X, None
    if is_arrow(X) and (not _is_data_frame(X) or _has_lists(X)):
        return arrow_matrix(X)
    if hasattr(X, "__dlpack__") and not hasattr(X, "__array__"):
        return np.from_dlpack(X), None
    if _is_sliced(X):
        return _read(X, None if memory is None else memory_bytes(memory)), None
    return X, None


def _is_data_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars, which scikit-learn takes apart, unless it has lists."""
    return hasattr(X, "dtypes") and hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "to_pandas"))


def _has_lists(X: Any) -> bool:
    """Whether a column of a data frame holds lists."""
    for name, kind in zip(X.columns, X.dtypes, strict=True):
        text = str(kind).lower()
        if text.startswith(("list", "array", "fixed_size_list")) or "list<" in text:
            return True
        if text == "object" and len(X) and isinstance(X[name].iloc[0], (list, tuple, np.ndarray)):
            return True
    return False


def _is_sliced(X: Any) -> bool:
    """Whether X is rows that are read by slices: a data set of HDF5, an array of zarr."""
    if hasattr(X, "iloc") or hasattr(X, "__dlpack__") or hasattr(X, "__array_interface__"):
        return False
    shape = getattr(X, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2 and hasattr(X, "dtype") and hasattr(X, "__getitem__")


def by_rows(X: np.ndarray[Any, Any], memory: Any = None) -> np.ndarray[Any, Any]:
    """A matrix that is mapped from a file column by column (``np.save`` of an array in Fortran's order) as rows in C
    order, read some at a time: in memory or, where that is too small, in a file. Others are returned as they are."""
    if X.flags.c_contiguous or not X.flags.f_contiguous or mapping_of(X) is None:
        return X
    return _read(X, available_memory() if memory is None else memory_bytes(memory))


def _read(X: Any, memory: int | None) -> np.ndarray[Any, Any]:
    """All rows, in memory or, where that is too small, in a file that goes when the array goes."""
    shape, dtype = (int(X.shape[0]), int(X.shape[1])), np.dtype(X.dtype)
    a_row = max(1, shape[1] * dtype.itemsize)
    rows = np.empty(shape, dtype) if memory is None or shape[0] * a_row <= SHARE * memory else _in_file(shape, dtype)
    step = max(1, SLICE_BYTES // a_row)
    for start in range(0, shape[0], step):
        rows[start : start + step] = X[start : start + step]
    if isinstance(rows, np.memmap):
        rows.flush()
    return rows


def _in_file(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    handle, path = tempfile.mkstemp(prefix="saddlesvm-", suffix=".rows")
    os.close(handle)
    rows: np.memmap[Any, Any] = np.memmap(path, dtype=dtype, mode="w+", shape=shape)
    weakref.finalize(rows.base, _removed, path)
    return rows


def _removed(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)
