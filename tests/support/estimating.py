"""Data for the tests of the estimators."""

from __future__ import annotations

import numpy as np


def two_blobs() -> tuple[np.ndarray, np.ndarray]:
    """300 rows of 6 features, two noisy classes named by text."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    return X, np.where(X @ rng.normal(size=6) + rng.normal(size=300) > 0, "yes", "no")
