"""Inputs accepted as rows besides arrays, and the column to name where they are not numbers.

Slices are those of data sets of h5py and zarr. Rows that are dicts become sparse by scikit-learn's vectorizer. Several
stores are parts of one data set, put together into a store or for one fit.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer

from saddlesvm.data.blocks import Block, Reading, Source, check_names
from saddlesvm.data.errors import DataError
from saddlesvm.data.parquet import arrow_matrix, is_arrow
from saddlesvm.data.store import Store, is_store, joined
from saddlesvm.data.table import is_missing
from saddlesvm.rows.files import mapping_of
from saddlesvm.rows.memory_plan import available_memory, memory_bytes

SLICE_BYTES = 1 << 24  # of rows that are read or copied at a time
SHARE = 0.5  # of the memory: rows by slices up to this size are read into it, larger ones into a file


def as_matrix(X: Any, estimator: Any, *, reset: bool) -> tuple[Any, Any]:
    """Rows that are no array as what scikit-learn checks, and the names of their columns, where those have any.

    Parameters
    ----------
    X : object
        Anything but an array: a store or several, a table, rows that are dicts, and what :func:`opened` takes.
    estimator : estimator or None
        Its `memory` is what it may take; its features are the columns of rows that are dicts, unless they are `reset`.
    reset : bool

    Raises
    ------
    ValueError
        Rows that are dicts, for a function or a model that knows no names.
    """
    memory = getattr(estimator, "memory", None)
    X = joined(X, memory)[0] if are_stores(X) else X
    if isinstance(X, Store):
        X = joined([X], memory)[0] if X.n_parts > 1 else X.X
    X, names = opened(X, memory)
    if not are_dicts(X):
        return X, names_of_frame(X) if names is None else names
    if estimator is None:
        raise ValueError(
            "rows that are dicts are for fits and predictions; here, make a matrix by DictVectorizer first"
        )
    if not reset and not hasattr(estimator, "feature_names_in_"):
        raise ValueError("rows that are dicts need a model that was trained on dicts or on columns with names")
    return rows_of_dicts(X, None if reset else estimator.feature_names_in_)


def opened(X: Any, memory: Any = None) -> tuple[Any, list[str] | None]:
    """Rows as an array where they are given as something else, and the names of their columns, where those have any.

    Parameters
    ----------
    X : object
        With ``__arrow_c_stream__``, ``__arrow_c_array__`` or ``__arrow_array__``: columns of numbers, or one column of
        lists, which is taken without a copy. With ``__dlpack__``: the arrays of other libraries. With ``shape``,
        ``dtype`` and slices. A lazy frame of polars becomes a data frame. Anything else is returned as it is.
    memory : int, str or None
        What a fit may take: rows by slices that are larger than half of it are copied into a file, and mapped.

    Raises
    ------
    ValueError
        Columns that are no numbers, or pyarrow, which is needed, is not installed.
    """
    if isinstance(X, np.ndarray) or sparse.issparse(X) or isinstance(X, (list, tuple)):
        return X, None
    if hasattr(X, "__dask_graph__"):
        return X, None
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        X = X.collect()
    if is_arrow(X) and (not _is_data_frame(X) or _has_lists(X)):
        return arrow_matrix(X)
    X = as_numpy(X)
    if _is_sliced(X):
        return _read(X, None if memory is None else memory_bytes(memory)), None
    return X, None


def as_numpy(values: Any) -> Any:
    """An array of another library as NumPy's, without a copy where DLPack hands it out; anything else as it is.

    An array that DLPack does not hand out is returned as it is, too: scikit-learn converts it, or says why it cannot.
    """
    if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
        return values
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return np.asarray(values)  # its DLPack has numbers alone, and NumPy warns where it fails
    try:
        return np.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return values


def _is_data_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars, which scikit-learn takes apart, unless it has lists."""
    return hasattr(X, "dtypes") and hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "to_pandas"))


def names_of_frame(X: Any) -> list[str] | None:
    """The names of the columns of a data frame other than pandas', which not every scikit-learn notes; else None."""
    if not _is_data_frame(X) or hasattr(X, "iloc"):
        return None
    names = list(X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def _has_lists(X: Any) -> bool:
    """Whether a column of a data frame holds lists."""
    for name, kind in zip(X.columns, X.dtypes, strict=True):
        text = str(kind).lower()
        if text.startswith(("list", "array", "fixed_size_list")) or "list<" in text:
            return True
        if text == "object" and len(X) and isinstance(X[name].iloc[0], (list, tuple, np.ndarray)):
            return True
    return False


def _is_sliced(X: Any) -> bool:
    """Whether X is rows that are read by slices: a data set of HDF5, an array of zarr."""
    if hasattr(X, "iloc") or hasattr(X, "__dlpack__") or hasattr(X, "__array_interface__"):
        return False
    shape = getattr(X, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2 and hasattr(X, "dtype") and hasattr(X, "__getitem__")


def by_rows(X: np.ndarray[Any, Any], memory: Any = None) -> np.ndarray[Any, Any]:
    """A matrix that is mapped from a file column by column (``np.save`` of an array in Fortran's order) as rows in C
    order, read some at a time: in memory or, where that is too small, in a file. Others are returned as they are."""
    if X.flags.c_contiguous or not X.flags.f_contiguous or mapping_of(X) is None:
        return X
    return _read(X, available_memory() if memory is None else memory_bytes(memory))


def _read(X: Any, memory: int | None) -> np.ndarray[Any, Any]:
    """All rows, in memory or, where that is too small, in a file that goes when the array goes."""
    shape, dtype = (int(X.shape[0]), int(X.shape[1])), np.dtype(X.dtype)
    a_row = max(1, shape[1] * dtype.itemsize)
    rows = np.empty(shape, dtype) if memory is None or shape[0] * a_row <= SHARE * memory else _in_file(shape, dtype)
    step = max(1, SLICE_BYTES // a_row)
    for start in range(0, shape[0], step):
        rows[start : start + step] = X[start : start + step]
    if isinstance(rows, np.memmap):
        rows.flush()
    return rows


def _in_file(shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    handle, path = tempfile.mkstemp(prefix="saddlesvm-", suffix=".rows")
    os.close(handle)
    rows: np.memmap[Any, Any] = np.memmap(path, dtype=dtype, mode="w+", shape=shape)
    weakref.finalize(rows.base, _removed, path)
    return rows


def _removed(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def are_dicts(X: Any) -> bool:
    """Whether X is a list of rows that are dicts."""
    return isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], Mapping)


def rows_of_dicts(X: Any, names: Any = None) -> tuple[sparse.csr_array, np.ndarray]:
    """The rows as a CSR array, and the names of its columns.

    A number is the value of its feature, a text makes a feature ``name=text`` of value 1; what a row does not name is
    zero.

    Parameters
    ----------
    X : list of dicts
    names : sequence of str, optional
        Of the columns: features with other names are left out, as by DictVectorizer. Those of the rows when left out.

    Raises
    ------
    ValueError
        A row is no dict, or a value is neither a number nor text.
    """
    odd = next((i for i, row in enumerate(X) if not isinstance(row, Mapping)), None)
    if odd is not None:
        raise ValueError(f"row {odd} is not a dict but {type(X[odd]).__name__}: either all rows are dicts, or none")
    maker = DictVectorizer()
    try:
        if names is None:
            made = maker.fit_transform(X)
        else:
            maker.feature_names_ = [str(name) for name in names]
            maker.vocabulary_ = {name: k for k, name in enumerate(maker.feature_names_)}
            made = maker.transform(X)
    except TypeError as error:
        raise ValueError(f"a row that is a dict has numbers or texts by names that are texts: {error}") from None
    return sparse.csr_array(made), np.array(maker.feature_names_, dtype=object)


TEXT = "could not convert string to float"
TIMES = {"M": "dates", "m": "spans of time"}


@contextmanager
def naming_columns(X: Any) -> Iterator[None]:
    """Where a conversion of `X` to numbers fails, raise an error that names the first column that holds none.

    Raises
    ------
    ValueError
        Another error was raised, and X is a table with a column that is not of numbers, or holds text.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        message = next(_not_numbers(X), None)
        if message is None and str(error).startswith(TEXT):
            message = f"{error}: features must be numbers; make some of text first (TfidfVectorizer, OneHotEncoder)"
        if message is None:
            raise
        raise ValueError(message) from error


def _not_numbers(X: Any) -> Iterator[str]:
    """A message for each column of a table that holds no numbers."""
    for name, column in _columns(X):
        values = np.asarray(column)
        what = TIMES.get(values.dtype.kind) or _odd_value(values)
        if what:
            yield (
                f"column {name!r} of X holds {what}: features must be numbers; encode it first (OneHotEncoder or "
                "another transformer, before the estimator in a pipeline), or leave it out"
            )


def _columns(X: Any) -> Iterable[tuple[Any, Any]]:
    """Names and columns of a pandas, polars or like table; nothing for arrays."""
    names = getattr(X, "columns", None)
    if names is None:
        return ()
    return X.items() if hasattr(X, "items") else ((name, X[name]) for name in names)


def _odd_value(values: np.ndarray) -> str | None:
    """The first value that is no number, in words; None where all are."""
    if values.dtype.kind in "biuf":
        return None
    for value in values.ravel().tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            if isinstance(value, str):
                return f"text, such as {value[:40]!r}"
            if not is_missing(value):
                return f"values of type {type(value).__name__}"
    return None


def store_source(path: Path, how: Reading) -> Source:
    """The rows of a store some at a time."""
    store = Store(path)
    has_labels = store.header["labels"] is not None and how.label is not False

    def blocks(n_bytes: int) -> Iterator[Block]:
        for start, stop in store.blocks(n_bytes):
            X, labels, weights = store.read(start, stop)
            yield Block(X, labels if has_labels else None, weights, stop / len(store))

    return Source(
        str(path),
        "store",
        sparse=store.layout == "csr",
        width=store.shape[1],
        dtype=store.dtype,
        has_labels=has_labels,
        n_bytes=store.n_bytes,
        blocks=blocks,
        feature_names=store.header.get("feature_names"),
        label_name=store.header.get("label_name"),
        has_weights=bool(store.header["weights"]),
        zero_based=store.zero_based,
    )


def check_together(sources: Sequence[Source]) -> None:
    """Raise a `DataError` for sources whose rows cannot stand in one matrix."""
    first = sources[0]
    for source in sources[1:]:
        if source.sparse != first.sparse:
            kinds = "sparse rows" if source.sparse else "dense rows"
            raise DataError(f"{source.name}: holds {kinds}, {first.name} does not; a store holds one of the two")
        if not source.sparse and source.width != first.width:
            raise DataError(f"{source.name}: has {source.width} features; {first.name} has {first.width}")
        if source.has_labels != first.has_labels or source.has_weights != first.has_weights:
            what = "labels" if source.has_labels != first.has_labels else "weights"
            raise DataError(f"{source.name} and {first.name}: one has {what} and the other has none")
        check_names(source.name, source.feature_names, first.name, first.feature_names)


def are_stores(X: Any) -> bool:
    """Whether X is a list of stores, opened or by their paths."""
    if not isinstance(X, (list, tuple)) or not X:
        return False
    return all(isinstance(one, Store) or (isinstance(one, (str, os.PathLike)) and is_store(one)) for one in X)


def parts_of(X: Any, y: Any, sample_weight: Any, memory: Any = None) -> tuple[Any, Any, Any]:
    """Rows, labels and weights; without `y`, a store as X supplies its labels, and its weights if none are given.

    Several stores in a list are one below the other, in the `memory` that a fit may take or in a file.
    """
    if are_stores(X):
        X, labels, weights = joined(X, memory)
        if y is not None:
            return X, y, sample_weight
        return X, labels, weights if sample_weight is None else sample_weight
    if isinstance(X, Store) and y is None:
        rows = joined([X], memory)[0] if X.n_parts > 1 else X.X
        return rows, X.y, X.sample_weight if sample_weight is None else sample_weight
    return X, y, sample_weight
