"""Data of several classes, and the joint problem over them."""

from __future__ import annotations

import numpy as np


def blobs(n: int = 90, d: int = 4, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, numbered from 0, each present."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    return random.normal(size=(k, d))[y] * 1.5 + random.normal(size=(n, d)), y
