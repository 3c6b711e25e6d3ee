"""Newton's equations ``(R + X_J' B_J X_J) d = r`` for the rows J that bend, in whichever way is cheapest.

Few features: Cholesky of the matrix itself, or, where there are many more rows than features, of the matrix of a random
sample of them. Few active rows: Cholesky of ``X_J R^-1 X_J' + B_J^-1``. Neither, or both dear beside products with the
matrix: conjugate gradients. All but an exact factor over features ends in conjugate gradients on the exact matrix, with
the factor as the preconditioner (Nocedal and Wright 2006, algorithm 5.3): one iteration over rows, and another one
where rounding asks for refinement; a few where a factor is of a sample, or of what the matrix was before.

A sample of k rows for each feature brings the condition of the matrix down to about ``((1 + r) / (1 - r))^2`` with
``r = k^-1/2``, however it was before (Avron, Maymounkov and Toledo 2010, "Blendenpik: supercharging LAPACK's
least-squares solver").

R is one, but for the weight of a free intercept, where it is a number that is small beside the data.
Memory: blocks of rows in float64, the factors within a stated number of bytes, never a widened copy of X.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import CSR, dtype_of
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.second_order.feature_factor import FeatureFactor, Update
from saddlesvm.solvers.second_order.kernels import hessian_diagonal, hessian_product
from saddlesvm.solvers.second_order.linear_algebra import BLAS_SPEED, Map, conjugate_gradients
from saddlesvm.solvers.second_order.row_factor import RowFactor
from saddlesvm.solvers.second_order.sample import ranks

FREE_PENALTY = 1e-8  # R of a free intercept: next to nothing, so that no active row means no division by zero
NEGLIGIBLE = 1e-9  # bend times squared norm of a row that the Hessian can do without, beside R
PLAIN_SHARE = 0.5  # of a factor's cost that plain conjugate gradients may take before it
PATIENCE = 10  # iterations of plain conjugate gradients that must be cheaper than a factor for them to be tried
MOST_ITERATIONS, TYPICAL_ITERATIONS = 1000, 50
FIRST_ITERATIONS, PER_ROOT = 4.0, 1.0  # expected of them: so many, and more with the root of the matrix' condition
FEW = 0.8  # of the features: more active rows than that are better conditioned over features, whatever the cost
NOTHING = 2e-5  # seconds of a factor, for which no other way is looked at
# Seconds of a product with the matrix, for each value of an active row.
DENSE_PRODUCT, SPARSE_PRODUCT = {np.dtype(np.float32): 2.5e-10, np.dtype(np.float64): 5e-10}, 2.5e-9
TOO_MANY = 15  # iterations of conjugate gradients with the factor of a sample, at most
DIGITS = 4.0  # log of what these bring the error down by: each does so by the root of a sample's rows for each feature
SAMPLE, LARGER = 4.0, 2.0  # rows for each feature that a sample has at least; times as many in the next larger one
HEAVIEST = 2.0  # active rows that a factor of the heaviest ones still helps, as a multiple of the latter
PLAIN, SAMPLED = "conjugate gradients", "features, a sample of rows"


class Way(NamedTuple):
    """How to solve: what it is called, its seconds, roughly, and what a factor over features has to do."""

    name: str
    cost: float
    plan: Update | None = None


@dataclass
class NewtonEquations:
    """Solves Newton's equations of one problem again and again; holds the factors between the calls.

    Parameters
    ----------
    problem : Problem
    memory : float
        Bytes that the factors may take.
    seed : int, default=0
        Of the samples of the rows.

    Attributes
    ----------
    below : float
        The rank below which the rows lie that the equations are about: they may be those of a sample.
    """

    problem: Problem
    memory: float
    seed: int = 0
    way: str = ""
    iterations: int = 0
    stiff: bool = False
    cost: float = 0.0
    sample: float = SAMPLE
    below: float = 1.0
    penalty: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        problem, count = self.problem, self.problem.y.size
        self.penalty = problem.regularizer.curvature(np.zeros(problem.n_features + 1))
        if problem.intercept.constrained:
            self.penalty[-1] = FREE_PENALTY
        self.most_features = math.isqrt(int(self.memory / 36.0))  # the sum, the matrix, its factor; of a sample
        self.most_rows = math.isqrt(int(self.memory / 42.0))  # two pools while one grows, the matrix, its factor
        self.features = FeatureFactor(problem.X, self.penalty, count)
        self.sampled = FeatureFactor(problem.X, self.penalty, count, np.float32)
        self.rows = RowFactor(problem.X, self.penalty, count)

    @cached_property
    def rank(self) -> np.ndarray:
        """The rank of each row, by which samples are drawn."""
        return ranks(self.problem.y.size, self.seed)

    def solve(self, bend: np.ndarray, rhs: np.ndarray, forcing: float) -> np.ndarray:
        """The direction d, to a residual of `forcing` times the right hand side's (in the preconditioner's norm).

        Parameters
        ----------
        bend : ndarray of shape (n_all,)
            Second derivatives B, zero for rows outside J.
        rhs : ndarray of shape (d + 1,)
        forcing : float
        """
        self.iterations, self.cost = 0, 0.0
        active = np.flatnonzero(bend * self.problem.norms > NEGLIGIBLE)
        if not active.size:
            self.way = "no active row"
            return rhs / self.penalty
        way = self.cheapest(active, bend)
        with blas_for(way.cost):
            direction = self._solve(way, active, bend, rhs, forcing)
        self.cost = self.iterations * self._product_cost(active) if self.way == PLAIN else way.cost
        return direction

    def _solve(self, way: Way, active: np.ndarray, bend: np.ndarray, rhs: np.ndarray, forcing: float) -> np.ndarray:
        """Conjugate gradients alone while they may be cheaper than the factor, then with it."""
        passes = self.problem.passes.among(active)

        def matrix(v: np.ndarray) -> np.ndarray:
            def of_part(part: Part, out: np.ndarray) -> None:
                hessian_product(part.X, part.rows, part.of(bend), v, out)

            return self.penalty * v + passes.total(of_part, v.size)

        direction, solved = np.zeros_like(rhs), False
        plain = way.name == PLAIN
        affordable = min(int(PLAIN_SHARE * way.cost / self._product_cost(active)), MOST_ITERATIONS)
        patience = MOST_ITERATIONS if plain else affordable
        if plain or (patience >= PATIENCE and not self.stiff):
            self.way = PLAIN
            direction, self.iterations, solved = conjugate_gradients(
                matrix, self._diagonal(active, bend), rhs, direction, forcing, patience
            )
            self.stiff = not solved
        if not solved and not plain:
            self.way = way.name
            precondition = self._factor(way, active, bend)
            if way.plan is not None and way.plan.exact and precondition == self.features.solve:
                return precondition(rhs)
            most = TOO_MANY if way.name == SAMPLED else MOST_ITERATIONS
            direction, more, solved = conjugate_gradients(matrix, precondition, rhs, direction, forcing, most)
            self.iterations += more
            if way.name == SAMPLED and not solved:
                self.sample *= LARGER**2  # for the next step; this direction leads downhill all the same
        return direction

    def expected(self, active: np.ndarray, bend: np.ndarray) -> float:
        """Seconds of :meth:`solve`, roughly, without a proximal term: those of the cheapest way, or of conjugate
        gradients alone where fewer of them than a factor costs are likely to do.
        """
        cost = self.cheapest(active, bend).cost
        condition = float(np.median(bend[active] * self.problem.norms[active]))
        iterations = min(FIRST_ITERATIONS + PER_ROOT * math.sqrt(condition), TYPICAL_ITERATIONS)
        return cost if self.stiff else min(cost, iterations * self._product_cost(active))

    def cheapest(self, active: np.ndarray, bend: np.ndarray) -> Way:
        """The way that costs least among those that fit the memory.

        Conjugate gradients with the diagonal alone are what is left when no factor fits.
        """
        ways = self._over_features(active, bend)
        if ways and ways[0].cost < NOTHING:
            return ways[0]
        if active.size <= self.most_rows and not (ways and active.size > FEW * self.penalty.size):
            ways.append(Way("rows", self.rows.cost(active, bend, self.problem.values_per_row)))
        if not ways and active.size <= HEAVIEST * self.most_rows:
            ways.append(Way("heaviest rows", self.most_rows**3 / (3.0 * BLAS_SPEED)))
        if not ways:
            ways.append(Way(PLAIN, TYPICAL_ITERATIONS * self._product_cost(active)))
        return min(ways, key=lambda way: way.cost)

    def _over_features(self, active: np.ndarray, bend: np.ndarray) -> list[Way]:
        """The ways over features, where they fit: with all active rows, and with a sample of them."""
        if self.penalty.size > self.most_features:
            return []
        per_row, product = self.problem.values_per_row, self._product_cost(active)
        plan = self.features.plan(active, bend[active])
        ways = [Way("features", self.features.cost(plan, per_row), plan)]
        for per_feature in (self.sample, LARGER * self.sample, LARGER**2 * self.sample):
            share = per_feature * self.penalty.size / active.size
            products = 2.0 * DIGITS / math.log(per_feature) * product
            if share <= 0.5 and ways[0].cost > products:
                share = 2.0 ** round(math.log2(share))
                few = active[self.rank[active] < share * self.below]
                plan = self.sampled.plan(few, bend[few] / share)
                ways.append(Way(SAMPLED, self.sampled.cost(plan, per_row) + products, plan))
        return ways

    def _product_cost(self, active: np.ndarray) -> float:
        """Seconds of a product with the matrix, roughly."""
        X = self.problem.X
        each = SPARSE_PRODUCT if isinstance(X, CSR) else DENSE_PRODUCT[dtype_of(X)]
        return active.size * self.problem.values_per_row * each

    def _diagonal(self, active: np.ndarray, bend: np.ndarray) -> Map:
        """The function that divides by the diagonal of the matrix."""
        diagonal = self.penalty.copy()
        hessian_diagonal(self.problem.X, active, bend, diagonal)
        return lambda v: v / diagonal

    def _factor(self, way: Way, active: np.ndarray, bend: np.ndarray) -> Map:
        """Factor in the given way; the function that applies the inverse, or, when that fails, the diagonal's."""
        try:
            if way.plan is not None:
                factor = self.sampled if way.name == SAMPLED else self.features
                factor.update(way.plan)
                return factor.solve
            if way.name == "heaviest rows":
                weight = bend[active] * self.problem.norms[active]
                active = np.sort(active[np.argpartition(-weight, self.most_rows)[: self.most_rows]])
            self.rows.update(active, bend)
            return self.rows.solve
        except np.linalg.LinAlgError:
            return self._diagonal(active, bend)
