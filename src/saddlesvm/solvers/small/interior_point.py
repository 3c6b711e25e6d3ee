"""An interior point method for small problems whose losses are lines and parabolas in pieces.

The dual of such a problem is a quadratic program over a box. With the multipliers of the rows x of
`Z` times C as variables b:

    minimise    ||sum_i b_i x_i||^2 / 2 + c'b + b'Rb/2
    subject to  l <= b <= u,   P w = sum_i b_i x_i,

and for slacks p of the lower and q of the upper bounds

    x_i . w + c_i + r_i b_i - p_i + q_i = 0,
    p_i (b_i - l_i) = mu,   q_i (u_i - b_i) = mu,   mu -> 0.

R is zero for lines. A row whose multiplier may have both signs, with another slope on each side,
has two variables, one for each sign. If the penalty is the l1 norm, P is zero, and each weight has
a row of its own, a unit vector, whose loss is the absolute value.

A step of Newton's method eliminates b, p and q: ``(P + Z' D^-1 Z) dw = r`` with
``D = R + p/(b - l) + q/(u - b)``. Each step is taken twice: without mu to see how far it leads, and
then with a mu and a correction of second order that follow from it. It needs some ten steps
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
from typing import Any, Self

import numpy as np

from saddlesvm.problem.loss import is_smooth
from saddlesvm.solvers.base import SAME_SLOPES
from saddlesvm.solvers.small.dense import RunPoints, Small, inner_by_row, multiply_rows, solve
from saddlesvm.solvers.small.runs import Runs

INSIDE = 0.995  # share of the way to the boundary that a step may go; Mehrotra's
# Part of its range that a variable begins away from its lower bound; and the same of a row that may
# be on either side of its target, which takes four fifths of the steps of START there: measured.
START = 0.1
MIDDLE = 0.5
# First mu, the product of a distance and its slack, relative to the mean product of a variable's
# range and slope: measured.
CENTRED = 0.3
# The products shrink to this share at least in a step. With less, the pulls of the l1 norm come so
# close to their bounds that rounding hides gaps of 1e-9; the steps are as many: measured.
LEAST_SHARE = 0.01
MOST_STEPS = 60  # after which rounding has won: most runs take some fifteen; guessed
# The gap of the interior point is about so many times the gap after the variables are put to their
# bounds: measured.
GAP_RATIO = 30.0
# A weight is zero if it is below this share of what its pull lacks to the bound l1: guessed.
ZERO_SHARE = 0.5


class InteriorRuns(Runs):
    """The duals of K problems over the same rows, and the points that their runs stand at.

    Dual variables and their bounds have the factor C here.

    Attributes
    ----------
    curved : bool
        True if the losses have parabolas.
    is_one_per_row : bool
        True if each row has one variable; a run alone may have rows with two, one for each sign.
    row_of_variable : ndarray of shape (k,)
        The row that a variable belongs to, if a row may have two.
    steps : int
        Steps of the runs so far.
    small : Small
        The problems.
    extended : Small
        The problems with further rows for the l1 norm; the same without one.
    home, other : ndarray of shape (K, k)
        Bounds of the variables. Home is zero, or the lower bound of a variable whose term is one
        line from bound to bound: a variable counts from there, and so keeps its digits near zero.
    cost : ndarray of shape (K, k)
        Slopes of the variables' terms at zero.
    ridge : ndarray of shape (K, k), or 0
        Second derivatives of the variables' terms.
    distances, slacks : ndarray of shape (2, K, k)
        The distances of the variables from home and from their other bounds, and the slacks of
        these bounds: p of a lower bound, -q of an upper one. A distance and its slack have the same
        sign, so that their products are positive, and the two slacks add up to a slope.
    w : ndarray of shape (K, m)
        Weights.
    z : ndarray of shape (K, n)
        The margins of w.
    complementarity : ndarray of shape (K,)
        The sums of the products of distances and slacks: the gap of the interior point.
    """

    def __init__(self, small: Small) -> None:
        y = small.y
        curved = is_smooth(small.loss)
        self.curved = curved
        self.steps = 0
        self.small = small
        self.extended = small.add_unit_rows()
        self.size = small.size

        # The bounds of each row's dual variable, and the slope and the second derivative of its
        # conjugate below and above zero.
        ends, slopes, ridges = pieces_of_rows(small)
        low, high = ends
        slope_below, slope_above = slopes
        ridge_below, ridge_above = ridges

        # A dual variable of both signs whose conjugate is one line stays one variable; any other
        # row has a variable for each sign that its dual variable may have.
        has_both_signs = (low < 0.0) & (high > 0.0)
        jump = np.abs(slope_above - slope_below)
        is_line = jump <= SAME_SLOPES * (1.0 + np.abs(slope_above))
        is_straight = has_both_signs & is_line & (ridge_below == 0.0)
        up = high > 0.0
        down = (low < 0.0) & ~is_straight
        least = np.where(is_straight, low, 0.0)
        self.is_one_per_row = bool((up ^ down).all())
        self.step_together = self.is_one_per_row or len(y) == 1
        if self.is_one_per_row:
            self.home = least
            self.other = np.where(up, high, low)
            self.cost = np.where(up, slope_above, slope_below)
            ridge = np.where(up, ridge_above, ridge_below)
        else:
            [ups] = np.nonzero(up[0])
            [downs] = np.nonzero(down[0])
            self.row_of_variable = np.concatenate([ups, downs])
            self.home = np.concatenate([least[:, ups], np.zeros((len(y), downs.size))], axis=1)
            self.other = np.concatenate([high[:, ups], low[:, downs]], axis=1)
            self.cost = np.concatenate([slope_above[:, ups], slope_below[:, downs]], axis=1)
            ridge = np.concatenate([ridge_above[:, ups], ridge_below[:, downs]], axis=1)

        # With the factor C: C phi*(-b / C) has the slopes of phi*, and the C-th part of its bends.
        self.home *= small.C
        self.other *= small.C
        self.ridge: Any = 0.0
        if curved:
            self.ridge = ridge / small.C
        self.w = np.zeros((len(y), small.Z.shape[1]))
        self.z: np.ndarray = np.zeros(low.shape)
        self.begin(self.spread_to_variables(has_both_signs))
        self.complementarity = self.sum_products()

    def begin(self, middle: np.ndarray) -> None:
        """Begin inside the box, for zero weights; variables of `middle` halfway to their bounds."""
        # The others begin near zero, and those of a parabola where it has the slope MIDDLE, or in
        # the middle if that is nearer.
        span = self.other - self.home
        size_of_range = np.abs(span)
        near_zero = START * np.minimum(size_of_range, self.small.C)
        t = np.where(middle, MIDDLE * size_of_range, near_zero)
        if self.curved:
            inside = np.minimum(MIDDLE / self.ridge, MIDDLE * size_of_range)
            t = np.where(self.ridge > 0.0, inside, t)
        direction = np.copysign(1.0, span)
        distance = direction * t
        slope = self.cost + self.ridge * (self.home + distance)
        # Slacks that add up to the slopes.
        size = np.maximum(1.0, mean_size(slope))
        slack = direction * (np.maximum(direction * slope, 0.0) + size)
        self.distances = np.array([distance, distance - span])
        self.slacks = np.array([slack, slope - slack])
        if middle.all() and not self.extended.l1:
            self.begin_at_least_squares(span, size)

    def begin_at_least_squares(self, span: np.ndarray, size: np.ndarray) -> None:
        """Begin at the weights of least squares, with one product of distances and slacks for all.

        Rows on both sides of their targets then need two thirds of the steps.
        """
        extended = self.extended
        C = extended.C
        # Least squares of the rows' targets, weighted by the ranges, at most 1.
        weight = np.minimum(np.abs(span), C) / size
        right = -multiply_rows(self.sum_by_row(weight * self.cost), extended.Z)
        self.w = solve(extended.equations.factors(self.sum_by_row(weight)), right)
        self.z = multiply_rows(self.w, extended.Z.T)
        slope = self.spread_to_variables(self.z) + self.cost

        # The root t of mu / t + mu / (t - span) = slope.
        rise = slope * span
        mu = np.maximum(CENTRED * mean_size(rise), SAME_SLOPES * C)
        distance = span * (2.0 * mu / (rise + 2.0 * mu + np.hypot(rise, 2.0 * mu)))
        self.distances = np.array([distance, distance - span])
        self.slacks = mu / self.distances

    def pick(self, chosen: np.ndarray) -> Self:
        """Return some of the runs."""
        some = copy.copy(self)
        some.small = self.small.pick(chosen)
        for name in ("home", "other", "cost", "w", "z", "complementarity"):
            setattr(some, name, getattr(self, name)[chosen])
        some.distances = self.distances[:, chosen]
        some.slacks = self.slacks[:, chosen]
        if self.curved:
            some.ridge = self.ridge[chosen]
        return some

    def spread_to_variables(self, z: np.ndarray) -> np.ndarray:
        """Return the value of each variable's row, shape (K, k), from values of the rows."""
        if self.is_one_per_row:
            return z
        return z.take(self.row_of_variable, axis=1)

    def sum_by_row(self, values: np.ndarray) -> np.ndarray:
        """Return the sum over the variables of each row, shape (K, n), of values of variables."""
        if self.is_one_per_row:
            return values
        # A row with two variables, one for each sign, adds both up.
        return np.bincount(self.row_of_variable, values[0], self.z.shape[1])[None]

    def variables(self) -> np.ndarray:
        """Return the variables, shape (K, k)."""
        return self.home + self.distances[0]

    def sum_products(self) -> np.ndarray:
        """Return the sums of the products of distances and slacks, shape (K,)."""
        found: np.ndarray = np.add.reduce(inner_by_row(self.distances, self.slacks))
        return found

    def take_step(self) -> np.ndarray:
        """Take a step of each run; return estimates of the gaps at the bounds."""
        Z = self.extended.Z
        slacks = self.slacks

        # The inverse of D = R + p/t + q/(u - t), and the slopes of the variables' terms.
        inverse = 1.0 / self.distances
        quotients = slacks * inverse
        weight = quotients[0] + quotients[1]
        slope = self.spread_to_variables(self.z) + self.cost
        b = self.variables()
        if self.curved:
            slope += self.ridge * b
            weight += self.ridge
        np.divide(1.0, weight, out=weight)
        factors = self.extended.equations.factors(self.sum_by_row(weight))

        # Without mu, Newton's step lowers the variables by `falls`, and by `weight` times what the
        # margins rise by. The right side r of the equations follows.
        falls = weight * slope
        b -= falls
        right = multiply_rows(self.sum_by_row(b), Z)
        right -= self.extended.penalty * self.w

        # The predictor, without mu: by how much the distances fall, and which part of them that is.
        # The relative falls of a distance and of its slack add up to 1.
        dz = multiply_rows(solve(factors, right), Z.T)
        falling = weight * self.spread_to_variables(dz)
        falling += falls
        relative = falling * inverse
        mu = self.choose_mu(relative)

        # The corrector aims at p t = mu, and takes the predictor's products of second order into
        # account.
        aim = slacks * falling
        relative -= 1.0
        aim *= relative
        aim += mu
        aim *= inverse
        rises = weight * (aim[0] + aim[1])
        right += multiply_rows(self.sum_by_row(rises), Z)
        dw = solve(factors, right)
        dz = multiply_rows(dw, Z.T)
        rises -= falls
        rises -= weight * self.spread_to_variables(dz)

        # The distances rise as their variables; what the slacks rise by follows.
        quotients *= rises
        aim -= slacks
        aim -= quotients
        self.move(dw, dz, rises, aim)
        self.steps += 1
        if self.steps >= MOST_STEPS:
            return np.full(len(self.w), np.nan)
        # The gap of the interior point is larger than the gap at the bounds.
        return self.complementarity / GAP_RATIO

    def choose_mu(self, relative: np.ndarray) -> np.ndarray:
        """Return mu of each run, shape (K, 1), from the predictor's relative falls of distances.

        The products shrink to the power 3/2 of the share that the predictor leaves of them: the
        cube of what it leaves of the distances if it leaves as much of the slacks. Mehrotra's rule,
        by the sums of the products that it leaves, takes a tenth more steps.
        """
        falls = np.maximum.reduce(relative, axis=(0, 2))
        slack_falls = 1.0 - np.minimum.reduce(relative, axis=(0, 2))
        left = (1.0 - longest_step(falls)) * (1.0 - longest_step(slack_falls))
        n_products = 2.0 * self.home.shape[1]
        share = np.maximum(left**1.5, LEAST_SHARE)
        mu: np.ndarray = self.complementarity * share / n_products
        return mu[:, None]

    def move(
        self, dw: np.ndarray, dz: np.ndarray, rises: np.ndarray, slack_rises: np.ndarray
    ) -> None:
        """Move along a step as far as the bounds allow: the variables, and the weights and slacks.

        Both lengths stop short of the nearest bound, so that distances and slacks keep their signs.
        """
        length = longest_step(-np.minimum.reduce(rises / self.distances, axis=(0, 2)))[:, None]
        self.distances = self.distances + length * rises
        length = longest_step(-np.minimum.reduce(slack_rises / self.slacks, axis=(0, 2)))[:, None]
        slack_rises *= length
        self.slacks = self.slacks + slack_rises
        self.w = self.w + length * dw
        self.z = self.z + length * dz
        self.complementarity = self.sum_products()

    def snap_to_bounds(self) -> np.ndarray:
        """Return the variables, with those that tend to a bound put to it."""
        from_home = self.distances[0]
        span = self.other - self.home
        slack, other_slack = np.abs(self.slacks)

        # Strict complementarity: near the optimum either the distance or the slack goes to zero. A
        # variable tends to a bound if its distance, as a share of its range, is below the slack. At
        # home the largest share of all variables stands for the range: all are far below their
        # other bounds if the rows are long.
        share = from_home / span
        is_home = share < slack * share.max(axis=1, keepdims=True)
        is_at_other = 1.0 - share < other_slack
        put = np.where(is_home, 0.0, np.where(is_at_other, span, from_home))
        if self.curved:
            # Variables of parabolas stay where they are.
            put = np.where(self.ridge > 0.0, from_home, put)
        return self.home + put

    def point(self) -> RunPoints:
        """Return weights and the rows' dual variables, zero or at a bound if they tend to it."""
        small = self.small
        alpha = self.sum_by_row(self.snap_to_bounds()) / small.C
        if not small.l1:
            return small.evaluate(self.w, alpha, self.z)
        # The l1 norm: a weight that is closer to zero than its pull is to its bound is zero in the
        # limit (strict complementarity). The dual variables of its rows are the pulls.
        pulls = np.abs(self.sum_by_row(self.variables())[:, self.size :])
        inside = 1.0 - pulls / small.l1
        w = np.where(ZERO_SHARE * inside > np.abs(self.w), 0.0, self.w)
        return small.evaluate(w, alpha[:, : self.size])

    def count_active(self) -> int:
        """Return how many variables tend to no bound: the rows on the margin."""
        b = self.snap_to_bounds()
        return int(np.count_nonzero((b != self.home) & (b != self.other)))


def pieces_of_rows(small: Small) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the :func:`conjugate_pieces` below and above zero, with the rows of the l1 norm."""
    y = small.y
    lower, upper = small.methods.bounds(small.loss, y, small.s)
    ends = np.empty((2, *y.shape))
    ends[0] = lower
    ends[1] = upper
    ends, slope, ridge = conjugate_pieces(small, ends, is_smooth(small.loss))
    if small.l1:
        # The loss of these rows is the absolute value, whose conjugate is zero up to its bounds.
        bound = np.full((2, len(y), small.Z.shape[1]), small.l1 / small.C)
        bound[0] *= -1.0
        zero = np.zeros(bound.shape)
        ends = np.concatenate([ends, bound], axis=2)
        slope = np.concatenate([slope, zero], axis=2)
        ridge = np.concatenate([ridge, zero], axis=2)
    return ends, slope, ridge


def conjugate_pieces(
    small: Small, ends: np.ndarray, curved: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the conjugates between zero and the bounds of the dual variables, on either side.

    The bounds, the slopes at zero and the second derivatives, all of shape (2, K, n). A bound that
    is infinite is replaced by twice the largest value that an optimum can have: a parabola of
    second derivative r is ``r a^2 / 2`` at its multiplier a, and no more than the losses of all
    rows at zero weights.
    """
    y = small.y
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
    # An optimum has r a^2 / 2 <= the losses at zero weights: no step needs to go to twice that a.
    losses = small.add_losses(np.zeros(y.shape))[:, None]
    farthest = np.sign(ends) * 2.0 * np.sqrt(2.0 * losses / ridge)
    return np.where(is_open, farthest, ends), slope, ridge


def mean_size(values: np.ndarray) -> np.ndarray:
    """Return the mean absolute value of each run, shape (K, 1)."""
    total: np.ndarray = np.add.reduce(np.abs(values), axis=1, keepdims=True)
    return total / values.shape[1]


def longest_step(falls: np.ndarray) -> np.ndarray:
    """Return the longest steps, 1 at most, that leave a little of each value.

    `falls` are the largest falls of values at a whole step, relative to them.
    """
    return INSIDE / np.maximum(falls, INSIDE)
