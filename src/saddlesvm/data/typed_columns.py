"""Turn the columns of a table into the types of their kinds: numbers, or words as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.data.errors import MISSING_ADVICE, DataError

if TYPE_CHECKING:
    import pandas as pd


def typed_frame(
    frame: pd.DataFrame, kinds: Mapping[str, str], where: Callable[[int], str]
) -> pd.DataFrame:
    """Return the columns that are not dropped, in the types that their transformers take.

    Parameters
    ----------
    frame : DataFrame
    kinds : mapping of str to str
    where : callable
        The words for a row, from 0, such as "people.csv: line 7".

    Returns
    -------
    DataFrame
        Numbers as float64 (NaN if missing), words as objects that are text ("" if missing).

    Raises
    ------
    DataError
        A value is not of the kind of its column.
    """
    import pandas as pd

    columns = {}
    for name, kind in kinds.items():
        if kind == "number":
            columns[name] = pd.Series(_as_numbers(frame[name], name, where), index=frame.index)
        elif kind != "drop":
            columns[name] = pd.Series(_as_texts(frame[name]), dtype=object, index=frame.index)
    return pd.DataFrame(columns)


def _as_numbers(values: pd.Series, name: str, where: Callable[[int], str]) -> np.ndarray:
    """Return numbers as float64, missing numbers as NaN."""
    import pandas as pd

    numbers: np.ndarray = pd.to_numeric(values, errors="coerce").to_numpy(
        np.float64, na_value=np.nan
    )
    is_bad = np.isinf(numbers) | (np.isnan(numbers) & values.notna().to_numpy())
    if is_bad.any():
        row = int(np.argmax(is_bad))
        if np.isinf(numbers[row]):
            raise DataError(
                f"{where(row)}: column {name!r} holds {numbers[row]}, or a number that float64 "
                "cannot hold; values must be finite"
            )
        raise DataError(
            f"{where(row)}: column {name!r}: {str(values.iloc[row])[:80]!r} is not a number; "
            f"correct it, or say --columns {name}=category"
        )
    return numbers


def _as_texts(values: pd.Series) -> np.ndarray:
    """Return words as objects that are text; a missing value is ""."""
    import pandas as pd

    # Write each different value once; a missing value has the code -1, and so the last entry.
    codes, distinct = pd.factorize(values)
    texts = [_text_of(value).strip() for value in distinct]
    return as_objects([*texts, ""])[codes]


def _text_of(value: object) -> str:
    """Return a value as text; whole numbers have no point."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def as_objects(values: Sequence[object]) -> np.ndarray:
    """Return values of any type as an array of objects of shape (n,)."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def rows_without_gaps(
    frame: pd.DataFrame, kinds: Mapping[str, str], missing: str | None, source: str
) -> np.ndarray | None:
    """Return a mask of the rows without gaps, if rows with gaps are left out; None if all stay.

    Parameters
    ----------
    frame : DataFrame
        As :func:`typed_frame` makes it.
    kinds : mapping of str to str
    missing : {"error", "drop", "mean", "median"} or None
    source : str
        Name of the source in messages.

    Raises
    ------
    DataError
        There is a gap, and `missing` is "error".
    """
    if missing not in ("error", "drop"):
        return None
    has_gap = np.zeros(len(frame), dtype=bool)
    for name in frame.columns:
        # A text may be empty.
        if kinds[name] == "text":
            continue
        is_gap = frame[name].isna()
        if kinds[name] == "category":
            is_gap = frame[name].eq("")
        if not is_gap.any():
            continue
        if missing == "error":
            row = int(np.argmax(is_gap.to_numpy()))
            raise DataError(
                f"{source}: row {row + 1}: column {name!r}: the value is missing; {MISSING_ADVICE}"
            )
        has_gap |= is_gap.to_numpy()
    if not has_gap.any():
        return None
    return ~has_gap
