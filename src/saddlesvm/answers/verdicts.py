"""Proofs about labels from bounds on scores: right, wrong, or undecided; and of an error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Bounds of each row's error, from bounds of its scores.

    Attributes
    ----------
    low, high : ndarray of shape (n,)
        Between what the row's error lies: 0 or 1, a share of several labels, or a squared distance.
    decided : ndarray of shape (n,), bool
        Whether each label of the row is proven right or wrong; empty for targets.
    proven : int or None
        Labels that are; None for targets, and where nothing is proven of any.
    """

    low: np.ndarray
    high: np.ndarray
    decided: np.ndarray
    proven: int | None

    def error(self, weights: np.ndarray) -> tuple[float, float]:
        """The bounds of the error, given the weights of the rows; rows of weight zero do not count."""
        return mean_of(self.low, weights), mean_of(self.high, weights)


def mean_of(errors: np.ndarray, weights: np.ndarray) -> float:
    """The mean of the rows' errors, shape (n,), correctly rounded sums; of the rows with positive weight."""
    some = weights > 0.0
    return math.fsum(weights[some] * errors[some]) / math.fsum(weights[some])


def label_verdicts(low: np.ndarray, high: np.ndarray, labels: np.ndarray) -> Verdicts:
    """The predicted labels that are proven.

    Parameters
    ----------
    low, high : ndarray of shape (n, k)
        Bounds of the scores: of class 1 against class 0 where k is 1, of each of k classes, or of k labels of a row.
    labels : ndarray of shape (n,) or (n, k)
        The codes of the right classes; or the signs of all labels of the rows.
    """
    if labels.ndim == 2 or low.shape[1] == 1:
        positive = labels > 0 if labels.ndim == 2 else labels[:, None] == 1
        right, wrong = np.where(positive, low > 0.0, high <= 0.0), np.where(positive, high <= 0.0, low > 0.0)
    else:
        rows = np.arange(len(low))
        others_low, others_high = low.copy(), high.copy()
        others_low[rows, labels] = others_high[rows, labels] = -np.inf
        right = (low[rows, labels] > others_high.max(axis=1))[:, None]
        wrong = (high[rows, labels] < others_low.max(axis=1))[:, None]
    decided = np.asarray(right | wrong)
    proven = int(np.count_nonzero(decided)) if np.isfinite(low).any() else None
    return Verdicts(wrong.mean(axis=1), 1.0 - right.mean(axis=1), np.asarray(decided.all(axis=1)), proven)


def squared_errors(low: np.ndarray, high: np.ndarray, y: np.ndarray) -> Verdicts:
    """Bounds on the squared errors of predictions, from bounds on the predictions, shape (n,)."""
    below, above = low - y, high - y
    with np.errstate(over="ignore"):
        most = np.maximum(below**2, above**2)
        least = np.where((below <= 0.0) & (above >= 0.0), 0.0, np.minimum(below**2, above**2))
    return Verdicts(least, most, np.empty(0, dtype=bool), None)
