"""Whether a change of the package made fits slower: two source trees in turn, in processor seconds.

    python -m benchmarks.claims.old_and_new OLD/src NEW/src --data DIR       (DIR as `saddlesvm data` fills it)
    python -m benchmarks.claims.old_and_new OLD/src NEW/src --first          (first fits in new caches)

Each tree has a process of its own with one thread, and the two fit in turn: what else the machine does hits both. A
busy machine only ever adds time, so that the smallest of many rounds is the figure to go by; the medians stand beside
it. The last column says whether both trees did the same work: the same epochs and the same primal objective.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

DATASETS = ("a9a", "rcv1-binary", "fashion", "dense")
LOSSES = ("hinge", "squared_hinge", "logistic")
SOLVERS = ("auto", "dcd", "sdca", "pegasos")
LIMITS = {"tol": 1e-3, "max_iter": 20}  # of a fit: a second at most
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
FASHION = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
PAIR = (2, 0)  # Fashion-MNIST's pullovers and T-shirts
DENSE = (20_000, 512)
FIRST = """
import time
began = time.process_time()
import numpy as np
from saddlesvm import LinearSVC
random = np.random.default_rng(0)
X = random.standard_normal((569, 30))
y = np.where(X @ random.standard_normal(30) > 0, 1, -1)
imported = time.process_time()
LinearSVC().fit(X, y)
print(time.process_time() - imported)
"""


class Timed(NamedTuple):
    """A fit: processor seconds, epochs, primal objective."""

    seconds: float
    epochs: float
    primal: float


def dataset(name: str, folder: Path) -> tuple[Any, np.ndarray]:
    """The rows and labels of this name."""
    if name == "dense":
        random = np.random.default_rng(0)
        X = random.standard_normal(DENSE) / math.sqrt(DENSE[1])
        scores = X @ random.standard_normal(DENSE[1]) + 0.3 * random.standard_normal(DENSE[0])
        return X, np.where(scores > 0, 1.0, -1.0)
    if name == "fashion":
        images, labels = (gzip.decompress((folder / "fashion-mnist" / file).read_bytes()) for file in FASHION)
        codes = np.frombuffer(labels, np.uint8, offset=8)
        kept = np.isin(codes, PAIR)
        return np.frombuffer(images, np.uint8, offset=16).reshape(codes.size, -1)[kept] / 255.0, codes[kept]
    from saddlesvm.data import read  # of the tree that this process measures

    table = read(folder / f"{name}.bz2")
    return sparse.csr_matrix(table.X), np.asarray(table.y)


def serve(folder: Path, chosen: Sequence[str]) -> None:
    """Answer each line ``[dataset, loss, solver]`` with the time and the result of a fit, until there are no more."""
    from saddlesvm import LinearSVC  # of the tree that this process measures

    warnings.simplefilter("ignore")
    data = {name: dataset(name, folder) for name in chosen}
    print("ready", flush=True)
    for line in sys.stdin:
        name, loss, solver = json.loads(line)
        model = LinearSVC(loss=loss, solver=solver, random_state=0, **LIMITS)
        began = time.process_time()
        model.fit(*data[name])
        spent = time.process_time() - began
        print(json.dumps([spent, float(np.max(model.n_iter_)), model.certificate_.primal]), flush=True)


class Tree:
    """A process that fits with the package of one source tree."""

    def __init__(self, source: Path, data: Path, chosen: Sequence[str]) -> None:
        command = [sys.executable, __file__, "--serve", "--data", str(data), "--datasets", *chosen]
        self.process = subprocess.Popen(
            command, env=environment(source), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self.answer() != "ready":
            raise SystemExit(f"the process of {source} ended")

    def answer(self) -> str:
        """The next line that the process says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def fit(self, cell: Sequence[str]) -> Timed:
        """One fit."""
        assert self.process.stdin is not None
        print(json.dumps(list(cell)), file=self.process.stdin, flush=True)
        return Timed(*json.loads(self.answer()))

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def environment(source: Path) -> dict[str, str]:
    """That of a process with one thread, which imports the package from `source`."""
    return {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONPATH": str(source.resolve())}


def compare(trees: Sequence[Tree], cell: Sequence[str], seconds: float, most: int) -> list[list[Timed]]:
    """Fits in turn after one of each that does not count: for so many processor seconds, at most so many rounds."""
    for tree in trees:
        tree.fit(cell)
    found: list[list[Timed]] = [[] for _ in trees]
    while len(found[0]) < most and sum(one.seconds for fits in found for one in fits) < seconds:
        turn = list(zip(trees, found, strict=True))
        for tree, fits in turn if len(found[0]) % 2 else turn[::-1]:
            fits.append(tree.fit(cell))
    return found


def row(cell: Sequence[str], found: Sequence[Sequence[Timed]]) -> tuple[str, float, float]:
    """A line of the table, and the ratios of the minima and of the medians."""
    old, new = ([one.seconds for one in fits] for fits in found)
    least = min(new) / min(old)
    middle = median(new) / median(old)
    same = "same" if found[0][0][1:] == found[1][0][1:] else "OTHER WORK"
    line = (
        f"{' '.join(cell):34s} {1e3 * min(old):9.2f} {1e3 * min(new):9.2f} ms {least:6.3f} {middle:6.3f} "
        f"{len(old):4d} {same}"
    )
    return line, least, middle


def geometric(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def fits(arguments: argparse.Namespace) -> None:
    """The table of fits."""
    trees = [Tree(source, arguments.data, arguments.datasets) for source in (arguments.old, arguments.new)]
    print(f"{'':34s} {'old':>9s} {'new':>12s} {'least':>6s} {'median':>6s} rounds")
    ratios = []
    for cell in itertools.product(arguments.datasets, arguments.losses, arguments.solvers):
        line, *both = row(cell, compare(trees, cell, arguments.seconds, arguments.rounds))
        ratios.append(both)
        print(line, flush=True)
    for tree in trees:
        tree.close()
    least, middle = (geometric(column) for column in zip(*ratios, strict=True))
    print(f"geometric mean of new / old over {len(ratios)} cells: minima {least:.3f}, medians {middle:.3f}")


def first_fits(arguments: argparse.Namespace) -> None:
    """The first default fit of 569 x 30 rows in a process, and in a cache, of its own."""
    found: dict[str, list[float]] = {"old": [], "new": []}
    for _ in range(arguments.rounds):
        for name, source in (("old", arguments.old), ("new", arguments.new)):
            with tempfile.TemporaryDirectory() as cache:
                env = environment(source) | {"NUMBA_CACHE_DIR": cache}
                said = subprocess.run(
                    [sys.executable, "-c", FIRST], env=env, capture_output=True, text=True, check=True
                )
            found[name].append(float(said.stdout))
        print(", ".join(f"{name} {times[-1]:.2f} s" for name, times in found.items()), flush=True)
    old, new = found.values()
    print(f"new / old: minima {min(new) / min(old):.3f}, medians {median(new) / median(old):.3f}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, nargs="?", help="folder that holds the package saddlesvm")
    parser.add_argument("new", type=Path, nargs="?", help="another")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--losses", nargs="+", default=LOSSES)
    parser.add_argument("--solvers", nargs="+", default=SOLVERS)
    parser.add_argument("--rounds", type=int, default=51, help="of a cell at most; of first fits")
    parser.add_argument("--seconds", type=float, default=10.0, help="processor seconds of a cell, both trees together")
    parser.add_argument("--first", action="store_true", help="first fits in new caches")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.data, arguments.datasets)
    elif arguments.new is None:
        parser.error("two source trees are needed")
    elif arguments.first:
        first_fits(arguments)
    else:
        fits(arguments)


if __name__ == "__main__":
    main()
