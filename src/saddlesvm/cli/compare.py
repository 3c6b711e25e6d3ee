"""``saddlesvm compare`` and ``saddlesvm watch``."""

from __future__ import annotations

import argparse
import os
from typing import Any

from saddlesvm import lab
from saddlesvm.cli import INTERRUPTED
from saddlesvm.cli.arguments import loss_text
from saddlesvm.cli.console import command_line
from saddlesvm.data import DataError, Table, read
from saddlesvm.data.blocks import check_names
from saddlesvm.estimators.preparation import labels_of
from saddlesvm.problem.losses import make_loss, traits_of
from saddlesvm.runtime.allowed import names_in
from saddlesvm.runtime.shown import shown

# Options that are parameters of the same name.
OF_COMPARE = "solvers C lam repeats tol peers intercept positive certify_every kernel gamma degree coef0 trace"
OF_WATCH = "solver loss C lam gamma epochs rows seed positive"


def compare(options: argparse.Namespace) -> int:
    """Run solvers side by side and write a report with figures.

    Options
    -------
    DATA : text
        Data file, or a bundled set.
    solvers : text
        By name, with options: dcd,pegasos:batch_size=64,output=average (default dcd,sdca,pegasos).
    peers : PEERS, default=
        Sklearn,sgd,liblinear,cyanure,... or all.
    C : numbers
        One or several, with commas: 0.1,1,10 (default 1).
    lam : numbers
        One or several, with commas, in place of C.
    repeats : int, default=1
        Runs with the seeds 0, 1, ... (default 1).
    test : text
        Data to measure the test error on.
    max_time : default=10.0
        Seconds for each run (default 10).
    tol : default=1e-06
        Relative duality gap that ends a run (default 1e-6).
    intercept : default=regularized
    kernel : text
        Kernel machines in place of linear ones.
    gamma : number_or_name, default=scale
        Of the kernel: scale, auto or a number.
    degree : float, default=3.0
        Of the polynomial kernel (default 3).
    coef0 : float, default=0.0
        Of the polynomial and sigmoid kernels (default 0).
    certify_every : float, default=1.0
        Epochs (default 1).
    image : HxW
        Height and width, where a row is an image.
    trace : PATH
        .parquet or .csv; runs that it holds are not done again.
    report : required
        The HTML report to write.
    positive : LABEL
        The class compared with the rest, if there are several.
    figures : DIR
        Write every figure here, as PNG and SVG.
    quiet : flag
        No progress bar.

    Examples
    --------
    saddlesvm compare heart --report heart.html
    saddlesvm compare data.svm --solvers dcd,sdca --with sklearn --C 0.1,1 --report data.html
    """
    check_places(options.report, options.figures)
    losses = [loss_text(one) for one in names_in(options.loss)] if options.loss else None
    task: Any = traits_of(make_loss(losses[0])).task if losses else "classification"
    asked: dict[str, Any] = {"label": options.label, "scale": options.scale, "task": task}
    table = read(options.data, **asked)
    held_out = None
    if options.test:
        zero_based: Any = "auto" if table.zero_based is None else table.zero_based
        held_out = read(options.test, **asked, n_features=table.n_features, zero_based=zero_based)
        check_names(held_out.source, held_out.feature_names, table.source, table.feature_names)
    found = lab.compare(
        table.X,
        labels_of(table),
        losses=losses,
        test=None if held_out is None else (held_out.X, labels_of(held_out)),
        budget=options.max_time,
        task=task,
        name=os.path.basename(options.data),
        image_shape=image_shape(options.image, table),
        progress=not options.quiet,
        command=command_line(),
        **{name: getattr(options, name) for name in OF_COMPARE.split()},
    )
    path = found.report(options.report)
    if options.figures:
        found.save_figures(options.figures)
    if found.interrupted:
        print("interrupted: the report has the finished runs")
    print(*map(shown, (*found.verdict(), *found.notes, f"report: {path}")), sep="\n")
    return INTERRUPTED if found.interrupted else 0


def watch(options: argparse.Namespace) -> int:
    """Write a page that plays two solvers, row by row, side by side.

    Options
    -------
    solver : str, default=pegasos
        Pegasos, sdca, dcd or newton, with options: pegasos:projection=true; kernel-pegasos;
        crammer_singer for all classes at once.
    against : default=dcd
        The one beside it (default dcd); none for one alone.
    C : float
        Instead of lambda.
    lam : text
        Default 0.05.
    intercept : {none, regularized}, default=regularized
    gamma : number_or_name, default=scale
        Of the Gaussian kernel of kernel solvers: scale (default), auto or a number.
    rows : int, default=60
        Rows at most, drawn at random (default 60).
    epochs : float, default=8.0
        Passes over them at most (default 8).
    seed : text
        Of the rows and of the solvers' draws (default 0).
    report : default=watch.html
        The page to write (default watch.html).
    positive : LABEL
        The class compared with the rest, if there are several.

    Examples
    --------
    saddlesvm watch toy
    saddlesvm watch banknote --solver sdca --against newton --report banknote.html
    """
    check_places(options.report)
    table = read(options.data, label=options.label, scale=options.scale)
    seen = lab.watch(
        table.X,
        labels_of(table),
        against=None if options.against == "none" else options.against,
        intercept=options.intercept == "regularized",
        name=os.path.basename(options.data),
        command=command_line(),
        **{name: getattr(options, name) for name in OF_WATCH.split()},
    )
    for one in seen.scene["runs"]:
        frames = one["frames"]
        gap = frames[-1]["primal"] - frames[-1]["dual"]
        touched = f"{len(frames) - 1} steps, {frames[-1]['touched']:,} rows touched"
        print(f"{one['label']}: {touched}, gap {max(gap, 0.0):.2g}")
    print(f"report: {seen.report(options.report)}")
    return 0


def check_places(report: str | None, figures: str | None = None) -> None:
    """Raise DataError, before any work, for a report that is a folder or a folder of figures that is not one."""
    if report is not None and os.path.isdir(report):
        raise DataError(f"{report}: is a folder; the report is a file")
    if figures is not None and os.path.exists(figures) and not os.path.isdir(figures):
        raise DataError(f"{figures}: is a file; the figures go to a folder")


def image_shape(given: str | None, table: Table) -> tuple[int, int] | None:
    """Height and width from ``HxW``; square for the images of an idx file."""
    if given:
        height, _, width = given.lower().partition("x")
        if not (height.isdigit() and width.isdigit()):
            raise ValueError(f"--image is {given!r}; it must be like 28x28")
        return int(height), int(width)
    side = round(table.n_features**0.5)
    return (side, side) if table.format == "idx" and side * side == table.n_features else None
