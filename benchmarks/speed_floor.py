"""Against scikit-learn's LinearSVC(dual=True): seconds to the same primal value, and extra memory.

For each data set scikit-learn is run at the given tolerance and its objective recomputed in float64. Ours is given the
fewest epochs after which its objective is not above that, and timed with them, its certificate included. "gap" is the
relative gap it then has proven. Run with one thread:

    OMP_NUM_THREADS=1 python benchmarks/speed_floor.py
"""

from __future__ import annotations

import argparse
import tracemalloc
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC as TheirSVC

from common import embedding_like, interleaved, objective, seconds, text_like
from saddlesvm import LinearSVC


def narrow_indices(X: Any) -> Any:
    """X with 32 bit indices, which is all that scikit-learn's linear SVMs take."""
    if sparse.issparse(X):
        X = X.copy()
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def fewest_epochs(X: Any, y: np.ndarray, reached: float, common: dict[str, Any]) -> LinearSVC:
    """Our model with the smallest max_iter whose objective is not above `reached`."""
    for epochs in range(1, 2000):
        model = LinearSVC(tol=0.0, max_iter=epochs, **common)
        _, fitted = seconds(lambda model=model: model.fit(X, y))
        if objective(X, y, fitted.coef_, 1.0, common["loss"]) <= reached * (1.0 + 1e-12):
            return model
    raise RuntimeError("the objective of the peer was not reached")


def extra_bytes(model: Any, X: Any, y: np.ndarray) -> int:
    """Peak of the memory that a fit asks Python's allocators for."""
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def compare(name: str, X: Any, y: np.ndarray, loss: str, repeats: int, tol: float) -> None:
    """One line of the table."""
    theirs_X = narrow_indices(X)
    common: dict[str, Any] = {"loss": loss, "C": 1.0, "fit_intercept": False, "random_state": 0}
    theirs = TheirSVC(dual=True, tol=tol, max_iter=1000, **common)
    reached = objective(X, y, theirs.fit(theirs_X, y).coef_, 1.0, loss)
    ours = fewest_epochs(X, y, reached, common)
    table = interleaved({"ours": lambda: ours.fit(X, y), "theirs": lambda: theirs.fit(theirs_X, y)}, repeats)
    gap = ours.certificate_.relative_gap
    value = objective(X, y, table["ours"][1].coef_, 1.0, loss)
    extra = extra_bytes(ours, X, y)
    n, d = X.shape
    print(
        f"{name:28s} {loss:14s} {ours.max_iter:6d} {gap:8.1e} {table['ours'][0]:8.3f} {table['theirs'][0]:8.3f} "
        f"{table['theirs'][0] / table['ours'][0]:7.1f} {value / reached - 1:+9.1e} "
        f"{extra / (n + d):8.0f} {extra_bytes(theirs, theirs_X, y) / (n + d):8.0f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-2, help="scikit-learn's tolerance")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    print(f"{'data':28s} {'loss':14s} {'epochs':>6s} {'gap':>8s} {'ours s':>8s} {'theirs s':>8s}", end=" ")
    print(f"{'ratio':>7s} {'P/P-1':>9s} {'B/(n+d)':>8s} {'theirs':>8s}")
    for loss in ("hinge", "squared_hinge"):
        X, y = text_like(100_000 // share, 47_000, 75)
        compare("sparse 100,000 x 47,000", X, y, loss, options.repeats, options.tol)
        for n, d in ((12_000, 784), (100_000, 512)):
            for dtype in (np.float64, np.float32):
                X, y = embedding_like(n // share, d, dtype)
                name = f"dense {n:,} x {d} {np.dtype(dtype).name}"
                compare(name, X, y, loss, options.repeats, options.tol)


if __name__ == "__main__":
    main()
