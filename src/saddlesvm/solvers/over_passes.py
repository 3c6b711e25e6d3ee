"""Methods over passes: one point a pass, on a line from the last one taken.

A pass over the rows is what costs. So the search along the line is a choice among a few places, which the pass that
evaluates the next point sums up beside it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.bounds import Facts, PointSizes, Sums, add_sizes, largest_among, primal_of
from saddlesvm.problem.intercepts import Intercept
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.rows.layouts import Rows
from saddlesvm.solvers.base import nothing

if TYPE_CHECKING:
    from typing import Self

MATRICES = 4.0  # matrices held for a problem: the sum, its change, its factor, and room to lift the diagonal
TRIALS = tuple(2.0**k for k in (-6, -4, -3, -2, -1, 1, 2, 3))  # places on a line, where 1 is the point of the pass
ENOUGH = 0.6  # share of the fall to the best place on the line with which the point of the pass is taken
ROUNDED = 1e-13  # change of the objective, relative to it, that rounding hides
UNASKED = np.empty(0)  # in the place of multipliers that nobody needs
SIZES, LARGEST = len(PointSizes._fields), largest_among(PointSizes)


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

    def add(self, other: PassSums) -> None:
        """Add what other rows tell."""
        for total, part in zip(self.values, other.values, strict=True):
            if total is self.sizes:
                add_sizes(total, part, LARGEST)
            else:
                total += part

    def copy(self) -> Self:
        """The same, which may be added to."""
        return type(self)(*map(copy, self.values))

    def without_rows(self) -> Self:
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

    def bound_sums(self, facts: Facts) -> Sums:
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
