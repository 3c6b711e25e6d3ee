"""Labels, targets and weights of the rows, in one column or in several: checked before any work."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from saddlesvm.data.door import as_numpy, unordered


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
    targets = check_array(check_labels(y, n), ensure_2d=False, dtype=np.float64, input_name="y")
    return np.ascontiguousarray(targets)


def signs(y: np.ndarray) -> np.ndarray:
    """Labels as -1 and +1 in float64.

    Raises
    ------
    ValueError
        There are not exactly two classes.
    """
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size != 2:
        raise ValueError(f"y must hold two classes; it holds {classes.size}")
    return 2.0 * codes - 1.0


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
