"""How many labels of test rows are proven to be the exact optimum's, and what the proof costs.

The figures are for docs/measurements/proofs.md.

OMP_NUM_THREADS=1 python benchmarks/claims/proven_decisions.py FOLDER
# with a9a, rcv1-binary and their .t parts (.bz2), blood-cells.npz, and a folder fashion-mnist
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm import LinearSVC, NotCertifiedWarning
from saddlesvm.data import read

LOSSES = ("logistic", "squared_hinge", "hinge")
STRENGTHS = (0.01, 1.0, 100.0)
TOLS = (1e-4, 1e-6)
REPEATS = 3
Set = tuple[Any, np.ndarray, Any]


def of_files(folder: Path, name: str) -> Set:
    """A training and a test file of LIBSVM text, as many features in both."""
    train = read(folder / f"{name}.bz2")
    test = read(folder / f"{name}.t.bz2", n_features=train.n_features)
    return sparse.csr_matrix(train.X), np.asarray(train.y), sparse.csr_matrix(test.X)


def blood_cells(folder: Path) -> Set:
    """Lymphocytes against neutrophils, 32 x 32 pixels from 0 to 1."""
    whole = np.load(folder / "blood-cells.npz")
    chosen = np.isin(whole["label"], (1, 3))
    X = whole["images"][chosen].reshape(chosen.sum(), -1).astype(np.float32) / 255.0
    train = whole["split"][chosen] == 0
    return X[train], whole["label"][chosen][train], X[~train]


def fashion(folder: Path) -> Set:
    """Pullovers against T-shirts, 28 x 28 pixels from 0 to 1."""
    train = read(folder / "fashion-mnist/train-images-idx3-ubyte.gz")
    test = read(folder / "fashion-mnist/t10k-images-idx3-ubyte.gz")
    parts = [np.isin(one.y, (0, 2)) for one in (train, test)]
    X, asked = (np.asarray(one.X)[part].astype(np.float32) for one, part in zip((train, test), parts, strict=True))
    most = float(X.max())
    return X / most, np.asarray(train.y)[parts[0]], asked / most


def seconds_of(work: Any, *given: Any) -> tuple[float, Any]:
    """Processor seconds of a call, and what it returned."""
    began = time.process_time()
    found = work(*given)
    return time.process_time() - began, found


def cell(given: Set, options: dict[str, Any], repeats: int) -> tuple[float, float, float, float]:
    """The share of proven labels in per cent, the median width of their bounds, and the least processor seconds of the
    fit and of the proof, one after the other."""
    X, y, asked = given
    fits = []
    proofs = []
    for _ in range(repeats):
        model = LinearSVC(random_state=0, **options)
        fits.append(seconds_of(model.fit, X, y)[0])
        spent, proven = seconds_of(model.is_proven, asked)
        proofs.append(spent)
    low, high = model.decision_bounds(asked)
    return 100.0 * float(proven.mean()), float(np.median(high - low)), min(fits), min(proofs)


def main(folder: Path) -> None:
    """Print a row for each data set and loss."""
    warnings.simplefilter("ignore", NotCertifiedWarning)
    sets = {"a9a": of_files(folder, "a9a"), "blood cells": blood_cells(folder), "Fashion 2/0": fashion(folder)}
    sets["rcv1"] = of_files(folder, "rcv1-binary")
    told = [f"C = {C:g}" for C in STRENGTHS]
    titles = ["data", "loss", *told, *(f"proof / fit, {one}" for one in told), "width", "s, fit", "s, proof"]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
    for name, given in sets.items():
        for loss in LOSSES:
            cells = [cell(given, {"loss": loss, "C": C, "tol": TOLS[0]}, REPEATS) for C in STRENGTHS]
            closer = [cell(given, {"loss": loss, "C": C, "tol": TOLS[1]}, 1)[0] for C in STRENGTHS]
            shares = [f"{own[0]:.2f} / {share:.2f}" for own, share in zip(cells, closer, strict=True)]
            ratios = [f"{proof / fit:.1f}" for _, _, fit, proof in cells]
            _, width, fit, proof = cells[1]
            row = [name, loss, *shares, *ratios, f"{width:.1e}", f"{fit:.3f}", f"{proof:.3f}"]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
