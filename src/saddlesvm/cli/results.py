"""What ``train`` does after a fit: it measures the model, writes files, and prints the facts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.console import command_line
from saddlesvm.cli.facts import describe_quality, describe_worth
from saddlesvm.cli.rows import Rows
from saddlesvm.cli.show import Facts, show, write_name, write_value
from saddlesvm.data import Table
from saddlesvm.estimators.linear import LinearSVC
from saddlesvm.estimators.register import Entry
from saddlesvm.estimators.scale_hint import scale_hint
from saddlesvm.fit.outcome import Outcome
from saddlesvm.models import liblinear_models, persistence
from saddlesvm.solvers.auto import FINISH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from saddlesvm.estimators.base import Estimator

PARTS = ("test", "validation", "train")  # of the rows; the first one says most about the model
MEASURES = ("accuracy", "r2", "outside_share")
# Seconds of a fit up to which a report has proven labels and a curve: they take up to some times
# as long as the fit (guessed).
QUICK_FIT = 5.0


def check_until_proven(
    entry: Entry, test: str | None, until_proven: str, others: Mapping[str, object]
) -> None:
    """Raise ValueError for options that do not work with ``--until-proven``."""
    if not issubclass(entry.kind, LinearSVC):
        raise ValueError(f"--until-proven is for linear classifiers; {entry.name} proves no labels")
    for name in ("cv", "probability"):
        if others.get(name):
            raise ValueError(
                f"--until-proven does not work with --{name}: leave one of the two out"
            )
    if test not in (None, until_proven):
        raise ValueError(
            "--until-proven tests the model on its data, too: leave --test out, or give it the "
            "same data"
        )


def check_liblinear(
    model: Any, path: str | None, entry: Entry, y: np.ndarray, has_words: bool = False
) -> None:
    """Raise ValueError, before the fit, if a LIBLINEAR file cannot hold the model."""
    if path is None:
        return
    if has_words:
        raise ValueError(
            "--liblinear does not work with columns of words, texts or dates: its file does not "
            "hold how they become numbers; save the model with --model"
        )
    if not entry.linear:
        raise ValueError(
            f"--liblinear is for linear models; this is a {entry.name}: save it with --model"
        )
    classes = np.unique(y) if entry.task == "classification" else None
    liblinear_models.solver_type(model, path, classes)


def measure_quality(
    model: Estimator, rows: Rows, y: np.ndarray, until_proven: bool, standardized: bool
) -> dict[str, object]:
    """Return the certificate of a fitted model, and its errors on each part of the rows."""
    facts: dict[str, Any] = {}
    # To prove labels may train the model further, so its facts are read afterwards.
    if until_proven and rows.test is not None:
        facts["test_labels_proven"] = count_proven(model.settle(rows.test.X))
    facts |= describe_quality(model, standardized)
    facts |= describe_worth(model, model.predict(rows.train.X), y, "train")
    for name, part in (("validation", rows.validation), ("test", rows.test)):
        if part is not None:
            facts |= describe_worth(model, model.predict(part.X), part.y, name)
    return facts


def finish(
    model: Any,
    facts: Facts,
    outputs: dict[str, Any],
    began: float,
    rows: Rows,
) -> int:
    """Write the files that the options ask for, print the facts, and return the exit code.

    Parameters
    ----------
    model : estimator
        Fitted.
    facts : dict
    outputs : dict
        The options of the output.
    began : float
        The time when the command began.
    rows : Rows
    """
    rows.name_features(model)
    # The files first, so that what is printed can name them.
    written = {}
    if outputs["model_path"]:
        persistence.save(rows.preparation.prepend_to(model), outputs["model_path"], rows.notes())
        written["model"] = outputs["model_path"]
    if outputs["liblinear"]:
        liblinear_models.save_liblinear(model, outputs["liblinear"])
        written["liblinear_model"] = outputs["liblinear"]
    if outputs["report"]:
        write_report(model, facts, outputs["report"], rows)
        written["report"] = outputs["report"]
    if written:
        facts["written"] = written
    show(facts, outputs["as_json"])
    if not outputs["as_json"]:
        print(f"\n{summarize(facts['quality'], time.perf_counter() - began)}")
    return OK if model.outcome_ is Outcome.CERTIFIED else NOT_CERTIFIED


def summarize(quality: dict[str, Any], seconds: float) -> str:
    """Return the last line of ``train``: the model's errors, its gap, and the time."""
    measures = [f"{part}_{measure}" for part in PARTS for measure in MEASURES]
    name = next(measure for measure in measures if measure in quality)
    outcome = quality["outcome"].replace("_", " ")
    return ", ".join(
        [
            f"{write_name(name)} {write_value(name, quality[name])}",
            f"relative gap {quality['relative_gap']:.2g} ({outcome})",
            f"{seconds:.2f} seconds",
        ]
    )


def count_proven(is_proven: np.ndarray) -> dict[str, int]:
    """Return how many labels are proven, and how many there are."""
    return {"proven": int(is_proven.sum()), "of": int(is_proven.size)}


def explain_hard_fit(model: Estimator, table: Table, entry: Entry, standardized: bool) -> Facts:
    """Return a hint about the scales of the features if a linear fit was hard."""
    if standardized or not entry.linear:
        return {}
    # A fit that needed Newton's method to finish was hard, even if it ended well.
    needed_newton = FINISH in getattr(model, "phases_", {})
    if model.outcome_ is Outcome.CERTIFIED and not needed_newton:
        return {}
    hints = scale_hint(table.X)
    return {"what_made_it_hard": {"found": hints}} if hints else {}


def write_report(model: Estimator, facts: Facts, path: str, rows: Rows) -> None:
    """Write what the command prints, with charts, as an HTML file."""
    from saddlesvm.lab.reports import model_report

    shown = dict(facts)
    shown["quality"] = prove_labels(model, rows) | shown["quality"]
    # The report has the words that the command prints.
    groups = {}
    for title, lines in shown.items():
        groups[write_name(title)] = [
            (write_name(name), write_value(name, value))
            for name, value in lines.items()
            if value is not None
        ]
    source = str(facts["data"]["source"])
    names = rows.preparation.feature_names()
    model_report(model, source, groups, command_line(), names).write(path)


def prove_labels(model: Estimator, rows: Rows) -> dict[str, Any]:
    """Return the number of proven labels of the test or training rows, if that is quick."""
    is_quick = getattr(model, "seconds_solving_", np.inf) <= QUICK_FIT
    if not isinstance(model, LinearSVC) or not is_quick:
        return {}
    name = "train"
    table = rows.train
    if rows.test is not None:
        name = "test"
        table = rows.test
    try:
        return {f"{name}_labels_proven": count_proven(model.is_proven(table.X))}
    except ValueError:  # rows in files, or calibrated labels
        return {}
