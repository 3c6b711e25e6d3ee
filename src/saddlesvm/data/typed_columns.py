"""Turn the columns of a table into the types of their kinds: numbers, dates, lists and texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.data.cell_patterns import (
    MISSING_WORDS,
    OFFSET,
    THOUSANDS_MARKS,
    WITH_COMMA,
    WITH_POINT,
    WRITTEN_NUMBER,
    YEAR_FIRST,
    YEAR_LAST,
)
from saddlesvm.data.errors import MISSING_ADVICE, DataError
from saddlesvm.data.kinds import Kind, as_objects

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

MINUS_SIGNS = ("-", "−")


class BadCell(DataError):
    """A cell is not of the kind of its column.

    Parameters
    ----------
    column : str
    row : int
        From 0.
    fault : str
        What the cell holds, and what is allowed.
    """

    def __init__(self, column: str, row: int, fault: str) -> None:
        super().__init__(f"column {column!r}, row {row + 1}: {fault}")
        self.column = column
        self.row = row
        self.fault = fault


def typed_frame(frame: pd.DataFrame, kinds: Mapping[str, Kind]) -> pd.DataFrame:
    """Return the columns that are not dropped, in the types that their transformers take.

    Returns
    -------
    DataFrame
        Numbers as float64, dates as datetime64 (UTC), lists as arrays of float64, categories and
        texts as objects that are text ("" if missing).

    Raises
    ------
    BadCell
        A value is not of the kind of its column.
    """
    import pandas as pd

    columns = {}
    for name, kind in kinds.items():
        if kind.name != "drop":
            column = typed_column(frame[name], kind, name)
            columns[name] = pd.Series(column, dtype=column.dtype, index=frame.index)
    return pd.DataFrame(columns)


def rows_without_gaps(
    frame: pd.DataFrame, kinds: Mapping[str, Kind], missing: str | None, source: str, n_before: int
) -> np.ndarray | None:
    """Return a mask of the rows without gaps, if rows with gaps are left out; None if all stay.

    Parameters
    ----------
    frame : DataFrame
        As :func:`typed_frame` makes it.
    kinds : mapping of str to Kind
    missing : {"error", "drop", "mean", "median"} or None
    source : str
        Name of the source in messages.
    n_before : int
        Rows of the source before these.

    Raises
    ------
    DataError
        There is a gap, and `missing` is "error".
    """
    if missing not in ("error", "drop"):
        return None
    has_gap = np.zeros(len(frame), dtype=bool)
    for name in frame.columns:
        kind = kinds[name].name
        # A text may be empty, and lists have no gaps.
        if kind not in ("category", "number", "date"):
            continue
        is_gap = frame[name].isna()
        if kind == "category":
            is_gap = frame[name].eq("")
        if not is_gap.any():
            continue
        if missing == "error":
            row = n_before + int(np.argmax(is_gap.to_numpy()))
            raise DataError(
                f"{source}: row {row + 1}: column {name!r}: the value is missing; {MISSING_ADVICE}"
            )
        has_gap |= is_gap.to_numpy()
    if not has_gap.any():
        return None
    return ~has_gap


def typed_column(values: pd.Series, kind: Kind, name: str) -> np.ndarray:
    """Return a column in the type that its kind needs."""
    if kind.name == "number":
        return _as_numbers(values, kind, name)
    if kind.name == "date":
        return _as_dates(values, kind, name)
    if kind.name == "list":
        return _as_lists(values, name)
    # "none" and "na" are words in a text, and missing values of a category.
    if kind.name == "category":
        return as_texts(values, MISSING_WORDS)
    return as_texts(values)


def _as_numbers(values: pd.Series, kind: Kind, name: str) -> np.ndarray:
    """Return numbers as float64, missing numbers as NaN."""
    if values.dtype.kind == "m":
        return np.asarray(values.dt.total_seconds(), dtype=np.float64)
    if values.dtype.kind in "iufb":
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        is_infinite = np.isinf(numbers)
        if is_infinite.any():
            row = int(np.argmax(is_infinite))
            raise BadCell(name, row, f"{numbers[row]} is not a finite number")
        return numbers
    return _parse_distinct(values, kind, name, _parse_numbers)


def _as_dates(values: pd.Series, kind: Kind, name: str) -> np.ndarray:
    """Return dates as datetime64 in UTC, missing dates as NaT."""
    if values.dtype.kind == "M":
        if values.dt.tz is not None:
            values = values.dt.tz_convert("UTC").dt.tz_localize(None)
        return values.astype("datetime64[us]").to_numpy()
    return _parse_distinct(values, kind, name, _parse_dates)


def _parse_distinct(
    values: pd.Series, kind: Kind, name: str, parse: Callable[..., np.ndarray]
) -> np.ndarray:
    """Parse each different text of a column once; raises BadCell for a text of another kind."""
    import pandas as pd

    # Most dates are ISO 8601 as a whole, which pandas parses fastest.
    if kind == Kind("date"):
        moments = _parse_moments(values)
        if (np.isnat(moments) == values.isna()).all():
            return moments
    codes, distinct = pd.factorize(values, use_na_sentinel=True)
    objects = np.asarray(distinct, dtype=object)
    if not all(isinstance(value, str) for value in objects):
        objects = as_objects([str(value) for value in objects])
    texts = pd.Series(objects, dtype=object).str.strip()
    parsed = np.asarray(parse(texts, kind))

    is_missing = texts.str.lower().isin(MISSING_WORDS).to_numpy()
    bad = np.flatnonzero(pd.isna(parsed) & ~is_missing)
    if bad.size:
        row = int(np.argmax(np.isin(codes, bad)))
        other = "text"
        if kind.name == "number":
            other = "category"
        raise BadCell(
            name,
            row,
            f"{str(distinct[codes[row]])[:80]!r} is not a {kind.name}, but other values of this "
            f"column are; correct it, or say --columns {name}={other}",
        )
    # A missing value has the code -1, and so the last entry.
    gap = np.array([np.datetime64("NaT")])
    if kind.name == "number":
        gap = np.array([np.nan])
    return np.concatenate([parsed, gap.astype(parsed.dtype)])[codes]


def _parse_numbers(texts: pd.Series, kind: Kind) -> np.ndarray:
    """Return the numbers that different texts spell; NaN if a text does not spell a number."""
    import pandas as pd

    if kind.way == "duration":
        # pandas needs seconds: 2:30 are hours and minutes.
        is_short = texts.str.fullmatch(r"-?\d+:\d\d")
        clock = texts.where(~is_short, texts + ":00").str.replace(",", "")
        return pd.to_timedelta(clock, errors="coerce").dt.total_seconds().to_numpy(np.float64)
    if kind.way:
        numbers = _parse_written_numbers(texts, kind.way)
    else:
        numbers = pd.to_numeric(texts, errors="coerce").to_numpy(np.float64, copy=True)
    numbers[np.isinf(numbers)] = np.nan
    return numbers


def _parse_written_numbers(texts: pd.Series, way: str) -> np.ndarray:
    """Return numbers that people write, with a decimal point or a decimal comma."""
    import pandas as pd

    parts = texts.str.extract(WRITTEN_NUMBER)
    pattern = WITH_POINT if way == "point" else WITH_COMMA
    digits = parts["digits"].where(parts["digits"].str.fullmatch(pattern).eq(True))
    digits = digits.str.replace(THOUSANDS_MARKS, "", regex=True)
    if way == "point":
        digits = digits.str.replace(",", "")
    else:
        digits = digits.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)

    # Brackets stand for a minus; a single bracket makes a text none of a number.
    opens = parts["open"].eq("(")
    closes = parts["close"].eq(")")
    numbers = pd.to_numeric(digits.mask(opens != closes), errors="coerce").to_numpy(np.float64)
    has_minus = parts["minus"].isin(MINUS_SIGNS) | parts["sign"].isin(MINUS_SIGNS)
    return np.where(has_minus | (opens & closes), -numbers, numbers)


def _parse_dates(texts: pd.Series, kind: Kind) -> np.ndarray:
    """Return the moments, in UTC, that different texts spell; NaT if a text is not a date."""
    # Write each date as ISO 8601 does: 2024-02-09T06:00+0200.
    iso = texts.where(texts.str.fullmatch(YEAR_LAST if kind.way else YEAR_FIRST))
    iso = iso.str.replace(r"[/.](?=\d{1,2}[/.]|\d{1,4}(?:[T ]|$))", "-", regex=True)
    iso = iso.str.replace(r" ?(?:Z|UTC|GMT)$", "+0000", regex=True)
    iso = iso.str.replace(r" +(?=[+-]\d\d:?\d\d$)", "", regex=True)
    if kind.way == "mdy":
        iso = iso.str.replace(r"^(\d{1,2})-(\d{1,2})-(\d{4})", r"\3-\1-\2", regex=True)
    elif kind.way:
        iso = iso.str.replace(r"^(\d{1,2})-(\d{1,2})-(\d{4})", r"\3-\2-\1", regex=True)
    # Two digits for day, month and hour.
    iso = iso.str.replace(r"-(?=\d(?:-|[T ]|$))", "-0", regex=True)
    iso = iso.str.replace(r"([T ]) *(?=\d:)", r"\g<1>0", regex=True)
    moments = _parse_moments(iso)
    if not kind.way:
        # Texts that are ISO 8601 already, with parts of a second or of a day that the pattern does
        # not know.
        moments = np.where(np.isnat(moments), _parse_moments(texts), moments)
    return moments


def _parse_moments(texts: pd.Series) -> np.ndarray:
    """Return the moments, in UTC, that texts spell in ISO 8601; NaT if a text does not."""
    import pandas as pd

    moments = np.full(len(texts), np.datetime64("NaT"), dtype="datetime64[us]")
    # With and without offsets apart: pandas 2.2 gives the offset of one text to others that have
    # none.
    has_offset = texts.str.contains(OFFSET, regex=True).eq(True).to_numpy(dtype=bool)
    for group in (has_offset, ~has_offset):
        if group.any():
            parsed = pd.to_datetime(texts[group], format="ISO8601", utc=True, errors="coerce")
            moments[group] = parsed.dt.tz_localize(None).astype("datetime64[us]").to_numpy()
    return moments


def _as_lists(values: pd.Series, name: str) -> np.ndarray:
    """Return lists of numbers as arrays, all of the same length."""
    lengths = values.map(_list_length).to_numpy()
    # A cell that holds no list has a negative length.
    if lengths.size and (lengths != lengths[0]).any():
        row = int(np.argmax(lengths != lengths[0]))
        fault = f"a list of {lengths[row]} numbers"
        if lengths[row] < 0:
            fault = "the list is missing"
        raise BadCell(name, row, f"{fault}; the lists of the rows before hold {lengths[0]}")
    if lengths.size and lengths[0] < 0:
        raise BadCell(name, 0, "is not a list of numbers")
    try:
        rows = np.array(values.tolist(), dtype=np.float64).reshape(len(values), -1)
    except (TypeError, ValueError):
        raise DataError(f"column {name!r} holds lists that are not of numbers") from None
    is_bad = ~np.isfinite(rows).all(axis=1)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise BadCell(name, row, "the list holds a value that is missing or not finite")
    return as_objects(list(rows))


def _list_length(value: object) -> int:
    """Return the length of a list, -1 for other values."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return len(value)
    return -1


def as_texts(values: pd.Series, missing: frozenset[str] = frozenset({""})) -> np.ndarray:
    """Return a column as objects that are text.

    A missing value is "", and whole numbers have no point.
    """
    import pandas as pd

    # Write each different value once; lists cannot be compared, and are written one by one.
    if any(isinstance(value, (list, dict, set, np.ndarray)) for value in values.head(100)):
        codes = np.arange(len(values))
        distinct = values.tolist()
    else:
        codes, distinct = pd.factorize(values, use_na_sentinel=True)
    texts = [_text_of(value).strip() for value in distinct]
    texts = ["" if text.lower() in missing else text for text in texts]
    return as_objects([*texts, ""])[codes]


def _text_of(value: object) -> str:
    """Return a value as text."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return " ".join(map(_text_of, value))
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
