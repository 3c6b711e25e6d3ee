"""Parquet files, read with pyarrow where it is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.data.blocks import Block, Source, rows_in
from saddlesvm.data.columns import dropped_positions, label_position
from saddlesvm.data.errors import WAYS_WITH_GAPS, DataError
from saddlesvm.data.streams import is_compressed, reading
from saddlesvm.data.table import Label, Missing, Raw, float_type

__all__ = ["opened_parquet", "parquet_source", "read_parquet"]

_STRINGS = 1 << 24  # most bytes of the texts and lists in the footer, as the file states them
_VALUE_BYTES = 8
_SLACK_BYTES = 1 << 26  # bytes that any file may take in memory
_EXPANSION = 1000  # memory per byte of a file, at most, beyond these
_ROW_INDEX = re.compile(r"__index_level_\d+__")


def read_parquet(
    path: Path,
    *,
    label: Label = None,
    n_features: int | None = None,
    dtype: Any = None,
    missing: Missing = "error",
    drop_columns: Sequence[str | int] = (),
) -> Raw:
    """Read a Parquet file whose feature columns are numeric; columns that pandas wrote for its row index are left out.

    Raises
    ------
    DataError
        pyarrow is not installed, the file is damaged, a feature column is not numeric, or has gaps that are not kept.
    """
    with _opened(path) as file:
        _refuse_bomb(path, file.metadata)
        table = file.read()
    if table.num_rows == 0:
        raise DataError(f"{path}: holds no rows; at least one is needed")
    columns = _columns(table.schema, path, label, n_features, drop_columns)
    X, y = _rows(table, columns, path, 0, dtype, missing)
    return Raw(X, y, columns.feature_names, columns.label_name)


def parquet_source(
    path: Path,
    *,
    label: Label = None,
    n_features: int | None = None,
    missing: Missing = "error",
    drop_columns: Sequence[str | int] = (),
) -> Source:
    """A Parquet file some rows at a time; see :func:`read_parquet`."""
    with _opened(path) as file:
        columns = _columns(file.schema_arrow, path, label, n_features, drop_columns)
        n_rows = file.metadata.num_rows
        dtype = float_type(np.result_type(np.float16, *(_type_of(file.schema_arrow.field(k), path) for k in columns.X)))

    def blocks(n_bytes: int) -> Iterator[Block]:
        import pyarrow as pa

        done = 0
        with _opened(path) as file:
            for batch in file.iter_batches(batch_size=rows_in(n_bytes, 16 * len(columns.X))):
                X, y = _rows(pa.Table.from_batches([batch]), columns, path, done, dtype, missing)
                done += len(X)
                yield Block(X, y, None, done / n_rows)

    return Source(
        str(path),
        "parquet",
        sparse=False,
        width=len(columns.X),
        dtype=dtype,
        has_labels=columns.y is not None,
        n_bytes=path.stat().st_size,
        blocks=blocks,
        feature_names=columns.feature_names,
        label_name=columns.label_name,
    )


@contextmanager
def opened_parquet(path: Path) -> Iterator[tuple[Any, list[str]]]:
    """A ``pyarrow.parquet.ParquetFile``, and the names of its columns without the row index that pandas wrote.

    Raises
    ------
    DataError
        pyarrow is not installed, or the file is damaged.
    """
    with _opened(path) as file:
        yield file, [name for name in file.schema_arrow.names if not _ROW_INDEX.fullmatch(name)]


def _refuse_bomb(path: Path, metadata: Any) -> None:
    """Refuse a file whose rows take very many times its bytes; a conversion reads any, some rows at a time."""
    promised = _VALUE_BYTES * metadata.num_rows * metadata.num_columns
    most = max(_SLACK_BYTES, _EXPANSION * path.stat().st_size)
    if promised > most:
        raise DataError(f"{path}: would take {promised} bytes in memory; {most} are allowed: convert it to a store")


class _Columns(NamedTuple):
    """Which columns of a file are the features, and which is the label."""

    X: list[int]
    y: int | None
    feature_names: list[str]
    label_name: str | None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(f'{path}: reading Parquet needs pyarrow: pip install "saddlesvm[parquet]"') from None
    if is_compressed(path):
        raise DataError(f"{path}: is a compressed Parquet file; decompress it first (Parquet compresses inside)")
    with reading(path):
        try:
            limit = max(_STRINGS, path.stat().st_size)
            with pq.ParquetFile(path, thrift_string_size_limit=limit, thrift_container_size_limit=limit) as file:
                yield file
        except (pa.ArrowException, MemoryError) as error:
            raise DataError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _columns(
    schema: Any, path: Path, label: Label, n_features: int | None, drop_columns: Sequence[str | int]
) -> _Columns:
    kept = [k for k, name in enumerate(schema.names) if not _ROW_INDEX.fullmatch(name)]
    names = [schema.names[k] for k in kept]
    dropped = dropped_positions(drop_columns, names, len(names), str(path))
    position = label_position(label, names, len(names), n_features, str(path), dropped)
    features = [k for k in range(len(names)) if k != position and k not in dropped]
    y, name = (None, None) if position is None else (kept[position], names[position])
    return _Columns([kept[k] for k in features], y, [names[k] for k in features], name)


def _rows(
    table: Any, columns: _Columns, path: Path, before: int, dtype: Any, missing: Missing = "error"
) -> tuple[Any, Any]:
    """Features and labels of some rows, of which `before` rows came before."""
    parts = [_numbers(table.column(k), table.column_names[k], path, before, missing) for k in columns.X]
    X = np.empty((table.num_rows, len(parts)), dtype=dtype or np.result_type(np.float16, *parts))
    for column, part in enumerate(parts):
        X[:, column] = part
    y = None if columns.y is None else _labels(table.column(columns.y), str(columns.label_name), path, before)
    return X, y


def _type_of(field: Any, path: Path) -> np.dtype[Any]:
    try:
        dtype = np.dtype(field.type.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        dtype = np.dtype(object)
    return _refuse_type(dtype, field.name, field.type, path)


def _refuse_type(dtype: np.dtype[Any], name: str, type_: Any, path: Path) -> np.dtype[Any]:
    if dtype.kind not in "biuf":
        raise DataError(f"{path}: column {name!r} is of type {type_}; features must be numbers")
    return dtype


def _refuse_gaps(column: Any, name: str, path: Path, before: int) -> None:
    if column.null_count:
        row = before + int(np.argmax(column.is_null().to_numpy()))
        raise DataError(f"{path}: column {name!r}, row {row + 1}: the value is missing; {WAYS_WITH_GAPS}")


def _numbers(column: Any, name: str, path: Path, before: int, missing: Missing) -> np.ndarray[Any, Any]:
    if missing == "error":
        _refuse_gaps(column, name, path, before)
    values: np.ndarray[Any, Any] = column.to_numpy()
    _refuse_type(values.dtype, name, column.type, path)
    bad = np.isinf(values) if missing == "keep" else ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        where = f"column {name!r}, row {before + row + 1}"
        raise DataError(f"{path}: {where}: the value is {values[row]}; values must be finite")
    return values


def _labels(column: Any, name: str, path: Path, before: int) -> np.ndarray[Any, Any]:
    _refuse_gaps(column, name, path, before)
    values: np.ndarray[Any, Any] = column.to_numpy()
    if values.dtype == object and all(isinstance(value, str) for value in values):
        return values.astype(str)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{path}: the label column {name!r} is of type {column.type}; it must be numbers or text")
    return values
