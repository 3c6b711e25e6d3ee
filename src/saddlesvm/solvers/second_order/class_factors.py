"""Approximate inverses of a joint machine's second derivative, for its conjugate gradients.

    ClassFactors    its diagonal blocks, one Cholesky factor a class, from a few rows a feature, drawn with
                    probabilities in proportion to their part of the sum
    Diagonal        the diagonal, where there are too many features for matrices of them

Both leave out how the classes hang together, and bring each result back to where the classes' weights sum to zero, as
those of the optimum do.

Source: Byrd, Chin, Neveitt and Nocedal (2011), "On the use of stochastic Hessian information in optimization methods
for machine learning", for second derivatives of samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dpotrs

from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.solvers.second_order.linear_algebra import BLAS_SPEED, cholesky, widen

ROWS_PER_FEATURE = 3.0  # rows that stand for all rows of a class's matrix
FEWEST_ROWS = 500.0
FACTOR_VALUES = 32_000_000  # numbers that the factors of all classes, or the sums of all parts, may take: 256 MB


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
    some = widen(problem.X, chosen, factors, problem.dtype)
    return np.asarray(some.T @ some, dtype=np.float64)


def _centred(problem: JointProblem, found: np.ndarray) -> np.ndarray:
    """The array less its mean over the classes, in place."""
    each = problem.by_class(found)
    each -= each.mean(axis=0)
    return found
