"""The linear estimators beside scikit-learn's on sets of 150 to 2,000 rows: default tolerances, processor milliseconds.

Ours proves a relative gap of 1e-4; scikit-learn stops at its own tolerance, or gives up after its passes (a star). The
least of some fits in turn.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.small_linear [--only WORD ...] [--repeats 5]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets as sets
from sklearn import linear_model, svm
from sklearn.preprocessing import scale

import saddlesvm
from saddlesvm.data import load_bundled


class Cell(NamedTuple):
    """A problem of a table, and the models of both sides."""

    label: str
    ours: Any
    theirs: Any
    X: np.ndarray
    y: np.ndarray


def classifiers() -> Iterator[tuple[str, Any, Any]]:
    """The models of both sides, by name."""
    yield "squared hinge", saddlesvm.LinearSVC(random_state=0), svm.LinearSVC(random_state=0)
    hinge = {"loss": "hinge", "random_state": 0}
    yield "hinge", saddlesvm.LinearSVC(**hinge), svm.LinearSVC(**hinge)
    yield "l1", saddlesvm.LinearSVC(penalty="l1", random_state=0), svm.LinearSVC(penalty="l1", random_state=0)
    logistic = {"loss": "logistic", "random_state": 0}
    yield "logistic", saddlesvm.LinearSVC(**logistic), linear_model.LogisticRegression(max_iter=1000)


def regressions() -> Iterator[tuple[str, Any, Any]]:
    """The models of both sides, by name."""
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        given = {"loss": loss, "random_state": 0}
        yield loss, saddlesvm.LinearSVR(**given), svm.LinearSVR(**given)


def cells() -> Iterator[Cell]:
    """All cells, one after the other."""
    notes = load_bundled("banknote")
    known = {
        "wine": sets.load_wine(return_X_y=True),
        "cancer": sets.load_breast_cancer(return_X_y=True),
        "banknote": (notes.X, notes.y),
        "iris": sets.load_iris(return_X_y=True),
        "digits": sets.load_digits(return_X_y=True),
    }
    for name, (X, y) in known.items():
        X = X / 16.0 if name == "digits" else np.ascontiguousarray(X) if name == "banknote" else scale(X)
        for label, ours, theirs in classifiers():
            yield Cell(f"{name}, {X.shape[0]:,} x {X.shape[1]}, {label}", ours, theirs, X, y)
    X, y = sets.load_diabetes(return_X_y=True)
    X, y = scale(X), scale(y)
    for label, ours, theirs in regressions():
        yield Cell(f"diabetes, {X.shape[0]:,} x {X.shape[1]}, {label}", ours, theirs, X, y)


def seconds(model: Any, cell: Cell) -> float:
    """Processor time of a fit."""
    began = time.process_time()
    model.fit(cell.X, cell.y)
    return time.process_time() - began


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="parts of the names of cells")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios = []
    for cell in cells():
        if options.only and not any(word in cell.label for word in options.only):
            continue
        both = (cell.ours, cell.theirs)
        seconds(cell.ours, cell)  # compiles, or loads what is compiled
        spent = np.array([[seconds(model, cell) for model in both] for _ in range(options.repeats)])
        mine, other = 1e3 * spent.min(axis=0)
        ratios.append(other / mine)
        star = "*" if np.max(cell.theirs.n_iter_) >= cell.theirs.max_iter else " "
        print(f"{cell.label:56}{mine:9.2f}{other:9.2f}{star}{other / mine:7.2f}", flush=True)
    print(f"\ngeometric mean {np.exp(np.log(ratios).mean()):.2f}; below 0.9: {np.sum(np.array(ratios) < 0.9)}")


if __name__ == "__main__":
    main()
