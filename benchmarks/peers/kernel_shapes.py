"""The kernel machines beside scikit-learn's where fixed costs decide: many small pairs of classes, and few rows.

Processor seconds, the least of some fits in turn, one BLAS thread, default tolerances: ours proves a relative gap of
1e-3, LIBSVM ends where no pair violates its conditions by more than 1e-3. Digits are real; the other sets are Gaussian
clusters of the shape of the set whose name they have.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.kernel_shapes
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn import datasets as sets, svm as theirs
from sklearn.preprocessing import scale

import saddlesvm as ours

# Rows, hidden features, features, classes, clusters a class, noise.
SHAPES = {
    "letter": (5000, 16, 16, 26, 4, 1.0),
    "pendigits": (5000, 16, 16, 10, 4, 0.8),
    "isolet": (2000, 40, 617, 26, 2, 1.3),
    "usps": (4000, 30, 256, 10, 3, 1.2),
}


def clusters(n: int, hidden: int, d: int, classes: int, each: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian clusters, mapped to d features with noise of their own where these are more."""
    random = np.random.default_rng(0)
    centres = 1.6 * random.normal(size=(classes * each, hidden))
    member = random.integers(0, classes * each, n)
    X = centres[member] + noise * random.normal(size=(n, hidden)) * (1.0 + 0.5 * random.random(hidden))
    if d > hidden:
        X = X @ random.normal(size=(hidden, d)) / 6.0 + random.normal(size=(n, d))
    return X, member // each


def least_seconds(models: list[Any], X: np.ndarray, y: Any, repeats: int) -> list[float]:
    """Processor seconds of each model's quickest fit; the fits take turns."""
    spent: list[list[float]] = [[] for _ in models]
    for _ in range(repeats + 1):  # the first one compiles, or loads what is compiled
        for model, own in zip(models, spent, strict=True):
            began = time.process_time()
            model.fit(X, y)
            own.append(time.process_time() - began)
    return [min(own[1:]) for own in spent]


def line(label: str, name: str, options: dict[str, Any], X: np.ndarray, y: Any, repeats: int) -> None:
    """Print a line of the table."""
    own, other = least_seconds([getattr(kind, name)(**options) for kind in (ours, theirs)], X, y, repeats)
    told = ", ".join(f"{key}={value:g}" for key, value in options.items())
    print(f"{label:24} {name:12} {told:10} {1e3 * own:9.1f} {1e3 * other:9.1f} {own / other:6.2f}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    print(f"{'data':24} {'machine':12} {'options':10} {'ours, ms':>9} {'LIBSVM':>9} {'ratio':>6}")
    X, y = sets.load_digits(return_X_y=True)
    many = {"digits": (X / 16.0, y)} | {name: clusters(*shape) for name, shape in SHAPES.items()}
    for name, (X, y) in many.items():
        for C in (1.0, 10.0):
            line(f"{name}, {len(y)} x {X.shape[1]}", "SVC", {"C": C}, X, y, repeats)
    patients, progress = sets.load_diabetes(return_X_y=True)
    tumours, malign = sets.load_breast_cancer(return_X_y=True)
    for n in (100, 200, 300):
        rows = scale(patients)[:n]
        targets = scale(progress)[:n]
        labelled = scale(tumours)[:n]
        line(f"breast cancer, {n} x 30", "SVC", {"C": 1.0}, labelled, malign[:n], 5 * repeats)
        line(f"breast cancer, {n} x 30", "NuSVC", {"nu": 0.2}, labelled, malign[:n], 5 * repeats)
        line(f"diabetes, {n} x 10", "SVR", {"C": 1.0}, rows, targets, 5 * repeats)
        line(f"diabetes, {n} x 10", "NuSVR", {"nu": 0.5}, rows, targets, 5 * repeats)
        line(f"diabetes, {n} x 10", "OneClassSVM", {"nu": 0.1}, rows, None, 5 * repeats)


if __name__ == "__main__":
    main()
