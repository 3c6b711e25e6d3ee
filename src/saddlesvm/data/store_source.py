"""A store as a source of another store, to put parts of a data set together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from saddlesvm.data.blocks import Block, Reading, Source
from saddlesvm.data.store import Store

__all__ = ["store_source"]


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
