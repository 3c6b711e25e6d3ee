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

What each row, and each group of rows, does to a model.

Its own margin without it is an estimate between proven bounds. Bounds on the move of the optimum follow, and the
decisions that no single row or group can change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from saddlesvm.answers.changed import LEAST_LEFT, Changed, Gradients, Solved, together, with_feature
from saddlesvm.answers.vicinity import Vicinity, corners_of
from saddlesvm.problem.loss import is_cornerless
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rounding import SLACK, UNIT, gamma, radii
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.solvers.second_order.leave_one_out import RowEstimates, quadratic_forms, row_estimates

SMALL = 1e-4  # way below which ``(e^m - 1 - m) / m`` is m / 2 to four digits


class Bounds(NamedTuple):
    """Proven bounds of every row's margin without it, and of how far it moves the optimum in the norm of H."""

    low: np.ndarray
    high: np.ndarray
    moves: np.ndarray


def without_each(near: Vicinity) -> Bounds:
    """The effect of leaving out each row on its own margin; infinite where nothing is proven. No pass over the rows."""
    t, beta, z = near.leverages, near.pulls, near.z
    share = 1.0 - near.bend * t
    possible = share > LEAST_LEFT
    share = np.where(possible, share, 1.0)
    own, missed = np.sqrt(t / share), near.missed / np.sqrt(share)
    pull = np.abs(beta) * own
    if corners_of(near.problem.loss):
        whole = np.where(pull + missed <= near.reach * np.sqrt(share), pull + missed, np.inf)
        middle = z - 0.5 * beta * own * own
        around = 0.5 * own * (whole + missed)
    else:
        moved = near.growth * near.longest * np.abs(beta) * np.sqrt(t) / share
        radius = near.distance(off_tangent(moved) * pull + missed, share, moved)
        middle, around, whole = z - beta * own * own, own * radius, pull + radius
    around += near.error * SLACK * np.abs(beta) * own * own
    sizes = np.abs(z) + radii(near.problem.norms) * float(np.linalg.norm(near.w))
    around = np.where(possible, around, np.inf) + gamma(near.problem.row_sizes.terms + 8.0) * sizes
    return Bounds(middle - around, middle + around, np.where(possible, whole / np.sqrt(share), np.inf))


def off_tangent(moved: np.ndarray) -> np.ndarray:
    """``(e^m - 1 - m) / m``: by what share of its rise a derivative leaves its tangent, over a way of m."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(moved > SMALL, (np.expm1(moved) - moved) / np.maximum(moved, SMALL), 0.51 * moved)


class ChangedRows(Changed):
    """Problems without one of the rows each.

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
        self.rows = with_feature(problem.X.matrix[dropped], problem.scale)
        self.bend = near.at.bends[dropped]
        self.h = near.bend[dropped]
        self.beta = near.pulls[dropped]
        self.U = near.inverse @ self.rows.T
        self.t = np.einsum("ij,ji->i", self.rows, self.U)
        self.share = np.maximum(1.0 - self.h * self.t * (1.0 + near.error), LEAST_LEFT)
        self.norms = np.linalg.norm(self.rows, axis=1)

    def margins(self, found: Solved) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins of the dropped rows, and how far they are from those of the optima."""
        lengths = np.sqrt(self.t * (1.0 + self.near.error))[None]
        return np.einsum("ij,ji->i", self.rows, found.V), found.errors(lengths, self.norms[None])[0]

    def beginning(self) -> np.ndarray:
        """Return the step from w that takes the other rows for parabolas."""
        return np.asarray(self.near.w[:, None] - self.U * (self.beta / self.share))

    def drop(self, A: np.ndarray) -> None:
        """Set the multipliers of the dropped rows to zero."""
        A[self.dropped, np.arange(self.dropped.size)] = 0.0

    def lengths(self, G: np.ndarray) -> np.ndarray:
        """By the inverse of ``H - h x x'``."""
        aligned = np.einsum("ji,ji->i", self.U, G)
        squares = np.einsum("ji,ji->i", G, self.near.inverse @ G) + self.h / self.share * aligned**2
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) * (1.0 + self.near.error)))

    def step(self, at: Gradients) -> np.ndarray:
        """Without the curvature of the dropped row."""
        pulled = self.near.steps @ at.G
        ways = self.near.steps @ self.rows.T
        aligned = np.einsum("ij,ji->i", self.rows, pulled)
        t = np.einsum("ij,ji->i", self.rows, ways)
        return np.asarray(pulled + ways * (self.bend * aligned / np.maximum(1.0 - self.bend * t, LEAST_LEFT)))


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
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) * (1.0 + self.near.error / self.share) ** 2))

    def step(self, at: Gradients) -> np.ndarray:
        """With the curvature of the rows that are left."""
        return self._each(self.steps, at.G)

    @staticmethod
    def _each(inverses: list[WithoutSquares], G: np.ndarray) -> np.ndarray:
        """The inverse of each group times its column."""
        return np.column_stack([inverse.times(g) for inverse, g in zip(inverses, G.T, strict=True)])


REFINED_VALUES = 2**31  # stored values that the passes for undecided rows may read once; each takes some four passes
VALUES, MOST_VALUES = 2**23, 2**27  # stored values that the passes for rows in turn may read, if all moves are known


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

    def refined(self, chosen: np.ndarray) -> LeftOut:
        """The same with the margins of some rows computed, as far as there is room; they are then known to rounding."""
        if self.near is None or not chosen.size:
            return self
        margins, low, high = (getattr(self.rows, name).copy() for name in ("margins", "low", "high"))
        most = max(1, REFINED_VALUES // max(1, self.near.problem.n_values))
        size = together(self.near)
        for start in range(0, min(most, chosen.size), size):
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
    gap: float,
    near: Vicinity | None,
) -> LeftOut:
    """Estimates and bounds of every row's margin without it.

    `near` is the vicinity of the optimum, if there is one; :func:`~.row_estimates` has the other parameters.
    """
    if near is None:
        return LeftOut(row_estimates(problem, w, beta, gap), None)
    bounds = without_each(near)
    if is_cornerless(problem.loss):
        bent = near.bend * near.leverages
        margins = near.z - near.pulls * near.leverages / np.maximum(1.0 - bent, 1e-12)
        bends = bent > 0.0
        taken = float(np.mean(bent[bends])) if bends.any() else 0.0
        rows = RowEstimates(margins, bounds.low, bounds.high, int(np.count_nonzero(bends)), taken, 0.0)
    else:
        rows = row_estimates(problem, w, beta, gap)
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


class Moves(NamedTuple):
    """Between what the lengths lie by which the weights move, shape (n,) or (groups,), the intercept's included.

    `most` is what they are at most in the norm of H; empty where nobody asks.
    """

    low: np.ndarray
    high: np.ndarray
    most: np.ndarray = np.empty(0)


def row_moves(near: Vicinity) -> Moves:
    """The moves of the weights without each row: the length of the step, and the optimum's distance from there."""
    bounds = without_each(near)
    most = near.widest * bounds.moves
    if near.growth == 0.0 and np.isfinite(near.reach):  # all that is known is a ball with the step as diameter
        return Moves(np.zeros(most.size), most, bounds.moves)
    share = np.maximum(1.0 - near.bend * near.leverages, 1e-12)
    lengths = np.sqrt(quadratic_forms(near.problem.X, np.arange(near.z.size), near.inverse @ near.inverse))
    step, whole = np.abs(near.pulls) / share * lengths, np.abs(near.pulls) * np.sqrt(near.leverages) / share
    off = SLACK * (near.widest * np.maximum(bounds.moves - whole, 0.0) + 4.0 * near.error * step)
    return Moves(np.maximum(step - off, 0.0), np.minimum(step + off, most), bounds.moves)


def rows_in_turn(near: Vicinity, unknown: int) -> int:
    """The number of rows that are left out in turn, with passes over all rows: more where some moves are unknown."""
    values = max(1, near.problem.n_values)
    return max(1, VALUES // values, min(unknown, MOST_VALUES // values))


def moved_scores(near: Vicinity, most: np.ndarray, but: np.ndarray, X: np.ndarray) -> np.ndarray:
    """How far leaving out a single row, `but` some, moves the scores of each of some rows at most, shape (m,).

    Parameters
    ----------
    near : Vicinity
    most : ndarray of shape (n,)
        Of :class:`Moves`.
    but : ndarray
        Numbers of rows.
    X : ndarray or CSR matrix of shape (m, d)
    """
    rows = as_rows(X, near.problem.scale)
    lengths = np.sqrt(quadratic_forms(rows, np.arange(X.shape[0]), near.inverse) * (1.0 + near.error))
    largest = float(np.delete(most, but).max(initial=0.0))
    scores = np.asarray(X @ near.w[:-1]).ravel() + near.problem.scale * near.w[-1]
    rounding = gamma(near.w.size + 16.0) * (radii(squared_norms(rows)) * np.linalg.norm(near.w))
    found = lengths * largest if largest < np.inf else np.full(X.shape[0], np.inf)
    return np.asarray(SLACK * (found + rounding) + 4.0 * UNIT * np.abs(scores))


class GroupChanges(NamedTuple):
    """The effects of leaving out each group.

    Attributes
    ----------
    moves : Moves
    low, high : ndarray of shape (m, groups)
        Bounds of the scores of m rows without each group.
    """

    moves: Moves
    low: np.ndarray
    high: np.ndarray


def group_changes(near: Vicinity, groups: Sequence[np.ndarray], X: np.ndarray) -> GroupChanges:
    """The weights, and the scores of some rows, without each group.

    Parameters
    ----------
    near : Vicinity
    groups : sequence of ndarray
        The numbers of their rows.
    X : ndarray or CSR matrix of shape (m, d)
    """
    rows = as_rows(X, near.problem.scale)
    lengths = np.sqrt(quadratic_forms(rows, np.arange(X.shape[0]), near.inverse) * (1.0 + near.error))[:, None]
    norms = radii(squared_norms(rows))[:, None]
    low, high, least, most = [], [], [], []
    for _, found in _solved_groups(near, groups):
        scores, errors = scores_of_rows(rows, found.V.T), found.errors(lengths, norms)
        low.append(scores - errors)
        high.append(scores + errors)
        away = np.minimum(found.apart, near.widest * found.radius / np.sqrt(found.share))
        length = np.linalg.norm(found.V - near.w[:, None], axis=0)
        away = SLACK * (away + near.widest * near.missed) + gamma(near.w.size + 8.0) * np.linalg.norm(near.w)
        least.append(np.maximum(length - away, 0.0))
        most.append(length + away)
    moves = Moves(np.concatenate(least), np.concatenate(most))
    return GroupChanges(moves, np.concatenate(low, axis=1), np.concatenate(high, axis=1))
