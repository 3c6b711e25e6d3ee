"""Bounds for every C between two certified fits.

A fit at C has the primal ``P = R(w) + C L(w)`` with the losses' sum L, and the dual ``D = -R*(v) -
conj(beta, C)`` with ``beta = C a`` and ``v = sum_i beta_i x_i``. L is convex, and conj is a
perspective: convex in beta and C together. R contains m times half a square: it is m-strongly
convex, and R* is 1/m-smooth. (m is 1 for half a square, less for the elastic net, 0 for the l1
norm.) With ``g = grad R*(v)``, which is v for half a square, for fits at C1 < C2 and ``C = (1 - t)
C1 + t C2`` therefore, for every u in [0, 1],

    P_C((1 - u) w1 + u w2)   <=  (1 - u) R1 + u R2 - u (1 - u) m ||w1 - w2||^2 / 2 + C ((1 - u) L1 +
    u L2) D_C((1 - t) b1 + t b2)   >=  (1 - t) D1 + t D2 + t (1 - t) m ||g1 - g2||^2 / 2

The first is smallest at ``u = 1/2 - (R2 - R1 + C (L2 - L1)) / (m ||w1 - w2||^2)``, cut to [0, 1]:
linear in C. For m = 0 it is 0 up to the C at which both models cost the same, and 1 from there on.
So both sides are quadratic in t on at most three pieces, and the largest relative gap between two
fits is found in closed form: it is at the end of a piece, or at a zero of the quotient's
derivative, another quadratic, is zero. No values of C are sampled.

Theory: Giesen, Mueller, Laue and Swiercy (2012), "Approximating concave parametric optimization
problems"; Ndiaye, Le, Fercoq, Salmon and Takeuchi (2019), "Safe grid search with optimal
complexity".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from saddlesvm.problem.bounds import gamma
from saddlesvm.problem.certificate import relative

SAFETY = 1e-12  # relative gap by which the place of the largest one may be missed
BOUND_UNITS = 64.0  # roundings of a bound beside those of its squared norms


Quadratic = tuple[float, float, float]  # coefficients of 1, t and t^2
Share = tuple[float, float]  # of the upper knot's weights: coefficients of 1 and t


@dataclass(frozen=True, eq=False)
class Knot:
    """A certified fit on a path, all sub-problems together; objectives in the C form.

    Attributes
    ----------
    C : float
    coef : ndarray of shape (k, d)
        Weights, a row for each sub-problem.
    intercept : ndarray of shape (k,)
    penalised : ndarray of shape (k, d or d + 1)
        What the regulariser sees of the weights, times the root of m.
    pulled : ndarray of the shape of `penalised`
        What it sees of ``grad R*(v)``, with v the combination of the rows by the dual variables,
        times the root of m.
    primal, dual : ndarray of shape (k,)
        Of each sub-problem, rounding counted against both.
    rounding : ndarray of shape (k,), optional
        The part of `primal` that may be rounding: about what it costs to round the weights of a
        mixture.
    missed : ndarray of shape (k,), optional
        How far `pulled` can be from the exact pull, in norm.
    charged : ndarray of shape (k,), optional
        ``R(w)``; left out if it is half the square of `penalised`.
    following : dict
        The intervals that :meth:`until` has made, by the C at their end.
    """

    C: float
    coef: np.ndarray
    intercept: np.ndarray
    penalised: np.ndarray
    pulled: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    rounding: np.ndarray | None = None
    missed: np.ndarray | None = None
    charged: np.ndarray | None = None
    following: dict[float, Interval] = field(default_factory=dict, repr=False)

    def until(self, high: Knot) -> Interval:
        """The bounds between this knot and a knot with a larger C; computed once."""
        known = self.following.get(high.C)
        if known is None or known.high is not high:
            known = self.following[high.C] = Interval(self, high)
        return known

    @property
    def norms(self) -> np.ndarray:
        """``R(w)`` of each sub-problem."""
        if self.charged is not None:
            return self.charged
        return 0.5 * np.einsum("kj,kj->k", self.penalised, self.penalised)

    @property
    def losses(self) -> np.ndarray:
        """``L(w)``, the weighted sum of the losses, of each sub-problem."""
        return (self.primal - self.norms) / self.C

    @property
    def relative_gap(self) -> float:
        """Of all sub-problems together."""
        primal = self.primal.sum()
        dual = self.dual.sum()
        return relative(float(primal - dual), float(primal), float(dual))


def half_squared_distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Half the squared distances between the rows of two arrays of the same shape."""
    between = one - other
    return 0.5 * np.einsum("kj,kj->k", between, between)


class Interval:
    """Every C between two knots: bounds, the best mixture of the two models, and the largest gap.

    Parameters
    ----------
    low, high : Knot
        ``low.C < high.C``.
    """

    def __init__(self, low: Knot, high: Knot) -> None:
        self.low = low
        self.high = high
        self.apart = half_squared_distances(low.penalised, high.penalised)
        missed = sum(
            (knot.missed for knot in (low, high) if knot.missed is not None),
            np.zeros(low.primal.size),
        )
        distances = np.sqrt(2.0 * half_squared_distances(low.pulled, high.pulled))
        self.pulled_apart = 0.5 * np.maximum(distances - missed, 0.0) ** 2  # no larger than it is
        self._norms = low.norms, high.norms
        self._losses = low.losses, high.losses
        self.rounding = self._rounding()
        self.gap, self.worst_C = self._largest_gap()

    def share(self, C: float) -> float:
        """``t``: the place of C between the knots, from 0 to 1."""
        return (C - self.low.C) / (self.high.C - self.low.C)

    def mixture(self, C: float) -> float:
        """The share of the upper knot's weights in the model for C, with the smallest bound."""
        first, second = self._share_between(self.share(C))
        return min(max(float(first + second * self.share(C)), 0.0), 1.0)

    def bounds(self, C: float) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds on the objective for C: an upper one of the model, a lower one of all."""
        t = self.share(C)
        u = self.mixture(C)
        R1, R2 = self._norms
        L1, L2 = self._losses
        # Both inequalities of the module's text.
        primal = (
            (1.0 - u) * R1 + u * R2 - u * (1.0 - u) * self.apart + C * ((1.0 - u) * L1 + u * L2)
        )
        dual = (1.0 - t) * self.low.dual + t * self.high.dual + t * (1.0 - t) * self.pulled_apart
        return primal + self.rounding, dual - self.rounding

    def middle(self) -> float:
        """The C at which a fit would help most: half-way in log C."""
        return float(np.sqrt(self.low.C * self.high.C))

    def _rounding(self) -> np.ndarray:
        """Bound the rounding of either bound anywhere in the interval, shape (k,)."""
        # The bounds combine these numbers with factors of at most 1, or a ratio of two C.
        size = self.apart + self.pulled_apart
        mixed = np.zeros(self.low.primal.size)
        for knot, norms in zip((self.low, self.high), self._norms, strict=True):
            share = self.high.C / knot.C
            size = size + share * (np.abs(knot.primal) + norms) + np.abs(knot.dual)
            mixed += share * (0.0 if knot.rounding is None else knot.rounding)
        return gamma(self.low.penalised.shape[1] + BOUND_UNITS) * size + mixed

    def _pieces(self) -> list[float]:
        """Return the places between which the best share of the upper knot's weights is linear."""
        a, b = self._best_share()
        roots = [cut for one in (a, a - 1.0) for cut in _roots((one, b, 0.0))]
        return sorted({0.0, 1.0, *(cut for cut in roots if 0.0 < cut < 1.0)})

    def _share_between(self, t: float) -> Share:
        """The best share as a function of the place, in the piece that holds t."""
        a, b = self._best_share()
        if float(self.apart.sum()) <= 0.0:  # the bound is a line from one model's to the other's
            return float(a + b * t > 0.0), 0.0
        return (a, b) if 0.0 < a + b * t < 1.0 else (float(a + b * t >= 1.0), 0.0)

    def _best_share(self) -> Share:
        """The best share of the upper knot's weights, before it is cut to [0, 1].

        If nothing is known of how far the weights are apart: by how much the upper model's bound is
        below the lower model's.
        """
        (R1, R2), (L1, L2) = self._sums()
        apart = float(self.apart.sum())
        # How much less the upper model costs at the lower C, and what is added at the upper C.
        gained = -((R2 - R1) + (L2 - L1) * self.low.C)
        further = -(L2 - L1) * (self.high.C - self.low.C)
        if apart <= 0.0:
            return gained, further
        return 0.5 * (1.0 + gained / apart), 0.5 * further / apart

    def _sums(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """``R(w)`` and ``L(w)`` of both knots, over all sub-problems."""
        (R1, R2), (L1, L2) = (
            (float(one.sum()), float(other.sum())) for one, other in (self._norms, self._losses)
        )
        return (R1, R2), (L1, L2)

    def _primal(self, share: Share) -> Quadratic:
        """The bound from above as a function of t, for a share of the upper knot's weights."""
        (R1, R2), (L1, L2) = self._sums()
        a, b = share
        low = self.low.C
        wide = self.high.C - self.low.C
        apart = float(self.apart.sum())
        # The first inequality with u = a + b t and C = C1 + (C2 - C1) t, by powers of t.
        return (
            R1
            + a * (R2 - R1)
            - apart * a * (1.0 - a)
            + low * (L1 + a * (L2 - L1))
            + float(self.rounding.sum()),
            b * (R2 - R1)
            - apart * b * (1.0 - 2.0 * a)
            + wide * (L1 + a * (L2 - L1))
            + low * b * (L2 - L1),
            apart * b * b + wide * b * (L2 - L1),
        )

    def _dual(self) -> Quadratic:
        """The bound from below as a function of t."""
        low = float(self.low.dual.sum())
        high = float(self.high.dual.sum())
        apart = float(self.pulled_apart.sum())
        return low - float(self.rounding.sum()), high - low + apart, -apart

    def _largest_gap(self) -> tuple[float, float]:
        """The largest relative gap from knot to knot, and its C, in closed form.

        At a knot the model is its own fit, although its neighbour's may cost less there.
        """
        dual = self._dual()
        largest, place = max((self.low.relative_gap, 0.0), (self.high.relative_gap, 1.0))
        for start, stop in pairwise(self._pieces()):
            # On a piece both bounds are quadratic: the largest quotient is at an end or where its
            # derivative is zero.
            primal = self._primal(self._share_between(0.5 * (start + stop)))
            turning = [x for x in _roots(_slope_of_quotient(primal, dual)) if start < x < stop]
            for x in (start, stop, *turning):
                above = _at(primal, x)
                below = _at(dual, x)
                gap = relative(above - below, above, below)
                if gap > largest:
                    largest = gap
                    place = x
        return largest + SAFETY, float(self.low.C + place * (self.high.C - self.low.C))


def _at(quadratic: Quadratic, t: float) -> float:
    return quadratic[0] + t * (quadratic[1] + t * quadratic[2])


def _slope_of_quotient(primal: Quadratic, dual: Quadratic) -> Quadratic:
    """``D' P - D P'``: zero at a turn of the quotient of the bounds. The cubic terms cancel."""
    p0, p1, p2 = primal
    d0, d1, d2 = dual
    return d1 * p0 - d0 * p1, 2.0 * (d2 * p0 - d0 * p2), d2 * p1 - d1 * p2


def _roots(quadratic: Quadratic) -> list[float]:
    """The real roots; a pair that rounding may have made complex counts as a double root."""
    c, b, a = quadratic
    least = 1e-14 * max(abs(a), abs(b), abs(c))
    if abs(a) <= least:
        return [] if abs(b) <= least else [-c / b]
    square = b * b
    inner = 4.0 * a * c
    left = square - inner
    if left < -1e-14 * (square + abs(inner)):
        return []
    # The root farther from zero has no cancellation; the product of both roots is c / a.
    far = -0.5 * (b + math.copysign(math.sqrt(max(left, 0.0)), b))
    return [far / a, c / far] if far != 0.0 else [0.0]
