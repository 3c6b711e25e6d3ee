"""The optimum of a problem whose rows were changed, followed from the old optimum: certified without a fit.

A few rows among many change the optimum little. A pass over the rows tells whether the old weights, or the old
multipliers of the rows that stay, are good enough. Where they are not, smooth losses have steps of Newton's method,
whose last pass serves the certificate, too: with half a square as the penalty, the gap is half the squared gradient.
"""

from __future__ import annotations

import math

import numpy as np

from saddlesvm.answers.nearer import can_come_nearer, steps_from
from saddlesvm.problem.certificate import Evaluation, Point, against_dual, evaluate
from saddlesvm.problem.problem import Problem

SURE = 0.5  # share of the wanted gap that the gradient is shortened to: the objective is known but for the change


def followed(problem: Problem, w: np.ndarray, alpha: np.ndarray | None, gap: float) -> Evaluation | None:
    """A certified model from an old one; None where there are no steps and no multipliers.

    Parameters
    ----------
    problem : Problem
        With the rows as they are now.
    w : ndarray of shape (d + 1,)
        The old weights.
    alpha : ndarray of shape (n_all,), or None
        The old multipliers, feasible; zero for new rows.
    gap : float
        The gap that is wanted, in the C form; the one that is certified may be wider.
    """
    if alpha is not None:
        return evaluate(problem, Point(w, alpha))
    if can_come_nearer(problem):
        w, now = steps_from(problem, w, math.sqrt(2.0 * SURE * gap))
        return against_dual(problem, w, now.z, 0.0, problem.spread(now.answers.alpha), now.pull)
    return None
