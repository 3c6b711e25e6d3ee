"""Stores as sources of rows: to put parts of a data set together, into a store or for one fit."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data.blocks import Block, Reading, Source, check_names
from saddlesvm.data.errors import DataError
from saddlesvm.data.store import Store, is_store
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.rows.memory_plan import FITS, available_memory, memory_bytes
from saddlesvm.rows.small_types import FLOATS, precision_of, widened

BLOCK_BYTES = 1 << 24  # of rows that are copied at a time


def store_source(path: Path, how: Reading) -> Source:
    """The rows of a store some at a time."""
    store = Store(path)
    weights, has_labels = store.sample_weight, store.header["labels"] is not None and how.label is not False

    def blocks(n_bytes: int) -> Iterator[Block]:
        for start, stop in store.blocks(n_bytes):
            part = slice(start, stop)
            labels = store.labels(start, stop) if has_labels else None
            yield Block(store.X[part], labels, None if weights is None else weights[part], stop / len(store))

    return Source(
        str(path),
        "store",
        sparse=store.layout == "csr",
        width=store.shape[1],
        dtype=store.dtype,
        has_labels=has_labels,
        n_bytes=store.n_bytes,
        blocks=blocks,
        feature_names=store.header.get("feature_names"),
        label_name=store.header.get("label_name"),
        has_weights=weights is not None,
        zero_based=store.zero_based,
    )


def check_together(sources: Sequence[Source]) -> None:
    """Raise a `DataError` for sources whose rows cannot stand in one matrix."""
    first = sources[0]
    for source in sources[1:]:
        if source.sparse != first.sparse:
            kinds = "sparse rows" if source.sparse else "dense rows"
            raise DataError(f"{source.name}: holds {kinds}, {first.name} does not; a store holds one of the two")
        if not source.sparse and source.width != first.width:
            raise DataError(f"{source.name}: has {source.width} features; {first.name} has {first.width}")
        if source.has_labels != first.has_labels or source.has_weights != first.has_weights:
            what = "labels" if source.has_labels != first.has_labels else "weights"
            raise DataError(f"{source.name} and {first.name}: one has {what} and the other has none")
        check_names(source.name, source.feature_names, first.name, first.feature_names)


def common_type(dtypes: Sequence[np.dtype[Any]], unchanged: bool = True) -> np.dtype[Any]:
    """The type of a store of sources: theirs, if it is one and no value is changed; else a float that holds all."""
    if unchanged and all(one == dtypes[0] for one in dtypes):
        return dtypes[0]
    return np.result_type(*map(precision_of, dtypes))


def are_stores(X: Any) -> bool:
    """Whether X is a list of stores, opened or by their paths."""
    if not isinstance(X, (list, tuple)) or not X:
        return False
    return all(isinstance(one, Store) or (isinstance(one, (str, os.PathLike)) and is_store(one)) for one in X)


def joined(stores: Sequence[Any], memory: Any = None, n_features: int | None = None) -> tuple[Any, Any, Any]:
    """The rows of several stores one below the other, with their labels and weights (None where they have none).

    They are read into memory, or, where they take more than half of it, copied into a file of the folder for temporary
    files, which goes when the rows are no longer used.

    Parameters
    ----------
    stores : sequence of Store, str or path
    memory : int, str or None
        What a fit may take; by default the memory that is available.
    n_features : int, optional
        Sparse rows with fewer are widened to it.

    Raises
    ------
    DataError
        They do not go together: dense and sparse rows, other features, labels or weights in some of them only.
    """
    opened = [one if isinstance(one, Store) else Store(one) for one in stores]
    sources = [store_source(one.path, Reading()) for one in opened]
    check_together(sources)
    kinds = {one.header["labels"] and one.header["labels"]["kind"] for one in opened}
    if len(kinds) > 1:
        raise DataError(f"{opened[-1].path}: the labels are numbers in some of the stores, and text in others")
    width, dtype = max(one.shape[1] for one in opened), common_type([one.dtype for one in opened])
    width = max(width, n_features or 0) if opened[0].layout == "csr" else width
    most = FITS * (available_memory() if memory is None else memory_bytes(memory))
    if sum(one.n_bytes for one in opened) > most:
        return _in_file(sources, width, dtype)
    if opened[0].layout == "csr":
        X: Any = sparse.vstack([one.matrix(width) for one in opened], format="csr", dtype=dtype)
    else:
        X = np.concatenate([widened(one.X, dtype) if dtype in FLOATS else one.X for one in opened])
    y = None if opened[0].y is None else np.concatenate([one.y for one in opened if one.y is not None])
    weights = [one.sample_weight for one in opened if one.sample_weight is not None]
    return X, y, np.concatenate(weights) if weights else None


def _in_file(sources: Sequence[Source], width: int, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    folder = tempfile.mkdtemp(prefix="saddlesvm-")
    try:
        with StoreWriter(Path(folder, "rows.store"), dtype=dtype, n_features=width) as writer:
            for source in sources:
                for block in source.blocks(BLOCK_BYTES):
                    writer.append(block.X, block.y, block.weights)
        store = Store(Path(folder, "rows.store"))
        values = store.X.data if store.layout == "csr" else store.X
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(values.base, shutil.rmtree, folder, ignore_errors=True)
    return store.X, store.y, store.sample_weight
