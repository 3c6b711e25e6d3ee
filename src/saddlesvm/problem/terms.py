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


@inlined
def weight_of(weights: np.ndarray, i: int) -> float:
    """Weight of row i; an empty array means 1."""
    return weights[i] if weights.size else 1.0
