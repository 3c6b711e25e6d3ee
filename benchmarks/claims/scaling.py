"""How far it scales, by simulation: rounds to a gap against the number of partitions and lambda, in one process.

The partitions, the local steps, the aggregation and the certificates are those of a cluster; only the transport is
left out, and worked out from the bytes. Writes a table (CSV) and a picture:

    python -m benchmarks.claims.scaling --data DIRECTORY --table scaling.csv
        --picture docs/measurements/how-far-it-scales.png

DIRECTORY holds ``rcv1-binary.bz2``; left out, only the synthetic set is run.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import embedding_like
from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.over_passes import PassRounds, has_small_matrices
from saddlesvm.cluster.partition import make_partition
from saddlesvm.cluster.rounds import DualRounds
from saddlesvm.data import atomic_write, read
from saddlesvm.problem.losses import Hinge, Loss, SquaredHinge

PARTITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SHARES = (1.0, 10.0, 100.0)  # lambda n = 1 / C
NETWORK = 10e9 / 8  # bytes a second of a 10 Gbit network
LATENCY = 1e-3  # seconds that a wave of tasks takes to be sent out and answered, whatever its size
BRANCHES = 8  # reports that one task adds up


def methods_for(d: int, options: argparse.Namespace) -> dict[str, tuple[Loss, Any]]:
    """Methods by name: the loss that they are shown with, and what makes their rounds."""
    found: dict[str, tuple[Loss, Any]] = {"the dual in parts": (SquaredHinge(), DualRounds)}
    if has_small_matrices(SquaredHinge(), d, 1):
        found["Newton's method"] = SquaredHinge(), PassRounds
        found["the hinge by its active set"] = Hinge(), PassRounds
    return {name: one for name, one in found.items() if not options.methods or name in options.methods}


def simulate(X: Any, y: np.ndarray, C: float, K: int, method: tuple[Loss, Any], options: Any) -> dict[str, Any]:
    """Rounds to the gap, and what they cost."""
    n, d = X.shape
    order = np.random.default_rng(0).permutation(n)
    classes = np.unique(y)
    loss, make = method
    spans = np.array_split(order, K)
    parts = [
        make_partition(X[rows], y[rows], None, classes, 0.0, "none", number=place) for place, rows in enumerate(spans)
    ]
    tol = options.tol if make is DualRounds else options.newton_tol
    plan = ClusterPlan(loss, C, n, 1, d, tol, options.rounds, options.seconds, scale=0.0)
    more = {"most": int(options.room * n)} if make is PassRounds else {}
    began = time.perf_counter()
    solution = make(plan, Engine(parts), **more).run()
    last = solution.trace[-1]
    work = float(np.median([row["seconds_work"] for row in solution.trace]))
    waves = max(1, int(np.ceil(np.log(K) / np.log(BRANCHES)))) + 1 if K > 1 else 0
    transport = waves * (LATENCY + last["bytes_up"] / K * BRANCHES / NETWORK) if K > 1 else 0.0
    return {
        "partitions": K,
        "lambda_n": 1.0 / C,
        "outcome": str(solution.outcome),
        "rounds": solution.rounds,
        "relative_gap": last["relative_gap"],
        "sigma": last.get("sigma", np.nan),
        "bytes_a_round": float(np.mean([row["bytes_up"] + row["bytes_down"] for row in solution.trace])),
        "seconds_work_a_round": work,
        "seconds_network_a_round": transport,
        "predicted_seconds": solution.rounds * (work + transport),
        "simulated_seconds": time.perf_counter() - began,
    }


def draw(table: list[dict[str, Any]], path: str) -> None:
    """Rounds, and predicted seconds, against the number of partitions."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = sorted({row["data"] for row in table})
    figure, axes = plt.subplots(2, len(names), figsize=(5.2 * len(names), 7), squeeze=False, layout="constrained")
    for column, name in enumerate(names):
        for share in SHARES:
            rows = [row for row in table if row["data"] == name and row["lambda_n"] == share]
            done = [row for row in rows if row["outcome"] == "certified"]
            label = f"λn = {share:g}"
            line = axes[0, column].plot([r["partitions"] for r in done], [r["rounds"] for r in done], "o-", label=label)
            axes[1, column].plot(
                [r["partitions"] for r in done], [r["predicted_seconds"] for r in done], "o-", color=line[0].get_color()
            )
            late = [row for row in rows if row["outcome"] == "epoch_limit"]
            axes[0, column].plot(
                [r["partitions"] for r in late], [r["rounds"] for r in late], "x", color=line[0].get_color()
            )
        axes[0, column].set(title=name, ylabel="rounds to the gap (×: more)")
        axes[1, column].set(xlabel="partitions", ylabel="predicted seconds, 10 Gbit/s")
        for row in (0, 1):
            axes[row, column].set(xscale="log", yscale="log")
            axes[row, column].grid(alpha=0.3)
        axes[0, column].legend()
    with atomic_write(path) as file:
        figure.savefig(file, dpi=110, format="png")


def main() -> None:
    """Run the grid, print it, and write table and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--picture")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--newton-tol", type=float, default=1e-6, help="the gap for Newton's method")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=20.0, help="limit of one simulation")
    parser.add_argument("--room", type=float, default=0.1, help="share of rows that the active set may bring together")
    parser.add_argument("--methods", nargs="+", help="names of methods; all by default")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the synthetic set")
    parser.add_argument("--most", type=int, default=1024, help="partitions at most")
    options = parser.parse_args()
    sets: dict[str, Any] = {f"dense {options.rows:,} x 100": embedding_like(options.rows, 100)}
    if options.data:
        found = read(options.data / "rcv1-binary.bz2")
        sets["rcv1-binary"] = (found.X, found.y)
    table = []
    for name, (X, y) in sets.items():
        for share in SHARES:
            for K in (K for K in PARTITIONS if options.most >= K):
                for called, method in methods_for(X.shape[1], options).items():
                    row = {"data": name if method[1] is DualRounds else f"{name}, {called}"}
                    row |= simulate(X, y, 1.0 / share, K, method, options)
                    table.append(row)
                    print(" ".join(f"{one:.3g}" if isinstance(one, float) else str(one) for one in row.values()))
                    sys.stdout.flush()
    if options.table:
        with options.table.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]))
            writer.writeheader()
            writer.writerows(table)
    if options.picture:
        draw(table, options.picture)


if __name__ == "__main__":
    main()
