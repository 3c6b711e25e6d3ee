"""Labels that follow from bounds on scores: whatever scores between them the exact optimum has, its label is the same.

Each function takes bounds of shape (n, k) and gives the label's number and whether it is proven, both of shape (n,). A
label without proof is that of the middle of the bounds. Verdicts say whether the labels are right, wrong, or undecided,
and bound an error.

Bounds on the optimum of a joint machine: all classes' weights W together, shape (K, d + 1), are in one ball.

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
from typing import Any, Literal

import numpy as np

from saddlesvm.answers.neighbourhood import (
    FACTORED,
    LONG,
    MATRICES,
    OUTER_UNITS,
    TRUSTED,
    Curvature,
    Neighbourhood,
    factored,
    radius_by_steepening,
)
from saddlesvm.multiclass.sub_problems import vote
from saddlesvm.problem.bounds import MARGIN_UNITS, SLACK, UNDERFLOW, UNIT, gamma, norm_of, radii
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.multinomial import SOFTMAX_UNITS, MultinomialProblem
from saddlesvm.problem.penalties import modulus
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.rows.layouts import Rows, as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.scores import scores_of_rows
from saddlesvm.solvers.second_order.linear_algebra import Threads, add_outer, blocks, widen

Labels = tuple[np.ndarray, np.ndarray]
Rule = Literal["largest", "votes", "each"]


def labels_between(low: np.ndarray, high: np.ndarray, n_classes: int, rule: Rule) -> Labels:
    """The labels by bounds on scores, and whether they are proven, each of shape (n,).

    Parameters
    ----------
    low, high : ndarray of shape (n, k)
    n_classes : int
    rule : {"largest", "votes", "each"}
        The largest score of the classes decides (the sign of the score of two); or the most votes of the scores of
        pairs; or each column of the scores is a label of its own: both arrays then have the shape (n, k).
    """
    if rule == "each" or low.shape[1] == 1:
        label, proven = signs_of(low, high)
        return (label, proven) if rule == "each" else (label[:, 0], proven[:, 0])
    return most_votes_of(low, high, n_classes) if rule == "votes" else largest_of(low, high)


def middle_of(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The middle of bounds, 0 where both are infinite."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(0.5 * low + 0.5 * high, nan=0.0)


def signs_of(low: np.ndarray, high: np.ndarray) -> Labels:
    """Of each score by itself, shape (n, k): 1 where it is positive, else 0."""
    return (middle_of(low, high) > 0.0).astype(np.intp), (low > 0.0) | (high <= 0.0)


def largest_of(low: np.ndarray, high: np.ndarray) -> Labels:
    """Of one score a class: the class with the largest one."""
    best, rows = middle_of(low, high).argmax(axis=1), np.arange(len(low))
    rival = high.copy()
    rival[rows, best] = -np.inf
    return best, low[rows, best] > rival.max(axis=1)


def largest_by_differences(z: np.ndarray, away: np.ndarray) -> Labels:
    """Of one score a class, where each difference of two is known up to `away`, shape (n,); or that of the largest and
    each other one, shape (n, k)."""
    best, rows = z.argmax(axis=1), np.arange(len(z))
    ahead = z[rows, best, None] - z
    ahead[rows, best] = np.inf
    return best, (ahead > away.reshape(len(z), -1)).all(axis=1)


def most_votes_of(low: np.ndarray, high: np.ndarray, n_classes: int) -> Labels:
    """Of one score a pair of classes: the class with the most votes, ties broken by sums of scores, see
    :func:`~saddlesvm.multiclass.sub_problems.vote`."""
    n = len(low)
    fewest, most = np.zeros((n, n_classes)), np.zeros((n, n_classes))
    least, largest = np.zeros((n, n_classes)), np.zeros((n, n_classes))
    for k, (first, second) in enumerate(combinations(range(n_classes), 2)):
        fewest[:, second] += low[:, k] > 0.0
        most[:, second] += high[:, k] > 0.0
        fewest[:, first] += high[:, k] <= 0.0
        most[:, first] += low[:, k] <= 0.0
        least[:, second] += low[:, k]
        largest[:, second] += high[:, k]
        least[:, first] -= high[:, k]
        largest[:, first] -= low[:, k]
    slip = n_classes * np.finfo(np.float64).eps * np.maximum(np.abs(least), np.abs(largest))
    least, largest = least - slip, largest + slip
    best, rows = vote(middle_of(low, high), n_classes).argmax(axis=1), np.arange(n)
    own, sums = fewest[rows, best, None], least[rows, best, None]
    beaten = (own > most) | ((own == most) & (sums > largest))
    beaten[rows, best] = True
    return best, beaten.all(axis=1)


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Bounds of each row's error, from bounds of its scores.

    Attributes
    ----------
    low, high : ndarray of shape (n,)
        Between what the row's error lies: 0 or 1, a share of several labels, or a squared distance.
    decided : ndarray of shape (n,), bool
        Whether each label of the row is proven right or wrong; empty for targets.
    proven : int or None
        Labels that are; None for targets, and where nothing is proven of any.
    """

    low: np.ndarray
    high: np.ndarray
    decided: np.ndarray
    proven: int | None

    def error(self, weights: np.ndarray) -> tuple[float, float]:
        """The bounds of the error, given the weights of the rows; rows of weight zero do not count."""
        return mean_of(self.low, weights), mean_of(self.high, weights)


def mean_of(errors: np.ndarray, weights: np.ndarray) -> float:
    """The mean of the rows' errors, shape (n,), correctly rounded sums; of the rows with positive weight."""
    some = weights > 0.0
    return _sum_of(weights[some] * errors[some]) / _sum_of(weights[some])


def _sum_of(values: np.ndarray) -> float:
    """The correctly rounded sum of some numbers that are not negative; whole ones add up exactly in any order."""
    total = float(values.sum())
    return total if total < 2.0**53 and (values == np.floor(values)).all() else math.fsum(values)


def label_verdicts(low: np.ndarray, high: np.ndarray, labels: np.ndarray) -> Verdicts:
    """The predicted labels that are proven.

    Parameters
    ----------
    low, high : ndarray of shape (n, k)
        Bounds of the scores: of class 1 against class 0 where k is 1, of each of k classes, or of k labels of a row.
    labels : ndarray of shape (n,) or (n, k)
        The codes of the right classes; or the signs of all labels of the rows.
    """
    if labels.ndim == 2 or low.shape[1] == 1:
        positive = labels > 0 if labels.ndim == 2 else labels[:, None] == 1
        right, wrong = np.where(positive, low > 0.0, high <= 0.0), np.where(positive, high <= 0.0, low > 0.0)
    else:
        rows = np.arange(len(low))
        others_low, others_high = low.copy(), high.copy()
        others_low[rows, labels] = others_high[rows, labels] = -np.inf
        right = (low[rows, labels] > others_high.max(axis=1))[:, None]
        wrong = (high[rows, labels] < others_low.max(axis=1))[:, None]
    decided = np.asarray(right | wrong)
    proven = int(np.count_nonzero(decided)) if np.isfinite(low).any() else None
    return Verdicts(wrong.mean(axis=1), 1.0 - right.mean(axis=1), np.asarray(decided.all(axis=1)), proven)


def squared_errors(low: np.ndarray, high: np.ndarray, y: np.ndarray) -> Verdicts:
    """Bounds on the squared errors of predictions, from bounds on the predictions, shape (n,)."""
    below, above = low - y, high - y
    with np.errstate(over="ignore"):
        most = np.maximum(below**2, above**2)
        least = np.where((below <= 0.0) & (above >= 0.0), 0.0, np.minimum(below**2, above**2))
    # A difference, a square and a mean are rounded.
    return Verdicts(least * (1.0 - gamma(8.0)), most * (1.0 + gamma(8.0)), np.empty(0, dtype=bool), None)


BOTH = math.sqrt(2.0) * (1.0 + 1e-15)  # of two classes' weights, that move apart
PLAIN = Curvature(None, 1.0)  # of half a square alone
FAINT = 1e-140  # probabilities below it count as none: products of two would underflow


@dataclass(frozen=True, eq=False)
class MixedCurvature(Curvature):
    """The same matrix for one combination of the classes: rows x stand for ``x (x) mix``, `mix` of -1, 0 and 1."""

    mix: np.ndarray | None = None

    def row_norms(self, X: Rows, chosen: np.ndarray | None = None) -> np.ndarray:
        assert self.mix is not None
        return mixed_norms(self, X, np.broadcast_to(self.mix, (X.n_rows, self.mix.size)))

    def unit_norms(self, size: int) -> np.ndarray:
        assert self.mix is not None
        return self.norms_of(_mixed(np.eye(size), np.broadcast_to(self.mix, (size, self.mix.size))))


def _mixed(x: np.ndarray, mixes: np.ndarray) -> np.ndarray:
    """The columns ``x_i (x) mixes_i``, shape (K (d + 1), n), in Fortran order."""
    return np.asarray((mixes[:, :, None] * x[:, None, :]).reshape(len(x), -1).T)


def mixed_norms(curvature: Curvature, X: Rows, mixes: np.ndarray) -> np.ndarray:
    """``||x_i (x) mixes_i||`` in the norm of the inverse of H, at most, shape (n,); `mixes` has the shape (n, K)."""
    assert curvature.factor is not None
    parts = blocks(np.arange(X.n_rows), len(curvature.factor))
    found = [curvature.norms_of(_mixed(widen(X, part, np.ones(part.size)), mixes[part])) for part in parts]
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
        norms, z = radii(squared_norms(rows)), scores_of_rows(rows, self.W)
        slips = gamma(rows.longest_row + 1.0 + MARGIN_UNITS) * max(map(norm_of, self.W)) * norms
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
