"""Several labels a row: the topics of Reuters-21578, by an indicator matrix and one topic at a time, beside LIBLINEAR.

    OMP_NUM_THREADS=1 python -m benchmarks.peers.several_labels --data FOLDER [--every 4] [--rounds 3]

FOLDER holds ``reuters21578.jsonl.xz``: one JSON object a story, with ``lewis`` (the part of the ModApte split),
``topics``, ``title`` and ``text``. The rows are TF-IDF of the words in two stories or more, as scikit-learn's
vectorizer hands them over. `--every k` takes each k-th topic. The three ways take turns; seconds of the processor, the
least and the median. Each side has its own ``tol=1e-4``; ours proves it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC as Liblinear

from saddlesvm import LinearSVC


def stories(folder: Path) -> tuple[Any, np.ndarray]:
    """Rows and topics of the stories for training that have a topic."""
    texts = []
    topics = []
    with lzma.open(folder / "reuters21578.jsonl.xz", "rt", encoding="utf-8") as file:
        for story in map(json.loads, file):
            if story["lewis"].upper() == "TRAIN" and story["topics"]:
                texts.append(f"{story['title']} {story['text']}")
                topics.append(story["topics"])
    Y = MultiLabelBinarizer().fit_transform(topics)
    return TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(texts), Y[:, Y.any(axis=0) & ~Y.all(axis=0)]


def objective(X: Any, Y: np.ndarray, W: np.ndarray, offsets: np.ndarray) -> float:
    """The sum of all topics' objectives, squared hinge at C = 1, in float64."""
    short = np.maximum(0.0, 1.0 - (2 * Y - 1) * (X @ W.T + offsets))
    return float(0.5 * (np.vdot(W, W) + offsets @ offsets) + np.vdot(short, short))


def one_at_a_time(inner: Any) -> Callable[[Any, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Fit a copy of `inner` to each topic; returns weights and intercepts."""

    def fit(X: Any, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        models = OneVsRestClassifier(inner).fit(X, Y).estimators_
        return np.vstack([one.coef_ for one in models]), np.hstack([one.intercept_ for one in models])

    return fit


def at_once(X: Any, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit all topics in one call."""
    model = LinearSVC(random_state=0).fit(X, Y)
    return model.coef_, model.intercept_


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, Y = stories(given.data)
    Y = Y[:, :: given.every]
    ways = {
        "an indicator matrix": at_once,
        "OneVsRestClassifier(saddlesvm)": one_at_a_time(LinearSVC(random_state=0)),
        "OneVsRestClassifier(scikit-learn)": one_at_a_time(Liblinear(random_state=0)),
    }
    for way in list(ways.values())[:2]:
        way(X, Y[:, :2])  # compile
    spent: dict[str, list[float]] = {name: [] for name in ways}
    value = {}
    for _ in range(given.rounds):
        for name, way in ways.items():
            began = time.process_time()
            found = way(X, Y)
            spent[name].append(time.process_time() - began)
            value[name] = objective(X, Y, *found)
    best = min(value.values())
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} values, sorted indices: {bool(X.has_sorted_indices)}; "
          f"{Y.shape[1]} topics")  # fmt: skip
    print("| way | least, s | median, s | objective above the least |\n|---|---|---|---|")
    for name, seconds in spent.items():
        print(f"| {name} | {min(seconds):.2f} | {np.median(seconds):.2f} | {value[name] / best - 1.0:.1e} |")


if __name__ == "__main__":
    main()
