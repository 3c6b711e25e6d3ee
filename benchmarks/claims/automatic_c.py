"""What C="auto" finds and costs beside LinearSVCCV(cv=10), on ten real sets.

OMP_NUM_THREADS=1 python benchmarks/claims/automatic_c.py FOLDER [LOSS ...]     # FOLDER as for path_law.py
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from path_law import SETS
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC, LinearSVCCV
from saddlesvm.data import load_bundled, read

Data = tuple[Any, np.ndarray]
LOSSES = ("logistic", "squared_hinge")
BUNDLED: dict[str, Callable[..., Data]] = {
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "wine": datasets.load_wine,
    "iris": datasets.load_iris,
}


def pair(folder: Path, one: int, other: int) -> Data:
    """Two kinds of Fashion-MNIST's test images, pixels from 0 to 1: 2,000 x 784."""
    table = read(folder / "fashion-mnist" / "t10k-images-idx3-ubyte.gz")
    y = np.asarray(table.y)
    chosen = (y == one) | (y == other)
    return np.asarray(table.X, dtype=np.float64)[chosen] / 255.0, y[chosen]


def sets(folder: Path) -> Iterator[tuple[str, Data]]:
    """The sets with their names."""
    for name, load in BUNDLED.items():
        X, y = load(return_X_y=True)
        yield name, (StandardScaler().fit_transform(X), y)
    for name in ("banknote", "heart"):
        table = load_bundled(name)
        yield name, (StandardScaler().fit_transform(table.X), np.asarray(table.y))
    yield "a9a", SETS["a9a"](folder)
    yield "Fashion 2/0", pair(folder, 0, 2)
    yield "Fashion 5/7", pair(folder, 5, 7)
    yield "rcv1-binary", SETS["rcv1-binary"](folder)


def measure(model: Any, train: Data, test: Data, fits: int = 2) -> tuple[float, float]:
    """Processor seconds of a fit (the last of some), and its error on the test rows in per cent."""
    for _ in range(fits):
        began = time.process_time()
        model.fit(*train)
        spent = time.process_time() - began
    return spent, 100.0 * (1.0 - float(model.score(*test)))


def main(folder: Path, losses: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("| data | loss | % wrong, auto | % wrong, folds | difference | s, auto | s, folds | times as fast |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (X, y) in sets(folder):
        X, X_test, y, y_test = train_test_split(X, y, train_size=0.6, random_state=0, stratify=y)
        for loss in losses or LOSSES:
            ours = measure(LinearSVC(C="auto", loss=loss, random_state=0), (X, y), (X_test, y_test))
            folds = measure(LinearSVCCV(LinearSVC(loss=loss, random_state=0), cv=10), (X, y), (X_test, y_test))
            print(
                f"| {name} | {loss} | {ours[1]:.2f} | {folds[1]:.2f} | {ours[1] - folds[1]:+.2f} "
                f"| {ours[0]:.2f} | {folds[0]:.2f} | {folds[0] / ours[0]:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
