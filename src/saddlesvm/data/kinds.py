"""What the columns of a table hold: numbers, categories, texts, or nothing to learn from.

The first rows of a column choose its kind. What pandas and pyarrow read as numbers or truth values
are numbers, and what they read as words are categories or texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddlesvm.data.data_table import shorten
from saddlesvm.data.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("number", "category", "text", "drop")
SAMPLE = 10_000  # rows that decide about a column; a guess
NUMBERS = 0.9  # least share of numbers in a column of numbers: others are typing errors; a guess
WORDS = 3.0  # least mean number of words of a text; names and places have fewer; a guess
DISTINCT = 0.3  # least share of different values of a text: categories repeat; a guess
FEWEST = 20  # rows from which a column whose values all differ is an id; a guess
# Amounts with marks or signs, such as "1,5" and "12 %".
_AMOUNT = r"\W{0,3}\d[\d.,]*[^\w.,]{0,3}"
# Dates, times and amounts with units, in lower case: digits first, and at most four letters.
_WRITTEN = r"\W*\d[^a-z]*(?:[a-z][^a-z]*){0,4}"
_CELLS = (str, Real, Decimal, np.bool_)  # types of cells that can be learnt from


class ChosenKind(NamedTuple):
    """The kind that was chosen for a column, and the reason."""

    kind: str
    why: str


def choose_kinds(
    frame: pd.DataFrame, given: Mapping[str, str] | None = None
) -> dict[str, ChosenKind]:
    """Return the kind of each column, from the first rows of a table.

    Parameters
    ----------
    frame : DataFrame
    given : mapping of str to str, optional
        The kinds that the user gives, by column.

    Raises
    ------
    DataError
        A column or a kind that is given does not exist, no column is left to learn from, or a
        column holds dates, lists, or other things than numbers and words.
    """
    names = [str(name) for name in frame.columns]
    given = dict(given or {})
    unknown = [name for name in given if name not in names]
    if unknown:
        raise DataError(f"there is no column {shorten(unknown)}; the columns are {shorten(names)}")
    chosen = {}
    for position, name in enumerate(names):
        if name in given:
            check_kind(given[name], name)
            chosen[name] = ChosenKind(given[name], "as given")
        else:
            chosen[name] = choose_kind(name, frame.iloc[:SAMPLE, position])
    if all(choice.kind == "drop" for choice in chosen.values()):
        dropped = ", ".join(f"{name!r} ({choice.why})" for name, choice in chosen.items())
        raise DataError(
            f"no column is left to learn from: {dropped}; name kinds with --columns NAME=KIND"
        )
    return chosen


def check_kind(kind: str, column: str) -> None:
    """Raise a `DataError` if there is no such kind."""
    if kind not in KINDS:
        raise DataError(
            f"column {column!r}: {kind!r} is not a kind of column; allowed are {', '.join(KINDS)}"
        )


def choose_kind(name: str, values: pd.Series) -> ChosenKind:
    """Return the kind of a column, from its first rows."""
    import pandas as pd

    known = values.dropna()
    other = find_other_type(known)
    if other is not None:
        raise DataError(
            f"column {name!r} holds values of type {other}; numbers or words are needed: "
            f"{_advise(name)}"
        )
    known = known[known != ""]
    n_distinct = known.nunique()
    if n_distinct == 0:
        return ChosenKind("drop", "no value")
    if n_distinct == 1:
        return ChosenKind("drop", "one value only")
    if pd.api.types.is_numeric_dtype(values.dtype):
        return _kind_of_numbers(values.to_numpy(np.float64, na_value=np.nan))
    if isinstance(values.dtype, pd.CategoricalDtype):
        return ChosenKind("category", f"{n_distinct:,} values")
    # Numbers among which a few cells are typing errors: reading names these cells.
    if pd.to_numeric(known, errors="coerce").notna().mean() >= NUMBERS:
        return ChosenKind("number", "")
    return _kind_of_words(name, known.astype(str), n_distinct)


def find_other_type(values: pd.Series) -> str | None:
    """Return the type of a cell that is neither a number nor a word; None if there is none."""
    for cell in values.map(type).unique():
        if not issubclass(cell, _CELLS):
            return str(cell.__name__)
    return None


def _advise(name: str) -> str:
    """Return what to do with a column that holds neither numbers nor words."""
    return (
        "make numbers of it in pandas (read_csv has decimal= and thousands=, to_datetime reads "
        f"dates), and fit the frame; or say --columns {name}=drop or {name}=category"
    )


def _kind_of_numbers(values: np.ndarray) -> ChosenKind:
    """Return the kind of a column of numbers: "drop" if they count the rows."""
    counts_rows = (
        values.size >= FEWEST
        and values[0] in (0.0, 1.0)
        and values[-1] == values[0] + values.size - 1
        and bool((np.diff(values) == 1.0).all())
    )
    if counts_rows:
        return ChosenKind("drop", "an id: it counts the rows")
    n_missing = int(np.isnan(values).sum())
    if n_missing:
        return ChosenKind("number", f"{n_missing:,} missing")
    return ChosenKind("number", "")


def _kind_of_words(name: str, texts: pd.Series, n_distinct: int) -> ChosenKind:
    """Return the kind of a column of words, by their number and by how they repeat."""
    import pandas as pd

    # Amounts are no categories; nor are dates, unless they are few.
    lower = texts.str.strip().str.lower()
    is_amount = lower.str.fullmatch(_AMOUNT).mean() >= NUMBERS
    if is_amount or (n_distinct >= FEWEST and lower.str.fullmatch(_WRITTEN).mean() >= NUMBERS):
        # Some cells may be numbers.
        others = texts[pd.to_numeric(texts, errors="coerce").isna()]
        raise DataError(
            f"column {name!r} holds cells such as {others.iloc[0][:40]!r}, which begin with "
            f"digits, but are no numbers: {_advise(name)}"
        )
    n_words = float(texts.str.split().str.len().mean())
    if n_words >= WORDS and n_distinct >= DISTINCT * len(texts):
        return ChosenKind("text", f"{n_words:.3g} words on average")
    if n_distinct == len(texts) >= FEWEST:
        return ChosenKind("drop", "an id: all values differ")
    return ChosenKind("category", f"{n_distinct:,} values")
