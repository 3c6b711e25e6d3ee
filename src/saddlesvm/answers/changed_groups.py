"""Groups of rows left out together: what that does to the optimum.

With B the columns ``sqrt(h_i) x_i`` of a group and W the inverse of H, the inverse without the group is

    W + W B S^-1 B' W,    S = I - B' W B,

and the smallest eigenvalue of S is the share of the curvature that is left in every direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from saddlesvm.answers.changed import LEAST_LEFT, Changed, Look
from saddlesvm.answers.many_points import with_feature
from saddlesvm.answers.vicinity import Vicinity
from saddlesvm.rows.layouts import matrix_of


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
            some = with_feature(matrix_of(problem.X)[rows], problem.scale)
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

    def step(self, at: Look) -> np.ndarray:
        """With the curvature of the rows that are left."""
        return self._each(self.steps, at.G)

    @staticmethod
    def _each(inverses: list[WithoutSquares], G: np.ndarray) -> np.ndarray:
        """The inverse of each group times its column."""
        return np.column_stack([inverse.times(g) for inverse, g in zip(inverses, G.T, strict=True)])
