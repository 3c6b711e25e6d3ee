"""The layouts of rows: dense and CSR, each with a virtual constant feature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Dense(NamedTuple):
    """Rows of a C-contiguous array of shape (n, d), with a virtual constant feature `bias`."""

    values: np.ndarray
    bias: float


class CSR(NamedTuple):
    """Rows of a compressed sparse row matrix, and a virtual constant feature `bias`.

    Each index occurs once in its row; in which order does not matter.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    bias: float
    n_features: int


Rows = Dense | CSR
