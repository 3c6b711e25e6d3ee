"""What a fit leaves behind: what is said of it, the files that are written, and the exit code."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.console import command_line
from saddlesvm.cli.facts import describe_fit as describe_fit, describe_quality, describe_worth
from saddlesvm.cli.rows import Rows
from saddlesvm.cli.show import Facts, as_text, in_words, show
from saddlesvm.data import Table
from saddlesvm.estimators.linear_classifier import LinearClassifier
from saddlesvm.estimators.preparation import Preparation
from saddlesvm.estimators.register import Entry
from saddlesvm.estimators.scale_hint import scale_hint
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome, Trace
from saddlesvm.models import persistence
from saddlesvm.solvers.automatic.auto import FINISH

PARTS = ("test", "validation", "train")  # of the rows, the one that says most first
MEASURES = ("accuracy", "r2", "outside_share")
QUICK = 5.0  # seconds of a fit, up to which a report has proofs: one takes up to some times as long


def check_until_proven(entry: Entry, test: str | None, until_proven: str, others: dict[str, Any]) -> None:
    """Raise ValueError for options that do not go with ``--until-proven``."""
    if not issubclass(entry.kind, LinearClassifier):
        raise ValueError(f"--until-proven is for linear classifiers; {entry.name} proves no labels")
    for name in ("cv", "dask", "probability"):
        if others.get(name):
            raise ValueError(f"--until-proven does not work with --{name}: leave one of the two out")
    if test not in (None, until_proven):
        raise ValueError("--until-proven tests the model on its data, too: leave --test out, or give the same data")


def check_liblinear(model: Any, path: str | None, entry: Entry, y: np.ndarray, has_words: bool = False) -> None:
    """Raise ValueError, before the fit, for a model that a LIBLINEAR file cannot hold."""
    if path is None:
        return
    if has_words:
        raise ValueError("--liblinear does not work with columns of words, texts or dates: the file holds no encoding")
    if not entry.linear:
        raise ValueError(f"--liblinear is for linear models; this is a {entry.name}")
    persistence.liblinear_kind(model, path, np.unique(y) if entry.task == "classification" else None)


def judge(model: Any, rows: Rows, y: np.ndarray, until_proven: bool, standardized: bool) -> dict[str, Any]:
    """The certificate of a fitted model, and its errors on each part of the rows."""
    facts: dict[str, Any] = {}
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
    rows: Rows | None = None,
    *,
    preparation: Any = None,
    notes: dict[str, Any] | None = None,
) -> int:
    """Write the files that the options ask for, show the facts; the exit code.

    Parameters
    ----------
    model : estimator
        Fitted.
    facts : dict
    outputs : dict
        The options of the output.
    began : float
        When the command began.
    rows : Rows or None
        None if the rows never were here; `preparation` and `notes` are then given.
    """
    if rows is not None:
        preparation = rows.preparation
        notes = rows.notes()
        rows.name_features(model)
    written = {}
    if outputs["model_path"]:
        persistence.save(preparation.behind(model), outputs["model_path"], notes)
        written["model"] = outputs["model_path"]
    if outputs["liblinear"]:
        persistence.save_liblinear(model, outputs["liblinear"])
        written["liblinear_model"] = outputs["liblinear"]
    if outputs["report"]:
        write_report(model, facts, outputs["report"], preparation, rows)
        written["report"] = outputs["report"]
    if written:
        facts["written"] = written
    show(facts, outputs["as_json"])
    if not outputs["as_json"]:
        print(f"\n{sum_up(facts['quality'], time.perf_counter() - began)}")
    return OK if model.outcome_ is Outcome.CERTIFIED else NOT_CERTIFIED


def sum_up(quality: dict[str, Any], seconds: float) -> str:
    """The last line of ``train``: how right the model is, how near the optimum, and how long it took."""
    measures = [f"{part}_{what}" for part in PARTS for what in MEASURES]
    name = next(one for one in measures if one in quality)
    parts = [f"{in_words(name)} {as_text(name, quality[name])}"]
    outcome = quality["outcome"].replace("_", " ")
    parts += [f"relative gap {quality['relative_gap']:.2g} ({outcome})", f"{seconds:.2f} seconds"]
    return ", ".join(parts)


def count_proven(is_proven: np.ndarray) -> dict[str, int]:
    """How many labels are proven."""
    return {"proven": int(is_proven.sum()), "of": int(is_proven.size)}


def find_what_was_hard(model: Any, table: Table, entry: Entry, scaled: bool) -> Facts:
    """What the scales of the features say of a fit that was hard, unless they were scaled before."""
    is_hard = model.outcome_ is not Outcome.CERTIFIED or FINISH in getattr(model, "phases_", {})
    if not (entry.linear and is_hard):
        return {}
    found = [] if scaled else scale_hint(table.X)
    return {"what_made_it_hard": {"found": found}} if found else {}


def write_report(model: Any, facts: Facts, path: str, preparation: Preparation, rows: Rows | None) -> None:
    """Write what the command says, with pictures, as one HTML file."""
    from saddlesvm.lab.reports import model_report

    trace = None
    told = dict(facts)
    if rows is not None:
        told["quality"] = prove_labels(model, rows) | told["quality"]
        trace = trace_each_epoch(model, rows)
    groups = {
        in_words(title): [(in_words(name), as_text(name, value)) for name, value in lines.items() if value is not None]
        for title, lines in told.items()
    }
    source = str(facts["data"].get("source", "stores"))
    model_report(model, source, groups, command_line(), preparation.feature_names(), trace).write(path)


def prove_labels(model: Any, rows: Rows) -> dict[str, Any]:
    """The number of proven labels of the test rows, or of the training rows; nothing if that takes long."""
    name, table = ("train", rows.train) if rows.test is None else ("test", rows.test)
    if not isinstance(model, LinearClassifier) or getattr(model, "seconds_solving_", np.inf) > QUICK:
        return {}
    try:
        return {f"{name}_labels_proven": count_proven(model.is_proven(table.X))}
    except ValueError:  # rows in files, calibrated labels
        return {}


class AfterEachEpoch:
    """A callback that wants a certificate after each epoch, and does nothing with it."""

    every = 1.0

    def __call__(self, record: Any) -> None:
        """Let the fit go on."""


def trace_each_epoch(model: Any, rows: Rows) -> Trace | None:
    """The trace of a quick fit with a certificate after each epoch, to draw a fit that needed one certificate only."""
    from saddlesvm.lab.reports import can_be_drawn

    options = model.get_params()
    is_slow = model.seconds_solving_ > QUICK or hasattr(model, "rounds_")  # rounds are of a cluster
    if can_be_drawn(model.trace_) or "callbacks" not in options or is_slow:
        return None
    C = getattr(model, "C_", options["C"])
    again = clone(model).set_params(callbacks=[AfterEachEpoch()], C=C, checkpoint=None, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)  # the model's own outcome has been told
        trace: Trace = again.fit(rows.train.X, rows.train.y, rows.train.sample_weight).trace_
    return trace
