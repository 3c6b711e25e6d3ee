"""A kernel matrix in float64 whose rows are computed when they are first needed, by a solver or by
a certificate.

A fit of some thousand rows touches a tenth to a half of them. If the kernel is radial and the rows
have few values, compiled code computes a kernel row when a step needs it. Other kernel rows are
computed in blocks, by one matrix product, together with rows that the solver probably needs next.

Pairs of classes share a table. A pair needs of a row the values with the points of two classes
only: the row has a segment for each class, and each segment is computed when a pair needs it. All
pairs of a class share the values between its own points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.kernel.mercer import (
    HUGE,
    Kernel,
    Matrix,
    dense_if_quicker,
    gram,
    radial,
    squares_of,
    weighted_sums,
)
from saddlesvm.runtime.compiled import inlined, kernel
from saddlesvm.runtime.exp_log import exp_of_negative

# Features up to which compiled code computes a kernel row as fast as a product (measured)
FEW_FEATURES = 64
ABSENT = -1  # the slot of a row that is not held; no row
HELD = 0
NEEDED = 1  # places in :attr:`KernelTable.marks`


class RowMaker(NamedTuple):
    """What compiled code needs to compute a row of a radial kernel's matrix.

    Attributes
    ----------
    gamma : float
    columns : ndarray of shape (d, n)
        The points, a feature a row; of shape (0, n) if compiled code cannot compute the rows.
    half : ndarray of shape (n,)
        ``gamma ||x||^2``.
    """

    gamma: float
    columns: np.ndarray
    half: np.ndarray


class KernelTable(NamedTuple):
    """A kernel matrix as compiled code sees it.

    Attributes
    ----------
    values : ndarray
        Segments of kernel rows, one behind the other.
    slots : int ndarray of shape (n, segments)
        The place in the values at which each segment of each point's row begins; -1 if it is not
        held. Most tables have rows of a single segment.
    bounds : int ndarray of shape (segments + 1,)
        The first point of each segment, and n.
    marks : int ndarray of shape (2,)
        How many values are held, and the point whose row a solver needs, or -1.
    diagonal : ndarray of shape (n,)
    maker : RowMaker
    """

    values: np.ndarray
    slots: np.ndarray
    bounds: np.ndarray
    marks: np.ndarray
    diagonal: np.ndarray
    maker: RowMaker


@kernel
def holds(table: KernelTable, point: int, segment: int) -> bool:
    """Return True if a segment of a point's row is held, computed if need be; else mark the row as
    needed.
    """
    if table.slots[point, segment] >= 0:
        return True
    gamma, columns, half = table.maker
    if columns.shape[0] == 0:
        table.marks[NEEDED] = point
        return False
    # Inner products with the points of the segment, a feature at a time.
    first = table.bounds[segment]
    end = table.bounds[segment + 1]
    slot = table.marks[HELD]
    row = table.values[slot : slot + end - first]
    for t in range(row.size):
        row[t] = 0.0
    last_four = columns.shape[0] - columns.shape[0] % 4
    for k in range(0, last_four, 4):
        feature_0 = columns[k][first:end]
        feature_1 = columns[k + 1][first:end]
        feature_2 = columns[k + 2][first:end]
        feature_3 = columns[k + 3][first:end]
        x_0 = columns[k][point]
        x_1 = columns[k + 1][point]
        x_2 = columns[k + 2][point]
        x_3 = columns[k + 3][point]
        for t in range(row.size):
            row[t] += (
                x_0 * feature_0[t] + x_1 * feature_1[t] + x_2 * feature_2[t] + x_3 * feature_3[t]
            )
    for k in range(last_four, columns.shape[0]):
        feature = columns[k][first:end]
        x = columns[k][point]
        for t in range(row.size):
            row[t] += x * feature[t]
    # exp(-gamma ||x - z||^2)
    h = half[point]
    others = half[first:end]
    for t in range(row.size):
        row[t] = exp_of_negative(min(2.0 * gamma * row[t] - others[t] - h, 0.0))
    table.slots[point, segment] = slot
    table.marks[HELD] = slot + row.size
    return True


@inlined
def place_of(table: KernelTable, point: int, segment: int, first: int) -> int:
    """Return the place in the values of a point's kernel value with the point `first`.

    The values with the next points of the segment follow.
    """
    # A row that is not held counts nothing: any values stand for it.
    return max(table.slots[point, segment], 0) + first - table.bounds[segment]


def empty_maker(points: int) -> RowMaker:
    """Return the maker of a table whose rows compiled code does not compute."""
    return RowMaker(0.0, np.empty((0, points)), np.empty(0))


def whole_table(matrix: np.ndarray) -> KernelTable:
    """Return the table that holds all rows of a matrix."""
    n = matrix.shape[0]
    # Compiled code has one type of table: writeable.
    if not (matrix.flags.writeable and matrix.flags.c_contiguous):
        matrix = np.array(matrix, order="C")
    return KernelTable(
        matrix.reshape(-1),
        n * np.arange(n)[:, None],
        np.array([0, n]),
        np.array([n * n, ABSENT]),
        matrix.diagonal().astype(np.float64),
        empty_maker(n),
    )


class RowTable:
    """Rows of a kernel matrix, see the module.

    Parameters
    ----------
    kernel : Kernel
        A kernel of products.
    X : array or CSR matrix of shape (n, d)
    bounds : int ndarray of shape (segments + 1,), optional
        Of the segments of the rows; by default a single one.

    Attributes
    ----------
    table : KernelTable
    """

    def __init__(self, kernel: Kernel, X: Matrix, bounds: np.ndarray | None = None) -> None:
        self.kernel = kernel
        self.X = dense_if_quicker(X.astype(np.float64, copy=False))
        n = X.shape[0]
        squares = squares_of(self.X)
        self.half = kernel.gamma * squares if kernel.metric == "rbf" else np.empty(0)
        values = np.empty(n * n)
        values[:n] = 0.0
        if bounds is None:
            bounds = np.array([0, n])
        slots = np.full((n, bounds.size - 1), ABSENT)
        marks = np.array([0, ABSENT])
        maker = empty_maker(n)
        # Compiled code does not look for infinite values, so none may occur.
        if has_maker(kernel, self.X) and self.half.max(initial=0.0) < HUGE:
            maker = RowMaker(float(kernel.gamma), np.ascontiguousarray(self.X.T), self.half)
        self.table = KernelTable(values, slots, bounds, marks, _diagonal(kernel, squares), maker)

    @classmethod
    def from_matrix(cls, matrix: np.ndarray) -> RowTable:
        """Return the table that holds all rows of a float64 matrix."""
        made = cls.__new__(cls)
        made.table = whole_table(matrix)
        return made

    @property
    def slots(self) -> np.ndarray:
        """The number of each point's row among the rows that are held; -1 if it is not held."""
        return self.table.slots[:, 0] // self.table.bounds[-1]

    @property
    def values(self) -> np.ndarray:
        """The rows by their numbers, shape (n, n)."""
        return self.table.values.reshape(self.table.bounds[-1], -1)

    @property
    def is_whole(self) -> bool:
        """Whether all rows are held."""
        return bool(self.table.marks[HELD] == self.table.values.size)

    @property
    def evaluations(self) -> int:
        """Number of kernel values that are held."""
        return int(self.table.marks[HELD])

    def fetch(self, points: np.ndarray) -> None:
        """Compute the rows of these distinct points that are not held, in a single block."""
        marks = self.table.marks
        missing = points[self.slots[points] < 0]
        if not missing.size:
            return
        n = int(self.table.bounds[-1])
        first = int(marks[HELD]) // n
        last = first + missing.size
        block = self.values[first:last]
        if self.half.size and not sparse.issparse(self.X):
            # -gamma |x - z|^2 = 2 gamma x'z - gamma |x|^2 - gamma |z|^2: a single matrix product.
            np.matmul(self.X[missing] * (2.0 * self.kernel.gamma), self.X.T, out=block)
            radial(block, self.half[missing], self.half)
        else:
            block[:] = self.kernel(self.X[missing], self.X)
        self.table.slots[missing, 0] = n * np.arange(first, last)
        marks[HELD] = n * last

    def rows(self, points: np.ndarray) -> np.ndarray:
        """Return a copy of the rows of distinct points, shape (points, n)."""
        self.fetch(points)
        return self.values[self.slots[points]]

    def sums(self, points: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Return ``sum_j coefficients[j] k(x_i, x_points[j])`` for all points i."""
        self.fetch(points)
        return weighted_sums(self.values, self.slots[points], coefficients)

    def whole(self) -> np.ndarray:
        """Return the whole matrix, in the order of the points."""
        if not (self.is_whole and (self.slots[:-1] < self.slots[1:]).all()):
            self.table = whole_table(gram(self.kernel, self.X))
        return self.values


def has_maker(kernel: Kernel, X: Matrix) -> bool:
    """Return True if compiled code computes kernel rows, unless values are too large."""
    return kernel.metric == "rbf" and not sparse.issparse(X) and X.shape[1] <= FEW_FEATURES


def _diagonal(kernel: Kernel, squares: np.ndarray) -> np.ndarray:
    """Return the kernel values of the points with themselves, shape (n,)."""
    if kernel.metric == "rbf":
        return np.ones(squares.size)
    if kernel.metric == "linear":
        return squares
    inner = kernel.gamma * squares + kernel.coef0
    if kernel.metric == "sigmoid":
        return np.tanh(inner)
    with np.errstate(over="ignore"):  # a row of such values is refused
        return inner**kernel.degree
