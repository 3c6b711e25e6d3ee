"""Do SDCA and DCD certify 1e-6 on a9a, does LIBLINEAR agree within the gap, and how near does Pegasos come?

python -m benchmarks.claims.agreement --data DIR      (DIR holds a9a.bz2)
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC as TheirSVC

from benchmarks.common import objective, seconds
from saddlesvm import DCD, SDCA, LinearSVC, Pegasos, certify
from saddlesvm.data import read


def layouts(X: sparse.csr_matrix) -> dict[str, object]:
    """The same rows in every layout and precision."""
    found: dict[str, object] = {}
    for dtype, index in itertools.product((np.float32, np.float64), (np.int32, np.int64)):
        same = X.astype(dtype)
        same.indices, same.indptr = same.indices.astype(index), same.indptr.astype(index)
        found[f"CSR {np.dtype(dtype).name} {np.dtype(index).name}"] = same
    for dtype in (np.float32, np.float64):
        found[f"dense {np.dtype(dtype).name}"] = np.ascontiguousarray(X.toarray().astype(dtype))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    table = read(parser.parse_args().data / "a9a.bz2")
    y = table.y
    assert y is not None
    for loss in ("hinge", "squared_hinge"):
        theirs = TheirSVC(loss=loss, C=1.0, fit_intercept=False, dual=True, tol=1e-8, max_iter=20_000, random_state=0)
        narrow = table.X.copy()
        narrow.indices, narrow.indptr = narrow.indices.astype(np.int32), narrow.indptr.astype(np.int32)
        spent, _ = seconds(lambda theirs=theirs, narrow=narrow: theirs.fit(narrow, y))
        reached = objective(table.X, y, theirs.coef_, 1.0, loss)
        print(f"{loss}: LIBLINEAR {reached:.6f} in {spent:.1f} s", flush=True)
        found = certify(table.X, y, theirs.coef_, loss=loss, C=1.0, refine=20)
        print(f"  certify(LIBLINEAR's model): dual {found.dual:.6f}, relative gap {found.relative_gap:.2e}", flush=True)
        for (name, X), solver in itertools.product(layouts(table.X).items(), (DCD(), SDCA(), Pegasos())):
            limits = {"max_iter": 50, "tol": 0.0} if isinstance(solver, Pegasos) else {"tol": 1e-6}
            model = LinearSVC(loss=loss, fit_intercept=False, solver=solver, random_state=0, **limits)
            spent, _ = seconds(lambda model=model, X=X: model.fit(X, y))
            proof = model.certificate_
            agrees = proof.dual <= reached * (1 + 1e-12)
            print(
                f"  {solver.name:8s} {name:18s} {proof.primal:.6f} gap {proof.relative_gap:.1e} "
                f"{model.n_iter_:6d} epochs {spent:6.2f} s, over LIBLINEAR's {proof.primal / reached - 1:+.2e}, "
                f"{'bound below it' if agrees else 'BOUND ABOVE IT'}",
                flush=True,
            )


if __name__ == "__main__":
    main()
