"""Columns with names, of any type: what a table of numbers, words, dates and texts is before its encoding.

A column's kind is a number, a category, a text, a date, a list of numbers, or nothing to learn from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.data.errors import DataError
from saddlesvm.data.parquet import arrow_table
from saddlesvm.data.table import is_number, shorten

MISSING_WORDS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})  # cells that stand for a missing value


class Frame:
    """Columns of equal length, by name.

    Parameters
    ----------
    columns : mapping of str to ndarray
        Each of one of four types: float64 of shape (n,), with NaN where a value is missing; datetime64, with NaT;
        objects that are text or None; float64 of shape (n, k), for lists of numbers.

    Raises
    ------
    DataError
        The columns have different lengths.
    """

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self.columns = dict(columns)
        lengths = {len(one) for one in self.columns.values()}
        if len(lengths) > 1:
            raise DataError(f"the columns have different lengths: {shorten(sorted(lengths))}")
        self.n_rows = lengths.pop() if lengths else 0

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, len(self.columns)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: Any) -> Frame:
        return Frame({name: one[rows] for name, one in self.columns.items()})

    def without(self, name: str) -> Frame:
        """The frame without one of its columns."""
        return Frame({other: one for other, one in self.columns.items() if other != name})


def joined(frames: Sequence[Frame]) -> Frame:
    """Frames with the same columns, one below the other; a column whose types differ becomes text."""

    def column(name: str) -> np.ndarray:
        parts = [one.columns[name] for one in frames]
        full = [part for part in parts if not _empty(part)]
        if len({(part.dtype.kind, part.shape[1:]) for part in full}) > 1:
            return np.concatenate([as_text(part) for part in parts])
        return np.concatenate([part if not _empty(part) else _missing_like(full, len(part)) for part in parts])

    return frames[0] if len(frames) == 1 else Frame({name: column(name) for name in frames[0].names})


def _empty(values: np.ndarray) -> bool:
    """Whether a column holds nothing but missing texts, as a JSON field that no row of a part has."""
    return values.dtype == object and all(one is None for one in values)


def _missing_like(full: list[np.ndarray], n: int) -> np.ndarray:
    """A column of missing values, in the type of other parts of the same column."""
    like = full[0] if full else np.empty(0, dtype=object)
    made = np.empty((n, *like.shape[1:]), dtype=like.dtype)
    made[...] = np.nan if like.dtype.kind == "f" else np.datetime64("NaT") if like.dtype.kind == "M" else None
    return made


def as_text(values: np.ndarray) -> np.ndarray:
    """A column as objects that are text or None; whole numbers are written without a point."""
    if values.dtype == object:
        return values
    if values.dtype.kind == "M":
        return objects(None if one == "NaT" else one for one in np.datetime_as_string(values).tolist())
    if values.ndim == 2:
        return objects(" ".join(map(_number_text, row)) for row in values.tolist())
    return objects(None if one != one else _number_text(one) for one in values.tolist())


def _number_text(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def frame_of(data: Any, names: Sequence[str] | None = None) -> Frame:
    """Anything that holds a table as a frame.

    Parameters
    ----------
    data : Frame, data frame, dict or list of dicts, or ndarray of shape (n, columns)
        pandas and polars data frames, pyarrow tables, and whatever has ``__arrow_c_stream__`` (which needs pyarrow).
    names : sequence of str, optional
        Of the columns, for an array, which has none.

    Raises
    ------
    DataError
        It is no table, or an array of another width.
    """
    if isinstance(data, Frame):
        return data
    if isinstance(data, Mapping):
        return Frame({str(name): plain_column(one, str(name)) for name, one in data.items()})
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], Mapping):
        return frame_of_rows(data)
    if isinstance(data, np.ndarray) and data.ndim == 2:
        names = names or [str(k) for k in range(data.shape[1])]
        if len(names) != data.shape[1]:
            raise DataError(f"the rows have {data.shape[1]} columns; {len(names)} are expected: {shorten(list(names))}")
        return Frame({name: plain_column(data[:, k], name) for k, name in enumerate(names)})
    found = getattr(data, "column_names", None) or getattr(data, "columns", None)
    if found is None or not (hasattr(data, "to_pandas") or hasattr(data, "iloc")):
        data = _by_arrow(data)
        found = data.column_names
    return Frame({str(name): plain_column(data[name], str(name)) for name in found})


def _by_arrow(data: Any) -> Any:
    if not hasattr(data, "__arrow_c_stream__"):
        raise DataError(
            f"a {type(data).__name__} is not a table: a pandas or polars data frame, an Arrow table, a dict of "
            "columns, a list of dicts, or an array of the encoder's columns is needed"
        )
    return arrow_table(data)


def frame_of_rows(rows: Iterable[Mapping[str, Any]], names: Sequence[str] | None = None) -> Frame:
    """Rows that are dicts as columns: all names in the order of their first use, or those given; None elsewhere."""
    rows = list(rows)
    found = list(names) if names is not None else list(dict.fromkeys(str(name) for row in rows for name in row))
    return Frame({name: plain_column([row.get(name) for row in rows], name) for name in found})


def plain_column(values: Any, name: str) -> np.ndarray:
    """Values of any type as a column of a :class:`Frame`.

    Raises
    ------
    DataError
        Lists of different lengths, or values that are neither numbers, nor text, dates or lists of those.
    """
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array = values if isinstance(values, np.ndarray) else objects(values)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    if array.dtype.kind == "M":
        return array.astype("datetime64[us]")
    array = array if array.dtype == object else array.astype(object)
    made = objects(None if is_missing(one) else one for one in array.tolist())
    first = next((one for one in made if one is not None), None)
    if first is None or all(isinstance(one, str) or one is None for one in made):
        return made
    if isinstance(first, (list, tuple, np.ndarray)):
        return _lists(made, name)
    if isinstance(first, date):
        return np.array([_moment(one) for one in made], dtype="datetime64[us]")
    if isinstance(first, (Mapping, set)):
        raise DataError(f"column {name!r} holds a {type(first).__name__}: numbers, text, dates or lists are needed")
    try:
        return np.array([np.nan if one is None else _number(one) for one in made])
    except (TypeError, ValueError):
        return objects(None if one is None else one if isinstance(one, str) else str(one) for one in made)


def objects(values: Iterable[Any]) -> np.ndarray:
    """Values of any type, lists too, as an array of objects of shape (n,)."""
    given = list(values)
    made = np.empty(len(given), dtype=object)
    made[:] = given
    return made


def is_missing(one: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, or pandas' marks."""
    return one is None or (isinstance(one, float) and one != one) or type(one).__name__ in ("NAType", "NaTType")


def _number(one: Any) -> float:
    if isinstance(one, str):
        raise ValueError("text")
    return float(one)


def _moment(one: Any) -> np.datetime64:
    if one is None:
        return np.datetime64("NaT")
    if isinstance(one, datetime) and one.tzinfo is not None:
        one = one.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(one.isoformat(), "us")


def _lists(made: np.ndarray, name: str) -> np.ndarray:
    """Lists of numbers as an array of shape (n, k); lists of texts as texts with spaces between."""
    if any(isinstance(item, str) for one in made if one is not None for item in list(one)[:1]):
        return objects(None if one is None else " ".join(map(str, one)) for one in made)
    lengths = {len(one) for one in made if one is not None}
    if len(lengths) > 1:
        raise DataError(
            f"column {name!r} holds lists of {min(lengths)} to {max(lengths)} numbers; one length is needed"
        )
    width = lengths.pop()
    try:
        return np.array([np.full(width, np.nan) if one is None else np.asarray(one, dtype=np.float64) for one in made])
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} holds lists that are not of numbers") from None


KINDS = ("number", "category", "text", "chars", "hashed", "date", "list", "drop")
NGRAMS = {"text": (1, 1), "chars": (2, 4), "hashed": (1, 1)}  # lengths of n-grams where none are given
LONGEST_NGRAM = 10  # words or characters; longer ones hardly occur twice
DATE_ORDERS = ("ymd", "dmy", "mdy")

NUMBERS = 0.9  # least share of numbers among the values of a number column: what is left are typing errors
DATES = 0.9
SAMPLE = 10_000  # rows that decide about a column
WORDS = 3.0  # least mean number of words of a text; names and places have fewer
DISTINCT = 0.3  # least share of different values of a text: categories repeat
FEWEST = 20  # values from which on all of them different makes an id

_ID = re.compile(r"(?i)(?:^|[_\s-])(?:id|ids|uuid|guid|index|key)$|[a-z](?:Id|ID)$|^unnamed: \d+$")
_YMD = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:[T ](\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?:Z|\+00:00)?)?")
_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?:[T ](\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?")
_DAY = 86_400.0


class Kind(NamedTuple):
    """A kind as ``--columns`` spells it: ``category``, ``text:1-2``, ``chars:2-5``, ``date:dmy``.

    Parameters
    ----------
    name : str
        One of `KINDS`.
    low, high : int
        Shortest and longest n-gram of a text; 0 for other kinds.
    order : str
        Of year, month and day in the text of dates; "" for other kinds.
    """

    name: str
    low: int = 0
    high: int = 0
    order: str = ""

    def __str__(self) -> str:
        if self.order not in ("", "ymd"):
            return f"{self.name}:{self.order}"
        plain = NGRAMS.get(self.name, (0, 0)) == (self.low, self.high)
        return self.name if plain else f"{self.name}:{self.low}-{self.high}"


class Found(NamedTuple):
    """The kind that was found for a column, and the reason."""

    kind: Kind
    why: str


def kind_of(text: str, column: str) -> Kind:
    """The kind that a text names.

    Raises
    ------
    DataError
        It names none.
    """
    name, _, more = text.partition(":")
    if name == "date" and (more or "ymd") in DATE_ORDERS:
        return Kind(name, order=more or "ymd")
    lengths = re.fullmatch(r"(\d{1,2})(?:-(\d{1,2}))?", more)
    if name in NGRAMS and (lengths or not more):
        low, high = NGRAMS[name] if lengths is None else (int(lengths[1]), int(lengths[2] or lengths[1]))
        if 1 <= low <= high <= LONGEST_NGRAM:
            return Kind(name, low, high)
    if name in KINDS and name not in NGRAMS and name != "date" and not more:
        return Kind(name)
    raise DataError(
        f"column {column!r}: {text!r} is not a kind of column; allowed are {', '.join(KINDS)}, with lengths of n-grams "
        f"as in text:1-2 (1 to {LONGEST_NGRAM}), and date:dmy or date:mdy"
    )


def found_in(frame: Frame, given: Mapping[str, str] | None = None) -> dict[str, Found]:
    """The kind of each column, from the first rows of a table; `given` has what the user says.

    Raises
    ------
    DataError
        A column that is given a kind does not exist, or no column is left to learn from.
    """
    asked = dict(given or {})
    odd = [name for name in asked if name not in frame.columns]
    if odd:
        raise DataError(f"there is no column {shorten(odd)}; the columns are {shorten(frame.names)}")
    found = {
        name: Found(kind_of(asked[name], name), "as given") if name in asked else _made_of(name, values[:SAMPLE])
        for name, values in frame.columns.items()
    }
    if all(one.kind.name == "drop" for one in found.values()):
        dropped = ", ".join(f"{name!r} ({one.why})" for name, one in found.items())
        raise DataError(f"no column is left to learn from: {dropped}; name kinds with --columns NAME=KIND")
    return found


def _made_of(name: str, values: np.ndarray) -> Found:
    if values.ndim == 2:
        return Found(Kind("list"), f"{values.shape[1]:,} numbers a row")
    if values.dtype.kind == "M":
        return _unless_constant(np.unique(values[~np.isnat(values)]).size, Found(Kind("date", order="ymd"), ""))
    if values.dtype.kind == "f":
        return _of_numbers(name, values)
    texts = [one for one in values.tolist() if one is not None and one.strip().lower() not in MISSING_WORDS]
    distinct = set(texts)
    if len(distinct) <= 1:
        return _unless_constant(len(distinct), Found(Kind("category"), ""))
    if sum(map(is_number, texts)) >= NUMBERS * len(texts):
        return _of_numbers(name, np.array([float(one) if is_number(one) else np.nan for one in texts]))
    order = _date_order(texts)
    if order:
        return Found(Kind("date", order=order), "" if order == "ymd" else f"read as {order}")
    words = sum(len(one.split()) for one in texts) / len(texts)
    share = len(distinct) / len(texts)
    if words >= WORDS and share >= DISTINCT:
        return Found(Kind("text", *NGRAMS["text"]), f"{words:.3g} words on average")
    if len(distinct) == len(texts) >= FEWEST:
        return Found(Kind("drop"), "an id: every value is another")
    return Found(Kind("category"), f"{len(distinct):,} values")


def _unless_constant(distinct: int, found: Found) -> Found:
    if distinct > 1:
        return found
    return Found(Kind("drop"), "one value only" if distinct else "no value")


def _of_numbers(name: str, values: np.ndarray) -> Found:
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if distinct.size <= 1:
        return _unless_constant(distinct.size, Found(Kind("number"), ""))
    whole = bool((known == np.floor(known)).all())
    if whole and distinct.size == values.size:
        counted = values.size >= FEWEST and distinct[0] in (0.0, 1.0) and bool((np.diff(values) == 1.0).all())
        if counted or _ID.search(name):
            return Found(Kind("drop"), "an id: every value is another")
    n_missing = values.size - known.size
    return Found(Kind("number"), f"{n_missing:,} missing" if n_missing else "")


def _date_order(texts: list[str]) -> str:
    """The order of year, month and day, of texts that are dates; "" for others."""
    if sum(_YMD.fullmatch(one.strip()) is not None for one in texts) >= DATES * len(texts):
        return "ymd"
    parts = [found for one in texts if (found := _LAST.fullmatch(one.strip())) is not None]
    if len(parts) < DATES * len(texts):
        return ""
    first, second = (max(int(part[k]) for part in parts) for k in (1, 3))
    day_first = first > 12 or (second <= 12 and parts[0][2] == ".")
    return "dmy" if day_first else "mdy"


def typed(values: np.ndarray, kind: Kind, name: str) -> np.ndarray:
    """A column in the type that the encoder of its kind takes.

    Returns
    -------
    ndarray
        float64 with NaN where a value is missing: numbers, days since 1970 of dates, and lists, shape (n, k).
        Texts, "" where one is missing: categories and texts.

    Raises
    ------
    DataError
        A value that is not of the kind; the message names column and row.
    """
    if kind.name == "list":
        if values.ndim != 2:
            raise DataError(f"column {name!r} does not hold lists of numbers")
        return values
    if kind.name in ("number", "date"):
        if values.dtype.kind == "f" and values.ndim == 1:
            return _refuse_infinity(values, name)
        if values.dtype.kind == "M" and kind.name == "date":
            days = values.astype("datetime64[us]").astype(np.int64) / (_DAY * 1e6)
            return np.where(np.isnat(values), np.nan, days)
        order = kind.order
        return _parsed(as_text(values), (lambda one: _days(one, order)) if kind.name == "date" else _finite, kind, name)
    gone = MISSING_WORDS if kind.name == "category" else ("",)
    return objects("" if one is None or one.strip().lower() in gone else one for one in as_text(values).tolist())


def _refuse_infinity(values: np.ndarray, name: str) -> np.ndarray:
    bad = np.isinf(values)
    if bad.any():
        raise DataError(f"column {name!r}, row {int(np.argmax(bad)) + 1}: {values[bad][0]} is not a finite number")
    return values


def _parsed(texts: np.ndarray, value: Callable[[str], float | None], kind: Kind, name: str) -> np.ndarray:
    """The numbers behind texts; each different text is read once."""
    known: dict[Any, float | None] = {None: np.nan}
    made = np.empty(len(texts))
    for row, text in enumerate(texts.tolist()):
        if text not in known:
            known[text] = np.nan if text.strip().lower() in MISSING_WORDS else value(text.strip())
        number = known[text]
        if number is None:
            other = "category" if kind.name == "number" else "text"
            raise DataError(
                f"column {name!r}, row {row + 1}: {text[:80]!r} is not a {kind.name}, as the column's others are; "
                f"correct it, or say --columns {name}={other}"
            )
        made[row] = number
    return made


def _finite(text: str) -> float | None:
    number = float(text) if is_number(text) else np.inf
    return number if np.isfinite(number) else None


def _days(text: str, order: str) -> float | None:
    """Days since 1970 of the text of a date; None where it is none."""
    found = (_YMD if order == "ymd" else _LAST).fullmatch(text)
    if found is None:
        return None
    first, second, third = found[1], found[3], found[4]
    year, month, day = {"ymd": (first, second, third), "dmy": (third, second, first)}.get(order, (third, first, second))
    try:
        days = np.datetime64(f"{year}-{int(month):02d}-{int(day):02d}", "D").astype(np.int64)
    except ValueError:
        return None
    hours, minutes, seconds = (int(one or 0) for one in found.groups()[4:7])
    return float(days) + (3600.0 * hours + 60.0 * minutes + seconds) / _DAY
