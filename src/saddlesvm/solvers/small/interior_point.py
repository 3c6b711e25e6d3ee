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

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from saddlesvm.runtime.durable import Group, stored
from saddlesvm.solvers.small.dense import Found, Small, SmallSolver, SmallState, solve_positive

INSIDE = 0.995  # share of the way to the boundary that a step may go
START = 0.1  # part of its range that a variable begins away from its lower bound
MOST_STEPS = 60  # after which rounding has won
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

    def move(self, state: SmallState, small: Small) -> Found:
        box: Box = state.at
        renewed(small, box)
        state.stuck = state.steps + 1 >= MOST_STEPS or not np.isfinite(box.w).all()
        t = box.at_their_bounds()
        state.active = int(np.count_nonzero((t > 0.0) & (t < box.upper)))
        state.remark = f"interior point step {state.steps + 1}: {state.active} rows within their bounds"
        return small.judged(box.w, small.Z @ box.w, small.balanced(box.alpha(t)))


def renewed(small: Small, box: Box) -> None:
    """One step of the method, in place."""
    t, low, high, room = box.t, box.low, box.high, box.upper - box.t
    z = small.Z @ box.w
    off = box.slope(z) - low + high
    apart = small.C * (box.alpha(t) @ small.Z) - small.penalty * box.w
    weight = 1.0 / (low / t + high / room)
    normal = small.normal(box.gathered(weight) * small.C, 1.0)

    def step(towards_low: np.ndarray, towards_high: np.ndarray) -> tuple[np.ndarray, ...]:
        """The change of w, t and the slacks that brings ``low t`` and ``high room`` to the given values."""
        gain = towards_low / t - low - (towards_high / room - high) - off
        rhs = apart + small.C * (box.gathered(box.sigma * weight * gain) @ small.Z)
        dw = solve_positive(normal, rhs)
        dt = weight * (gain - box.sigma * (small.Z @ dw)[box.row])
        return dw, dt, towards_low / t - low - low / t * dt, towards_high / room - high + high / room * dt

    def longest(dt: np.ndarray, dlow: np.ndarray, dhigh: np.ndarray) -> tuple[float, float]:
        """The lengths of the steps that keep the variables, and the slacks, positive."""
        return min(reach(t, dt), reach(room, -dt)), min(reach(low, dlow), reach(high, dhigh))

    zero = np.zeros(t.size)
    _, dt, dlow, dhigh = step(zero, zero)
    ahead, slack_ahead = longest(dt, dlow, dhigh)
    mean = float(low @ t + high @ room) / (2.0 * t.size)
    left = float((low + slack_ahead * dlow) @ (t + ahead * dt) + (high + slack_ahead * dhigh) @ (room - ahead * dt))
    mu = mean * (left / (2.0 * t.size * mean)) ** 3
    dw, dt, dlow, dhigh = step(mu - dlow * dt, mu + dhigh * dt)
    length, slack_length = (min(1.0, INSIDE * one) for one in longest(dt, dlow, dhigh))
    length = slack_length = min(length, slack_length)
    box.w = box.w + length * dw
    box.t, box.low, box.high = t + length * dt, low + slack_length * dlow, high + slack_length * dhigh


def reach(value: np.ndarray, change: np.ndarray) -> float:
    """The largest multiple, 1 at most, of the change that leaves all values non-negative (before the last bit)."""
    least = float((change / value).min(initial=0.0))
    return min(1.0 / INSIDE, -1.0 / least) if least < 0.0 else 1.0 / INSIDE
