"""A ball around the weights of a joint machine that contains the exact optimum.

All classes' weights W together, shape (K, d + 1), are in one ball.

By its gap, the ball is plain: scores of two classes ``x . (w_k - w_l)`` change by at most ``sqrt(2)
||x||`` times the radius. For the softmax there is a far narrower ball, in the norm of

    H = F''(W) = 1 + C sum_i s_i (diag(p_i) - p_i p_i') (x) x_i x_i',    p_i = softmax(z_i),

of all weights, as in :mod:`saddlesvm.answers.neighbourhood`. With ``phi(z) = log sum_k exp z_k``
and p = softmax(z),

    phi''[u, u] = Var_p(u)    and    phi'''[v, u, u] = E_p[(v - E_p v) (u - E_p u)^2],

for these are the second and the third cumulant of the probabilities p. ``E_p v`` lies between the
smallest and the largest v_k, so that ``|v_k - E_p v| <= range(v) = max v - min v``, and
``|phi'''[v, u, u]| <= range(v) phi''[u, u]``. The logarithm of ``phi''(z + t v)[u, u]`` has a slope
of at most range(v): ``phi''(z + v) >= e^-range(v) phi''(z)``.

On the way to the optimum W*, a row's scores move by v with ``range(v) = max_kl (x_i (x) (e_k -
e_l)) . (W* - W)``. That is at most ``rho u`` with ``u = ||W* - W||_H``; rho is the length of
the longest ``x_i (x) (e_k - e_l)`` in the norm of the inverse of H. With the gradient's length
lambda in that norm, ``u <= -log(1 - rho lambda) / rho`` if ``rho lambda < 1``, as for the
logistic loss.

A free intercept is in no half square, and the probabilities stay when all intercepts grow by the
same number: along ``n = e_last (x) 1`` neither the objective nor its gradient changes. W* is the
optimum whose intercepts have the same sum as W's, so that ``W* - W`` is orthogonal to n, and ``H
+ tau n n'`` takes the place of H. With A its part of the intercepts, whose smallest eigenvalue is
a, and B that between the intercepts and the other weights v,

    u' H u  >=  ||v||^2 + (b + A^-1 B v)' A (b + A^-1 B v),    u = (v, b),

for what is left is a Schur complement. No eigenvalue of this is below ``a / (1 + a + ||B||^2 /
a)``.

Rounding: ``diag(p) - p p' = sum_{k<l} p_k p_l (e_k - e_l) (e_k - e_l)'`` grows with each product
``p_k p_l``, so that products that are no larger than the exact products make a matrix that is no
larger. Scores that are off by e change p_k by a factor between ``exp(-2 e)`` and ``exp(2 e)``, and
the whole of p, in the sum of sizes, by at most 2 e.

Source: Bach (2010), "Self-concordant analysis for logistic regression"; Sun and Tran-Dinh (2019),
"Generalized self-concordant functions", for the softmax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.answers.curvature_bound import (
    FACTORED,
    MATRICES,
    OUTER_UNITS,
    TRUSTED,
    CurvatureBound,
    factor_curvature,
)
from saddlesvm.answers.labels import Labels, label_by_differences
from saddlesvm.answers.neighbourhood import LONG, Neighbourhood, radius_by_steepening
from saddlesvm.problem.bounds import MARGIN_UNITS, SLACK, UNDERFLOW, UNIT, gamma, norm_of, radii
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.multinomial import SOFTMAX_UNITS, MultinomialProblem
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.rows.layouts import Rows, as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.solvers.linear_algebra import Threads, add_outer, blocks, widen

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import Matrix

BOTH = math.sqrt(2.0) * (1.0 + 1e-15)  # factor for the difference of two classes' weights
PLAIN = CurvatureBound(None, 1.0)  # the curvature of half a square alone
FAINT = 1e-140  # probabilities below it count as none: products of two would underflow


@dataclass(frozen=True, eq=False)
class MixedCurvature(CurvatureBound):
    """A curvature for a combination of the classes.

    Rows x stand for ``x (x) mix``, with `mix` of -1, 0 and 1.
    """

    mix: np.ndarray | None = None

    def row_norms(self, X: Rows, chosen: np.ndarray | None = None) -> np.ndarray:
        """Bound the norms of ``x_i (x) mix``."""
        assert self.mix is not None
        return mixed_norms(self, X, np.broadcast_to(self.mix, (X.n_rows, self.mix.size)))

    def unit_norms(self, size: int) -> np.ndarray:
        """Bound the norms of unit vectors times the mix."""
        assert self.mix is not None
        return self.norms_of(
            _mix_classes(np.eye(size), np.broadcast_to(self.mix, (size, self.mix.size)))
        )


def _mix_classes(x: np.ndarray, mixes: np.ndarray) -> np.ndarray:
    """Return the columns ``x_i (x) mixes_i``, shape (K (d + 1), n), in Fortran order."""
    return np.asarray((mixes[:, :, None] * x[:, None, :]).reshape(len(x), -1).T)


def mixed_norms(curvature: CurvatureBound, X: Rows, mixes: np.ndarray) -> np.ndarray:
    """Bound ``||x_i (x) mixes_i||`` in the norm of the inverse of H, shape (n,)."""
    assert curvature.factor is not None
    # Blocks of rows that the cache holds, each a triangular solve.
    parts = blocks(np.arange(X.n_rows), len(curvature.factor))
    found = [
        curvature.norms_of(_mix_classes(widen(X, part, np.ones(part.size)), mixes[part]))
        for part in parts
    ]
    return np.concatenate([*found, np.empty(0)])


def norms_apart(curvature: CurvatureBound, X: Rows, best: np.ndarray, n_classes: int) -> np.ndarray:
    """Bound ``||x_i (x) (e_best - e_k)||`` in that norm, shape (n, K)."""
    unit = np.eye(n_classes)
    return np.column_stack(
        [mixed_norms(curvature, X, unit[best] - unit[k]) for k in range(n_classes)]
    )


@dataclass(frozen=True, eq=False)
class JointNeighbourhood:
    """All weights at most `radius` from W, shape (K, d + 1), in the norm of `curvature`."""

    W: np.ndarray
    radius: float
    scale: float
    curvature: CurvatureBound = PLAIN

    def parts(self) -> list[Neighbourhood]:
        """Return a ball for each class; of two classes, one ball for their difference."""
        curvature = self.curvature
        mixes = np.array([[-1.0, 1.0]]) if len(self.W) == 2 else np.eye(len(self.W))
        centers = mixes @ self.W
        radius = self.radius
        if (
            curvature.factor is not None
        ):  # a rounding of the centers is among those of scores and weights
            every = [
                MixedCurvature(curvature.factor, curvature.floor, curvature.wider, mix)
                for mix in mixes
            ]
            return [
                Neighbourhood(w, radius, own, self.scale, None, "curvature")
                for w, own in zip(centers, every, strict=True)
            ]
        if len(self.W) == 2:
            # A difference of two weight vectors is sqrt(2) times as far away.
            radius = BOTH * radius + 4.0 * gamma(1.0) * norm_of(centers)
        return [Neighbourhood(w, radius, curvature, self.scale) for w in centers]

    def labels(self, X: Matrix) -> Labels:
        """Return the class of each row of X, shape (m, d), and whether it is proven."""
        rows = as_rows(X, self.scale)
        norms = radii(squared_norms(rows))
        z = scores_of_rows(rows, self.W)
        slips = gamma(rows.longest_row + 1.0 + MARGIN_UNITS) * max(map(norm_of, self.W)) * norms
        if not math.isfinite(self.radius):
            return label_by_differences(z, np.inf * norms)
        # The difference of two classes' weights moves by at most sqrt(2) times the radius.
        apart = BOTH * norms[:, None]
        if self.curvature.factor is not None:
            apart = norms_apart(self.curvature, rows, z.argmax(axis=1), len(self.W))
        return label_by_differences(z, SLACK * (self.radius * apart + 2.0 * slips[:, None]))


def joint_neighbourhood(problem: JointProblem, W: np.ndarray, gap: float) -> JointNeighbourhood:
    """Return the ball of a joint problem at W, by its gap in the C form or the softmax's curvature.

    With free intercepts, only the latter holds, for the optimum whose intercepts have the sum of
    the intercepts of W.
    """
    square = modulus(problem.penalty)
    known = square > 0.0 and gap >= 0.0
    bounded = known and not problem.intercept.constrained
    # Strong convexity: m ||W* - W||^2 / 2 <= gap.
    plain = JointNeighbourhood(
        W, SLACK * math.sqrt(2.0 * gap / square) if bounded else math.inf, problem.scale
    )
    if (
        not known
        or not isinstance(problem, MultinomialProblem)
        or W.size > FACTORED
        or problem.fixed.size
    ):
        return plain
    return _bound_by_curvature(problem, W, plain)


def _bound_by_curvature(
    problem: MultinomialProblem, W: np.ndarray, plain: JointNeighbourhood
) -> JointNeighbourhood:
    """Return the ball in the norm of F''(W); the plain ball if that is not narrower."""
    # The rows' probabilities.
    p = scores_of_rows(problem.X, W)
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    slips = (
        SLACK
        * gamma(problem.row_sizes.terms + MARGIN_UNITS)
        * max(map(norm_of, W))
        * problem.lengths
        + UNDERFLOW
    )
    # The gradient, with exact probabilities of p at a distance of the slips.
    gradient, error = _gradient_at(problem, W, p, slips)
    p[p < FAINT] = 0.0
    H = _second_derivative(problem, p, slips)
    terms = float(problem.y.size + problem.n_classes)
    floor = _lift_flat_direction(H, terms) if problem.intercept.constrained else 1.0
    if floor <= 0.0:
        return plain
    curvature = factor_curvature(H.reshape(W.size, W.size).T, terms, floor)
    if curvature is None:
        return plain
    # The distance in that norm, by the gradient's length and the largest change of two scores.
    size = curvature.dual_norm(gradient.ravel(), error)
    longest = SLACK * BOTH * float(problem.lengths.max(initial=0.0)) / math.sqrt(floor)
    if longest * size > LONG:
        apart = norms_apart(
            curvature, problem.X, np.zeros(problem.y.size, dtype=np.intp), problem.n_classes
        )
        longest = float(np.sort(apart, axis=1)[:, -2:].sum(axis=1).max(initial=0.0)) * (
            1.0 + gamma(2.0)
        )
    radius = radius_by_steepening(size, longest)
    narrower = math.isfinite(radius) and radius <= plain.radius
    return JointNeighbourhood(W, radius, problem.scale, curvature) if narrower else plain


def _gradient_at(
    problem: MultinomialProblem, W: np.ndarray, p: np.ndarray, slips: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the gradient at W by the rows' probabilities, and a bound on its rounding."""
    codes = problem.codes
    weights = problem.all_weights
    every = np.arange(problem.y.size)
    # a_i = s_i (e_y - p_i); the own entry is made of the others, so that rows sum to zero exactly.
    alpha = -weights[:, None] * p
    alpha[every, codes] = 0.0
    alpha[every, codes] = -alpha.sum(axis=1)
    near = [pulled_by_short_sums(problem, np.ascontiguousarray(column)) for column in alpha.T]
    pull = np.array([sums.pull for sums in near])
    # How far a row's probabilities may be off: by its scores, and by the softmax itself.
    off = 2.0 * weights * slips + UNDERFLOW
    off += 3.0 * gamma(problem.n_classes + SOFTMAX_UNITS) * np.abs(alpha).sum(axis=1)
    error = norm_of(np.array([sums.errors for sums in near])) + 4.0 * UNIT * (
        norm_of(W) + norm_of(pull)
    )
    charged = W.copy()
    charged[:, -1] *= not problem.intercept.constrained
    return charged - pull, error + SLACK * problem.C * float(np.einsum("i,i", off, problem.lengths))


def _second_derivative(problem: MultinomialProblem, p: np.ndarray, slips: np.ndarray) -> np.ndarray:
    """Return a matrix not above F'', except for rounding of sums, shape (K, d + 1, K, d + 1)."""
    K = problem.n_classes
    d = problem.n_features + 1
    # Products of probabilities are lowered by all that rounding can have added to them.
    sure = 1.0 - 4.0 * SLACK * slips - 3.0 * gamma(K + SOFTMAX_UNITS)
    weights = problem.C * problem.all_weights * np.maximum(sure, 0.0)
    H = np.zeros((K, d, K, d))
    threads = Threads(problem.threads, MATRICES)
    rivals = np.zeros(p.shape)

    def sum_squares(factors: np.ndarray) -> np.ndarray:
        """Return the sum of ``x_i x_i'`` times the factors."""
        chosen = np.flatnonzero(factors)
        total = np.zeros((d, d), order="F")
        add_outer(problem.X, chosen, factors[chosen], total, threads=threads)
        return np.tril(total) + np.tril(total, -1).T

    # F'' = sum_i C s_i (diag(p) - p p') (x) x_i x_i' + R'': the blocks off the diagonal, and with
    # p_k (1 - p_k) = sum_m p_k p_m those on it.
    for k, m in combinations(range(K), 2):
        product = weights * p[:, k] * p[:, m]
        rivals[:, k] += product
        rivals[:, m] += product
        H[k, :, m] = H[m, :, k] = -sum_squares(product)
    charged = np.eye(d)
    charged[-1, -1] *= not problem.intercept.constrained
    for k in range(K):
        H[k, :, k] = sum_squares(rivals[:, k]) + charged
    return H


def _lift_flat_direction(H: np.ndarray, terms: float) -> float:
    """Lift H along its flat direction, and return a number below its eigenvalues, or 0.

    Parameters
    ----------
    H : ndarray of shape (K, d + 1, K, d + 1)
    terms : float
        The number of terms of each of its entries at most.
    """
    K = len(H)
    H[:, -1, :, -1] += np.trace(H[:, -1, :, -1]) / K**2
    A = H[:, -1, :, -1]
    B = H[:, -1, :, :-1]
    lowest = float(np.linalg.eigvalsh(A)[0]) - gamma(terms + OUTER_UNITS) * 2.0 * float(np.trace(A))
    if not lowest > 0.0:
        return 0.0
    slack = 1.0 - TRUSTED  # covers the rounding of B and of the quotient, which is far smaller
    return slack * lowest / (1.0 + lowest + float(np.sum(B * B)) / lowest)
