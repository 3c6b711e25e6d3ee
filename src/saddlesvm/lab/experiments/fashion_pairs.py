"""The one-against-one classifiers of Fashion-MNIST pair by pair, beside the pairs that were published."""

from __future__ import annotations

import time
import warnings
from itertools import combinations
from typing import Any

import numpy as np

from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.lab.experiments.base import percent
from saddlesvm.lab.report import Table

PUBLISHED_PAIRS = {
    (1, 0): 99.61,
    (2, 0): 91.23,
    (2, 1): 99.99,
    (3, 0): 91.47,
    (3, 1): 98.46,
    (3, 2): 98.31,
    (4, 0): 99.02,
}
CLASSES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot")


def timed(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """The fitted model and the seconds of its fit; a missing certificate is expected here and gives no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        began = time.perf_counter()
        model.fit(X, y)
    return model, time.perf_counter() - began


def pair(X: np.ndarray, y: np.ndarray, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of two classes."""
    chosen = np.flatnonzero(np.isin(y, (first, second)))
    return X[chosen], y[chosen]


def pair_accuracies(model: Any, X: np.ndarray, y: np.ndarray) -> dict[tuple[int, int], float]:
    """Training accuracy of each pair's classifier on its own rows, by (later, earlier) class."""
    found = {}
    for place, (first, second) in enumerate(combinations(range(len(CLASSES)), 2)):
        chosen = np.flatnonzero(np.isin(y, (first, second)))
        scores = X[chosen] @ model.coef_[place].astype(X.dtype) + model.intercept_[place]
        found[second, first] = float((np.where(scores > 0.0, second, first) == y[chosen]).mean())
    return found


def pair_tables(accuracies: dict[tuple[int, int], float]) -> tuple[Table, Table]:
    """The pairs with a published figure beside it, and the others."""
    known, others = [], []
    for (second, first), accuracy in sorted(accuracies.items()):
        name = f"{second}-{first}  {CLASSES[second]}, {CLASSES[first]}"
        if (second, first) in PUBLISHED_PAIRS:
            known.append([name, f"{PUBLISHED_PAIRS[second, first]:.2f}", percent(accuracy)])
        else:
            others.append([name, percent(accuracy)])
    return (
        Table(["pair", "published (%)", "measured (%)"], known, "Training accuracy of the pairs that were published."),
        Table(["pair", "measured (%)"], others, "Training accuracy of the other pairs."),
    )


def objective(model: Any) -> float:
    """Mean objective of the pairs."""
    return float(np.mean([proof.primal for proof in model.certificates_]))
