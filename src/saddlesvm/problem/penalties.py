"""The penalties of the weights: half a square, the absolute value, or both.

The regulariser is ``R(w) = sum_j r(w_j)`` over the features, with

    r(w) = square w^2 / 2 + l1 |w|,    square 1 or 0.

The dual variables have the pull ``v = C sum_i a_i x_i``, and the weights are ``w = grad R*(v)``:
v itself for half a square, ``soft(v, l1)`` for the elastic net. A penalty without a square has no
such map: its R* is zero where no pull is stronger than l1, and infinite elsewhere.

Solvers that step in closed form (SDCA, DCD) take penalties that hold a square. R* is then
1-smooth, so that the step for half a square, ``q = C ||x||^2``, never lowers the dual objective.
They keep v, read w through :func:`score`, and add to v. Only the column solver takes a penalty
without a square.

Source: Tibshirani (1996), "Regression shrinkage and selection via the lasso"; Zou and Hastie
(2005), "Regularization and variable selection via the elastic net"; Shalev-Shwartz and Zhang
(2014), "Accelerated proximal stochastic dual coordinate ascent", for its dual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from saddlesvm.problem.arithmetic import soft_threshold
from saddlesvm.rows.layouts import Rows, U, dot
from saddlesvm.rows.matrix import body_for
from saddlesvm.rows.small_types import number
from saddlesvm.runtime.argument_types import python_class
from saddlesvm.runtime.compiled import operation

if TYPE_CHECKING:
    from numba.core import types

    from saddlesvm.rows.matrix import CSR, Dense


class L2(NamedTuple):
    """Half a square, its own conjugate."""

    def factors(self) -> tuple[float, float]:
        """Return the factors (square, l1)."""
        return 1.0, 0.0


class ElasticNet(NamedTuple):
    """Half a square and an absolute value: weights whose pull stays below l1 are zero."""

    l1: float

    def factors(self) -> tuple[float, float]:
        """Return the factors (square, l1)."""
        return 1.0, self.l1


class L1(NamedTuple):
    """The absolute value: few weights are not zero, and no pull is stronger than l1."""

    l1: float = 1.0

    def factors(self) -> tuple[float, float]:
        """Return the factors (square, l1)."""
        return 0.0, self.l1


Penalty: TypeAlias = L2 | ElasticNet | L1


class ScaledPenalty(NamedTuple):
    """A penalty, and the factor for the whole objective that makes it contain half a square."""

    penalty: Penalty
    share: float


def elastic_net(l1_ratio: float) -> ScaledPenalty:
    """Return the penalty ``(1 - l1_ratio) / 2 ||w||^2 + l1_ratio ||w||_1``, in scikit-learn's form.

    Parameters
    ----------
    l1_ratio : float
        From 0 to 1. The objective divided by ``1 - l1_ratio`` contains half a square: solvers work
        on that. At 1 it is :class:`L1`.
    """
    if l1_ratio == 1.0:
        return ScaledPenalty(L1(), 1.0)
    share = 1.0 - l1_ratio
    if not l1_ratio > 0.0:
        return ScaledPenalty(L2(), share)
    return ScaledPenalty(ElasticNet(l1_ratio / share), share)


def modulus(penalty: Penalty) -> float:
    """Return the modulus of strong convexity of R: 1 with a square, 0 without."""
    return penalty.factors()[0]


def holds_square(penalty: Penalty) -> bool:
    """Return True if r holds a square: its conjugate is then finite for every pull."""
    return modulus(penalty) > 0.0


def _pick_score(
    penalty: types.Type, X: types.Type, i: types.Type, v: types.Type, scale: types.Type
) -> Callable[..., float]:
    def of_square(penalty: L2, X: Rows, i: int, v: np.ndarray, scale: float) -> float:
        return scale * dot(X, i, v)

    def of_dense(penalty: ElasticNet, X: Dense, i: int, v: np.ndarray, scale: float) -> float:
        row = X.values[U(i)]
        total = 0.0
        for j in range(row.size):
            # w_j = soft(scale v_j, l1), computed for the values of the row only.
            total += number(row[j]) * soft_threshold(scale * v[j], penalty.l1)
        return total + X.bias * (scale * v[v.size - 1])

    def of_csr(penalty: ElasticNet, X: CSR, i: int, v: np.ndarray, scale: float) -> float:
        total = 0.0
        for p in range(U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)])):
            total += X.data[p] * soft_threshold(scale * v[U(X.indices[p])], penalty.l1)
        return total + X.bias * (scale * v[v.size - 1])

    if python_class(penalty) is L2:
        return of_square
    return body_for(X, of_dense, of_csr)


@operation(_pick_score)
def score(penalty: Penalty, X: Rows, i: int, v: np.ndarray, scale: float) -> float:
    """Return ``x_i . w`` with the weights w that belong to the pull ``scale v``.

    The last weight, an intercept's, is its own pull.
    """
    _, l1 = penalty.factors()
    weights = [soft_threshold(scale * pull, l1) for pull in v[:-1].tolist()]
    return float(X.dense_row(i) @ np.array([*weights, scale * v[-1]]))
