"""Sparse models: the objectives that skglm and saga reach with fine tolerances, beside our bound.

    pip install skglm
    python -m benchmarks.claims.sparse_agreement --data FOLDER

FOLDER holds ``a9a.bz2``, ``rcv1-binary.bz2`` and ``fashion-mnist``. Logistic loss, no intercept, float64 rows, one
thread.
Ours is fitted to 1e-8. Every objective is computed anew in float64, and told by how much it is above our dual bound,
relative to it: no solver can be below it. A solver that is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from benchmarks.claims.sparse_models import data_sets, objective
from benchmarks.peers.multiclass import show
from benchmarks.peers.sparse_models import KINDS, of_skglm
from saddlesvm import LinearSVC

TOL = 1e-8
THEIRS = 1e-7
STRENGTHS = (1e-2, 1.0)
LONGEST = 60.0  # seconds of our fit


def line_of(X: Any, y: np.ndarray, name: str, kind: str, C: float) -> list[str]:
    """How far each solver's objective is above our bound."""
    options = KINDS[kind]
    share = options.get("l1_ratio", 1.0)
    ours = LinearSVC(loss="logistic", C=C, tol=TOL, max_time=LONGEST, fit_intercept=False, random_state=0, **options)
    bound = ours.fit(X, y).certificate_.dual

    def above(w: np.ndarray) -> str:
        return f"{objective(X, y, np.ravel(w), 0.0, options, C, 'logistic') / bound - 1.0:.1e}"

    saga = LogisticRegression(
        l1_ratio=share, solver="saga", C=C, tol=THEIRS, max_iter=2000, fit_intercept=False, random_state=0
    )
    told = above(of_skglm(X, y, share, 1.0 / (C * len(y)), THEIRS)) if importlib.util.find_spec("skglm") else "-"
    return [name, kind, f"{C:g}", f"{ours.certificate_.relative_gap:.1e}", above(ours.coef_),
            above(saga.fit(X, y).coef_), told]  # fmt: skip


def main() -> None:
    """Print a row a cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="", help="part of a cell's name")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name, (rows, y) in data_sets(given.data).items():
        X = rows.astype(np.float64) if name != "heart" else MaxAbsScaler().fit_transform(rows)
        for kind in KINDS:
            for C in STRENGTHS:
                if given.only in f"{name} {kind} {C:g}":
                    with threadpool_limits(1):
                        lines.append(line_of(X, y, name, kind, C))
                    print("  ".join(lines[-1]), flush=True)
    show("Above our bound, logistic loss", ["data", "penalty", "C", "our gap", "ours", "saga", "skglm"], lines)


if __name__ == "__main__":
    main()
