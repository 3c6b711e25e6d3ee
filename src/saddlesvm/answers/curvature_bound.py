"""A lower bound H of the objective's curvature, its factor, and norms with their rounding.

``H = R'' + sum_i h_i x_i x_i'`` with numbers ``h_i`` below the curvatures of the rows' losses.
With the factor L that the machine computes,

    (1 - delta) H  <=  L L'  <=  (1 + delta) H,      delta = (gamma(n) + gamma(d)) trace(H) / floor,

with a number `floor` below the smallest eigenvalue of H: the first gamma is for the sums over
the rows, the second for the factor (Higham 2002, theorem 10.3). The eigenvalues of R'' are such a
number, but for a free intercept, which R'' does not see. With ``s = sum_i h_i c^2``, c the virtual
feature, and ``q = sum_i h_i c x_i``, the inequality of Cauchy and Schwarz gives ``v' H v >=
||v_0||^2 + s (v_last + q.v_0 / s)^2``, whose smallest eigenvalue is at least ``s / (1 + s + ||q||^2
/ s)``.

Without a factor the multiple `floor` of the unit matrix takes its place: norms are then the plain
ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from saddlesvm.problem.bounds import (
    gamma,
    radii,
)
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.linear_algebra import blocks, factor_cost, full_rows, sum_outer

FACTORED = 2_000  # features up to which H is factored; with more, it takes longer than a fit
OUTER_UNITS = 16  # roundings of a place of H beside those of its sum
# Largest delta, and largest error of a solution, with which a factor is used: norms grow by less.
TRUSTED = 0.1


@dataclass(frozen=True, eq=False)
class CurvatureBound:
    """A matrix H that bounds the curvature of the objective from below, and norms in it.

    Attributes
    ----------
    factor : ndarray of shape (d + 1, d + 1), or None
        Its lower triangle is L. If None, H is `floor` times the unit matrix.
    floor : float
        A number below all eigenvalues of H; zero if none is known.
    wider : float
        The factor that makes computed norms at least as large as exact norms.
    """

    factor: np.ndarray | None
    floor: float
    wider: float = 1.0

    def dual_norm(self, v: np.ndarray, error: float = 0.0) -> float:
        """Bound ``||v||`` in the norm of the inverse of H, for v known up to `error`."""
        # An error e of v is at most e / sqrt(floor) long in this norm.
        plain = math.sqrt(self.floor) if self.floor > 0.0 else 0.0
        if plain == 0.0:
            return math.inf
        if self.factor is None:
            return (float(np.linalg.norm(v)) * (1.0 + gamma(v.size + 8.0)) + error) / plain
        return (
            float(self.norms_of(np.array(v[:, None], dtype=np.float64, order="F"))[0])
            + error / plain
        )

    def row_norms(self, X: Rows, chosen: np.ndarray | None = None) -> np.ndarray:
        """Bound ``||x_i||`` in the norm of the inverse of H, with the virtual feature."""
        wanted = np.arange(X.n_rows) if chosen is None else chosen
        if self.factor is None:
            # Without a factor H is `floor` times the unit matrix.
            plain = radii(squared_norms(X))[wanted] * (1.0 + gamma(X.longest_row + 8.0))
            return (
                plain / math.sqrt(self.floor) if self.floor > 0.0 else np.full(wanted.size, np.inf)
            )
        found = np.empty(wanted.size)
        done = 0
        for part in blocks(wanted, len(self.factor)):
            found[done : done + part.size] = self.norms_of(full_rows(X, part).T)
            done += part.size
        return found

    def unit_norms(self, size: int) -> np.ndarray:
        """Bound the same norms of the unit vectors, shape (size,)."""
        if self.factor is None:
            return np.full(size, 1.0 / math.sqrt(self.floor) if self.floor > 0.0 else np.inf)
        return self.norms_of(np.eye(size, order="F"))

    def norms_of(self, columns: np.ndarray) -> np.ndarray:
        """Bound the norms of columns, shape (d + 1, k), which may be overwritten."""
        with blas_for(factor_cost(len(columns))):
            solved = dtrsm(1.0, self.factor, columns, lower=1, overwrite_b=1)
        return self.wider * np.sqrt(np.einsum("ij,ij->j", solved, solved))


def plain_curvature(problem: Problem) -> CurvatureBound:
    """Return the curvature of the regulariser alone; it has no floor for a free intercept."""
    return CurvatureBound(None, 0.0 if problem.intercept.constrained else modulus(problem.penalty))


def bound_curvature(problem: Problem, rows: np.ndarray, bends: np.ndarray) -> CurvatureBound:
    """Return ``H = R'' + sum_i h_i x_i x_i'`` with its factor, or :func:`plain_curvature`.

    The latter if there are too many features, or rounding would leave nothing of the factor.

    Parameters
    ----------
    problem : Problem
        Its penalty contains half a square.
    rows : ndarray of shape (m,)
        The rows that bend.
    bends : ndarray of shape (m,)
        Their ``h_i``: positive, and at most ``C s_i phi_i''`` wherever the bound is to hold.
    """
    size = problem.n_features + 1
    square = modulus(problem.penalty)
    if problem.n_features > FACTORED or square == 0.0:
        return plain_curvature(problem)
    H = sum_outer(problem.X, rows, bends)
    floor = square
    if problem.intercept.constrained:
        # s and ||q||^2 / s of the module's text; the smallest eigenvalue is at least s / (1 + s +
        # ||q||^2 / s) for a penalty of half a square.
        lowest = float(H[-1, -1])
        if not lowest > 0.0:
            return plain_curvature(problem)
        lift = float(H[-1, :-1] @ H[-1, :-1]) / lowest
        slack = 1.0 - TRUSTED  # covers the rounding of `lowest` and `lift`, which is far smaller
        floor = slack * square * lowest / (square + lowest + lift)
    # R'' is added to the diagonal, but not for a free intercept.
    diagonal = np.arange(size)
    H[diagonal, diagonal] += square
    if problem.intercept.constrained:
        H[-1, -1] -= square
    return factor_curvature(H, rows.size, floor) or plain_curvature(problem)


def factor_curvature(H: np.ndarray, terms: float, floor: float) -> CurvatureBound | None:
    """Return a matrix as a :class:`CurvatureBound`; None if rounding would leave nothing of it.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        In its lower triangle, in Fortran order; overwritten.
    terms : float
        The number of terms of each of its entries at most.
    floor : float
        A number below all eigenvalues of the exact matrix.
    """
    size = len(H)
    trace = float(np.trace(H))
    factor, failed = dpotrf(H, lower=1, clean=0, overwrite_a=1)
    # delta of the module's text, and the error of a solution by the factor.
    delta = (gamma(terms + OUTER_UNITS) + gamma(size + OUTER_UNITS)) * 2.0 * trace / floor
    solving = gamma(2.0 * size + OUTER_UNITS) * math.sqrt(2.0 * trace / floor)
    if failed or not max(delta, solving) < TRUSTED:
        return None
    # Norms by the factor that was computed are too small by no more than this.
    wider = math.sqrt(1.0 + delta) / (1.0 - solving) * (1.0 + gamma(size + OUTER_UNITS))
    return CurvatureBound(factor, floor, wider)
