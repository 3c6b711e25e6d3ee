"""Losses of all classes' scores together: the hinge of the best rival, and the softmax.

A row of class y with the scores ``z_k = w_k . x`` pays ``Phi(z)``. With ``p`` for a sub-gradient's
share of each class, ``Phi'(z) = p - e_y``, the row's dual variables are ``a = s (e_y - p)``, and
the problem is

    P(W) = 1/2 sum_k ||w_k||^2 + C sum_i s_i Phi(z_i)
    D(a) = -1/2 sum_k ||w_k(a)||^2 - C sum_i s_i Phi*(-a_i / s_i),    w_k(a) = C sum_i a_ik x_i

Both depend on differences of scores only, so that ``sum_k a_ik = 0``. Rivals are the other classes:

    hinge      max(0, max over rivals of 1 + z_k - z_y)      -s <= a_k <= 0,  a_y <= s
    softmax    log sum_k exp(z_k) - z_y                            a_k <= 0,  a_y <= s

``-s Phi*(-a / s)`` is ``a_y`` for the hinge, and ``s`` times the entropy of p for the softmax.

Source: Crammer and Singer (2001), "On the algorithmic implementation of multiclass kernel-based
vector machines".

Arguments are about m rows: `scores` have shape (m, K), and `own`, the rows' classes, shape (m,).
"""

from __future__ import annotations

import numpy as np


def best_rival_losses(scores: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the hinge ``max(0, max over rivals of 1 + z_k - z_y)`` of each row, shape (m,)."""
    margins, own_scores = _rivals_ahead(scores, own)
    return np.asarray(margins.max(axis=1) - own_scores)


def best_rival_pulls(scores: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return ``-Phi'`` of the hinge, shape (m, K): 1 against the best rival, or 0 if own leads."""
    margins, _ = _rivals_ahead(scores, own)
    found = np.zeros(scores.shape)
    places = np.arange(own.size)
    found[places, own] = 1.0
    found[places, margins.argmax(axis=1)] -= 1.0
    return found


def softmax_response(
    scores: np.ndarray, own: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``e_y - p`` of rows, shape (m, K), and their losses and entropies, shape (m,).

    p are the probabilities.

    With ``t_k = z_k - max z`` and ``S = sum_k exp(t_k)``, the loss is ``log S - t_y`` and the
    entropy ``log S - sum_k p_k t_k``: sums of terms that are not negative.
    """
    places = np.arange(own.size)
    best = scores.argmax(axis=1)
    behind = scores - scores[places, best, None]
    shares = np.exp(behind)
    ones = np.ones(scores.shape[1])
    # The best class has the term 1. The sum of the others keeps its digits if they are small.
    shares[places, best] = 0.0
    rest = shares @ ones
    mass = 1.0 + rest
    log_mass = np.log1p(rest)
    losses = log_mass - behind[places, own]
    entropies = log_mass - np.einsum("ik,ik->i", shares, behind) / mass
    # The own place of e_y - p is the sum of the rivals' shares, which keeps its digits if p_y is
    # nearly 1.
    shares[places, best] = 1.0
    shares[places, own] = 0.0
    pulls = shares
    pulls /= -mass[:, None]
    pulls[places, own] = -(pulls @ ones)
    return pulls, losses, entropies


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities of the classes, shape (m, K): ``exp(z_k)`` divided by their sum."""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return np.asarray(p)


def leads(scores: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return how far each row's own class is ahead of its best rival, shape (m,)."""
    return np.asarray(1.0 - _hinges(scores, own).max(axis=1))


def _rivals_ahead(scores: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores with 1 added to each rival's, shape (m, K), and the own scores, shape (m,)."""
    places = np.arange(own.size)
    own_scores = scores[places, own]
    ahead = scores + 1.0
    ahead[places, own] = own_scores
    return ahead, own_scores


def _hinges(scores: np.ndarray, own: np.ndarray) -> np.ndarray:
    """``1 + z_k - z_y``, shape (m, K); minus infinity for a row's own class."""
    ahead, own_scores = _rivals_ahead(scores, own)
    ahead -= own_scores[:, None]
    ahead[np.arange(own.size), own] = -np.inf
    return ahead
