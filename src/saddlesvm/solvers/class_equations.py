"""Newton's equations of several classes, solved by conjugate gradients over all classes at once.

The second derivative of a row is ``s (diag(p) - p p')`` with its probabilities p, so that the
equations couple all classes. Their matrix is never formed: a product with it is two products with
some of the rows. A preconditioner makes few products enough; there are three:

    ClassFactors   factors of each class's own block, ``R + C sum_i s_i p_ik (1 - p_ik) x_i x_i'``
    SharedFactor   ``R + g_k G``, a matrix G for all classes and a number for each: decomposed once
    Diagonal       if there are too many features for matrices

The first two are made of a few rows for each feature, drawn in proportion to what they add.

At weights of zero a shared factor solves the equations exactly, since all rows have the same
probabilities. So it stands alone for the inverse at first, and the secants of the last steps
correct it (L-BFGS): a step takes no product. Conjugate gradients follow when such steps are slow.

Source: Lin, Weng and Keerthi (2008), "Trust region Newton method for large-scale logistic
regression"; Byrd, Chin, Neveitt and Nocedal (2011), "On the use of stochastic Hessian information
in optimization methods for machine learning".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrs

from saddlesvm.rows.places import Memory
from saddlesvm.solvers.equations import (
    FORCING,
    PER_FEATURE,
    ROWS_PER_PASS,
    Equations,
    cholesky,
    conjugate_gradients,
    draw,
)
from saddlesvm.solvers.machines import SoftmaxMachine
from saddlesvm.solvers.task import EvaluatedPoint, Task

# Relative residual at which products with few rows end if a pass over all is expensive; measured.
CAREFUL = 0.02
EXACT = 0.03  # the same for a loss with kinks, of which other rows bend after each step; measured
# Classes times features up to which the matrix of a loss with kinks is factored.
MOST_UNKNOWNS = 1500
TINY = np.finfo(float).tiny
# Bends that are kept; more are computed anew in each product; derived: 80 MB.
MOST_BENDS = 10_000_000
# Rows that stand for all in a class's matrix; measured on digits and made rows.
ROWS_PER_FEATURE = 3.0
SHARED_ROWS = 5.0  # the same for the matrix of all classes
FEWEST_ROWS = 500.0
MOST_VALUES = 32_000_000  # numbers that matrices may take: 256 MB
# Numbers that the matrices of all classes may always take: 8 MB; beyond, as many as rows and
# scores. If there are many classes of few rows, one matrix for all takes half to a quarter of
# the time (100 to 1,000 classes; measured).
FREE_VALUES = 1_000_000
WORTH = 40.0  # products with the equations' matrix that a preconditioner may cost
LEAST_DIAGONAL = 1e-12  # added to the diagonal, where a free intercept has no curvature


class ClassEquations(Equations):
    """Newton's equations at a point.

    Parameters
    ----------
    task : Task
    point : EvaluatedPoint
    fineness : float
        1 at first; larger for a curvature of more rows.

    Attributes
    ----------
    bent : int
        Number of rows that bend.
    """

    machine: SoftmaxMachine
    few: Memory
    whole: np.ndarray | None = None

    def __init__(
        self, task: Task, point: EvaluatedPoint, centre: np.ndarray, q: float, fineness: float
    ) -> None:
        place = task.place
        machine = task.machine
        assert isinstance(machine, SoftmaxMachine)
        self.secants = []
        self.ridge = task.ridge[:, None]
        self.W = point.W
        K = machine.ones.size
        curvature = point.curvature
        self.forcing = EXACT if machine.kinked else FORCING
        if curvature is not None:
            # The pass has taken some rows along, with the weight of all.
            self.forcing = CAREFUL
            assert curvature.few is not None
            assert curvature.machine is not None
            self.bent = curvature.bent
            self.C = task.C
            self.few = curvature.few
            self.machine = curvature.machine
            self.kept: np.ndarray | None = curvature.bends
            self.preconditioner = self.choose()
            return
        # The rows that bend; all rows if no scores are kept.
        bent = np.arange(place.n)
        bends = None
        if task.keeps_scores:
            bends = machine.bend(slice(0, place.n), point.Z, point.A, centre, q)
            bent = np.flatnonzero(bends @ machine.ones > 0.0)
        self.bent = bent.size
        # So many rows are enough: of more, every stride-th is taken, with the weight of all.
        rows_of_pass = ROWS_PER_PASS * place.n / max(1, place.d)
        enough = fineness * max(PER_FEATURE * (place.d + 1), rows_of_pass)
        stride = 1
        if not machine.kinked:
            stride = max(1, int(bent.size / enough))
        rows = bent[stride // 2 :: stride]
        self.C = task.C * bent.size / max(rows.size, 1)
        self.few = place
        self.machine = machine
        if rows.size < place.n:
            self.few = place.take(rows)
            self.machine = machine.take(rows)
        self.W = self.few.narrow(point.W)
        # Bends are kept if they fit, else computed anew in each product.
        self.kept = None if bends is None else bends[rows]
        if bends is None and rows.size * K <= MOST_BENDS:
            self.kept = np.concatenate(
                [self.bends_of(part, block) for part, block in self.few.blocks()]
            )
        if machine.kinked and K * (place.d + 1) <= MOST_UNKNOWNS:
            self.whole = cholesky(self.matrix())
            return
        self.preconditioner = self.choose()
        # Slow steps make the next equations finer, and these take products.
        self.is_rough = fineness == 1.0 and isinstance(self.preconditioner, SharedFactor)

    def matrix(self) -> np.ndarray:
        """Return the lower triangle of the whole matrix, of a loss with kinks."""
        # The second derivatives of a row are B_k [k = l] - B_k B_l / sum_m B_m, with its bends B.
        assert self.kept is not None
        K = self.machine.ones.size
        side = self.few.d + 1
        found = np.zeros((K, side, K, side))
        roots = self.kept / np.sqrt(np.maximum(self.kept @ self.machine.ones, TINY))[:, None]
        for k in range(K):
            for m in range(k + 1):
                weights = roots[:, k] * roots[:, m]
                rows = np.flatnonzero(weights)
                if k == m:
                    weights = self.kept[:, k] - weights
                    sign = 1.0
                else:
                    sign = -1.0
                if rows.size:
                    # Only the lower triangle of a sum of products is sure to be there, but a block
                    # off the diagonal needs all of it.
                    block = np.tril(self.few.gram(rows, weights[rows], np.float64))
                    block += np.tril(block, -1).T
                    found[k, :, m] = sign * self.C * block
        flat = found.reshape(K * side, K * side)
        flat.flat[:: K * side + 1] += np.tile(self.ridge[:, 0], K)
        return flat

    def bends_of(self, part: slice, block: object) -> np.ndarray:
        """Return the bends of the rows of a block."""
        if self.kept is not None:
            return self.kept[part]
        Z = self.few.scores(block, self.W)
        return self.machine.bend(part, Z, self.machine.dual_variables(part, Z, Z, 0.0), Z, 0.0)

    def choose(self) -> ClassFactors | SharedFactor | Diagonal:
        """Return the best preconditioner that costs at most WORTH products with the matrix."""
        few = self.few
        K = self.machine.ones.size
        side = few.d + 1.0
        values = float(few.n) * few.values_per_row
        product = 4.0 * K * (values + few.n)
        # A factor for each class: its sum over the rows, and a third of the cube for Cholesky.
        room = min(MOST_VALUES, max(FREE_VALUES, values + few.n * K))
        rows = min(float(few.n), max(FEWEST_ROWS, ROWS_PER_FEATURE * side))
        is_cheap = K * side**2 * (rows + side / 3.0) <= WORTH * product
        if self.kept is not None and K * side**2 <= room and is_cheap:
            return ClassFactors(self, self.kept)
        # One matrix for all classes, whose eigenvectors take some ten times the cube.
        rows = min(float(few.n), max(FEWEST_ROWS, SHARED_ROWS * side))
        is_cheap = side**2 * (rows + 10.0 * side) <= WORTH * product
        if side**2 <= MOST_VALUES and is_cheap:
            return SharedFactor(self)
        return Diagonal(self)

    def inverse(self, target: np.ndarray) -> np.ndarray:
        """Solve the equations, as far as a step needs."""
        if self.whole is not None:
            by_class = np.ascontiguousarray(target.T)
            solved: np.ndarray = dpotrs(self.whole, by_class.ravel(), lower=1)[0]
            return solved.reshape(by_class.shape).T
        if self.is_rough:
            return self.precondition(target)
        D, _ = conjugate_gradients(self.multiply, self.precondition, target, forcing=self.forcing)
        return D

    def precondition(self, residual: np.ndarray) -> np.ndarray:
        """Apply the preconditioner; the result sums to zero over the classes, as the optimum."""
        found = self.preconditioner(residual)
        found -= found.mean(axis=1)[:, None]
        return found

    def multiply(self, D: np.ndarray) -> np.ndarray:
        """Multiply by the matrix, in a pass over the rows that it is made of."""
        few = self.few
        narrow = few.narrow(D)

        def add_block(rows: slice, block: Any, curved: np.ndarray) -> None:
            change = self.machine.curve(rows, self.bends_of(rows, block), few.scores(block, narrow))
            curved += few.pull(block, change)

        return self.ridge * D + self.C * few.sum_blocks(add_block, D.shape)


class ClassFactors:
    """A Cholesky factor for each class.

    Parameters
    ----------
    equations : ClassEquations
    bends : ndarray of shape (n, K)
    """

    def __init__(self, equations: ClassEquations, bends: np.ndarray) -> None:
        few = equations.few
        # A device hands the bends out: rows are drawn here.
        parts = np.asarray(equations.machine.diagonal(slice(0, few.n), bends))
        self.factors = []
        for own in parts.T:
            rows, weights = draw(own, max(FEWEST_ROWS, ROWS_PER_FEATURE * (few.d + 1)))
            matrix = equations.C * few.gram(rows, weights, few.kind)
            matrix.flat[:: few.d + 2] += equations.ridge[:, 0] + LEAST_DIAGONAL
            self.factors.append(cholesky(matrix))

    def __call__(self, residual: np.ndarray) -> np.ndarray:
        found = np.empty_like(residual)
        for k, factor in enumerate(self.factors):
            found[:, k] = dpotrs(factor, residual[:, k], lower=1)[0]
        return found


class SharedFactor:
    """A single decomposition ``G = E diag(l) E'`` for all classes, and a number g_k for each.

    Parameters
    ----------
    equations : ClassEquations
    """

    def __init__(self, equations: ClassEquations) -> None:
        few = equations.few
        # What each row adds to the sum over the classes, and the share of each class.
        parts = np.empty(few.n)

        def add_shares(rows: slice, block: Any, shares: np.ndarray) -> None:
            diagonal = equations.machine.diagonal(rows, equations.bends_of(rows, block))
            parts[rows] = diagonal.sum(axis=1)
            shares += diagonal.sum(axis=0)

        shares = few.sum_blocks(add_shares, equations.machine.columns)
        total = max(float(shares.sum()), np.finfo(float).tiny)
        rows, weights = draw(parts, max(FEWEST_ROWS, SHARED_ROWS * (few.d + 1)))
        matrix = few.gram(rows, weights / total, few.kind)
        bends, self.vectors = eigh(matrix, overwrite_a=True, check_finite=False)
        self.bends = 1.0 + equations.C * np.outer(np.maximum(bends, 0.0), shares)

    def __call__(self, residual: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.vectors @ ((self.vectors.T @ residual) / self.bends)
        return found


class Diagonal:
    """The diagonal of the equations' matrix.

    Parameters
    ----------
    equations : ClassEquations
    """

    def __init__(self, equations: ClassEquations) -> None:
        few = equations.few
        sums = np.zeros((few.d + 1, equations.machine.ones.size))
        for part, block in few.blocks():
            diagonal = equations.machine.diagonal(part, equations.bends_of(part, block))
            sums += few.pull_squares(block, diagonal)
        self.values = equations.ridge + LEAST_DIAGONAL + equations.C * sums

    def __call__(self, residual: np.ndarray) -> np.ndarray:
        return residual / self.values
