"""Compiled kernels of the column solver: coordinate descent on its quadratic model.

Columns are the rows of the transposed matrix, so that ``dot`` and ``axpy`` of
:mod:`saddlesvm.rows.layouts` serve them. The coordinates of a model are some features and, last,
the intercept if there is any. With the slopes g of the smooth part at the model's weights u, the
model of the objective is

    m(w) = g . (w - u) + (w - u)' H (w - u) / 2 + sum_j l1_j |w_j|,
    H = X_W' B X_W + a diagonal,    B the second derivatives of the rows' terms, times C.

The descent has H as a matrix, and keeps the slopes of all coordinates; or it has columns only, and
keeps the change of the margins.

Source: Yuan, Ho and Lin (2012), "An improved GLMNET for l1-regularized logistic regression", for
the model and its descent; Friedman, Hastie and Tibshirani (2010), "Regularization paths for
generalized linear models via coordinate descent", for the descent on a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddlesvm.problem.arithmetic import soft_threshold
from saddlesvm.rows.layouts import Rows, U, axpy
from saddlesvm.rows.matrix import body_for
from saddlesvm.runtime.compiled import inlined, kernel, operation

if TYPE_CHECKING:
    from numba.core import types

    from saddlesvm.rows.matrix import CSR, Dense

# Passes from one over all coordinates to the next, and between two Newton steps on the support;
# guessed.
PASSES = 20


class Coordinates(NamedTuple):
    """The coordinates of a model; arrays of shape (m,).

    Attributes
    ----------
    w : ndarray
        Weights, which the descent moves.
    slopes : ndarray
        Of the smooth part: of the model at `w` if the descent has a matrix, else at the model's own
        weights.
    l1 : ndarray
        What an absolute weight is charged.
    diagonal : ndarray
        The diagonal of H.
    """

    w: np.ndarray
    slopes: np.ndarray
    l1: np.ndarray
    diagonal: np.ndarray


@inlined
def violation(w: float, slope: float, l1: float) -> float:
    """Return how far a coordinate is from its optimum: the least size of its slopes."""
    if w > 0.0:
        return abs(slope + l1)
    if w < 0.0:
        return abs(slope - l1)
    return max(abs(slope) - l1, 0.0)


@kernel
def violations(coordinates: Coordinates, out: np.ndarray) -> None:
    """:func:`violation` of each coordinate at its slope."""
    for j in range(out.size):
        out[j] = violation(coordinates.w[j], coordinates.slopes[j], coordinates.l1[j])


def _pick_bent_dot(
    X: types.Type, j: types.Type, bend: types.Type, moved: types.Type
) -> Callable[..., float]:
    def of_dense(X: Dense, j: int, bend: np.ndarray, moved: np.ndarray) -> float:
        column = X.values[U(j)]
        total = 0.0
        for i in range(column.size):
            # x_ij (B_i dz_i), with dz the change of the margins.
            total += column[i] * (bend[i] * moved[i])
        return total

    def of_csr(X: CSR, j: int, bend: np.ndarray, moved: np.ndarray) -> float:
        total = 0.0
        for p in range(U(X.indptr[U(j)]), U(X.indptr[U(j) + U(1)])):
            i = U(X.indices[p])
            total += X.data[p] * (bend[i] * moved[i])
        return total

    return body_for(X, of_dense, of_csr)


@operation(_pick_bent_dot)
def bent_dot(X: Rows, j: int, bend: np.ndarray, moved: np.ndarray) -> float:
    """``sum_i x_ij bend_i moved_i`` of a column."""
    return float(X.dense_row(j)[:-1] @ (bend * moved))


def _pick_bent_square(X: types.Type, j: types.Type, bend: types.Type) -> Callable[..., float]:
    def of_dense(X: Dense, j: int, bend: np.ndarray) -> float:
        column = X.values[U(j)]
        total = 0.0
        for i in range(column.size):
            # The column may be float32: its square is taken in float64.
            total += np.float64(column[i]) * column[i] * bend[i]
        return total

    def of_csr(X: CSR, j: int, bend: np.ndarray) -> float:
        total = 0.0
        for p in range(U(X.indptr[U(j)]), U(X.indptr[U(j) + U(1)])):
            total += np.float64(X.data[p]) * X.data[p] * bend[U(X.indices[p])]
        return total

    return body_for(X, of_dense, of_csr)


@operation(_pick_bent_square)
def bent_square(X: Rows, j: int, bend: np.ndarray) -> float:
    """``sum_i x_ij^2 bend_i`` of a column."""
    return float(X.dense_row(j)[:-1] ** 2 @ bend)


@kernel
def bent_squares(columns: Rows, chosen: np.ndarray, bend: np.ndarray, out: np.ndarray) -> None:
    """:func:`bent_square` of the chosen columns."""
    for k in range(chosen.size):
        out[k] = bent_square(columns, chosen[k], bend)


@kernel
def copy_rows(
    columns: CSR,
    chosen: np.ndarray,
    numbers: np.ndarray,
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
) -> None:
    """Write the chosen sparse columns with row i as ``numbers[i]``, or without it if that is -1."""
    end = 0
    indptr[0] = 0
    for k in range(chosen.size):
        j = U(chosen[k])
        for p in range(U(columns.indptr[j]), U(columns.indptr[j + U(1)])):
            number = numbers[U(columns.indices[p])]
            if number >= 0:
                data[end] = columns.data[p]
                indices[end] = number
                end += 1
        indptr[k + 1] = end


class Moving(NamedTuple):
    """The working data of the descent on columns.

    Attributes
    ----------
    chosen : ndarray of shape (m,) or (m - 1,)
        The columns; one less than there are coordinates if the last is an intercept.
    scale : float
        Value of the virtual feature.
    bend, moved : ndarray of shape (n,)
        B, and the change of the margins since the model's weights.
    added : ndarray of shape (m,)
        The diagonal that is added to ``X_W' B X_W``.
    start : ndarray of shape (m,)
        The model's weights.
    """

    chosen: np.ndarray
    scale: float
    bend: np.ndarray
    moved: np.ndarray
    added: np.ndarray
    start: np.ndarray


@inlined
def slope_by_columns(columns: Rows, moving: Moving, k: int, w: float, slope: float) -> float:
    """Return the slope of a coordinate at w, which was `slope` at the model's weights."""
    # g_k + added_k (w - u_k) + x_k' B (change of the margins).
    slope += moving.added[k] * (w - moving.start[k])
    if k < moving.chosen.size:
        return slope + bent_dot(columns, moving.chosen[k], moving.bend, moving.moved)
    for i in range(moving.moved.size):
        slope += moving.scale * moving.bend[i] * moving.moved[i]
    return slope


@inlined
def move_columns(columns: Rows, moving: Moving, k: int, change: float) -> None:
    """Change the margins by what a coordinate has moved."""
    if k < moving.chosen.size:
        axpy(columns, moving.chosen[k], change, moving.moved)
    else:
        for i in range(moving.moved.size):
            moving.moved[i] += moving.scale * change


@kernel
def descend(
    H: np.ndarray | None,
    columns: Rows | None,
    moving: Moving | None,
    coordinates: Coordinates,
    tolerance: float,
    passes: int,
) -> float:
    """Minimise the model by coordinate descent, on the matrix H or on columns.

    The slopes follow each step on H, the change of the margins on columns. The other arguments
    are None, and compiled code knows which. The descent ends with a pass over all
    coordinates in which no violation is above `tolerance`, or after so many passes, most of which
    visit only the weights that are not zero. Returns the largest violation seen in the last pass.
    """
    w, slopes, l1, diagonal = coordinates
    worst = np.inf
    skips_zeros = False
    for done in range(1, passes + 1):
        worst = 0.0
        for k in range(w.size):
            if diagonal[k] <= 0.0 or (skips_zeros and w[k] == 0.0 and l1[k] > 0.0):
                continue
            # The slope of the model's smooth part along w_k, by the columns if there is no matrix.
            slope = slopes[k]
            if columns is not None:
                slope = slope_by_columns(columns, moving, k, w[k], slope)  # type: ignore[arg-type]
            violation_k = violation(w[k], slope, l1[k])
            worst = max(worst, violation_k)
            if violation_k > 0.0:
                # The minimiser along w_k: a soft threshold of the Newton step.
                new = soft_threshold(w[k] - slope / diagonal[k], l1[k] / diagonal[k])
                change = new - w[k]
                if change != 0.0:
                    w[k] = new
                    # All slopes follow by a row of H, or the margins by a column.
                    if H is not None:
                        row = H[U(k)]
                        for other in range(w.size):
                            slopes[other] += change * row[other]
                    if columns is not None:
                        move_columns(columns, moving, k, change)  # type: ignore[arg-type]
        # Most passes visit the weights that are not zero; the end needs a pass over all.
        if worst > tolerance:
            skips_zeros = done % PASSES != 0
        elif skips_zeros:
            skips_zeros = False
        else:
            break
    return worst
