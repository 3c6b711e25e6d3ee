"""Whether every bound on an objective drowns in its own rounding.

A dual point a proves at most ``C sum_i s_i (-phi*(-a_i / s_i))``. For every t, ``-phi*(-a) <=
phi(t) + a t`` at a margin t of a label, and ``-phi*(-a) <= a y`` for a target y. So a point that
proves half of an objective P has a sum of multipliers ``C sum_i |a_i|`` of at least ``(P / 2 - C
sum_i s_i phi(t)) / t``, or ``P / (2 max |y|)``. Its pull is a sum of rows times multipliers, whose
rounding counts against the bound by its square at least (:func:`~.bounds.bound_sums`). If this is
more than P itself, the rows are so long that no computed bound says anything, whatever a solver
does.
"""

from __future__ import annotations

import math

import numpy as np

from saddlesvm.problem.bounds import gamma
from saddlesvm.problem.loss import methods_of
from saddlesvm.problem.problem import Problem, is_classification

SUM_UNITS = (
    8.0  # roundings of a term of the pull besides one for each row, as certificates count them
)
MARGINS = (1.0, 4.0, 16.0, 64.0)  # at which the losses of labels bound their conjugates
LONG = 1e6  # lengths of rows below which no rounding drowns a bound


def every_bound_drowns(problem: Problem, primal: float) -> bool:
    """Return True if a bound that proves half of `primal` has a rounding larger than it.

    Of problems with one score a row and half a square as penalty, with rows in memory; else False.
    """
    if type(problem) is not Problem or not problem.holds_rows or not problem.is_plain:
        return False
    members = problem.members[problem.row_weights[problem.members] > 0.0]
    if not members.size or not 0.0 < primal < math.inf:
        return False
    lengths = np.sqrt(problem.norms[members])
    long = lengths > LONG
    shortest = float(lengths[long].min(initial=math.inf))
    if not shortest < math.inf:
        return False
    # Short rows have no rounding to speak of, and prove their losses at zero margins at most.
    asked = 0.5 * primal - _paid(problem, members[~long], 0.0)
    multipliers = _least_multipliers(problem, members[long], asked)
    # How far certificates take the pull to be off. A negative sum of multipliers says nothing.
    off = gamma(problem.row_sizes.rows + SUM_UNITS) * shortest * max(multipliers, 0.0)
    return off * off > primal


def _paid(problem: Problem, rows: np.ndarray, margin: float) -> float:
    """``C sum_i s_i phi_i`` of some rows with one margin, seen from the label, or prediction."""
    labels = problem.y[rows]
    scores = np.full(rows.size, margin)
    if is_classification(problem.loss):
        scores = margin * labels
    values = methods_of(problem.loss).value(problem.loss, scores, labels)
    return problem.C * float(problem.row_weights[rows] @ values)


def _least_multipliers(problem: Problem, rows: np.ndarray, asked: float) -> float:
    """``C sum_i |a_i|`` of multipliers of these rows that prove `asked`, at least."""
    if not is_classification(problem.loss):
        # -phi*(-a) <= a y + phi at the target: at most the largest |y| times |a|, and the
        # losses at the targets.
        largest = float(np.abs(problem.y[rows]).max())
        paid_at_targets = problem.C * float(
            problem.row_weights[rows].sum() * problem.loss.value(0.0, 0.0)
        )
        return (asked - paid_at_targets) / largest if largest > 0.0 else 0.0
    return max((asked - _paid(problem, rows, t)) / t for t in MARGINS)
