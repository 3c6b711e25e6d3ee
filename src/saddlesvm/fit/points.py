"""The points of a fit: the last point, the best model, the best bound, and what it would return.

The best model has the lowest primal objective, the best bound the highest dual objective. They may
come from different points: their gap is a proof all the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from saddlesvm.fit.outcome import Limits
from saddlesvm.problem.certificate import Certificate, Evaluation, Point, evaluate
from saddlesvm.problem.problem import Problem


def proof(model: Evaluation, bound: Evaluation) -> Certificate:
    """Return the certificate of a point's model by the dual objective of another point."""
    return model.certificate.bounded_by(bound.certificate)


class Points:
    """The points that a fit has evaluated, as far as it may return them.

    Attributes
    ----------
    keeps_last : bool
        True if the fit returns the solver's last point, whatever it is.
    last : Evaluation or None
    best : Evaluation or None
        The point with the lowest primal objective.
    bound : Evaluation or None
        The exact point with the highest dual objective.
    aim : float
        The relative gap to reach, 0 if the fit asks for none: the larger of `tol` and, once a
        certificate says what the objective is, of `gap`.
    """

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem = problem
        self.limits = limits
        self.keeps_last = limits.keep == "last"
        self.last: Evaluation | None = None
        self.best: Evaluation | None = None
        self.bound: Evaluation | None = None
        self.aim = limits.tol

    @property
    def choice(self) -> tuple[Evaluation, Evaluation]:
        """The model and the dual point that a fit would return if it ended now.

        Both come from the last certificate if it alone proves the requested gap, or if the fit
        keeps the last point; otherwise the best of each.
        """
        assert self.best is not None
        if self.last is not None and (self.keeps_last or self.limits.prove(self.last.certificate)):
            return self.last, self.last
        return self.best, self.highest

    @property
    def highest(self) -> Evaluation:
        """The point with the best bound: the last point, even if quick, or the best exact point."""
        if self.last is None:
            assert self.bound is not None
            return self.bound
        if self.bound is None or self.last.certificate.dual >= self.bound.certificate.dual:
            return self.last
        return self.bound

    @property
    def result(self) -> tuple[Evaluation, Evaluation] | None:
        """The model and the dual point that the fit returns; None if no objective was finite."""
        if self.keeps_last and self.last is not None:
            return self.last, self.last
        return None if self.best is None else self.choice

    def evaluate(self, point: Any, exact: bool = True) -> Evaluation:
        """Certify a point; if the fit keeps its last point, weights keep their free intercept."""
        has_weights = isinstance(point, Point) and point.w is not None and not point.tracks
        if self.keeps_last and has_weights:
            return evaluate(self.problem, point, exact=exact, given_offset=True)
        return evaluate(self.problem, point, exact=exact)

    def is_decisive(self, quick: Evaluation) -> bool:
        """Return True if a quick estimate says that the gap is reached, or is negative."""
        seen = quick.certificate
        if self.keeps_last:
            return self.limits.prove(seen) or not seen.sound

        # Combine the estimate with the best model and the best bound so far.
        if self.best is not None and self.best.certificate.primal < seen.primal:
            seen = self.best.certificate.bounded_by(seen)
        if self.bound is not None:
            seen = seen.better_of(seen.bounded_by(self.bound.certificate))
        return self.limits.prove(seen) or not seen.sound

    def keep(self, evaluation: Evaluation) -> None:
        """Keep the last point, the best model and the best bound; a quick estimate is no bound."""
        own = evaluation.certificate
        if not (np.isfinite(own.primal) and own.dual < np.inf):
            return
        # The best bound, with a copy of its dual variables.
        if evaluation.exact and (self.bound is None or own.dual >= self.bound.certificate.dual):
            evaluation = replace(evaluation, alpha=self.problem.kept_duals(evaluation.alpha))
            self.bound = evaluation
        self.last = evaluation

        # The best model; its objectives say what an absolute gap is as a relative one.
        if self.best is None or own.primal <= self.best.certificate.primal:
            self.best = evaluation
            # A gap is relative to the larger objective.
            size = max(abs(own.primal), abs(own.dual))
            if 0.0 < size < np.inf:
                self.aim = max(self.limits.tol, self.limits.gap / size)
