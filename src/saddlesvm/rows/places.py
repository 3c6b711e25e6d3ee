"""Places of rows: their blocks, and the products that array code needs.

A place has four operations, whose arrays go with the place's own numbering of its rows, 0 to n - 1:

    scores(block, W)   x_i . W of the rows of a block
    pull(block, A)     sum_i a_i x_i over the rows of a block
    gram(rows, bends)  sum_i bend_i x_i x_i' over some rows
    take(rows)         a copy of some rows, a place in memory

W has shape (d + 1,) or (d + 1, K); its last place is the intercept's, whose feature is constant. A
block has some 2^18 values, so that it is still in the cache at its second use, and numbers of 1 or
2 bytes become float32 block by block: no row is copied whole. Everything that leaves a place is
float64. Blocks of float32 rows are float32 at first, and their sums have its rounding;
:meth:`Memory.widen` makes them float64.

Products of sparse rows with the weights of several classes are compiled: SciPy's take 2.2 times as
long (Reuters-21578, 9,465 x 14,577 with 51 classes), and level with 10 classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyrk, ssyrk

from saddlesvm.rows.class_rows import sparse_add, sparse_scores
from saddlesvm.rows.matrix import (
    CSR,
    IN_CACHE as IN_CACHE,
    LEAST_ROWS,
    Dense,
    Rows,
    as_rows,
    pieces,
)
from saddlesvm.rows.small_types import widen
from saddlesvm.rows.sparse_products import add_outer_products, add_products, multiply_by_columns
from saddlesvm.runtime.threads import run_shares

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from saddlesvm.rows.passes import Passes

Answer = TypeVar("Answer")

FLOAT64 = np.dtype(np.float64)
# Features a stored value of a row up to which the BLAS sums outer products faster; derived: 6e10
# operations a second instead of 1e9, for d^2 of them instead of k^2 / 2.
DENSE_ENOUGH = 6.0
# Pieces of a pass, which threads share; each has a sum of its own; guessed.
MOST_PIECES = 16
# The same of a sum of outer products; and the least blocks of such a piece, since another matrix
# takes as long as some blocks; guessed.
MOST_GRAM_PIECES = 8
LEAST_GRAM_BLOCKS = 16


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
    is_sparse : bool
        True if blocks are sparse.
    whole : bool
        True if all rows of X count: numbers of rows are then the same here and there.
    matrix : CSR array, optional
        The rows that count, if they are sparse.
    transposed : CSC array, optional
        Its transpose, once it was needed.
    widened : ndarray
        Memory for the values of a sparse block in double precision.
    values_per_row : float
        Mean number of stored values of a row.
    block, piece : int
        Rows of a block, and of the pieces of :meth:`gram`.
    threads : int
        Threads of passes over all blocks.
    """

    threads: int = 1

    def __init__(self, X: Rows, members: np.ndarray) -> None:
        self.X = X
        self.members = members
        self.n = members.size
        self.d = X.n_features
        self.constant = X.bias
        self.whole = self.n == X.n_rows
        self.is_sparse = X.sparse
        self.matrix: Any = None
        self.transposed: Any = None
        self.widened = np.empty(0)
        self.kind = X.dtype
        self.values_per_row = float(self.d)
        self.piece = max(LEAST_ROWS, IN_CACHE // max(1, self.d))
        self.block = self.piece
        if X.sparse:
            # Column indices take as long to read as values: blocks are in double precision from
            # the start.
            self.kind = FLOAT64
            self.matrix = X.matrix if self.whole else X.take(members).matrix
            self.values_per_row = self.matrix.nnz / max(1, self.n)
            self.block = max(LEAST_ROWS, int(IN_CACHE / max(1.0, self.values_per_row)))
            if self.matrix.dtype == FLOAT64 or self.n <= self.block:
                self.matrix = convert_kind(self.matrix, FLOAT64)
                # SciPy's products read rows once: blocks gain nothing if none is widened.
                self.block = max(1, self.n)

    def numbers_in_X(self, rows: Any) -> Any:
        """Return some rows of the place as X numbers them, by a slice or by numbers."""
        if self.whole:
            return rows
        return self.members[rows]

    def read(self, rows: slice | np.ndarray, kind: Any = None) -> Any:
        """Return some rows, by a slice or by numbers, in a precision; by default the place's."""
        if self.matrix is None:
            assert isinstance(self.X, Dense)
            wanted = self.kind
            if kind is not None:
                wanted = np.dtype(kind)
            values = self.X.values[self.numbers_in_X(rows)]
            if values.dtype == wanted:
                return values
            return widen(values, wanted)
        if not isinstance(rows, slice):
            return convert_kind(self.matrix[rows], self.kind)
        if self.matrix.dtype == self.kind and rows.stop - rows.start == self.n:
            return self.matrix
        # Values are widened into an array that the next block uses again: new memory takes longer.
        # Several threads read several blocks at a time.
        begin, end = self.matrix.indptr[[rows.start, rows.stop]]
        room = self.widened
        if room.size < end - begin or self.threads > 1:
            room = np.empty(end - begin)
            self.widened = room
        data = room[: end - begin]
        data[:] = self.matrix.data[begin:end]
        indptr = self.matrix.indptr[rows.start : rows.stop + 1] - begin
        shape = (rows.stop - rows.start, self.d)
        return sparse.csr_array((data, self.matrix.indices[begin:end], indptr), shape=shape)

    def widen(self) -> bool:
        """Read float64 blocks from now on; return True if that changes anything."""
        is_new = self.kind != FLOAT64
        self.kind = FLOAT64
        return is_new

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Visit all rows once, block by block."""
        for rows in pieces(self.n, self.block):
            yield rows, self.read(rows)

    def each_piece(self, work: Callable[[Iterable[tuple[slice, Any]]], Answer]) -> list[Answer]:
        """Return what a function of blocks makes of each piece of neighbouring blocks, in order.

        Several threads share the pieces, which do not depend on their number.
        """
        parts = list(pieces(self.n, self.block))
        n_pieces = max(1, min(MOST_PIECES, len(parts)))

        def visit(piece: Sequence[slice]) -> Answer:
            return work((rows, self.read(rows)) for rows in piece)

        return run_shares(visit, parts, n_pieces, self.threads)

    def sum_blocks(
        self, add: Callable[[slice, Any, np.ndarray], None], shape: tuple[int, ...]
    ) -> np.ndarray:
        """Visit all rows once; return the array to which a function adds something of each block.

        Several threads visit blocks at the same time.
        """

        def sum_piece(blocks: Iterable[tuple[slice, Any]]) -> np.ndarray:
            # Each piece of neighbouring blocks has an array of its own.
            part = np.zeros(shape)
            for rows, block in blocks:
                add(rows, block, part)
            return part

        total, *others = self.each_piece(sum_piece)
        for part in others:
            total += part
        return total

    def narrow(self, W: np.ndarray) -> np.ndarray:
        """Return weights of several classes in the precision of blocks, once for all blocks."""
        return W.astype(self.kind, copy=False)

    def some_blocks(self, rows: np.ndarray) -> Iterator[tuple[slice, Any]]:
        """Visit some rows, block by block; the slices count these rows only."""
        for part in pieces(rows.size, self.block):
            yield part, self.read(part if rows.size == self.n else rows[part])

    def pull_some(self, rows: np.ndarray, A: np.ndarray) -> np.ndarray:
        """Return ``sum_i a_i x_i`` over some rows, of which A has the dual variables."""
        pulled = np.zeros((self.d + 1, *A.shape[1:]))
        for part, block in self.some_blocks(rows):
            pulled += self.pull(block, A[part])
        return pulled

    def scores(self, block: Any, W: np.ndarray) -> np.ndarray:
        """Return ``x_i . W`` of the rows of a block, the intercept included."""
        # Several classes share the visit to each stored value.
        if self.is_sparse and W.ndim == 2:
            of_classes = np.empty((block.shape[0], W.shape[1]))
            sparse_scores(self.kernel_rows(block), 0, np.ascontiguousarray(W), of_classes)
            return of_classes
        products = block @ W[:-1].astype(self.kind, copy=False)
        found: np.ndarray = products.astype(np.float64, copy=False)
        found += self.constant * W[-1]
        return found

    def kernel_rows(self, block: object) -> CSR:
        """Return a sparse block as kernels take it."""
        rows = as_rows(block, self.constant)
        assert isinstance(rows, CSR)
        return rows

    def pull(self, block: object, A: np.ndarray) -> np.ndarray:
        """Return ``sum_i a_i x_i`` over the rows of a block, shape (d + 1,) or (d + 1, K)."""
        if self.is_sparse and A.ndim == 2:
            of_classes = np.zeros((self.d + 1, A.shape[1]))
            sparse_add(self.kernel_rows(block), 0, np.ascontiguousarray(A), of_classes)
            return of_classes
        found = np.empty((self.d + 1, *A.shape[1:]))
        found[:-1] = self.transpose(block) @ A.astype(self.kind, copy=False)
        # The virtual feature is the same in every row.
        found[-1] = self.constant * A.sum(axis=0)
        return found

    def transpose(self, block: Any) -> Any:
        """Return the transpose of a block; SciPy's checks of a new one take long."""
        if block is not self.matrix:
            return block.T
        if self.transposed is None:
            self.transposed = block.T
        return self.transposed

    def gram(self, rows: np.ndarray, bends: np.ndarray, kind: DTypeLike) -> np.ndarray:
        """Return ``sum_i bend_i x_i x_i'`` over some rows, in its lower triangle at least."""
        found = np.zeros((self.d + 1, self.d + 1), order="F")
        # Few values are multiplied as dense rows: without a compilation.
        is_wide = self.d > DENSE_ENOUGH * self.values_per_row
        if isinstance(self.X, CSR) and is_wide and not self.X.is_small:
            add_outer_products(self.X, self.numbers_in_X(rows), bends, found.T)
            return found
        # Pieces of neighbouring blocks, whose number does not depend on the threads: nor do sums.
        roots = np.sqrt(bends).astype(kind)
        parts = list(pieces(rows.size, self.piece))
        n_pieces = min(MOST_GRAM_PIECES, -(-len(parts) // LEAST_GRAM_BLOCKS))

        def sum_piece(piece: Sequence[slice]) -> tuple[np.ndarray, np.ndarray]:
            squares = np.zeros((self.d, self.d), dtype=kind, order="F")
            last = np.zeros(self.d)
            for part in piece:
                # Half of the weight on either side lets the BLAS compute one triangle only.
                block, root = self.weigh(self.read(rows[part], kind), roots[part], kind)
                squares = self.add_squares(squares, block)
                last += self.bring(block.T @ root)
            return squares, last

        for squares, last in run_shares(sum_piece, parts, n_pieces, self.threads):
            found[:-1, :-1] += squares
            found[-1, :-1] += self.constant * last
        # The intercept's column, which its row repeats, and its own place.
        found[:-1, -1] = found[-1, :-1]
        found[-1, -1] = self.constant**2 * bends.sum()
        return found

    def multiply(self, rows: np.ndarray, bends: np.ndarray, D: np.ndarray) -> np.ndarray:
        """Return ``sum_i bend_i x_i (x_i . D)`` over some sparse rows: :meth:`gram` times D."""
        found = np.zeros(self.d + 1)
        add_products(self.X, self.numbers_in_X(rows), bends, D, found)
        return found

    def inner_products(self) -> np.ndarray:
        """Return ``x_i . x_l`` of all pairs of rows in float64, without the intercept's feature."""
        if self.matrix is None or self.X.is_small:
            block = self.read(slice(0, self.n))
            products = block @ block.T
            if self.matrix is not None:
                products = products.toarray()
            return self.bring(products)
        found = np.empty((self.n, self.n))
        # Sparse rows by columns: only pairs of rows that share a feature cost anything.
        by_column = self.matrix.tocsc()
        X = self.kernel_rows(self.matrix)._replace(bias=0.0)
        multiply_by_columns(
            X, np.arange(self.n), by_column.data, by_column.indices, by_column.indptr, found
        )
        return found

    def weigh(self, block: Any, roots: np.ndarray, kind: object) -> tuple[Any, Any]:
        """Multiply gathered rows by a number each, in place; return them and these numbers."""
        if self.matrix is not None:
            block = block.toarray()
        block = block.astype(kind, copy=False)
        block *= roots[:, None]
        return block, roots

    def add_squares(self, total: np.ndarray, block: Any) -> np.ndarray:
        """Add ``block' block`` to a total in Fortran order, in its lower triangle at least."""
        # The BLAS adds in place: sums of its products take a fifth of their time, 784 features.
        add = dsyrk if total.dtype == FLOAT64 else ssyrk
        found: np.ndarray = add(1.0, block.T, beta=1.0, c=total, lower=1, overwrite_c=1)
        return found

    def bring(self, values: Any) -> np.ndarray:
        """Return products as a NumPy array; a device copies them."""
        found: np.ndarray = values
        return found

    def pull_squares(self, block: Any, bends: np.ndarray) -> np.ndarray:
        """Return ``sum_i bend_i x_i^2`` over the rows of a block, feature by feature."""
        if self.is_sparse:
            # The same places: SciPy's product of two matrices looks for them again.
            squared = (block.data * block.data, block.indices, block.indptr)
            squares = sparse.csr_array(squared, shape=block.shape)
        else:
            squares = block * block
        found = self.pull(squares, bends)
        found[-1] *= self.constant
        return found

    def diagonal(self, rows: np.ndarray, bends: np.ndarray) -> np.ndarray:
        """Return the diagonal of :meth:`gram`."""
        found = np.zeros(self.d + 1)
        for part, block in self.some_blocks(rows):
            found += self.pull_squares(block, bends[part])
        return found

    def take(self, rows: np.ndarray) -> Memory:
        """Copy some rows; their blocks keep the precision of this place."""
        if self.matrix is not None:
            # A copy is needed anyway; one in double precision is read in one piece.
            some = convert_kind(self.matrix[rows], FLOAT64)
            return Memory(as_rows(some, self.constant), np.arange(rows.size))
        taken = Memory(self.X.take(self.numbers_in_X(rows)), np.arange(rows.size))
        taken.kind = self.kind
        taken.piece = self.piece
        taken.block = self.block
        taken.threads = self.threads
        return taken


class RowsByPasses(Memory):
    """Rows that only passes reach, so that equations are solved by products.

    Parameters
    ----------
    passes : Passes
        See :mod:`saddlesvm.rows.passes`.
    """

    def __init__(self, passes: Passes) -> None:
        self.passes = passes
        self.members = passes.members
        self.n = self.members.size
        self.d = passes.shape[1]
        self.constant = passes.X.bias
        self.kind = FLOAT64
        self.is_sparse = False
        self.values_per_row = float(self.d)
        self.block = max(1, self.n)

    def read(self, rows: slice | np.ndarray, kind: Any = None) -> None:
        """Return nothing: passes read the rows, which are one block."""

    def scores(self, block: Any, W: np.ndarray) -> np.ndarray:
        """Return ``x_i . W`` of the rows, the intercept included."""
        found: np.ndarray = self.passes.margins(W)
        return found

    def pull(self, block: Any, A: np.ndarray) -> np.ndarray:
        """Return ``sum_i a_i x_i`` over the rows."""
        spread = np.zeros(self.passes.shape[0])
        spread[self.members] = A
        found: np.ndarray = self.passes.pull(spread)
        return found

    def pull_some(self, rows: np.ndarray, A: np.ndarray) -> np.ndarray:
        """Return ``sum_i a_i x_i`` over some rows."""
        spread = np.zeros(self.passes.shape[0])
        spread[self.members[rows]] = A
        found: np.ndarray = self.passes.pull(spread)
        return found

    def diagonal(self, rows: np.ndarray, bends: np.ndarray) -> np.ndarray:
        """Return a multiple of the identity with the trace of :meth:`gram`."""
        norms = self.passes.norms()[rows]
        return np.full(self.d + 1, float(bends @ norms) / (self.d + 1))

    def take(self, rows: np.ndarray) -> Memory:
        """Return some of the rows, where they are."""
        return RowsByPasses(self.passes.select(self.members[rows]))


def all_in_float64(X: Rows) -> Memory:
    """Return the place of all rows of a matrix in memory, with blocks of float64."""
    place = Memory(X, np.arange(X.n_rows))
    place.widen()
    return place


def sum_squares(X: Rows, weights: np.ndarray) -> np.ndarray:
    """Return ``sum_i weights_i x_ij^2`` of all rows in float64, shape (d + 1,)."""
    place = all_in_float64(X)
    return place.diagonal(np.arange(place.n), weights)


def convert_kind(matrix: sparse.csr_array, kind: np.dtype) -> sparse.csr_array:
    """Return a sparse matrix in a precision; SciPy's own way sorts each row as well."""
    data = matrix.data.astype(kind, copy=False)
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
