"""Leave-one-out estimates beside training anew without each row, on 1,000 rows: docs/measurements/choose-c.md.

OMP_NUM_THREADS=1 python benchmarks/claims/leave_one_out.py FOLDER        # with a9a.bz2
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC, NotCertifiedWarning, leave_one_out
from saddlesvm.data import load_bundled, read

LOSSES = ("hinge", "squared_hinge", "logistic")
ROWS = 1_000


def without_each(X: Any, y: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    """The score of each row by a model that was trained to 1e-6 without it."""
    scores = np.empty(len(y))
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        scores[i] = LinearSVC(tol=1e-6, **options).fit(X[kept], y[kept]).decision_function(X[[i]])[0]
    return scores


def subsets(folder: Path) -> dict[str, tuple[Any, np.ndarray]]:
    """1,000 random rows of each data set."""
    random = np.random.default_rng(0)
    notes = load_bundled("banknote")
    found = {"banknote": (StandardScaler().fit_transform(notes.X), np.where(notes.y == notes.y[0], 1, -1))}
    table = read(folder / "a9a.bz2")
    found["a9a"] = sparse.csr_matrix(table.X), np.asarray(table.y)
    for name, (X, y) in found.items():
        chosen = np.sort(random.permutation(len(y))[:ROWS])
        found[name] = X[chosen], y[chosen]
    return found


def main(folder: Path) -> None:
    """Print a row for each data set, loss and C."""
    warnings.simplefilter("ignore", NotCertifiedWarning)
    print("| data | loss | C | exact error | estimate | signs agree | s, exact | s, estimate | trusted |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (X, y) in subsets(folder).items():
        for loss in LOSSES:
            for C in (0.1, 1.0):
                options = {"loss": loss, "C": C, "random_state": 0}
                model = LinearSVC(tol=1e-6, **options).fit(X, y)
                leave_one_out(model, X, y)
                began = time.process_time()
                found = leave_one_out(model, X, y)
                estimated = time.process_time()
                scores = without_each(X, y, options)
                ended = time.process_time()
                wrong = float(np.mean(np.sign(scores) != y))
                agree = float(np.mean((scores > 0.0) == (found.margins > 0.0)))
                errors = f"{100 * wrong:.1f} % | {100 * found.error:.1f} % | {100 * agree:.1f} %"
                spent = f"{ended - estimated:.1f} | {estimated - began:.3f}"
                trusted = "yes" if found.trusted else "no"
                print(f"| {name} | {loss} | {C:g} | {errors} | {spent} | {trusted} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
