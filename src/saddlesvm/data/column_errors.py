"""Errors that name the column of a table which does not hold numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real

import numpy as np

from saddlesvm.data.data_table import is_missing
from saddlesvm.runtime.data_types import Matrix, RowsLike

# The beginning of Python's message if a text is converted to a number.
TEXT_ERROR = "could not convert string to float"
TIMES = {"M": "dates", "m": "spans of time"}  # by NumPy's kinds


@contextmanager
def naming_columns(X: RowsLike) -> Iterator[None]:
    """If X cannot be converted to numbers, raise an error that names the first column at fault.

    Raises
    ------
    ValueError
        Another error was raised, and X is a table with a column that does not hold numbers, or
        holds text.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        message = next(_describe_bad_columns(X), None)
        if message is None and str(error).startswith(TEXT_ERROR):
            message = (
                f"{error}: features must be numbers; "
                "encode text first (TfidfVectorizer, OneHotEncoder)"
            )
        if message is None:
            raise
        raise ValueError(message) from error


def _describe_bad_columns(X: Matrix) -> Iterator[str]:
    """Yield a message for each column of a table that does not hold numbers."""
    if not hasattr(X, "columns"):
        return
    for name in X.columns:
        values = np.asarray(X[name])
        what = TIMES.get(values.dtype.kind) or _describe_bad_value(values)
        if what:
            yield (
                f"column {name!r} of X holds {what}: features must be numbers; encode it first "
                "(OneHotEncoder or another transformer, before the estimator in a pipeline), "
                "or leave it out"
            )


def _describe_bad_value(values: np.ndarray) -> str | None:
    """Return the first value that is not a number, in words; None if all are numbers."""
    if values.dtype.kind in "biuf":
        return None
    for value in values.ravel().tolist():
        # Text that spells a number can be converted.
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return f"text, such as {value[:40]!r}"
        elif not isinstance(value, Real) and not is_missing(value):
            return f"values of type {type(value).__name__}"
    return None
