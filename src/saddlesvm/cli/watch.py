"""``saddlesvm watch``: write a page that plays two solvers, row by row, side by side."""

from __future__ import annotations

import os
from typing import Any

import click

from saddlesvm.cli import OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.console import command_line
from saddlesvm.cli.options import DATA_ARGUMENT, LABEL
from saddlesvm.cli.values import OUTPUT


@declare(
    "saddlesvm watch toy",
    "saddlesvm watch banknote --solvers sdca,newton --report banknote.html",
)
@DATA_ARGUMENT
@click.option(
    "--solvers",
    default="pegasos,dcd",
    show_default=True,
    metavar="ONE,OTHER",
    help="One or two of pegasos, sdca, dcd, newton; with options, as in pegasos:projection=true.",
)
@click.option(
    "--loss", default="hinge", show_default=True, metavar="LOSS", help="A loss for classification."
)
@click.option("--C", "C", type=float, help="The price of errors, in place of lambda.")
@click.option("--lambda", "lam", type=float, help="Lambda = 1 / (C n); 0.05 by default.")
@click.option(
    "--max-iter",
    "epochs",
    type=click.FloatRange(min=0, min_open=True),
    default=8.0,
    show_default=True,
    metavar="EPOCHS",
    help="Passes over the rows at most; up to 100.",
)
@click.option(
    "--positive",
    metavar="LABEL",
    help="The class that is compared with the rest, if there are several.",
)
@LABEL
@click.option(
    "--report", type=OUTPUT, default="watch.html", show_default=True, help="The page to write."
)
def command(
    *,
    data: str,
    solvers: str,
    epochs: float,
    label: str | None,
    report: str,
    **options: Any,
) -> int:
    """Write a page that plays two solvers, row by row, side by side."""
    from saddlesvm import lab
    from saddlesvm.data import read
    from saddlesvm.estimators.training_data import labels_of
    from saddlesvm.runtime.allowed import split_names

    names = split_names(solvers)
    if not 1 <= len(names) <= 2:
        raise ValueError(f"--solvers {solvers}: one or two solvers are shown; got {len(names)}")
    table = read(data, label=label)
    # Record both solvers on the same rows.
    view = lab.watch(
        table.X,
        labels_of(table),
        solver=names[0],
        against=names[1] if len(names) > 1 else None,
        epochs=epochs,
        name=os.path.basename(data),
        command=command_line(),
        **options,
    )
    for run in view.scene["runs"]:
        last = run["frames"][-1]
        gap = max(last["primal"] - last["dual"], 0.0)
        n_steps = len(run["frames"]) - 1
        print(f"{run['label']}: {n_steps} steps, {last['touched']:,} rows visited, gap {gap:.2g}")
    print(f"page: {view.report(report)}")
    return OK
