"""Turn the data of a fit on a cluster into tasks, one per partition.

The data stay on the workers. Scores of rows on a cluster are computed there, when
they are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask import delayed

from saddlesvm.cluster.partition import as_matrix
from saddlesvm.cluster.tasks import is_task

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import LabelsLike, RowsLike

# Rows, labels and weights of a partition: tasks, or None for no weights.
PartTasks = tuple[Any, Any, Any]


def part_tasks(X: Any, y: Any, weights: Any) -> list[PartTasks]:
    """Return tasks for the rows, labels and weights of every partition.

    Parameters
    ----------
    X : Dask array, Dask DataFrame, or list
        An array is dense, or has SciPy's CSR blocks; a list is of paths, stores, delayed blocks or
        futures.
    y : Dask array or Series, or array
        A list of delayed blocks or futures for such a list; for paths the label column, or None.
    weights : like y, optional
        For a list of paths the name of a column, or a list of an array for each file, or a Dask
        array or Series with a partition for each file.

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
    # Names of files, or stores.
    if isinstance(X, (list, tuple)):
        return _read_files(X, y, weights)
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


def _read_files(sources: Sequence[Any], label: Any, weights: Any) -> list[PartTasks]:
    """Return tasks that read files or stores on their worker."""
    if not sources:
        raise ValueError("the list of files is empty: no row to learn from")
    if not (label is None or isinstance(label, (str, int))):
        raise ValueError(
            f"y of a list of files is the name of the label column; got {type(label).__name__}"
        )
    # Weights are a column of the files, or come apart from them.
    column = weights if isinstance(weights, str) else None
    given: list[Any] = [None] * len(sources)
    if weights is not None and column is None:
        given = _weigh_files(weights, len(sources))
    tasks = []
    for source, own in zip(sources, given, strict=True):
        where = source if hasattr(source, "shape") else os.fspath(source)
        read = delayed(read_part, pure=False)(where, label, column)
        tasks.append((read[0], read[1], read[2] if own is None else own))
    return tasks


def _weigh_files(weights: object, count: int) -> list[object]:
    """Return tasks of the weights of each file's rows."""
    if hasattr(weights, "to_delayed"):
        pieces = list(np.ravel(np.asarray(weights.to_delayed(), dtype=object)))
    elif isinstance(weights, (list, tuple)) and all(np.ndim(one) == 1 for one in weights):
        pieces = [delayed(np.asarray(one)) for one in weights]
    else:
        raise ValueError(
            "sample_weight of a list of files is the name of a column, a list of an array for "
            f"each file, or a Dask array with a partition for each; got {type(weights).__name__}"
        )
    if len(pieces) != count:
        raise ValueError(
            f"sample_weight has {len(pieces)} parts; there are {count} files: they must be the same"
        )
    return pieces


def read_part(source: Any, label: Any, weight: str | None = None) -> tuple[object, object, object]:
    """Return rows, labels and weights of a store or another file.

    Raises
    ------
    ValueError
        There is no such column of weights.
    """
    from saddlesvm.data import Store, read
    from saddlesvm.data.store import is_store

    # A store knows its labels and row weights.
    if isinstance(source, str) and is_store(source):
        source = Store(source)
    if isinstance(source, Store):
        if weight is not None:
            raise ValueError(
                f"{source.path}: a store holds its row weights: leave sample_weight={weight!r} out"
            )
        return source.X, source.y, source.sample_weight
    # Of any other file, a column may be the row weights: it is then no feature.
    table = read(source, label=label)
    if weight is None:
        return table.X, table.y, None
    names = list(table.feature_names or ())
    if weight not in names:
        raise ValueError(f"{source}: has no column {weight!r} of row weights")
    place = names.index(weight)
    return np.delete(table.X, place, axis=1), table.y, np.ascontiguousarray(table.X[:, place])


def _row_blocks(X: Any) -> list[Any]:
    """Return tasks of the blocks of rows of a Dask array or DataFrame."""
    if hasattr(X, "rechunk"):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions; got {X.ndim}")
        whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        return list(whole.to_delayed().ravel())
    if hasattr(X, "to_delayed"):
        return list(X.to_delayed())
    advice = "For data in memory use saddlesvm"
    # A single file or store belongs into a list, too.
    if isinstance(X, (str, os.PathLike)) or hasattr(X, "sample_weight"):
        advice = "Put it into a list (of a pattern, glob.glob gives one)"
    raise ValueError(
        "X must be a Dask array or DataFrame, or a list of files, stores, delayed blocks or "
        f"futures; got {type(X).__name__}. {advice}"
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


def as_array(y: LabelsLike) -> Any:
    """Return a Dask Series as a Dask array; anything else as it is."""
    return y.to_dask_array() if hasattr(y, "to_dask_array") else y


def apply_lazily(
    X: Any, function: Callable[[Any], np.ndarray], like: np.ndarray, apart: tuple[Any, Any]
) -> Any:
    """Apply a function to the blocks of X; return a Dask array.

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
    # The number of rows of a file is unknown until a worker reads it: nan, in Dask's terms.
    if isinstance(X, (list, tuple)):
        pieces = []
        for source in X:
            found = delayed(apply_to_file)(function, like, source, apart)
            pieces.append(da.from_delayed(found, (np.nan, *like.shape[1:]), meta=like))
        return da.concatenate(pieces)
    X = as_array(X)
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


def apply_to_file(
    function: Callable[[Any], np.ndarray], like: np.ndarray, source: Any, apart: tuple[Any, Any]
) -> np.ndarray:
    """Apply a function to the rows of a file, or of a block that a task made."""
    is_block = hasattr(source, "ndim") or hasattr(source, "columns")
    rows = source if is_block else read_part(source, *apart)[0]
    return apply_to_block(rows, function, like)


def accuracy(y: Any, predicted: Any, sample_weight: Any = None) -> Any:
    """Return the share of the rows whose class was predicted."""
    right = predicted == y
    if sample_weight is None:
        return right.mean()
    return (right * sample_weight).sum() / sample_weight.sum()


def r2(y: Any, predicted: Any, sample_weight: Any = None) -> Any:
    """Return the coefficient of determination of predicted targets."""
    s = np.ones_like(y) if sample_weight is None else sample_weight
    mean = (s * y).sum() / s.sum()
    return 1.0 - (s * (y - predicted) ** 2).sum() / (s * (y - mean) ** 2).sum()
