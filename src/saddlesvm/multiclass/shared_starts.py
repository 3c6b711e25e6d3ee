"""Starting weights of many classes, found together: a batch of classes shares each block of rows.

If a loss is smooth, the objectives of K problems over the same rows

    F_k(w) = 1/2 w'w + C sum_i s_ik phi(x_i . w, y_ik)

are minimised side by side by nonlinear conjugate gradients. Their products with the rows are
matrix products with K columns, which a BLAS computes at its full speed, and numbers of one or two
bytes are widened once for all K. The preconditioner of class k is ``(I + C b_k X'X)^-1``: b_k is
the mean second derivative of its losses, and the eigenvectors of X'X, of a sample of rows, serve
all classes.

A pass finds the gradient ``w - v`` with ``v = -C sum_i s_i phi'(z_i) x_i``, and so the gap
``1/2 ||w - v||^2`` (:mod:`saddlesvm.solvers.newton`). Here w'w leaves out a free intercept, for
whose gradient g the gap has ``g^2 / 2 h``, with h its curvature. A class leaves the batch when this
gap is small enough; its own fit, which begins at these weights, proves it in double precision.

Source: Hager and Zhang (2006), "A survey of nonlinear conjugate gradient methods", rule PRP+.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.linalg import eigh

from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.loss import has_array_methods, is_smooth, methods_of
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Dense
from saddlesvm.rows.matrix import pieces
from saddlesvm.rows.places import Memory
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.threads import blas_for

LEAST_CLASSES = 8  # with fewer, little is shared; guessed
MOST_CLASSES = 64  # in a batch: more do not make matrix products faster; guessed
MOST_FEATURES = 2048  # eigenvectors of more take longer than they save; guessed
SCORES = 2**25  # scores that all batches at work keep at a time; derived: 256 MB, twice
SAMPLE = 20  # rows of the sample for each feature; guessed
CACHED = 2**16  # scores of a block of array code; derived: half a megabyte
READ_ROWS = 2048  # rows that are widened at a time; guessed
MOST_STEPS = 40  # guessed
# Share of the requested gap at which a class is done, and the gap that float32 sums can reach;
# guessed.
EAGERNESS = 0.7
LEAST_GAP = 3e-5


def shares_starts(problem: Problem, count: int) -> bool:
    """Return True if `count` problems like this one should begin at weights found together."""
    if count < LEAST_CLASSES or type(problem) is not Problem or not isinstance(problem.X, Dense):
        return False
    # Half a square, zero dual variables as a start, and no row left out.
    if not problem.is_plain or not problem.intercept.homogeneous or problem.fixed.size:
        return False
    if not is_smooth(problem.loss) or not has_array_methods(problem.loss):
        return False
    n = problem.members.size
    # The sample must span the features.
    return problem.n_features <= MOST_FEATURES and n >= 2 * problem.n_features


def classes_together(n: int, count: int, jobs: int) -> int:
    """Return how many of `count` classes make a batch, if `jobs` batches are at work."""
    room = max(LEAST_CLASSES, SCORES // (n * jobs))
    # No thread is left without a batch.
    return min(MOST_CLASSES, room, -(-count // jobs))


class SharedStarts:
    """Starting weights of problems over the same rows.

    Parameters
    ----------
    problem : Problem
        Any of the problems: they differ in labels and weights.
    weights : ndarray of shape (n,), optional
        The common weights of the rows.
    gap : float
        The relative gap that the fits will ask for.
    """

    def __init__(self, problem: Problem, weights: np.ndarray | None, gap: float) -> None:
        self.X = problem.X
        self.members = problem.members
        self.loss = problem.loss
        self.methods = methods_of(problem.loss)
        self.C = problem.C
        # A free intercept pays nothing.
        self.ridge = np.ones((problem.n_features + 1, 1))
        if problem.intercept.constrained:
            self.ridge[-1] = 0.0
        self.weights = weights
        self.gap = max(EAGERNESS * gap, LEAST_GAP)
        place = self.open_rows()
        stride = max(1, place.n // (SAMPLE * (place.d + 1)))
        sample = np.arange(0, place.n, stride)
        gram = place.gram(sample, np.ones(sample.size), place.kind)
        self.can_begin = bool(np.isfinite(gram).all())
        if self.can_begin:
            values, self.vectors = eigh(gram, lower=True)
            self.values = np.maximum(values, 0.0) * (place.n / sample.size)

    def open_rows(self) -> Memory:
        """Return the rows, as a single thread reads them."""
        place = Memory(self.X, self.members)
        place.block = READ_ROWS
        return place

    def find(self, subs: Sequence[SubProblem]) -> np.ndarray | None:
        """Return starting weights, shape (subs, d + 1); None if none are better than zero."""
        if not self.can_begin:
            return None
        # 1. Labels and weights of the rows: a column a class.
        place = self.open_rows()
        Y = np.column_stack([sub.y[self.members] for sub in subs])
        S: Any = None
        if self.weights is not None or any(sub.factor != 1.0 for sub in subs):
            S = np.ones(Y.shape)
            for k, sub in enumerate(subs):
                own = sub.row_weights(self.weights)
                if own is not None:
                    S[:, k] = own[self.members]
        W = np.zeros((place.d + 1, len(subs)))
        with blas_for(0.0), np.errstate(all="ignore"):
            found = self._descend(place, Y, S, W)
        return found.T if found.any() else None

    def _descend(self, place: Memory, Y: np.ndarray, S: Any, W: np.ndarray) -> np.ndarray:
        """Take steps of conjugate gradients from zero; return the weights of the least gaps."""
        best = W.copy()
        least = np.full(W.shape[1], np.inf)
        live = np.arange(W.shape[1])
        Z = np.zeros(Y.shape)
        D = np.zeros_like(W)
        former = None
        for _ in range(MOST_STEPS):
            # 1. The gradient and the gap of each class; keep the best weights.
            V, losses, bends = self._pull(place, Z, Y, S)
            G = self.ridge * W - V
            # Arrays in place of numbers: an objective for each class.
            charged = 0.5 * (W * self.ridge * W).sum(axis=0)
            primal = primal_of(self.C, losses, charged)
            sizes = np.repeat(self.ridge, live.size, axis=1)
            if not self.ridge[-1]:
                sizes[-1] = 1.0 / (self.C * bends * place.n * place.constant**2)
            gaps = 0.5 * (sizes * G * G).sum(axis=0) / primal
            lower = gaps < least[live]
            best[:, live[lower]] = W[:, lower]
            least[live[lower]] = gaps[lower]

            # 2. Classes that are near enough leave the batch, and those with overflown sums.
            stay = gaps > self.gap
            if not stay.any() or time_is_up():
                break
            if not stay.all():
                live = live[stay]
                W, G, Z, Y, D = (array[:, stay] for array in (W, G, Z, Y, D))
                bends = bends[stay]
                S = None if S is None else S[:, stay]
                former = None if former is None else tuple(a[..., stay] for a in former)

            # 3. The direction: P G with the preconditioner P, and a share of the last direction.
            inverse = 1.0 / (1.0 + self.C * bends * self.values[:, None])
            PG = self.vectors @ (inverse * (self.vectors.T @ G))
            size = (G * PG).sum(axis=0)
            if former is None:
                D = -PG
            else:
                last_G, last_size = former
                beta = np.maximum(0.0, (size - (last_G * PG).sum(axis=0)) / last_size)
                D = beta * D - PG
                rises = (G * D).sum(axis=0) >= 0.0
                D[:, rises] = -PG[:, rises]
            former = (G, size)

            # 4. The step: scores are linear along the line.
            dZ = np.empty_like(Z)
            narrow = place.narrow(D)
            for rows, block in place.blocks():
                dZ[rows] = place.scores(block, narrow)
            t = self._step_sizes(W, D, Z, dZ, Y, S)
            W = W + t * D
            dZ *= t
            Z += dZ
        return best

    def _few(self, Z: np.ndarray, Y: np.ndarray, S: Any) -> Iterator[tuple[slice, Any, Any]]:
        """Visit labels and weights of a few rows at a time, whose scores fit into the cache."""
        for rows in pieces(len(Z), max(1, CACHED // Z.shape[1])):
            weights = 1.0 if S is None else S[rows]
            yield rows, Y[rows].astype(np.float64), weights

    def _pull(
        self, place: Memory, Z: np.ndarray, Y: np.ndarray, S: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return V, the sums of the losses, and the mean second derivatives at scores Z."""
        V = np.zeros((place.d + 1, Z.shape[1]))
        losses = np.zeros(Z.shape[1])
        bends = np.zeros(Z.shape[1])
        for rows, block in place.blocks():
            y = Y[rows].astype(np.float64)
            s = 1.0 if S is None else S[rows]
            z = Z[rows]
            V += place.pull(block, -self.C * s * self.methods.subgradient(self.loss, z, y))
            losses += (s * self.methods.value(self.loss, z, y)).sum(axis=0)
            bends += (s * self.methods.curvature(self.loss, z, y)).sum(axis=0)
        return V, losses, bends / place.n

    def _step_sizes(
        self, W: np.ndarray, D: np.ndarray, Z: np.ndarray, dZ: np.ndarray, Y: np.ndarray, S: Any
    ) -> np.ndarray:
        """Return the step size of each class: a Newton step along the line, then a secant's."""
        along = (W * self.ridge * D).sum(axis=0)
        squares = (D * self.ridge * D).sum(axis=0)
        # 1. Slope and curvature at the beginning of the line.
        slope = along.copy()
        bend = squares.copy()
        for rows, y, s in self._few(Z, Y, S):
            z = Z[rows]
            dz = dZ[rows]
            slope += self.C * (s * self.methods.subgradient(self.loss, z, y) * dz).sum(axis=0)
            bend += self.C * (s * self.methods.curvature(self.loss, z, y) * dz * dz).sum(axis=0)
        t = -slope / bend

        # 2. The slope there: slopes rise along the line, so that a secant meets zero once.
        end = along + t * squares
        for rows, y, s in self._few(Z, Y, S):
            dz = dZ[rows]
            z = Z[rows] + t * dz
            end += self.C * (s * self.methods.subgradient(self.loss, z, y) * dz).sum(axis=0)
        longer = slope / (slope - end)
        return t * np.where(np.isfinite(longer), np.clip(longer, 0.0, 4.0), 1.0)
