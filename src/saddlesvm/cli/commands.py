"""The subcommands: each reads data, calls the estimators, shows facts, and returns the exit code."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import numpy as np
from sklearn.base import clone

from saddlesvm.cli.choosing import check_choice, cross_validated, held_out
from saddlesvm.cli.convert import store_info
from saddlesvm.cli.dask import check_asked, fit_on_cluster, stores_of
from saddlesvm.cli.facts_of import described, done, line_of, model_facts, quality, support, worth
from saddlesvm.cli.kernel_values import kernel_values, values_for, width_read
from saddlesvm.cli.missing import Filling
from saddlesvm.cli.places import is_pattern
from saddlesvm.cli.proven import check_until_proven, proven_in_report, settled
from saddlesvm.cli.reading import (
    Reading,
    check_classes,
    check_features,
    label_taken,
    labels_of,
    read_like,
    read_table,
)
from saddlesvm.cli.report import check_possible, write_report
from saddlesvm.cli.standardized import applied, learnt
from saddlesvm.cli.tables import Facts, show
from saddlesvm.cli.tabular import LABEL, encoded, fitted_to, kinds_told, of_store, read_encoded, strongest_words
from saddlesvm.data import DataError, Table, inputs
from saddlesvm.data.columns import check_names
from saddlesvm.data.libsvm_model import is_libsvm_model
from saddlesvm.data.models import is_model
from saddlesvm.data.store import is_store
from saddlesvm.estimators import persistence, register
from saddlesvm.estimators.certify import certify_model
from saddlesvm.estimators.certify_kernel import kernel_certificates
from saddlesvm.estimators.diagnosis import diagnose, separability
from saddlesvm.estimators.libsvm import check_libsvm, save_libsvm
from saddlesvm.estimators.scaling import behind_scaler, parted
from saddlesvm.estimators.table import TableEncoder
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.losses import make_loss, traits_of
from saddlesvm.rows import layouts as rows
from saddlesvm.solvers.automatic.auto import FINISH

OK, NOT_CERTIFIED = 0, 3
SHARED_OPTIONS = (
    "C", "lam", "loss", "solver", "tol", "gap", "max_iter", "max_time", "keep", "intercept_scaling", "n_jobs"
)  # fmt: skip
LOSS_OPTIONS = ("epsilon", "width")  # options of losses that are options of the command too


def class_weights(text: str | None, y: np.ndarray) -> Any:
    """``"balanced"``, or ``LABEL=FACTOR,LABEL=FACTOR`` as a dict over the labels of y."""
    if text is None or text == "balanced":
        return text
    known = {str(label): label for label in np.unique(y)}
    factors = {}
    for part in text.split(","):
        label, equals, factor = part.rpartition("=")
        if not equals or label not in known:
            raise ValueError(f"--class-weight {part!r}: LABEL=FACTOR is allowed, with a label of {', '.join(known)}")
        try:
            factors[known[label]] = float(factor)
        except ValueError:
            raise ValueError(f"--class-weight {part!r}: {factor!r} is not a number") from None
    return factors


def task_of(options: argparse.Namespace) -> Any:
    """``"regression"`` for a regression loss or estimator, else None: the labels then may be any."""
    entry = register.named(options.estimator or "")
    task_of_loss = None if options.loss is None else traits_of(make_loss(options.loss)).task
    regression = task_of_loss == "regression" if entry is None else entry.task == "regression"
    return "regression" if regression else None


def estimator_kind(options: argparse.Namespace) -> register.Entry:
    """The estimator that the options ask for.

    Raises
    ------
    ValueError
        The estimator does not have an option that was given.
    """
    entry = register.named(options.estimator or "") or asked_for(options)
    if options.top_k is not None and options.multi_class != "top_k" and "multi_class" in entry.parameters:
        raise ValueError("--top-k is for the top-k machine: give --multi-class top_k too")
    loss: Any = options.loss or getattr(entry.kind(), "loss", None)
    offered = {name: None for one in register.known() for name in one.options}
    absent = [name for name in SHARED_OPTIONS if name not in entry.parameters]
    absent += [name for name in offered if name not in entry.options and name not in LOSS_OPTIONS]
    of_the_loss = () if loss is None else traits_of(make_loss(loss)).options
    absent += sorted(name for name in LOSS_OPTIONS if name not in of_the_loss or name not in entry.options)
    for name in absent:
        if getattr(options, name) is not None:
            what = f"the loss {loss}"
            if options.estimator:
                what = f"--estimator {options.estimator}"
            elif entry.asked_by and name not in LOSS_OPTIONS:
                what = f"--{entry.asked_by} {getattr(options, entry.asked_by)}"
            others = [one.name for one in register.known() if name in one.options and name not in LOSS_OPTIONS]
            advice = f"; it is an option of {', '.join(others)} (--estimator)" if others else ""
            raise ValueError(f"--{name.replace('_', '-')} does not go with {what}{advice}")
    return entry


def asked_for(options: argparse.Namespace) -> register.Entry:
    """The kind of estimator that an option names, or else the one for the task of the loss."""
    kinds = register.known()
    asked = [one for one in kinds if one.asked_by and getattr(options, one.asked_by) is not None]
    named = {one.asked_by for one in asked}
    among = [one for one in asked if named <= {*one.options}] or asked or [one for one in kinds if not one.asked_by]
    return next((one for one in among if one.task == (task_of(options) or "classification")), among[0])


def make_estimator(options: argparse.Namespace, y: np.ndarray) -> Any:
    """The estimator that the options describe; missing options keep the estimator's own defaults."""
    entry = estimator_kind(options)
    given: dict[str, Any] = {name: getattr(options, name) for name in (*SHARED_OPTIONS, *entry.options)}
    given["random_state"] = options.seed
    given["verbose"] = int(sys.stderr.isatty() and not options.json)
    for name in ("C", "gamma"):
        if isinstance(given.get(name), tuple):
            given[name] = None  # cross-validation sets it
    if options.intercept is not None:
        given["fit_intercept"] = options.intercept != "none"
        given["intercept"] = None if options.intercept == "none" else options.intercept
    if "class_weight" in given:
        given["class_weight"] = class_weights(options.class_weight, y)
    return entry.kind(**{name: one for name, one in given.items() if one is not None and name in entry.parameters})


def train(options: argparse.Namespace) -> int:
    """``saddlesvm train``: read, fit, test, save, and print the results."""
    task, entry = task_of(options), estimator_kind(options)
    check_possible(options.report)
    check_choice(options)
    check_until_proven(options, entry)
    check_asked(options, entry)
    check_scaling(options)
    if options.dask and is_pattern(options.data):
        return train_where_stores_are(options, task)
    whole, (table, apart, test), filling, gaps, scaler = read_parts(options, task, entry.task)
    y = labels_of(table) if entry.task != "novelty" or table.y is not None else np.zeros(table.n_rows)
    model: Any = make_estimator(options, y)
    if options.liblinear:
        persistence.liblinear_kind(model, options.liblinear, None if task == "regression" else np.unique(y))
    if options.libsvm:
        check_libsvm(model, options.libsvm, None if task == "regression" or entry.task == "novelty" else np.unique(y))
    facts: Facts = {"read": described(whole) | gaps | {"labels": label_taken(table, options.label)}}
    if whole.columns is not None:
        facts["read"] |= {"features": table.n_features, "columns": whole.columns}
    if apart is not None:
        facts["read"]["rows held out for validation"] = apart.n_rows
    if test is not None:
        facts["read for testing"] = described(test)
    if options.dask:
        model, told = fit_on_cluster(model, (table.X, y, table.sample_weight), options)
        facts |= told
    elif options.cv is not None:
        model, facts["cross-validation"] = cross_validated(model, options, table, y)
        facts["done"] = done(model, table)
    else:
        model.fit(table.X, y, table.sample_weight)
        facts["done"] = done(model, table)
    settling = settled(model, test) if options.until_proven and test is not None else {}
    if options.report and not settling:
        settling = proven_in_report(model, table, test)
    facts["worth"] = settling | worth(model, model.certificate_) | support(model) | quality(model, table.X, y, "train")
    for part, name in ((apart, "validation"), (test, "test")):
        if part is not None:
            facts["worth"] |= quality(model, part.X, part.y, name)
    hard = model.outcome_ is not Outcome.CERTIFIED or FINISH in getattr(model, "phases_", {})
    if entry.linear and hard:
        found = [str(one) for one in diagnose(table.X) + separability(model)]
        if found:
            facts["what made it hard"] = {"found": found}
    if table.feature_names:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    notes: dict[str, Any] = {"trained on": str(table.source), "rows": table.n_rows} | filling.notes
    if table.encoder is not None:
        notes[LABEL] = table.label_name
    if table.zero_based is not None:
        notes["zero_based"] = table.zero_based
    return kept_and_shown(options, model, facts, notes, scaler)


def check_scaling(options: argparse.Namespace) -> None:
    """Raise ValueError for options that do not go with scaled features."""
    if not options.standardize:
        return
    for name, given in (("liblinear", options.liblinear), ("libsvm", options.libsvm)):
        if given:
            raise ValueError(f"--{name}: such models have no scaling of their features: leave --standardize out")
    if options.kernel == "precomputed" or options.dask:
        other = "--dask" if options.dask else "--kernel precomputed"
        raise ValueError(f"--standardize does not go with {other}: scale the features before")


Parts = tuple[Table, Table | None, Table | None]


def read_parts(options: argparse.Namespace, task: str | None, kind: str) -> tuple[Table, Parts, Filling, Facts, Any]:
    """The data as read; the rows to train on, those held out, and the test data, without missing values and scaled; and
    what was done to them: the filling, how much it filled, and the scaler.

    Parameters
    ----------
    options : Namespace
    task : "regression" or None
    kind : {"classification", "regression", "novelty"}
        What the estimator learns.
    """
    filling, pairwise = Filling(options.missing), options.kernel == "precomputed"
    table = read_table(options, options.data, task=task, missing=filling.keeps)
    table = of_store(table) if table.format == "store" else table
    table = kernel_values(table) if pairwise and table.encoder is None else table
    if kind == "classification":
        check_classes(table)
    whole, apart = table, None
    if options.validation is not None:
        labels_of(table)
        table, apart = held_out(table, options.validation, options.seed, kind == "classification", pairwise)
    if table.encoder is not None:
        return encoded_parts(options, whole, table, apart, task)
    filling = Filling.learnt(options.missing, table)
    gaps = filling.found_in(table)
    table = filling.applied(table)
    test = read_test(options, table, filling, kind) if options.test else None
    scaler = learnt(table) if options.standardize else None
    parts = (one and applied(scaler, one) for one in (table, apart and filling.applied(apart), test))
    return whole, tuple(parts), filling, gaps, scaler  # type: ignore[return-value]


def encoded_parts(
    options: argparse.Namespace, whole: Table, table: Table, apart: Table | None, task: str | None
) -> tuple[Table, Parts, Filling, Facts, Any]:
    """As :func:`read_parts`, of a table with columns of words: encoded as the rows to train on teach."""
    encoder = fitted_to(table)
    test = read_encoded(encoder, options, options.test, table.label_name, task) if options.test else None
    parts = (encoded(encoder, table), apart and encoded(encoder, apart), test)
    return whole, parts, Filling(), {}, encoder


def read_test(options: argparse.Namespace, table: Table, filling: Filling, task: str) -> Table:
    """The test data, with the features of the training data."""
    of_loss, pairwise = "regression" if task == "regression" else None, options.kernel == "precomputed"
    width = table.n_features + (pairwise and table.zero_based is True)
    test = read_table(options, options.test, width, of_loss, table.zero_based, filling.keeps)
    test = kernel_values(test, table.n_features) if pairwise else test
    if task != "novelty":
        labels_of(test)
    check_names(test.source, test.feature_names, table.source, table.feature_names)
    return filling.applied(test)


def train_where_stores_are(options: argparse.Namespace, task: str | None) -> int:
    """``saddlesvm train 'STORES/*.store' --dask ...``: the workers read the stores, and no row passes through here."""
    stores = stores_of(options.data)
    table = stores[0]
    y = np.concatenate([np.unique(np.asarray(store.y)) for store in stores])
    test = read_table(options, options.test, table.shape[1], task, table.zero_based) if options.test else None
    model: Any = make_estimator(options, y)
    rows_of_all = sum(len(store) for store in stores)
    if options.liblinear:
        persistence.liblinear_kind(model, options.liblinear, None if task == "regression" else np.unique(y))
    facts: Facts = {"read": {"stores": len(stores), "rows": rows_of_all, "features": table.shape[1]}}
    if test is not None:
        facts["read for testing"] = described(test)
    paths = [os.path.abspath(store.path) for store in stores]
    model, told = fit_on_cluster(model, (paths, None, None), options)
    facts |= told
    facts["worth"] = worth(model, model.certificate_) | support(model)
    if test is not None:
        facts["worth"] |= quality(model, test.X, labels_of(test), "test")
    fillings = [Filling.of_store(store) for store in stores]
    notes: dict[str, Any] = {"trained on": options.data, "rows": rows_of_all}
    notes |= fillings[0].notes if all(one == fillings[0] for one in fillings) else {}
    if table.zero_based is not None:
        notes["zero_based"] = table.zero_based
    return kept_and_shown(options, model, facts, notes)


def kept_and_shown(
    options: argparse.Namespace, model: Any, facts: Facts, notes: dict[str, Any], scaler: Any = None
) -> int:
    """Write the model where the options ask for it, show the facts, and return the exit code."""
    if options.model:
        persistence.save(behind_scaler(model, scaler), options.model, notes)
        facts["done"]["model written to"] = options.model
    if options.liblinear:
        persistence.save_liblinear(model, options.liblinear)
        facts["done"]["LIBLINEAR model written to"] = options.liblinear
    if options.libsvm:
        save_libsvm(model, options.libsvm)
        facts["done"]["LIBSVM model written to"] = options.libsvm
    if options.report:
        facts["done"]["report written to"] = options.report
        names = scaler.get_feature_names_out() if isinstance(scaler, TableEncoder) else None
        write_report(options.report, model, str(options.data), facts, names)
    show(facts, options.json)
    return OK if model.outcome_ is Outcome.CERTIFIED else NOT_CERTIFIED


def certify(options: argparse.Namespace) -> int:
    """``saddlesvm certify``: a bound for a saved model, or for one that LIBLINEAR wrote."""
    model, before = parted(persistence.load(options.model))
    entry = register.entry_of(model)
    assert entry is not None
    strength = {"C": options.C, "lam": options.lam}
    if not entry.linear and (options.refine or any(one is not None for one in strength.values())):
        raise DataError(f"{options.model}: --refine, --C and --lambda are for linear models")
    task = "regression" if entry.task == "regression" else None
    filling = Filling.of_model(model.notes_)
    table = read_like(before, model, options, options.data, Reading(width_read(model), task, filling.keeps))
    table = applied(before, filling.applied(values_for(model, table)))
    y = labels_of(table) if entry.task != "novelty" else None
    check_features(model, options.model, table)
    certificates = (
        certify_model(model, table.X, y, sample_weight=table.sample_weight, refine=options.refine, **strength)
        if entry.linear
        else kernel_certificates(model, table.X, y, sample_weight=table.sample_weight)
    )
    total = Certificate.total(certificates)
    facts: Facts = {"read": described(table), "certified": posed(model, strength), "worth": worth(model, total)}
    facts["worth"].pop("outcome")
    facts["worth"].pop("advice")
    if len(certificates) > 1:
        each = "class" if getattr(model, "multi_class", "ovo") == "ovr" else "pair"
        facts["worth"][f"largest relative gap of a {each}"] = max(one.relative_gap for one in certificates)
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
        "note": "files of LIBLINEAR do not hold C: 1 is assumed, --C or --lambda tells it" if assumed else None,
    }


def info(options: argparse.Namespace) -> int:
    """``saddlesvm info``: describe a model, or a data set and what could make it hard."""
    if os.path.isfile(options.source) and looks_like_model(options.source):
        model, before = parted(persistence.load(options.source))
        of_model = model_facts(model, options.source)
        if isinstance(before, TableEncoder):
            of_model["columns"] = {"columns": kinds_told(before)}
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
