"""The rules for columns of all tables: which one is the label, and whether two sources have the same columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saddlesvm.data.errors import DataError
from saddlesvm.data.table import Label, shorten

_POSITION = re.compile(r"[+-]?[0-9]{1,18}")

__all__ = ["check_names", "dropped_positions", "label_position", "position_of"]


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
        end), False for no label. None means the last column that is not dropped, or no label if there are just
        `n_features` of those.
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
        position = kept[-1] if kept and len(kept) != n_features else None
    else:
        position = position_of(label, names, n_columns, source)
        if position in dropped:
            raise DataError(f"{source}: the column of the labels is among those to drop")
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
    if isinstance(label, str) and not _POSITION.fullmatch(label):
        found = "it has no header, so that this must be a position"
        if names is not None:
            found = f"its columns are {shorten(names)}"
        raise DataError(f"{source}: has no {what} {label!r}; {found}")
    position = int(label)
    if not -n_columns <= position < n_columns:
        allowed = f"0 to {n_columns - 1}, or -{n_columns} to -1 counted from the end"
        raise DataError(f"{source}: has no column {position}; positions are {allowed}")
    return position % n_columns
