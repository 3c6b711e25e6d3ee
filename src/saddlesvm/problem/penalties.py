"""The penalties: the cost of the weight of one feature, and the weight that belongs to a pull.

The regulariser is ``R(w) = sum_j r(w_j)`` over the features. The dual variables have the pull
``v = C sum_i a_i x_i``, and the weights are ``w = grad R*(v)``. A penalty is a small NamedTuple
that holds its options and has these methods for a single feature, in Python as in compiled kernels
(:func:`charge`, :func:`charge_conjugate`, :func:`weight`):

=================  =================================================================================
value(w)           ``r(w)``: zero at zero, and never negative
conjugate(v)       ``r*(v) = max_w v w - r(w)``; infinite if there is no maximum
weight(v)          the maximiser, ``grad r*(v)``: v itself for half a square, soft(v, l1) for the
                   elastic net
curvature(v)       ``r*''(v)``: 1 if the weight follows the pull, 0 if it stays at zero
domain_scale(v)    the largest factor in [0, 1] with which ``r*`` is finite; 1 if it always is
=================  =================================================================================

and these for the whole penalty:

=================  =================================================================================
identity()         True if ``weight(v)`` is v: R is half the squared norm
parts()            (square, l1) if r is ``square w^2 / 2 + l1 |w|``, as the column solver needs it
=================  =================================================================================

A penalty of blocks of weights (group lasso) is a NamedTuple, too, and contains half a square. Its
``value`` and ``conjugate`` take the features' weights or pulls, an array of shape (d,), and add up
terms that are not negative; its ``weights(v)`` is the maximiser, shape (d,). :func:`weight_at`
gives compiled kernels the weight of a single feature:

=========================  =========================================================================
weight_of(v, j, scale)     the weight of feature j at the pull ``scale v``; v has shape (d + 1,),
                           the place of the virtual feature last
=========================  =========================================================================

Solvers that step in closed form (SDCA, DCD) take every penalty whose r contains half a square:
``r*`` is then 1-smooth, so that the step for half a square, ``q = C ||x||^2``, never lowers the
dual objective. They keep v, read w through :func:`score`, and add to v. A penalty without a square
has a ``r*`` that is infinite beyond some pull: dual points are brought back by
:meth:`Penalty.domain_scale`, and only the column solver takes it.

A regularised intercept costs half its square if r holds a square, and else ``r`` of itself; a free
intercept costs nothing (:mod:`saddlesvm.problem.regularizer`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from saddlesvm.problem.arithmetic import EDGE, INF, soft_threshold
from saddlesvm.rows.layouts import Rows, U, dot
from saddlesvm.rows.matrix import body_for
from saddlesvm.rows.small_types import number
from saddlesvm.runtime.argument_types import python_class
from saddlesvm.runtime.compiled import operation

if TYPE_CHECKING:
    from numba.core import types

    from saddlesvm.rows.matrix import CSR, Dense

LARGEST = float(np.finfo(np.float64).max)  # pull that a double can hold


class Penalty(Protocol):
    """What a penalty says, see above; a NamedTuple. A penalty of another form has no ``parts``."""

    @staticmethod
    def identity() -> bool:
        """True if R is half the squared norm."""

    def value(self, w: float) -> float:
        """``r(w)``."""

    def conjugate(self, v: float) -> float:
        """``r*(v)``."""

    def weight(self, v: float) -> float:
        """``grad r*(v)``."""

    def curvature(self, v: float) -> float:
        """``r*''(v)``."""

    def domain_scale(self, v: float) -> float:
        """The largest factor in [0, 1] with which ``r*(factor v)`` is finite."""


class BlockPenalty(Protocol):
    """What a penalty of blocks of weights says, see above; a NamedTuple."""

    @staticmethod
    def identity() -> bool:
        """False: R is not half the squared norm."""

    def value(self, w: np.ndarray) -> float:
        """``R(w)``, at least ``||w||^2 / 2``."""

    def conjugate(self, v: np.ndarray) -> float:
        """``R*(v)``."""

    def weights(self, v: np.ndarray) -> np.ndarray:
        """``grad R*(v)``."""

    def weight_of(self, v: np.ndarray, j: int, scale: float) -> float:
        """The component j of ``grad R*(scale v)``."""


class L2(NamedTuple):
    """Half a square: ``r(w) = w^2 / 2``, its own conjugate."""

    @staticmethod
    def identity() -> bool:
        return True

    def parts(self) -> tuple[float, float]:
        return 1.0, 0.0

    def value(self, w: float) -> float:
        return 0.5 * w * w

    def conjugate(self, v: float) -> float:
        return 0.5 * v * v

    def weight(self, v: float) -> float:
        return v

    def curvature(self, v: float) -> float:
        return 1.0

    def domain_scale(self, v: float) -> float:
        return 1.0


class ElasticNet(NamedTuple):
    """Half a square and an absolute value, ``r(w) = w^2 / 2 + l1 |w|``.

    Weights whose pull stays below l1 are zero.

    Source: Zou and Hastie (2005), "Regularization and variable selection via the elastic net";
    Shalev-Shwartz and Zhang (2014), "Accelerated proximal stochastic dual coordinate ascent", for
    the dual.
    """

    l1: float

    @staticmethod
    def identity() -> bool:
        return False

    def parts(self) -> tuple[float, float]:
        return 1.0, self.l1

    def value(self, w: float) -> float:
        return 0.5 * w * w + self.l1 * abs(w)

    def conjugate(self, v: float) -> float:
        return 0.5 * soft_threshold(v, self.l1) ** 2

    def weight(self, v: float) -> float:
        return soft_threshold(v, self.l1)

    def curvature(self, v: float) -> float:
        return 1.0 if abs(v) > self.l1 else 0.0

    def domain_scale(self, v: float) -> float:
        return 1.0


class L1(NamedTuple):
    """The absolute value, ``r(w) = l1 |w|``.

    Few weights are not zero, and no pull is stronger than l1.

    Source: Tibshirani (1996), "Regression shrinkage and selection via the lasso".
    """

    l1: float = 1.0

    @staticmethod
    def identity() -> bool:
        return False

    def parts(self) -> tuple[float, float]:
        return 0.0, self.l1

    def value(self, w: float) -> float:
        return self.l1 * abs(w)

    def conjugate(self, v: float) -> float:
        return 0.0 if abs(v) <= self.l1 * EDGE else INF

    def weight(self, v: float) -> float:
        return 0.0

    def curvature(self, v: float) -> float:
        return 0.0

    def domain_scale(self, v: float) -> float:
        return min(1.0, self.l1 / abs(v)) if v != 0.0 else 1.0


class ScaledPenalty(NamedTuple):
    """A penalty, and the factor for the whole objective that makes it contain half a square."""

    penalty: Penalty
    share: float


def elastic_net(l1_ratio: float) -> ScaledPenalty:
    """The penalty ``(1 - l1_ratio) / 2 ||w||^2 + l1_ratio ||w||_1``, in scikit-learn's form.

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


def _of_penalty(name: str) -> Callable[..., Callable[..., float] | None]:
    """Choose the method `name` of the penalty that the first argument's type stands for."""

    def pick(penalty: types.Type, *_: types.Type) -> Callable[..., float] | None:
        return getattr(python_class(penalty), name, None)

    return pick


def is_penalty(given: object) -> bool:
    """Return True for an object with the methods of a penalty, of single weights or of blocks."""
    return isinstance(given, tuple) and hasattr(given, "identity") and hasattr(given, "conjugate")


def is_block(penalty: object) -> bool:
    """Return True for a penalty of blocks of weights."""
    return hasattr(penalty, "weight_of")


def parts_of(penalty: Penalty) -> tuple[float, float] | None:
    """(square, l1) of a penalty that is ``square w^2 / 2 + l1 |w|``; None for another form."""
    parts = getattr(penalty, "parts", None)
    return None if parts is None else parts()


def modulus(penalty: Penalty) -> float:
    """The known modulus of strong convexity of R; 0 if a penalty does not declare it."""
    parts = parts_of(penalty)
    return 0.0 if parts is None else parts[0]


def holds_square(penalty: Penalty) -> bool:
    """Return True if r outgrows every line: its conjugate is then finite for every pull."""
    return is_block(penalty) or penalty.domain_scale(LARGEST) == 1.0


@operation(_of_penalty("value"))
def charge(penalty: Penalty, w: float) -> float:
    """``r(w)``: what the regulariser charges for a weight."""
    return penalty.value(w)


@operation(_of_penalty("conjugate"))
def charge_conjugate(penalty: Penalty, v: float) -> float:
    """``r*(v)``."""
    return penalty.conjugate(v)


@operation(_of_penalty("domain_scale"))
def domain_factor(penalty: Penalty, v: float) -> float:
    """The largest factor in [0, 1] with which ``r*(factor v)`` is finite."""
    return penalty.domain_scale(v)


@operation(_of_penalty("weight"))
def weight(penalty: Penalty, v: float) -> float:
    """``grad r*(v)``: the weight that belongs to a pull."""
    return penalty.weight(v)


@operation(_of_penalty("weight_of"))
def weight_in_block(penalty: Any, v: np.ndarray, j: int | np.integer, scale: float) -> float:
    """The component j of ``grad R*(scale v)``."""
    return float(penalty.weight_of(v, j, scale))


def _pick_weight_at(
    penalty: types.Type, v: types.Type, j: types.Type, scale: types.Type
) -> Callable[..., float]:
    if is_block(python_class(penalty)):
        return lambda penalty, v, j, scale: weight_in_block(penalty, v, np.int64(j), scale)
    return lambda penalty, v, j, scale: weight(penalty, scale * v[j])


@operation(_pick_weight_at)
def weight_at(penalty: Any, v: np.ndarray, j: int | np.integer, scale: float) -> float:
    """The weight of feature j that belongs to the pull ``scale v``."""
    if is_block(penalty):
        return float(penalty.weight_of(v, j, scale))
    return float(penalty.weight(scale * v[j]))


def _pick_score(
    penalty: types.Type, X: types.Type, i: types.Type, v: types.Type, scale: types.Type
) -> Callable[..., float]:
    def of_identity(penalty: object, X: Rows, i: int, v: np.ndarray, scale: float) -> float:
        return scale * dot(X, i, v)

    def of_dense(penalty: Penalty, X: Dense, i: int, v: np.ndarray, scale: float) -> float:
        row = X.values[U(i)]
        total = 0.0
        for j in range(row.size):
            # w_j = grad R*(scale v)_j, computed for the values of the row only.
            total += number(row[j]) * weight_at(penalty, v, j, scale)
        return total + X.bias * (scale * v[v.size - 1])

    def of_csr(penalty: Penalty, X: CSR, i: int, v: np.ndarray, scale: float) -> float:
        total = 0.0
        for p in range(U(X.indptr[U(i)]), U(X.indptr[U(i) + U(1)])):
            total += X.data[p] * weight_at(penalty, v, U(X.indices[p]), scale)
        return total + X.bias * (scale * v[v.size - 1])

    kind: Any = python_class(penalty)
    if kind.identity():
        return of_identity
    return body_for("score", X, of_dense, of_csr)


@operation(_pick_score)
def score(penalty: Penalty, X: Rows, i: int, v: np.ndarray, scale: float) -> float:
    """Return ``x_i . w`` with the weights w that belong to the pull ``scale v``.

    The last weight, an intercept's, is its own pull.
    """
    weights = [weight_at(penalty, v, j, scale) for j in range(v.size - 1)]
    return float(X.dense_row(i) @ np.array([*weights, scale * v[-1]]))
