"""What a worker of a cluster takes for the problem over the free rows: the active set, round by round, on one core.

    python -m benchmarks.parts.settling --rows 10000000 --features 100 --taken 450000 45000 4500

Prints, for each round, the gap, the rows brought together, and processor seconds of one thread: of the passes over all
partitions, and of the problem over the rows brought together. Made in chunks; 10,000,000 x 100 take 4 GB.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import embedding_like
from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.over_passes import PassRounds, count_sent
from saddlesvm.cluster.partition import Partition, make_partition
from saddlesvm.problem.losses import Hinge

CHUNK = 250_000  # rows made at once


class Timed(Engine):
    """Partitions in this process, with the processor seconds of a round's two kinds of work."""

    passing = solving = 0.0
    taken = 0

    def persist(self, *given: Any) -> Any:
        """The passes over all partitions."""
        began = time.process_time()
        found = super().persist(*given)
        self.passing = time.process_time() - began
        self.taken = count_sent(found.found)
        return found

    def map_each(self, *given: Any) -> Any:
        """The problems over the rows brought together."""
        began = time.process_time()
        found = super().map_each(*given)
        self.solving = time.process_time() - began
        return found


def partitions(rows: int, features: int, count: int) -> list[Partition]:
    """Partitions of rows of one rule, float32."""
    rule = np.random.default_rng(0).normal(size=features)
    parts = []
    for place in range(count):
        sizes = np.diff(np.append(np.arange(0, rows // count, CHUNK), rows // count))
        X = np.empty((rows // count, features), dtype=np.float32)
        y = np.empty(len(X))
        done = 0
        for number, size in enumerate(sizes.tolist()):
            span = slice(done, done + size)
            X[span] = embedding_like(size, features, np.float32, seed=[place, number])[0]  # type: ignore[arg-type]
            noise = 0.3 * np.random.default_rng([place, number, 1]).normal(size=size)
            y[span] = np.where(X[span] @ rule + noise > 0, 1.0, -1.0)
            done += size
        parts.append(make_partition(X, y, None, np.array([-1.0, 1.0]), 0.0, "none", number=place))
    return parts


def shown(engine: Timed) -> Callable[[dict[str, Any]], None]:
    """Prints a round."""

    def show(row: dict[str, Any]) -> None:
        print(
            f"round {row['round']:3}: gap {row['relative_gap']:8.1e}, {engine.taken:9,} rows, "
            f"{row['bytes_up'] / 1e6:7.1f} MB; passes {engine.passing:6.1f} s, solving {engine.solving:6.1f} s"
        )
        sys.stdout.flush()

    return show


def main() -> None:
    """Make the rows, and narrow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--taken", type=int, nargs="+", default=[450_000])
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, help="limit of the whole")
    options = parser.parse_args()
    parts = partitions(options.rows, options.features, options.partitions)
    n = sum(part.size for part in parts)
    plan = ClusterPlan(Hinge(), options.C, n, 1, options.features, options.tol, max_time=options.seconds, scale=0.0)
    for taken in options.taken:
        engine = Timed(parts, 1)
        solution = PassRounds(plan, engine, shown(engine), most=taken).run()
        print(f"{n:,} x {options.features}, room for {taken:,}, C = {options.C:g}: ", end="")
        print(f"{solution.outcome}, {solution.rounds} rounds")


if __name__ == "__main__":
    main()
