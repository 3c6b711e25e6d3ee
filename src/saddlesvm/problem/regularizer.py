"""The regulariser: the penalty of the weights, and what a regularised intercept is charged.

All code takes ``R(w)``, ``R*(v)`` and ``w = grad R*(v)`` from this file. Both have shape (d + 1,),
the place of the virtual feature last. A regularised intercept is charged half its square, so that
the last weight is its own pull; if the penalty holds no square, it is charged like the features.
A free intercept is charged nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from saddlesvm.problem.arithmetic import EDGE, soft_threshold
from saddlesvm.problem.intercepts import Intercept
from saddlesvm.problem.penalties import L2, Penalty

# Values of a vector up to which OpenBLAS takes one thread, as its source says.
MOST_OF_BLAS = 10_000


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
        The pull of rows whose dual variables are fixed: ``fixed . w`` is subtracted from R(w), and
        pulls include it.

    Attributes
    ----------
    is_plain : bool
        True if the penalty is half a square.
    charges_intercept : bool
        True if R charges the last weight, the intercept's.
    is_half_square : bool
        True if R(w) is half the squared norm of w, the intercept's weight included.
    """

    penalty: Penalty
    intercept: Intercept
    fixed: np.ndarray = field(default_factory=lambda: np.empty(0), compare=False)
    is_plain: bool = field(init=False, compare=False)
    charges_intercept: bool = field(init=False, compare=False)
    is_half_square: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        # Certificates ask for these values many times.
        is_plain = isinstance(self.penalty, L2)
        charges_intercept = self.intercept.present and not self.intercept.constrained
        vars(self)["is_plain"] = is_plain
        vars(self)["charges_intercept"] = charges_intercept
        vars(self)["is_half_square"] = is_plain and charges_intercept and not self.fixed.size

    def penalised_part(self, w: np.ndarray) -> np.ndarray:
        """Return the part of w that R charges: all but the weight of a free intercept."""
        if self.charges_intercept:
            return w
        return w[..., :-1]

    @property
    def intercept_factors(self) -> tuple[float, float]:
        """The factors of the square and of the absolute value of a regularised intercept."""
        square_factor, l1 = self.penalty.factors()
        # With a square the intercept is charged that alone.
        if square_factor > 0.0:
            l1 = 0.0
        return square_factor, l1

    def value(self, w: np.ndarray) -> float:
        """Return ``R(w)``."""
        value = self._penalty_of(w)
        if self.fixed.size:
            value -= float(self.fixed @ w)
        return value

    def _penalty_of(self, w: np.ndarray) -> float:
        """Return R(w) without the pull of fixed rows."""
        if self.is_plain:
            return 0.5 * square(self.penalised_part(w))
        factor, l1 = self.penalty.factors()
        size = l1 * float(np.abs(w[:-1]).sum())
        size += self.intercept_factors[1] * self._intercept_size(w)
        return 0.5 * factor * square(self.penalised_part(w)) + size

    def conjugate(self, v: np.ndarray) -> float:
        """Return ``R*(v)``."""
        if self.is_plain:
            return 0.5 * square(self.penalised_part(v))
        return self.conjugate_along(v)(1.0)

    def conjugate_along(self, v: np.ndarray) -> Callable[[float], float]:
        """Return the function of a factor that computes ``R*(factor v)``."""
        if self.is_plain:
            # R*(t v) = t^2 R*(v) for half a square.
            half = 0.5 * square(self.penalised_part(v))
            return lambda factor: factor * factor * half
        factor, l1 = self.penalty.factors()
        sizes = np.abs(v[:-1])
        last = self._intercept_size(v)
        if factor > 0.0:

            def soft_squares(t: float) -> float:
                """Return half the squares of soft(t v, l1), and of the last pull."""
                pulled = t * last
                # A product that is too large is infinite; a power of it would raise OverflowError.
                return 0.5 * (square(np.maximum(t * sizes - l1, 0.0)) + pulled * pulled)

            return soft_squares
        # Zero as long as no pull is stronger than l1.
        strongest = max(float(sizes.max(initial=0.0)), last)
        return lambda t: 0.0 if t * strongest <= l1 * EDGE else math.inf

    def weights(self, v: np.ndarray) -> np.ndarray:
        """Return ``grad R*(v)``: v itself for half a square, zero if the penalty has no square."""
        if self.is_plain:
            return v
        factor, l1 = self.penalty.factors()
        w = np.array(v, dtype=np.float64)
        w[:-1] = factor * soft_threshold(w[:-1], l1)  # type: ignore[arg-type]
        if self.charges_intercept:
            w[-1] = factor * w[-1]
        return w

    def pull_of_weights(self, w: np.ndarray) -> np.ndarray:
        """Return a pull whose weights are w: w itself for half a square."""
        if self.is_plain:
            return w
        factor, l1 = self.penalty.factors()
        v = np.array(w, dtype=np.float64)
        v[:-1] = factor * w[:-1] + l1 * np.sign(w[:-1])
        return v

    def curvature(self, v: np.ndarray) -> np.ndarray:
        """Return the diagonal of ``R*''(v)``, shape (d + 1,); 0 for a free intercept."""
        factor, l1 = self.penalty.factors()
        diagonal = np.full(v.size, factor)
        # A weight follows its pull once that is stronger than l1.
        if l1 > 0.0:
            diagonal[:-1][np.abs(v[:-1]) <= l1] = 0.0
        if self.intercept.constrained:
            diagonal[-1] = 0.0
        return diagonal

    def domain_scale(self, v: np.ndarray) -> float:
        """Return the largest factor in [0, 1] with which ``R*(factor v)`` is finite."""
        factor, l1 = self.penalty.factors()
        strongest = float(np.abs(self.penalised_part(v)).max(initial=0.0))
        if factor > 0.0 or strongest <= l1:
            return 1.0
        return l1 / strongest

    def _intercept_size(self, w: np.ndarray) -> float:
        """Return the absolute weight of a regularised intercept; 0 without one."""
        if not self.charges_intercept:
            return 0.0
        return abs(float(w[-1]))

    def find_shortening(self, v: np.ndarray, distance: float | np.ndarray) -> float:
        """Return the share to shorten dual variables by, for a finite R* at each pull near v.

        `distance` says how near: a number for all places, or an array with a number for each.
        Shortened dual variables lose no more than that share of their objective: conjugates are
        convex, and zero at zero.
        """
        return 1.0 - self.domain_scale(v + np.copysign(distance, v))
