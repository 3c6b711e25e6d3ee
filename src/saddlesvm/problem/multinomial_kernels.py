"""The compiled parts of multinomial regression: from scores to dual variables, and from a direction to its bend."""

from __future__ import annotations

import numpy as np

from saddlesvm.runtime.compiled import inlined, kernel, record_of
from saddlesvm.runtime.exp_log import exp_of_negative, log_of, log_one_plus

# Sums over rows: losses, entropies, and shares of rivals times the rows' lengths; each times the rows' weights.
SUMS = record_of("paid", "entropy", "pulled")


@inlined
def pull_of_row(z: np.ndarray, y: int) -> tuple[float, float, float]:
    """Turn the scores of a row of class y into ``e_y - p``, in place: its loss, its entropy, and ``1 - p_y``.

    With ``t_k = z_k - max z`` and ``S = sum_k exp(t_k)``, the loss is ``log S - t_y`` and the entropy ``log S - sum_k
    p_k t_k``: sums of terms that are not negative. The own place has the sum of the rivals' shares. So all of them keep
    their digits where p_y is nearly 1.
    """
    score, top = np.float64(z[y]), z[0]
    for k in range(1, z.size):
        top = max(top, z[k])
    mass, turned, rest = 0.0, 0.0, 0.0
    for k in range(z.size):
        t = np.float64(z[k]) - np.float64(top)
        e = exp_of_negative(t)
        mass += e
        turned -= e * t
        z[k] = e
    if mass >= 1.5:
        log_mass = log_of(mass)
    else:
        for k in range(z.size):
            rest += z[k] if z[k] < 1.0 else 0.0
        log_mass = log_one_plus(rest)
    z[y] = 0.0
    taken = 0.0
    for k in range(z.size):
        share = z[k] / mass
        taken += share
        z[k] = -share
    z[y] = taken
    return log_mass + (top - score), log_mass + turned / mass, taken


@kernel
def soften(
    scores: np.ndarray, own: np.ndarray, weights: np.ndarray, lengths: np.ndarray, kept: np.ndarray, sums: np.ndarray
) -> None:
    """Turn the scores of rows into their dual variables ``s (e_y - p)``, in place; keep ``e_y - p``; add to the sums.

    Parameters
    ----------
    scores : ndarray of shape (m, K)
    own : ndarray of shape (m,)
        Classes of the rows.
    weights, lengths : ndarray of shape (m,)
        ``s_i`` and ``||x_i||``.
    kept : ndarray of shape (m, K) or (0, K)
        Receives ``e_y - p``, unless it is empty.
    sums : ndarray of shape (1,), `SUMS`
    """
    K, total = scores.shape[1], sums[0]
    for i in range(scores.shape[0]):
        z, y, s = scores[i], own[i], weights[i]
        paid, entropy, taken = pull_of_row(z, y)
        if kept.shape[0]:
            for k in range(K):
                kept[i, k] = z[k]
        for k in range(K):
            z[k] *= s
        total.paid += s * paid
        total.entropy += s * entropy
        total.pulled += s * taken * lengths[i]


@kernel
def bend(directions: np.ndarray, pulls: np.ndarray, own: np.ndarray, weights: np.ndarray) -> None:
    """``u <- s (p u - p (p . u))`` for each row, in place: the second derivative of its loss times the direction.

    `pulls` has ``e_y - p``. All is computed from differences to ``u_y``, which keeps its digits where p_y is nearly 1.
    """
    K = directions.shape[1]
    for i in range(directions.shape[0]):
        u, g, y, s = directions[i], pulls[i], own[i], weights[i]
        at_own, behind = u[y], 0.0
        for k in range(K):
            behind += g[k] * (u[k] - at_own)
        for k in range(K):
            u[k] = -s * g[k] * (u[k] - at_own + behind)
        u[y] = s * (1.0 - g[y]) * behind


@kernel
def pulls_of(scores: np.ndarray, own: np.ndarray, pulls: np.ndarray) -> None:
    """``e_y - softmax(z)`` of each row; the scores are overwritten."""
    for i in range(scores.shape[0]):
        pull_of_row(scores[i], own[i])
        for k in range(scores.shape[1]):
            pulls[i, k] = scores[i, k]
