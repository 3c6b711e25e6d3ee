"""Charts of a trace: the median over the repeats, and the quartiles as a band."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from saddlesvm.lab.charts import DASHES, Chart, Series
from saddlesvm.lab.traces import PROBLEM, add_labels, strength_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from saddlesvm.fit.outcome import Trace

# Names of axes: the column of a trace, and the title.
AXES = {
    "epochs": ("epoch", "epochs"),
    "seconds": ("seconds_solving", "seconds of solving"),
}
# Names of quantities: the column, the title, and whether the axis is logarithmic.
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
}
MOST_POINTS = 240  # of a line: more are not seen on a screen
QUARTILES = (0.25, 0.75)
FLOOR = 1e-15  # smallest value on a log axis; smaller ones are drawn at this height


def curve_chart(
    trace: pd.DataFrame,
    quantity: str,
    against: str = "epochs",
    title: str = "",
    centre: str = "median",
) -> Chart:
    """Return a quantity of the trace along the runs, with a line for each solver.

    Parameters
    ----------
    trace : DataFrame
        A tidy trace; lines of different problems (loss, C) differ by their dashes.
    quantity : {"suboptimality", "gap", "train_error", "test_error", "active", "change"}
        "active" is the share of rows that shrinking still works on, "change" the norm of the change
        of w in a pass.
    against : {"epochs", "seconds"}
    title : str, optional
    centre : {"median", "mean"}
        The line of several repeats.

    Raises
    ------
    ValueError
        The quantity or the axis is unknown.
    """
    if quantity not in QUANTITIES or against not in AXES:
        raise ValueError(
            f"charts show {', '.join(QUANTITIES)} over {', '.join(AXES)}; got {quantity!r}, "
            f"{against!r}"
        )
    column, y_title, logarithmic = QUANTITIES[quantity]
    x_column, x_title = AXES[against]
    # Lines without a finite point are left out.
    series = []
    for label, style, dash, runs in group_lines(add_shares(trace)):
        points = [(run[x_column], run[column]) for run in runs]
        line = summarise_runs(label, points, style, dash, logarithmic, centre)
        if line.x.size:
            series.append(line)
    return Chart(
        title or y_title,
        x_title,
        y_title,
        tuple(series),
        x_log=True,
        y_log=logarithmic,
        caption=f"{centre.capitalize()} over the repeats; the band holds the middle half of them.",
    )


def add_shares(trace: pd.DataFrame) -> pd.DataFrame:
    """Return the trace with the share of active rows, which only charts use."""
    frame = trace.copy()
    # All rows, as far as a pass visits each once: the visits of an epoch.
    rows = np.maximum(frame["rows_touched"] / frame["epoch"].where(frame["epoch"] > 0.0), 1.0)
    frame["active_share"] = frame["active_rows"] / rows.round()
    return frame


def group_lines(frame: pd.DataFrame) -> Iterator[tuple[str, int, str, list[pd.DataFrame]]]:
    """Yield label, colour, dash and runs of each line: colours for solvers, dashes for problems."""
    strength, written = strength_texts(frame)
    problems = list(dict.fromkeys(frame[PROBLEM].itertuples(index=False, name=None)))
    for style, (label, solver) in enumerate(add_labels(frame).groupby("label", sort=False)):
        for place, (loss, C) in enumerate(problems):
            part = solver[(solver["loss"] == loss) & (solver["C"] == C)]
            if part.empty:
                continue
            name = str(label)
            if len(problems) > 1:
                name += f", {loss}, {strength} = {written[C]}"
            dash = DASHES[place % len(DASHES)]
            yield name, style, dash, [run for _, run in part.groupby("repeat")]


def summarise_runs(
    name: str,
    runs: Sequence[tuple[object, object]],
    style: int,
    dash: str = "solid",
    logarithmic: bool = False,
    centre: str = "median",
) -> Series:
    """Return the median (or mean) of several runs, and their quartiles.

    A run counts with its latest value at each point, also after its end. The line begins once all
    runs have a value; a line over fewer runs would rise when a late run joins.

    Parameters
    ----------
    name : str
    runs : list of (x, y)
    style : int
    dash : str
    logarithmic : bool
        Draw values below :data:`FLOOR` there.
    centre : {"median", "mean"}
    """
    clean = []
    for run in runs:
        x, y = keep_finite(*(np.asarray(values, dtype=float) for values in run))
        if logarithmic:
            y = np.maximum(y, FLOOR)
        if x.size:
            clean.append((x, y))
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
    """Return the latest value at each point of the grid; NaN before the first."""
    place = np.searchsorted(x, grid, side="right") - 1
    return np.where(place >= 0, y[np.maximum(place, 0)], np.nan)


def keep_finite(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points that are finite, with x above zero."""
    keep = np.isfinite(x) & np.isfinite(y) & (x > 0.0)
    return x[keep], y[keep]


def thin_points(x: np.ndarray, most: int = MOST_POINTS) -> np.ndarray:
    """Return at most `most` of the points, evenly by number, with both ends."""
    if x.size <= most:
        return x
    return x[np.unique(np.linspace(0, x.size - 1, most).round().astype(int))]


def closing_chart(trace: pd.DataFrame, against: str = "epochs", title: str = "") -> Chart:
    """Return the primal and the dual objective of each solver, closing in on each other."""
    x_column, x_title = AXES[against]
    series = []
    for label, style, _, runs in group_lines(trace):
        primal = [(run[x_column], run["primal"]) for run in runs]
        dual = [(run[x_column], run["dual"]) for run in runs]
        upper = summarise_runs(label, primal, style, "solid")
        lower = summarise_runs(f"{label}: dual", dual, style, "dash")
        series += [upper, replace(lower, follows=label)]
    return Chart(
        title or "primal and dual",
        x_title,
        f"objective ({strength_texts(trace)[0]} form)",
        tuple(line for line in series if line.x.size),
        x_log=True,
        caption="Primal values fall (solid), dual bounds rise (dashed); the optimum lies between.",
    )


def gap_chart(trace: Trace, title: str = "") -> Chart:
    """Return the relative gap of a fitted model along its fit, a line for each sub-problem.

    Parameters
    ----------
    trace : Trace
        ``trace_`` of the model.
    title : str, optional
    """
    names = dict.fromkeys(record["problem"] for record in trace)
    series = []
    for style, name in enumerate(names):
        records = [record for record in trace if record["problem"] == name]
        epochs = np.array([record["epoch"] for record in records])
        gaps = np.maximum([record["relative_gap"] for record in records], FLOOR)
        series.append(Series(name or "relative gap", epochs, gaps, style=style))
    return Chart(
        title,
        AXES["epochs"][1],
        QUANTITIES["gap"][1],
        tuple(series),
        x_log=True,
        y_log=True,
        caption="Every point is a proof: the model was at most this far above the optimum.",
    )
