"""Newton's method for several two-class problems with a smooth loss over the same dense rows: matrix products for all.

With a block of B problems a pass over the rows is two matrix products, the scores ``X W'`` and the sums ``X' A``, and a
product with the second derivatives is two more, whatever each problem is. So many classes take little longer than one.
The equations of each problem are solved roughly, by conjugate gradients of its own that advance together; a step that
does not lower a problem's objective is halved for this problem. Products are in the precision of the rows.

For multipliers ``a_i = -s_i phi'(z_i)`` the gap of half a square is half the squared gradient, exactly: that is each
problem's estimate. This module proves nothing: the fit of each problem alone begins at these multipliers, and mostly
ends there at once.

Source: Nocedal and Wright (2006), "Numerical optimization", algorithm 7.1 (Newton-CG), with the forcing term of
section 7.1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saddlesvm.multiclass.class_descent import READY, ClassRun
from saddlesvm.problem.array_losses import methods_of
from saddlesvm.problem.certificate import Point
from saddlesvm.rows.class_rows import class_blocks, new_weights
from saddlesvm.rows.layouts import dtype_of, n_rows
from saddlesvm.runtime.threads import blas_for

STEPS = 30  # of Newton's method; the fits of the problems themselves go on from there
PRODUCTS = 30  # per step, at most
FORCING = 0.25  # norm of the residual of the equations, as a share of the gradient's, at most
HALVINGS = 6  # of a step, after which a problem is left where it is
SPEED = 3e10  # operations a second of a matrix product, roughly


class ClassNewton(ClassRun):
    """Newton's method; the penalty is half a square, the loss smooth, and an intercept, if there is one, penalised.

    The estimates are the relative gaps, but for rounding.
    """

    def run(self, tol: float, seed: int, stop: Callable[[], bool], most: float = np.inf) -> tuple[float, np.ndarray]:
        """Take steps; the epochs count passes over the rows."""
        problem, B = self.problem, self.labels.shape[1]
        self.dtype, self.passes = dtype_of(problem.X), 0.0
        self.bends = np.empty(self.labels.shape, dtype=self.dtype)
        with blas_for(2.0 * n_rows(problem.X) * problem.values_per_row * B / SPEED):
            W = new_weights(problem.X, B, np.float64)
            primal, gradient = self._evaluate(W)
            for _ in range(STEPS):
                estimates = 0.5 * (gradient * gradient).sum(axis=1) / np.maximum(primal, 1e-300)
                open_ = estimates > READY * tol
                if not open_.any() or stop() or self.passes >= most:
                    break
                direction = self._direction(gradient, open_, stop)
                W, primal, gradient = self._stepped(W, primal, gradient, direction)
            estimates = 0.5 * (gradient * gradient).sum(axis=1) / np.maximum(primal, 1e-300)
        del self.bends
        self.reached = W
        return self.passes, estimates

    def point(self, column: int) -> Point:
        """The weights and the dual variables that a problem has reached."""
        return Point(self.reached[column], self.alpha[:, column].copy())

    def _weights(self, rows: slice) -> np.ndarray:
        """The weights of the terms of some rows, shape (m, B)."""
        return np.where(self.labels[rows] > 0, self.factors, 1.0) * self.problem.all_weights[rows, None]

    def _evaluate(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The objectives and gradients at weights of shape (B, d + 1); multipliers and second derivatives are kept."""
        loss, C = self.problem.loss, self.problem.C
        methods, pull, paid = methods_of(loss), np.zeros(W.shape, self.dtype), np.zeros(len(W))
        narrow = W.astype(self.dtype, copy=False)
        for block in class_blocks(self.problem.X, len(W), self.dtype):
            z, y, s = block.scores(narrow).astype(np.float64), self.labels[block.rows], self._weights(block.rows)
            paid += (s * methods.value(loss, z, y)).sum(axis=0)
            self.alpha[block.rows] = -s * methods.subgradient(loss, z, y)
            self.bends[block.rows] = s * methods.curvature(loss, z, y)
            block.add(self.alpha[block.rows].astype(self.dtype), pull)
        self.passes += 1.0
        return 0.5 * (W * W).sum(axis=1) + C * paid, W - C * pull.astype(np.float64)

    def _direction(self, gradient: np.ndarray, open_: np.ndarray, stop: Callable[[], bool]) -> np.ndarray:
        """Rough solutions of the problems' equations, zero for those that are done; shape (B, d + 1)."""
        found, residual = np.zeros_like(gradient), np.where(open_[:, None], -gradient, 0.0)
        conjugate, rho = residual.copy(), (residual * residual).sum(axis=1)
        target = FORCING**2 * rho
        for _ in range(PRODUCTS):
            busy = rho > target
            if not busy.any() or stop():
                break
            conjugate[~busy] = 0.0
            turned = conjugate + self.problem.C * self._bent(conjugate)
            bend = (conjugate * turned).sum(axis=1)
            step = np.divide(rho, bend, out=np.zeros_like(rho), where=busy & (bend > 0.0))
            found += step[:, None] * conjugate
            residual -= step[:, None] * turned
            before, rho = rho, np.where(busy, (residual * residual).sum(axis=1), rho)
            share = np.divide(rho, before, out=np.zeros_like(rho), where=before > 0.0)
            conjugate = residual + share[:, None] * conjugate
        return found

    def _bent(self, directions: np.ndarray) -> np.ndarray:
        """``sum_i s_i phi''_ik x_i x_i . d_k``, shape (B, d + 1)."""
        narrow, found = directions.astype(self.dtype, copy=False), np.zeros(directions.shape, self.dtype)
        for block in class_blocks(self.problem.X, len(directions), self.dtype):
            turned = block.scores(narrow)
            turned *= self.bends[block.rows]
            block.add(turned, found)
        self.passes += 1.0
        return found.astype(np.float64)

    def _stepped(
        self, W: np.ndarray, primal: np.ndarray, gradient: np.ndarray, direction: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, objectives and gradients after steps that raise no problem's objective by more than rounding."""
        length, slack = np.ones(len(W)), float(np.finfo(self.dtype).eps) * np.abs(primal)
        for _ in range(HALVINGS):
            tried = W + length[:, None] * direction
            after, slopes = self._evaluate(tried)
            worse = after > primal + slack
            if not worse.any():
                return tried, after, slopes
            length[worse] *= 0.5
        tried = np.where(worse[:, None], W, tried)
        return tried, *self._evaluate(tried)
