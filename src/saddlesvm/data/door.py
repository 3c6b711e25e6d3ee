"""Check the rows of X once: the door makes a :class:`Design` of them, and nobody behind it asks
what X was, where it lies, or of which library it is.

float32 and float64, dense C-contiguous and CSR (with int32 or int64 indices), read-only or mapped,
pass without a copy, and so do dense float16, bfloat16, int8, uint8 and bool, and mapped whole
numbers of any size if `memory` is given. Everything else that scikit-learn accepts is converted
once: to float32 if that holds every number of the type, else to float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from saddlesvm.data.column_errors import naming_columns
from saddlesvm.data.column_positions import check_names
from saddlesvm.data.inputs import as_matrix, split_store
from saddlesvm.rows.array_libraries import copy_to_numpy, is_on_device
from saddlesvm.rows.csr_checks import canonical, in_range, without_spare_end
from saddlesvm.rows.device import Device
from saddlesvm.rows.files import is_mapped
from saddlesvm.rows.matrix import Rows, as_rows, check_norms, is_little
from saddlesvm.rows.memory_plan import does_not_fit
from saddlesvm.rows.passes import Passes, squared_norms
from saddlesvm.rows.scores import linear_scores
from saddlesvm.rows.small_types import FLOATS, SMALL, kept_type, precision_of, widen

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import Matrix, RowsLike

# Options of estimators that need rows in memory, and not in a place of their own.
OPTIONS_IN_MEMORY = ("warm_start", "checkpoint")


class Design:
    """The rows of X as the door lets them in.

    Parameters
    ----------
    X : ndarray, CSR matrix or Passes of shape (n, d)
        Of a type that kernels take, with each index of a CSR matrix in range. :func:`check_design`
        makes it of other things.

    Attributes
    ----------
    X : ndarray, CSR matrix or Passes
    shape : tuple of int
    placed : bool
        True if the rows are in a place of their own, over which only passes go.
    rows : Dense or CSR
        The rows as kernels take them, without a virtual feature; in a place of their own without
        values.
    is_small : bool
        True if NumPy suffices for passes over the rows.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape = X.shape
        self.placed = isinstance(X, Passes)
        self.rows: Rows = X.X if isinstance(X, Passes) else as_rows(X)
        self.is_small = self.rows.is_small
        self._norms: np.ndarray | None = None

    @property
    def plain(self) -> Any:
        """X for functions that take only float32 and float64, and sort a row's indices in place."""
        if not sparse.issparse(self.X):
            return widen(self.X)
        if self.X.has_sorted_indices:
            return self.X
        return self.X.sorted_indices()

    def norms(self, threads: int = 1) -> np.ndarray:
        """Squared norms of the rows, shape (n,); computing them checks that all values are finite.

        Parameters
        ----------
        threads : int, default=1
            Most threads of the pass over the rows.

        Raises
        ------
        BadRowError
            X holds NaN, infinity, or values whose square overflows; the message names row and
            column.
        """
        if self._norms is None:
            if self.placed:
                self._norms = check_norms(self.X.norms())
            else:
                self._norms = check_norms(squared_norms(self.rows, threads), self.rows)
        return self._norms

    def take_norms(self, threads: int = 1) -> np.ndarray:
        """Return :meth:`norms` in an array that the caller may change: none is kept here."""
        norms = self.norms(threads)
        self._norms = None
        return norms.copy() if self.placed else norms

    def with_feature(self, value: float) -> Rows | Passes:
        """Return the rows with a virtual feature of this value."""
        if self.placed:
            return self.X.with_feature(value)
        return self.rows._replace(bias=value)

    def scores(self, coef: Any, intercept: Any) -> np.ndarray:
        """Return the scores of a linear model, shape (n, k), all finite.

        Raises
        ------
        BadRowError
            X holds NaN or infinity, and so the scores of its row are not finite.
        """
        scores = linear_scores(self.X, coef, intercept)
        # Sparse weights skip values of X, so that finite scores do not prove finite values.
        if sparse.issparse(coef) or not np.isfinite(scores).all():
            self.norms()
        return scores


def checked_data(
    X: Any, y: Any = None, sample_weight: Any = None, estimator: Any = None, *, reset: bool = False
) -> tuple[Design, Any, Any]:
    """Return rows checked as by :func:`check_design`, with labels and weights, not yet checked.

    Without `y`, a store as X supplies its labels, and its weights if none are given.
    """
    if not isinstance(X, (np.ndarray, Design)):
        X, y, sample_weight = split_store(X, y, sample_weight)
        if is_on_device(y):
            y = copy_to_numpy(y)
        if is_on_device(sample_weight):
            sample_weight = copy_to_numpy(sample_weight)
    return check_design(X, estimator, reset=reset), y, sample_weight


def check_design(
    X: RowsLike,
    estimator: object = None,
    *,
    reset: bool = False,
    repeats: bool = False,
    finite: bool = False,
) -> Design:
    """Return the rows of X, of a type that kernels take.

    Parameters
    ----------
    X : object
        A design, whose features were compared when it was made, is returned as it is.
    estimator : estimator, optional
        Its features are compared with the features of X. A function has no estimator.
    reset : bool, default=False
        Note the features of X instead.
    repeats : bool, default=False
        True if a row may name a column twice, as products allow.
    finite : bool, default=False
        True to check all values now. Fits check them as they compute the norms of the rows.

    Raises
    ------
    ValueError
        No rows or features, a wrong number of features, indices out of range; or NaN and infinity.
    """
    if isinstance(X, Design):
        return X
    # Rows on an accelerator stay there.
    if not isinstance(X, np.ndarray) and is_on_device(X):
        X = Device.of(X)
    names = None
    given: Any = X
    if not isinstance(X, (np.ndarray, Passes)):
        given, names = as_matrix(X)
    if isinstance(given, Passes):
        return Design(check_place(estimator, given, reset=reset))
    # An array that kernels can read is taken as it is; any other is converted.
    matrix = take_without_conversion(given, getattr(estimator, "memory", None))
    if matrix is None:
        matrix = _convert(given, estimator, repeats)
    if estimator is not None:
        _note_features(estimator, given, names, matrix.shape[1], reset)
    design = Design(matrix)
    if finite:
        design.norms()
    return design


def _convert(X: RowsLike, estimator: object, repeats: bool) -> Matrix:
    """Convert X as scikit-learn does; CSR rows name a column once, unless they may repeat it."""
    with naming_columns(X):
        checked = check_array(
            without_spare_end(X),
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=_allowed_types(X),
            order="C",
            ensure_all_finite=False,
            estimator=estimator,
            input_name="X",
        )
    if not sparse.issparse(checked) or (repeats and in_range(checked)):
        return checked
    return canonical(checked)


def _note_features(estimator: Any, X: object, names: Any, width: int, reset: bool) -> None:
    """Note the features of rows, or raise ValueError if they differ from the noted features."""
    is_array = isinstance(X, np.ndarray) or sparse.issparse(X)  # without names
    noted = vars(estimator)
    # Without scikit-learn's own check, predictions of a few rows take half the time.
    is_same_array = (
        is_array
        and not reset
        and noted.get("n_features_in_") == width
        and "feature_names_in_" not in noted
    )
    if is_same_array:
        return
    if names is None and not (reset and is_array):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    # A fit notes the features; every later call compares with them.
    elif reset:
        estimator.n_features_in_ = width
        noted.pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
    else:
        check_names("X", names, "the fit", getattr(estimator, "feature_names_in_", None))
        expected = estimator.n_features_in_
        if width != expected:
            kind = type(estimator).__name__
            raise ValueError(
                f"X has {width} features, but {kind} is expecting {expected} features as input"
            )


def refuse_place(X: Passes, what: str) -> NoReturn:
    """Raise ValueError: `what` needs rows in memory or mapped files."""
    raise ValueError(
        f"{what} needs rows in memory or mapped files; these are in a place of their own "
        f"({type(X).__name__}), over which LinearSVC and LinearSVR with a given C train by passes"
    )


def check_place(estimator: object, X: Passes, *, reset: bool) -> Passes:
    """Return rows in a place of their own, and note or compare their number of features.

    Raises
    ------
    ValueError
        The estimator, or an option of it, needs rows in memory; or the rows have a virtual
        feature already.
    """
    if estimator is None:
        refuse_place(X, "this function")
    kind = type(estimator).__name__
    options = [name for name in OPTIONS_IN_MEMORY if getattr(estimator, name, None)]
    if options:
        refuse_place(X, f"{kind} with {options[0]}")
    if not getattr(estimator, "_takes_places", False):
        refuse_place(X, kind)
    if X.X.bias != 0.0:
        raise ValueError(
            f"rows for {kind} must have no virtual feature: fit_intercept adds one; "
            f"got bias={X.X.bias!r}"
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def take_without_conversion(X: Any, memory: Any = None) -> np.ndarray | None:
    """Return the rows as an array if solvers take their type and layout; None if not.

    scikit-learn then checks and converts them. Few values of a small type become float32, so that
    they need no kernels of their own.

    Parameters
    ----------
    X : object
    memory : int, str or None
        The memory that a fit may take. If it is given, or if X does not fit into the memory there
        is, mapped whole numbers are read in place.
    """
    if type(X) is np.ndarray and X.dtype in FLOATS:
        if X.ndim == 2 and X.size > 0 and X.flags.c_contiguous:
            return X
        return None

    # What is left are small types, in data frames or arrays, and mapped files.
    if _is_frame(X) and len(set(X.dtypes)) == 1 and X.dtypes.iloc[0] in SMALL:
        X = X.to_numpy()
    if type(X) not in (np.ndarray, np.memmap) or X.ndim != 2 or X.size == 0:
        return None
    if kept_type(X.dtype) in SMALL:
        if is_little(X.size, *X.shape):
            return widen(X)
        return np.ascontiguousarray(X)
    # Mapped whole numbers stay in their file if a copy as floats would not fit.
    is_mapped_whole = X.dtype.kind in "iu" and X.dtype.isnative and is_mapped(X)
    if not is_mapped_whole or not X.flags.c_contiguous:
        return None
    if memory is not None or does_not_fit(X, None):
        return X
    return None


def _is_frame(X: RowsLike) -> bool:
    """Return True for a table of columns, each with its type, as pandas has them."""
    return hasattr(X, "to_numpy") and hasattr(getattr(X, "dtypes", None), "iloc")


def _allowed_types(X: Any) -> list[type]:
    """Return the types that X may keep; the first type is for conversions."""
    try:
        if _is_frame(X):
            dtype = np.result_type(*X.dtypes)
        elif hasattr(X, "dtype"):
            dtype = np.dtype(X.dtype)
        else:
            # Data frames of polars have no type of their own.
            dtype = np.dtype(X.head(0).to_numpy().dtype)
    except (AttributeError, TypeError):
        dtype = np.dtype(np.float64)
    # float32 is enough if it holds every number of the type.
    if dtype.kind in "biuf" and precision_of(dtype) == np.float32:
        return [np.float32, np.float64]
    return [np.float64, np.float32]
