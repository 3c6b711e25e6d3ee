"""Tables with columns of words, dates and gaps on the command line: found, read, encoded, column_facts by column."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.cli.arguments import flag
from saddlesvm.cli.display import progress_bar
from saddlesvm.data import DataError, Table, read
from saddlesvm.data.blocks import located
from saddlesvm.data.column_kinds import MISSING_WORDS, Found, Frame, found_in
from saddlesvm.data.conversion import CACHE
from saddlesvm.data.frame_files import FRAME_FORMATS, FrameSource, first_frame, frame_source, taken_label
from saddlesvm.data.readers import read_stores
from saddlesvm.data.table import is_number, ready_labels, shorten
from saddlesvm.estimators.table import TableEncoder, encoder_for
from saddlesvm.estimators.table_files import ENCODER, as_store, kinds_of, labels_from, naming, read_all, stored_encoder
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
        if getattr(options, "columns", None):
            raise DataError(f"{source}: --columns goes with {', '.join(FRAME_FORMATS)}; this is {found}")
        return False
    if getattr(options, "columns", None) or found in ("jsonl", "folder"):
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
    found = kinds_of(file, label, dict(getattr(options, "columns", None) or ()))
    memory = getattr(options, "memory", None)
    limit = available_memory() // 2 if memory is None else memory_bytes(memory)
    if options.cache or IN_MEMORY * file.n_bytes > limit:
        return _as_stored(options, file, label, found, limit)
    with progress_bar(f"reading {source}", options.json) as advance, naming(source, 0):
        frame, y = read_all(file, label, task, advance)
    spent = time.perf_counter() - began
    table = Table(frame, y, None, label, source, file.format, file.n_bytes, spent)
    return dataclasses.replace(table, encoder=encoder_for(found), columns=column_facts(found))


def _as_stored(
    options: argparse.Namespace, file: FrameSource, label: str | None, found: Mapping[str, Found], memory: int
) -> Table:
    """The rows, encoded into a store: beside the file with ``--cache``, else in a folder for as long as the command."""
    target = Path(f"{file.name}{CACHE}")
    if not options.cache:
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
    with progress_bar(f"reading {source}", getattr(options, "json", False)) as advance:
        for frame, share in file.frames(PART_BYTES):
            with naming(source, done):
                parts.append(encoder.transform(frame))
            if column is not None:
                labels.append(labels_from(frame.columns[column], column, source, done))
            done += len(frame)
            if advance is not None:
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
        if getattr(options, name, None):
            raise DataError(f"{source}: {flag(name)} does not work with columns of words, texts or dates")
    if options.scale != 1.0:
        raise DataError(f"{source}: --scale does not work with columns of words; numbers are scaled by their spread")
