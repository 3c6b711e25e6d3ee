"""Newton's equations ``(R + X_J' B_J X_J) d = r`` for the rows J that bend, in whichever way is cheapest.

Few features: Cholesky of the matrix itself, kept up to date by the rows whose share changed. Few active rows: Cholesky
of ``X_J R^-1 X_J' + B_J^-1`` (the identity of Woodbury). Neither: conjugate gradients. Every way ends in conjugate
gradients on the exact matrix, with the factor as the preconditioner (Nocedal and Wright 2006, algorithm 5.3); an exact
factor makes that one iteration, and another one where rounding asks for refinement.

R is one, but for the weight of a free intercept, where it is a number that is small beside the data.
Memory: blocks of rows in float64, the factors within a stated number of bytes, never a widened copy of X.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dgemm, dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from saddlesvm.problem import Problem
from saddlesvm.rows import CSR, Rows, dot_rows, n_features
from saddlesvm.solvers.newton_kernels import (
    add_outer_sparse,
    combine,
    fill,
    gram_sparse,
    hessian_diagonal,
    hessian_product,
)

Map = Callable[[np.ndarray], np.ndarray]

FREE_PENALTY = 1e-8  # R of a free intercept, which is minimised over exactly elsewhere
BLOCK_VALUES = 2**20  # float64 values of a block of widened rows
NEGLIGIBLE = 1e-9  # bend times squared norm of a row that the Hessian can do without, beside R
KEEP = 0.3  # relative change of a row's share below which a factor keeps the old one
REBUILD = 0.7  # a sum over rows is formed anew when more than this share of them changed
SPARE = 1.25  # rows that the Gram matrix holds, beyond those in use
BLAS_SPEED, LOOP_SPEED = 3e10, 1e9  # operations a second, for comparing ways; only their ratio matters
PATIENCE = 10  # iterations of plain conjugate gradients that must be cheaper than a factor for them to be tried
MOST_ITERATIONS = 500


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """Lower factor of a Fortran-ordered positive definite matrix; the diagonal is raised where rounding asks for it.

    Raises
    ------
    numpy.linalg.LinAlgError
        The matrix is far from positive definite, or not finite.
    """
    diagonal = np.arange(matrix.shape[0])
    largest = float(matrix[diagonal, diagonal].max(initial=0.0))
    lift = 0.0
    while lift < 1e-4:
        work = matrix if lift == 0.0 else matrix.copy(order="F")
        work[diagonal, diagonal] += lift * largest
        factor, failed = dpotrf(work, lower=1, clean=0, overwrite_a=lift > 0.0)
        if not failed:
            return factor
        lift = max(1e-14, 100.0 * lift)
    raise np.linalg.LinAlgError("the Newton matrix is not positive definite")


def conjugate_gradients(
    matrix: Map, precondition: Map, rhs: np.ndarray, x: np.ndarray, forcing: float, most: int
) -> tuple[np.ndarray, int, bool]:
    """Preconditioned conjugate gradients from `x`; the solution, the iterations, and whether `forcing` was reached.

    Done when the residual, in the norm of the preconditioner, is at most `forcing` times the right hand side's.
    """
    residual = rhs - matrix(x) if x.any() else rhs.copy()
    z = precondition(residual)
    rho = float(residual @ z)
    target = forcing * forcing * float(rhs @ precondition(rhs)) if x.any() else forcing * forcing * rho
    p = z.copy()
    for iteration in range(1, most + 1):
        if not rho > target:
            return x, iteration - 1, True
        q = matrix(p)
        bend = float(p @ q)
        if not bend > 0.0:
            return x, iteration, True
        step = rho / bend
        x = x + step * p
        residual -= step * q
        z = precondition(residual)
        rho, before = float(residual @ z), rho
        p = z + (rho / before) * p
    return x, most, not rho > target


class FeatureFactor:
    """``R + unit sum_i share_i x_i x_i'`` over features: the sum is updated by the rows whose share changed."""

    def __init__(self, X: Rows, penalty: np.ndarray, count: int) -> None:
        self.X, self.penalty = X, penalty
        self.sum: np.ndarray | None = None
        self.share = np.zeros(count)
        self.unit = 1.0
        self.factor = np.empty((0, 0))

    def plan(self, bend: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, bool]:
        """The shares for `bend`, the rows to change, the unit, and whether to form the sum anew."""
        best: tuple[np.ndarray, np.ndarray, float] | None = None
        for unit in (float(bend.max()), self.unit):
            share = bend / unit
            changed = np.flatnonzero(np.abs(share - self.share) > KEEP * np.maximum(share, self.share))
            if best is None or changed.size < best[1].size:
                best = share, changed, unit
        assert best is not None
        active = np.flatnonzero(bend)
        if self.sum is None or best[1].size > REBUILD * active.size:
            unit = float(bend.max())
            return bend / unit, active, unit, True
        return *best, False

    def cost(self, bend: np.ndarray, values_per_row: float) -> float:
        """Seconds that :meth:`update` will take, roughly."""
        d = self.penalty.size
        changed = self.plan(bend)[1].size
        each = 0.5 * values_per_row**2 / LOOP_SPEED if isinstance(self.X, CSR) else d * d / BLAS_SPEED
        return changed * each + d**3 / (3.0 * BLAS_SPEED)

    def update(self, bend: np.ndarray) -> None:
        """Factor the matrix for these second derivatives (those that changed by little may stay as they were)."""
        share, changed, self.unit, anew = self.plan(bend)
        if anew:
            d = self.penalty.size
            self.sum, self.share = np.zeros((d, d), order="F"), np.zeros_like(share)
        change = share - self.share
        for sign in (1.0, -1.0):
            self._add(changed[sign * change[changed] > 0.0], sign, np.abs(change))
        self.share[changed] = share[changed]
        assert self.sum is not None
        matrix = self.unit * self.sum
        diagonal = np.arange(self.penalty.size)
        matrix[diagonal, diagonal] += self.penalty
        self.factor = cholesky(matrix)

    def _add(self, chosen: np.ndarray, sign: float, amount: np.ndarray) -> None:
        """``sum += sign sum over chosen i of amount_i x_i x_i'``, in its lower triangle."""
        assert self.sum is not None
        if isinstance(self.X, CSR):
            add_outer_sparse(self.X, chosen, sign * amount[chosen], self.sum.T)
            return
        for part in blocks(chosen, self.penalty.size):
            rows = widened(self.X, part, np.sqrt(amount[part]))
            self.sum = dsyrk(sign, rows.T, beta=1.0, c=self.sum, lower=1, overwrite_c=1)

    def solve(self, v: np.ndarray) -> np.ndarray:
        """The factored matrix's inverse times v."""
        return dpotrs(self.factor, v, lower=1)[0]


class RowFactor:
    """The inverse of ``R + X_J' B_J X_J`` by way of ``X_J R^-1 X_J' + B_J^-1``; the Gram matrix is kept and extended.

    A free intercept is eliminated last, so that its small R does not spoil the Gram matrix.
    """

    def __init__(self, X: Rows, penalty: np.ndarray, count: int) -> None:
        self.free = penalty[-1] != 1.0
        self.scale = X.bias
        self.X = X._replace(bias=0.0) if self.free else X
        self.penalty = penalty
        self.gram = np.empty((0, 0))
        self.pool = np.empty(0, dtype=np.int64)
        self.place = np.full(count, -1, dtype=np.int64)
        self.factor = np.empty((0, 0))
        self.active = self.pool
        self.answer = np.empty(0)

    def cost(self, active: np.ndarray, values_per_row: float) -> float:
        """Seconds that :meth:`update` will take, roughly."""
        new = int(np.count_nonzero(self.place[active] < 0))
        gram = new * active.size * values_per_row
        share = 0.1 / LOOP_SPEED if isinstance(self.X, CSR) else 2.0 / BLAS_SPEED
        return gram * share + active.size**3 / (3.0 * BLAS_SPEED)

    def update(self, active: np.ndarray, bend: np.ndarray) -> None:
        """Factor the matrix for these rows and second derivatives."""
        self._extend(active)
        self.active = active
        places = self.place[active]
        matrix = self.gram[np.ix_(places, places)]
        diagonal = np.arange(active.size)
        matrix[diagonal, diagonal] += 1.0 / bend[active]
        self.factor = cholesky(matrix.T)
        if self.free:
            self.answer = dpotrs(self.factor, np.full(active.size, self.scale), lower=1)[0]

    def _extend(self, active: np.ndarray) -> None:
        """Let the Gram matrix cover the active rows; rows out of use go when there are many."""
        new = active[self.place[active] < 0]
        if not new.size:
            return
        old = self.pool
        if old.size + new.size > SPARE * active.size:
            old = active[self.place[active] >= 0]
        places = self.place[old]
        pool = np.concatenate([old, new])
        gram = np.empty((pool.size, pool.size))
        gram[: old.size, : old.size] = self.gram[np.ix_(places, places)]
        gram[old.size :] = gram_block(self.X, new, pool)
        gram[: old.size, old.size :] = gram[old.size :, : old.size].T
        self.place[self.pool] = -1
        self.place[pool] = np.arange(pool.size)
        self.gram, self.pool = gram, pool

    def solve(self, v: np.ndarray) -> np.ndarray:
        """The factored matrix's inverse times v."""
        out = v.copy()
        if self.free:
            out[-1] = 0.0
        z = np.empty(self.active.size)
        dot_rows(self.X, self.active, out, z)
        s = dpotrs(self.factor, z, lower=1, overwrite_b=1)[0]
        if self.free:
            last = (v[-1] - self.scale * s.sum()) / (self.penalty[-1] + self.scale * self.answer.sum())
            s += last * self.answer
        combine(self.X, self.active, -s, out)
        if self.free:
            out[-1] = last
        return out


def blocks(chosen: np.ndarray, width: int) -> list[np.ndarray]:
    """`chosen` in parts whose widened rows hold about BLOCK_VALUES values."""
    size = max(16, BLOCK_VALUES // width)
    return [chosen[k : k + size] for k in range(0, chosen.size, size)]


def widened(X: Rows, chosen: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The chosen rows times factors, float64, shape (chosen, d + 1)."""
    out = np.empty((chosen.size, n_features(X) + 1))
    fill(X, chosen, factors, out)
    return out


def gram_block(X: Rows, chosen: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """``x_i . x_l`` for the chosen i and the l in the pool, float64, shape (chosen, pool)."""
    out = np.empty((chosen.size, pool.size))
    if isinstance(X, CSR):
        whole = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.indptr.size - 1, X.n_features), copy=False)
        columns = whole[pool].tocsc()
        gram_sparse(X, chosen, columns.data, columns.indices, columns.indptr, out)
        return out
    width = n_features(X) + 1
    done = 0
    for part in blocks(chosen, width):
        left = widened(X, part, np.ones(part.size))
        reached = 0
        for other in blocks(pool, width):
            right = widened(X, other, np.ones(other.size))
            out[done : done + part.size, reached : reached + other.size] = dgemm(1.0, left.T, right.T, trans_a=1)
            reached += other.size
        done += part.size
    return out


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

        Raises
        ------
        numpy.linalg.LinAlgError
            The matrix is not positive definite or not finite.
        """
        X, self.iterations = self.problem.X, 0
        active = np.flatnonzero(bend * self.problem.norms > NEGLIGIBLE)
        if not active.size:
            self.way = "no active row"
            return rhs / self.penalty

        def matrix(v: np.ndarray) -> np.ndarray:
            out = self.penalty * v
            hessian_product(X, active, bend, v, out)
            return out

        way, cost = self._cheapest(active, bend)
        direction, solved = np.zeros_like(rhs), False
        patience = int(cost * LOOP_SPEED / (4.0 * active.size * self.problem.values_per_row))
        if patience >= PATIENCE and not self.stiff:
            self.way = "conjugate gradients"
            diagonal = self.penalty.copy()
            hessian_diagonal(X, active, bend, diagonal)
            direction, self.iterations, solved = conjugate_gradients(
                matrix, lambda v: v / diagonal, rhs, direction, forcing, min(patience, MOST_ITERATIONS)
            )
            self.stiff = not solved
        if not solved:
            self.way = way
            precondition = self._factor(way, active, bend)
            direction, more, _ = conjugate_gradients(matrix, precondition, rhs, direction, forcing, MOST_ITERATIONS)
            self.iterations += more
        return direction

    def _cheapest(self, active: np.ndarray, bend: np.ndarray) -> tuple[str, float]:
        """The way to factor that costs least among those that fit the memory, and its seconds, roughly."""
        per_row = self.problem.values_per_row
        ways: list[tuple[float, str]] = []
        if self.penalty.size <= self.most_features:
            ways.append((self.features.cost(bend, per_row), "features"))
        if active.size <= self.most_rows:
            ways.append((self.rows.cost(active, per_row), "rows"))
        if not ways:
            ways.append((self.most_rows**3 / (3.0 * BLAS_SPEED), "heaviest rows"))
        cost, way = min(ways)
        return way, cost

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
