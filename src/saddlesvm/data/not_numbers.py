"""Error messages for data that are not numbers: which column, or which label, is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["naming_columns", "unordered"]

TEXT = "could not convert string to float"
TIMES = {"M": "dates", "m": "spans of time"}


@contextmanager
def naming_columns(X: Any) -> Iterator[None]:
    """Where a conversion of `X` to numbers fails, raise an error that names the first column that holds none.

    Raises
    ------
    ValueError
        Another error was raised, and X is a table with a column that is not of numbers, or holds text.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        message = next(_found(X), None)
        if message is None and str(error).startswith(TEXT):
            message = f"{error}: features must be numbers; make some of text first (TfidfVectorizer, OneHotEncoder)"
        if message is None:
            raise
        raise ValueError(message) from error


def _found(X: Any) -> Iterator[str]:
    """A message for each column of a table that holds no numbers."""
    for name, column in _columns(X):
        values = np.asarray(column)
        what = TIMES.get(values.dtype.kind) or _odd_value(values)
        if what:
            yield (
                f"column {name!r} of X holds {what}: features must be numbers; encode it first (OneHotEncoder or "
                "another transformer, before the estimator in a pipeline), or leave it out"
            )


def _columns(X: Any) -> Iterable[tuple[Any, Any]]:
    """Names and columns of a pandas, polars or like table; nothing for arrays."""
    names = getattr(X, "columns", None)
    if names is None:
        return ()
    return X.items() if hasattr(X, "items") else ((name, X[name]) for name in names)


def _odd_value(values: np.ndarray) -> str | None:
    """The first value that is no number, in words; None where all are."""
    if values.dtype.kind in "biuf":
        return None
    for value in values.ravel().tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            if isinstance(value, str):
                return f"text, such as {value[:40]!r}"
            if not _is_missing(value):
                return f"values of type {type(value).__name__}"
    return None


def _is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, or pandas' marks."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def unordered(labels: np.ndarray) -> str | None:
    """Why labels of type object are no classes: one is missing, or they are of several types; None where neither."""
    first: Any = None
    for row, label in enumerate(labels.tolist() if labels.dtype.kind == "O" else ()):
        if _is_missing(label):
            return f"y holds {label!r} in row {row}, and every row needs a label"
        first = label if row == 0 else first
        if isinstance(label, str) != isinstance(first, str):
            return f"y holds {first!r} and {label!r}, and labels must be all text or all numbers"
    return None
