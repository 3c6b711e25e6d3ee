"""Compiled kernels of the column solver: coordinate descent on its quadratic model.

Columns are the rows of the transposed matrix, so that ``dot`` and ``axpy`` of :mod:`saddlesvm.rows.layouts` serve them.
The coordinates of a model are some features and, last, the intercept where there is one. With the slopes g of the
smooth part at the model's weights u, the model of the objective is

    m(w) = g . (w - u) + (w - u)' H (w - u) / 2 + sum_j l1_j |w_j|,
    H = X_W' B X_W + a diagonal,    B the second derivatives of the rows' terms, times C.

:func:`descend_matrix` has H as a matrix, and keeps the slopes of all coordinates. :func:`descend_columns` has columns
only, and keeps the change of the margins.

Source: Yuan, Ho and Lin (2012), "An improved GLMNET for l1-regularized logistic regression", for the model and its
descent; Friedman, Hastie and Tibshirani (2010), "Regularization paths for generalized linear models via coordinate
descent", for the descent on a matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saddlesvm.problem.arithmetic import soft_threshold
from saddlesvm.rows.layouts import Rows, U, axpy
from saddlesvm.rows.matrix import body_for
from saddlesvm.runtime.compiled import inlined, kernel, operation

if TYPE_CHECKING:
    from numba.core import types

FEW_PASSES = 20  # passes over the weights that are not zero, between two over all


class Coordinates(NamedTuple):
    """The coordinates of a model; arrays of shape (m,).

    Attributes
    ----------
    w : ndarray
        Weights, which the descent moves.
    slopes : ndarray
        Of the smooth part: of the model at `w` where the descent has a matrix, else at the model's own weights.
    l1 : ndarray
        What an absolute weight is charged.
    bends : ndarray
        The diagonal of H.
    """

    w: np.ndarray
    slopes: np.ndarray
    l1: np.ndarray
    bends: np.ndarray


@inlined
def violation(w: float, slope: float, l1: float) -> float:
    """The distance of a coordinate from its optimum: the distance from zero of the slopes that it has."""
    if w > 0.0:
        return abs(slope + l1)
    if w < 0.0:
        return abs(slope - l1)
    return max(abs(slope) - l1, 0.0)


@inlined
def stepped(w: float, slope: float, l1: float, bend: float) -> float:
    """The best value of one coordinate."""
    return soft_threshold(w - slope / bend, l1 / bend)


@inlined
def after_pass(done: int, small: bool, skips_zeros: bool) -> tuple[bool, bool]:
    """Whether the descent ends after `done` passes, and whether the next one visits only the weights that are not zero.

    It ends with a pass over all coordinates in which every violation is small. `skips_zeros`: whether the last pass
    left the weights of zero out.
    """
    if small:
        return not skips_zeros, False
    return False, done % FEW_PASSES != 0


@kernel
def violations(coordinates: Coordinates, out: np.ndarray) -> None:
    """:func:`violation` of each coordinate at its slope."""
    for j in range(out.size):
        out[j] = violation(coordinates.w[j], coordinates.slopes[j], coordinates.l1[j])


@kernel
def descend_matrix(H: np.ndarray, coordinates: Coordinates, tolerance: float, passes: int) -> float:
    """Minimise the model with the matrix H; the slopes follow. Returns the largest violation seen in the last pass."""
    w, slopes, l1, bends = coordinates
    worst, done, skips_zeros = np.inf, 0, False
    while done < passes:
        worst = 0.0
        for j in range(w.size):
            if skips_zeros and w[j] == 0.0 and l1[j] > 0.0:
                continue
            away = violation(w[j], slopes[j], l1[j])
            worst = max(worst, away)
            if away > 0.0 and bends[j] > 0.0:
                new = stepped(w[j], slopes[j], l1[j], bends[j])
                change = new - w[j]
                if change != 0.0:
                    w[j] = new
                    row = H[U(j)]
                    for other in range(w.size):
                        slopes[other] += change * row[other]
        done += 1
        ended, skips_zeros = after_pass(done, worst <= tolerance, skips_zeros)
        if ended:
            break
    return worst


def _pick_bent_dot(X: types.Type, j: types.Type, bend: types.Type, moved: types.Type) -> Callable[..., Any]:
    def of_dense(X: Any, j: Any, bend: Any, moved: Any) -> Any:
        column = X.values[U(j)]
        total = 0.0
        for i in range(column.size):
            total += column[i] * (bend[i] * moved[i])
        return total

    def of_csr(X: Any, j: Any, bend: Any, moved: Any) -> Any:
        total = 0.0
        for p in range(U(X.indptr[U(j)]), U(X.indptr[U(j) + U(1)])):
            i = U(X.indices[p])
            total += X.data[p] * (bend[i] * moved[i])
        return total

    return body_for("bent_dot", X, of_dense, of_csr)


@operation(_pick_bent_dot)
def bent_dot(X: Rows, j: int, bend: np.ndarray, moved: np.ndarray) -> float:
    """``sum_i x_ij bend_i moved_i`` of a column."""
    return float(X.dense_row(j)[:-1] @ (bend * moved))


def _pick_bent_square(X: types.Type, j: types.Type, bend: types.Type) -> Callable[..., Any]:
    def of_dense(X: Any, j: Any, bend: Any) -> Any:
        column = X.values[U(j)]
        total = 0.0
        for i in range(column.size):
            total += np.float64(column[i]) * column[i] * bend[i]
        return total

    def of_csr(X: Any, j: Any, bend: Any) -> Any:
        total = 0.0
        for p in range(U(X.indptr[U(j)]), U(X.indptr[U(j) + U(1)])):
            total += np.float64(X.data[p]) * X.data[p] * bend[U(X.indices[p])]
        return total

    return body_for("bent_square", X, of_dense, of_csr)


@operation(_pick_bent_square)
def bent_square(X: Rows, j: int, bend: np.ndarray) -> float:
    """``sum_i x_ij^2 bend_i`` of a column."""
    return float(X.dense_row(j)[:-1] ** 2 @ bend)


@kernel
def bent_squares(columns: Rows, chosen: np.ndarray, bend: np.ndarray, out: np.ndarray) -> None:
    """:func:`bent_square` of the chosen columns."""
    for k in range(chosen.size):
        out[k] = bent_square(columns, chosen[k], bend)


class Moving(NamedTuple):
    """The working data of the descent on columns.

    Attributes
    ----------
    chosen : ndarray of shape (m,) or (m - 1,)
        The columns; one less than there are coordinates where the last one is an intercept.
    scale : float
        Value of the virtual feature.
    bend, moved : ndarray of shape (n,)
        B, and the change of the margins since the model's weights.
    own : ndarray of shape (m,)
        The diagonal that is added to ``X_W' B X_W``.
    begun : ndarray of shape (m,)
        The model's weights.
    """

    chosen: np.ndarray
    scale: float
    bend: np.ndarray
    moved: np.ndarray
    own: np.ndarray
    begun: np.ndarray


@kernel
def descend_columns(columns: Rows, coordinates: Coordinates, moving: Moving, tolerance: float, passes: int) -> float:
    """Minimise the model with columns; the change of the margins follows. Returns the largest violation seen in the
    last pass over all coordinates."""
    w, slopes, l1, bends = coordinates
    chosen, scale, bend, moved, own, begun = moving
    worst, done, skips_zeros = np.inf, 0, False
    while done < passes:
        worst = 0.0
        for k in range(w.size):
            if bends[k] <= 0.0 or (skips_zeros and w[k] == 0.0 and l1[k] > 0.0):
                continue
            slope = slopes[k] + own[k] * (w[k] - begun[k])
            if k < chosen.size:
                slope += bent_dot(columns, chosen[k], bend, moved)
            else:
                for i in range(moved.size):
                    slope += scale * bend[i] * moved[i]
            away = violation(w[k], slope, l1[k])
            worst = max(worst, away)
            if away > 0.0:
                new = stepped(w[k], slope, l1[k], bends[k])
                change = new - w[k]
                if change != 0.0:
                    w[k] = new
                    if k < chosen.size:
                        axpy(columns, chosen[k], change, moved)
                    else:
                        for i in range(moved.size):
                            moved[i] += scale * change
        done += 1
        ended, skips_zeros = after_pass(done, worst <= tolerance, skips_zeros)
        if ended:
            break
    return worst
