"""The result of every reader: a table, checked, in the layout that solvers use without a copy.

Labels may arrive in blocks: their type and the number of classes are known only after the last row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.errors import MISSING_ADVICE, DataError
from saddlesvm.rows.small_types import kept_type, precision_of, widen

if TYPE_CHECKING:
    from saddlesvm.data.reading import Reading
    from saddlesvm.runtime.data_types import LabelsLike

Matrix: TypeAlias = "np.ndarray | sp.csr_matrix | sp.csr_array"

MOST_CLASSES = 1_000  # different texts of a label column; more are texts to learn from; a guess
LONGEST_LABEL = 200  # characters; a guess
# Cells, in lower case, without a value; and cells of a label column without a label, if others of
# its cells are words, because "none" may be a class.
MISSING_WORDS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
MISSING_LABELS = frozenset({"", "?", "nan"})
_EXACT_WHOLE = 2.0**53  # float64 holds every whole number below this one
ROUNDED = (
    "whole numbers of 2^53 or more, of which numbers of 64 bits cannot hold all: write them as "
    "text, with a letter before the digits"
)
# A whole number as all readers understand it; no label is longer.
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
_INT32_MAX = np.iinfo(np.int32).max
_INT64_MAX = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Table:
    """Rows and labels read from a source.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        C-contiguous, or with sorted and unique indices. float32 or float64; float16, bfloat16,
        int8, uint8 or bool, if the file has dense rows of the type. Every value is finite.
    y : ndarray of shape (n_rows,) or None
        int64 if every label is a whole number, float64 if they are other numbers, unicode if they
        are text; None for data without labels.
    feature_names : list of str, or None
        Column names, if the file has any.
    label_name : str or None
        Name of the label column, if it has a name.
    source : str
        The path or bundled name as it was given.
    format : str
        "libsvm", "csv", "parquet", "npz", "idx", "store" or "generated".
    n_bytes : int
        Size of the file or files on disk, compressed as they are; 0 for generated data.
    seconds : float
        Time it took to read.
    known_nonzero : int, optional
        Number of values that are not zero, if it is known without counting.
    sample_weight : ndarray of shape (n_rows,) or None
        Weights of the rows, if the source (a store) has any.
    zero_based : bool or None
        True if the indices of LIBSVM text count from 0, to read further files alike; None for other
        formats.
    kinds : dict of str to str, or None
        For a table with columns of words or gaps: the kind of each column to learn from. `X`
        is a data frame then, until it is encoded.
    column_facts : list of str, or None
        The kind of each column, in words.
    frame : DataFrame or None
        The columns before they were encoded.

    Examples
    --------
    >>> from saddlesvm.data import load_bundled
    >>> table = load_bundled("heart")
    >>> table.n_rows, table.n_features, table.format, table.classes.tolist()
    (297, 13, 'csv', [0, 1])
    """

    X: Any
    y: np.ndarray | None
    feature_names: list[str] | None
    label_name: str | None
    source: str
    format: str
    n_bytes: int
    seconds: float
    known_nonzero: int | None = None
    sample_weight: np.ndarray | None = None
    zero_based: bool | None = None
    kinds: dict[str, str] | None = None
    column_facts: list[str] | None = None
    frame: Any = None

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
        if sp.issparse(self.X):
            return int(self.X.count_nonzero())
        return int(np.count_nonzero(self.X))

    def rows(self, chosen: np.ndarray) -> Table:
        """Return the table of some rows, by their numbers, in memory."""

        def select(column: Any) -> Any:
            if column is None:
                return None
            if hasattr(column, "iloc"):
                return column.iloc[chosen].reset_index(drop=True)
            return column[chosen]

        return replace(
            self,
            X=select(self.X),
            y=select(self.y),
            sample_weight=select(self.sample_weight),
            frame=select(self.frame),
            known_nonzero=None,
        )

    @property
    def classes(self) -> np.ndarray | None:
        """The distinct labels in ascending order; None for data without labels."""
        if self.y is None:
            return None
        return np.unique(self.y)


@dataclass(frozen=True)
class LabelledTable(Table):
    """A table that has labels."""

    y: np.ndarray


def shorten(names: Sequence[object], limit: int = 12) -> str:
    """Return names in a row for a message, without the middle of a long list."""
    shown = [repr(name) if isinstance(name, str) else str(name) for name in names]
    if len(shown) > limit:
        shown = [*shown[: limit - 2], f"... ({len(shown) - limit + 1} more)", shown[-1]]
    return ", ".join(shown)


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names without repetition: the second "a" becomes "a.1", as pandas names it."""
    counts: dict[str, int] = {}
    unique = []
    for name in names:
        count = counts.get(name, 0)
        counts[name] = count + 1
        if count:
            name = f"{name}.{count}"
        unique.append(name)
    return unique


def stored_type(X: Matrix) -> np.dtype:
    """Return the type in which values are kept: a float type, or of dense rows a small type."""
    kept = None if sp.issparse(X) else kept_type(X.dtype)
    return kept or precision_of(X.dtype.newbyteorder("="))


def ready_matrix(X: Any, source: str, how: Reading, columns: Sequence[str] | None = None) -> Any:
    """Return a matrix in the layout of `Table.X`, copied only if it has another layout.

    `columns` are the names of its columns, if it comes from a file that has them.

    float32 and float64 are kept unless `how.dtype` is another type, and so are float16,
    bfloat16, int8, uint8 and bool in dense matrices. Other integers of at most 16 bits become
    float32, which holds them exactly, all others float64.

    Raises
    ------
    DataError
        Zero rows or features, a width that is not `how.n_features`, values that are not numbers,
        infinity or NaN.
    """
    kept = kept_type(X.dtype)
    if X.dtype.kind not in "biuf" and kept is None:
        raise DataError(f"{source}: the features are of type {X.dtype}; they must be real numbers")
    dtype = how.dtype
    if dtype is None:
        dtype = stored_type(X)
    n_rows, width = X.shape
    if n_rows == 0 or width == 0:
        raise DataError(
            f"{source}: has {n_rows} rows and {width} features; at least one of each is needed"
        )
    if sp.issparse(X):
        X = _ready_csr(X, np.dtype(dtype))
        values = X.data
    else:
        X = _ready_array(X, np.dtype(dtype))
        values = X
    allowed = np.isfinite(widen(values))
    if not allowed.all():
        row, feature, value = _first_refused(X, ~allowed)
        if columns is None:
            place = f"feature {feature + 1}"
        else:
            place = f"column {columns[feature]!r}"
        advice = "values must be finite"
        is_gap = columns is not None and math.isnan(value)
        if is_gap:
            advice = f"{advice}; {MISSING_ADVICE}"
        raise DataError(f"{source}: row {row + 1}, {place} is {value}; {advice}")
    return _with_width(X, source, how.n_features)


def _ready_array(X: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a dense matrix in C order, of a type that is kept."""
    kept = kept_type(X.dtype)
    # NumPy takes None for float64 in comparisons, and so None is asked for first.
    if kept is None or kept != dtype:
        return np.ascontiguousarray(widen(X, dtype))
    # Another package's bfloat16 has the same bits.
    if X.dtype != dtype:
        X = X.view(dtype)
    return np.ascontiguousarray(X)


def _ready_csr(X: sp.sparray | sp.spmatrix, dtype: np.dtype) -> sp.csr_array | sp.csr_matrix:
    """Return a CSR matrix with sorted and unique indices, of 32 bits if they suffice."""
    # Readers have checked the indices.
    X = X.tocsr().astype(dtype, copy=False)
    X.sum_duplicates()
    if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) <= _INT32_MAX:
        indices = X.indices.astype(np.int32)
        X.indptr = X.indptr.astype(np.int32)
        X.indices = indices
    return X


def _first_refused(X: Any, refused: np.ndarray) -> tuple[int, int, float]:
    """Return row, column and value of the first value that is refused."""
    if sp.issparse(X):
        k = int(np.argmax(refused))
        row_of_k = np.searchsorted(X.indptr, k, side="right") - 1
        return int(row_of_k), int(X.indices[k]), float(X.data[k])
    row, column = np.unravel_index(np.argmax(refused), X.shape)
    return int(row), int(column), float(X[row, column])


def _with_width(X: Any, source: str, n_features: int | None) -> Any:
    """Return X with the expected width; only CSR matrices can be widened to it."""
    width = X.shape[1]
    if n_features is None or width == n_features:
        return X
    if width > n_features or not sp.issparse(X):
        raise DataError(f"{source}: has {width} features; {n_features} are expected")
    return type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def ready_labels(y: LabelsLike, n_rows: int, source: str) -> np.ndarray:
    """Return labels in the form of `Table.y`.

    Raises
    ------
    DataError
        There is not a label for each row, or labels are not finite, missing, or text, but a
        regression needs numbers.
    """
    # A matrix of one column is a column.
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) != n_rows:
        raise DataError(
            f"{source}: has {n_rows} rows and labels of shape {y.shape}; "
            "one label for each row is needed"
        )
    if y.dtype.kind in "US":
        return y.astype(str)
    if y.dtype.kind not in "biuf":
        raise DataError(f"{source}: the labels are of type {y.dtype}; they must be numbers or text")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise DataError(f"{source}: the label of row {row + 1} is {y[row]}; labels must be finite")
    refuse_beyond_int64(y, source)
    # Whole numbers are classes, however they are stored.
    if y.dtype.kind != "f" or are_whole(y):
        return y.astype(np.int64)
    return y.astype(np.float64)


def refuse_beyond_int64(y: np.ndarray, source: str) -> None:
    """Raise a `DataError` for whole labels of 2^63 or more, which int64 would make negative."""
    largest = y.max(initial=0) if y.dtype.kind == "u" else 0
    if largest > _INT64_MAX:
        raise DataError(
            f"{source}: has the label {largest}; whole numbers below 2^63 are allowed: write "
            "larger ones as text, with a letter before the digits"
        )


def are_whole(numbers: np.ndarray) -> bool:
    """Return True if all numbers are whole, and float64 holds their neighbours, too."""
    return bool(np.all((numbers == np.floor(numbers)) & (np.abs(numbers) < _EXACT_WHOLE)))


def are_rounded(y: np.ndarray) -> bool:
    """Return True for whole labels that float64 may have rounded: some are 2^53 or more."""
    return bool(y.dtype.kind == "f" and (y == np.floor(y)).all() and not are_whole(y))


def check_classes(texts: Sequence[str], where: str) -> list[str]:
    """Return the texts of labels, truth values as "True" and "False", if they can be classes.

    This comes before they become an array, which is as wide as the longest text.

    Raises
    ------
    DataError
        There are too many, or they are too long, to be classes; `where` names the file and the
        column.
    """
    longest = max(texts, key=len, default="")
    # NumPy cuts NUL bytes off the end of a text.
    if any("\0" in text for text in texts):
        raise DataError(f"{where} holds a NUL byte; labels are numbers or words")
    found = None
    if len(texts) > MOST_CLASSES:
        found = f"{len(texts):,} different texts"
    elif len(longest) > LONGEST_LABEL:
        found = f"a text of {len(longest):,} characters"
    if found is not None:
        raise DataError(
            f"{where} holds {found}, such as {longest[:60]!r}: is it the column of the labels? "
            f"Name another with --label (allowed are {MOST_CLASSES:,} classes, "
            f"of up to {LONGEST_LABEL} characters)"
        )
    # "true", "True" and "TRUE" are one class, whatever the others are: other blocks may differ.
    return [text.title() if text.lower() in ("true", "false") else text for text in texts]


def whole_numbers(texts: Sequence[str]) -> np.ndarray | None:
    """Return texts as int64, if all are whole numbers without point and exponent that fit."""
    if not all(map(_WHOLE.fullmatch, texts)):
        return None
    numbers = [int(text) for text in texts]
    if not all(-(2**63) <= number < 2**63 for number in numbers):
        return None
    return np.array(numbers, dtype=np.int64)


def join_labels(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate labels of blocks; if all are whole, float64 must not round the larger ones."""
    are_mixed = {column.dtype for column in columns} == {np.dtype(np.int64), np.dtype(np.float64)}
    if are_mixed and all(column.dtype == np.int64 or are_whole(column) for column in columns):
        columns = [column.astype(np.int64) for column in columns]
    return np.concatenate(columns)


def missing_labels(texts: Iterable[str]) -> frozenset[str]:
    """Return the cells, in lower case, that are no label, given the different texts of a column."""
    known = [text for text in texts if text.lower() not in MISSING_WORDS]
    are_numbers = bool(known) and all(map(is_number, known))
    return MISSING_WORDS if are_numbers else MISSING_LABELS


def decode_labels(texts: Sequence[str], codes: np.ndarray, where: str) -> np.ndarray:
    """Return labels from their different texts, and the number of the text of each row.

    They are numbers if all texts are, else classes, see :func:`check_classes`.
    """
    whole = whole_numbers(texts)
    values: np.ndarray
    if whole is not None:
        # float64 would round whole numbers of 2^53 or more, and merge classes.
        values = whole
    elif all(map(is_number, texts)):
        values = np.array([float(text) for text in texts])
    else:
        values = np.array(check_classes(texts, where))
    return values[codes]


def is_missing(value: object) -> bool:
    """Return True for None, NaN, and pandas' marks of missing values."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def is_number(text: str) -> bool:
    """Return True if a cell of a text file is a number, as all readers here understand it."""
    try:
        float(text)
    except ValueError:
        return False
    # Python also takes "1_000", and digits of other scripts.
    return text.isascii() and "_" not in text
