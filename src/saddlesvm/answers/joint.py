r"""Bounds on the optimum of a joint machine: all classes' weights W together, shape (K, d + 1), are in one ball.

By its gap, the ball is plain: scores of two classes ``x . (w_k - w_l)`` change by at most ``sqrt(2) ||x||`` times the
radius. For the softmax there is a far narrower one, in the norm of

    H = F''(W) = 1 + C sum_i s_i (diag(p_i) - p_i p_i') (x) x_i x_i',    p_i = softmax(z_i),

of all weights, as in :mod:`saddlesvm.answers.neighbourhood`. With ``phi(z) = log sum_k exp z_k`` and p = softmax(z),

    phi''[u, u] = Var_p(u)    and    phi'''[v, u, u] = E_p[(v - E_p v) (u - E_p u)^2],

for these are the second and the third cumulant of the probabilities p. ``E_p v`` lies between the smallest and the
largest v_k, so that ``|v_k - E_p v| <= range(v) = max v - min v``, and ``|phi'''[v, u, u]| <= range(v) phi''[u, u]``.
The logarithm of ``phi''(z + t v)[u, u]`` has a slope of at most range(v): ``phi''(z + v) >= e^-range(v) phi''(z)``.

On the way to the optimum W*, a row's scores move by v with ``range(v) = max_kl (x_i (x) (e_k - e_l)) . (W* - W)``. That
is at most ``rho u`` with ``u = ||W* - W||_H``, where rho is the length of the longest ``x_i (x) (e_k - e_l)`` in the
norm of the inverse of H. With the gradient's length lambda in that norm, ``u <= -log(1 - rho lambda) / rho`` where
``rho lambda < 1``, as for the logistic loss.

A free intercept is in no half square, and the probabilities stay when all intercepts grow by the same number: along
``n = e_last (x) 1`` neither the objective nor its gradient changes. W* is the optimum whose intercepts have the sum of
those of W, so that ``W* - W`` is orthogonal to n, and ``H + tau n n'`` takes the place of H. With A its part of the
intercepts, whose smallest eigenvalue is a, and B that between the intercepts and the other weights v,

    u' H u  >=  ||v||^2 + (b + A^-1 B v)' A (b + A^-1 B v),    u = (v, b),

for what is left is a Schur complement. No eigenvalue of this is below ``a / (1 + a + ||B||^2 / a)``.

Rounding: ``diag(p) - p p' = sum_{k<l} p_k p_l (e_k - e_l) (e_k - e_l)'`` grows with each product ``p_k p_l``, so that
products that are no larger than the exact ones make a matrix that is no larger. Scores that are off by e change p_k by
a factor between ``exp(-2 e)`` and ``exp(2 e)``, and the whole of p, in the sum of sizes, by at most 2 e.

Source: Bach (2010), "Self-concordant analysis for logistic regression"; Sun and Tran-Dinh (2019), "Generalized
self-concordant functions", for the softmax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from saddlesvm.answers.curvature import FACTORED, MATRICES, OUTER_UNITS, TRUSTED, Curvature, factored
from saddlesvm.answers.labels import Labels, largest_by_differences
from saddlesvm.answers.neighbourhood import LONG, Neighbourhood, radius_by_steepening
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.multinomial import SOFTMAX_UNITS, MultinomialProblem
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.proven_sums import norm_of
from saddlesvm.problem.rounding import MARGIN_UNITS, SLACK, UNDERFLOW, UNIT, gamma, radii
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.rows.layouts import Rows, as_rows, longest_row, n_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.solvers.second_order.linear_algebra import Threads, add_outer, blocks, widened

BOTH = math.sqrt(2.0) * (1.0 + 1e-15)  # of two classes' weights, that move apart
PLAIN = Curvature(None, 1.0)  # of half a square alone
FAINT = 1e-140  # probabilities below it count as none: products of two would underflow


@dataclass(frozen=True, eq=False)
class MixedCurvature(Curvature):
    """The same matrix for one combination of the classes: rows x stand for ``x (x) mix``, `mix` of -1, 0 and 1."""

    mix: np.ndarray | None = None

    def row_norms(self, X: Rows, chosen: np.ndarray | None = None) -> np.ndarray:
        assert self.mix is not None
        return mixed_norms(self, X, np.broadcast_to(self.mix, (n_rows(X), self.mix.size)))

    def unit_norms(self, size: int) -> np.ndarray:
        assert self.mix is not None
        return self.norms_of(_mixed(np.eye(size), np.broadcast_to(self.mix, (size, self.mix.size))))


def _mixed(x: np.ndarray, mixes: np.ndarray) -> np.ndarray:
    """The columns ``x_i (x) mixes_i``, shape (K (d + 1), n), in Fortran order."""
    return np.asarray((mixes[:, :, None] * x[:, None, :]).reshape(len(x), -1).T)


def mixed_norms(curvature: Curvature, X: Rows, mixes: np.ndarray) -> np.ndarray:
    """``||x_i (x) mixes_i||`` in the norm of the inverse of H, at most, shape (n,); `mixes` has the shape (n, K)."""
    assert curvature.factor is not None
    parts = blocks(np.arange(n_rows(X)), len(curvature.factor))
    found = [curvature.norms_of(_mixed(widened(X, part, np.ones(part.size)), mixes[part])) for part in parts]
    return np.concatenate([*found, np.empty(0)])


def norms_apart(curvature: Curvature, X: Rows, best: np.ndarray, n_classes: int) -> np.ndarray:
    """``||x_i (x) (e_best - e_k)||`` in that norm, at most, shape (n, K)."""
    unit = np.eye(n_classes)
    return np.column_stack([mixed_norms(curvature, X, unit[best] - unit[k]) for k in range(n_classes)])


@dataclass(frozen=True, eq=False)
class JointNeighbourhood:
    """All weights at most `radius` from W, shape (K, d + 1), in the norm of all of them together: the plain one, unless
    `curvature` has another."""

    W: np.ndarray
    radius: float
    scale: float
    curvature: Curvature = PLAIN

    def parts(self) -> list[Neighbourhood]:
        """One a class; of two classes that of the difference, the second against the first."""
        curvature, mixes = self.curvature, np.array([[-1.0, 1.0]]) if len(self.W) == 2 else np.eye(len(self.W))
        centers, radius = mixes @ self.W, self.radius
        if curvature.factor is not None:  # a rounding of the centers is among those of scores and weights
            every = [MixedCurvature(curvature.factor, curvature.floor, curvature.wider, mix) for mix in mixes]
            return [
                Neighbourhood(w, radius, own, self.scale, None, "curvature")
                for w, own in zip(centers, every, strict=True)
            ]
        if len(self.W) == 2:
            radius = BOTH * radius + 4.0 * gamma(1.0) * norm_of(centers)
        return [Neighbourhood(w, radius, curvature, self.scale) for w in centers]

    def labels(self, X: Any) -> Labels:
        """The class of each row, and whether it is proven; `X` is an ndarray or a CSR matrix of shape (m, d)."""
        rows = as_rows(X, self.scale)
        norms, z = radii(squared_norms(rows, n_rows(rows))), scores_of_rows(rows, self.W)
        slips = gamma(longest_row(rows) + 1.0 + MARGIN_UNITS) * max(map(norm_of, self.W)) * norms
        if not math.isfinite(self.radius):
            return largest_by_differences(z, np.inf * norms)
        apart = BOTH * norms[:, None]
        if self.curvature.factor is not None:
            apart = norms_apart(self.curvature, rows, z.argmax(axis=1), len(self.W))
        return largest_by_differences(z, SLACK * (self.radius * apart + 2.0 * slips[:, None]))


def joint_neighbourhood(problem: JointProblem, W: np.ndarray, gap: float) -> JointNeighbourhood:
    """The ball of a joint problem at W, shape (K, d + 1), by its gap in the C form, or the softmax's curvature where
    that makes it narrower. With free intercepts there is only the latter; the sum of the optimum's intercepts is that
    of the intercepts of W."""
    square = modulus(problem.penalty)
    known = square > 0.0 and gap >= 0.0
    bounded = known and not problem.intercept.constrained
    plain = JointNeighbourhood(W, SLACK * math.sqrt(2.0 * gap / square) if bounded else math.inf, problem.scale)
    if not known or not isinstance(problem, MultinomialProblem) or W.size > FACTORED or problem.fixed.size:
        return plain
    return _by_curvature(problem, W, plain)


def _by_curvature(problem: MultinomialProblem, W: np.ndarray, plain: JointNeighbourhood) -> JointNeighbourhood:
    """The ball in the norm of F''(W); the plain one where the gradient is too long for it, or there is no factor."""
    p = scores_of_rows(problem.X, W)
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    slips = SLACK * gamma(problem.row_sizes.terms + MARGIN_UNITS) * max(map(norm_of, W)) * problem.lengths + UNDERFLOW
    gradient, error = _gradient_at(problem, W, p, slips)
    p[p < FAINT] = 0.0
    H, terms = _second_derivative(problem, p, slips), float(problem.y.size + problem.n_classes)
    floor = _lifted(H, terms) if problem.intercept.constrained else 1.0
    curvature = factored(H.reshape(W.size, W.size).T, terms, floor) if floor > 0.0 else None
    if curvature is None:
        return plain
    size = curvature.dual_norm(gradient.ravel(), error)
    longest = SLACK * BOTH * float(problem.lengths.max(initial=0.0)) / math.sqrt(floor)
    if longest * size > LONG:
        apart = norms_apart(curvature, problem.X, np.zeros(problem.y.size, dtype=np.intp), problem.n_classes)
        longest = float(np.sort(apart, axis=1)[:, -2:].sum(axis=1).max(initial=0.0)) * (1.0 + gamma(2.0))
    radius = radius_by_steepening(size, longest)
    narrower = math.isfinite(radius) and radius <= plain.radius
    return JointNeighbourhood(W, radius, problem.scale, curvature) if narrower else plain


def _gradient_at(
    problem: MultinomialProblem, W: np.ndarray, p: np.ndarray, slips: np.ndarray
) -> tuple[np.ndarray, float]:
    """The gradient at W by the rows' probabilities, shape (K, d + 1), and how far the exact one is from it, at most."""
    codes, weights, every = problem.codes, problem.all_weights, np.arange(problem.y.size)
    alpha = -weights[:, None] * p
    alpha[every, codes] = 0.0
    alpha[every, codes] = -alpha.sum(axis=1)
    near = [pulled_by_short_sums(problem, np.ascontiguousarray(one)) for one in alpha.T]
    pull = np.array([one.pull for one in near])
    off = 2.0 * weights * slips + UNDERFLOW
    off += 3.0 * gamma(problem.n_classes + SOFTMAX_UNITS) * np.abs(alpha).sum(axis=1)
    error = norm_of(np.array([one.errors for one in near])) + 4.0 * UNIT * (norm_of(W) + norm_of(pull))
    charged = W.copy()
    charged[:, -1] *= not problem.intercept.constrained
    return charged - pull, error + SLACK * problem.C * float(np.einsum("i,i", off, problem.lengths))


def _second_derivative(problem: MultinomialProblem, p: np.ndarray, slips: np.ndarray) -> np.ndarray:
    """A matrix that is no larger than F'' but for the rounding of sums, shape (K, d + 1, K, d + 1)."""
    K, d = problem.n_classes, problem.n_features + 1
    sure = 1.0 - 4.0 * SLACK * slips - 3.0 * gamma(K + SOFTMAX_UNITS)
    weights = problem.C * problem.all_weights * np.maximum(sure, 0.0)
    H, threads, rivals = np.zeros((K, d, K, d)), Threads(problem.threads, MATRICES), np.zeros(p.shape)

    def summed(factors: np.ndarray) -> np.ndarray:
        chosen, total = np.flatnonzero(factors), np.zeros((d, d), order="F")
        add_outer(problem.X, chosen, factors[chosen], total, threads=threads)
        return np.tril(total) + np.tril(total, -1).T

    for k, m in combinations(range(K), 2):
        product = weights * p[:, k] * p[:, m]
        rivals[:, k] += product
        rivals[:, m] += product
        H[k, :, m] = H[m, :, k] = -summed(product)
    charged = np.eye(d)
    charged[-1, -1] *= not problem.intercept.constrained
    for k in range(K):
        H[k, :, k] = summed(rivals[:, k]) + charged
    return H


def _lifted(H: np.ndarray, terms: float) -> float:
    """A number below the eigenvalues of the second derivative of a problem with free intercepts, which is lifted along
    the direction in which it is flat; not positive where rounding leaves none.

    Parameters
    ----------
    H : ndarray of shape (K, d + 1, K, d + 1)
    terms : float
        That each of its places is the sum of, at most.
    """
    K = len(H)
    H[:, -1, :, -1] += np.trace(H[:, -1, :, -1]) / K**2
    A, B = H[:, -1, :, -1], H[:, -1, :, :-1]
    lowest = float(np.linalg.eigvalsh(A)[0]) - gamma(terms + OUTER_UNITS) * 2.0 * float(np.trace(A))
    if not lowest > 0.0:
        return 0.0
    slack = 1.0 - TRUSTED  # covers the rounding of B and of the quotient, which is far smaller
    return slack * lowest / (1.0 + lowest + float(np.sum(B * B)) / lowest)
