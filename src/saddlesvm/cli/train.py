"""``saddlesvm train``: read, fit, test, save, and print how good the model is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.options import (
    JSON,
    LAMBDA,
    MODEL_OPTIONS,
    TRAINING_OPTIONS,
    keep_given,
    take_reading,
)
from saddlesvm.cli.values import OUTPUT, REPORT, STRENGTH
from saddlesvm.runtime.option_names import KERNEL_NAMES

if TYPE_CHECKING:
    import numpy as np

    from saddlesvm.cli.rows import Rows
    from saddlesvm.cli.show import Facts

# Kernels of rows of features.
KERNELS = tuple(name for name in KERNEL_NAMES if name != "precomputed")
# The last line shows the first of these measures that was taken, on the first of these parts of
# the rows: the part that says most about the model comes first.
PARTS = ("test", "validation", "train")
MEASURES = ("accuracy", "r2", "outside_share")
# Seconds: a report counts the labels that are proven only if the fit took no longer, because the
# proofs take up to some times as long as the fit (guessed).
QUICK_FIT = 5.0


@declare(
    "saddlesvm train heart --C auto --validation 0.2 --report heart.html",
    "saddlesvm train people.csv --label bought --model people.model",
)
@TRAINING_OPTIONS
@click.option("--C", "C", type=STRENGTH, help="The price of errors; auto chooses it.")
@LAMBDA
@click.option(
    "--kernel",
    type=click.Choice(KERNELS),
    metavar="NAME",
    help="A kernel machine: rbf, poly, sigmoid or linear.",
)
@click.option(
    "--tol", type=float, metavar="GAP", help="Relative gap to prove; 1e-4 for linear models."
)
@MODEL_OPTIONS
@click.option("--model", "model_path", type=OUTPUT, help="Write the model here.")
@click.option("--report", type=REPORT, help="Write an HTML report with charts here.")
@JSON
def command(
    *,
    data: str,
    test: str | None,
    validation: float | None,
    standardize: bool,
    model_path: str | None,
    report: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Train a model, and prove how far it is from the optimum."""
    from saddlesvm.cli.facts import describe_fit
    from saddlesvm.cli.models import choose_entry, make_estimator
    from saddlesvm.cli.rows import labels_to_fit, read_rows, save_model
    from saddlesvm.cli.show import show
    from saddlesvm.estimators.columns import import_skops
    from saddlesvm.fit.outcome import Outcome

    # Check all options before the data are read.
    began = time.perf_counter()
    reading = take_reading(given)
    asked = keep_given(given)
    entry = choose_entry(asked)
    # Say before the fit that the model cannot be saved.
    if standardize and model_path is not None:
        import_skops()
    rows = read_rows(
        data,
        reading,
        entry,
        test=test,
        validation=validation,
        standardize=standardize,
        seed=asked["seed"],
        quiet=as_json,
    )
    y = labels_to_fit(rows.train, entry)
    model = make_estimator(asked, entry, y, quiet=as_json)

    model.fit(rows.train.X, y, rows.train.sample_weight)
    facts = rows.facts
    facts["fit"] = describe_fit(model, rows.train)
    quality = measure_quality(model, rows, y)
    facts["quality"] = quality
    if entry.linear and not standardize:
        facts |= explain_hard_fit(model, rows)

    # The files first, so that what is printed can name them.
    if model_path is not None:
        save_model(model, rows, model_path)
    if report is not None:
        write_report(model, facts, report, rows)
    written = {"model": model_path, "report": report}
    if any(written.values()):
        facts["written"] = written
    show(facts, as_json)
    if not as_json:
        print(f"\n{summarize(quality, time.perf_counter() - began)}")
    return OK if model.outcome_ is Outcome.CERTIFIED else NOT_CERTIFIED


def measure_quality(model: Any, rows: Rows, y: np.ndarray) -> dict[str, Any]:
    """Return the certificate of a fitted model, and its errors on each part of the rows."""
    from saddlesvm.cli.facts import describe_quality, describe_worth

    facts = describe_quality(model)
    facts |= describe_worth(model, model.predict(rows.train.X), y, "train")
    for name, part in (("validation", rows.validation), ("test", rows.test)):
        if part is not None:
            facts |= describe_worth(model, model.predict(part.X), part.y, name)
    return facts


def explain_hard_fit(model: Any, rows: Rows) -> Facts:
    """Return a hint about the scales of the features if a linear fit was hard."""
    from saddlesvm.estimators.scale_hint import scale_hint
    from saddlesvm.fit.outcome import Outcome
    from saddlesvm.solvers.auto import FINISH

    # A fit that needed Newton's method to finish was hard, even if it ended well.
    needed_newton = FINISH in getattr(model, "phases_", {})
    if model.outcome_ is Outcome.CERTIFIED and not needed_newton:
        return {}
    hints = scale_hint(rows.train.X)
    if not hints:
        return {}
    return {"what_made_it_hard": {"found": hints}}


def write_report(model: Any, facts: Facts, path: str, rows: Rows) -> None:
    """Write what the command prints, with charts, as an HTML file."""
    from saddlesvm.cli.console import command_line
    from saddlesvm.cli.show import write_name, write_value
    from saddlesvm.lab.reports import model_report

    shown = facts | {"quality": prove_labels(model, rows) | facts["quality"]}
    # The report has the words that the command prints.
    groups = {}
    for title, lines in shown.items():
        groups[write_name(title)] = [
            (write_name(name), write_value(name, value))
            for name, value in lines.items()
            if value is not None
        ]
    source = str(facts["data"]["source"])
    names = rows.preparation.feature_names() or rows.train.feature_names or None
    model_report(model, source, groups, command_line(), names).write(path)


def prove_labels(model: Any, rows: Rows) -> dict[str, Any]:
    """Return the number of proven labels of the test or training rows, if that is quick."""
    if not hasattr(model, "is_proven") or model.seconds_solving_ > QUICK_FIT:
        return {}
    name = "train"
    table = rows.train
    if rows.test is not None:
        name = "test"
        table = rows.test
    try:
        return {f"{name}_labels_proven": count_proven(model.is_proven(table.X))}
    except ValueError:  # rows in files
        return {}


def count_proven(is_proven: np.ndarray) -> dict[str, int]:
    """Return how many labels are proven, and how many there are."""
    return {"proven": int(is_proven.sum()), "of": int(is_proven.size)}


def summarize(quality: dict[str, Any], seconds: float) -> str:
    """Return the last line of ``train``: the model's errors, its gap, and the time."""
    from saddlesvm.cli.show import write_name, write_value

    names = [f"{part}_{measure}" for part in PARTS for measure in MEASURES]
    name = next(candidate for candidate in names if candidate in quality)
    outcome = quality["outcome"].replace("_", " ")
    return (
        f"{write_name(name)} {write_value(name, quality[name])}, "
        f"relative gap {quality['relative_gap']:.2g} ({outcome}), {seconds:.2f} seconds"
    )
