"""What the columns of a table hold: numbers, categories, texts, dates, lists of numbers, or nothing to learn from.

The kind of a column is chosen from its first rows, and says how its cells are read. Cells that people write
("$1,234.50", "12 %", "1,5", "3 kg", "02:30:00") are numbers if that is certain, and are refused otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saddlesvm.data.errors import WAYS_WITH_MISSING, DataError
from saddlesvm.data.table import shorten

if TYPE_CHECKING:
    import pandas as pd

MISSING_WORDS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
KINDS = ("number", "category", "text", "chars", "date", "list", "drop")
NGRAMS = {"text": (1, 1), "chars": (2, 4)}  # lengths of n-grams if none are given
LONGEST_NGRAM = 10  # words or characters; longer ones hardly occur twice (guessed)
WAYS = {"number": ("point", "comma", "duration"), "date": ("ymd", "dmy", "mdy")}

SAMPLE = 10_000  # rows that decide about a column
NUMBERS = 0.9  # least share of numbers in a column of numbers: the others are typing errors (guessed)
WORDS = 3.0  # least mean number of words of a text; names and places have fewer
DISTINCT = 0.3  # least share of different values of a text: categories repeat
FEWEST = 20  # rows from which a column whose values all differ is an id

_ID = re.compile(r"(?i)(?:^|[_\s-])(?:id|ids|uuid|guid|index|key)$|[a-z](?:Id|ID)$|^unnamed: \d+$")
_CLOCK = r"(?:[T ]+\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_YMD = rf"\d{{4}}([-/.])\d{{1,2}}\1\d{{1,2}}{_CLOCK}"
_LAST = rf"\d{{1,2}}([-/.])\d{{1,2}}\1\d{{4}}{_CLOCK}"
_DURATION = r"-?(?:\d+ days?,? ?)?\d+:\d\d(?::\d\d(?:\.\d+)?)?|-?\d+ days?"
_MONEY = r"(?:US)?[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN"
_WRITTEN = (
    rf"^(?P<open>\(?)\s*(?P<minus>[-+−]?)\s*(?P<before>{_MONEY}|)\s*(?P<sign>[-+−]?)\s*"
    r"(?P<digits>[\d.,](?:[\d.,'’ \u00a0\u202f]*[\d.,])?(?:[eE][-+]?\d+)?)\s*"
    r"(?P<after>%|[^\W\d_][^\s\d()]{0,9}|[°€$£¥₹/][^\s\d()]{0,9}|)\s*(?P<close>\)?)$"
)
_EXPONENT = r"(?:[eE][-+]?\d+)?"
_SPACED = r"[1-9]\d{0,2}(?:['’ \u00a0\u202f]\d{3})+"  # thousands apart
_POINT = rf"(?:\d+|[1-9]\d{{0,2}}(?:,\d{{3}})+|{_SPACED})(?:\.\d*)?{_EXPONENT}|\.\d+{_EXPONENT}"
_COMMA = rf"(?:\d+|[1-9]\d{{0,2}}(?:\.\d{{3}})+|{_SPACED})(?:,\d*)?{_EXPONENT}|,\d+{_EXPONENT}"
_OFFSET = r"[+-]\d\d:?\d\d$|(?:Z|UTC|GMT)$"
_CODE = r"(?i)[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-9a-f]{16,}"  # a UUID, or a hash
_BEGINS_WITH_DIGITS = rf"\(?\s*[-+−]?\s*(?:{_MONEY})?\s*[-+−]?[.,]?\d.*"


class Kind(NamedTuple):
    """A kind as ``--columns`` spells it: ``category``, ``number:comma``, ``text:1-2``, ``chars:2-5``, ``date:dmy``.

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
    if name in WAYS and (not more or more in WAYS[name]):
        return Kind(name, way="" if more == "ymd" else more)
    lengths = re.fullmatch(r"(\d{1,2})(?:-(\d{1,2}))?", more)
    if name in NGRAMS and (lengths or not more):
        low, high = NGRAMS[name] if lengths is None else (int(lengths[1]), int(lengths[2] or lengths[1]))
        if 1 <= low <= high <= LONGEST_NGRAM:
            return Kind(name, low, high)
    if name in ("category", "list", "drop") and not more:
        return Kind(name)
    raise DataError(
        f"column {column!r}: {text!r} is not a kind of column; allowed are {', '.join(KINDS)}; number:comma (1,5 is "
        f"one and a half), number:point, number:duration, text:1-2 (lengths of n-grams, 1 to {LONGEST_NGRAM}), "
        "date:dmy and date:mdy"
    )


def choose_kinds(frame: pd.DataFrame, given: Mapping[str, str] | None = None) -> dict[str, Found]:
    """The kind of each column, from the first rows of a table; `given` has what the user says.

    Raises
    ------
    DataError
        A column that is given a kind does not exist, no column is left to learn from, or the cells of a column begin
        with digits and are neither numbers for certain nor anything else.
    """
    names = [str(name) for name in frame.columns]
    asked = dict(given or {})
    odd = [name for name in asked if name not in names]
    if odd:
        raise DataError(f"there is no column {shorten(odd)}; the columns are {shorten(names)}")
    found = {}
    for place, name in enumerate(names):
        if name in asked:
            found[name] = Found(kind_of(asked[name], name), "as given")
        else:
            found[name] = choose_kind(name, frame.iloc[:SAMPLE, place])
    if all(one.kind.name == "drop" for one in found.values()):
        dropped = ", ".join(f"{name!r} ({one.why})" for name, one in found.items())
        raise DataError(f"no column is left to learn from: {dropped}; name kinds with --columns NAME=KIND")
    return found


def choose_kind(name: str, values: pd.Series[Any]) -> Found:
    """The kind of one column, from its first rows."""
    kind = values.dtype.kind
    if kind == "M":
        return _unless_constant(values.nunique(), Found(Kind("date"), ""))
    if kind == "m":
        return _unless_constant(values.nunique(), Found(Kind("number"), "seconds"))
    if kind in "iuf" and _is_numeric(values):
        return _kind_of_numbers(name, values.to_numpy(np.float64, na_value=np.nan))
    known = values.dropna()
    first = None if known.empty else known.iloc[0]
    if isinstance(first, (list, tuple, np.ndarray)):
        return _kind_of_lists(name, known)
    if isinstance(first, (dict, set, bytes)):
        raise DataError(
            f"column {name!r} holds a {type(first).__name__}: numbers, text, dates or lists of numbers are needed (or "
            f"--columns {name}=drop)"
        )
    texts = known.astype(str).astype(object).str.strip()  # of objects: Python's regular expressions
    texts = texts[~texts.str.lower().isin(MISSING_WORDS)]
    seen = Seen(texts)
    distinct = seen.texts
    if len(distinct) <= 1:
        return _unless_constant(len(distinct), Found(Kind("category"), ""))
    import pandas as pd

    if seen.share(pd.to_numeric(distinct, errors="coerce").notna()) >= NUMBERS:
        return _kind_of_numbers(name, pd.to_numeric(texts, errors="coerce").to_numpy(np.float64))
    order = _date_order(seen)
    if order:
        return Found(Kind("date", way="" if order == "ymd" else order), "" if order == "ymd" else f"read as {order}")
    written = _way_of_writing(name, seen)
    if written is not None:
        return written
    words = float(np.average(distinct.str.split().str.len(), weights=seen.counts))
    share = len(distinct) / len(texts)
    if words >= WORDS and share >= DISTINCT:
        return Found(Kind("text", *NGRAMS["text"]), f"{words:.3g} words on average")
    if len(distinct) == len(texts) >= FEWEST:
        if not _ID.search(name) and seen.matching(_CODE) < NUMBERS:
            _refuse_digits(name, texts)
        return Found(Kind("drop"), "an id: all values differ")
    return Found(Kind("category"), f"{len(distinct):,} values")


class Seen:
    """The different texts of a column, and how many rows have each.

    Parameters
    ----------
    texts : Series of objects
    """

    def __init__(self, texts: pd.Series[Any]) -> None:
        import pandas as pd

        found = texts.value_counts(sort=False)
        self.texts = pd.Series(as_objects(found.index.tolist()), dtype=object)
        self.counts = found.to_numpy()

    def share(self, chosen: Any) -> float:
        """The share of rows whose text is among those that are chosen."""
        return float(self.counts[np.asarray(chosen, dtype=bool)].sum() / self.counts.sum())

    def matching(self, pattern: str) -> float:
        """The share of rows whose whole text matches a pattern."""
        return self.share(self.texts.str.fullmatch(pattern))


def _is_numeric(values: pd.Series[Any]) -> bool:
    """Whether a column holds numbers, and no truth values."""
    import pandas as pd

    return pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype)


def _unless_constant(distinct: int, found: Found) -> Found:
    if distinct > 1:
        return found
    return Found(Kind("drop"), "one value only" if distinct else "no value")


def _kind_of_numbers(name: str, values: np.ndarray) -> Found:
    """Numbers, unless they count the rows."""
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if distinct.size <= 1:
        return _unless_constant(distinct.size, Found(Kind("number"), ""))
    whole = bool((known == np.floor(known)).all())
    if whole and distinct.size == values.size:
        counted = values.size >= FEWEST and distinct[0] in (0.0, 1.0) and bool((np.diff(values) == 1.0).all())
        if counted or _ID.search(name):
            return Found(Kind("drop"), "an id: all values differ")
    n_missing = values.size - known.size
    return Found(Kind("number"), f"{n_missing:,} missing" if n_missing else "")


def _kind_of_lists(name: str, known: pd.Series[Any]) -> Found:
    """Lists of numbers; lists of words are a text."""
    first = next((one for row in known for one in list(row)[:1]), None)
    if isinstance(first, str):
        return Found(Kind("text", *NGRAMS["text"]), "lists of words")
    lengths = sorted({len(one) for one in known})
    if len(lengths) > 1:
        raise DataError(
            f"column {name!r} holds lists of {lengths[0]} to {lengths[-1]} numbers; one length is needed (or "
            f"--columns {name}=drop)"
        )
    return Found(Kind("list"), f"{lengths[0]:,} numbers a row")


def _date_order(seen: Seen) -> str:
    """The order of year, month and day, of texts that are dates; "" for others."""
    if seen.matching(_YMD) >= NUMBERS:
        return "ymd"
    if seen.matching(_LAST) < NUMBERS:
        return ""
    dates = seen.texts[seen.texts.str.fullmatch(_LAST)]
    parts = dates.str.extract(r"^(\d{1,2})([-/.])(\d{1,2})")
    first = int(parts[0].astype(int).max())
    second = int(parts[2].astype(int).max())
    day_first = first > 12 or (second <= 12 and parts[1].iloc[0] == ".")
    return "dmy" if day_first else "mdy"


def _way_of_writing(name: str, seen: Seen) -> Found | None:
    """How numbers are written that programs do not write so; None if the column holds none.

    Raises
    ------
    DataError
        A comma may be a decimal comma, or stand between thousands.
    """
    if seen.matching(_DURATION) >= NUMBERS:
        return Found(Kind("number", way="duration"), "read as hours, minutes and seconds")
    distinct = seen.texts
    parts = distinct.str.extract(_WRITTEN)
    fine = parts["digits"].notna()
    units = (parts["before"] + "|" + parts["after"])[fine].unique()
    if fine.mean() < NUMBERS or len(units) != 1:
        return None
    digits = parts["digits"][fine]
    with_point = digits.str.fullmatch(_POINT)
    with_comma = digits.str.fullmatch(_COMMA)
    unit = units[0].strip("|").replace("|", " ")
    said = f"read with the unit {unit}" if unit else "read with signs between digits"
    if with_point.all() and with_comma.all() and digits.str.contains(",").any():
        raise DataError(
            f"column {name!r} holds numbers such as {distinct.iloc[0]!r}, whose comma may be a decimal comma or stand "
            f"between thousands: say --columns {name}=number:comma or {name}=number:point"
        )
    if with_point.mean() >= NUMBERS:
        return Found(Kind("number", way="point"), said)
    if with_comma.mean() >= NUMBERS:
        return Found(
            Kind("number", way="comma"), "read with a decimal comma" + (f" and the unit {unit}" if unit else "")
        )
    return None


def _refuse_digits(name: str, texts: pd.Series[Any]) -> None:
    """Raise DataError if most cells of a column of different values begin with digits."""
    begins = texts.str.fullmatch(_BEGINS_WITH_DIGITS)
    if begins.mean() >= 0.5:
        example = texts[begins].iloc[0]
        raise DataError(
            f"column {name!r} holds cells such as {example[:40]!r}, which begin with digits and are not certain to be "
            f"numbers: say what it is, --columns {name}=number:point, number:comma, category, text or drop"
        )


def typed_frame(frame: pd.DataFrame, kinds: Mapping[str, Kind]) -> pd.DataFrame:
    """The columns that are not dropped, in the types that transformers of their kinds take.

    Returns
    -------
    DataFrame
        Numbers as float64, dates as datetime64 (UTC), lists as arrays of float64, categories and texts as objects that
        are text ("" if one is missing).

    Raises
    ------
    BadCell
        A value is not of the kind of its column.
    """
    import pandas as pd

    made = {}
    for name, kind in kinds.items():
        if kind.name != "drop":
            column = typed_column(frame[name], kind, name)
            made[name] = pd.Series(column, dtype=column.dtype, index=frame.index)
    return pd.DataFrame(made)


def without_gaps(
    frame: pd.DataFrame, kinds: Mapping[str, Kind], missing: str | None, source: str, before: int
) -> np.ndarray | None:
    """Which rows of a typed frame have no gaps, if rows with gaps are left out; None if all rows stay.

    Parameters
    ----------
    frame : DataFrame
        As :func:`typed_frame` makes it.
    kinds : mapping of str to Kind
    missing : {"error", "drop", "mean", "median"} or None
    source : str
        For the message.
    before : int
        Rows of the source before these.

    Raises
    ------
    DataError
        There is a gap, and `missing` is "error".
    """
    if missing not in ("error", "drop"):
        return None
    gaps = np.zeros(len(frame), dtype=bool)
    for name in frame.columns:
        kind = kinds[name].name
        column = frame[name]
        if kind not in ("category", "number", "date"):
            continue
        here = column.eq("") if kind == "category" else column.isna()
        if not here.any():
            continue
        if missing == "error":
            row = before + int(np.argmax(here.to_numpy()))
            raise DataError(f"{source}: row {row + 1}: column {name!r}: the value is missing; {WAYS_WITH_MISSING}")
        gaps |= here.to_numpy()
    return ~gaps if gaps.any() else None


class BadCell(DataError):
    """A cell is not of the kind of its column.

    Parameters
    ----------
    column : str
    row : int
        From 0.
    said : str
        What the cell holds, and what is allowed.
    """

    def __init__(self, column: str, row: int, said: str) -> None:
        super().__init__(f"column {column!r}, row {row + 1}: {said}")
        self.column = column
        self.row = row
        self.said = said


def typed_column(values: pd.Series[Any], kind: Kind, name: str) -> Any:
    """One column in the type that its kind needs."""
    if kind.name == "number":
        return _as_numbers(values, kind, name)
    if kind.name == "date":
        return _as_dates(values, kind, name)
    if kind.name == "list":
        return _as_lists(values, name)
    return as_texts(values, MISSING_WORDS if kind.name == "category" else frozenset({""}))


def _as_numbers(values: pd.Series[Any], kind: Kind, name: str) -> np.ndarray:
    """Numbers as float64, NaN if one is missing."""
    if values.dtype.kind == "m":
        return np.asarray(values.dt.total_seconds(), dtype=np.float64)
    if values.dtype.kind in "iufb" and values.dtype.kind != "O":
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        infinite = np.isinf(numbers)
        if infinite.any():
            row = int(np.argmax(infinite))
            raise BadCell(name, row, f"{numbers[row]} is not a finite number")
        return numbers
    return _from_distinct(values, kind, name, _numbers_of)


def _as_dates(values: pd.Series[Any], kind: Kind, name: str) -> Any:
    """Dates as datetime64 in UTC, NaT if one is missing."""
    if values.dtype.kind == "M":
        plain = values.dt.tz_convert("UTC").dt.tz_localize(None) if values.dt.tz is not None else values
        return plain.astype("datetime64[us]").to_numpy()
    return _from_distinct(values, kind, name, _dates_of)


def _from_distinct(values: pd.Series[Any], kind: Kind, name: str, parse: Any) -> Any:
    """Parse each different text of a column once.

    Raises
    ------
    BadCell
        A text is neither missing nor of the kind.
    """
    import pandas as pd

    if kind == Kind("date"):
        whole = _moments_of(values)
        if (np.isnat(whole) == values.isna()).all():
            return whole
    codes, distinct = pd.factorize(values, use_na_sentinel=True)
    plain = np.asarray(distinct, dtype=object)
    if not all(isinstance(one, str) for one in plain):
        plain = as_objects([str(one) for one in plain])
    texts = pd.Series(plain, dtype=object).str.strip()
    parsed = np.asarray(parse(texts, kind))
    gone = texts.str.lower().isin(MISSING_WORDS).to_numpy()
    bad = np.flatnonzero(pd.isna(parsed) & ~gone)
    if bad.size:
        row = int(np.argmax(np.isin(codes, bad)))
        other = "category" if kind.name == "number" else "text"
        raise BadCell(
            name,
            row,
            f"{str(distinct[codes[row]])[:80]!r} is not a {kind.name}, as the column's others are; correct it, or say "
            f"--columns {name}={other}",
        )
    missing = np.array([np.nan if kind.name == "number" else np.datetime64("NaT")], dtype=parsed.dtype)
    return np.concatenate([parsed, missing])[codes]


def _numbers_of(texts: pd.Series[Any], kind: Kind) -> np.ndarray:
    """The numbers behind different texts; NaN if a text is none."""
    import pandas as pd

    if kind.way == "duration":
        clock = texts.where(~texts.str.fullmatch(r"-?\d+:\d\d"), texts + ":00").str.replace(",", "")
        return pd.to_timedelta(clock, errors="coerce").dt.total_seconds().to_numpy(np.float64)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64, copy=True)
    if kind.way:
        parts = texts.str.extract(_WRITTEN)
        digits = parts["digits"]
        digits = digits.where(digits.str.fullmatch(_POINT if kind.way == "point" else _COMMA).eq(True))
        digits = digits.str.replace(r"['’ \u00a0\u202f]", "", regex=True)
        if kind.way == "point":
            digits = digits.str.replace(",", "")
        else:
            digits = digits.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        bracketed = parts["open"].eq("(") & parts["close"].eq(")")
        odd = parts["open"].eq("(") != parts["close"].eq(")")
        minus = parts["minus"].isin(["-", "−"]) | parts["sign"].isin(["-", "−"]) | bracketed
        numbers = pd.to_numeric(digits.mask(odd), errors="coerce").to_numpy(np.float64)
        numbers = np.where(minus, -numbers, numbers)
    numbers[np.isinf(numbers)] = np.nan
    return numbers


def _dates_of(texts: pd.Series[Any], kind: Kind) -> np.ndarray:
    """The moments behind different texts, in UTC; NaT if a text is no date."""
    # Write each date as ISO 8601 does: 2024-02-09T06:00+0200.
    plain = texts.where(texts.str.fullmatch(_LAST if kind.way else _YMD))
    plain = plain.str.replace(r"[/.](?=\d{1,2}[/.]|\d{1,4}(?:[T ]|$))", "-", regex=True)
    plain = plain.str.replace(r" ?(?:Z|UTC|GMT)$", "+0000", regex=True)
    plain = plain.str.replace(r" +(?=[+-]\d\d:?\d\d$)", "", regex=True)
    if kind.way:
        first, second = (r"\1", r"\2") if kind.way == "mdy" else (r"\2", r"\1")
        plain = plain.str.replace(r"^(\d{1,2})-(\d{1,2})-(\d{4})", rf"\3-{first}-{second}", regex=True)
    plain = plain.str.replace(r"-(?=\d(?:-|[T ]|$))", "-0", regex=True)
    plain = plain.str.replace(r"([T ]) *(?=\d:)", r"\g<1>0", regex=True)
    found = _moments_of(plain)
    if not kind.way:
        # Texts that are ISO 8601 already, with parts of a second or of a day that the pattern does not know.
        found = np.where(np.isnat(found), _moments_of(texts), found)
    return found


def _moments_of(texts: pd.Series[Any]) -> np.ndarray:
    """The moments behind texts as ISO 8601 writes them, in UTC; NaT if a text is none."""
    import pandas as pd

    moments = np.full(len(texts), np.datetime64("NaT"), dtype="datetime64[us]")
    # With and without offsets apart: pandas 2.2 gives the offset of one text to others that have none.
    apart = texts.str.contains(_OFFSET, regex=True).eq(True).to_numpy(dtype=bool)
    for chosen in (apart, ~apart):
        if chosen.any():
            found = pd.to_datetime(texts[chosen], format="ISO8601", utc=True, errors="coerce")
            moments[chosen] = found.dt.tz_localize(None).astype("datetime64[us]").to_numpy()
    return moments


def _as_lists(values: pd.Series[Any], name: str) -> Any:
    """Lists of numbers as arrays."""
    lengths = values.map(lambda one: len(one) if isinstance(one, (list, tuple, np.ndarray)) else -1).to_numpy()
    if lengths.size and (lengths != lengths[0]).any():
        row = int(np.argmax(lengths != lengths[0]))
        said = "the list is missing" if lengths[row] < 0 else f"a list of {lengths[row]} numbers"
        raise BadCell(name, row, f"{said}; those of the other rows hold {lengths[0]}")
    if lengths.size and lengths[0] < 0:
        raise BadCell(name, 0, "is not a list of numbers")
    try:
        rows = np.array(values.tolist(), dtype=np.float64).reshape(len(values), -1)
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} holds lists that are not of numbers") from None
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise BadCell(name, int(np.argmax(bad)), "the list holds a value that is missing or not finite")
    return as_objects(list(rows))


def as_objects(values: Sequence[Any]) -> np.ndarray:
    """Values of any type, lists too, as an array of objects of shape (n,)."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def as_texts(values: pd.Series[Any], missing: frozenset[str] = frozenset({""})) -> np.ndarray:
    """A column as objects that are text; "" for what is missing; whole numbers without a point."""
    import pandas as pd

    codes, distinct = pd.factorize(values, use_na_sentinel=True) if _can_be_hashed(values) else _by_position(values)
    texts = [_text_of(one) for one in distinct]
    texts = ["" if one.strip().lower() in missing else one.strip() for one in texts]
    return as_objects([*texts, ""])[codes]


def _can_be_hashed(values: pd.Series[Any]) -> bool:
    return not any(isinstance(one, (list, dict, set, np.ndarray)) for one in values.head(100))


def _by_position(values: pd.Series[Any]) -> tuple[np.ndarray, list[Any]]:
    """Codes and values of a column whose values cannot be compared."""
    return np.arange(len(values)), values.tolist()


def _text_of(one: Any) -> str:
    if isinstance(one, (list, tuple, np.ndarray)):
        return " ".join(map(_text_of, one))
    if one is None or (isinstance(one, float) and np.isnan(one)):
        return ""
    if isinstance(one, (float, np.floating)) and float(one).is_integer():
        return str(int(one))
    return str(one)
