"""``saddlesvm train DATA --dask local:4`` or ``--dask tcp://host:port``: the fit of a command on a cluster."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from saddlesvm.cli.asked import best_C
from saddlesvm.cli.reading import check_stores_asked
from saddlesvm.data import DataError, Store
from saddlesvm.data.readers import stores_of
from saddlesvm.estimators import register
from saddlesvm.estimators.on_cluster import TakesClusters, checked
from saddlesvm.runtime.words import CLUSTER_SOLVERS, SOLVER_NAMES

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


def option(name: str) -> str:
    """The spelling of an option on the command line."""
    return f"--{name.replace('_', '-')}"


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
            raise DataError(f"{option(name)} does not work with --dask: {instead}")
    if str(options.solver or "auto").partition(":")[0] not in CLUSTER_SOLVERS:
        raise DataError(f"--solver {options.solver} does not work with --dask; {', '.join(CLUSTER_SOLVERS)} do")
    if isinstance(options.C, str):
        raise DataError(f"--C {options.C} does not work with --dask: give several, as in --C 0.1,1,10, to choose from")
    if options.cv is not None and entry.task != "classification":
        raise DataError("--cv on a cluster needs classification")
    if isinstance(options.data, list):
        check_stores_asked(options, options.data, validation=None)


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
