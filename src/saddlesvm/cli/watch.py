"""``saddlesvm watch``: a page that plays two solvers, row by row, side by side."""

from __future__ import annotations

import os
from typing import Any

import click

from saddlesvm.cli import OK
from saddlesvm.cli.command import declare, option
from saddlesvm.cli.console import command_line
from saddlesvm.cli.options import LABEL, data_argument
from saddlesvm.cli.values import OUTPUT


@declare(examples=("saddlesvm watch toy", "saddlesvm watch banknote --solvers sdca,newton --report banknote.html"))
@data_argument(several=False)
@option(
    "--solvers",
    default="pegasos,dcd",
    show_default=True,
    metavar="ONE,OTHER",
    help="pegasos, sdca, dcd or newton, with options (pegasos:projection=true); kernel-pegasos; "
    "crammer_singer. One name shows one alone.",
)
@option("--loss", default="hinge", show_default=True, metavar="LOSS", help="One of labels.")
@option("--C", "C", type=float, help="Weight of the losses, in place of lambda.")
@option("--lambda", "lam", type=float, help="0.05 by default.")
@option(
    "--intercept",
    type=click.Choice(["none", "regularized"]),
    default="regularized",
    show_default=True,
    help="Of the model.",
)
@option(
    "--gamma",
    default="scale",
    show_default=True,
    help="Of the Gaussian kernel of kernel solvers: scale, auto or a number.",
)
@option("--rows", type=int, default=60, show_default=True, help="Rows at most, drawn at random.")
@option("--max-iter", type=float, default=8.0, show_default=True, metavar="EPOCHS", help="Passes over them at most.")
@option("--seed", type=int, default=0, show_default=True, help="Of the rows and of the solvers' draws.")
@option("--positive", metavar="LABEL", help="The class compared with the rest, if there are several.")
@LABEL
@option("--report", type=OUTPUT, default="watch.html", show_default=True, help="The page to write.")
def command(
    *,
    data: str,
    solvers: str,
    intercept: str,
    gamma: str,
    max_iter: float,
    label: str | None,
    report: str,
    **options: Any,
) -> int:
    """Write a page that plays two solvers, row by row, side by side."""
    from saddlesvm import lab
    from saddlesvm.data import read
    from saddlesvm.estimators.preparation import labels_of
    from saddlesvm.runtime.allowed import names_in

    names = names_in(solvers)
    if not 1 <= len(names) <= 2:
        raise ValueError(f"--solvers {solvers}: one solver or two are shown; got {len(names)}")
    table = read(data, label=label)
    seen = lab.watch(
        table.X,
        labels_of(table),
        solver=names[0],
        against=names[1] if len(names) > 1 else None,
        intercept=intercept == "regularized",
        gamma=gamma if gamma in ("scale", "auto") else float(gamma),
        epochs=max_iter,
        name=os.path.basename(data),
        command=command_line(),
        **options,
    )
    for run in seen.scene["runs"]:
        last = run["frames"][-1]
        gap = max(last["primal"] - last["dual"], 0.0)
        print(f"{run['label']}: {len(run['frames']) - 1} steps, {last['touched']:,} rows touched, gap {gap:.2g}")
    print(f"report: {seen.report(report)}")
    return OK
