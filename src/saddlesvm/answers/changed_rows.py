"""Rows left out, one at a time or in groups: what that does to the optimum.

With ``u = H^-1 x_i``, ``t = x_i . u`` and h the curvature of row i, the problem without the row has the matrix ``H_i =
H - h x_i x_i'``, whose inverse and norms need no factor of their own. At ``v = w + d``, ``d = -beta_i u / (1 - h t)``,
its gradient is at most

    (e^m - 1 - m) / m  ||d||_H_i + lambda / sqrt(1 - h t),    m = M max_j |x_j . d|

in the norm of the inverse of H_i, for each other row's derivative differs from its tangent by that share of what the
tangent rises. The optimum's distance follows (:meth:`Vicinity.distance`). Losses with corners: the whole way is at most
the gradient at w, and lies in the ball that has the step as a diameter.

Groups of rows are left out together. With B the columns ``sqrt(h_i) x_i`` of a group and W the inverse of H, the
inverse without the group is

    W + W B S^-1 B' W,    S = I - B' W B,

and the smallest eigenvalue of S is the share of the curvature that is left in every direction.

Rows that these bounds leave open are solved for, many at once: steps of Newton's method whose curvature is that of the
vicinity but for a few squares, so that steps need no factor of their own, and margins and gradients are products of
matrices. The gradient that is left at a point bounds the distance of the optimum (:meth:`Vicinity.distance`), in plain
length too, for the regulariser alone has curvature 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotrs

from saddlesvm.answers.vicinity import Vicinity, corners_of, gradient_rounding
from saddlesvm.problem.bounds import SLACK, UNIT, gamma, norm_of, radii
from saddlesvm.problem.loss import Loss, is_cornerless, methods_of
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.rows.small_types import widen
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.second_order.leave_one_out import (
    RowEstimates,
    bounds_of_dual_point,
    curvature_matrix,
    row_estimates,
)
from saddlesvm.solvers.second_order.linear_algebra import cholesky

BLOCK_VALUES = 2**22  # scores of a block of weight vectors: 32 MB
MOST_STEPS = 20
FALL = 0.5  # share that a step leaves of a gradient at most; else the steps of this change end
OWN_WORK = 2.0**33  # products for the matrices of their own that the changes solved together take: a few seconds
LEAST_LEFT = 1e-3  # share of the curvature that a group leaves at least; below it nothing is proven
LEAST_OF_ROW = 1e-12  # the same for one row
CLEAR = 8.0  # times what rounding may be of this share, that the share is at least
REFINED_VALUES = 2**31  # stored values that the passes for undecided rows may read once; each takes some four passes
ROUNDED_UP = 1.0 + 2.0**-40  # what some roundings multiply a bound by, at most
SMALL = 1e-4  # way below which ``(e^m - 1 - m) / m`` is m / 2 to four digits


class Bounds(NamedTuple):
    """Proven bounds of every row's margin without it."""

    low: np.ndarray
    high: np.ndarray


def without_each(near: Vicinity) -> Bounds:
    """The effect of leaving out each row on its own margin; infinite where nothing is proven. No pass over the rows."""
    t, beta, z = near.leverages, near.pulls, near.z
    share, possible = shares_left(near, near.bend, t)
    # The leverage without the row, t / (1 - h t), is between `least` and `most`: what rounding
    # may be of t is multiplied by 1 / (1 - h t).
    most = t / share
    exact = t / (1.0 + near.error) ** 2
    least = exact / (1.0 - near.bend * exact)
    own, missed = np.sqrt(most), near.missed / np.sqrt(share)
    pull = np.abs(beta) * own
    if corners_of(near.problem.loss):
        whole = (pull + missed) * (1.0 + near.error)
        whole = np.where(whole <= near.reach * np.sqrt(share), whole, np.inf)
        # The ball that has the step as a diameter; it holds the balls of smaller leverages.
        middle = z - 0.5 * beta * most
        around = times(0.5 * own * (1.0 + 2.0 * near.error), whole + missed)
    else:
        moved = near.growth * near.longest * np.abs(beta) * np.sqrt(t) / share
        off = off_tangent(moved) * pull + missed + near.error * pull
        middle = z - 0.5 * beta * (most + least)
        around = times(own, near.distance(off, share, moved)) + 0.5 * np.abs(beta) * (most - least)
    around += near.at.off * most
    sizes = np.abs(z) + np.abs(beta) * most + radii(near.problem.norms) * norm_of(near.w)
    around = ROUNDED_UP * around + gamma(near.problem.row_sizes.terms + 8.0) * sizes
    around = np.where(possible, around, np.inf)
    return Bounds(middle - around, middle + around)


def times(lengths: np.ndarray, far: np.ndarray) -> np.ndarray:
    """The products of lengths and distances; 0 where a length is 0, and the distance infinite."""
    out = np.zeros(np.broadcast_shapes(lengths.shape, far.shape))
    return np.multiply(lengths, far, out=out, where=lengths > 0.0)


def shares_left(near: Vicinity, bend: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shares ``1 - h t`` of the curvature that rows leave, rounded down, and whether they are clear of rounding.

    Shares that are not are 1.
    """
    share = 1.0 - bend * t - 4.0 * UNIT
    possible = share > np.maximum(LEAST_OF_ROW, CLEAR * near.error * bend * t)
    return np.where(possible, share, 1.0), possible


def off_tangent(moved: np.ndarray) -> np.ndarray:
    """``(e^m - 1 - m) / m``: by what share of its rise a derivative leaves its tangent, over a way of m."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(moved > SMALL, (np.expm1(moved) - moved) / np.maximum(moved, SMALL), 0.51 * moved)


class LossArrays(NamedTuple):
    """The derivative and the curvature of a loss on arrays of margins and labels."""

    slope: Callable[[np.ndarray, Any], np.ndarray]
    curvature: Callable[[np.ndarray, Any], np.ndarray]


def loss_arrays(loss: Loss) -> LossArrays:
    """The derivatives of a loss as arrays of the shape of the margins."""
    methods = methods_of(loss)
    return LossArrays(
        lambda z, y: np.asarray(methods.subgradient(loss, z, y) + 0.0 * z),
        lambda z, y: np.asarray(methods.curvature(loss, z, y) + 0.0 * z),
    )


def pulls_of_rows(X: Rows, A: np.ndarray) -> np.ndarray:
    """``sum_i A_ik x_i`` for each column k, the virtual feature included, in float64, shape (d + 1, k)."""
    pulled = X.float64_matrix().T @ A
    return np.vstack([pulled, X.bias * A.sum(axis=0)])


def with_feature(some: Any, scale: float) -> np.ndarray:
    """Rows as a dense array in float64 with the virtual feature, shape (k, d + 1)."""
    dense = some.toarray() if sparse.issparse(some) else some
    return np.hstack([widen(dense, np.float64), np.full((dense.shape[0], 1), scale)])


@dataclass(frozen=True, eq=False)
class Solved:
    """Points next to the optima of k changed problems.

    Attributes
    ----------
    near : Vicinity
    V : ndarray of shape (d + 1, k)
    Z : ndarray of shape (n, k)
        Margins of all rows.
    radius, apart : ndarray of shape (k,)
        How far the optimum is at most, in the norm of the changed H and in plain length.
    share : ndarray of shape (k,)
        ``q`` with ``q H <=`` the changed H.
    """

    near: Vicinity
    V: np.ndarray
    Z: np.ndarray
    radius: np.ndarray
    apart: np.ndarray
    share: np.ndarray

    def errors(self, lengths: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Bounds on the distance of the rows' margins from the optima's margins, shape (m, k).

        Parameters
        ----------
        lengths : ndarray of shape (m, 1) or (1, k)
            Of the rows in the norm of the inverse of H.
        norms : ndarray of the same shape
            In plain length.
        """
        found = np.minimum(times(lengths, self.radius / np.sqrt(self.share)), times(norms, self.apart))
        rounding = gamma(self.near.problem.row_sizes.terms + 8.0) * norms * np.linalg.norm(self.V, axis=0)
        return np.asarray(SLACK * (found + rounding))

    def row_errors(self, rows: np.ndarray) -> np.ndarray:
        """Bounds on the distance of `Z` from the optima's margins, for some of the rows, shape (m, k)."""
        lengths = np.sqrt(self.near.leverages[rows])[:, None]
        return self.errors(lengths, radii(self.near.problem.norms[rows])[:, None])


class Gradients(NamedTuple):
    """Points, and what a pass over the rows says of them; the last place of each array counts the changes."""

    V: np.ndarray
    Z: np.ndarray
    G: np.ndarray
    length: np.ndarray
    noise: np.ndarray


class Changed(ABC):
    """Some changed problems next to a vicinity; what their changes are is for subclasses to say.

    Attributes
    ----------
    near : Vicinity
    share : ndarray of shape (k,)
        ``q`` with ``q H <=`` the changed H, at most the exact one; at most `least` if nothing is proven.
    least : float
    """

    near: Vicinity
    share: np.ndarray
    least: float

    @abstractmethod
    def beginning(self) -> np.ndarray:
        """Points to begin at, shape (d + 1, k)."""

    @abstractmethod
    def drop(self, A: np.ndarray) -> None:
        """Set the multipliers of dropped rows among all, shape (n, k), to zero."""

    @abstractmethod
    def lengths(self, G: np.ndarray) -> np.ndarray:
        """The lengths of gradients in the norm of the inverse of the changed H, shape (k,)."""

    @abstractmethod
    def step(self, at: Gradients) -> np.ndarray:
        """Newton's steps, shape (d + 1, k)."""

    def gradients(self, V: np.ndarray) -> Gradients:
        """One pass over the rows at V."""
        problem = self.near.problem
        Z = scores_of_rows(problem.X, V.T)
        A = loss_arrays(problem.loss).slope(Z, problem.y[:, None])
        A *= (problem.C * problem.row_weights)[:, None]
        self.drop(A)
        G = problem.regularizer.curvature(self.near.w)[:, None] * V + pulls_of_rows(problem.X, A)
        noise = gradient_rounding(problem, V, np.abs(A, out=A))
        return Gradients(V, Z, G, self.lengths(G), noise)

    def solved(self, enough: float = 0.0) -> Solved:
        """Take steps until none helps, or the optimum of each change is known to `enough` in plain length.

        Changes that steps with the curvature of the vicinity do not finish take some with a matrix of their own.
        """
        best = self.gradients(self.beginning())
        own, ended = (np.zeros(best.length.size, dtype=bool) for _ in range(2))
        for _ in range(MOST_STEPS):
            going = ~ended & (np.linalg.norm(best.G, axis=0) > np.maximum(best.noise, enough))
            if not going.any() or time_is_up():
                break
            step = self.step(best) if (going & ~own).any() else np.zeros(best.V.shape)
            self._own_steps(best, np.flatnonzero(going & own), step)
            seen = self.gradients(best.V - step * going)
            better = going & (seen.length < FALL * best.length)
            best = Gradients(*(np.where(better, new, old) for new, old in zip(seen, best, strict=True)))
            ended |= going & own & ~better
            own |= going & ~better
        return self._proven(best)

    def _own_steps(self, at: Gradients, wanted: np.ndarray, step: np.ndarray) -> None:
        """Put Newton's steps with a matrix of their own into `step`, of as many changes as the cost allows."""
        if not wanted.size:
            return
        problem = self.near.problem
        bends = loss_arrays(problem.loss).curvature(at.Z, problem.y[:, None])
        bends *= (problem.C * problem.row_weights)[:, None]
        self.drop(bends)
        ridge = problem.regularizer.curvature(self.near.w)
        most = max(1, int(OWN_WORK / (problem.n_values * ridge.size)))
        step[:, wanted[most:]] = 0.0
        for k in wanted[:most]:
            H = curvature_matrix(problem, bends[:, k], np.flatnonzero(bends[:, k]), ridge)
            step[:, k] = dpotrs(cholesky(H), at.G[:, k], lower=1)[0]

    def _proven(self, at: Gradients) -> Solved:
        """The bounds that are proven for the points."""
        near, problem = self.near, self.near.problem
        shift = at.Z - near.z[:, None]
        if near.growth > 0.0:
            moved = near.growth * np.abs(shift).max(axis=0, initial=0.0)
        else:
            D = at.V - near.w[:, None]
            ridge = problem.regularizer.curvature(near.w)[:, None]
            moved = np.sqrt(np.einsum("ji,ji->i", ridge * D, D) + np.einsum("j,ji,ji->i", near.bend, shift, shift))
        missed = at.length + near.widest / np.sqrt(self.share) * at.noise
        radius = np.where(self.share > self.least, near.distance(missed, self.share, SLACK * moved), np.inf)
        plain = np.linalg.norm(at.G, axis=0) * SLACK + at.noise
        apart = np.full(plain.size, np.inf) if problem.intercept.constrained else plain
        return Solved(near, at.V, at.Z, radius, apart, self.share)


def together(near: Vicinity) -> int:
    """The number of changed problems that are solved together."""
    return max(1, BLOCK_VALUES // max(near.problem.X.n_rows, near.w.size))


class ChangedRows(Changed):
    """Problems without one of the rows each.

    Parameters
    ----------
    near : Vicinity
    dropped : ndarray of shape (k,)
        The numbers of the rows that are left out.
    """

    least = LEAST_OF_ROW

    def __init__(self, near: Vicinity, dropped: np.ndarray) -> None:
        problem = near.problem
        self.near = near
        self.dropped = dropped
        self.rows = with_feature(problem.X.matrix[dropped], problem.scale)
        self.bend = near.at.bends[dropped]
        self.h = near.bend[dropped]
        self.beta = near.pulls[dropped]
        self.U = near.inverse @ self.rows.T
        self.t = np.einsum("ij,ji->i", self.rows, self.U)
        self.left, possible = shares_left(near, self.h, self.t * (1.0 + near.error))
        self.share = np.where(possible, self.left, LEAST_OF_ROW)
        self.norms = np.linalg.norm(self.rows, axis=1)

    def margins(self, found: Solved) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins of the dropped rows, and how far they are from those of the optima."""
        lengths = np.sqrt(self.t * (1.0 + self.near.error))[None]
        return np.einsum("ij,ji->i", self.rows, found.V), found.errors(lengths, self.norms[None])[0]

    def beginning(self) -> np.ndarray:
        """Return the step from w that takes the other rows for parabolas."""
        return np.asarray(self.near.w[:, None] - self.U * (self.beta / self.left))

    def drop(self, A: np.ndarray) -> None:
        """Set the multipliers of the dropped rows to zero."""
        A[self.dropped, np.arange(self.dropped.size)] = 0.0

    def lengths(self, G: np.ndarray) -> np.ndarray:
        """By the inverse of ``H - h x x'``."""
        grown = 1.0 + self.near.error
        plain = np.maximum(np.einsum("ji,ji->i", G, self.near.inverse @ G), 0.0) * grown
        # H is at least the inverse of the computed inverse, divided by 1 + error; what rounding
        # may be of a product of two vectors by it is a share of both lengths.
        aligned = np.abs(np.einsum("ji,ji->i", self.U, G))
        aligned += self.near.error * np.sqrt(self.t * plain)
        squares = plain + grown * self.h / self.share * aligned**2
        return np.asarray(np.sqrt(squares * grown))

    def step(self, at: Gradients) -> np.ndarray:
        """Without the curvature of the dropped row."""
        pulled = self.near.steps @ at.G
        ways = self.near.steps @ self.rows.T
        aligned = np.einsum("ij,ji->i", self.rows, pulled)
        t = np.einsum("ij,ji->i", self.rows, ways)
        left = np.maximum(1.0 - self.bend * t, LEAST_OF_ROW)
        return np.asarray(pulled + ways * (self.bend * aligned / left))


class WithoutSquares(NamedTuple):
    """The inverse of a matrix less some squares: ``W + W B S^-1 B' W``.

    Attributes
    ----------
    W : ndarray of shape (d + 1, d + 1)
    WB : ndarray of shape (d + 1, m)
    S : tuple
        A factor of ``I - B' W B``, see :func:`scipy.linalg.cho_factor`.
    share : float
        The smallest eigenvalue of S, and the share of the matrix that is left.
    """

    W: np.ndarray
    WB: np.ndarray
    S: tuple[np.ndarray, bool]
    share: float

    @classmethod
    def of(cls, W: np.ndarray, rows: np.ndarray, bend: np.ndarray) -> WithoutSquares:
        """For the rows, shape (m, d + 1), with these curvatures."""
        B = rows[bend > 0.0].T * np.sqrt(bend[bend > 0.0])
        if B.shape[1] > B.shape[0]:  # fewer squares with the same sum
            B = np.asarray(np.linalg.qr(B.T, mode="r")).T
        WB = W @ B
        S = np.eye(B.shape[1]) - B.T @ WB
        share = float(np.linalg.eigvalsh(S)[0]) if S.size else 1.0
        if share <= LEAST_LEFT:
            S = S + (LEAST_LEFT - min(share, 0.0)) * np.eye(len(S))
        return cls(W, WB, cho_factor(S, lower=True) if S.size else (S, True), share)

    def times(self, g: np.ndarray) -> np.ndarray:
        """The inverse times a vector."""
        plain = self.W @ g
        return plain + self.WB @ cho_solve(self.S, self.WB.T @ g) if self.WB.size else plain


class ChangedGroups(Changed):
    """Problems without some of the rows.

    Parameters
    ----------
    near : Vicinity
    groups : sequence of ndarray
        The numbers of the rows of each.
    """

    least = LEAST_LEFT

    def __init__(self, near: Vicinity, groups: list[np.ndarray]) -> None:
        problem = near.problem
        self.near, self.groups = near, groups
        self.norms, self.steps = [], []
        self.pulled = np.empty((near.w.size, len(groups)))
        for k, rows in enumerate(groups):
            some = with_feature(problem.X.matrix[rows], problem.scale)
            self.norms.append(WithoutSquares.of(near.inverse, some, near.bend[rows]))
            same = near.steps is near.inverse
            self.steps.append(self.norms[-1] if same else WithoutSquares.of(near.steps, some, near.at.bends[rows]))
            self.pulled[:, k] = some.T @ near.pulls[rows]
        left = np.array([one.share for one in self.norms]) - 2.0 * near.error
        self.share = np.maximum(left, LEAST_LEFT)

    def beginning(self) -> np.ndarray:
        """One step from w."""
        return self.near.w[:, None] - self._each(self.steps, self.near.at.value[:, None] + self.pulled)

    def drop(self, A: np.ndarray) -> None:
        """Set the multipliers of the groups to zero."""
        for k, rows in enumerate(self.groups):
            A[rows, k] = 0.0

    def lengths(self, G: np.ndarray) -> np.ndarray:
        """By the inverse of H without the group."""
        squares = np.einsum("ji,ji->i", G, self._each(self.norms, G))
        # The matrix without a group is off by the share of the error that the group leaves.
        lost = np.minimum(self.near.error / self.share, 0.5)
        grown = ((1.0 + self.near.error) / (1.0 - lost)) ** 2
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) * grown))

    def step(self, at: Gradients) -> np.ndarray:
        """With the curvature of the rows that are left."""
        return self._each(self.steps, at.G)

    @staticmethod
    def _each(inverses: list[WithoutSquares], G: np.ndarray) -> np.ndarray:
        """The inverse of each group times its column."""
        return np.column_stack([inverse.times(g) for inverse, g in zip(inverses, G.T, strict=True)])


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Bounds for the rows of one problem, each left out.

    Attributes
    ----------
    rows : RowEstimates
    near : Vicinity or None
        None where the loss has no curvature, or the features are too many for its factor.
    """

    rows: RowEstimates
    near: Vicinity | None

    def refined(self, chosen: np.ndarray, values: float = REFINED_VALUES) -> LeftOut:
        """The same with the margins of some rows computed, as far as there is room; they are then known to rounding.

        There is room for as many problems as have so many `values` together.
        """
        if self.near is None or not chosen.size:
            return self
        margins, low, high = (getattr(self.rows, name).copy() for name in ("margins", "low", "high"))
        most = max(1, int(values // max(1, self.near.problem.n_values)))
        size = together(self.near)
        for start in range(0, min(most, chosen.size), size):
            if time_is_up():
                break
            some = chosen[:most][start : start + size]
            changed = ChangedRows(self.near, some)
            own, error = changed.margins(changed.solved())
            low[some], high[some] = np.maximum(low[some], own - error), np.minimum(high[some], own + error)
            margins[some] = np.clip(own, low[some], high[some])
        return replace(self, rows=replace(self.rows, margins=margins, low=low, high=high))


def rows_left_out(
    problem: Problem,
    w: np.ndarray,
    beta: np.ndarray,
    near: Vicinity | None,
) -> LeftOut:
    """Estimates and bounds of every row's margin without it.

    `near` is the vicinity of the optimum, if there is one; :func:`~.row_estimates` has the other parameters.
    """
    if near is None:
        return LeftOut(row_estimates(problem, w, beta), None)
    bounds = without_each(near)
    if is_cornerless(problem.loss):
        bent = near.bend * near.leverages
        margins = near.z - near.pulls * near.leverages / np.maximum(1.0 - bent, 1e-12)
        bends = bent > 0.0
        taken = float(np.mean(bent[bends])) if bends.any() else 0.0
        known = bounds.low, bounds.high
        if not np.isfinite(bounds.high - bounds.low).all():
            known = bounds_of_dual_point(problem, near.z, near.w, beta)
        rows = RowEstimates(margins, *known, int(np.count_nonzero(bends)), taken, 0.0)
    else:
        rows = row_estimates(problem, w, beta)
    low, high = np.maximum(rows.low, bounds.low), np.minimum(rows.high, bounds.high)
    return LeftOut(replace(rows, margins=np.clip(rows.margins, low, high), low=low, high=high), near)


def _solved_groups(near: Vicinity, groups: Sequence[np.ndarray]) -> Iterator[tuple[list[np.ndarray], Solved]]:
    """As many groups as are solved together, and the problems without each, one after the other."""
    size = together(near)
    for start in range(0, len(groups), size):
        some = list(groups[start : start + size])
        yield some, ChangedGroups(near, some).solved()


def groups_left_out(near: Vicinity, groups: list[np.ndarray]) -> RowEstimates:
    """The margins of the rows of each group for the model without the group.

    Parameters
    ----------
    near : Vicinity
    groups : list of ndarray
        The numbers of the rows of each group; each row in one of them.
    """
    margins, error, share = np.empty(near.z.size), np.empty(near.z.size), 1.0
    for some, found in _solved_groups(near, groups):
        share = min(share, float(found.share.min()))
        for k, rows in enumerate(some):
            margins[rows], error[rows] = found.Z[rows, k], found.row_errors(rows)[:, k]
    inside = int(np.count_nonzero(near.bend))
    return RowEstimates(margins, margins - error, margins + error, inside, 1.0 - share, 0.0)
