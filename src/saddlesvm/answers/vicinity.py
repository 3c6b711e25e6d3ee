"""A problem seen from its optimum: its gradient, how it bends, and over what distance it keeps bending.

``F(v) = R(v) + C sum_i s_i phi_i(x_i . v)``, with gradient r at w, and a matrix H below the curvature around w:

    F''(v) >= exp(-M max_i |x_i . (v - w)|) H,  H = F''(w)     losses with |phi'''| <= M phi''
    F''(v) >= H  where ||v - w||_H <= reach                    losses with corners; H counts the rows that keep bending

What a changed row or group does to the optimum follows from the inverse of H, the leverages ``t_i = x_i' H^-1 x_i`` and
the length of r. `docs/leave-one-out.md` has the derivations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrs

from saddlesvm.answers.gradient import Gradient, gradient_at, on_one_piece
from saddlesvm.answers.neighbourhood import TRUSTED
from saddlesvm.problem.bounds import SLACK, gamma, loss_units, radii
from saddlesvm.problem.loss import Loss, traits_of
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.second_order.leave_one_out import curvature_matrix, inverse_of, quadratic_forms
from saddlesvm.solvers.second_order.linear_algebra import cholesky

MOST_STEPS = 20  # of Newton's method towards the optimum
FALL = 0.1  # share of the gradient's length that a step with an old matrix leaves at most; else a new one is made
SURE = 0.99  # share of moved rows that the reach of a loss with corners is chosen for
ROOM = 1.5  # times their largest move, for the leverages grow where rows are left out of H
MOST_HALVINGS = 8  # of this reach, until the rows that are left keep bending within it
LEAST = 1e-2  # share of the curvature without a row that this choice counts with at least


@dataclass(frozen=True, eq=False)
class Vicinity:
    """A point next to the optimum of a problem, and the curvature there.

    Attributes
    ----------
    problem : Problem
        All rows are members; half a square as the penalty.
    w : ndarray of shape (d + 1,)
    at : Gradient
        There.
    bend : ndarray of shape (n,)
        ``h_i``, what each row adds to H; zero for rows that may stop bending.
    inverse : ndarray of shape (d + 1, d + 1)
        Of H.
    steps : ndarray of shape (d + 1, d + 1)
        The inverse for steps: of H and of the rows that bend at w, but may stop.
    leverages : ndarray of shape (n,)
        ``t_i``, rounded up; at least its quotient by ``(1 + error)^2`` is exact.
    growth : float
        M; 0 where the curvature is at least H within `reach`.
    reach : float
        In the norm of H.
    error : float
        Relative error of squared lengths by H and its inverse, at most: exact ones are between
        those computed divided by ``1 + error`` and times ``1 + error``.
    """

    problem: Problem
    w: np.ndarray
    at: Gradient
    bend: np.ndarray
    inverse: np.ndarray
    steps: np.ndarray
    leverages: np.ndarray
    growth: float
    reach: float
    error: float

    @property
    def z(self) -> np.ndarray:
        """The margins, shape (n,)."""
        return self.at.z

    @cached_property
    def pulls(self) -> np.ndarray:
        """``beta_i = -C s_i phi'_i``, shape (n,)."""
        return np.asarray(self.problem.C * self.at.alpha)

    @cached_property
    def longest(self) -> float:
        """``rho``: the largest ``||x_i||`` in the norm of the inverse."""
        return math.sqrt(float(self.leverages.max(initial=0.0)))

    @cached_property
    def widest(self) -> float:
        """The longest that a vector of length 1 can be in the norm of the inverse."""
        if not self.problem.intercept.constrained:
            return 1.0
        return math.sqrt(float(np.linalg.norm(self.inverse, 2)) * (1.0 + self.error))

    @cached_property
    def missed(self) -> float:
        """``lambda``: the length of the gradient in the norm of the inverse, rounding counted."""
        square = max(float(self.at.value @ self.inverse @ self.at.value), 0.0)
        return math.sqrt(square * (1.0 + self.error)) + self.widest * self.at.error

    def distance(self, missed: np.ndarray, share: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """How far the minimiser of a changed problem is from a point, at most, in the norm of its own H.

        Parameters
        ----------
        missed : ndarray of shape (k,)
            Length of the changed problem's gradient at the point, in the norm of the inverse.
        share : ndarray of shape (k,)
            ``q`` with ``q H <=`` the changed problem's H.
        moved : ndarray of shape (k,)
            With M: ``M max_i |x_i . (v - w)|`` at the point v. Without: ``||v - w||_H``.
        """
        missed = missed * (1.0 + self.error)  # the curvature of the rows is rounded
        if self.growth == 0.0:
            return np.where(moved + missed / np.sqrt(share) <= self.reach, missed, np.inf)
        scale = self.growth * self.longest / np.sqrt(share)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inside = scale * missed * np.exp(moved)
            return np.where(inside < 1.0, -np.log1p(-np.minimum(inside, 1.0)) / scale * SLACK, np.inf)


def vicinity_of(problem: Problem, w: np.ndarray) -> Vicinity | None:
    """The vicinity of a problem's optimum, from weights near it; None where the loss declares no curvature.

    Parameters
    ----------
    problem : Problem
        All rows are members; half a square as the penalty.
    w : ndarray of shape (d + 1,)
    """
    loss, corners = problem.loss, corners_of(problem.loss)
    if not hasattr(loss, "steepening") and corners is None:
        return None
    try:
        at, w, H = _stationary_point(problem, w)
        bend, reach, steps = at.bends, math.inf, inverse_of(H.copy(order="F"))
        inverse = steps
        if corners:
            bend, reach, H = _sure(problem, at, steps)
            inverse = inverse_of(H.copy(order="F"))
    except np.linalg.LinAlgError:
        return None
    growth = float(loss.steepening()) if hasattr(loss, "steepening") else 0.0
    error = _error(at, growth, H, inverse, loss_units(loss))
    if not error < TRUSTED:
        return None
    t = quadratic_forms(problem.X, np.arange(at.z.size), inverse) * (1.0 + error)
    return Vicinity(problem, w, at, bend, inverse, steps, t, growth, reach, error)


def corners_of(loss: Loss) -> tuple[float, ...] | None:
    """The corners between which a loss is a parabola; None for a loss that declares none."""
    return tuple(loss.corners()) if hasattr(loss, "corners") else None


def _stationary_point(problem: Problem, w: np.ndarray) -> tuple[Gradient, np.ndarray, np.ndarray]:
    """The point that Newton's method ends at, and H of all rows there; a matrix serves as long as steps are good."""
    best, factor, before = gradient_at(problem, w), None, math.inf
    for _ in range(MOST_STEPS):
        if factor is None:
            factor, before = cholesky(_matrix(problem, best.bends)), math.inf
        step = dpotrs(factor, best.value, lower=1)[0]
        missed = float(best.value @ step)
        if missed <= best.error**2 or time_is_up():
            break
        if missed > FALL**2 * before:
            factor = None
            continue
        before, seen = missed, gradient_at(problem, w - step)
        if not float(seen.value @ dpotrs(factor, seen.value, lower=1)[0]) < missed:
            break
        best, w = seen, w - step
    return best, w, _matrix(problem, best.bends)


def _matrix(problem: Problem, bend: np.ndarray) -> np.ndarray:
    """H in its lower triangle, Fortran-ordered."""
    ridge = problem.regularizer.curvature(np.zeros(problem.n_features + 1))
    return curvature_matrix(problem, bend, np.flatnonzero(bend), ridge)


def _sure(problem: Problem, at: Gradient, inverse: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """The curvature of the rows that keep bending within a distance of w, this distance, and their H.

    The distance is chosen so that most single rows that are left out move the optimum by less; zero where none serves.
    """
    t = quadratic_forms(problem.X, np.arange(at.z.size), inverse)
    whole = bend = at.bends
    moves = problem.C * np.abs(at.alpha) * np.sqrt(t) / np.maximum(1.0 - bend * t, LEAST)
    reach = float(np.quantile(moves[moves > 0.0], SURE)) if moves.any() else 0.0
    for halvings in range(MOST_HALVINGS):
        if time_is_up():
            break
        reach *= 0.5 if halvings else 1.0
        bend = np.where(_keeps_bending(problem, at, ROOM * reach * np.sqrt(t)), whole, 0.0)
        H = _matrix(problem, bend)
        if problem.intercept.constrained and not bend.any():
            continue
        own = quadratic_forms(problem.X, np.arange(at.z.size), inverse_of(H.copy(order="F"))) * SLACK
        if _keeps_bending(problem, at, reach * np.sqrt(own))[bend > 0.0].all():
            return bend, reach, H
    return whole, 0.0, _matrix(problem, whole)


def _keeps_bending(problem: Problem, at: Gradient, way: np.ndarray) -> np.ndarray:
    """Whether the curvature of each row is the same over all margins that far from its own."""
    way = SLACK * way + at.slips
    return (at.bends > 0.0) & on_one_piece(problem, at.z - way, at.z + way, corners_of(problem.loss) or ())


def _error(at: Gradient, growth: float, H: np.ndarray, inverse: np.ndarray, units: float) -> float:
    """What squared lengths by the inverse can be off by, relative: the norm of ``inverse H - I``, rounding counted.

    The matrices are similar to symmetric ones, so that any norm bounds their eigenvalues. They are taken for features
    that are scaled so that H has a diagonal of ones: a norm then says nothing of the scales of the features.
    """
    scale = np.sqrt(np.diag(H))
    whole = (np.tril(H) + np.tril(H, -1).T) / scale / scale[:, None]
    inverse = inverse * scale * scale[:, None]
    size, width = float(np.linalg.norm(inverse)), float(len(whole))
    left = float(np.linalg.norm(inverse @ whole - np.eye(len(whole))))
    # Sums over the rows in H; products with the inverse here, and of two vectors and the inverse later.
    summed = gamma(at.z.size + 4.0 * width + units + 16.0) * width * size
    off = SLACK * (left + summed + 2.0 * growth * float(at.slips.max(initial=0.0)))
    return off / (1.0 - off) if off < 1.0 else math.inf


def gradient_rounding(problem: Problem, V: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Bounds on the rounding errors of gradients at weights V, in the Euclidean norm.

    Parameters
    ----------
    V : ndarray of shape (d + 1,) or (d + 1, k)
    sizes : ndarray of shape (n,) or (n, k)
        ``C s_i |phi'_i|``.
    """
    rows = problem.row_sizes
    norm = np.linalg.norm(V, axis=0)
    summed = gamma(rows.rows + loss_units(problem.loss) + 8.0) * (radii(problem.norms) @ sizes)
    bend = problem.loss.largest_curvature()
    of_margins = problem.C * bend * gamma(rows.terms + 8.0) * (norm + 1.0) * rows.squares
    if traits_of(problem.loss).task == "regression":
        labels = float(radii(problem.norms) @ (problem.row_weights * np.abs(problem.y)))
        of_margins = of_margins + problem.C * bend * gamma(8.0) * labels
    return SLACK * (summed + of_margins + gamma(8.0) * norm)
