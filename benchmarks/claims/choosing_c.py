"""What choosing C costs beside scikit-learn's LogisticRegressionCV: the last table of docs/measurements/choose-c.md.

OMP_NUM_THREADS=1 python benchmarks/claims/choosing_c.py FOLDER [NAME ...]      # with a9a.bz2 and rcv1-binary.bz2
OMP_NUM_THREADS=1 python benchmarks/claims/choosing_c.py FOLDER --threads       # one core against two, by the clock
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC, LinearSVCCV
from saddlesvm.data import read

GRID = np.geomspace(1e-3, 1e3, 13)
FOLDS = 5
Data = tuple[Any, np.ndarray]


def from_file(folder: Path, name: str) -> Data:
    """A set in LIBSVM's format."""
    table = read(folder / f"{name}.bz2")
    return sparse.csr_matrix(table.X), np.asarray(table.y)


def skewed() -> Data:
    """4,601 x 57, as large and as skewed as spambase, scaled: counts of words in letters, most of them none."""
    random = np.random.default_rng(0)
    y = np.where(random.random(4601) < 0.394, 1, -1)
    shares = random.uniform(0.05, 0.5, (2, 57))
    kind = (y > 0).astype(int)
    X = np.where(random.random((4601, 57)) < shares[kind], random.lognormal(-0.5, 1.2, (4601, 57)), 0.0)
    y = np.where(random.random(4601) < 0.07, -y, y)
    return StandardScaler().fit_transform(X), y


def binary() -> Data:
    """49,749 x 300, twelve ones a row, three per cent positive, as w8a."""
    random = np.random.default_rng(0)
    n = 49_749
    d = 300
    each = 12
    often = 1.0 / np.arange(1, d + 1) ** 0.7
    columns = np.concatenate([random.choice(d, each, replace=False, p=often / often.sum()) for _ in range(n)])
    X = sparse.csr_matrix((np.ones(n * each), columns, np.arange(0, n * each + 1, each)), shape=(n, d))
    X.sort_indices()
    score = X @ random.normal(0.0, 1.0, d) + random.logistic(0.0, 0.7, n)
    return X, np.where(score > np.quantile(score, 0.97), 1, -1)


def sets(folder: Path) -> dict[str, Callable[[], Data]]:
    """The sets by name."""
    return {
        "a9a": lambda: from_file(folder, "a9a"),
        "skewed": skewed,
        "binary": binary,
        "text": lambda: from_file(folder, "rcv1-binary"),
    }


def ours(X: Any, y: np.ndarray, tol: float = 1e-4, n_jobs: int = 1) -> float:
    """The best mean accuracy."""
    machine = LinearSVC(loss="logistic", tol=tol, intercept="free", random_state=0)
    return float(LinearSVCCV(machine, Cs=GRID, cv=FOLDS, n_jobs=n_jobs).fit(X, y).mean_scores_.max())


def theirs(X: Any, y: np.ndarray, solver: str) -> float:
    """The best mean accuracy of scikit-learn's."""
    options: dict[str, Any] = {"scoring": "accuracy", "use_legacy_attributes": False}
    model = LogisticRegressionCV(Cs=GRID, cv=FOLDS, solver=solver, max_iter=1000, random_state=0, **options).fit(X, y)
    return float(np.mean(model.scores_, axis=0).max())


def least(work: Callable[[], float], clock: Callable[[], float], times: int = 3) -> tuple[float, float]:
    """The fewest seconds of several calls, and what the last one returned."""
    spent = []
    for _ in range(times):
        began = clock()
        found = work()
        spent.append(clock() - began)
    return min(spent), found


def compare(name: str, X: Any, y: np.ndarray) -> None:
    """Print a row of processor seconds."""
    solvers = ["lbfgs", "newton-cg"]
    solvers += ["newton-cholesky"] if X.shape[1] < 1000 and not sparse.issparse(X) else []
    proven = [least(lambda tol=tol: ours(X, y, tol), time.process_time) for tol in (1e-4, 1e-2)]
    peers = {solver: least(lambda solver=solver: theirs(X, y, solver), time.process_time) for solver in solvers}
    best = min(peers, key=lambda solver: peers[solver][0])
    written = ", ".join(f"{solver} {seconds:.2f}" for solver, (seconds, _) in peers.items())
    print(
        f"| {name}, {X.shape[0]:,} x {X.shape[1]:,} | {proven[0][0]:.2f} | {proven[1][0]:.2f} | {written} "
        f"| {peers[best][0] / proven[0][0]:.1f}, {peers[best][0] / proven[1][0]:.1f} "
        f"| {proven[0][1]:.4f}, {proven[1][1]:.4f}, {peers[best][1]:.4f} |",
        flush=True,
    )


def compare_threads(name: str, X: Any, y: np.ndarray) -> None:
    """Print a row of seconds by the clock, with one thread and with two."""
    one, two = (least(lambda n=n: ours(X, y, n_jobs=n), time.perf_counter)[0] for n in (1, 2))
    print(f"| {name} | {one:.2f} | {two:.2f} | {one / two:.2f} |", flush=True)


def main(folder: Path, names: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    for name, make in sets(folder).items():
        if names and name not in names and names != ["--threads"]:
            continue
        X, y = make()
        ours(X, y)  # compile
        if names == ["--threads"]:
            compare_threads(name, X, y)
        else:
            compare(name, X, y)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
