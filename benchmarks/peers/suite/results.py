"""The tidy file of results: a row for each fit, in memory and as Parquet or CSV, and what is read off it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from saddlesvm.data import DataError, atomic_write

TEXT = "str"
WHOLE = "int64"
NUMBER = "float64"
COLUMNS: dict[str, str] = {
    "data": TEXT,
    "title": TEXT,
    "rows": WHOLE,
    "features": WHOLE,
    "values": WHOLE,
    "dtype": TEXT,
    "loss": TEXT,
    "C": NUMBER,
    "cores": WHOLE,
    "solver": TEXT,
    "version": TEXT,
    "ladder": TEXT,
    "rung": NUMBER,
    "repeat": WHOLE,
    "seconds": NUMBER,
    "objective": NUMBER,
    "bound": NUMBER,
    "epochs": NUMBER,
    "extra_bytes": NUMBER,
    "outcome": TEXT,
    "remark": TEXT,
    "limit": NUMBER,
    "machine": TEXT,
    "command": TEXT,
}
CELL = ["data", "loss", "C", "cores"]
# rows that are no solver's: the bound of a cell, and its end
REFERENCE = "reference"
COMPLETE = "complete"
DONE = "done"
KILLED = "killed"
FAILED = "failed"
ENDED = "ended"
TARGETS = (1e-2, 1e-3, 1e-6)
ENDINGS = (".parquet", ".csv")


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a table of :data:`COLUMNS`; what a row lacks is empty text, 0 or NaN."""
    frame = pd.DataFrame(rows)
    for name, kind in COLUMNS.items():
        blank: Any = {TEXT: "", WHOLE: 0, NUMBER: np.nan}[kind]
        column = frame[name] if name in frame else pd.Series([blank] * len(frame), dtype=object)
        frame[name] = (column if kind == NUMBER else column.where(column.notna(), blank)).astype(kind)
    return frame[list(COLUMNS)]


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a table all at once; the ending decides between Parquet and CSV."""
    with atomic_write(path) as file:
        if ending_of(path) == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            frame.to_csv(file, index=False, float_format="%.17g")


def read(path: Path) -> pd.DataFrame:
    """Read a table that :func:`write` wrote.

    Raises
    ------
    DataError
        There is no such file, or it holds something else.
    """
    try:
        frame = pd.read_parquet(path) if ending_of(path) == ".parquet" else pd.read_csv(path, keep_default_na=False)
        missing = [name for name in COLUMNS if name not in frame]
        if missing:
            raise DataError(f"{path}: holds no results of this suite: it has no column {missing[0]!r}")
        numbers = [name for name, kind in COLUMNS.items() if kind == NUMBER]
        frame[numbers] = frame[numbers].replace("", np.nan)
        return frame[list(COLUMNS)].astype(COLUMNS)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataError(f"{path}: holds no results of this suite: {error}") from None


def ending_of(path: str | os.PathLike[str]) -> str:
    """The ending of a file of results, if it is one that is known."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"{os.fspath(path)}: results are written as {' or '.join(ENDINGS)}")
    return ending


def done_jobs(frame: pd.DataFrame) -> set[tuple[Any, ...]]:
    """Cell, solver and repeat of the jobs that a table holds."""
    return set(frame[[*CELL, "solver", "repeat"]].itertuples(index=False, name=None))


def bound_of(cell: pd.DataFrame) -> float:
    """The best lower bound that any certified fit of a cell has proven; NaN without one."""
    return float(cell["bound"].max())


def distances(cell: pd.DataFrame) -> pd.DataFrame:
    """Median seconds and median relative distance from the optimum of each solver and rung of a cell."""
    bound = bound_of(cell)
    fits = cell[(cell["outcome"] == DONE) & (cell["solver"] != REFERENCE)]
    found = fits.groupby(["solver", "rung"], as_index=False).agg(
        seconds=("seconds", "median"), objective=("objective", "median"), repeats=("repeat", "nunique")
    )
    return found.assign(distance=found["objective"] / bound - 1.0)


def reach_times(cell: pd.DataFrame, target: float) -> dict[str, tuple[float, float]]:
    """For each solver of a cell that came within `target` of the optimum: seconds of the quickest such rung, and it.

    Where some of its rungs were run more often than others, those alone are looked at.
    """
    near = distances(cell)
    near = near[near["distance"] <= target]
    near = near[near["repeats"] == near.groupby("solver")["repeats"].transform("max")]
    best = near.loc[near.groupby("solver")["seconds"].idxmin()]
    return {row.solver: (float(row.seconds), float(row.rung)) for row in best.itertuples()}


def given_up_after(cell: pd.DataFrame, solver: str) -> float:
    """Seconds of the longest fit of a solver that ran into its limit; infinite where it ended for another reason."""
    rows = cell[cell["solver"] == solver]
    stopped = (rows["outcome"] == KILLED) | ((rows["outcome"] == ENDED) & (rows["remark"] == "time limit"))
    return float(rows["seconds"].max()) if stopped.any() else np.inf
