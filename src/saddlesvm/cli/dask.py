"""``saddlesvm train DATA --dask local:4`` or ``--dask tcp://host:port``: the fit of a command on a cluster."""

from __future__ import annotations

import glob
import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import DataError, Store
from saddlesvm.data.store import is_store
from saddlesvm.estimators import register

PARTS_A_THREAD = 2
ALLOWED = {  # values of options that a fit on a cluster has
    "intercept": ("regularized", "free"),
    "multi_class": ("ovr", "ovo"),
    "penalty": ("l2",),
    "solver": ("auto", "newton"),
    "checkpoint": (None,),
}
OF_THE_CLIENT = ("client", "verbose", "callbacks")  # options that the model in memory does not have


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


def stores_of(pattern: str) -> list[Store]:
    """The stores that a pattern means, in the order of their names.

    Raises
    ------
    DataError
        There are none, or one of them is no store, has no labels, or another number of features.
    """
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise DataError(f"{pattern}: no store has such a name")
    for path in paths:
        if not is_store(path):
            raise DataError(f"{path}: is no store; the workers of --dask read stores: saddlesvm convert makes them")
    stores = [Store(path) for path in paths]
    for store in stores:
        if store.y is None:
            raise DataError(f"{store.path}: holds no labels to learn from")
        if store.shape[1] != stores[0].shape[1]:
            raise DataError(f"{store.path}: has {store.shape[1]} features, {stores[0].path} has {stores[0].shape[1]}")
    return stores


def check(model: Any) -> None:
    """Raise DataError for an option that a fit on a cluster does not have."""
    for name, allowed in ALLOWED.items():
        given = getattr(model, name, allowed[0])
        if given not in allowed and (name != "intercept" or model.fit_intercept):
            raise DataError(f"--{name.replace('_', '-')} {given} does not go with --dask")


def cluster_kind(model: Any) -> Any:
    """The estimator that fits on a cluster what `model` fits in memory.

    Raises
    ------
    DataError
        There is no such estimator.
    """
    entry = register.entry_of(model)
    module, _, name = (entry.on_cluster if entry else "").partition(":")
    if not name:
        raise DataError(f"--dask: {type(model).__name__} has no fit on a cluster")
    return getattr(importlib.import_module(module), name)


def fit_on_cluster(model: Any, X: Any, y: np.ndarray | None, where: str, verbose: bool) -> tuple[Any, dict[str, Any]]:
    """Train the model that `model` describes on a cluster; returns it as a model in memory, and facts of the fit.

    X are rows in memory, or the paths of stores that the workers read.
    """
    place = cluster_of(where)
    check(model)
    with connected(place) as client, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # rows that are in memory here must be sent

        kind = cluster_kind(model)
        own = [name for name in register.parameters_of(kind) if name not in OF_THE_CLIENT]
        options = {name: getattr(model, name) for name in own if hasattr(model, name)}
        threads = sum(client.nthreads().values())
        on_workers = isinstance(X, list)
        parts = len(X) if on_workers else max(1, min(X.shape[0], PARTS_A_THREAD * threads))
        rows = X if on_workers else as_dask(X, parts)
        fitted = kind(**options, client=client, verbose=int(verbose)).fit(rows, y)
        trace = fitted.trace_
        facts = {
            "cluster": f"{where}, {len(client.nthreads())} workers, {threads} threads, {parts} partitions",
            "rounds": fitted.n_iter_,
            "seconds in all": fitted.seconds_,
            "seconds of work (slowest partition)": sum(row["seconds_work"] for row in trace),
            "seconds of communication": sum(row["seconds_communication"] for row in trace),
            "slowest partition, times the mean": float(np.mean([row["straggler"] for row in trace])),
            "bytes up": sum(row["bytes_up"] for row in trace),
            "bytes down": sum(row["bytes_down"] for row in trace),
        }
    return fitted.to_local(), facts
