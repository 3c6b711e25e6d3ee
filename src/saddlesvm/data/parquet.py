"""Parquet and Feather files of numbers, and of lists of numbers, read with pyarrow where it is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.data.arrow import flat_column, is_list, opened_ipc, side_by_side, table_of
from saddlesvm.data.blocks import Block, Source, rows_in
from saddlesvm.data.columns import dropped_positions, label_position
from saddlesvm.data.errors import WAYS_WITH_GAPS, DataError
from saddlesvm.data.streams import is_compressed, reading
from saddlesvm.data.table import Label, Missing, Raw, float_type

__all__ = ["ipc_source", "opened_parquet", "parquet_source", "read_ipc", "read_parquet"]

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
    """Read a Parquet file of numbers, or lists of numbers; columns that pandas wrote for its row index are left out.

    Raises
    ------
    DataError
        pyarrow is not installed, the file is damaged, a feature column is not numeric, or has gaps that are not kept.
    """
    with _opened(path) as file:
        _refuse_bomb(path, file.metadata)
        table = file.read()
    return _raw(table, path, label, n_features, dtype, missing, drop_columns)


def read_ipc(
    path: Path,
    *,
    label: Label = None,
    n_features: int | None = None,
    dtype: Any = None,
    missing: Missing = "error",
    drop_columns: Sequence[str | int] = (),
) -> Raw:
    """Read a Feather or Arrow IPC file as :func:`read_parquet` does; a single column of lists is mapped, not copied.

    Raises
    ------
    DataError
        As :func:`read_parquet`.
    """
    with opened_ipc(path) as file:
        table = file.read_all()
    return _raw(table, path, label, n_features, dtype, missing, drop_columns)


def _raw(
    table: Any, path: Path, label: Label, n_features: int | None, dtype: Any, missing: Missing,
    drop_columns: Sequence[str | int],
) -> Raw:  # fmt: skip
    if table.num_rows == 0:
        raise DataError(f"{path}: holds no rows; at least one is needed")
    columns = _columns(table.schema, path, label, n_features, drop_columns)
    X, y = _rows(table, columns, path, 0, dtype, missing)
    return Raw(X, y, _named(columns, table.schema, X.shape[1]), columns.label_name)


def _named(columns: _Columns, schema: Any, width: int) -> list[str] | None:
    """Names of the features; those of a list have its name and their place."""
    if width == len(columns.feature_names):
        return columns.feature_names
    if len(columns.X) == 1:
        return [f"{columns.feature_names[0]}[{k}]" for k in range(width)]
    return None


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
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        first = next(file.iter_batches(batch_size=1), None)
    columns = _columns(schema, path, label, n_features, drop_columns)

    def batches(n_bytes: int) -> Iterator[Any]:
        with _opened(path) as file:
            yield from file.iter_batches(batch_size=rows_in(n_bytes, 2 * path.stat().st_size / max(1, n_rows) + 64))

    return _source(path, "parquet", columns, schema, first, n_rows, batches, missing)


def ipc_source(
    path: Path,
    *,
    label: Label = None,
    n_features: int | None = None,
    missing: Missing = "error",
    drop_columns: Sequence[str | int] = (),
) -> Source:
    """A Feather or Arrow IPC file some rows at a time; see :func:`read_ipc`."""
    with opened_ipc(path) as file:
        schema = file.schema
        counts = [file.get_batch(k).num_rows for k in range(file.num_record_batches)]
        first = next((file.get_batch(k).slice(0, 1) for k, count in enumerate(counts) if count), None)
    columns = _columns(schema, path, label, n_features, drop_columns)

    def batches(n_bytes: int) -> Iterator[Any]:
        with opened_ipc(path) as file:
            for k in range(file.num_record_batches):
                batch = file.get_batch(k)
                step = rows_in(n_bytes, batch.nbytes / max(1, batch.num_rows))
                yield from (batch.slice(start, step) for start in range(0, batch.num_rows, step))

    return _source(path, "arrow", columns, schema, first, sum(counts), batches, missing)


def _source(
    path: Path, found: str, columns: _Columns, schema: Any, first: Any, n_rows: int,
    batches: Callable[[int], Iterator[Any]], missing: Missing,
) -> Source:  # fmt: skip
    """The source of a file whose first row, columns and batches are known."""
    if first is None:
        raise DataError(f"{path}: holds no rows; at least one is needed")
    fields = list(schema)
    parts = [flat_column(first.column(k), fields[k].name, str(path)) for k in columns.X]
    paired = zip(columns.X, parts, strict=True)
    types = [part.dtype if part.ndim == 2 else _type_of(fields[k], path) for k, part in paired]
    dtype, width = (
        float_type(np.result_type(np.float16, *types)),
        sum(1 if one.ndim == 1 else one.shape[1] for one in parts),
    )

    def blocks(n_bytes: int) -> Iterator[Block]:
        done = 0
        for batch in batches(n_bytes):
            X, y = _rows(table_of(batch), columns, path, done, dtype, missing)
            done += len(X)
            yield Block(X, y, None, done / n_rows)

    return Source(
        str(path),
        found,
        sparse=False,
        width=width,
        dtype=dtype,
        has_labels=columns.y is not None,
        n_bytes=path.stat().st_size,
        blocks=blocks,
        feature_names=_named(columns, schema, width),
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
    every = list(schema.names)  # each call of `names` lists all of them
    kept = [k for k, name in enumerate(every) if not _ROW_INDEX.fullmatch(name)]
    names = [every[k] for k in kept]
    dropped = dropped_positions(drop_columns, names, len(names), str(path))
    lists = [k for k, one in enumerate(kept) if is_list(schema.field(one).type)]
    if lists and label is None and len(names) - 1 in lists:
        label = False  # lists are features
    position = label_position(label, names, len(names), None if lists else n_features, str(path), dropped)
    features = [k for k in range(len(names)) if k != position and k not in dropped]
    y, name = (None, None) if position is None else (kept[position], names[position])
    return _Columns([kept[k] for k in features], y, [names[k] for k in features], name)


def _rows(
    table: Any, columns: _Columns, path: Path, before: int, dtype: Any, missing: Missing = "error"
) -> tuple[Any, Any]:
    """Features and labels of some rows, of which `before` rows came before; a single list of numbers as it is."""
    named = zip(columns.X, columns.feature_names, strict=True)
    parts = [_numbers(table.column(k), name, path, before, missing) for k, name in named]
    if len(parts) == 1 and parts[0].ndim == 2:
        X = parts[0] if dtype is None else parts[0].astype(dtype, copy=False)
    elif any(part.ndim == 2 for part in parts):
        X = np.column_stack(parts)
    else:
        X = side_by_side(parts, dtype)
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
    values = flat_column(column, name, str(path)) if is_list(column.type) else column.to_numpy()
    _refuse_type(values.dtype, name, column.type, path)
    bad = np.isinf(values) if missing == "keep" else ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad if bad.ndim == 1 else bad.any(axis=1)))
        where, value = f"column {name!r}, row {before + row + 1}", values[row] if bad.ndim == 1 else values[bad][0]
        raise DataError(f"{path}: {where}: the value is {value}; values must be finite")
    return values


def _labels(column: Any, name: str, path: Path, before: int) -> np.ndarray[Any, Any]:
    _refuse_gaps(column, name, path, before)
    values: np.ndarray[Any, Any] = column.to_numpy()
    if values.dtype == object and all(isinstance(value, str) for value in values):
        return values.astype(str)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{path}: the label column {name!r} is of type {column.type}; it must be numbers or text")
    return values
