"""The findings of a comparison in words: which solver first reached which accuracy, and by what factor."""

from __future__ import annotations

import numpy as np
import pandas as pd

from saddlesvm.lab.contenders import label_of
from saddlesvm.lab.tidy import PROBLEM, strengths

LEVELS = (1e-2, 1e-3, 1e-6)
CUT_SHORT = ("time_limit", "interrupted")  # outcomes that a limit or the user caused, not the solver


def reach_times(trace: pd.DataFrame, level: float, *, column: str = "relative_suboptimality") -> pd.DataFrame:
    """Seconds of solving until a run was within `level`, a row a solver, problem and repeat; infinite if it never was.

    A peer's run is a ladder of fits, of which a later one may be the faster: the fastest within `level` counts.

    Returns
    -------
    DataFrame
        Columns solver, options, label, loss, C, repeat, seconds, epochs.
    """
    found = []
    keys = ["solver", "options", *PROBLEM, "repeat"]
    for (solver, options, loss, C, repeat), run in trace.groupby(keys, sort=False):
        inside = run[run[column] <= level]
        first = inside.loc[inside["seconds_solving"].idxmin()] if len(inside) else None
        found.append(
            {
                "solver": solver,
                "options": options,
                "label": label_of(str(solver), str(options)),
                "loss": loss,
                "C": C,
                "repeat": repeat,
                "seconds": np.inf if first is None else first["seconds_solving"],
                "epochs": np.inf if first is None else first["epoch"],
            }
        )
    return pd.DataFrame(found, columns=[*keys[:2], "label", *keys[2:], "seconds", "epochs"])


def medians(times: pd.DataFrame) -> pd.DataFrame:
    """Median seconds and epochs over the repeats, the fastest first within each problem."""
    grouped = times.groupby([*PROBLEM, "label"], sort=False)[["seconds", "epochs"]].median().reset_index()
    return grouped.sort_values([*PROBLEM, "seconds"], kind="stable")


def verdict(trace: pd.DataFrame, levels: tuple[float, ...] = LEVELS) -> list[str]:
    """Sentences, one a problem and level.

    Parameters
    ----------
    trace : DataFrame
        A tidy trace.
    levels : tuple of float
        Relative suboptimality, against the best dual bound that any run proved.
    """
    if trace.empty:
        return ["Nothing was run."]
    sentences = []
    tables = {level: medians(reach_times(trace, level)) for level in levels}
    name, written = strengths(trace)
    for (loss, C), part in trace.groupby(PROBLEM, sort=False):
        done = ended_by_themselves(part)
        where = f"{str(loss).replace('_', ' ')}, {name} = {written[float(C)]}"
        for level, table in tables.items():
            chosen = table[(table["loss"] == loss) & (table["C"] == C)]
            sentences.append(f"{where}: {_sentence(chosen, level, done)}")
    return sentences


def ended_by_themselves(trace: pd.DataFrame) -> set[str]:
    """Labels of the solvers none of whose runs was stopped by the clock: they ended at their gap or by another rule."""
    ends = trace[trace["outcome"] != ""]
    labels = [
        label_of(str(solver), str(options)) for solver, options in zip(ends["solver"], ends["options"], strict=True)
    ]
    stopped = {label for label, outcome in zip(labels, ends["outcome"], strict=True) if outcome in CUT_SHORT}
    return set(labels) - stopped


def _sentence(table: pd.DataFrame, level: float, done: set[str]) -> str:
    """Who was first within `level` of the optimum, how much later the others were, and why others never were."""
    exponent = f"{level:.0e}".replace("e-0", "e-")
    arrived = table[np.isfinite(table["seconds"])]
    missing = list(table[~np.isfinite(table["seconds"])]["label"])
    if arrived.empty and done >= set(missing):
        return f"no run went on until {exponent} of the optimum: all ended before, at the gap asked for or by a rule."
    if arrived.empty:
        return f"no solver came within {exponent} of the optimum in its time."
    first = arrived.iloc[0]
    words = f"{first['label']} came within {exponent} of the optimum first, after {seconds(first['seconds'])}"
    others = [f"{row['label']} {row['seconds'] / first['seconds']:.2g}" for _, row in arrived.iloc[1:].iterrows()]
    if others:
        words += f"; the others took longer by a factor of: {', '.join(others)}"
    for reason, whom in (
        ("not in its time", [label for label in missing if label not in done]),
        ("ended before, at its gap or by its rule", [label for label in missing if label in done]),
    ):
        if whom:
            words += f"; {reason}: {', '.join(whom)}"
    return words + "."


def seconds(value: float) -> str:
    """A time as text."""
    if not np.isfinite(value):
        return "never"
    if value < 1e-3:
        return f"{1e6 * value:.0f} µs"
    return f"{1e3 * value:.3g} ms" if value < 1.0 else f"{value:.3g} s"
