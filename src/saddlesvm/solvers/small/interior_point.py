"""An interior point method for small problems whose losses are lines and parabolas in pieces.

The dual of such a problem is a quadratic program over a box. With variables t, ``a = o + sigma t`` and rows x of `Z`:

    minimise  C/2 ||sum_k sigma_k t_k x_k + ...||^2 + c't + t'Rt/2   subject to  0 <= t <= u,   P w = C sum_i a_i x_i,

and for slacks p of the lower and q of the upper bounds

    sigma_k x_k . w + c_k + r_k t_k - p_k + q_k = 0,      p_k t_k = mu,      q_k (u_k - t_k) = mu,      mu -> 0.

R is zero for lines. Where the penalty is the sum of the weights' sizes, P is zero, and each weight has a row of its
own, a unit vector, whose loss is the absolute value.

A step of Newton's method eliminates t, p and q: ``(P + C Z' D^-1 Z) dw = r`` with ``D = R + p/t + q/(u - t)``.
Each step is taken twice: without mu to see how far it leads, and then with a mu and a correction of second order that
follow from it. It needs some fifteen steps whatever the scale of the features or C.

The proximal point method of :mod:`saddlesvm.solvers.newton` takes 2.3 times as long in the mean for hinge fits of
100 x 2 to 2,000 x 60 (26 November 2026), and several classes in turn 2.4 to 4.7 times.

At the end the variables that tend to a bound are put there, so that the rows within their bounds are few. Several
problems over the same rows take their steps together, as arrays with a row for each.

Source: Mehrotra (1992), "On the implementation of a primal-dual interior point method"; Fine and Scheinberg (2001),
"Efficient SVM training using low-rank kernel representations", for the elimination.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.loss import is_smooth
from saddlesvm.solvers.base import SAME_SLOPES
from saddlesvm.solvers.small.dense import Found, Small, SmallSolver, SmallState, Together, products
from saddlesvm.solvers.small.equations import inner, solved

INSIDE = 0.995  # share of the way to the boundary that a step may go
START = 0.1  # part of its range that a variable begins away from its lower bound
MIDDLE = 0.5  # the same where a row may be on either side of its target; takes four fifths of the steps of START there
CENTRED = 0.3  # product of a way and its slack at the beginning, relative to the mean one of a range and a slope
MOST_STEPS = 60  # after which rounding has won
WELL_AHEAD = 30.0  # quotient of the interior point's gap and of that at the bounds, where this may be small enough


class Box:
    """The duals of K problems over the same rows as programs over a box, and the points that the runs stand at.

    Attributes
    ----------
    curved : bool
        Whether the losses have parabolas.
    single : bool
        Whether each row has one variable; a run alone may have rows with two, one for each sign.
    row : ndarray of shape (k,)
        The row that a variable belongs to, where they are not single.
    rows : Small
        The rows, and the weights' own.
    sigma, upper, cost : ndarray of shape (K, k)
    ridge : ndarray of shape (K, k), or 0
        Second derivatives of the variables' terms.
    fixed : ndarray of shape (K, n)
        The dual variables where all t are zero.
    ways, slacks : ndarray of shape (K, 2, k)
        The ways from the lower and from the upper bounds to the variables, and the slacks of these bounds; those of the
        upper bounds negative, so that products of both are positive, and both slacks add up to a slope.
    w : ndarray of shape (K, m)
    """

    def __init__(self, small: Small) -> None:
        y, self.rows, self.size = np.atleast_2d(small.y), small.with_axes(), small.size
        least, most = (np.broadcast_to(end, y.shape) for end in small.methods.bounds(small.loss, y, small.s))
        curved = is_smooth(small.loss)
        least, below, left = ends_of(small, y, least, curved)
        most, above, right = ends_of(small, y, most, curved)
        if small.bar:
            axes = np.full((len(y), small.Z.shape[1]), small.bar / small.C)
            least, most = np.hstack([least, -axes]), np.hstack([most, axes])
            below, above, left, right = (np.hstack([one, 0.0 * axes]) for one in (below, above, left, right))
        both = (least < 0.0) & (most > 0.0)
        straight = both & (np.abs(above - below) <= SAME_SLOPES * (1.0 + np.abs(above))) & (left == 0.0)
        self.fixed = np.where(straight, least, 0.0)
        up, down = most > 0.0, (least < 0.0) & ~straight
        self.single = bool((up ^ down).all())
        if self.single:
            self.sigma = np.where(up, 1.0, -1.0)
            self.upper, self.cost = np.where(up, most - self.fixed, -least), np.where(up, above, -below)
            ridge = np.where(up, right, left)
        else:
            [ups], [downs] = np.nonzero(up[0]), np.nonzero(down[0])
            self.row = np.concatenate([ups, downs])
            self.sigma = np.repeat([1.0, -1.0], [ups.size, downs.size])[None]
            self.upper = np.concatenate([(most - self.fixed)[:, ups], -least[:, downs]], axis=1)
            self.cost = np.concatenate([above[:, ups], -below[:, downs]], axis=1)
            ridge = np.concatenate([right[:, ups], left[:, downs]], axis=1)
        self.curved = curved
        self.ridge: Any = ridge if curved else 0.0
        middle = self.of_variables(both)
        t = np.where(middle, MIDDLE * self.upper, np.minimum(START * self.upper, START))
        if curved:
            t = np.where(ridge > 0.0, np.minimum(MIDDLE / ridge, MIDDLE * self.upper), t)
        self.w = np.zeros((len(y), small.Z.shape[1]))
        slope = self.cost + self.ridge * t  # where w is zero
        size = np.maximum(1.0, np.abs(slope).mean(axis=1, keepdims=True))
        self.ways, self.slacks = np.empty((2, len(y), 2, slope.shape[1]))
        self.ways[:, 0], self.ways[:, 1] = t, t - self.upper
        self.slacks[:, 0], self.slacks[:, 1] = np.maximum(slope, 0.0) + size, np.minimum(slope, 0.0) - size
        if middle.all() and not small.bar:
            self.begin_at_squares(size)

    def begin_at_squares(self, size: np.ndarray) -> None:
        """Begin at the weights of least squares, where both slacks of each variable have one product with its ways:
        rows on both sides of their targets then need two thirds of the steps."""
        small, upper = self.rows, self.upper
        weight = np.minimum(upper, 1.0) / size
        rhs = -small.C * products(self.of_rows(weight * self.sigma * self.cost), small.Z)
        self.w = solved(small.equations.factors(self.of_rows(weight)), rhs)
        slope = self.sigma * self.of_variables(products(self.w, small.Z.T)) + self.cost
        wide = slope * upper
        mu = np.maximum(CENTRED * np.abs(wide).mean(axis=1, keepdims=True), SAME_SLOPES)
        t = upper * (2.0 * mu / (wide + 2.0 * mu + np.hypot(wide, 2.0 * mu)))
        self.ways[:, 0], self.ways[:, 1] = t, t - upper
        self.slacks[:, 0], self.slacks[:, 1] = mu / self.ways[:, 0], mu / self.ways[:, 1]

    def among(self, chosen: np.ndarray) -> Box:
        """The runs of some of the problems."""
        some = copy.copy(self)
        for name in ("sigma", "upper", "cost", "fixed", "ways", "slacks", "w"):
            setattr(some, name, getattr(self, name)[chosen])
        some.ridge = self.ridge[chosen] if self.curved else self.ridge
        return some

    def of_variables(self, z: np.ndarray) -> np.ndarray:
        """Values at the rows, shape (K, n), for the variables."""
        return z if self.single else z.take(self.row, axis=1)

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """The sum of values of the variables of each row, shape (K, n)."""
        return values if self.single else np.bincount(self.row, values[0], self.fixed.shape[1])[None]

    def alpha(self, t: np.ndarray) -> np.ndarray:
        """The rows' dual variables, shape (K, n), and those of the weights' own rows."""
        return self.fixed + self.of_rows(self.sigma * t)

    def at_their_bounds(self) -> np.ndarray:
        """The variables, those put to a bound that tend to it: whose slack is the larger of the two."""
        t = self.ways[:, 0]
        share = t / self.upper
        # A slack of 1 belongs to the largest variable: all are far below their upper bounds where the rows are long.
        low = share < self.slacks[:, 0] * share.max(axis=1, keepdims=True)
        put = np.where(low, 0.0, np.where(share - 1.0 > self.slacks[:, 1], self.upper, t))
        return np.where(self.ridge > 0.0, t, put) if self.curved else put

    def point(self, bar: float) -> tuple[np.ndarray, np.ndarray]:
        """The weights, those put to zero that tend to it, and the rows' dual variables at their bounds."""
        alpha = self.alpha(self.at_their_bounds())
        if not bar:
            return self.w, alpha
        inside = 1.0 - np.abs(self.alpha(self.ways[:, 0])[:, self.size :]) * (self.rows.C / bar)
        return np.where(MIDDLE * inside > np.abs(self.w), 0.0, self.w), alpha[:, : self.size]


@dataclass(frozen=True)
class InteriorPoint(SmallSolver):
    """Mehrotra's predictor and corrector on the dual, in NumPy."""

    name: ClassVar[str] = "interior_point"

    def together(self, small: Small, relative_gap: float, most: int) -> Together:
        box = Box(small)
        if box.single or len(small.y) == 1:
            return ends(small, box, relative_gap, most)
        each = [small.among(np.array([k])) for k in range(len(small.y))]
        alone = [ends(one, Box(one), relative_gap, most) for one in each]
        return Together(*(np.concatenate([getattr(one, name) for one in alone]) for name in ("w", "a", "steps")))

    def begin(self, small: Small, u: np.ndarray) -> Box:
        return Box(small)

    def move(self, state: SmallState, small: Small) -> float:
        [gap] = renewed(state.at)
        state.stuck = state.steps + 1 >= MOST_STEPS or not math.isfinite(gap)
        return float(gap) / WELL_AHEAD

    def judge(self, state: SmallState, small: Small) -> Found:
        box: Box = state.at
        t = box.at_their_bounds()
        state.active = int(np.count_nonzero((t > 0.0) & (t < box.upper)))
        state.remark = f"interior point step {state.steps}: {state.active} rows within their bounds"
        [u], [a] = box.point(small.bar)
        return small.judged(u, small.Z @ u, a)


def ends_of(small: Small, y: np.ndarray, ends: np.ndarray, curved: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ends of the rows' dual variables on one side, and the slope at zero and the second derivative of the
    conjugates there, all of shape (K, n).

    An end that is infinite is replaced by twice the largest value that an optimum can have: a parabola of second
    derivative r is ``r a^2 / 2`` at its multiplier a, and no more than the losses of all rows where w is zero.
    """
    conjugate, zero = small.methods.conjugate, np.zeros(ends.shape)
    if not curved:
        return ends, np.where(ends != 0.0, conjugate(small.loss, ends, y, small.s) / ends, 0.0), zero
    trial = np.where(np.isinf(ends), np.sign(ends) * small.s, ends)
    whole, half = (conjugate(small.loss, part * trial, y, small.s) for part in (1.0, 0.5))
    ridge = np.where(trial != 0.0, 4.0 * (whole - 2.0 * half) / trial**2, 0.0)
    slope = np.where(trial != 0.0, whole / trial - 0.5 * ridge * trial, 0.0)
    paid = np.reshape(small.paid(zero), (-1, 1))
    return np.where(np.isinf(ends), np.sign(ends) * 2.0 * np.sqrt(2.0 * paid / ridge), ends), slope, ridge


def renewed(box: Box) -> np.ndarray:
    """One step of each run, in place; what the products of the ways and the slacks then add up to, times C.

    Without mu, the changes of a way and of its slack, relative to both, add up to -1.
    """
    small, ways, slacks, sigma = box.rows, box.ways, box.slacks, box.sigma
    quotients, pairs = slacks / ways, slacks * ways
    slope = sigma * box.of_variables(products(box.w, small.Z.T)) + box.cost
    weight = quotients[:, 0] + quotients[:, 1]
    if box.curved:
        slope += box.ridge * ways[:, 0]
        weight += box.ridge
    weight = 1.0 / weight
    factors = small.equations.factors(box.of_rows(weight))
    falls, signed = weight * slope, weight * sigma  # what the variables fall by where w stays, and for each unit of z
    rhs = small.C * products(box.alpha(ways[:, 0] - falls), small.Z) - small.penalty * box.w
    relative = -(falls + signed * box.of_variables(products(solved(factors, rhs), small.Z.T)))[:, None] / ways
    first = pairs * relative
    each = np.add.reduce(flat(pairs), axis=1), inner(flat(pairs), flat(relative)), inner(flat(first), flat(relative))
    ends = np.minimum.reduce(flat(relative), axis=1), np.maximum.reduce(flat(relative), axis=1)
    mu = [aimed(*one) / (2.0 * box.upper.shape[1]) for one in zip(*map(np.ndarray.tolist, each + ends), strict=True)]
    aim = (np.array(mu)[:, None, None] + first * (1.0 + relative)) / ways
    risen = signed * (aim[:, 0] + aim[:, 1])
    dw = solved(factors, rhs + small.C * products(box.of_rows(risen), small.Z))
    dt = (sigma * risen - falls - signed * box.of_variables(products(dw, small.Z.T)))[:, None]
    dslacks = aim - slacks - quotients * dt
    least = np.minimum.reduce(flat(np.minimum(dt / ways, dslacks / slacks)), axis=1)
    length = np.array([min(1.0, INSIDE * reach(one)) for one in least.tolist()])[:, None]
    box.w = box.w + length * dw
    box.ways, box.slacks = ways + length[:, None] * dt, slacks + length[:, None] * dslacks
    return small.C * inner(flat(box.slacks), flat(box.ways))


def flat(values: np.ndarray) -> np.ndarray:
    """All values of each run in a row: NumPy reduces one axis in less time than two."""
    return values.reshape(len(values), -1)


def reach(least: float) -> float:
    """The largest multiple, a little more than 1 at most, of a change that leaves all values of a run non-negative
    (before the last bit), for the least quotient of a change and its value."""
    return 1.0 / max(-least, INSIDE)


def aimed(total: float, one: float, two: float, least: float, largest: float) -> float:
    """The sum that the products of the ways and their slacks are to have after a step.

    Parameters
    ----------
    total, one, two : float
        The sums of the products, and of the products with the first and the second power of the ways' relative changes.
    least, largest : float
        Of these changes; the slacks' are -1 less them.
    """
    length, slack_length = reach(least), reach(-1.0 - largest)
    rest = 1.0 - slack_length
    left = (rest * total + (rest * length - slack_length) * one - slack_length * length * two) / (total or 1.0)
    return total * left * left * left


def ends(small: Small, box: Box, relative_gap: float, most: int) -> Together:
    """The ends of runs that begin at a box, whose steps are taken together; see :meth:`SmallSolver.together`."""
    live = np.arange(len(small.y))
    u, a, steps = np.zeros(box.w.shape), np.zeros(small.y.shape), np.zeros(live.size, dtype=int)
    primal, dual, rows = small.C * small.paid(np.zeros(small.y.shape)), np.zeros(live.size), small
    for step in range(1, min(most, MOST_STEPS) + 1):
        gaps, last = renewed(box), step == min(most, MOST_STEPS)
        near = ~(gaps > WELL_AHEAD * relative_gap * primal[live]) | last
        going = ~near
        if near.any():
            w, alpha = box.point(small.bar)
            found = small.judged(w, products(w, small.Z.T), alpha)
            better, higher = near & (found.primal < primal[live]), near & (found.dual > dual[live])
            u[live[better]], primal[live[better]] = w[better], found.primal[better]
            a[live[higher]], dual[live[higher]] = found.alpha[higher], found.dual[higher]
            best, bound = primal[live], dual[live]
            open_yet = best - bound > relative_gap * np.maximum(np.abs(best), np.abs(bound))
            going |= open_yet & np.isfinite(gaps) & (not last)
            if not going.all():
                steps[live[~going]] = step
                if not going.any():
                    break
                live, box, small = live[going], box.among(going), small.among(going)
    return Together(rows.original(u), a, steps)
