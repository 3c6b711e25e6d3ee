"""Columns of the matrix, as rows of its transpose: all of sparse rows, those in use of dense."""

from __future__ import annotations

import copy

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dsyrk

from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import CSR, Rows, add_rows, as_rows, dot_rows
from saddlesvm.rows.matrix import pieces, read_only
from saddlesvm.rows.places import Memory, all_in_float64
from saddlesvm.rows.small_types import widen
from saddlesvm.solvers.columns.kernels import copy_rows

BLOCK_VALUES = 1_000_000  # values of a block of dense rows; a guess
MIRRORED = 128  # rows that are mirrored at once: their block stays in the cache; derived


class ColumnStore:
    """The columns of a problem's members.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        X = problem.X
        members = problem.members
        self.X = X
        self.scale = X.bias
        self.rows = None if members.size == problem.y.size else members
        self.n = members.size
        self.d = X.n_features
        # Sparse columns are all made at once, dense ones copied as they are asked for.
        if X.sparse:
            whole = sparse.csr_matrix(
                (X.data, X.indices, X.indptr), shape=(problem.y.size, self.d), copy=False
            )
            by_column = (whole if self.rows is None else whole[self.rows]).tocsc()
            parts = np.asarray(by_column.indices), np.asarray(by_column.indptr)
            self.columns: Rows = as_rows(
                sparse.csr_matrix((by_column.data, *parts), shape=(self.d, self.n))
            )
            self.places = np.arange(self.d)
        else:
            # -1: the column is not held yet.
            self.held = np.empty((0, self.n), dtype=X.dtype)
            self.columns = as_rows(self.held)
            self.count = 0
            self.places = np.full(self.d, -1)

    def cover(self, features: np.ndarray) -> np.ndarray:
        """The places of these features among `columns`, which hold them from now on."""
        new = features[self.places[features] < 0]
        if new.size:
            self._take(new)
        return self.places[features].astype(np.int32)

    def _take(self, new: np.ndarray) -> None:
        """Copy columns of a dense matrix, in its precision."""
        assert not self.X.sparse
        # The room doubles when it is full.
        if self.count + new.size > len(self.held):
            room = min(self.d, max(2 * len(self.held), self.count + new.size))
            larger = np.zeros((room, self.n), dtype=self.held.dtype)
            larger[: self.count] = self.held[: self.count]
            self.held = larger
        step = max(1, BLOCK_VALUES // self.d)
        for start in range(0, self.n, step):
            place = slice(start, min(start + step, self.n))
            part = self.X.values[place] if self.rows is None else self.X.values[self.rows[place]]
            self.held[self.count : self.count + new.size, place] = widen(part[:, new]).T
        self.places[new] = np.arange(self.count, self.count + new.size)
        self.count += new.size
        self.columns = as_rows(
            self.held[: self.count]
        )  # small work goes by the size of what is in use

    def take_rows(self, places: np.ndarray, rows: np.ndarray) -> ColumnStore:
        """Return a store of the sparse columns at these places, with these rows only."""
        columns = self.columns
        assert isinstance(columns, CSR)
        numbers = np.full(self.n, -1, dtype=columns.indices.dtype)
        numbers[rows] = np.arange(rows.size)
        most = int(np.diff(columns.indptr)[places].sum())
        data = np.empty(most, dtype=columns.data.dtype)
        indices = np.empty(most, dtype=columns.indices.dtype)
        indptr = np.empty(places.size + 1, dtype=columns.indptr.dtype)
        copy_rows(columns, places, numbers, data, indices, indptr)
        taken = copy.copy(self)
        taken.columns = CSR(read_only(data), read_only(indices), read_only(indptr), 0.0, rows.size)
        taken.n = rows.size
        return taken

    def products(self, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        """``x_j . values`` of the columns at these places, shape (m,), in float64."""
        out = np.empty(places.size)
        if places.size:
            dot_rows(self.columns, places, np.append(values, 0.0), out)
        return out

    def combine(self, places: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """``sum_k factors_k x_k`` of the columns at these places, shape (n,), in float64."""
        out = np.zeros(self.n + 1)  # rows have a virtual place at their end
        if places.size:
            among = np.zeros(self.columns.n_rows)
            among[places] = factors
            add_rows(self.columns, places, among, out)
        return out[:-1]


def mirror_lower(matrix: np.ndarray) -> None:
    """Copy the lower triangle of a matrix onto its upper triangle, in place."""
    for first in range(0, len(matrix), MIRRORED):
        last = first + MIRRORED
        corner = matrix[first:last, first:last]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        matrix[first:last, last:] = matrix[last:, first:last].T


class Gram:
    """``X_W' B X_W`` for a working set W and changing B; the virtual feature may be last.

    Parameters
    ----------
    store : ColumnStore
    places : ndarray of shape (m,)
        Of the working set.
    intercept : bool

    Attributes
    ----------
    rows : Memory, optional
        The chosen columns by rows, if they are sparse.
    """

    def __init__(self, store: ColumnStore, places: np.ndarray, intercept: bool) -> None:
        self.store = store
        self.places = places
        self.intercept = intercept
        self.rows: Memory | None = None
        columns = store.columns
        if isinstance(columns, CSR):
            bias = store.scale if intercept else 0.0
            self.rows = all_in_float64(as_rows(columns.matrix[places].T.tocsr(), bias))

    @property
    def pairs(self) -> float:
        """Products of two values of a row, for each value."""
        assert self.rows is not None
        counts = np.diff(self.rows.matrix.indptr).astype(np.float64)
        return 0.5 * float(counts @ counts) / max(float(counts.sum()), 1.0)

    def matrix(self, bend: np.ndarray) -> np.ndarray:
        """Return the matrix for these second derivatives of the rows' terms."""
        active = np.flatnonzero(bend)
        if self.rows is not None:
            found = self.rows.gram(active, bend[active], np.float64)
        else:
            found = self.sum_columns(active, bend)
        mirror_lower(found)
        side = self.places.size + self.intercept
        # The matrix is symmetric: its transpose has the order of C.
        return np.ascontiguousarray(found.T[:side, :side])

    def sum_columns(self, active: np.ndarray, bend: np.ndarray) -> np.ndarray:
        """Return the lower triangle of the matrix of dense columns, in the order of Fortran."""
        held = self.store.columns.matrix
        m = self.places.size
        squares = np.zeros((m, m), order="F")
        sums = np.zeros(m)
        # Blocks of rows that stay in the cache.
        for some in pieces(active.size if m else 0, max(1, BLOCK_VALUES // max(m, 1))):
            rows = active[some]
            if active.size < bend.size:
                part = held[np.ix_(self.places, rows)]
            else:
                part = held[:, some][self.places]
            share = np.sqrt(bend[rows])
            scaled = part * share
            sums += scaled @ share
            squares = dsyrk(1.0, scaled.T, beta=1.0, c=squares, trans=1, lower=1, overwrite_c=1)
        # The virtual feature: its products with the columns, and with itself.
        found = np.empty((m + 1, m + 1), order="F")
        found[:m, :m] = squares
        found[m, :m] = self.store.scale * sums
        found[m, m] = self.store.scale**2 * float(bend.sum())
        return found
