"""What the rows respond to weights: the part of a certificate that knows the machine.

:mod:`saddlesvm.problem.certificate` makes certificates of what is found here. A dual point of
weights alone is that of the sub-gradients at their margins, improved by a line search on its scale.

With a free intercept the dual has the constraint ``sum_i a_i = 0``. A point that violates it is
balanced first, by shortening variables of the heavier sign, variables strictly inside their bounds
before all others (which costs the bound only second order terms).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property, singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from saddlesvm.problem.bounds import (
    Around,
    Facts,
    LossSums,
    MarginErrors,
    Move,
    PointSizes,
    dual_of,
    margin_errors,
    norm_of,
    point_sizes,
)
from saddlesvm.problem.loss import traits_of
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.sums import (
    conjugate_sum,
    dual_of_margins,
    dual_weights,
    loss_sums,
    margins,
    sums_and_pull,
    sums_of_margins,
)
from saddlesvm.problem.terms import Pointwise

# The parabola through three factors, PARABOLA_STEP apart, is trusted if its top is at most
# PARABOLA_REACH steps below the largest; guessed.
PARABOLA_STEP = 0.01
PARABOLA_REACH = 5.0


class RowSums(NamedTuple):
    """The sums over the rows of weights and a dual point, and what their rounding depends on.

    Attributes
    ----------
    sums : LossSums
    facts, sizes, errors, move, around
        As for :func:`~saddlesvm.problem.bounds.bound_sums`.
    """

    sums: LossSums
    facts: Facts
    sizes: PointSizes
    errors: MarginErrors
    move: Move | None
    around: Around | None = None


class Responses(ABC):
    """What the rows respond to weights: the only part of a certificate that knows the machine.

    Parameters
    ----------
    problem : Problem
    w : ndarray of shape (d + 1,) or (K, d + 1)
        The weights of the model.

    Attributes
    ----------
    scoring_weights : ndarray
        The weights by which rows are scored: w, without a free intercept that is an `offset`.
    offset : float or None
        What is added to the scores; None if the intercept is the last weight.
    """

    def __init__(self, problem: Any, w: np.ndarray) -> None:
        self.problem = problem
        self.w = w
        self.scoring_weights = w
        self.offset: float | None = None

    @abstractmethod
    def choose_dual_point(self, alpha: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """A feasible dual point to prove the weights by, and its pull.

        It is the best multiple of the given dual point, or of the sub-gradients at the
        scores.
        """

    @abstractmethod
    def sums(self, alpha: np.ndarray, pull: np.ndarray | None) -> RowSums:
        """The sums over the rows of the weights and a dual point.

        Sums of products with the scores may be infinite if the pull is given.
        """

    def sums_and_pull(self, alpha: np.ndarray) -> tuple[RowSums, np.ndarray]:
        """Return the sums over the rows, and the pull of the dual point."""
        pull = dual_weights(self.problem, alpha)
        return self.sums(alpha, pull), pull


@singledispatch
def responses_of(problem: Any, w: np.ndarray, given_offset: bool = False) -> Responses:
    """Return what the rows respond to weights; machines with more scores register their own."""
    return Margins(problem, w, given_offset)


class Margins(Responses):
    """The margins of weights, one a row.

    Parameters
    ----------
    problem : Problem
    w : ndarray of shape (d + 1,)
    given_offset : bool, default=False
        True to take a free intercept from w, instead of the best intercept.
    z : ndarray of shape (n,), optional
        The margins of the members without the offset, if they are known.
    """

    def __init__(
        self,
        problem: Problem,
        w: np.ndarray,
        given_offset: bool = False,
        z: np.ndarray | None = None,
    ) -> None:
        super().__init__(problem, w)
        self.z = z
        self.scoring_weights, offset = problem.intercept.split(w)
        if problem.intercept.constrained:
            # A free intercept is the best one for the margins, unless a given one must be judged.
            self.offset = offset
            z = self.margins()
            if not given_offset:
                best = problem.intercept.best
                self.offset = best(problem.pointwise, problem.members, z, offset)

    def margins(self) -> np.ndarray:
        """The margins of the members but for the offset; they are kept."""
        if self.z is None:
            self.z = margins(self.problem, self.scoring_weights)
        return self.z

    @cached_property
    def centred_terms(self) -> tuple[Pointwise, float]:
        """The terms of the losses, and the offset of margins; regressions take it off the targets.

        The dual variables of a free intercept sum to zero: neither objective changes. But if the
        labels are far from zero, their products with the dual variables are large and
        cancel, and their rounding errors do not.
        """
        terms = self.problem.pointwise
        offset = self.offset or 0.0
        if is_classification(self.problem.loss) or not self.problem.intercept.constrained:
            return terms, offset
        return terms._replace(y=terms.y - offset), 0.0

    def choose_dual_point(self, alpha: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The best multiple of dual variables, balanced, and its pull."""
        problem = self.problem
        z = self.margins()
        # Without dual variables the losses' slopes at the margins are a dual point.
        if alpha is None:
            alpha = np.zeros(problem.y.size)
            dual_of_margins(problem.pointwise, problem.members, z, self.offset or 0.0, alpha)
        alpha = problem.balance(alpha)
        return self.scale_best(alpha, dual_weights(problem, alpha))

    def scale_best(self, alpha: np.ndarray, pull: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The best multiple of feasible dual variables, and of their pull."""
        factor = best_scale(self.problem, alpha, pull, terms=self.centred_terms[0])
        if factor == 1.0:
            return alpha, pull
        return factor * alpha, factor * pull

    def sums(self, alpha: np.ndarray, pull: np.ndarray | None) -> RowSums:
        """The sums over the rows; margins that are not at hand are not kept."""
        if self.z is None:
            found = sums_of_margins(self.problem, self.scoring_weights, alpha)
            return self._add_sizes(alpha, LossSums(*found.tolist()))
        # Margins at hand need no pass over the rows.
        terms, added = self.centred_terms
        return self._add_sizes(alpha, loss_sums(terms, self.problem.members, self.z, added, alpha))

    def sums_and_pull(self, alpha: np.ndarray) -> tuple[RowSums, np.ndarray]:
        """The sums and the pull by one pass over the rows."""
        sums, pull = sums_and_pull(self.problem, self.scoring_weights, alpha)
        return self._add_sizes(alpha, LossSums(*sums.tolist())), pull

    def _add_sizes(self, alpha: np.ndarray, sums: LossSums) -> RowSums:
        """Return the sums with the point's sizes, and the errors of margins."""
        problem = self.problem
        terms, added = self.centred_terms
        sizes = point_sizes(
            problem.loss,
            terms.y,
            problem.norms,
            problem.weights,
            problem.members,
            alpha,
            signs=problem.intercept.constrained,
        )
        facts = problem.facts
        # The terms may have the offset taken off the targets, which rounds as an addition does.
        errors = margin_errors(
            facts.rows, norm_of(self.scoring_weights), added, shifted=added != (self.offset or 0.0)
        )

        def around(shift: float) -> float:
            """Return the sum of the losses with a number added to all margins."""
            nothing = np.zeros(alpha.size)
            at = loss_sums(terms, problem.members, self.margins(), added + shift, nothing)
            return at.paid

        return RowSums(sums, facts, sizes, errors, None, around)


def best_scale(
    problem: Problem,
    alpha: np.ndarray,
    pull: np.ndarray,
    precision: float = 1e-4,
    terms: Pointwise | None = None,
) -> float:
    """The factor in [0, 1] with the highest dual objective of ``factor * alpha``, for `terms`.

    `pull` is ``v(alpha)``.

    Most losses declare that the dual is a parabola in the factor, with half a square: two values of
    it are enough, as it goes through zero. For other losses, and other penalties, the factor is the
    top of the parabola through three factors near 1, or near the largest factor with a finite R*;
    Brent's method looks for a top farther away, to `precision`. An error of the factor enters the
    objective squared.
    """

    conjugate = problem.regularizer.conjugate_along(pull)
    most = problem.regularizer.domain_scale(pull)

    def negated_dual(factor: float) -> float:
        sums = conjugate_sum(terms or problem.pointwise, problem.members, alpha, factor)
        return -dual_of(problem.C, float(sums), conjugate(factor))

    if problem.is_plain and traits_of(problem.loss).parabolic:
        whole = negated_dual(1.0)
        if not math.isfinite(whole):
            # The variables are beyond their bounds; zero never is.
            return 0.0
        # f(t) = bend t^2 + (f(1) - bend) t goes through zero, with bend = 2 f(1) - 4 f(1/2). It is
        # lowest at (bend - f(1)) / (2 bend).
        bend = 2.0 * whole - 4.0 * negated_dual(0.5)
        if not bend > 0.0:
            return float(whole < 0.0)
        return min(max(0.5 - 0.5 * whole / bend, 0.0), 1.0)

    # The parabola through the largest factor, and one and two steps below it; factors are shares of
    # the largest. Its lowest place is 1 + (largest - two_below) / (2 bend) steps below the largest.
    largest = negated_dual(most)
    if not math.isfinite(largest):
        return 0.0
    one_below = negated_dual(most * (1.0 - PARABOLA_STEP))
    two_below = negated_dual(most * (1.0 - 2.0 * PARABOLA_STEP))
    bend = largest - 2.0 * one_below + two_below
    factor = float(largest < two_below)
    if bend > 0.0:
        factor = 1.0 - PARABOLA_STEP * (1.0 + 0.5 * (largest - two_below) / bend)
    if factor < 1.0 - PARABOLA_REACH * PARABOLA_STEP:
        found = minimize_scalar(
            negated_dual, bounds=(0.0, most), method="bounded", options={"xatol": precision}
        )
        return float(found.x) if found.fun < largest else most
    return most * min(max(factor, 0.0), 1.0)
