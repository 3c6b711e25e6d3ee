"""The linear one-class machine on many rows, beside ``SGDOneClassSVM``: processor seconds and objectives.

Both have a direction and its best threshold; what a direction is worth is the objective at its best multiple, which no
length of the weights can hide. "short of" is how far that is above the bound that our fit proves, relative to its size.

    python -m benchmarks.claims.one_class --rows 1000000 --features 50
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDOneClassSVM

from saddlesvm import OneClassSVM

PASSES = (1, 5, 20)


def shapes(n: int, d: int) -> dict[str, Any]:
    """Rows that do not lie around the origin: dense in both precisions, and sparse."""
    random = np.random.default_rng(0)
    shifted = random.normal(size=(n, d)) + 1.0
    found: dict[str, Any] = {"shifted, float64": shifted, "shifted, float32": shifted.astype(np.float32)}
    found["positive"] = np.abs(random.normal(size=(n, d)))
    few = np.where(random.random((n, d)) < 0.1, found["positive"], 0.0)
    few[:, 0] = 1.0
    found["a tenth of the values, CSR"] = sparse.csr_array(few)
    return found


def processor_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """The processor seconds of some work, and its result."""
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def worth(X: Any, w: np.ndarray, nu: float) -> float:
    """The objective of the best multiple of w, with its best threshold: ``-h^2 / (2 ||w||^2)`` where h is negative."""
    z = np.sort(X @ w)
    most = nu * z.size
    whole = int(most)
    lowest = z[:whole].sum() + (most - whole) * (z[whole] if whole < z.size else 0.0)
    return -0.5 * max(float(lowest), 0.0) ** 2 / float(w @ w) if w.any() else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--nu", type=float, default=0.1)
    options = parser.parse_args()
    nu = options.nu
    columns = ("rows", "machine", "processor seconds", "objective", "short of the bound", "certified gap")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for name, X in shapes(options.rows, options.features).items():
        for tol in (1e-3, 1e-6):
            OneClassSVM(kernel="linear", nu=nu, tol=tol).fit(X[:1000])  # compiles, or loads what was compiled before
            spent, own = processor_seconds(lambda tol=tol, X=X: OneClassSVM(kernel="linear", nu=nu, tol=tol).fit(X))
            bound = own.certificate_.dual
            found = worth(X, own.coef_[0], nu)
            line = f"| {name} | OneClassSVM, tol={tol:g} | {spent:.2f} | {found:.8g} | {(found - bound) / -bound:.1e} |"
            print(line, f"{own.certificate_.relative_gap:.1e} |", flush=True)
        for passes in PASSES:
            theirs = SGDOneClassSVM(nu=nu, max_iter=passes, tol=None, random_state=0)
            spent, other = processor_seconds(lambda theirs=theirs, X=X: theirs.fit(X))
            found = worth(X, other.coef_, nu)
            line = f"| {name} | SGDOneClassSVM, {passes} passes | {spent:.2f} | {found:.8g} |"
            print(line, f"{(found - bound) / -bound:.1e} | |", flush=True)


if __name__ == "__main__":
    main()
