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
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs

from saddlesvm.answers.many_points import loss_arrays, row_weights
from saddlesvm.problem.loss import Shape, loss_name, traits_of
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rounding import SLACK, gamma, loss_units, radii
from saddlesvm.problem.sums import dual_of_margins, dual_weights, margins
from saddlesvm.solvers.second_order.leave_one_out import curvature_matrix, inverse_of, quadratic_forms
from saddlesvm.solvers.second_order.linear_algebra import cholesky

GROWTH = {"logistic": 1.0, "squared": 0.0}  # the smallest M with |phi'''| <= M phi''
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
    z, pulls : ndarray of shape (n,)
        Margins, and ``beta_i = -C s_i phi'_i``.
    bend : ndarray of shape (n,)
        ``h_i``, what each row adds to H; zero for rows that may stop bending.
    inverse : ndarray of shape (d + 1, d + 1)
        Of H.
    steps : ndarray of shape (d + 1, d + 1)
        The inverse for steps: of H and of the rows that bend at w, but may stop.
    leverages : ndarray of shape (n,)
        ``t_i``, rounded up.
    growth : float
        M; 0 where the curvature is at least H within `reach`.
    reach : float
        In the norm of H.
    gradient : ndarray of shape (d + 1,)
        r.
    error : float
        Relative error of squared lengths by H and its inverse, at most.
    """

    problem: Problem
    w: np.ndarray
    z: np.ndarray
    pulls: np.ndarray
    bend: np.ndarray
    inverse: np.ndarray
    steps: np.ndarray
    leverages: np.ndarray
    growth: float
    reach: float
    gradient: np.ndarray
    error: float

    @cached_property
    def longest(self) -> float:
        """``rho``: the largest ``||x_i||`` in the norm of the inverse."""
        return math.sqrt(float(self.leverages.max(initial=0.0)))

    @cached_property
    def widest(self) -> float:
        """The longest that a vector of length 1 can be in the norm of the inverse."""
        found = math.sqrt(float(np.linalg.norm(self.inverse, 2)) * (1.0 + self.error))
        return found if self.problem.intercept.constrained else min(1.0, found)

    @cached_property
    def missed(self) -> float:
        """``lambda``: the length of the gradient in the norm of the inverse, rounding counted."""
        square = max(float(self.gradient @ self.inverse @ self.gradient), 0.0)
        noise = gradient_rounding(self.problem, self.w, np.abs(self.pulls))
        return math.sqrt(square * (1.0 + self.error)) + self.widest * float(noise)

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
        if self.growth == 0.0:
            return np.where(moved + missed / np.sqrt(share) <= self.reach, missed, np.inf)
        scale = self.growth * self.longest / np.sqrt(share)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inside = scale * missed * np.exp(moved)
            return np.where(inside < 1.0, -np.log1p(-np.minimum(inside, 1.0)) / scale * SLACK, np.inf)


def vicinity_of(problem: Problem, w: np.ndarray) -> Vicinity | None:
    """The vicinity of a problem's optimum, from weights near it; None where the loss has no curvature to speak of.

    Parameters
    ----------
    problem : Problem
        All rows are members; half a square as the penalty.
    w : ndarray of shape (d + 1,)
    """
    shape, growth = traits_of(problem.loss).shape, GROWTH.get(loss_name(problem.loss), math.inf)
    if shape is Shape.KINKED or (shape is Shape.SMOOTH and growth == math.inf):
        return None
    try:
        (w, z, pulls, gradient), H = _settled(problem, w)
        bend, reach, steps = _bend(problem, z), math.inf, inverse_of(H.copy(order="F"))
        if shape is Shape.CORNERED:
            bend, reach, H = _sure(problem, z, pulls, steps)
            inverse = inverse_of(H.copy(order="F"))
        else:
            inverse = steps
    except np.linalg.LinAlgError:
        return None
    error = _error(problem, z, w, H, inverse)
    if not error < 0.1:
        return None
    t = quadratic_forms(problem.X, np.arange(z.size), inverse) * (1.0 + error)
    growth = 0.0 if shape is Shape.CORNERED else growth
    return Vicinity(problem, w, z, pulls, bend, inverse, steps, t, growth, reach, gradient, error)


class _Seen(NamedTuple):
    """A point, and what a pass over the rows says of it."""

    w: np.ndarray
    z: np.ndarray
    pulls: np.ndarray
    gradient: np.ndarray


def _settled(problem: Problem, w: np.ndarray) -> tuple[_Seen, np.ndarray]:
    """The point that Newton's method ends at, and H of all rows there; a matrix serves as long as steps are good."""
    best, H, factor, before = _seen(problem, w), None, None, math.inf
    for _ in range(MOST_STEPS):
        if factor is None:
            H, before = _matrix(problem, _bend(problem, best.z)), math.inf
            factor = cholesky(H.copy(order="F"))
        step = dpotrs(factor, best.gradient, lower=1)[0]
        missed = float(best.gradient @ step)
        if missed <= _noise(problem, best) ** 2:
            break
        if missed > FALL**2 * before:
            factor = None
            continue
        before, seen = missed, _seen(problem, best.w - step)
        left = float(seen.gradient @ dpotrs(factor, seen.gradient, lower=1)[0])
        if not left < missed:
            break
        best = seen
    return best, _matrix(problem, _bend(problem, best.z))


def _noise(problem: Problem, at: _Seen) -> float:
    """What rounding may be of the gradient's length; steps below it prove nothing more."""
    return float(gradient_rounding(problem, at.w, np.abs(at.pulls)))


def _seen(problem: Problem, w: np.ndarray) -> _Seen:
    """One pass over the rows at w; ``pulls = -C s_i phi'_i``."""
    z, pulls = margins(problem, w), np.zeros(problem.y.size)
    dual_of_margins(problem.pointwise, problem.members, z, 0.0, pulls)
    gradient = problem.regularizer.curvature(w) * w - dual_weights(problem, pulls)
    return _Seen(w, z, problem.C * pulls, gradient)


def _bend(problem: Problem, z: np.ndarray) -> np.ndarray:
    """``C s_i phi''_i``."""
    return problem.C * row_weights(problem) * loss_arrays(problem.loss).curvature(z, problem.y)


def _matrix(problem: Problem, bend: np.ndarray) -> np.ndarray:
    """H in its lower triangle, Fortran-ordered."""
    ridge = problem.regularizer.curvature(np.zeros(problem.n_features + 1))
    return curvature_matrix(problem, bend, np.flatnonzero(bend), ridge)


def _sure(
    problem: Problem, z: np.ndarray, pulls: np.ndarray, inverse: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """The curvature of the rows that keep bending within a distance of w, this distance, and their H.

    The distance is chosen so that most single rows that are left out move the optimum by less; zero where none serves.
    """
    t = quadratic_forms(problem.X, np.arange(z.size), inverse)
    whole = bend = _bend(problem, z)
    moves = np.abs(pulls) * np.sqrt(t) / np.maximum(1.0 - bend * t, LEAST)
    reach = float(np.quantile(moves[moves > 0.0], SURE)) if moves.any() else 0.0
    for halvings in range(MOST_HALVINGS):
        reach *= 0.5 if halvings else 1.0
        bend = np.where(_keeps_bending(problem, z, ROOM * reach * np.sqrt(t)), whole, 0.0)
        H = _matrix(problem, bend)
        if problem.intercept.constrained and not bend.any():
            continue
        own = quadratic_forms(problem.X, np.arange(z.size), inverse_of(H.copy(order="F"))) * SLACK
        if _keeps_bending(problem, z, reach * np.sqrt(own))[bend > 0.0].all():
            return bend, reach, H
    return whole, 0.0, _matrix(problem, whole)


def _keeps_bending(problem: Problem, z: np.ndarray, way: np.ndarray) -> np.ndarray:
    """Whether the curvature of each row is the same over all margins that far from its own.

    A derivative that rises by no less than the curvature times the way has no flat piece on it.
    """
    loss = loss_arrays(problem.loss)
    rounding = gamma(problem.row_sizes.terms + 8.0) * (np.abs(z) + way + 1.0)
    low, high = z - way - rounding, z + way + rounding
    bend = loss.curvature(z, problem.y)
    rise = loss.slope(high, problem.y) - loss.slope(low, problem.y)
    return (bend > 0.0) & (rise >= bend * (high - low) * (1.0 - 1e-9))


def _error(problem: Problem, z: np.ndarray, w: np.ndarray, H: np.ndarray, inverse: np.ndarray) -> float:
    """What squared lengths by the inverse can be off by, relative: the norm of ``inverse H - I``, rounding counted.

    The matrices are similar to symmetric ones, so that any norm bounds their eigenvalues.
    """
    whole = np.tril(H) + np.tril(H, -1).T
    size, trace = float(np.linalg.norm(inverse)), float(np.trace(whole))
    left = float(np.linalg.norm(inverse @ whole - np.eye(len(whole))))
    added = gamma(z.size + 2.0 * len(whole) + loss_units(problem.loss)) * trace
    growth = GROWTH.get(loss_name(problem.loss), 0.0)
    of_margins = growth * gamma(problem.row_sizes.terms + 8.0) * problem.row_sizes.longest * float(np.linalg.norm(w))
    return SLACK * (left + size * added * (1.0 + gamma(len(whole)) * len(whole)) + 2.0 * of_margins)


def gradient_rounding(problem: Problem, V: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """How far computed gradients at weights V can be off, in plain length.

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
        labels = float(radii(problem.norms) @ (row_weights(problem) * np.abs(problem.y)))
        of_margins = of_margins + problem.C * bend * gamma(8.0) * labels
    return SLACK * (summed + of_margins + gamma(8.0) * norm)
