"""The kernel machines beside LIBSVM and scikit-learn-intelex: 300 to 20,000 rows, 8 to 784 features, 2 to 26 classes.

Processor seconds, the least of some fits in turn, one thread each, a cache of 200 MB. Ours proves a relative gap of
1e-3; each of the others has the loosest tolerance with which its objective, too, is within 1e-3 of the bound that ours
proves. Digits, breast cancer and diabetes are real, and with ``--data`` MNIST and Fashion-MNIST; the other sets are
Gaussian clusters.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.kernel_cells [--data FOLDER] [--intelex PYTHON]

PYTHON is an interpreter that has scikit-learn-intelex.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets as sets, svm as theirs
from sklearn.preprocessing import scale

import saddlesvm as ours
from benchmarks.peers.kernel_shapes import SHAPES, clusters
from benchmarks.peers.kernels import two_classes
from saddlesvm import certify_kernel

TOLERANCES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
GAP = 1e-3
WORKER = """
import json, sys, time
import numpy as np
from sklearnex import svm
for line in sys.stdin:
    path, name, options = json.loads(line)
    data = np.load(path)
    model = getattr(svm, name)(**options)
    began = time.process_time()
    model.fit(data["X"], data["y"] if data["y"].size else None)
    spent = time.process_time() - began
    np.savez(path + ".out.npz", support=model.support_, dual=model.dual_coef_, intercept=model.intercept_,
             n_support=getattr(model, "n_support_", np.zeros(0)))
    print(spent, flush=True)
"""


class Cell(NamedTuple):
    """A machine on a data set; y is None for one class."""

    name: str
    machine: str
    options: dict[str, Any]
    X: np.ndarray
    y: np.ndarray | None


def overlapping(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of d features, of which a sixth of the rows are on the wrong side, as in low-dimensional data."""
    random = np.random.default_rng(seed)
    X, _ = clusters(n, d, d, 2, 8, 1.5)
    X = scale(X)
    score = np.tanh(X[:, 0] * X[:, 1]) + 0.7 * np.sin(1.5 * X[:, 2]) + 0.4 * X[:, 3] + 0.5 * random.normal(size=n)
    return X, (score > np.median(score)).astype(int)


def smooth(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Targets that are a smooth function of the features, and noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * X[:, 3] + 0.3 * random.normal(size=n)
    return X, scale(y)


def cells(data: Path | None) -> Iterator[Cell]:
    """All cells, one after the other."""
    tumours, malign = sets.load_breast_cancer(return_X_y=True)
    patients, progress = sets.load_diabetes(return_X_y=True)
    yield Cell("breast cancer", "SVC", {"C": 1.0}, scale(tumours)[:300], malign[:300])
    yield Cell("diabetes", "SVR", {"C": 1.0}, scale(patients)[:300], scale(progress)[:300])
    yield Cell("breast cancer", "OneClassSVM", {"nu": 0.1}, scale(tumours)[:300], None)
    digits, digit = sets.load_digits(return_X_y=True)
    yield Cell("digits", "SVC", {"C": 10.0}, digits / 16.0, digit)
    for name in ("pendigits", "letter", "usps", "isolet"):
        yield Cell(f"{name}-like", "SVC", {"C": 10.0}, *clusters(*SHAPES[name]))
    for n in (2000, 5000, 15000):
        yield Cell("overlapping", "SVC", {"C": 10.0}, *overlapping(n, 10))
    for n, d in ((2000, 8), (5000, 8), (10000, 20)):
        yield Cell("smooth", "SVR", {"C": 1.0}, *smooth(n, d))
    for n, d in ((5000, 8), (20000, 60)):
        yield Cell("clusters", "OneClassSVM", {"nu": 0.1}, clusters(n, d, d, 2, 4, 1.0)[0], None)
    if data is not None:
        X, y = two_classes(data / "mnist", [1], [7], "train")
        yield Cell("MNIST 1, 7", "SVC", {"C": 10.0}, X.astype(np.float64), y)
        X, y = two_classes(data / "fashion-mnist", [2], [0], "train")
        yield Cell("Fashion 2, 0", "SVC", {"C": 1.0}, X.astype(np.float64), y)
        yield Cell("Fashion 2, 0", "OneClassSVM", {"nu": 0.1}, X[:5000].astype(np.float64), None)


class Intelex:
    """scikit-learn-intelex in a process of its own."""

    def __init__(self, python: str, folder: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [python, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fit(self, cell: Cell, tol: float) -> tuple[float, Any]:
        """Processor seconds, and the model; where it has no such machine, that of scikit-learn, as its users get."""
        if cell.machine == "OneClassSVM":
            return fit_here(theirs, cell, tol)
        path = str(Path(self.folder) / "cell.npz")
        np.savez(path, X=cell.X, y=np.zeros(0) if cell.y is None else cell.y)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([path, cell.machine, cell.options | {"tol": tol}]) + "\n")
        self.process.stdin.flush()
        spent = float(self.process.stdout.readline())
        found = np.load(path + ".out.npz")
        # certify_kernel takes a fitted model of scikit-learn.
        model = getattr(theirs, cell.machine)(**cell.options)
        model.support_ = found["support"]
        model.dual_coef_ = found["dual"]
        model.intercept_ = found["intercept"]
        model._n_support = found["n_support"]
        if cell.machine == "SVC":
            model.classes_ = np.unique(cell.y)
        return spent, model


def fit_here(kind: Any, cell: Cell, tol: float) -> tuple[float, Any]:
    """Processor seconds, and the model."""
    model = getattr(kind, cell.machine)(**cell.options, tol=tol)
    began = time.process_time()
    model.fit(cell.X, cell.y)
    return time.process_time() - began, model


def loosest(fit: Callable[[Cell, float], tuple[float, Any]], cell: Cell, bound: float) -> float:
    """The loosest tolerance with which the objective is within the gap of a bound."""
    for tol in TOLERANCES[:-1]:
        primal = certify_kernel(fit(cell, tol)[1], cell.X, cell.y).primal
        if primal - bound <= GAP * abs(primal):
            return tol
    return TOLERANCES[-1]


def line(cell: Cell, others: dict[str, Callable[[Cell, float], tuple[float, Any]]], repeats: int) -> list[float]:
    """Print a line of the table; how many times as long each of the others takes."""
    fit_here(ours, cell, GAP)  # compiles, or loads what is compiled
    bound = certify_kernel(fit_here(ours, cell, GAP)[1], cell.X, cell.y).dual
    tolerances = {name: loosest(fit, cell, bound) for name, fit in others.items()}
    spent: dict[str, list[float]] = {name: [] for name in ("ours", *others)}
    for _ in range(repeats):
        spent["ours"].append(fit_here(ours, cell, GAP)[0])
        for name, fit in others.items():
            spent[name].append(fit(cell, tolerances[name])[0])
    least = {name: min(found) for name, found in spent.items()}
    times = [least[name] / least["ours"] for name in others]
    classes = 1 if cell.y is None or cell.machine == "SVR" else np.unique(cell.y).size
    label = f"{cell.name}, {cell.X.shape[0]:,} x {cell.X.shape[1]}, {classes}"
    told = "".join(
        f"{1e3 * least[name]:10.1f}{tolerances[name]:8g}{ratio:7.2f}" for name, ratio in zip(others, times, strict=True)
    )
    print(f"{label:36} {cell.machine:12}{1e3 * least['ours']:9.1f}{told}", flush=True)
    return times


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with mnist and fashion-mnist")
    parser.add_argument("--intelex", metavar="PYTHON", help="an interpreter that has scikit-learn-intelex")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="parts of the names of cells")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        others: dict[str, Any] = {"LIBSVM": lambda cell, tol: fit_here(theirs, cell, tol)}
        if options.intelex:
            others["intelex"] = Intelex(options.intelex, folder).fit
        head = "".join(f"{name:>10}{'tol':>8}{'times':>7}" for name in others)
        print(f"{'data, rows x features, classes':36} {'machine':12}{'ours, ms':>9}{head}")
        found = [
            line(cell, others, options.repeats)
            for cell in cells(options.data)
            if not options.only or any(word in f"{cell.name} {cell.machine} {len(cell.X)}" for word in options.only)
        ]
        best = np.min(found, axis=1)
        print(f"\ngeometric mean of the best of the others: {np.exp(np.log(best).mean()):.2f}; worst {best.min():.2f}")


if __name__ == "__main__":
    main()
