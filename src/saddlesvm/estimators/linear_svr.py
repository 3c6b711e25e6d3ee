"""LinearSVR: a drop-in replacement for scikit-learn's, with a proven bound on its distance from the optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from saddlesvm.data.labels import check_target_columns, check_targets, check_weights, has_columns
from saddlesvm.estimators.automatic_C import AutomaticC
from saddlesvm.estimators.linear import LinearEstimator
from saddlesvm.estimators.linear_model import LinearModel, Training
from saddlesvm.estimators.on_cluster import over_blocks
from saddlesvm.estimators.options import OF_LINEAR, LinearOptions
from saddlesvm.estimators.register import register_estimator
from saddlesvm.estimators.scikit_learn import RegressorMixin
from saddlesvm.multiclass.sub_problems import SubProblem, each_target
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.residual_losses import RegressionLoss
from saddlesvm.runtime.internal import internal


class LinearRegressor(RegressorMixin, LinearModel):
    """The base class of LinearSVR: its score comes after that of rows on a cluster."""


@register_estimator(task="regression", options=("epsilon", *OF_LINEAR))
@dataclass(kw_only=True, eq=False, repr=False)
class LinearSVR(LinearEstimator, LinearRegressor, LinearOptions):
    """Linear support vector regression, trained to a certified relative duality gap.

    Minimises

    .. math:: \\tfrac12 \\lVert w \\rVert^2 + C \\sum_i s_i\\, \\phi(x_i^\\top w + b - y_i) .

    See :class:`LinearSVC` for parameters that are not described here.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half-width of the tube without loss, for the two epsilon losses. It has the target's units.
    tol, C, lam, penalty, l1_ratio, fit_intercept, intercept, intercept_scaling, solver, max_iter, max_time, \
certify_every, keep, gap, warm_start, random_state, n_jobs, verbose, callbacks, checkpoint, memory, canonical
        As in :class:`LinearSVC`.
    loss : str or Loss, default="epsilon_insensitive"
        "epsilon_insensitive", "squared_epsilon_insensitive" (see `epsilon`), "absolute", "squared", "huber:delta=1.0",
        "pinball:tau=0.5" (the quantile `tau`), or a registered loss of your own.
    dual : "auto" or bool, default="auto"
        Accepted for compatibility, without effect.

    Attributes
    ----------
    coef_ : ndarray of shape (d,) or (k, d), float64
    intercept_ : float or ndarray of shape (k,)
    dual_coef_ : ndarray of shape (1, n), or CSR array of shape (k, n)
    certificate_, certificates_, outcome_, trace_, n_iter_, phases_
    seconds_solving_, seconds_certifying_, seconds_compiling_, n_features_in_, feature_names_in_
    digest_, ambiguous_, log_
        As in :class:`LinearSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from saddlesvm import LinearSVR
    >>> x = np.linspace(-1.0, 1.0, 50)
    >>> model = LinearSVR(loss="absolute", C=10.0, intercept="free", random_state=0)
    >>> model = model.fit(x[:, None], 2.0 * x + 1.0)
    >>> model.predict([[0.5]]).round(2).tolist()
    [2.0]
    """

    epsilon: float = 0.0
    C: float | Literal["auto"] | AutomaticC = 1.0
    loss: RegressionLoss | Loss | type[Loss] = "epsilon_insensitive"

    def _complete(self, X: Any, y: Any, sample_weight: Any) -> None:
        if not has_columns(y):
            self.coef_, self.intercept_ = self.coef_[0], float(np.ravel(self.intercept_)[0])

    def _made_loss(self) -> Loss:
        return make_loss(self.loss, epsilon=self.epsilon, task="regression")

    @internal
    def training_problems(self, y: Any, sample_weight: Any, n: int) -> Training:
        """The problems, one a column, that this model solves on targets; see :meth:`LinearSVC.training_problems`."""
        weights = check_weights(sample_weight, n)
        if has_columns(y):
            return Training(each_target(check_target_columns(y, n)), self._made_loss(), weights)
        targets = check_targets(y, n)
        return Training([SubProblem(0, "", targets)], self._made_loss(), weights)

    @over_blocks
    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, shape (n,), or (n, k) where as many columns were fitted."""
        return self.decide(self._scores(X))

    @internal
    def decide(self, scores: np.ndarray) -> np.ndarray:
        """The predicted targets for scores of shape (n, 1) or (n, k), shape (n,) or (n, k)."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
