"""What a comparison found, in words: who first reached which accuracy, and by what factor."""

from __future__ import annotations

import numpy as np
import pandas as pd

from saddlesvm.lab.contenders import label_of
from saddlesvm.lab.tidy import PROBLEM, strengths

LEVELS = (1e-2, 1e-3, 1e-6)


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
    for (loss, C), _ in trace.groupby(PROBLEM, sort=False):
        where = f"{str(loss).replace('_', ' ')}, {name} = {written[float(C)]}"
        for level, table in tables.items():
            chosen = table[(table["loss"] == loss) & (table["C"] == C)]
            sentences.append(f"{where}: {_sentence(chosen, level)}")
    return sentences


def _sentence(table: pd.DataFrame, level: float) -> str:
    """Who was first within `level` of the optimum, and how much later the others were."""
    exponent = f"{level:.0e}".replace("e-0", "e-")
    arrived = table[np.isfinite(table["seconds"])]
    missing = list(table[~np.isfinite(table["seconds"])]["label"])
    if arrived.empty:
        return f"no solver came within {exponent} of the optimum in its time."
    first = arrived.iloc[0]
    words = f"{first['label']} came within {exponent} of the optimum first, after {seconds(first['seconds'])}"
    others = [f"{row['label']} {row['seconds'] / first['seconds']:.2g}" for _, row in arrived.iloc[1:].iterrows()]
    if others:
        words += f"; the others took longer by a factor of: {', '.join(others)}"
    if missing:
        words += f"; not in its time: {', '.join(missing)}"
    return words + "."


def seconds(value: float) -> str:
    """A time for people."""
    if not np.isfinite(value):
        return "never"
    if value < 1e-3:
        return f"{1e6 * value:.0f} µs"
    return f"{1e3 * value:.3g} ms" if value < 1.0 else f"{value:.3g} s"
