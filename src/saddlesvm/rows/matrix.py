"""The layouts of rows: dense and CSR, each with a virtual constant feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.runtime.compiled import python_class

Body = Callable[..., Any]


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


def body_for(X: Any, of_dense: Body, of_csr: Body) -> Body:
    """The body of a compiled operation that suits rows of a Numba type.

    Raises
    ------
    TypeError
        The operation has no body for this type of rows.
    """
    kind = python_class(X)
    if kind not in (Dense, CSR):
        name = getattr(kind, "__name__", X)
        raise TypeError(f"rows of type {name} have no compiled operations: give Dense or CSR rows")
    return of_dense if kind is Dense else of_csr
