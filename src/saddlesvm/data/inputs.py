"""Inputs that are accepted as rows besides arrays.

These are Arrow tables, data frames, arrays of other libraries, and stores.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from saddlesvm.data.arrow_columns import arrow_matrix, is_arrow
from saddlesvm.data.store import Store, is_store

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import RowsLike


def as_matrix(X: Any) -> tuple[object, list[str] | None]:
    """Return rows as scikit-learn can check them, and the names of their columns, if any.

    Parameters
    ----------
    X : object
        Anything but an array: a store, a table, and what :func:`open_rows` takes.
    """
    X, names = open_rows(split_store(X, None, None)[0])
    if names is None:
        names = names_of_frame(X)
    return X, names


def open_rows(X: RowsLike) -> tuple[Any, list[str] | None]:
    """Return rows as an array, and the names of their columns, if they have any.

    Parameters
    ----------
    X : object
        With ``__arrow_c_stream__``, ``__arrow_c_array__`` or ``__arrow_array__``: columns of
        numbers, or one column of lists, which is taken without a copy. With ``__dlpack__``: the
        arrays of other libraries. A lazy frame of polars becomes a data frame. Anything else is
        returned as it is.

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
    return as_numpy(X), None


def as_numpy(values: object) -> Any:
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


def _is_data_frame(X: RowsLike) -> bool:
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


def split_store(X: Any, y: object, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return rows, labels and weights: those given, or those of a store that is given as X.

    Weights that are given replace the weights of the store.

    Raises
    ------
    ValueError
        X is a list of stores.
    """
    if isinstance(X, (list, tuple)) and X and all(map(_is_store_or_path, X)):
        raise ValueError(
            "X is a list of stores: write a single store of them, "
            "saddlesvm.data.convert(X, path), or give a Dask cluster delayed blocks: "
            "[dask.delayed(load)(path) for path in X]"
        )
    if not isinstance(X, Store):
        return X, y, sample_weight
    if y is not None:
        return X.X, y, sample_weight
    if sample_weight is None:
        sample_weight = X.sample_weight
    return X.X, X.y, sample_weight


def _is_store_or_path(item: object) -> bool:
    """Return True for a store, or the path of a store."""
    if isinstance(item, Store):
        return True
    return isinstance(item, (str, os.PathLike)) and is_store(item)
