"""Operations on rows for kernels: dense or CSR, of every type of number, in memory or mapped.

A kernel calls ``dot(X, i, w)``, ``axpy(X, i, c, w)`` and ``squared_norm(X, i)`` for rows of any
layout and precision: types choose among the bodies below. Only this file unrolls loops; only
:mod:`saddlesvm.rows.prefetch` prefetches.

An intercept that is a feature of constant value `bias` is appended virtually: ``w`` has a further
place more than X has columns, and row i reads ``(x_i, bias)``. With ``bias = 0`` that place is not
used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.rows.matrix import (
    CSR as CSR,
    Dense as Dense,
    Rows as Rows,
    as_rows as as_rows,
    body_for as body_for,
    check_layout as check_layout,
    in_arrays as in_arrays,
    silent as silent,
)
from saddlesvm.rows.prefetch import prefetch_member, prefetch_row
from saddlesvm.rows.small_types import number
from saddlesvm.runtime.argument_types import number_in
from saddlesvm.runtime.compiled import is_at_hand, kernel, operation

if TYPE_CHECKING:
    from numba.core import types

AT_ONCE = 2**13  # rows with a nonzero coefficient that are listed at a time; a guess
U = np.uint64


def _zero_of(w: types.Type) -> np.floating:
    """Return the zero of the precision in which `w` is summed."""
    return number_in(w)(0)


def _pick_dot(X: types.Type, i: types.Type, w: types.Type) -> Callable[..., float]:
    zero = _zero_of(w)

    def of_dense(X: Dense, i: int, w: np.ndarray) -> float:
        row = X.values[U(i)]
        total = zero
        for j in range(row.size):
            total += number(row[j]) * w[j]
        return np.float64(total) + X.bias * np.float64(w[w.size - 1])

    def of_csr(X: CSR, i: int, w: np.ndarray) -> float:
        p = U(X.indptr[U(i)])
        stop = U(X.indptr[U(i) + U(1)])
        # Four sums at a time, because each gathers from `w`; the rest follows.
        whole = p + ((stop - p) & ~U(3))
        a = b = c = d = zero
        while p < whole:
            a += X.data[p] * w[U(X.indices[p])]
            b += X.data[p + U(1)] * w[U(X.indices[p + U(1)])]
            c += X.data[p + U(2)] * w[U(X.indices[p + U(2)])]
            d += X.data[p + U(3)] * w[U(X.indices[p + U(3)])]
            p += U(4)
        while p < stop:
            a += X.data[p] * w[U(X.indices[p])]
            p += U(1)
        return np.float64((a + b) + (c + d)) + X.bias * np.float64(w[w.size - 1])

    return body_for(X, of_dense, of_csr)


@operation(_pick_dot)
def dot(X: Rows, i: int, w: np.ndarray) -> float:
    """Return ``x_i . w``, summed in the precision of `w`, with the virtual feature."""
    row = X.dense_row(i)
    return float(row @ w)


def _pick_axpy(X: types.Type, i: types.Type, c: types.Type, w: types.Type) -> Callable[..., None]:
    cast = number_in(w)

    def of_dense(X: Dense, i: int, c: float, w: np.ndarray) -> None:
        row = X.values[U(i)]
        factor = cast(c)
        for j in range(row.size):
            w[j] += factor * number(row[j])
        if X.bias != 0.0:
            w[w.size - 1] += cast(c * X.bias)

    def of_csr(X: CSR, i: int, c: float, w: np.ndarray) -> None:
        p = U(X.indptr[U(i)])
        stop = U(X.indptr[U(i) + U(1)])
        factor = cast(c)
        while p < stop:
            w[U(X.indices[p])] += factor * X.data[p]
            p += U(1)
        if X.bias != 0.0:
            w[w.size - 1] += cast(c * X.bias)

    return body_for(X, of_dense, of_csr)


@operation(_pick_axpy)
def axpy(X: Rows, i: int, c: float, w: np.ndarray) -> None:
    """Add ``c x_i`` to ``w`` in its precision, with the virtual feature if it is not zero."""
    # Without the virtual feature, w need not have a place for it.
    w += c * X.dense_row(i)[: w.size]


def _pick_squared_norm(X: types.Type, i: types.Type) -> Callable[..., float]:
    def of_dense(X: Dense, i: int) -> float:
        row = X.values[U(i)]
        total = X.bias * X.bias
        for j in range(row.size):
            # The square of a float32 in float64 neither overflows nor loses digits.
            x = np.float64(number(row[j]))
            total += x * x
        return total

    def of_csr(X: CSR, i: int) -> float:
        total = X.bias * X.bias
        p = U(X.indptr[U(i)])
        stop = U(X.indptr[U(i) + U(1)])
        while p < stop:
            total += np.float64(X.data[p]) * np.float64(X.data[p])
            p += U(1)
        return total

    return body_for(X, of_dense, of_csr)


@operation(_pick_squared_norm)
def squared_norm(X: Rows, i: int) -> float:
    """Return ``||x_i||^2`` in float64, with the virtual feature."""
    row = X.dense_row(i)
    return float(row @ row)


def is_summed_in_arrays(X: Rows) -> bool:
    """Return True if array code makes scores and sums of these rows.

    Rows in float32 must become float64 for it, which takes three times as long as a kernel's pass.
    So kernels serve them if they are compiled already.
    """
    if not in_arrays(X):
        return False
    is_widened = X.arrays[0].dtype == np.float32 and not X.is_small
    return not (is_widened and is_at_hand(dot_in_turn))


def norms_of(X: Rows, members: np.ndarray, norms: np.ndarray) -> None:
    """Set ``norms[k] = ||x_i||^2`` for the k-th member i."""
    if not is_summed_in_arrays(X):
        norms_in_turn(X, members, norms)
        return
    local, chosen = neighbours(X, members)
    squares = local.squared_norms()
    norms[:] = squares if chosen is None else squares[chosen]


def dot_rows(X: Rows, members: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """Set ``out[k] = x_i . w`` for the k-th member i.

    Array code sums in float64, kernels in the precision of `w`.
    """
    if is_summed_in_arrays(X):
        dot_by_blocks(X, members, w, out)
    else:
        dot_in_turn(X, members, w, out)


def add_rows(X: Rows, members: np.ndarray, coefficients: np.ndarray, w: np.ndarray) -> None:
    """Add the sum over members i of ``coefficients[i] x_i`` to `w`; `coefficients` has length n."""
    if is_summed_in_arrays(X):
        combine_rows(X, members, coefficients[members], w)
    else:
        add_in_lists(X, members, coefficients, w, np.empty_like(members, shape=AT_ONCE))


def neighbours(X: Rows, chosen: np.ndarray) -> tuple[Rows, np.ndarray | None]:
    """Return the chosen rows as a view and None if they are neighbours, else X and `chosen`."""
    count = chosen.size
    if not count or chosen[-1] - chosen[0] != count - 1 or not (chosen[1:] > chosen[:-1]).all():
        return X, chosen
    if count == X.n_rows:
        return X, None
    return X.between(int(chosen[0]), int(chosen[0]) + count), None


@silent
def dot_by_blocks(X: Rows, members: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """Do what :func:`dot_rows` does, in array code."""
    local, chosen = neighbours(X, members)
    weights = w[:-1].astype(np.float64, copy=False)
    if isinstance(local, Dense):
        for rows, block in local.blocks(chosen):
            out[rows] = block @ weights
    else:
        # Sparse rows: the products of all, of which the chosen ones are picked.
        z = local.float64_matrix() @ weights
        out[:] = z if chosen is None else z[chosen]
    out += X.bias * float(w[-1])


@silent
def combine_rows(X: Rows, chosen: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Add ``sum_k factors[k] x_chosen[k]`` to `out` in array code; no row is chosen twice."""
    if isinstance(X, Dense) and 2 * np.count_nonzero(factors) < factors.size:
        # Most rows add nothing: the others are copied.
        some = np.flatnonzero(factors)
        chosen = chosen[some]
        factors = factors[some]
    local, numbers = neighbours(X, chosen)
    if isinstance(local, Dense):
        for rows, block in local.blocks(numbers):
            out[:-1] += factors[rows] @ block
    else:
        # SciPy multiplies all rows: the factors of the others are zero.
        spread = factors
        if numbers is not None:
            spread = np.zeros(local.n_rows)
            spread[numbers] = factors
        out[:-1] += spread @ local.float64_matrix()
    out[-1] += X.bias * float(factors.sum())


# Kernels for sparse rows unless they are few, for many dense rows, and for types from outside.
# SciPy takes three to six times as long for a product: 17 ms instead of 6, and 19 instead of 4, for
# 100,000 rows of 50 values in float64; a fit of them then takes 1.6 times as long (26 November
# 2026). :class:`~saddlesvm.runtime.small.Most` has the other limits.


@kernel
def norms_in_turn(X: Rows, members: np.ndarray, norms: np.ndarray) -> None:
    """Do what :func:`norms_of` does, row by row."""
    for k in range(members.size):
        prefetch_member(X, members, k)
        norms[k] = squared_norm(X, members[k])


@kernel
def dot_in_turn(X: Rows, members: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """Do what :func:`dot_rows` does, row by row."""
    for k in range(members.size):
        prefetch_member(X, members, k)
        out[k] = dot(X, members[k], w)


@kernel
def add_in_lists(
    X: Rows, members: np.ndarray, coefficients: np.ndarray, w: np.ndarray, chosen: np.ndarray
) -> None:
    """Do what :func:`add_rows` does, some rows at a time, which are listed in `chosen`."""
    for start in range(0, members.size, chosen.size):
        # List the rows with a nonzero coefficient, so that the next ones can be fetched.
        count = 0
        for k in range(start, min(start + chosen.size, members.size)):
            chosen[count] = members[k]
            count += coefficients[members[k]] != 0.0
        for k in range(count):
            prefetch_row(X, chosen, k, count)
            axpy(X, chosen[k], coefficients[chosen[k]], w)
