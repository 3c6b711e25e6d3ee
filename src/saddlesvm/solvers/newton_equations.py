"""Newton's equations ``(R + X_J' B_J X_J) d = r`` for the rows J that bend, in whichever way is cheapest.

Few features: Cholesky of the matrix itself. Few active rows: Cholesky of ``X_J R^-1 X_J' + B_J^-1``. Neither, or both
dear beside products with the matrix: conjugate gradients. Every way ends in conjugate gradients on the exact matrix,
with the factor as the preconditioner (Nocedal and Wright 2006, algorithm 5.3); an exact factor makes that one
iteration, and another one where rounding asks for refinement.

R is one, but for the weight of a free intercept, where it is a number that is small beside the data.
Memory: blocks of rows in float64, the factors within a stated number of bytes, never a widened copy of X.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from saddlesvm.problem import Problem
from saddlesvm.solvers.feature_factor import FeatureFactor
from saddlesvm.solvers.linear_algebra import BLAS_SPEED, LOOP_SPEED, Map, conjugate_gradients
from saddlesvm.solvers.newton_kernels import hessian_diagonal, hessian_product
from saddlesvm.solvers.row_factor import RowFactor
from saddlesvm.threads import blas_for

FREE_PENALTY = 1e-8  # R of a free intercept: next to nothing, so that no active row means no division by zero
NEGLIGIBLE = 1e-9  # bend times squared norm of a row that the Hessian can do without, beside R
PATIENCE = 10  # iterations of plain conjugate gradients that must be cheaper than a factor for them to be tried
MOST_ITERATIONS, TYPICAL_ITERATIONS = 1000, 50
FEW = 0.8  # of the features: more active rows than that are better conditioned over features, whatever the cost
NOTHING = 2e-5  # seconds of a factor, for which no other way is looked at
HEAVIEST = 2.0  # active rows that a factor of the heaviest ones still helps, as a multiple of the latter
PLAIN = "conjugate gradients"


@dataclass
class NewtonEquations:
    """Solves Newton's equations of one problem again and again; holds the factors between the calls.

    Parameters
    ----------
    problem : Problem
    memory : float
        Bytes that the factors may take.
    """

    problem: Problem
    memory: float
    way: str = ""
    iterations: int = 0
    stiff: bool = False
    penalty: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        problem, count = self.problem, self.problem.y.size
        self.penalty = np.ones(problem.n_features + 1)
        if problem.intercept == "free":
            self.penalty[-1] = FREE_PENALTY
        self.most_features = math.isqrt(int(self.memory / 24.0))  # the sum, the matrix, its factor
        self.most_rows = math.isqrt(int(self.memory / 42.0))  # two pools while one grows, the matrix, its factor
        self.features = FeatureFactor(problem.X, self.penalty, count)
        self.rows = RowFactor(problem.X, self.penalty, count)

    def solve(self, bend: np.ndarray, rhs: np.ndarray, forcing: float) -> np.ndarray:
        """The direction d, to a residual of `forcing` times the right hand side's (in the preconditioner's norm).

        Parameters
        ----------
        bend : ndarray of shape (n_all,)
            Second derivatives B, zero for rows outside J.
        rhs : ndarray of shape (d + 1,)
        forcing : float
        """
        self.iterations = 0
        active = np.flatnonzero(bend * self.problem.norms > NEGLIGIBLE)
        if not active.size:
            self.way = "no active row"
            return rhs / self.penalty
        way, cost = self.cheapest(active, bend)
        with blas_for(cost):
            return self._solve(way, cost, active, bend, rhs, forcing)

    def _solve(
        self, way: str, cost: float, active: np.ndarray, bend: np.ndarray, rhs: np.ndarray, forcing: float
    ) -> np.ndarray:
        """Conjugate gradients alone while they may be cheaper than the factor, then with it."""
        X = self.problem.X

        def matrix(v: np.ndarray) -> np.ndarray:
            out = self.penalty * v
            hessian_product(X, active, bend, v, out)
            return out

        direction, solved = np.zeros_like(rhs), False
        patience = MOST_ITERATIONS if way == PLAIN else min(int(cost / self._product_cost(active)), MOST_ITERATIONS)
        if way == PLAIN or (patience >= PATIENCE and not self.stiff):
            self.way = PLAIN
            direction, self.iterations, solved = conjugate_gradients(
                matrix, self._diagonal(active, bend), rhs, direction, forcing, patience
            )
            self.stiff = not solved
        if not solved and way != PLAIN:
            self.way = way
            try:
                precondition = self._factor(way, active, bend)
            except np.linalg.LinAlgError:
                precondition = self._diagonal(active, bend)
            direction, more, _ = conjugate_gradients(matrix, precondition, rhs, direction, forcing, MOST_ITERATIONS)
            self.iterations += more
        return direction

    def cheapest(self, active: np.ndarray, bend: np.ndarray) -> tuple[str, float]:
        """The way that costs least among those that fit the memory, and its seconds, roughly.

        Conjugate gradients with the diagonal alone are what is left when no factor fits.
        """
        per_row = self.problem.values_per_row
        ways: list[tuple[float, str]] = []
        if self.penalty.size <= self.most_features:
            ways.append((self.features.cost(bend, per_row), "features"))
        if ways and ways[0][0] < NOTHING:
            return "features", ways[0][0]
        if active.size <= self.most_rows and not (ways and active.size > FEW * self.penalty.size):
            ways.append((self.rows.cost(active, bend, per_row), "rows"))
        if not ways and active.size <= HEAVIEST * self.most_rows:
            ways.append((self.most_rows**3 / (3.0 * BLAS_SPEED), "heaviest rows"))
        if not ways:
            ways.append((TYPICAL_ITERATIONS * self._product_cost(active), PLAIN))
        cost, way = min(ways)
        return way, cost

    def _product_cost(self, active: np.ndarray) -> float:
        """Seconds of a product with the matrix, roughly."""
        return 4.0 * active.size * self.problem.values_per_row / LOOP_SPEED

    def _diagonal(self, active: np.ndarray, bend: np.ndarray) -> Map:
        """The function that divides by the diagonal of the matrix."""
        diagonal = self.penalty.copy()
        hessian_diagonal(self.problem.X, active, bend, diagonal)
        return lambda v: v / diagonal

    def _factor(self, way: str, active: np.ndarray, bend: np.ndarray) -> Map:
        """Factor in the given way; the function that applies the inverse."""
        if way == "features":
            self.features.update(bend)
            return self.features.solve
        if way == "heaviest rows":
            weight = bend[active] * self.problem.norms[active]
            active = np.sort(active[np.argpartition(-weight, self.most_rows)[: self.most_rows]])
        self.rows.update(active, bend)
        return self.rows.solve
