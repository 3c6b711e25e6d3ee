"""The findings of a comparison: how soon each solver came near the optimum."""

from __future__ import annotations

import numpy as np
import pandas as pd

from saddlesvm.lab.traces import PROBLEM, add_labels, strength_texts

LEVELS = (1e-2, 1e-3, 1e-6)  # relative suboptimality: rough, as usual for tests, and fine
# Outcomes that a limit or the user caused, not the solver.
CUT_SHORT = ("time_limit", "interrupted")


def reach_times(trace: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return the seconds of solving until each run was within `level` of the optimum.

    They are infinite if it never was. The run of a peer is a ladder of fits, and a later fit may be
    faster than an earlier fit: the fastest fit within `level` counts.

    Returns
    -------
    DataFrame
        A row for each solver, problem and repeat; columns solver, options, label, loss, C, repeat,
        seconds, epochs.
    """
    keys = ["solver", "options", "label", *PROBLEM, "repeat"]
    measures = {"seconds_solving": "seconds", "epoch": "epochs"}
    trace = add_labels(trace)
    inside = trace[trace["relative_suboptimality"] <= level]
    fastest = inside.groupby(keys, sort=False)["seconds_solving"].idxmin()
    first = inside.loc[fastest, [*keys, *measures]].rename(columns=measures)
    # Runs that never came within the level have no such row.
    runs = trace[keys].drop_duplicates().merge(first, how="left", on=keys)
    return runs.fillna(dict.fromkeys(measures.values(), np.inf))


def medians(times: pd.DataFrame) -> pd.DataFrame:
    """Return median seconds and epochs over the repeats, the fastest first within each problem."""
    groups = times.groupby([*PROBLEM, "label"], sort=False)
    middle = groups[["seconds", "epochs"]].median().reset_index()
    return middle.sort_values([*PROBLEM, "seconds"], kind="stable")


def state_verdict(trace: pd.DataFrame) -> list[str]:
    """Return a sentence about a tidy trace for each problem and level."""
    if trace.empty:
        return ["Nothing was run."]
    tables = {level: medians(reach_times(trace, level)) for level in LEVELS}
    name, written = strength_texts(trace)
    sentences = []
    for (loss, C), part in trace.groupby(PROBLEM, sort=False):
        problem = f"{str(loss).replace('_', ' ')}, {name} = {written[float(C)]}"
        ended = labels_not_cut(part)
        for level, table in tables.items():
            times = table[(table["loss"] == loss) & (table["C"] == C)]
            sentences.append(f"{problem}: {compare_times(times, level, ended)}")
    return sentences


def labels_not_cut(trace: pd.DataFrame) -> set[str]:
    """Return the labels of the solvers whose runs all ended by themselves, not by the clock."""
    ends = add_labels(trace[trace["outcome"] != ""])
    is_cut = ends["outcome"].isin(CUT_SHORT)
    return set(ends["label"]) - set(ends["label"][is_cut])


def compare_times(times: pd.DataFrame, level: float, ended: set[str]) -> str:
    """Return a sentence: the first solver within `level`, the others' times, and who never was."""
    exponent = f"{level:.0e}".replace("e-0", "e-")
    has_arrived = np.isfinite(times["seconds"])
    arrived = times[has_arrived]
    missing = list(times[~has_arrived]["label"])
    # No solver arrived: by the clock, or because all were done.
    if arrived.empty and ended >= set(missing):
        return (
            f"no solver came within {exponent} of the optimum: all ended before, because they had "
            "proven the requested gap, or by a rule of their own."
        )
    if arrived.empty:
        return f"no solver came within {exponent} of the optimum before the time limit."
    # The fastest, and the times of the others as multiples of its time.
    first = arrived.iloc[0]
    parts = [
        f"{first['label']} came within {exponent} of the optimum first, after "
        f"{seconds_text(first['seconds'])}"
    ]
    others = [
        f"{row['label']} {row['seconds'] / first['seconds']:.2g}"
        for _, row in arrived.iloc[1:].iterrows()
    ]
    if others:
        parts.append(f"times of the others as multiples of this: {', '.join(others)}")
    # Solvers that never arrived, by reason.
    late = [label for label in missing if label not in ended]
    if late:
        parts.append(f"not before the time limit: {', '.join(late)}")
    early = [label for label in missing if label in ended]
    if early:
        parts.append(
            f"ended before, with the requested gap or by a rule of their own: {', '.join(early)}"
        )
    return "; ".join(parts) + "."


def seconds_text(value: float) -> str:
    """Return a time as text."""
    if not np.isfinite(value):
        return "never"
    if value < 1e-3:
        return f"{1e6 * value:.0f} µs"
    if value < 1.0:
        return f"{1e3 * value:.3g} ms"
    return f"{value:.3g} s"


def count_text(value: float) -> str:
    """Return a number of epochs as text; empty if it is unknown."""
    if not np.isfinite(value):
        return ""
    if value < 1000:
        return f"{value:,.4g}"
    return f"{value:,.0f}"


def share_text(value: float) -> str:
    """Return an error as text; empty if it is unknown."""
    return f"{value:.4g}" if np.isfinite(value) else ""
