"""Newton's equations ``(R + C sum_i bend_i x_i x_i') D = -gradient``, solved roughly.

The matrix, or a factor of it, comes from a share of the rows, which is good enough: a step that is
slightly wrong costs a pass, and the whole matrix costs many. It serves for several steps: if a step
s changed the gradient by y, the inverse has to take y to s, which corrects it (L-BFGS, with the
factor in the place of a scaled identity).

:mod:`saddlesvm.solvers.memory_equations` has the equations of rows in memory,
:mod:`saddlesvm.solvers.class_equations` those of several classes. If a pass is expensive, it has
returned the matrix already (:class:`MatrixEquations`).

Source: Byrd, Hansen, Nocedal and Singer (2016), "A stochastic quasi-Newton method for large-scale
optimization"; Nocedal and Wright (2006), "Numerical optimization", algorithm 7.4; Lin, Weng and
Keerthi (2008), "Trust region Newton method for large-scale logistic regression".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from saddlesvm.rows.matrix import pieces
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.task import PassCurvature, Task

# Features below which the matrix is formed: 8 MB, a third of a second to factor; guessed.
FEW_FEATURES = 1000
# Rows for each feature that the curvature needs; measured on 30,000 x 50 ... 100,000 x 100.
PER_FEATURE = 60
# So many times n / d rows form their matrix in the time of a pass; measured, 30,000 x 50.
ROWS_PER_PASS = 6.0
# Relative residual at which conjugate gradients stop; the next step makes up for the rest.
FORCING = 0.3
MOST_PRODUCTS = 200  # iterations of conjugate gradients at most; guessed
# What is added to the diagonal of the matrix for each feature, as a share of it, if its products
# are summed in float64, and in float32; derived from their rounding.
RAISED = (1e-15, 1e-7)
# If a matrix has no Cholesky factor, so much is added to its diagonal, relative to the largest
# place; then a hundred times as much, and so on. Both guessed.
FIRST_LIFT = 1e-14
LIFT_GROWTH = 100.0
MOST_LIFTS = 8
MOST_SECANTS = 8  # steps that correct a factor at most; guessed
LEAST_BEND = 2.0**-52  # s.y / (||s|| ||y||) below which it may be rounding alone

Product = Callable[[np.ndarray], np.ndarray]


class Equations:
    """Newton's equations at a point; later steps correct the inverse of their matrix.

    Subclasses define :meth:`inverse`.

    Attributes
    ----------
    secants : list of (ndarray, ndarray)
        The last steps, and by how much the gradient changed along them.
    bent : int
        Number of rows that bend.
    way : str
        How they are solved, in words; empty if there is a single way.
    is_rough : bool
        True if a preconditioner alone stands for the inverse: the secants do the rest.
    """

    secants: list[tuple[np.ndarray, np.ndarray]]
    bent: int
    way: str = ""
    is_rough: bool = False

    @property
    def serves(self) -> bool:
        """Return True if the factor may serve for several steps, corrected by the secants."""
        return True

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """Return the solution of the equations at a gradient, corrected by the secants."""
        # The two loops of L-BFGS (Nocedal and Wright, algorithm 7.4), with the solution of the
        # equations in the place of a scaled identity. First, newest pair first:
        # alpha_i = s_i . q / s_i . y_i, and q <- q - alpha_i y_i.
        q = -gradient
        alphas = []
        for s, y in reversed(self.secants):
            alpha = float(np.vdot(s, q)) / float(np.vdot(s, y))
            alphas.append(alpha)
            q = q - alpha * y
        r = self.inverse(q)
        # Back again: beta_i = y_i . r / s_i . y_i, and r <- r + (alpha_i - beta_i) s_i.
        for (s, y), alpha in zip(self.secants, reversed(alphas), strict=True):
            r = r + (alpha - float(np.vdot(y, r)) / float(np.vdot(s, y))) * s
        return r

    def learn(self, s: np.ndarray, y: np.ndarray) -> None:
        """Learn from a step s that changed the gradient by y, if the gradient rose along it."""
        if float(np.vdot(s, y)) > LEAST_BEND * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self.secants = [*self.secants[1 - MOST_SECANTS :], (s, y)]

    def without_rows(self) -> Equations:
        """Return equations with the secants of the last steps, and without rows."""
        secants_only = Equations()
        secants_only.secants = self.secants
        secants_only.bent = self.bent
        return secants_only

    def inverse(self, target: np.ndarray) -> np.ndarray:
        """Solve the equations as they were at their point."""
        raise NotImplementedError


class MatrixEquations(Equations):
    """Newton's equations of one score a row, whose matrix a pass over the rows has summed.

    Parameters
    ----------
    task : Task
    curvature : PassCurvature
        With a matrix.
    """

    def __init__(self, task: Task, curvature: PassCurvature) -> None:
        assert curvature.matrix is not None
        ridge = np.maximum(task.ridge, task.least_ridge)
        self.secants = []
        self.bent = curvature.bent
        matrix = task.C * curvature.matrix
        # A sum of products x_ij x_ik rounds in proportion to the root of both diagonal places.
        raised = RAISED[curvature.is_coarse] * ridge.size * matrix.diagonal()
        matrix.flat[:: ridge.size + 1] += ridge + raised
        self.factor = cholesky(matrix)

    def inverse(self, target: np.ndarray) -> np.ndarray:
        """Solve the equations by the factor."""
        solved: np.ndarray = dpotrs(self.factor, target, lower=1)[0]
        return solved


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of a matrix; raise its diagonal if it is nearly singular."""
    lift = 0.0
    for _ in range(MOST_LIFTS):
        factor, failed = dpotrf(matrix, lower=1, clean=0)
        if not failed:
            break
        lift = max(LIFT_GROWTH * lift, FIRST_LIFT * float(matrix.diagonal().max()))
        matrix.flat[:: matrix.shape[0] + 1] += lift
    return factor


def conjugate_gradients(
    multiply: Product,
    precondition: Product,
    target: np.ndarray,
    most: int = MOST_PRODUCTS,
    forcing: float = FORCING,
) -> tuple[np.ndarray, bool]:
    """Solve ``multiply(D) = target`` to a relative residual; return D, and if that is reached."""
    # Nocedal and Wright, algorithm 5.3, with r the residual, y the preconditioned residual
    # `solved`, and r . y its `size`.
    D = np.zeros_like(target)
    residual = target.copy()
    solved = precondition(residual)
    search = solved.copy()
    size = float(np.vdot(residual, solved))
    first = size
    for _ in range(most):
        if size <= forcing**2 * first or time_is_up():
            break
        # The minimum along the search direction.
        curved = multiply(search)
        bend = float(np.vdot(search, curved))
        if not bend > 0.0:
            # Rounding hides the curvature along the search direction.
            return D, True
        length = size / bend
        D += length * search
        residual -= length * curved
        # The next direction is conjugate to the earlier ones.
        solved = precondition(residual)
        before = size
        size = float(np.vdot(residual, solved))
        search = solved + (size / before) * search
    return D, size <= forcing**2 * first


def draw(parts: np.ndarray, count: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw about `count` rows in proportion to their parts of a sum, and weigh them.

    The weights keep the sum. The rows are drawn at equal distances along the sum of the odds.
    """
    total = float(parts.sum())
    if total == 0.0:
        return np.empty(0, dtype=np.int64), np.empty(0)
    rows = []
    weights = []
    sum_so_far = 0.0
    # A row is drawn where the sum of the odds, rounded, rises. A few rows at a time: no array of
    # all rows is made.
    for some in pieces(parts.size):
        odds = np.minimum(1.0, parts[some] * (count / total))
        sums = sum_so_far + np.cumsum(odds)
        marks = np.floor(sums + 0.5)
        drawn = np.flatnonzero(np.diff(marks, prepend=np.floor(sum_so_far + 0.5)) > 0.0)
        rows.append(some.start + drawn)
        weights.append(parts[some][drawn] / odds[drawn])
        sum_so_far = float(sums[-1])
    return np.concatenate(rows), np.concatenate(weights)
