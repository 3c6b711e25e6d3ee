"""Eleven estimators beside scikit-learn's on fifteen sets of up to 2,000 rows: processor time.

Default settings, milliseconds, the least of some fits in turn. Ours proves its default gap; scikit-learn stops at its
own tolerance, or gives up after its passes (a star). Classifiers take a target's halves as labels, regressions take
standardised class numbers.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.small_grid [--data FOLDER] [--only WORD ...]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sets, linear_model, svm
from sklearn.preprocessing import scale

import saddlesvm
from saddlesvm.data import load_bundled, read

# rows of sets with many features, and with few
FEW = 1000
MANY = 2000
MOST_SECONDS = 8.0  # of a cell, after which no round begins
BEHIND = 0.9
LEAST = 1.0  # millisecond of a fit that counts among those behind
MODELS: dict[str, tuple[str, dict[str, Any], Any]] = {  # our estimator, options of both, scikit-learn's
    "squared hinge": ("LinearSVC", {}, svm.LinearSVC),
    "hinge": ("LinearSVC", {"loss": "hinge"}, svm.LinearSVC),
    "l1": ("LinearSVC", {"penalty": "l1"}, svm.LinearSVC),
    "logistic": ("LinearSVC", {"loss": "logistic"}, lambda loss: linear_model.LogisticRegression()),
    "LinearSVR": ("LinearSVR", {}, svm.LinearSVR),
    "LinearSVR, squared": ("LinearSVR", {"loss": "squared_epsilon_insensitive"}, svm.LinearSVR),
    "SVC": ("SVC", {}, svm.SVC),
    "NuSVC": ("NuSVC", {}, svm.NuSVC),
    "OneClassSVM": ("OneClassSVM", {}, svm.OneClassSVM),
    "SVR": ("SVR", {}, svm.SVR),
    "NuSVR": ("NuSVR", {}, svm.NuSVR),
}


def data_sets(folder: Path | None) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Name, rows, and classes or targets of each set; those of real features standardised."""
    tables: dict[str, Any] = {name: load_bundled(name) for name in ("banknote", "heart", "toy")}
    known: dict[str, Any] = {name: (np.ascontiguousarray(table.X), table.y) for name, table in tables.items()}
    for name in ("iris", "wine", "breast_cancer", "digits", "diabetes"):
        known[name] = getattr(sets, f"load_{name}")(return_X_y=True)
    known["made"] = sets.make_classification(MANY, n_features=20, n_informative=10, random_state=0)
    known["friedman"] = sets.make_friedman1(FEW, random_state=0)
    for name, (X, y) in known.items():
        yield name, X / 16.0 if name == "digits" else scale(X), y
    if folder is not None:
        for name, rows in (("a9a", MANY), ("rcv1-binary", FEW)):
            table = read(folder / f"{name}.bz2")
            yield name, table.X[:rows], table.y[:rows]
        for name in ("mnist", "fashion-mnist"):
            table = read(folder / name / "train-images-idx3-ubyte.gz")
            images = table.X[:FEW].astype(np.float32) * np.float32(1 / 255)
            yield name, images.astype(np.float64), table.y[:FEW]
        cells = np.load(folder / "blood-cells.npz")
        some = np.random.default_rng(0).permutation(len(cells["label"]))[:FEW]
        yield "blood-cells", cells["images"][some].reshape(FEW, -1) / 255.0, cells["label"][some]


def target_of(machine: str, y: np.ndarray) -> np.ndarray | None:
    """What a machine learns of the classes or targets of a set."""
    if machine == "OneClassSVM":
        return None
    if machine.endswith("SVR"):
        return np.asarray(scale(y.astype(np.float64)))
    return y if np.unique(y).size <= 10 else (y > np.median(y)).astype(int)


def least_times(models: tuple[Any, Any], X: Any, y: np.ndarray | None, repeats: int) -> np.ndarray:
    """Least milliseconds of a fit of each model, in turn; the first fits compile, or load what is compiled."""
    spent: list[list[float]] = []
    until = time.perf_counter() + MOST_SECONDS
    while len(spent) < 2 or (len(spent) <= repeats and time.perf_counter() < until):
        times = []
        for model in models:
            began = time.process_time()
            model.fit(X, y)
            times.append(1e3 * (time.process_time() - began))
        spent.append(times)
    return np.array(spent[1:]).min(axis=0)


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with a9a, rcv1-binary, mnist, fashion-mnist and blood-cells")
    parser.add_argument("--only", nargs="*", help="parts of the names of cells")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios = []
    behind = []
    for name, X, y in data_sets(options.data):
        for label, (machine, given, other) in MODELS.items():
            cell = f"{name}, {X.shape[0]:,} x {X.shape[1]:,}, {label}"
            if options.only and not any(word in cell for word in options.only):
                continue
            models = getattr(saddlesvm, machine)(**given), other(**given)
            try:
                mine, peer = least_times(models, X, target_of(machine, y), options.repeats)
            except ValueError as refused:
                print(f"{cell:52} {str(refused).splitlines()[0][:70]}", flush=True)
                continue
            gave_up = getattr(models[1], "max_iter", -1) > 0 and np.max(models[1].n_iter_) >= models[1].max_iter
            ratios.append(peer / mine)
            behind += [cell] if peer < BEHIND * mine and mine > LEAST else []
            print(f"{cell:52}{mine:9.2f}{peer:9.2f}{'*' if gave_up else ' '}{peer / mine:7.2f}", flush=True)
    print(f"\n{len(ratios)} cells, geometric mean {np.exp(np.log(ratios).mean()):.2f}; behind: {len(behind)}")


if __name__ == "__main__":
    main()
