"""What the benchmarks share: synthetic data, the peer's objective in float64, interleaved timing."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning


def text_like(n: int, d: int, per_row: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Sparse rows of norm 1 whose features have the frequencies of words (rank ** -0.9), and noisy linear labels."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, d + 1) ** 0.9
    columns = rng.choice(d, size=(n, per_row), p=frequency / frequency.sum())
    values = np.abs(rng.normal(size=n * per_row)) + 0.1
    X = sparse.csr_matrix((values, columns.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    X.sum_duplicates()
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sparse.csr_matrix(sparse.diags(1.0 / norms) @ X)
    X.sort_indices()
    scores = X @ rng.normal(size=d) + 0.05 * rng.normal(size=n)
    return X, np.where(scores > 0, 1.0, -1.0)


def embedding_like(n: int, d: int, dtype: Any = np.float64, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Dense Gaussian rows of norm about 1, labels of a linear rule with noise."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d), dtype=np.float32) / np.sqrt(d)).astype(dtype)
    scores = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return X, np.where(scores > 0, 1.0, -1.0)


def objective(X: Any, y: np.ndarray, w: np.ndarray, C: float, loss: str, bias: float = 0.0) -> float:
    """``1/2 ||w||^2 + C sum phi`` in float64, an intercept counted as a penalised weight."""
    w = np.asarray(w, dtype=np.float64).ravel()
    z = np.empty(X.shape[0])
    step = 10_000
    for start in range(0, X.shape[0], step):
        z[start : start + step] = X[start : start + step].astype(np.float64) @ w
    slack = np.maximum(0.0, 1.0 - y * (z + bias))
    paid = slack.sum() if loss == "hinge" else (slack**2).sum()
    return 0.5 * (float(w @ w) + bias * bias) + C * float(paid)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall-clock seconds of a call, and what it returned; warnings of early stops are silent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        result = work()
        return time.perf_counter() - began, result


def interleaved(works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, Any]]:
    """Median seconds (and the last result) of each work, run in turn `repeats` times."""
    times: dict[str, list[float]] = {name: [] for name in works}
    results: dict[str, Any] = {}
    for _ in range(repeats):
        for name, work in works.items():
            spent, results[name] = seconds(work)
            times[name].append(spent)
    return {name: (statistics.median(times[name]), results[name]) for name in works}
