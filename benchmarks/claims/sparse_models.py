"""Sparse models: certified with defaults at any C, and the objectives of independent solvers.

    python -m benchmarks.claims.sparse_models --data FOLDER             every cell to 1e-6, our own proof
    python -m benchmarks.claims.sparse_models --data FOLDER --peers     and LIBLINEAR's objectives, where it has them

FOLDER holds ``a9a.bz2``, ``rcv1-binary.bz2`` and ``fashion-mnist``. One thread, processor seconds, kernels compiled
before. The intercept is regularised, as LIBLINEAR's is. Objectives are computed anew in float64, from the weights.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC as OfLiblinear
from threadpoolctl import threadpool_limits

from benchmarks.peers.multiclass import fashion, show
from saddlesvm import LinearSVC
from saddlesvm.data import load_bundled, read

TOL = 1e-6
STRENGTHS = (1e-2, 1.0, 100.0)
PENALTIES = {
    "l1": {"penalty": "l1"},
    **{f"elastic net {share}": {"penalty": "elasticnet", "l1_ratio": share} for share in (0.15, 0.5, 0.9)},
}
MOST = 60.0  # seconds of a fit


def data_sets(folder: Path) -> dict[str, tuple[Any, np.ndarray]]:
    """Rows and labels -1 and +1 of each set."""
    pixels, kinds = fashion(folder, "train")
    two = (kinds == 0) | (kinds == 2)
    heart = load_bundled("heart")
    found = {name: read(folder / f"{name}.bz2") for name in ("a9a", "rcv1-binary")}
    return {
        "heart": (np.asarray(heart.X), np.where(np.asarray(heart.y) > 0, 1.0, -1.0)),
        **{name: (one.X, np.asarray(one.y)) for name, one in found.items()},
        "Fashion 2/0": (pixels[two], np.where(kinds[two] == 0, 1.0, -1.0)),
    }


def objective(X: Any, y: np.ndarray, w: np.ndarray, b: float, options: dict[str, Any], C: float, loss: str) -> float:
    """The objective in float64 of weights and a regularised intercept."""
    w = np.asarray(w, dtype=np.float64).ravel()
    z = y * (np.concatenate([X[i : i + 5000].astype(np.float64) @ w for i in range(0, X.shape[0], 5000)]) + b)
    slack = np.maximum(0.0, 1.0 - z)
    paid = {"squared_hinge": slack**2, "hinge": slack, "logistic": np.logaddexp(0.0, -z)}[loss].sum()
    share = options.get("l1_ratio", 1.0)
    all_weights = np.append(w, b)
    seen = all_weights if share == 1.0 else w
    return float(share * np.abs(seen).sum() + (1.0 - share) / 2.0 * (all_weights @ all_weights) + C * paid)


def peer_of(X: Any, penalty: str, loss: str, C: float) -> Any:
    """A solver from elsewhere for the same objective; None where we know of none."""
    if penalty != "l1" or loss == "hinge":
        return None
    if loss == "squared_hinge":
        return OfLiblinear(penalty="l1", dual=False, C=C, tol=1e-8, max_iter=20_000, random_state=0)
    return LogisticRegression(l1_ratio=1.0, solver="liblinear", C=C, tol=1e-8, max_iter=20_000, random_state=0)


def main() -> None:
    """Print a row a cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="", help="part of a cell's name")
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name, (X, y) in data_sets(given.data).items():
        for penalty, options in PENALTIES.items():
            for loss in ("squared_hinge", "logistic", *(["hinge"] if penalty != "l1" else [])):
                for C in STRENGTHS:
                    if given.only not in f"{name} {penalty} {loss} {C:g}":
                        continue
                    with threadpool_limits(1):
                        lines.append(cell(X, y, (name, penalty, loss, C), options, given.peers))
                    print("  ".join(lines[-1]), flush=True)
    head = ["data", "penalty", "loss", "C", "outcome", "relative gap", "seconds", "features", "peer above our bound"]
    show(f"To {TOL:g} with defaults", head, lines)


def cell(X: Any, y: np.ndarray, which: tuple[str, str, str, float], options: Any, peers: bool) -> list[str]:
    """The row of a cell: how our fit ended, and how far above its bound another solver's objective is."""
    name, penalty, loss, C = which
    model = LinearSVC(loss=loss, C=C, tol=TOL, max_time=MOST, random_state=0, **options)
    LinearSVC(loss=loss, C=C, tol=0.1, max_time=MOST, random_state=0, **options).fit(X, y)
    began = time.process_time()
    model.fit(X, y)
    spent = time.process_time() - began
    found = model.certificate_
    own = objective(X, y, model.coef_, float(model.intercept_[0]), options, C, loss)
    assert found.dual <= own * (1.0 + 1e-12) and abs(own - found.primal) <= found.gap + 1e-9 * own
    told = "-"
    if peers and (peer := peer_of(X, penalty, loss, C)) is not None:
        peer.fit(sparse.csr_matrix(X, dtype=np.float64) if sparse.issparse(X) else X.astype(np.float64), y)
        theirs = objective(X, y, peer.coef_, float(peer.intercept_[0]), options, C, loss)
        told = f"{(theirs - found.dual) / theirs:.1e}"
    return [name, penalty, loss, f"{C:g}", str(model.outcome_), f"{found.relative_gap:.1e}", f"{spent:.2f}",
            f"{model.n_features_selected_:,}", told]  # fmt: skip


if __name__ == "__main__":
    main()
