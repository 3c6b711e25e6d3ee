"""Data whose rows are values of a kernel between them and the training rows, for ``--kernel precomputed``."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import DataError, Table


def takes_kernel_values(model: Any) -> bool:
    """Whether the rows that a model takes are values of a kernel."""
    return getattr(model, "kernel", None) == "precomputed"


def width_read(model: Any) -> int | None:
    """The features that data of a model have in their file, LIBSVM's number of the row among them; None where that is
    not known: LIBSVM's models with a precomputed kernel do not tell their training rows."""
    if not takes_kernel_values(model):
        return int(model.n_features_in_)
    if "rows" not in model.notes_:
        return None
    return int(model.n_features_in_) + (model.notes_.get("zero_based") is True)


def values_for(model: Any, table: Table) -> Table:
    """The rows that a model takes of a table that was read for it."""
    if not takes_kernel_values(model):
        return table
    if width_read(model) is None:
        model.n_features_in_ = max(model.n_features_in_, table.n_features - (table.zero_based is True))
    return kernel_values(table, model.n_features_in_)


def kernel_values(table: Table, training_rows: int | None = None) -> Table:
    """The table as a dense matrix of kernel values, shape (rows, training rows).

    A line of LIBSVM's format for them is ``LABEL 0:NUMBER 1:K(x, x_1) 2:K(x, x_2) ...``, with the number of the row.

    Parameters
    ----------
    table : Table
    training_rows : int, optional
        Of the model; left out, those of the table, whose matrix is square.

    Raises
    ------
    DataError
        Another number of values a row, or training rows that are not numbered from 1 on.
    """
    values, count = table.X, table.n_rows if training_rows is None else training_rows
    values = values.toarray() if sparse.issparse(values) else np.asarray(values)
    if table.zero_based and values.shape[1] == count + 1:
        if training_rows is None and not np.array_equal(values[:, 0], np.arange(1, count + 1)):
            raise DataError(f"{table.source}: the numbers of the rows (0:NUMBER) must be 1, 2, ..., {count}")
        values = values[:, 1:]
    if values.shape[1] != count:
        raise DataError(
            f"{table.source}: has {values.shape[1]} kernel values a row; {count} are needed, one for each training row"
        )
    return dataclasses.replace(table, X=np.ascontiguousarray(values), feature_names=None, known_nonzero=None)
