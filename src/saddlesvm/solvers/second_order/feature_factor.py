"""Cholesky of Newton's matrix over features; the rows whose share changed update the matrix.

The matrix is ``R + sum_i b_i x_i x_i'``. Between two Newton steps few rows enter or leave the active set: an update
adds or subtracts these rows alone, and then factors the matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs

from saddlesvm.rows.layouts import CSR, Rows, is_small
from saddlesvm.runtime.durable import Group, stored
from saddlesvm.solvers.second_order import array_kernels
from saddlesvm.solvers.second_order.kernels import moved_shares
from saddlesvm.solvers.second_order.linear_algebra import (
    ALONE,
    Threads,
    add_outer,
    cholesky,
    factor_cost,
    squares_cost,
)

KEEP = 0.3  # relative change of a row's share below which a factor keeps the old one
AT_ONCE = 300_000  # operations below which the sum over rows is formed anew: finding the changes would take longer
REBUILD = 0.7  # the sum over rows is formed anew when more than this share of them changed


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


class FeatureFactor(Group):
    """``R + unit sum_i share_i x_i x_i'`` over features: the sum is updated by the rows whose share changed.

    In float32 it takes half the time, and serves as a preconditioner just as well.
    """

    __stored__ = stored("share", "unit", sum={"grows": 2}, inside={"grows": 1, "rows": True})

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
        shares_moved = array_kernels.moved_shares if is_small(self.X) else moved_shares
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
        matrix = self.factor.dtype.type(self.unit) * self.sum
        diagonal = np.arange(self.penalty.size)
        matrix[diagonal, diagonal] += self.penalty
        self.factor = cholesky(matrix)

    def _add(self, chosen: np.ndarray, change: np.ndarray) -> None:
        """``sum += sum over chosen i of change_i x_i x_i'``, in its lower triangle."""
        if isinstance(self.X, CSR):
            add_outer(self.X, chosen, change, self.sum, threads=self.threads)
            return
        for sign in (1.0, -1.0):
            some = sign * change > 0.0
            add_outer(self.X, chosen[some], sign * change[some], self.sum, sign, self.threads)

    def solve(self, v: np.ndarray) -> np.ndarray:
        """The factored matrix's inverse times v."""
        return self.potrs(self.factor, v, lower=1)[0].astype(np.float64, copy=False)
