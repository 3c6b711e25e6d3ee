"""A ball around the weights of a certified fit that contains the exact optimum of a problem.

F(w) is the objective in the C form, g its gap at w, r its gradient there, w* its optimum, and m
times half a square is in the regulariser (m = 1 except for the l1 norm). The narrowest of these
holds, with rounding:

*   The gap: ``m ||w* - w||^2 / 2 <= g``, by strong convexity.
*   The gradient, of smooth losses: ``m ||w* - w|| <= ||r||``, for ``0 = grad F(w*)`` times
    ``w* - w``.
*   CurvatureBound, of losses with ``|phi'''| <= M phi''`` (the logistic loss: M = 1). With
    ``H = F''(w)``, the norms of its inverse ``lambda = ||r||`` and ``rho = max_i ||x_i||``, and
    ``u = ||w* - w||_H``: on the way to w* the curvature is at least ``e^-t H`` with
    ``t = M max_i |x_i . (w* - w)| <= M rho u``, so that ``u (1 - e^-t) / t <= lambda``, and

        u <= -log(1 - M rho lambda) / (M rho)      if  M rho lambda < 1.

*   Corners, of losses that are parabolas between some numbers (the squared hinge, Huber's): the
    rows S whose margin stays on one parabola anywhere in a ball that is proven already keep their
    curvature, so with ``H = R'' + C sum_S s_i phi_i'' x_i x_i'`` the optimum has
    ``||w* - w||_H <= lambda``. A narrower ball has more such rows.

A free intercept is not part of the gap's ball. Its optimal values are the zeros of the sum of the
losses' slopes: they lie between the zeros of the sums of the slopes at both ends of the margins'
intervals.

Source: Bach (2010), "Self-concordant analysis for logistic regression"; Sun and Tran-Dinh (2019),
"Generalized self-concordant functions", for the third.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from saddlesvm.answers.curvature_bound import CurvatureBound, bound_curvature, plain_curvature
from saddlesvm.answers.gradient import Gradient, gradient_at, margin_slips, on_one_piece
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
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.runtime.data_types import RowsLike

ROUNDS = 3  # searches of the rows on one parabola, each with a narrower ball
MORE = 1.02  # factor by which these rows must grow for another matrix to pay
DOUBLINGS = 64  # of the distance from a free intercept within which a zero of slopes is searched
# Share of the bound's range that the gradient fills, from which on the rows' norms are computed,
# which takes a pass.
LONG = 0.5
NEAREST = 1e-9  # first distance of this search, relative to the intercept


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """All points at most `radius` from `center` in the norm of `curvature`, with the optimum.

    Attributes
    ----------
    center : ndarray of shape (d + 1,)
        Weights; the last is the virtual feature's, zero if `offset` stands for it.
    radius : float
        Infinite if nothing is proven.
    curvature : CurvatureBound
    scale : float
        Value of the virtual feature.
    offset : (float, float) or None
        Bounds of the optimal free intercepts, if the ball is about the other weights alone.
    way : {"curvature", "gradient", "gap", "active set"}
        What proves it.
    """

    center: np.ndarray
    radius: float
    curvature: CurvatureBound
    scale: float
    offset: tuple[float, float] | None = None
    way: str = "gap"

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
        away = (
            self.curvature.row_norms(rows) * self.radius
            if math.isfinite(self.radius)
            else np.full(z.size, np.inf)
        )
        low, high = self.offset or (0.0, 0.0)
        slips += 4.0 * UNIT * (np.abs(z) + away + max(abs(low), abs(high))) + UNDERFLOW
        return z - away - slips + low, z + away + slips + high

    def weight_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of the optimum's weights, the intercept last."""
        # A weight w_j is e_j . w: it moves by the norm of e_j times the radius.
        away = self.radius * self.curvature.unit_norms(self.center.size)
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
    """Return the narrowest proven neighbourhood of the optimum, from what is known at w.

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
        If no training score moves by more in the ball of the gradient, this ball is enough.

    Notes
    -----
    A loss declares its curvature by ``steepening()``, the M of the module's text, or by
    ``corners()``: the margins ``y z`` (or residuals ``z - y``) between which it is a parabola.
    Without either, the gradient counts alone.
    """
    loss = problem.loss
    by_gap = _bound_by_gap(problem, w, gap)
    if not is_smooth(loss) or modulus(problem.penalty) == 0.0 or problem.fixed.size:
        return by_gap
    found = gradient_at(problem, w)
    if not math.isfinite(found.error):
        return by_gap
    # From the cheapest ball to the narrowest: the gradient, then the curvature.
    nearest = _bound_by_gradient(problem, w, found, by_gap)
    if nearest.radius * problem.row_sizes.longest <= enough * math.sqrt(nearest.curvature.floor):
        return nearest
    if hasattr(loss, "steepening"):
        return _bound_by_steepening(problem, w, found, loss.steepening()) or nearest
    if hasattr(loss, "corners"):
        return _bound_by_corners(problem, w, found, nearest, loss.corners())
    return nearest


def gap_in_C_form(problem: Problem, gap: float) -> float:
    """Return a certificate's gap in the units of the C form."""
    return gap / problem.unit * (1.0 + 8.0 * UNIT)


def _bound_by_gap(problem: Problem, w: np.ndarray, gap: float) -> Neighbourhood:
    """Return the plain ball of the gap, with an interval for a free intercept."""
    square = modulus(problem.penalty)
    radius = SLACK * math.sqrt(2.0 * gap) if square > 0.0 and gap >= 0.0 else math.inf
    if not problem.intercept.constrained:
        return Neighbourhood(w, radius, plain_curvature(problem), problem.scale)
    plain = CurvatureBound(None, square)
    center, offset = problem.intercept.split(w)
    if not math.isfinite(radius) or not problem.intercept.homogeneous:
        return Neighbourhood(center, radius, plain, problem.scale, (-math.inf, math.inf))
    z = margins(problem, center)
    # How far a margin without the intercept can be from that of the optimum.
    away = SLACK * radius * radii(problem.gather(problem.norms)) / math.sqrt(square) + margin_slips(
        problem, w
    )
    # The optimal intercepts are between the zeros of the slopes at both ends of the margins.
    ends = (
        _zero_of_slopes(problem, z + away, offset, -1.0),
        _zero_of_slopes(problem, z - away, offset, 1.0),
    )
    return Neighbourhood(center, radius, plain, problem.scale, ends)


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


def _bound_by_gradient(
    problem: Problem, w: np.ndarray, found: Gradient, by_gap: Neighbourhood
) -> Neighbourhood:
    """Return the plain ball of the gradient's norm, if it is narrower."""
    plain = plain_curvature(problem)
    away = plain.dual_norm(found.value, found.error)
    if plain.floor == 0.0 or by_gap.radius <= away:
        return by_gap
    return Neighbourhood(w, away, plain, problem.scale, way="gradient")


def _bound_by_steepening(
    problem: Problem, w: np.ndarray, found: Gradient, M: float
) -> Neighbourhood | None:
    """Return the ball in the norm of F''(w); None if the gradient is too long, or no factor."""
    loss = problem.loss
    # Curvatures that the exact ones are not below.
    rounded = gamma(4.0 * loss_units(problem.loss))
    weights = problem.member_terms.weights if problem.weights.size else 1.0
    uncertain = M * float(found.slips.max(initial=0.0)) + rounded
    bends = (
        found.bends * (1.0 - uncertain)
        - 4.0 * rounded * loss.largest_curvature() * problem.C * weights
    )
    chosen = np.flatnonzero(bends > 0.0)
    curvature = bound_curvature(problem, problem.members[chosen], bends[chosen])
    if curvature.factor is None:
        return None
    size = curvature.dual_norm(found.value, found.error)
    # The longest row, first by its plain norm, which needs no pass.
    longest = SLACK * float(radii(problem.norms).max(initial=0.0)) / math.sqrt(curvature.floor)
    if M * longest * size > LONG:
        longest = float(curvature.row_norms(problem.X, problem.members).max(initial=0.0))
    away = radius_by_steepening(size, M * longest)
    if not math.isfinite(away):
        return None
    return Neighbourhood(w, away, curvature, problem.scale, way="curvature")


def radius_by_steepening(size: float, rho: float) -> float:
    """Return at least ``-log(1 - rho size) / rho``; infinity if it has no value."""
    reach = rho * size * (1.0 + gamma(8.0))
    if not reach < 1.0:
        return math.inf
    growth = -math.log1p(-reach) / reach if reach > 0.0 else 1.0
    return size * growth * (1.0 + gamma(32.0))


def _bound_by_corners(
    problem: Problem,
    w: np.ndarray,
    found: Gradient,
    nearest: Neighbourhood,
    corners: tuple[float, ...],
) -> Neighbourhood:
    """Return the ball in the norm of the rows that stay on one parabola."""
    bending = int(np.count_nonzero(found.bends))
    before = 0
    for _ in range(ROUNDS):
        # Rows on one parabola anywhere in the present ball keep their curvature; it gives the next,
        # narrower ball, and that more such rows.
        low, high = _margin_bounds(problem, found, nearest)
        chosen = np.flatnonzero((found.bends > 0.0) & on_one_piece(problem, low, high, corners))
        if chosen.size <= MORE * before:
            break
        curvature = bound_curvature(
            problem, problem.members[chosen], found.bends[chosen] * (1.0 - 8.0 * UNIT)
        )
        if curvature.factor is None:
            break
        away = curvature.dual_norm(found.value, found.error) * (1.0 + gamma(8.0))
        nearest = Neighbourhood(w, away, curvature, problem.scale, way="curvature")
        before = chosen.size
        if before == bending:
            break
    return nearest


def _margin_bounds(
    problem: Problem, found: Gradient, nearest: Neighbourhood
) -> tuple[np.ndarray, np.ndarray]:
    """Bound the members' margins at w and anywhere in a proven neighbourhood."""
    norms = radii(problem.gather(problem.norms)) / math.sqrt(nearest.curvature.floor or 1.0)
    away = SLACK * (nearest.radius * norms if nearest.radius > 0.0 else 0.0 * norms) + found.slips
    if nearest.offset is None:
        return found.z - away, found.z + away
    # A free intercept moves all margins by up to the ends of its interval.
    z = margins(problem, nearest.center)
    low = z - away + nearest.offset[0]
    high = z + away + nearest.offset[1]
    return np.minimum(low, found.z - found.slips), np.maximum(high, found.z + found.slips)
