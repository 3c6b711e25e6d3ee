"""Newton's equations ``(R + C sum_i bend_i x_i x_i') D = -gradient``, solved as far as a step needs.

Where there are few features, the matrix is formed and factored (Cholesky). A share of the rows tells it well enough: a
step that is slightly wrong costs a pass, and the whole matrix costs many. The factor serves for several steps: a step
s that changed the gradient by y asks the inverse to take y to s, which corrects it (L-BFGS, with the factor in the
place of a scaled identity). For more features, conjugate gradients solve the equations by products, with the diagonal
as preconditioner. For several classes the factor of the mean curvature preconditions conjugate gradients over all
classes at once.

Source: Byrd, Hansen, Nocedal and Singer (2016), "A stochastic quasi-Newton method for large-scale optimization";
Nocedal and Wright (2006), "Numerical optimization", algorithm 7.4; Lin, Weng and Keerthi (2008), "Trust region Newton
method for large-scale logistic regression".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.task import Curvature, Found, Task

FEW_FEATURES = 1000  # for which the matrix is formed: 8 MB, and a third of a second to factor; guessed
PER_FEATURE = 60  # rows a feature that tell the curvature; measured on 30,000 x 50 ... 100,000 x 100
AT_EASE = 6.0  # n / d times so many rows form their matrix in the time of a pass; measured, 30,000 x 50
FORCING = 0.3  # relative residual at which conjugate gradients stop; the next step makes up for the rest
MOST_PRODUCTS = 200
RAISED = (1e-15, 1e-7)  # a feature, share that is added to the diagonal: products in float64, in float32
MOST_SECANTS = 8  # steps that correct a factor
LEAST_BEND = 2.0**-52  # s.y, relative to the lengths of both, below which it is rounding

Product = Callable[[np.ndarray], np.ndarray]


class Equations:
    """Newton's equations at a point, with what later steps have told.

    Parameters
    ----------
    task : Task
    point : Found
    centre, q
        Of the proximal term.
    fineness : float
        1 at first; larger for a curvature of more rows, in double precision.

    Attributes
    ----------
    bent : int
        Number of rows that bend.
    way : str
        How they are solved, in words; empty where there is one way only.
    """

    way = ""

    def __init__(self, task: Task, point: Found, centre: np.ndarray, q: float, fineness: float) -> None:
        ridge = task.ridge
        self.machine = task.machine
        self.ridge = np.maximum(ridge, task.held)
        self.secants: list[tuple[np.ndarray, np.ndarray]] = []
        found = point.curvature or find_curvature(task, point, centre, q, fineness)
        self.bent = found.bent
        self.few = found.few
        self.bends = found.bends
        self.C = task.C
        self.factor: np.ndarray | None = None
        if found.matrix is not None:
            matrix = (task.C / found.share) * found.matrix
            # Products round in proportion to both features' sizes.
            raised = RAISED[found.is_coarse] * ridge.size * matrix.diagonal()
            matrix.flat[:: ridge.size + 1] += self.ridge + raised
            self.factor = cholesky(matrix)
        elif self.few is not None:
            # Conjugate gradients are preconditioned by the diagonal of the matrix.
            mean = self.machine.mean_bend(slice(0, self.few.n), self.bends)
            self.diagonal = self.ridge + self.C * self.few.diagonal(mean)
        self.is_factored = self.factor is not None

    @property
    def serves(self) -> bool:
        """Return True if the factor may serve for more than one step, corrected by the secants."""
        return True

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        """The step at a gradient: the solution of the equations, corrected by the secants."""
        rest = -gradient
        shares = []
        for s, y in reversed(self.secants):
            share = float(np.vdot(s, rest)) / float(np.vdot(s, y))
            shares.append(share)
            rest = rest - share * y
        out = self.inverse(rest)
        for (s, y), share in zip(self.secants, reversed(shares), strict=True):
            out = out + (share - float(np.vdot(y, out)) / float(np.vdot(s, y))) * s
        return out

    def learn(self, s: np.ndarray, y: np.ndarray) -> None:
        """Learn from a step s that changed the gradient by y, unless the gradient did not rise along it."""
        if float(np.vdot(s, y)) > LEAST_BEND * float(np.linalg.norm(s) * np.linalg.norm(y)):
            self.secants = [*self.secants[1 - MOST_SECANTS :], (s, y)]

    def without_rows(self) -> Equations:
        """What the steps have told, and nothing else."""
        told = Equations.__new__(Equations)
        told.secants = self.secants
        return told

    def inverse(self, target: np.ndarray) -> np.ndarray:
        """Solve the equations as they were at their point."""
        if self.is_factored:
            return self.precondition(target)
        return conjugate_gradients(self.multiply, self.precondition, target)[0]

    def precondition(self, residual: np.ndarray) -> np.ndarray:
        """Divide by the factored matrix, or by the diagonal."""
        if self.factor is None:
            return residual / self.diagonal
        solved: np.ndarray = dpotrs(self.factor, residual, lower=1)[0]
        return solved

    def multiply(self, D: np.ndarray) -> np.ndarray:
        """Multiply by the matrix, in a pass over the rows that tell it."""
        curved = self.ridge * D
        assert self.few is not None
        for part, block in self.few.blocks():
            change = self.machine.curve(part, self.bends[part], self.few.scores(block, D))
            curved += self.C * self.few.pull(block, change)
        return curved


def find_curvature(task: Task, point: Found, centre: np.ndarray, q: float, fineness: float) -> Curvature:
    """Ask every so manieth row that bends at a point, by a pass over these rows."""
    place = task.place
    machine = task.machine
    bends = machine.bend(slice(0, place.n), point.Z, point.A, centre, q)
    mean = machine.mean_bend(slice(0, place.n), bends)
    bent = np.flatnonzero(mean > 0.0)
    enough = fineness * max(PER_FEATURE * (place.d + 1), AT_EASE * place.n / max(1, place.d))
    every = max(1, int(bent.size / enough))
    rows = bent[every // 2 :: every]
    is_coarse = fineness == 1.0 and q == 0.0
    matrix = None
    if place.d <= FEW_FEATURES:
        matrix = place.gram(rows, mean[rows], np.float32 if is_coarse else np.float64)
    few = None
    if matrix is None:
        few = place if rows.size == place.n else place.take(rows)
    share = max(rows.size, 1) / max(bent.size, 1)
    return Curvature(bent.size, share, matrix, is_coarse, few, bends[rows] / share)


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """The Cholesky factor of a matrix, whose diagonal is raised where rounding makes it singular."""
    lift = 0.0
    for _ in range(8):
        factor, failed = dpotrf(matrix, lower=1)
        if not failed:
            break
        lift = max(100.0 * lift, 1e-14 * float(matrix.diagonal().max()))
        matrix.flat[:: matrix.shape[0] + 1] += lift
    return factor


def conjugate_gradients(
    multiply: Product,
    precondition: Product,
    target: np.ndarray,
    most: int = MOST_PRODUCTS,
    forcing: float = FORCING,
) -> tuple[np.ndarray, bool]:
    """Solve ``multiply(D) = target`` up to a share of the target; return whether that is reached."""
    D = np.zeros_like(target)
    residual = target.copy()
    solved = precondition(residual)
    ahead = solved
    size = float(np.vdot(residual, solved))
    first = size
    for _ in range(most):
        if size <= forcing**2 * first or time_is_up():
            break
        curved = multiply(ahead)
        length = size / float(np.vdot(ahead, curved))
        D += length * ahead
        residual -= length * curved
        # The next direction is conjugate to the ones before.
        solved = precondition(residual)
        before = size
        size = float(np.vdot(residual, solved))
        ahead = solved + (size / before) * ahead
    return D, size <= forcing**2 * first
