"""The sub-problems that a time limit leaves no room to begin: no weights, the best intercept, and what that proves.

Without weights all rows of a class have the same margin, so that the sums of the rows' weights in both classes are all
that the objective depends on:

    P(0, b) = C (s+ phi(b, 1) + s- phi(b, -1)) + penalty of b >= 0

Losses are not negative: zero bounds the objective of every model, and is the dual objective of ``a = 0``. There may be
tens of thousands of such problems, one for each pair of classes, and each takes some microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.result import FitResult
from saddlesvm.fit.trace import Trace
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.loss import Loss, subgradient, value
from saddlesvm.problem.problem import Strength, resolve_C
from saddlesvm.problem.proven_sums import Sums
from saddlesvm.problem.rounding import gamma
from saddlesvm.runtime.compiled import kernel

FARTHEST = 1e4  # the size of an intercept at most
HALVINGS = 80  # of the interval around an intercept
ROUNDINGS = 64.0  # units of the last place that two losses and what is done with them are within
REASON = "no time was left to begin"


@dataclass(frozen=True)
class WithoutWeights:
    """The common part of the results of sub-problems that were not begun.

    Attributes
    ----------
    loss : Loss
        Of a classification.
    C, lam : float or None
        Whichever was given.
    share : float
        As of :class:`~saddlesvm.problem.problem.Strength`.
    charge : float
        An intercept b is charged ``charge b^2 / 2``; infinite where it must be zero.
    tol : float
    coef, alpha : ndarray or CSR array
        Zeros, as the results of fits have them.
    """

    loss: Loss
    C: float | None
    lam: float | None
    share: float
    charge: float
    tol: float
    coef: Any
    alpha: Any

    def results(self, sides: np.ndarray) -> list[FitResult]:
        """The results of sub-problems with these :func:`sides`; those with the same sides share one."""
        kinds, place = np.unique(sides, axis=0, return_inverse=True)
        results = [self._result(one) for one in kinds]
        return [results[k] for k in np.ravel(place)]

    def _result(self, sides: np.ndarray) -> FitResult:
        C, _ = resolve_C(self.C, self.lam, int(sides[2]))
        strength = Strength(C, int(sides[2]), self.C is None, self.share)
        b, paid = best_constant(self.loss, sides[0], sides[1], self.charge / C)
        charged = 0.5 * self.charge * b * b if b else 0.0
        rounding = gamma(sides[2] + ROUNDINGS) * (C * paid + charged)
        certificate = Certificate.of(strength, Sums(paid, 0.0, charged, 0.0, rounding))
        end = Outcome.TIME_LIMIT, self.tol, 0.0, 0, 0.0, 0.0
        return FitResult(self.coef, b, self.alpha, certificate, *end, Trace(), REASON)


@kernel
def best_constant(loss: Loss, negative: float, positive: float, charge: float) -> tuple[float, float]:
    """The best intercept b without weights, and what the losses then pay.

    Parameters
    ----------
    loss : Loss
    negative, positive : float
        Sums of the rows' weights in both classes.
    charge : float
        An intercept b is charged ``charge b^2 / 2``; infinite where it must be zero.
    """
    low, high = (-FARTHEST, FARTHEST) if charge < np.inf else (0.0, 0.0)
    for _ in range(HALVINGS):
        b = 0.5 * (low + high)
        slope = positive * subgradient(loss, b, 1.0) + negative * subgradient(loss, b, -1.0) + charge * b
        if slope >= 0.0:
            high = b
        if slope <= 0.0:
            low = b
    b = 0.5 * (low + high)
    return b, positive * value(loss, b, 1.0) + negative * value(loss, b, -1.0)


def sides_of(problems: Sequence[SubProblem], which: Sequence[int], weights: np.ndarray | None) -> np.ndarray:
    """Sums of the rows' weights in the negative and in the positive class of sub-problems, and their rows.

    Parameters
    ----------
    problems : sequence of SubProblem
        A method ``sides(weights)`` says it for all of them.
    which : sequence of int
    weights : ndarray of shape (n_all,), optional

    Returns
    -------
    ndarray of shape (which, 3)
    """
    if hasattr(problems, "sides"):
        every: np.ndarray = problems.sides(weights)
        return every[np.asarray(which)]
    found = np.empty((len(which), 3))
    for place, k in enumerate(which):
        sub = problems[k]
        members = slice(None) if sub.members is None else sub.members
        positive = sub.y[members] > 0
        of_rows = sub.row_weights(weights)
        own = np.ones(positive.size) if of_rows is None else of_rows[members]
        found[place] = own[~positive].sum(), own[positive].sum(), positive.size
    return found
