"""The uses of a saved model: ``saddlesvm predict``, ``saddlesvm certify`` and ``saddlesvm info``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.console import safe_label, write_output
from saddlesvm.cli.convert import store_info
from saddlesvm.cli.display import Facts, described, line_of, model_facts, show, worth, worth_of
from saddlesvm.cli.reading import labels_of, read_prepared, read_table
from saddlesvm.cli.tabular import encoder_columns, strongest_words
from saddlesvm.data import DataError, atomic_write, inputs
from saddlesvm.data.libsvm_model import is_libsvm_model
from saddlesvm.data.models import is_model
from saddlesvm.data.store import is_store
from saddlesvm.data.table import shorten
from saddlesvm.estimators import persistence, register
from saddlesvm.estimators.certify import certify_model, kernel_certificates
from saddlesvm.estimators.diagnosis import diagnose
from saddlesvm.estimators.persistence import parted
from saddlesvm.estimators.proven import ProvesLabels
from saddlesvm.estimators.table import TableEncoder
from saddlesvm.problem.certificate import Certificate
from saddlesvm.rows import layouts as rows

PREDICTED_ROWS = 100_000  # rows predicted at a time, because text takes many times the memory of numbers
WORDS = np.array(["open", "proven"])


def certify(options: argparse.Namespace) -> int:
    """``saddlesvm certify``: a bound for a saved model, or for one that LIBLINEAR wrote."""
    model, before = parted(persistence.load(options.model))
    entry = register.entry_of(model)
    assert entry is not None
    strength = {"C": options.C, "lam": options.lam}
    if not entry.linear and (options.refine or any(one is not None for one in strength.values())):
        raise DataError(f"{options.model}: --refine, --C and --lambda are for linear models")
    task = "regression" if entry.task == "regression" else None
    table = read_prepared(options, model, before, options.data, task)
    y = labels_of(table) if entry.task != "novelty" else None
    certificates = (
        certify_model(model, table.X, y, sample_weight=table.sample_weight, refine=options.refine, **strength)
        if entry.linear
        else kernel_certificates(model, table.X, y, sample_weight=table.sample_weight)
    )
    total = Certificate.total(certificates)
    facts: Facts = {"read": described(table), "certified": posed(model, strength), "quality": worth(model, total)}
    facts["quality"].pop("outcome")
    facts["quality"].pop("advice")
    if len(certificates) > 1:
        each = "class" if getattr(model, "multi_class", "ovo") == "ovr" else "pair"
        facts["quality"][f"largest relative gap of a {each}"] = max(one.relative_gap for one in certificates)
    show(facts, options.json)
    return NOT_CERTIFIED if options.tol is not None and total.relative_gap > options.tol else OK


def posed(model: Any, strength: dict[str, float | None]) -> dict[str, Any]:
    """The problem of which a model is certified to be near the optimum; `strength` has the C or lambda given."""
    given = {name: one for name, one in strength.items() if one is not None}
    assumed = not given and str(model.notes_.get("written by", "")).startswith("LIBLINEAR")
    if given:
        model = clone(model).set_params(**{"C": 1.0, "lam": None} | given)
    return {
        "problem": line_of(model),
        "note": "files of LIBLINEAR do not hold C: C = 1 is assumed; give --C or --lambda" if assumed else None,
    }


def info(options: argparse.Namespace) -> int:
    """``saddlesvm info``: describe a model, or a data set and what could make it hard."""
    if os.path.isfile(options.source) and looks_like_model(options.source):
        model, before = parted(persistence.load(options.source))
        of_model = model_facts(model, options.source)
        if isinstance(before, TableEncoder):
            of_model["columns"] = {"columns": encoder_columns(before)}
            of_model["strongest"] = strongest_words(model, before)
        elif before is not None:
            of_model["model"]["features"] = f"{model.n_features_in_}, standardized first"
        show(of_model, options.json)
        return OK
    if is_store(options.source):
        return store_info(options)
    if options.verify:
        raise ValueError(f"--verify checks a store; {options.source} is none")
    table = read_table(options, options.source)
    facts: Facts = {"read": described(table)}
    if table.encoder is not None:
        facts["read"]["columns"] = table.columns
        show(facts, options.json)
        return OK
    norms = np.sqrt(inputs.finite_norms(rows.as_rows(table.X)))
    facts["rows"] = {
        "smallest norm": float(norms.min()),
        "median norm": float(np.median(norms)),
        "largest norm": float(norms.max()),
        "values a row": table.n_nonzero / table.n_rows,
    }
    found = diagnose(table.X)
    facts["diagnosis"] = {"found": [str(one) for one in found] or "nothing that would make a fit hard"}
    show(facts, options.json)
    return OK


def looks_like_model(path: str) -> bool:
    """Whether a file is a model of ours, of LIBSVM or of LIBLINEAR."""
    if is_model(path) or is_libsvm_model(path):
        return True
    with open(path, "rb") as file:
        return file.read(15).removeprefix(b"\xef\xbb\xbf").startswith(b"solver_type ")


def predict(options: argparse.Namespace) -> int:
    """``saddlesvm predict``: a line a row, to standard output or a file."""
    model, before = parted(persistence.load(options.model))
    if options.probabilities and not hasattr(model, "predict_proba"):
        raise DataError(
            f"{options.model}: the model has no probabilities: train it with --probability yes, or with --loss logistic"
        )
    if options.proven and not isinstance(model, ProvesLabels):
        raise DataError(f"{options.model}: --proven is for linear classifiers; this is a {type(model).__name__}")
    table = read_prepared(options, model, before, options.data, every_row=True)
    kept = []
    if options.proven:
        taught = read_prepared(options, model, before, options.proven)
        model.prove(taught.X, labels_of(taught), taught.sample_weight)
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
        report_unknown_labels(model, table.y)
        for name, score in worth_of(model, np.concatenate(kept), table.y, "data").items():
            print(f"{name.removeprefix('data ')}: {score:.6g}", file=sys.stderr)
    return OK


def report_unknown_labels(model: Any, y: np.ndarray) -> None:
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
