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
_COLUMN_NUMBER = re.compile(r"column ([0-9]{1,9})")  # what a column without a name is called


def dropped_positions(
    drop: Sequence[str | int], names: list[str] | None, n_columns: int, source: str
) -> frozenset[int]:
    """Return the positions of the columns that are left out, given by name or position.

    Raises
    ------
    DataError
        There is no such column, or its name occurs twice.
    """
    return frozenset(position_of(column, names, n_columns, source, "column") for column in drop)


def label_position(
    label: Label,
    names: list[str] | None,
    n_columns: int,
    n_features: int | None,
    source: str,
    dropped: frozenset[int] = frozenset(),
) -> int | None:
    """Return the position of the label column, counted from 0; None if the table has no labels.

    Parameters
    ----------
    label : str, int, False or None
        A name (or the digits of a position, if no column has that name), a position (negative
        positions count from the end), or False for no label. None means a column with a name in
        `LABEL_NAMES`, else the last column that is not dropped, or no label if the table has just
        `n_features` columns.
    names : list of str, or None
        The column names, if the table has any.
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
        There is no such column, or its name occurs twice, or the other columns are not
        `n_features`.
    """
    # A table of just the expected features has no label, unless the user names one.
    kept = [column for column in range(n_columns) if column not in dropped]
    position = None
    if label is None:
        if kept and len(kept) != n_features:
            position = _default_label(names, kept)
    elif label is not False:
        position = position_of(label, names, n_columns, source)
        if position in dropped:
            raise DataError(
                f"{source}: drop_columns names the label column {label!r}: leave it out there"
            )
    if label is None and n_features is not None and len(kept) < n_features:
        listed = "" if names is None else f" ({shorten([names[column] for column in kept])})"
        raise DataError(
            f"{source}: has {len(kept)} columns{listed}; {n_features} features are expected"
        )
    # The other columns are the features.
    width = len(kept) - (position is not None)
    if width <= 0:
        raise DataError(
            f"{source}: has {len(kept)} columns and no feature; "
            "at least one beside the label is needed"
        )
    if n_features is not None and width != n_features:
        labels = "no label column" if position is None else "one label column"
        raise DataError(
            f"{source}: has {width} feature columns and {labels}; "
            f"{n_features} features are expected"
        )
    return position


def _default_label(names: list[str] | None, kept: list[int]) -> int:
    """Return the position of the label column by its name, else the last position."""
    if names is not None:
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


def position_of(
    label: str | int,
    names: list[str] | None,
    n_columns: int,
    source: str,
    what: str = "label column",
) -> int:
    """Return the position of a column given by its name or position (negative from the end).

    Raises
    ------
    DataError
        There is no such column, or its name occurs twice.
    """
    if isinstance(label, str) and names is not None and label in names:
        if names.count(label) > 1:
            raise DataError(
                f"{source}: {names.count(label)} columns are named {label!r}; give the position"
            )
        return names.index(label)

    # No column has this name: it may be "column 3" in a file without names, or a position.
    position = None
    if isinstance(label, str) and names is None:
        numbered = _COLUMN_NUMBER.fullmatch(label)
        position = None if numbered is None else int(numbered[1]) - 1
    if position is None:
        if isinstance(label, str) and not _POSITION.fullmatch(label):
            hint = "it has no header: give a position from 0, or 'column 1' for the first column"
            if names is not None:
                hint = f"its columns are {shorten(names)}"
            raise DataError(f"{source}: has no {what} {label!r}; {hint}")
        position = int(label)
    if not -n_columns <= position < n_columns:
        allowed = f"0 to {n_columns - 1}, or -{n_columns} to -1 counted from the end"
        raise DataError(f"{source}: has no column {position}; positions are {allowed}")
    return position % n_columns
