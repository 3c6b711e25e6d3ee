"""Check labels, targets and weights of rows: bad values raise their error here, before any work."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from saddlesvm.data.data_table import is_missing
from saddlesvm.data.inputs import as_numpy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from saddlesvm.runtime.data_types import LabelsLike


def explain_unordered(labels: np.ndarray) -> str | None:
    """Say why labels of type object cannot be classes; return None if that is not the reason."""
    if labels.dtype.kind != "O":
        return None
    first: Any = None
    for row, label in enumerate(labels.tolist()):
        if is_missing(label):
            return f"y holds {label!r} in row {row}, and every row needs a label"
        if row == 0:
            first = label
        if isinstance(label, str) != isinstance(first, str):
            return f"y holds {first!r} and {label!r}, and labels must be all text or all numbers"
    return None


def check_weights(sample_weight: ArrayLike | None, n: int) -> np.ndarray | None:
    """Return weights of rows as float64 of shape (n,), or None.

    Raises
    ------
    ValueError
        Wrong shape or length, NaN, infinity, a negative weight, or nothing but zeros.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight, dtype=np.float64)
    weights = check_array(
        as_numpy(sample_weight), ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weights.size != n:
        raise ValueError(f"sample_weight has {weights.size} entries; X has {n} rows")
    if (weights < 0).any():
        entry = int(np.argmin(weights))
        raise ValueError(f"sample_weight must not be negative; entry {entry} is {weights.min():g}")
    if not weights.any():
        raise ValueError("sample_weight is zero everywhere: no row is left to learn from")
    return weights


def check_labels(y: Any, n: int) -> np.ndarray:
    """Return labels or targets of shape (n,), still in their own type.

    Raises
    ------
    ValueError
        No labels, more than one column, or a length other than n.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    # The usual arrays need none of scikit-learn's checks, which take longer than a small fit.
    is_plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biufU"
    labels = y if is_plain else column_or_1d(as_numpy(y), warn=True)
    _check_length(labels.size, n)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: labels and targets must be finite.")
    return labels


def _check_length(n_labels: int, n: int) -> None:
    """Raise ValueError, in scikit-learn's words, unless there are n labels."""
    if n_labels != n:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n} rows, y {n_labels}"
        )


def encode_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes in ascending order, and the position of each label's class among them.

    Raises
    ------
    ValueError
        The labels are not classes: numbers with fractions, or of a type that has no order.
    """
    # Two whole numbers, or whole numbers close together, are distinguished without sorting.
    if labels.dtype.kind in "biuf":
        low = labels.min()
        high = labels.max()
        is_high = labels == high
        n_ends = np.count_nonzero(labels == low) + np.count_nonzero(is_high)
        has_two_values = low != high and n_ends == labels.size
        if has_two_values and low == np.rint(low) and high == np.rint(high):
            return np.array([low, high], dtype=labels.dtype), is_high.view(np.int8)
        if np.can_cast(labels.dtype, np.int64) and 2 * (int(high) - int(low)) < labels.size:
            return _encode_close_numbers(labels, int(low))
    try:
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
    except (TypeError, ValueError) as error:
        message = explain_unordered(labels)
        if message is None:
            raise
        raise ValueError(f"Unknown label type: {message}") from error
    return classes, _shrink_codes(codes)


def _encode_close_numbers(labels: np.ndarray, low: int) -> tuple[np.ndarray, np.ndarray]:
    """Return classes and codes of whole numbers that lie close together, `low` the smallest."""
    offsets = labels.astype(np.int64) - low
    is_present = np.bincount(offsets) > 0
    classes = (np.flatnonzero(is_present) + low).astype(labels.dtype)
    code_of_offset = np.cumsum(is_present) - 1
    return classes, _shrink_codes(code_of_offset[offsets])


def _shrink_codes(codes: np.ndarray) -> np.ndarray:
    """Return codes in the smallest signed type that holds them."""
    return codes.astype(np.promote_types(np.min_scalar_type(codes.max(initial=0)), np.int8))


def find_codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the position of each label's class among `classes`, which ascend.

    Raises
    ------
    ValueError
        A label is not among the classes.
    """
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(
            f"y holds {unknown.tolist()[0]!r}, which is not among the classes {classes.tolist()}"
        )
    return np.searchsorted(classes, labels)


def check_targets(y: object, n: int) -> np.ndarray:
    """Return regression targets as finite float64 of shape (n,).

    Raises
    ------
    ValueError
        As for labels, or values that are not numbers.
    """
    targets = check_labels(y, n)
    if targets.dtype.kind not in "biuf":
        try:
            targets = check_array(targets, ensure_2d=False, dtype=np.float64, input_name="y")
        except ValueError as error:
            raise ValueError(f"y must hold numbers, the targets of a regression: {error}") from None
    return np.ascontiguousarray(targets, dtype=np.float64)


def has_columns(y: LabelsLike) -> bool:
    """Return True for labels of several columns: a sparse matrix, or rows of several values."""
    if sparse.issparse(y):
        return True
    if isinstance(y, (list, tuple)):
        first = y[0] if len(y) > 0 else None
        if not isinstance(first, (list, tuple, np.ndarray)):
            return False
        return np.ndim(first) == 1 and len(first) > 1
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] > 1


def refuse_columns(y: LabelsLike, what: str) -> None:
    """Raise ValueError, with what cannot be done, for labels or targets of several columns."""
    if has_columns(y):
        raise ValueError(f"{what} needs a y of shape (n,); this one has several columns")


def check_indicator(y: Any, n: int) -> sparse.csc_array:
    """Return an indicator matrix as a CSC array of int8, shape (n, k), that holds 1 only.

    Parameters
    ----------
    y : array-like or sparse matrix of shape (n, k)
        1 if a row has the label of the column, else 0.
    n : int
        Rows of the data.

    Raises
    ------
    ValueError
        A length other than n, a single column, or values other than 0 and 1.
    """
    labels = y if sparse.issparse(y) else check_array(as_numpy(y), dtype=None, input_name="y")
    _check_length(labels.shape[0], n)
    if labels.shape[1] < 2:
        raise ValueError(
            "a sparse y needs two columns or more; give one column as an array of shape (n,)"
        )
    values = labels.data if sparse.issparse(labels) else labels
    if values.dtype.kind not in "biuf" or not ((values == 0) | (values == 1)).all():
        raise ValueError(
            f"y of shape {labels.shape} must be an indicator matrix, of 0 and 1 only: a column for "
            "each label (sklearn.preprocessing.MultiLabelBinarizer makes one); several columns of "
            "classes are not supported"
        )
    indicator = sparse.csc_array(labels).astype(np.int8)
    # A stored 0 is no label.
    indicator.eliminate_zeros()
    return indicator


def check_target_columns(y: LabelsLike, n: int) -> np.ndarray:
    """Return targets of several columns as finite float64, shape (n, k), each column contiguous.

    Raises
    ------
    ValueError
        A length other than n, a sparse matrix, values that are not numbers, NaN or infinity.
    """
    if sparse.issparse(y):
        raise ValueError("targets must be dense: a sparse y is for labels (LinearSVC)")
    targets = check_array(as_numpy(y), dtype=np.float64, order="F", input_name="y")
    _check_length(targets.shape[0], n)
    return targets
