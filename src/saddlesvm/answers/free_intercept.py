"""Bounds on each row's margin without it, for a free intercept, whatever the loss.

Without row i, the multipliers of the others break the sum that a free intercept asks for. Those of
the heavier sign are shortened, and the certificate of the model with this dual point has a gap G
without the row. The optimum's weights are within ``r = sqrt(2 G)`` of the model's, for the penalty
has curvature 1; each margin before the intercept then lies within ``r ||x_j||`` of the model's. At
the optimum, the derivatives of the losses by the intercept have the sum zero. Each is monotone in
its margin: an intercept at which their sum is positive for the least margins of all rows is an
upper bound of the optimum's, and an offset at which it is negative for the largest margins a lower
bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from saddlesvm.problem.bounds import SLACK, UNDERFLOW, UNIT, gamma, loss_units, norm_of, radii
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import methods_of
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.sums import margins
from saddlesvm.runtime.clock import time_is_up

MOST_VALUES = 2**27  # values that all bounds together read: some seconds
MOST_STEPS = 40  # steps away from the model's intercept at most
GROWTH = 4.0  # factor of each step over the step before
HALVINGS = 12  # of the last step
SEARCHES = 50.0  # evaluations of the losses for a row, about: steps and halvings on both sides


def bound_free_intercept(
    problem: Problem, w: np.ndarray, alpha: np.ndarray, chosen: np.ndarray, sharers: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds on the margins of some rows, each without this row; infinite without proof.

    Parameters
    ----------
    problem : Problem
        All rows are members; half a square as the penalty, and a free intercept.
    w : ndarray of shape (d + 1,)
    alpha : ndarray of shape (n,)
        A feasible dual point.
    chosen : ndarray of shape (k,)
    sharers : int, default=1
        Problems that share the values that may be read.
    """
    low = np.full(chosen.size, -math.inf)
    high = np.full(chosen.size, math.inf)
    # Values read for a row: four passes of the certificate, and the searches.
    each = sharers * (4.0 * problem.n_values + SEARCHES * problem.y.size)
    for k, row in enumerate(chosen[: max(1, int(MOST_VALUES / each))]):
        if time_is_up():
            break
        low[k], high[k] = _bound_row(problem, w, alpha, int(row))
    return low, high


def _bound_row(problem: Problem, w: np.ndarray, alpha: np.ndarray, row: int) -> tuple[float, float]:
    """Return the bounds of a row."""
    others = np.delete(np.arange(problem.y.size), row)
    signs = np.sign(problem.y[others[problem.row_weights[others] > 0.0]])
    if is_classification(problem.loss) and (signs == signs[:1]).all():
        return -math.inf, math.inf  # for one class alone, any intercept far enough is best
    # The certificate of the model without the row.
    left = alpha.copy()
    left[row] = 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        judged = evaluate(replace(problem, members=others), Point(w, left))
    gap = judged.certificate.gap / problem.strength.unit
    if not 0.0 <= gap < math.inf:
        return -math.inf, math.inf
    # Margins before the intercept, and how far those of the optimum are from them: the ball of the
    # gap, and rounding of products and sums in any order.
    plain = np.append(judged.coef, 0.0)
    z = margins(problem, plain)
    lengths = radii(problem.norms)
    around = (
        SLACK
        * lengths
        * (math.sqrt(2.0 * gap) + gamma(problem.row_sizes.terms + 8.0) * norm_of(plain))
    )
    slope = _make_sign_test(problem, others)
    # Ends of the optimal intercepts, searched from the model's.
    start = float(judged.intercept)
    step = 1e-3 * (1.0 + float(around.max()))
    most = _find_first(lambda b: slope(z, -around, b, 1.0), start, step)
    least = _find_first(lambda b: slope(z, around, b, -1.0), start, -step)
    room = 8.0 * UNIT * (abs(z[row]) + around[row])
    low = z[row] - around[row] - room + least
    high = z[row] + around[row] + room + most
    return low - 4.0 * UNIT * abs(low), high + 4.0 * UNIT * abs(high)


def _make_sign_test(
    problem: Problem, others: np.ndarray
) -> Callable[[np.ndarray, np.ndarray, float, float], bool]:
    """Return a function that says whether the sum of derivatives of the other rows has a sign."""
    loss = problem.loss
    y = problem.y[others]
    weights = problem.row_weights[others]
    derivative = methods_of(loss).subgradient
    units = gamma(others.size + loss_units(loss) + 8.0)

    def certain(z: np.ndarray, way: np.ndarray, b: float, sign: float) -> bool:
        near = z[others]
        moved = way[others]
        # Each derivative is taken at a margin that rounding cannot be beyond, and the sum counts
        # only if it is larger than its own rounding.
        slips = 8.0 * UNIT * (np.abs(near) + np.abs(moved) + abs(b) + np.abs(y) + 1.0)
        each = weights * derivative(loss, near + moved + b - sign * slips, y)
        return bool(sign * each.sum() > units * np.abs(each).sum() + others.size * UNDERFLOW)

    return certain


def _find_first(holds: Callable[[float], bool], start: float, step: float) -> float:
    """Return a place next to the first at which a monotone condition holds; else infinity."""
    before = start
    place = start
    # Longer and longer steps to a place at which the condition holds.
    for _ in range(MOST_STEPS):
        if holds(place):
            break
        before = place
        place = place + step
        step = GROWTH * step
    else:
        return math.copysign(math.inf, step)
    # The first place is between `before` and `place`.
    for _ in range(HALVINGS):
        middle = 0.5 * (before + place)
        if holds(middle):
            place = middle
        else:
            before = middle
    return place
