"""Cholesky of Newton's matrix over features, kept up to date by the rows whose share of it changed.

The matrix is ``R + sum_i b_i x_i x_i'``. Between two Newton steps few rows enter or leave the active set; the sum over
rows then changes by theirs alone, and what is left to pay is the factorisation.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrs

from saddlesvm.rows import CSR, Rows
from saddlesvm.solvers.linear_algebra import BLAS_SPEED, LOOP_SPEED, blocks, cholesky, widened
from saddlesvm.solvers.newton_kernels import add_outer_sparse

KEEP = 0.3  # relative change of a row's share below which a factor keeps the old one
AT_ONCE = 300_000  # operations below which the sum over rows is formed anew: to see what changed takes longer
REBUILD = 0.7  # the sum over rows is formed anew when more than this share of them changed


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
        active = np.flatnonzero(bend)
        if active.size * self.penalty.size**2 <= AT_ONCE:
            unit = float(bend.max())
            return bend / unit, active, unit, True
        best: tuple[np.ndarray, np.ndarray, float] | None = None
        for unit in (float(bend.max()), self.unit):
            share = bend / unit
            changed = np.flatnonzero(np.abs(share - self.share) > KEEP * np.maximum(share, self.share))
            if best is None or changed.size < best[1].size:
                best = share, changed, unit
        assert best is not None
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
