"""Proven leave-one-out errors, and their time: the table of docs/measurements/proofs.md.

OMP_NUM_THREADS=1 python benchmarks/claims/proven_errors.py FOLDER        # with a9a.bz2 and blood-cells.npz
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from saddlesvm import LinearSVC, NotCertifiedWarning, leave_one_out
from saddlesvm.data import read


def spent(work: Any) -> tuple[float, Any]:
    """Processor seconds of a call, and what it returned."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def large(folder: Path) -> dict[str, tuple[Any, np.ndarray, tuple[float, ...]]]:
    """a9a, and lymphocytes against neutrophils, with values of C."""
    table = read(folder / "a9a.bz2")
    cells = np.load(folder / "blood-cells.npz")
    kept = (cells["split"] == 0) & np.isin(cells["label"], [1, 3])
    images = cells["images"][kept].reshape(int(kept.sum()), -1) / 255.0
    return {
        "a9a": (sparse.csr_array(table.X), np.asarray(table.y), (0.05, 1.0)),
        "blood cells": (images, (cells["label"][kept] == 1).astype(int), (0.005, 0.05)),
    }


def errors_proven(folder: Path) -> None:
    """Bounds of the leave-one-out error, and their time beside the fit's."""
    print("| data | loss | C | error, proven, % | s, fit | s, bounds |")
    print("|---|---|---|---|---|---|")
    for name, (X, y, Cs) in large(folder).items():
        for loss in ("logistic", "squared_hinge"):
            for C in Cs:
                template = LinearSVC(loss=loss, C=C, random_state=0)
                leave_one_out(template.fit(X, y), X, y)
                fitting, model = spent(lambda template=template, X=X, y=y: clone(template).fit(X, y))
                took, found = spent(lambda model=model, X=X, y=y: leave_one_out(model, X, y))
                ends = f"{100 * found.error_low:.3f} to {100 * found.error_high:.3f}"
                print(f"| {name} | {loss} | {C:g} | {ends} | {fitting:.2f} | {took:.2f} |", flush=True)


def main(folder: Path) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", NotCertifiedWarning)
    errors_proven(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
