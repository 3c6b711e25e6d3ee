"""Fits of one model to parts of the same rows, at one C after another; the rows are read where they are."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from saddlesvm.data.door import encoded
from saddlesvm.estimators.base import Training
from saddlesvm.estimators.calibration import calibrated
from saddlesvm.estimators.fitted import begin_at, fit_part, former_fit, rows_for_parts
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass.linear_fit import FitRows


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
        self.ready = ready or rows_for_parts(self.model, X, self.model.classes_.size)
        self.posed = self._posed()

    def part(self, chosen: np.ndarray, weights: np.ndarray | None) -> PartFits:
        """The same for the rows for which `chosen`, of shape (n,), is true, with these weights."""
        return PartFits(self.template, self.X, self.y, weights, chosen, self.ready)

    def _posed(self) -> Training:
        """The sub-problems over the chosen rows; the labels of the others stand for nothing."""
        if self.chosen is None:
            return self.model._pose(self.y, self.weights, self.y.size)
        labels, weights = np.where(self.chosen, self.y, self.model.classes_[0]), self.weights
        if weights is not None or self.model.class_weight is not None:
            weights = np.where(self.chosen, 1.0 if weights is None else weights, 0.0)
        posed = self.model._pose(labels, weights, self.y.size)
        return posed._replace(problems=[problem.among(self.chosen) for problem in posed.problems])

    def fit(self, C: float, former: Any = None) -> Any:
        """A model for C.

        Parameters
        ----------
        C : float
        former : LinearSVC, optional
            A model of these rows at any C, that the fit begins at.
        """
        model = copy.copy(self.model)
        model.C = C
        if former is not None:
            begin_at(model, former_fit(former))
        fit_part(model, self.X, self.posed, self.ready)
        return model

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
