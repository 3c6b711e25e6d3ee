"""An interior point method for small problems whose losses are lines and parabolas in pieces.

The dual of such a problem is a quadratic program over a box. With variables t,
``a = o + sigma t`` and rows x of `Z`:

    minimise    C/2 ||sum_k sigma_k t_k x_k + ...||^2 + c't + t'Rt/2
    subject to  0 <= t <= u,   P w = C sum_i a_i x_i,

and for slacks p of the lower and q of the upper bounds

    sigma_k x_k . w + c_k + r_k t_k - p_k + q_k = 0,
    p_k t_k = mu,   q_k (u_k - t_k) = mu,   mu -> 0.

R is zero for lines. If the penalty is the sum of the weights' sizes, P is zero, and each weight has
a row of its own, a unit vector, whose loss is the absolute value.

A step of Newton's method eliminates t, p and q: ``(P + C Z' D^-1 Z) dw = r`` with
``D = R + p/t + q/(u - t)``. Each step is taken twice: without mu to see how far it leads, and then
with a mu and a correction of second order that follow from it. It needs some fifteen steps
whatever the scale of the features or C.

The proximal point method of :mod:`saddlesvm.solvers.newton` takes 2.3 times as long in the mean
for hinge fits of 100 x 2 to 2,000 x 60 (26 November 2026), and several classes in turn 2.4 to 4.7
times.

At the end the variables that tend to a bound are put there, so that the rows within their bounds
are few. Several problems over the same rows take their steps together, as arrays with a row for
each.

Source: Mehrotra (1992), "On the implementation of a primal-dual interior point method"; Fine and
Scheinberg (2001), "Efficient SVM training using low-rank kernel representations", for the
elimination.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np

from saddlesvm.problem.loss import is_smooth
from saddlesvm.solvers.base import SAME_SLOPES
from saddlesvm.solvers.small.dense import FoundWeights, Small, inner, products, solve
from saddlesvm.solvers.small.runs import Runs

INSIDE = 0.995  # share of the way to the boundary that a step may go; Mehrotra's
# Part of its range that a variable begins away from its lower bound; and the same of a row that may
# be on either side of its target, which takes four fifths of the steps of START there: measured.
START = 0.1
MIDDLE = 0.5
# Product of a way and its slack at the beginning, relative to the mean one of a range and a slope:
# measured.
CENTRED = 0.3
MOST_STEPS = 60  # after which rounding has won
# Quotient of the interior point's gap and of that at the bounds, if this may be small enough:
# measured.
WELL_AHEAD = 30.0


class Box(Runs):
    """The duals of K problems over the same rows, and the points that their runs stand at.

    Attributes
    ----------
    curved : bool
        True if the losses have parabolas.
    single : bool
        True if each row has one variable; a run alone may have rows with two, one for each sign.
    row : ndarray of shape (k,)
        The row that a variable belongs to, if they are not single.
    steps : int
        Steps of the runs so far.
    small : Small
    rows : Small
        The rows, and the weights' own.
    sigma, upper, cost : ndarray of shape (K, k)
    ridge : ndarray of shape (K, k), or 0
        Second derivatives of the variables' terms.
    fixed : ndarray of shape (K, n)
        The dual variables if all t are zero.
    ways, slacks : ndarray of shape (K, 2, k)
        The ways from the lower and from the upper bounds to the variables, and the slacks of these
        bounds. Those of the upper bounds are negative, so that products of both are positive, and
        both slacks add up to a slope.
    w : ndarray of shape (K, m)
    z : ndarray of shape (K, n)
        The margins of w.
    paired : ndarray of shape (K,)
        The sums of the products of ways and slacks.
    """

    words: ClassVar[tuple[str, str]] = "interior point step", "rows within their bounds"

    def __init__(self, small: Small) -> None:
        y = small.y
        curved = is_smooth(small.loss)
        self.curved = curved
        self.steps = 0
        self.small = small
        self.rows = small.with_axes()
        self.size = small.size

        # The ends of each row's dual variable, and its conjugate on both sides of zero.
        least, most = small.methods.bounds(small.loss, y, small.s)
        least, below, left = conjugate_pieces(small, y, np.broadcast_to(least, y.shape), curved)
        most, above, right = conjugate_pieces(small, y, np.broadcast_to(most, y.shape), curved)
        if small.bar:
            # The weights' own rows: their loss is the absolute value.
            axes = np.full((len(y), small.Z.shape[1]), small.bar / small.C)
            zero = np.zeros(axes.shape)
            least = np.hstack([least, -axes])
            most = np.hstack([most, axes])
            below, above, left, right = (
                np.hstack([one, zero]) for one in (below, above, left, right)
            )

        # A variable of both signs whose conjugate is one line begins at its lower end.
        both = (least < 0.0) & (most > 0.0)
        is_line = np.abs(above - below) <= SAME_SLOPES * (1.0 + np.abs(above))
        straight = both & is_line & (left == 0.0)
        self.fixed = np.where(straight, least, 0.0)
        # A variable t >= 0 for each sign that a row's dual variable may have.
        up = most > 0.0
        down = (least < 0.0) & ~straight
        self.single = bool((up ^ down).all())
        self.are_together = self.single or len(y) == 1
        if self.single:
            self.sigma = np.where(up, 1.0, -1.0)
            self.upper = np.where(up, most - self.fixed, -least)
            self.cost = np.where(up, above, -below)
            ridge = np.where(up, right, left)
        else:
            [ups] = np.nonzero(up[0])
            [downs] = np.nonzero(down[0])
            self.row = np.concatenate([ups, downs])
            self.sigma = np.repeat([1.0, -1.0], [ups.size, downs.size])[None]
            self.upper = np.concatenate([(most - self.fixed)[:, ups], -least[:, downs]], axis=1)
            self.cost = np.concatenate([above[:, ups], -below[:, downs]], axis=1)
            ridge = np.concatenate([right[:, ups], left[:, downs]], axis=1)
        self.ridge: Any = ridge if curved else 0.0
        self.w = np.zeros((len(y), small.Z.shape[1]))
        self.z = np.zeros(self.fixed.shape)
        self.begin(self.of_variables(both))
        self.paired = inner(flat(self.slacks), flat(self.ways))

    def begin(self, middle: np.ndarray) -> None:
        """Begin inside the box, for zero weights; variables of both signs in the `middle`."""
        # Near zero, or in the middle if both signs are likely; inside the parabola if there is one.
        low = np.minimum(START * self.upper, START)
        t = np.where(middle, MIDDLE * self.upper, low)
        if self.curved:
            inside = np.minimum(MIDDLE / self.ridge, MIDDLE * self.upper)
            t = np.where(self.ridge > 0.0, inside, t)
        slope = self.cost + self.ridge * t
        size = np.maximum(1.0, np.abs(slope).mean(axis=1, keepdims=True))

        # Slacks that add up to the slopes.
        self.ways, self.slacks = np.empty((2, len(t), 2, slope.shape[1]))
        self.ways[:, 0] = t
        self.ways[:, 1] = t - self.upper
        self.slacks[:, 0] = np.maximum(slope, 0.0) + size
        self.slacks[:, 1] = np.minimum(slope, 0.0) - size
        if middle.all() and not self.rows.bar:
            self.begin_at_squares(size)

    def begin_at_squares(self, size: np.ndarray) -> None:
        """Begin at the weights of least squares, with one product of ways and slacks for all.

        Rows on both sides of their targets then need two thirds of the steps.
        """
        small = self.rows
        upper = self.upper
        # Least squares of the rows' targets, weighted by the ranges, at most 1.
        weight = np.minimum(upper, 1.0) / size
        right = -small.C * products(self.of_rows(weight * self.sigma * self.cost), small.Z)
        self.w = solve(small.equations.factors(self.of_rows(weight)), right)
        self.z = products(self.w, small.Z.T)
        slope = self.sigma * self.of_variables(self.z) + self.cost

        # The root of mu / t - mu / (u - t) = slope; mu is relative to the mean of slope and range.
        wide = slope * upper
        mu = np.maximum(CENTRED * np.abs(wide).mean(axis=1, keepdims=True), SAME_SLOPES)
        t = upper * (2.0 * mu / (wide + 2.0 * mu + np.hypot(wide, 2.0 * mu)))
        self.ways[:, 0] = t
        self.ways[:, 1] = t - upper
        self.slacks[:, 0] = mu / self.ways[:, 0]
        self.slacks[:, 1] = mu / self.ways[:, 1]

    def pick(self, chosen: np.ndarray) -> Self:
        """Return some of the runs."""
        some = copy.copy(self)
        some.small = self.small.pick(chosen)
        for name in ("sigma", "upper", "cost", "fixed", "ways", "slacks", "w", "z", "paired"):
            setattr(some, name, getattr(self, name)[chosen])
        if self.curved:
            some.ridge = self.ridge[chosen]
        return some

    def of_variables(self, z: np.ndarray) -> np.ndarray:
        """Return values at the rows, shape (K, n), for the variables."""
        return z if self.single else z.take(self.row, axis=1)

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of values of the variables of each row, shape (K, n)."""
        if self.single:
            return values
        # A row with two variables, one for each sign, adds both up.
        return np.bincount(self.row, values[0], self.fixed.shape[1])[None]

    def take_step(self) -> np.ndarray:
        """Take a step of each run; return a share of the sums of ways times slacks, times C."""
        small = self.rows
        ways = self.ways
        slacks = self.slacks
        sigma = self.sigma

        # The inverse of D = R + p/t + q/(u - t), and the slopes of the variables' terms.
        quotients = slacks / ways
        weight = quotients[:, 0] + quotients[:, 1]
        slope = sigma * self.of_variables(self.z)
        slope += self.cost
        if self.curved:
            slope += self.ridge * ways[:, 0]
            weight += self.ridge
        np.divide(1.0, weight, out=weight)
        factors = small.equations.factors(self.of_rows(weight))

        # The variables fall by `falls` if w stays, and by `signed` for each unit of a margin.
        falls = weight * slope
        signed = weight * sigma
        right = small.C * products(self.alpha(ways[:, 0] - falls), small.Z)
        right -= small.penalty * self.w

        # The predictor, without mu: the changes of the ways, relative to them; those of the slacks
        # and these add up to -1.
        dz = products(solve(factors, right), small.Z.T)
        dt = signed * self.of_variables(dz)
        dt += falls
        np.negative(dt, out=dt)
        relative = dt[:, None] / ways
        first = slacks * dt[:, None]
        course = (
            self.paired.tolist(),
            np.add.reduce(flat(first), axis=1).tolist(),
            inner(flat(first), flat(relative)).tolist(),
            np.minimum.reduce(flat(relative), axis=1).tolist(),
            np.maximum.reduce(flat(relative), axis=1).tolist(),
        )

        # The corrector, with a mu that the predictor's lengths give, and its products of second
        # order.
        count = 2.0 * self.upper.shape[1]
        mu = [aimed_sum(*one) / count for one in zip(*course, strict=True)]
        aim = (np.array(mu)[:, None, None] + first * (1.0 + relative)) / ways
        rises = weight * (aim[:, 0] + aim[:, 1])
        right += small.C * products(self.of_rows(sigma * rises), small.Z)
        dw = solve(factors, right)
        dz = products(dw, small.Z.T)
        dt = rises - falls
        dt -= signed * self.of_variables(dz)
        dt = dt[:, None]
        aim -= slacks
        dslacks = aim - quotients * dt

        self.move(dw, dz, dt, dslacks)
        self.steps += 1
        if self.steps >= MOST_STEPS:
            return np.full(len(self.w), np.nan)
        return (small.C / WELL_AHEAD) * self.paired

    def move(self, dw: np.ndarray, dz: np.ndarray, dt: np.ndarray, dslacks: np.ndarray) -> None:
        """Move by changes of the weights, margins, ways and slacks as far as the bounds allow."""
        # The step stops short of the nearest bound, so that all ways and slacks keep their signs.
        shortest = np.minimum(dt / self.ways, dslacks / self.slacks)
        least = np.minimum.reduce(flat(shortest), axis=1)
        length = np.array([min(1.0, INSIDE * reach(one)) for one in least.tolist()])[:, None]
        self.w = self.w + length * dw
        self.z = self.z + length * dz
        self.ways = self.ways + length[:, None] * dt
        self.slacks = self.slacks + length[:, None] * dslacks
        # The gap of the interior point, divided by C.
        self.paired = inner(flat(self.slacks), flat(self.ways))

    def alpha(self, t: np.ndarray) -> np.ndarray:
        """Return the rows' dual variables, shape (K, n), and those of the weights' own rows."""
        return self.fixed + self.of_rows(self.sigma * t)

    def at_their_bounds(self) -> np.ndarray:
        """Return the variables, those put to a bound that tend to it.

        They are those whose slack is the larger of the two.
        """
        t = self.ways[:, 0]
        # Strict complementarity: near the optimum either the way or the slack goes to zero.
        share = t / self.upper
        # A slack of 1 belongs to the largest variable: all are far below their upper bounds if the
        # rows are long.
        is_low = share < self.slacks[:, 0] * share.max(axis=1, keepdims=True)
        is_high = share - 1.0 > self.slacks[:, 1]
        put = np.where(is_low, 0.0, np.where(is_high, self.upper, t))
        return np.where(self.ridge > 0.0, t, put) if self.curved else put

    def point(self) -> FoundWeights:
        """Return weights and the rows' dual variables, zero or at a bound if they tend to it."""
        small = self.small
        alpha = self.alpha(self.at_their_bounds())
        if not small.bar:
            return small.evaluate(self.w, alpha)
        # How far the pull of a weight is from its bound: a weight that is closer to zero than its
        # pull to the bound is zero in the limit (strict complementarity).
        own = np.abs(self.alpha(self.ways[:, 0])[:, self.size :])
        inside = 1.0 - own * (small.C / small.bar)
        w = np.where(MIDDLE * inside > np.abs(self.w), 0.0, self.w)
        return small.evaluate(w, alpha[:, : self.size])

    def count_active(self) -> int:
        """Return how many variables tend to no bound: the rows on the margin."""
        t = self.at_their_bounds()
        return int(np.count_nonzero((t > 0.0) & (t < self.upper)))


def conjugate_pieces(
    small: Small, y: np.ndarray, ends: np.ndarray, curved: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what the rows' conjugates are between zero and the dual variables' ends on one side.

    The ends, the slopes at zero and the second derivatives, all of shape (K, n). An end that is
    infinite is replaced by twice the largest value that an optimum can have: a parabola of second
    derivative r is ``r a^2 / 2`` at its multiplier a, and no more than the losses of all rows at
    zero weights.
    """
    conjugate = small.methods.conjugate
    zero = np.zeros(ends.shape)
    if not curved:
        # A piece that is a line through zero: its slope is its value over its length.
        slope = conjugate(small.loss, ends, y, small.s) / ends
        return ends, np.where(ends != 0.0, slope, 0.0), zero

    # A parabola without a constant is known by its values at a multiplier and at half of it.
    is_open = np.isinf(ends)
    trial = np.where(is_open, np.sign(ends) * small.s, ends)
    whole = conjugate(small.loss, trial, y, small.s)
    half = conjugate(small.loss, 0.5 * trial, y, small.s)
    # phi*(a) = c a + r a^2 / 2 gives phi*(a) - 2 phi*(a / 2) = r a^2 / 4.
    ridge = np.where(trial != 0.0, 4.0 * (whole - 2.0 * half) / trial**2, 0.0)
    slope = np.where(trial != 0.0, whole / trial - 0.5 * ridge * trial, 0.0)
    # r a^2 / 2 <= the losses at zero weights; twice that a is out of reach for an optimum.
    losses = small.add_losses(zero)[:, None]
    farthest = np.sign(ends) * 2.0 * np.sqrt(2.0 * losses / ridge)
    return np.where(is_open, farthest, ends), slope, ridge


def flat(values: np.ndarray) -> np.ndarray:
    """Return all values of each run in a row: NumPy reduces one axis in less time than two."""
    return values.reshape(len(values), -1)


def reach(least: float) -> float:
    """Return the largest multiple, about 1 at most, of a change that leaves values non-negative.

    `least` is the least quotient of a change and its value; it holds before the last bit.
    """
    return 1.0 / max(-least, INSIDE)


def aimed_sum(total: float, one: float, two: float, least: float, largest: float) -> float:
    """Return the sum that the products of ways and slacks are to have after a step.

    Mehrotra's rule: the cube of the share that the predictor would leave.

    Parameters
    ----------
    total, one, two : float
        The sums of the products, and of the products with the first and the second power of the
        ways' relative changes.
    least, largest : float
        Of these changes; the slacks' are -1 less them.
    """
    length = reach(least)
    slack_length = reach(-1.0 - largest)
    rest = 1.0 - slack_length
    left = rest * total + (rest * length - slack_length) * one - slack_length * length * two
    left /= total or 1.0
    return total * left * left * left
