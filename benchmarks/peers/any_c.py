"""Every cell of data x loss x C certified: seconds to 1e-3 and to 1e-6, the share of each phase, and the peers.

    python -m benchmarks.peers.any_c --data DIR [--solvers auto,dcd,newton] [--peers] [--only heart,a9a]

To be run with OMP_NUM_THREADS=1.
DIR holds the data files (fashion-mnist/, mnist/, blood-cells.npz, a9a.bz2, rcv1-binary.bz2). The share is that of
Newton's method in the seconds of solving. A peer's column is the relative suboptimality of what scikit-learn's
LinearSVC(dual=True, max_iter=1000) returned, against our dual bound, and its seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC as TheirSVC

from benchmarks.common import objective, seconds
from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled, read
from saddlesvm.solvers.auto import FINISH

LOSSES = ("hinge", "squared_hinge", "logistic")
STRENGTHS = (0.01, 1.0, 100.0, 10_000.0)


def pair(table: Any, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of an image set, pixels / 255 in float32."""
    chosen = (table.y == first) | (table.y == second)
    return np.ascontiguousarray(table.X[chosen] / np.float32(255)), np.where(table.y[chosen] == first, 1, -1)


def load(name: str, folder: Path) -> tuple[Any, np.ndarray]:
    """One of the data sets of the table."""
    if name == "fashion 2-0":
        return pair(read(folder / "fashion-mnist" / "train-images-idx3-ubyte.gz"), 2, 0)
    if name == "mnist 1-7":
        return pair(read(folder / "mnist" / "train-images-idx3-ubyte.gz"), 1, 7)
    if name == "blood cells":
        with np.load(folder / "blood-cells.npz") as stored:
            chosen = np.isin(stored["label"], (1, 3)) & (stored["split"] == 0)
            images = stored["images"][chosen].reshape(int(chosen.sum()), -1)
            return (np.float32(255) - images) / np.float32(255), np.where(stored["label"][chosen] == 1, 1, -1)
    if name in ("banknote", "heart"):
        table = load_bundled(name)
        return table.X, np.where(table.y == 1, 1, -1)
    table = read(folder / f"{name}.bz2")
    return table.X, table.y


NAMES = ("fashion 2-0", "mnist 1-7", "blood cells", "banknote", "heart", "a9a", "rcv1-binary")


def reached(trace: Any, gap: float) -> float:
    """Seconds until the trace first shows this relative gap; infinite if it never does."""
    for row in trace:
        if row["relative_gap"] <= gap:
            return float(row["seconds_solving"] + row["seconds_certifying"])
    return float("inf")


def timed(model: LinearSVC, X: Any, y: np.ndarray) -> tuple[float, LinearSVC]:
    """Seconds of a fit, and the fitted model."""
    return seconds(lambda: model.fit(X, y))


def peer(X: Any, y: np.ndarray, loss: str, C: float, bound: float) -> str:
    """What LIBLINEAR's dual solver returns after its 1,000 iterations."""
    if loss == "logistic":
        return ""
    if sparse.issparse(X):
        X = X.copy()
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    model = TheirSVC(loss=loss, C=C, dual=True, max_iter=1000, fit_intercept=False, random_state=0)
    spent, _ = seconds(lambda: model.fit(X, y))
    value = objective(X, y, model.coef_, C, loss)
    return f"  LIBLINEAR {spent:7.2f} s to {value / bound - 1:.1e}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--solvers", default="auto")
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--losses", default=",".join(LOSSES))
    parser.add_argument("--strengths", default=",".join(map(str, STRENGTHS)))
    parser.add_argument("--max-time", type=float, default=60.0)
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    for name in options.only.split(","):
        X, y = load(name, options.data)
        step = max(1, X.shape[0] // 400)
        for loss in options.losses.split(","):  # load what is compiled
            for solver in options.solvers.split(","):
                timed(
                    LinearSVC(loss=loss, solver=solver, fit_intercept=False, tol=1e-6, max_time=5), X[::step], y[::step]
                )
        for loss in options.losses.split(","):
            for C in map(float, options.strengths.split(",")):
                line = f"{name:12s} {loss:13s} C={C:<7g}"
                bound = 0.0
                for solver in options.solvers.split(","):
                    common = {"loss": loss, "C": C, "solver": solver, "fit_intercept": False, "random_state": 0}
                    coarse, _ = timed(LinearSVC(tol=1e-3, max_time=options.max_time, **common), X, y)
                    spent, model = timed(LinearSVC(tol=1e-6, max_time=options.max_time, **common), X, y)
                    bound = max(bound, model.certificate_.dual)
                    line += f" | {solver} 1e-3 {coarse:6.2f} s, 1e-6 {spent:6.2f} s"
                    line += (
                        f" {model.outcome_!s:11s} {model.certificate_.relative_gap:7.1e} {np.max(model.n_iter_):5d} ep"
                    )
                    if solver == "auto":
                        share = model.phases_.get(FINISH, 0.0) / max(model.seconds_solving_, 1e-9)
                        line += f" {100 * share:3.0f} % finish"
                if options.peers:
                    line += peer(X, y, loss, C, bound)
                print(line, flush=True)


if __name__ == "__main__":
    main()
