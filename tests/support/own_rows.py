"""A type of rows from outside the package: differences of two rows, for ranking, as a file of a user would hold it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.rows.matrix import register_rows


def dot(X: Any, i: Any, w: Any) -> Any:
    better = X.values[X.better[i]]
    worse = X.values[X.worse[i]]
    total = 0.0
    for j in range(better.size):
        total += (better[j] - worse[j]) * w[j]
    return total + X.bias * w[w.size - 1]


def axpy(X: Any, i: Any, c: Any, w: Any) -> Any:
    better = X.values[X.better[i]]
    worse = X.values[X.worse[i]]
    for j in range(better.size):
        w[j] += c * (better[j] - worse[j])
    if X.bias != 0.0:
        w[w.size - 1] += c * X.bias


def squared_norm(X: Any, i: Any) -> Any:
    better = X.values[X.better[i]]
    worse = X.values[X.worse[i]]
    total = X.bias * X.bias
    for j in range(better.size):
        total += (better[j] - worse[j]) ** 2
    return total


@register_rows(dot=dot, axpy=axpy, squared_norm=squared_norm)
class Differences(NamedTuple):
    """Row i is ``values[better[i]] - values[worse[i]]``: the pairs take no memory for their features."""

    values: np.ndarray
    better: np.ndarray
    worse: np.ndarray
    bias: float

    sparse = False
    is_small = False

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.values, self.better, self.worse

    @property
    def n_rows(self) -> int:
        return self.better.size

    @property
    def n_features(self) -> int:
        return self.values.shape[1]

    @property
    def n_values(self) -> int:
        return self.better.size * self.values.shape[1]

    @property
    def longest_row(self) -> int:
        return 2 * self.values.shape[1]  # a difference is an addition more

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def reading_time(self, values: float) -> float:
        return 1e-9 * values
