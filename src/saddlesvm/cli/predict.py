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
from saddlesvm.cli.kernel_values import values_for, width_read
from saddlesvm.cli.missing import Filling
from saddlesvm.cli.proven import WORDS, prove_from
from saddlesvm.cli.reading import Reading, check_features, read_like
from saddlesvm.cli.standardized import applied
from saddlesvm.data import DataError, atomic_write
from saddlesvm.data.table import shorten
from saddlesvm.estimators import persistence, register
from saddlesvm.estimators.scaling import parted

OK = 0
PREDICTED_ROWS = 100_000  # rows predicted at a time, because text takes many times the memory of numbers


def predict(options: argparse.Namespace) -> int:
    """``saddlesvm predict``: a line a row, to standard output or a file."""
    model, before = parted(persistence.load(options.model))
    filling = Filling.of_model(model.notes_)
    table = read_like(before, model, options, options.data, Reading(width_read(model), None, filling.keeps))
    table = values_for(model, table)
    check_features(model, options.model, table)
    if options.probabilities and not hasattr(model, "predict_proba"):
        raise DataError(
            f"{options.model}: the model has no probabilities: train it with --probability yes, or with --loss logistic"
        )
    table = applied(before, filling.applied(table, every_row=True))
    kept = []
    if options.proven:
        prove_from(options, model, before)
    with atomic_write(options.output) if options.output else contextlib.nullcontext() as file:
        for start in range(0, table.n_rows, PREDICTED_ROWS):
            X = table.X[start : start + PREDICTED_ROWS]
            predicted = model.predict(X)
            kept.append(predicted.toarray() if sparse.issparse(predicted) else predicted)
            terminal = file is None and sys.stdout.isatty()
            beside = beside_of(model, X, options)
            proven = np.atleast_2d(WORDS[model.is_proven(X).astype(int)].T) if options.proven else ()
            text = predicted_lines(model, kept[-1], beside, terminal, proven)
            if options.probabilities and start == 0:
                names = (safe_label(str(label), terminal) for label in model.classes_.tolist())
                text = f"labels {' '.join(names)}\n{text}"
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


def beside_of(model: Any, X: Any, options: argparse.Namespace) -> np.ndarray | None:
    """The scores or probabilities that are asked for, a row of them for each column to print."""
    if options.probabilities:
        return np.asarray(model.predict_proba(X)).T
    if options.scores and hasattr(model, "decision_function"):
        return np.atleast_2d(model.decision_function(X).T)
    return None


def predicted_lines(
    model: Any, predicted: np.ndarray, beside: np.ndarray | None, terminal: bool, words: Any = ()
) -> str:
    """One line per row: the prediction, and what stands beside it, numbers and then words, each of shape (k, rows)."""
    columns = [*predicted.astype(str).T] if predicted.ndim > 1 else [predicted.astype(str)]
    if predicted.dtype.kind == "U":
        labels = {label: safe_label(label, terminal) for label in model.classes_.tolist()}
        columns = [np.array([labels[label] for label in predicted.tolist()])]
    if beside is not None:
        columns += [np.char.mod("%.9g", column) for column in beside]
    columns += [*words]
    return "".join(" ".join(line) + "\n" for line in zip(*columns, strict=True))
