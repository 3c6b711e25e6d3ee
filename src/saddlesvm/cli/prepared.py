"""The preparation of rows for a model, the same for all its data.

Missing values are refused, left out with their rows, or filled in by column. Features are brought to mean 0 and
variance 1 as the training rows have them. Rows of ``--kernel precomputed`` are values of a kernel.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from saddlesvm.cli.console import STANDARD_INPUT
from saddlesvm.cli.reading import check_features, from_standard_input, read_table
from saddlesvm.cli.tabular import LABEL, read_encoded
from saddlesvm.data import DataError, Table
from saddlesvm.data.missing_values import Filling
from saddlesvm.estimators.table import TableEncoder


def scaler_of(table: Table) -> StandardScaler:
    """The scaler of the rows of a table; sparse ones are divided only, so that zeros stay.

    Raises
    ------
    DataError
        The rows stay in the files of a store.
    """
    if table.format == "store":
        raise DataError(f"{table.source}: --standardize copies rows; those of a store stay in their files")
    return StandardScaler(with_mean=not sparse.issparse(table.X)).fit(table.X, sample_weight=table.sample_weight)


def scaled(scaler: Any, table: Table) -> Table:
    """The table with its rows scaled; as it is without a scaler (rows of a table's encoder come encoded)."""
    return table if not isinstance(scaler, StandardScaler) else dataclasses.replace(table, X=scaler.transform(table.X))


def takes_kernel_values(model: Any) -> bool:
    """Whether the rows that a model takes are values of a kernel."""
    return getattr(model, "kernel", None) == "precomputed"


def width_read(model: Any) -> int | None:
    """The features that data of a model have in their file, LIBSVM's number of the row among them; None where that is
    not known: LIBSVM's models with a precomputed kernel do not state their number of training rows."""
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


def read_prepared(
    options: argparse.Namespace,
    model: Any,
    before: Any,
    source: str | list[str],
    task: Any = None,
    every_row: bool = False,
) -> Table:
    """Other data of a saved model, as the rows that it was trained on were prepared.

    Parameters
    ----------
    options : Namespace
    model : estimator
        With ``notes_``.
    before : TableEncoder, StandardScaler or None
        What stands before the model.
    source : str or list of str
        Of a file, or of several stores.
    task : "regression" or None
        What the labels are.
    every_row : bool, default=False
        Whether rows with missing values may not be left out.

    Raises
    ------
    DataError
        As :func:`read_table`; or the data have other features than the model.
    """
    filling, label = Filling.of_notes(model.notes_), model.notes_.get(LABEL)
    if not isinstance(before, TableEncoder):
        zero_based = model.notes_.get("zero_based")
        table = read_table(options, source, width_read(model), task, zero_based, filling.keeps)
    elif source == STANDARD_INPUT:
        table = from_standard_input(options, lambda path: read_encoded(before, options, path, label, task))
    else:
        table = read_encoded(before, options, source, label, task)
    table = values_for(model, table)
    check_features(model, options.model, table)
    return scaled(before, filling.applied(table, every_row))
