"""More features than a matrix of them fits anywhere: sweeps of a store, and rounds of partitions, to a gap of 1e-6.

The solvers are those of stores and clusters, in one process; sweeps and rounds do not depend on the machine:

    python -m benchmarks.claims.wide --data DIRECTORY

DIRECTORY holds ``rcv1-binary.bz2``; left out, only the synthetic text is run, 100,000 rows and 4,000 features.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.cluster import over_passes
from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.over_passes import PassRounds
from saddlesvm.cluster.partition import make_partition
from saddlesvm.cluster.rounds import DualRounds
from saddlesvm.data import read
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.problem.losses import Logistic, SquaredHinge
from saddlesvm.problem.problem import Rooms, make_problem
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import FromFiles
from saddlesvm.solvers.auto_on_files import AutoOnFiles
from saddlesvm.solvers.blocks import Blocks
from saddlesvm.solvers.newton_on_files import NewtonOnFiles

CHUNKS = 24  # in a block
NO_ROOM = 1e-9  # bytes for matrices


def text(n: int = 100_000, d: int = 4_000, words: int = 60) -> tuple[Any, np.ndarray]:
    """Rows of words of Zipf-like frequencies, weighed and of length one, and labels with noise."""
    random = np.random.default_rng(0)
    shares = np.arange(1.0, d + 1.0) ** -0.9
    drawn = random.choice(d, size=(n, words), p=shares / shares.sum())
    X = sparse.csr_array((np.ones(n * words), drawn.ravel(), np.arange(0, n * words + 1, words)), shape=(n, d))
    X.sum_duplicates()
    rarity = np.log(n / (1.0 + np.bincount(X.indices, minlength=d)))
    X = X.multiply(np.maximum(rarity, 0.0)).tocsr()
    X = sparse.diags_array(1.0 / np.sqrt(X.multiply(X).sum(axis=1))) @ X
    scores = X @ random.normal(size=d)
    scores += 0.5 * scores.std() * random.normal(size=n) - np.median(scores)
    return sparse.csr_array(X), np.where(scores > 0.0, 1.0, -1.0)


def sweeps(X: Any, y: np.ndarray, loss: Any, C: float, solver: Any, options: argparse.Namespace) -> str:
    """Sweeps over rows in so many blocks, of which two are in memory at a time."""
    rows = as_rows(X)
    n = y.size
    edges = np.linspace(0, n, CHUNKS * options.blocks + 1).astype(np.int64)
    with BlockReader(rows, edges, CHUNKS, np.zeros(n)) as reader:
        rooms = Rooms(np.zeros(n), np.zeros(n), np.zeros(n))
        problem = make_problem(FromFiles(reader, np.arange(n)), y, loss, rooms=rooms, C=C)
        found = fit(problem, solver, Limits(tol=options.tol, max_epochs=options.most, max_time=options.seconds))
    return said(found.epochs, found.certificate.relative_gap, options)


def rounds(X: Any, y: np.ndarray, loss: Any, C: float, K: int, make: Any, options: argparse.Namespace) -> str:
    """Rounds over so many partitions."""
    spans = np.array_split(np.arange(y.size), K)
    parts = [make_partition(X[one], y[one], None, np.unique(y), 0.0, "none", number=k) for k, one in enumerate(spans)]
    plan = ClusterPlan(loss, C, y.size, 1, X.shape[1], options.tol, options.most, options.seconds, scale=0.0)
    found = make(plan, Engine(parts)).run()
    megabytes = np.mean([row["bytes_up"] + row["bytes_down"] for row in found.trace]) / K / 1e6
    return f"{said(found.rounds, found.certificates[0].relative_gap, options)}, {megabytes:.2f} MB a partition"


def said(count: float, gap: float, options: argparse.Namespace) -> str:
    """How many it took, or where it stood when a limit ended it."""
    return f"{count:.0f}" if gap <= options.tol else f"{gap:.0e} after {count:.0f}"


def main() -> None:
    """Run the grid and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--most", type=int, default=300, help="sweeps or rounds at most")
    parser.add_argument("--seconds", type=float, default=20.0, help="limit of one fit")
    parser.add_argument("--blocks", type=int, default=8)
    options = parser.parse_args()
    over_passes.MOST_BYTES = 0.0  # products in the place of matrices, for the smaller set too
    sets = {"text 100,000 x 4,000": text()}
    if options.data:
        found = read(options.data / "rcv1-binary.bz2")
        mixed = np.random.default_rng(5).permutation(found.y.size)
        sets["rcv1-binary"] = (sparse.csr_array(found.X)[mixed], np.where(found.y == found.y.max(), 1.0, -1.0)[mixed])
    solvers = {"blocks": Blocks(), "newton": NewtonOnFiles(0.0), "auto": AutoOnFiles(NO_ROOM)}
    for name, (X, y) in sets.items():
        for loss in (SquaredHinge(), Logistic()):
            for C in (1.0, 100.0):
                case = f"{name}, {type(loss).__name__}, C={C:g}"
                told = [f"{key} {sweeps(X, y, loss, C, one, options)}" for key, one in solvers.items()]
                print(f"{case}: sweeps: {'; '.join(told)}", flush=True)
                for K in (4, 16, 64):
                    both = [rounds(X, y, loss, C, K, make, options) for make in (DualRounds, PassRounds)]
                    print(f"{case}, {K} partitions: the dual in parts {both[0]}; newton {both[1]}", flush=True)


if __name__ == "__main__":
    main()
