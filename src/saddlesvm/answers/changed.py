"""The optima of many changed problems at once: steps of Newton's method, and how far they are from the end.

A change drops some rows. Its curvature is that of the vicinity but for a few squares, so that
steps need no factor of their own; the margins and gradients of many changes are products of matrices. The gradient that
is left at a point bounds the distance of the optimum (:meth:`Vicinity.distance`), in plain length too, for the
regulariser alone has curvature 1.

Whether a hyperplane separates two classes: a proof either way, or a bound of its margin; contradictions.

*   A hyperplane with every row on its side, rounding counted, separates; the least distance of a row bounds the margin
    from below.
*   Half the distance of any two points of the convex hulls of the classes bounds the margin from above. The multipliers
    of a fit are weights of two such points.
*   Hulls that share a point are not separable: non-negative multipliers, not all zero, with ``sum_i a_i y_i (x_i, 1) =
    0`` (Farkas). Rows that differ by their label alone are such a proof. Else the multipliers of a fit, moved by least
    squares until the sum is as small as rounding lets it, prove that exact ones are near: the smallest must be larger
    than what another such move can take, ``||x_i|| ||sum|| / lambda`` with the smallest eigenvalue lambda of the sum of
    squares.

Source: Rockafellar (1970), "Convex Analysis", theorem 22.2, for the alternative.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrs

from saddlesvm.answers.vicinity import Vicinity, gradient_rounding
from saddlesvm.problem.loss import Loss, has_array_methods, methods_of
from saddlesvm.problem.rounding import SLACK, gamma, radii
from saddlesvm.rows.layouts import Rows
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
    pulled = X.float64_matrix().T @ A
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
        radius = np.where(self.share > LEAST_LEFT, near.distance(missed, self.share, SLACK * moved), np.inf)
        plain = np.linalg.norm(at.G, axis=0) * SLACK + at.noise
        apart = np.full(plain.size, np.inf) if problem.intercept.constrained else plain
        return Solved(near, at.V, at.Z, radius, apart, self.share)


def together(near: Vicinity) -> int:
    """The number of changed problems that are solved together."""
    return max(1, BLOCK_VALUES // max(near.problem.X.n_rows, near.w.size))


LEAST = 1e-7  # share of the largest multiplier; smaller ones take no part in a proof
ROUNDS = 12  # of moving multipliers and leaving out those that become negative
MOST_VALUES = 2**26  # of the rows that a proof takes in memory, as float64: 512 MB


def same_rows(X: Any) -> np.ndarray:
    """A number for each row of a dense or CSR matrix, shape (n,); rows with the same values share it."""
    if sparse.issparse(X):
        kept = X.copy()
        kept.eliminate_zeros()
        ends, indices, data = kept.indptr, kept.indices, kept.data
        keys: dict[bytes, int] = {}
        return np.array(
            [keys.setdefault(indices[a:b].tobytes() + data[a:b].tobytes(), len(keys)) for a, b in pairwise(ends)],
            dtype=np.int64,
        )
    plain = np.ascontiguousarray(widened(X, np.float64) + 0.0)  # no row differs by the sign of a zero
    rows = plain.view(np.dtype((np.void, plain.shape[1] * plain.itemsize)))[:, 0]
    return np.asarray(np.unique(rows, return_inverse=True)[1]).ravel()


def contradictions(X: Any, labels: np.ndarray) -> list[np.ndarray]:
    """The numbers of rows with the same values whose labels are not all the same, a group each, largest first."""
    keys = same_rows(X)
    order = np.argsort(keys, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    found = [one for one in groups if one.size > 1 and (labels[one] != labels[one[0]]).any()]
    return sorted(found, key=lambda one: (-one.size, int(one[0])))


class Separability(NamedTuple):
    """The proven separability of two classes.

    Attributes
    ----------
    separable : bool or None
        None where neither is proven.
    low, high : float
        Between what the margin lies, half the width of the widest stripe between the classes; 0 where none separates.
    reason : str
    """

    separable: bool | None
    low: float
    high: float
    reason: str


def separability(X: Any, signs: np.ndarray, w: np.ndarray, b: float, beta: np.ndarray) -> Separability:
    """Try to prove that a hyperplane separates rows with labels -1 and +1, or that none does.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    signs : ndarray of shape (n,)
    w, b
        The hyperplane of a fit, shape (d,), and its intercept.
    beta : ndarray of shape (n,)
        Its multipliers.
    """
    a = np.maximum(beta * signs, 0.0)
    norms = _norms(X)
    slip = SLACK * gamma(len(w) + 8.0) * (norms * float(np.linalg.norm(w)) + abs(b))
    least = float((signs * (np.asarray(X @ w) + b) - slip).min())
    high = _hull_distance(X, signs, a, norms)
    if least > 0.0:
        low = least / (float(np.linalg.norm(w)) * SLACK)
        return Separability(True, low, max(low, high), "a hyperplane has every row on its side")
    if _balanced(X, signs, a):
        return Separability(False, 0.0, 0.0, "the convex hulls of the classes share a point")
    return Separability(None, 0.0, high, "no hyperplane separates with a wider margin; one with a narrower margin may")


def _norms(X: Any) -> np.ndarray:
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.asarray(np.sqrt(np.asarray(squares, dtype=np.float64).ravel())) * SLACK


def _hull_distance(X: Any, signs: np.ndarray, a: np.ndarray, norms: np.ndarray) -> float:
    """Half the distance of the points whose weights are the multipliers of each class; infinite without some."""
    sums = [float(a[signs == sign].sum()) for sign in (-1.0, 1.0)]
    if min(sums) <= 0.0:
        return math.inf
    shares = a / np.where(signs > 0.0, sums[1], sums[0])
    apart = np.asarray(X.T @ (shares * signs)).ravel()
    rounding = gamma(len(a) + 16.0) * float(shares @ norms)
    return 0.5 * SLACK * (float(np.linalg.norm(apart)) + rounding)


def _balanced(X: Any, signs: np.ndarray, a: np.ndarray) -> bool:
    """Whether exact multipliers with ``sum_i a_i y_i (x_i, 1) = 0`` are near these."""
    chosen = np.flatnonzero(a > LEAST * a.max(initial=0.0))
    width = X.shape[1] + 1
    if chosen.size <= width or chosen.size * width > MOST_VALUES:
        return False
    rows, found = with_feature(X[chosen], 1.0) * signs[chosen, None], a[chosen] / a.max()
    for _ in range(ROUNDS):
        values, vectors = np.linalg.eigh(rows.T @ rows)
        trace = float(values.sum())
        smallest = float(values[0]) - gamma(len(rows) + 32.0 * width) * width * trace
        if smallest <= 0.0:
            return False
        for _ in range(2):  # the second takes away what rounding has left
            found = found - rows @ (vectors @ ((vectors.T @ (rows.T @ found)) / values))
        keep = found > 0.0
        if keep.all():
            lengths = np.linalg.norm(rows, axis=1)
            left = float(np.linalg.norm(rows.T @ found)) + gamma(len(rows) + 8.0) * float(lengths @ found)
            return bool((found > SLACK * lengths * left / smallest).all())
        rows, found = rows[keep], found[keep]
        if len(rows) <= width:
            return False
    return False
