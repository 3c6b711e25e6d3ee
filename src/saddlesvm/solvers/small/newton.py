"""Newton's method for small problems with smooth losses, from zero.

The step d solves ``(P + C Z' diag(phi'') Z) d = -(P u - u(a))`` with ``a = -phi'`` at the present margins, which is
dual feasible and so yields a bound at every step; an exact search along the line follows, which makes the method end
after finitely many steps where the derivative is piecewise linear. :mod:`saddlesvm.solvers.second_order.newton` is the
same method for problems of any size.

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large scale linear SVMs".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from saddlesvm.runtime.durable import Group, stored
from saddlesvm.solvers.small.dense import Found, Small, SmallSolver, SmallState, solve_positive

ENOUGH = 0.1  # derivative at the end of a search along a line, relative to its value at the start
SEARCH_STEPS = 60
WIDEN = 10.0  # factor by which the search along a line extends its step at once, at most


@dataclass
class At(Group):
    """The point that the run stands at: weights, margins, multipliers, and second derivatives of the rows' terms.

    `pull` is ``C sum_i a_i x_i``, once it is computed.
    """

    __stored__ = stored("u", "z", "a", "bend")
    u: np.ndarray
    z: np.ndarray
    a: np.ndarray
    bend: np.ndarray
    pull: np.ndarray | None = None


@dataclass(frozen=True)
class SmallNewton(SmallSolver):
    """Newton's method on the primal, in NumPy."""

    name: ClassVar[str] = "dense_newton"

    def begin(self, small: Small, u: np.ndarray) -> At:
        zero = np.zeros_like(u)
        at, nowhere = response(small, u, small.Z @ u), response(small, zero, small.Z @ zero)
        # So far out that the objective is above that of zero, a smooth loss may have no curvature to use.
        return nowhere if own(small, nowhere) < own(small, at) else at

    def move(self, state: SmallState, small: Small) -> float:
        at: At = state.at
        gradient = small.penalty * at.u - pulled(small, at)
        direction = solve_positive(small.normal(small.C * at.bend, 1.0), -gradient)
        moved = searched(small, at, direction, small.Z @ direction)
        state.stuck = moved is at
        state.at = moved
        if small.problem.intercept.constrained:  # the gap is another where the multipliers are balanced
            return 0.0
        gradient = moved.u - pulled(small, moved)
        return 0.5 * float(gradient @ gradient)  # exactly, of multipliers that are slopes

    def judge(self, state: SmallState, small: Small) -> Found:
        at: At = state.at
        state.active = int(np.count_nonzero(at.bend))
        state.remark = f"Newton step {state.steps}: {state.active} rows bend"
        return small.judged(at.u, at.z, at.a, small.penalty * pulled(small, at))


def pulled(small: Small, at: At) -> np.ndarray:
    """``C sum_i a_i x_i``, computed once for a point."""
    if at.pull is None:
        at.pull = small.C * (at.a @ small.Z)
    return at.pull


def response(small: Small, u: np.ndarray, z: np.ndarray) -> At:
    """The multipliers and second derivatives at margins z."""
    a = -small.s * small.methods.subgradient(small.loss, z, small.y)
    bend = small.s * small.methods.curvature(small.loss, z, small.y)
    return At(u, z, a, bend if isinstance(bend, np.ndarray) else np.full(z.shape, bend))


def own(small: Small, at: At) -> float:
    """The objective of a point."""
    return 0.5 * float(small.penalty @ (at.u * at.u)) + small.C * small.paid(at.z)


def searched(small: Small, at: At, direction: np.ndarray, dz: np.ndarray) -> At:
    """The point on the line where the objective is least, roughly; `at` itself where it does not fall."""
    weighed = small.penalty * direction
    linear, quadratic = float(weighed @ at.u), float(weighed @ direction)

    def slope(there: At, tau: float) -> float:
        return linear + tau * quadratic - small.C * float((there.a * dz).sum())

    begin = slope(at, 0.0)
    if not begin < 0.0 or not np.isfinite(dz).all():
        return at
    low, high, tau, before = 0.0, np.inf, 1.0, np.inf
    for _ in range(SEARCH_STEPS):
        there = response(small, at.u + tau * direction, at.z + tau * dz)
        residual = slope(there, tau)
        if abs(residual) <= -ENOUGH * begin:
            break
        low, high = (tau, high) if residual < 0.0 else (low, tau)
        rise = quadratic + small.C * float((there.bend * dz * dz).sum())
        newton = tau - residual / rise if rise > 0.0 else np.inf
        slow, before = abs(residual) > 0.5 * before, abs(residual)
        if high == np.inf:
            following = min(newton, WIDEN * tau)
        else:
            following = newton if low < newton < high and not slow else 0.5 * (low + high)
        if following == tau or not np.isfinite(following):
            break
        tau = following
    return there if (there.u != at.u).any() else at
