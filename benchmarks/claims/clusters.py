"""Certified on a cluster at any C: rounds and seconds on local Dask workers.

    python -m benchmarks.claims.clusters --data DIRECTORY --sets rcv1 --losses hinge --Cs 1 100 --table found.csv

DIRECTORY holds ``rcv1-binary.bz2`` and the folder ``fashion-mnist``. Each line says how many rounds a fit took, its
wall seconds, and the proven gap. Lines are added to the table. ``--seconds`` limits a fit.
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

from saddlesvm import LinearSVC
from saddlesvm.data import read
from saddlesvm.problem.certificate import Certificate


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


def fit_on_dask(X: Any, y: np.ndarray, loss: str, C: float, options: argparse.Namespace) -> dict[str, Any]:
    """Rounds, seconds and the gap of a fit on Dask workers."""
    model = LinearSVC(
        loss=loss, C=C, tol=options.tol, solver=options.solver, max_time=options.seconds, random_state=0,
        memory=options.memory,
    )  # fmt: skip
    began = time.perf_counter()
    model.fit(make_dask_array(X, options.parts), y)
    seconds = time.perf_counter() - began
    gap = Certificate.total(model.certificates_).relative_gap
    return {"outcome": str(model.outcome_), "rounds": model.n_iter_, "seconds": seconds, "gap": gap}


def found(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row of the table for each fit."""
    for name in options.sets:
        X, y = rows_of(name, options.data)
        for loss in options.losses:
            for C in options.Cs:
                what = {"data": name, "loss": loss, "C": C, "partitions": options.parts, "solver": options.solver}
                yield what | fit_on_dask(X, y, loss, C, options)


def main() -> None:
    """Print a line a fit, and add it to the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+", default=["rcv1", "fashion"], choices=["rcv1", "fashion"])
    parser.add_argument("--losses", nargs="+", default=["squared_hinge", "logistic", "hinge"])
    parser.add_argument("--Cs", nargs="+", type=float, default=[1.0, 100.0])
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--memory", help="of rows that may be brought together on a worker")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, help="limit of a fit")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    with ExitStack() as open_ones:
        workers = {"n_workers": options.workers, "threads_per_worker": 1, "dashboard_address": None}
        cluster = open_ones.enter_context(LocalCluster(**workers, silence_logs=50))
        open_ones.enter_context(Client(cluster))
        for row in found(options):
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
