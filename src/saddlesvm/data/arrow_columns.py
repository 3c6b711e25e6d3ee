"""Arrow data in memory as NumPy arrays, without a copy if possible; needs pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.data.errors import DataError, import_for_files

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES = 1 << 20  # bytes of a matrix that is filled at a time; fits into a cache; a guess


def is_arrow(data: object) -> bool:
    """Return True for Arrow data: a table, a data frame, an array, a result of DuckDB."""
    protocols = ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__")
    return any(hasattr(data, name) for name in protocols)


def flat_column(column: pa.ChunkedArray, name: str, where: str) -> np.ndarray:
    """Return a column of numbers, or lists of numbers, as an array of shape (n,) or (n, k).

    There is no copy if the column is one piece without gaps.

    Raises
    ------
    DataError
        The column holds text, nested lists, lists of different lengths, or gaps in or between
        lists.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            column = column.chunk(0)
        elif column.num_chunks:
            column = pa.concat_arrays(column.chunks)
        else:
            column = pa.array([], column.type)
    # Extension types, such as tensors of a fixed shape, wrap lists.
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if not is_list(column.type):
        numbers: np.ndarray = column.to_numpy(zero_copy_only=False)
        return numbers

    # A list for each row: the rows of a matrix if all have one length.
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise DataError(f"{where}: column {name!r}, row {row + 1}: the list is missing")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if (lengths != lengths[:1]).any():
        row = int(np.argmax(lengths != lengths[0]))
        raise DataError(
            f"{where}: column {name!r} holds lists of {lengths[0]} and, in row {row + 1}, "
            f"{lengths[row]} numbers; one length is needed"
        )
    inner = column.flatten()
    holds_numbers = pa.types.is_floating(inner.type) or pa.types.is_integer(inner.type)
    if inner.null_count or not holds_numbers:
        raise DataError(
            f"{where}: column {name!r} holds lists of {inner.type} with {inner.null_count} "
            "missing values; numbers are needed"
        )
    return inner.to_numpy(zero_copy_only=False).reshape(len(column), lengths.max(initial=0))


def is_list(arrow_type: object) -> bool:
    """Return True for an Arrow type of lists."""
    import pyarrow as pa

    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    return bool(
        pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
        or pa.types.is_fixed_size_list(arrow_type)
    )


def arrow_matrix(data: object, where: str = "X") -> tuple[np.ndarray, list[str] | None]:
    """Return the rows of Arrow data as a matrix of shape (n, d), and the names of its columns.

    A single column of lists is the matrix itself, without a copy, and has no names; columns of
    numbers are put side by side.

    Raises
    ------
    DataError
        pyarrow is not installed, or a column does not hold numbers; `where` names the data.
    """
    pa = import_for_files("pyarrow", f"a {type(data).__name__}")
    if not hasattr(data, "__arrow_c_stream__"):
        return flat_column(pa.array(data), "values", where), None
    try:
        table = pa.table(data)
    except (pa.ArrowException, TypeError, ValueError):
        # A stream of one column is not a table.
        return flat_column(pa.chunked_array(data), "values", where), None
    names = list(table.column_names)
    columns = [flat_column(table.column(k), name, where) for k, name in enumerate(names)]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "biuf":
            raise DataError(
                f"{where}: column {name!r} is of type {table.schema.field(name).type}; "
                "features must be numbers: encode it first, with saddlesvm.table.encoder"
            )
    if any(column.ndim == 2 for column in columns):
        if len(columns) == 1:
            return columns[0], None
        return np.column_stack(columns), None

    # Some rows at a time: the lines of the cache are then full before they are written back.
    X = np.empty((len(columns[0]), len(columns)), dtype=np.result_type(np.float16, *columns))
    step = max(1, _BLOCK_BYTES // (X.itemsize * len(columns)))
    for start in range(0, len(X), step):
        block = X[start : start + step]
        for k, column in enumerate(columns):
            block[:, k] = column[start : start + step]
    return X, names
