"""The trace of the lab: a table with a row for each certificate of each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from saddlesvm.lab.runs import join_label

if TYPE_CHECKING:
    from collections.abc import Sequence

# Types of columns.
TEXT = "str"
WHOLE = "int64"
NUMBER = "float64"
COLUMNS: dict[str, str] = {
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
    "change_of_w": NUMBER,
    "outcome": TEXT,
    "remark": TEXT,
}
BLANK: dict[str, Any] = {TEXT: "", WHOLE: 0, NUMBER: np.nan}  # what a row without a value gets
PROBLEM = ["loss", "C"]  # the columns that identify a problem


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
    return frame.assign(label=[join_label(solver, options) for solver, options in names])


def strength_texts(frame: pd.DataFrame) -> tuple[str, dict[float, str]]:
    """Return the name of the strength, "C" or "lambda", and the text for each C."""
    if len(frame) and (frame["form"] == "lambda").all():
        pairs = zip(frame["C"], frame["lam"], strict=True)
        return "lambda", {float(C): f"{lam:g}" for C, lam in pairs}
    return "C", {float(C): f"{C:g}" for C in frame["C"].unique()}
