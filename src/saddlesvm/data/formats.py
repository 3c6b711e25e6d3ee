"""Every format of data files as a source of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from saddlesvm.data.arrays import npy_source, npz_source
from saddlesvm.data.arrow_source import arrow_source
from saddlesvm.data.blocks import Block, Source, find_format
from saddlesvm.data.bundled import bundled_source
from saddlesvm.data.delimited import delimited_source
from saddlesvm.data.idx_files import idx_source
from saddlesvm.data.libsvm import libsvm_source
from saddlesvm.data.reading import LateZero, Reading
from saddlesvm.data.store import Store


def store_source(path: Path, how: Reading) -> Source:
    """Return a store as a source, to convert it again."""
    store = Store(path)
    has_labels = store.header["labels"] is not None and how.label is not False

    def blocks(n_bytes: int) -> Iterator[Block]:
        # The rows are mapped: only the pages of the present block are in memory.
        for start, stop in store.blocks(n_bytes):
            X, labels, weights = store.read(start, stop)
            labels = labels if has_labels else None
            yield Block(X, labels, weights, stop / len(store), store.zero_based)

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
        has_weights=bool(store.header["weights"]),
    )


SOURCES: dict[str, Callable[[Path, Reading], Source]] = {
    "arrow": lambda path, how: arrow_source(path, "arrow", how),
    "bundled": bundled_source,
    "csv": delimited_source,
    "idx": idx_source,
    "libsvm": libsvm_source,
    "npy": npy_source,
    "npz": npz_source,
    "parquet": lambda path, how: arrow_source(path, "parquet", how),
    "store": store_source,
}


def source_of(name: str, how: Reading) -> Source:
    """Return the file, folder or bundled set of a name, ready to be read.

    Raises
    ------
    DataError
        There is no such source, its format is not known, or an option does not go with the format.
    """
    format = find_format(name)
    how.check_applicable(name, format)
    return SOURCES[format](Path(name), how)


def read_rows(
    name: str, how: Reading, advance: Callable[[float], object] | None = None
) -> tuple[Source, Block]:
    """Read all rows of a source, and return both."""
    source = source_of(name, how)
    try:
        return source, source.rows(advance)
    except LateZero:
        source = source_of(name, replace(how, zero_based=True))
        return source, source.rows(advance)
