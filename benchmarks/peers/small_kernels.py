"""The kernel machines beside scikit-learn's on sets of 150 to 2,000 rows: default tolerances, processor milliseconds.

Ours proves a relative gap of 1e-3; scikit-learn stops at its tolerance of 1e-3. The least of some fits in turn.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.small_kernels [--only WORD ...] [--repeats 5]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import datasets as sets, svm as theirs
from sklearn.preprocessing import scale

import saddlesvm as ours
from benchmarks.peers.kernel_cells import Cell, fit_here
from saddlesvm.data import load_bundled

TOL = 1e-3
CLASSIFIERS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("SVC", {"kernel": kernel}) for kernel in ("rbf", "linear", "poly", "sigmoid")),
    ("SVC", {"C": 100.0}),
    ("NuSVC", {"nu": 0.1}),
)
NOVELTY = (("OneClassSVM", {"nu": 0.1}), ("OneClassSVM", {"nu": 0.5}))
REGRESSIONS: tuple[tuple[str, dict[str, Any]], ...] = (("SVR", {}), ("SVR", {"kernel": "linear"}), ("NuSVR", {}))


def cells() -> Iterator[Cell]:
    """All cells, one after the other."""
    notes = load_bundled("banknote")
    made = {"n_features": 20, "n_informative": 10, "random_state": 0}
    known = {
        "banknote": (notes.X, notes.y),
        "cancer": sets.load_breast_cancer(return_X_y=True),
        "wine": sets.load_wine(return_X_y=True),
        "iris": sets.load_iris(return_X_y=True),
        "digits": sets.load_digits(return_X_y=True),
        "made": sets.make_classification(2000, **made),
    }
    for name, (X, y) in known.items():
        X = X / 16.0 if name == "digits" else X if name == "banknote" else scale(X)
        yield from (Cell(name, machine, options, X, y) for machine, options in CLASSIFIERS)
        yield from (Cell(name, machine, options, X, None) for machine, options in NOVELTY)
    X, y = sets.load_diabetes(return_X_y=True)
    yield from (Cell("diabetes", machine, options, scale(X), scale(y)) for machine, options in REGRESSIONS)


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="parts of the names of cells")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios = []
    for cell in cells():
        given = " ".join(f"{key}={value}" for key, value in cell.options.items())
        label = f"{cell.name}, {cell.X.shape[0]:,} x {cell.X.shape[1]}, {cell.machine} {given}"
        if options.only and not any(word in label for word in options.only):
            continue
        fit_here(ours, cell, TOL)  # compiles, or loads what is compiled
        spent = np.array([[fit_here(kind, cell, TOL)[0] for kind in (ours, theirs)] for _ in range(options.repeats)])
        mine, other = 1e3 * spent.min(axis=0)
        ratios.append(other / mine)
        print(f"{label:56}{mine:9.1f}{other:9.1f}{other / mine:7.2f}", flush=True)
    print(f"\ngeometric mean {np.exp(np.log(ratios).mean()):.2f}; below 0.9: {np.sum(np.array(ratios) < 0.9)}")


if __name__ == "__main__":
    main()
