"""Rows and runs for the tests of Newton's method."""

from __future__ import annotations

import numpy as np

from saddlesvm.rows.layouts import Rows, as_rows
from support import (
    csr,
)


def rows_like(X: np.ndarray, layout: str, bias: float = 0.0) -> Rows:
    return as_rows(csr(X) if layout == "sparse" else X, bias)


def plain_rows(X: Rows) -> np.ndarray:
    """All rows in float64, the virtual feature appended."""
    return np.array([X.dense_row(i) for i in range(X.n_rows)])
