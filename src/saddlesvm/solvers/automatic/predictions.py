"""What a run takes with either solver, roughly: coordinate descent, or Newton's method.

Operations are counted, in seconds of one machine of which only ratios matter, and never the clock.
"""

from __future__ import annotations

import math

import numpy as np

from saddlesvm.problem.loss import Loss, Shape, traits_of
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.costs import epoch_cost, values_cost
from saddlesvm.solvers.second_order.newton import coordinate_curvature

# A Newton step: passes over the data; its seconds for a row besides, whatever the loss; its seconds besides.
PASSES, TERMS, CALLS = 1.3, 1e-8, 1e-4
AGAIN = 0.4  # of the first factor's cost, for each later one: rows whose share changed by little are kept
LOOK = 1e-4  # seconds of a prediction
# Newton steps, at least and for each power of ten of the gap: of losses without corners in their derivative, of other
# smooth ones, and of those with corners.
STEPS = {Shape.SMOOTH: (3.0, 0.5), Shape.CORNERED: (4.0, 0.8), Shape.KINKED: (6.0, 3.5)}
# What the first choice, for smooth losses on many more rows than features, goes by. Epochs of coordinate descent: some,
# and for each power of ten of the gap some more, and more with the curvature of its steps. Newton's steps from the
# solution of samples of the rows: some, and more for each power of ten; and the epochs that the samples and the first
# look at all rows take, and the seconds of the calls.
EPOCHS, EACH_POWER, EACH_CURVATURE = 2.0, 0.7, 0.8
FROM_SAMPLE, SAMPLING, SAMPLING_CALLS = (1.5, 0.35), 2.5, 2e-3
MOST_POWERS = 10.0  # of ten that the gap can fall by


def steepness(problem: Problem) -> float:
    """The largest curvature of the median row's term, ``C phi'' ||x_i||^2``: coordinate descent slows down by it."""
    return coordinate_curvature(problem) * problem.loss.largest_curvature()


def descent_epochs(problem: Problem, target: float) -> float:
    """Epochs of coordinate descent from zero to a relative gap of `target`, for smooth losses."""
    return EPOCHS + _powers_of_ten(target) * (EACH_POWER + EACH_CURVATURE * steepness(problem))


def sampled_epochs(problem: Problem, target: float, a_step: float) -> float:
    """The same of Newton's method, begun on samples of the rows, if a step takes so many seconds; in epochs, too."""
    steps = FROM_SAMPLE[0] + FROM_SAMPLE[1] * _powers_of_ten(target)
    return SAMPLING + (SAMPLING_CALLS + steps * a_step) / epoch_cost(problem)


def _powers_of_ten(target: float) -> float:
    """Powers of ten that the relative gap has to fall by."""
    return max(0.0, min(-math.log10(target), MOST_POWERS)) if target > 0.0 else MOST_POWERS


def newton_steps(loss: Loss, gap: float, target: float) -> float:
    """Newton steps from one relative gap to another."""
    least, each = STEPS[traits_of(loss).shape]
    return least + each * math.log10(gap / target)


def steps_cost(first: float, passes: float, steps: float) -> float:
    """Seconds of so many Newton steps, where the first one takes `first`, of which `passes` without its equations."""
    return first + (steps - 1.0) * (passes + AGAIN * (first - passes))


def look_cost(problem: Problem) -> float:
    """A prediction's cost in epochs, at least one: predictions are not to take longer than what they are about."""
    return max(1.0, LOOK / epoch_cost(problem))


def passes_cost(problem: Problem) -> float:
    """Seconds of a Newton step without its equations, roughly."""
    return PASSES * values_cost(problem) + TERMS * problem.members.size + CALLS


def fall_rate(seen: np.ndarray) -> float | None:
    """Fall of log(gap) an epoch over the later half of the run; None while too little is seen."""
    if seen.shape[0] < 2:
        return None
    now, then = seen[-1], seen[max(0, np.searchsorted(seen[:, 0], 0.6 * seen[-1, 0]) - 1)]
    if now[0] <= then[0]:
        then = seen[-2]
    return float(math.log(then[1] / now[1]) / (now[0] - then[0])) if now[1] > 0.0 else math.inf
