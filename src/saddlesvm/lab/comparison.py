"""Compare solvers on one's own data: every run (solver or peer, loss, C, repeat) goes into one tidy
trace.

Its result has the findings in words, and the report with its tables and figures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits
from saddlesvm.kernel.kernel_problem import check_kernel_loss
from saddlesvm.lab import figures, traces
from saddlesvm.lab.charts import Chart
from saddlesvm.lab.curves import AXES, closing_chart, curve_chart, strength_chart
from saddlesvm.lab.dataset import Dataset, Task, check_intercept, make_dataset, with_kernel
from saddlesvm.lab.machine import LabProgress, command_line
from saddlesvm.lab.peers import parse_peers
from saddlesvm.lab.report import Item, Picture, Prose, Report, Section, Switch, Table
from saddlesvm.lab.runs import Plan, as_list, cells, parse_contenders
from saddlesvm.lab.traces import PROBLEM, add_labels, strength_texts
from saddlesvm.problem.losses import Loss, is_loss, make_loss, spelled
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.allowed import STRENGTH, check, names_in
from saddlesvm.runtime.threads import interruptible

MODEL_SECONDS = 10.0  # limit of the fit whose model is shown
LEVELS = (1e-2, 1e-3, 1e-6)
CUT_SHORT = (
    "time_limit",
    "interrupted",
)  # outcomes that a limit or the user caused, not the solver


@dataclass(eq=False)
class Comparison:
    """The result of a comparison: its runs, the verdict on them, and their report.

    Attributes
    ----------
    dataset : Dataset
    plan : Plan
    trace : DataFrame
        The tidy trace; columns as in :data:`saddlesvm.lab.traces.COLUMNS`.
    notes : list of str
        The runs that were left out, and why.
    interrupted : bool
        Ctrl-C ended it early; the trace holds the finished runs.
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
    plan: Plan
    trace: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    command: str = ""

    def verdict(self) -> list[str]:
        """Sentences that say which solver was first to which accuracy, and by what factor."""
        return verdict(self.trace)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the self-contained HTML report; its path."""
        return comparison_report(self).write(path)

    def save_figures(
        self, folder: str | os.PathLike[str], formats: Sequence[str] = ("png", "svg")
    ) -> list[Path]:
        """Write every figure of the report as files of the given formats; their paths."""
        return comparison_report(self).save_figures(folder, formats)


def comparison_report(comparison: Comparison) -> Report:
    """Assemble the report of a comparison, or of its finished runs if it was interrupted."""
    trace = comparison.trace
    sentences = verdict(trace)
    if comparison.interrupted:
        sentences.insert(
            0, f"Interrupted: the report has the finished ones of {comparison.plan.cells} runs."
        )
    report = Report(
        f"Solvers compared on {comparison.dataset.name}",
        sentences + comparison.notes,
        data=comparison.dataset.describe() + settings_pairs(comparison),
        command=comparison.command,
    )
    if trace.empty:
        return report
    report.section("Results", reach_table(trace), endings_table(trace))
    for (loss, C), part in trace.groupby(PROBLEM, sort=False):
        name, written = strength_texts(part)
        report.sections.append(
            convergence_section(part, f"{str(loss).replace('_', ' ')}, {name} = {written[C]}")
        )
    if trace["C"].nunique() > 1:
        names = ["seconds", "train_error"] + (
            ["test_error"] if trace["test_error"].notna().any() else []
        )
        report.section(
            f"Against {strength_texts(trace)[0]}", *(strength_chart(trace, name) for name in names)
        )
    if comparison.dataset.task == "classification":
        report.sections.append(classifier_section(comparison))
    return report


def settings_pairs(comparison: Comparison) -> list[tuple[str, str]]:
    """The settings of the runs, as pairs of words."""
    plan = comparison.plan
    words = "none" if plan.intercept == "none" else f"{plan.intercept}, scaling {plan.scaling:g}"
    limits = f"relative gap {plan.limits.tol:g}, or {plan.limits.max_time:g} s with certificates"
    return [("intercept", words), ("each run ends at", limits), ("repeats", str(plan.repeats))]


def reach_table(trace: pd.DataFrame) -> Table:
    """Median seconds and epochs to each level."""
    tables = [medians(reach_times(trace, level)).set_index([*PROBLEM, "label"]) for level in LEVELS]
    name, written = strength_texts(trace)
    rows = []
    for key in tables[-1].index:
        cells = [
            cell
            for found in tables
            for cell in (
                seconds_text(found.loc[key, "seconds"]),
                count_text(found.loc[key, "epochs"]),
            )
        ]
        rows.append([str(key[0]), written[key[1]], str(key[2]), *cells])
    columns = ["loss", name, "solver"]
    columns += [word for level in LEVELS for word in (f"time to {level:.0e}", "epochs")]
    caption = (
        "Time of solving until the objective was within a fraction of the optimum; "
        "median over the repeats."
    )
    return Table(columns, rows, caption)


def endings_table(trace: pd.DataFrame) -> Table:
    """The last objective, gap and errors of each solver."""
    ends = add_labels(trace).groupby([*PROBLEM, "label", "repeat"], sort=False).last().reset_index()
    name, written = strength_texts(trace)
    rows = []
    for (loss, C, label), runs in ends.groupby([*PROBLEM, "label"], sort=False):
        middle = runs[
            ["primal", "relative_gap", "epoch", "seconds_solving", "seconds_certifying"]
        ].median()
        outcome = ", ".join(sorted(set(runs["outcome"])))
        errors = [
            share_text(runs[column].dropna().median()) for column in ("train_error", "test_error")
        ]
        rows.append(
            [
                str(loss),
                written[float(C)],
                str(label),
                outcome,
                f"{middle['primal']:.8g}",
                f"{middle['relative_gap']:.2g}",
                count_text(middle["epoch"]),
                seconds_text(middle["seconds_solving"]),
                seconds_text(middle["seconds_certifying"]),
                *errors,
            ]
        )
    columns = [
        "loss",
        name,
        "solver",
        "outcome",
        "objective",
        "relative gap",
        "epochs",
        "solving",
        "certifying",
    ]
    caption = (
        "Where the runs ended; medians over the repeats. A peer's time is that of its "
        "longest single fit."
    )
    return Table([*columns, "train error", "test error"], rows, caption)


def convergence_section(trace: pd.DataFrame, title: str) -> Section:
    """The curves of one problem."""
    closing: dict[tuple[str, ...], Chart] = {
        (word, axis): curve_chart(trace, quantity, against, f"{word} against {axis}")
        for quantity, word in (("suboptimality", "Suboptimality"), ("gap", "Duality gap"))
        for against, (column, axis) in AXES.items()
        if trace[column].any()
    }
    caption = next(iter(closing.values())).caption
    charts: list[Item] = [
        Switch("Closing in on the optimum", caption, ("quantity", "against"), closing)
    ]
    charts.append(closing_chart(trace, "epochs", "Primal and dual closing in on each other"))
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
    """Pictures of a certified model: that of the C with the lowest error among those compared."""
    dataset = comparison.dataset
    trace = comparison.trace
    column = "test_error" if dataset.test_X is not None else "train_error"
    best = trace.loc[trace[column].fillna(np.inf).idxmin()]
    planned = {spelled(one): one for one in comparison.plan.losses}
    loss = planned.get(best["loss"]) or make_loss(best["loss"])
    strength, written = strength_texts(trace)
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
    if (
        dataset.X.shape[1] == 2
        and isinstance(dataset.X, np.ndarray)
        and isinstance(problem, Problem)
    ):
        section.items += figures.shrinking_charts(problem, names=dataset.classes)
    return section


def model_pictures(dataset: Dataset, model: FitResult) -> list[Any]:
    """Confusion matrix, margins, misclassified images and the plane, as far as the data allow."""
    X, y = (dataset.X, dataset.y) if dataset.test_X is None else (dataset.test_X, dataset.test_y)
    assert y is not None

    def decide(rows: Any) -> np.ndarray:
        return dataset.scores_of(rows, model.coef[None], np.array([model.intercept]))[:, 0]

    scores = decide(X)
    names = np.array(dataset.classes)
    true = names[(y > 0).astype(int)]
    taken = names[(scores > 0).astype(int)]
    items: list[Any] = [figures.confusion_grid(true, taken, dataset.classes)]
    items.append(figures.margins_chart(scores, y, dataset.classes))
    if dataset.image_shape is not None and (true != taken).any():
        shape = dataset.image_shape
        items.append(
            Picture(
                "Misclassified images",
                "The worst mistakes first.",
                lambda: figures.misclassified(X, true, taken, shape, scores),
            )
        )
    if X.shape[1] == 2 and isinstance(X, np.ndarray):
        alpha = model.alpha if dataset.test_X is None else None
        items.append(figures.plane_chart(X, y, decide, names=dataset.classes, alpha=alpha))
    return items


def count_text(value: float) -> str:
    """A number of epochs as text."""
    return "" if not np.isfinite(value) else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def share_text(value: float) -> str:
    """An error as text."""
    return "" if not np.isfinite(value) else f"{value:.4g}"


def reach_times(trace: pd.DataFrame, level: float) -> pd.DataFrame:
    """Seconds of solving until a run was within `level`, a row a solver, problem and repeat;
    infinite if it never was.

    A peer's run is a ladder of fits, of which a later one may be the faster: the fastest within
    `level` counts.

    Returns
    -------
    DataFrame
        Columns solver, options, label, loss, C, repeat, seconds, epochs.
    """
    keys = ["solver", "options", "label", *PROBLEM, "repeat"]
    taken = {"seconds_solving": "seconds", "epoch": "epochs"}
    trace = add_labels(trace)
    inside = trace[trace["relative_suboptimality"] <= level]
    first = inside.loc[
        inside.groupby(keys, sort=False)["seconds_solving"].idxmin(), [*keys, *taken]
    ]
    runs = trace[keys].drop_duplicates().merge(first.rename(columns=taken), how="left", on=keys)
    return runs.fillna(dict.fromkeys(taken.values(), np.inf))


def medians(times: pd.DataFrame) -> pd.DataFrame:
    """Median seconds and epochs over the repeats, the fastest first within each problem."""
    grouped = (
        times.groupby([*PROBLEM, "label"], sort=False)[["seconds", "epochs"]].median().reset_index()
    )
    return grouped.sort_values([*PROBLEM, "seconds"], kind="stable")


def verdict(trace: pd.DataFrame) -> list[str]:
    """Sentences about a tidy trace, one a problem and level of relative suboptimality."""
    if trace.empty:
        return ["Nothing was run."]
    sentences = []
    tables = {level: medians(reach_times(trace, level)) for level in LEVELS}
    name, written = strength_texts(trace)
    for (loss, C), part in trace.groupby(PROBLEM, sort=False):
        done = labels_not_cut(part)
        where = f"{str(loss).replace('_', ' ')}, {name} = {written[float(C)]}"
        for level, table in tables.items():
            chosen = table[(table["loss"] == loss) & (table["C"] == C)]
            sentences.append(f"{where}: {_sentence(chosen, level, done)}")
    return sentences


def labels_not_cut(trace: pd.DataFrame) -> set[str]:
    """Labels of the solvers none of whose runs was stopped by the clock: they ended at their gap or
    by another rule.
    """
    ends = add_labels(trace[trace["outcome"] != ""])
    return set(ends["label"]) - set(ends["label"][ends["outcome"].isin(CUT_SHORT)])


def _sentence(table: pd.DataFrame, level: float, done: set[str]) -> str:
    """The first solver within `level` of the optimum, the others' factors, and the reasons of those
    that failed.
    """
    exponent = f"{level:.0e}".replace("e-0", "e-")
    arrived = table[np.isfinite(table["seconds"])]
    missing = list(table[~np.isfinite(table["seconds"])]["label"])
    if arrived.empty and done >= set(missing):
        return (
            f"no run went on until {exponent} of the optimum: all ended before, at the gap "
            "asked for or by a rule."
        )
    if arrived.empty:
        return f"no solver came within {exponent} of the optimum in its time."
    first = arrived.iloc[0]
    words = (
        f"{first['label']} came within {exponent} of the optimum first, after "
        f"{seconds_text(first['seconds'])}"
    )
    others = [
        f"{row['label']} {row['seconds'] / first['seconds']:.2g}"
        for _, row in arrived.iloc[1:].iterrows()
    ]
    if others:
        words += f"; the others took longer by a factor of: {', '.join(others)}"
    for reason, whom in (
        ("not in its time", [label for label in missing if label not in done]),
        ("ended before, at its gap or by its rule", [label for label in missing if label in done]),
    ):
        if whom:
            words += f"; {reason}: {', '.join(whom)}"
    return words + "."


def seconds_text(value: float) -> str:
    """A time as text."""
    if not np.isfinite(value):
        return "never"
    if value < 1e-3:
        return f"{1e6 * value:.0f} µs"
    return f"{1e3 * value:.3g} ms" if value < 1.0 else f"{value:.3g} s"


# The solvers that are compared if none is named.
LINEAR = "auto,dcd,sdca,pegasos"
OF_KERNELS = "auto,kernel-pegasos"


def compare(
    X: Any,
    y: Any,
    *,
    solvers: Any = None,
    C: float | Sequence[float] | None = None,
    lam: float | Sequence[float] | None = None,
    losses: Any = None,
    repeats: int = 1,
    test: tuple[Any, Any] | None = None,
    budget: float = 10.0,
    tol: float = 1e-6,
    peers: str | Sequence[str] = (),
    intercept: str = "none",
    intercept_scaling: float = 1.0,
    task: Task = "classification",
    positive: Any = None,
    name: str = "data",
    image_shape: tuple[int, int] | None = None,
    certify_every: float = 1.0,
    kernel: str | Callable[..., Any] | None = None,
    gamma: str | float = "scale",
    degree: float = 3,
    coef0: float = 0.0,
    trace: str | os.PathLike[str] | None = None,
    progress: bool = False,
    command: str | None = None,
) -> Comparison:
    r"""Run solvers side by side on your data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
    solvers : str, solver object, or sequence of them
        ``"dcd"``, ``"pegasos:batch_size=64,output=average"``, ``SDCA(start="sgd")``. Left out:
        auto, dcd, sdca and pegasos; with a kernel auto and kernel-pegasos.
    C, lam : float or sequence of float
        One of them: the weight of the losses, :math:`C = 1 / (\lambda n)`, or lambda; ``C=1.0``
        when both are left out. With `lam`, objectives, tables and figures are in the lambda form.
    losses : str, Loss, or sequence of them, optional
        Default: the hinge, for a regression the epsilon-insensitive loss.
    repeats : int, default=1
        Runs with the seeds 0, 1, ...
    test : tuple (X, y), optional
        A test part.
    budget : float, default=10.0
        Seconds for each run, certificates included.
    tol : float, default=1e-6
        Relative duality gap at which a run ends.
    peers : str or sequence of str
        Other packages' solvers, by the names of :data:`saddlesvm.lab.peers.PEERS`; "all" for those
        installed.
    intercept : {"none", "regularized", "free"}, default="none"
    intercept_scaling : float, default=1.0
    task : {"classification", "regression"}
    positive : label, optional
        The class compared with the rest, where there are more than two.
    name : str
        Of the data, for the report.
    image_shape : tuple of int, optional
        Height and width, where a row is an image.
    certify_every : float, default=1.0
        Epochs between certificates.
    kernel : str or callable, optional
        A kernel such as "rbf", as in :class:`~saddlesvm.SVC`; the solvers are then those of kernel
        machines.
    gamma, degree, coef0
        Of the kernel.
    trace : path, optional
        ``.parquet`` or ``.csv``: written after every run; runs that it already holds are skipped.
    progress : bool, default=False
        Show a progress bar on standard error.
    command : str, optional
        The command that repeats the comparison, for the report; by default the command line of this
        process.

    Returns
    -------
    Comparison
        Ctrl-C ends the comparison and returns the finished runs, with ``interrupted`` set.

    Raises
    ------
    ValueError
        Options or data that are out of range or do not fit each other, or a trace of other data.
    DataError
        The trace file cannot be read or written.

    Examples
    --------
    >>> from saddlesvm.lab import compare
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> found = compare(
    ...     notes.X, notes.y, solvers=["dcd", "sdca"], C=0.01, tol=1e-3, name="banknote"
    ... )
    >>> sorted(set(found.trace["solver"])), bool(found.trace["relative_gap"].min() <= 1e-3)
    (['dcd', 'sdca'], True)
    """
    dataset = make_dataset(
        X, y, test=test, task=task, positive=positive, name=name, image_shape=image_shape
    )
    if kernel is not None:
        dataset = with_kernel(dataset, kernel, gamma, degree, coef0)
    if kernel is not None and peers:
        raise ValueError("the peers solve linear problems: leave them out with a kernel")
    default = "epsilon_insensitive" if task == "regression" else "hinge"
    if C is not None and lam is not None:
        raise ValueError("give either C or lam (lambda), not both: C = 1 / (lambda n)")
    if not isinstance(repeats, int) or repeats < 1:
        raise ValueError(f"repeats must be a whole number of at least 1; got {repeats!r}")
    plan = Plan(
        contenders=parse_contenders(
            solvers or (LINEAR if kernel is None else OF_KERNELS), kernels=kernel is not None
        ),
        peers=parse_peers(peers if isinstance(peers, str) else list(peers)),
        losses=[_loss(one, task, kernel is not None) for one in _losses(losses, default)],
        C=[]
        if lam is not None
        else [_positive(one, "C") for one in as_list(1.0 if C is None else C)],
        lam=[] if lam is None else [_positive(one, "lam") for one in as_list(lam)],
        repeats=repeats,
        limits=Limits(tol=tol, max_time=budget, certify_every=certify_every),
        intercept=check_intercept(intercept),
        scaling=intercept_scaling,
    )
    return run_plan(
        dataset, plan, trace=trace, progress=progress, command=command or command_line()
    )


def run_plan(
    dataset: Dataset,
    plan: Plan,
    *,
    trace: str | os.PathLike[str] | None = None,
    progress: bool = False,
    command: str = "",
) -> Comparison:
    """Run every cell of a plan that the trace file does not hold yet; parameters as for
    :func:`compare`.
    """
    kept = _earlier(trace, dataset)
    done = traces.done_cells(kept)
    rows: list[dict[str, Any]] = kept.to_dict("records")
    found = Comparison(dataset, plan, kept, command=command)
    with interruptible() as stop, LabProgress(plan.cells, progress) as bar:
        for cell in cells(dataset, plan, found.notes):
            # Runs that the trace file holds are not done again.
            if cell.key not in done:
                bar.begin(cell.words)
                rows += cell.run(stop, bar)
                # Written after every run, so that nothing is lost if the comparison is killed.
                if trace is not None and not stop.is_set():
                    traces.write_trace(traces.tidy_trace(rows), trace)
            bar.done()
            if stop.is_set():
                found.interrupted = True
                break
    found.trace = traces.tidy_trace(rows)
    return found


def _earlier(trace: str | os.PathLike[str] | None, dataset: Dataset) -> pd.DataFrame:
    """The finished cells of an existing trace file."""
    if trace is None:
        return traces.tidy_trace([])
    traces.check_ending(trace)
    if not Path(trace).exists():
        return traces.tidy_trace([])
    frame = traces.drop_unfinished(traces.read_trace(trace))
    others = set(frame["data"]) - {dataset.fingerprint}
    if others:
        raise ValueError(
            f"{os.fspath(trace)}: is a trace of other data; give another file, or remove it"
        )
    return frame


def _losses(losses: Any, default: str) -> list[Any]:
    """The losses as a list; a single loss object, itself a tuple, becomes a list of one."""
    if losses is None:
        return [default]
    if isinstance(losses, str):
        return names_in(losses)
    return [losses] if is_loss(losses) else list(losses)


def _loss(loss: Any, task: Task, kernels: bool) -> Loss:
    made = make_loss(loss, task=task)
    return check_kernel_loss(made) if kernels else made


def _positive(value: float, name: str) -> float:
    check(name, value, STRENGTH)
    return float(value)
