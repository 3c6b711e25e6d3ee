"""``saddlesvm train``: read, fit, test, save, and print the results."""

from __future__ import annotations

import argparse
import os
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from saddlesvm.cli import NOT_CERTIFIED, OK, asked, reading
from saddlesvm.cli.arguments import flag
from saddlesvm.cli.console import command_line
from saddlesvm.cli.display import Facts, described, done, in_words, quality, show, support, worth
from saddlesvm.data import DataError, Table
from saddlesvm.data.table import shorten
from saddlesvm.estimators import persistence
from saddlesvm.estimators.preparation import Preparation, check_classes, label_words, labels_of
from saddlesvm.estimators.proven import ProvesLabels
from saddlesvm.estimators.register import Entry
from saddlesvm.estimators.scale_hint import scale_hint
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome, Record, Trace
from saddlesvm.solvers.automatic.auto import FINISH

QUICK = 5.0  # seconds of a fit, up to which a report has proofs: one takes up to some times as long


def train(options: argparse.Namespace) -> int:
    """Train a model, and prove how far it is from the optimum.

    Options
    -------
    label : NAME
        Label column of a table; the last one by default.
    scale : float, default=1.0
        Multiply every value by this (255 levels: 0.00392157).
    standardize : flag
        Bring each feature to mean 0 and variance 1 (sparse ones to variance 1); saved with the model.
    test : DATA
        Data to test the model on.
    validation : share, SHARE
        Hold this share of the rows out for a test: 0.2.
    C : strength
        Weight of the losses: 1, several (0.1,1,10), or auto.
    lam : float
        Lambda = 1 / (C n) instead of C.
    cv : fold_count, FOLDS
        Folds of the cross-validation of several values of C, those of auto, or of gamma; 5 by default.
    penalty : text
        L2 (default); l1 or elasticnet set weights to zero.
    l1_ratio : text
        Share of the l1 norm in the elastic net; {default} by default.
    class_weight : WEIGHTS
        Balanced, or LABEL=FACTOR,LABEL=FACTOR.
    multi_class : WAY
        Ovr (default), ovo, crammer_singer, multinomial or top_k.
    top_k : text
        Classes that may rank before the right one, with --multi-class top_k; {default} by default.
    intercept_scaling : float
        Value of the constant feature of a penalised intercept; 1 by default.
    epsilon : text
        Half-width of the tube in which errors cost nothing; 0 for linear models, 0.1 with a kernel.
    estimator : estimator_text
        The kind of model, instead of the one for the loss: LinearSVC, LinearSVR, SVC, NuSVC, SVR, NuSVR,
        OneClassSVM, or MODULE:CLASS of your own.
    gamma : numbers_or_name
        Of the kernel: scale (default), auto, a number, or several (0.1,1).
    degree : text
        Of the polynomial kernel; {default} by default.
    coef0 : text
        Constant of the polynomial and sigmoid kernels; {default} by default.
    nu : text
        Of the nu machines: the share of rows that may be margin errors; {default} by default.
    cache_size : text
        Megabytes for rows of the kernel matrix; {default} by default.
    shrinking : text
        Yes or no: set rows aside that stay outside the margin.
    probability : truth, YES|NO
        Fit probabilities to scores of rows left out: yes or no.
    break_ties : text
        Yes or no: break ties of votes by the scores.
    decision_function_shape : SHAPE
        Ovr or ovo: a column of scores a class, or a pair.
    solver : solver_text
        Auto (default), dcd, sdca, pegasos, newton, columns or blocks, with options
        (pegasos:batch_size=64,output=average), or MODULE:CLASS of your own.
    tol : float, GAP
        Relative duality gap to prove; 1e-4 by default.
    gap : float
        Duality gap that ends the fit, too, in the units of the objective; 0 by default.
    until_proven : DATA
        Data to test on; training continues until each of its labels is proven to be the exact optimum's.
    max_iter : int, EPOCHS
        Epochs at most; no limit by default.
    max_time : float, SECONDS
        Seconds at most; no limit by default.
    seed : int, default=0
        Of the random choices; 0 by default.
    checkpoint : PATH
        Save the state of the fit here, and resume from it.
    n_jobs : int, N
        Threads; -1 for all cores.
    memory : BYTES
        Train block by block within this memory: 512M, 1.5G.
    dask : local:N|ADDRESS
        Train on N processes here, or on a Dask cluster.
    model : PATH
        Write the model here.
    report : PATH
        Write an HTML report with charts here.
    liblinear : PATH
        Write the model here as a LIBLINEAR text model.
    json : flag
        Print the facts as JSON.

    Examples
    --------
    saddlesvm train heart --C auto --validation 0.2 --report heart.html
    saddlesvm train people.csv --label bought --columns zip=category --model people.model
    """
    task, entry = asked.task_of(options), asked.estimator_kind(options)
    asked.check_choice(options)
    check_until_proven(options, entry)
    asked.check_asked(options, entry)
    check_scaling(options)
    if options.dask and isinstance(options.data, list):
        return train_where_stores_are(options, task)
    whole, (table, apart, test), preparation = read_parts(options, task, entry.task)
    y = labels_of(table) if entry.task != "novelty" or table.y is not None else np.zeros(table.n_rows)
    model: Any = asked.make_estimator(options, y)
    check_formats(options, model, None if entry.task != "classification" else np.unique(y))
    facts: Facts = {"read": described(whole) | preparation.facts | {"labels": label_words(table, options.label)}}
    if whole.column_facts is not None:
        facts["read"] |= {"features": table.n_features, "columns": whole.column_facts}
    if apart is not None:
        facts["read"]["rows held out for validation"] = apart.n_rows
    if test is not None:
        facts["read for testing"] = described(test)
    if options.dask:
        model, done_there = asked.fit_on_cluster(model, (table.X, y, table.sample_weight), options)
        facts |= done_there
    else:
        if options.cv is not None:
            model, facts["cross-validation"] = asked.cross_validated(model, options, table, y, preparation)
        else:
            model.fit(table.X, y, table.sample_weight)
        facts["done"] = done(model, table)
    proven_labels = {}
    if options.until_proven and test is not None:
        proven_labels = count_of("test", model.settle(test.X))
    trace = None
    if options.report:
        proven_labels = proven_labels or proven_in_report(model, table, test)
        trace = None if options.dask else trace_of_each_epoch(model, table, y)
    facts["quality"] = (
        proven_labels | worth(model, model.certificate_) | support(model) | quality(model, table.X, y, "train")
    )
    for part, name in ((apart, "validation"), (test, "test")):
        if part is not None:
            facts["quality"] |= quality(model, part.X, part.y, name)
    hard = model.outcome_ is not Outcome.CERTIFIED or FINISH in getattr(model, "phases_", {})
    if entry.linear and hard:
        found = scale_hint(table.X)
        if found:
            facts["what made it hard"] = {"found": found}
    if table.feature_names:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    notes: dict[str, Any] = {"trained on": str(table.source), "rows": table.n_rows}
    return kept_and_shown(options, model, facts, notes | preparation.notes, preparation, trace)


def check_formats(options: argparse.Namespace, model: Any, classes: np.ndarray | None) -> None:
    """Raise ValueError, before the fit, for a model that a text format which is asked for cannot hold."""
    if options.liblinear:
        persistence.liblinear_kind(model, options.liblinear, classes)


def check_scaling(options: argparse.Namespace) -> None:
    """Raise ValueError for options that do not fit scaled features."""
    if not options.standardize:
        return
    if options.liblinear:
        raise ValueError("--liblinear files hold no scaling of the features: leave --standardize out")
    if options.kernel == "precomputed" or options.dask:
        other = "--dask" if options.dask else "--kernel precomputed"
        raise ValueError(f"--standardize does not work with {other}: scale the features before")


Parts = tuple[Table, Table | None, Table | None]


def read_parts(options: argparse.Namespace, task: Any, kind: str) -> tuple[Table, Parts, Preparation]:
    """The data as read; the rows to train on, those held out, and the test data, prepared; and their preparation.

    Parameters
    ----------
    options : Namespace
    task : "regression" or None
    kind : {"classification", "regression", "novelty"}
        What the estimator learns.
    """
    pairwise = options.kernel == "precomputed"
    table = reading.read_table(options, options.data, task=task, pairwise=pairwise)
    if kind == "classification":
        check_classes(table)
    if table.kinds is not None:
        refuse_words(options, table)
    whole, apart = table, None
    if options.validation is not None:
        labels_of(table)
        table, apart = asked.held_out(table, options.validation, options.seed, kind == "classification", pairwise)
    standardize = getattr(options, "standardize", False)
    preparation = Preparation.learn(table, missing=options.missing, standardize=standardize, pairwise=pairwise)
    table = preparation.apply(table)
    test = None
    if options.test:
        of_loss = "regression" if kind == "regression" else None
        test = reading.read_prepared(options, preparation, options.test, of_loss)
        if kind != "novelty":
            labels_of(test)
    return whole, (table, apart and preparation.apply(apart), test), preparation


def refuse_words(options: argparse.Namespace, table: Table) -> None:
    """Raise DataError for options that do not fit a table with words."""
    for name in ("dask", "liblinear"):
        if getattr(options, name, None):
            raise DataError(f"{table.source}: {flag(name)} does not work with columns of words, texts or dates")


def train_where_stores_are(options: argparse.Namespace, task: str | None) -> int:
    """``saddlesvm train STORES --dask ...``: the workers read the stores, and no row passes through here."""
    stores = asked.stores_to_learn_from(options.data)
    first, n = stores[0], sum(len(store) for store in stores)
    y = np.concatenate([np.unique(np.asarray(store.y)) for store in stores])
    preparation = Preparation.of_stores(stores)
    test = reading.read_prepared(options, preparation, options.test, task) if options.test else None
    model: Any = asked.make_estimator(options, y)
    check_formats(options, model, None if task == "regression" else np.unique(y))
    facts: Facts = {"read": {"stores": len(stores), "rows": n, "features": first.shape[1]}}
    if test is not None:
        facts["read for testing"] = described(test)
    model, done_there = asked.fit_on_cluster(
        model, ([os.path.abspath(store.path) for store in stores], None, None), options
    )
    facts |= done_there
    facts["quality"] = worth(model, model.certificate_) | support(model)
    if test is not None:
        facts["quality"] |= quality(model, test.X, labels_of(test), "test")
    notes: dict[str, Any] = {"trained on": shorten(options.data), "rows": n} | preparation.notes
    return kept_and_shown(options, model, facts, notes, preparation)


def kept_and_shown(
    options: argparse.Namespace,
    model: Any,
    facts: Facts,
    notes: dict[str, Any],
    preparation: Preparation,
    trace: Trace | None = None,
) -> int:
    """Write the model where the options ask for it, show the facts, and return the exit code."""
    if options.model:
        persistence.save(preparation.behind(model), options.model, notes)
        facts["done"]["model written to"] = options.model
    if options.liblinear:
        persistence.save_liblinear(model, options.liblinear)
        facts["done"]["LIBLINEAR model written to"] = options.liblinear
    if options.report:
        facts["done"]["report written to"] = options.report
        write_report(options, model, facts, preparation, trace)
    show(facts, options.json)
    return OK if model.outcome_ is Outcome.CERTIFIED else NOT_CERTIFIED


def write_report(
    options: argparse.Namespace, model: Any, facts: Facts, preparation: Preparation, trace: Trace | None
) -> None:
    """Write the facts that the command prints, with pictures, as one HTML file."""
    from saddlesvm.lab.reports import model_report

    names = preparation.feature_names()
    groups = {
        title: [(name, in_words(name, value)) for name, value in lines.items() if value is not None]
        for title, lines in facts.items()
    }
    source = options.data if isinstance(options.data, str) else shorten(options.data)
    model_report(model, source, groups, command_line(), names, trace).write(options.report)


class AfterEachEpoch:
    """A callback that asks for a certificate after each epoch, and does nothing with it."""

    every = 1.0

    def __call__(self, record: Record) -> None: ...


def trace_of_each_epoch(model: Any, table: Table, y: np.ndarray) -> Trace | None:
    """The trace of a quick fit with a certificate after each epoch, for the picture of a fit that needed one only."""
    from saddlesvm.lab.reports import can_be_drawn

    options = model.get_params()
    if can_be_drawn(model.trace_) or "callbacks" not in options or model.seconds_solving_ > QUICK:
        return None
    C = getattr(model, "C_", options["C"])
    again = clone(model).set_params(callbacks=[AfterEachEpoch()], C=C, checkpoint=None, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)  # the model's own outcome has been told
        trace: Trace = again.fit(table.X, y, table.sample_weight).trace_
    return trace


def check_until_proven(options: argparse.Namespace, entry: Entry) -> None:
    """Take the rows of --until-proven for the test data.

    Raises
    ------
    ValueError
        Other options do not fit it.
    """
    if options.until_proven is None:
        return
    if not issubclass(entry.kind, ProvesLabels):
        raise ValueError(f"--until-proven is for linear classifiers; {entry.name} proves no labels")
    for name in ("cv", "dask", "probability"):
        if getattr(options, name):
            raise ValueError(f"--until-proven does not work with --{name}: leave one of the two out")
    if options.test not in (None, options.until_proven):
        raise ValueError("--until-proven tests the model on its data, too: leave --test out, or give the same data")
    options.test = options.until_proven


def proven_in_report(model: Any, train: Table, test: Table | None) -> dict[str, Any]:
    """The number of proven labels of the test rows, or of the training rows; nothing where a proof would take long,
    or the model has none."""
    name, rows = ("train", train) if test is None else ("test", test)
    if not isinstance(model, ProvesLabels) or getattr(model, "seconds_solving_", np.inf) > QUICK:
        return {}
    try:
        return count_of(name, model.is_proven(rows.X))
    except ValueError:  # rows in files, calibrated labels
        return {}


def count_of(name: str, proven: np.ndarray) -> dict[str, Any]:
    """How many labels of some rows are proven, in words."""
    return {f"{name} labels proven": f"{int(proven.sum()):,} of {proven.size:,}"}
