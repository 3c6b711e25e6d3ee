"""SVC against scikit-learn's SVC, and against approximate kernels with LinearSVC.

First table: RBF kernel, gamma="scale", free intercept, the same cache size, on MNIST ones against sevens and
Fashion-MNIST 2 against 0. Both objectives are recomputed in float64 from the dual coefficients and the intercept of the
model; "gap" is the relative gap that ours has proven, "excess" how far SVC's objective is above ours (negative: below).

Second table (``--approximations``): Fashion-MNIST 2 against 0 and MNIST even against odd, the exact kernel and
scikit-learn's ``Nystroem`` and ``RBFSampler`` in front of LinearSVC: seconds to train, and test accuracy.

    python -m benchmarks.peers.kernels --data FOLDER

FOLDER holds ``mnist`` and ``fashion-mnist`` with their four idx files each, compressed with gzip.
"""

from __future__ import annotations

import argparse
import gzip
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import svm as theirs
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks.common import interleaved, seconds
from saddlesvm import SVC, LinearSVC

PAIRS = {"mnist 1 against 7": ("mnist", [1], [7]), "fashion-mnist 2 against 0": ("fashion-mnist", [2], [0])}
LARGER = {
    "fashion-mnist 2 against 0": ("fashion-mnist", [2], [0]),
    "mnist even against odd": ("mnist", [0, 2, 4, 6, 8], [1, 3, 5, 7, 9]),
}


def idx(path: Path, header: int) -> np.ndarray:
    """The bytes of an idx file after its header."""
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)


def two_classes(folder: Path, positive: list[int], negative: list[int], part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images of the classes as float32 in [0, 1], shape (n, 784), and labels -1 and +1."""
    images = idx(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
    classes = idx(folder / f"{part}-labels-idx1-ubyte.gz", 8)
    chosen = np.isin(classes, positive + negative)
    return images[chosen] / np.float32(255), np.where(np.isin(classes[chosen], positive), 1, -1)


def objective(model: Any, gamma: float, C: float, X: np.ndarray, y: np.ndarray) -> float:
    """``1/2 beta' K beta + C sum max(0, 1 - y f)`` in float64, from a model's coefficients and intercept."""
    beta = model.dual_coef_[0]
    support = model.support_
    centres = X[support].astype(np.float64)
    scores = np.concatenate(
        [rbf_kernel(X[k : k + 512].astype(np.float64), centres, gamma=gamma) @ beta for k in range(0, len(X), 512)]
    )
    slack = np.maximum(0.0, 1.0 - y * (scores + model.intercept_[0]))
    return 0.5 * float(beta @ scores[support]) + C * float(slack.sum())


def against_svc(data: Path, strengths: list[float], repeats: int, tol: float) -> None:
    """The first table."""
    print(f"{'problem':28}{'C':>6}{'rows':>8}{'SV':>7}{'ours s':>9}{'SVC s':>9}{'times':>7}", end="")
    print(f"{'our objective':>16}{'gap':>10}{'SVC objective':>16}{'excess':>10}")
    for name, (folder, positive, negative) in PAIRS.items():
        X, y = two_classes(data / folder, positive, negative, "train")
        SVC(tol=0.1).fit(X[:2000], y[:2000])  # compiles, or loads what was compiled before
        for C in strengths:
            models = {"ours": SVC(C=C, tol=tol, random_state=0), "SVC": theirs.SVC(C=C, cache_size=200)}
            works = {key: partial(model.fit, X, y) for key, model in models.items()}
            table = interleaved(works, repeats)
            ours_s, ours = table["ours"]
            their_s, other = table["SVC"]
            gamma = ours.kernel_.gamma
            value, peer = (objective(model, gamma, C, X, y) for model in (ours, other))
            print(f"{name:28}{C:6g}{len(X):8,}{ours.support_.size:7,}{ours_s:9.2f}{their_s:9.2f}", end="")
            print(f"{their_s / ours_s:7.1f}{value:16.6g}{ours.certificate_.relative_gap:10.1e}", end="")
            print(f"{peer:16.6g}{peer / value - 1.0:10.1e}", flush=True)


def approximations(data: Path, C: float, repeats: int) -> None:
    """The second table."""
    print(f"\n{'problem':28}{'model':>34}{'rows':>9}{'seconds':>9}{'test accuracy':>15}")
    for name, (folder, positive, negative) in LARGER.items():
        X, y = two_classes(data / folder, positive, negative, "train")
        test_X, test_y = two_classes(data / folder, positive, negative, "t10k")
        gamma = 1.0 / (X.shape[1] * X.var(dtype=np.float64))
        models: dict[str, Any] = {"SVC": SVC(C=C, gamma=gamma, tol=1e-2, random_state=0)}
        for k in (300, 1000):
            linear = LinearSVC(C=C, loss="hinge", tol=1e-2, random_state=0)
            for kind in (Nystroem, RBFSampler):
                sampler = kind(gamma=gamma, n_components=k, random_state=0)
                models[f"{kind.__name__}({k}) + LinearSVC"] = make_pipeline(sampler, linear)
        for model_name, model in models.items():
            clone(model).fit(X[:1000], y[:1000])  # compiles, or loads what was compiled before
            taken = [seconds(partial(model.fit, X, y))[0] for _ in range(repeats)]
            accuracy = model.score(test_X, test_y)
            print(f"{name:28}{model_name:>34}{len(X):9,}{np.median(taken):9.2f}{accuracy:15.4f}", flush=True)


def main() -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with mnist and fashion-mnist")
    parser.add_argument("--C", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="of the matrix products; SVC has one whatever it says")
    parser.add_argument("--approximations", action="store_true", help="the second table instead of the first")
    options = parser.parse_args()
    with threadpool_limits(options.threads):
        if options.approximations:
            approximations(options.data, options.C[-1], 1)
        else:
            against_svc(options.data, options.C, options.repeats, options.tol)


if __name__ == "__main__":
    main()
