"""Columns with names, of any type: what a table of numbers, words, dates and texts is before its encoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from saddlesvm.data.arrow import arrow_table
from saddlesvm.data.errors import DataError
from saddlesvm.data.table import shorten

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
