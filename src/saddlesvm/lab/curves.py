"""Charts of a trace: the median over the repeats, with the quartiles as a band."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from saddlesvm.lab.charts import DASHES, Chart, Series
from saddlesvm.lab.traces import PROBLEM, add_labels, strength_texts
from saddlesvm.runtime.allowed import one_of

AXES = {
    "epochs": ("epoch", "epochs"),
    "seconds": ("seconds_solving", "seconds of solving"),
    "evaluations": ("kernel_evaluations", "kernel values computed"),
}
QUANTITIES = {
    "suboptimality": (
        "relative_suboptimality",
        "relative suboptimality, (P - best D) / best P",
        True,
    ),
    "gap": ("relative_gap", "relative gap, (P - D) / max(|P|, |D|)", True),
    "train_error": ("train_error", "training error", False),
    "test_error": ("test_error", "test error", False),
    "active": ("active_share", "share of active rows", False),
    "change": ("change_of_w", "norm of the change of w in a pass", True),
    "seconds": ("seconds_solving", "seconds of solving", True),
}
ENDS = (
    "test_error",
    "train_error",
    "seconds",
)  # quantities of which the ends of runs are drawn against C
MOST_POINTS = 240
QUARTILES = (0.25, 0.75)
FLOOR = 1e-15  # smallest value on a log axis; smaller ones are drawn at this height


def curve_chart(
    trace: pd.DataFrame,
    quantity: str,
    against: str = "epochs",
    title: str = "",
    centre: str = "median",
) -> Chart:
    """A quantity of the trace along the runs, one line a solver.

    Parameters
    ----------
    trace : DataFrame
        A tidy trace; lines of different problems (loss, C) differ by their dashes.
    quantity : {"suboptimality", "gap", "train_error", "test_error", "active", "change"}
        The share of rows that shrinking still works on is "active"; the norm of the change of w in
        a pass is "change".
    against : {"epochs", "seconds", "evaluations"}
    title : str, optional
    centre : {"median", "mean"}
        Of the repeats.

    Raises
    ------
    ValueError
        An unknown quantity or axis.
    """
    if quantity not in QUANTITIES or against not in AXES:
        raise ValueError(
            f"charts show {', '.join(QUANTITIES)} over {', '.join(AXES)}; got {quantity!r}, "
            f"{against!r}"
        )
    column, y_title, logarithmic = QUANTITIES[quantity]
    x_column, x_title = AXES[against]
    frame = add_shares(trace)
    series = [
        summarise_runs(
            label, [(run[x_column], run[column]) for run in runs], style, dash, logarithmic, centre
        )
        for label, style, dash, runs in group_lines(frame)
    ]
    shown = tuple(one for one in series if one.x.size)
    words = f"{centre.capitalize()} over the repeats; the band holds the middle half of them."
    return Chart(
        title or y_title, x_title, y_title, shown, x_log=True, y_log=logarithmic, caption=words
    )


def add_shares(trace: pd.DataFrame) -> pd.DataFrame:
    """The trace with the columns that only charts use."""
    frame = trace.copy()
    rows = np.maximum(frame["rows_touched"] / frame["epoch"].where(frame["epoch"] > 0.0), 1.0)
    frame["active_share"] = frame["active_rows"] / rows.round()
    return frame


def group_lines(frame: pd.DataFrame) -> Iterator[tuple[str, int, str, list[pd.DataFrame]]]:
    """Label, colour, dash and runs of each line: a colour a solver, a dash a problem."""
    strength, written = strength_texts(frame)
    problems = list(dict.fromkeys(frame[PROBLEM].itertuples(index=False, name=None)))
    for style, (label, solver) in enumerate(add_labels(frame).groupby("label", sort=False)):
        for place, (loss, C) in enumerate(problems):
            chosen = solver[(solver["loss"] == loss) & (solver["C"] == C)]
            if len(chosen):
                ending = "" if len(problems) == 1 else f", {loss}, {strength} = {written[C]}"
                dash = DASHES[place % len(DASHES)]
                runs = [run for _, run in chosen.groupby("repeat")]
                yield str(label) + ending, style, dash, runs


def summarise_runs(
    name: str,
    runs: list[tuple[Any, Any]],
    style: int,
    dash: str = "solid",
    logarithmic: bool = False,
    centre: str = "median",
) -> Series:
    """The median (or mean) of several runs, and their quartiles.

    A run counts with its latest value at each point; one that has ended goes on with its last. The
    line begins where all of the runs have a value: one over those that happen to have begun would
    rise when a late one joins.

    Parameters
    ----------
    name : str
    runs : list of (x, y)
    style : int
    dash : str
    logarithmic : bool
        Values below :data:`FLOOR` are drawn there.
    centre : {"median", "mean"}
    """
    clean = [keep_finite(np.asarray(x, dtype=float), np.asarray(y, dtype=float)) for x, y in runs]
    clean = [(x, np.maximum(y, FLOOR) if logarithmic else y) for x, y in clean if x.size]
    if not clean:
        return Series(name, np.empty(0), np.empty(0), style=style, dash=dash)
    if len(clean) == 1:
        return Series(name, *clean[0], style=style, dash=dash)
    # The points at which any run has a value, from where all of them have one.
    grid = thin_points(np.unique(np.concatenate([x for x, _ in clean])))
    grid = grid[grid >= max(x[0] for x, _ in clean)]
    # Each run holds its latest value between its own points.
    values = np.stack([hold_values(x, y, grid) for x, y in clean])
    middle = np.median(values, axis=0) if centre == "median" else values.mean(axis=0)
    low, high = np.quantile(values, QUARTILES, axis=0)
    return Series(name, grid, middle, low, high, style=style, dash=dash)


def hold_values(x: np.ndarray, y: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The latest value at each point of the grid; NaN before the first."""
    place = np.searchsorted(x, grid, side="right") - 1
    return np.where(place >= 0, y[np.maximum(place, 0)], np.nan)


def keep_finite(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    keep = np.isfinite(x) & np.isfinite(y) & (x > 0.0)
    return x[keep], y[keep]


def thin_points(x: np.ndarray, most: int = MOST_POINTS) -> np.ndarray:
    """At most `most` of the points, evenly by number, the ends among them."""
    if x.size <= most:
        return x
    return x[np.unique(np.linspace(0, x.size - 1, most).round().astype(int))]


def closing_chart(trace: pd.DataFrame, against: str = "epochs", title: str = "") -> Chart:
    """Primal and dual objective of each solver closing in on each other."""
    x_column, x_title = AXES[against]
    series = []
    for label, style, _, runs in group_lines(trace):
        for column, dash, follows in (("primal", "solid", ""), ("dual", "dash", label)):
            name = f"{label}: dual" if follows else label
            line = summarise_runs(name, [(run[x_column], run[column]) for run in runs], style, dash)
            series.append(replace(line, follows=follows))
    shown = tuple(one for one in series if one.x.size)
    words = (
        "Primal values come down (solid), dual bounds come up (dashed); the optimum lies between."
    )
    objective = f"objective ({strength_texts(trace)[0]} form)"
    return Chart(title or "primal and dual", x_title, objective, shown, x_log=True, caption=words)


def strength_chart(trace: pd.DataFrame, quantity: str) -> Chart:
    """The end of every run against C (or lambda): "test_error", "train_error", or "seconds" of
    solving.

    Median over the repeats, with their quartiles.
    """
    one_of("quantity", quantity, ENDS)
    column, y_title, logarithmic = QUANTITIES[quantity]
    name, _ = strength_texts(trace)
    lines = add_labels(trace).groupby(["label", "loss"], sort=False)
    series = []
    for style, ((label, loss), line) in enumerate(lines):
        ends = line.groupby(["C", "repeat"], sort=False).last().reset_index()
        values = ends.groupby("lam" if name == "lambda" else "C")[column].quantile(
            [QUARTILES[0], 0.5, QUARTILES[1]]
        )
        known = values.unstack().dropna()
        low, middle, high = known.to_numpy().T
        series.append(
            Series(
                f"{label}, {loss}",
                known.index.to_numpy(dtype=float),
                middle,
                low,
                high,
                style=style,
            )
        )
    shown = tuple(one for one in series if one.x.size)
    words = "Where each run ended; median and quartiles over the repeats."
    return Chart(
        f"{y_title} against {name}",
        name,
        y_title,
        shown,
        x_log=True,
        y_log=logarithmic,
        caption=words,
    )
