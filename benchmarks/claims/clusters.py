"""Certified on a cluster at any C: rounds, bytes and seconds, on partitions in one process and on local Dask workers.

    python -m benchmarks.claims.clusters --data DIRECTORY --sets rcv1 --losses hinge --Cs 1 100 --table found.csv

DIRECTORY holds ``rcv1-binary.bz2`` and the folder ``fashion-mnist``. Each line says which method was taken, how many
rounds, the bytes that partitions sent and got, wall seconds, processor seconds (of the process here; in Dask's workers
the work is elsewhere, and "-"), and the proven gap. Lines are added to the table. ``--seconds`` limits a fit.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from scipy import sparse

from saddlesvm import dask as on_cluster
from saddlesvm.cluster.choice import choose_method
from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.partition import make_partition
from saddlesvm.data import read
from saddlesvm.estimators.on_cluster import MEMORY
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.losses import make_loss
from saddlesvm.rows.memory_plan import memory_bytes

NAMES = {"PassRounds": "passes", "OneWorker": "gather", "DualRounds": "rounds"}


def rows_of(name: str, folder: Path | None) -> tuple[Any, np.ndarray]:
    """Rows and labels of a set."""
    if folder is None:
        raise SystemExit(f"{name} needs --data")
    if name == "rcv1":
        table = read(folder / "rcv1-binary.bz2")
        return table.X, table.y
    table = read(folder / "fashion-mnist" / "train-images-idx3-ubyte.gz")
    return table.X.astype(np.float32) * np.float32(1 / 255), table.y


def make_dask_array(X: Any, parts: int) -> Any:
    """Return rows in memory as a Dask array whose blocks are neighbouring rows, dense or CSR."""
    n, d = X.shape
    cuts = [n * k // parts for k in range(parts + 1)]
    if not sparse.issparse(X):
        return da.from_array(np.asarray(X), chunks=(tuple(np.diff(cuts).tolist()), (d,)))
    blocks = []
    for start, stop in pairwise(cuts):
        rows = dask.delayed(X[start:stop])
        blocks.append(da.from_delayed(rows, (stop - start, d), X.dtype))
    return da.concatenate(blocks)


def in_process(X: Any, y: np.ndarray, loss: str, C: float, options: argparse.Namespace) -> dict[str, Any]:
    """A fit over partitions in this process."""
    classes = np.unique(y)
    cuts = np.array_split(np.arange(len(y)), options.parts)
    spans = [slice(int(rows[0]), int(rows[-1]) + 1) for rows in cuts]
    parts = [make_partition(X[i], y[i], None, classes, 1.0, "regularized", number=k) for k, i in enumerate(spans)]
    problems = 1 if classes.size == 2 else classes.size
    made = make_loss(loss, task="classification")
    plan = ClusterPlan(made, C, len(y), problems, X.shape[1], options.tol, max_time=options.seconds)
    memory = MEMORY if options.memory is None else memory_bytes(options.memory)
    method: Any = choose_method(options.solver, plan, sum(part.nbytes for part in parts), memory, len(parts))
    began = time.perf_counter()
    worked = time.process_time()
    solution = method(plan, Engine(parts)).run()
    told = {"seconds": time.perf_counter() - began, "processor": time.process_time() - worked}
    name = NAMES[getattr(method, "func", method).__name__]
    return {"method": name, "outcome": str(solution.outcome)} | told | of_trace(solution.trace, solution.certificates)


def on_dask(X: Any, y: np.ndarray, loss: str, C: float, options: argparse.Namespace, client: Client) -> dict[str, Any]:
    """The same on Dask workers."""
    model = on_cluster.LinearSVC(
        loss=loss, C=C, tol=options.tol, solver=options.solver, max_time=options.seconds, random_state=0,
        memory=options.memory, client=client,
    )  # fmt: skip
    began = time.perf_counter()
    model.fit(make_dask_array(X, options.parts), y)
    told = {"method": "", "outcome": str(model.outcome_), "seconds": time.perf_counter() - began, "processor": "-"}
    return told | of_trace(model.trace_, model.certificates_)


def of_trace(trace: list[dict[str, Any]], certificates: list[Certificate]) -> dict[str, Any]:
    """Rounds, megabytes and the gap."""
    return {
        "rounds": len(trace),
        "MB up": sum(row["bytes_up"] for row in trace) / 1e6,
        "MB down": sum(row["bytes_down"] for row in trace) / 1e6,
        "gap": Certificate.total(certificates).relative_gap,
    }


def found(options: argparse.Namespace, client: Client | None) -> Iterator[dict[str, Any]]:
    """A row of the table for each fit."""
    for name in options.sets:
        X, y = rows_of(name, options.data)
        for loss in options.losses:
            for C in options.Cs:
                what = {"data": name, "loss": loss, "C": C, "partitions": options.parts}
                if "process" in options.where:
                    yield what | {"where": "process"} | in_process(X, y, loss, C, options)
                if client is not None:
                    yield what | {"where": f"{options.workers} workers"} | on_dask(X, y, loss, C, options, client)


def main() -> None:
    """Print a line a fit, and add it to the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+", default=["rcv1", "fashion"], choices=["rcv1", "fashion"])
    parser.add_argument("--losses", nargs="+", default=["squared_hinge", "logistic", "hinge"])
    parser.add_argument("--Cs", nargs="+", type=float, default=[1.0, 100.0])
    parser.add_argument("--where", nargs="+", default=["process", "dask"], choices=["process", "dask"])
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--memory", help="of rows that may be brought together on a worker")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, help="limit of a fit")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    with ExitStack() as open_ones:
        client = None
        if "dask" in options.where:
            workers = {"n_workers": options.workers, "threads_per_worker": 1, "dashboard_address": None}
            cluster = open_ones.enter_context(LocalCluster(**workers, silence_logs=50))
            client = open_ones.enter_context(Client(cluster))
        for row in found(options, client):
            print(" ".join(f"{one:.3g}" if isinstance(one, float) else str(one) for one in row.values()))
            sys.stdout.flush()
            if options.table:
                new = not options.table.exists()
                with options.table.open("a", newline="") as file:
                    writer = csv.DictWriter(file, list(row))
                    if new:
                        writer.writeheader()
                    writer.writerow(row)


if __name__ == "__main__":
    main()
