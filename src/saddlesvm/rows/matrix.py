"""The types of rows: dense and CSR, each with a virtual constant feature.

Rows have properties for what other code needs to know of them, so that no other code asks for their
type. Code for rows with column indices alone, or for arrays alone, asks for :attr:`sparse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.rows.small_types import FLOATS, in_place, precision_of, widen
from saddlesvm.runtime.argument_types import python_class
from saddlesvm.runtime.small import Most

Body = Callable[..., Any]
AT_ONCE = 2**13  # row pointers that are looked at together; a guess
IN_CACHE = 2**18  # values of a block of rows; derived: 2 MB, the second cache of a core
PIECE = 2**16  # rows that array code takes at a time: 512 KB a vector; guessed
WIDENED = 2**16  # values of a block that becomes float64; measured: two thirds of the time of 2^18
# Rows of a widened block, at least; measured: with 256, blocks of Fashion-MNIST leave the cache,
# and a fit with C = 0.01 takes 1.13 times as long (27 November 2026).
LEAST_WIDENED = 16
LEAST_ROWS = 256  # rows of a block; a guess: calls of NumPy take longer than work on fewer rows
DENSE_SPEED = 3e10  # bytes of dense rows that are read in a second, at most; a guess
SPARSE_TIME = 1e-9  # seconds for a value of sparse rows, at least; a guess
silent = np.errstate(all="ignore")


def is_little(values: int, rows: int, columns: int, times: float = 1.0) -> bool:
    """Return True if work on so many stored values, in so many rows, is small.

    `times` multiplies the values that are small, but not the work of Newton's equations.
    """
    step = float(rows) * columns * min(rows, columns)
    return values + Most.per_row * rows <= times * Most.values and step <= Most.step


def in_arrays(X: Any) -> bool:
    """Return True if NumPy and SciPy make sums over these rows, so that nothing is compiled."""
    return bool(getattr(X, "in_arrays", False) or X.is_small)


def pieces(count: int, size: int = PIECE) -> Iterator[slice]:
    """Yield slices that cut so many rows into pieces of this size."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view: a single kernel then serves memory and mapped files."""
    view = np.asarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


class Dense(NamedTuple):
    """Rows of a C-contiguous array of shape (n, d), with a virtual constant feature `bias`."""

    values: np.ndarray
    bias: float

    @property
    def sparse(self) -> Literal[False]:
        """True if rows have column indices."""
        return False

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays that hold the rows."""
        return (self.values,)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.values.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns, without the virtual feature."""
        return self.values.shape[1]

    @property
    def n_values(self) -> int:
        """Number of stored values."""
        return self.values.size

    @property
    def longest_row(self) -> int:
        """Stored values of the longest row."""
        return self.values.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """Precision of weights that go with the stored values: float32 or float64."""
        return precision_of(self.values.dtype)

    @property
    def is_small(self) -> bool:
        """True if NumPy suffices for passes over these rows."""
        return is_little(self.values.size, *self.values.shape)

    @property
    def in_arrays(self) -> bool:
        """True if NumPy computes scores and sums over these rows."""
        return self.values.size <= Most.dense

    @property
    def matrix(self) -> Any:
        """The rows as an array, without the virtual feature, and without a copy."""
        return self.values

    def reading_time(self, values: float) -> float:
        """Return a rough lower bound on the seconds of a pass over `values` stored values."""
        return values * (self.values.itemsize / DENSE_SPEED)

    def float64_matrix(self) -> Any:
        """Return the rows in float64, without the virtual feature, as an array."""
        if self.values.dtype in FLOATS:
            return self.values.astype(np.float64, copy=False)
        return widen(self.values, np.float64)

    @silent
    def squared_norms(self) -> np.ndarray:
        """Return ``||x_i||^2`` of all rows in NumPy, with the virtual feature.

        It is not finite if a value, or its square, is not.
        """
        norms = np.empty(self.n_rows)
        for rows, block in self.blocks():
            norms[rows] = np.einsum("ij,ij->i", block, block)
        norms += self.bias * self.bias
        return norms

    def blocks(self, chosen: np.ndarray | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the rows, or some of them, in float64, as many at a time as a cache holds."""
        count = self.n_rows if chosen is None else chosen.size
        size = max(LEAST_WIDENED, WIDENED // max(1, self.n_features))
        for rows in pieces(count, size):
            # Wide rows come a few at a time, so that the widened copy stays in the cache.
            block = self.values[rows if chosen is None else chosen[rows]]
            is_ready = block.dtype == np.float64
            yield rows, block if is_ready else widen(block, np.float64)

    def dense_row(self, i: int) -> np.ndarray:
        """Return row i in float64 with the virtual feature last, shape (d + 1,): the reference."""
        return np.append(widen(self.values[i]).astype(np.float64), self.bias)

    def between(self, first: int, last: int) -> Dense:
        """Return neighbouring rows, without a copy."""
        return self._replace(values=self.values[first:last])

    def take(self, chosen: np.ndarray) -> Dense:
        """Return a copy of some rows, in this order."""
        return self._replace(values=read_only(self.values[chosen]))

    def weights_shape(self, count: int) -> tuple[int, int]:
        """Return the shape of the weights of `count` classes: a vector for each class."""
        return count, self.n_features + 1

    def by_class(self, W: np.ndarray) -> np.ndarray:
        """Return weights in the layout of the rows as shape (K, d + 1), a view."""
        return W


class CSR(NamedTuple):
    """Rows of a compressed sparse row matrix, and a virtual constant feature `bias`.

    Each index occurs once in its row, in any order.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    bias: float
    n_features: int

    @property
    def sparse(self) -> Literal[True]:
        """True if rows have column indices."""
        return True

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays that hold the rows."""
        return self.data, self.indices, self.indptr

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.indptr.size - 1

    @property
    def n_values(self) -> int:
        """Number of stored values."""
        return int(self.indptr[-1])

    @property
    def longest_row(self) -> int:
        """Stored values of the longest row, at most the number of columns."""
        ends = range(0, self.indptr.size - 1, AT_ONCE)
        longest = max(
            (int(np.diff(self.indptr[k : k + AT_ONCE + 1]).max()) for k in ends), default=0
        )
        return min(longest, int(self.n_features))

    @property
    def dtype(self) -> np.dtype:
        """Precision of weights that go with the stored values: float32 or float64."""
        return precision_of(self.data.dtype)

    @property
    def is_small(self) -> bool:
        """True if NumPy suffices for passes over these rows."""
        return is_little(self.data.size, self.indptr.size - 1, self.n_features)

    @property
    def matrix(self) -> Any:
        """The rows as a SciPy array, without the virtual feature, and without a copy."""
        return sparse.csr_array(
            (self.data, self.indices, self.indptr), shape=(self.n_rows, self.n_features)
        )

    def reading_time(self, values: float) -> float:
        """Return a rough lower bound on the seconds of a pass over `values` stored values."""
        return values * SPARSE_TIME

    def float64_matrix(self) -> Any:
        """Return the rows in float64, without the virtual feature, as a SciPy array."""
        # Rows that are a part of others begin somewhere within their arrays.
        begin = self.indptr[0]
        end = self.indptr[-1]
        data = self.data[begin:end].astype(np.float64, copy=False)
        indptr = self.indptr - begin if begin else self.indptr
        arrays = (data, self.indices[begin:end], indptr)
        return sparse.csr_array(arrays, shape=(self.n_rows, self.n_features))

    @silent
    def squared_norms(self) -> np.ndarray:
        """Return ``||x_i||^2`` of all rows in SciPy, as :meth:`Dense.squared_norms`."""
        squares = self.float64_matrix()
        squares.data = squares.data * squares.data
        norms: np.ndarray = squares @ np.ones(self.n_features) + self.bias * self.bias
        return norms

    def dense_row(self, i: int) -> np.ndarray:
        """Return row i in float64 with the virtual feature last, shape (d + 1,): the reference."""
        row = np.zeros(self.n_features + 1)
        part = slice(self.indptr[i], self.indptr[i + 1])
        np.add.at(row, self.indices[part], self.data[part])
        row[-1] = self.bias
        return row

    def between(self, first: int, last: int) -> CSR:
        """Return neighbouring rows, without a copy."""
        return self._replace(indptr=self.indptr[first : last + 1])

    def take(self, chosen: np.ndarray) -> CSR:
        """Return a copy of some rows, in this order."""
        begin = self.indptr[chosen]
        lengths = self.indptr[chosen + 1] - self.indptr[chosen]
        ends = np.zeros(chosen.size + 1, dtype=self.indptr.dtype)
        np.cumsum(lengths, out=ends[1:])
        # Entries of the new rows, shifted to their places in the old ones.
        shifts = np.repeat((begin - ends[:-1]).astype(np.int64), lengths)
        places = np.arange(ends[-1], dtype=np.int64) + shifts
        data = read_only(self.data[places])
        indices = read_only(self.indices[places])
        return CSR(data, indices, read_only(ends), self.bias, self.n_features)

    def weights_shape(self, count: int) -> tuple[int, int]:
        """Return the shape of the weights of `count` classes: a vector for each feature."""
        return self.n_features + 1, count

    def by_class(self, W: np.ndarray) -> np.ndarray:
        """Return weights in the layout of the rows as shape (K, d + 1), a view."""
        return W.T


Rows = Dense | CSR


def as_rows(X: Any, bias: float = 0.0) -> Rows:
    """View a C-contiguous array or a CSR matrix as rows, without a copy.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Of float32 or float64; dense rows also of half precision, whole numbers and bool.
    bias : float, default=0.0
        Value of the virtual constant feature; 0 for none.

    Raises
    ------
    TypeError
        X is neither.
    """
    if not (isinstance(X, np.ndarray) or sparse.issparse(X)):
        raise TypeError(f"rows are a NumPy array or a CSR matrix; got {type(X).__name__}")
    if sparse.issparse(X):
        return CSR(
            read_only(X.data),
            read_only(X.indices),
            read_only(X.indptr),
            float(bias),
            int(X.shape[1]),
        )
    return Dense(read_only(X if X.dtype in FLOATS else in_place(X)), float(bias))


def check_layout(X: object) -> None:
    """Raise TypeError for rows that are neither Dense nor CSR."""
    if not isinstance(X, (Dense, CSR)):
        raise TypeError(
            f"rows of type {type(X).__name__} are not known: give Dense or CSR rows (as_rows makes "
            "them), or a place (Passes) with parts of these types"
        )


def body_for(X: Any, of_dense: Body, of_csr: Body) -> Body:
    """Return the body of a compiled operation for rows of a Numba type."""
    return of_dense if python_class(X) is Dense else of_csr


class BadRowError(ValueError):
    """A row holds a value that cannot be used.

    Parameters
    ----------
    message : str
    row : int
        Its number, from 0.
    place : int, optional
        The number of its partition, for rows on a cluster.
    """

    def __init__(self, message: str, row: int = 0, place: int = 0) -> None:
        super().__init__(message, row, place)
        self.message = message
        self.row = row
        self.place = place

    def __str__(self) -> str:
        return self.message


def check_norms(norms: np.ndarray, X: Rows | None = None, first: int = 0) -> np.ndarray:
    """Return the squared norms of rows, after checking that they are finite.

    Parameters
    ----------
    norms : ndarray of shape (n,)
    X : Dense or CSR, optional
        The rows, if they are at hand: the message then names the column, too.
    first : int, default=0
        The number of the first row in the whole matrix.

    Raises
    ------
    BadRowError
        A row holds NaN, infinity, or values whose square overflows.
    """
    finite = np.isfinite(norms)
    if not finite.all():
        i = int(np.argmin(finite))
        kind = "NaN" if np.isnan(norms[i]) else "infinity or a value too large for its square"
        where = f"row {first + i}"
        if X is not None:
            # The first NaN, or the largest value.
            where += f", column {int(np.argmax(np.abs(X.dense_row(i)[:-1])))}"
        message = f"Input X contains {kind} in {where} (from 0): all values must be finite."
        if kind == "NaN":
            message += " Leave such rows out, or fill them in, with SimpleImputer."
        raise BadRowError(message, first + i)
    return norms
