"""Parquet, Feather and Arrow files of numbers, or lists of numbers, as sources of rows.

They become arrays directly: pandas would copy them, and a mapped list of numbers would be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.arrow_columns import flat_column, is_list, stack_columns
from saddlesvm.data.arrow_files import ArrowFile, arrow_file
from saddlesvm.data.blocks import WHOLE, Block, ReadOptions, Source
from saddlesvm.data.column_positions import dropped_positions, label_position
from saddlesvm.data.data_table import Missing, check_classes, float_type
from saddlesvm.data.errors import MISSING_ADVICE, DataError


def arrow_source(path: Path, format: str, how: ReadOptions) -> Source:
    """Return a Parquet, Feather or Arrow file of numbers as a source.

    A single column of lists in a Feather file is mapped, not copied, if it is read whole. Columns
    that pandas wrote for its row index are left out.

    Raises
    ------
    DataError
        As :func:`arrow_file`; or a feature column is not numeric, or has gaps that are not kept, as
        far as the schema tells. Its blocks raise it for what the rows tell.
    """
    file = arrow_file(path, format)
    features, label = _choose_columns(file, how)
    if not file.n_rows:
        raise DataError(f"{path}: holds no rows; at least one is needed")
    dtype, width = _type_and_width(file, features)

    def blocks(n_bytes: int) -> Iterator[Block]:
        done = 0
        # One block of all rows keeps the type of the file, and a mapped list its memory.
        block_dtype = how.dtype if n_bytes == WHOLE else dtype
        for table in file.tables(n_bytes):
            columns = [
                _read_numbers(table.column(k), file.names[k], path, done, how.missing)
                for k in features
            ]
            y = None
            if label is not None:
                y = _read_labels(table.column(label), file.names[label], path, done)
            X = _join_columns(columns, block_dtype)
            done += len(X)
            yield Block(X, y, None, done / file.n_rows)

    return Source(
        str(path),
        format,
        sparse=False,
        width=width,
        dtype=dtype,
        has_labels=label is not None,
        n_bytes=path.stat().st_size,
        blocks=blocks,
        feature_names=_feature_names([file.names[k] for k in features], width),
        label_name=None if label is None else file.names[label],
    )


def _choose_columns(file: ArrowFile, how: ReadOptions) -> tuple[list[int], int | None]:
    """Return the positions of the features, and of the label if there is one."""
    names = file.names
    source = str(file.path)
    dropped = dropped_positions(how.drop_columns, names, len(names), source)
    has_lists = any(map(is_list, file.types))
    # Lists are features, even in the last column, which would be the label otherwise.
    label = how.label
    if label is None and names and is_list(file.types[-1]):
        label = False
    # The number of features is not the number of columns if there are lists.
    n_features = None if has_lists else how.n_features
    position = label_position(label, names, len(names), n_features, source, dropped)
    features = [k for k in range(len(names)) if k != position and k not in dropped]
    return features, position


def _feature_names(names: list[str], width: int) -> list[str] | None:
    """Return names of the features; features in a list are named by it and their position."""
    if width == len(names):
        return names
    if len(names) == 1:
        return [f"{names[0]}[{k}]" for k in range(width)]
    return None


def _type_and_width(file: ArrowFile, features: list[int]) -> tuple[np.dtype, int]:
    """Return the float type that holds the features, and how many there are."""
    # The lengths of lists are not in the schema, but in the first row.
    first = None
    if any(is_list(file.types[k]) for k in features):
        with closing(file.tables(1)) as tables:
            first = next(tables)
    types = []
    width = 0
    for k in features:
        if first is not None and is_list(file.types[k]):
            lists = flat_column(first.column(k), file.names[k], str(file.path))
            types.append(lists.dtype)
            width += lists.shape[1]
        else:
            types.append(_number_type(file.types[k], file.names[k], file.path))
            width += 1
    return float_type(np.result_type(np.float16, *types)), width


def _number_type(arrow_type: Any, name: str, path: Path) -> np.dtype:
    """Return the type of a column of numbers in NumPy."""
    # A column without any value.
    if str(arrow_type) == "null":
        return np.dtype(np.float64)
    try:
        dtype = np.dtype(arrow_type.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        dtype = np.dtype(object)
    _check_number_type(dtype, name, arrow_type, path)
    return dtype


def _check_number_type(dtype: np.dtype, name: str, arrow_type: Any, path: Path) -> None:
    """Raise a `DataError` unless a column holds numbers."""
    if dtype.kind not in "biuf":
        raise DataError(
            f"{path}: column {name!r} is of type {arrow_type}; features must be numbers"
        )


def _join_columns(columns: list[np.ndarray], dtype: Any) -> np.ndarray:
    """Return columns side by side; a single list of numbers is returned as it is."""
    if len(columns) == 1 and columns[0].ndim == 2:
        return columns[0] if dtype is None else columns[0].astype(dtype, copy=False)
    if any(column.ndim == 2 for column in columns):
        return np.column_stack(columns)
    return stack_columns(columns, dtype)


def _refuse_missing(column: Any, name: str, path: Path, n_before: int) -> None:
    """Raise a `DataError` for the first missing value, in a file with `n_before` rows before."""
    if column.null_count:
        row = n_before + int(np.argmax(column.is_null().to_numpy()))
        raise DataError(
            f"{path}: column {name!r}, row {row + 1}: the value is missing; {MISSING_ADVICE}"
        )


def _read_numbers(
    column: Any, name: str, path: Path, n_before: int, missing: Missing
) -> np.ndarray:
    """Return a column of finite numbers, or of lists of them; NaN if a missing value is kept."""
    if missing == "error":
        _refuse_missing(column, name, path, n_before)
    values = flat_column(column, name, str(path)) if is_list(column.type) else column.to_numpy()
    _check_number_type(values.dtype, name, column.type, path)
    is_bad = np.isinf(values) if missing == "keep" else ~np.isfinite(values)
    if is_bad.any():
        is_bad_row = is_bad if is_bad.ndim == 1 else is_bad.any(axis=1)
        row = int(np.argmax(is_bad_row))
        value = values[is_bad][0]
        raise DataError(
            f"{path}: column {name!r}, row {n_before + row + 1}: the value is {value}; "
            "values must be finite"
        )
    return values


def _read_labels(column: Any, name: str, path: Path, n_before: int) -> np.ndarray:
    """Return a column of labels, none of them missing."""
    _refuse_missing(column, name, path, n_before)
    values: np.ndarray = column.to_numpy()
    if values.dtype == object and all(isinstance(value, str) for value in values):
        check_classes(list(dict.fromkeys(values.tolist())), f"{path}: {name!r}")
        return values.astype(str)
    # Truth values as a text file spells them.
    if values.dtype.kind == "b":
        return np.where(values, "True", "False")
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"{path}: the label column {name!r} is of type {column.type}; "
            "it must be numbers or text"
        )
    return values
