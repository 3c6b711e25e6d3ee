"""Arrow data, with pyarrow where it is installed: tables and columns in memory, and Parquet and Feather files.

Numbers, and lists of numbers, are taken without a copy where that can be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.data.blocks import WHOLE, Block, Reading, Source, dropped_positions, label_position, rows_in
from saddlesvm.data.errors import WAYS_WITH_MISSING, DataError
from saddlesvm.data.streams import is_compressed, reading
from saddlesvm.data.table import Missing, bounded_classes, float_type, unique_names
from saddlesvm.runtime.extras import how_to_install

NEEDED = f"needs pyarrow: {how_to_install('files')}"


def is_arrow(data: Any) -> bool:
    """Whether an object hands out Arrow data: a table, a data frame, an array, a result of DuckDB."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_array__")


def arrow_table(data: Any) -> Any:
    """A ``pyarrow.Table`` over an object with ``__arrow_c_stream__``.

    Raises
    ------
    DataError
        pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError(f"a {type(data).__name__} {NEEDED}") from None
    return pa.table(data)


def flat_column(column: Any, name: str, where: str) -> np.ndarray[Any, Any]:
    """An Arrow column of numbers, or of lists of numbers, as an array of shape (n,) or (n, k); without a copy where the
    column is one piece without gaps.

    Raises
    ------
    DataError
        The column holds text, nested lists, lists of different lengths, or gaps in or between lists.
    """
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):  # of no pieces at all
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if not is_list(column.type):
        found: np.ndarray[Any, Any] = column.to_numpy(zero_copy_only=False)
        return found
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(f"{where}: column {name!r}, row {row + 1}: the list is missing")
    width, inner = _width_of(column, name, where), column.flatten()
    if inner.null_count or not (pa.types.is_floating(inner.type) or pa.types.is_integer(inner.type)):
        raise DataError(
            f"{where}: column {name!r} holds lists of {inner.type} with {inner.null_count} missing values; numbers are "
            "needed"
        )
    return inner.to_numpy(zero_copy_only=False).reshape(len(column), width)


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is of lists."""
    import pyarrow as pa

    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    found = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(found)


def _width_of(column: Any, name: str, where: str) -> int:
    """The one length of the lists of a column."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(column.type):
        return int(column.type.list_size)
    lengths = np.diff(column.offsets.to_numpy())
    if lengths.size and lengths.min() != lengths.max():
        row = int(np.argmax(lengths != lengths[0]))
        raise DataError(
            f"{where}: column {name!r} holds lists of {lengths[0]} and, in row {row + 1}, {lengths[row]} numbers; one "
            "length is needed"
        )
    return int(lengths[0]) if lengths.size else 0


def arrow_matrix(data: Any) -> tuple[np.ndarray[Any, Any], list[str] | None]:
    """The rows of Arrow data as a matrix of shape (n, d), and the names of its columns.

    A single column of lists is the matrix itself, without a copy, and has no names; columns of numbers are put side by
    side.

    Raises
    ------
    DataError
        pyarrow is not installed, or a column holds no numbers.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError(f"a {type(data).__name__} {NEEDED}") from None
    if not hasattr(data, "__arrow_c_stream__"):
        return flat_column(pa.array(data), "values", "X"), None
    try:
        table = pa.table(data)
    except (pa.ArrowException, TypeError, ValueError):
        return flat_column(pa.chunked_array(data), "values", "X"), None
    parts = [flat_column(table.column(k), name, "X") for k, name in enumerate(table.column_names)]
    for name, part in zip(table.column_names, parts, strict=True):
        if part.dtype.kind not in "biuf":
            raise DataError(
                f"X: column {name!r} is of type {table.schema.field(name).type}; features must be numbers: encode it "
                "first, with saddlesvm.table.encoder"
            )
    if len(parts) == 1 and parts[0].ndim == 2:
        return parts[0], None
    if any(part.ndim == 2 for part in parts):
        return np.column_stack(parts), None
    return side_by_side(parts), list(table.column_names)


def side_by_side(parts: list[np.ndarray[Any, Any]], dtype: Any = None) -> np.ndarray[Any, Any]:
    """Columns as a C-contiguous matrix, written some rows at a time: each line of the cache is then filled at once."""
    n, kind = len(parts[0]), np.dtype(dtype or np.result_type(np.float16, *parts))
    X = np.empty((n, len(parts)), dtype=kind)
    step = max(1, (1 << 20) // max(1, kind.itemsize * len(parts)))
    for start in range(0, n, step):
        block = X[start : start + step]
        for column, part in enumerate(parts):
            block[:, column] = part[start : start + step]
    return X


def table_of(batch: Any) -> Any:
    """A record batch as a ``pyarrow.Table``."""
    import pyarrow as pa

    return pa.Table.from_batches([batch])


_STRINGS = 1 << 24  # most bytes of the texts and lists in the footer, as the file states them
_VALUE_BYTES = 8
_SLACK_BYTES = 1 << 26  # bytes that any file may take in memory
_EXPANSION = 1000  # memory per byte of a file, at most, beyond these
_PACKED = 4  # memory over bytes of a Parquet file, of usual numbers and words
_STREAM = b"\xff\xff\xff\xff"  # begins an Arrow stream
_ROW_INDEX = re.compile(r"__index_level_\d+__")


class ArrowFile(NamedTuple):
    """A Parquet, Feather or Arrow file, ready to be read.

    Attributes
    ----------
    path : Path
    format : {"parquet", "arrow"}
    n_rows : int
    names : list of str
        Of its columns, but those that pandas wrote for its row index; the second of two equal names ends with ".1".
    types : list of pyarrow.DataType
        Theirs; decimals are read as float64.
    tables : callable
        Takes the approximate bytes of a table; yields ``pyarrow.Table`` objects of these columns. One of
        :data:`~saddlesvm.data.blocks.WHOLE` bytes is the whole file, mapped if it is a Feather file.
    """

    path: Path
    format: str
    n_rows: int
    names: list[str]
    types: list[Any]
    tables: Callable[[int], Generator[Any, None, None]]


def arrow_file(path: Path, found: str) -> ArrowFile:
    """A file whose format was `found`, "parquet" or "arrow".

    Raises
    ------
    DataError
        pyarrow is not installed, or the file is damaged or compressed from outside. Its tables raise it, too.
    """
    if found == "parquet":
        tables = _tables_of_parquet
        with _opened(path) as file:
            schema = file.schema_arrow
            n_rows = file.metadata.num_rows
    else:
        tables = _tables_of_ipc
        with opened_ipc(path) as file:
            schema = file.schema
            n_rows = sum(batch.num_rows for batch in file.batches())
    kept = [place for place, name in enumerate(schema.names) if name not in _index_names(schema)]
    names = unique_names([schema.names[place] for place in kept])

    def narrowed(n_bytes: int) -> Generator[Any, None, None]:
        for table in tables(path, n_bytes):
            columns = [_without_decimals(table.column(place)) for place in kept]
            yield _table(columns, names)

    return ArrowFile(path, found, n_rows, names, [_read_as(schema.types[place]) for place in kept], narrowed)


def _index_names(schema: Any) -> set[str]:
    """The columns that pandas wrote for its row index, named or not."""
    found = {name for name in schema.names if _ROW_INDEX.fullmatch(name)}
    noted = schema.pandas_metadata or {}
    return found | {one for one in noted.get("index_columns", []) if isinstance(one, str)}


def _table(columns: list[Any], names: list[str]) -> Any:
    import pyarrow as pa

    return pa.table(columns, names=names)


def _read_as(kind: Any) -> Any:
    """The type in which a column is read."""
    import pyarrow as pa

    return pa.float64() if pa.types.is_decimal(kind) else kind


def _without_decimals(column: Any) -> Any:
    """Decimals as float64; other columns as they are."""
    import pyarrow as pa

    if not pa.types.is_decimal(column.type):
        return column
    return column.cast(pa.string()).cast(pa.float64())  # by way of text: a direct cast is not the nearest number


def _tables_of_parquet(path: Path, n_bytes: int) -> Generator[Any, None, None]:
    with _opened(path) as file:
        if n_bytes == WHOLE:
            _refuse_bomb(path, file.metadata)
            yield file.read()
            return
        a_row = _PACKED * path.stat().st_size / max(1, file.metadata.num_rows) + 64
        yield from map(table_of, file.iter_batches(batch_size=rows_in(n_bytes, a_row)))


def _tables_of_ipc(path: Path, n_bytes: int) -> Generator[Any, None, None]:
    with opened_ipc(path) as file:
        if n_bytes == WHOLE:
            yield file.read_all()
            return
        for batch in file.batches():
            step = rows_in(n_bytes, batch.nbytes / max(1, batch.num_rows))
            yield from (table_of(batch.slice(start, step)) for start in range(0, batch.num_rows, step))


def arrow_source(path: Path, found: str, how: Reading) -> Source:
    """A Parquet, Feather or Arrow IPC file of numbers, or lists of numbers; a single column of lists in a Feather file
    is mapped, not copied, where it is read whole. Columns that pandas wrote for its row index are left out.

    Raises
    ------
    DataError
        As :func:`arrow_file`; or a feature column is not numeric, or has gaps that are not kept, as far as the schema
        tells. Its blocks raise it for what the rows tell.
    """
    file = arrow_file(path, found)
    columns = _columns(file, how)
    if not file.n_rows:
        raise DataError(f"{path}: holds no rows; at least one is needed")
    dtype, width = _type_and_width(file, columns)

    def blocks(n_bytes: int) -> Iterator[Block]:
        done, kept = 0, how.dtype if n_bytes == WHOLE else dtype
        for table in file.tables(n_bytes):
            X, y = _rows(table, columns, path, done, kept, how.missing)
            done += len(X)
            yield Block(X, y, None, done / file.n_rows)

    return Source(
        str(path),
        found,
        sparse=False,
        width=width,
        dtype=dtype,
        has_labels=columns.y is not None,
        n_bytes=path.stat().st_size,
        blocks=blocks,
        feature_names=_named(columns, width),
        label_name=columns.label_name,
    )


class _Columns(NamedTuple):
    """Which columns of a file are the features, and which is the label."""

    X: list[int]
    y: int | None
    feature_names: list[str]
    label_name: str | None


def _columns(file: ArrowFile, how: Reading) -> _Columns:
    names = file.names
    source = str(file.path)
    dropped = dropped_positions(how.drop_columns, names, len(names), source)
    lists = [place for place in range(len(names)) if is_list(file.types[place])]
    # lists are features, the last column too
    label = False if lists and how.label is None and len(names) - 1 in lists else how.label
    position = label_position(label, names, len(names), None if lists else how.n_features, source, dropped)
    features = [place for place in range(len(names)) if place != position and place not in dropped]
    name = None if position is None else names[position]
    return _Columns(features, position, [names[place] for place in features], name)


def _named(columns: _Columns, width: int) -> list[str] | None:
    """Names of the features; those of a list have its name and their place."""
    if width == len(columns.feature_names):
        return columns.feature_names
    if len(columns.X) == 1:
        return [f"{columns.feature_names[0]}[{k}]" for k in range(width)]
    return None


def _type_and_width(file: ArrowFile, columns: _Columns) -> tuple[np.dtype[Any], int]:
    """The float type that holds the features, and how many there are; the first row tells the length of its lists."""
    kinds = [file.types[place] for place in columns.X]
    first = None
    if any(map(is_list, kinds)):
        with closing(file.tables(1)) as tables:
            first = next(tables)
    types, width = [], 0
    for place, kind in zip(columns.X, kinds, strict=True):
        if first is not None and is_list(kind):
            part = flat_column(first.column(place), file.names[place], str(file.path))
            types.append(part.dtype)
            width += part.shape[1]
        else:
            types.append(_type_of(kind, file.names[place], file.path))
            width += 1
    return float_type(np.result_type(np.float16, *types)), width


def _refuse_bomb(path: Path, metadata: Any) -> None:
    """Refuse a file whose rows take very many times its bytes; a conversion reads any, some rows at a time."""
    promised = _VALUE_BYTES * metadata.num_rows * metadata.num_columns
    most = max(_SLACK_BYTES, _EXPANSION * path.stat().st_size)
    if promised > most:
        raise DataError(f"{path}: would take {promised} bytes in memory; {most} are allowed: convert it to a store")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A ``pyarrow.parquet.ParquetFile``."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(f"{path}: reading Parquet {NEEDED}") from None
    if is_compressed(path):
        raise DataError(f"{path}: is a compressed Parquet file; decompress it first (Parquet compresses inside)")
    limit = max(_STRINGS, path.stat().st_size)
    with (
        _damage(path, "Parquet"),
        pq.ParquetFile(path, thrift_string_size_limit=limit, thrift_container_size_limit=limit) as file,
    ):
        yield file


@contextmanager
def opened_ipc(path: Path) -> Iterator[Any]:
    """The record batches of a Feather file, an Arrow file or an Arrow stream: ``schema``, ``batches``, ``read_all``."""
    try:
        import pyarrow as pa
        from pyarrow import ipc
    except ImportError:
        raise DataError(f"{path}: reading Feather and Arrow files {NEEDED}") from None
    if is_compressed(path):
        raise DataError(f"{path}: is a compressed Arrow file; decompress it first (Arrow files compress inside)")
    with _damage(path, "Feather or Arrow IPC"), pa.memory_map(str(path)) as file:
        if file.read(4) == _STREAM:
            file.seek(0)
            with ipc.open_stream(file) as opened:
                yield _Ipc(opened.schema, lambda: iter(opened), opened.read_all)
            return
        file.seek(0)
        with ipc.open_file(file) as opened:
            count = opened.num_record_batches
            yield _Ipc(opened.schema, lambda: map(opened.get_batch, range(count)), opened.read_all)


class _Ipc(NamedTuple):
    """An Arrow file or stream; a stream is read once."""

    schema: Any
    batches: Callable[[], Iterator[Any]]
    read_all: Callable[[], Any]


@contextmanager
def _damage(path: Path, what: str) -> Iterator[None]:
    """Turn pyarrow's errors into a `DataError` that names the file."""
    import pyarrow as pa

    with reading(path):
        try:
            yield
        except (pa.ArrowException, MemoryError) as error:
            raise DataError(f"{path}: cannot be read as {what}: {str(error).splitlines()[0]}") from None


def _rows(table: Any, columns: _Columns, path: Path, before: int, dtype: Any, missing: Missing) -> tuple[Any, Any]:
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


def _type_of(kind: Any, name: str, path: Path) -> np.dtype[Any]:
    if str(kind) == "null":  # a column without any value
        return np.dtype(np.float64)
    try:
        dtype = np.dtype(kind.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        dtype = np.dtype(object)
    return _refuse_type(dtype, name, kind, path)


def _refuse_type(dtype: np.dtype[Any], name: str, type_: Any, path: Path) -> np.dtype[Any]:
    if dtype.kind not in "biuf":
        raise DataError(f"{path}: column {name!r} is of type {type_}; features must be numbers")
    return dtype


def _refuse_missing(column: Any, name: str, path: Path, before: int) -> None:
    if column.null_count:
        row = before + int(np.argmax(column.is_null().to_numpy()))
        raise DataError(f"{path}: column {name!r}, row {row + 1}: the value is missing; {WAYS_WITH_MISSING}")


def _numbers(column: Any, name: str, path: Path, before: int, missing: Missing) -> np.ndarray[Any, Any]:
    if missing == "error":
        _refuse_missing(column, name, path, before)
    values = flat_column(column, name, str(path)) if is_list(column.type) else column.to_numpy()
    _refuse_type(values.dtype, name, column.type, path)
    bad = np.isinf(values) if missing == "keep" else ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad if bad.ndim == 1 else bad.any(axis=1)))
        where, value = f"column {name!r}, row {before + row + 1}", values[row] if bad.ndim == 1 else values[bad][0]
        raise DataError(f"{path}: {where}: the value is {value}; values must be finite")
    return values


def _labels(column: Any, name: str, path: Path, before: int) -> np.ndarray[Any, Any]:
    _refuse_missing(column, name, path, before)
    values: np.ndarray[Any, Any] = column.to_numpy()
    if values.dtype == object and all(isinstance(value, str) for value in values):
        bounded_classes(list(dict.fromkeys(values.tolist())), f"{path}: {name!r}")
        return values.astype(str)
    if values.dtype.kind == "b":
        return np.where(values, "True", "False")  # as a text file spells them
    if values.dtype.kind not in "biuf":
        raise DataError(f"{path}: the label column {name!r} is of type {column.type}; it must be numbers or text")
    return values
