"""Labels that follow from bounds on scores: all scores between the bounds give the same label.

Each function takes bounds of shape (n, k) and gives the label's number and whether it is proven,
both of shape (n,). A label without proof belongs to the middle of the bounds. Verdicts say whether
the labels are right, wrong, or undecided, and bound an error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from saddlesvm.multiclass.sub_problems import vote
from saddlesvm.problem.bounds import gamma

Labels = tuple[np.ndarray, np.ndarray]
Rule = Literal["largest", "votes", "each"]


def labels_between(low: np.ndarray, high: np.ndarray, n_classes: int, rule: Rule) -> Labels:
    """The labels by bounds on scores, and whether they are proven, each of shape (n,).

    Parameters
    ----------
    low, high : ndarray of shape (n, k)
    n_classes : int
    rule : {"largest", "votes", "each"}
        The largest score of the classes decides (the sign of the score of two); or the most votes
        of the scores of pairs; or each column of the scores is a label of its own: both arrays then
        have the shape (n, k).
    """
    if rule == "each" or low.shape[1] == 1:
        label, proven = label_by_sign(low, high)
        return (label, proven) if rule == "each" else (label[:, 0], proven[:, 0])
    return label_by_votes(low, high, n_classes) if rule == "votes" else label_by_largest(low, high)


def middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the middle of bounds, 0 if both are infinite."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(0.5 * low + 0.5 * high, nan=0.0)


def label_by_sign(low: np.ndarray, high: np.ndarray) -> Labels:
    """Return labels by single scores, shape (n, k): 1 if the score is positive, else 0."""
    return (middle(low, high) > 0.0).astype(np.intp), (low > 0.0) | (high <= 0.0)


def label_by_largest(low: np.ndarray, high: np.ndarray) -> Labels:
    """Return labels by a score for each class: the class with the largest score."""
    best = middle(low, high).argmax(axis=1)
    rows = np.arange(len(low))
    rival = high.copy()
    rival[rows, best] = -np.inf
    return best, low[rows, best] > rival.max(axis=1)


def label_by_differences(z: np.ndarray, away: np.ndarray) -> Labels:
    """Return labels by a score for each class, whose differences are known up to `away`."""
    best = z.argmax(axis=1)
    rows = np.arange(len(z))
    ahead = z[rows, best, None] - z
    ahead[rows, best] = np.inf
    return best, (ahead > away.reshape(len(z), -1)).all(axis=1)


def label_by_votes(low: np.ndarray, high: np.ndarray, n_classes: int) -> Labels:
    """Return labels by a score for each pair of classes: the class with the most votes."""
    n = len(low)
    fewest = np.zeros((n, n_classes))
    most = np.zeros((n, n_classes))
    least = np.zeros((n, n_classes))
    largest = np.zeros((n, n_classes))
    for k, (first, second) in enumerate(combinations(range(n_classes), 2)):
        # Votes that a class has for sure, and votes that it may have.
        fewest[:, second] += low[:, k] > 0.0
        most[:, second] += high[:, k] > 0.0
        fewest[:, first] += high[:, k] <= 0.0
        most[:, first] += low[:, k] <= 0.0
        # The sums of scores, which decide between equal votes.
        least[:, second] += low[:, k]
        largest[:, second] += high[:, k]
        least[:, first] -= high[:, k]
        largest[:, first] -= low[:, k]
    slip = n_classes * np.finfo(np.float64).eps * np.maximum(np.abs(least), np.abs(largest))
    least = least - slip
    largest = largest + slip
    best = vote(middle(low, high), n_classes).argmax(axis=1)
    rows = np.arange(n)
    own = fewest[rows, best, None]
    sums = least[rows, best, None]
    # A class is beaten by more certain votes, or by as many with a larger sum.
    beaten = (own > most) | ((own == most) & (sums > largest))
    beaten[rows, best] = True
    return best, beaten.all(axis=1)


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Bounds of each row's error, from bounds of its scores.

    Attributes
    ----------
    low, high : ndarray of shape (n,)
        Bounds of the row's error: 0 or 1, a share of several labels, or a squared distance.
    decided : ndarray of shape (n,), bool
        True if each label of the row is proven right or wrong; empty for targets.
    proven : int or None
        Number of proven labels; None for targets, and if nothing is proven.
    """

    low: np.ndarray
    high: np.ndarray
    decided: np.ndarray
    proven: int | None

    def error(self, weights: np.ndarray) -> tuple[float, float]:
        """Return bounds of the error; rows of weight zero do not count."""
        return weighted_mean(self.low, weights), weighted_mean(self.high, weights)


def weighted_mean(errors: np.ndarray, weights: np.ndarray) -> float:
    """Return the mean of the rows' errors with positive weights, by correctly rounded sums."""
    some = weights > 0.0
    return _exact_sum(weights[some] * errors[some]) / _exact_sum(weights[some])


def _exact_sum(values: np.ndarray) -> float:
    """Return the correctly rounded sum of numbers that are not negative."""
    total = float(values.sum())
    return total if total < 2.0**53 and (values == np.floor(values)).all() else math.fsum(values)


def label_verdicts(low: np.ndarray, high: np.ndarray, labels: np.ndarray) -> Verdicts:
    """Return which predicted labels are proven right or wrong.

    Parameters
    ----------
    low, high : ndarray of shape (n, k)
        Bounds of the scores: of class 1 against class 0 if k is 1, of each of k classes, or of k
        labels of a row.
    labels : ndarray of shape (n,) or (n, k)
        The codes of the right classes; or the signs of all labels of the rows.
    """
    if labels.ndim == 2 or low.shape[1] == 1:
        # A positive label is right if its score is surely positive.
        positive = labels > 0 if labels.ndim == 2 else labels[:, None] == 1
        right = np.where(positive, low > 0.0, high <= 0.0)
        wrong = np.where(positive, high <= 0.0, low > 0.0)
    else:
        rows = np.arange(len(low))
        # The best class is right if its lower bound is above all others' upper bounds.
        others_low = low.copy()
        others_high = high.copy()
        others_low[rows, labels] = others_high[rows, labels] = -np.inf
        right = (low[rows, labels] > others_high.max(axis=1))[:, None]
        wrong = (high[rows, labels] < others_low.max(axis=1))[:, None]
    decided = np.asarray(right | wrong)
    proven = int(np.count_nonzero(decided)) if np.isfinite(low).any() else None
    return Verdicts(
        wrong.mean(axis=1), 1.0 - right.mean(axis=1), np.asarray(decided.all(axis=1)), proven
    )


def squared_errors(low: np.ndarray, high: np.ndarray, y: np.ndarray) -> Verdicts:
    """Return bounds on the squared errors of predictions, from bounds on the predictions."""
    below = low - y
    above = high - y
    with np.errstate(over="ignore"):
        most = np.maximum(below**2, above**2)
        least = np.where((below <= 0.0) & (above >= 0.0), 0.0, np.minimum(below**2, above**2))
    # A difference, a square and a mean are rounded.
    return Verdicts(
        least * (1.0 - gamma(8.0)), most * (1.0 + gamma(8.0)), np.empty(0, dtype=bool), None
    )
