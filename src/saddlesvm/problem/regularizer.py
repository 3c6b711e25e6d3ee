"""The regulariser: the penalty of the weights, and what a regularised intercept is charged.

All code takes ``R(w)``, ``R*(v)`` and ``w = grad R*(v)`` from this file. Both have shape (d + 1,),
the place of the virtual feature last. A regularised intercept is charged half its square, so that
the last weight is its own pull; if the penalty holds no square, it is charged like the features.
A free intercept is charged nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saddlesvm.problem.intercepts import Intercept
from saddlesvm.problem.penalties import (
    L2,
    Penalty,
    charge,
    charge_conjugate,
    domain_factor,
    holds_square,
    is_block,
    parts_of,
    weight,
)
from saddlesvm.runtime.compiled import kernel

# Values of a vector up to which OpenBLAS takes one thread, as its source says.
MOST_OF_BLAS = 10_000


@kernel
def charges(penalty: Penalty, w: np.ndarray) -> float:
    """``sum_j r(w_j)``."""
    total = 0.0
    for j in range(w.size):
        total += charge(penalty, w[j])
    return total


@kernel
def conjugate_charges(penalty: Penalty, v: np.ndarray, factor: float) -> float:
    """``sum_j r*(factor v_j)``."""
    total = 0.0
    for j in range(v.size):
        total += charge_conjugate(penalty, factor * v[j])
    return total


@kernel
def fill_weights(penalty: Penalty, v: np.ndarray, w: np.ndarray) -> None:
    """``w_j = grad r*(v_j)``."""
    for j in range(v.size):
        w[j] = weight(penalty, v[j])


@kernel
def least_domain_factor(penalty: Penalty, v: np.ndarray) -> float:
    """The largest factor in [0, 1] with which every ``r*(factor v_j)`` is finite."""
    least = 1.0
    for j in range(v.size):
        least = min(least, domain_factor(penalty, v[j]))
    return least


def inner(one: np.ndarray, other: np.ndarray) -> float:
    """Return the inner product of two vectors, by one thread."""
    # The BLAS takes a tenth of the time for short vectors. For long ones its threads would spin on
    # and take the fit's cores.
    if one.size <= MOST_OF_BLAS:
        return float(one.dot(other))
    return float(np.einsum("j,j", one, other))


def square(weights: np.ndarray) -> float:
    """Return the sum of an array's squares."""
    flat = weights.ravel()
    return inner(flat, flat)


@dataclass(frozen=True)
class Regularizer:
    """R, its conjugate, and the map from pulls to weights.

    Parameters
    ----------
    penalty : Penalty
    intercept : Intercept
    fixed : ndarray of shape (d + 1,) or (0,)
        A pull that stands still: R(w) is less by its product with w, and pulls have it in them.

    Attributes
    ----------
    is_plain : bool
        True if the penalty is half a square.
    sees_last : bool
        True if R sees the last weight, that of the intercept.
    is_half_square : bool
        True if R(w) is half the squared norm of the whole w.
    """

    penalty: Penalty
    intercept: Intercept
    fixed: np.ndarray = field(default_factory=lambda: np.empty(0), compare=False)
    is_plain: bool = field(init=False, compare=False)
    sees_last: bool = field(init=False, compare=False)
    is_half_square: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        # Certificates ask for these values many times.
        is_plain = self.penalty.identity()
        sees_last = self.intercept.present and not self.intercept.constrained
        vars(self)["is_plain"] = is_plain
        vars(self)["sees_last"] = sees_last
        vars(self)["is_half_square"] = is_plain and sees_last and not self.fixed.size

    def seen(self, w: np.ndarray) -> np.ndarray:
        """Return the part of w that R sees: all but the weight of a free intercept."""
        return w if self.sees_last else w[..., :-1]

    @property
    def last(self) -> Penalty:
        """The penalty of a regularised intercept."""
        if holds_square(self.penalty):
            return L2()
        return self.penalty

    def value(self, w: np.ndarray) -> float:
        """``R(w)``."""
        value = self._penalty_of(w)
        if self.fixed.size:
            value -= float(self.fixed @ w)
        return value

    def slope(self, w: np.ndarray, direction: np.ndarray) -> float:
        """The derivative of R at w along a direction, for half a square."""
        slope = float(self.seen(w) @ self.seen(direction))
        if self.fixed.size:
            slope -= float(self.fixed @ direction)
        return slope

    def _penalty_of(self, w: np.ndarray) -> float:
        if self.is_plain:
            return 0.5 * square(self.seen(w))
        penalty: Any = self.penalty
        features = penalty.value(w[:-1]) if is_block(penalty) else charges(penalty, w[:-1])
        return float(features + self.last.value(self._penalised_last(w)))

    def conjugate(self, v: np.ndarray) -> float:
        """``R*(v)``."""
        if self.is_plain:
            return 0.5 * square(self.seen(v))
        return self.conjugate_along(v)(1.0)

    def conjugate_along(self, v: np.ndarray) -> Callable[[float], float]:
        """The function that says ``R*(factor v)``."""
        # R*(t v) = t^2 R*(v) for half a square; other penalties are asked at every factor.
        if self.is_plain:
            half = 0.5 * square(self.seen(v))
            return lambda factor: factor * factor * half
        features = np.ascontiguousarray(v[:-1])
        charged = self._penalised_last(v)
        last = self.last
        penalty: Any = self.penalty
        if is_block(penalty):
            return lambda factor: float(
                penalty.conjugate(factor * features) + last.conjugate(factor * charged)
            )
        return lambda factor: (
            conjugate_charges(penalty, features, factor) + last.conjugate(factor * charged)
        )

    def weights(self, v: np.ndarray) -> np.ndarray:
        """``grad R*(v)``; v itself for half a square."""
        if self.is_plain:
            return v
        w = np.array(v, dtype=np.float64)
        penalty: Any = self.penalty
        if is_block(penalty):
            w[:-1] = penalty.weights(w[:-1])
            return w
        fill_weights(penalty, w[:-1].copy(), w[:-1])
        # A last weight that is charged half a square, as beside any penalty with a square, is the
        # pull itself; otherwise it has the map of the penalty.
        if not holds_square(self.penalty) and self.seen(w).size == w.size:
            w[-1] = self.last.weight(w[-1])
        return w

    def pull_to(self, w: np.ndarray) -> np.ndarray:
        """Return a pull whose weights are w: w for half a square, or without declared parts."""
        parts = parts_of(self.penalty)
        if parts is None or self.is_plain:
            return w
        v = np.array(w, dtype=np.float64)
        v[:-1] = parts[0] * w[:-1] + parts[1] * np.sign(w[:-1])
        return v

    def fenchel_gap(self, w: np.ndarray, v: np.ndarray) -> float:
        """``R(w) + R*(v) - w.v >= 0`` of what R sees: zero exactly if w belongs to v."""
        if self.is_plain:
            return 0.5 * square(self.seen(w - v))
        weights = self.seen(w)
        pull = self.seen(v)
        return self._penalty_of(w) + self.conjugate(v) - inner(weights, pull)

    def curvature(self, v: np.ndarray) -> np.ndarray:
        """Return the diagonal of ``R*''(v)``, shape (d + 1,); 0 for a free intercept."""
        bent = np.ones(v.size)
        if not self.is_plain:
            bent[:-1] = [self.penalty.curvature(one) for one in v[:-1].tolist()]
        bent[-1] = 0.0 if self.intercept.constrained else self.last.curvature(float(v[-1]))
        return bent

    def domain_scale(self, v: np.ndarray) -> float:
        """The largest factor in [0, 1] with which ``R*(factor v)`` is finite."""
        if self.is_plain or is_block(self.penalty):
            return 1.0
        return min(
            least_domain_factor(self.penalty, v[:-1]),
            self.last.domain_scale(self._penalised_last(v)),
        )

    def find_shortening(self, v: np.ndarray, distance: float | np.ndarray) -> float:
        """Return the share to shorten dual variables by for a finite R* at every pull so near to v.

        `distance` is a number for all places, or an array with a number for each.

        Shortened by it, they lose no more than that share of what they gain: conjugates are convex,
        and zero at zero.
        """
        return 1.0 - self.domain_scale(v + np.copysign(distance, v))

    def _penalised_last(self, w: np.ndarray) -> float:
        """The weight of a regularised intercept; 0 without one."""
        return float(self.seen(w)[w.size - 1 :].sum())
