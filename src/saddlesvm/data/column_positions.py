"""Which column of a table is the label, and which columns are left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saddlesvm.data.data_table import shorten
from saddlesvm.data.errors import DataError
from saddlesvm.data.reading import Label

# Names of columns that are taken for the labels; without them the last column is.
LABEL_NAMES = ("label", "target", "class", "y")
_POSITION = re.compile(r"[+-]?[0-9]{1,18}")


def number_columns(n_columns: int) -> list[str]:
    """Return the names of columns in a file without names: "column 1", "column 2" and so on."""
    return [f"column {k + 1}" for k in range(n_columns)]


def position_of(
    column: str | int, names: Sequence[str], source: str, what: str = "label column"
) -> int:
    """Return the position of a column given by its name or position (negative from the end).

    Raises
    ------
    DataError
        There is no such column, or its name occurs twice.
    """
    if isinstance(column, str) and column in names:
        if names.count(column) > 1:
            raise DataError(
                f"{source}: {names.count(column)} columns are named {column!r}; give the position"
            )
        return names.index(column)
    if isinstance(column, str) and not _POSITION.fullmatch(column):
        raise DataError(
            f"{source}: has no {what} {column!r}; its columns are {shorten(names)}, or give a "
            "position from 0"
        )
    position = int(column)
    n_columns = len(names)
    if not -n_columns <= position < n_columns:
        allowed = f"0 to {n_columns - 1}, or -{n_columns} to -1 counted from the end"
        raise DataError(f"{source}: has no column {position}; positions are {allowed}")
    return position % n_columns


def dropped_positions(
    drop: Sequence[str | int], names: Sequence[str], source: str
) -> frozenset[int]:
    """Return the positions of the columns that are left out, given by name or position.

    Raises
    ------
    DataError
        There is no such column, or its name occurs twice.
    """
    return frozenset(position_of(column, names, source, "column") for column in drop)


def label_position(
    label: Label,
    names: Sequence[str],
    source: str,
    dropped: frozenset[int] = frozenset(),
    n_features: int | None = None,
) -> int | None:
    """Return the position of the label column, counted from 0; None if the table has no labels.

    Parameters
    ----------
    label : str, int, False or None
        A name (or the digits of a position, if no column has that name), a position (negative
        positions count from the end), or False for no label. None means a column with a name in
        `LABEL_NAMES`, else the last column that is not dropped, or no label if the table has just
        `n_features` columns.
    names : sequence of str
        The column names, or those of :func:`number_columns`.
    source : str
        Name of the source in messages.
    dropped : frozenset of int
        Positions of columns that are left out.
    n_features : int or None
        How many features are expected.

    Raises
    ------
    DataError
        There is no such column, or its name occurs twice, or the other columns are not
        `n_features`.
    """
    kept = [column for column in range(len(names)) if column not in dropped]
    position = None
    # A table of just the expected features has no label, unless the user names one.
    if label is None:
        if kept and (n_features is None or len(kept) > n_features):
            position = _default_label(names, kept)
    elif label is not False:
        position = position_of(label, names, source)
        if position in dropped:
            raise DataError(
                f"{source}: drop_columns names the label column {label!r}: leave it out there"
            )
    # The other columns are the features.
    width = len(kept) - (position is not None)
    if width < 1 or n_features not in (None, width):
        expected = f"{n_features} features are expected"
        if n_features is None:
            expected = "a label and at least one feature are needed"
        listed = shorten([names[column] for column in kept])
        raise DataError(f"{source}: has {len(kept)} columns ({listed}); {expected}")
    return position


def _default_label(names: Sequence[str], kept: list[int]) -> int:
    """Return the position of the label column by its name, else the last position."""
    # The first column of each name wins.
    positions = {names[column].lower(): column for column in reversed(kept)}
    for name in LABEL_NAMES:
        if name in positions:
            return positions[name]
    return kept[-1]


def check_names(
    source: str, names: Sequence[str] | None, other: str, expected: Sequence[str] | None
) -> None:
    """Raise a `DataError` if two sources name their features, and the names or order differ."""
    if names is None or expected is None:
        return
    missing = [str(name) for name in expected if name not in names]
    if missing:
        raise DataError(
            f"{source}: lacks features of {other}: {shorten(missing)}; "
            f"its columns are {shorten(names)}"
        )
    # No name is missing: point at the first one that stands elsewhere.
    pairs = list(zip(names, expected, strict=False))
    has_same_names = {name for name, _ in pairs} == {wanted for _, wanted in pairs}
    order = " (the same names in another order)" if has_same_names else ""
    for k, (name, wanted) in enumerate(pairs):
        if name != wanted:
            raise DataError(
                f"{source}: feature {k + 1} is {name!r}; {other} has {str(wanted)!r} there{order}"
            )
