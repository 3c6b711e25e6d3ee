"""Certificates that need no extra pass over rows that are read block by block.

Weak duality holds for any pair of a primal and a dual point. A sweep over the blocks therefore proves two things on the
way: each block, as it is read, gives its share of ``P(v)`` for the weights v from when the sweep began, and once its
dual variables have moved, its share of ``D(a)``. At the end of the sweep ``P(v) - D(a)`` bounds how far v is from the
optimum, where a is one sweep newer than v. This certificate needs no pass of its own, and both sums are in float64.
"""

from __future__ import annotations

import numpy as np

from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.proven_sums import summed
from saddlesvm.problem.rounding import CHUNK, PointSizes
from saddlesvm.problem.sums import dual_weights, loss_sums
from saddlesvm.problem.terms import Pointwise, weights_at
from saddlesvm.rows.layouts import add_rows
from saddlesvm.rows.passes import Part


def certificate_of_sweep(
    problem: Problem,
    model: np.ndarray,
    paid: float,
    alpha: np.ndarray,
    running: tuple[np.ndarray, float] | None = None,
) -> Certificate:
    """The certificate of a model with its sum of losses, and of a dual point.

    Parameters
    ----------
    model : ndarray of shape (d + 1,)
    paid : float
    alpha : ndarray of shape (n_all,)
    running : pair of ndarray of shape (d + 1,) and float, optional
        The running pull of the dual point, and its sum of conjugates: the certificate is a quick estimate. When left
        out, one pass over the rows gives the pull.
    """
    if running is None:
        pull, (_, conjugates, charged) = dual_weights(problem, alpha), sums_without_rows(problem, alpha)
    else:
        pull, conjugates, charged = *running, abs(running[1])
    sizes = problem.point_sizes(alpha)
    sums = summed(problem.facts, (paid, conjugates, np.inf, charged, np.inf), sizes, model, pull)
    return Certificate.of(problem.strength, sums)


def sums_without_rows(problem: Problem, alpha: np.ndarray) -> tuple[float, float, float]:
    """Sums for which no row is read: the losses at zero margins, the conjugates of a dual point, and their sizes."""
    paid = conjugates = charged = 0.0
    for start in range(0, problem.members.size, CHUNK):
        chosen = problem.members[start : start + CHUNK]
        terms = Pointwise(problem.loss, problem.y[chosen].astype(np.float64), weights_at(problem.weights, chosen))
        found = loss_sums(terms, np.arange(chosen.size), np.zeros(chosen.size), 0.0, alpha[chosen])
        paid, conjugates, charged = paid + found[0], conjugates + found[1], charged + found[3]
    return paid, conjugates, charged


class CarriedDuals:
    """A dual point of an earlier solver, whose bound the first sweep of another proves while the rows are at hand.

    Parameters
    ----------
    problem : Problem
    alpha : ndarray of shape (n_all,)
        It is balanced in place, where the intercept is free.
    """

    def __init__(self, problem: Problem, alpha: np.ndarray) -> None:
        if problem.intercept.constrained:
            alpha[:] = problem.balanced(alpha)
        self.problem, self.alpha, self.pull = problem, alpha, np.zeros(problem.n_features + 1)

    def visit(self, part: Part) -> None:
        """Add what a part's rows pull."""
        add_rows(part.X, part.rows, part.of(self.alpha), self.pull)

    def found(self) -> tuple[np.ndarray, float, float, PointSizes]:
        """The pull of all rows, the sums of the conjugates and of their sizes, and the sizes of the dual point."""
        problem, signs = self.problem, self.problem.intercept.constrained
        _, conjugates, charged = sums_without_rows(problem, self.alpha)
        return problem.pulled(self.pull), conjugates, charged, problem.point_sizes(self.alpha, signs=signs)
