"""Open Parquet, Feather and Arrow files as Arrow tables, some rows at a time; needs pyarrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from saddlesvm.data.blocks import WHOLE, rows_in
from saddlesvm.data.data_table import unique_names
from saddlesvm.data.errors import DataError, import_for_files
from saddlesvm.data.streams import is_compressed, reading

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_VALUE_BYTES = 8  # bytes of a value in memory
_FOOTER_BYTES = 1 << 24  # bytes of the texts and lists in the footer, at most; a guess
_SLACK_BYTES = 1 << 26  # bytes that any file may take in memory, however small it is; a guess
_EXPANSION = 1000  # bytes of memory for each byte of a file, beyond the slack; a guess
_PACKED = 4  # bytes of memory for each byte of a Parquet file, of usual numbers and words; a guess
_LEAST_ROW_BYTES = 64  # bytes of a row in memory, at least; a guess
_STREAM = b"\xff\xff\xff\xff"  # the first bytes of an Arrow stream
_ROW_INDEX = re.compile(r"__index_level_\d+__")


class ArrowFile(NamedTuple):
    """A Parquet, Feather or Arrow file, ready to be read.

    Attributes
    ----------
    path : Path
    format : {"parquet", "arrow"}
    n_rows : int
    names : list of str
        Names of the columns, without the columns of pandas' row index; the second of
        two equal names ends with ".1".
    types : list of pyarrow.DataType
        Types of these columns; decimals are read as float64.
    tables : callable
        Takes the approximate bytes of a table, and yields ``pyarrow.Table`` objects of these
        columns. A table of :data:`~saddlesvm.data.blocks.WHOLE` bytes is the whole file, mapped if
        it is a Feather file.
    """

    path: Path
    format: str
    n_rows: int
    names: list[str]
    types: list[Any]
    tables: Callable[[int], Generator[Any, None, None]]


def arrow_file(path: Path, format: str) -> ArrowFile:
    """Open a file in the format "parquet" or "arrow".

    Raises
    ------
    DataError
        pyarrow is not installed, or the file is damaged or compressed from outside. Its tables
        raise it, too.
    """
    if format == "parquet":
        read_tables = _tables_of_parquet
        with _open_parquet(path) as file:
            schema = file.schema_arrow
            n_rows = file.metadata.num_rows
    else:
        read_tables = _tables_of_ipc
        with _open_ipc(path) as table:
            schema = table.schema
            n_rows = table.num_rows
    # Leave out the row index of pandas, and make names unique.
    index_names = _index_names(schema)
    kept = [k for k, name in enumerate(schema.names) if name not in index_names]
    names = unique_names([schema.names[k] for k in kept])

    def tables(n_bytes: int) -> Generator[pa.Table, None, None]:
        import pyarrow as pa

        for table in read_tables(path, n_bytes):
            columns = [_without_decimals(table.column(k)) for k in kept]
            yield pa.table(columns, names=names)

    types = [_type_as_read(schema.types[k]) for k in kept]
    return ArrowFile(path, format, n_rows, names, types, tables)


def _index_names(schema: pa.Schema) -> set[str]:
    """Return the names of the columns that pandas wrote for its row index."""
    names = {name for name in schema.names if _ROW_INDEX.fullmatch(name)}
    noted = schema.pandas_metadata or {}
    return names | {name for name in noted.get("index_columns", []) if isinstance(name, str)}


def _type_as_read(arrow_type: object) -> pa.DataType:
    """Return the type in which a column is read."""
    import pyarrow as pa

    if pa.types.is_decimal(arrow_type):
        return pa.float64()
    return arrow_type


def _without_decimals(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return decimals as float64, and other columns as they are."""
    import pyarrow as pa

    if not pa.types.is_decimal(column.type):
        return column
    # By way of text: a direct cast does not give the nearest number.
    return column.cast(pa.string()).cast(pa.float64())


def _tables_of_parquet(path: Path, n_bytes: int) -> Generator[pa.Table, None, None]:
    """Yield tables of about `n_bytes` of a Parquet file."""
    import pyarrow as pa

    with _open_parquet(path) as file:
        if n_bytes == WHOLE:
            _refuse_huge(path, file.metadata)
            yield file.read()
            return
        row_bytes = _PACKED * path.stat().st_size / max(1, file.metadata.num_rows)
        step = rows_in(n_bytes, row_bytes + _LEAST_ROW_BYTES)
        for batch in file.iter_batches(batch_size=step):
            yield pa.Table.from_batches([batch])


def _tables_of_ipc(path: Path, n_bytes: int) -> Generator[pa.Table, None, None]:
    """Yield tables of about `n_bytes` of a Feather or Arrow file, which is mapped."""
    with _open_ipc(path) as table:
        step = rows_in(n_bytes, table.nbytes / max(1, table.num_rows))
        for start in range(0, table.num_rows, step):
            yield table.slice(start, step)


def _refuse_huge(path: Path, metadata: pq.FileMetaData) -> None:
    """Refuse a file whose rows take very many times its bytes; a conversion reads it in parts."""
    promised = _VALUE_BYTES * metadata.num_rows * metadata.num_columns
    most = max(_SLACK_BYTES, _EXPANSION * path.stat().st_size)
    if promised > most:
        raise DataError(
            f"{path}: would take {promised} bytes in memory; {most} are allowed: "
            "convert it to a store (saddlesvm convert)"
        )


@contextmanager
def _open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a ``pyarrow.parquet.ParquetFile``."""
    import_for_files("pyarrow", f"{path}: reading Parquet")
    import pyarrow.parquet as pq

    if is_compressed(path):
        raise DataError(
            f"{path}: is a compressed Parquet file; decompress it first (Parquet compresses inside)"
        )
    # A damaged footer may claim any size: allow no more than the file has.
    limit = max(_FOOTER_BYTES, path.stat().st_size)
    limits = {"thrift_string_size_limit": limit, "thrift_container_size_limit": limit}
    with _arrow_errors(path, "Parquet"), pq.ParquetFile(path, **limits) as file:
        yield file


@contextmanager
def _open_ipc(path: Path) -> Iterator[pa.Table]:
    """Open a Feather file, an Arrow file or an Arrow stream, mapped; yields the whole table."""
    pa = import_for_files("pyarrow", f"{path}: reading Feather and Arrow files")
    from pyarrow import ipc

    if is_compressed(path):
        raise DataError(
            f"{path}: is a compressed Arrow file; decompress it first (Arrow files compress inside)"
        )
    with _arrow_errors(path, "Feather or Arrow IPC"), pa.memory_map(str(path)) as raw:
        is_stream = raw.read(4) == _STREAM
        raw.seek(0)
        open_ipc = ipc.open_stream if is_stream else ipc.open_file
        with open_ipc(raw) as file:
            yield file.read_all()


@contextmanager
def _arrow_errors(path: Path, what: str) -> Iterator[None]:
    """Turn pyarrow's errors into a `DataError` that names the file."""
    import pyarrow as pa

    with reading(path):
        try:
            yield
        except (pa.ArrowException, MemoryError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{path}: cannot be read as {what}: {reason}") from None
