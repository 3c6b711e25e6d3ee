"""The commands' way of reading data, and the preparation of rows for a model, the same for all its data.

Missing values are refused, left out with their rows, or filled in by column. Features are brought to mean 0 and
variance 1 as the training rows have them. Rows of ``--kernel precomputed`` are values of a kernel.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from saddlesvm.cli.arguments import flag
from saddlesvm.cli.console import STANDARD_INPUT
from saddlesvm.cli.display import progress_bar
from saddlesvm.cli.tabular import LABEL, needs_encoder, read_encoded, read_tabular, refuse
from saddlesvm.data import BUNDLED, DataError, Table, read
from saddlesvm.data.blocks import check_names
from saddlesvm.data.missing_values import Filling
from saddlesvm.data.readers import read_stores
from saddlesvm.data.table import shorten
from saddlesvm.estimators.table import TableEncoder
from saddlesvm.problem.losses import LOSSES, make_loss, traits_of

CALLED = "standard input"
OF_FILES = {  # options of reading that several stores do not have, and their defaults
    "label": None,
    "drop_columns": (),
    "columns": (),
    "header": "auto",
    "index_base": "auto",
    "scale": 1.0,
    "cache": False,
    "missing": "error",
}


def read_table(
    options: argparse.Namespace,
    source: str | list[str],
    n_features: int | None = None,
    task: Any = None,
    zero_based: bool | None = None,
    missing: str = "error",
) -> Table:
    """Read a data file, or several stores, as the options say; `zero_based` says how other data of the same model were
    read.

    Where data to train on have columns of words, dates or texts, `X` of the table holds those columns.
    """
    if isinstance(source, list):
        check_stores_asked(options, source)
        return read_stores(source, task, getattr(options, "memory", None), n_features)
    if source == STANDARD_INPUT:
        return from_standard_input(
            options, lambda path: read_table(options, path, n_features, task, zero_based, missing)
        )
    if n_features is None and needs_encoder(options, source):
        refuse(options, source, ("dask", "liblinear", "libsvm"))
        return read_tabular(options, source, task)
    given: dict[str, Any] = {
        "label": options.label,
        "header": options.header,
        "n_features": n_features,
        "scale": options.scale,
        "task": task,
        "cache": options.cache,
        "missing": missing,
        "drop_columns": options.drop_columns,
    }
    by_options = options.index_base != "auto" or zero_based is None
    given["zero_based"] = options.index_base if by_options else zero_based
    with progress_bar(f"reading {source}", getattr(options, "json", False)) as advance:
        return read(source, **given, advance=advance)


def from_standard_input(options: argparse.Namespace, use: Callable[[str], Table]) -> Table:
    """Read what comes on standard input, by way of a temporary file: the readers read data more than once.

    Raises
    ------
    DataError
        As for a file; or there is no standard input, or it is to be kept beside a file.
    """
    if options.cache:
        raise DataError(f"{CALLED}: --cache keeps what was read beside a file; there is none")
    if sys.stdin is None:
        raise DataError(f"{CALLED}: is closed")
    handle, path = tempfile.mkstemp(prefix="saddlesvm-")
    try:
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return dataclasses.replace(use(path), source=CALLED)
    except DataError as error:
        raise DataError(str(error).replace(path, CALLED)) from None
    finally:
        os.unlink(path)


def check_stores_asked(options: argparse.Namespace, stores: list[str], **further: Any) -> None:
    """Raise DataError for options of reading files, and `further` ones, where the data are several stores."""
    for name, default in (OF_FILES | further).items():
        if getattr(options, name, default) != default:
            raise DataError(f"{flag(name)} is for files; {shorten(stores)} are stores")


def labels_of(table: Table) -> np.ndarray:
    """The labels of a table; raises an error where it has none."""
    if table.y is None:
        raise DataError(f"{table.source}: no labels found; name their column with --label")
    return table.y


def check_classes(table: Table) -> None:
    """Raise DataError where the labels are no classes but numbers with fractions: a regression, without its loss."""
    y = table.y
    if y is None or y.dtype.kind != "f":
        return
    column = "" if table.label_name is None else f" in the column {table.label_name!r}"
    losses = ", ".join(name for name in LOSSES if traits_of(make_loss(name)).task == "regression")
    raise DataError(
        f"{table.source}: has {np.unique(y).size:,} different numbers with fractions for labels{column}, from "
        f"{y.min():g} to {y.max():g}: for a regression name its loss, --loss with one of {losses}; for classes name "
        "their column with --label"
    )


def check_features(model: Any, path: str, table: Table) -> None:
    """Raise DataError unless the data have the features of the model."""
    if model.n_features_in_ != table.n_features:
        raise DataError(f"{path}: the model has {model.n_features_in_} features; the data have {table.n_features}")
    check_names(table.source, table.feature_names, path, getattr(model, "feature_names_in_", None))


def label_taken(table: Table, label: str | None) -> str | None:
    """The column that was taken for the labels, in words; None where the format leaves no choice."""
    if table.y is None or table.format not in ("csv", "parquet", "jsonl", "arrow", "folder"):
        return None
    name = repr(table.label_name) if table.label_name is not None else "without a name"
    last = label is None and table.source not in BUNDLED
    return f"column {name}" + (", the last one (--label takes another)" if last else "")


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
