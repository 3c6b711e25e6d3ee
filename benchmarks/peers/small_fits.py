"""What a fit of a small data set takes, checks and certificate included, beside scikit-learn's LinearSVC.

Both sides stop at their own ``tol=1e-4``: ours proves a relative duality gap, scikit-learn's bounds a projected
gradient, or gives up after 1,000 passes (marked with a star, and warned about).

python -m benchmarks.peers.small_fits
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC as Theirs

from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled

LOSSES = ("squared_hinge", "hinge")
STRENGTHS = (0.01, 1.0, 100.0)


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows and labels by name."""
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name in ("heart", "banknote", "toy"):
        table = load_bundled(name)
        found[name] = np.ascontiguousarray(table.X), table.y
    found["heart, scaled"] = StandardScaler().fit_transform(found["heart"][0]), found["heart"][1]
    found["iris"] = load_iris(return_X_y=True)
    return found


def ours(loss: str, C: float) -> LinearSVC:
    """Our estimator as it comes."""
    return LinearSVC(loss=loss, C=C, random_state=0)


def theirs(loss: str, C: float) -> Any:
    """scikit-learn's, by its dual solver: the primal one has no hinge loss."""
    return Theirs(loss=loss, C=C, dual=True, random_state=0)


def milliseconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Wall-clock time of a fit."""
    began = time.perf_counter()
    model.fit(X, y)
    return 1e3 * (time.perf_counter() - began)


def cell(X: np.ndarray, y: np.ndarray, loss: str, C: float, repeats: int) -> tuple[float, float, Any, Any]:
    """Median milliseconds of both sides, taking turns, and the last models."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        models = ours(loss, C), theirs(loss, C)
        for model, spent in zip(models, times, strict=True):
            took = milliseconds(model, X, y)
            if turn:
                spent.append(took)
    return statistics.median(times[0]), statistics.median(times[1]), *models


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    print(f"{'data':15} {'rows':>9} {'loss':13} {'C':>6} {'ours, ms':>9} {'sklearn, ms':>11} {'gap':>8} {'solving':>8}")
    for name, (X, y) in data_sets().items():
        for loss in LOSSES:
            for C in STRENGTHS:
                mine, peer, model, other = cell(X, y, loss, C, repeats)
                star = "*" if np.max(other.n_iter_) >= other.max_iter else " "
                print(
                    f"{name:15} {f'{X.shape[0]}x{X.shape[1]}':>9} {loss:13} {C:6g} {mine:9.2f} {peer:10.2f}{star} "
                    f"{model.certificate_.relative_gap:8.1e} {1e3 * model.seconds_solving_:8.2f}"
                )


if __name__ == "__main__":
    main()
