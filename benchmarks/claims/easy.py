"""Dense rows on which full gradients at the speed of memory win: many more rows than features, a round problem.

Processor seconds to certify 1e-4, and those of scikit-learn's LogisticRegression(lbfgs), stopped at the largest of
its tolerances with which it comes as close to the optimum as this package proves to be. Medians in turn, no intercept,
one thread; rows of length 1 and Gaussian values of size 1:

    OMP_NUM_THREADS=1 python -m benchmarks.claims.easy
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.common import embedding_like
from saddlesvm import LinearSVC

SHAPES = ((50_000, 128), (100_000, 256), (500_000, 128), (1_000_000, 16), (60_000, 1_024))
TOLERANCES = 10.0 ** np.arange(-1.0, -8.0, -1.0)  # of lbfgs
TOL = 1e-4


def logistic_objective(X: np.ndarray, y: np.ndarray, w: np.ndarray, C: float) -> float:
    """``1/2 ||w||^2 + C sum log(1 + exp(-y x.w))``, margins in the precision of X."""
    z = y * (X @ w.astype(X.dtype)).astype(np.float64)
    return 0.5 * float(w @ w) + C * float(np.logaddexp(0.0, -z).sum())


def in_turn(works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, Any]]:
    """Median processor seconds (and the last result) of each work, the first round not counted."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    results: dict[str, Any] = {}
    for _ in range(repeats + 1):
        for name, work in works.items():
            began = time.process_time()
            results[name] = work()
            taken[name].append(time.process_time() - began)
    return {name: (statistics.median(taken[name][1:]), results[name]) for name in works}


def compare(n: int, d: int, unit: bool, C: float, repeats: int) -> None:
    """A line of the table."""
    X, y = embedding_like(n, d, np.float32)
    if not unit:
        X *= np.float32(np.sqrt(d))

    def ours() -> LinearSVC:
        return LinearSVC(loss="logistic", C=C, tol=TOL, fit_intercept=False, random_state=0).fit(X, y)

    def peer(tol: float) -> LogisticRegression:
        return LogisticRegression(C=C, tol=tol, fit_intercept=False, max_iter=1000).fit(X, y)

    proven = ours()
    most = logistic_objective(X, y, proven.coef_.ravel().astype(np.float64), C)
    most *= 1.0 + proven.certificate_.relative_gap
    for tol in TOLERANCES:
        if logistic_objective(X, y, peer(tol).coef_.ravel().astype(np.float64), C) <= most:
            break
    table = in_turn({"ours": ours, "lbfgs": lambda: peer(tol)}, repeats)
    seconds, model = table["ours"]
    others, other = table["lbfgs"]
    rows = "length 1" if unit else "Gaussian"
    print(
        f"| {n:,} x {d:,}, {rows} | {C:g} | {seconds:.3f} ({', '.join(model.phases_)}) | "
        f"{others:.3f} ({other.n_iter_[0]} iterations) | {others / seconds:.2f} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--share", type=int, default=1, help="use one row in this many")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data, float32 | C | saddlesvm, s | lbfgs, s | times |\n|---|---|---|---|---|")
    for n, d in SHAPES:
        for unit, C in ((True, 1.0), (True, 10.0), (False, 1.0)):
            compare(n // options.share, d, unit, C, options.repeats)


if __name__ == "__main__":
    main()
