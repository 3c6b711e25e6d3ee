"""Features brought to mean 0 and variance 1, as the training rows have them, for all data of a model."""

from __future__ import annotations

import dataclasses
from typing import Any

from scipy import sparse
from sklearn.preprocessing import StandardScaler

from saddlesvm.data import DataError, Table


def learnt(table: Table) -> StandardScaler:
    """The scaler of the rows of a table; sparse ones are divided only, so that zeros stay.

    Raises
    ------
    DataError
        The rows stay in the files of a store.
    """
    if table.format == "store":
        raise DataError(f"{table.source}: --standardize copies rows; those of a store stay in their files")
    return StandardScaler(with_mean=not sparse.issparse(table.X)).fit(table.X, sample_weight=table.sample_weight)


def applied(scaler: Any, table: Table) -> Table:
    """The table with its rows scaled; as it is without a scaler (rows of a table's encoder come encoded)."""
    return table if not isinstance(scaler, StandardScaler) else dataclasses.replace(table, X=scaler.transform(table.X))
