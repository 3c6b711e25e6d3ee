"""Probabilities from scores: curves fitted to the scores of rows that the model was not trained on.

Source: Platt (1999), "Probabilistic outputs for support vector machines"; Lin, Lin and Weng (2007) for the targets;
Zadrozny and Elkan (2002) for isotonic curves.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

METHODS = ("sigmoid", "isotonic")


def fitted_curves(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray | None, method: str) -> np.ndarray:
    """A curve from score to probability for each column.

    Parameters
    ----------
    scores : ndarray of shape (n, k)
        Of rows that the model was not trained on.
    positive : bool ndarray of shape (n, k)
        Whether the row is of the column's class.
    weights : ndarray of shape (n,), optional
    method : {"sigmoid", "isotonic"}

    Returns
    -------
    ndarray of shape (k, 2) or (k, 2, m)
        Slope and offset of each sigmoid, or the corners of each isotonic curve: scores, then probabilities.
    """
    share = np.ones(len(scores)) if weights is None else weights
    if method == "sigmoid":
        return np.array([_sigmoid(z, y, share) for z, y in zip(scores.T, positive.T, strict=True)])
    corners = []
    for z, y in zip(scores.T, positive.T, strict=True):
        curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(z, y.astype(np.float64), share)
        corners.append((curve.X_thresholds_, curve.y_thresholds_))
    most = max(x.size for x, _ in corners)
    return np.array([[np.pad(side, (0, most - side.size), "edge") for side in pair] for pair in corners])


def probabilities(curves: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The probability that each column's curve gives to its scores, shape (n, k)."""
    if curves.ndim == 2:
        return expit(scores * curves[:, 0] + curves[:, 1])
    return np.column_stack([np.interp(z, *curve) for z, curve in zip(scores.T, curves, strict=True)])


def _sigmoid(z: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Slope, not negative, and offset of Platt's sigmoid; his targets keep it from fitting certainties."""
    ahead, behind = weights[positive].sum(), weights[~positive].sum()
    target = np.where(positive, (ahead + 1.0) / (ahead + 2.0), 1.0 / (behind + 2.0))
    size = float(np.sqrt(np.average(z * z, weights=weights))) or 1.0

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        m = parameters[0] * z / size + parameters[1]
        p = expit(m)
        value = float(weights @ (np.logaddexp(0.0, m) - target * m))
        pull = weights * (p - target)
        return value, np.array([pull @ z / size, pull.sum()])

    prior = np.log((ahead + 1.0) / (behind + 1.0))
    found = minimize(loss, [1.0, prior], jac=True, method="L-BFGS-B", bounds=[(0.0, None), (None, None)])
    return np.array([found.x[0] / size, found.x[1]])
