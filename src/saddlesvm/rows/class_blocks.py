"""Blocks of rows times the weights of many classes: matrix products for dense rows, compiled loops for sparse ones.

Weights have the layout of the rows (:func:`saddlesvm.rows.class_rows.new_weights`). A block computes in the precision
of the weights that it is given; rows of another precision are widened, or narrowed, a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from saddlesvm.rows.layouts import CSR, Dense, Rows, U, n_features, n_rows
from saddlesvm.rows.small_types import widened
from saddlesvm.runtime.compiled import kernel

BLOCK_VALUES = 2**20  # values of a block's rows and scores together
FEWEST, MOST = 64, 4096  # rows of a block


@kernel
def sparse_scores(X: CSR, first: int, W: np.ndarray, out: np.ndarray) -> None:
    """``out[q] = x_i . W`` for the rows i from `first`; W has shape (d + 1, K).

    Four stored values share one visit to the scores, which costs about as much as a value's share of it.
    """
    K, last = W.shape[1], W[W.shape[0] - 1]
    for q in range(out.shape[0]):
        row = out[q]
        for k in range(K):
            row[k] = X.bias * last[k]
        p, stop = U(X.indptr[first + q]), U(X.indptr[first + q + 1])
        while p + U(4) <= stop:
            a, b, c, d = X.data[p], X.data[p + U(1)], X.data[p + U(2)], X.data[p + U(3)]
            wa, wb = W[U(X.indices[p])], W[U(X.indices[p + U(1)])]
            wc, wd = W[U(X.indices[p + U(2)])], W[U(X.indices[p + U(3)])]
            for k in range(K):
                row[k] += a * wa[k] + b * wb[k] + c * wc[k] + d * wd[k]
            p += U(4)
        while p < stop:
            x, part = X.data[p], W[U(X.indices[p])]
            for k in range(K):
                row[k] += x * part[k]
            p += U(1)


@kernel
def sparse_add(X: CSR, first: int, factors: np.ndarray, W: np.ndarray, squared: bool) -> None:
    """``W += x_i factors[q]'`` for the rows i from `first`, or with the features squared; W has shape (d + 1, K)."""
    K, last = W.shape[1], W[W.shape[0] - 1]
    bias = X.bias * X.bias if squared else X.bias
    for q in range(factors.shape[0]):
        u = factors[q]
        p, stop = U(X.indptr[first + q]), U(X.indptr[first + q + 1])
        while p < stop:
            x, part = X.data[p], W[U(X.indices[p])]
            if squared:
                x = x * x
            for k in range(K):
                part[k] += x * u[k]
            p += U(1)
        for k in range(K):
            last[k] += bias * u[k]


@dataclass(frozen=True)
class ClassBlock:
    """Some contiguous rows, which meet the weights of all classes.

    Attributes
    ----------
    X : Dense or CSR
        The whole matrix.
    rows : slice
    dtype : dtype
        The precision of the weights that the block is given.
    """

    X: Rows
    rows: slice
    dtype: Any

    @property
    def size(self) -> int:
        """Rows of the block."""
        return int(self.rows.stop - self.rows.start)

    @cached_property
    def values(self) -> np.ndarray:
        """The rows of a dense matrix in the precision of the block, shape (m, d)."""
        assert isinstance(self.X, Dense)
        return widened(self.X.values[self.rows], self.dtype)

    def scores(self, W: np.ndarray) -> np.ndarray:
        """``x_i . w_k``, shape (m, K), in the precision of the block."""
        if isinstance(self.X, CSR):
            out = np.empty((self.size, W.shape[1]), dtype=self.dtype)
            sparse_scores(self.X, self.rows.start, W, out)
            return out
        out = self.values @ W[:, :-1].T
        out += self.dtype.type(self.X.bias) * W[:, -1]
        return out

    def add(self, factors: np.ndarray, W: np.ndarray, *, squared: bool = False) -> None:
        """``w_k += sum_i factors[i, k] x_i``, or with the features squared one by one.

        `factors` has the shape and precision of the scores.
        """
        if isinstance(self.X, CSR):
            sparse_add(self.X, self.rows.start, factors, W, squared)
            return
        W[:, :-1] += factors.T @ (np.square(self.values) if squared else self.values)
        W[:, -1] += (self.X.bias**2 if squared else self.X.bias) * factors.sum(axis=0)


def block_rows(X: Rows, count: int) -> int:
    """Rows of a block for `count` classes."""
    width = n_features(X) if isinstance(X, Dense) else 0
    return int(np.clip(BLOCK_VALUES // (width + count), FEWEST, MOST))


def class_blocks(X: Rows, count: int, dtype: Any) -> Iterator[ClassBlock]:
    """All rows, block by block, for the weights of `count` classes in a precision."""
    size, n = block_rows(X, count), n_rows(X)
    for start in range(0, n, size):
        yield ClassBlock(X, slice(start, min(start + size, n)), np.dtype(dtype))
