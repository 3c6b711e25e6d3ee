"""Places: where rows lie, as blocks for array code.

A place has four operations, whose arrays go with the place's own numbering of its rows, 0 to n - 1:

    scores(block, W)   x_i . W of the rows of a block
    pull(block, A)     sum_i a_i x_i over the rows of a block
    gram(rows, bends)  sum_i bend_i x_i x_i' over some rows
    take(rows)         a copy of some rows, a place in memory

W has shape (d + 1,) or (d + 1, K); its last place is the intercept's, whose feature is constant. A block has some
2^18 values, so that it is still in the cache at its second use, and numbers of one or two bytes become float32 block by
block: no row is copied whole. Everything that leaves a place is float64. Blocks of float32 rows are float32 at first,
and their sums have its rounding; :meth:`Memory.widen` makes them float64.

Products of sparse rows with the weights of several classes are compiled: SciPy's take 2.2 times as long (Reuters-21578,
9,465 x 14,577 with 51 classes), and level with 10 classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from saddlesvm.rows.class_rows import sparse_add, sparse_scores
from saddlesvm.rows.matrix import CSR, IN_CACHE, LEAST_ROWS, Dense, Rows, as_rows
from saddlesvm.rows.small_types import widen

FLOAT64 = np.dtype(np.float64)


class Memory:
    """Rows in memory, dense or sparse.

    Parameters
    ----------
    X : Dense or CSR
    members : ndarray of shape (n,)
        The rows that count, ascending.

    Attributes
    ----------
    n, d : int
        Number of rows and of features.
    constant : float
        Value of the intercept's feature; 0 without an intercept.
    kind : dtype
        Precision of the blocks.
    """

    def __init__(self, X: Rows, members: np.ndarray) -> None:
        self.X = X
        self.members = members
        self.n = members.size
        self.d = X.n_features
        self.constant = X.bias
        self.kind = X.dtype
        self.values_per_row = X.n_values / max(1, X.n_rows)
        self.piece = max(LEAST_ROWS, IN_CACHE // max(1, self.d))
        # SciPy's products with sparse rows read them once; they gain nothing from blocks.
        self.block = max(1, self.n) if X.sparse else self.piece
        self.whole = self.n == X.n_rows
        self.matrix: Any = None
        self.squares: Any = None

    def read(self, rows: Any, kind: Any = None) -> Any:
        """Some rows in a precision, or the place's: a slice, or an array of numbers."""
        chosen = rows if self.whole else self.members[rows]
        if isinstance(self.X, Dense):
            wanted = self.kind if kind is None else np.dtype(kind)
            values = self.X.values[chosen]
            return values if values.dtype == wanted else widen(values, wanted)
        if self.block < self.n:
            # Strips of the rows are widened one by one, so that no copy of all of them is made.
            return self.X.matrix[chosen].astype(self.kind, copy=False)
        if self.matrix is None:
            self.matrix = self.X.matrix.astype(self.kind, copy=False)
        every = self.whole and isinstance(rows, slice) and rows.stop - rows.start == self.n
        return self.matrix if every else self.matrix[chosen]

    def widen(self) -> bool:
        """Read float64 blocks from now on; return whether that is new."""
        is_new = self.kind != FLOAT64
        self.kind = FLOAT64
        self.matrix = None
        self.squares = None
        return is_new

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Visit all rows once, block by block."""
        for first in range(0, self.n, self.block):
            rows = slice(first, min(first + self.block, self.n))
            yield rows, self.read(rows)

    def scores(self, block: Any, W: np.ndarray) -> np.ndarray:
        """``x_i . W`` of the rows of a block, the intercept included."""
        if self.X.sparse and W.ndim == 2:
            of_classes = np.empty((block.shape[0], W.shape[1]))
            sparse_scores(self.kernel_rows(block), 0, np.ascontiguousarray(W), of_classes)
            return of_classes
        products = block @ W[:-1].astype(self.kind, copy=False)
        found: np.ndarray = products.astype(np.float64, copy=False)
        found += self.constant * W[-1]
        return found

    def kernel_rows(self, block: Any) -> CSR:
        """A sparse block as kernels take it."""
        rows = as_rows(block, self.constant)
        assert isinstance(rows, CSR)
        return rows

    def pull(self, block: Any, A: np.ndarray) -> np.ndarray:
        """``sum_i a_i x_i`` over the rows of a block, shape (d + 1,) or (d + 1, K)."""
        if self.X.sparse and A.ndim == 2:
            of_classes = np.zeros((self.d + 1, A.shape[1]))
            sparse_add(self.kernel_rows(block), 0, np.ascontiguousarray(A), of_classes, False)
            return of_classes
        found = np.empty((self.d + 1, *A.shape[1:]))
        found[:-1] = block.T @ A.astype(self.kind, copy=False)
        found[-1] = self.constant * A.sum(axis=0)
        return found

    def gram(self, rows: np.ndarray, bends: np.ndarray, kind: Any) -> np.ndarray:
        """``sum_i bend_i x_i x_i'`` over some rows, its products in a precision."""
        found = np.zeros((self.d + 1, self.d + 1))
        roots = np.sqrt(bends).astype(kind)
        # As many rows as features at least: the sum of the pieces' matrices then takes less time than their products.
        size = max(self.piece, self.d)
        for first in range(0, rows.size, size):
            part = slice(first, first + size)
            # Half of the weight on either side lets the BLAS compute one triangle only.
            block, root = self.weigh(self.read(rows[part], kind), roots[part], kind)
            found[:-1, :-1] += self.bring(block.T @ block)
            found[-1, :-1] += self.constant * self.bring(block.T @ root)
        found[:-1, -1] = found[-1, :-1]
        found[-1, -1] = self.constant**2 * bends.sum()
        return found

    def weigh(self, block: Any, roots: np.ndarray, kind: Any) -> tuple[Any, Any]:
        """Rows that were gathered times a number for each, in place, and these numbers, in a precision."""
        block = block.toarray() if self.X.sparse else block
        block = block.astype(kind, copy=False)
        block *= roots[:, None]
        return block, roots

    def bring(self, values: Any) -> np.ndarray:
        """Products as NumPy has them."""
        found: np.ndarray = values
        return found

    def pull_squares(self, block: Any, bends: np.ndarray) -> np.ndarray:
        """``sum_i bend_i x_i^2`` over the rows of a block, the squares feature by feature, shape as for a pull."""
        squares = block.multiply(block).tocsr() if self.X.sparse else block * block
        found = self.pull(squares, bends)
        found[-1] *= self.constant
        return found

    def diagonal(self, bends: np.ndarray) -> np.ndarray:
        """The diagonal of :meth:`gram` over all rows."""
        found = np.zeros(self.d + 1)
        for rows, block in self.blocks():
            found += self.pull_squares(block, bends[rows])
        return found

    def take(self, rows: np.ndarray) -> Memory:
        """A copy of some rows; their blocks keep the precision of this place."""
        taken = Memory(self.X.taken(rows if self.whole else self.members[rows]), np.arange(rows.size))
        taken.kind = self.kind
        taken.piece = self.piece
        taken.block = self.block
        return taken
