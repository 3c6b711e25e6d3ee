"""Parquet, Feather and Arrow files of numbers, or lists of numbers, as sources of rows.

They become arrays directly: pandas would copy them, and make objects of lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.arrow_columns import arrow_matrix, is_list
from saddlesvm.data.arrow_files import ArrowFile, arrow_file
from saddlesvm.data.blocks import Block, Source
from saddlesvm.data.column_positions import dropped_positions, label_position
from saddlesvm.data.data_table import decode_labels, missing_labels
from saddlesvm.data.errors import MISSING_ADVICE, DataError
from saddlesvm.data.reading import Reading
from saddlesvm.rows.small_types import precision_of


def arrow_source(path: Path, format: str, how: Reading) -> Source:
    """Return a Parquet, Feather or Arrow file of numbers as a source.

    A single column of lists in a Feather file is mapped, not copied, if it is read whole. Columns
    that pandas wrote for its row index are left out.

    Raises
    ------
    DataError
        As :func:`arrow_file`; or a feature column is not numeric, or has gaps.
    """
    file = arrow_file(path, format)
    features, label = choose_columns(file, how)
    if not file.n_rows:
        raise DataError(f"{path}: holds no rows; at least one is needed")
    names = [file.names[k] for k in features]
    # The lengths of lists are not in the schema, but in the first row.
    with closing(file.tables(1)) as tables:
        first, _ = arrow_matrix(next(tables).select(features), str(path))
    width = first.shape[1]
    feature_names: list[str] | None = names
    if width != len(names):
        # The numbers of a single column of lists have names; those of several columns have none.
        feature_names = None
        if len(names) == 1:
            feature_names = [f"{names[0]}[{k}]" for k in range(width)]

    label_name = None
    if label is not None:
        label_name = file.names[label]

    def blocks(n_bytes: int) -> Iterator[Block]:
        done = 0
        for table in file.tables(n_bytes):
            rows = table.select(features)
            for k, column in enumerate(rows.columns):
                name = rows.column_names[k]
                fault = f"column {name!r}: the value is missing; {MISSING_ADVICE}"
                _refuse_missing(column, path, done, fault)
            y = None
            if label is not None:
                y = _read_labels(table.column(label), file.names[label], path, done)
            done += table.num_rows
            yield Block(arrow_matrix(rows, str(path))[0], y, None, done / file.n_rows)

    return Source(
        str(path),
        format,
        sparse=False,
        width=width,
        dtype=precision_of(first.dtype),
        has_labels=label is not None,
        n_bytes=path.stat().st_size,
        blocks=blocks,
        feature_names=feature_names,
        label_name=label_name,
    )


def choose_columns(file: ArrowFile, how: Reading) -> tuple[list[int], int | None]:
    """Return the positions of the features, and of the label if there is one."""
    names = file.names
    source = str(file.path)
    dropped = dropped_positions(how.drop_columns, names, source)
    kept = [k for k in range(len(names)) if k not in dropped]
    # Lists are features, even in the last column, which would be the label otherwise.
    label = how.label
    if label is None and kept and is_list(file.types[kept[-1]]):
        label = False
    # The number of features is not the number of columns if there are lists.
    n_features = None if any(map(is_list, file.types)) else how.n_features
    position = label_position(label, names, source, dropped, n_features)
    return [k for k in kept if k != position], position


def _refuse_missing(column: Any, path: Path, n_before: int, fault: str) -> None:
    """Raise a `DataError` for the first missing value, in a file with `n_before` rows before."""
    if column.null_count:
        row = n_before + int(np.argmax(column.is_null().to_numpy()))
        raise DataError(f"{path}: row {row + 1}: {fault}")


def _read_labels(column: Any, name: str, path: Path, n_before: int) -> np.ndarray:
    """Return a column of labels, none of them missing."""
    fault = f"the label is missing; every row needs one in {name!r}"
    _refuse_missing(column, path, n_before, fault)
    values: np.ndarray = column.to_numpy()
    if values.dtype.kind in "iuf":
        return values
    # Truth values as a text file spells them.
    if values.dtype.kind == "b":
        return np.where(values, "True", "False")
    labels = values.tolist()
    if not all(isinstance(label, str) for label in labels):
        raise DataError(
            f"{path}: the label column {name!r} is of type {column.type}; "
            "it must be numbers or text"
        )
    labels = [label.strip() for label in labels]
    code_of = {text: code for code, text in enumerate(dict.fromkeys(labels))}
    codes = np.array([code_of[text] for text in labels], dtype=np.int64)
    no_labels = missing_labels(code_of)
    is_missing = np.array([text.lower() in no_labels for text in code_of])[codes]
    if is_missing.any():
        row = n_before + int(np.argmax(is_missing))
        raise DataError(f"{path}: row {row + 1}: {fault}")
    return decode_labels(list(code_of), codes, f"{path}: {name!r}")
