"""Approximate inverses of a joint machine's second derivative, for its conjugate gradients.

Multinomial regression's is ``R + C sum_i s_i (diag(p_i) - p_i p_i') (x) x_i x_i'``. Three approximations:

    ClassFactors    its diagonal blocks ``R + C sum_i s_i p_ik (1 - p_ik) x_i x_i'``, one Cholesky factor a class, from
                    a few rows a feature, drawn with probabilities in proportion to their part of the sum
    SharedFactor    ``R + g_k G`` with one matrix G for all classes and one number for each: a single decomposition
    Diagonal        the diagonal, where there are too many features for matrices of them

A row whose class is certain has no part in the sum, so that a few thousand rows stand for all where most are. All three
leave out how the classes hang together, and bring each result back to where the classes' weights sum to
zero, as those of the optimum do.

Source: Byrd, Chin, Neveitt and Nocedal (2011), "On the use of stochastic Hessian information in optimization methods
for machine learning", for second derivatives of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrs

from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.joint_losses import softmax
from saddlesvm.problem.multinomial import MultinomialProblem
from saddlesvm.rows.class_rows import FEWEST, block_rows
from saddlesvm.solvers.second_order.linear_algebra import BLAS_SPEED, cholesky, widened

ROWS_PER_FEATURE = 3.0  # rows that stand for all rows of a class's matrix
SHARED_ROWS = 5.0  # the same for the matrix of all classes
FEWEST_ROWS = 500.0
FACTOR_VALUES = 32_000_000  # numbers that the factors of all classes, or the sums of all parts, may take: 256 MB
# Numbers that they may take in a multinomial fit, if its rows and probabilities take fewer: 8 MB. Where there are many
# classes of few rows, one matrix for all classes also takes less time: a half to a quarter for 100 to 1,000 classes of
# 2 to 10 rows (measured).
FREE_VALUES = 1_000_000
MOST_PRODUCTS = 40.0  # products with the second derivative that making factors may cost


class Inverse(Protocol):
    """An approximate inverse."""

    def __call__(self, residual: np.ndarray) -> np.ndarray:
        """The inverse times an array in the layout of the rows."""


class ClassFactors:
    """One Cholesky factor a class.

    Parameters
    ----------
    problem : JointProblem
    parts_of : callable
        The factors of the rows' squares in the block of a class, divided by C, shape (n_all,), by its number.
    random : Generator
    """

    def __init__(
        self, problem: JointProblem, parts_of: Callable[[int], np.ndarray], random: np.random.Generator
    ) -> None:
        self.problem = problem
        d = problem.n_features + 1
        self.factors = np.empty((problem.n_classes, d, d))
        for k in range(problem.n_classes):
            self.factors[k] = self._of_class(parts_of(k), random).T

    def _of_class(self, parts: np.ndarray, random: np.random.Generator) -> np.ndarray:
        problem = self.problem
        total, wanted = float(parts.sum()), max(FEWEST_ROWS, ROWS_PER_FEATURE * (problem.n_features + 1))
        odds = np.minimum(1.0, wanted * parts / total) if total > 0.0 else np.zeros(parts.size)
        chosen = np.nonzero(random.random(parts.size) < odds)[0]
        factors = np.sqrt(problem.C * parts[chosen] / odds[chosen])
        return cholesky(np.asfortranarray(_gram(problem, chosen, factors) + np.eye(problem.n_features + 1)))

    def __call__(self, residual: np.ndarray) -> np.ndarray:
        found = np.empty_like(residual)
        inside, out = self.problem.by_class(residual), self.problem.by_class(found)
        for k, factor in enumerate(self.factors):
            out[k] = dpotrs(factor.T, inside[k], lower=1)[0]
        return _centred(self.problem, found)


class SharedFactor:
    """One decomposition for all classes: ``G = E diag(l) E'``.

    Parameters
    ----------
    problem : MultinomialProblem
    W : ndarray
        The weights whose probabilities count, in the layout of the rows.
    random : Generator
    """

    def __init__(self, problem: MultinomialProblem, W: np.ndarray, random: np.random.Generator) -> None:
        self.problem = problem
        members = problem.members
        wanted = int(max(FEWEST_ROWS, SHARED_ROWS * (problem.n_features + 1)))
        chosen = np.sort(random.choice(members, min(wanted, members.size), replace=False))
        classes, total = np.zeros(problem.n_classes), np.zeros((problem.n_features + 1,) * 2)
        size = max(FEWEST, block_rows(problem.X, problem.n_classes) // 4)
        for start in range(0, chosen.size, size):  # the probabilities of the sample may take more room than all rows
            some = chosen[start : start + size]
            p = softmax(widened(problem.X, some, np.ones(some.size)) @ problem.by_class(W).T)
            p *= 1.0 - p
            p *= problem.all_weights[some][:, None] * (members.size / chosen.size)
            classes += p.sum(axis=0)
            total += _gram(problem, some, np.sqrt(p.sum(axis=1)))
        total /= max(float(classes.sum()), 1e-300)
        bends, self.vectors = eigh(total, overwrite_a=True, check_finite=False)
        self.classes, self.bends = problem.C * classes, np.maximum(bends, 0.0)

    def __call__(self, residual: np.ndarray) -> np.ndarray:
        turned = self.problem.by_class(residual) @ self.vectors
        for own, bend in zip(turned, self.classes, strict=True):
            own /= 1.0 + bend * self.bends
        found = np.empty_like(residual)
        self.problem.by_class(found)[:] = turned @ self.vectors.T
        return _centred(self.problem, found)


class Diagonal:
    """The diagonal of the second derivative.

    Parameters
    ----------
    problem : JointProblem
    bends : ndarray
        What the diagonal adds to that of R, divided by C, in the layout of the rows.
    """

    def __init__(self, problem: JointProblem, bends: np.ndarray) -> None:
        self.problem = problem
        self.inverse = 1.0 / (1.0 + problem.C * bends)

    def __call__(self, residual: np.ndarray) -> np.ndarray:
        return _centred(self.problem, self.inverse * residual)


def make_inverse(problem: MultinomialProblem, W: np.ndarray, kept: np.ndarray, random: np.random.Generator) -> Inverse:
    """The best of the three that is worth its price.

    Parameters
    ----------
    problem : MultinomialProblem
    W : ndarray
        In the layout of the rows.
    kept : ndarray of shape (n_all, K) or empty
        ``e_y - p`` at W with the rows' probabilities p, if they are kept.
    random : Generator
    """
    d, K = float(problem.n_features + 1), problem.n_classes
    most = MOST_PRODUCTS * 4.0 * K * (problem.n_values + problem.y.size)
    room = min(FACTOR_VALUES, max(FREE_VALUES, problem.n_values + kept.size))
    if kept.shape[0] and K * d * d <= room and _factor_operations(problem, float(problem.y.size)) <= most:

        def parts_of(k: int) -> np.ndarray:
            share = np.abs(kept[:, k])  # p or 1 - p
            return np.asarray(problem.all_weights * share * (1.0 - share))

        return ClassFactors(problem, parts_of, random)
    rows = min(float(problem.y.size), max(FEWEST_ROWS, SHARED_ROWS * d))
    if d * d <= FACTOR_VALUES and d * d * (rows + 10.0 * d) <= most:
        return SharedFactor(problem, W, random)
    bends = np.zeros(W.shape, dtype=np.float64)
    for block, pulls, _, weights in problem.pulls(W, kept, np.dtype(np.float64)):
        share = np.abs(pulls)
        block.add(weights[:, None] * share * (1.0 - share.astype(np.float64)), bends, squared=True)
    return Diagonal(problem, bends)


def factors_fit(problem: JointProblem) -> bool:
    """Whether the factors of all classes fit into the memory that they may take."""
    return problem.n_classes * (problem.n_features + 1.0) ** 2 <= FACTOR_VALUES


def factors_cost(problem: JointProblem, counts: np.ndarray) -> float:
    """Rough seconds of making the factors of all classes; `counts` says in how many of them each row has a part."""
    return _factor_operations(problem, float(counts.sum()) / problem.n_classes) / BLAS_SPEED


def _factor_operations(problem: JointProblem, rows: float) -> float:
    """Operations that making the factors of all classes takes, each of this many rows at most."""
    d = problem.n_features + 1.0
    rows = min(rows, max(FEWEST_ROWS, ROWS_PER_FEATURE * d))
    return problem.n_classes * d * d * (rows + d / 3.0)


def _gram(problem: JointProblem, chosen: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """``sum factors_i^2 x_i x_i'`` over the chosen rows, shape (d + 1, d + 1), summed in the precision of the rows."""
    some = widened(problem.X, chosen, factors, problem.dtype)
    return np.asarray(some.T @ some, dtype=np.float64)


def _centred(problem: JointProblem, found: np.ndarray) -> np.ndarray:
    """The array less its mean over the classes, in place."""
    each = problem.by_class(found)
    each -= each.mean(axis=0)
    return found
