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

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.bounds import Facts, PointSizes, Sums, add_sizes, largest_among, primal_of
from saddlesvm.problem.intercepts import SEARCH_STEPS, Intercept
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.rows.layouts import Rows
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.base import Best, nothing

FIRST_PROXIMITY = 0.1  # in units of the median ``C ||x_i||^2``, or of the median size of the first margins
MATRICES = 4.0  # matrices held for a problem: the sum, its change, its factor, and room to lift the diagonal
MOVE_RATIO = 0.1  # ratio of the gap's first term to its second at which the centre moves
MOST_MOVES = 20  # moves of the centre between two Newton steps, at most
FORCING = 0.1  # relative residual of the Newton equations; the line search and the next step make up for the rest
LINE_TOLERANCE = 0.1  # derivative along the line at the end of the search, relative to its value at the start
WIDEN = 10.0  # factor by which it extends its step at once, at most
TRIALS = tuple(2.0**k for k in (-6, -4, -3, -2, -1, 1, 2, 3))  # places on a line, where 1 is the point of the pass
ENOUGH = 0.6  # share of the fall to the best place on the line with which the point of the pass is taken
ROUNDED = 1e-13  # change of the objective, relative to it, that rounding hides
UNASKED = np.empty(0)  # in the place of multipliers that nobody needs
SIZES, LARGEST = len(PointSizes._fields), largest_among(PointSizes)

Growth = tuple[tuple[int, float], ...]  # Newton steps at a centre, at most: divisor of q when it moves


class Bracket:
    """Where a convex function along a line is lowest, between two places that come closer.

    Newton's method on the derivative, which is monotone; the bracket is halved where it is slow. A rise without
    curvature counts as small nowhere: it may go on from the minimum, however far that is.

    Parameters
    ----------
    begin : float
        The derivative at zero. Where it is not negative, or not finite, the search has ended at zero.
    tau : float
        The first place to look at.
    tolerance : float
        Share of the derivative at zero that may be left.

    Attributes
    ----------
    tau : float
        The place to look at.
    going : bool
        Whether the search goes on.
    """

    __slots__ = ("before", "enough", "going", "high", "low", "tau")

    def __init__(self, begin: float, tau: float = 1.0, tolerance: float = LINE_TOLERANCE) -> None:
        self.going = -np.inf < begin < 0.0
        self.tau, self.enough = tau if self.going else 0.0, -tolerance * begin
        self.low, self.high, self.before = 0.0, np.inf, np.inf

    def follow(self, residual: float, rise: float) -> float:
        """The next place by the first and the second derivative at this one; the same where the search ends."""
        size, tau = abs(residual), self.tau
        if not self.going:
            return tau
        if size <= self.enough and (residual <= 0.0 or rise > 0.0):
            self.going = False
            return tau
        if residual < 0.0:
            self.low = tau
        else:
            self.high = tau
        newton = tau - residual / rise if rise > 0.0 else np.inf
        if self.high == np.inf:
            following = min(newton, WIDEN * tau)
        elif self.low < newton < self.high and not size > 0.5 * self.before:
            following = newton
        else:
            following = 0.5 * (self.low + self.high)
        self.before = size
        self.going = following != tau and math.isfinite(following)
        self.tau = following if self.going else tau
        return self.tau


def lowest_on_line(
    derivatives: Callable[[float], tuple[float, float]], begin: float, tau: float, tolerance: float
) -> float:
    """The place at which a :class:`Bracket` ends; `derivatives` are the first and the second one at a place."""
    line = Bracket(begin, tau, tolerance)
    for _ in range(SEARCH_STEPS):
        if not line.going or time_is_up():
            break
        line.follow(*derivatives(line.tau))
    return line.tau


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


class Setting(NamedTuple):
    """The problem of a method over passes, besides its rows, and the limits of its work.

    Attributes
    ----------
    loss : Loss
    C : float
    regularizer : Regularizer
    tol : float
        The relative gap asked for.
    memory : float
        Bytes for factors of a problem over rows taken along.
    """

    loss: Loss
    C: float
    regularizer: Regularizer
    tol: float
    memory: float

    def problem_over(
        self,
        X: Rows,
        y: np.ndarray,
        weights: np.ndarray,
        norms: np.ndarray,
        fixed: np.ndarray,
        intercept: Intercept,
    ) -> Problem:
        """The problem over some rows in memory, while the pull of all others stands still."""
        members = np.arange(y.size, dtype=np.int32)
        return Problem(X, y, self.loss, self.C, weights, norms, members, intercept, y.size, fixed=fixed)


class PassSums:
    """The base class of what a pass finds in some rows; its fields are sums, arrays, and rows taken along, lists."""

    sizes: np.ndarray  # of shape (SIZES,): what bounds on rounding need of the multipliers

    @property
    def values(self) -> list[Any]:
        """The sums and the lists."""
        return [getattr(self, one.name) for one in fields(self)]  # type: ignore[arg-type]

    @property
    def pieces_taken(self) -> list[Any]:
        """The rows taken along, in pieces."""
        return [piece for one in self.values if isinstance(one, list) for piece in one]

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        arrays = [one for one in self.values if not isinstance(one, list)]
        return sum(one.nbytes for one in (*arrays, *self.pieces_taken))

    def add(self, other: Any) -> None:
        """Add what other rows tell."""
        for total, part in zip(self.values, other.values, strict=True):
            if total is self.sizes:
                add_sizes(total, part, LARGEST)
            else:
                total += part

    def copy(self) -> Any:
        """The same, which may be added to."""
        return type(self)(*map(copy, self.values))

    def without_rows(self) -> Any:
        """The sums alone."""
        return type(self)(*([] if isinstance(one, list) else one for one in self.values))


@dataclass
class OverPasses:
    """Where a method stands that evaluates one point in each pass over the rows.

    Attributes
    ----------
    at : ndarray of shape (d + 1,)
        The point that the next pass evaluates.
    model : ndarray of shape (d + 1,)
        The point to certify: the one that the last pass evaluated, or the best so far.
    back : ndarray of shape (d + 1,) or (0,)
        The last point taken, from which a full step led to `at`; empty where there is none, and where `at` is a place
        on the line that is known to be lower.
    before : float
        The objective at `back`, in the C form.
    passes : int
        Passes so far.
    ended : bool
        Rounding hides what a further step could gain.
    estimate : float
        The relative gap, as far as it is known.
    active : int
        Rows that bend, or are free, at the point of the last pass.
    """

    balances: ClassVar[bool] = False  # whether the best dual point is kept, with the sum that a free intercept asks for
    at: np.ndarray
    model: np.ndarray = field(default_factory=lambda: np.empty(0))
    back: np.ndarray = field(default_factory=lambda: np.empty(0))
    before: float = np.inf
    passes: int = 0
    ended: bool = False
    estimate: float = np.inf
    active: int = 0

    @property
    def remark(self) -> str:
        """What the last pass came to, in words."""
        raise NotImplementedError

    @property
    def evaluates(self) -> bool:
        """Whether the next pass evaluates a point."""
        return True

    def question(self) -> Any:
        """The question of the next pass: it has an `empty` answer, and `add_to` an answer that of rows."""
        raise NotImplementedError

    def take(self, setting: Setting, found: Any) -> Any:
        """Learn from a pass; the problem over the rows taken along that is to be solved next, or None."""
        raise NotImplementedError

    def learn(self, setting: Setting, solved: Any) -> bool:
        """Choose the next point from a solution; whether its multipliers are the best dual point so far."""
        raise NotImplementedError

    def proven(self, facts: Facts) -> Sums:
        """The sums of the certificate of `model`, rounding bounded."""
        raise NotImplementedError

    def proves(self, intercept: Intercept) -> bool:
        """Whether there is a point to certify."""
        return self.passes > 0

    def gives_up(self, most: int) -> bool:
        """Whether the method does not suit the rows, or has done `most` passes in vain."""
        return False

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
        objectives = np.nan_to_num(primal_of(C, line, charged), nan=np.inf)
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
