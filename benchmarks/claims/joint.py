"""Multinomial regression against scikit-learn's LogisticRegression: the same objective, seconds to the same level.

    python -m benchmarks.claims.joint --data FOLDER               Fashion-MNIST, text of 20 classes, 100 classes
    python -m benchmarks.claims.joint --data FOLDER --full        and 1,000 classes x 100,000 rows x 512 features

FOLDER holds ``fashion-mnist`` with its four idx files and ``reuters21578.jsonl.xz``. One thread, processor seconds
(the least of five runs where they are short), kernels compiled before. The intercept is a column of ones that is
penalised, for both sides alike. Peers run with tolerance after tolerance until their objective, computed anew in
float64, is within 1e-5 of our bound, or their time is up; their seconds are those of that run alone.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.peers.multiclass import embeddings, fashion, show
from saddlesvm import LinearSVC

LEVEL = 1e-5  # relative distance from our dual bound that peers have to reach
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
LONGEST = 60.0  # seconds of a peer's run after which no finer tolerance is tried
CLASSES = 20
REPEATS = 5  # calls of which the least counts
SHORT = 3.0  # seconds beyond which one is enough


def text(folder: Path) -> tuple[Any, np.ndarray]:
    """TF-IDF of the stories with one topic, among the topics that most stories have; float32."""
    with lzma.open(folder / "reuters21578.jsonl.xz", "rt") as file:
        stories = [story for story in map(json.loads, file) if len(story["topics"]) == 1 and story["text"]]
    common = {topic for topic, _ in Counter(story["topics"][0] for story in stories).most_common(CLASSES)}
    stories = [story for story in stories if story["topics"][0] in common]
    words = TfidfVectorizer(min_df=2, sublinear_tf=True, dtype=np.float32)
    X = words.fit_transform([story["title"] + " " + story["text"] for story in stories])
    return X.tocsr(), np.unique([story["topics"][0] for story in stories], return_inverse=True)[1]


def with_ones(X: Any) -> Any:
    """The rows with a last column of ones."""
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])


def objective(X: Any, y: np.ndarray, W: np.ndarray, C: float) -> float:
    """Multinomial regression's objective in float64."""
    W = np.asarray(W, dtype=np.float64)
    paid = 0.0
    for start in range(0, len(y), 4096):
        part = X[start : start + 4096].astype(np.float64)
        own = y[start : start + 4096]
        z = np.asarray(part @ W.T)
        paid += float((logsumexp(z, axis=1) - z[np.arange(len(own)), own]).sum())
    return 0.5 * float(np.vdot(W, W)) + C * paid


def spent(work: Any) -> tuple[float, Any]:
    """Processor seconds of a call, the least of several where it is short, and what it returns."""
    least = np.inf
    for _ in range(REPEATS):
        begun = time.process_time()
        found = work()
        least = min(least, time.process_time() - begun)
        if least > SHORT:
            break
    return least, found


def to_level(solver: str, X: Any, y: np.ndarray, C: float, bound: float) -> tuple[float, float]:
    """Seconds of the first run of a peer that comes close enough to the bound, and how far it is from it."""
    seconds = np.inf
    away = np.inf
    for tol in TOLERANCES:
        peer = LogisticRegression(C=C, solver=solver, tol=tol, max_iter=100_000, fit_intercept=False)
        seconds, fitted = spent(partial(peer.fit, X, y))
        away = objective(X, y, fitted.coef_, C) / bound - 1.0
        if away <= LEVEL or seconds > LONGEST:
            break
    return seconds, away


def row_of(name: str, X: Any, y: np.ndarray, C: float, peers: tuple[str, ...]) -> list[str]:
    """A line of the table."""
    options: dict[str, Any] = {"C": C, "random_state": 0, "fit_intercept": False, "multi_class": "multinomial"}
    ones = with_ones(X)
    LinearSVC(**options, tol=0.1).fit(ones[:2000], y[:2000])
    coarse, _ = spent(lambda: LinearSVC(**options, tol=LEVEL).fit(ones, y))
    fine, model = spent(lambda: LinearSVC(**options, tol=1e-6).fit(ones, y))
    proof = model.certificate_
    again = objective(ones, y, model.coef_, C)
    assert proof.dual <= again <= proof.primal * (1.0 + 1e-9)
    line = [name, f"{C:g}", f"{coarse:.2f}", f"{fine:.2f}", f"{proof.relative_gap:.0e}"]
    for solver in peers:
        seconds, away = to_level(solver, ones, y, C, proof.dual)
        line.append(f"{seconds:.2f} ({away:.0e}), {seconds / coarse:.1f} times")
        print(" | ".join(line), flush=True)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--peers", nargs="*", default=["newton-cg", "lbfgs"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cases: list[tuple[str, Any, float]] = [
        (f"text, {CLASSES} classes", lambda: text(options.data), C) for C in (1.0, 10.0)
    ]
    cases += [("20,000 x 256, 100 classes", lambda: embeddings(20_000, 256, 100), C) for C in (1.0, 100.0)]
    cases += [("Fashion-MNIST, 10 classes", lambda: fashion(options.data, "train"), C) for C in (0.01, 1.0)]
    if options.full:
        cases.append(("100,000 x 512, 1,000 classes", lambda: embeddings(100_000, 512, 1000), 1.0))
    chosen = [case for case in cases if options.only in case[0]]
    with threadpool_limits(1):
        lines = [row_of(name, *made(), C, tuple(options.peers)) for name, made, C in chosen]
    head = ["data", "C", f"to {LEVEL:g}", "to 1e-6", "gap", *(f"{peer} (distance)" for peer in options.peers)]
    show("Multinomial regression, float32 rows, processor seconds", head, lines)


if __name__ == "__main__":
    main()
