"""Turn the data of a fit on a cluster into tasks, one per partition: the data stay where the tasks run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from dask import delayed

PartTasks = tuple[Any, Any, Any]  # rows, labels and weights of a partition; tasks, or None for no weights


def part_tasks(X: Any, y: Any, weights: Any) -> list[PartTasks]:
    """Tasks for the rows, labels and weights of every partition.

    Parameters
    ----------
    X : Dask array (dense, or of scipy CSR blocks), Dask DataFrame, or list of paths or stores
    y : Dask array or Series, or an array; for a list of paths the label column, or None
    weights : like y, optional

    Raises
    ------
    ValueError
        It is none of these, or the partitions do not fit together.
    """
    if isinstance(X, (list, tuple)):
        if weights is not None:
            raise ValueError("sample_weight does not go with a list of files: weights are read from stores")
        if not X:
            raise ValueError("the list of files is empty: no row to learn from")
        return [_from_file(source, y) for source in X]
    rows = _row_blocks(X)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    labels = _aligned(y, X, len(rows), "y")
    shares = [None] * len(rows) if weights is None else _aligned(weights, X, len(rows), "sample_weight")
    return list(zip(rows, labels, shares, strict=True))


def _from_file(source: Any, label: Any) -> PartTasks:
    """Tasks that read a file or a store where they run."""
    read = delayed(read_part, pure=False)(source if hasattr(source, "shape") else os.fspath(source), label)
    return read[0], read[1], read[2]


def read_part(source: Any, label: Any) -> tuple[Any, Any, Any]:
    """Rows, labels and weights of a store, or of a file that :func:`saddlesvm.data.read` reads."""
    from saddlesvm.data import Store, read
    from saddlesvm.data.store import is_store

    if isinstance(source, str) and is_store(source):
        source = Store(source)
    if isinstance(source, Store):
        return source.X, source.y, source.sample_weight
    table = read(source, label=label)
    return table.X, table.y, None


def _row_blocks(X: Any) -> list[Any]:
    """Tasks of the blocks of rows of a Dask array or DataFrame."""
    if hasattr(X, "rechunk"):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions; got {X.ndim}")
        whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        return list(whole.to_delayed().ravel())
    if hasattr(X, "to_delayed"):
        return list(X.to_delayed())
    raise ValueError(
        f"X must be a Dask array or DataFrame, or a list of files or stores; got {type(X).__name__}. "
        "For data in memory use saddlesvm.LinearSVC"
    )


def _aligned(values: Any, X: Any, count: int, name: str) -> list[Any]:
    """Tasks of the partitions of `values`, which must be those of X."""
    if not hasattr(values, "to_delayed"):
        values = np.asarray(values)
        sizes = _known_sizes(X)
        if sizes is None or sum(sizes) != len(values):
            raise ValueError(
                f"{name} must be a Dask array or Series with the partitions of X; got {len(values)} values"
            )
        return [delayed(part) for part in np.split(values, np.cumsum(sizes)[:-1])]
    if (
        hasattr(values, "rechunk")
        and _known_sizes(X) is not None
        and _known_sizes(values) not in (None, _known_sizes(X))
    ):
        values = values.rechunk({0: _known_sizes(X)})
    blocks = list(np.ravel(np.asarray(values.to_delayed(), dtype=object)))
    if len(blocks) != count:
        raise ValueError(f"{name} has {len(blocks)} partitions; X has {count}: they must be the same")
    return blocks


def _known_sizes(values: Any) -> tuple[int, ...] | None:
    """Rows of each partition; None where they are not known."""
    chunks = getattr(values, "chunks", None)
    if chunks is None or any(np.isnan(size) for size in chunks[0]):
        return None
    return tuple(int(size) for size in chunks[0])


def feature_names(X: Any) -> Sequence[str] | None:
    """Names of the columns of a DataFrame."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(column) for column in columns]
