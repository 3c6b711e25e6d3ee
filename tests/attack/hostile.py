"""Rows, targets and weights near the limits of floating point."""

from __future__ import annotations

import numpy as np

LEAST, MOST, MIDDLE = 2, 40, 8  # rows; features at most


def hostile_rows(random: np.random.Generator) -> np.ndarray:
    """Rows of a random size, scale and kind of trouble, float32 or float64."""
    n, d = int(random.integers(LEAST, MOST)), int(random.integers(1, MIDDLE))
    X = random.normal(size=(n, d))
    match random.integers(7):
        case 0:
            X *= 10.0 ** random.uniform(-6, 6, d)
        case 1:
            X *= 10.0 ** random.uniform(-4, 4, (n, 1))
        case 2:
            X[:, 0] = 1.0
            X += 10.0 ** random.uniform(0, 6)
        case 3:
            X = X[random.integers(0, max(1, n // 4), n)]
        case 4:
            X[random.random(X.shape) < 0.7] = 0.0
        case 5:
            X = np.round(X)
    return X.astype(np.float32 if random.random() < 0.3 else np.float64)


def hostile_targets(random: np.random.Generator, X: np.ndarray, classify: bool) -> np.ndarray:
    """Labels -1 and +1, both of them, or targets near and far from zero."""
    n = len(X)
    score = X.astype(np.float64) @ random.normal(size=X.shape[1]) + random.normal(size=n)
    if not classify:
        return np.asarray((score + 10.0 ** random.uniform(-2, 5)) * 10.0 ** random.uniform(-4, 3))
    y = np.where(score > np.median(score), 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    return y


def hostile_weights(random: np.random.Generator, n: int) -> np.ndarray | None:
    """Row weights over a wide range, some zero; mostly none."""
    if random.random() < 0.6:
        return None
    weights = np.where(random.random(n) < 0.2, 0.0, 10.0 ** random.uniform(-6, 6, n))
    weights[[0, -1]] = 1.0
    return weights
