"""Probabilities from scores: sigmoids fitted to scores of rows without training on them.

A sub-problem has a sigmoid from its score to the probability of its later class, or of its class
against the rest. The probabilities of pairs are coupled: the probabilities p of the classes are
those that minimise

    sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2,   sum_i p_i = 1,

with the probability r_ij of class i in its pair with class j.

Source: Platt (1999), "Probabilistic outputs for support vector machines"; Lin, Lin and Weng (2007)
for the targets; Wu, Lin and Weng (2004), "Probability estimates for multi-class classification by
pairwise coupling", second method.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from saddlesvm.multiclass.sub_problems import SubProblem

NEAREST = 1e-7  # to 0 and 1, of the probability of a pair that is coupled; LIBSVM's
COUPLED_AT_ONCE = 2**20  # entries of the matrices of rows that are coupled at a time


class ScoreColumn(NamedTuple):
    """Scores of rows without training on them; whether each is of the later class; weights."""

    scores: np.ndarray
    positive: np.ndarray
    weights: np.ndarray


def score_columns(
    problems: Sequence[SubProblem], scores: np.ndarray, weights: np.ndarray | None
) -> list[ScoreColumn]:
    """Return each sub-problem's scores, given (n, problems), for its rows of positive weight."""
    columns = []
    for sub, column in zip(problems, scores.T, strict=True):
        own = sub.row_weights(weights)
        s = np.ones(column.size) if own is None else own
        # Rows of weight zero take no part.
        if sub.members is None:
            chosen = np.flatnonzero(s > 0.0)
        else:
            chosen = sub.members[s[sub.members] > 0.0]
        columns.append(ScoreColumn(column[chosen], sub.y[chosen] > 0, s[chosen]))
    return columns


def fit_sigmoids(columns: Sequence[ScoreColumn]) -> np.ndarray:
    """Return the slope and the offset of a sigmoid for each column, shape (k, 2)."""
    return np.array([_sigmoid(*column) for column in columns])


def probabilities(calibration: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the probability that each column's sigmoid gives to its scores, shape (n, k)."""
    return expit(scores * calibration[:, 0] + calibration[:, 1])


def class_probabilities(calibration: np.ndarray, scores: np.ndarray, pairs: bool) -> np.ndarray:
    """Return the probabilities of the classes, shape (n, n_classes), whose sums are 1.

    Parameters
    ----------
    calibration : ndarray of shape (k, 2)
        Of :func:`fit_sigmoids`.
    scores : ndarray of shape (n, 1), (n, n_classes) or (n, n_pairs)
    pairs : bool
        True for the scores of pairs, positive for the later class.
    """
    positive = probabilities(calibration, scores)
    return couple_pairs(positive) if pairs and scores.shape[1] > 1 else scale_to_one(positive)


def scale_to_one(positive: np.ndarray) -> np.ndarray:
    """Return probabilities of all classes, with sums of 1, from the later class's, or each."""
    if positive.shape[1] == 1:
        return np.hstack([1.0 - positive, positive])
    sums = positive.sum(axis=1, keepdims=True)
    return np.where(sums > 0.0, positive / np.where(sums > 0.0, sums, 1.0), 1.0 / positive.shape[1])


def couple_pairs(later: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes, shape (n, K), from the probabilities of pairs.

    With ``Q_ii = sum_s r_si^2`` and ``Q_ij = -r_ji r_ij`` ``p' Q p`` is least if ``Q
    p`` is constant: p is ``(Q + 1 1')^-1 1``, scaled. That matrix is positive definite, also if
    two classes make Q singular.

    Parameters
    ----------
    later : ndarray of shape (n, K (K - 1) / 2)
        The probability of the later class of each pair, in the order (0, 1), (0, 2), ..., (1, 2),
        ...
    """
    n, count = later.shape
    # There are count = K (K - 1) / 2 pairs: solve for K.
    K = round(0.5 + np.sqrt(0.25 + 2.0 * count))
    first, second = np.array([*combinations(range(K), 2)]).T
    found = np.empty((n, K))
    # Some rows at a time, because each row has a K x K matrix.
    size = max(1, COUPLED_AT_ONCE // (K * K))
    for start in range(0, n, size):
        r = np.clip(later[start : start + size], NEAREST, 1.0 - NEAREST)
        # Q + 1 1' for each row: ones, less r (1 - r) off the diagonal, plus squares on it.
        Q = np.ones((len(r), K, K))
        Q[:, first, second] -= r * (1.0 - r)
        Q[:, second, first] -= r * (1.0 - r)
        for k in range(K):
            Q[:, k, k] += np.square(r[:, first == k]).sum(axis=1) + np.square(
                1.0 - r[:, second == k]
            ).sum(axis=1)
        p = np.maximum(np.linalg.solve(Q, np.ones((len(r), K, 1)))[:, :, 0], 0.0)
        found[start : start + size] = p / p.sum(axis=1, keepdims=True)
    return found


def _targets(positive: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return Platt's targets, which are never certain, and the offset of the classes' weights."""
    ahead = weights[positive].sum()
    behind = weights[~positive].sum()
    targets = np.where(positive, (ahead + 1.0) / (ahead + 2.0), 1.0 / (behind + 2.0))
    return targets, float(np.log((ahead + 1.0) / (behind + 1.0)))


def _sigmoid(z: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Slope, not negative, and offset of Platt's sigmoid."""
    target, prior = _targets(positive, weights)
    size = float(np.sqrt(np.average(np.square(z), weights=weights))) or 1.0

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        # The cross-entropy of targets and p = 1 / (1 + exp(-m)), and its gradient (Platt 1999).
        m = parameters[0] * z / size + parameters[1]
        p = expit(m)
        value = float(weights @ (np.logaddexp(0.0, m) - target * m))
        pull = weights * (p - target)
        return value, np.array([pull @ z / size, pull.sum()])

    found = minimize(
        loss, [1.0, prior], jac=True, method="L-BFGS-B", bounds=[(0.0, None), (None, None)]
    )
    return np.array([found.x[0] / size, found.x[1]])
