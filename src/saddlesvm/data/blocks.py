"""Data files as sources of rows in blocks, the options of reading, and which of the columns is the label."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from saddlesvm.data.errors import BUNDLED, DataError, check_there
from saddlesvm.data.streams import format_of
from saddlesvm.data.table import Label, Missing, Task, shorten

WHOLE = 1 << 62  # bytes of a block that holds all rows
LABEL_NAMES = ("label", "target", "class", "y")  # that are taken for the labels before the last column is
COLUMNS = ("csv", "parquet", "arrow")  # formats whose columns can be left out


@dataclass(frozen=True)
class Reading:
    """How a file is read; :func:`~saddlesvm.data.read` describes the options."""

    label: Label = None
    header: bool | Literal["auto"] = "auto"
    n_features: int | None = None
    dtype: Any = None
    task: Task | None = None
    scale: float = 1.0
    zero_based: bool | Literal["auto"] = "auto"
    missing: Missing = "error"
    drop_columns: tuple[str | int, ...] = ()

    def check(self) -> None:
        """Raise a `DataError` for an option that no format allows."""
        if self.n_features is not None and self.n_features < 1:
            raise DataError(f"n_features is {self.n_features}; it must be at least 1")
        if self.dtype is not None and np.dtype(self.dtype) not in (np.float32, np.float64):
            raise DataError(f"dtype is {np.dtype(self.dtype)}; allowed are float32 and float64")
        if not np.isfinite(self.scale) or self.scale == 0.0:
            raise DataError(f"scale is {self.scale}; it must be finite and not zero")
        if self.missing not in ("error", "keep"):
            raise DataError(f"missing is {self.missing!r}; allowed are 'error' and 'keep'")
        if self.task not in (None, "classification", "regression"):
            raise DataError(f"task is {self.task!r}; allowed are 'classification', 'regression' and None")
        if self.header not in (True, False, "auto"):
            raise DataError(f"header is {self.header!r}; allowed are True, False and 'auto'")

    def check_applicable(self, name: str, found: str) -> None:
        """Raise a `DataError` for an option that the format `found` does not have."""
        named = self.label is not None and self.label is not False
        if found in ("jsonl", "folder"):
            raise DataError(f"{name}: is {found}: read it with saddlesvm.table.read, and encode its columns")
        if self.drop_columns and found not in COLUMNS:
            raise DataError(f"{name}: drop_columns applies to CSV, TSV, Parquet and Feather; this is {found}")
        if found == "bundled" and (self.label is not None or self.header != "auto"):
            raise DataError(f"{name}: is a bundled set; label and header do not apply")
        if self.header != "auto" and found != "csv":
            raise DataError(f"{name}: header={self.header!r} applies to CSV and TSV only; this is {found}")
        if found == "libsvm" and named:
            raise DataError(f"{name}: label={self.label!r} does not apply: a line of LIBSVM text starts with its label")
        if found == "store" and named:
            raise DataError(f"{name}: label={self.label!r} does not apply: a store has one column of labels")


class Block(NamedTuple):
    """Some rows of a source.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Of any type of number; a CSR matrix may be narrower than the whole source is.
    y : ndarray of shape (n,), Cells, or None
    weights : ndarray of shape (n,) or None
    share : float
        Share of the source read so far, 0 to 1.
    zero_based : bool or None
        Whether the indices of LIBSVM text were taken to count from 0; None where that is not known, or there are none.
    """

    X: Any
    y: Any
    weights: Any = None
    share: float = 1.0
    zero_based: bool | None = None


Blocks = Callable[[int], Iterator[Block]]


def labelled(parts: Iterable[Any], y: np.ndarray[Any, Any] | None, n: int) -> Iterator[Block]:
    """Parts of n rows, one after the other, as blocks with their labels among all."""
    start = 0
    for X in parts:
        stop = start + X.shape[0]
        yield Block(X, None if y is None else y[start:stop].ravel(), None, stop / n)
        start = stop


@dataclass(frozen=True)
class Source:
    """A data file whose format is known, ready to be read in blocks.

    Attributes
    ----------
    name : str
        The name as the user gave it.
    format : str
    sparse : bool
    width : int or None
        Number of features; None where it is known only after the last row.
    dtype : dtype
        Of the values, as a store keeps them.
    has_labels, has_weights : bool
    n_bytes : int
        Size on the disk.
    blocks : callable
        Takes the approximate number of bytes per block; every call begins at the first row.
    feature_names : list of str, or None
    label_name : str or None
    zero_based : bool or None
        As in :class:`Block`.
    whole : callable, optional
        Reads all rows as one block, where that is more than a block of :data:`WHOLE` bytes; it takes a function to call
        with the share that was read, or None.
    """

    name: str
    format: str
    sparse: bool
    width: int | None
    dtype: np.dtype[Any]
    has_labels: bool
    n_bytes: int
    blocks: Blocks
    feature_names: list[str] | None = None
    label_name: str | None = None
    has_weights: bool = False
    zero_based: bool | None = None
    whole: Callable[[Callable[[float], Any] | None], Block] | None = None

    def rows(self, advance: Callable[[float], Any] | None = None) -> Block:
        """All rows in memory.

        Raises
        ------
        DataError
            There are none, or what the format's reader raises.
        """
        block = next(self.blocks(WHOLE), None) if self.whole is None else self.whole(advance)
        if block is None:
            raise DataError(f"{self.name}: holds no rows; at least one is needed")
        return block


def rows_in(n_bytes: int, a_row: float) -> int:
    """The number of rows of `a_row` bytes in `n_bytes`; at least 1."""
    return max(1, int(n_bytes / max(a_row, 1.0)))


def located(name: str) -> str:
    """The format of the file, folder or bundled set of a name ("bundled" for one of those).

    Raises
    ------
    DataError
        There is no such source, or its format is not known.
    """
    check_there(name)
    return "bundled" if name in BUNDLED else format_of(Path(name))


_POSITION = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBERED = re.compile(r"column ([0-9]{1,9})")  # as a column of a file without names is called, from 1


def dropped_positions(
    drop: Sequence[str | int], names: list[str] | None, n_columns: int, source: str
) -> frozenset[int]:
    """Positions of the columns that are left out, given by names or positions as the label is.

    Raises
    ------
    DataError
        There is no such column, or its name occurs twice.
    """
    return frozenset(position_of(one, names, n_columns, source, "column") for one in drop)


def label_position(
    label: Label,
    names: list[str] | None,
    n_columns: int,
    n_features: int | None,
    source: str,
    dropped: frozenset[int] = frozenset(),
) -> int | None:
    """Position of the label column, counted from 0; None when the table has no labels.

    Parameters
    ----------
    label : str, int, False or None
        A name (or the digits of a position, when no column has that name), a position (negative ones count from the
        end), False for no label. None means a column named as one of `LABEL_NAMES`, else the last column that is not
        dropped, or no label if there are just `n_features` of those.
    names : list of str, or None
        The column names, where the table has any.
    n_columns : int
    n_features : int or None
        How many features are expected.
    source : str
        Name of the source in messages.
    dropped : frozenset of int
        Positions of columns that are left out.

    Raises
    ------
    DataError
        There is no such column, or its name occurs twice, or the features that remain are not `n_features`.
    """
    kept = [column for column in range(n_columns) if column not in dropped]
    if label is False:
        position = None
    elif label is None:
        position = _default_label(names, kept) if kept and len(kept) != n_features else None
    else:
        position = position_of(label, names, n_columns, source)
        if position in dropped:
            raise DataError(f"{source}: drop_columns names the label column {label!r}: leave it out there")
    if label is None and n_features is not None and len(kept) < n_features:
        named = "" if names is None else f" ({shorten([names[column] for column in kept])})"
        raise DataError(f"{source}: has {len(kept)} columns{named}; {n_features} features are expected")
    width = len(kept) - (position is not None)
    if width <= 0:
        raise DataError(f"{source}: has {len(kept)} columns and no feature; at least one beside the label is needed")
    if n_features is not None and width != n_features:
        beside = "no label column" if position is None else "one label column"
        raise DataError(f"{source}: has {width} feature columns and {beside}; {n_features} features are expected")
    return position


def _default_label(names: list[str] | None, kept: list[int]) -> int:
    """Position of the column that is taken for the labels if none is named: by its name, else the last one."""
    called = {} if names is None else {names[place].lower(): place for place in reversed(kept)}
    return next((called[name] for name in LABEL_NAMES if name in called), kept[-1])


def check_names(source: str, names: Sequence[str] | None, other: str, expected: Sequence[str] | None) -> None:
    """Raise a `DataError` where both sources name their features, and a name is missing or has another place."""
    if names is None or expected is None:
        return
    missing = [str(name) for name in expected if name not in names]
    if missing:
        raise DataError(f"{source}: lacks features of {other}: {shorten(missing)}; its columns are {shorten(names)}")
    pairs = list(zip(names, expected, strict=False))
    for k, (name, wanted) in enumerate(pairs):
        if name != wanted:
            order = " (the same names in another order)" if {*dict(pairs)} == {*dict(pairs).values()} else ""
            raise DataError(f"{source}: feature {k + 1} is {name!r}; {other} has {str(wanted)!r} there{order}")


def position_of(
    label: str | int, names: list[str] | None, n_columns: int, source: str, what: str = "label column"
) -> int:
    """Position of a column given by its name, or by its position, negative from the end.

    Raises
    ------
    DataError
        There is no such column, or its name occurs twice.
    """
    if isinstance(label, str) and names is not None and label in names:
        if names.count(label) > 1:
            raise DataError(f"{source}: {names.count(label)} columns are named {label!r}; give the position")
        return names.index(label)
    numbered = _NUMBERED.fullmatch(label) if isinstance(label, str) and names is None else None
    if isinstance(label, str) and numbered is None and not _POSITION.fullmatch(label):
        found = "it has no header, so that this must be a position from 0, or 'column 1' for the first"
        if names is not None:
            found = f"its columns are {shorten(names)}"
        raise DataError(f"{source}: has no {what} {label!r}; {found}")
    position = int(label) if numbered is None else int(numbered[1]) - 1
    if not -n_columns <= position < n_columns:
        allowed = f"0 to {n_columns - 1}, or -{n_columns} to -1 counted from the end"
        raise DataError(f"{source}: has no column {position}; positions are {allowed}")
    return position % n_columns
