"""The coefficients that a fitted kernel machine has for each of its sub-problems."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse


def duals_of(model: Any) -> np.ndarray:
    """The coefficients of a kernel machine's support vectors, sparse for sparse rows, as an array."""
    dual = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    return np.ascontiguousarray(dual)


def coefficients_of(model: Any, n: int) -> tuple[list[np.ndarray], list[float]]:
    """Coefficients of all training rows, shape (n,), and the intercept, for each sub-problem; positive for its later
    class.

    Parameters
    ----------
    model : estimator
        A kernel machine of this package or of ``sklearn.svm``.
    n : int
        Training rows.

    Raises
    ------
    ValueError
        The model has support vectors in more rows.
    """
    dual = duals_of(model)
    intercept, support = np.ravel(model.intercept_), np.asarray(model.support_)
    if support.size and support.max() >= n:
        raise ValueError(f"the model has a support vector in row {support.max()}; X has {n} rows")

    def spread(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        beta = np.zeros(n)
        beta[rows] = values
        return beta

    K = model.classes_.size if hasattr(model, "classes_") else 0
    if K <= 2 or hasattr(model, "multi_class"):
        return [spread(support, row) for row in dual], intercept.tolist()
    if dual.shape[0] == K * (K - 1) // 2:  # over landmarks: each pair has all
        return [spread(support, -row) for row in dual], (-intercept).tolist()
    ends = np.concatenate([[0], np.cumsum(model.n_support_)])
    parts = [slice(ends[c], ends[c + 1]) for c in range(K)]
    found = []
    for i, j in combinations(range(K), 2):
        beta = spread(support[parts[i]], -dual[j - 1, parts[i]])
        beta[support[parts[j]]] = -dual[i, parts[j]]
        found.append(beta)
    return found, (-intercept).tolist()
