"""The result of a comparison, and its report: verdict, tables, curves, pictures of a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.lab import figures
from saddlesvm.lab.curves import AXES, closing_chart, curve_chart
from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.report import Item, Prose, Report, Section, TextTable
from saddlesvm.lab.traces import PROBLEM, add_labels, strength_texts
from saddlesvm.lab.verdict import (
    LEVELS,
    count_text,
    medians,
    reach_times,
    seconds_text,
    share_text,
    state_verdict,
)
from saddlesvm.problem.losses import loss_text
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.dcd import DCD

# Limits of the fit whose model is shown.
MODEL_SECONDS = 10.0
MODEL_GAP = 1e-4  # relative gap


@dataclass(eq=False)
class Comparison:
    """The result of a comparison: its runs, the verdict on them, and their report.

    Attributes
    ----------
    dataset : Dataset
    problems : list of Problem
    trace : DataFrame
        The tidy trace; columns as in :data:`saddlesvm.lab.traces.COLUMNS`.
    settings : list of (str, str)
        The settings of the runs, as pairs of words.
    notes : list of str
        The runs that were left out, and why.
    interrupted : bool
        Whether Ctrl-C ended it early; the trace holds the finished runs.
    command : str
        The command that repeats the comparison.

    Examples
    --------
    >>> from saddlesvm.lab import compare
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> found = compare(notes.X, notes.y, solvers="dcd", C=0.01, tol=1e-3, name="banknote")
    >>> len(found.verdict()) > 0, "relative_gap" in found.trace
    (True, True)
    """

    dataset: Dataset
    problems: list[Problem]
    trace: pd.DataFrame
    settings: list[tuple[str, str]]
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    command: str = ""

    def verdict(self) -> list[str]:
        """Sentences that say which solver was first to which accuracy, and by what factor."""
        return state_verdict(self.trace)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as an HTML file, and return its path."""
        return comparison_report(self).write(path)

    def save_figures(
        self, folder: str | os.PathLike[str], formats: Sequence[str] = ("png", "svg")
    ) -> list[Path]:
        """Write every figure of the report in these formats, and return the paths."""
        return comparison_report(self).save_figures(folder, formats)


def comparison_report(comparison: Comparison) -> Report:
    """Assemble the report of a comparison, or of its finished runs if it was interrupted."""
    trace = comparison.trace
    sentences = state_verdict(trace)
    if comparison.interrupted:
        sentences.insert(0, "Interrupted: the report has the runs that were finished.")
    report = Report(
        f"Solvers compared on {comparison.dataset.name}",
        sentences + comparison.notes,
        data=comparison.dataset.describe() + comparison.settings,
        command=comparison.command,
    )
    if trace.empty:
        return report
    report.section("Results", reach_table(trace), endings_table(trace))
    # The curves of each problem.
    for (loss, C), part in trace.groupby(PROBLEM, sort=False):
        name, written = strength_texts(part)
        title = f"{str(loss).replace('_', ' ')}, {name} = {written[C]}"
        report.sections.append(convergence_section(part, title))
    if comparison.dataset.task == "classification":
        report.sections.append(classifier_section(comparison))
    return report


def reach_table(trace: pd.DataFrame) -> TextTable:
    """Return a table of the median seconds and epochs to each level."""
    keys = [*PROBLEM, "label"]
    tables = [medians(reach_times(trace, level)).set_index(keys) for level in LEVELS]
    name, written = strength_texts(trace)
    columns = ["loss", name, "solver"]
    for level in LEVELS:
        columns += [f"time to {level:.0e}", "epochs"]
    rows = []
    # Two cells for each level, in the order of the finest level: the fastest first.
    for key in tables[-1].index:
        loss, C, label = key
        row = [str(loss), written[C], str(label)]
        for times in tables:
            row += [seconds_text(times.loc[key, "seconds"]), count_text(times.loc[key, "epochs"])]
        rows.append(row)
    caption = (
        "Time of solving until the objective was within a fraction of the optimum; median over "
        "the repeats."
    )
    return TextTable(columns, rows, caption)


def endings_table(trace: pd.DataFrame) -> TextTable:
    """Return a table of the last objective, gap and errors of each solver."""
    keys = [*PROBLEM, "label"]
    # The last line of each run, then the medians over the repeats of a solver.
    ends = add_labels(trace).groupby([*keys, "repeat"], sort=False).last().reset_index()
    name, written = strength_texts(trace)
    measures = ["primal", "relative_gap", "epoch", "seconds_solving", "seconds_certifying"]
    rows = []
    for (loss, C, label), runs in ends.groupby(keys, sort=False):
        middle = runs[measures].median()
        row = {
            "loss": str(loss),
            name: written[float(C)],
            "solver": str(label),
            "outcome": ", ".join(sorted(set(runs["outcome"]))),
            "objective": f"{middle['primal']:.8g}",
            "relative gap": f"{middle['relative_gap']:.2g}",
            "epochs": count_text(middle["epoch"]),
            "solving": seconds_text(middle["seconds_solving"]),
            "certifying": seconds_text(middle["seconds_certifying"]),
            "train error": share_text(runs["train_error"].dropna().median()),
            "test error": share_text(runs["test_error"].dropna().median()),
        }
        rows.append(row)
    caption = (
        "The ends of the runs; medians over the repeats. The time of a peer is that of its longest "
        "single fit."
    )
    return TextTable.from_records(rows, caption)


def convergence_section(trace: pd.DataFrame, title: str) -> Section:
    """Return the curves of a problem."""
    charts: list[Item] = []
    for quantity, word in (("suboptimality", "Suboptimality"), ("gap", "Duality gap")):
        for against, (column, axis) in AXES.items():
            if trace[column].any():
                charts.append(curve_chart(trace, quantity, against, f"{word} against {axis}"))
    charts.append(closing_chart(trace, "epochs", "Primal and dual closing in on each other"))
    # Quantities that some traces lack.
    for quantity, against, word in (
        ("test_error", "seconds", "Test error over time"),
        ("active", "epochs", "Active rows under shrinking"),
        ("change", "epochs", "Change of w in a pass"),
    ):
        chart = curve_chart(trace, quantity, against, word)
        if chart.series:
            charts.append(chart)
    return Section(f"Convergence: {title}", charts)


def classifier_section(comparison: Comparison) -> Section:
    """Return pictures of a certified model, for the problem with the lowest error of all runs."""
    dataset = comparison.dataset
    trace = comparison.trace
    # The test rows if there are any; dual variables belong to the training rows.
    X = dataset.X
    y = dataset.y
    rows = "training"
    if dataset.test_X is not None and dataset.test_y is not None:
        X = dataset.test_X
        y = dataset.test_y
        rows = "test"
    column = "train_error" if rows == "training" else "test_error"
    best = trace.loc[trace[column].fillna(np.inf).idxmin()]
    problem = next(
        problem
        for problem in comparison.problems
        if (loss_text(problem.loss), problem.C) == (best["loss"], best["C"])
    )
    model = fit(problem, DCD(), Limits(tol=MODEL_GAP, max_time=MODEL_SECONDS))
    name, written = strength_texts(trace)
    words = (
        f"The model with the lowest error: {str(best['loss']).replace('_', ' ')}, {name} = "
        f"{written[float(best['C'])]}, fitted again to a relative gap of "
        f"{model.certificate.relative_gap:.1e}. The pictures show the {rows} rows."
    )

    def decide(places: Any) -> np.ndarray:
        return np.asarray(places @ model.coef.astype(places.dtype)) + model.intercept

    scores = decide(X)
    classes = np.array(dataset.classes)
    true = classes[(y > 0).astype(int)]
    predicted = classes[(scores > 0).astype(int)]
    items: list[Item] = [
        Prose(words),
        figures.confusion_grid(true, predicted, dataset.classes),
        figures.margins_chart(scores, y, dataset.classes),
    ]
    if X.shape[1] == 2 and isinstance(X, np.ndarray):
        alpha = model.alpha if rows == "training" else None
        items.append(figures.plane_chart(X, y, decide, names=dataset.classes, alpha=alpha))
        items += figures.shrinking_charts(problem, names=dataset.classes)
    return Section("The classifier", items)
