"""Any data files into one store, in a single pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import scipy.sparse as sp

from saddlesvm.data.arrays import idx_source, npy_source, npz_source
from saddlesvm.data.blocks import Reading, Source, located
from saddlesvm.data.bundled import bundled_source
from saddlesvm.data.delimited import delimited_source
from saddlesvm.data.errors import DataError
from saddlesvm.data.inputs import check_together, store_source
from saddlesvm.data.libsvm import StartsAtZero, libsvm_source
from saddlesvm.data.missing_values import NOTE, Filling
from saddlesvm.data.parquet import arrow_source
from saddlesvm.data.store import Store, common_type
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.data.table import Label, Missing, Task
from saddlesvm.rows.small_types import widened
from saddlesvm.runtime.option_names import MISSING_VALUES

MEMORY = 256 << 20
_BLOCKS_IN_MEMORY = 16  # copies of a block of rows in memory at once: text, parsed, sorted, written


def convert(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    label: Label = None,
    header: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    dtype: Any = None,
    task: Task | None = None,
    scale: float = 1.0,
    zero_based: bool | Literal["auto"] = "auto",
    memory: int = MEMORY,
    overwrite: bool = False,
    missing: Literal["error", "drop", "mean"] = "error",
    drop_columns: Sequence[str | int] = (),
    advance: Callable[[float], Any] | None = None,
) -> Store:
    r"""Write one or more data files, one after the other, as a store.

    The files are read once, some rows at a time (twice for means, or if LIBSVM text counts from 0). An incomplete store
    is in a folder ``NAME.<random>.partial``, which cannot be opened as a store.

    Parameters
    ----------
    sources : str, path, or sequence of them
        Files in the formats of :func:`read`, or stores; all sparse, or all dense with the same number of features.
    target : str or path
        The folder to make.
    label, header, dtype, task, scale, zero_based, drop_columns
        As in :func:`read`.
    n_features : int, optional
        As in :func:`read`; by default LIBSVM text has as many features as occur in any of the files.
    memory : int, default=268435456
        Approximate bytes for the rows in memory; labels and row pointers of some formats add 8 bytes a row.
    overwrite : bool, default=False
        Replace a store of that name.
    missing : {"error", "drop", "mean"}, default="error"
        What happens to missing values (an empty cell, "?", "NA", a null, NaN) of CSV, TSV, Parquet and dense ``.npz``:
        an error that names the first one, or their rows are left out, or the mean of their column, over all files,
        fills them in; the store keeps those means.
    advance : callable, optional
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    Store

    Raises
    ------
    DataError
        A file that cannot be read, files that do not go together, a target that exists or cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from saddlesvm.data import convert
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "day-1.svm").write_text("1 1:0.5 3:1\n-1 2:2\n")
    >>> _ = (folder / "day-2.svm").write_text("1 3:4\n")
    >>> convert([folder / "day-1.svm", folder / "day-2.svm"], folder / "days.store").shape
    (3, 3)
    """
    allowed = MISSING_VALUES[:-1]
    if missing not in allowed:
        raise DataError(f"missing is {missing!r}; allowed are {', '.join(map(repr, allowed))}")
    how = Reading(label, header, n_features, dtype, task, scale, zero_based, drop_columns=tuple(drop_columns))
    how.check()
    if memory < 1 << 20:
        raise DataError(f"memory is {memory} bytes; at least 1 MiB is needed")
    names = [os.fspath(sources)] if isinstance(sources, (str, os.PathLike)) else [os.fspath(one) for one in sources]
    if not names:
        raise DataError("no data file was given; at least one is needed")
    _write_store(names, target, how, missing, memory // _BLOCKS_IN_MEMORY, overwrite, advance)
    return Store(target)


def _write_store(
    names: list[str],
    target: str | os.PathLike[str],
    how: Reading,
    missing: Literal["error", "drop", "mean"],
    n_bytes: int,
    overwrite: bool,
    advance: Callable[[float], Any] | None,
) -> None:
    """Write the files of these names as a store, from blocks of about `n_bytes`."""
    report = advance or (lambda share: None)

    def write(zero_based: bool | Literal["auto"]) -> None:
        kept: Missing = "error" if missing == "error" else "keep"
        each = replace(how, dtype=None, zero_based=zero_based, missing=kept)
        opened = [source_of(name, each) for name in names]
        check_together(opened)
        passes = 2.0 if missing == "mean" else 1.0
        filling = Filling.of_sources(missing, opened, n_bytes, lambda share: report(share / passes))
        same = all(source.feature_names == opened[0].feature_names for source in opened)
        with StoreWriter(
            target,
            dtype=how.dtype or common_type([source.dtype for source in opened], how.scale == 1.0 and passes == 1.0),
            n_features=how.n_features,
            overwrite=overwrite,
            feature_names=opened[0].feature_names if same else None,
            label_name=opened[0].label_name,
        ) as writer:
            _append_all(writer, opened, how, n_bytes, lambda share: report((passes - 1.0 + share) / passes), filling)
            writer.further[NOTE] = filling.noted(how.scale) or _shared_note(opened)

    try:
        write(how.zero_based)
    except StartsAtZero:
        write(True)


def _append_all(
    writer: StoreWriter,
    sources: list[Source],
    how: Reading,
    n_bytes: int,
    advance: Callable[[float], Any],
    filling: Filling,
) -> None:
    total, done = sum(source.n_bytes for source in sources) or 1, 0
    for source in sources:
        before = writer.n_rows
        for block in source.blocks(n_bytes):
            closed = filling.of_block(block)
            if closed is not None:
                writer.append(_scaled(closed.X, how.scale, writer.dtype), closed.y, closed.weights)
            advance((done + block.share * source.n_bytes) / total)
        done += source.n_bytes
        origin = origin_of(Path(source.name), source.format, writer.n_rows - before, source.n_bytes)
        writer.sources.append(origin | {"path": source.name, "zero_based": source.zero_based})
    if filling.count and not writer.n_rows:
        raise DataError(f"{sources[0].name}: every row has missing values: none is left")


def _shared_note(sources: list[Source]) -> dict[str, Any] | None:
    """The note on missing values that the headers of all sources share, if they are stores; None where they differ."""
    if any(source.format != "store" for source in sources):
        return None
    noted = [Store(source.name).header.get(NOTE) for source in sources]
    return noted[0] if all(one == noted[0] for one in noted) else None


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
    """The file, folder or bundled set of a name, ready to be read.

    Raises
    ------
    DataError
        There is none, its format is not known, or an option does not go with the format.
    """
    found = located(name)
    how.check_applicable(name, found)
    return SOURCES[found](Path(name), how)


def _scaled(X: Any, scale: float, dtype: Any) -> Any:
    """The rows in the type of the store, multiplied by `scale`; never in place."""
    if scale == 1.0:
        return X
    factor = dtype.type(scale)
    if not sp.issparse(X):
        return widened(X, dtype) * factor
    return sp.csr_matrix((X.data.astype(dtype) * factor, X.indices, X.indptr), shape=X.shape)


def origin_of(path: Path, found: str, n_rows: int, n_bytes: int) -> dict[str, Any]:
    """The entry of a source in the header: a file in the format `found`, or what is none, of `n_bytes`."""
    facts = path.stat() if path.is_file() else None
    return {
        "path": str(path),
        "format": found,
        "rows": n_rows,
        "bytes": n_bytes if facts is None else facts.st_size,
        "modified": None if facts is None else facts.st_mtime_ns,
    }
