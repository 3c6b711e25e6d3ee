"""Products of rows with the weights of many classes at once: each row is read once for all classes.

The weights of K classes are kept in the layout that suits the rows, chosen by type as in
:mod:`saddlesvm.rows.layouts`: a contiguous vector for each class, shape (K, d + 1), for dense rows;
a contiguous vector for each feature, shape (d + 1, K), for sparse rows, so that a stored value
touches one stretch of memory instead of K. `by_class` of the rows gives a view of the same shape
for both.

These are the compiled loops over single rows. :mod:`saddlesvm.rows.places` multiplies blocks of
rows: dense ones in matrix products, sparse ones by the loops here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.rows.layouts import CSR, Rows, U, axpy
from saddlesvm.rows.matrix import body_for
from saddlesvm.rows.small_types import number
from saddlesvm.runtime.argument_types import number_in
from saddlesvm.runtime.compiled import kernel, operation

if TYPE_CHECKING:
    from numba.core import types

    from saddlesvm.rows.matrix import Dense

BLOCK_VALUES = 2**18  # values of rows and scores of a block: 2 MB, the second cache of a core
FEWEST_ROWS = 64  # rows of a block; a guess
# Rows of a block for many classes: adding the pull of a block costs as much as some 100 rows.
ENOUGH_ROWS = 512
MOST_ROWS = 4096  # rows of a block; a guess


def _make_csr_dots(cast: Callable[[float], np.floating]) -> Callable[..., None]:
    """Return the body of :func:`dots` for CSR rows, with the precision of the weights."""

    def of_csr(
        X: CSR, i: int, W: np.ndarray, classes: np.ndarray, count: int, z: np.ndarray
    ) -> None:
        p = U(X.indptr[U(i)])
        stop = U(X.indptr[U(i) + U(1)])
        last = W[W.shape[0] - 1]
        bias = cast(X.bias)
        # All classes: their weights for a feature are neighbours, and one loop takes several.
        if count == z.size:
            for k in range(z.size):
                z[k] = bias * last[k]
            while p < stop:
                x = X.data[p]
                part = W[U(X.indices[p])]
                for k in range(z.size):
                    z[k] += x * part[k]
                p += U(1)
            return
        # Some classes.
        for q in range(count):
            z[classes[q]] = bias * last[classes[q]]
        while p < stop:
            x = X.data[p]
            part = W[U(X.indices[p])]
            for q in range(count):
                z[classes[q]] += x * part[U(classes[q])]
            p += U(1)

    return of_csr


def _pick_dots(X: types.Type, i: types.Type, W: types.Type, *_: types.Type) -> Callable[..., None]:
    zero = number_in(W)(0)
    cast = number_in(W)

    def of_dense(
        X: Dense, i: int, W: np.ndarray, classes: np.ndarray, count: int, z: np.ndarray
    ) -> None:
        row = X.values[U(i)]
        bias = cast(X.bias)
        # Four classes share each value of the row.
        q = 0
        while q + 4 <= count:
            k = classes[q]
            m = classes[q + 1]
            n = classes[q + 2]
            o = classes[q + 3]
            wk = W[U(k)]
            wm = W[U(m)]
            wn = W[U(n)]
            wo = W[U(o)]
            a = b = c = d = zero
            for j in range(row.size):
                x = number(row[j])
                a += x * wk[j]
                b += x * wm[j]
                c += x * wn[j]
                d += x * wo[j]
            z[k] = a + bias * wk[row.size]
            z[m] = b + bias * wm[row.size]
            z[n] = c + bias * wn[row.size]
            z[o] = d + bias * wo[row.size]
            q += 4
        # The last classes, one by one.
        while q < count:
            k = classes[q]
            wk = W[U(k)]
            a = zero
            for j in range(row.size):
                a += number(row[j]) * wk[j]
            z[k] = a + bias * wk[row.size]
            q += 1

    return body_for(X, of_dense, _make_csr_dots(cast))


@operation(_pick_dots)
def dots(X: Rows, i: int, W: np.ndarray, classes: np.ndarray, count: int, z: np.ndarray) -> None:
    """Set ``z[k] = x_i . w_k`` for the first `count` of `classes`, in the precision of `W`."""
    scores = X.by_class(W) @ X.dense_row(i)
    z[classes[:count]] = scores[classes[:count]]


def _pick_add_row(
    X: types.Type, i: types.Type, c: types.Type, W: types.Type, k: types.Type
) -> Callable[..., None]:
    cast = number_in(W)

    def of_dense(X: Dense, i: int, c: float, W: np.ndarray, k: int) -> None:
        axpy(X, i, c, W[U(k)])

    def of_csr(X: CSR, i: int, c: float, W: np.ndarray, k: int) -> None:
        p = U(X.indptr[U(i)])
        stop = U(X.indptr[U(i) + U(1)])
        factor = cast(c)
        while p < stop:
            W[U(X.indices[p]), U(k)] += factor * X.data[p]
            p += U(1)
        # The last row of W holds the intercepts.
        W[W.shape[0] - 1, U(k)] += cast(c * X.bias)

    return body_for(X, of_dense, of_csr)


@operation(_pick_add_row)
def add_row(X: Rows, i: int, c: float, W: np.ndarray, k: int) -> None:
    """Add ``c x_i`` to ``w_k`` in the precision of `W`; the virtual feature is included."""
    X.by_class(W)[k] += c * X.dense_row(i)


@kernel
def add_combinations(X: Rows, members: np.ndarray, coefficients: np.ndarray, W: np.ndarray) -> None:
    """Add the sum over members i of ``coefficients[i, k] x_i`` to ``w_k`` for each class k."""
    for i in members:
        for k in range(coefficients.shape[1]):
            if coefficients[i, k] != 0.0:
                add_row(X, i, coefficients[i, k], W, k)


@kernel
def sparse_scores(X: CSR, first: int, W: np.ndarray, out: np.ndarray) -> None:
    """Set ``out[q] = x_i . W`` for the rows i from `first`; W has shape (d + 1, K).

    Four stored values share one visit to the scores, which takes about as long as their products.
    """
    K = W.shape[1]
    last = W[W.shape[0] - 1]
    for q in range(out.shape[0]):
        row = out[q]
        # The virtual feature first, then the stored values.
        for k in range(K):
            row[k] = X.bias * last[k]
        p = U(X.indptr[first + q])
        stop = U(X.indptr[first + q + 1])
        while p + U(4) <= stop:
            a = X.data[p]
            b = X.data[p + U(1)]
            c = X.data[p + U(2)]
            d = X.data[p + U(3)]
            # The four features' weights of all classes, each a contiguous row.
            wa = W[U(X.indices[p])]
            wb = W[U(X.indices[p + U(1)])]
            wc = W[U(X.indices[p + U(2)])]
            wd = W[U(X.indices[p + U(3)])]
            for k in range(K):
                row[k] += a * wa[k] + b * wb[k] + c * wc[k] + d * wd[k]
            p += U(4)
        while p < stop:
            x = X.data[p]
            part = W[U(X.indices[p])]
            for k in range(K):
                row[k] += x * part[k]
            p += U(1)


@kernel
def sparse_add(X: CSR, first: int, factors: np.ndarray, W: np.ndarray) -> None:
    """Add ``x_i factors[q]'`` to W, shape (d + 1, K), for the rows i from `first`."""
    K = W.shape[1]
    last = W[W.shape[0] - 1]
    for q in range(factors.shape[0]):
        u = factors[q]
        p = U(X.indptr[first + q])
        stop = U(X.indptr[first + q + 1])
        while p < stop:
            # x_ij times the factors of all classes, added to a contiguous row.
            x = X.data[p]
            part = W[U(X.indices[p])]
            for k in range(K):
                part[k] += x * u[k]
            p += U(1)
        for k in range(K):
            last[k] += X.bias * u[k]


def block_rows(X: Rows, count: int) -> int:
    """Return how many rows a block has for `count` classes."""
    if X.sparse:
        return int(np.clip(BLOCK_VALUES // count, FEWEST_ROWS, MOST_ROWS))
    # At least half as many rows as classes, which share the visit to a row.
    fewest = int(np.clip(count // 2, FEWEST_ROWS, ENOUGH_ROWS))
    return int(np.clip(BLOCK_VALUES // (X.n_features + count), fewest, MOST_ROWS))
