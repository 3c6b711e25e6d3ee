"""Small problems as one matrix in float64, and Newton's equations of runs over its rows.

The equations are ``P + Z' diag(bend) Z``. If the penalty P is the identity, a matrix that is
computed and factored in single precision differs from the exact one by about the unit roundoff
times its trace. Up to a tenth of the identity, runs take as many steps as with exact matrices: a
step is corrected by the next one, whose right side is computed in double precision.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs, spotrf, spotrs

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import ArrayMethods, methods_of
from saddlesvm.problem.penalties import L1
from saddlesvm.problem.problem import Problem

# Instead of the largest inner product if all are zero, so that a lift is positive: derived.
LEAST_DIAGONAL = 1e-300
# Columns up to which whole products of several runs at once take less time than their halves, one
# after the other: measured.
FEW_COLUMNS = 32
# Part of a matrix' largest diagonal entry that is added to it if rounding makes it singular, and
# the factor by which that grows from one of so many tries to the next: guessed.
LIFT = 1e-14
LIFT_GROWTH = 100.0
LIFT_TRIES = 5
SINGLE_TRACE = 0.1 * 2.0**24  # largest trace of a matrix in single precision: derived, see above
# Least and largest squared norm of rows whose products single precision holds: guessed.
SINGLE_SIZES = (1e-12, 1e12)
# Products that make a matrix, from which single precision saves more than its copy of the rows
# costs: measured, 3 and 12 matrices of 150 x 5 to 2,000 x 21 (26 November 2026).
SINGLE_WORK = 100_000


class RunPoints(NamedTuple):
    """The evaluated points of K runs.

    Attributes
    ----------
    u : ndarray of shape (K, m)
        Weights in the coordinates of :attr:`Small.Z`.
    alpha : ndarray of shape (K, n)
        Feasible dual variables, without the factor C.
    primal, dual : ndarray of shape (K,)
        Objectives in the C form.
    """

    u: np.ndarray
    alpha: np.ndarray
    primal: np.ndarray
    dual: np.ndarray


class Small:
    """The rows that take part in K problems as one matrix, with labels and weights for each.

    Parameters
    ----------
    problem : Problem
        One of the problems.
    y : ndarray of shape (K, n), optional
        The labels of all; by default those of `problem` alone.
    s : ndarray of shape (K, n) or 1.0, optional
        The row weights of all, if `y` is given.

    Attributes
    ----------
    Z : ndarray of shape (n, m)
        The rows, the virtual feature last. If there are fewer rows than features, rows of length n
        (and one) with the same inner products, so that all systems of equations are small.
    y : ndarray of shape (K, n)
        Labels or targets.
    s : ndarray of shape (K, n) or 1.0
        Row weights.
    penalty : ndarray of shape (m,)
        The diagonal of P: 1 for half a square, 0 for a free intercept and for the l1 norm.
    l1 : float
        The factor of the l1 norm; 0 if the penalty is half a square.
    C : float
    loss : Loss
    methods : ArrayMethods
    size : int
        Number of rows.
    """

    def __init__(self, problem: Problem, y: np.ndarray | None = None, s: Any = 1.0) -> None:
        if y is None:
            terms = problem.member_terms
            y = terms.y[None]
            s = terms.weights[None] if terms.weights.size else 1.0
        self.problem = problem
        self.C = problem.C
        self.loss = problem.loss
        self.y = y
        self.size = y.shape[1]
        self.s = s
        self.methods: ArrayMethods = methods_of(problem.loss)
        rows = problem.X.float64_matrix()
        if self.size < rows.shape[0]:
            rows = rows[problem.members]
        self.rows = rows

        # Fewer rows than features: the factor of their inner products stands for them.
        self.factor: np.ndarray | None = None
        if rows.shape[1] > self.size:
            gram = rows @ rows.T
            # L with L L' = gram, but for rounding: the transposed upper factor.
            upper = np.triu(factorize(gram.toarray() if problem.sparse else gram))
            self.factor = np.ascontiguousarray(upper.T)
            Z = self.factor
        else:
            Z = rows.toarray() if problem.sparse else rows
        if problem.scale:
            Z = np.concatenate([Z, np.full((self.size, 1), problem.scale)], axis=1)

        # The diagonal of P: zero for the l1 norm, and for a free intercept.
        self.l1 = 0.0
        self.penalty = np.ones(Z.shape[1])
        if isinstance(problem.penalty, L1):
            self.l1 = problem.penalty.l1
            self.penalty[:] = 0.0
        if problem.intercept.constrained:
            self.penalty[-1] = 0.0
        self.equations = SmallEquations(Z, self.penalty)
        self.Z: np.ndarray = self.equations.Z

    def add_unit_rows(self) -> Small:
        """Return the problems with the l1 norm as losses of further rows, one for each weight."""
        if not self.l1:
            return self
        extended = copy.copy(self)
        # l1 |u_j| is the loss of a row that is the j-th unit vector.
        rows = np.vstack([self.Z, np.eye(self.Z.shape[1])])
        extended.equations = SmallEquations(rows, self.penalty)
        extended.Z = extended.equations.Z
        return extended

    def pick(self, chosen: np.ndarray) -> Small:
        """Return some of several problems side by side."""
        some = copy.copy(self)
        some.y = self.y[chosen]
        if np.ndim(self.s) == 2:
            some.s = self.s[chosen]
        return some

    def weights(self, alpha: np.ndarray) -> np.ndarray:
        """Return ``w(alpha)`` in the coordinates of `Z`; zero for a free intercept."""
        return self.penalty * (self.C * (alpha @ self.Z))

    def feature_weights(self, u: np.ndarray) -> np.ndarray:
        """Return weights of `Z`, shape (K, m), as weights of the features, shape (K, d + 1)."""
        found = np.zeros((len(u), self.rows.shape[1] + 1))
        features = u
        if self.problem.scale:
            features = u[:, :-1]
            found[:, -1] = u[:, -1]
        if self.factor is None:
            found[:, :-1] = features
            return found
        # Weights u belong to the rows' factor L: with L' c = u, the weights of features are X' c.
        for of_features, of_factor in zip(found, features, strict=True):
            c = dtrtrs(self.factor, of_factor, lower=1, trans=1)[0]
            of_features[:-1] = c @ self.rows
        return found

    def starting_weights(self, start: Point | None) -> np.ndarray:
        """Return the weights of `Z` to begin at: a point's own, or those of its dual variables."""
        if start is None:
            return np.zeros(self.Z.shape[1])
        if start.w is not None and self.factor is None:
            w = start.w
            if not self.problem.scale:
                w = w[:-1]  # without an intercept Z has no last column for it
            return np.array(w, dtype=np.float64)
        if start.alpha is None:
            return np.zeros(self.Z.shape[1])
        # Dual variables do not give a free intercept: it is the point's own.
        u = self.weights(self.problem.gather(start.alpha))
        if start.w is not None and self.problem.scale:
            u[-1] = start.w[-1]
        return u

    def balance(self, a: np.ndarray) -> np.ndarray:
        """Return dual variables of a single problem, shape (1, n), with the sum it requires."""
        problem = self.problem
        return problem.gather(problem.balance(problem.scatter(a[0])))[None]

    def evaluate(self, u: np.ndarray, a: np.ndarray, z: np.ndarray | None = None) -> RunPoints:
        """Return the objectives of weights and of dual points.

        A dual point gets the sum that a free intercept requires, and is scaled down if the l1 norm
        bounds its pull. `z` are the margins of the weights, if they are known.
        """
        if z is None:
            z = multiply_rows(u, self.Z.T)
        if self.problem.intercept.constrained:
            a = self.balance(a)
        if self.l1:
            # R* is zero if no pull is stronger than l1, and infinite beyond.
            strongest = np.abs(self.C * (a @ self.Z)).max(axis=1, keepdims=True)
            a = a * np.minimum(1.0, self.l1 / strongest)
            charged = self.l1 * np.add.reduce(np.abs(u), axis=1)
            conjugate_of_pull: Any = 0.0
        else:
            pull = self.weights(a)
            charged = 0.5 * inner_by_row(u, self.penalty * u)
            conjugate_of_pull = 0.5 * inner_by_row(pull, pull)
        # P = R(w) + C sum s phi(z), and D = -R*(v) - C sum s phi*(-a / s).
        conjugates = self.methods.conjugate(self.loss, a, self.y, self.s)
        conjugate: Any = np.add.reduce(conjugates, axis=1)
        primal: Any = primal_of(self.C, self.add_losses(z), charged)
        return RunPoints(u, a, primal, dual_of(self.C, conjugate, conjugate_of_pull))

    def add_losses(self, z: np.ndarray) -> np.ndarray:
        """Return ``sum_i s_i phi_i(z_i)`` of each run."""
        losses: np.ndarray = self.s * self.methods.value(self.loss, z, self.y)
        found: np.ndarray = np.add.reduce(losses, axis=1)
        return found


class BestPoints:
    """The best weights and the best dual points of runs, which need not come from the same step.

    Attributes
    ----------
    u : ndarray of shape (K, m)
    a : ndarray of shape (K, n)
        Feasible dual variables.
    primal, dual : ndarray of shape (K,)
        Objectives in the C form.
    steps : int ndarray of shape (K,)
    stuck : bool ndarray of shape (K,)
        True if rounding leaves nothing to gain.
    last : RunPoints or None
        The last points that were evaluated.
    """

    def __init__(self, small: Small) -> None:
        count = len(small.y)
        self.u = np.zeros((count, small.Z.shape[1]))
        self.a = np.zeros(small.y.shape)
        # The objective at zero weights is the first upper bound. The first lower bound is 0, since
        # phi*(0) = 0 for every loss.
        self.primal: np.ndarray = small.C * small.add_losses(self.a)
        self.dual = np.zeros(count)
        self.steps = np.zeros(count, dtype=int)
        self.stuck = np.zeros(count, dtype=bool)
        self.last: RunPoints | None = None

    def keep(self, live: np.ndarray, found: RunPoints) -> None:
        """Keep the better objectives of the runs `live`, and what belongs to them."""
        self.last = found
        lower = (found.primal < self.primal[live]).tolist()
        higher = (found.dual > self.dual[live]).tolist()
        for k, run in enumerate(live.tolist()):
            if lower[k]:
                self.u[run] = found.u[k]
                self.primal[run] = found.primal[k]
            if higher[k]:
                self.a[run] = found.alpha[k]
                self.dual[run] = found.dual[k]

    def gaps(self) -> np.ndarray:
        """Return the relative gaps."""
        size = np.maximum(np.abs(self.primal), np.abs(self.dual))
        return (self.primal - self.dual) / np.where(size > 0.0, size, 1.0)


def _inner_products(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the inner products of the rows of two arrays."""
    found: np.ndarray = np.matmul(one[..., None, :], other[..., :, None])[..., 0, 0]
    return found


inner_by_row: Callable[[np.ndarray, np.ndarray], np.ndarray]
inner_by_row = getattr(np, "vecdot", _inner_products)  # NumPy 2 has it, in a third of the time


def multiply_rows(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the product of each row with a matrix.

    One by one, so that a run's numbers are those of the run alone, bit for bit.
    """
    found: np.ndarray = np.matmul(rows[:, None], matrix)[:, 0]
    return found


class SmallEquations:
    """The equations over some rows.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
    penalty : ndarray of shape (m,)
        The diagonal of P.

    Attributes
    ----------
    Z : ndarray of shape (n, m)
        Column by column if they are few: the rows' weights are then multiplied along the rows.
    """

    def __init__(self, Z: np.ndarray, penalty: np.ndarray) -> None:
        self.penalty = penalty
        self.exact = Precision(Z, penalty)
        self.Z = self.exact.Z

    @cached_property
    def norms(self) -> np.ndarray | None:
        """The squared norms of the rows; None if single precision does not do or saves nothing."""
        if self.Z.size * self.Z.shape[1] < SINGLE_WORK:
            return None
        norms = np.einsum("ij,ij->i", self.Z, self.Z)
        low, high = SINGLE_SIZES
        in_range = low < float(norms.max()) < high
        # A zero in P would leave a matrix without the identity that covers its rounding.
        if not in_range or not self.penalty.all():
            return None
        return norms + low

    @cached_property
    def single(self) -> Precision:
        """The rows in single precision."""
        return Precision(self.Z.astype(np.float32), self.penalty.astype(np.float32))

    def factors(self, bends: np.ndarray) -> list[np.ndarray]:
        """Return the Cholesky factors of the matrices of runs, of either precision.

        `bends` are the second derivatives ``C s_i phi_i''`` of the rows' terms, of shape (K, n).
        """
        if self.norms is None:
            return self.exact.factors(bends)

        # The trace of Z' diag(bend) Z says which matrices single precision holds well enough.
        is_enough = inner_by_row(bends, self.norms[None]) <= SINGLE_TRACE
        if is_enough.all():
            return self.single.factors(bends)
        found = []
        for bend, enough in zip(bends[:, None], is_enough.tolist(), strict=True):
            precision = self.single if enough else self.exact
            found += precision.factors(bend)
        return found


class Precision:
    """The rows in one precision, and the factors of matrices over them.

    Parameters
    ----------
    Z : ndarray of shape (n, m)
    penalty : ndarray of shape (m,)
        The diagonal of P.

    Attributes
    ----------
    penalty : ndarray of shape (m, m)
        P.
    """

    def __init__(self, Z: np.ndarray, penalty: np.ndarray) -> None:
        self.has_few_columns = Z.shape[1] <= FEW_COLUMNS
        self.Z = np.asfortranarray(Z) if self.has_few_columns else Z
        self.penalty = np.diag(penalty)

    def factors(self, bends: np.ndarray) -> list[np.ndarray]:
        """Return the factors for second derivatives of shape (K, n)."""
        bends = bends.astype(self.Z.dtype, copy=False)
        # Few columns: whole products of all runs at once. Else half of each product, one by one.
        if self.has_few_columns:
            matrices = np.matmul(bends[:, None] * self.Z.T, self.Z)
        else:
            matrices = np.array([self._product(bend) for bend in bends])
        matrices += self.penalty
        return [factorize(matrix) for matrix in matrices]

    def _product(self, bend: np.ndarray) -> np.ndarray:
        """Return ``Z' diag(bend) Z``, of which the BLAS computes half."""
        Z = self.Z
        # Rows without a second derivative add nothing; the BLAS sees that A'A is symmetric.
        chosen = bend > 0.0
        if not chosen.all():
            Z = Z[chosen]
            bend = bend[chosen]
        scaled = Z * np.sqrt(bend)[:, None]
        product: np.ndarray = scaled.T @ scaled
        return product


def factorize(matrix: np.ndarray) -> np.ndarray:
    """Return the upper Cholesky factor of a matrix, lifted if it is singular; NaN if none helps.

    Below the diagonal are values that LAPACK does not read.
    """
    potrf = spotrf if matrix.dtype == np.float32 else dpotrf
    factor: np.ndarray
    factor, failed = potrf(matrix)
    if not failed:
        return factor
    # Rounding has made it singular, or rows depend on others: its diagonal is lifted until it has a
    # factor. The lifts add up, each LIFT_GROWTH times the last.
    lift = max(LIFT * float(matrix.diagonal().max()), LEAST_DIAGONAL)
    for _ in range(LIFT_TRIES):
        matrix = matrix.copy()
        matrix.flat[:: matrix.shape[0] + 1] += lift
        factor, failed = potrf(matrix)
        if not failed:
            return factor
        lift *= LIFT_GROWTH
    return np.full_like(matrix, np.nan)


def solve(factors: list[np.ndarray], right: np.ndarray) -> np.ndarray:
    """Return the solutions of the equations of each run, in double precision.

    They are not finite if there is no factor.
    """
    found = np.empty(right.shape)
    for k, factor in enumerate(factors):
        potrs = spotrs if factor.dtype == np.float32 else dpotrs
        found[k] = potrs(factor, right[k])[0]
    return found
