"""``saddlesvm compare``: run solvers side by side, and write a report with charts."""

from __future__ import annotations

import os
from typing import Any

import click

from saddlesvm.cli import INTERRUPTED, OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.console import command_line
from saddlesvm.cli.options import DATA_ARGUMENT, IMPORT, LABEL
from saddlesvm.cli.values import DATA, NUMBERS, REPORT
from saddlesvm.runtime.option_names import INTERCEPTS


@declare(
    "saddlesvm compare banknote --report banknote.html",
    "saddlesvm compare data.svm --solvers dcd,sdca --with sklearn --C 0.1,1 --report d.html",
)
@DATA_ARGUMENT
@click.option("--report", type=REPORT, required=True, help="The HTML report to write.")
@click.option("--test", type=DATA, help="Data to measure the test error on.")
@LABEL
@click.option(
    "--positive",
    metavar="LABEL",
    help="The class that is compared with the rest, if there are several.",
)
@click.option(
    "--solvers",
    metavar="NAMES",
    default="auto,dcd,sdca,pegasos",
    show_default=True,
    help="Solvers, with options: dcd,pegasos:batch_size=64,output=average.",
)
@click.option(
    "--with",
    "peers",
    default="",
    metavar="PEERS",
    help="Solvers of scikit-learn: sklearn (LinearSVC, LinearSVR), sgd, or all.",
)
@click.option("--C", "C", type=NUMBERS, help="One or several, with commas; 1 by default.")
@click.option("--lambda", "lam", type=NUMBERS, help="One or several, in place of C.")
@click.option("--loss", metavar="LOSSES", help="One or several, with commas; hinge by default.")
@click.option(
    "--intercept",
    type=click.Choice(INTERCEPTS),
    metavar="KIND",
    default="regularized",
    help="regularized (default), free or none.",
)
@IMPORT
@click.option(
    "--repeats",
    type=int,
    default=1,
    show_default=True,
    help="Number of runs, with the seeds 0, 1, ...",
)
@click.option(
    "--max-time",
    type=float,
    metavar="SECONDS",
    default=10.0,
    show_default=True,
    help="Seconds for each run.",
)
@click.option(
    "--tol",
    type=float,
    metavar="GAP",
    default=1e-6,
    show_default=True,
    help="Relative gap that ends a run.",
)
def command(
    *,
    data: str,
    report: str,
    test: str | None,
    label: str | None,
    loss: str | None,
    max_time: float,
    **options: Any,
) -> int:
    """Run solvers side by side and write a report with charts."""
    from saddlesvm import lab
    from saddlesvm.cli.models import task_of_loss
    from saddlesvm.data import read
    from saddlesvm.data.column_positions import check_names
    from saddlesvm.estimators.training_data import labels_of
    from saddlesvm.runtime.allowed import split_names
    from saddlesvm.runtime.safe_text import escape_hidden

    # The first loss tells whether the labels are classes or targets.
    losses = split_names(loss) if loss else None
    task: Any = task_of_loss(losses[0]) if losses else "classification"
    how: dict[str, Any] = {"label": label}
    table = read(data, **how)
    held_out = None
    if test is not None:
        # The test rows have the features of the training rows, and the same numbers for them.
        zero_based: Any = "auto" if table.zero_based is None else table.zero_based
        tested = read(test, **how, n_features=table.n_features, zero_based=zero_based)
        check_names(tested.source, tested.feature_names, table.source, table.feature_names)
        held_out = (tested.X, labels_of(tested))
    comparison = lab.compare(
        table.X,
        labels_of(table),
        losses=losses,
        test=held_out,
        budget=max_time,
        task=task,
        name=os.path.basename(data),
        progress=True,
        command=command_line(),
        **options,
    )
    path = comparison.report(report)
    if comparison.interrupted:
        print("interrupted: the report has the finished runs")
    for line in (*comparison.verdict(), *comparison.notes, f"report: {path}"):
        print(escape_hidden(line))
    return INTERRUPTED if comparison.interrupted else OK
