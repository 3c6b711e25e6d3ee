"""The driver that the second-order methods have in common: Newton steps at a centre, and the moves of the centre.

A method evaluates its point: the multipliers there, the gradient, and the two terms of the gap,

    gap  =  residual + left,

of which Newton's method brings the first to zero, and moves of the centre the second. A step is a direction, a search
along it, and an evaluation. When the first term is small beside the second, the centre moves to the multipliers, the
proximity q shrinks, and the method evaluates the same point again.

Each method brings its own direction, search, evaluation, and table of how fast q shrinks. The tables differ by
measurement: a step that is dear, or equations that get harder as q shrinks, ask for a slower one.

Source: Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point algorithm in convex
programming"; Li, Sun and Toh (2018), "A highly efficient semismooth Newton augmented Lagrangian method for solving
Lasso problems", algorithms SSNAL and SSN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from saddlesvm.runtime.deadline import time_is_up
from saddlesvm.runtime.durable import Group
from saddlesvm.solvers.base import Best, nothing

SETTLED = 0.1  # ratio of the gap's first term to its second at which the centre moves
TOO_LONG = 40  # Newton steps at one centre after which q grows
BACK = 4.0  # factor by which q then grows
MOST_MOVES = 20  # moves of the centre between two Newton steps, at most
FORCING = 0.1  # relative residual of the Newton equations; the line search and the next step make up for the rest
LINE_TOLERANCE = 0.1  # derivative along the line at the end of the search, relative to its value at the start

Growth = tuple[tuple[int, float], ...]  # Newton steps at a centre, at most: divisor of q when it moves


@dataclass
class Standing(Group):
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
    best: Best = field(default_factory=Best, metadata={"prefix": "best_"})

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
        settled: float = SETTLED,
        most: int = MOST_MOVES,
    ) -> None:
        """Move the centre and shrink the proximity as long as the point is good enough, or let the proximity grow.

        Parameters
        ----------
        evaluate : callable
            Evaluates the point with the new proximal term; it is told whether Newton steps came before the move.
        target : float
            The relative gap at which nothing is left to do.
        growth : tuple
        least : float, default=0.0
            Bound of the proximity.
        settled : float
            Ratio of the gap's first term to its second at which the centre moves.
        most : int
            Moves, at most.
        """
        for _ in range(most):
            if self.q == 0.0 or self.best.relative_gap <= target or time_is_up():
                return
            stepped = self.inner > 0
            if self.stuck or self.residual <= settled * self.left:
                self.centre[:] = self.alpha
                self.q = max(self.q / next((factor for steps, factor in growth if self.inner <= steps), 1.0), least)
            elif self.inner >= TOO_LONG:
                self.q *= BACK
            else:
                return
            self.inner, self.stuck = 0, False
            evaluate(stepped)
