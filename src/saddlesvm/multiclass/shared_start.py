"""Many one-vs-rest problems begin together: a block of them descends over shared rows before each is certified alone.

A fit of one class against the rest spends most of its time on loading rows and on its first passes, and all classes
load the same rows. :mod:`saddlesvm.multiclass.class_descent` does these passes for a block of classes at once; the fit
of each class then starts from the point that its block reached, and proves its own certificate. Where a class alone
would begin with Newton's method on samples of the rows, the block ends after as much work as that takes, and the
classes that are far from done then begin with it.

Small problems over the same rows are solved and certified together, in NumPy (:class:`SmallClasses`). A problem of some
hundred rows takes the solver less time than Python takes to pose it, to call NumPy for each of its steps and to certify
it. There all classes take their steps together, and the sums of their certificates are those of
arrays with a row for each. The formulas are those of a single fit. A class that this does not certify, because rounding
or a hard problem is in the way, is left to the fit of its own that it would otherwise have had.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saddlesvm.fit.loop import Batch, Ended, Worked
from saddlesvm.fit.outcome import FitResult, Limits, Outcome, Record, Trace
from saddlesvm.multiclass.class_descent import READY, ClassDescent, ClassRun, stops
from saddlesvm.multiclass.fits import TogetherFirst
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.certificate import Certificate, Point, certificates_of
from saddlesvm.problem.loss import has_array_methods, is_cornerless, methods_of
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.class_rows import class_blocks
from saddlesvm.rows.layouts import Rows
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.small.dense import Small
from saddlesvm.solvers.small.newton import SMALL

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
        self.dtype, self.passes = problem.dtype, 0.0
        self.bends = np.empty(self.labels.shape, dtype=self.dtype)
        with blas_for(2.0 * problem.X.n_rows * problem.values_per_row * B / SPEED):
            W = np.zeros(problem.X.weights_shape(B))
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
        return primal_of(C, paid, 0.5 * (W * W).sum(axis=1)), W - C * pull.astype(np.float64)

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


FEWEST = 4  # problems per thread below which a block does not pay
LEAST_VALUES = 100_000_000  # stored values times problems below which separate fits take a moment only
LARGEST_BLOCK = 32  # problems
WEIGHTS = 16_384  # weights of a block's problems, over dense rows, that stay in the nearest cache
OF_NEWTON = 16  # bytes per row and problem of a block that matrix products solve
MOST_OF_NEWTON = 128  # problems of such a block: products are no faster with more
TIME_SHARE = 0.5  # share of its problems' time that a block may take


class SharedStart:
    """Starting points, computed a block at a time when the first problem of the block asks.

    Parameters
    ----------
    problems : sequence of callables
        The sub-problems, all over the same rows.
    together : int
        Problems per block.
    tol : float
        The relative gap that the fits will prove.
    seed : int
    most : float
        Epochs after which a block ends: about what each of its problems takes alone, begun anew. A problem whose gap
        has not fallen by half of the powers of ten by then does begin anew.
    weights : ndarray of shape (n,), optional
        Those of the rows, before the factors of the classes.
    newton : bool, default=False
        Whether the blocks take Newton's steps, see :func:`by_newton`.
    """

    def __init__(
        self,
        problems: Sequence[SubProblem],
        together: int,
        tol: float,
        seed: int,
        most: float = np.inf,
        weights: np.ndarray | None = None,
        newton: bool = False,
    ) -> None:
        self.problems, self.together, self.tol, self.seed, self.most = problems, together, tol, seed, most
        self.newton = newton
        self.weights = np.empty(0) if weights is None else weights
        self.ready: dict[int, Point | None] = {}
        self.spent: dict[int, tuple[float, float]] = {}

    def point(self, index: int, problem: Problem, stop: threading.Event, seconds: float | None) -> Point | None:
        """The starting point of sub-problem `index`, None to begin anew; `seconds` is the problem's own time limit."""
        if index not in self.ready:
            self._work_out(index, problem, stop, seconds)
        return self.ready.pop(index)

    def _work_out(self, first: int, problem: Problem, stop: threading.Event, seconds: float | None) -> None:
        """Let the block that begins with sub-problem `first` descend."""
        began = clock()
        places = range(first, min(first + self.together, len(self.problems)))
        labels, factors = np.empty((problem.y.size, len(places)), dtype=np.int8), np.ones(len(places))
        for column, k in enumerate(places):
            sub = self.problems[k]
            labels[:, column], factors[column] = sub.y, sub.factor
        shared = dataclasses.replace(problem, weights=self.weights)
        kind: type[ClassRun] = ClassNewton if self.newton else ClassDescent
        block = kind(shared, labels, np.zeros(labels.shape), factors)
        most = None if seconds is None else TIME_SHARE * seconds * len(places)
        limit = np.inf if kind is ClassNewton else self.most
        epochs, estimates = block.run(self.tol, self.seed + first, stops(stop, most), limit)
        for column, k in enumerate(places):
            anew = epochs >= limit and estimates[column] > math.sqrt(self.tol)
            self.ready[k] = None if anew else block.point(column)
            self.spent[k] = (epochs, (clock() - began) / len(places))

    def credited(self, index: int, result: FitResult) -> FitResult:
        """The result with the epochs and the share of the time that its block took."""
        epochs, seconds = self.spent.pop(index)
        return dataclasses.replace(
            result, epochs=result.epochs + epochs, seconds_solving=result.seconds_solving + seconds
        )


def by_newton(problem: Problem) -> bool:
    """Whether matrix products solve a block of such problems: dense rows, a smooth loss, half a square."""
    plain = not problem.sparse and problem.penalty.identity() and not problem.intercept.constrained
    return plain and is_cornerless(problem.loss) and has_array_methods(problem.loss)


def may_share(X: Rows, problems: int, jobs: int) -> bool:
    """Whether there are enough problems, and enough values, for sharing to pay."""
    return problems >= FEWEST * jobs and X.n_values * problems >= LEAST_VALUES


def block_size(X: Rows, problems: int, jobs: int, newton: bool = False) -> int:
    """The number of problems in one block; 1 where sharing does not pay.

    Those that Newton's method solves are as many as keep their variables below the size of the rows.
    """
    if not may_share(X, problems, jobs):
        return 1
    cached: Any = LARGEST_BLOCK if X.sparse else WEIGHTS // (X.n_features + 1)
    most = min(max(FEWEST, cached), LARGEST_BLOCK)
    if newton and not X.sparse:
        most = int(np.clip(X.values.shape[1] * X.values.itemsize // OF_NEWTON, FEWEST, MOST_OF_NEWTON))
    bundles = -(-problems // most)
    return -(-problems // (-(-bundles // jobs) * jobs))


EAGERNESS = 0.9  # share of the gap asked for that the steps come to
MOST_STEPS = 100  # after which the classes that are left have a fit of their own


class SmallClasses(TogetherFirst):
    """A batch of problems, see the module.

    Parameters
    ----------
    subs : sequence of SubProblem
        All with all rows.
    problem : Problem
        That of the first; its intercept is not free.
    phase : {DENSE, INTERIOR}
        Its solver.
    weights : ndarray of shape (n,), optional
        Those of the rows, before the factors of the classes.
    limits : Limits
    rest : callable
        As of :class:`~saddlesvm.multiclass.fits.TogetherFirst`.
    keeps_duals : bool
        Whether the results have dual variables.
    """

    def __init__(
        self,
        subs: Sequence[SubProblem],
        problem: Problem,
        phase: str,
        weights: np.ndarray | None,
        limits: Limits,
        rest: Callable[[list[int]], Batch[FitResult]],
        keeps_duals: bool,
    ) -> None:
        super().__init__(range(len(subs)), rest)
        self.subs, self.problem, self.phase = subs, problem, phase
        self.weights, self.limits, self.keeps_duals = weights, limits, keeps_duals
        self.begun = False

    def worked(self, stop: threading.Event) -> list[Worked] | None:
        """The problems whose gap the steps taken together prove, at first."""
        if self.begun:
            return None
        self.begun = True
        began, problem = clock(), self.problem
        labels, factors = [], []
        for sub in self.subs:
            labels.append(problem.gathered(sub.y))
            factors.append(sub.row_weights(self.weights))
        y, weights = np.array(labels, dtype=np.float64), None
        if any(one is not None for one in factors):
            weights = np.array([problem.gathered(self.of(one)) for one in factors])
        with blas_for(0.0), np.errstate(all="ignore"):
            small = Small(problem)
            several = small.side_by_side(y, 1.0 if weights is None else weights)
            found = SMALL[self.phase].together(several, EAGERNESS * self.limits.tol, MOST_STEPS)
            solved = clock()
            certificates = certificates_of(problem, y, weights, found.w, found.a)
        seconds = (solved - began) / len(y), (clock() - solved) / len(y)
        done: list[Worked] = []
        for k, certificate in enumerate(certificates):
            if certificate.sound and self.limits.prove(certificate):
                done.append(Ended(k))
                self.results[k] = self.result(k, certificate, found.w[k], found.a[k], int(found.steps[k]), seconds)
        return done

    def of(self, weights: np.ndarray | None) -> np.ndarray:
        """Weights of all rows, ones where none are given."""
        return np.ones(self.problem.y.size) if weights is None else weights

    def result(
        self, k: int, certificate: Certificate, w: np.ndarray, a: np.ndarray, steps: int, seconds: tuple[float, float]
    ) -> FitResult:
        """The result of a problem whose gap is proven, with the weights w and the dual variables a of its rows; of
        the result they are in the C form, an array with one row."""
        problem, trace, (solving, certifying) = self.problem, Trace(), seconds
        coef, intercept, touched = w[:-1].copy(), float(w[-1] * problem.scale), steps * a.size
        trace(Record.of(
            certificate, epoch=float(steps), rows_touched=touched, seconds_solving=solving,
            seconds_certifying=certifying, active=a.size, change=np.nan,
            remark=f"{self.phase}: {steps} steps, side by side", coef=coef, intercept=intercept,
            problem=self.subs[k].label,
        ))  # fmt: skip
        duals = problem.spread(problem.C * a)[None] if self.keeps_duals else np.empty(0)
        return FitResult(
            coef=coef, intercept=intercept, alpha=duals, certificate=certificate, tol=self.limits.tol,
            outcome=Outcome.CERTIFIED, epochs=float(steps), rows_touched=touched, seconds_solving=solving,
            seconds_certifying=certifying, trace=trace, reason=self.limits.proven(certificate),
            phases={self.phase: solving}, gap=self.limits.gap,
        )  # fmt: skip
