"""Scores, gradients and rows of many weight vectors at once, in products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.problem.array_losses import has_array_methods, methods_of
from saddlesvm.problem.loss import Loss
from saddlesvm.rows.layouts import Rows, matrix_of
from saddlesvm.rows.small_types import widened

BLOCK_VALUES = 2**22  # scores of a block of weight vectors: 32 MB


class LossArrays(NamedTuple):
    """The derivative and the curvature of a loss on arrays of margins and labels."""

    slope: Callable[[np.ndarray, Any], np.ndarray]
    curvature: Callable[[np.ndarray, Any], np.ndarray]


def loss_arrays(loss: Loss) -> LossArrays:
    """The methods of a loss on arrays; number by number where its text is more than arithmetic."""
    if has_array_methods(loss):
        methods = methods_of(loss)
        return LossArrays(
            lambda z, y: np.asarray(methods.subgradient(loss, z, y) + 0.0 * z),
            lambda z, y: np.asarray(methods.curvature(loss, z, y) + 0.0 * z),
        )
    return LossArrays(np.vectorize(loss.subgradient, otypes=[float]), np.vectorize(loss.curvature, otypes=[float]))


def pulls_of_rows(X: Rows, A: np.ndarray) -> np.ndarray:
    """``sum_i A_ik x_i`` for each column k, the virtual feature included, in float64, shape (d + 1, k)."""
    pulled = _in_float64(matrix_of(X)).T @ A
    return np.vstack([pulled, X.bias * A.sum(axis=0)])


def _in_float64(matrix: Any) -> Any:
    """Rows in float64, as they are where they are already."""
    return matrix.astype(np.float64) if sparse.issparse(matrix) else widened(matrix, np.float64)


def with_feature(some: Any, scale: float) -> np.ndarray:
    """Rows as a dense array in float64 with the virtual feature, shape (k, d + 1)."""
    dense = some.toarray() if sparse.issparse(some) else some
    return np.hstack([widened(dense, np.float64), np.full((dense.shape[0], 1), scale)])
