"""Fits on a Dask cluster, with ``--dask local:4`` or ``--dask tcp://host:port``."""

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
from saddlesvm.cli.models import make_estimator
from saddlesvm.cli.options import write_flag
from saddlesvm.cli.rows import reading_task
from saddlesvm.cli.show import Facts
from saddlesvm.data import DataError, Store
from saddlesvm.data.data_table import shorten
from saddlesvm.data.readers import stores_at
from saddlesvm.estimators import register
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.on_cluster import checked
from saddlesvm.estimators.preparation import Preparation
from saddlesvm.runtime.extras import how_to_install
from saddlesvm.runtime.option_names import CLUSTER_SOLVERS, SOLVER_NAMES

PARTS_A_THREAD = 2  # parts of the rows for each thread, so that no thread waits long (guessed)
# Options that a fit on a cluster does not have, and what to do instead.
REFUSED = {
    "n_jobs": "the number of workers sets the threads: leave it out",
    "checkpoint": "a fit continues if workers are lost: leave it out; --model saves the model",
    "probability": "give --loss logistic, whose models have probabilities",
}


def check_dask(
    where: str | None, asked: dict[str, Any], folds: int | None, entry: register.Entry
) -> None:
    """Raise DataError for options that do not work with ``--dask``, or only with it."""
    # Without --dask, a solver for clusters alone is a mistake.
    solver = str(asked.get("solver", "auto"))
    if where is None:
        if solver in set(CLUSTER_SOLVERS) - set(SOLVER_NAMES):
            raise DataError(f"--solver {solver} is for a fit on a cluster: give --dask, too")
        return
    read_address(where)
    if not issubclass(entry.kind, (LinearSVC, LinearSVR)):
        raise DataError(f"--dask is for LinearSVC and LinearSVR; {entry.name} is fitted without")
    for name, instead in REFUSED.items():
        if name in asked:
            raise DataError(f"{write_flag(name)} does not work with --dask: {instead}")
    if solver.partition(":")[0] not in CLUSTER_SOLVERS:
        raise DataError(
            f"--solver {solver} does not work with --dask; {', '.join(CLUSTER_SOLVERS)} do"
        )
    if isinstance(asked.get("C"), str):
        raise DataError(
            f"--C {asked['C']} does not work with --dask: give several values to choose from, as "
            "in --C 0.1,1,10"
        )
    if folds is not None and entry.task != "classification":
        raise DataError("--cv with --dask is for classification: leave one of the two out")


def read_address(text: str) -> int | str:
    """Return the number of processes of ``local:N``, or the address of a scheduler."""
    kind, _, count = text.partition(":")
    if kind == "local" and count.isdigit() and int(count) > 0:
        return int(count)
    if "://" in text:
        return text
    raise DataError(
        f"--dask {text!r}: local:N (N processes here) or an address such as tcp://host:8786 is "
        "allowed"
    )


@contextmanager
def connect(where: int | str) -> Iterator[Any]:
    """Connect to a cluster; a number starts a cluster here, which ends afterwards."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise DataError(
            f"--dask needs the packages dask and distributed: {how_to_install('dask')}"
        ) from error
    # A cluster of this command, or one that runs already.
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


def make_dask_array(X: Any, parts: int) -> Any:
    """Return rows in memory as a Dask array whose blocks are neighbouring rows, dense or CSR."""
    import dask
    import dask.array as da

    n, d = X.shape
    cuts = [n * k // parts for k in range(parts + 1)]
    if not sparse.issparse(X):
        return da.from_array(np.asarray(X), chunks=(tuple(np.diff(cuts).tolist()), (d,)))
    blocks = []
    for start, stop in pairwise(cuts):
        rows = dask.delayed(X[start:stop])
        blocks.append(da.from_delayed(rows, (stop - start, d), X.dtype))
    return da.concatenate(blocks)


def open_stores(paths: list[str]) -> list[Store]:
    """Open stores with labels and the same features, for the workers to read.

    Raises
    ------
    DataError
        A path is not a store, or a store has no labels, or another number of features.
    """
    stores = stores_at(paths)
    for store in stores:
        if store.y is None:
            raise DataError(
                f"{store.path}: has no labels to learn from: convert the data again with --label"
            )
        if store.shape[1] != stores[0].shape[1]:
            raise DataError(
                f"{store.path}: has {store.shape[1]} features, {stores[0].path} has "
                f"{stores[0].shape[1]}: stores of one fit have the same features"
            )
    return stores


def fit_on_cluster(
    model: Any, data: tuple[Any, Any, Any], asked: dict[str, Any], folds: int | None, where: str
) -> tuple[Any, Facts]:
    """Train a model on a cluster; return it, in memory, and facts of the fit.

    Parameters
    ----------
    model : estimator
        Its parameters say what is fitted.
    data : tuple
        Rows in memory, labels, and row weights or None; or the paths of stores that the workers
        read, None and None.
    asked : dict
        Options of the model.
    folds : int or None
        The folds of a choice among several values of C.
    where : str
        The value of ``--dask``.
    """
    X, y, weights = data
    model = clone(model).set_params(callbacks=None)
    if isinstance(asked.get("C"), tuple):
        model.set_params(C=1.0)
    checked(model)
    facts: Facts = {}
    with connect(read_address(where)) as client, warnings.catch_warnings():
        # Rows that are in memory here must be sent, even if Dask finds the graph large.
        warnings.filterwarnings("ignore", "Sending large graph")
        n_threads = sum(client.nthreads().values())
        if isinstance(X, list):
            rows = X
            n_parts = len(X)
        else:
            n_parts = max(1, min(X.shape[0], PARTS_A_THREAD * n_threads))
            rows = make_dask_array(X, n_parts)
        if folds is None:
            model = model.fit(rows, y, weights)
        else:
            model, facts["cross_validation"] = choose_C(model, asked, folds, (rows, y, weights))
        facts["fit"] = {
            "cluster": where,
            "workers": len(client.nthreads()),
            "threads": n_threads,
            "partitions": n_parts,
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
    """Train on stores that only the workers read; return the exit code of ``train``."""
    # The labels and the headers are read here, the rows by the workers.
    stores = open_stores(data)
    y = np.concatenate([np.unique(np.asarray(store.y)) for store in stores])
    model = make_estimator(asked, entry, y, quiet=outputs["as_json"])
    results.check_liblinear(model, outputs["liblinear"], entry, y)
    n = sum(len(store) for store in stores)
    data_facts = {"stores": len(stores), "rows": n, "features": stores[0].shape[1]}
    facts: Facts = {"data": data_facts}
    preparation = Preparation.of_stores(stores)
    tested = None
    if test is not None:
        tested = preparation.read(test, task=reading_task(entry))
        facts["test_data"] = describe_data(tested)

    # Workers may have another working directory.
    paths = [os.path.abspath(store.path) for store in stores]
    model, found = fit_on_cluster(model, (paths, None, None), asked, folds, where)
    facts |= found
    facts["quality"] = describe_quality(model)
    if tested is not None:
        facts["quality"] |= describe_worth(model, model.predict(tested.X), tested.y, "test")
    notes = {"trained on": shorten(data), "rows": n} | preparation.notes
    return results.finish(model, facts, outputs, began, preparation=preparation, notes=notes)


def describe_rounds(model: Any) -> dict[str, Any]:
    """Return facts of the rounds of a fit."""
    rounds = model.rounds_
    slowest = [record["straggler"] for record in rounds]
    return {
        "rounds": model.n_iter_,
        "seconds_in_all": rounds[-1]["seconds"],
        "seconds_of_work": sum(record["seconds_work"] for record in rounds),
        "seconds_of_communication": sum(record["seconds_communication"] for record in rounds),
        "slowest_partition_over_mean": float(np.mean(slowest)),
        "bytes_up": sum(record["bytes_up"] for record in rounds),
        "bytes_down": sum(record["bytes_down"] for record in rounds),
    }
