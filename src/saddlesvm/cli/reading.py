"""The commands' way of reading data, and the preparation of rows for a model, the same for all its data.

Missing values are refused, left out with their rows, or filled in by column. Features are brought to mean 0 and
variance 1 as the training rows have them. Rows of ``--kernel precomputed`` are values of a kernel.

Tables with columns of words, dates and gaps are found, read and encoded as their training rows teach.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from saddlesvm.cli.arguments import flag
from saddlesvm.cli.console import STANDARD_INPUT
from saddlesvm.cli.display import progress_bar
from saddlesvm.cli.options import OPTIONS, READING
from saddlesvm.data import BUNDLED, DataError, Table, read
from saddlesvm.data.blocks import check_names, located
from saddlesvm.data.column_kinds import MISSING_WORDS, Found, Frame, found_in
from saddlesvm.data.frame_files import FRAME_FORMATS, FrameSource, first_frame, frame_source, taken_label
from saddlesvm.data.missing_values import Filling
from saddlesvm.data.readers import read_stores
from saddlesvm.data.table import is_number, ready_labels, shorten
from saddlesvm.estimators.table import TableEncoder, encoder_for
from saddlesvm.estimators.table_files import ENCODER, as_store, kinds_of, labels_from, naming, read_all, stored_encoder
from saddlesvm.problem.losses import LOSSES, make_loss, traits_of
from saddlesvm.rows.memory_plan import available_memory, memory_bytes

PROBED_ROWS, PROBED_BYTES = 1_000, 1 << 16  # of a file, whose columns tell whether they need an encoder
PART_BYTES = 1 << 20  # of a file that is encoded as it is read; its words take many times as much (guessed)
IN_MEMORY = 12  # memory over bytes of a file whose cells are all held at once, as Python's texts
WORDS = ("category", "text", "date")  # kinds that numbers alone cannot be
LABEL = "label column"  # the note of a model with the name of its labels
WORDS_SHOWN = 8  # of each class, those that speak most for it


def opened(options: argparse.Namespace, source: str) -> FrameSource:
    """A file as the options say, ready to be read by columns."""
    return frame_source(source, header=options.header, drop=options.drop_columns, label=options.label)


def needs_encoder(options: argparse.Namespace, source: str) -> bool:
    """Whether a file has columns that are not numbers, among its first rows or by the options.

    JSON lines and folders of texts always go by the encoder; a table of numbers is read as numbers, as it is.
    """
    found = located(source)
    if found not in FRAME_FORMATS:
        if options.columns:
            raise DataError(f"{source}: --columns goes with {', '.join(FRAME_FORMATS)}; this is {found}")
        return False
    if options.columns or found in ("jsonl", "folder"):
        return True
    try:
        file = opened(options, source)
        label = taken_label(file, options.label)
        part = first_frame(file, PROBED_BYTES)[:PROBED_ROWS]
        return any(
            one.kind.name in WORDS or (one.kind.name == "drop" and not_numbers(part.columns[name]))
            for name, one in found_in(part if label is None else part.without(label)).items()
        )
    except DataError:
        return False  # the reader of numbers says what is wrong, and where


def not_numbers(values: np.ndarray) -> bool:
    """Whether any cell of a column is neither a number nor missing."""
    if values.dtype != object:
        return values.dtype.kind == "M"
    known = (one for one in values.tolist() if one is not None and one.strip().lower() not in MISSING_WORDS)
    return not all(map(is_number, known))


def read_tabular(options: argparse.Namespace, source: str, task: Any) -> Table:
    """The rows to train on: columns in memory, or, where they are large or ``--memory`` is given, an encoded store."""
    began = time.perf_counter()
    file = opened(options, source)
    label = taken_label(file, options.label)
    found = kinds_of(file, label, dict(options.columns))
    limit = available_memory() // 2 if options.memory is None else memory_bytes(options.memory)
    if IN_MEMORY * file.n_bytes > limit:
        return _as_stored(options, file, label, found, limit)
    with progress_bar(f"reading {source}", options.json) as advance, naming(source, 0):
        frame, y = read_all(file, label, task, advance)
    spent = time.perf_counter() - began
    table = Table(frame, y, None, label, source, file.format, file.n_bytes, spent)
    return dataclasses.replace(table, encoder=encoder_for(found), columns=column_facts(found))


def _as_stored(
    options: argparse.Namespace, file: FrameSource, label: str | None, found: Mapping[str, Found], memory: int
) -> Table:
    """The rows, encoded into a store that stays for as long as the command."""
    options.workspace = tempfile.TemporaryDirectory(prefix="saddlesvm-")
    target = Path(options.workspace.name, "rows.store")
    with progress_bar(f"encoding {file.name}", options.json) as advance:
        as_store(file, target, label, found, memory=memory, overwrite=True, advance=advance)
    table = of_store(read(target))
    return dataclasses.replace(
        table, columns=column_facts(found), source=file.name, format=file.format, n_bytes=file.n_bytes
    )


def of_store(table: Table) -> Table:
    """The table of a store, with the encoder that its rows were made by."""
    encoder = stored_encoder(table.stores[0])
    if any(store.header.get(ENCODER) != table.stores[0].header.get(ENCODER) for store in table.stores):
        raise DataError(f"{table.source}: their rows are not encoded alike; convert the tables into one store")
    return table if encoder is None else dataclasses.replace(table, encoder=encoder, columns=encoder_columns(encoder))


def column_facts(found: Mapping[str, Found]) -> list[str]:
    """The kind and the encoding of each column, in words."""
    return [f"{name}: {one.kind}" + (f" ({one.why})" if one.why else "") for name, one in found.items()]


def encoder_columns(encoder: TableEncoder) -> list[str]:
    """The columns of an encoder, in words."""
    return [f"{name}: {kind}" for name, kind in encoder.columns.items()]


def fitted_to(table: Table) -> TableEncoder:
    """The encoder of a table, fitted to its rows; that of a store is already."""
    encoder: TableEncoder = table.encoder
    if isinstance(table.X, Frame):
        with naming(table.source, 0):
            encoder.fit(table.X)
    return encoder


def encoded(encoder: TableEncoder, table: Table) -> Table:
    """A table with its rows encoded; the columns stay beside them."""
    if not isinstance(table.X, Frame):
        return table
    with naming(table.source, 0):
        X = encoder.transform(table.X)
    return dataclasses.replace(table, X=X, frame=table.X)


def read_encoded(
    encoder: TableEncoder, options: argparse.Namespace, source: str | list[str], label: str | None, task: Any = None
) -> Table:
    """Other data of a model with an encoder, encoded as they are read.

    Parameters
    ----------
    encoder : TableEncoder
    options : Namespace
    source : str or list of str
        Of a file, or of several stores.
    label : str or None
        The column of the labels in the training data.
    task : "regression" or None

    Raises
    ------
    DataError
        A column is missing, or a value is not of its kind.
    """
    began = time.perf_counter()
    if isinstance(source, list):
        return _same_encoding(encoder, read_stores(source, task))
    if located(source) == "store":
        return _same_encoding(encoder, read(source))
    file = opened(options, source)
    column = taken_label(file, options.label, encoder.used, label)
    missing = [name for name in encoder.used if name not in file.names]
    extra = [name for name in file.names if name not in encoder.columns and name != column]
    if missing:
        raise DataError(
            f"{source}: lacks columns of the model: {shorten(missing)}; its columns are {shorten(file.names)}"
        )
    if extra:
        print(f"{source}: the model does not know these columns, which are left out: {shorten(extra)}", file=sys.stderr)
    parts, labels, done = [], [], 0
    with progress_bar(f"reading {source}", options.json) as advance:
        for frame, share in file.frames(PART_BYTES):
            with naming(source, done):
                parts.append(encoder.transform(frame))
            if column is not None:
                labels.append(labels_from(frame.columns[column], column, source, done))
            done += len(frame)
            advance(share)
    if not parts:
        raise DataError(f"{source}: holds no rows; at least one is needed")
    X = sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)
    y = None if column is None else ready_labels(np.concatenate(labels), done, source, task=task)
    return Table(X, y, None, column, source, file.format, file.n_bytes, time.perf_counter() - began)


def _same_encoding(encoder: TableEncoder, table: Table) -> Table:
    """A store whose rows were encoded as a model's are."""
    found = of_store(table).encoder
    if found is None or list(found.get_feature_names_out()) != list(encoder.get_feature_names_out()):
        raise DataError(f"{table.source}: its rows are not encoded as those of the model; give the table itself")
    return table


def strongest_words(model: Any, encoder: TableEncoder) -> dict[str, Any]:
    """The words and categories that speak most for each class of a linear model, in words."""
    if not hasattr(model, "top_features"):
        return {}
    names = encoder.get_feature_names_out()
    return {
        f"for {label}": ", ".join(f"{name} {weight:+.3g}" for name, weight in best)
        for label, best in model.top_features(WORDS_SHOWN, names).items()
    }


def refuse(options: argparse.Namespace, source: str, asked: Sequence[str]) -> None:
    """Raise DataError for options that do not fit a table of columns of words."""
    for name in asked:
        if getattr(options, name):
            raise DataError(f"{source}: {flag(name)} does not work with columns of words, texts or dates")
    if options.scale != 1.0:
        raise DataError(f"{source}: --scale does not work with columns of words; numbers are scaled by their spread")


CALLED = "standard input"


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
        return read_stores(source, task, options.memory, n_features)
    if source == STANDARD_INPUT:
        return from_standard_input(
            options, lambda path: read_table(options, path, n_features, task, zero_based, missing)
        )
    if n_features is None and needs_encoder(options, source):
        refuse(options, source, ("dask", "liblinear"))
        return read_tabular(options, source, task)
    by_options = options.index_base != "auto" or zero_based is None
    given = {name: getattr(options, name) for name in ("label", "header", "scale", "drop_columns")}
    given |= {"n_features": n_features, "task": task, "missing": missing}
    given["zero_based"] = options.index_base if by_options else zero_based
    with progress_bar(f"reading {source}", options.json) as advance:
        return read(source, **given, advance=advance)


def from_standard_input(options: argparse.Namespace, use: Callable[[str], Table]) -> Table:
    """Read what comes on standard input, by way of a temporary file: the readers read data more than once.

    Raises
    ------
    DataError
        As for a file; or there is no standard input.
    """
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


def check_stores_asked(options: argparse.Namespace, stores: list[str], *further: str) -> None:
    """Raise DataError for options of reading files, and `further` ones, where the data are several stores."""
    for name in (*READING.split(), "missing", *further):
        if getattr(options, name) not in (OPTIONS[name].get("default", False), None):
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
