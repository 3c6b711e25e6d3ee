"""A matrix that the objective is at least as curved as, its factor, and norms in it that count rounding.

``H = R'' + sum_i h_i x_i x_i'`` with numbers ``h_i`` that no curvature of a row's loss is below. With the factor L that
the machine computes,

    (1 - delta) H  <=  L L'  <=  (1 + delta) H,      delta = (gamma(n) + gamma(d)) trace(H) / floor,

where `floor` is a number below the smallest eigenvalue of H: the first gamma is for the sums over the rows, the second
for the factor (Higham 2002, theorem 10.3). The eigenvalues of R'' are such a number, but for a free intercept, which
R'' does not see. With ``s = sum_i h_i c^2``, c the virtual feature, and ``q = sum_i h_i c x_i``, the inequality of
Cauchy and Schwarz gives ``v' H v >= ||v_0||^2 + s (v_last + q.v_0 / s)^2``, whose smallest eigenvalue is at least
``s / (1 + s + ||q||^2 / s)``.

Without a factor the multiple `floor` of the unit matrix takes its place: norms are then the plain ones.

Bounds on the exact optimum of a problem: a ball around the weights of a certified fit, proven, rounding counted.

F(w) is the objective in the C form, g its gap at w, r its gradient there, w* its optimum, and m times half a square is
in the regulariser (m = 1 but for the l1 norm). The narrowest of these holds:

*   The gap: ``m ||w* - w||^2 / 2 <= g``, by strong convexity.
*   The gradient, of losses that have one: ``m ||w* - w|| <= ||r||``, for ``0 = grad F(w*)`` times ``w* - w``.
*   Curvature, of losses with ``|phi'''| <= M phi''`` (the logistic loss: M = 1). With ``H = F''(w)``, the norms of its
    inverse ``lambda = ||r||`` and ``rho = max_i ||x_i||``, and ``u = ||w* - w||_H``: on the way to w* the curvature is
    at least ``e^-t H`` with ``t = M max_i |x_i . (w* - w)| <= M rho u``, so that ``u (1 - e^-t) / t <= lambda``, and

        u <= -log(1 - M rho lambda) / (M rho)      where  M rho lambda < 1.

*   Corners, of losses that are parabolas between some numbers (the squared hinge, Huber's): the rows S whose margin
    stays on one parabola anywhere in a ball that is proven already keep their curvature, so with
    ``H = R'' + C sum_S s_i phi_i'' x_i x_i'`` the optimum has ``||w* - w||_H <= lambda``. A narrower ball has more such
    rows.

A free intercept is no part of the gap's ball. Its optimal values are where the slopes of the losses cancel: they lie
between the zeros of the sums of the slopes at both ends of the margins' intervals.

Source: Bach (2010), "Self-concordant analysis for logistic regression"; Sun and Tran-Dinh (2019), "Generalized
self-concordant functions", for the third.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from saddlesvm.answers.gradient import Gradient, gradient_at, margin_slips, on_one_piece
from saddlesvm.problem.bounds import MARGIN_UNITS, SLACK, UNDERFLOW, UNIT, gamma, loss_units, norm_of, radii
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import dual_of_margins, margins
from saddlesvm.rows.layouts import Rows, as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.second_order.linear_algebra import Threads, add_outer, blocks, factor_cost, widen

FACTORED = 2_000  # features up to which H is factored: beyond them its memory and time are more than a fit's
MATRICES = 2.0**28  # bytes that the threads' own sums of H may take
OUTER_UNITS = 16  # roundings of a place of H beside those of its sum
TRUSTED = 0.1  # delta, and the error of a solution, up to which a factor is used: norms grow by less than that


@dataclass(frozen=True, eq=False)
class Curvature:
    """A matrix H that bounds the curvature of the objective from below, and norms in it.

    Attributes
    ----------
    factor : ndarray of shape (d + 1, d + 1), or None
        Its lower triangle is L. None: H is `floor` times the unit matrix.
    floor : float
        No eigenvalue of H is below it; zero where none is known.
    wider : float
        What computed norms are multiplied by, so that they are no smaller than exact ones.
    """

    factor: np.ndarray | None
    floor: float
    wider: float = 1.0

    def dual_norm(self, v: np.ndarray, error: float = 0.0) -> float:
        """``||v||`` in the norm of the inverse of H, at most, for every vector no farther than `error` from v."""
        plain = math.sqrt(self.floor) if self.floor > 0.0 else 0.0
        if plain == 0.0:
            return math.inf
        if self.factor is None:
            return (float(np.linalg.norm(v)) * (1.0 + gamma(v.size + 8.0)) + error) / plain
        return float(self.norms_of(np.array(v[:, None], dtype=np.float64, order="F"))[0]) + error / plain

    def row_norms(self, X: Rows, chosen: np.ndarray | None = None) -> np.ndarray:
        """``||x_i||`` in the norm of the inverse of H, at most, of all rows or the chosen ones; the virtual feature is
        included."""
        wanted = np.arange(X.n_rows) if chosen is None else chosen
        if self.factor is None:
            plain = radii(squared_norms(X))[wanted] * (1.0 + gamma(X.longest_row + 8.0))
            return plain / math.sqrt(self.floor) if self.floor > 0.0 else np.full(wanted.size, np.inf)
        found, done = np.empty(wanted.size), 0
        for part in blocks(wanted, len(self.factor)):
            found[done : done + part.size] = self.norms_of(widen(X, part, np.ones(part.size)).T)
            done += part.size
        return found

    def unit_norms(self, size: int) -> np.ndarray:
        """The same of the unit vectors, shape (size,): roots of the diagonal of the inverse of H."""
        if self.factor is None:
            return np.full(size, 1.0 / math.sqrt(self.floor) if self.floor > 0.0 else np.inf)
        return self.norms_of(np.eye(size, order="F"))

    def solved(self, v: np.ndarray) -> np.ndarray:
        """``H^-1 v``, as computed: nothing is proven of it."""
        if self.factor is None:
            return v / self.floor
        half = dtrsm(1.0, self.factor, np.array(v[:, None], order="F"), lower=1)
        return np.asarray(dtrsm(1.0, self.factor, half, lower=1, trans_a=1))[:, 0]

    def norms_of(self, columns: np.ndarray) -> np.ndarray:
        """The norms of columns, shape (d + 1, k), which may be overwritten."""
        with blas_for(factor_cost(len(columns))):
            solved = dtrsm(1.0, self.factor, columns, lower=1, overwrite_b=1)
        return self.wider * np.sqrt(np.einsum("ij,ij->j", solved, solved))


def plain_curvature(problem: Problem) -> Curvature:
    """The curvature of the regulariser alone; no floor for an intercept that it does not see."""
    return Curvature(None, 0.0 if problem.intercept.constrained else modulus(problem.penalty))


def curvature_of(problem: Problem, rows: np.ndarray, bends: np.ndarray) -> Curvature:
    """The factor of ``H = R'' + sum_i h_i x_i x_i'``; :func:`plain_curvature` where there are too many features, or
    where rounding would leave nothing of it.

    Parameters
    ----------
    problem : Problem
        Its penalty contains half a square.
    rows : ndarray of shape (m,)
        The rows that bend.
    bends : ndarray of shape (m,)
        Their ``h_i``: positive, and no larger than ``C s_i phi_i''`` wherever it is to hold.
    """
    size, square = problem.n_features + 1, modulus(problem.penalty)
    if problem.n_features > FACTORED or square == 0.0:
        return plain_curvature(problem)
    H = np.zeros((size, size), order="F")
    add_outer(problem.X, rows, bends, H, threads=Threads(problem.threads, MATRICES))
    floor = square
    if problem.intercept.constrained:
        lowest = float(H[-1, -1])
        if not lowest > 0.0:
            return plain_curvature(problem)
        lift = float(H[-1, :-1] @ H[-1, :-1]) / lowest
        slack = 1.0 - TRUSTED  # covers the rounding of `lowest` and `lift`, which is far smaller
        floor = slack * square * lowest / (square + lowest + lift)
    diagonal = np.arange(size)
    H[diagonal, diagonal] += square
    if problem.intercept.constrained:
        H[-1, -1] -= square
    return factored(H, rows.size, floor) or plain_curvature(problem)


def factored(H: np.ndarray, terms: float, floor: float) -> Curvature | None:
    """A matrix as a :class:`Curvature`; None where rounding would leave nothing of it.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        In its lower triangle, in Fortran order; overwritten.
    terms : float
        That each of its places is the sum of, at most.
    floor : float
        No eigenvalue of the exact matrix is below it.
    """
    size, trace = len(H), float(np.trace(H))
    factor, failed = dpotrf(H, lower=1, clean=0, overwrite_a=1)
    delta = (gamma(terms + OUTER_UNITS) + gamma(size + OUTER_UNITS)) * 2.0 * trace / floor
    solving = gamma(2.0 * size + OUTER_UNITS) * math.sqrt(2.0 * trace / floor)
    if failed or not max(delta, solving) < TRUSTED:
        return None
    wider = math.sqrt(1.0 + delta) / (1.0 - solving) * (1.0 + gamma(size + OUTER_UNITS))
    return Curvature(factor, floor, wider)


ROUNDS = 3  # times that the rows on one parabola are found anew, with a narrower ball
MORE = 1.02  # times as many of them, at least, for another factor to pay
DOUBLINGS = 64  # of the distance from a free intercept within which a zero of the sum of slopes is looked for
LONG = 0.5  # of the bound's range that the gradient fills, from which on the rows' norms are computed: a pass
NEAREST = 1e-9  # first such distance, relative to the intercept


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """All points at most `radius` from `center` in the norm of `curvature`; the exact optimum is one of them.

    Attributes
    ----------
    center : ndarray of shape (d + 1,)
        Weights; the last place is the virtual feature's, zero where `offset` stands for it.
    radius : float
        Infinite where nothing is proven.
    curvature : Curvature
    scale : float
        Value of the virtual feature.
    offset : (float, float) or None
        Between what the optimal free intercepts lie, where the ball is of the other weights alone.
    way : {"curvature", "gradient", "gap", "active set"}
        What proves it.
    """

    center: np.ndarray
    radius: float
    curvature: Curvature
    scale: float
    offset: tuple[float, float] | None = None
    way: str = "gap"

    def score_bounds(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Between what the optimum's scores of some rows lie, each of shape (m,), rounding counted.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (m, d), float32 or float64
        """
        rows = as_rows(X, 0.0 if self.offset is not None else self.scale)
        z = scores_of_rows(rows, self.center[None])[:, 0]
        norms = radii(squared_norms(rows))
        slips = SLACK * gamma(rows.longest_row + 1.0 + MARGIN_UNITS) * norm_of(self.center) * norms
        away = self.curvature.row_norms(rows) * self.radius if math.isfinite(self.radius) else np.full(z.size, np.inf)
        low, high = self.offset or (0.0, 0.0)
        slips += 4.0 * UNIT * (np.abs(z) + away + max(abs(low), abs(high))) + UNDERFLOW
        return z - away - slips + low, z + away + slips + high

    def weight_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Between what the optimum's weights lie, each of shape (d + 1,); the last is the intercept, not the weight of
        the virtual feature."""
        away = self.radius * self.curvature.unit_norms(self.center.size)
        away += 4.0 * UNIT * (np.abs(self.center) + away) + UNDERFLOW
        low, high = self.center - away, self.center + away
        if self.offset is not None:
            low[-1], high[-1] = self.offset
        elif self.scale == 0.0:
            low[-1] = high[-1] = 0.0
        else:
            ends = self.scale * np.array([low[-1], high[-1]])
            low[-1], high[-1] = ends[0] - 4.0 * UNIT * abs(ends[0]), ends[1] + 4.0 * UNIT * abs(ends[1])
        return low, high


def neighbourhood_of(problem: Problem, w: np.ndarray, gap: float, enough: float = 0.0) -> Neighbourhood:
    """The narrowest neighbourhood of the optimum that is proven by what is known at w.

    Parameters
    ----------
    problem : Problem
        With rows in memory.
    w : ndarray of shape (d + 1,)
        Weights; the last place is the virtual feature's, a free intercept divided by its value.
    gap : float
        By how much, at most, the objective is above the optimum in the C form; rounding counted, see
        :func:`gap_in_C_form`.
    enough : float, default=0.0
        Where no score of a training row moves by more in the ball of the gradient, no curvature is factored.

    Notes
    -----
    A loss declares its curvature by ``steepening()``, the M of the module's text, or by ``corners()``:
    the margins ``y z`` (or residuals ``z - y``) between which it is a parabola. Without either, the gradient
    counts alone.
    """
    loss, by_gap = problem.loss, _by_gap(problem, w, gap)
    if not is_smooth(loss) or modulus(problem.penalty) == 0.0 or problem.fixed.size:
        return by_gap
    found = gradient_at(problem, w)
    if not math.isfinite(found.error):
        return by_gap
    nearest = _by_gradient(problem, w, found, by_gap)
    if nearest.radius * problem.row_sizes.longest <= enough * math.sqrt(nearest.curvature.floor):
        return nearest
    if hasattr(loss, "steepening"):
        return _by_steepening(problem, w, found, loss.steepening()) or nearest
    if hasattr(loss, "corners"):
        return _by_corners(problem, w, found, nearest, loss.corners())
    return nearest


def gap_in_C_form(problem: Problem, gap: float) -> float:
    """A certificate's gap in the units of the C form."""
    return gap / problem.unit * (1.0 + 8.0 * UNIT)


def _by_gap(problem: Problem, w: np.ndarray, gap: float) -> Neighbourhood:
    """The plain ball, with an interval for a free intercept."""
    square = modulus(problem.penalty)
    radius = SLACK * math.sqrt(2.0 * gap) if square > 0.0 and gap >= 0.0 else math.inf
    if not problem.intercept.constrained:
        return Neighbourhood(w, radius, plain_curvature(problem), problem.scale)
    plain = Curvature(None, square)
    center, offset = problem.intercept.split(w)
    if not math.isfinite(radius) or not problem.intercept.homogeneous:
        return Neighbourhood(center, radius, plain, problem.scale, (-math.inf, math.inf))
    z = margins(problem, center)
    away = SLACK * radius * radii(problem.gathered(problem.norms)) / math.sqrt(square) + margin_slips(problem, w)
    ends = _zero_of_slopes(problem, z + away, offset, -1.0), _zero_of_slopes(problem, z - away, offset, 1.0)
    return Neighbourhood(center, radius, plain, problem.scale, ends)


def _zero_of_slopes(problem: Problem, z: np.ndarray, offset: float, sign: float) -> float:
    """An end of the interval of the optimal free intercepts: sign -1 for the lower one, from margins that are no
    smaller than the optimum's, 1 for the upper one, from margins that are no larger. The slopes there lead back."""
    terms, members = problem.of_members, np.arange(z.size, dtype=np.int32)
    start = problem.intercept.best(terms, members, z, offset)
    step, alpha = NEAREST * (1.0 + abs(start)), np.zeros(z.size)
    for _ in range(DOUBLINGS):
        there = start + sign * step
        moved = z - sign * 4.0 * UNIT * (np.abs(z) + abs(there))
        dual_of_margins(terms, members, moved, there, alpha)
        sizes = float(np.abs(alpha).sum())
        if -sign * math.fsum(alpha.tolist()) > 2.0 * loss_units(problem.loss) * UNIT * sizes:
            return float(there)
        step *= 2.0
    return sign * math.inf


def _by_gradient(problem: Problem, w: np.ndarray, found: Gradient, by_gap: Neighbourhood) -> Neighbourhood:
    """The plain ball of the gradient's norm, where it is narrower."""
    plain = plain_curvature(problem)
    away = plain.dual_norm(found.value, found.error)
    if plain.floor == 0.0 or by_gap.radius <= away:
        return by_gap
    return Neighbourhood(w, away, plain, problem.scale, way="gradient")


def _by_steepening(problem: Problem, w: np.ndarray, found: Gradient, M: float) -> Neighbourhood | None:
    """The ball in the norm of F''(w); None where the gradient is too long for it, or there is no factor."""
    loss, rounded = problem.loss, gamma(4.0 * loss_units(problem.loss))
    weights = problem.of_members.weights if problem.weights.size else 1.0
    uncertain = M * float(found.slips.max(initial=0.0)) + rounded
    bends = found.bends * (1.0 - uncertain) - 4.0 * rounded * loss.largest_curvature() * problem.C * weights
    chosen = np.flatnonzero(bends > 0.0)
    curvature = curvature_of(problem, problem.members[chosen], bends[chosen])
    if curvature.factor is None:
        return None
    size = curvature.dual_norm(found.value, found.error)
    longest = SLACK * float(radii(problem.norms).max(initial=0.0)) / math.sqrt(curvature.floor)
    if M * longest * size > LONG:
        longest = float(curvature.row_norms(problem.X, problem.members).max(initial=0.0))
    away = radius_by_steepening(size, M * longest)
    return Neighbourhood(w, away, curvature, problem.scale, way="curvature") if math.isfinite(away) else None


def radius_by_steepening(size: float, rho: float) -> float:
    """``-log(1 - rho size) / rho`` at most, see the module's text; infinite where the gradient is too long for it."""
    reach = rho * size * (1.0 + gamma(8.0))
    if not reach < 1.0:
        return math.inf
    return size * (-math.log1p(-reach) / reach if reach > 0.0 else 1.0) * (1.0 + gamma(32.0))


def _by_corners(
    problem: Problem, w: np.ndarray, found: Gradient, nearest: Neighbourhood, corners: tuple[float, ...]
) -> Neighbourhood:
    """The ball in the norm of the rows that stay on one parabola."""
    bending, before = int(np.count_nonzero(found.bends)), 0
    for _ in range(ROUNDS):
        low, high = _margin_bounds(problem, found, nearest)
        chosen = np.flatnonzero((found.bends > 0.0) & on_one_piece(problem, low, high, corners))
        if chosen.size <= MORE * before:
            break
        curvature = curvature_of(problem, problem.members[chosen], found.bends[chosen] * (1.0 - 8.0 * UNIT))
        if curvature.factor is None:
            break
        away = curvature.dual_norm(found.value, found.error) * (1.0 + gamma(8.0))
        nearest, before = Neighbourhood(w, away, curvature, problem.scale, way="curvature"), chosen.size
        if before == bending:
            break
    return nearest


def _margin_bounds(problem: Problem, found: Gradient, nearest: Neighbourhood) -> tuple[np.ndarray, np.ndarray]:
    """Between what the members' margins lie at w and anywhere in a neighbourhood that is proven already, by the rows'
    plain norms."""
    norms = radii(problem.gathered(problem.norms)) / math.sqrt(nearest.curvature.floor or 1.0)
    away = SLACK * (nearest.radius * norms if nearest.radius > 0.0 else 0.0 * norms) + found.slips
    if nearest.offset is None:
        return found.z - away, found.z + away
    z = margins(problem, nearest.center)
    low, high = z - away + nearest.offset[0], z + away + nearest.offset[1]
    return np.minimum(low, found.z - found.slips), np.maximum(high, found.z + found.slips)
