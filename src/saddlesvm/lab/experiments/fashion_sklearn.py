"""scikit-learn's linear machine on Fashion-MNIST, beside the figure that was published of it.

Published: 80.37 % test accuracy of scikit-learn, without its estimator, options or pixel scale. A linear machine by
stochastic gradients is nearest to what the report compares it with: scikit-learn's SGDClassifier with the hinge loss,
here with five epochs, the default of its early versions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsOneClassifier

from saddlesvm.lab.experiments.fashion_pairs import timed
from saddlesvm.lab.report import Table

PUBLISHED_SKLEARN = 80.37
EPOCHS = 5
SCALES = {"[0, 1]": 1.0, "[0, 255]": 255.0}
SPLITS: dict[str, Callable[[Any], Any]] = {
    "one against the rest": lambda machine: machine,
    "one against one": lambda machine: OneVsOneClassifier(machine),
}
Part = tuple[np.ndarray, np.ndarray]


def sklearn_runs(train: Part, test: Part, seeds: int) -> tuple[Table, str]:
    """Test accuracies over seeds for each way to split the classes and each pixel scale, and what they say.

    Parameters
    ----------
    train, test : pair of ndarrays
        Images in [0, 1], and their labels.
    seeds : int
        Runs of each setting.
    """
    rows, met = [], []
    for split, made in SPLITS.items():
        for words, scale in SCALES.items():
            scores, took = [], 0.0
            for seed in range(seeds):
                machine = SGDClassifier(loss="hinge", max_iter=EPOCHS, tol=None, random_state=seed, n_jobs=2)
                model, seconds = timed(made(machine), train[0] * train[0].dtype.type(scale), train[1])
                scores.append(100.0 * float(model.score(test[0] * test[0].dtype.type(scale), test[1])))
                took += seconds / seeds
            rows.append([split, words, f"{min(scores):.2f} to {max(scores):.2f}", f"{took:.1f}"])
            if min(scores) <= PUBLISHED_SKLEARN <= max(scores):
                met.append(f"{split}, pixels in {words}")
    columns = ["split", "pixels", f"test accuracy, % (published {PUBLISHED_SKLEARN})", "seconds a run"]
    caption = f"SGDClassifier with the hinge loss, {EPOCHS} epochs, {seeds} seeds each."
    where = f"lies in the range of: {'; '.join(met)}" if met else "is in the range of none of these settings"
    return Table(columns, rows, caption), f"scikit-learn's published {PUBLISHED_SKLEARN} % {where}."
