"""The optima of many changed problems at once: steps of Newton's method, and how far they are from the end.

A change drops some rows, or adds one, or both. Its curvature is that of the vicinity but for a few squares, so that
steps need no factor of their own; the margins and gradients of many changes are products of matrices. The gradient that
is left at a point bounds the distance of the optimum (:meth:`Vicinity.distance`), in plain length too, for the
regulariser alone has curvature 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrs

from saddlesvm.answers.vicinity import Vicinity, gradient_rounding
from saddlesvm.problem.array_losses import has_array_methods, methods_of
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.rounding import SLACK, gamma, radii
from saddlesvm.rows.layouts import Rows, float64_matrix, n_rows, n_values
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.rows.small_types import widened
from saddlesvm.solvers.second_order.leave_one_out import curvature_matrix
from saddlesvm.solvers.second_order.linear_algebra import cholesky

BLOCK_VALUES = 2**22  # scores of a block of weight vectors: 32 MB
MOST_STEPS = 20
FALL = 0.5  # share that a step leaves of a gradient at most; else the steps of this change end
OWN_WORK = 2.0**33  # products for the matrices of their own that the changes solved together take: a few seconds
LEAST_LEFT = 1e-3  # share of the curvature that a change leaves at least; below it nothing is proven


class LossArrays(NamedTuple):
    """The derivative and the curvature of a loss on arrays of margins and labels."""

    slope: Callable[[np.ndarray, Any], np.ndarray]
    curvature: Callable[[np.ndarray, Any], np.ndarray]


def loss_arrays(loss: Loss) -> LossArrays:
    """The methods of a loss on arrays; number by number where its text is more than arithmetic."""
    if has_array_methods(loss):
        methods = methods_of(loss)
        return LossArrays(
            lambda z, y: np.asarray(methods.subgradient(loss, z, y) + 0.0 * z),
            lambda z, y: np.asarray(methods.curvature(loss, z, y) + 0.0 * z),
        )
    return LossArrays(np.vectorize(loss.subgradient, otypes=[float]), np.vectorize(loss.curvature, otypes=[float]))


def pulls_of_rows(X: Rows, A: np.ndarray) -> np.ndarray:
    """``sum_i A_ik x_i`` for each column k, the virtual feature included, in float64, shape (d + 1, k)."""
    pulled = float64_matrix(X).T @ A
    return np.vstack([pulled, X.bias * A.sum(axis=0)])


def with_feature(some: Any, scale: float) -> np.ndarray:
    """Rows as a dense array in float64 with the virtual feature, shape (k, d + 1)."""
    dense = some.toarray() if sparse.issparse(some) else some
    return np.hstack([widened(dense, np.float64), np.full((dense.shape[0], 1), scale)])


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
        found = np.minimum(lengths * (self.radius / np.sqrt(self.share)), norms * self.apart)
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
        ``q`` with ``q H <=`` the changed H, at most the exact one.
    """

    near: Vicinity
    share: np.ndarray

    @abstractmethod
    def beginning(self) -> np.ndarray:
        """Points to begin at, shape (d + 1, k)."""

    @abstractmethod
    def drop(self, A: np.ndarray) -> None:
        """Set the multipliers of dropped rows among all, shape (n, k), to zero."""

    def added(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient of added rows at V, and how far off it can be, shapes (d + 1, k) and (k,)."""
        return np.zeros(V.shape), np.zeros(V.shape[1])

    def add_bend(self, H: np.ndarray, k: int, at: Gradients) -> None:
        """Add the curvature of the added row of change k to a matrix, in its lower triangle."""
        return

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
        added, noise = self.added(V)
        G = problem.regularizer.curvature(self.near.w)[:, None] * V + pulls_of_rows(problem.X, A) + added
        noise = noise + gradient_rounding(problem, V, np.abs(A, out=A))
        return Gradients(V, Z, G, self.lengths(G), noise)

    def solved(self, enough: float = 0.0) -> Solved:
        """Take steps until none helps, or the optimum of each change is known to `enough` in plain length.

        Changes that steps with the curvature of the vicinity do not finish take some with a matrix of their own.
        """
        best = self.gradients(self.beginning())
        own, ended = (np.zeros(best.length.size, dtype=bool) for _ in range(2))
        for _ in range(MOST_STEPS):
            going = ~ended & (np.linalg.norm(best.G, axis=0) > np.maximum(best.noise, enough))
            if not going.any():
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
        most = max(1, int(OWN_WORK / (n_values(problem.X) * ridge.size)))
        step[:, wanted[most:]] = 0.0
        for k in wanted[:most]:
            H = curvature_matrix(problem, bends[:, k], np.flatnonzero(bends[:, k]), ridge)
            self.add_bend(H, k, at)
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
        radius = np.where(self.share > LEAST_LEFT, near.distance(missed, self.share, SLACK * moved), np.inf)
        plain = np.linalg.norm(at.G, axis=0) * SLACK + at.noise
        apart = np.full(plain.size, np.inf) if problem.intercept.constrained else plain
        return Solved(near, at.V, at.Z, radius, apart, self.share)


def together(near: Vicinity) -> int:
    """The number of changed problems that are solved together."""
    return max(1, BLOCK_VALUES // max(n_rows(near.problem.X), near.w.size))
