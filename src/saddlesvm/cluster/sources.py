"""Turn the data of a fit on a cluster into tasks, one per partition.

The data stay on the workers. Scores of rows on a cluster are computed there, when
they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from dask import delayed

from saddlesvm.cluster.partition import as_matrix
from saddlesvm.cluster.tasks import is_task

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import RowsLike

# Rows, labels and weights of a partition: tasks, or None for no weights.
PartTasks = tuple[Any, Any, Any]


def part_tasks(X: Any, y: Any, weights: Any) -> list[PartTasks]:
    """Return tasks for the rows, labels and weights of every partition.

    Parameters
    ----------
    X : Dask array, Dask DataFrame, or list
        An array is dense, or has SciPy's CSR blocks; a list is of delayed blocks or futures.
    y : Dask array or Series, or array
        A list of delayed blocks or futures for such a list.
    weights : like y, optional

    Raises
    ------
    ValueError
        It is none of these, or the partitions do not fit together.
    """
    # Tasks, such as [dask.delayed(load)(k) for k in range(8)].
    if isinstance(X, (list, tuple)) and X and all(map(is_task, X)):
        blocks = [delayed(block) for block in X]
        own_labels = _match_tasks(X, y, "y")
        own_weights = _match_tasks(X, weights, "sample_weight")
        return list(zip(blocks, own_labels, own_weights, strict=True))
    # A Dask array or data frame.
    rows = _row_blocks(X)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    labels = _align(y, X, len(rows), "y")
    shares = [None] * len(rows)
    if weights is not None:
        shares = _align(weights, X, len(rows), "sample_weight")
    return list(zip(rows, labels, shares, strict=True))


def _match_tasks(X: Sequence[object], values: object, name: str) -> list[object]:
    """Return tasks of the labels, or of the weights, of each block of a list."""
    if values is None and name == "sample_weight":
        return [None] * len(X)
    if not isinstance(values, (list, tuple)) or len(values) != len(X):
        what = f"a {type(values).__name__}"
        if isinstance(values, (list, tuple)):
            what = f"{len(values)} of them"
        raise ValueError(
            f"X is a list of {len(X)} blocks: {name} must be a list with a block for each; "
            f"got {what}"
        )
    return [delayed(block) for block in values]


def _row_blocks(X: Any) -> list[Any]:
    """Return tasks of the blocks of rows of a Dask array or DataFrame."""
    if hasattr(X, "rechunk"):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions; got {X.ndim}")
        whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        return list(whole.to_delayed().ravel())
    if hasattr(X, "to_delayed"):
        return list(X.to_delayed())
    raise ValueError(
        "X must be a Dask array or DataFrame, or a list of delayed blocks or futures; got "
        f"{type(X).__name__}. For data in memory use saddlesvm"
    )


def _align(values: object, X: RowsLike, count: int, name: str) -> list[Any]:
    """Return tasks of the partitions of `values`, which must be the partitions of X."""
    if not hasattr(values, "to_delayed"):
        values = np.asarray(values)
        sizes = _known_sizes(X)
        if sizes is None or sum(sizes) != len(values):
            raise ValueError(
                f"{name} must be a Dask array or Series with the partitions of X; "
                f"got {len(values)} values"
            )
        return [delayed(part) for part in np.split(values, np.cumsum(sizes)[:-1])]
    # Cut an array as X is cut, if both sizes are known.
    sizes = _known_sizes(X)
    if hasattr(values, "rechunk") and sizes and _known_sizes(values) not in (None, sizes):
        values = values.rechunk({0: sizes})
    blocks = list(np.ravel(np.asarray(values.to_delayed(), dtype=object)))
    if len(blocks) != count:
        raise ValueError(
            f"{name} has {len(blocks)} partitions; X has {count}: they must be the same"
        )
    return blocks


def _known_sizes(values: object) -> tuple[int, ...] | None:
    """Return the rows of each partition; None if they are not known."""
    chunks = getattr(values, "chunks", None)
    if chunks is None or any(np.isnan(size) for size in chunks[0]):
        return None
    return tuple(int(size) for size in chunks[0])


def feature_names(X: RowsLike) -> Sequence[str] | None:
    """Return the names of the columns of a DataFrame; None if they are not all text."""
    columns = list(getattr(X, "columns", ()))
    if columns and all(isinstance(column, str) for column in columns):
        return columns
    return None


def apply_lazily(X: Any, function: Callable[[Any], np.ndarray], like: np.ndarray) -> Any:
    """Apply a function to the blocks of X; return a Dask array.

    Parameters
    ----------
    X : Dask array or DataFrame
    function : callable
        Takes a block of rows.
    like : ndarray of shape (0,) or (0, k)
        What it returns for no row.
    """
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    # The function needs all features of a row in one block.
    whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    # One number for each row: the axis of the columns goes.
    if like.ndim == 1:
        return whole.map_blocks(
            apply_to_block, function, like, dtype=like.dtype, drop_axis=1, meta=like
        )
    chunks = (whole.chunks[0], like.shape[1:])
    return whole.map_blocks(
        apply_to_block, function, like, dtype=like.dtype, chunks=chunks, meta=like
    )


def apply_to_block(
    X: object, function: Callable[[Any], np.ndarray], like: np.ndarray
) -> np.ndarray:
    """Apply a function to a block of rows, which may have none."""
    rows = as_matrix(X)
    return function(rows) if rows.shape[0] else like
