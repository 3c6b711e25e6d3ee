"""The report of a comparison: its tables and figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.result import FitResult
from saddlesvm.lab import pictures
from saddlesvm.lab.charts import Chart
from saddlesvm.lab.contenders import label_of
from saddlesvm.lab.curves import AXES, closing_chart, curve_chart, strength_chart
from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.report import Item, Picture, Prose, Report, Section, Switch, Table
from saddlesvm.lab.results import Results
from saddlesvm.lab.tidy import PROBLEM, strengths
from saddlesvm.lab.verdict import LEVELS, medians, reach_times, seconds, verdict
from saddlesvm.problem.losses import make_loss, spelled
from saddlesvm.problem.problem import Problem

MODEL_SECONDS = 10.0


def comparison_report(comparison: Results) -> Report:
    """Assemble the report of a comparison, or of its finished runs if it was interrupted."""
    trace = comparison.trace
    sentences = verdict(trace)
    if comparison.interrupted:
        sentences.insert(0, f"Interrupted: this is what was done of {comparison.plan.cells} runs.")
    report = Report(
        f"Solvers compared on {comparison.dataset.name}",
        sentences + comparison.notes,
        data=comparison.dataset.describe() + settings(comparison),
        command=comparison.command,
    )
    if trace.empty:
        return report
    report.section("Results", first_to_reach(trace), endings(trace))
    for (loss, C), part in trace.groupby(PROBLEM, sort=False):
        name, written = strengths(part)
        report.sections.append(convergence(part, f"{str(loss).replace('_', ' ')}, {name} = {written[C]}"))
    if trace["C"].nunique() > 1:
        names = ["seconds", "train_error"] + (["test_error"] if trace["test_error"].notna().any() else [])
        report.section(f"Against {strengths(trace)[0]}", *(strength_chart(trace, name) for name in names))
    if comparison.dataset.task == "classification":
        report.sections.append(classifier(comparison))
    return report


def settings(comparison: Results) -> list[tuple[str, str]]:
    """How the runs were set up, as pairs of words."""
    plan = comparison.plan
    words = "none" if plan.intercept == "none" else f"{plan.intercept}, scaling {plan.scaling:g}"
    limits = f"relative gap {plan.limits.tol:g}, or {plan.limits.max_time:g} s with certificates"
    return [("intercept", words), ("each run ends at", limits), ("repeats", str(plan.repeats))]


def first_to_reach(trace: pd.DataFrame) -> Table:
    """Median seconds and epochs to each level."""
    tables = [medians(reach_times(trace, level)).set_index([*PROBLEM, "label"]) for level in LEVELS]
    name, written = strengths(trace)
    rows = []
    for key in tables[-1].index:
        cells = [
            cell for found in tables for cell in (seconds(found.loc[key, "seconds"]), count(found.loc[key, "epochs"]))
        ]
        rows.append([str(key[0]), written[key[1]], str(key[2]), *cells])
    columns = ["loss", name, "solver"]
    columns += [word for level in LEVELS for word in (f"time to {level:.0e}", "epochs")]
    caption = "Time of solving until the objective was within a fraction of the optimum; median over the repeats."
    return Table(columns, rows, caption)


def endings(trace: pd.DataFrame) -> Table:
    """Where each solver ended."""
    ends = trace.groupby(["loss", "C", "solver", "options", "repeat"], sort=False).last().reset_index()
    name, written = strengths(trace)
    rows = []
    for (loss, C, solver, options), runs in ends.groupby(["loss", "C", "solver", "options"], sort=False):
        middle = runs[["primal", "relative_gap", "epoch", "seconds_solving", "seconds_certifying"]].median()
        outcome = ", ".join(sorted(set(runs["outcome"])))
        errors = [share(runs[column].dropna().median()) for column in ("train_error", "test_error")]
        rows.append(
            [str(loss), written[float(C)], label_of(str(solver), str(options)), outcome, f"{middle['primal']:.8g}",
             f"{middle['relative_gap']:.2g}", count(middle["epoch"]), seconds(middle["seconds_solving"]),
             seconds(middle["seconds_certifying"]), *errors]
        )  # fmt: skip
    columns = ["loss", name, "solver", "outcome", "objective", "relative gap", "epochs", "solving", "certifying"]
    caption = "Where the runs ended; medians over the repeats. A peer's time is that of its longest single fit."
    return Table([*columns, "train error", "test error"], rows, caption)


def convergence(trace: pd.DataFrame, title: str) -> Section:
    """The curves of one problem."""
    closing: dict[tuple[str, ...], Chart] = {
        (word, axis): curve_chart(trace, quantity, against, f"{word} against {axis}")
        for quantity, word in (("suboptimality", "Suboptimality"), ("gap", "Duality gap"))
        for against, (column, axis) in AXES.items()
        if trace[column].any()
    }
    caption = next(iter(closing.values())).caption
    charts: list[Item] = [Switch("Closing in on the optimum", caption, ("quantity", "against"), closing)]
    charts.append(closing_chart(trace, "epochs", "Primal and dual closing in on each other"))
    for quantity, against, word in (
        ("test_error", "seconds", "Test error over time"),
        ("accuracy", "rows", "Training accuracy against rows touched"),
        ("active", "epochs", "Active rows under shrinking"),
        ("change", "epochs", "Change of w in a pass"),
    ):
        chart = curve_chart(trace, quantity, against, word)
        if chart.series:
            charts.append(chart)
    return Section(f"Convergence: {title}", charts)


def classifier(comparison: Results) -> Section:
    """Pictures of a certified model: that of the C with the lowest error among those compared."""
    dataset, trace = comparison.dataset, comparison.trace
    column = "test_error" if dataset.test_X is not None else "train_error"
    best = trace.loc[trace[column].fillna(np.inf).idxmin()]
    planned = {spelled(one): one for one in comparison.plan.losses}
    loss = planned.get(best["loss"]) or make_loss(best["loss"])
    strength, written = strengths(trace)
    C, lam = (None, float(best["lam"])) if strength == "lambda" else (float(best["C"]), None)
    problem = dataset.problem(loss, C, comparison.plan.intercept, comparison.plan.scaling, lam)
    result = fit(problem, dataset.reference_solver, Limits(tol=1e-4, max_time=MODEL_SECONDS))
    shown = f"{str(best['loss']).replace('_', ' ')}, {strength} = {written[float(best['C'])]}"
    words = (
        f"The model of the lowest error seen: {shown}, fitted again to a relative gap of "
        f"{result.certificate.relative_gap:.1e}. The rows are those of the "
        f"{'test' if dataset.test_X is not None else 'training'} part."
    )
    section = Section("The classifier", [Prose(words), *model_pictures(dataset, result)])
    if dataset.X.shape[1] == 2 and isinstance(dataset.X, np.ndarray) and isinstance(problem, Problem):
        section.items += pictures.shrinking_charts(problem, names=dataset.classes)
    return section


def model_pictures(dataset: Dataset, model: FitResult) -> list[Any]:
    """Confusion matrix, margins, misclassified images and the plane, as far as the data allow."""
    X, y = (dataset.X, dataset.y) if dataset.test_X is None else (dataset.test_X, dataset.test_y)
    assert y is not None

    def decide(rows: Any) -> np.ndarray:
        return dataset.scores_of(rows, model.coef[None], np.array([model.intercept]))[:, 0]

    scores = decide(X)
    names = np.array(dataset.classes)
    true, taken = names[(y > 0).astype(int)], names[(scores > 0).astype(int)]
    items: list[Any] = [pictures.confusion_grid(true, taken, dataset.classes)]
    items.append(pictures.margins_chart(scores, y, dataset.classes))
    if dataset.image_shape is not None and (true != taken).any():
        shape = dataset.image_shape
        items.append(
            Picture(
                "Misclassified images",
                "The worst mistakes first.",
                lambda: pictures.misclassified(X, true, taken, shape, scores),
            )
        )
    if X.shape[1] == 2 and isinstance(X, np.ndarray):
        alpha = model.alpha if dataset.test_X is None else None
        items.append(pictures.plane_chart(X, y, decide, names=dataset.classes, alpha=alpha))
    return items


def count(value: float) -> str:
    """A number of epochs as text."""
    return "" if not np.isfinite(value) else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def share(value: float) -> str:
    """An error as text."""
    return "" if not np.isfinite(value) else f"{value:.4g}"
