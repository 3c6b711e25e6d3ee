"""Sub-problems of several labels or targets: one a column, all over the same rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from saddlesvm.multiclass.sub_problems import SubProblem


def each_label(indicator: sparse.csc_array) -> list[Callable[[], SubProblem]]:
    """Each label against its absence, made when its turn comes.

    Parameters
    ----------
    indicator : CSC array of shape (n, k)
        Entries only where a row has the label of the column.
    """

    def signs(k: int) -> np.ndarray:
        column = np.full(indicator.shape[0], -1, dtype=np.int8)
        column[indicator.indices[indicator.indptr[k] : indicator.indptr[k + 1]]] = 1
        return column

    def make(k: int) -> Callable[[], SubProblem]:
        return lambda: SubProblem(k, f"label {k}", signs(k))

    return [make(k) for k in range(indicator.shape[1])]


def each_target(targets: np.ndarray) -> list[Callable[[], SubProblem]]:
    """Each column of targets, shape (n, k), alone."""

    def make(k: int) -> Callable[[], SubProblem]:
        return lambda: SubProblem(k, f"target {k}", np.ascontiguousarray(targets[:, k]))

    return [make(k) for k in range(targets.shape[1])]
