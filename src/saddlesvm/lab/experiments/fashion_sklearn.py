"""scikit-learn's linear machine on Fashion-MNIST, beside the figure that was published of it.

Published: 80.37 % test accuracy. The report's program fits ``LinearSVC()`` to pixels from 0 to 255: one class against
the rest, the squared hinge, C = 1, at most 1,000 iterations of LIBLINEAR's dual descent; here they are fewer.
"""

from __future__ import annotations

import numpy as np
from sklearn.svm import LinearSVC

from saddlesvm.lab.experiments.fashion_pairs import SCALE, ranged, timed
from saddlesvm.lab.report import Table

PUBLISHED_SKLEARN = 80.37
ITERATIONS = (2, 10)  # of the program's 1,000
Part = tuple[np.ndarray, np.ndarray]


def sklearn_runs(train: Part, test: Part, seeds: int) -> tuple[Table, str]:
    """Test accuracies over seeds after a few numbers of iterations, and what they say.

    Parameters
    ----------
    train, test : pair of ndarrays
        Images in [0, 1], and their labels.
    seeds : int
        Runs of each setting.
    """
    scale = train[0].dtype.type(SCALE)
    X, X_test = train[0].astype(np.float64) * scale, test[0] * scale
    rows, found = [], []
    for iterations in ITERATIONS:
        scores, took = [], 0.0
        for seed in range(seeds):
            model, seconds = timed(LinearSVC(dual=True, max_iter=iterations, random_state=seed), X, train[1])
            scores.append(float(model.score(X_test, test[1])))
            took += seconds / seeds
        found += scores
        rows.append([f"{iterations}", ranged(scores), f"{took:.1f}"])
    columns = ["iterations", f"test accuracy, % (published {PUBLISHED_SKLEARN})", "seconds a run"]
    caption = f"LinearSVC() on pixels from 0 to 255, {seeds} seeds each; the program allows 1,000 iterations."
    inside = min(found) <= PUBLISHED_SKLEARN / 100.0 <= max(found)
    words = "lies in the range" if inside else "is not in the range"
    return Table(columns, rows, caption), (
        f"scikit-learn's published {PUBLISHED_SKLEARN} % {words} of its unfinished models here, {ranged(found)} %."
    )
