"""The uses of saved models and stores: ``saddlesvm predict``, ``certify``, ``info`` and ``convert``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from saddlesvm.cli import INTERRUPTED, NOT_CERTIFIED, OK, reading
from saddlesvm.cli.console import print_error, safe_label, write_output
from saddlesvm.cli.display import Facts, described, line_of, model_facts, progress_bar, show, worth, worth_of
from saddlesvm.data import DataError, Store, atomic_write
from saddlesvm.data.archives import is_model
from saddlesvm.data.door import Design
from saddlesvm.data.libsvm_model import is_libsvm_model
from saddlesvm.data.missing_values import NOTE, Filling
from saddlesvm.data.store import is_store
from saddlesvm.data.table import shorten
from saddlesvm.estimators import persistence, register
from saddlesvm.estimators.certify import certify_model, compare_with_fit, describe_finding, kernel_certificates
from saddlesvm.estimators.preparation import Preparation, columns_of_store, labels_of, make_store, strongest_words
from saddlesvm.estimators.proven import ProvesLabels
from saddlesvm.estimators.scale_hint import scale_hint
from saddlesvm.problem.certificate import Certificate
from saddlesvm.rows.small_types import type_name

CLASSES_SHOWN = 1_000


def convert(options: argparse.Namespace) -> int:
    """Write data files of any size into one store, for fast and repeated training.

    Options
    -------
    STORE : text
        The folder to make.
    dtype : {float32, float64}
        Of the values (that of the data by default).
    n_features : int
        Of sparse data, when more than occur.
    memory : default=256M
        That the rows may take on their way; 256M by default.
    overwrite : flag
        Replace a store of that name.
    missing : text
        What happens to missing values: an error, or their rows are left out, or they are filled in with the mean of
        their column, which takes a second pass; models trained on the store do the same when they predict.

    Examples
    --------
    saddlesvm convert day-1.svm.bz2 day-2.svm.bz2 days.store
    saddlesvm convert table.parquet table.store --label outcome --dtype float32
    """
    began = time.perf_counter()
    try:
        with progress_bar(f"converting to {options.store}", options.json) as advance:
            given = {name: getattr(options, name) for name in ("n_features", "dtype", "overwrite")}
            store = make_store(options.data, options.store, advance=advance, **given, **reading.options_of(options))
    except KeyboardInterrupt:
        print_error("saddlesvm: interrupted; nothing was written")
        return INTERRUPTED
    spent = time.perf_counter() - began
    read = sum(source["bytes"] for source in store.header["sources"])
    done = {"seconds converting": spent, "megabytes a second": read / 1e6 / spent}
    show(store_facts(store, options.store) | {"done": done}, options.json)
    return OK


def store_info(options: argparse.Namespace) -> int:
    """``saddlesvm info STORE``: show the header."""
    store = Store(options.source)
    facts = store_facts(store, options.source)
    show(facts, options.json)
    return OK


def store_facts(store: Store, path: str | os.PathLike[str]) -> Facts:
    """Facts of a store, from its header alone."""
    header, labels = store.header, store.header["labels"]
    facts: dict[str, Any] = {
        "folder": os.fspath(path),
        "layout": store.layout,
        "rows": store.shape[0],
        "features": store.shape[1],
        "values stored": store.n_values,
        "non-zeros": header.get("n_nonzero"),
        "precision": type_name(store.dtype),
        "bytes": store.n_bytes,
        "weights": "one a row" if header["weights"] else None,
        "parts": store.n_parts if store.n_parts > 1 else None,
    }
    if labels is not None and labels["classes"] is not None and len(labels["classes"]) <= CLASSES_SHOWN:
        facts["classes"] = {str(one): n for one, n in zip(labels["classes"], labels["counts"], strict=True)}
    elif labels is not None:
        facts["targets"] = f"{labels['smallest']:g} to {labels['largest']:g}" if labels["kind"] == "numbers" else "text"
    noted = header.get(NOTE)
    if noted is not None:
        what = "rows left out" if noted["how"] == "drop" else f"filled in with the {noted['how']}"
        facts[NOTE] = f"{noted['count']:,} {what}"
    facts["columns"] = columns_of_store(store)
    facts["written by"] = header.get("written by")
    facts["made from"] = [
        f"{one['path']} ({one['format']}, {one['rows']:,} rows, {one['bytes']:,} bytes)"
        for one in header.get("sources", ())
    ] or None
    return {"store": facts}


PREDICTED_ROWS = 100_000  # rows predicted at a time, because text takes many times the memory of numbers
WORDS = np.array(["open", "proven"])


def certify(options: argparse.Namespace) -> int:
    """Prove how far a model is from the optimum on some data.

    Options
    -------
    MODEL : text
        A saved model, or a LIBLINEAR text model.
    C : float
        Instead of the model's own.
    lam : text
        Instead of the model's own.
    refine : int, default=0
        Epochs of dual ascent that tighten the bound.
    tol : text
        Exit with 3 unless the relative gap is at most this.

    Examples
    --------
    saddlesvm certify data.model data.csv
    saddlesvm certify liblinear.model data.svm --C 1 --refine 20 --tol 1e-3
    """
    model, preparation = Preparation.of_saved(persistence.load(options.model), options.model)
    entry = register.entry_of(model)
    assert entry is not None
    strength = {"C": options.C, "lam": options.lam}
    if not entry.linear and (options.refine or any(one is not None for one in strength.values())):
        raise DataError(f"{options.model}: --refine, --C and --lambda are for linear models")
    task = "regression" if entry.task == "regression" else None
    table = reading.read_prepared(options, preparation, options.data, task)
    y = labels_of(table) if entry.task != "novelty" else None
    certificates = (
        certify_model(model, table.X, y, sample_weight=table.sample_weight, refine=options.refine, **strength)
        if entry.linear
        else kernel_certificates(model, table.X, y, sample_weight=table.sample_weight)
    )
    total = Certificate.total(certificates)
    difference = compare_with_fit(model, table.X, y) if entry.linear else ""
    facts: Facts = {"found": describe_finding(model, difference, total), "read": described(table)}
    facts |= {"certified": posed(model, strength), "quality": worth(model, total)}
    facts["quality"].pop("outcome")
    facts["quality"].pop("advice")
    if len(certificates) > 1:
        each = "class" if getattr(model, "multi_class", "ovo") == "ovr" else "pair"
        facts["quality"][f"largest relative gap of a {each}"] = max(one.relative_gap for one in certificates)
    show(facts, options.json)
    missed = options.tol is not None and total.relative_gap > options.tol
    return NOT_CERTIFIED if missed or difference else OK


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
    """Describe a model or a data set.

    Options
    -------
    MODEL : text
        A saved model.

    Examples
    --------
    saddlesvm info data.csv
    saddlesvm info data.model
    """
    if os.path.isfile(options.source) and looks_like_model(options.source):
        model, preparation = Preparation.of_saved(persistence.load(options.source), options.source)
        of_model = model_facts(model, options.source)
        if preparation.columns is not None:
            of_model["columns"] = {"columns": preparation.columns}
            of_model["strongest"] = strongest_words(model, preparation)
        elif preparation.before is not None:
            of_model["model"]["features"] = f"{model.n_features_in_}, standardized first"
        show(of_model, options.json)
        return OK
    if is_store(options.source):
        return store_info(options)
    table = reading.read_table(options, options.source, missing="keep")
    facts: Facts = {"read": described(table)}
    if table.column_facts is not None:
        facts["read"]["columns"] = table.column_facts
        show(facts, options.json)
        return OK
    filling = Filling("drop")
    X, _ = filling.without_missing(table.X)
    if filling.count:
        facts["read"]["rows with missing values"] = filling.count
    if not X.shape[0]:
        show(facts, options.json)
        return OK
    norms = np.sqrt(Design(X).norms())
    facts["rows"] = {
        "smallest norm": float(norms.min()),
        "median norm": float(np.median(norms)),
        "largest norm": float(norms.max()),
        "values a row": table.n_nonzero / table.n_rows,
    }
    if hints := scale_hint(X):
        facts["features"] = {"hint": hints}
    show(facts, options.json)
    return OK


def looks_like_model(path: str) -> bool:
    """Whether a file is a model of ours, of LIBSVM or of LIBLINEAR."""
    if is_model(path) or is_libsvm_model(path):
        return True
    with open(path, "rb") as file:
        return file.read(15).removeprefix(b"\xef\xbb\xbf").startswith(b"solver_type ")


def predict(options: argparse.Namespace) -> int:
    """Print the predictions of a model, one line a row.

    Options
    -------
    MODEL : text
        A saved model.
    scores : flag
        The decision values behind each prediction.
    probabilities : flag
        The probability of each class beside the prediction, after a line with the classes, as LIBSVM's -b 1.
    proven : TRAINING
        The training data of the model: adds 'proven' to each prediction that the exact optimum shares, and 'open'
        to the others.
    output : PATH
        Write to this file instead of standard output.

    Examples
    --------
    saddlesvm predict data.model new.csv
    saddlesvm predict data.model new.csv --scores --output scores.txt
    """
    model, preparation = Preparation.of_saved(persistence.load(options.model), options.model)
    if options.probabilities and not hasattr(model, "predict_proba"):
        raise DataError(
            f"{options.model}: the model has no probabilities: train it with --probability yes, or with --loss logistic"
        )
    if options.proven and not isinstance(model, ProvesLabels):
        raise DataError(f"{options.model}: --proven is for linear classifiers; this is a {type(model).__name__}")
    table = reading.read_prepared(options, preparation, options.data, every_row=True)
    kept = []
    if options.proven:
        taught = reading.read_prepared(options, preparation, options.proven)
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
