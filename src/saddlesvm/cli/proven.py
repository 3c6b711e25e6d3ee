"""Proofs of labels on the command line: ``train --until-proven`` and ``predict --proven``."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from saddlesvm.cli.kernel_values import width_read
from saddlesvm.cli.missing import Filling
from saddlesvm.cli.reading import Reading, check_features, labels_of, read_like
from saddlesvm.cli.standardized import applied
from saddlesvm.data import DataError, Table
from saddlesvm.estimators.proven import ProvesLabels
from saddlesvm.estimators.register import Entry

WORDS = np.array(["open", "proven"])
QUICK = 5.0  # seconds of a fit, up to which a report has proofs: one takes up to some times as long


def check_until_proven(options: argparse.Namespace, entry: Entry) -> None:
    """Take the rows of --until-proven for the test data.

    Raises
    ------
    ValueError
        Other options do not go with it.
    """
    if options.until_proven is None:
        return
    if not issubclass(entry.kind, ProvesLabels):
        raise ValueError(f"--until-proven is for linear classifiers; {entry.name} proves no labels")
    for name in ("cv", "dask", "probability"):
        if getattr(options, name):
            raise ValueError(f"--until-proven does not go with --{name}: leave one of the two out")
    if options.test not in (None, options.until_proven):
        raise ValueError("--until-proven tests the model on its data, too: leave --test out, or give the same data")
    options.test = options.until_proven


def settled(model: Any, test: Table) -> dict[str, Any]:
    """How many labels of the test rows are proven, once the model has worked on for them."""
    proven = model.settle(test.X)
    return {"test labels proven": f"{int(proven.sum()):,} of {proven.size:,}"}


def proven_in_report(model: Any, train: Table, test: Table | None) -> dict[str, Any]:
    """How many labels of the test rows, or else the training rows, are proven; nothing where a proof would take long,
    or the model has none."""
    name, rows = ("train", train) if test is None else ("test", test)
    if not isinstance(model, ProvesLabels) or getattr(model, "seconds_solving_", np.inf) > QUICK:
        return {}
    try:
        proven = model.is_proven(rows.X)
    except ValueError:  # rows in files, calibrated labels
        return {}
    return {f"{name} labels proven": f"{int(proven.sum()):,} of {proven.size:,}"}


def prove_from(options: argparse.Namespace, model: Any, before: Any) -> None:
    """Prove a loaded model's answers from the file that it was trained on, ``--proven``.

    Raises
    ------
    DataError
        The model proves no labels.
    """
    if not isinstance(model, ProvesLabels):
        raise DataError(f"{options.model}: --proven is for linear classifiers; this is a {type(model).__name__}")
    plain: Any = model
    filling = Filling.of_model(plain.notes_)
    table = read_like(before, plain, options, options.proven, Reading(width_read(plain), None, filling.keeps))
    check_features(plain, options.model, table)
    table = applied(before, filling.applied(table))
    model.prove(table.X, labels_of(table), table.sample_weight)
