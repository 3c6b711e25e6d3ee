"""Whether every bound on an objective drowns in its own rounding.

A dual point a proves at most ``C sum_i s_i (-phi*(-a_i / s_i))``. For every t, ``-phi*(-a) <=
phi(t) + a t`` at a margin t of a label, and ``-phi*(-a) <= a y`` for a target y. So a point that
proves half of an objective P has a sum of multipliers ``C sum_i |a_i|`` of at least ``(P / 2 - C
sum_i s_i phi(t)) / t``, or ``P / (2 max |y|)``. Its pull is a sum of rows times multipliers, whose
rounding counts against the bound by half its square. Where this is more than P itself, the rows are
so long that no computed bound says anything, whatever a solver does.
"""

from __future__ import annotations

import math

import numpy as np

from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.rounding import UNIT

LEAST_UNITS = 4.0  # roundings of a term of the pull, at least
MARGINS = (1.0, 4.0, 16.0, 64.0)  # at which the losses of labels bound their conjugates
LONG = 1e6  # lengths of rows below which no rounding drowns a bound


def every_bound_drowns(problem: Problem, primal: float) -> bool:
    """Return True if a bound that proves half of the objective `primal` has a rounding larger than it.

    Of problems with one score a row and half a square as penalty, with rows in memory; else False.
    """
    if type(problem) is not Problem or not problem.holds_rows or not problem.penalty.identity():
        return False
    members = problem.members
    if not members.size or not 0.0 < primal < math.inf:
        return False
    weights = problem.row_weights[members]
    shortest = math.sqrt(float(problem.norms[members[weights > 0.0]].min(initial=math.inf)))
    if not LONG < shortest < math.inf:
        return False
    multipliers = _least_multipliers(problem, primal, float(weights.sum()))
    # The rounding of each feature's sum; their squares add up to this at least. A negative sum of
    # multipliers says nothing.
    off = LEAST_UNITS * UNIT * shortest * max(multipliers, 0.0) / math.sqrt(problem.n_features + 1.0)
    return 0.5 * off * off > primal


def _least_multipliers(problem: Problem, primal: float, weight: float) -> float:
    """``C sum_i |a_i|`` of a dual point that proves half of an objective, at least."""
    if not is_classification(problem.loss):
        largest = float(np.abs(problem.y[problem.members]).max())
        paid_at_targets = problem.C * weight * float(problem.loss.value(0.0, 0.0))
        return (0.5 * primal - paid_at_targets) / largest if largest > 0.0 else 0.0
    paid = [problem.C * weight * float(problem.loss.value(t, 1.0)) for t in MARGINS]
    return max((0.5 * primal - one) / t for one, t in zip(paid, MARGINS, strict=True))
