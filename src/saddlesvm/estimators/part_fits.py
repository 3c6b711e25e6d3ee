"""Fits of one model to parts of the same rows, at one C after another; the rows are read where they are.

Where the next weights along C are expected: further on, the way that the last ones went. Differences between weights
change slowly along C: those between a fold and all rows at the same C, and those between one C and the next. The last
difference, grown as it last grew, leads closer to the next weights than any earlier weights are. A fold's fit must not
begin at the weights of all rows: those that judge the fold are among them, and what is near to such weights does better
on those rows than it should.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from saddlesvm.data.door import encoded
from saddlesvm.estimators.base import Training
from saddlesvm.estimators.calibration import calibrated
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass.linear_fit import FitRows
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.automatic.auto import FINISH, Auto
from saddlesvm.solvers.second_order.held_out import LeftOut, has_steps, near, steps_are_cheap, without_each
from saddlesvm.solvers.second_order.newton import Newton


class PartFits:
    """Fits to some of the rows, each begun at an earlier fit to these rows or to all.

    Parameters
    ----------
    template : LinearSVC
        Supplies the options; its C is ignored.
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
        Labels.
    weights : ndarray of shape (n,) or None
    chosen : ndarray of shape (n,), bool, optional
        The rows that take part; all when left out.
    ready : FitRows, optional
        The rows, prepared by another part.

    Raises
    ------
    ValueError
        The chosen rows are of one class only, or bad options.
    """

    def __init__(
        self,
        template: LinearModel,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray | None,
        chosen: np.ndarray | None = None,
        ready: FitRows | None = None,
    ) -> None:
        self.template, self.X, self.y, self.weights, self.chosen = template, X, y, weights, chosen
        self.model: Any = clone(template).set_params(warm_start=True, C=1.0, probability=False)
        self.model.n_features_in_ = X.shape[1]
        self.calibrates = template.probability
        known = y if chosen is None else y[chosen]
        self.model.classes_ = encoded(known)[0]
        if self.model.classes_.size < 2:
            raise ValueError(f"a fold holds 1 class only, {known.tolist()[0]!r}: at least two are needed")
        self.ready = ready or self.model.rows_for_parts(X, self.model.classes_.size)
        self.posed = self._posed()

    def part(self, chosen: np.ndarray, weights: np.ndarray | None) -> PartFits:
        """The same for the rows for which `chosen`, of shape (n,), is true, with these weights."""
        return PartFits(self.template, self.X, self.y, weights, chosen, self.ready)

    def _posed(self) -> Training:
        """The sub-problems over the chosen rows; the labels of the others stand for nothing."""
        if self.chosen is None:
            return self.model.training_problems(self.y, self.weights, self.y.size)
        labels, weights = np.where(self.chosen, self.y, self.model.classes_[0]), self.weights
        if weights is not None or self.model.class_weight is not None:
            weights = np.where(self.chosen, 1.0 if weights is None else weights, 0.0)
        posed = self.model.training_problems(labels, weights, self.y.size)
        return posed._replace(problems=[problem.among(self.chosen) for problem in posed.problems])

    def fit(
        self,
        C: float,
        former: Any = None,
        begun: Sequence[LeftOut] | None = None,
        expected: Weights | None = None,
    ) -> Any:
        """A model for C.

        Parameters
        ----------
        C : float
        former : LinearSVC, optional
            A model of these rows, or of all, at any C, that the fit begins at.
        begun : sequence of LeftOut, optional
            Each sub-problem seen from a neighbour's solution, of :meth:`ahead` or :meth:`without_each`: a fit only
            follows where the weights that lead from there are not good enough.
        expected : tuple of ndarray of shape (k, d) and of shape (k,), optional
            Weights and intercepts to begin at rather than at those of `former`, or where `begun` leads; the fit takes
            a step of its own.
        """
        model = copy.copy(self.model)
        model.C = C
        if begun is not None:
            model.judge_part(begun, self.posed, self.ready, expected)
        elif former is not None:
            start = former.former_fit()
            model.begin_at(start if expected is None else start._replace(coef=expected[0], intercept=expected[1]))
        if begun is None or not model.certificate_.relative_gap <= model.tol:
            model.fit_part(self.X, self.posed, self.ready)
        return model

    @property
    def goes_by_weights(self) -> bool:
        """Whether a fit that begins at good weights has little left to do, whatever its dual variables."""
        return is_smooth(self.posed.loss)

    def without_each(self, model: Any, parts: Sequence[PartFits]) -> list[list[LeftOut] | None]:
        """The starts of the parts' fits, from a `model` of all rows with the same C, or None if nothing.

        The parts must have the weights and the classes of all rows, and leave out each row at most once.
        """
        none: list[list[LeftOut] | None] = [None] * len(parts)
        left_out = [~part.chosen for part in parts if part.chosen is not None]
        like = all(self._same_weights(part) and np.array_equal(part.model.classes_, model.classes_) for part in parts)
        if self.ready is None or len(left_out) < len(parts) or np.sum(left_out, axis=0).max() > 1 or not like:
            return none
        steps = self._steps(model, model, len(parts), partial(without_each, parts=left_out))
        return none if steps is None else [list(one) for one in zip(*steps, strict=True)]

    def ahead(self, model: Any, C: float) -> list[LeftOut] | None:
        """The start of a fit with another C, from a `model` of the same rows, or None if nothing."""
        following = copy.copy(self.model)
        following.C = C
        return None if self.ready is None else self._steps(model, following, 1, near)

    def _steps(
        self, model: Any, posing: Any, parts: int, step: Callable[[Problem, np.ndarray], Any]
    ) -> list[Any] | None:
        """What `step` makes of each problem that `posing` poses and the weights that `model` has of it; None where a
        fit would go another way."""
        found = []
        for k, sub in enumerate(self.posed.problems):
            problem = posing.part_problem(sub, self.posed, self.ready)
            if not self._has_steps(problem, parts, model):
                return None
            found.append(step(problem, _weights(model, k, problem)))
        return found

    @staticmethod
    def _has_steps(problem: Problem, parts: int, model: Any) -> bool:
        """Whether Newton steps are to be had, nothing asks for those of a fit, and a fit would go the same way."""
        free = isinstance(model._made_solver(), (Auto, Newton)) and not model.callbacks and model.max_iter is None
        return free and has_steps(problem, parts) and (FINISH in model.phases_ or steps_are_cheap(problem))

    def _same_weights(self, part: PartFits) -> bool:
        """Whether the rows of a part have the same weights as here."""
        if [sub.factor for sub in self.posed.problems] != [sub.factor for sub in part.posed.problems]:
            return False
        own, other = self.posed.weights, part.posed.weights
        if own is None or other is None:
            return own is other
        return np.array_equal(own[part.chosen], other[part.chosen])

    def with_probabilities(self, model: Any) -> Any:
        """A fitted model with the curves that its template asks for; the model itself where it asks for none."""
        if not self.calibrates or model.outcome_ is Outcome.INTERRUPTED:
            return model
        made = copy.copy(model)
        chosen = np.ones(self.y.size, dtype=bool) if self.chosen is None else self.chosen
        made.probability, made.dual_coef_ = self.calibrates, made.dual_coef_[:, np.flatnonzero(chosen)]
        weights = None if self.weights is None else self.weights[chosen]
        made.calibration_ = calibrated(made, self.X[chosen], self.y[chosen], weights)
        return made


def rows_of_fold(whole: PartFits, train: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows that are trained on, and the weights of all rows: a row that is drawn twice has twice the weight.

    `train` has their numbers, or is a mask.
    """
    n = whole.y.size
    times = np.bincount(np.arange(n)[train], minlength=n)
    repeated = times.max(initial=0) > 1
    weights = times * (1.0 if whole.weights is None else whole.weights) if repeated else whole.weights
    return times > 0, weights


def _weights(model: Any, k: int, problem: Problem) -> np.ndarray:
    """The weights of a fitted model's sub-problem k, shape (d + 1,)."""
    return np.append(model.coef_[k], model.intercept_[k] / (problem.scale or 1.0))


GROWTH = 0.75  # exponent of the last growth of a difference: growth itself falls along C
FIRST_GROWTH = 0.5  # exponent of the growth of C, where there was one difference only

Weights = tuple[np.ndarray, np.ndarray]  # of shape (k, d), and intercepts of shape (k,)


class Difference(NamedTuple):
    """Between the weights, shape (k, d), and the intercepts, shape (k,), of two models; the first is for C."""

    C: float
    coef: np.ndarray
    intercept: np.ndarray


class CarriedOver:
    """Differences along C, of which the last two count."""

    def __init__(self) -> None:
        self.seen: list[Difference] = []

    def learn(self, model: Any, beside: Any) -> None:
        """Take in the next difference, between a model and the one that it is compared with."""
        if np.shape(model.coef_) != np.shape(beside.coef_):  # a fold may lack a class
            self.seen = []
            return
        apart = Difference(model.C, model.coef_ - beside.coef_, model.intercept_ - beside.intercept_)
        self.seen = [*self.seen[-1:], apart]

    def beyond(self, beside: Any, C: float) -> Weights | None:
        """The model predicted for C, from a model to compare with; None where nothing is known."""
        if not self.seen:
            return None
        last = self.seen[-1]
        growth = np.full(len(last.coef), (C / last.C) ** FIRST_GROWTH)
        if len(self.seen) > 1:
            before, now = (np.einsum("kj,kj->k", one.coef, one.coef) for one in self.seen)
            known = (before > 0.0) & (now > 0.0)
            ratio = np.divide(now, before, where=known, out=np.ones_like(now))
            growth = np.minimum(ratio ** (0.5 * GROWTH), C / last.C)
        return beside.coef_ + growth[:, None] * last.coef, beside.intercept_ + growth * last.intercept
