"""Newton's equations of rows in memory, one score a row, solved in the cheapest of three ways.

    features   the matrix over features, of all rows that bend or a share of them, factored
    rows       fewer rows bend than there are features: a factor over these rows (Woodbury)
    products   conjugate gradients with the diagonal as preconditioner, which need no matrix

The factor of a share with many rows a feature solves the equations alone. That of a smaller share
is the preconditioner of conjugate gradients: with r rows a feature, the eigenvalues of its matrix
lie between (1 - r^-1/2)^2 and (1 + r^-1/2)^2 times those of the whole (Marchenko and Pastur 1967),
so that each iteration divides the error by r^1/2. The rows of a share are drawn in proportion to
what they add to the matrix: at large C a few rows carry most of the logistic loss's curvature.

A factor of all rows that bend serves on while few of them change: it then is the preconditioner of
conjugate gradients with the present matrix, which take an iteration for each row that has changed,
or fewer. Conjugate gradients with the diagonal are tried first where they may be much cheaper than
a factor.

Source: Nocedal and Wright (2006), "Numerical optimization", algorithm 5.3; Keerthi and DeCoste
(2005), "A modified finite Newton method for fast solution of large scale linear SVMs".
"""

from __future__ import annotations

import math
from copy import copy
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs

from saddlesvm.problem.problem import Problem
from saddlesvm.rows.matrix import pieces
from saddlesvm.rows.places import Memory
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.equations import (
    FEW_FEATURES,
    MOST_PRODUCTS,
    PER_FEATURE,
    RAISED,
    ROWS_PER_PASS,
    Equations,
    cholesky,
    conjugate_gradients,
    draw,
)
from saddlesvm.solvers.task import EvaluatedPoint, Task, each_of_few, pull_of, score_all

# Factors.
MOST_SIDE = 5000  # features or rows of a factor at most: 200 MB; guessed
SIDE_BYTES = 40.0  # bytes of a factor for each entry: the matrix, its factor, copies; derived
SPANNING = 0.8  # rows a feature above which a factor over rows is badly conditioned; guessed
# As ROWS_PER_PASS, for sparse rows: their matrix then takes two or three passes; measured on a9a.
SPARSE_ROWS_PER_PASS = 24.0

# Operations a second, whose ratios choose the way: of the BLAS, of its products X'X (which it
# computes by halves), and of loops over sparse values. Measured on a core.
BLAS_SPEED = 3e10
SQUARES_SPEED = 6e10
LOOP_SPEED = 1e9
DENSE_SPEED = 2.5e10  # bytes of dense rows a second, read by the BLAS; measured, 784 features
CALL_SECONDS = 1e-5  # seconds of a call; guessed

# Conjugate gradients.
FORCING = 0.1  # relative residual at which they stop: every step is searched exactly; guessed
FIRST_SHARE = 0.5  # they are tried first, for this share of a factor's seconds; guessed
LEAST_PRODUCTS = 10  # but only if the share allows so many products; guessed
FIRST_PRODUCTS = 4.0  # products that are expected at least; guessed
TYPICAL_PRODUCTS = 50.0  # products that are expected at most; guessed
LEAST_DIAGONAL = 1e-12  # added to the diagonal that they divide by; guessed

# A factor of an earlier point is the preconditioner for at most PATIENCE iterations, if a share of
# at most MOST_CHANGED of the rows has a bend that changed by the factor CHANGED or more; guessed.
PATIENCE = 15
CHANGED = 3.0
MOST_CHANGED = 0.1

# Rows a feature of a share whose factor is a preconditioner: more rows save iterations. The
# cheapest of these is taken; guessed.
SHARE_ROWS_PER_FEATURE = (2, 4, 16)
EVEN_PART = 0.5  # part of a share's rows that is drawn with the same odds for all; guessed
LARGEST_SHARE = 0.5  # largest such share of the rows that bend; guessed
FLOAT32_TIME = 0.6  # seconds of products in float32 for those in float64; measured, 784 features

# The ways, in the words of a trace.
PRODUCTS = "conjugate gradients"
FEATURES = "features"
SHARE = "features, a share of the rows"
ROWS = "rows"


class Way(NamedTuple):
    """A way to factor the matrix.

    Attributes
    ----------
    name : {FEATURES, SHARE, ROWS}
    seconds : float
        What it takes, roughly.
    n_rows : int
        Rows that the factor is made of.
    """

    name: str
    seconds: float
    n_rows: int


# The way if no factor is small enough.
NO_FACTOR = Way(PRODUCTS, np.inf, 0)


class FeatureFactor:
    """Cholesky of the matrix over features.

    Parameters
    ----------
    place : Memory
    ridge : ndarray of shape (d + 1,)
    is_coarse : bool
        True if single precision is enough.

    Attributes
    ----------
    bends : ndarray of shape (n,)
        The bends of all rows that the matrix is made of; of shape (0,) before the first one.
    largest : float
        The largest of them.
    matrix : ndarray of shape (d + 1, d + 1)
        ``sum_i bend_i x_i x_i' / largest``.
    """

    def __init__(self, place: Memory, ridge: np.ndarray, is_coarse: bool) -> None:
        self.place = place
        self.ridge = ridge
        self.is_coarse = is_coarse
        self.bends = np.empty(0)
        self.largest = 1.0
        self.matrix = np.empty((0, 0))

    def count_changed(self, bends: np.ndarray) -> int:
        """Return how many rows :meth:`update` adds or subtracts for the bends of all rows."""
        return min(int(np.count_nonzero(bends)), self.find_changes(bends)[0].size)

    def update(self, bends: np.ndarray) -> None:
        """Factor the matrix for the bends of all rows; add only rows whose relative one changed."""
        rows = np.flatnonzero(bends)
        if self.place.is_sparse:
            # Finding the changes would take as long as the sum over all rows.
            self.factor_rows(rows, bends[rows])
            return
        largest = float(bends.max())
        changed, change = self.find_changes(bends)
        # Of the first matrix, relative bends may be too small for a number: nothing has changed.
        if self.matrix.size and changed.size < rows.size:
            # Only products of rows with positive factors have square roots: two sums.
            rises = change > 0.0
            falls = ~rises
            self.matrix += self.place.gram(changed[rises], change[rises], self.kind)
            self.matrix -= self.place.gram(changed[falls], -change[falls], self.kind)
        else:
            self.matrix = self.place.gram(rows, bends[rows] / largest, self.kind)
        self.bends = bends
        self.largest = largest
        self.factor_matrix(largest * self.matrix)

    def find_changes(self, bends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows whose bends, relative to the largest one, changed, and by how much."""
        largest = float(bends.max())
        rows = []
        changes = []
        # Some rows at a time: no further array of all rows is made.
        for some in pieces(bends.size):
            change = bends[some] / largest
            if self.bends.size:
                change -= self.bends[some] / self.largest
            changed = np.flatnonzero(change)
            rows.append(some.start + changed)
            changes.append(change[changed])
        return np.concatenate(rows), np.concatenate(changes)

    def factor_rows(self, rows: np.ndarray, bends: np.ndarray) -> None:
        """Factor the matrix of some rows, with a bend each."""
        self.factor_matrix(self.place.gram(rows, bends, self.kind))

    @property
    def kind(self) -> type:
        """Return the precision in which products of rows are summed."""
        return np.float32 if self.is_coarse else np.float64

    def factor_matrix(self, matrix: np.ndarray) -> None:
        """Add the ridge to a matrix, and factor it."""
        # A sum of products x_ij x_ik rounds in proportion to the root of both diagonal places.
        raised = RAISED[self.is_coarse] * self.ridge.size * matrix.diagonal()
        matrix.flat[:: self.ridge.size + 1] += self.ridge + raised
        self.factor = cholesky(matrix)

    def solve(self, target: np.ndarray) -> np.ndarray:
        """Return the inverse of the matrix times a vector."""
        solved: np.ndarray = dpotrs(self.factor, target, lower=1)[0]
        return solved


class RowFactor:
    """The inverse of the matrix by way of the rows that bend (the identity of Woodbury).

    With ``B = C diag(bend)``, the rows X without the intercept's feature c, and D = (u, b):

        u = v - X's,    s = s0 + b t,    (X X' + B^-1) s0 = X v,    (X X' + B^-1) t = c 1,
        b = (v_last - c sum s0) / (ridge + c sum t).

    Parameters
    ----------
    few : Memory
        The rows that bend.
    bends : ndarray of shape (m,)
        C times their second derivatives.
    ridge : float
        Of the intercept.
    """

    def __init__(self, few: Memory, bends: np.ndarray, ridge: float) -> None:
        # The same rows, read in double precision.
        few = copy(few)
        few.widen()
        matrix = few.inner_products()
        matrix.flat[:: few.n + 1] += 1.0 / bends
        self.few = few
        self.ridge = ridge
        self.factor = cholesky(matrix)
        self.constant_solution = self.over_rows(np.full(few.n, few.constant))

    def over_rows(self, target: np.ndarray) -> np.ndarray:
        """Return the inverse of the factored matrix times a vector over the rows."""
        solved: np.ndarray = dpotrs(self.factor, target, lower=1)[0]
        return solved

    def solve(self, target: np.ndarray) -> np.ndarray:
        """Return the inverse of the matrix times a vector over the features."""
        few = self.few
        # s0: the rows against the target without its intercept.
        features_only = target.copy()
        features_only[-1] = 0.0
        target_solution = self.over_rows(score_all(few, features_only))
        # b, the intercept's part; then s = s0 + b t, and u = v - X's.
        last = target[-1] - few.constant * target_solution.sum()
        last /= self.ridge + few.constant * self.constant_solution.sum()
        row_solution = target_solution + last * self.constant_solution
        found = target - pull_of(few, row_solution)
        found[-1] = last
        return found


class MemoryEquations(Equations):
    """Newton's equations of a task with one score a row, at one point after the other.

    Parameters
    ----------
    task : Task

    Attributes
    ----------
    bent : int
        Number of rows that bend.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.machine = task.machine
        # R of a free intercept is zero, but has to be positive if no row bends.
        self.ridge = np.maximum(task.ridge, task.least_ridge)
        self.secants: list[tuple[np.ndarray, np.ndarray]] = []
        self.factor: FeatureFactor | RowFactor | None = None
        self.factored_bends = np.empty(0)  # the bends of all rows that the factor was made for
        self.bends = np.empty(0)
        self.known_rows: np.ndarray | None = None
        self.bent = 0
        self.gathered: Memory | None = None
        self.is_stiff = False  # products alone did not solve the last equations
        self.takes_shares = True  # no factor of a share has failed as a preconditioner
        self.way = ""
        self.forcing = FORCING
        # The factor is that of a share of the rows, and solves the equations alone.
        self.is_share = False
        # The factor is that of all rows that bend at this point.
        self.is_exact = False

    def renew(self, point: EvaluatedPoint, centre: np.ndarray, q: float, fineness: float) -> None:
        """Take the curvature at a point; factor it if a share of the rows is enough.

        Parameters
        ----------
        point : EvaluatedPoint
        centre, q
            The proximal term.
        fineness : float
            1 at first; larger for a curvature of more rows, in double precision.
        """
        task = self.task
        place = task.place
        bends = np.empty(place.n)

        def bend(some: slice) -> None:
            bends[some] = task.machine.bend(some, point.Z[some], point.A[some], centre, q)

        each_of_few(task, bend)
        bends *= task.C
        self.take_bends(bends)
        if place.d < min(FEW_FEATURES, task.most_side):
            # So many rows are enough for the matrix.
            enough = enough_rows(place.n, place.d, place.values_per_row, place.is_sparse)
            count = int(fineness * enough)
            if 2 * count <= self.bent:
                is_coarse = fineness == 1.0 and q == 0.0
                self.factor = self.factor_of_share(count, is_coarse)
                self.is_share = True
                self.way = SHARE
                # The factor alone solves the equations: the memory of all rows' bends is given
                # back.
                self.factored_bends = np.empty(0)
                self.bends = np.empty(0)

    def factor_of_share(self, count: int, is_coarse: bool) -> FeatureFactor:
        """Return the factor over features of about `count` rows, with the weight of all."""
        # Rows are drawn in proportion to what they add to the trace, so that no huge one is missed,
        # and some of the rows that bend evenly, so that a few huge ones are not all.
        odds = self.bends * self.task.norms
        odds *= (1.0 - EVEN_PART) / odds.sum()
        np.add(odds, EVEN_PART / self.bent, out=odds, where=self.bends > 0.0)
        some, parts = draw(odds, count)
        bends = self.bends[some] * (parts / odds[some])
        del odds
        factor = FeatureFactor(self.task.place, self.ridge, is_coarse)
        factor.factor_rows(some, bends)
        return factor

    def take_bends(self, bends: np.ndarray) -> None:
        """Begin anew with C times the second derivatives of all rows; the last factor is kept."""
        self.secants = []
        self.gathered = None
        self.known_rows = None
        self.bent = int(np.count_nonzero(bends > 0.0))
        self.bends = bends
        self.is_share = False
        self.is_exact = False

    @property
    def rows(self) -> np.ndarray:
        """Return the numbers of the rows that bend, found once a point."""
        if self.known_rows is None:
            self.known_rows = np.flatnonzero(self.bends > 0.0)
        return self.known_rows

    @property
    def serves(self) -> bool:
        """Return True if the factor may serve for more than one step, corrected by the secants."""
        # If the derivative of a loss has corners, other rows bend after each step.
        return self.is_share or (self.way == FEATURES and not self.machine.cornered)

    def inverse(self, target: np.ndarray) -> np.ndarray:
        """Solve the equations at their point, as far as a step needs."""
        if self.is_share:
            assert self.factor is not None
            return self.factor.solve(target)
        if not self.bent:
            # Only the regulariser bends.
            return target / self.ridge
        if self.is_exact:
            # The factor of the last step, corrected by the secants.
            assert self.factor is not None
            return self.factor.solve(target)
        cheapest = self.cheapest_way()
        way = cheapest.name
        seconds = cheapest.seconds
        self.way = way

        # 1. The factor of an earlier point as preconditioner, if nearly the same rows bend: for no
        # longer than a new factor would take, and only if that is expensive or no better.
        tries = int(min(PATIENCE, seconds / self.product_seconds()))
        former = None
        if way == SHARE or tries == PATIENCE:
            former = self.factor
        if former is not None and self.count_changed() <= MOST_CHANGED * self.bent:
            D, is_solved = conjugate_gradients(
                self.multiply, former.solve, target, tries, self.forcing
            )
            if is_solved:
                return D

        # 2. Conjugate gradients with the diagonal, as long as they may be much cheaper than a
        # factor. They are not tried again if they failed at the last point.
        tries = MOST_PRODUCTS
        if way != PRODUCTS:
            tries = int(FIRST_SHARE * seconds / self.product_seconds())
        if way == PRODUCTS or (tries >= LEAST_PRODUCTS and not self.is_stiff):
            curvature = self.task.place.diagonal(self.rows, self.bends[self.rows])
            diagonal = self.ridge + LEAST_DIAGONAL + curvature
            D, is_solved = conjugate_gradients(
                self.multiply, lambda residual: residual / diagonal, target, tries, self.forcing
            )
            self.is_stiff = not is_solved
            if is_solved or way == PRODUCTS:
                self.way = PRODUCTS
                return D

        # 3. A new factor; the memory of the earlier one is given back.
        former = None
        return self.solve_by_factor(way, cheapest.n_rows, target)

    def solve_by_factor(self, way: str, count: int, target: np.ndarray) -> np.ndarray:
        """Solve the equations by a new factor.

        Parameters
        ----------
        way : {FEATURES, SHARE, ROWS}
        count : int
            Rows of a share.
        target : ndarray of shape (d + 1,)
        """
        self.factored_bends = self.bends
        if way == FEATURES:
            exact = self.exact_factor() or FeatureFactor(self.task.place, self.ridge, False)
            self.factor = exact
            exact.update(self.bends)
            self.is_exact = True
            return exact.solve(target)
        # The memory of the last factor is given back first.
        self.factor = None
        most = PATIENCE
        if way == SHARE:
            self.factor = self.factor_of_share(count, True)
            most = MOST_PRODUCTS
        else:
            # This factor subtracts vectors over features, in which digits cancel: an iteration or
            # two with the exact matrix bring them back.
            self.factor = RowFactor(self.gather(), self.bends[self.rows], float(self.ridge[-1]))
        D, is_solved = conjugate_gradients(
            self.multiply, self.factor.solve, target, most, self.forcing
        )
        if way == SHARE and not is_solved and not time_is_up():
            # A few rows, too large to be missed, were not in the share.
            self.takes_shares = False
            self.way = FEATURES
            return self.solve_by_factor(FEATURES, self.bent, target)
        return D

    def count_changed(self) -> int:
        """Return the number of rows whose bend has changed much since the factor was made."""
        if not self.factored_bends.size:
            return self.bent
        higher = self.bends > CHANGED * self.factored_bends
        lower = self.factored_bends > CHANGED * self.bends
        return int(np.count_nonzero(higher | lower))

    def cheapest_way(self) -> Way:
        """Return the factor that likely takes the fewest seconds."""
        place = self.task.place
        exact = self.exact_factor()
        changed = self.bent
        if exact is not None:
            changed = exact.count_changed(self.bends)
        ways = list_ways(
            place.d,
            self.bent,
            changed,
            place.values_per_row,
            self.value_bytes,
            self.task.most_side,
        )
        if not self.takes_shares:
            ways = [each for each in ways if each.name != SHARE]
        return min(ways, key=attrgetter("seconds"), default=NO_FACTOR)

    def exact_factor(self) -> FeatureFactor | None:
        """Return the factor of all rows over features, if it was the last one."""
        factor = self.factor
        if self.is_share or not isinstance(factor, FeatureFactor) or factor.is_coarse:
            return None
        return factor

    def product_seconds(self) -> float:
        """Return the rough seconds of a product with the matrix."""
        return seconds_of_product(self.bent, self.task.place.values_per_row, self.value_bytes)

    @property
    def value_bytes(self) -> int:
        """Return the bytes of a value of dense rows; 0 if rows are sparse."""
        place = self.task.place
        if place.is_sparse:
            return 0
        return place.kind.itemsize

    def gather(self) -> Memory:
        """Return the rows that bend, copied once a point."""
        if self.gathered is None:
            self.gathered = self.task.place.take(self.rows)
        return self.gathered

    def multiply(self, D: np.ndarray) -> np.ndarray:
        """Multiply by the matrix, in a pass over the rows that bend."""
        place = self.task.place
        bends = self.bends[self.rows]
        if place.is_sparse:
            return self.ridge * D + place.multiply(self.rows, bends, D)
        # If all rows bend, they are read where they are. Float32 sums do for iterations.
        few = place if self.bent == place.n else self.gather()

        def add_block(part: slice, block: Any, curved: np.ndarray) -> None:
            curved += few.pull(block, bends[part] * few.scores(block, D))

        return self.ridge * D + few.sum_blocks(add_block, D.shape)


def list_ways(
    features: int,
    rows: int,
    changed: int,
    values_per_row: float,
    value_bytes: int,
    most: int = MOST_SIDE,
) -> list[Way]:
    """Return the ways to factor the matrix whose factors are small enough, with their seconds.

    Parameters
    ----------
    features, rows : int
        Numbers of features, and of the rows that bend.
    changed : int
        Rows that the matrix over features gains or loses.
    values_per_row : float
    value_bytes : int
        Bytes of a value of dense rows; 0 if rows are sparse.
    most : int
        Features or rows of a factor at most.
    """
    is_sparse = not value_bytes
    # Operations for each row of the matrix over features, and for each pair of rows.
    side = features + 1.0
    outer = side * side / SQUARES_SPEED
    inner = 2.0 * values_per_row / BLAS_SPEED
    if is_sparse:
        outer = min(outer, 0.5 * values_per_row**2 / LOOP_SPEED)
        # About a tenth of the features of two rows coincide; a guess.
        inner = 0.1 * values_per_row / LOOP_SPEED
    # The matrix, and a third of the cube of its side for Cholesky.
    found: list[Way] = []
    if side <= most:
        factor = side**3 / (3.0 * BLAS_SPEED)
        found.append(Way(FEATURES, changed * outer + factor, rows))
        # A share of sparse rows misses rare features: none is taken.
        shares: tuple[int, ...] = SHARE_ROWS_PER_FEATURE
        if is_sparse:
            shares = ()
        for per_feature in shares:
            count = int(per_feature * side)
            if count <= LARGEST_SHARE * rows:
                # Conjugate gradients bring the error to 2 per_feature^(-k/2) in k iterations.
                iterations = math.ceil(2.0 * math.log(2.0 / FORCING) / math.log(per_feature))
                # To gather the rows that bend takes as long as a product.
                product = seconds_of_product(rows, values_per_row, value_bytes)
                products = (iterations + 1) * product
                seconds = count * outer * FLOAT32_TIME + factor + products
                found.append(Way(SHARE, seconds, count))
    if rows <= min(most, SPANNING * side):
        found.append(Way(ROWS, rows * rows * inner + rows**3 / (3.0 * BLAS_SPEED), rows))
    return found


def largest_side(memory: float) -> int:
    """Return the most features or rows of a factor that takes no more bytes."""
    return min(MOST_SIDE, math.isqrt(int(memory / SIDE_BYTES)))


def expected_seconds(problem: Problem, rows: int, condition: float, memory: float) -> float:
    """Return the rough seconds of the equations of so many rows that bend.

    Parameters
    ----------
    problem : Problem
    rows : int
    condition : float
        The median second derivative times the squared norm: its root says how many products
        conjugate gradients take.
    memory : float
        Bytes that factors may take.
    """
    features = problem.n_features
    values = problem.values_per_row
    most = largest_side(memory)
    iterations = min(FIRST_PRODUCTS + math.sqrt(condition), TYPICAL_PRODUCTS)
    value_bytes = 0 if problem.sparse else problem.X.dtype.itemsize
    by_products = iterations * seconds_of_product(rows, values, value_bytes)
    if features < min(FEW_FEATURES, most):
        # A share of the rows is enough for the matrix.
        rows = min(rows, enough_rows(problem.members.size, features, values, problem.sparse))
    ways = list_ways(features, rows, rows, values, value_bytes, most)
    found = [each.seconds for each in ways]
    # If other rows bend after each step, products take too many iterations to be counted on.
    if problem.is_cornerless or not found:
        found.append(by_products)
    return min(found)


def enough_rows(n: int, features: int, values_per_row: float, is_sparse: bool) -> int:
    """Return how many rows are enough for the matrix over features."""
    # As many as form their matrix in the time of a pass, and some for each feature.
    rows_per_pass = ROWS_PER_PASS
    if is_sparse:
        rows_per_pass = SPARSE_ROWS_PER_PASS
    free = rows_per_pass * n / max(1.0, values_per_row)
    return int(max(PER_FEATURE * (features + 1), free))


def seconds_of_product(rows: int, values_per_row: float, value_bytes: int) -> float:
    """Return the rough seconds of a product with the matrix: two readings of the rows.

    `value_bytes` are those of a value of dense rows; 0 if rows are sparse.
    """
    # Values a second.
    speed = LOOP_SPEED
    if value_bytes:
        speed = DENSE_SPEED / value_bytes
    return 2.0 * rows * values_per_row / speed + CALL_SECONDS
