"""Inputs accepted as rows besides arrays, and the column to name where they are not numbers.

Slices are those of data sets of h5py and zarr. Rows that are dicts become sparse by scikit-learn's vectorizer. Labels,
targets and weights of the rows, in one column or in several, are checked before any work.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from saddlesvm.data.column_kinds import is_missing
from saddlesvm.data.parquet import arrow_matrix, is_arrow
from saddlesvm.rows.files import mapping_of
from saddlesvm.rows.memory_plan import available_memory, memory_bytes

SLICE_BYTES = 1 << 24  # of rows that are read by slices, at a time
SHARE = 0.5  # of the memory: rows by slices up to this size are read into it, larger ones into a file


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


def unordered(labels: np.ndarray) -> str | None:
    """Why labels of type object are no classes: one is missing, or they are of several types; None where neither."""
    first: Any = None
    for row, label in enumerate(labels.tolist() if labels.dtype.kind == "O" else ()):
        if is_missing(label):
            return f"y holds {label!r} in row {row}, and every row needs a label"
        first = label if row == 0 else first
        if isinstance(label, str) != isinstance(first, str):
            return f"y holds {first!r} and {label!r}, and labels must be all text or all numbers"
    return None


def check_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Row weights as float64 of shape (n,), or None.

    Raises
    ------
    ValueError
        Wrong shape or length, NaN, infinity, a negative weight, or nothing but zeros.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight, dtype=np.float64)
    weights = check_array(as_numpy(sample_weight), ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weights.size != n:
        raise ValueError(f"sample_weight has {weights.size} entries; X has {n} rows")
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative; entry {int(np.argmin(weights))} is {weights.min():g}")
    if not weights.any():
        raise ValueError("sample_weight is zero everywhere: no row is left to learn from")
    return weights


def check_labels(y: Any, n: int) -> np.ndarray:
    """Labels or targets of shape (n,), still in their own type.

    Raises
    ------
    ValueError
        No labels, more than one column, or a length other than n.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biufU"
    labels = y if plain else column_or_1d(as_numpy(y), warn=True)
    if labels.size != n:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {n} rows, y {labels.size}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: labels and targets must be finite.")
    return labels


def encoded(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes, ascending, and the number of each label's; whole numbers are distinguished without sorting.

    Raises
    ------
    ValueError
        The labels are not classes: numbers with fractions, or of a type that has no order.
    """
    if labels.dtype.kind in "biuf":
        low, high = labels.min(), labels.max()
        upper = labels == high
        two = low != high and np.count_nonzero(labels == low) + np.count_nonzero(upper) == labels.size
        if two and low == np.rint(low) and high == np.rint(high):
            return np.array([low, high], dtype=labels.dtype), upper.view(np.int8)
        if np.can_cast(labels.dtype, np.int64) and 2 * (int(high) - int(low)) < labels.size:
            return _looked_up(labels, int(low))
    try:
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
    except (TypeError, ValueError) as error:
        message = unordered(labels)
        if message is None:
            raise
        raise ValueError(f"Unknown label type: {message}") from error
    return classes, _narrow(codes)


def _looked_up(labels: np.ndarray, low: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes and codes of whole numbers that lie close together, `low` the smallest."""
    places = labels.astype(np.int64) - low
    present = np.bincount(places) > 0
    classes = (np.flatnonzero(present) + low).astype(labels.dtype)
    return classes, _narrow((np.cumsum(present) - 1)[places])


def _narrow(codes: np.ndarray) -> np.ndarray:
    """Codes in the smallest signed type that holds them."""
    return codes.astype(np.promote_types(np.min_scalar_type(codes.max(initial=0)), np.int8))


def codes_among(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The number of each label's class among `classes`, which are ascending.

    Raises
    ------
    ValueError
        A label is none of them.
    """
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(f"y holds {unknown.tolist()[0]!r}, which is not among the classes {classes.tolist()}")
    return np.searchsorted(classes, labels)


def check_targets(y: Any, n: int) -> np.ndarray:
    """Regression targets as finite float64 of shape (n,).

    Raises
    ------
    ValueError
        As for labels, or not numbers, NaN or infinity.
    """
    targets = check_labels(y, n)
    if targets.dtype.kind not in "biuf":
        try:
            targets = check_array(targets, ensure_2d=False, dtype=np.float64, input_name="y")
        except ValueError as error:
            raise ValueError(f"y must hold numbers, the targets of a regression: {error}") from None
    return np.ascontiguousarray(targets, dtype=np.float64)


def has_columns(y: Any) -> bool:
    """Whether labels or targets come in several columns: a sparse matrix, or rows of two values or more."""
    if sparse.issparse(y):
        return True
    if isinstance(y, (list, tuple)):
        return len(y) > 0 and isinstance(y[0], (list, tuple, np.ndarray)) and np.ndim(y[0]) == 1 and len(y[0]) > 1
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] > 1


def refuse_columns(y: Any, what: str) -> None:
    """Raise ValueError, with what cannot be done, for labels or targets of several columns."""
    if has_columns(y):
        raise ValueError(f"{what} needs a y of shape (n,); this one has several columns")


def check_indicator(y: Any, n: int) -> sparse.csc_array:
    """An indicator matrix as a CSC array of int8, shape (n, k), that holds ones only.

    Parameters
    ----------
    y : array-like or sparse matrix of shape (n, k)
        1 where a row has the label of the column, else 0.
    n : int
        Rows of the data.

    Raises
    ------
    ValueError
        A length other than n, a single column, or values other than 0 and 1.
    """
    labels = y if sparse.issparse(y) else check_array(as_numpy(y), dtype=None, input_name="y")
    _check_rows(labels, n)
    if labels.shape[1] < 2:
        raise ValueError("a sparse y needs two columns or more; give one column as an array of shape (n,)")
    values = labels.data if sparse.issparse(labels) else labels
    if values.dtype.kind not in "biuf" or not ((values == 0) | (values == 1)).all():
        raise ValueError(
            f"y of shape {labels.shape} must be an indicator matrix, of 0 and 1 only: a column for each label "
            "(sklearn.preprocessing.MultiLabelBinarizer makes one); several columns of classes are not supported"
        )
    ones = sparse.csc_array(labels).astype(np.int8)
    ones.eliminate_zeros()
    return ones


def check_target_columns(y: Any, n: int) -> np.ndarray:
    """Regression targets of several columns as finite float64, shape (n, k), each column contiguous.

    Raises
    ------
    ValueError
        A length other than n, a sparse matrix, values that are not numbers, NaN or infinity.
    """
    if sparse.issparse(y):
        raise ValueError("targets must be dense: a sparse y is for labels (LinearSVC)")
    targets = check_array(as_numpy(y), dtype=np.float64, order="F", input_name="y")
    _check_rows(targets, n)
    return targets


def _check_rows(y: Any, n: int) -> None:
    if y.shape[0] != n:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {n} rows, y {y.shape[0]}")
