"""The result of every reader: one labelled table, checked, in the layout that the solvers use without a copy.

Labels may arrive in pieces: their type and the number of classes are known only after the last row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.errors import DataError
from saddlesvm.rows.small_types import kept_type, widened

Label: TypeAlias = str | int | Literal[False] | None
Task: TypeAlias = Literal["classification", "regression"]
Header: TypeAlias = bool | Literal["auto"]
Missing: TypeAlias = Literal["error", "keep"]
Matrix: TypeAlias = "np.ndarray[Any, Any] | sp.csr_matrix | sp.csr_array"

_EXACT_IN_FLOAT32 = frozenset("?bBhHef")
_INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Table:
    """Rows and labels read from one source.

    Attributes
    ----------
    X : ndarray, C-contiguous, or CSR matrix with sorted and unique indices, shape (n_rows, n_features)
        float32 or float64; float16, bfloat16, int8, uint8 or bool, where the file has dense rows of
        the type. Every value is finite (or NaN, read with ``missing="keep"``).
    y : ndarray of shape (n_rows,) or None
        int64 when every label is a whole number, float64 when they are other numbers, unicode when they are text;
        None for data without labels.
    feature_names : list of str, or None
        Column names, where the file has any.
    label_name : str or None
        Name of the label column, where it has one.
    source : str
        The path or bundled name as it was given.
    format : str
        "libsvm", "csv", "parquet", "npz", "idx", "store" or "generated".
    n_bytes : int
        Size of the file or files on disk, compressed as they are; 0 for generated data.
    seconds : float
        Time it took to read.
    known_nonzero : int, optional
        Number of values that are not zero, where it is known without counting.
    sample_weight : ndarray of shape (n_rows,) or None
        Weights of the rows, where the source (a store) has any.
    zero_based : bool or None
        Whether the indices of LIBSVM text count from 0, for reading further files alike; None for other formats.
    kinds : dict of str to str, or None
        Of a table with columns of words, dates or gaps: the kind of each column that is learnt from. `X` is a data
        frame then, until it is encoded.
    column_facts : list of str, or None
        The kind of each column, in words.
    before : ColumnTransformer or None
        What encoded the rows of a store that was made of such a table.
    frame : DataFrame or None
        The columns before they were encoded.
    stores : tuple of Store
        The stores of the rows.

    Examples
    --------
    >>> from saddlesvm.data import load_bundled
    >>> table = load_bundled("heart")
    >>> table.n_rows, table.n_features, table.format, table.classes.tolist()
    (297, 13, 'csv', [0, 1])
    """

    X: Any
    y: np.ndarray[Any, Any] | None
    feature_names: list[str] | None
    label_name: str | None
    source: str
    format: str
    n_bytes: int
    seconds: float
    known_nonzero: int | None = None
    sample_weight: np.ndarray[Any, Any] | None = None
    zero_based: bool | None = None
    kinds: dict[str, str] | None = None
    column_facts: list[str] | None = None
    before: Any = None
    frame: Any = None
    stores: tuple[Any, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def n_nonzero(self) -> int:
        """Number of values that are not zero."""
        if self.known_nonzero is not None:
            return self.known_nonzero
        return int(self.X.count_nonzero() if sp.issparse(self.X) else np.count_nonzero(self.X))

    def rows(self, chosen: np.ndarray[Any, Any]) -> Table:
        """The table of some rows, by their numbers; in memory."""
        by_place = hasattr(self.X, "iloc")
        return replace(
            self,
            X=self.X.iloc[chosen].reset_index(drop=True) if by_place else self.X[chosen],
            y=None if self.y is None else self.y[chosen],
            sample_weight=None if self.sample_weight is None else self.sample_weight[chosen],
            frame=None if self.frame is None else self.frame.iloc[chosen].reset_index(drop=True),
            known_nonzero=None,
        )

    @property
    def classes(self) -> np.ndarray[Any, Any] | None:
        """The distinct labels in ascending order; None for data without labels."""
        return None if self.y is None else np.unique(self.y)


@dataclass(frozen=True)
class LabelledTable(Table):
    """A table that has labels."""

    y: np.ndarray[Any, Any]


def shorten(names: Sequence[object], limit: int = 12) -> str:
    """Join names for a message, leaving out the middle of a long list."""
    shown = [repr(name) if isinstance(name, str) else str(name) for name in names]
    if len(shown) > limit:
        shown = [*shown[: limit - 2], f"... ({len(shown) - limit + 1} more)", shown[-1]]
    return ", ".join(shown)


def unique_names(names: Sequence[str]) -> list[str]:
    """Names without repetition: the second "a" becomes "a.1", as pandas names it."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        count = seen.get(name, 0)
        seen[name] = count + 1
        made.append(f"{name}.{count}" if count else name)
    return made


def stored_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that a store keeps of dense values: small types as they are, of others :func:`float_type`."""
    return kept_type(dtype) or float_type(dtype)


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 where that holds every number of a type exactly, float64 otherwise."""
    return np.dtype(np.float32 if dtype.char in _EXACT_IN_FLOAT32 else np.float64)


def ready_matrix(
    X: Any, source: str, *, dtype: Any, scale: float, n_features: int | None, missing: Missing = "error"
) -> Any:
    """Bring a matrix into the layout of `Table.X`, copying only where it is not in it already.

    float32 and float64, and float16, bfloat16, int8, uint8 and bool in dense ones, are kept unless `dtype` or a scale
    asks otherwise; other integers of at most 16 bits become float32, which holds them exactly, all others float64.

    Raises
    ------
    DataError
        Zero rows or features, a width that is not `n_features`, values that are not numbers, infinity, or NaN unless
        `missing` keeps it.
    """
    kept = kept_type(X.dtype)
    if X.dtype.kind not in "biuf" and kept is None:
        raise DataError(f"{source}: the features are of type {X.dtype}; they must be real numbers")
    if dtype is None:
        dtype = kept if kept is not None and scale == 1.0 and not sp.issparse(X) else float_type(X.dtype)
    n_rows, width = X.shape
    if n_rows == 0 or width == 0:
        raise DataError(f"{source}: has {n_rows} rows and {width} features; at least one of each is needed")
    X = _ready_csr(X, source, np.dtype(dtype)) if sp.issparse(X) else _ready_array(X, np.dtype(dtype))
    values = X.data if sp.issparse(X) else X
    if scale != 1.0:
        values *= values.dtype.type(scale)
    fine = np.isfinite(widened(values))
    if missing == "keep":
        fine |= np.isnan(widened(values))
    if not fine.all():
        where = _first_of(X, ~fine)
        raise DataError(f"{source}: row {where[0] + 1}, feature {where[1] + 1} is {where[2]}; values must be finite")
    return _widened(X, source, n_features)


def _ready_array(X: Any, dtype: np.dtype[Any]) -> Any:
    """A dense matrix in C order, of a type that is kept."""
    kept = kept_type(X.dtype)
    if kept is None or kept != dtype:  # None is equal to the type float64, as NumPy compares
        return np.ascontiguousarray(widened(X, dtype))
    return np.ascontiguousarray(X if X.dtype == dtype else X.view(dtype))


def _ready_csr(X: Any, source: str, dtype: np.dtype[Any]) -> Any:
    X = X.tocsr().astype(dtype, copy=False)
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"{source}: is not a valid CSR matrix: {error}") from None
    X.sum_duplicates()
    if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) <= _INT32_MAX:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _first_of(X: Any, bad: np.ndarray[Any, Any]) -> tuple[int, int, float]:
    """Row, column and value of the first bad one of the values, or of the stored ones."""
    if sp.issparse(X):
        k = int(np.argmax(bad))
        return int(np.searchsorted(X.indptr, k, side="right")) - 1, int(X.indices[k]), float(X.data[k])
    row, column = np.unravel_index(np.argmax(bad), X.shape)
    return int(row), int(column), float(X[row, column])


def _widened(X: Any, source: str, n_features: int | None) -> Any:
    width = X.shape[1]
    if n_features is None or width == n_features:
        return X
    if width > n_features or not sp.issparse(X):
        raise DataError(f"{source}: has {width} features; {n_features} are expected")
    return type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def ready_labels(y: Any, n_rows: int, source: str, *, task: Task | None) -> np.ndarray[Any, Any]:
    """Bring labels into the form of `Table.y`.

    Raises
    ------
    DataError
        Labels that are not one a row, not finite, missing, or text where a regression needs numbers.
    """
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) != n_rows:
        raise DataError(f"{source}: has {n_rows} rows and labels of shape {y.shape}; one label a row is needed")
    if y.dtype.kind in "US":
        y = y.astype(str)
        if task == "regression":
            raise DataError(f"{source}: has the label {str(y[0])!r}; a regression needs numbers for labels")
        return y
    if y.dtype.kind not in "biuf":
        raise DataError(f"{source}: the labels are of type {y.dtype}; they must be numbers or text")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise DataError(f"{source}: the label of row {row + 1} is {y[row]}; labels must be finite")
    if task == "regression":
        return y.astype(np.float64)
    whole = y.dtype.kind != "f" or bool(np.all((y == np.floor(y)) & (np.abs(y) < 2.0**53)))
    return y.astype(np.int64 if whole else np.float64)


MOST_CLASSES = 1_000  # different texts of a column of labels; more are texts to learn from (guessed)
LONGEST_LABEL = 200  # signs


def bounded_classes(texts: Sequence[str], where: str) -> list[str]:
    """The texts of labels, before they become an array as wide as the longest; truth values are "True" and "False".

    Raises
    ------
    DataError
        There are too many, or they are too long, to be classes; `where` names the file and the column.
    """
    longest = max(texts, key=len, default="")
    if len(texts) > MOST_CLASSES or len(longest) > LONGEST_LABEL:
        found = f"{len(texts):,} different texts" if len(texts) > MOST_CLASSES else f"a text of {len(longest):,} signs"
        raise DataError(
            f"{where} holds {found}, such as {longest[:60]!r}: is it the column of the labels? Name another with "
            f"--label (allowed are {MOST_CLASSES:,} classes, of up to {LONGEST_LABEL} signs)"
        )
    if {text.lower() for text in texts} <= {"true", "false"}:
        return [text.title() for text in texts]
    return list(texts)


class Cells(NamedTuple):
    """Labels as a text file spells them: numbers if all labels of the column are, text otherwise.

    Attributes
    ----------
    texts : list of str
        The different ones.
    codes : int64 ndarray of shape (n,)
        Which of them each row has.
    """

    texts: list[str]
    codes: np.ndarray[Any, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array of labels."""
        return self.codes.shape

    def of_rows(self, rows: np.ndarray[Any, Any]) -> Cells:
        """Those of some rows."""
        return Cells(self.texts, self.codes[rows])

    def values(self) -> np.ndarray[Any, Any]:
        """The numbers, if all of them are, or else the texts."""
        if all(map(is_number, self.texts)):
            return np.array([float(one) for one in self.texts])[self.codes]
        return np.array(bounded_classes(self.texts, "the column of the labels"))[self.codes]


def is_missing(one: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, or pandas' marks."""
    return one is None or (isinstance(one, float) and one != one) or type(one).__name__ in ("NAType", "NaTType")


def is_number(text: str) -> bool:
    """Whether a cell of a text file is a number, as every reader of this package understands it."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text
