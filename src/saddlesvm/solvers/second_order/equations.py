"""Newton's equations ``(R + X_J' B_J X_J) d = r`` for the rows J that bend, solved in the cheapest way.

With few features: Cholesky of the matrix itself, or, where there are many more rows than features, of the matrix of a
random sample of the rows. With few active rows: Cholesky of ``X_J R^-1 X_J' + B_J^-1``. Otherwise, or where factors
cost much more than products with the matrix: conjugate gradients. An exact factor over features solves the equations
alone; with any other factor as the preconditioner, conjugate gradients solve them on the exact matrix (Nocedal and
Wright 2006, algorithm 5.3). A factor over rows takes one iteration, or two where rounding asks for refinement; the
factor of a sample, or of an earlier matrix, takes a few. Losses without corners take the factor of a
large sample as it is, corrected by the last steps (:mod:`saddlesvm.solvers.second_order.secants`).

A sample of k rows per feature brings the condition of any matrix down to about ``((1 + r) / (1 - r))^2`` with
``r = k^-1/2`` (Avron, Maymounkov and Toledo 2010, "Blendenpik: supercharging LAPACK's least-squares solver").

R is one, except for the weight of a free intercept, where it is a number much smaller than the data.
Memory: blocks of rows in float64, the factors within a stated number of bytes, never a widen copy of X.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.problem import Problem
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.costs import value_cost
from saddlesvm.solvers.second_order.conjugate import MOST_ITERATIONS as MOST_ITERATIONS, Map, conjugate_gradients
from saddlesvm.solvers.second_order.factors import FeatureFactor, RowFactor, Update
from saddlesvm.solvers.second_order.first_point import PER_FEATURE, ranks, some_of
from saddlesvm.solvers.second_order.kernels import NEGLIGIBLE, hessian_diagonal, hessian_product
from saddlesvm.solvers.second_order.linear_algebra import BLAS_SPEED, Threads, factor_cost, squares_cost
from saddlesvm.solvers.second_order.secants import Secants

BYTES = 36.0  # per place of the matrix over features: the sum, the matrix and its factor; those of a sample
FREE_PENALTY = 1e-8  # R of a free intercept: positive, so that nothing is divided by zero where no row is active
PLAIN_SHARE = 0.5  # share of a factor's cost that plain conjugate gradients may take before the factor is made
PATIENCE = 10  # iterations of plain conjugate gradients that this share must allow, or they are not tried
TYPICAL_ITERATIONS = 50  # iterations of conjugate gradients
FIRST_ITERATIONS = 4.0  # iterations expected besides the root of the matrix' condition
SPANNING = 0.8  # active rows per feature above which they nearly span the features: a factor over rows is badly
# conditioned then, whatever its cost, and losses with corners in their derivative need no proximity
NOTHING = 2e-5  # seconds: a factor over features that takes less is used without a look at other ways
TOO_MANY = 15  # iterations of conjugate gradients with the factor of a sample, at most
DIGITS = 4.0  # log of the factor by which they reduce the error; each reduces it by the root of the rows per feature
# Rows per feature of the smallest sample; growth of this number from one sample to the next; samples to choose from (as
# many as there are where the last steps correct the factor, which then need not be made again).
SAMPLE, LARGER, SAMPLES = 4.0, 2.0, 3
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
class NewtonEquations:
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
    secants : Secants
        The last steps, which correct a factor that is not exact.
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
        self.penalty = penalty_of(problem)
        room = self.memory if problem.holds_rows else 0.0  # factors are made of single rows, products of passes
        self.most_features = math.isqrt(int(room / BYTES))
        self.most_rows = math.isqrt(int(room / 42.0))  # two pools while one grows, the matrix, its factor
        threads = Threads(problem.threads, self.memory - BYTES * self.penalty.size**2)
        self.features = FeatureFactor(problem.X, self.penalty, count, threads=threads)
        self.sampled = FeatureFactor(problem.X, self.penalty, count, np.float32, threads)
        self.rows = RowFactor(problem.X, self.penalty, count)
        self.secants = Secants()

    @cached_property
    def rank(self) -> np.ndarray:
        """The rank of each row, by which samples are drawn."""
        return ranks(self.problem.y.size, self.seed)

    def solve(self, bend: np.ndarray, rhs: np.ndarray, forcing: float, *, learns: bool = False) -> np.ndarray:
        """The direction d; its residual is at most `forcing` times the right hand side, in the preconditioner's norm.

        Where the caller `learns`, by telling :attr:`secants` of its steps, and the factor is that of a sample, the
        direction is that of the factor and the last steps, as long as such steps gain enough.

        Parameters
        ----------
        bend : ndarray of shape (n_all,)
            Second derivatives B, zero for rows outside J.
        rhs : ndarray of shape (d + 1,)
        forcing : float
        """
        self.iterations, self.cost = 0, 0.0
        if learns and self.secants.serves:
            again = self.secants.direction(rhs, self.sampled.solve)
            if again is not None:
                return again
        active = np.flatnonzero(bend * self.problem.norms > NEGLIGIBLE)
        if not active.size:
            self.way = "no active row"
            return rhs / self.penalty
        way = self.cheapest(active, bend, learns=learns)
        with blas_for(way.cost):
            found = self._corrected(way, active, bend, rhs) if learns else None
            direction = self._solve(way, active, bend, rhs, forcing) if found is None else found
        self.cost = self.iterations * self._product_cost(active.size) if self.way == PLAIN else way.cost
        return direction

    def _corrected(self, way: Way, active: np.ndarray, bend: np.ndarray, rhs: np.ndarray) -> np.ndarray | None:
        """The direction by the factor of a sample and the last steps; None where the factor is too coarse for it."""
        found = None
        enough = way.plan is not None and way.plan.active.size >= PER_FEATURE * self.penalty.size
        if way.name == SAMPLED and enough and not self._tries_plain(way, active):
            self.way, precondition = way.name, self._factor(way, active, bend)
            if precondition == self.sampled.solve:  # else the factor has failed
                found = self.secants.direction(rhs, precondition)
            if found is None:
                self.sample *= LARGER
        if found is None:
            self.secants.pause()
        return found

    def _tries_plain(self, way: Way, active: np.ndarray) -> bool:
        """Whether plain conjugate gradients may be so much cheaper than the factor that they are tried before it."""
        return not self.stiff and self._affordable(way, active) >= PATIENCE

    def _affordable(self, way: Way, active: np.ndarray) -> int:
        """Iterations of plain conjugate gradients that may precede the factor."""
        return min(int(PLAIN_SHARE * way.cost / self._product_cost(active.size)), MOST_ITERATIONS)

    def _solve(self, way: Way, active: np.ndarray, bend: np.ndarray, rhs: np.ndarray, forcing: float) -> np.ndarray:
        """Try plain conjugate gradients while they may be cheaper than the factor, then use the factor."""
        matrix, direction, solved = self.products(active, bend), np.zeros_like(rhs), False
        plain = way.name == PLAIN
        patience = MOST_ITERATIONS if plain else self._affordable(way, active)
        if plain or self._tries_plain(way, active):
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
        few = some_of(active)
        condition = float(np.median(bend[few] * self.problem.norms[few]))
        return self._or_plain(self.cheapest(active, bend).cost, active.size, condition)

    def expected_at_first(self, count: int, condition: float, *, learns: bool = False) -> float:
        """The same for the first equations, of `count` rows with equal second derivatives, many more than features;
        `condition` is the median of these times the squared norm."""
        size, per_row, product = self.penalty.size, self.problem.values_per_row, self._product_cost(count)
        cost, times = TYPICAL_ITERATIONS * product, self.sampled.factor.itemsize / self.features.factor.itemsize
        if size <= self.most_features:
            cost = squares_cost(self.problem.X, count, per_row) + factor_cost(size)
            for share, products in self._samples(count, product, cost, learns):
                rows = squares_cost(self.problem.X, int(share * count), per_row, times)
                cost = min(cost, rows + factor_cost(size, times) + products)
        return self._or_plain(cost, count, condition)

    def _or_plain(self, cost: float, count: int, condition: float) -> float:
        """The cost of a way, or that of plain conjugate gradients where it is likely to be less."""
        iterations = min(FIRST_ITERATIONS + math.sqrt(condition), TYPICAL_ITERATIONS)
        return cost if self.stiff else min(cost, iterations * self._product_cost(count))

    def cheapest(self, active: np.ndarray, bend: np.ndarray, *, learns: bool = False) -> Way:
        """The cheapest way that fits into the memory; larger samples count for a caller that `learns`.

        Where no factor fits, that is conjugate gradients with the diagonal as the preconditioner.
        """
        ways = self._over_features(active, bend, learns)
        if ways and ways[0].cost < NOTHING:
            return ways[0]
        if active.size <= self.most_rows and not (ways and active.size > SPANNING * self.penalty.size):
            ways.append(Way("rows", self.rows.cost(active, bend, self.problem.values_per_row)))
        if not ways and active.size <= HEAVIEST * self.most_rows:
            ways.append(Way("heaviest rows", self.most_rows**3 / (3.0 * BLAS_SPEED)))
        if not ways:
            ways.append(Way(PLAIN, TYPICAL_ITERATIONS * self._product_cost(active.size)))
        return min(ways, key=lambda way: way.cost)

    def _over_features(self, active: np.ndarray, bend: np.ndarray, learns: bool) -> list[Way]:
        """The ways over features that fit into the memory: with all active rows, and with samples of some sizes."""
        if self.penalty.size > self.most_features:
            return []
        per_row, product = self.problem.values_per_row, self._product_cost(active.size)
        plan = self.features.plan(active, bend[active])
        ways = [Way("features", self.features.cost(plan, per_row), plan)]
        for share, products in self._samples(active.size, product, ways[0].cost, learns):
            few = active[(self.rank if active.size == self.rank.size else self.rank[active]) < share * self.below]
            plan = self.sampled.plan(few, bend[few] / share)
            way = Way(SAMPLED, self.sampled.cost(plan, per_row) + products, plan)
            if learns and ways[-1].name == SAMPLED and way.cost > ways[-1].cost:
                break
            ways.append(way)
        return ways

    def _samples(self, count: int, product: float, most: float, learns: bool) -> Iterator[tuple[float, float]]:
        """The shares of `count` rows that samples may have, up to half, and what products with the matrix then cost:
        less than `most`."""
        for k in itertools.count() if learns else range(SAMPLES):
            per_feature = LARGER**k * self.sample
            share, products = per_feature * self.penalty.size / count, 2.0 * DIGITS / math.log(per_feature) * product
            if share > 0.5:
                return
            if products < most:
                yield 2.0 ** round(math.log2(share)), products

    def _product_cost(self, count: int) -> float:
        """Rough seconds of a product with the matrix of so many rows."""
        return count * self.problem.values_per_row * value_cost(self.problem.X)

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
