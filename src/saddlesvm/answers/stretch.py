"""Bounds on the optima for every C in a stretch around the C of a fit.

A stretch has a line of centers and a radius. ``rho = C / C_k``; R is half a square of what the
penalty sees, w the weights of the fit at ``C_k``, r its gradient and H its curvature. The narrowest
of these holds for every C of a stretch.

*   Any loss. Sub-gradients of a convex function are monotone, so for the exact optima ``w*`` at
    ``C_k`` and ``v`` at C ``(v - rho w*) . (v - w*) <= 0``: v is in the ball around
    ``(1 + rho) w* / 2`` of radius ``|1 - rho| ||w*|| / 2``.
*   Losses that are parabolas between corners: with the rows S that stay on one parabola in that
    ball, the gradient at C is ``(1 - rho) w + rho r``, and the curvature at least
    ``min(1, rho) H_S``.
*   ``|phi'''| <= M phi''``. One Newton step leads along ``h = H^-1 w`` to ``w + tau h`` with
    ``tau = 1 - 1 / rho``. The gradient there is ``rho r - (1 - rho)^2 / rho h + rho rest``, with
    ``||rest|| <= |tau| ||h|| (e^t - 1 - t) / t`` and ``t = M max_i |tau x_i . h|``, and the
    curvature at least ``e^-t min(1, rho) H``.

All of it grows with the distance of rho from 1, so the ends of a stretch decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from saddlesvm.answers.curvature_bound import CurvatureBound, bound_curvature
from saddlesvm.answers.gradient import Gradient, gradient_at, margin_slips, on_one_piece
from saddlesvm.answers.neighbourhood import ROUNDS, Neighbourhood, radius_by_steepening
from saddlesvm.problem.bounds import MARGIN_UNITS, SLACK, UNDERFLOW, gamma, norm_of, radii
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import margins
from saddlesvm.rows.layouts import add_rows, as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.runtime.data_types import RowsLike


@dataclass(frozen=True, eq=False)
class Stretch:
    """The optima of all C of a stretch are near ``center + tau direction``, tau up to `end`.

    Attributes
    ----------
    center, direction : ndarray of shape (d + 1,)
    end : float
    radius : float
        In the norm of `curvature`.
    curvature : CurvatureBound
    scale : float
        Value of the virtual feature.
    """

    center: np.ndarray
    direction: np.ndarray
    end: float
    radius: float
    curvature: CurvatureBound
    scale: float

    def score_bounds(self, X: RowsLike) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the scores of rows for every C of the stretch, of shape (m,)."""
        rows = as_rows(X, self.scale)
        # Centers are on a line: a score is between those at its ends, give or take the radius.
        both = np.vstack([self.center, self.center + self.end * self.direction])
        z = scores_of_rows(rows, both)
        if not math.isfinite(self.radius):
            return np.full(len(z), -np.inf), np.full(len(z), np.inf)
        norms = radii(squared_norms(rows))
        slips = (
            2.0 * gamma(rows.longest_row + 1.0 + MARGIN_UNITS) * max(map(norm_of, both)) * norms
            + UNDERFLOW
        )
        away = SLACK * (self.curvature.row_norms(rows) * self.radius + slips)
        return z.min(axis=1) - away, z.max(axis=1) + away


def stretch_to(problem: Problem, near: Neighbourhood, C: float) -> Stretch:
    """Return the stretch from a problem's C to another C.

    Parameters
    ----------
    problem : Problem
        With half a square as its penalty.
    near : Neighbourhood
        Of the problem's optimum.
    C : float
    """
    rho = C / problem.C
    # The ball of any loss first; the curvature may prove a narrower one.
    plain = _bound_by_monotony(problem, near, rho)
    if near.way != "curvature" or not math.isfinite(plain.radius):
        return plain
    found = gradient_at(problem, near.center)
    if hasattr(problem.loss, "steepening"):
        return _bound_by_step(problem, near, found, rho) or plain
    return _bound_by_corners(problem, near, found, plain, rho)


def _penalised_weights(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Return w, with zeros for weights without a penalty, shape (d + 1,)."""
    seen = np.zeros(w.size)
    part = problem.intercept.penalised_part(w)
    seen[: part.size] = part
    return seen


def _bound_by_monotony(problem: Problem, near: Neighbourhood, rho: float) -> Stretch:
    """Return the ball of any loss; infinite with a free intercept."""
    w = near.center
    floor = near.curvature.floor
    known = problem.is_plain and not problem.intercept.constrained and floor > 0.0
    off = SLACK * near.radius / math.sqrt(floor) if known and near.radius > 0.0 else 0.0
    # The ball around (1 + rho) w* / 2 of radius |1 - rho| ||w*|| / 2, with w* known up to `off`.
    radius = (
        0.5 * abs(1.0 - rho) * (norm_of(w) + off) + 0.5 * (1.0 + rho) * off if known else math.inf
    )
    return Stretch(
        w, w, 0.5 * (rho - 1.0), SLACK * radius, CurvatureBound(None, 1.0), problem.scale
    )


def _bound_by_corners(
    problem: Problem, near: Neighbourhood, found: Gradient, plain: Stretch, rho: float
) -> Stretch:
    """Return the ball in the norm of the rows that stay on one parabola for all C."""
    norms = radii(problem.gather(problem.norms))
    corners = problem.loss.corners()  # type: ignore[attr-defined]
    seen = _penalised_weights(problem, near.center)
    still = np.zeros(near.center.size)
    before = 0
    nearest = plain
    for _ in range(ROUNDS):
        away = SLACK * nearest.radius * norms + 2.0 * found.slips
        moved = nearest.end * found.z if before == 0 else 0.0 * found.z
        # Where a margin can be for any C of the stretch.
        low = found.z + np.minimum(moved, 0.0) - away
        high = found.z + np.maximum(moved, 0.0) + away
        chosen = np.flatnonzero((found.bends > 0.0) & on_one_piece(problem, low, high, corners))
        if chosen.size <= before:
            break
        curvature = bound_curvature(problem, problem.members[chosen], found.bends[chosen] / SLACK)
        if curvature.factor is None:
            break
        # The gradient (1 - rho) w + rho r in the norm of H_S^-1, by the triangle inequality.
        size = curvature.dual_norm(seen) * abs(1.0 - rho)
        size += max(1.0, rho) * curvature.dual_norm(found.value, found.error)
        before = chosen.size
        # The curvature is at least min(1, rho) H_S.
        radius = SLACK * size / min(1.0, rho)
        nearest = Stretch(near.center, still, 0.0, radius, curvature, problem.scale)
    return nearest


def _bound_by_step(
    problem: Problem, near: Neighbourhood, found: Gradient, rho: float
) -> Stretch | None:
    """Return the ball around a Newton step; None if the curvature may change too much."""
    M = problem.loss.steepening()  # type: ignore[attr-defined]
    curvature = near.curvature
    seen = _penalised_weights(problem, near.center)
    tau = 1.0 - 1.0 / rho
    # The step, and how far its equations are missed.
    h = curvature.solve(seen)
    if not problem.intercept.present:
        h[-1] = 0.0
    along = margins(problem, h)
    bent = np.zeros(h.size)
    add_rows(problem.X, problem.members, problem.scatter(found.bends * along), bent)
    bent += _penalised_weights(problem, h)
    slips = gamma(problem.members.size + 2.0 * problem.row_sizes.terms + MARGIN_UNITS)
    lost = slips * (norm_of(h) * (1.0 + float(found.bends @ problem.gather(problem.norms))))
    length = math.sqrt(max(float(h @ bent), 0.0)) + lost
    t = SLACK * M * abs(tau) * float((np.abs(along) + margin_slips(problem, h)).max(initial=0.0))
    if t > 1.0:
        return None
    # The gradient at the end of the step, term by term.
    rest = abs(tau) * length * (t / 2.0) * (1.0 + t)  # (e^t - 1 - t) / t is less for t up to 1
    size = max(1.0, rho) * (curvature.dual_norm(found.value, found.error) + rest)
    size += (1.0 - rho) ** 2 / rho * curvature.dual_norm(_penalised_weights(problem, h))
    size += abs(1.0 - rho) * curvature.dual_norm(bent - seen, lost)
    # The curvature there, and the distance that both leave.
    less = math.exp(-t) * min(1.0, rho)
    longest = SLACK * float(radii(problem.norms).max(initial=0.0)) / math.sqrt(curvature.floor)
    if M * longest * size / less > 0.5:
        longest = float(curvature.row_norms(problem.X, problem.members).max(initial=0.0))
    radius = radius_by_steepening(SLACK * size / less, SLACK * M * longest)
    return (
        Stretch(near.center, h, tau, radius, curvature, problem.scale)
        if math.isfinite(radius)
        else None
    )
