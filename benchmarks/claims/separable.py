"""Separable rows, no more of them than features, at a C from 1 to 1e10: how a fit of each machine ends, and its time.

    OMP_NUM_THREADS=1 python -m benchmarks.claims.separable --rows 600 --features 900

The features are normal numbers and the labels are drawn, so that any weights of the least norm separate the rows. Each
line has the processor seconds of the faster of two fits to `--tol`, without compilation, or how the fit ended.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from saddlesvm import SVC, LinearSVC

STRENGTHS = (1.0, 1e3, 1e6, 1e10)
JOINT = ({"multi_class": "crammer_singer", "loss": "hinge"},)
MACHINES: dict[str, tuple[Callable[..., Any], dict[str, Any], int]] = {
    "hinge": (LinearSVC, {"loss": "hinge"}, 2),
    "squared hinge": (LinearSVC, {}, 2),
    "logistic": (LinearSVC, {"loss": "logistic"}, 2),
    "hinge, one against one": (LinearSVC, {"multi_class": "ovo", "loss": "hinge"}, 4),
    "Crammer and Singer": (LinearSVC, JOINT[0], 4),
    "top 2": (LinearSVC, JOINT[1], 4),
    "multinomial": (LinearSVC, {"multi_class": "multinomial", "loss": "logistic"}, 4),
    "squared hinge, l1 norm": (LinearSVC, {"penalty": "l1"}, 2),
    "hinge, l1 norm": (LinearSVC, {"penalty": "l1", "loss": "hinge"}, 2),
    "logistic, l1 norm": (LinearSVC, {"penalty": "l1", "loss": "logistic"}, 2),
    "linear kernel": (SVC, {"kernel": "linear"}, 2),
    "Gaussian kernel": (SVC, {"kernel": "rbf"}, 4),
}


def ended(machine: Callable[..., Any], options: dict[str, Any], X: np.ndarray, y: np.ndarray) -> str:
    """The processor seconds of a certified fit, or how the fit ended and at which gap."""
    best = np.inf
    model = None
    for _ in range(2):
        model = machine(random_state=0, **options)
        began = time.process_time()
        model.fit(X, y)
        best = min(best, time.process_time() - began - model.seconds_compiling_)
        gap = max(one.relative_gap for one in model.certificates_)
        if gap > model.tol:
            return f"{model.outcome_} at {gap:.0e}"
    return f"{best:.3f}"


def main() -> None:
    """Print a line for each machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--features", type=int, default=900)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, default=10.0, help="most seconds of a fit")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    options = parser.parse_args()
    random = np.random.default_rng(0)
    X = random.normal(size=(options.rows, options.features)).astype(options.dtype)
    labels = {k: random.integers(0, k, options.rows) for k in (2, 4)}
    warnings.simplefilter("ignore")
    print("| machine | " + " | ".join(f"C = {C:g}" for C in STRENGTHS) + " |")
    print("|---|" + "---|" * len(STRENGTHS))
    for name, (machine, own, classes) in MACHINES.items():
        limits = {"tol": options.tol, "max_time": options.seconds}
        cells = [ended(machine, own | limits | {"C": C}, X, labels[classes]) for C in STRENGTHS]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
