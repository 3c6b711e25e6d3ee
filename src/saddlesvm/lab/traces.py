"""The trace of the lab: a table with a row for each certificate, as Parquet or CSV in files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from saddlesvm.data import DataError, atomic_write
from saddlesvm.lab.runs import label_of

if TYPE_CHECKING:
    from collections.abc import Sequence

# Types of columns.
TEXT = "str"
WHOLE = "int64"
NUMBER = "float64"
COLUMNS: dict[str, str] = {
    "data": TEXT,
    "solver": TEXT,
    "options": TEXT,
    "loss": TEXT,
    "C": NUMBER,
    "lam": NUMBER,
    "form": TEXT,
    "repeat": WHOLE,
    "epoch": NUMBER,
    "rows_touched": WHOLE,
    "seconds_solving": NUMBER,
    "seconds_certifying": NUMBER,
    "primal": NUMBER,
    "dual": NUMBER,
    "gap": NUMBER,
    "relative_gap": NUMBER,
    "suboptimality": NUMBER,
    "relative_suboptimality": NUMBER,
    "train_error": NUMBER,
    "test_error": NUMBER,
    "active_rows": WHOLE,
    "kernel_evaluations": WHOLE,
    "change_of_w": NUMBER,
    "outcome": TEXT,
    "remark": TEXT,
}
BLANK: dict[str, Any] = {TEXT: "", WHOLE: 0, NUMBER: np.nan}  # what a row without a value gets
CELL = ["solver", "options", "loss", "C", "repeat"]  # the columns that identify a run
PROBLEM = ["loss", "C"]  # the columns that identify a problem
ENDINGS = (".parquet", ".csv")


def tidy_trace(rows: Sequence[dict[str, object]]) -> pd.DataFrame:
    """Return a trace table of rows; missing values become empty text, 0 or NaN.

    Returns
    -------
    DataFrame
        The columns of :data:`COLUMNS` in their order and types, with the suboptimality. `form` says
        whether the objectives are in the C form or in the lambda form.
    """
    blank = {name: BLANK[kind] for name, kind in COLUMNS.items()}
    frame = pd.DataFrame([blank | row for row in rows], columns=list(COLUMNS))
    return add_suboptimality(frame.astype(COLUMNS))


def add_suboptimality(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the distances of the primal values from the optimum.

    ``suboptimality`` is the distance from the best dual bound that any run of the problem proved.
    ``relative_suboptimality`` divides it by the lowest primal value known.
    """
    frame = frame.copy()
    problems = frame.groupby(PROBLEM)
    # The largest dual value of all runs bounds the optimum from below: distances from it are upper
    # bounds.
    bound = problems["dual"].transform("max")
    lowest = problems["primal"].transform("min")
    frame["suboptimality"] = (frame["primal"] - bound).clip(lower=0.0)
    frame["relative_suboptimality"] = frame["suboptimality"] / lowest.where(lowest > 0.0)
    return frame


def add_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the column `label`: solver and options, as legends have them."""
    names = zip(frame["solver"], frame["options"], strict=True)
    return frame.assign(label=[label_of(solver, options) for solver, options in names])


def strength_texts(frame: pd.DataFrame) -> tuple[str, dict[float, str]]:
    """Return the name of the strength, "C" or "lambda", and the text for each C."""
    if len(frame) and (frame["form"] == "lambda").all():
        pairs = zip(frame["C"], frame["lam"], strict=True)
        return "lambda", {float(C): f"{lam:g}" for C, lam in pairs}
    return "C", {float(C): f"{C:g}" for C in frame["C"].unique()}


def done_cells(frame: pd.DataFrame) -> set[tuple[object, ...]]:
    """Return the cells (solver, options, loss, C, repeat) of a table that ran to their end."""
    ended = frame[(frame["outcome"] != "") & (frame["outcome"] != "interrupted")]
    return set(ended[CELL].itertuples(index=False, name=None))


def drop_unfinished(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the cells that ran to their end."""
    done = done_cells(frame)
    keep = [key in done for key in frame[CELL].itertuples(index=False, name=None)]
    return frame[np.array(keep, dtype=bool)].reset_index(drop=True)


def write_trace(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a trace table as Parquet or CSV, by the ending of `path`.

    Raises
    ------
    DataError
        The ending is unknown, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm.lab import compare, read_trace, write_trace
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> trace = compare(
    ...     notes.X, notes.y, solvers="dcd", C=0.01, tol=1e-3, name="banknote"
    ... ).trace
    >>> path = tempfile.mkdtemp() + "/banknote.csv"
    >>> write_trace(trace, path)
    >>> len(read_trace(path)) == len(trace)
    True
    """
    ending = check_ending(path)
    with atomic_write(path) as file:
        if ending == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            frame.to_csv(file, index=False, float_format="%.17g")


def read_trace(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a trace table that :func:`write_trace` wrote.

    Raises
    ------
    DataError
        There is no such file, or it is not a trace table; the message names a missing column.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm.lab import compare, read_trace, write_trace
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> trace = compare(
    ...     notes.X, notes.y, solvers="dcd", C=0.01, tol=1e-3, name="banknote"
    ... ).trace
    >>> path = tempfile.mkdtemp() + "/banknote.csv"
    >>> write_trace(trace, path)
    >>> len(read_trace(path)) == len(trace)
    True
    """
    ending = check_ending(path)
    try:
        if ending == ".parquet":
            frame = pd.read_parquet(path)
        else:
            # As text, which `astype` below reads to the last bit; a blank number is NaN.
            frame = pd.read_csv(path, keep_default_na=False, dtype=str)
            for name, kind in COLUMNS.items():
                if kind == NUMBER and name in frame:
                    frame[name] = frame[name].where(frame[name] != "", "nan")
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataError(f"{os.fspath(path)}: is not a readable trace: {error}") from None
    missing = [name for name in COLUMNS if name not in frame]
    if missing:
        raise DataError(
            f"{os.fspath(path)}: is not a trace of this lab: it has no column {missing[0]!r}"
        )
    try:
        return frame[list(COLUMNS)].astype(COLUMNS)
    except (ValueError, TypeError) as error:
        raise DataError(f"{os.fspath(path)}: is not a trace of this lab: {error}") from None


def check_ending(path: str | os.PathLike[str]) -> str:
    """Return the ending of a trace file; raise DataError if it is unknown."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"{os.fspath(path)}: a trace is written as {' or '.join(ENDINGS)}")
    return ending
