"""Arrow data in memory, with pyarrow where it is installed: tables, and numbers without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.data.errors import DataError

NEEDED = 'needs pyarrow: pip install "saddlesvm[parquet]"'


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
