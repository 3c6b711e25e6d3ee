"""The one place where data are checked: bad input raises its error here, before any work. Behind it travel rows.

X is checked once: the door makes a :class:`Design` of it, and nobody behind it asks what X was, where it lies, or of
which library it is.

float32 and float64, dense C-contiguous and CSR (with int32 or int64 indices), read-only or mapped, pass without a copy,
and so do dense float16, bfloat16, int8, uint8 and bool, and mapped whole numbers of any size that ``memory`` is for.
Everything else that scikit-learn accepts is converted once: to float32 where that holds every number of the type.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from saddlesvm.data.blocks import check_names
from saddlesvm.data.inputs import as_matrix, as_numpy, by_rows, naming_columns, parts_of
from saddlesvm.data.table import is_missing
from saddlesvm.rows.csr_checks import canonical, in_range, without_spare_end
from saddlesvm.rows.device import Device, brought, is_on_device
from saddlesvm.rows.files import is_mapped
from saddlesvm.rows.matrix import Rows, as_rows, check_norms, in_arrays, is_little
from saddlesvm.rows.memory_plan import does_not_fit
from saddlesvm.rows.passes import Passes, squared_norms
from saddlesvm.rows.scores import linear_scores
from saddlesvm.rows.small_types import FLOATS, SMALL, kept_type, precision_of, widened

OPTIONS_IN_MEMORY = ("probability", "warm_start", "checkpoint")  # that rows in a place of their own lack


class Design:
    """The rows of X as the door lets them in.

    Parameters
    ----------
    X : ndarray, CSR matrix or Passes of shape (n, d)
        Of a type that kernels take, each index of a CSR matrix in range. :func:`check_design` makes it of other things.

    Attributes
    ----------
    X : ndarray, CSR matrix or Passes
    shape : tuple of int
    placed : bool
        Whether the rows are in a place of their own, over which only passes go.
    rows : Dense or CSR
        The rows as kernels take them, without a virtual feature; of a place of their own without values.
    is_small : bool
        Whether NumPy suffices for passes over the rows.
    """

    def __init__(self, X: Any) -> None:
        self.X, self.shape, self.placed = X, X.shape, isinstance(X, Passes)
        self.rows: Rows = X.X if isinstance(X, Passes) else as_rows(X)
        self.is_small = self.rows.is_small
        self._norms: np.ndarray | None = None

    @property
    def plain(self) -> Any:
        """X for functions that take no other types than float32 and float64, and sort the indices of a row in place."""
        if not sparse.issparse(self.X):
            return widened(self.X)
        return self.X if self.X.has_sorted_indices else self.X.sorted_indices()

    def norms(self, threads: int = 1) -> np.ndarray:
        """Squared norms of the rows, shape (n,); computing them, once, is the check that all values are finite.

        Parameters
        ----------
        threads : int, default=1
            Most threads of the pass over the rows.

        Raises
        ------
        BadRowError
            X holds NaN, infinity, or values whose square overflows; the message names row and column.
        """
        if self._norms is None and self.placed:
            self._norms = check_norms(self.X.norms())
        elif self._norms is None:
            X = self.rows
            self._norms = check_norms(X.squared_norms() if in_arrays(X) else squared_norms(X, threads), X)
        return self._norms

    def with_feature(self, value: float) -> Rows | Passes:
        """The rows with a virtual feature of this value."""
        return self.X.with_feature(value) if self.placed else self.rows._replace(bias=value)

    def scores(self, coef: Any, intercept: Any) -> np.ndarray:
        """The scores of a linear model, shape (n, k), all finite.

        Raises
        ------
        BadRowError
            X holds NaN or infinity, which make none of their row's scores finite.
        """
        scores = linear_scores(self.X, coef, intercept)
        if sparse.issparse(coef) or not np.isfinite(scores).all():
            self.norms()
        return scores


def checked_data(
    X: Any, y: Any = None, sample_weight: Any = None, estimator: Any = None, *, reset: bool = False
) -> tuple[Design, Any, Any]:
    """Rows that are checked, as by :func:`check_design`, and their labels and weights, which are not.

    Without `y`, a store as X supplies its labels, and its weights if none are given.
    """
    if not isinstance(X, (np.ndarray, Design)):
        X, y, sample_weight = parts_of(X, y, sample_weight, getattr(estimator, "memory", None))
        y = brought(y) if is_on_device(y) else y
        sample_weight = brought(sample_weight) if is_on_device(sample_weight) else sample_weight
    return check_design(X, estimator, reset=reset), y, sample_weight


def check_design(
    X: Any, estimator: Any = None, *, reset: bool = False, repeats: bool = False, finite: bool = False
) -> Design:
    """The rows of X, of a type that kernels take.

    Parameters
    ----------
    X : object
        A design, whose features were compared when it was made, is returned as it is.
    estimator : estimator, optional
        Its features are compared with those of X. A function has none.
    reset : bool, default=False
        Note the features of X instead.
    repeats : bool, default=False
        Whether a row may name a column twice, as it may for products.
    finite : bool, default=False
        Whether all values are checked now. Fits check them as they compute the norms of the rows.

    Raises
    ------
    ValueError
        No rows or features, a wrong number of features, indices out of range; or NaN and infinity.
    """
    if isinstance(X, Design):
        return X
    if not isinstance(X, np.ndarray) and is_on_device(X):
        X = Device.of(X)
    names = None
    given: Any = X
    if not isinstance(X, (np.ndarray, Passes)):
        given, names = as_matrix(X, estimator, reset=reset)
    if isinstance(given, Passes):
        return Design(check_place(estimator, given, reset=reset))
    kept = usable(given, getattr(estimator, "memory", None))
    if kept is None:
        kept = _converted(given, estimator, repeats)
    if estimator is not None:
        _note_features(estimator, given, names, kept.shape[1], reset)
    design = Design(kept)
    if finite:
        design.norms()
    return design


def _converted(X: Any, estimator: Any, repeats: bool) -> Any:
    """X as scikit-learn converts it; rows of a CSR matrix name a column once, unless they may repeat it."""
    with naming_columns(X):
        checked = check_array(
            without_spare_end(X), accept_sparse="csr", accept_large_sparse=True, dtype=_preferred(X), order="C",
            ensure_all_finite=False, estimator=estimator, input_name="X",
        )  # fmt: skip
    if not sparse.issparse(checked) or (repeats and in_range(checked)):
        return checked
    return canonical(checked)


def _note_features(estimator: Any, X: Any, names: Any, width: int, reset: bool) -> None:
    """Note the features of rows, or compare them with those that were noted.

    Raises
    ------
    ValueError
        Another number of features; or a name is missing, or has another place.
    """
    plain, noted = isinstance(X, np.ndarray), vars(estimator)
    if plain and not reset and noted.get("n_features_in_") == width and "feature_names_in_" not in noted:
        return  # as validate_data finds; predictions of a few rows take half the time without it
    if names is None and not (reset and plain):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    elif reset:
        estimator.n_features_in_ = width
        noted.pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
    else:
        check_names("X", names, "the fit", getattr(estimator, "feature_names_in_", None))
        if width != (expected := estimator.n_features_in_):
            kind = type(estimator).__name__
            raise ValueError(f"X has {width} features, but {kind} is expecting {expected} features as input")


def refuse_place(X: Passes, what: str) -> NoReturn:
    """Raise ValueError: `what` needs rows in memory or mapped files."""
    raise ValueError(
        f"{what} needs rows in memory or mapped files; these are in a place of their own ({type(X).__name__}), over "
        "which LinearSVC and LinearSVR with a given C train by passes"
    )


def check_place(estimator: Any, X: Passes, *, reset: bool) -> Passes:
    """Rows in a place of their own, as they are; their number of features is noted, or compared.

    Raises
    ------
    ValueError
        The estimator, or one of its options, needs rows in memory; or the rows have a virtual feature already.
    """
    if estimator is None:
        refuse_place(X, "this function")
    kind, asked = type(estimator).__name__, [name for name in OPTIONS_IN_MEMORY if getattr(estimator, name, None)]
    if asked or not getattr(estimator, "_takes_places", False):
        refuse_place(X, f"{kind} with {asked[0]}" if asked else kind)
    if X.X.bias != 0.0:
        raise ValueError(f"rows for {kind} have no virtual feature: fit_intercept adds one; got bias={X.X.bias!r}")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def usable(X: Any, memory: Any = None) -> np.ndarray | None:
    """X as kernels take it, where that needs none of scikit-learn's checks of shape and type; None where it does.

    Few values of a small type become float32, so that they need no kernels of their own.

    Parameters
    ----------
    X : object
    memory : int, str or None
        What a fit may take. With it, and where X does not fit into the memory there is, mapped whole numbers are read
        in place.
    """
    if type(X) is np.ndarray and X.dtype in FLOATS:
        return X if X.ndim == 2 and X.size > 0 and X.flags.c_contiguous else None
    if _is_frame(X) and len(set(X.dtypes)) == 1 and X.dtypes.iloc[0] in SMALL:
        X = X.to_numpy()
    if type(X) not in (np.ndarray, np.memmap) or X.ndim != 2 or X.size == 0:
        return None
    given, X = X, by_rows(X, memory)
    if X is not given and X.dtype in FLOATS:
        return np.asarray(X)
    if kept_type(X.dtype) in SMALL:
        return widened(X) if is_little(X.size, *X.shape) else np.ascontiguousarray(X)
    mapped = (
        X.dtype.kind in "iu" and X.dtype.isnative and is_mapped(X) and (memory is not None or does_not_fit(X, None))
    )
    return X if X.flags.c_contiguous and mapped else None


def _is_frame(X: Any) -> bool:
    """Whether X is a table of columns, each with its type, as pandas has them."""
    return hasattr(X, "to_numpy") and hasattr(getattr(X, "dtypes", None), "iloc")


def _preferred(X: Any) -> list[type]:
    """The types that X may keep, the first one for conversions: float32, if it holds every number of the type."""
    try:
        if _is_frame(X):
            found = np.result_type(*X.dtypes)
        else:
            found = np.dtype(X.dtype if hasattr(X, "dtype") else X.head(0).to_numpy().dtype)  # polars' frames have none
    except (AttributeError, TypeError):
        found = np.dtype(np.float64)
    single = found.kind in "biuf" and precision_of(found) == np.float32
    return [np.float32, np.float64] if single else [np.float64, np.float32]


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
