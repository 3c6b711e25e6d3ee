"""Whether any single fit contradicts what a certified path claims: the second table of docs/measurements/paths.md.

OMP_NUM_THREADS=1 python benchmarks/claims/path_law.py FOLDER                     # with a9a.bz2, rcv1-binary.bz2, ...
OMP_NUM_THREADS=1 python benchmarks/claims/path_law.py FOLDER --only a9a --loss hinge --values 50 --seed 1

The fits know nothing of the path: they are made in the order of their C, each begun where the last one ended. `FOLDER`
has a folder `fashion-mnist` with the training files as they are published.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm import LinearSVC, NotCertifiedWarning
from saddlesvm.data import read

LOSSES = ("hinge", "squared_hinge", "logistic")
ENDS = (1e-3, 1e3)
Data = tuple[Any, np.ndarray]


def from_file(folder: Path, name: str) -> Data:
    """A set in LIBSVM's format."""
    table = read(folder / f"{name}.bz2")
    return sparse.csr_matrix(table.X), np.asarray(table.y)


def images(folder: Path) -> Data:
    """Fashion-MNIST's pullovers against its T-shirts (2 and 0), pixels from 0 to 1: 12,000 x 784."""
    table = read(folder / "fashion-mnist" / "train-images-idx3-ubyte.gz")
    y = np.asarray(table.y)
    chosen = (y == 0) | (y == 2)
    return np.ascontiguousarray(np.asarray(table.X)[chosen], dtype=np.float64) / 255.0, y[chosen]


SETS: dict[str, Callable[[Path], Data]] = {
    "a9a": lambda folder: from_file(folder, "a9a"),
    "rcv1-binary": lambda folder: from_file(folder, "rcv1-binary"),
    "Fashion 2/0": images,
}


def judge(path: Any, X: Any, y: np.ndarray, loss: str, values: np.ndarray, seconds: float) -> tuple[int, np.ndarray]:
    """How many fits contradict the path, and the relative gap that each of them proves."""
    wrong = 0
    gaps = []
    fit = LinearSVC(loss=loss, tol=1e-9, max_time=seconds, random_state=0, warm_start=True)
    for C in np.sort(values):
        claim = path.certificate(C)
        best = fit.set_params(C=float(C)).fit(X, y).certificate_
        wrong += claim.dual > best.primal or best.dual > claim.primal
        gaps.append(best.relative_gap)
    return wrong, np.array(gaps)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=list(SETS))
    parser.add_argument("--loss", choices=LOSSES)
    parser.add_argument("--gap", type=float, default=1e-2)
    parser.add_argument("--values", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0, help="for a fit; one that takes longer is still a bound")
    given = parser.parse_args()
    warnings.simplefilter("ignore", NotCertifiedWarning)
    columns = "data,loss,gap,fits,s: path,random C,contradicted,fits to 1e-9,largest gap of a fit,s: fits"
    print(f"| {columns.replace(',', ' | ').replace(':', ',')} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in [given.only] if given.only else SETS:
        X, y = SETS[name](given.folder)
        for loss in [given.loss] if given.loss else LOSSES:
            began = time.process_time()
            path = LinearSVC(loss=loss, random_state=0).path(X, y, C=ENDS, gap=given.gap)
            between = time.process_time()
            values = np.exp(np.random.default_rng(given.seed).uniform(*np.log(ENDS), given.values))
            wrong, gaps = judge(path, X, y, loss, values, given.seconds)
            print(
                f"| {name} | {loss} | {given.gap:g} | {len(path.knots)} | {between - began:.2f} | {given.values} "
                f"| {wrong} | {int((gaps <= 1e-9).sum())} | {gaps.max():.1e} | {time.process_time() - between:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
