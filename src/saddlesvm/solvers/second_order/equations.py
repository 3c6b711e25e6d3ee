"""Newton's equations ``(R + X_J' B_J X_J) d = r`` for the rows J that bend, solved in the cheapest way.

With few features: Cholesky of the matrix itself, or, where there are many more rows than features, of the matrix of a
random sample of the rows. With few active rows: Cholesky of ``X_J R^-1 X_J' + B_J^-1``. Otherwise, or where factors
cost much more than products with the matrix: conjugate gradients. An exact factor over features solves the equations
alone; with any other factor as the preconditioner, conjugate gradients solve them on the exact matrix (Nocedal and
Wright 2006, algorithm 5.3). A factor over rows takes one iteration, or two where rounding asks for refinement; the
factor of a sample, or of an earlier matrix, takes a few.

A sample of k rows per feature brings the condition of any matrix down to about ``((1 + r) / (1 - r))^2`` with
``r = k^-1/2`` (Avron, Maymounkov and Toledo 2010, "Blendenpik: supercharging LAPACK's least-squares solver").

R is one, except for the weight of a free intercept, where it is a number much smaller than the data.
Memory: blocks of rows in float64, the factors within a stated number of bytes, never a widened copy of X.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import CSR, dtype_of
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.durable import Group, demand, stored
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.costs import SPARSE_COST
from saddlesvm.solvers.second_order.conjugate import Map, conjugate_gradients
from saddlesvm.solvers.second_order.factors import FeatureFactor, RowFactor, Update
from saddlesvm.solvers.second_order.first_point import ranks
from saddlesvm.solvers.second_order.kernels import NEGLIGIBLE, hessian_diagonal, hessian_product
from saddlesvm.solvers.second_order.linear_algebra import BLAS_SPEED, Threads

BYTES = 36.0  # per place of the matrix over features: the sum, the matrix and its factor; those of a sample
FREE_PENALTY = 1e-8  # R of a free intercept: positive, so that nothing is divided by zero where no row is active
PLAIN_SHARE = 0.5  # share of a factor's cost that plain conjugate gradients may take before the factor is made
PATIENCE = 10  # iterations of plain conjugate gradients that this share must allow, or they are not tried
MOST_ITERATIONS, TYPICAL_ITERATIONS = 1000, 50  # iterations of conjugate gradients
FIRST_ITERATIONS, PER_ROOT = 4.0, 1.0  # iterations expected: the least, and per root of the matrix' condition
FEW = 0.8  # active rows per feature above which a factor over rows is too badly conditioned, whatever its cost
NOTHING = 2e-5  # seconds: a factor over features that takes less is used without a look at other ways
# Seconds per value of an active row, in a product with the matrix.
DENSE_PRODUCT = {np.dtype(np.float32): 2.5e-10, np.dtype(np.float64): 5e-10}
TOO_MANY = 15  # iterations of conjugate gradients with the factor of a sample, at most
DIGITS = 4.0  # log of the factor by which they reduce the error; each reduces it by the root of the rows per feature
SAMPLE, LARGER = 4.0, 2.0  # rows per feature of the smallest sample; growth of this number from one sample to the next
HEAVIEST = 2.0  # active rows, per row of a factor of the heaviest ones, up to which that factor helps
PLAIN, SAMPLED = "conjugate gradients", "features, a sample of rows"


def penalty_of(problem: Problem) -> np.ndarray:
    """The diagonal of R, positive, shape (d + 1,)."""
    penalty = problem.regularizer.curvature(np.zeros(problem.n_features + 1))
    if problem.intercept.constrained:
        penalty[-1] = FREE_PENALTY
    return penalty


class Way(NamedTuple):
    """A way to solve the equations: its name, its rough cost in seconds, and the update of a factor over features."""

    name: str
    cost: float
    plan: Update | None = None


@dataclass
class NewtonEquations(Group):
    """Solves Newton's equations of one problem again and again; holds the factors between the calls.

    Parameters
    ----------
    problem : Problem
    memory : float
        Bytes that the factors may take.
    seed : int, default=0
        Seed of the samples of the rows.

    Attributes
    ----------
    below : float
        The equations are about the rows whose rank is below this; 1 for all rows, less for a sample.
    """

    __stored__ = stored(
        "seed", "way", "iterations", "stiff", "cost", "sample", "below",
        features={"prefix": "features_"}, sampled={"prefix": "sampled_"}, rows={"prefix": "rows_"},
    )  # fmt: skip
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
        self.penalty = penalty_of(problem)
        room = self.memory if problem.passes.holds_rows else 0.0  # factors are made of single rows, products of passes
        self.most_features = math.isqrt(int(room / BYTES))
        self.most_rows = math.isqrt(int(room / 42.0))  # two pools while one grows, the matrix, its factor
        threads = Threads(problem.threads, self.memory - BYTES * self.penalty.size**2)
        self.features = FeatureFactor(problem.X, self.penalty, count, threads=threads)
        self.sampled = FeatureFactor(problem.X, self.penalty, count, np.float32, threads)
        self.rows = RowFactor(problem.X, self.penalty, count)

    def renew(self) -> None:
        """Make again what a checkpoint does not hold."""
        self.rows.renew()
        for factor in (self.features, self.sampled):
            demand(factor.sum.shape in ((0, 0), 2 * (self.penalty.size,)), "its matrix is of other features")
            factor.sum = np.asfortranarray(factor.sum)

    @cached_property
    def rank(self) -> np.ndarray:
        """The rank of each row, by which samples are drawn."""
        return ranks(self.problem.y.size, self.seed)

    def solve(self, bend: np.ndarray, rhs: np.ndarray, forcing: float) -> np.ndarray:
        """The direction d; its residual is at most `forcing` times the right hand side, in the preconditioner's norm.

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
        """Try plain conjugate gradients while they may be cheaper than the factor, then use the factor."""
        matrix, direction, solved = self.products(active, bend), np.zeros_like(rhs), False
        plain = way.name == PLAIN
        affordable = min(int(PLAIN_SHARE * way.cost / self._product_cost(active)), MOST_ITERATIONS)
        patience = MOST_ITERATIONS if plain else affordable
        if plain or (patience >= PATIENCE and not self.stiff):
            self.way = PLAIN
            direction, self.iterations, solved = conjugate_gradients(
                matrix, self.diagonal(active, bend), rhs, direction, forcing, patience
            )
            self.stiff = not solved
        if not solved and not plain and not (direction.any() and time_is_up(way.cost)):
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
        """Rough seconds of :meth:`solve` without a proximal term: those of the cheapest way, or of plain conjugate
        gradients where these are likely to be cheaper still.
        """
        cost = self.cheapest(active, bend).cost
        condition = float(np.median(bend[active] * self.problem.norms[active]))
        iterations = min(FIRST_ITERATIONS + PER_ROOT * math.sqrt(condition), TYPICAL_ITERATIONS)
        return cost if self.stiff else min(cost, iterations * self._product_cost(active))

    def cheapest(self, active: np.ndarray, bend: np.ndarray) -> Way:
        """The cheapest way that fits into the memory.

        Where no factor fits, that is conjugate gradients with the diagonal as the preconditioner.
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
        """The ways over features that fit into the memory: with all active rows, and with samples of them."""
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
        """Rough seconds of a product with the matrix."""
        X = self.problem.X
        each = SPARSE_COST if isinstance(X, CSR) else DENSE_PRODUCT[dtype_of(X)]
        return active.size * self.problem.values_per_row * each

    def products(self, active: np.ndarray, bend: np.ndarray) -> Map:
        """The function that multiplies with the matrix."""
        passes = self.problem.passes.among(active)

        def matrix(v: np.ndarray) -> np.ndarray:
            def of_part(part: Part, out: np.ndarray) -> None:
                hessian_product(part.X, part.rows, part.of(bend), v, out)

            return self.penalty * v + passes.total(of_part, v.size)

        return matrix

    def diagonal(self, active: np.ndarray, bend: np.ndarray) -> Map:
        """The function that divides by the diagonal of the matrix."""

        def of_part(part: Part) -> np.ndarray:
            own = np.zeros_like(self.penalty) if part.place.start else self.penalty.copy()
            hessian_diagonal(part.X, part.rows, part.of(bend), own)
            return own

        diagonal = functools.reduce(operator.iadd, self.problem.passes.among(active).each(of_part))
        return lambda v: v / diagonal

    def _factor(self, way: Way, active: np.ndarray, bend: np.ndarray) -> Map:
        """Factor in the given way; return the function that applies the inverse, or the diagonal's if that fails."""
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
            return self.diagonal(active, bend)
