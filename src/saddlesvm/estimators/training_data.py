"""Read data for the command line: rows to train on, and rows to describe."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from saddlesvm.data import BUNDLED, DataError, Table
from saddlesvm.data.blocks import find_format
from saddlesvm.data.column_positions import LABEL_NAMES
from saddlesvm.data.data_table import ROUNDED, are_rounded, ready_labels
from saddlesvm.data.frames import (
    choose_label,
    find_kinds,
    holds_words,
    open_table,
    read_frame,
)
from saddlesvm.data.kinds import ChosenKind
from saddlesvm.data.readers import read_source
from saddlesvm.data.reading import (
    COLUMN_FORMATS,
    DEFAULT_READING,
    STANDARD_INPUT,
    Label,
    Reading,
)
from saddlesvm.problem.losses import LOSSES, make_loss, traits_of

TREATMENTS = ("drop", "mean", "median")  # of gaps, by the encoding of a table
STANDARD_INPUT_NAME = "standard input"
# Classes from which on it is odd if most of them have a single row; a guess.
SINGLE_ROW_CLASSES = 50

Advance = Callable[[float], Any]


def read_training(
    source: str,
    reading: Reading = DEFAULT_READING,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    advance: Advance | None = None,
) -> Table:
    """Read the rows to train on.

    Parameters
    ----------
    source : str
        A file, a bundled set, a store, or "-" for standard input.
    reading : Reading
        :meth:`Preparation.learn` treats missing values.
    n_features : int, optional
        The number of features of a model; the rows are then a table of numbers.
    zero_based : bool, optional
        How the indices of other data of the same model count, if `reading.zero_based` is "auto".
    advance : callable, optional
        Called with the share that was read.

    Returns
    -------
    Table
        `X` is a matrix, or the rows of a store, or, for a table with words, a data frame.

    Raises
    ------
    DataError
        The data cannot be read so.
    """
    if source == STANDARD_INPUT:

        def read_copy(path: str) -> Table:
            return read_training(
                path,
                reading,
                n_features=n_features,
                zero_based=zero_based,
                advance=advance,
            )

        return read_standard_input(read_copy)
    check_columns_apply(source, reading)

    # A table with words becomes a data frame, which is encoded later.
    if n_features is None and is_table_with_words(source, reading):
        return _read_table(source, reading)

    # Numbers become a matrix.
    how = replace(reading, n_features=n_features)
    if reading.zero_based == "auto" and zero_based is not None:
        how = replace(how, zero_based=zero_based)
    return read_source(source, how, advance)


def check_columns_apply(source: str, reading: Reading) -> None:
    """Raise DataError if options of tables are given for a source that is not a table."""
    if not reading.columns and reading.missing not in TREATMENTS:
        return
    option = f"--missing {reading.missing}"
    if reading.columns:
        option = "--columns"
    format = find_format(source)
    if format not in COLUMN_FORMATS:
        what = format
        if format == "bundled":
            what = "a bundled set of numbers"
        raise DataError(
            f"{source}: is {what}; {option} is for tables ({', '.join(COLUMN_FORMATS)}): "
            "leave it out"
        )


def is_table_with_words(source: str, reading: Reading) -> bool:
    """Return True if the source has columns of words, or options ask for an encoding."""
    if reading.columns or reading.missing in TREATMENTS:
        return True
    return holds_words(source, reading.header, reading.drop_columns, reading.label)


def _read_table(source: str, reading: Reading) -> Table:
    """Read a table with words as a data frame."""
    began = time.perf_counter()
    file = open_table(source, header=reading.header, drop=reading.drop_columns, label=reading.label)
    column = choose_label(file, reading.label)
    chosen = find_kinds(file, column, dict(reading.columns))
    kinds = {name: choice.kind for name, choice in chosen.items()}
    frame, y = read_frame(file, kinds, column)
    if y is not None:
        y = ready_labels(y, len(frame), source)
    seconds = time.perf_counter() - began
    table = Table(frame, y, None, column, source, file.format, file.n_bytes, seconds)
    learnt = {name: kind for name, kind in kinds.items() if kind != "drop"}
    return replace(table, kinds=learnt, column_facts=describe_columns(chosen))


def describe_columns(chosen: Mapping[str, ChosenKind]) -> list[str]:
    """Return the kind of each column, and the reason, in words."""
    facts = []
    for name, choice in chosen.items():
        reason = f" ({choice.why})" if choice.why else ""
        facts.append(f"{name}: {choice.kind}{reason}")
    return facts


def read_standard_input(read_file: Callable[[str], Table]) -> Table:
    """Read standard input by way of a temporary file, because readers read data more than once."""
    if sys.stdin is None:
        raise DataError(f"{STANDARD_INPUT_NAME}: is closed")
    handle, path = tempfile.mkstemp(prefix="saddlesvm-")
    try:
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return replace(read_file(path), source=STANDARD_INPUT_NAME)
    except DataError as error:
        raise DataError(str(error).replace(path, STANDARD_INPUT_NAME)) from None
    finally:
        os.unlink(path)


def labels_of(table: Table) -> np.ndarray:
    """Return the labels of a table; raises DataError if it has none."""
    if table.y is None:
        raise DataError(f"{table.source}: no labels found; name their column with --label")
    return table.y


def check_class_labels(table: Table) -> None:
    """Raise DataError if labels cannot be classes: with fractions, or nearly as many as rows."""
    y = table.y
    if y is None:
        return
    # The message names the column, and what may have been meant.
    column = "" if table.label_name is None else f" in the column {table.label_name!r}"
    losses = ", ".join(name for name in LOSSES if traits_of(make_loss(name)).task == "regression")
    advice = (
        f"for a regression name its loss, --loss with one of {losses}; "
        "for classes name their column with --label"
    )
    if are_rounded(y):
        raise DataError(f"{table.source}: the labels{column} are {ROUNDED}")
    if y.dtype.kind == "f":
        raise DataError(
            f"{table.source}: has {np.unique(y).size:,} different numbers with fractions for "
            f"labels{column}, from {y.min():g} to {y.max():g}: {advice}"
        )
    # An identifier, or a number to predict, has another value in nearly each row.
    counts = np.unique(y, return_counts=True)[1]
    n_single = int((counts == 1).sum())
    if n_single >= SINGLE_ROW_CLASSES and n_single > table.n_rows / 2:
        raise DataError(
            f"{table.source}: has {counts.size:,} different labels{column}, and {n_single:,} of "
            f"{table.n_rows:,} rows have a label that no other row has: {advice}"
        )


def check_targets(table: Table) -> None:
    """Raise DataError if labels are text, because a regression needs numbers."""
    if table.y is not None and table.y.dtype.kind == "U":
        raise DataError(
            f"{table.source}: has the label {str(table.y[0])!r}; a regression needs numbers: name "
            "their column with --label"
        )


def describe_label(table: Table, label: Label) -> str | None:
    """Return the column that was taken for the labels, in words; None if there is no choice."""
    if table.y is None or table.format not in COLUMN_FORMATS or table.source in BUNDLED:
        return None
    name = str(table.label_name)
    words = f"column {name!r}"
    number = name.removeprefix("column ")
    if name.startswith("column ") and number.isdigit():
        # A column without a name is "column 3", and --label counts from 0.
        words = f"{name} (--label {int(number) - 1})"
    if label is not None:
        return words
    how = "by its name" if name.lower() in LABEL_NAMES else "the last one"
    return f"{words}, {how} (--label takes another)"
