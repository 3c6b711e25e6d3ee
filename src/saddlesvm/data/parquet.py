"""Parquet, through pyarrow where that is installed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.columns import label_position
from saddlesvm.data.errors import DataError
from saddlesvm.data.streams import is_compressed, reading
from saddlesvm.data.table import Label, Raw

__all__ = ["read_parquet"]

_ROW_INDEX = re.compile(r"__index_level_\d+__")


def read_parquet(path: Path, *, label: Label = None, n_features: int | None = None, dtype: Any = None) -> Raw:
    """Read a Parquet file whose feature columns are numeric; columns that pandas wrote for its row index are left out.

    Raises
    ------
    DataError
        pyarrow is not installed, the file is damaged, a feature column is not numeric or has gaps.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(f'{path}: reading Parquet needs pyarrow: pip install "saddlesvm[parquet]"') from None
    if is_compressed(path):
        raise DataError(f"{path}: is a compressed Parquet file; decompress it first (Parquet compresses inside)")
    with reading(path):
        try:
            table = pq.ParquetFile(path).read()
        except (pa.ArrowException, MemoryError) as error:
            raise DataError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    table = table.select([name for name in table.column_names if not _ROW_INDEX.fullmatch(name)])
    names = list(table.column_names)
    if table.num_rows == 0:
        raise DataError(f"{path}: holds no rows; at least one is needed")
    position = label_position(label, names, len(names), n_features, str(path))
    features = [column for column in range(len(names)) if column != position]
    parts = [_numbers(table.column(column), names[column], path) for column in features]
    X = np.empty((table.num_rows, len(parts)), dtype=dtype or np.result_type(np.float16, *parts))
    for column, part in enumerate(parts):
        X[:, column] = part
    if position is None:
        return Raw(X, None, names)
    y = _labels(table.column(position), names[position], path)
    return Raw(X, y, [names[column] for column in features], names[position])


def _refuse_gaps(column: Any, name: str, path: Path) -> None:
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise DataError(f"{path}: column {name!r}, row {row + 1}: the value is missing; fill in or leave out such rows")


def _numbers(column: Any, name: str, path: Path) -> np.ndarray[Any, Any]:
    _refuse_gaps(column, name, path)
    values: np.ndarray[Any, Any] = column.to_numpy()
    if values.dtype.kind not in "biuf":
        raise DataError(f"{path}: column {name!r} is of type {column.type}; features must be numbers")
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{path}: column {name!r}, row {row + 1}: the value is {values[row]}; values must be finite")
    return values


def _labels(column: Any, name: str, path: Path) -> np.ndarray[Any, Any]:
    _refuse_gaps(column, name, path)
    values: np.ndarray[Any, Any] = column.to_numpy()
    if values.dtype == object and all(isinstance(value, str) for value in values):
        return values.astype(str)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{path}: the label column {name!r} is of type {column.type}; it must be numbers or text")
    return values
