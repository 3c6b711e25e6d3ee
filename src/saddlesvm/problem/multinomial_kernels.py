"""The compiled parts of multinomial regression: from scores to probabilities, and from a direction to its bend."""

from __future__ import annotations

import numpy as np

from saddlesvm.runtime.compiled import kernel, record_of
from saddlesvm.runtime.exp_log import exp_of_negative, log_of

# Sums over rows: losses, entropies, and shares of rivals times the rows' lengths; each times the rows' weights.
SUMS = record_of("paid", "entropy", "pulled")


@kernel
def soften(
    scores: np.ndarray, own: np.ndarray, weights: np.ndarray, lengths: np.ndarray, kept: np.ndarray, sums: np.ndarray
) -> None:
    """Turn the scores of rows into their dual variables ``s (e_y - p)``, in place; keep p, and add to the sums.

    With ``t_k = z_k - max z`` and ``S = sum_k exp(t_k)``, the loss is ``log S - t_y`` and the entropy ``log S - sum_k
    p_k t_k``: sums of terms that are not negative. A row's own variable is the sum of its rivals' shares, which keeps
    its digits where p_y is nearly 1.

    Parameters
    ----------
    scores : ndarray of shape (m, K)
    own : ndarray of shape (m,)
        Classes of the rows.
    weights, lengths : ndarray of shape (m,)
        ``s_i`` and ``||x_i||``.
    kept : ndarray of shape (m, K) or (0, K)
        Receives p, unless it is empty.
    sums : ndarray of shape (1,), `SUMS`
    """
    K, total = scores.shape[1], sums[0]
    for i in range(scores.shape[0]):
        z, y, s = scores[i], own[i], weights[i]
        top = z[0]
        for k in range(1, K):
            top = max(top, z[k])
        ahead = np.float64(top) - np.float64(z[y])
        mass = 0.0
        for k in range(K):
            t = np.float64(z[k]) - np.float64(top)
            e = exp_of_negative(t)
            mass += e
            z[k] = e
        below = 0.0
        for k in range(K):
            share = z[k] / mass
            below += share * -log_of(share)
            z[k] = share
        if kept.shape[0]:
            for k in range(K):
                kept[i, k] = z[k]
        z[y] = 0.0
        taken = 0.0
        for k in range(K):
            taken += z[k]
            z[k] *= -s
        z[y] = s * taken
        total.paid += s * (log_of(mass) + ahead)
        total.entropy += s * below
        total.pulled += s * taken * lengths[i]


@kernel
def bend(directions: np.ndarray, kept: np.ndarray, weights: np.ndarray) -> None:
    """``u <- s (p u - p (p . u))`` for each row, in place: the second derivative of its loss times the direction."""
    K = directions.shape[1]
    for i in range(directions.shape[0]):
        u, p, s = directions[i], kept[i], weights[i]
        mean = 0.0
        for k in range(K):
            mean += p[k] * u[k]
        for k in range(K):
            u[k] = s * p[k] * (u[k] - mean)


@kernel
def probabilities_of(scores: np.ndarray, kept: np.ndarray) -> None:
    """``p = softmax(z)`` of each row."""
    K = scores.shape[1]
    for i in range(scores.shape[0]):
        z, p = scores[i], kept[i]
        top = z[0]
        for k in range(1, K):
            top = max(top, z[k])
        mass = 0.0
        for k in range(K):
            e = exp_of_negative(np.float64(z[k]) - np.float64(top))
            mass += e
            p[k] = e
        for k in range(K):
            p[k] = p[k] / mass
