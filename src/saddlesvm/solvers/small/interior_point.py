"""An interior point method for small problems with piecewise linear losses.

The dual of such a problem is a quadratic program over a box. With variables t, ``a = o + sigma t`` and rows x of `Z`:

    minimise  C/2 ||sum_k sigma_k t_k x_k + ...||^2 + c't     subject to  0 <= t <= u,      P w = C sum_i a_i x_i,

and for slacks p of the lower and q of the upper bounds

    sigma_k x_k . w + c_k - p_k + q_k = 0,      p_k t_k = mu,      q_k (u_k - t_k) = mu,      mu -> 0.

A step of Newton's method eliminates t, p and q, and solves ``(P + C Z' D^-1 Z) dw = r`` with ``D = p/t + q/(u - t)``.
Each step is taken twice: without mu to see how far it leads, and then with a mu and a correction of second order that
follow from it. It needs some fifteen steps whatever the scale of the features or C.

At the end the variables that tend to a bound are put there, so that the rows within their bounds are few.

Source: Mehrotra (1992), "On the implementation of a primal-dual interior point method"; Fine and Scheinberg (2001),
"Efficient SVM training using low-rank kernel representations", for the elimination.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from saddlesvm.runtime.durable import Group, stored
from saddlesvm.solvers.small.dense import Found, Small, SmallSolver, SmallState, solve_positive

INSIDE = 0.995  # share of the way to the boundary that a step may go
START = 0.1  # part of its range that a variable begins away from its lower bound
MOST_STEPS = 60  # after which rounding has won
WELL_AHEAD = 30.0  # quotient of the interior point's gap and of that at the bounds, where this may be small enough
EQUAL = 1e-12  # relative difference below which two slopes are one


class Box(Group):
    """The dual as a program over a box, and the point that the run stands at.

    Attributes
    ----------
    row : ndarray of shape (k,)
        The row that a variable belongs to.
    sigma, upper, cost : ndarray of shape (k,)
    fixed : ndarray of shape (n,)
        The dual variables where all t are zero.
    t, low, high : ndarray of shape (k,)
        Variables, and the slacks of their lower and upper bounds.
    w : ndarray of shape (m,)
    """

    __stored__ = stored("t", "low", "high", "w")

    def __init__(self, small: Small) -> None:
        n, conjugate = small.size, small.methods.conjugate
        least, most = (np.broadcast_to(end, (n,)) for end in small.methods.bounds(small.loss, small.y, small.s))
        below = np.where(least < 0.0, conjugate(small.loss, least, small.y, small.s) / least, 0.0)
        above = np.where(most > 0.0, conjugate(small.loss, most, small.y, small.s) / most, 0.0)
        both = (least < 0.0) & (most > 0.0)
        straight = both & (np.abs(above - below) <= EQUAL * (1.0 + np.abs(above)))
        self.fixed = np.where(straight, least, 0.0)
        up, down = np.flatnonzero(most > 0.0), np.flatnonzero((least < 0.0) & ~straight)
        self.row = np.concatenate([up, down])
        self.sigma = np.concatenate([np.ones(up.size), -np.ones(down.size)])
        self.upper = np.concatenate([(most - self.fixed)[up], -least[down]])
        self.cost = np.concatenate([above[up], -below[down]])
        self.single = self.row.size == n
        self.t = np.minimum(START * self.upper, START)
        self.w = np.zeros(small.Z.shape[1])
        slope = self.slope(small.Z @ self.w)
        size = max(1.0, float(np.abs(slope).mean()))
        self.low, self.high = np.maximum(slope, 0.0) + size, np.maximum(-slope, 0.0) + size

    def slope(self, z: np.ndarray) -> np.ndarray:
        """The slope of the negated dual along each variable at margins z, divided by C."""
        return self.sigma * z[self.row] + self.cost

    def alpha(self, t: np.ndarray) -> np.ndarray:
        """The rows' dual variables."""
        return self.fixed + self.gathered(self.sigma * t)

    def gathered(self, values: np.ndarray) -> np.ndarray:
        """The sum of values of the variables of each row."""
        if not self.single:
            return np.bincount(self.row, values, self.fixed.size)
        out = np.empty(values.size)
        out[self.row] = values
        return out

    def at_their_bounds(self) -> np.ndarray:
        """The variables, those put to a bound that tend to it: whose slack is the larger of the two."""
        share = self.t / self.upper
        return np.where(share < self.low, 0.0, np.where(1.0 - share < self.high, self.upper, self.t))


@dataclass(frozen=True)
class InteriorPoint(SmallSolver):
    """Mehrotra's predictor and corrector on the dual, in NumPy."""

    name: ClassVar[str] = "interior_point"

    def begin(self, small: Small, u: np.ndarray) -> Box:
        return Box(small)

    def move(self, state: SmallState, small: Small) -> float:
        gap = renewed(small, state.at)
        state.stuck = state.steps + 1 >= MOST_STEPS or not math.isfinite(gap)
        return gap / WELL_AHEAD

    def judge(self, state: SmallState, small: Small) -> Found:
        box: Box = state.at
        t = box.at_their_bounds()
        state.active = int(np.count_nonzero((t > 0.0) & (t < box.upper)))
        state.remark = f"interior point step {state.steps}: {state.active} rows within their bounds"
        return small.judged(box.w, small.Z @ box.w, box.alpha(t))


def renewed(small: Small, box: Box) -> float:
    """One step of the method, in place; what the products of the variables and their slacks then add up to, times C."""
    values, slacks = np.array((box.t, box.upper - box.t)), np.array((box.low, box.high))
    quotients = slacks / values
    z = small.Z @ box.w
    off = box.slope(z) - box.low + box.high
    apart = small.C * (box.alpha(box.t) @ small.Z) - small.penalty * box.w
    weight = 1.0 / (quotients[0] + quotients[1])
    normal = small.normal(box.gathered(weight) * small.C, 1.0)

    def step(towards: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The change of w, the variables and the slacks that brings the products of the last two to `towards`."""
        rest = towards / values - slacks
        gain = rest[0] - rest[1] - off
        rhs = apart + small.C * (box.gathered(box.sigma * weight * gain) @ small.Z)
        dw = solve_positive(normal, rhs)
        dt = weight * (gain - box.sigma * (small.Z @ dw)[box.row])
        dvalues = np.array((dt, -dt))
        return dw, dvalues, rest - quotients * dvalues

    _, dvalues, dslacks = step(np.zeros(values.shape))
    ahead, slack_ahead = reach(values, dvalues), reach(slacks, dslacks)
    count = float(values.size)
    mean = float((slacks * values).sum()) / count
    left = float(((slacks + slack_ahead * dslacks) * (values + ahead * dvalues)).sum())
    mu = mean * (left / (count * mean)) ** 3
    dw, dvalues, dslacks = step(mu - dslacks * dvalues)
    length = min(1.0, INSIDE * reach(values, dvalues), INSIDE * reach(slacks, dslacks))
    box.w = box.w + length * dw
    slacks = slacks + length * dslacks
    values = values + length * dvalues
    box.t, box.low, box.high = values[0], slacks[0], slacks[1]
    return small.C * float((slacks * values).sum())


def reach(value: np.ndarray, change: np.ndarray) -> float:
    """The largest multiple, 1 at most, of the change that leaves all values non-negative (before the last bit)."""
    least = float((change / value).min(initial=0.0))
    return min(1.0 / INSIDE, -1.0 / least) if least < 0.0 else 1.0 / INSIDE
