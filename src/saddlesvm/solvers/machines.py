"""How rows respond to scores: the part of Newton's method that knows the loss.

A machine answers scores z_i with multipliers a_i, which are dual feasible, and with their derivative. With a centre c
and a proximity q a loss becomes its smoothed self,

    e_i(z) = max_a  -s_i phi_i*(-a / s_i) - a z - (q / 2) (a - c_i)^2,

which is ``s_i phi_i`` where q = 0. The multipliers are the maximisers, and ``e_i' = -a_i``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.loss import is_smooth, methods_of
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.terms import within_bounds
from saddlesvm.solvers.base import AT_BOUND

silent = np.errstate(all="ignore")  # both sides of each conditional of a loss are computed


class Sums(NamedTuple):
    """Sums over rows: of ``s phi``, of the smoothed e, and of ``s phi*``, at scores and their multipliers."""

    paid: float
    smoothed: float
    conjugates: float


class Binary:
    """One score a row: any loss with methods on arrays.

    Parameters
    ----------
    problem : Problem
        Its members are the rows; arrays here have a place for each.
    """

    columns: tuple[int, ...] = ()  # the shape of a row's scores

    def __init__(self, loss: Any, y: np.ndarray, s: Any) -> None:
        self.loss = loss
        self.methods = methods_of(loss)
        self.kinked = not is_smooth(loss)
        self.y = y
        self.s = s

    @classmethod
    def of(cls, problem: Problem) -> Binary:
        """The machine of a problem's members."""
        terms = problem.of_members
        return cls(problem.loss, terms.y, terms.weights if terms.weights.size else 1.0)

    def take(self, rows: Any) -> Binary:
        """The machine of some rows."""
        return Binary(self.loss, self.y[rows], self.weights(rows))

    def weights(self, rows: Any) -> Any:
        """The weights of some rows; 1 where all are."""
        return self.s[rows] if isinstance(self.s, np.ndarray) else self.s

    @silent
    def multipliers(self, rows: Any, Z: np.ndarray, centre: np.ndarray, q: float) -> np.ndarray:
        """The multipliers of some rows at scores Z."""
        y = self.y[rows]
        s = self.weights(rows)
        if q == 0.0:
            found: np.ndarray = -s * self.methods.subgradient(self.loss, Z, y)
            return found
        c = centre[rows]
        moved = c + self.methods.dual_step(self.loss, c, Z, y, q, s)  # type: ignore[misc]
        return within_bounds(self.methods, self.loss, moved, y, s)

    @silent
    def respond(self, rows: Any, Z: np.ndarray, centre: np.ndarray, q: float) -> tuple[np.ndarray, Sums]:
        """The multipliers of some rows at scores Z, and their sums."""
        y = self.y[rows]
        s = self.weights(rows)
        A = self.multipliers(rows, Z, centre, q)
        paid = float(np.sum(s * self.methods.value(self.loss, Z, y)))
        coupled = float(np.vdot(A, Z))
        if q == 0.0:
            # Fenchel's equality holds at slopes: phi(z) + phi*(-a) + a z = 0.
            return A, Sums(paid, paid, -(paid + coupled))
        conjugates = float(np.sum(self.methods.conjugate(self.loss, A, y, s)))
        away = A - centre[rows]
        smoothed = -conjugates - coupled - 0.5 * q * float(np.vdot(away, away))
        return A, Sums(paid, smoothed, conjugates)

    @silent
    def bend(self, rows: Any, Z: np.ndarray, A: np.ndarray, centre: np.ndarray, q: float) -> np.ndarray:
        """By how much the multipliers of some rows fall as their scores rise: the second derivatives of e."""
        y = self.y[rows]
        s = self.weights(rows)
        if q == 0.0:
            found: np.ndarray = np.broadcast_to(s * self.methods.curvature(self.loss, Z, y), Z.shape)
            return found
        # A piecewise linear loss: a multiplier moves by 1/q a unit inside its bounds, away from corners of phi*.
        left, right = self.methods.slopes(self.loss, A, Z + q * (A - centre[rows]), y, s)
        low, high = self.methods.bounds(self.loss, y, s)
        inside = (left == right) & (np.minimum(A - low, high - A) > AT_BOUND * s)
        return inside / q

    @silent
    def conjugates(self, A: np.ndarray) -> float:
        """The sum of ``s phi*`` over all rows at multipliers A."""
        return float(np.sum(self.methods.conjugate(self.loss, A, self.y, self.s)))

    def mean_bend(self, bends: np.ndarray) -> np.ndarray:
        """The mean of the bends over a row's scores."""
        return bends

    def curve(self, bends: np.ndarray, dZ: np.ndarray) -> np.ndarray:
        """By how much multipliers fall along a change of the scores."""
        return bends * dZ

    @silent
    def first_proximity(self, Z: np.ndarray, share: float) -> tuple[np.ndarray, float]:
        """A centre in the middle of the bounds, and the proximity with which about a share of the rows bend."""
        low, high = self.methods.bounds(self.loss, self.y, self.s)
        centre = np.broadcast_to(0.5 * (low + high), Z.shape).copy()
        apart = 1.0 - self.y * Z if is_classification(self.loss) else self.y - Z
        near = float(np.quantile(np.abs(apart), share))
        reach = float(np.median(np.broadcast_to(high - low, Z.shape)))
        return centre, 2.0 * near / reach + 1e-12
