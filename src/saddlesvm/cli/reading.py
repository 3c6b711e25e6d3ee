"""The commands' way of reading data: files, stores, bundled sets, and standard input."""

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

from saddlesvm.cli.console import STANDARD_INPUT
from saddlesvm.cli.display import progress_bar
from saddlesvm.cli.tabular import needs_encoder, read_tabular, refuse
from saddlesvm.data import BUNDLED, DataError, Table, read
from saddlesvm.data.columns import check_names
from saddlesvm.data.readers import read_stores
from saddlesvm.data.table import shorten
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
    told = options.index_base != "auto" or zero_based is None
    given["zero_based"] = options.index_base if told else zero_based
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
            raise DataError(f"--{name.replace('_', '-')} is for files; {shorten(stores)} are stores")


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
