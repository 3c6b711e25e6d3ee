"""The drivers that the second-order methods have in common: in memory Newton steps at a centre, and the moves of the
centre; over passes a point a pass, on a line from the last one taken.

A method evaluates its point: the multipliers there, the gradient, and the two terms of the gap,

    gap  =  residual + left,

of which Newton's method brings the first to zero, and moves of the centre the second. A step is a direction, a search
along it, and an evaluation. When the first term is small beside the second, the centre moves to the multipliers, the
proximity q shrinks, and the method evaluates the same point again.

Each method brings its own direction, search, evaluation, and table of how fast q shrinks. The tables differ by
measurement: a step that is dear, or equations that get harder as q shrinks, ask for a slower one.

Where a pass over the rows is what costs, the search along the line is a choice among a few places, which the pass that
evaluates the next point sums up beside it.

Source: Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point algorithm in convex
programming"; Li, Sun and Toh (2018), "A highly efficient semismooth Newton augmented Lagrangian method for solving
Lasso problems", algorithms SSNAL and SSN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.durable import Group, growing
from saddlesvm.solvers.base import Best, nothing

MOVE_RATIO = 0.1  # ratio of the gap's first term to its second at which the centre moves
TOO_LONG = 40  # Newton steps at one centre after which q grows
BACK = 4.0  # factor by which q then grows
MOST_MOVES = 20  # moves of the centre between two Newton steps, at most
FORCING = 0.1  # relative residual of the Newton equations; the line search and the next step make up for the rest
LINE_TOLERANCE = 0.1  # derivative along the line at the end of the search, relative to its value at the start
TRIALS = (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 2.0, 4.0, 8.0)  # places on a line, where 1 is the point of the pass
ENOUGH = 0.6  # share of the fall to the best place on the line with which the point of the pass is taken
ROUNDED = 1e-14  # fall of the objective, relative to it, that rounding hides

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
        ratio: float = MOVE_RATIO,
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
        ratio : float
            Ratio of the gap's first term to its second at which the centre moves.
        most : int
            Moves, at most.
        """
        for _ in range(most):
            if self.q == 0.0 or self.best.relative_gap <= target or time_is_up():
                return
            stepped = self.inner > 0
            if self.stuck or self.residual <= ratio * self.left:
                self.centre[:] = self.alpha
                self.q = max(self.q / next((factor for steps, factor in growth if self.inner <= steps), 1.0), least)
            elif self.inner >= TOO_LONG:
                self.q *= BACK
            else:
                return
            self.inner, self.stuck = 0, False
            evaluate(stepped)


@dataclass
class OverPasses(Group):
    """Where a method stands that evaluates one point in each pass over the rows.

    Attributes
    ----------
    at : ndarray of shape (d + 1,)
        The point that the next pass evaluates.
    back : ndarray of shape (d + 1,) or (0,)
        The last point taken, from which a full step led to `at`; empty where there is none, and where `at` is a place
        on the line that is known to be lower.
    before : float
        The objective at `back`, in the C form.
    passes : int
        Passes so far.
    ended : bool
        Rounding hides what a further step could gain.
    """

    at: np.ndarray
    back: np.ndarray = growing()
    before: float = np.inf
    passes: int = 0
    ended: bool = False

    def turns_back(self, C: float, regularizer: Regularizer, line: np.ndarray, primal: float) -> bool:
        """Turn to another place on the line where one is much lower, or where the objective has not fallen.

        Parameters
        ----------
        C : float
        regularizer : Regularizer
        line : ndarray of shape (len(TRIALS),)
            ``sum_i s_i phi_i`` at the places of the line.
        primal : float
            The objective at the point of the pass.
        """
        if not self.back.size:
            return False
        ahead = self.at - self.back
        charged = np.array([regularizer.value(self.back + place * ahead) for place in TRIALS])
        objectives = np.nan_to_num(charged + C * line, nan=np.inf)
        best = int(objectives.argmin())
        fall = self.before - float(objectives[best])
        if fall > 0.0 and not self.before - primal >= ENOUGH * fall:
            self.at, self.back = self.back + TRIALS[best] * ahead, nothing()
            return True
        if primal < self.before:
            return False
        self.at = self.back + TRIALS[0] * ahead
        self.shortened()
        return True

    def shortened(self) -> None:
        """Learn that the step was too long, and that the next point is the nearest place on the line."""
        raise NotImplementedError
