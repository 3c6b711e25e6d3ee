"""An estimator from outside the package: a least-squares classifier, made known by registration alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from saddlesvm import register_estimator
from saddlesvm.data.label_checks import check_labels, check_weights
from saddlesvm.estimators.base import Labels, Training
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.losses import Squared


@register_estimator(task="classification")
class LeastSquaresSVC(ClassifierMixin, LinearModel):
    """Two classes as the targets -1 and +1 of a regression with squared errors.

    Parameters
    ----------
    C, lam, tol, max_iter, fit_intercept
        As in :class:`saddlesvm.LinearSVC`.
    upper_cost : float, default=1.0
        What multiplies the weights of the rows of the upper class.

    Attributes
    ----------
    coef_, intercept_, classes_, certificate_
        As in :class:`saddlesvm.LinearSVC`.
    """

    loss, random_state = "squared", 0

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float | None = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        fit_intercept: bool = True,
        upper_cost: float = 1.0,
    ) -> None:
        self.C = C
        self.lam = lam
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.upper_cost = upper_cost

    def _check_options(self) -> Squared:
        """Check every option that does not depend on the data, and return the loss."""
        loss: Squared = super()._check_options()
        if not self.upper_cost > 0.0:
            raise ValueError(f"upper_cost must be positive; got {self.upper_cost!r}")
        return loss

    def _make_loss(self) -> Squared:
        return Squared()

    def _pose(self, y: Any, sample_weight: Any, n: int, labels: Labels | None = None) -> Training:
        """Return the regression on the signs of the labels, and the weights of the rows."""
        classes = np.unique(check_labels(y, n)) if labels is None else labels.classes
        upper = check_labels(y, n) == classes[1]
        weights = check_weights(sample_weight, n)
        weights = np.where(upper, self.upper_cost, 1.0) * (1.0 if weights is None else weights)
        problem = SubProblem(0, "", np.where(upper, 1.0, -1.0))
        return Training([problem], self._make_loss(), weights, Labels(classes))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, shape (n,)."""
        return self.classes_[(self._scores(X)[:, 0] > 0.0).astype(np.intp)]
