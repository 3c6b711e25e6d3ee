"""Errors that name the column of a table which does not hold numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
    for name in getattr(X, "columns", ()):
        values = np.asarray(X[name])
        found = TIMES.get(values.dtype.kind)
        if found is None:
            try:
                for value in values.ravel().tolist():
                    if not is_missing(value):
                        float(value)
                continue
            except (TypeError, ValueError) as error:
                found = str(error)
        yield (
            f"column {name!r} of X holds no numbers ({found}): encode it first "
            "(OneHotEncoder or another transformer, before the estimator in a pipeline), or leave "
            "it out"
        )
