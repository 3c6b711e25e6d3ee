"""When a joint machine's coordinate ascent hands over to its second-order finish, and when the finish hands back.

As in :mod:`saddlesvm.solvers.automatic.auto`, the work that the ascent has left is predicted from how fast its gap
falls, that of the finish from the sizes of the problem. All predictions count operations, and never read the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.runtime.durable import growing
from saddlesvm.solvers.automatic.predictions import Promise, fall_rate, in_words, left_at
from saddlesvm.solvers.costs import values_cost
from saddlesvm.solvers.second_order.joint import step_cost, steps_between

ASCENT, FINISH = "crammer_singer", "Newton"
FIRST_LOOK, NEXT_LOOK = 4.0, 1.25  # epoch of the first prediction; factor from one to the next
ROW_COST = 2.5e-8  # seconds that a visit takes for each class besides the values
MOST_BLOCKS = 20_000_000  # rows times classes up to which the finish keeps their scores and variables in memory


@dataclass
class Course(Promise):
    """Which of the two is at work, and what the predictions go by.

    Attributes
    ----------
    phase : {"crammer_singer", "Newton"}
    seen : ndarray of shape (k, 2)
        Epochs and relative gaps of the ascent, over all rows and classes.
    next_look : float
        Epoch of the next prediction.
    q : float
        Proximity of the finish.
    """

    phase: str = ASCENT
    seen: np.ndarray = growing(0, 2)
    next_look: float = FIRST_LOOK
    q: float = 0.0

    def note(self, epochs: float, gap: float) -> None:
        """Remember a gap over all rows and classes."""
        if 0.0 < gap < np.inf and (not self.seen.size or epochs > self.seen[-1, 0]):
            self.seen = np.vstack([self.seen, [epochs, gap]])

    def hands_over(self, problem: JointProblem, alpha: np.ndarray, epochs: float, target: float) -> str:
        """Compare the work that either has left; why the ascent hands over to the finish, or nothing."""
        self.next_look = NEXT_LOOK * max(epochs, FIRST_LOOK)
        rate = fall_rate(self.seen)
        if rate is None or epochs < self.rests_until or not finish_fits(problem):
            return ""
        gap = float(self.seen[-1, 1])
        if gap <= target:
            return ""
        left = left_at(rate, gap, target)
        steps = steps_between(gap, target)
        here, there = left * epoch_cost(problem), steps * step_cost(problem, alpha)
        if here <= there:
            return ""
        self.begin(there, gap)
        return f"epoch {epochs:.0f}: gap {gap:.1e}, {in_words(left)}, or about {steps:.0f} Newton steps: changing over"

    def begin_ascent(self, epochs: float) -> None:
        """Go on with the ascent, and be more patient with the finish the next time."""
        self.phase, self.seen = ASCENT, np.empty((0, 2))
        self.rest(epochs)


def finish_fits(problem: JointProblem) -> bool:
    """Whether the memory has room for the finish."""
    return problem.y.size * problem.n_classes <= MOST_BLOCKS


def epoch_cost(problem: JointProblem) -> float:
    """Rough seconds of a visit to all classes of all rows."""
    return values_cost(problem) + ROW_COST * problem.members.size * problem.n_classes
