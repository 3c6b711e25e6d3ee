"""Labels that follow from bounds on scores: whatever scores between them the exact optimum has, its label is the same.

Each function takes bounds of shape (n, k) and gives the label's number and whether it is proven, both of shape (n,).
A label without proof is that of the middle of the bounds.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np

from saddlesvm.multiclass.sub_problems import vote

Labels = tuple[np.ndarray, np.ndarray]
Rule = Literal["largest", "votes", "each"]


def labels_between(low: np.ndarray, high: np.ndarray, n_classes: int, rule: Rule) -> Labels:
    """The labels by bounds on scores, and whether they are proven, each of shape (n,).

    Parameters
    ----------
    low, high : ndarray of shape (n, k)
    n_classes : int
    rule : {"largest", "votes", "each"}
        The largest score of the classes decides (the sign of the score of two); or the most votes of the scores of
        pairs; or each column of the scores is a label of its own: both arrays then have the shape (n, k).
    """
    if rule == "each" or low.shape[1] == 1:
        label, proven = signs_of(low, high)
        return (label, proven) if rule == "each" else (label[:, 0], proven[:, 0])
    return most_votes_of(low, high, n_classes) if rule == "votes" else largest_of(low, high)


def middle_of(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The middle of bounds, 0 where both are infinite."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(0.5 * low + 0.5 * high, nan=0.0)


def signs_of(low: np.ndarray, high: np.ndarray) -> Labels:
    """Of each score by itself, shape (n, k): 1 where it is positive, else 0."""
    return (middle_of(low, high) > 0.0).astype(np.intp), (low > 0.0) | (high <= 0.0)


def largest_of(low: np.ndarray, high: np.ndarray) -> Labels:
    """Of one score a class: the class with the largest one."""
    best, rows = middle_of(low, high).argmax(axis=1), np.arange(len(low))
    rival = high.copy()
    rival[rows, best] = -np.inf
    return best, low[rows, best] > rival.max(axis=1)


def largest_by_differences(z: np.ndarray, away: np.ndarray) -> Labels:
    """Of one score a class, where each difference of two is known up to `away`, shape (n,); or that of the largest and
    each other one, shape (n, k)."""
    best, rows = z.argmax(axis=1), np.arange(len(z))
    ahead = z[rows, best, None] - z
    ahead[rows, best] = np.inf
    return best, (ahead > away.reshape(len(z), -1)).all(axis=1)


def most_votes_of(low: np.ndarray, high: np.ndarray, n_classes: int) -> Labels:
    """Of one score a pair of classes: the class with the most votes, ties broken by sums of scores, see
    :func:`~saddlesvm.multiclass.sub_problems.vote`."""
    n = len(low)
    fewest, most = np.zeros((n, n_classes)), np.zeros((n, n_classes))
    least, largest = np.zeros((n, n_classes)), np.zeros((n, n_classes))
    for k, (first, second) in enumerate(combinations(range(n_classes), 2)):
        fewest[:, second] += low[:, k] > 0.0
        most[:, second] += high[:, k] > 0.0
        fewest[:, first] += high[:, k] <= 0.0
        most[:, first] += low[:, k] <= 0.0
        least[:, second] += low[:, k]
        largest[:, second] += high[:, k]
        least[:, first] -= high[:, k]
        largest[:, first] -= low[:, k]
    slip = n_classes * np.finfo(np.float64).eps * np.maximum(np.abs(least), np.abs(largest))
    least, largest = least - slip, largest + slip
    best, rows = vote(middle_of(low, high), n_classes).argmax(axis=1), np.arange(n)
    own, sums = fewest[rows, best, None], least[rows, best, None]
    beaten = (own > most) | ((own == most) & (sums > largest))
    beaten[rows, best] = True
    return best, beaten.all(axis=1)
