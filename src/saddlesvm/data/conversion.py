"""Convert data files into a store, in a single pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from saddlesvm.data.blocks import Source, common_type
from saddlesvm.data.errors import DataError
from saddlesvm.data.formats import source_of
from saddlesvm.data.reading import Label, LateZero, Reading
from saddlesvm.data.store import Store
from saddlesvm.data.store_format import check_alike
from saddlesvm.data.store_writer import StoreWriter

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

MEMORY = 256 << 20  # bytes for the rows in memory unless the caller says otherwise; a guess
LEAST_MEMORY = 1 << 20  # bytes
_BLOCKS_IN_MEMORY = 16  # blocks' sizes in memory at once: as text, parsed, sorted, written


def convert(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    label: Label = None,
    header: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    dtype: DTypeLike | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    memory: int = MEMORY,
    drop_columns: Sequence[str | int] = (),
    advance: Callable[[float], object] | None = None,
) -> Store:
    r"""Write a data file, or several in turn, as a store.

    The files are read once, some rows at a time (twice if LIBSVM text tells late that it counts
    from 0). Tables with words or gaps are for ``saddlesvm convert``, which encodes them.
    An incomplete store is in a folder ``NAME.<random>.partial``, which cannot be opened as a store.

    Parameters
    ----------
    sources : str, path, or sequence of them
        Files in the formats of :func:`read`, or stores; all sparse, or all dense with the same
        number of features.
    target : str or path
        The folder to make.
    label, header, dtype, zero_based, drop_columns
        As in :func:`read`. With "auto", index 0 in one file of LIBSVM text makes all count from 0.
    n_features : int, optional
        As in :func:`read`; by default LIBSVM text has as many features as occur in any of the
        files.
    memory : int, default=268435456
        Approximate bytes for the rows in memory; labels and row pointers add up to 16 bytes a row.
        ``.npz`` and idx files are read whole.
    advance : callable, optional
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    Store

    Raises
    ------
    DataError
        A file that cannot be read, files that do not go together, a target that exists or cannot be
        written.

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
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    names = [os.fspath(source) for source in sources]
    how = Reading(label, header, n_features, dtype, zero_based, drop_columns=tuple(drop_columns))
    return convert_sources(names, target, how, memory, advance)


def convert_sources(
    names: Sequence[str],
    target: str | os.PathLike[str],
    how: Reading,
    memory: int,
    advance: Callable[[float], object] | None = None,
) -> Store:
    """Write sources of numbers as a store, as :func:`convert`."""
    how.check()
    if memory < LEAST_MEMORY:
        raise DataError(f"memory is {memory} bytes; at least 1 MiB is needed")
    if not names:
        raise DataError("no data file was given; at least one is needed")
    n_bytes = memory // _BLOCKS_IN_MEMORY
    try:
        _write_store(names, target, how, n_bytes, advance)
    except LateZero:
        how = replace(how, zero_based=True)
        _write_store(names, target, how, n_bytes, advance)
    return Store(target)


def _write_store(
    names: Sequence[str],
    target: str | os.PathLike[str],
    how: Reading,
    n_bytes: int,
    advance: Callable[[float], object] | None,
) -> None:
    """Write the files of these names as a store, from blocks of about `n_bytes`."""
    # Values keep their own types while they are read.
    sources = [source_of(name, replace(how, dtype=None)) for name in names]
    check_alike([source.header for source in sources], names)
    dtype = how.dtype
    if dtype is None:
        dtype = common_type([source.dtype for source in sources])
    feature_names = sources[0].feature_names
    if any(source.feature_names != feature_names for source in sources):
        feature_names = None
    with StoreWriter(
        target,
        dtype=dtype,
        n_features=how.n_features,
        feature_names=feature_names,
        label_name=sources[0].label_name,
    ) as writer:
        may_repeat = how.zero_based == "auto"
        _append_all(writer, sources, n_bytes, may_repeat, advance or (lambda share: None))


def _append_all(
    writer: StoreWriter,
    sources: list[Source],
    n_bytes: int,
    may_repeat: bool,
    advance: Callable[[float], Any],
) -> None:
    """Append the rows of all sources, and describe each source for the header.

    Indices of LIBSVM text must count alike in all sources. If they do not, the text is read again,
    counted from 0, if that is allowed; the rows of a store stay as they are.
    """
    total = sum(source.n_bytes for source in sources) or 1
    done = 0
    names: dict[bool, str] = {}  # a source that counts from 0, and one that counts from 1
    for source in sources:
        n_before = writer.n_rows
        zero_based = None
        for block in source.blocks(n_bytes):
            writer.append(block.X, block.y, block.weights)
            zero_based = block.zero_based
            # Progress counts bytes, because sources differ in size.
            advance((done + block.share * source.n_bytes) / total)
        done += source.n_bytes
        if zero_based is not None:
            names[zero_based] = source.name
        if len(names) == 2 and may_repeat:
            raise LateZero
        if len(names) == 2:
            raise DataError(
                f"{names[True]}: indices count from 0; those of {names[False]} count from 1: "
                "convert the text again, all of it with the same zero_based (--index-base)"
            )
        writer.sources.append(
            {
                "path": source.name,
                "format": source.format,
                "rows": writer.n_rows - n_before,
                "bytes": source.n_bytes,
                "zero_based": zero_based,
            }
        )
