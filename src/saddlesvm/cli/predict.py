"""``saddlesvm predict``: a model's predictions for the rows of a file, a line a row."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.cli.console import safe_label, write_output
from saddlesvm.cli.facts_of import worth_of
from saddlesvm.cli.missing import Filling
from saddlesvm.cli.reading import check_features, read_table
from saddlesvm.data import atomic_write
from saddlesvm.data.table import shorten
from saddlesvm.estimators import persistence, register

OK = 0
PREDICTED_ROWS = 100_000  # rows predicted at a time, because text takes many times the memory of numbers


def predict(options: argparse.Namespace) -> int:
    """``saddlesvm predict``: a line a row, to standard output or a file."""
    model = persistence.load(options.model)
    filling = Filling.of_model(model.notes_)
    zero_based = model.notes_.get("zero_based")
    table = read_table(options, options.data, model.n_features_in_, None, zero_based, filling.keeps)
    check_features(model, options.model, table)
    table = filling.applied(table, every_row=True)
    kept = []
    with atomic_write(options.output) if options.output else contextlib.nullcontext() as file:
        for start in range(0, table.n_rows, PREDICTED_ROWS):
            X = table.X[start : start + PREDICTED_ROWS]
            predicted = model.predict(X)
            kept.append(predicted.toarray() if sparse.issparse(predicted) else predicted)
            terminal = file is None and sys.stdout.isatty()
            text = predicted_lines(model, X, kept[-1], options.scores, terminal)
            file.write(text.encode()) if file else write_output(text)
    if table.y is not None and kept[0].ndim == 1:
        tell_unknown(model, table.y)
        for name, score in worth_of(model, np.concatenate(kept), table.y, "data").items():
            print(f"{name.removeprefix('data ')}: {score:.6g}", file=sys.stderr)
    return OK


def tell_unknown(model: Any, y: np.ndarray) -> None:
    """Say on standard error which labels of the data the model does not have among its classes."""
    entry = register.entry_of(model)
    if entry is None or entry.task != "classification":
        return
    known = model.classes_.tolist()
    unknown = [label for label in np.unique(y).tolist() if label not in known]
    if unknown:
        held, classes = shorten(unknown, 5), shorten(known, 5)
        print(f"the model does not know these labels of the data: {held}; its classes are {classes}", file=sys.stderr)


def predicted_lines(model: Any, X: Any, predicted: np.ndarray, scores: bool, terminal: bool) -> str:
    """One line per row: the prediction, and its scores if asked for."""
    columns = [*predicted.astype(str).T] if predicted.ndim > 1 else [predicted.astype(str)]
    if predicted.dtype.kind == "U":
        labels = {label: safe_label(label, terminal) for label in model.classes_.tolist()}
        columns = [np.array([labels[label] for label in predicted.tolist()])]
    if scores and hasattr(model, "decision_function"):
        columns += [np.char.mod("%.9g", column) for column in np.atleast_2d(model.decision_function(X).T)]
    return "".join(" ".join(line) + "\n" for line in zip(*columns, strict=True))
