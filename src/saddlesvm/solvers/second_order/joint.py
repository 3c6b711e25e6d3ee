"""The second-order finish of Crammer and Singer's machine.

It is the method of :mod:`saddlesvm.solvers.second_order.newton` with a block of variables a row: Newton's method on

    F(W) = 1/2 sum_k ||w_k||^2 + C sum_i e_i(x_i W),     e_i(z) = max_a  a_{y_i} - a . z - (q / 2) ||a - c_i||^2

over the row's dual feasible a, and the proximal point method on the dual around it. The gradient is ``W - V`` with the
pull V of the maximisers, which are dual feasible, and the gap is

    1/2 sum_k ||w_k - v_k||^2  +  C sum_i [s_i Phi(z_i) + a_i . G_i],     G_ik = e_ik + z_ik.

Newton's method brings the first term to zero; the second falls when the centre c moves to a and q shrinks. Only rows
with two classes or more strictly between their bounds enter the second derivative

    I + (C / q) sum_i (I_F - 1 1' / f) (x) x_i x_i'        (F the f classes of row i between their bounds).

Where classes times features are few, it is factored. Otherwise conjugate gradients solve the equations, preconditioned
with one factor a class, or with the diagonal.

Source: Li, Sun and Toh (2018), "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems"; Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point algorithm in convex
programming".
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg.lapack import dpotrs

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.crammer_singer import JointProblem, dense_rows
from saddlesvm.problem.regularizer import square
from saddlesvm.problem.sums import dual_weights
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget, SolverBase, State
from saddlesvm.solvers.costs import CALLS, values_cost
from saddlesvm.solvers.second_order.class_factors import ClassFactors, Diagonal, Inverse, factors_cost, factors_fit
from saddlesvm.solvers.second_order.conjugate import MOST_ITERATIONS, conjugate_gradients
from saddlesvm.solvers.second_order.driver import (
    FIRST_PROXIMITY,
    FORCING,
    LINE_TOLERANCE,
    MATRICES,
    MOVE_RATIO,
    Standing,
    lowest_on_line,
)
from saddlesvm.solvers.second_order.equations import TYPICAL_ITERATIONS
from saddlesvm.solvers.second_order.first_point import coordinate_curvature
from saddlesvm.solvers.second_order.joint_kernels import (
    LINE,
    SUMS,
    FreeRows,
    SmoothedRows,
    add_blocks,
    bent_jointly,
    respond,
    shares_of,
    slope_along,
)
from saddlesvm.solvers.second_order.linear_algebra import BLAS_SPEED, cholesky, factor_cost

GROWTH = ((0, 3.0), (5, 2.0), (20, 1.5))  # Newton steps at a centre, at most: divisor of q when it moves
LEAST_PROXIMITY = 1e-150  # by which C can be divided
MOST_UNKNOWNS = 1500  # classes times features up to which the matrix itself is factored
BLOCK_COST = 3e-9  # seconds that finding a row's threshold takes for each class
EVALUATIONS_OF_A_STEP = 4.0  # times that a Newton step finds the thresholds of all rows
MOST_BLOCKS = 20_000_000  # rows times classes up to which their scores and variables are kept in memory
STEPS = (6.0, 9.0)  # Newton steps: the least number, and for each power of ten that the gap falls by


class JointFinish(Standing, State):
    """The state of the finish of a joint problem; its best primal point has shape (K, d + 1).

    Parameters
    ----------
    problem : JointProblem
    alpha : ndarray of shape (n_all, K)
        A dual feasible point.
    q : float, default=0.0
        The proximity to begin with; 0 for the usual one.
    seed : int, default=0
        Seed of the preconditioner's samples of the rows.
    fixed : ndarray of shape (K, d + 1), optional
        The pull of rows that are left out, and whose variables stand still: objectives are those of the others, less
        its product with W.
    memory : float, default=inf
        Bytes that matrices may take.

    Attributes
    ----------
    pull : ndarray of shape (K, d + 1)
        ``w(alpha)`` of the best dual point.
    cost : float
        Rough seconds of the last step.
    """

    def __init__(
        self,
        problem: JointProblem,
        alpha: np.ndarray,
        q: float = 0.0,
        seed: int = 0,
        fixed: np.ndarray | None = None,
        memory: float = np.inf,
    ) -> None:
        n, K = problem.y.size, problem.n_classes
        q = max(q or FIRST_PROXIMITY * coordinate_curvature(problem), LEAST_PROXIMITY)
        super().__init__(np.empty((n, K)), alpha.copy(), q)
        self.fixed, width = fixed, problem.n_features + 1
        self.solves = K * width <= min(MOST_UNKNOWNS, math.sqrt(memory / (MATRICES * 8.0)))
        self.factors = factors_fit(problem) and 8.0 * K * width * width <= memory
        self.problem, self.seed = problem, seed
        self.classes, self.counts = np.empty((n, K), dtype=np.int32), np.zeros(n, dtype=np.int32)
        self.sums, self.line = np.zeros(1, SUMS), np.zeros(1, LINE)
        self.W = self._with_fixed(dual_weights(problem, alpha))
        self.Z = self._scores(self.W)
        self.pull, self.iterations, self.cost = self.W, 0, 0.0
        self.inverse: Inverse | None = None
        self.proven = True
        self.evaluate()

    @property
    def free_rows(self) -> FreeRows:
        """The rows that enter the second derivative."""
        return FreeRows(np.flatnonzero(self.counts), self.classes, self.counts)

    def step(self, target: float) -> None:
        """Move the centre where that is due, and make a Newton step, unless the gap is at most `target`."""
        self.move_centre(lambda stepped: self.evaluate(), target, GROWTH, least=LEAST_PROXIMITY)
        if self.estimate <= target:
            return
        self._go(self._direction())
        self.evaluate()

    def _scores(self, W: np.ndarray) -> np.ndarray:
        """``x_i . w_k`` in float64, shape (n_all, K); W has shape (K, d + 1)."""
        problem = self.problem
        own = problem.in_layout(W)
        Z = np.empty((problem.y.size, problem.n_classes))
        for block, _, _ in problem.blocks(np.float64):
            Z[block.rows] = block.scores(own)
        return Z

    def _with_fixed(self, V: np.ndarray) -> np.ndarray:
        return V if self.fixed is None else V + self.fixed

    def _pulled_by_fixed(self, W: np.ndarray) -> float:
        return 0.0 if self.fixed is None else float(np.vdot(self.fixed, W))

    def _smoothed(self) -> SmoothedRows:
        problem = self.problem
        return SmoothedRows(problem.joint, problem.codes, problem.all_weights, self.centre, self.q)

    def evaluate(self) -> None:
        """Compute the rows' variables at the scores, the gradient, and both objectives."""
        problem, C = self.problem, self.problem.C
        respond(self._smoothed(), self.Z, self.alpha, self.classes, self.counts, self.sums)
        paid, gained, coupled = self.sums.view(np.float64).tolist()
        V = self._with_fixed(dual_weights(problem, self.alpha))
        self.gradient = self.W - V
        self.residual = 0.5 * square(self.gradient)
        charged = 0.5 * square(self.W) - self._pulled_by_fixed(self.W)
        both = primal_of(C, paid, charged), dual_of(C, -gained, 0.5 * square(V))
        if self.judge(both, C * (paid + coupled), self.W, self.alpha):
            self.pull = V
        self.active = max(1, int(np.count_nonzero(self.counts)))

    def _direction(self) -> np.ndarray:
        """An approximate solution of the Newton equations, shape (K, d + 1)."""
        problem, free_rows = self.problem, self.free_rows
        width, t = self.W.shape[1], problem.C / self.q
        self.cost = evaluation_cost(problem)
        if not free_rows.rows.size:
            return -self.gradient
        if self.solves:
            matrix = np.eye(self.W.size)
            add_blocks(problem.X, free_rows, t, width, matrix)
            self.cost += factor_cost(self.W.size)
            with blas_for(factor_cost(self.W.size)), contextlib.suppress(np.linalg.LinAlgError):
                factor = cholesky(matrix.T)
                return -np.asarray(dpotrs(factor, self.gradient.ravel(), lower=1)[0]).reshape(self.W.shape)
        return self._by_iterations(free_rows, t)

    def _by_iterations(self, free_rows: FreeRows, t: float) -> np.ndarray:
        """Conjugate gradients, as far as the step needs."""
        problem = self.problem
        shape, dtype = problem.new_weights().shape, problem.dtype
        product, making = product_cost(problem, free_rows), factors_cost(problem, free_rows.counts)
        if self.inverse is None or not self.factors or self.iterations * product > making:
            self.inverse = self._inverse(free_rows)
            self.cost += making
        inverse = self.inverse

        def matrix(v: np.ndarray) -> np.ndarray:
            sought = np.ascontiguousarray(v.reshape(shape), dtype=dtype)
            found = np.zeros(shape, dtype=dtype)
            bent_jointly(problem.X, free_rows, sought, t, found)
            return v + found.ravel()

        rhs = -problem.in_layout(self.gradient).ravel()
        enough = float(np.sqrt(0.3 * MOVE_RATIO * max(self.left, 0.0) / self.residual)) if self.residual > 0.0 else 1.0
        with blas_for(problem.n_classes * self.W.shape[1] ** 2 / BLAS_SPEED):
            found, self.iterations, _ = conjugate_gradients(
                matrix,
                lambda v: inverse(v.reshape(shape)).ravel(),
                rhs,
                np.zeros_like(rhs),
                max(enough, FORCING),
                MOST_ITERATIONS,
            )
        self.cost += self.iterations * product
        return np.ascontiguousarray(problem.by_class((found if np.isfinite(found).all() else rhs).reshape(shape)))

    def _inverse(self, free_rows: FreeRows) -> Inverse:
        """The preconditioner: one factor a class where they fit, else the diagonal."""
        problem = self.problem
        parts = np.zeros((problem.y.size, problem.n_classes))
        shares_of(free_rows, 1.0 / self.q, parts)
        if self.factors:
            random = np.random.default_rng([self.seed, self.steps])
            with contextlib.suppress(np.linalg.LinAlgError):  # float32 overflows where q is very small
                return ClassFactors(problem, lambda k: parts[:, k], random)
        bends = problem.new_weights()
        for block, _, _ in problem.blocks(np.float64):
            block.add(parts[block.rows], bends, squared=True)
        return Diagonal(problem, bends)

    def _go(self, direction: np.ndarray) -> None:
        """Go along the direction to where the slope is small."""
        problem, terms = self.problem, self._smoothed()
        change = self._scores(direction)
        linear, quadratic = float(np.vdot(self.W, direction)), square(direction)
        linear -= self._pulled_by_fixed(direction)
        begin, t = float(np.vdot(self.gradient, direction)), 1.0
        self.count_step(stuck=not begin < 0.0)

        def derivatives(t: float) -> tuple[float, float]:
            slope_along(terms, self.Z, change, t, self.line)
            slope, bend = self.line.view(np.float64).tolist()
            return linear + t * quadratic + problem.C * slope, quadratic + problem.C * bend

        if not self.stuck:
            t = lowest_on_line(derivatives, begin, 1.0, LINE_TOLERANCE)
        self.W = self.W + t * direction
        self.Z += t * change


@dataclass(frozen=True)
class JointNewton(SolverBase):
    """The second-order finish as a solver: an epoch is a Newton step."""

    name: ClassVar[str] = "joint_newton"
    q: float = 0.0

    def init(self, problem: JointProblem, seed: int, start: Point | None = None) -> JointFinish:
        """Begin at a dual feasible point."""
        assert start is not None and start.alpha is not None
        state = JointFinish(problem, dense_rows(start.alpha), self.q)
        state.w = problem.in_layout(state.pull.copy())
        return state

    def step(self, problem: JointProblem, state: JointFinish, budget: Budget) -> JointFinish:
        """Do a Newton step."""
        state.step(budget.relative_gap)
        state.w = problem.in_layout(state.pull.copy())
        state.rows_touched += problem.members.size
        state.epochs += 1.0
        return state

    def solution(self, problem: JointProblem, state: JointFinish) -> Point:
        """The best points so far."""
        return Point(state.best.w, state.best.alpha)

    def last_point(self, problem: JointProblem, state: JointFinish) -> Point:
        """The last iterate."""
        return Point(state.W, state.alpha)


def finish_fits(problem: JointProblem) -> bool:
    """Whether the memory has room for the finish."""
    return problem.y.size * problem.n_classes <= MOST_BLOCKS


def evaluation_cost(problem: JointProblem) -> float:
    """Rough seconds of a Newton step without its equations."""
    thresholds = EVALUATIONS_OF_A_STEP * BLOCK_COST * problem.members.size * problem.n_classes
    return 2.0 * values_cost(problem) + thresholds + CALLS


def product_cost(problem: JointProblem, free_rows: FreeRows) -> float:
    """Rough seconds of a product with the second derivative."""
    share = float(free_rows.counts.sum()) / (problem.members.size * problem.n_classes)
    return 2.0 * values_cost(problem) * share


def step_cost(problem: JointProblem, alpha: np.ndarray) -> float:
    """Rough seconds of a Newton step near a dual point."""
    size = problem.n_classes * (problem.n_features + 1)
    if size <= MOST_UNKNOWNS:
        return evaluation_cost(problem) + factor_cost(size)
    counts = np.zeros(problem.y.size)
    for some in problem.slices(counts.size):
        own, weights, a = problem.codes[some], problem.all_weights[some], dense_rows(alpha, some)
        free, places = (a < 0.0) & (a > -weights[:, None]), np.arange(own.size)
        free[places, own] = (a[places, own] < weights) & free.any(axis=1)
        counts[some] = free.sum(axis=1)
    free_rows = FreeRows(np.empty(0, dtype=np.int64), np.empty((0, 0)), np.where(counts > 1, counts, 0))
    making = factors_cost(problem, free_rows.counts) if factors_fit(problem) else 0.0
    return evaluation_cost(problem) + making + TYPICAL_ITERATIONS * product_cost(problem, free_rows)


def steps_between(gap: float, target: float) -> float:
    """Newton steps from one relative gap to another."""
    return STEPS[0] + STEPS[1] * float(np.log10(gap / target))
