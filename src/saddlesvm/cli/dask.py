"""``saddlesvm train DATA --dask local:4`` or ``--dask tcp://host:port``: the fit of a command on a cluster."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import DataError
from saddlesvm.estimators import register

PARTS_A_THREAD = 2
ALLOWED = {  # values of options that a fit on a cluster has
    "intercept": ("regularized",),
    "multi_class": ("ovr",),
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


def fit_on_cluster(model: Any, X: Any, y: np.ndarray, where: str, verbose: bool) -> tuple[Any, dict[str, Any]]:
    """Train the model that `model` describes on a cluster; returns it as a model in memory, and facts of the fit."""
    place = cluster_of(where)
    check(model)
    with connected(place) as client, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # rows that are in memory here must be sent

        kind = cluster_kind(model)
        own = [name for name in register.parameters_of(kind) if name not in OF_THE_CLIENT]
        options = {name: getattr(model, name) for name in own if hasattr(model, name)}
        threads = sum(client.nthreads().values())
        parts = max(1, min(len(y), PARTS_A_THREAD * threads))
        fitted = kind(**options, client=client, verbose=int(verbose)).fit(as_dask(X, parts), y)
        rounds = fitted.trace_
        facts = {
            "cluster": f"{where}, {len(client.nthreads())} workers, {threads} threads, {parts} partitions",
            "rounds": fitted.n_iter_,
            "seconds in all": fitted.seconds_,
            "seconds of work (slowest partition)": sum(row["seconds_work"] for row in rounds),
            "seconds of communication": sum(row["seconds_communication"] for row in rounds),
            "slowest partition, times the mean": float(np.mean([row["straggler"] for row in rounds])),
            "bytes up": sum(row["bytes_up"] for row in rounds),
            "bytes down": sum(row["bytes_down"] for row in rounds),
        }
    return fitted.to_local(), facts
