"""A ball around the weights of a certified fit that contains the exact optimum of a problem.

F(w) is the objective in the C form, g its gap at w, r its gradient there, w* its optimum, and m
times half a square is in the regulariser (m = 1 except for the l1 norm). One of these holds, with
rounding:

*   The gap: ``m ||w* - w||^2 / 2 <= g``, by strong convexity.
*   The gradient, of smooth losses: ``m ||w* - w|| <= ||r||``, for ``0 = grad F(w*)`` times
    ``w* - w``.
*   The curvature, of losses that declare it, if these balls are too wide: the distance in the norm
    of a matrix H below the curvature (:mod:`~saddlesvm.answers.vicinity`).

A free intercept is not part of the gap's ball. Its optimal values are the zeros of the sum of the
losses' slopes: they lie between the zeros of the sums of the slopes at both ends of the margins'
intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from saddlesvm.answers.gradient import gradient_at, margin_slips
from saddlesvm.answers.row_estimates import FACTORED, quadratic_forms
from saddlesvm.answers.vicinity import find_vicinity
from saddlesvm.problem.bounds import (
    MARGIN_UNITS,
    SLACK,
    UNDERFLOW,
    UNIT,
    gamma,
    loss_units,
    norm_of,
    radii,
)
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import dual_of_margins, margins
from saddlesvm.rows.layouts import Rows, as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.runtime.data_types import RowsLike

DOUBLINGS = 64  # of the distance from a free intercept within which a zero of slopes is searched
NEAREST = 1e-9  # first distance of this search, relative to the intercept


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """All weights at most `radius` from `center`, with the optimum.

    Attributes
    ----------
    center : ndarray of shape (d + 1,)
        Weights; the last is the virtual feature's, zero if `offset` stands for it.
    radius : float
        Infinite if nothing is proven.
    scale : float
        Value of the virtual feature.
    offset : (float, float) or None
        Bounds of the optimal free intercepts, if the ball is about the other weights alone.
    inverse : ndarray of shape (d + 1, d + 1) or None
        A matrix not below the inverse of H, if distances are in the norm of H; None for plain
        lengths.
    """

    center: np.ndarray
    radius: float
    scale: float
    offset: tuple[float, float] | None = None
    inverse: np.ndarray | None = None

    def score_bounds(self, X: RowsLike) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of the optimum's scores, each of shape (m,).

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (m, d), float32 or float64
        """
        rows = as_rows(X, 0.0 if self.offset is not None else self.scale)
        z = scores_of_rows(rows, self.center[None])[:, 0]
        norms = radii(squared_norms(rows))
        slips = SLACK * gamma(rows.longest_row + 1.0 + MARGIN_UNITS) * norm_of(self.center) * norms
        # |x . (w* - w)| <= ||x|| in the norm of the inverse of H times the radius.
        away = np.full(z.size, np.inf)
        if math.isfinite(self.radius):
            away = self._lengths(rows, norms) * self.radius
        low, high = self.offset or (0.0, 0.0)
        slips += 4.0 * UNIT * (np.abs(z) + away + max(abs(low), abs(high))) + UNDERFLOW
        return z - away - slips + low, z + away + slips + high

    def _lengths(self, rows: Rows, norms: np.ndarray) -> np.ndarray:
        """Bound the lengths of rows in the norm of the inverse of H, from their plain lengths."""
        if self.inverse is None:
            return SLACK * norms
        squares = quadratic_forms(rows, np.arange(norms.size), self.inverse)
        return np.asarray(SLACK * np.sqrt(np.maximum(squares, 0.0)))

    def weight_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of the optimum's weights, the intercept last."""
        # A weight w_j is e_j . w: it moves by the length of e_j times the radius.
        away = np.full(self.center.size, self.radius)
        if self.inverse is not None:
            away *= SLACK * np.sqrt(np.diag(self.inverse))
        away += 4.0 * UNIT * (np.abs(self.center) + away) + UNDERFLOW
        low = self.center - away
        high = self.center + away
        if self.offset is not None:
            low[-1], high[-1] = self.offset
        elif self.scale == 0.0:
            low[-1] = high[-1] = 0.0
        else:
            # The intercept is the last weight times the virtual feature, which rounds once more.
            ends = self.scale * np.array([low[-1], high[-1]])
            low[-1] = ends[0] - 4.0 * UNIT * abs(ends[0])
            high[-1] = ends[1] + 4.0 * UNIT * abs(ends[1])
        return low, high


def find_neighbourhood(
    problem: Problem, w: np.ndarray, gap: float, enough: float = 0.0
) -> Neighbourhood:
    """Return a proven neighbourhood of the optimum, from what is known at w.

    Parameters
    ----------
    problem : Problem
        With rows in memory.
    w : ndarray of shape (d + 1,)
        Weights; the last place is the virtual feature's, a free intercept divided by its value.
    gap : float
        By how much, at most, the objective is above the optimum in the C form; rounding counted,
        see :func:`gap_in_C_form`.
    enough : float, default=0.0
        If no training score moves by more in a plain ball, this ball is enough.

    Notes
    -----
    A loss declares its curvature by ``steepening()``, the most by which its logarithm changes for a
    margin that moves by 1, or by ``corners()``: the margins ``y z`` (or residuals ``z - y``)
    between which it is a parabola. Without either, the gradient counts alone.
    """
    nearest = _bound_by_gap(problem, w, gap)
    if not is_smooth(problem.loss) or modulus(problem.penalty) == 0.0 or problem.fixed.size:
        return nearest
    # The gradient says nothing of a free intercept, which no penalty bounds.
    if not problem.intercept.constrained:
        nearest = _bound_by_gradient(problem, w, nearest)
    is_enough = nearest.radius * problem.row_sizes.longest <= enough
    if is_enough or problem.n_features > FACTORED:
        return nearest
    return _bound_by_curvature(problem, w) or nearest


def gap_in_C_form(problem: Problem, gap: float) -> float:
    """Return a certificate's gap in the units of the C form."""
    return gap / problem.unit * (1.0 + 8.0 * UNIT)


def _bound_by_gap(problem: Problem, w: np.ndarray, gap: float) -> Neighbourhood:
    """Return the plain ball of the gap, with an interval for a free intercept."""
    square = modulus(problem.penalty)
    radius = math.inf
    if square > 0.0 and gap >= 0.0:
        radius = SLACK * math.sqrt(2.0 * gap / square)
    if not problem.intercept.constrained:
        return Neighbourhood(w, radius, problem.scale)
    center, offset = problem.intercept.split(w)
    if not math.isfinite(radius) or not problem.intercept.homogeneous:
        return Neighbourhood(center, radius, problem.scale, (-math.inf, math.inf))
    z = margins(problem, center)
    # How far a margin without the intercept can be from that of the optimum.
    away = SLACK * radius * radii(problem.gather(problem.norms)) + margin_slips(problem, w)
    # The optimal intercepts are between the zeros of the slopes at both ends of the margins.
    ends = (
        _zero_of_slopes(problem, z + away, offset, -1.0),
        _zero_of_slopes(problem, z - away, offset, 1.0),
    )
    return Neighbourhood(center, radius, problem.scale, ends)


def _zero_of_slopes(problem: Problem, z: np.ndarray, offset: float, sign: float) -> float:
    """Return the lower (sign -1) or upper (1) end of the interval of optimal free intercepts."""
    terms = problem.member_terms
    members = np.arange(z.size, dtype=np.int32)
    # The margins are at one end of their intervals. Walk away from the best intercept for them,
    # until the sum of slopes leads back for sure.
    start = problem.intercept.best(terms, members, z, offset)
    step = NEAREST * (1.0 + abs(start))
    alpha = np.zeros(z.size)
    for _ in range(DOUBLINGS):
        there = start + sign * step
        moved = z - sign * 4.0 * UNIT * (np.abs(z) + abs(there))
        dual_of_margins(terms, members, moved, there, alpha)
        sizes = float(np.abs(alpha).sum())
        if -sign * math.fsum(alpha.tolist()) > 2.0 * loss_units(problem.loss) * UNIT * sizes:
            return float(there)
        step *= 2.0
    return sign * math.inf


def _bound_by_gradient(problem: Problem, w: np.ndarray, by_gap: Neighbourhood) -> Neighbourhood:
    """Return the plain ball of the gradient's length, if it is narrower than the gap's."""
    found = gradient_at(problem, w)
    length = norm_of(found.value) * (1.0 + gamma(w.size + 8.0)) + found.error
    radius = SLACK * length / modulus(problem.penalty)
    # The comparison is false for NaN, too.
    if radius < by_gap.radius:
        return Neighbourhood(w, radius, problem.scale)
    return by_gap


def _bound_by_curvature(problem: Problem, w: np.ndarray) -> Neighbourhood | None:
    """Return the ball in the norm of the curvature near w; None if nothing is proven so."""
    near = find_vicinity(problem, w)
    if near is None:
        return None
    radius = float(near.distance(near.missed, 1.0, 0.0))
    if not math.isfinite(radius):
        return None
    inverse = (1.0 + near.error) * near.inverse
    return Neighbourhood(near.w, radius, problem.scale, inverse=inverse)
