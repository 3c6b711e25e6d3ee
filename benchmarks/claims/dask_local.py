"""Dask with four worker processes on this machine: certified, as good as one machine, also when a worker is killed.

For each data set: the model of a fit on the cluster, of the same with one worker killed in the third round, and of an
ordinary fit; how far apart their weights are, and how far their gaps allow them to be; and what reached the client.

    python -m benchmarks.claims.dask_local --data DIRECTORY

DIRECTORY holds ``rcv1-binary.bz2`` and the folder ``fashion-mnist``.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.claims.clusters import make_dask_array
from saddlesvm import LinearSVC, dask as on_cluster
from saddlesvm.data import read


def data_sets(folder: Path) -> dict[str, Callable[[], tuple[Any, np.ndarray, float]]]:
    """Rows, labels and C."""

    def rcv1() -> tuple[Any, np.ndarray, float]:
        table = read(folder / "rcv1-binary.bz2")
        return table.X, table.y, 1.0

    def fashion() -> tuple[Any, np.ndarray, float]:
        table = read(folder / "fashion-mnist" / "train-images-idx3-ubyte.gz")
        return table.X.astype(np.float32) * np.float32(1 / 255), table.y, 1e-4

    return {"rcv1-binary": rcv1, "Fashion-MNIST": fashion}


def distance(model: Any, other: Any) -> tuple[float, float]:
    """The largest distance of the weights of a class, as a share of what the two gaps allow; and that distance."""
    apart = np.hypot(np.linalg.norm(model.coef_ - other.coef_, axis=1), model.intercept_ - other.intercept_)
    allowed = [
        np.sqrt(2.0 * mine.gap) + np.sqrt(2.0 * theirs.gap)
        for mine, theirs in zip(model.certificates_, other.certificates_, strict=True)
    ]
    return float(np.max(apart / allowed)), float(apart.max())


def killer(client: Client, round_: int) -> Callable[[dict[str, Any]], None]:
    """A callback that kills a worker after a round."""
    first = next(iter(client.run(os.getpid).values()))

    def kill(row: dict[str, Any]) -> None:
        if row["round"] == round_:
            os.kill(first, signal.SIGKILL)

    return kill


def main() -> None:
    """Print a line a fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    common = {"loss": "squared_hinge", "tol": options.tol, "random_state": 0}
    print(
        f"{'data':14s} {'fit':14s} {'seconds':>8s} {'rounds':>6s} {'gap':>8s} {'apart':>9s} {'of allowed':>10s}",
        end=" ",
    )
    print(f"{'MB received':>11s} {'MB of rows':>10s} {'restarts':>8s}")
    with (
        LocalCluster(
            n_workers=options.workers, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        for name, make in data_sets(options.data).items():
            X, y, C = make()
            size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
            reference = LinearSVC(C=C, **common | {"tol": options.tol / 10}).fit(X, y)
            for what, callbacks in (("undisturbed", []), ("worker killed", [killer(client, 3)])):
                began = time.perf_counter()
                model = on_cluster.LinearSVC(C=C, callbacks=callbacks, **common).fit(make_dask_array(X, 8), y)
                spent = time.perf_counter() - began
                share, apart = distance(model, reference)
                received = sum(row["bytes_up"] for row in model.trace_) / 8  # the sum of the eight partitions' reports
                print(
                    f"{name:14s} {what:14s} {spent:8.1f} {model.n_iter_:6d} {model.certificate_.relative_gap:8.1e} "
                    f"{apart:9.2e} {share:10.2f} {received / 1e6:11.2f} {size / 1e6:10.1f} "
                    f"{model.trace_[-1]['restarts']:8d}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
