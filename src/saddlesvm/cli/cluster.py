"""Fits on a Dask cluster: ``--dask local:4``, or ``--dask tcp://host:port``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from saddlesvm.cli import results
from saddlesvm.cli.choice import choose_C
from saddlesvm.cli.facts import describe_data, describe_quality, describe_worth
from saddlesvm.cli.models import flag, make_estimator
from saddlesvm.cli.show import Facts
from saddlesvm.data import DataError, Store
from saddlesvm.data.readers import stores_of
from saddlesvm.data.table import shorten
from saddlesvm.estimators import register
from saddlesvm.estimators.linear import LinearEstimator
from saddlesvm.estimators.on_cluster import checked
from saddlesvm.estimators.preparation import Preparation
from saddlesvm.runtime.extras import how_to_install
from saddlesvm.runtime.option_names import CLUSTER_SOLVERS, SOLVER_NAMES

PARTS_A_THREAD = 2
REFUSED = {  # options that a fit on a cluster does not have, and what it has instead
    "n_jobs": "the threads of the workers do the work",
    "checkpoint": "a fit continues after workers are lost; --model saves the model",
    "probability": "the logistic loss has probabilities of its own",
}


def check_dask(where: str | None, asked: dict[str, Any], folds: int | None, entry: register.Entry) -> None:
    """Check ``--dask`` and the options that do not work with it, before any work.

    Raises
    ------
    DataError
        An option does not work with it, or with it alone.
    """
    solver = str(asked.get("solver", "auto"))
    if where is None:
        if solver in set(CLUSTER_SOLVERS) - set(SOLVER_NAMES):
            raise DataError(f"--solver {solver} is for a fit on a cluster: give --dask, too")
        return
    read_address(where)
    if not issubclass(entry.kind, LinearEstimator):
        raise DataError(f"--dask: {entry.name} has no fit on a cluster")
    for name, instead in REFUSED.items():
        if name in asked:
            raise DataError(f"{flag(name)} does not work with --dask: {instead}")
    if solver.partition(":")[0] not in CLUSTER_SOLVERS:
        raise DataError(f"--solver {solver} does not work with --dask; {', '.join(CLUSTER_SOLVERS)} do")
    if isinstance(asked.get("C"), str):
        raise DataError(f"--C {asked['C']} does not work with --dask: give several, as in --C 0.1,1,10, to choose from")
    if folds is not None and entry.task != "classification":
        raise DataError("--cv on a cluster needs classification")


def read_address(text: str) -> int | str:
    """The number of processes of ``local:N``, or the address of a scheduler."""
    kind, _, count = text.partition(":")
    if kind == "local" and count.isdigit() and int(count) > 0:
        return int(count)
    if "://" in text:
        return text
    raise DataError(f"--dask {text!r}: local:N (N processes here) or an address such as tcp://host:8786 is allowed")


@contextmanager
def connect(where: int | str) -> Iterator[Any]:
    """A client of the cluster; a number starts one here, which ends afterwards."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise DataError(f"--dask needs the packages dask and distributed: {how_to_install('dask')}") from error
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


def open_stores(paths: list[str]) -> list[Store]:
    """Stores with labels and the same features, for the workers to read.

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


def fit_on_cluster(
    model: Any, data: tuple[Any, Any, Any], asked: dict[str, Any], folds: int | None, where: str
) -> tuple[Any, dict[str, dict[str, Any]]]:
    """Train the model that `model` describes on a cluster; it comes back in memory, with facts of the fit.

    Parameters
    ----------
    model : estimator
        In memory.
    data : tuple
        Rows in memory, labels and row weights or None; or the paths of stores that the workers read, None and None.
    asked : dict
        Options of the model.
    folds : int or None
        Of a choice among several values of C.
    where : str
        What ``--dask`` says.
    """
    X, y, weights = data
    model = clone(model).set_params(callbacks=None)
    if isinstance(asked.get("C"), tuple):
        model.set_params(C=1.0)
    checked(model)
    facts: dict[str, dict[str, Any]] = {}
    with connect(read_address(where)) as client, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # rows that are in memory here must be sent
        threads = sum(client.nthreads().values())
        are_stores = isinstance(X, list)
        parts = len(X) if are_stores else max(1, min(X.shape[0], PARTS_A_THREAD * threads))
        rows = X if are_stores else as_dask(X, parts)
        if folds is None:
            model = model.fit(rows, y, weights)
        else:
            model, facts["cross_validation"] = choose_C(model, asked, folds, (rows, y, weights))
        facts["fit"] = {
            "cluster": where,
            "workers": len(client.nthreads()),
            "threads": threads,
            "partitions": parts,
            **describe_rounds(model),
        }
    return model, facts


def train_on_stores(
    data: list[str],
    test: str | None,
    entry: register.Entry,
    asked: dict[str, Any],
    folds: int | None,
    where: str,
    outputs: dict[str, Any],
    began: float,
) -> int:
    """Train on stores that the workers read; no row passes through here. The exit code of ``train``."""
    stores = open_stores(data)
    y = np.concatenate([np.unique(np.asarray(store.y)) for store in stores])
    model = make_estimator(asked, entry, y, quiet=outputs["as_json"])
    results.check_liblinear(model, outputs["liblinear"], entry, y)
    n = sum(len(store) for store in stores)
    facts: Facts = {"data": {"stores": len(stores), "rows": n, "features": stores[0].shape[1]}}
    preparation = Preparation.of_stores(stores)
    tested = None
    if test is not None:
        tested = preparation.read(test, task="regression" if entry.task == "regression" else None)
        facts["test_data"] = describe_data(tested)

    paths = [os.path.abspath(store.path) for store in stores]
    model, found = fit_on_cluster(model, (paths, None, None), asked, folds, where)
    facts |= found
    facts["quality"] = describe_quality(model)
    if tested is not None:
        facts["quality"] |= describe_worth(model, model.predict(tested.X), tested.y, "test")
    notes = {"trained on": shorten(data), "rows": n} | preparation.notes
    return results.finish(model, facts, outputs, began, preparation=preparation, notes=notes)


def describe_rounds(model: Any) -> dict[str, Any]:
    """Facts of the rounds of a fit."""
    rounds = model.rounds_
    return {
        "rounds": model.n_iter_,
        "seconds_in_all": rounds[-1]["seconds"],
        "seconds_of_work": sum(one["seconds_work"] for one in rounds),
        "seconds_of_communication": sum(one["seconds_communication"] for one in rounds),
        "slowest_partition_over_mean": float(np.mean([one["straggler"] for one in rounds])),
        "bytes_up": sum(one["bytes_up"] for one in rounds),
        "bytes_down": sum(one["bytes_down"] for one in rounds),
    }
