"""Labels and targets of several columns: indicator matrices and target matrices, checked before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from saddlesvm.data.door import as_numpy


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
