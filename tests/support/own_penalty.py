"""A penalty that the package does not know: group lasso, one class, as a user's file would hold it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


class GroupLasso(NamedTuple):
    """``||w||^2 / 2 + l1 sum_g ||w_g||``: the weights of a whole group of features are zero, or none is.

    Source: Yuan and Lin (2006), "Model selection and estimation in regression with grouped variables".

    Attributes
    ----------
    groups : int ndarray of shape (d,)
        The number of each feature's group; the features of a group are neighbours.
    l1 : float
    """

    groups: np.ndarray
    l1: float

    @staticmethod
    def identity() -> bool:
        return False

    def lengths(self, w: np.ndarray) -> np.ndarray:
        """``||w_g||`` of each group."""
        return np.sqrt(np.bincount(self.groups, w * w))

    def value(self, w: np.ndarray) -> float:
        return float(0.5 * (w * w).sum() + self.l1 * self.lengths(w).sum())

    def conjugate(self, v: np.ndarray) -> float:
        return float(0.5 * (np.maximum(self.lengths(v) - self.l1, 0.0) ** 2).sum())

    def weights(self, v: np.ndarray) -> np.ndarray:
        length = self.lengths(v)
        return v * (np.maximum(length - self.l1, 0.0) / np.maximum(length, 1e-300))[self.groups]

    def weight_of(self, v: np.ndarray, j: int, scale: float) -> float:
        first = j
        while first > 0 and self.groups[first - 1] == self.groups[j]:
            first -= 1
        total = 0.0
        k = first
        while k < self.groups.size and self.groups[k] == self.groups[j]:
            total += v[k] * v[k]
            k += 1
        length = abs(scale) * math.sqrt(total)
        return scale * v[j] * max(1.0 - self.l1 / length, 0.0) if length > 0.0 else 0.0
