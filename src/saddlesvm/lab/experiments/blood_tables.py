"""Tables of the blood-cell comparison: the time to an accuracy, and where the runs ended."""

from __future__ import annotations

import pandas as pd

from saddlesvm.lab.comparison_report import count
from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.experiments.base import percent
from saddlesvm.lab.report import Table
from saddlesvm.lab.verdict import medians, reach_times, seconds

LEVELS = (1e-2, 1e-3)


def times_table(trace: pd.DataFrame) -> Table:
    """Median seconds and epochs to two levels of suboptimality."""
    tables = {level: medians(reach_times(trace, level)).set_index("label") for level in LEVELS}
    rows = []
    for label in tables[LEVELS[0]].index:
        reached = [table.loc[label] for table in tables.values()]
        rows.append([label, *(cell for one in reached for cell in (seconds(one["seconds"]), count(one["epochs"])))])
    columns = ["solver", *(word for level in LEVELS for word in (f"time to {level:g}", "epochs"))]
    return Table(columns, rows, "Time of solving until the primal was within a fraction of the optimum; medians.")


def ends_table(trace: pd.DataFrame, data: Dataset) -> Table:
    """Where the runs ended, means over the repeats."""
    ends = trace.groupby(["solver", "options", "repeat"], sort=False).last().groupby(["solver", "options"], sort=False)
    rows = []
    for (solver, options), runs in ends:
        mean = runs[["primal", "relative_gap", "epoch", "train_error", "test_error"]].mean()
        name = f"{solver} ({options})" if options else str(solver)
        numbers = [f"{mean['primal']:.6f}", f"{mean['relative_gap']:.1e}", f"{mean['epoch']:.1f}"]
        rows.append([name, *numbers, percent(mean["train_error"]), percent(mean["test_error"])])
    columns = ["solver", "objective (lambda form)", "relative gap", "epochs", "training error (%)", "test error (%)"]
    caption = (
        f"Means over the repeats; {data.X.shape[0]:,} training rows. Published test error on raw crops: about 26 %."
    )
    return Table(columns, rows, caption)
