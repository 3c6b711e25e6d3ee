"""Where the column solver stands with a proximal term, and moves of its centre.

The method evaluates its point: the multipliers there, the gradient, and the two terms of the gap,

    gap  =  residual + left,

of which Newton's method brings the first to zero, and moves of the centre the second. When the first term is small
beside the second, the centre moves to the multipliers, the proximity q shrinks, and the same point is evaluated again.

Source: Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point algorithm in convex
programming".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.base import Best, nothing

MOVE_RATIO = 0.1  # ratio of the gap's first term to its second at which the centre moves
MOST_MOVES = 20  # moves of the centre between two Newton steps, at most

Growth = tuple[tuple[int, float], ...]  # Newton steps at a centre, at most: divisor of q when it moves


@dataclass
class Standing:
    """Where a second-order method stands, with one score a row or one for each class.

    Attributes
    ----------
    alpha : ndarray
        Multipliers at the scores.
    centre : ndarray
        Of the proximal term, of the same shape.
    q : float
        Proximity; 0 for none.
    residual, left : float
        The two terms of the gap: Newton's method reduces the first, moves of the centre the second.
    inner, steps : int
        Newton steps at this centre, and in total.
    stuck : bool
        Whether the last direction led nowhere, because of rounding.
    best : Best
        The best points so far.
    """

    alpha: np.ndarray = field(default_factory=nothing)
    centre: np.ndarray = field(default_factory=nothing)
    q: float = 0.0
    residual: float = np.inf
    left: float = 0.0
    inner: int = 0
    steps: int = 0
    stuck: bool = False
    best: Best = field(default_factory=Best)
    estimate: float = np.inf

    def judge(self, objectives: tuple[float, float], left: float, w: np.ndarray, alpha: np.ndarray) -> bool:
        """Keep the points with these objectives where they are the best so far; whether the dual point is.

        `left` is the second term of the gap, ``C sum_i [s_i phi_i + s_i phi_i* + a_i z_i]``.
        """
        self.left, higher = left, self.best.keep(objectives, w, alpha)
        self.estimate = self.best.relative_gap
        return higher

    def count_step(self, stuck: bool) -> None:
        """Count a Newton step."""
        self.steps, self.inner, self.stuck = self.steps + 1, self.inner + 1, stuck

    def move_centre(
        self,
        evaluate: Callable[[bool], None],
        target: float,
        growth: Growth,
        *,
        least: float = 0.0,
        ratio: float = MOVE_RATIO,
        most: int = MOST_MOVES,
    ) -> None:
        """Move the centre and shrink the proximity as long as the point is good enough.

        Parameters
        ----------
        evaluate : callable
            Evaluates the point with the new proximal term; it is told whether Newton steps came before the move.
        target : float
            The relative gap at which nothing is left to do.
        growth : tuple
        least : float, default=0.0
            Bound of the proximity.
        ratio : float
            Ratio of the gap's first term to its second at which the centre moves.
        most : int
            Moves, at most.
        """
        for _ in range(most):
            if self.q == 0.0 or self.best.relative_gap <= target or time_is_up():
                return
            stepped = self.inner > 0
            if not (self.stuck or self.residual <= ratio * self.left):
                return
            self.centre[:] = self.alpha
            self.q = max(self.q / next((factor for steps, factor in growth if self.inner <= steps), 1.0), least)
            self.inner, self.stuck = 0, False
            evaluate(stepped)
