"""The types of the data that users give, and of the rows that they become; defined once.

SciPy, pandas, Dask and PyTorch are not imported: what the package uses of their objects is written
as protocols.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from scipy import sparse


class HasShape(Protocol):
    """Rows with a shape: a sparse matrix, a store, a tensor, a Dask array, a place of one's own."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and of features."""


class HasColumns(Protocol):
    """A table: a data frame, or one on a cluster."""

    @property
    def columns(self) -> object:
        """The names of the columns."""


# What a user may give as X: an array, a sparse matrix, a table, dicts, files, or stores.
RowsLike: TypeAlias = ArrayLike | HasShape | HasColumns | os.PathLike[str] | Sequence[object]
# Rows that were checked: a dense array, or CSR.
Matrix: TypeAlias = "np.ndarray | sparse.csr_array | sparse.csr_matrix"
# Labels or targets: numbers or words, an indicator matrix, a column on a cluster.
LabelsLike: TypeAlias = ArrayLike | HasShape
