"""Against scikit-learn's LinearSVC(dual=True): seconds to the same primal value, and extra memory.

For each data set and seed scikit-learn is run at the given tolerance and its objective recomputed in float64. Ours is
given the fewest epochs after which its objective is not above that, and timed with them, its certificate included. How
many that are is up to the seed: the objective falls and rises by more than what is compared. Medians of the seeds;
"gap" is the largest relative gap that ours then has proven. Run with one thread:

    OMP_NUM_THREADS=1 python -m benchmarks.peers.speed_floor
"""

from __future__ import annotations

import argparse
import statistics
import tracemalloc
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC as TheirSVC

from benchmarks.common import embedding_like, objective, seconds, text_like
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


def compare(name: str, X: Any, y: np.ndarray, loss: str, seeds: int, tol: float) -> None:
    """One line of the table."""
    theirs_X = narrow_indices(X)
    lines = []
    for seed in range(seeds):
        common: dict[str, Any] = {"loss": loss, "C": 1.0, "fit_intercept": False, "random_state": seed}
        theirs = TheirSVC(dual=True, tol=tol, max_iter=1000, **common)
        theirs_took, _ = seconds(lambda theirs=theirs: theirs.fit(theirs_X, y))
        reached = objective(X, y, theirs.coef_, 1.0, loss)
        ours = fewest_epochs(X, y, reached, common)
        ours_took, _ = seconds(lambda ours=ours: ours.fit(X, y))
        above = objective(X, y, ours.coef_, 1.0, loss) / reached - 1.0
        lines.append((ours.max_iter, ours_took, theirs_took, above, ours.certificate_.relative_gap))
    epochs, ours_took, theirs_took, above, _ = (statistics.median(column) for column in zip(*lines, strict=True))
    n, d = X.shape
    print(
        f"{name:28s} {loss:14s} {epochs:6.0f} {max(line[-1] for line in lines):8.1e} {ours_took:8.3f} "
        f"{theirs_took:8.3f} {theirs_took / ours_took:7.1f} {above:+9.1e} "
        f"{extra_bytes(ours, X, y) / (n + d):8.0f} {extra_bytes(theirs, theirs_X, y) / (n + d):8.0f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tol", type=float, default=1e-2, help="scikit-learn's tolerance")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    print(f"{'data':28s} {'loss':14s} {'epochs':>6s} {'gap':>8s} {'ours s':>8s} {'theirs s':>8s}", end=" ")
    print(f"{'ratio':>7s} {'P/P-1':>9s} {'B/(n+d)':>8s} {'theirs':>8s}")
    for loss in ("hinge", "squared_hinge"):
        X, y = text_like(100_000 // share, 47_000, 75)
        compare("sparse 100,000 x 47,000", X, y, loss, options.seeds, options.tol)
        for n, d in ((12_000, 784), (100_000, 512)):
            for dtype in (np.float64, np.float32):
                X, y = embedding_like(n // share, d, dtype)
                name = f"dense {n:,} x {d} {np.dtype(dtype).name}"
                compare(name, X, y, loss, options.seeds, options.tol)


if __name__ == "__main__":
    main()
