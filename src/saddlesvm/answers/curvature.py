r"""A matrix that the objective is at least as curved as, its factor, and norms in it that count rounding.

``H = R'' + sum_i h_i x_i x_i'`` with numbers ``h_i`` that no curvature of a row's loss is below. With the factor L that
the machine computes,

    (1 - delta) H  <=  L L'  <=  (1 + delta) H,      delta = (gamma(n) + gamma(d)) trace(H) / floor,

where `floor` is a number below the smallest eigenvalue of H: the first gamma is for the sums over the rows, the second
for the factor (Higham 2002, theorem 10.3). The eigenvalues of R'' are such a number, but for a free intercept, which
R'' does not see. With ``s = sum_i h_i c^2``, c the virtual feature, and ``q = sum_i h_i c x_i``, the inequality of
Cauchy and Schwarz gives ``v' H v >= ||v_0||^2 + s (v_last + q.v_0 / s)^2``, whose smallest eigenvalue is at least
``s / (1 + s + ||q||^2 / s)``.

Without a factor the multiple `floor` of the unit matrix takes its place: norms are then the plain ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rounding import gamma, radii
from saddlesvm.rows.layouts import Rows, longest_row, n_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.second_order.linear_algebra import Threads, add_outer, blocks, factor_cost, widened

FACTORED = 2_000  # features up to which H is factored: beyond them its memory and time are more than a fit's
MATRICES = 2.0**28  # bytes that the threads' own sums of H may take
OUTER_UNITS = 16  # roundings of a place of H beside those of its sum
TRUSTED = 0.1  # delta, and the error of a solution, up to which a factor is used: norms grow by less than that


@dataclass(frozen=True, eq=False)
class Curvature:
    """A matrix H that bounds the curvature of the objective from below, and norms in it.

    Attributes
    ----------
    factor : ndarray of shape (d + 1, d + 1), or None
        Its lower triangle is L. None: H is `floor` times the unit matrix.
    floor : float
        No eigenvalue of H is below it; zero where none is known.
    wider : float
        What computed norms are multiplied by, so that they are no smaller than exact ones.
    """

    factor: np.ndarray | None
    floor: float
    wider: float = 1.0

    def dual_norm(self, v: np.ndarray, error: float = 0.0) -> float:
        """``||v||`` in the norm of the inverse of H, at most, for every vector no farther than `error` from v."""
        plain = math.sqrt(self.floor) if self.floor > 0.0 else 0.0
        if plain == 0.0:
            return math.inf
        if self.factor is None:
            return (float(np.linalg.norm(v)) * (1.0 + gamma(v.size + 8.0)) + error) / plain
        return float(self.norms_of(np.array(v[:, None], dtype=np.float64, order="F"))[0]) + error / plain

    def row_norms(self, X: Rows, chosen: np.ndarray | None = None) -> np.ndarray:
        """``||x_i||`` in the norm of the inverse of H, at most, of all rows or the chosen ones; the virtual feature is
        included."""
        wanted = np.arange(n_rows(X)) if chosen is None else chosen
        if self.factor is None:
            plain = radii(squared_norms(X, n_rows(X)))[wanted] * (1.0 + gamma(longest_row(X) + 8.0))
            return plain / math.sqrt(self.floor) if self.floor > 0.0 else np.full(wanted.size, np.inf)
        found, done = np.empty(wanted.size), 0
        for part in blocks(wanted, len(self.factor)):
            found[done : done + part.size] = self.norms_of(widened(X, part, np.ones(part.size)).T)
            done += part.size
        return found

    def unit_norms(self, size: int) -> np.ndarray:
        """The same of the unit vectors, shape (size,): roots of the diagonal of the inverse of H."""
        if self.factor is None:
            return np.full(size, 1.0 / math.sqrt(self.floor) if self.floor > 0.0 else np.inf)
        return self.norms_of(np.eye(size, order="F"))

    def solved(self, v: np.ndarray) -> np.ndarray:
        """``H^-1 v``, as computed: nothing is proven of it."""
        if self.factor is None:
            return v / self.floor
        half = dtrsm(1.0, self.factor, np.array(v[:, None], order="F"), lower=1)
        return np.asarray(dtrsm(1.0, self.factor, half, lower=1, trans_a=1))[:, 0]

    def norms_of(self, columns: np.ndarray) -> np.ndarray:
        """The norms of columns, shape (d + 1, k), which may be overwritten."""
        with blas_for(factor_cost(len(columns))):
            solved = dtrsm(1.0, self.factor, columns, lower=1, overwrite_b=1)
        return self.wider * np.sqrt(np.einsum("ij,ij->j", solved, solved))


def plain_curvature(problem: Problem) -> Curvature:
    """The curvature of the regulariser alone; no floor for an intercept that it does not see."""
    return Curvature(None, 0.0 if problem.intercept.constrained else modulus(problem.penalty))


def curvature_of(problem: Problem, rows: np.ndarray, bends: np.ndarray) -> Curvature:
    """The factor of ``H = R'' + sum_i h_i x_i x_i'``; :func:`plain_curvature` where there are too many features, or
    where rounding would leave nothing of it.

    Parameters
    ----------
    problem : Problem
        Its penalty contains half a square.
    rows : ndarray of shape (m,)
        The rows that bend.
    bends : ndarray of shape (m,)
        Their ``h_i``: positive, and no larger than ``C s_i phi_i''`` wherever it is to hold.
    """
    size, square = problem.n_features + 1, modulus(problem.penalty)
    if problem.n_features > FACTORED or square == 0.0:
        return plain_curvature(problem)
    H = np.zeros((size, size), order="F")
    add_outer(problem.X, rows, bends, H, threads=Threads(problem.threads, MATRICES))
    floor = square
    if problem.intercept.constrained:
        lowest = float(H[-1, -1])
        if not lowest > 0.0:
            return plain_curvature(problem)
        lift = float(H[-1, :-1] @ H[-1, :-1]) / lowest
        slack = 1.0 - TRUSTED  # covers the rounding of `lowest` and `lift`, which is far smaller
        floor = slack * square * lowest / (square + lowest + lift)
    diagonal = np.arange(size)
    H[diagonal, diagonal] += square
    if problem.intercept.constrained:
        H[-1, -1] -= square
    return factored(H, rows.size, floor) or plain_curvature(problem)


def factored(H: np.ndarray, terms: float, floor: float) -> Curvature | None:
    """A matrix as a :class:`Curvature`; None where rounding would leave nothing of it.

    Parameters
    ----------
    H : ndarray of shape (m, m)
        In its lower triangle, in Fortran order; overwritten.
    terms : float
        That each of its places is the sum of, at most.
    floor : float
        No eigenvalue of the exact matrix is below it.
    """
    size, trace = len(H), float(np.trace(H))
    factor, failed = dpotrf(H, lower=1, clean=0, overwrite_a=1)
    delta = (gamma(terms + OUTER_UNITS) + gamma(size + OUTER_UNITS)) * 2.0 * trace / floor
    solving = gamma(2.0 * size + OUTER_UNITS) * math.sqrt(2.0 * trace / floor)
    if failed or not max(delta, solving) < TRUSTED:
        return None
    wider = math.sqrt(1.0 + delta) / (1.0 - solving) * (1.0 + gamma(size + OUTER_UNITS))
    return Curvature(factor, floor, wider)
