"""The effect on the optimum of leaving out single rows.

With ``u = H^-1 x_i``, ``t = x_i . u`` and h the curvature of row i, the problem without the row has
the matrix ``H_i = H - h x_i x_i'``, whose inverse and norms need no factor of their own. At ``v = w
+ d``, ``d = -beta_i u / (1 - h t)``, its gradient is at most

    (e^m - 1 - m) / m  ||d||_H_i + lambda / sqrt(1 - h t),    m = M max_j |x_j . d|

in the norm of the inverse of H_i, for each other row's derivative differs from its tangent by that
share of what the tangent rises. The optimum's distance follows (:meth:`Vicinity.distance`). Losses
with corners: the whole way is at most the gradient at w, and lies in the ball that has the step as
a diameter.

Rows that these bounds leave open are solved for, many at once: steps of Newton's method whose
curvature is that of the vicinity but for a few squares, so that steps need no factor of their own,
and margins and gradients are products of matrices. The gradient that is left at a point bounds the
distance of the optimum (:meth:`Vicinity.distance`), in plain length too, for the regulariser alone
has curvature 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrs

from saddlesvm.answers.row_estimates import (
    RowEstimates,
    bounds_of_dual_point,
    curvature_matrix,
    row_estimates,
)
from saddlesvm.answers.vicinity import Vicinity, gradient_rounding, loss_corners
from saddlesvm.problem.bounds import SLACK, UNIT, gamma, norm_of, radii
from saddlesvm.problem.loss import Loss, methods_of
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.rows.small_types import widen
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.linear_algebra import cholesky

BLOCK_VALUES = 2**22  # scores of a block of weight vectors: 32 MB
MOST_STEPS = 20  # of Newton's method
FALL = 0.5  # share of a gradient that a step leaves at most; else the steps of this change end
OWN_WORK = 2.0**33  # products for matrices of single changes in a block: a few seconds
LEAST_LEFT = 1e-12  # share of the curvature without a row below which nothing is proven
CLEAR = 8.0  # multiple of the rounding of this share that the share is at least
# Stored values that the problems without undecided rows may have together; each takes some four
# passes.
REFINED_VALUES = 2**31
ROUNDED_UP = 1.0 + 2.0**-40  # factor of a bound that covers some roundings
SMALL = 1e-4  # m below which ``(e^m - 1 - m) / m`` is m / 2 to four digits


def bound_margins_left_out(near: Vicinity) -> tuple[np.ndarray, np.ndarray]:
    """Bound each row's margin without the row, from the leverages; infinite without proof."""
    t = near.leverages
    beta = near.pulls
    z = near.z
    share, possible = shares_left(near, near.bend, t)
    # The leverage without the row, t / (1 - h t), is between `least` and `most`: what rounding
    # may be of t is multiplied by 1 / (1 - h t).
    most = t / share
    exact = t / (1.0 + near.error) ** 2
    least = exact / (1.0 - near.bend * exact)
    # Lengths in the norm of H without the row: of x_i, of the gradient, and of beta_i x_i.
    own = np.sqrt(most)
    missed = near.missed / np.sqrt(share)
    pull = np.abs(beta) * own
    if loss_corners(near.problem.loss):
        whole = (pull + missed) * (1.0 + near.error)
        whole = np.where(whole <= near.reach * np.sqrt(share), whole, np.inf)
        # The ball that has the step as a diameter; it holds the balls of smaller leverages.
        middle = z - 0.5 * beta * most
        around = multiply_lengths(0.5 * own * (1.0 + 2.0 * near.error), whole + missed)
    else:
        moved = near.growth * near.longest * np.abs(beta) * np.sqrt(t) / share
        off = off_tangent(moved) * pull + missed + near.error * pull
        middle = z - 0.5 * beta * (most + least)
        around = multiply_lengths(own, near.distance(off, share, moved))
        around += 0.5 * np.abs(beta) * (most - least)
    around += near.at.off * most
    # Rounding of the margins and of the sums above.
    sizes = np.abs(z) + np.abs(beta) * most + radii(near.problem.norms) * norm_of(near.w)
    around = ROUNDED_UP * around + gamma(near.problem.row_sizes.terms + 8.0) * sizes
    around = np.where(possible, around, np.inf)
    return middle - around, middle + around


def multiply_lengths(lengths: np.ndarray, far: np.ndarray) -> np.ndarray:
    """Return products of lengths and distances; 0 if a length is 0 and the distance infinite."""
    out = np.zeros(np.broadcast_shapes(lengths.shape, far.shape))
    return np.multiply(lengths, far, out=out, where=lengths > 0.0)


def shares_left(near: Vicinity, bend: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``1 - h t``, the share of the curvature without each row, and whether it is sure."""
    # Rounded down. Where rounding may be as large as the share, 1 takes its place.
    share = 1.0 - bend * t - 4.0 * UNIT
    possible = share > np.maximum(LEAST_LEFT, CLEAR * near.error * bend * t)
    return np.where(possible, share, 1.0), possible


def off_tangent(moved: np.ndarray) -> np.ndarray:
    """Return ``(e^m - 1 - m) / m``, the share by which a derivative leaves its tangent."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(
            moved > SMALL, (np.expm1(moved) - moved) / np.maximum(moved, SMALL), 0.51 * moved
        )


def loss_slopes(loss: Loss, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the derivative of a loss at each margin, also if it is the same for all."""
    return np.asarray(methods_of(loss).subgradient(loss, z, y) + 0.0 * z)


def loss_curvatures(loss: Loss, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the curvature of a loss at each margin, also if it is the same for all."""
    return np.asarray(methods_of(loss).curvature(loss, z, y) + 0.0 * z)


def pulls_of_rows(X: Rows, A: np.ndarray) -> np.ndarray:
    """Return ``sum_i A_ik x_i`` for each column k, with the virtual feature, shape (d + 1, k)."""
    pulled = X.float64_matrix().T @ A
    return np.vstack([pulled, X.bias * A.sum(axis=0)])


def add_feature(some: Any, scale: float) -> np.ndarray:
    """Return rows as a dense float64 array with the virtual feature, shape (k, d + 1)."""
    dense = some.toarray() if sparse.issparse(some) else some
    return np.hstack([widen(dense, np.float64), np.full((dense.shape[0], 1), scale)])


@dataclass(frozen=True, eq=False)
class SolvedWithout:
    """Points next to the optima of k changed problems.

    Attributes
    ----------
    near : Vicinity
    V : ndarray of shape (d + 1, k)
    radius, apart : ndarray of shape (k,)
        Distance of the optimum at most, in the norm of the changed H and in plain length.
    share : ndarray of shape (k,)
        ``q`` with ``q H <=`` the changed H.
    """

    near: Vicinity
    V: np.ndarray
    radius: np.ndarray
    apart: np.ndarray
    share: np.ndarray

    def errors(self, lengths: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Bound the distance of each changed problem's margin of a row from the optimum's.

        Parameters
        ----------
        lengths : ndarray of shape (k,)
            Lengths of the rows in the norm of the inverse of H.
        norms : ndarray of shape (k,)
            Plain lengths of the rows.
        """
        by_radius = multiply_lengths(lengths, self.radius / np.sqrt(self.share))
        # By the ball in the norm of H or by plain length, whichever is narrower.
        found = np.minimum(by_radius, multiply_lengths(norms, self.apart))
        rounding = (
            gamma(self.near.problem.row_sizes.terms + 8.0) * norms * np.linalg.norm(self.V, axis=0)
        )
        return np.asarray(SLACK * (found + rounding))


class Gradients(NamedTuple):
    """Points, their margins and gradients, and bounds on rounding; a column for each change."""

    V: np.ndarray
    Z: np.ndarray
    G: np.ndarray
    length: np.ndarray
    noise: np.ndarray


class ChangedRows:
    """Problems that leave out a row each.

    Parameters
    ----------
    near : Vicinity
    dropped : ndarray of shape (k,)
        The numbers of the rows that are left out.
    """

    def __init__(self, near: Vicinity, dropped: np.ndarray) -> None:
        problem = near.problem
        self.near = near
        self.dropped = dropped
        self.rows = add_feature(problem.X.matrix[dropped], problem.scale)
        self.bend = near.at.bends[dropped]
        self.h = near.bend[dropped]
        self.beta = near.pulls[dropped]
        # H^-1 x_i, the leverages t_i = x_i' H^-1 x_i, and the share 1 - h_i t_i of H that is left.
        self.U = near.inverse @ self.rows.T
        self.t = np.einsum("ij,ji->i", self.rows, self.U)
        self.left, possible = shares_left(near, self.h, self.t * (1.0 + near.error))
        self.share = np.where(possible, self.left, LEAST_LEFT)
        self.norms = np.linalg.norm(self.rows, axis=1)

    def margins(self, found: SolvedWithout) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins of the dropped rows, and how far the optima's are at most."""
        lengths = np.sqrt(self.t * (1.0 + self.near.error))
        return np.einsum("ij,ji->i", self.rows, found.V), found.errors(lengths, self.norms)

    def starting_points(self) -> np.ndarray:
        """Return the step from w that takes the other rows for parabolas."""
        return np.asarray(self.near.w[:, None] - self.U * (self.beta / self.left))

    def drop(self, A: np.ndarray) -> None:
        """Set the multipliers of the dropped rows to zero."""
        A[self.dropped, np.arange(self.dropped.size)] = 0.0

    def lengths(self, G: np.ndarray) -> np.ndarray:
        """Return the lengths by the inverse of ``H - h x x'``."""
        grown = 1.0 + self.near.error
        plain = np.maximum(np.einsum("ji,ji->i", G, self.near.inverse @ G), 0.0) * grown
        # H is at least the inverse of the computed inverse, divided by 1 + error; what rounding
        # may be of a product of two vectors by it is a share of both lengths.
        aligned = np.abs(np.einsum("ji,ji->i", self.U, G))
        aligned += self.near.error * np.sqrt(self.t * plain)
        squares = plain + grown * self.h / self.share * aligned**2
        return np.asarray(np.sqrt(squares * grown))

    def step(self, at: Gradients) -> np.ndarray:
        """Return Newton's steps without the curvature of the dropped row."""
        # (H - h x x')^-1 g = H^-1 g + H^-1 x h (x . H^-1 g) / (1 - h t), by Sherman and Morrison.
        pulled = self.near.steps @ at.G
        ways = self.near.steps @ self.rows.T
        aligned = np.einsum("ij,ji->i", self.rows, pulled)
        t = np.einsum("ij,ji->i", self.rows, ways)
        left = np.maximum(1.0 - self.bend * t, LEAST_LEFT)
        return np.asarray(pulled + ways * (self.bend * aligned / left))

    def gradients(self, V: np.ndarray) -> Gradients:
        """Return margins and gradients at V, by a single pass over the rows."""
        problem = self.near.problem
        Z = scores_of_rows(problem.X, V.T)
        A = loss_slopes(problem.loss, Z, problem.y[:, None])
        # C s_i phi_i' of all changed problems side by side, zero for the rows that each leaves out.
        A *= (problem.C * problem.row_weights)[:, None]
        self.drop(A)
        G = problem.regularizer.curvature(self.near.w)[:, None] * V + pulls_of_rows(problem.X, A)
        noise = gradient_rounding(problem, V, np.abs(A, out=A))
        return Gradients(V, Z, G, self.lengths(G), noise)

    def solve(self, enough: float = 0.0) -> SolvedWithout:
        """Take steps until no step helps, or each optimum is known to `enough` in plain length.

        Steps have the curvature of the vicinity. Changes that they do not finish take steps with a
        matrix of their own.
        """
        best = self.gradients(self.starting_points())
        own, ended = (np.zeros(best.length.size, dtype=bool) for _ in range(2))
        for _ in range(MOST_STEPS):
            going = ~ended & (np.linalg.norm(best.G, axis=0) > np.maximum(best.noise, enough))
            if not going.any() or time_is_up():
                break
            step = self.step(best) if (going & ~own).any() else np.zeros(best.V.shape)
            self._own_steps(best, np.flatnonzero(going & own), step)
            seen = self.gradients(best.V - step * going)
            # A step counts if it shortens the gradient. If the common matrix fails, steps with an
            # own matrix follow; if these fail too, the problem has ended.
            better = going & (seen.length < FALL * best.length)
            best = Gradients(
                *(np.where(better, new, old) for new, old in zip(seen, best, strict=True))
            )
            ended |= going & own & ~better
            own |= going & ~better
        return self._bound_distances(best)

    def _own_steps(self, at: Gradients, wanted: np.ndarray, step: np.ndarray) -> None:
        """Put steps with matrices of their own into `step`, as far as the cost allows."""
        if not wanted.size:
            return
        problem = self.near.problem
        bends = loss_curvatures(problem.loss, at.Z, problem.y[:, None])
        bends *= (problem.C * problem.row_weights)[:, None]
        self.drop(bends)
        ridge = problem.regularizer.curvature(self.near.w)
        # Problems beyond the cost that is allowed wait for a later turn.
        most = max(1, int(OWN_WORK / (problem.n_values * ridge.size)))
        step[:, wanted[most:]] = 0.0
        for k in wanted[:most]:
            H = curvature_matrix(problem, bends[:, k], np.flatnonzero(bends[:, k]), ridge)
            step[:, k] = dpotrs(cholesky(H), at.G[:, k], lower=1)[0]

    def _bound_distances(self, at: Gradients) -> SolvedWithout:
        """Return the points with the distances of the optima that their gradients prove."""
        near = self.near
        problem = self.near.problem
        # How far the points are from w, in the measure of the vicinity.
        shift = at.Z - near.z[:, None]
        if near.growth > 0.0:
            moved = near.growth * np.abs(shift).max(axis=0, initial=0.0)
        else:
            D = at.V - near.w[:, None]
            ridge = problem.regularizer.curvature(near.w)[:, None]
            moved = np.sqrt(
                np.einsum("ji,ji->i", ridge * D, D)
                + np.einsum("j,ji,ji->i", near.bend, shift, shift)
            )
        missed = at.length + near.widest / np.sqrt(self.share) * at.noise
        radius = np.where(
            self.share > LEAST_LEFT, near.distance(missed, self.share, SLACK * moved), np.inf
        )
        # ||v - optimum|| <= ||gradient||, for R is 1-strongly convex unless an intercept is free.
        plain = np.linalg.norm(at.G, axis=0) * SLACK + at.noise
        apart = np.full(plain.size, np.inf) if problem.intercept.constrained else plain
        return SolvedWithout(near, at.V, radius, apart, self.share)


def count_at_once(near: Vicinity) -> int:
    """Return the number of changed problems that are solved in a block."""
    return max(1, BLOCK_VALUES // max(near.problem.X.n_rows, near.w.size))


def refine_rows(
    rows: RowEstimates,
    near: Vicinity | None,
    chosen: np.ndarray,
    values: float = REFINED_VALUES,
) -> RowEstimates:
    """Return estimates with the margins of some rows computed, exact to rounding.

    The problems without these rows may read so many `values` together; other rows are left, and all
    rows without a vicinity.
    """
    if near is None or not chosen.size:
        return rows
    margins = rows.margins.copy()
    low = rows.low.copy()
    high = rows.high.copy()
    most = max(1, int(values // max(1, near.problem.n_values)))
    size = count_at_once(near)
    for start in range(0, min(most, chosen.size), size):
        if time_is_up():
            break
        some = chosen[:most][start : start + size]
        changed = ChangedRows(near, some)
        computed, error = changed.margins(changed.solve())
        # The earlier bounds hold as well.
        low[some] = np.maximum(low[some], computed - error)
        high[some] = np.minimum(high[some], computed + error)
        margins[some] = np.clip(computed, low[some], high[some])
    return replace(rows, margins=margins, low=low, high=high)


def leave_out_rows(
    problem: Problem,
    w: np.ndarray,
    beta: np.ndarray,
    near: Vicinity | None,
) -> RowEstimates:
    """Return estimates and bounds of each row's margin without the row.

    `near` is the vicinity of the optimum, if it is known; :func:`~.row_estimates` has the other
    parameters.
    """
    if near is None:
        return row_estimates(problem, w, beta)
    low, high = bound_margins_left_out(near)
    if problem.is_cornerless:
        bent = near.bend * near.leverages
        # One Newton step without row i: z_i - beta_i t_i / (1 - h_i t_i), by Sherman and Morrison.
        margins = near.z - near.pulls * near.leverages / np.maximum(1.0 - bent, 1e-12)
        bends = bent > 0.0
        taken = float(np.mean(bent[bends])) if bends.any() else 0.0
        known = low, high
        if not np.isfinite(high - low).all():
            known = bounds_of_dual_point(problem, near.z, near.w, beta)
        rows = RowEstimates(margins, *known, int(np.count_nonzero(bends)), taken)
    else:
        rows = row_estimates(problem, w, beta)
    # Both bounds hold: the narrower one counts.
    low = np.maximum(rows.low, low)
    high = np.minimum(rows.high, high)
    return replace(rows, margins=np.clip(rows.margins, low, high), low=low, high=high)
