"""One row against the weights of many classes at once: the row is read once, and serves all of them.

The weights of K classes are kept in the layout that suits the rows, chosen by type as in :mod:`saddlesvm.rows.layouts`:
one contiguous vector a class, shape (K, d + 1), for dense rows; one contiguous vector a feature, shape (d + 1, K), for
sparse ones, so that a stored value touches one stretch of memory instead of K. :func:`by_class` gives a view of the
same shape for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.rows.layouts import Dense, Rows, U, as_dense_row, axpy, n_features
from saddlesvm.rows.matrix import body_for
from saddlesvm.rows.small_types import number
from saddlesvm.runtime.class_sources import number_in
from saddlesvm.runtime.compiled import kernel, operation

if TYPE_CHECKING:
    from numba.core import types


def weights_shape(X: Rows, count: int) -> tuple[int, int]:
    """The shape of the weights of `count` classes in the layout of the rows."""
    width = n_features(X) + 1
    return (count, width) if isinstance(X, Dense) else (width, count)


def new_weights(X: Rows, count: int, dtype: Any) -> np.ndarray:
    """Zero weights of `count` classes in the layout of the rows."""
    return np.zeros(weights_shape(X, count), dtype=dtype)


def by_class(X: Rows, W: np.ndarray) -> np.ndarray:
    """The weights as shape (K, d + 1): a view."""
    return W if isinstance(X, Dense) else W.T


def _pick_dots(X: types.Type, i: types.Type, W: types.Type, *_: types.Type) -> Callable[..., Any]:
    zero = number_in(W)(0)
    cast = number_in(W)

    def of_dense(X: Any, i: Any, W: Any, classes: Any, count: Any, z: Any) -> Any:
        row = X.values[U(i)]
        bias = cast(X.bias)
        q = 0
        while q + 4 <= count:
            k, m, n, o = classes[q], classes[q + 1], classes[q + 2], classes[q + 3]
            wk, wm, wn, wo = W[U(k)], W[U(m)], W[U(n)], W[U(o)]
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
        while q < count:
            k = classes[q]
            wk = W[U(k)]
            a = zero
            for j in range(row.size):
                a += number(row[j]) * wk[j]
            z[k] = a + bias * wk[row.size]
            q += 1

    def of_csr(X: Any, i: Any, W: Any, classes: Any, count: Any, z: Any) -> Any:
        p, stop = U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)])
        last = W[W.shape[0] - 1]
        bias = cast(X.bias)
        if count == z.size:
            for k in range(z.size):
                z[k] = bias * last[k]
            while p < stop:
                x, part = X.data[p], W[U(X.indices[p])]
                for k in range(z.size):
                    z[k] += x * part[k]
                p += U(1)
            return
        for q in range(count):
            z[classes[q]] = bias * last[classes[q]]
        while p < stop:
            x, part = X.data[p], W[U(X.indices[p])]
            for q in range(count):
                z[classes[q]] += x * part[U(classes[q])]
            p += U(1)

    return body_for(X, of_dense, of_csr)


@operation(_pick_dots)
def dots(X: Rows, i: int, W: np.ndarray, classes: np.ndarray, count: int, z: np.ndarray) -> None:
    """``z[k] = x_i . w_k`` for the first `count` of `classes` (each once), in the precision of `W` and `z`."""
    scores = by_class(X, W) @ as_dense_row(X, i)
    z[classes[:count]] = scores[classes[:count]]


def _pick_add_row(X: types.Type, i: types.Type, c: types.Type, W: types.Type, k: types.Type) -> Callable[..., Any]:
    cast = number_in(W)

    def of_dense(X: Any, i: Any, c: Any, W: Any, k: Any) -> Any:
        axpy(X, i, c, W[U(k)])

    def of_csr(X: Any, i: Any, c: Any, W: Any, k: Any) -> Any:
        p, stop, factor = U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)]), cast(c)
        while p < stop:
            W[U(X.indices[p]), U(k)] += factor * X.data[p]
            p += U(1)
        W[W.shape[0] - 1, U(k)] += cast(c * X.bias)

    return body_for(X, of_dense, of_csr)


@operation(_pick_add_row)
def add_row(X: Rows, i: int, c: float, W: np.ndarray, k: int) -> None:
    """``w_k += c x_i``, in the precision of `W`; the virtual feature is included."""
    by_class(X, W)[k] += c * as_dense_row(X, i)


@kernel
def add_combinations(X: Rows, members: np.ndarray, coefficients: np.ndarray, W: np.ndarray) -> None:
    """``w_k += sum over members i of coefficients[i, k] x_i``, in the precision of `W`."""
    for i in members:
        for k in range(coefficients.shape[1]):
            if coefficients[i, k] != 0.0:
                add_row(X, i, coefficients[i, k], W, k)
