"""The estimator that the options of a command ask for, the C that ``train`` chooses by cross-validation, and fits on a
cluster (``--dask local:4`` or ``--dask tcp://host:port``).
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline

from saddlesvm.cli.arguments import FOLDS, flag
from saddlesvm.cli.reading import check_stores_asked
from saddlesvm.data import DataError, Store, Table
from saddlesvm.data.readers import stores_of
from saddlesvm.estimators import register
from saddlesvm.estimators.automatic_C import AutomaticC, made_automatic
from saddlesvm.estimators.cross_validation import LinearSVCCV, standard_errors
from saddlesvm.estimators.linear import LinearSVC
from saddlesvm.estimators.on_cluster import TakesClusters, checked
from saddlesvm.problem.losses import make_loss, traits_of
from saddlesvm.runtime.option_names import CLUSTER_SOLVERS, SOLVER_NAMES

SHARED_OPTIONS = (
    "C", "lam", "loss", "solver", "tol", "gap", "max_iter", "max_time", "keep", "intercept_scaling", "n_jobs"
)  # fmt: skip
LOSS_OPTIONS = ("epsilon",)  # options of losses that are options of the command too


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
        if getattr(options, name, None) is not None:
            what = f"the loss {loss}"
            if options.estimator:
                what = f"--estimator {options.estimator}"
            elif entry.asked_by and name not in LOSS_OPTIONS:
                what = f"--{entry.asked_by} {getattr(options, entry.asked_by)}"
            others = [one.name for one in register.known() if name in one.options and name not in LOSS_OPTIONS]
            advice = f"; it is an option of {', '.join(others)} (--estimator)" if others else ""
            raise ValueError(f"{flag(name)} does not work with {what}{advice}")
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
    given: dict[str, Any] = {name: getattr(options, name, None) for name in (*SHARED_OPTIONS, *entry.options)}
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


def check_choice(options: argparse.Namespace) -> None:
    """Raise ValueError for options of the choice that do not go together; with folds, ``auto`` is its values of C."""
    several = isinstance(options.C, tuple) or isinstance(options.gamma, tuple)
    if several and options.cv is None:
        options.cv = FOLDS
    if options.cv is None:
        return
    if options.lam is not None:
        raise ValueError("--cv needs --C or --gamma, one or several numbers or auto: --C 0.1,1,10 --cv 5")
    how = made_automatic(options.C)
    if how is not None:
        if how.rule != AutomaticC.rule:
            raise ValueError(f"--cv takes the best C; rule={how.rule} is for --C auto without --cv")
        options.C = tuple(np.geomspace(how.low, how.high, how.size).tolist())
    if options.checkpoint:
        raise ValueError("--cv does not work with --checkpoint")


def held_out(table: Table, part: float, seed: int, classes: bool, pairwise: bool = False) -> tuple[Table, Table]:
    """The table without, and with, a share of its rows drawn at random; of every class alike where that can be.

    `pairwise` rows are values of a kernel: those between them and the rows that are kept stay.

    Raises
    ------
    DataError
        The rows are those of a store, or too few.
    """
    if table.format == "store":
        raise DataError(f"{table.source}: --validation copies rows; those of a store stay in their files: use --test")
    n = table.n_rows
    size = max(1, round(part * n))
    if size >= n:
        raise DataError(
            f"{table.source}: --validation {part:g} takes all {n} rows, and none is left to train on: give a smaller "
            "part"
        )
    counts = np.unique(np.asarray(table.y), return_counts=True)[1] if classes else np.zeros(0)
    stratify = table.y if classes and counts.min() >= 2 and counts.size <= min(size, n - size) else None
    kept, apart = train_test_split(np.arange(n), test_size=size, random_state=seed, stratify=stratify)
    kept = np.sort(kept)
    parts = (table.rows(rows) for rows in (kept, np.sort(apart)))
    one, other = (dataclasses.replace(half, X=half.X[:, kept]) if pairwise else half for half in parts)
    return one, other


def cross_validated(
    model: Any, options: argparse.Namespace, table: Table, y: np.ndarray, preparation: Any
) -> tuple[Any, dict[str, Any]]:
    """Choose C, and gamma, among those of the options by cross-validation; the fitted model, and a row of facts each.

    Raises
    ------
    ValueError
        The estimator learns without labels, or has no C and no gamma to choose from.
    """
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"--cv needs labels or targets; {type(model).__name__} learns without")
    called = "accuracy" if is_classifier(model) else "R2"
    kind: Any = StratifiedKFold if is_classifier(model) else KFold
    folds = kind(options.cv, shuffle=True, random_state=options.seed)
    if type(model) is LinearSVC and table.frame is None:
        return best_C(model, options, folds, table.X, y, table.sample_weight)
    given = model.get_params(deep=False)
    grid = {name: [given[name]] for name in ("C",) if name in given}
    grid |= {
        name: sorted(getattr(options, name))
        for name in ("C", "gamma")
        if name in given and isinstance(getattr(options, name), tuple)
    }
    if not grid:
        raise ValueError(f"--cv chooses C or gamma; {type(model).__name__} takes --gamma 0.1,1")
    step, searched, X = "", model, table.X
    if table.frame is not None:  # each fold then learns an encoding of its own
        step, X = f"{type(model).__name__.lower()}__", table.frame
        searched = make_pipeline(clone(preparation.before), model)
    search = GridSearchCV(searched, {f"{step}{name}": values for name, values in grid.items()}, cv=folds)
    search.fit(X, y, **({} if table.sample_weight is None else {"sample_weight": table.sample_weight}))
    results = search.cv_results_
    errors = standard_errors(np.column_stack([results[f"split{k}_test_score"] for k in range(options.cv)]))
    found = results["mean_test_score"], errors, None
    points = [{name.removeprefix(step): value for name, value in point.items()} for point in results["params"]]
    chosen = {name.removeprefix(step): float(one) for name, one in search.best_params_.items()}
    best = search.best_estimator_[-1] if step else search.best_estimator_
    return best, choice_facts(options.cv, points, called, found, chosen)


def best_C(
    model: Any, options: argparse.Namespace, folds: Any, X: Any, y: Any, weights: Any
) -> tuple[Any, dict[str, Any]]:
    """Choose C among those of the options by the accuracy of folds; the fitted model, and a row of facts for each C."""
    Cs = list(options.C) if isinstance(options.C, tuple) else [model.C]
    search = LinearSVCCV(model.set_params(C=1.0), Cs=Cs, cv=folds).fit(X, y, weights)
    found = search.mean_scores_, search.standard_errors_, search.relative_gaps_.max(axis=1)
    points = [{"C": C} for C in search.Cs_.tolist()]
    return search.best_estimator_, choice_facts(options.cv, points, "accuracy", found, {"C": search.C_})


def choice_facts(
    folds: int, points: Sequence[dict[str, float]], called: str, found: tuple[Any, Any, Any], chosen: dict[str, float]
) -> dict[str, Any]:
    """A row of facts for each point of a grid: the mean score, its standard error, and the largest gap where gaps were
    `found`; and the `chosen` one."""
    means, errors, gaps = found
    facts: dict[str, Any] = {"folds": folds}
    for k, point in enumerate(points):
        name = ", ".join(f"{one} = {value:g}" for one, value in point.items())
        facts[name] = {called: float(means[k]), "standard error": float(errors[k])}
        if gaps is not None:
            facts[name]["largest relative gap"] = float(gaps[k])
    return facts | {f"chosen {one}": value for one, value in chosen.items()}


PARTS_A_THREAD = 2
REFUSED = {  # options that a fit on a cluster does not have, and what it has instead
    "n_jobs": "the threads of the workers do the work",
    "gap": "give --tol, the relative one",
    "keep": "a fit returns the best model of its rounds",
    "checkpoint": "a fit continues after workers are lost; --model saves the model",
    "probability": "the logistic loss has probabilities of its own",
}


def cluster_of(text: str) -> int | str:
    """The number of processes of ``local:N``, or the address of a scheduler.

    Raises
    ------
    DataError
        It is neither.
    """
    kind, _, rest = text.partition(":")
    if kind == "local" and rest.isdigit() and int(rest) > 0:
        return int(rest)
    if "://" in text:
        return text
    raise DataError(f"--dask {text!r}: local:N (N processes here) or an address such as tcp://host:8786 is allowed")


@contextmanager
def connected(where: int | str) -> Iterator[Any]:
    """A client of the cluster; where `where` is a number, the cluster is started here and ended afterwards."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise DataError("--dask needs Dask: pip install 'saddlesvm[dask]'") from error
    if isinstance(where, int):
        with (
            LocalCluster(n_workers=where, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(where, timeout="10s")
    except OSError as error:
        raise DataError(f"--dask {where}: no scheduler answers there ({error})") from error
    with client:
        yield client


def as_dask(X: Any, parts: int) -> Any:
    """Rows in memory as a Dask array of blocks of neighbouring rows, dense or CSR."""
    import dask
    import dask.array as da

    n, d = X.shape
    cuts = [n * k // parts for k in range(parts + 1)]
    if not sparse.issparse(X):
        return da.from_array(np.asarray(X), chunks=(tuple(np.diff(cuts).tolist()), (d,)))
    blocks = [
        da.from_delayed(dask.delayed(X[start:stop]), (stop - start, d), X.dtype) for start, stop in pairwise(cuts)
    ]
    return da.concatenate(blocks)


def stores_to_learn_from(paths: list[str]) -> list[Store]:
    """Stores for the workers to read.

    Raises
    ------
    DataError
        One of them is not a store, or has no labels, or another number of features.
    """
    stores = stores_of(paths)
    for store in stores:
        if store.y is None:
            raise DataError(f"{store.path}: holds no labels to learn from")
        if store.shape[1] != stores[0].shape[1]:
            raise DataError(f"{store.path}: has {store.shape[1]} features, {stores[0].path} has {stores[0].shape[1]}")
    return stores


def check_asked(options: argparse.Namespace, entry: register.Entry) -> None:
    """Check ``--dask`` and the options that do not work with it, before any work.

    Raises
    ------
    DataError
        An option does not work with it, or with it alone.
    """
    if not options.dask:
        if options.solver in set(CLUSTER_SOLVERS) - set(SOLVER_NAMES):
            raise DataError(f"--solver {options.solver} is for a fit on a cluster: give --dask, too")
        return
    cluster_of(options.dask)
    if not issubclass(entry.kind, TakesClusters):
        raise DataError(f"--dask: {entry.name} has no fit on a cluster")
    for name, instead in REFUSED.items():
        if getattr(options, name) is not None:
            raise DataError(f"{flag(name)} does not work with --dask: {instead}")
    if str(options.solver or "auto").partition(":")[0] not in CLUSTER_SOLVERS:
        raise DataError(f"--solver {options.solver} does not work with --dask; {', '.join(CLUSTER_SOLVERS)} do")
    if isinstance(options.C, str):
        raise DataError(f"--C {options.C} does not work with --dask: give several, as in --C 0.1,1,10, to choose from")
    if options.cv is not None and entry.task != "classification":
        raise DataError("--cv on a cluster needs classification")
    if isinstance(options.data, list):
        check_stores_asked(options, options.data, "validation")


def fit_on_cluster(
    model: Any, data: tuple[Any, Any, Any], options: argparse.Namespace
) -> tuple[Any, dict[str, dict[str, Any]]]:
    """Train the model that `model` describes on a cluster; returns it as a model in memory, and facts of the fit.

    Parameters
    ----------
    model : estimator
        In memory.
    data : tuple
        Rows in memory, labels and row weights or None; or the paths of stores that the workers read, None and None.
    options : Namespace
        Of the command.
    """
    X, y, weights = data
    asked = clone(model).set_params(callbacks=None, verbose=int(model.verbose))
    if isinstance(options.C, tuple):
        asked.set_params(C=1.0)
    checked(asked)
    with connected(cluster_of(options.dask)) as client, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # rows that are in memory here must be sent
        threads = sum(client.nthreads().values())
        on_workers = isinstance(X, list)
        parts = len(X) if on_workers else max(1, min(X.shape[0], PARTS_A_THREAD * threads))
        rows = X if on_workers else as_dask(X, parts)
        facts: dict[str, dict[str, Any]] = {}
        if options.cv is None:
            fitted = asked.fit(rows, y, weights)
        else:
            fitted, facts["cross-validation"] = best_C(asked, options, options.cv, rows, y, weights)
        facts["done"] = {
            "cluster": f"{options.dask}, {len(client.nthreads())} workers, {threads} threads, {parts} partitions",
            **facts_of_rounds(fitted),
        }
    return fitted, facts


def facts_of_rounds(fitted: Any) -> dict[str, Any]:
    """Facts of the rounds of a fit."""
    trace = fitted.rounds_
    return {
        "rounds": fitted.n_iter_,
        "seconds in all": trace[-1]["seconds"],
        "seconds of work (slowest partition)": sum(row["seconds_work"] for row in trace),
        "seconds of communication": sum(row["seconds_communication"] for row in trace),
        "slowest partition, times the mean": float(np.mean([row["straggler"] for row in trace])),
        "bytes up": sum(row["bytes_up"] for row in trace),
        "bytes down": sum(row["bytes_down"] for row in trace),
    }
