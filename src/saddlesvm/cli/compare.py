"""``saddlesvm compare``: solvers side by side, and a report with figures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from saddlesvm.cli import INTERRUPTED, OK
from saddlesvm.cli.command import data_option, declare, model_option, output_option, solving_option
from saddlesvm.cli.console import command_line
from saddlesvm.cli.options import IMPORT, LABEL, data_argument
from saddlesvm.cli.values import DATA, NUMBERS, REPORT
from saddlesvm.runtime.option_names import INTERCEPTS, KERNEL_NAMES

if TYPE_CHECKING:
    from saddlesvm.data import Table

COMPUTED = [name for name in KERNEL_NAMES if name != "precomputed"]


@declare(
    examples=(
        "saddlesvm compare banknote --report banknote.html",
        "saddlesvm compare data.svm --solvers dcd,sdca --with sklearn --C 0.1,1 --report data.html",
    )
)
@data_argument(several=False)
@output_option("--report", type=REPORT, required=True, help="The HTML report to write.")
@data_option("--test", type=DATA, help="Data to measure the test error on.")
@LABEL
@data_option("--scale", type=float, default=1.0, help="Multiply every value by this.")
@data_option("--positive", metavar="LABEL", help="The class compared with the rest, if there are several.")
@solving_option(
    "--solvers",
    metavar="NAMES",
    help="With options: dcd,pegasos:batch_size=64,output=average (default auto,dcd,sdca,pegasos).",
)
@solving_option("--with", "peers", default="", metavar="PEERS", help="sklearn,sgd,liblinear,... or all.")
@model_option("--C", "C", type=NUMBERS, help="One or several, with commas; 1 by default.")
@model_option("--lambda", "lam", type=NUMBERS, help="One or several, in place of C.")
@model_option("--loss", metavar="LOSSES", help="One or several, with commas; hinge by default.")
@model_option("--intercept", type=click.Choice(INTERCEPTS), default="regularized", help="Of linear models.")
@model_option("--kernel", type=click.Choice(COMPUTED), metavar="NAME", help="Compare kernel machines.")
@model_option("--gamma", default="scale", help="Of the kernel: scale, auto or a number.")
@IMPORT
@solving_option("--repeats", type=int, default=1, show_default=True, help="Runs with the seeds 0, 1, ...")
@solving_option("--max-time", type=float, default=10.0, show_default=True, help="Seconds for each run.")
@solving_option("--tol", type=float, default=1e-6, show_default=True, help="Relative gap that ends a run.")
def command(
    *,
    data: str,
    report: str,
    test: str | None,
    label: str | None,
    scale: float,
    loss: str | None,
    gamma: str,
    max_time: float,
    **options: Any,
) -> int:
    """Run solvers side by side and write a report with figures."""
    from saddlesvm import lab
    from saddlesvm.cli.models import task_of_loss
    from saddlesvm.data import read
    from saddlesvm.data.blocks import check_names
    from saddlesvm.estimators.preparation import labels_of
    from saddlesvm.runtime.allowed import names_in
    from saddlesvm.runtime.shown import shown

    losses = names_in(loss) if loss else None
    task: Any = task_of_loss(losses[0]) if losses else "classification"
    how: dict[str, Any] = {"label": label, "scale": scale, "task": task}
    table = read(data, **how)
    held_out = None
    if test is not None:
        zero_based: Any = "auto" if table.zero_based is None else table.zero_based
        tested = read(test, **how, n_features=table.n_features, zero_based=zero_based)
        check_names(tested.source, tested.feature_names, table.source, table.feature_names)
        held_out = (tested.X, labels_of(tested))
    found = lab.compare(
        table.X,
        labels_of(table),
        losses=losses,
        test=held_out,
        budget=max_time,
        task=task,
        name=os.path.basename(data),
        image_shape=image_shape(table),
        progress=True,
        command=command_line(),
        gamma=gamma if gamma in ("scale", "auto") else float(gamma),
        **options,
    )
    path = found.report(report)
    if found.interrupted:
        print("interrupted: the report has the finished runs")
    print(*map(shown, (*found.verdict(), *found.notes, f"report: {path}")), sep="\n")
    return INTERRUPTED if found.interrupted else OK


def image_shape(table: Table) -> tuple[int, int] | None:
    """Height and width of the square images of an idx file."""
    side = round(table.n_features**0.5)
    return (side, side) if table.format == "idx" and side * side == table.n_features else None
