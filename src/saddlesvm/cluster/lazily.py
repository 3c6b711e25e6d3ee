"""Scores of rows on a cluster: computed where the rows are, when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np

from saddlesvm.cluster.part import as_matrix
from saddlesvm.cluster.sources import read_part


def as_array(y: Any) -> Any:
    """A Dask Series as a Dask array; anything else as it is."""
    return y.to_dask_array() if hasattr(y, "to_dask_array") else y


def lazily(X: Any, function: Callable[[Any], np.ndarray], like: np.ndarray, apart: tuple[Any, Any]) -> Any:
    """`function` of the blocks of X, as a Dask array.

    Parameters
    ----------
    X : Dask array or DataFrame, or list of files, stores, delayed blocks or futures
    function : callable
        Takes a block of rows.
    like : ndarray of shape (0,) or (0, k)
        What it returns for no row.
    apart : tuple
        The columns of files that hold labels and row weights, and are no features.
    """
    if isinstance(X, (list, tuple)):
        pieces = [dask.delayed(of_file)(function, like, source, apart) for source in X]
        return da.concatenate([da.from_delayed(one, (np.nan, *like.shape[1:]), meta=like) for one in pieces])
    X = as_array(X)
    whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    if like.ndim == 1:
        return whole.map_blocks(of_block, function, like, dtype=like.dtype, drop_axis=1, meta=like)
    chunks = (whole.chunks[0], like.shape[1:])
    return whole.map_blocks(of_block, function, like, dtype=like.dtype, chunks=chunks, meta=like)


def of_block(X: Any, function: Callable[[Any], np.ndarray], like: np.ndarray) -> np.ndarray:
    """`function` of a block of rows, which may have none."""
    rows = as_matrix(X)
    return function(rows) if rows.shape[0] else like


def of_file(function: Callable[[Any], np.ndarray], like: np.ndarray, source: Any, apart: tuple[Any, Any]) -> np.ndarray:
    """`function` of the rows of a file, or of a block that a task made."""
    rows = source if hasattr(source, "ndim") or hasattr(source, "columns") else read_part(source, *apart)[0]
    return of_block(rows, function, like)


def accuracy(y: Any, predicted: Any, sample_weight: Any = None) -> Any:
    """The share of the rows whose class was predicted."""
    right = predicted == y
    return right.mean() if sample_weight is None else (right * sample_weight).sum() / sample_weight.sum()


def r2(y: Any, predicted: Any, sample_weight: Any = None) -> Any:
    """The coefficient of determination of predicted targets."""
    s = np.ones_like(y) if sample_weight is None else sample_weight
    mean = (s * y).sum() / s.sum()
    return 1.0 - (s * (y - predicted) ** 2).sum() / (s * (y - mean) ** 2).sum()
