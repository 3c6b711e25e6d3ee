"""The vicinity of an optimum: gradient, curvature, and the distance over which it stays curved.

``F(v) = R(v) + C sum_i s_i phi_i(x_i . v)``, with gradient r at w, and a matrix H below the
curvature around w:

    F''(v) >= exp(-M max_i |x_i . (v - w)|) H,  H = F''(w)     losses with |phi'''| <= M phi''
    F''(v) >= H  if ||v - w||_H <= reach                       losses with corners; H counts the
    rows that keep bending

With ``rho = max_i ||x_i||`` and ``lambda = ||r||`` in the norm of the inverse of H, the distance
``u = ||w* - w||_H`` of the optimum is at most lambda in the second case. In the first, no margin
changes by more than ``t = M rho u`` on the way, so that the mean curvature is at least ``H (1 -
e^-t) / t``, which is ``u (1 - e^-t) / t <= lambda``, and

    u <= -log(1 - M rho lambda) / (M rho)      if  M rho lambda < 1.

What a changed row does to the optimum follows from the inverse of H, the leverages ``t_i =
x_i' H^-1 x_i`` and the length of r. `docs/how/leave-one-out.md` has the derivations.

Source: Bach (2010), "Self-concordant analysis for logistic regression"; Sun and Tran-Dinh (2019),
"Generalized self-concordant functions".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrs

from saddlesvm.answers.gradient import Gradient, gradient_at, on_one_piece
from saddlesvm.answers.row_estimates import (
    curvature_matrix,
    invert,
    quadratic_forms,
)
from saddlesvm.problem.bounds import SLACK, gamma, loss_units, radii
from saddlesvm.problem.loss import Loss, traits_of
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.linear_algebra import cholesky

MOST_STEPS = 20  # of Newton's method towards the optimum
TRUSTED = 0.1  # largest relative error of a computed inverse that is used
# Share of the gradient's length that a step with an old matrix leaves at most; else the matrix is
# made again.
FALL = 0.1
SURE = 0.99  # share of the rows for which the reach of a loss with corners is enough
ROOM = 1.5  # factor of the reach: leverages grow when rows are left out of H
MOST_HALVINGS = 8  # halvings of the reach, until all rows in H stay curved within it
LEAST = 1e-2  # smallest share of the curvature without a row that this choice assumes


@dataclass(frozen=True, eq=False)
class Vicinity:
    """A point next to the optimum of a problem, and the curvature there.

    Attributes
    ----------
    problem : Problem
        Half a square is in its penalty.
    w : ndarray of shape (d + 1,)
    at : Gradient
        The gradient at w.
    bend : ndarray of shape (n,)
        ``h_i``, what each row adds to H; zero for rows that may stop bending.
    inverse : ndarray of shape (d + 1, d + 1)
        The inverse of H.
    steps : ndarray of shape (d + 1, d + 1)
        The inverse for steps: of the curvature at w, also of rows that may stop bending.
    leverages : ndarray of shape (n,)
        ``t_i``, rounded up; at least its quotient by ``(1 + error)^2`` is exact.
    growth : float
        M; 0 if the curvature is at least H within `reach`.
    reach : float
        A distance in the norm of H.
    error : float
        Relative error of squared lengths by H and its inverse at most: exact lengths are between
        the computed values divided by ``1 + error`` and times ``1 + error``.
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
        """The largest length, in the norm of the inverse, of a vector of length 1."""
        if not self.problem.intercept.constrained:
            return 1.0 / math.sqrt(modulus(self.problem.penalty))
        return math.sqrt(float(np.linalg.norm(self.inverse, 2)) * (1.0 + self.error))

    @cached_property
    def missed(self) -> float:
        """``lambda``: the length of the gradient in the norm of the inverse, with its rounding."""
        square = max(float(self.at.value @ self.inverse @ self.at.value), 0.0)
        return math.sqrt(square * (1.0 + self.error)) + self.widest * self.at.error

    def distance(
        self, missed: float | np.ndarray, share: float | np.ndarray, moved: float | np.ndarray
    ) -> np.ndarray:
        """Bound the distance of a changed problem's optimum from a point, in the norm of its H.

        Parameters
        ----------
        missed : float or ndarray of shape (k,)
            Lengths of the changed problems' gradients at the points, in the norm of the inverse.
        share : float or ndarray of shape (k,)
            ``q`` with ``q H <=`` the changed problem's H.
        moved : float or ndarray of shape (k,)
            With M, ``M max_i |x_i . (v - w)|`` at the point v; without M, ``||v - w||_H``.
        """
        missed = missed * (1.0 + self.error)  # the curvature of the rows is rounded
        # Parabolas: ||v* - v|| <= lambda as long as both stay within reach.
        if self.growth == 0.0:
            return np.where(moved + missed / np.sqrt(share) <= self.reach, missed, np.inf)
        # Elsewhere u <= -log(1 - M rho lambda e^moved) / (M rho).
        scale = self.growth * self.longest / np.sqrt(share)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inside = scale * missed * np.exp(moved)
            return np.where(
                inside < 1.0, -np.log1p(-np.minimum(inside, 1.0)) / scale * SLACK, np.inf
            )


def find_vicinity(problem: Problem, w: np.ndarray) -> Vicinity | None:
    """Return the vicinity of an optimum, from weights near it; None if the loss has no curvature.

    Parameters
    ----------
    problem : Problem
        Half a square is in its penalty.
    w : ndarray of shape (d + 1,)
    """
    loss = problem.loss
    corners = loss_corners(problem.loss)
    if not hasattr(loss, "steepening") and corners is None:
        return None
    try:
        at, w, H = _stationary_point(problem, w)
        bend = at.bends
        reach = math.inf
        steps = invert(H.copy(order="F"))
        inverse = steps
        if corners:
            bend, reach, H = _lasting_curvature(problem, at, steps)
            inverse = invert(H.copy(order="F"))
    except np.linalg.LinAlgError:
        return None
    growth = float(loss.steepening()) if hasattr(loss, "steepening") else 0.0
    # How well the computed inverse is one: all squared lengths are widened by it.
    error = _error(at, growth, H, inverse, loss_units(loss))
    if not error < TRUSTED:
        return None
    t = quadratic_forms(problem.X, problem.members, inverse) * (1.0 + error)
    return Vicinity(problem, w, at, bend, inverse, steps, t, growth, reach, error)


def loss_corners(loss: Loss) -> tuple[float, ...] | None:
    """Return the corners between which a loss is a parabola; None if it declares none."""
    return tuple(loss.corners()) if hasattr(loss, "corners") else None


def _stationary_point(problem: Problem, w: np.ndarray) -> tuple[Gradient, np.ndarray, np.ndarray]:
    """Return the gradient at the last point of Newton's method, the point, and H of all rows."""
    best = gradient_at(problem, w)
    factor = None
    before = math.inf
    for _ in range(MOST_STEPS):
        if factor is None:
            factor = cholesky(_matrix(problem, best.bends))
            before = math.inf
        # Newton's step, and the squared length of the gradient in the norm of the inverse.
        step = dpotrs(factor, best.value, lower=1)[0]
        missed = float(best.value @ step)
        if missed <= best.error**2 or time_is_up():
            break  # the gradient is rounding
        # A matrix serves as long as its steps are good.
        if missed > FALL**2 * before:
            factor = None
            continue
        before = missed
        seen = gradient_at(problem, w - step)
        if not float(seen.value @ dpotrs(factor, seen.value, lower=1)[0]) < missed:
            break
        best = seen
        w = w - step
    return best, w, _matrix(problem, best.bends)


def _matrix(problem: Problem, bend: np.ndarray) -> np.ndarray:
    """Return H in its lower triangle, in Fortran order."""
    ridge = np.full(problem.n_features + 1, modulus(problem.penalty))
    if problem.intercept.constrained:
        ridge[-1] = 0.0
    return curvature_matrix(problem, bend, np.flatnonzero(bend), ridge)


def _lasting_curvature(
    problem: Problem, at: Gradient, inverse: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return curvatures that last within a distance of w, this distance, and their H."""
    # Most single rows, left out, move the optimum by less than this distance.
    t = quadratic_forms(problem.X, problem.members, inverse)
    whole = bend = at.bends
    moves = problem.C * np.abs(at.alpha) * np.sqrt(t) / np.maximum(1.0 - bend * t, LEAST)
    reach = float(np.quantile(moves[moves > 0.0], SURE)) if moves.any() else 0.0
    for halvings in range(MOST_HALVINGS):
        if time_is_up():
            break
        reach *= 0.5 if halvings else 1.0
        # Rows that may stop bending within the reach are left out of H. Leverages then grow, so the
        # others are checked again.
        bend = np.where(_keeps_bending(problem, at, ROOM * reach * np.sqrt(t)), whole, 0.0)
        H = _matrix(problem, bend)
        if problem.intercept.constrained and not bend.any():
            continue
        own = quadratic_forms(problem.X, problem.members, invert(H.copy(order="F"))) * SLACK
        if _keeps_bending(problem, at, reach * np.sqrt(own))[bend > 0.0].all():
            return bend, reach, H
    return whole, 0.0, _matrix(problem, whole)


def _keeps_bending(problem: Problem, at: Gradient, way: np.ndarray) -> np.ndarray:
    """Return True for each row whose curvature is the same at all margins that far from its own."""
    way = SLACK * way + at.slips
    return (at.bends > 0.0) & on_one_piece(
        problem, at.z - way, at.z + way, loss_corners(problem.loss) or ()
    )


def _error(at: Gradient, growth: float, H: np.ndarray, inverse: np.ndarray, units: float) -> float:
    """Return the relative error of squared lengths by the inverse: the norm of inverse H - I."""
    # The matrices are similar to symmetric ones, so any norm bounds their eigenvalues. Features are
    # scaled so that H has a diagonal of ones: the norm then does not depend on their scales.
    scale = np.sqrt(np.diag(H))
    whole = (np.tril(H) + np.tril(H, -1).T) / scale / scale[:, None]
    inverse = inverse * scale * scale[:, None]
    size = float(np.linalg.norm(inverse))
    width = float(len(whole))
    left = float(np.linalg.norm(inverse @ whole - np.eye(len(whole))))
    # Rounding: sums over the rows in H, products with the inverse here, and of two vectors and the
    # inverse later.
    summed = gamma(at.z.size + 4.0 * width + units + 16.0) * width * size
    off = SLACK * (left + summed + 2.0 * growth * float(at.slips.max(initial=0.0)))
    return off / (1.0 - off) if off < 1.0 else math.inf


def gradient_rounding(problem: Problem, V: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return bounds on the rounding errors of gradients at weights V, in the Euclidean norm.

    Parameters
    ----------
    V : ndarray of shape (d + 1,) or (d + 1, k)
    sizes : ndarray of shape (n,) or (n, k)
        ``C s_i |phi'_i|``.
    """
    rows = problem.row_sizes
    norm = np.linalg.norm(V, axis=0)
    # Rounding of the sum over the rows, then of their margins times the largest curvature.
    summed = gamma(rows.rows + loss_units(problem.loss) + 8.0) * (radii(problem.norms) @ sizes)
    bend = problem.loss.largest_curvature()
    of_margins = problem.C * bend * gamma(rows.terms + 8.0) * (norm + 1.0) * rows.squares
    if traits_of(problem.loss).task == "regression":
        labels = float(radii(problem.norms) @ (problem.row_weights * np.abs(problem.y)))
        of_margins = of_margins + problem.C * bend * gamma(8.0) * labels
    return SLACK * (summed + of_margins + gamma(8.0) * norm)
