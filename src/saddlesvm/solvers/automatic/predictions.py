"""Rough predictions of how long coordinate descent and Newton's method take.

The predictions count operations and never read the clock. They are in seconds of one machine; only their ratios matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from saddlesvm.problem.loss import Loss, Shape, traits_of
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.durable import Group, growing
from saddlesvm.solvers.costs import epoch_cost, lead, values_cost
from saddlesvm.solvers.second_order.newton import coordinate_curvature

# Cost of a Newton step: passes over the data, seconds per row on top (for any loss), seconds per step on top.
PASSES, TERMS, CALLS = 1.3, 1e-8, 1e-4
AGAIN = 0.4  # share of the first factor's cost that each later one takes: it keeps rows whose share changed little
PREDICTION = 1e-4  # seconds per prediction
NEXT_PREDICTION = 1.25  # factor from the epoch of one later prediction to the epoch of the next
# Newton steps: the least number, and the steps per power of ten that the gap falls by.
STEPS = {Shape.SMOOTH: (3.0, 0.5), Shape.CORNERED: (4.0, 0.8), Shape.KINKED: (6.0, 3.5)}
# The first choice, for smooth losses on many more rows than features, compares two predictions. For coordinate descent:
# the least number of epochs, epochs per power of ten of the gap, and epochs per power of ten and unit of curvature.
EPOCHS, EACH_POWER, EACH_CURVATURE = 2.0, 0.7, 0.8
# For Newton's method begun on samples of the rows: the least number of steps and steps per power of ten of the gap;
# epochs that the samples and the first look at all rows take; seconds of the calls.
FROM_SAMPLE, SAMPLING, SAMPLING_CALLS = (1.5, 0.35), 2.5, 2e-3
MOST_POWERS = 10.0  # powers of ten that the gap can fall by, at most
BROKEN_PROMISE = 4.0  # multiple of the predicted work after which the finish must show progress
MORE_PATIENCE = 4.0  # factor on `patience` when it hands back; it then waits till the epochs double
SHOWN, FALLEN = 0.3, 0.95  # shares of the gap and of the objective at the change-over: progress is one of them below


@dataclass
class Course(Group):
    """The course of a run: the gaps so far, the prediction for the finish, and the measurements since.

    Attributes
    ----------
    gaps : ndarray of shape (k, 2)
        Epochs and relative gaps of the first solver, over all rows, from which its rate is measured.
    next_prediction : float
        Epoch of the next prediction.
    promised, spent : float
        The work predicted for the finish, and the work it has done since the change-over or the last progress.
    gap_then, primal_then : float
        The gap and the objective at that time.
    patience : float
        Factor on the work that the finish may do before it shows progress; it grows with every change back.
    rests_until : float
        Epoch before which no prediction changes over to the finish again.
    """

    gaps: np.ndarray = growing(0, 2)
    next_prediction: float = 0.0
    promised: float = 0.0
    spent: float = 0.0
    gap_then: float = np.inf
    primal_then: float = np.inf
    patience: float = 1.0
    rests_until: float = 0.0

    def add(self, epochs: float, gap: float) -> None:
        """Remember the gap at an epoch."""
        if 0.0 < gap < np.inf and (not self.gaps.size or epochs > self.gaps[-1, 0]):
            self.gaps = np.vstack([self.gaps, [epochs, gap]])

    def begin(self, work: float, gap: float) -> None:
        """The finish begins at this gap, and is predicted to take so much work."""
        self.promised, self.spent, self.gap_then, self.primal_then = work, 0.0, gap, np.inf

    def broken(self, cost: float, gap: float, primal: float = np.nan) -> bool:
        """Whether the finish, after a step of this cost, has done far more than promised without progress."""
        self.spent += cost
        if self.spent <= BROKEN_PROMISE * self.patience * self.promised:
            return False
        if gap > SHOWN * self.gap_then and not primal <= FALLEN * self.primal_then:  # the gap falls last
            return True
        self.spent, self.gap_then, self.primal_then = 0.0, min(gap, self.gap_then), primal
        return False

    def rest(self, epochs: float) -> None:
        """The finish hands back at this epoch: be more patient the next time."""
        self.patience, self.rests_until = MORE_PATIENCE * self.patience, 2.0 * epochs


def steepness(problem: Problem) -> float:
    """The largest curvature of the median row's term, ``C phi'' ||x_i||^2``: the larger, the slower the descent."""
    return coordinate_curvature(problem) * problem.loss.largest_curvature()


def descent_epochs(problem: Problem, target: float) -> float:
    """Epochs of coordinate descent from zero to a relative gap of `target`, for smooth losses."""
    return EPOCHS + _powers_of_ten(target) * (EACH_POWER + EACH_CURVATURE * steepness(problem))


def sampled_epochs(problem: Problem, target: float, a_step: float) -> float:
    """Cost in epochs of Newton's method, begun on samples of the rows, to `target`; `a_step` is seconds per step."""
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
    """Seconds of `steps` Newton steps; the first one takes `first` seconds, `passes` of them without its equations."""
    return first + (steps - 1.0) * (passes + AGAIN * (first - passes))


def prediction_cost(problem: Problem) -> float:
    """Cost of a prediction in epochs, at least one: predictions must not take longer than the work they predict."""
    return max(1.0, PREDICTION / epoch_cost(problem))


def passes_cost(problem: Problem) -> float:
    """Rough seconds of a Newton step without its equations."""
    return PASSES * values_cost(problem) / lead(problem) + TERMS * problem.members.size + CALLS


def fall_rate(gaps: np.ndarray) -> float | None:
    """Fall of log(gap) per epoch over the later half of the run; None while fewer than two estimates are known."""
    if gaps.shape[0] < 2:
        return None
    now, then = gaps[-1], gaps[max(0, np.searchsorted(gaps[:, 0], 0.6 * gaps[-1, 0]) - 1)]
    if now[0] <= then[0]:
        then = gaps[-2]
    return float(math.log(then[1] / now[1]) / (now[0] - then[0])) if now[1] > 0.0 else math.inf


def left_at(rate: float, gap: float, target: float) -> float:
    """Epochs, or sweeps, until a gap that falls at a rate comes to `target`; infinite where it does not fall."""
    return math.log(gap / target) / rate if rate > 0.0 else math.inf


def in_words(left: float, unit: str = "epochs") -> str:
    """How many of them are left."""
    return f"about {left:.0f} {unit} left" if math.isfinite(left) else "no end in sight"
