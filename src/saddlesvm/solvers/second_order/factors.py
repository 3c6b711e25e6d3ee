"""Factors of Newton's matrix ``R + X_J' B_J X_J``: over features, and by way of the active rows J.

Over features the matrix is ``R + sum_i b_i x_i x_i'``. Between two Newton steps few rows enter or leave the active set:
an update adds or subtracts these rows alone, and then factors the matrix. By way of the rows (the identity of Woodbury)
a Gram matrix is kept:

    (R + X_J' B_J X_J)^-1 v = R^-1 v - R^-1 X_J' s,      M s = X_J R^-1 v,      M = X_J R^-1 X_J' + B_J^-1.

When a few rows enter or leave J, the Cholesky factor of the last M is kept and bordered: with the columns of the
entering rows, and with unit columns that hold the leaving rows at zero. Only the small Schur complement is factored
anew (Gill, Murray, Saunders and Wright 1987, "A Schur-complement method for sparse quadratic programming").
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.linalg.lapack import dpotrs, get_lapack_funcs

from saddlesvm.rows.layouts import Rows, dot_rows
from saddlesvm.solvers.second_order import array_kernels
from saddlesvm.solvers.second_order.kernels import combine, moved_shares
from saddlesvm.solvers.second_order.linear_algebra import (
    ALONE,
    BLAS_SPEED,
    LOOP_SPEED,
    Threads,
    add_outer,
    cholesky,
    factor_cost,
    gram_block,
    squares_cost,
)

KEEP = 0.3  # relative change of a row's share below which a factor keeps the old one
AT_ONCE = 300_000  # operations below which the sum over rows is formed anew: finding the changes would take longer
REBUILD = 0.7  # the sum over rows is formed anew when more than this share of them changed
BORDER = 0.08  # rows that border a factor at most, per row of the factor


class Update(NamedTuple):
    """The work of an update.

    Attributes
    ----------
    active : ndarray of shape (a,)
        The rows that are in the sum afterwards.
    rows, shares : ndarray of shape (k,)
        The rows whose share changes, and their new shares.
    unit : float
    anew : bool
        Whether the sum is formed from nothing.
    exact : bool
        Whether every row has its present share; else some rows keep an old one.
    """

    active: np.ndarray
    rows: np.ndarray
    shares: np.ndarray
    unit: float
    anew: bool
    exact: bool


class FeatureFactor:
    """``R + unit sum_i share_i x_i x_i'`` over features: the sum is updated by the rows whose share changed.

    In float32 it takes half the time, and serves as a preconditioner just as well.
    """

    def __init__(
        self, X: Rows, penalty: np.ndarray, count: int, dtype: Any = np.float64, threads: Threads = ALONE
    ) -> None:
        self.X, self.penalty, self.threads = X, penalty, threads
        self.share = np.zeros(count)
        self.inside = np.empty(0, dtype=np.int64)
        self.marked = np.zeros(count, dtype=bool)
        self.unit = 1.0
        self.factor = np.empty((0, 0), dtype=dtype)
        self.sum = np.empty((0, 0), dtype=dtype)  # in the order of Fortran; empty before the first update
        (self.potrs,) = get_lapack_funcs(("potrs",), dtype=dtype)

    def plan(self, active: np.ndarray, bend: np.ndarray) -> Update:
        """What :meth:`update` has to do for the second derivatives `bend` of the `active` rows (both of shape (a,))."""
        largest = float(bend.max())
        anew = Update(active, active, bend / largest, largest, True, True)
        if not self.sum.size or active.size * self.penalty.size**2 <= AT_ONCE:
            return anew
        moved: np.ndarray | None = None
        shares_moved = array_kernels.moved_shares if self.X.is_small else moved_shares
        for one in dict.fromkeys((largest, self.unit)):
            places = np.empty(active.size, dtype=np.intp)
            count, few = shares_moved(active, bend, one, self.share, KEEP, places)
            if moved is None or count < moved.size:
                moved, unit, exact = places[:count], one, few == 0
        assert moved is not None
        gone = self._gone(active)
        if moved.size + gone.size > REBUILD * active.size:
            return anew
        rows, shares = np.concatenate([active[moved], gone]), np.concatenate([bend[moved] / unit, np.zeros(gone.size)])
        return Update(active, rows, shares, unit, False, exact)

    def _gone(self, active: np.ndarray) -> np.ndarray:
        """The rows in the sum that are not among the `active`."""
        if np.array_equal(active, self.inside):
            return self.inside[:0]
        self.marked[active] = True
        gone = self.inside[~self.marked[self.inside]]
        self.marked[active] = False
        return gone

    def cost(self, plan: Update, values_per_row: float) -> float:
        """Rough seconds that :meth:`update` will take."""
        times = self.factor.itemsize / 8.0
        return squares_cost(self.X, plan.rows.size, values_per_row, times) + factor_cost(self.penalty.size, times)

    def update(self, plan: Update) -> None:
        """Factor the matrix for these second derivatives (those that changed by little may stay as they were)."""
        if plan.anew:
            d = self.penalty.size
            self.sum = np.zeros((d, d), dtype=self.factor.dtype, order="F")
            self.share[self.inside] = 0.0
        self._add(plan.rows, plan.shares - self.share[plan.rows])
        self.share[plan.rows] = plan.shares
        self.inside, self.unit = plan.active, plan.unit
        self.renew()

    def renew(self) -> None:
        """Factor the matrix of the present sum."""
        matrix = self.factor.dtype.type(self.unit) * self.sum
        diagonal = np.arange(self.penalty.size)
        matrix[diagonal, diagonal] += self.penalty
        self.factor = cholesky(matrix)

    def _add(self, chosen: np.ndarray, change: np.ndarray) -> None:
        """``sum += sum over chosen i of change_i x_i x_i'``, in its lower triangle."""
        if self.X.sparse:
            add_outer(self.X, chosen, change, self.sum, threads=self.threads)
            return
        for sign in (1.0, -1.0):
            some = sign * change > 0.0
            add_outer(self.X, chosen[some], sign * change[some], self.sum, sign, self.threads)

    def solve(self, v: np.ndarray) -> np.ndarray:
        """The factored matrix's inverse times v."""
        return self.potrs(self.factor, v, lower=1)[0].astype(np.float64, copy=False)


class GramCache:
    """``x_i . x_l`` for a pool of rows that follows the active ones."""

    def __init__(self, X: Rows, count: int) -> None:
        self.X = X
        self.gram = np.empty((0, 0))
        self.pool = np.empty(0, dtype=np.int64)
        self.place = np.full(count, -1, dtype=np.int64)

    def cover(self, active: np.ndarray, keep: np.ndarray) -> None:
        """Let the pool cover the active rows; a pool that is too large loses rows neither active nor in `keep`."""
        new = active[self.place[active] < 0]
        if not new.size:
            return
        old = self.pool
        if old.size + new.size > active.size:
            old = np.union1d(active[self.place[active] >= 0], keep[self.place[keep] >= 0])
        places = self.place[old]
        pool = np.concatenate([old, new])
        gram = np.empty((pool.size, pool.size))
        gram[: old.size, : old.size] = self.gram[np.ix_(places, places)]
        gram[old.size :] = gram_block(self.X, new, pool)
        gram[: old.size, old.size :] = gram[old.size :, : old.size].T
        self.place[self.pool] = -1
        self.place[pool] = np.arange(pool.size)
        self.gram, self.pool = gram, pool

    def block(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The products of two sets of covered rows."""
        return self.gram[np.ix_(self.place[left], self.place[right])]


class BorderedFactor:
    """Cholesky of ``K + B^-1`` for a base of rows, bordered so that it serves a set that differs in a few of them."""

    def __init__(self, cache: GramCache, base: np.ndarray, bend: np.ndarray) -> None:
        self.cache, self.base = cache, base
        self.bend = bend[base]
        matrix = cache.block(base, base)
        diagonal = np.arange(base.size)
        matrix[diagonal, diagonal] += 1.0 / self.bend
        self.factor = cholesky(matrix.T)
        self.kept, self.at = np.arange(base.size), np.arange(base.size)
        self.entering = np.empty(0, dtype=np.int64)
        self.size = 0

    def difference(self, active: np.ndarray, bend: np.ndarray) -> int:
        """The number of rows to border the factor with for this set; all of them where a second derivative changed."""
        common = np.intersect1d(active, self.base, assume_unique=True)
        same = np.array_equal(bend[common], self.bend[np.searchsorted(self.base, common)])
        return active.size + self.base.size - 2 * common.size if same else active.size

    def border(self, active: np.ndarray, bend: np.ndarray) -> None:
        """Serve this set of rows (ascending) from now on."""
        base, cache = self.base, self.cache
        self.entering = np.setdiff1d(active, base, assume_unique=True)
        leaving = np.flatnonzero(~np.isin(base, active, assume_unique=True))
        self.kept = np.flatnonzero(np.isin(active, base, assume_unique=True))
        self.at = np.searchsorted(base, active[self.kept])
        self.added = np.flatnonzero(~np.isin(active, base, assume_unique=True))
        self.size = active.size - self.kept.size + leaving.size
        if not self.size:
            return
        count = self.entering.size
        self.columns = np.zeros((base.size, self.size), order="F")
        self.columns[:, :count] = cache.block(base, self.entering)
        self.columns[leaving, count + np.arange(leaving.size)] = 1.0
        self.solved = dpotrs(self.factor, self.columns, lower=1)[0]
        schur = -self.columns.T @ self.solved
        schur[:count, :count] += cache.block(self.entering, self.entering)
        schur[np.arange(count), np.arange(count)] += 1.0 / bend[self.entering]
        self.schur = lu_factor(schur, check_finite=False)

    def solve(self, v: np.ndarray) -> np.ndarray:
        """``(K + B^-1)^-1 v`` over the rows that are served, in their order."""
        whole = np.zeros(self.base.size)
        whole[self.at] = v[self.kept]
        s = dpotrs(self.factor, whole, lower=1)[0]
        if not self.size:
            return s
        right = -self.columns.T @ s
        right[: self.entering.size] += v[self.added]
        edge = lu_solve(self.schur, right, check_finite=False)
        s -= self.solved @ edge
        out = np.empty(v.size)
        out[self.kept] = s[self.at]
        out[self.added] = edge[: self.entering.size]
        return out


class RowFactor:
    """The inverse of ``R + X_J' B_J X_J`` by way of the rows in J.

    A free intercept is eliminated last, so that its small R does not spoil the Gram matrix.

    Attributes
    ----------
    base, bend : ndarray of shape (k,)
        The rows and the second derivatives that the present factor was made for.
    """

    def __init__(self, X: Rows, penalty: np.ndarray, count: int) -> None:
        self.free = penalty[-1] != 1.0
        self.scale, self.penalty = X.bias, float(penalty[-1])
        self.X = X._replace(bias=0.0) if self.free else X
        self.cache = GramCache(self.X, count)
        self.factor: BorderedFactor | None = None
        self.active = self.base = np.empty(0, dtype=np.int64)
        self.answer = self.bend = np.empty(0)

    def cost(self, active: np.ndarray, bend: np.ndarray, values_per_row: float) -> float:
        """Rough seconds that :meth:`update` will take."""
        new = int(np.count_nonzero(self.cache.place[active] < 0))
        share = 0.1 / LOOP_SPEED if self.X.sparse else 2.0 / BLAS_SPEED
        gram = new * active.size * values_per_row * share
        if (rows := self._border_size(active, bend)) is not None:
            return gram + 2.0 * active.size**2 * rows / BLAS_SPEED
        return gram + active.size**3 / (3.0 * BLAS_SPEED)

    def _border_size(self, active: np.ndarray, bend: np.ndarray) -> int | None:
        """Rows to border the present factor with; None when a new factor is better."""
        if self.factor is None:
            return None
        rows = self.factor.difference(active, bend)
        return rows if rows <= BORDER * self.factor.base.size else None

    def update(self, active: np.ndarray, bend: np.ndarray) -> None:
        """Factor the matrix for these rows (ascending) and second derivatives."""
        if self._border_size(active, bend) is None:
            self.factor = None
        self.cache.cover(active, active if self.factor is None else self.factor.base)
        if self.factor is None:
            self.factor = BorderedFactor(self.cache, active, bend)
            self.base, self.bend = self.factor.base, self.factor.bend
        self.factor.border(active, bend)
        self.active = active
        if self.free:
            self.answer = self.factor.solve(np.full(active.size, self.scale))

    def solve(self, v: np.ndarray) -> np.ndarray:
        """The factored matrix's inverse times v."""
        assert self.factor is not None
        out = v.copy()
        if self.free:
            out[-1] = 0.0
        z = np.empty(self.active.size)
        dot_rows(self.X, self.active, out, z)
        s = self.factor.solve(z)
        if self.free:
            last = (v[-1] - self.scale * s.sum()) / (self.penalty + self.scale * self.answer.sum())
            s += last * self.answer
        combine(self.X, self.active, -s, out)
        if self.free:
            out[-1] = last
        return out
