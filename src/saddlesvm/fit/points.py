"""The points of a fit: its last one, the best model and the best bound so far, and what it would return."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from saddlesvm.fit.outcome import Limits
from saddlesvm.problem.certificate import Certificate, Evaluation, Point, evaluate
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rescaling import better
from saddlesvm.runtime.clock import limit_step


def proof(model: Evaluation, bound: Evaluation) -> Certificate:
    """The certificate of the model at one point by the dual objective of another."""
    return model.certificate.bounded_by(bound.certificate)


class Points:
    """The points that a fit has evaluated, as far as it may return them.

    Attributes
    ----------
    keeps_last : bool
        Whether the fit returns the solver's last point, whatever it is.
    last : Evaluation or None
    best : Evaluation or None
        The point with the lowest primal objective.
    bound : Evaluation or None
        The exact point with the highest dual objective.
    improved : Evaluation or None
        The best multiple of a model.
    aim : float
        The relative gap to reach, 0 if the fit asks for none: the larger of `tol` and, once a
        certificate says what the objective is, of `gap`.
    """

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem, self.limits, self.keeps_last = problem, limits, limits.keep == "last"
        self.last: Evaluation | None = None
        self.best: Evaluation | None = None
        self.bound: Evaluation | None = None
        self.improved: Evaluation | None = None
        self.aim = limits.tol

    @property
    def chosen(self) -> tuple[Evaluation, Evaluation]:
        """The model and the dual point that a fit would return if it ended now.

        Both are those of the last certificate where it alone proves the gap asked for, or where the fit keeps the last
        point; else the best of each.
        """
        assert self.best is not None
        if self.last is not None and (self.keeps_last or self.limits.prove(self.last.certificate)):
            return self.last, self.last
        return self.best, self.highest

    @property
    def highest(self) -> Evaluation:
        """The point with the best bound: the last one, which may be a quick one, or the best of all exact ones."""
        if self.last is None or (self.bound is not None and self.bound.certificate.dual > self.last.certificate.dual):
            assert self.bound is not None
            return self.bound
        return self.last

    @property
    def returned(self) -> tuple[Evaluation, Evaluation] | None:
        """The model and the dual point that the fit returns; None where no objective was finite."""
        if self.keeps_last and self.last is not None:
            return self.last, self.last
        if self.best is not None and (self.improved is None or self.limits.prove(proof(*self.chosen))):
            return self.chosen
        points = [one for one in (self.improved, self.bound, self.best) if one is not None]
        if not points:
            return None
        model = min(points, key=lambda one: one.certificate.primal)
        exact = [one for one in points if one.exact]
        return model, max(exact, key=lambda one: one.certificate.dual)

    def evaluated(self, point: Any, exact: bool = True) -> Evaluation:
        """The certificate of a point; the last one of a primal solver has its own free intercept, not the best one."""
        if self.keeps_last and isinstance(point, Point) and point.w is not None and not point.tracks:
            return evaluate(self.problem, point, exact=exact, given_offset=True)
        return evaluate(self.problem, point, exact=exact)

    def decisive(self, quick: Evaluation) -> bool:
        """Whether a quick estimate says what only an exact certificate may: that the gap is reached, or negative."""
        seen = quick.certificate
        if self.keeps_last:
            return self.limits.prove(seen) or not seen.sound
        if self.best is not None and self.best.certificate.primal < seen.primal:
            seen = self.best.certificate.bounded_by(seen)
        if self.bound is not None:
            seen = seen.better_of(seen.bounded_by(self.bound.certificate))
        return self.limits.prove(seen) or not seen.sound

    def keep(self, evaluation: Evaluation) -> None:
        """Remember the last point, the best model and the best bound; a quick estimate bounds nothing."""
        own = evaluation.certificate
        if not (np.isfinite(own.primal) and own.dual < np.inf):
            return
        self.last = evaluation
        if self.best is None or own.primal <= self.best.certificate.primal:
            self.best = evaluation
            size = max(abs(own.primal), abs(own.dual))
            if 0.0 < size < np.inf:
                self.aim = max(self.limits.tol, self.limits.gap / size)
        if evaluation.exact and (self.bound is None or own.dual >= self.bound.certificate.dual):
            self.bound = replace(evaluation, alpha=self.problem.kept_duals(evaluation.alpha))

    def improve(self, seconds: float, model: Evaluation | None = None) -> None:
        """Look for a better model among the multiples of one, of the best where none is given, and the best intercept
        alone.

        The search may take so many seconds. Its result stands apart from the best one: a fit that goes on from here
        goes the way of an undisturbed one. A fit that keeps the last point leaves it as it is.
        """
        if self.keeps_last:
            return
        with limit_step(seconds):
            point = better(self.problem, model or self.best)
        if point is not None:
            found = evaluate(self.problem, point)
            lowest = self.improved or self.best
            if np.isfinite(found.certificate.primal) and (
                lowest is None or found.certificate.primal < lowest.certificate.primal
            ):
                self.improved = found
