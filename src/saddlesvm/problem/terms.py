"""The parts of a problem that compiled kernels take."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import Penalty
from saddlesvm.rows.layouts import Rows
from saddlesvm.runtime.compiled import inlined


class Terms(NamedTuple):
    """A problem as a compiled kernel takes it."""

    X: Rows
    loss: Loss
    y: np.ndarray
    weights: np.ndarray  # empty when all are 1
    norms: np.ndarray
    C: float
    penalty: Penalty


class Pointwise(NamedTuple):
    """The terms without the rows: kernels over them need only one version for all layouts of rows."""

    loss: Loss
    y: np.ndarray
    weights: np.ndarray
    small: bool = False  # NumPy does the work


def box_of(loss: Loss, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of the dual variables, shape (n,) each; they are proportional to the row weights."""
    (least, most), (low, high) = loss.bounds(-1.0, 1.0), loss.bounds(1.0, 1.0)
    ahead = y > 0.0
    below, above = np.where(ahead, low, least), np.where(ahead, high, most)
    if not weights.size:
        return below, above
    heavy = weights > 0.0  # else zero times infinity
    return np.where(heavy, below, 0.0) * weights, np.where(heavy, above, 0.0) * weights


def weights_at(weights: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
    """The weights of some rows; an empty array, which means that all are 1, stays one."""
    return weights[rows] if weights.size else weights


@inlined
def weight_of(weights: np.ndarray, i: int) -> float:
    """Weight of row i; an empty array means 1."""
    return weights[i] if weights.size else 1.0
