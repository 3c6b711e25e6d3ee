"""What the columns of a table hold: numbers, categories, texts, dates, lists, or nothing to learn.

The kind of a column is chosen from its first rows, and says how its cells are read. Cells that
people write ("$1,234.50", "12 %", "1,5", "3 kg", "02:30:00") are numbers if that is certain, and
are refused otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddlesvm.data.cell_patterns import (
    BEGINS_WITH_DIGITS,
    DURATION,
    ID_NAME,
    ID_VALUE,
    MISSING_WORDS,
    WITH_COMMA,
    WITH_POINT,
    WRITTEN_NUMBER,
    YEAR_FIRST,
    YEAR_LAST,
)
from saddlesvm.data.data_table import shorten
from saddlesvm.data.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("number", "category", "text", "chars", "date", "list", "drop")
NGRAMS = {"text": (1, 1), "chars": (2, 4)}  # lengths of n-grams if none are given
LONGEST_NGRAM = 10  # words or characters; longer n-grams hardly occur twice; a guess
WAYS = {"number": ("point", "comma", "duration"), "date": ("ymd", "dmy", "mdy")}

SAMPLE = 10_000  # rows that decide about a column; a guess
NUMBERS = 0.9  # least share of numbers in a column of numbers: others are typing errors; a guess
WORDS = 3.0  # least mean number of words of a text; names and places have fewer; a guess
DISTINCT = 0.3  # least share of different values of a text: categories repeat; a guess
FEWEST = 20  # rows from which a column whose values all differ is an id; a guess
_ID_NAME = re.compile(ID_NAME)
ALL_DIFFER = "an id: all values differ"


class Kind(NamedTuple):
    """A kind as ``--columns`` spells it, such as ``category``, ``number:comma`` or ``text:1-2``.

    Parameters
    ----------
    name : str
        One of `KINDS`.
    low, high : int
        Shortest and longest n-gram of a text; 0 for other kinds.
    way : str
        How cells are written: one of `WAYS`; "" as programs write them.
    """

    name: str
    low: int = 0
    high: int = 0
    way: str = ""

    def __str__(self) -> str:
        if self.way:
            return f"{self.name}:{self.way}"
        if NGRAMS.get(self.name, (0, 0)) == (self.low, self.high):
            return self.name
        return f"{self.name}:{self.low}-{self.high}"


class ChosenKind(NamedTuple):
    """The kind that was chosen for a column, and the reason."""

    kind: Kind
    why: str


def parse_kind(text: str, column: str) -> Kind:
    """Return the kind that a text names.

    Raises
    ------
    DataError
        It does not name a kind.
    """
    name, _, more = text.partition(":")
    # Such as "date:dmy" or "number:comma".
    if name in WAYS and (not more or more in WAYS[name]):
        return Kind(name, way="" if more == "ymd" else more)
    # Such as "text:2" or "text:1-2", the lengths of n-grams.
    lengths = re.fullmatch(r"(\d{1,2})(?:-(\d{1,2}))?", more)
    if name in NGRAMS and (lengths or not more):
        low, high = NGRAMS[name]
        if lengths is not None:
            low = int(lengths[1])
            high = int(lengths[2] or lengths[1])
        if 1 <= low <= high <= LONGEST_NGRAM:
            return Kind(name, low, high)
    if name in ("category", "list", "drop") and not more:
        return Kind(name)
    raise DataError(
        f"column {column!r}: {text!r} is not a kind of column; allowed are {', '.join(KINDS)}; "
        "number:comma (1,5 is one and a half), number:point, number:duration, "
        f"text:1-2 (lengths of n-grams, 1 to {LONGEST_NGRAM}), date:dmy and date:mdy"
    )


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
        A column that is given a kind does not exist, no column is left to learn from, or the cells
        of a column begin with digits, but are neither certainly numbers nor anything else.
    """
    names = [str(name) for name in frame.columns]
    given = dict(given or {})
    unknown = [name for name in given if name not in names]
    if unknown:
        raise DataError(f"there is no column {shorten(unknown)}; the columns are {shorten(names)}")
    chosen = {}
    for position, name in enumerate(names):
        if name in given:
            chosen[name] = ChosenKind(parse_kind(given[name], name), "as given")
        else:
            chosen[name] = choose_kind(name, frame.iloc[:SAMPLE, position])
    if all(choice.kind.name == "drop" for choice in chosen.values()):
        dropped = ", ".join(f"{name!r} ({choice.why})" for name, choice in chosen.items())
        raise DataError(
            f"no column is left to learn from: {dropped}; name kinds with --columns NAME=KIND"
        )
    return chosen


def choose_kind(name: str, values: pd.Series) -> ChosenKind:
    """Return the kind of a column, from its first rows."""
    # The types that a file states decide first.
    dtype = values.dtype.kind
    if dtype == "M":
        return _unless_constant(values.nunique(), ChosenKind(Kind("date"), ""))
    if dtype == "m":
        return _unless_constant(values.nunique(), ChosenKind(Kind("number"), "seconds"))
    if dtype in "iuf" and _is_numeric(values):
        return _kind_of_numbers(name, values.to_numpy(np.float64, na_value=np.nan))
    known = values.dropna()
    first = None if known.empty else known.iloc[0]
    if isinstance(first, (list, tuple, np.ndarray)):
        return _kind_of_lists(name, known)
    if isinstance(first, (dict, set, bytes)):
        raise DataError(
            f"column {name!r} holds a {type(first).__name__}: numbers, text, dates or lists of "
            f"numbers are needed (or --columns {name}=drop)"
        )
    # Python's regular expressions need objects.
    texts = known.astype(str).astype(object).str.strip()
    return _kind_of_texts(name, texts[~texts.str.lower().isin(MISSING_WORDS)])


def _kind_of_texts(name: str, texts: pd.Series) -> ChosenKind:
    """Return the kind of a column of texts: what they spell, or how they repeat."""
    import pandas as pd

    seen = DistinctTexts(texts)
    distinct = seen.texts
    if len(distinct) <= 1:
        return _unless_constant(len(distinct), ChosenKind(Kind("category"), ""))

    # Numbers and dates, as programs or people write them.
    if seen.share(pd.to_numeric(distinct, errors="coerce").notna()) >= NUMBERS:
        return _kind_of_numbers(name, pd.to_numeric(texts, errors="coerce").to_numpy(np.float64))
    order = _date_order(seen)
    if order == "ymd":
        return ChosenKind(Kind("date"), "")
    if order:
        return ChosenKind(Kind("date", way=order), f"read as {order}")
    written = _kind_of_written_numbers(name, seen)
    if written is not None:
        return written

    # Long and different texts, identifiers, or categories.
    n_words = float(np.average(distinct.str.split().str.len(), weights=seen.counts))
    if n_words >= WORDS and len(distinct) / len(texts) >= DISTINCT:
        return ChosenKind(Kind("text", *NGRAMS["text"]), f"{n_words:.3g} words on average")
    if len(distinct) == len(texts) >= FEWEST:
        if not _ID_NAME.search(name) and seen.share_matching(ID_VALUE) < NUMBERS:
            _refuse_digits(name, texts)
        return ChosenKind(Kind("drop"), ALL_DIFFER)
    return ChosenKind(Kind("category"), f"{len(distinct):,} values")


class DistinctTexts:
    """The different texts of a column, and how many rows have each.

    Parameters
    ----------
    texts : Series of objects
    """

    def __init__(self, texts: pd.Series) -> None:
        import pandas as pd

        counts = texts.value_counts(sort=False)
        self.texts = pd.Series(as_objects(counts.index.tolist()), dtype=object)
        self.counts = counts.to_numpy()

    def share(self, is_chosen: object) -> float:
        """Return the share of rows whose text is chosen, given a truth value for each text."""
        n_chosen = self.counts[np.asarray(is_chosen, dtype=bool)].sum()
        return float(n_chosen / self.counts.sum())

    def share_matching(self, pattern: str) -> float:
        """Return the share of rows whose whole text matches a pattern."""
        return self.share(self.texts.str.fullmatch(pattern))


def as_objects(values: Sequence[object]) -> np.ndarray:
    """Return values of any type, lists too, as an array of objects of shape (n,)."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def _is_numeric(values: pd.Series) -> bool:
    """Return True if a column holds numbers, and not truth values."""
    import pandas as pd

    is_bool = pd.api.types.is_bool_dtype(values.dtype)
    return pd.api.types.is_numeric_dtype(values.dtype) and not is_bool


def _unless_constant(n_distinct: int, chosen: ChosenKind) -> ChosenKind:
    """Return the kind, but "drop" for a column without two different values."""
    if n_distinct > 1:
        return chosen
    if n_distinct == 1:
        return ChosenKind(Kind("drop"), "one value only")
    return ChosenKind(Kind("drop"), "no value")


def _kind_of_numbers(name: str, values: np.ndarray) -> ChosenKind:
    """Return the kind of a column of numbers: "drop" if they count the rows."""
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if distinct.size <= 1:
        return _unless_constant(distinct.size, ChosenKind(Kind("number"), ""))
    is_whole = bool((known == np.floor(known)).all())
    if is_whole and distinct.size == values.size:
        # 1, 2, 3, ... counts the rows; so may different whole numbers in a column named "id".
        counts_rows = (
            values.size >= FEWEST
            and distinct[0] in (0.0, 1.0)
            and bool((np.diff(values) == 1.0).all())
        )
        if counts_rows or _ID_NAME.search(name):
            return ChosenKind(Kind("drop"), ALL_DIFFER)
    n_missing = values.size - known.size
    return ChosenKind(Kind("number"), f"{n_missing:,} missing" if n_missing else "")


def _kind_of_lists(name: str, known: pd.Series) -> ChosenKind:
    """Return the kind of a column of lists: numbers, or words, which are a text."""
    first = next((item for row in known for item in list(row)[:1]), None)
    if isinstance(first, str):
        return ChosenKind(Kind("text", *NGRAMS["text"]), "lists of words")
    lengths = sorted({len(row) for row in known})
    if len(lengths) > 1:
        raise DataError(
            f"column {name!r} holds lists of {lengths[0]} to {lengths[-1]} numbers; "
            f"one length is needed (or --columns {name}=drop)"
        )
    return ChosenKind(Kind("list"), f"{lengths[0]:,} numbers a row")


def _date_order(seen: DistinctTexts) -> str:
    """Return the order of year, month and day if texts are dates, else ""."""
    if seen.share_matching(YEAR_FIRST) >= NUMBERS:
        return "ymd"
    if seen.share_matching(YEAR_LAST) < NUMBERS:
        return ""
    # A number above 12 is a day. Without any, a point stands for the order of Europe.
    dates = seen.texts[seen.texts.str.fullmatch(YEAR_LAST)]
    parts = dates.str.extract(r"^(\d{1,2})([-/.])(\d{1,2})")
    largest_first = int(parts[0].astype(int).max())
    largest_second = int(parts[2].astype(int).max())
    has_point = parts[1].iloc[0] == "."
    if largest_first > 12 or (largest_second <= 12 and has_point):
        return "dmy"
    return "mdy"


def _kind_of_written_numbers(name: str, seen: DistinctTexts) -> ChosenKind | None:
    """Return the kind of numbers that people write; None if the column does not hold numbers."""
    if seen.share_matching(DURATION) >= NUMBERS:
        return ChosenKind(Kind("number", way="duration"), "read as hours, minutes and seconds")
    # All cells need the same unit: "3 kg" and "3 g" are no numbers.
    parts = seen.texts.str.extract(WRITTEN_NUMBER)
    is_written = parts["digits"].notna()
    units = (parts["before"] + "|" + parts["after"])[is_written].unique()
    if is_written.mean() < NUMBERS or len(units) != 1:
        return None

    digits = parts["digits"][is_written]
    has_point = digits.str.fullmatch(WITH_POINT)
    has_comma = digits.str.fullmatch(WITH_COMMA)
    # "1,234" may be read both ways: the user must say which.
    if has_point.all() and has_comma.all() and digits.str.contains(",").any():
        raise DataError(
            f"column {name!r} holds numbers such as {seen.texts.iloc[0]!r}, whose comma may be a "
            "decimal comma or stand between thousands: "
            f"say --columns {name}=number:comma or {name}=number:point"
        )
    unit = units[0].strip("|").replace("|", " ")
    if has_point.mean() >= NUMBERS:
        why = "read with signs between digits"
        if unit:
            why = f"read with the unit {unit}"
        return ChosenKind(Kind("number", way="point"), why)
    if has_comma.mean() >= NUMBERS:
        why = "read with a decimal comma"
        if unit:
            why = f"{why} and the unit {unit}"
        return ChosenKind(Kind("number", way="comma"), why)
    return None


def _refuse_digits(name: str, texts: pd.Series) -> None:
    """Raise DataError if most cells of a column of different values begin with digits."""
    begins = texts.str.fullmatch(BEGINS_WITH_DIGITS)
    if begins.mean() >= 0.5:
        example = texts[begins].iloc[0]
        raise DataError(
            f"column {name!r} holds cells such as {example[:40]!r}, which begin with digits, but "
            "may not be numbers: say what it holds, "
            f"--columns {name}=number:point, number:comma, category, text or drop"
        )
