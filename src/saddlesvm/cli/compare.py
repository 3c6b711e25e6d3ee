"""``saddlesvm compare``, ``saddlesvm reproduce`` and ``saddlesvm watch``."""

from __future__ import annotations

import argparse
import os
from typing import Any

from saddlesvm import lab
from saddlesvm.cli import INTERRUPTED
from saddlesvm.cli.arguments import loss_text
from saddlesvm.cli.console import command_line
from saddlesvm.cli.reading import labels_of
from saddlesvm.data import DataError, Table, read
from saddlesvm.data.blocks import check_names
from saddlesvm.problem.losses import make_loss, traits_of
from saddlesvm.runtime.allowed import names_in
from saddlesvm.runtime.shown import shown

# Options that are parameters of the same name.
OF_COMPARE = "solvers C lam repeats tol peers intercept positive certify_every kernel gamma degree coef0 trace"
OF_WATCH = "solver loss C lam gamma epochs rows seed positive"


def compare(options: argparse.Namespace) -> int:
    """Compare, write report, trace and figures, and print the verdict."""
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


def reproduce(options: argparse.Namespace) -> int:
    """Reproduce, write the reports, and print what was found."""
    report = options.report or ("reports" if options.name is None else f"{options.name}.html")
    check_places(None if options.name is None else report, options.figures)
    found = lab.reproduce(
        options.name,
        options.data,
        report,
        options.quick,
        figures=options.figures,
        progress=not options.quiet,
        command=command_line(),
    )
    for name, made in found.items():
        print(f"{name}:", *(f"  {sentence}" for sentence in made.verdict), sep="\n")
    print(shown(f"report: {report}"))
    cut_short = any(made.verdict and made.verdict[0].startswith("Interrupted") for made in found.values())
    return INTERRUPTED if cut_short else 0


def watch(options: argparse.Namespace) -> int:
    """Record two solvers, and write the page that plays them."""
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
