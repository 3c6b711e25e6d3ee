"""Fits to parts of the same rows, at several C in turn; the rows are not copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from saddlesvm.data.label_checks import encode_classes
from saddlesvm.estimators.base import Labels, Training, option_of
from saddlesvm.estimators.fitted import Fitted, copy_options, former_fit, give_features
from saddlesvm.estimators.solve import fit_part, rows_for_parts
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

    Attributes
    ----------
    options : LinearSVC
        Of the fits, not fitted.
    labels : Labels
    training : Training

    Raises
    ------
    ValueError
        The chosen rows have a single class, or bad options.
    """

    def __init__(
        self,
        template: object,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray | None,
        chosen: np.ndarray | None = None,
        ready: FitRows | None = None,
    ) -> None:
        self.template = template
        self.X = X
        self.y = y
        self.weights = weights
        self.chosen = chosen
        options = clone(template).set_params(warm_start=True, C=1.0)
        self.options: Any = give_features(options, {"n_features_in_": X.shape[1]})
        # A fold may lack a class that other rows have.
        known = y if chosen is None else y[chosen]
        self.labels = Labels(encode_classes(known)[0])
        count = self.labels.classes.size
        if count < 2:
            only = known.tolist()[0]
            raise ValueError(f"a fold holds 1 class only, {only!r}: at least two are needed")
        self.ready = ready or rows_for_parts(self.options, X, count)
        self.training = self._pose_members()

    def part(self, chosen: np.ndarray, weights: np.ndarray | None) -> PartFits:
        """Return the fits to the rows for which `chosen`, of shape (n,), is true."""
        return PartFits(self.template, self.X, self.y, weights, chosen, self.ready)

    def _pose_members(self) -> Training:
        """Return the sub-problems over the chosen rows; labels of other rows stand for nothing."""
        n = self.y.size
        weights = self.weights
        if self.chosen is None:
            training: Training = self.options._pose(self.y, weights, n, self.labels)
            return training
        stand_ins = np.where(self.chosen, self.y, self.labels.classes[0])
        if weights is not None or option_of(self.options, "class_weight") is not None:
            # Rows outside must not count in balanced class weights.
            weights = np.where(self.chosen, 1.0 if weights is None else weights, 0.0)
        training = self.options._pose(stand_ins, weights, n, self.labels)
        return training._replace(
            problems=[sub.restrict_to(self.chosen) for sub in training.problems]
        )

    def options_at(self, C: float) -> Any:
        """Return the options of a fit with this C."""
        return copy_options(self.options, C=C)

    def fit(self, C: float, former: Fitted | None = None) -> Fitted:
        """Fit with this C, from the end of an earlier fit to these rows."""
        return fit_part(self.options_at(C), self.X, self.training, self.ready, former_fit(former))


def rows_of_fold(whole: PartFits, train: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows that are trained on, and the weights of all rows.

    A row that is drawn twice has twice the weight. `train` has row numbers, or is a mask.
    """
    n = whole.y.size
    times = np.bincount(np.arange(n)[train], minlength=n)
    weights = whole.weights
    if times.max(initial=0) > 1:
        weights = times * (1.0 if weights is None else weights)
    return times > 0, weights
