"""Scores of rows on a cluster: computed where the rows are, when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np

from saddlesvm.cluster.part import as_matrix
from saddlesvm.cluster.sources import read_part
from saddlesvm.rows.scores import linear_scores


def scores_of(X: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Scores of a block of rows, shape (n, k), or (n,) of one vector."""
    scores = linear_scores(as_matrix(X), coef, intercept)
    return scores[:, 0] if scores.shape[1] == 1 else scores


def as_array(y: Any) -> Any:
    """A Dask Series as a Dask array; anything else as it is."""
    return y.to_dask_array() if hasattr(y, "to_dask_array") else y


def lazily(X: Any, function: Callable[..., np.ndarray], dtype: Any, columns: int, apart: tuple[Any, Any]) -> Any:
    """`function` of the blocks of X: a Dask array for Dask input and lists of files, and at once for data in memory.

    Parameters
    ----------
    X : Dask array or DataFrame, list of files or stores, or array-like of shape (n, d)
    function : callable
        Takes a block of rows.
    dtype : dtype
        Of what it returns.
    columns : int
        Of what it returns; 1 for shape (n,).
    apart : tuple
        The columns of files that hold labels and row weights, and are no features.
    """
    if isinstance(X, (list, tuple)):
        shape = (np.nan,) if columns == 1 else (np.nan, columns)
        pieces = [dask.delayed(of_file)(function, source, apart) for source in X]
        return da.concatenate([da.from_delayed(one, shape, dtype) for one in pieces])
    X = as_array(X)
    if not hasattr(X, "rechunk"):
        return function(as_matrix(X))
    whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    if columns == 1:
        return whole.map_blocks(function, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype=dtype))
    chunks = (whole.chunks[0], (columns,))
    return whole.map_blocks(function, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype=dtype))


def of_file(function: Callable[..., np.ndarray], source: Any, apart: tuple[Any, Any]) -> np.ndarray:
    """`function` of the rows of a file."""
    return function(as_matrix(read_part(source, *apart)[0]))
