"""The fit of LinearSVC and LinearSVR, from rows and labels as a user gives them to a certified model; and LinearSVR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from saddlesvm.data.door import Design, check_target_columns, check_targets, check_weights, checked_data, has_columns
from saddlesvm.estimators.accountable import Accountable
from saddlesvm.estimators.automatic_C import AutomaticC, Choice, fit_automatically, made_automatic
from saddlesvm.estimators.base import COMMON, Training, all_or_nothing, in_use
from saddlesvm.estimators.canonical import check_canonical, gathered, make_canonical
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.estimators.on_cluster import TakesClusters, fit_on_cluster, is_distributed, over_blocks
from saddlesvm.estimators.path_search import HasPath
from saddlesvm.estimators.proven import Data
from saddlesvm.estimators.register import OF_LINEAR, LinearOptions, register_estimator
from saddlesvm.estimators.scikit_learn import FitTasks, RegressorMixin
from saddlesvm.multiclass.splits import given_start
from saddlesvm.multiclass.sub_problems import SubProblem, each_target
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.residual_losses import RegressionLoss
from saddlesvm.runtime.allowed import NUMBER, Allowed, among
from saddlesvm.runtime.lazy import internal

DUAL = among("'auto', True or False (it has no effect)", "auto", True, False)


class LinearEstimator(HasPath, Accountable, TakesClusters, LinearModel):
    """The base class of LinearSVC and LinearSVR."""

    _allowed: ClassVar[dict[str, Allowed]] = COMMON | {"dual": DUAL}
    dual_coef_: Any
    C_: float
    choice_: Choice
    path_: CertifiedPath

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
        dual_coef_init: Any = None,
    ) -> Self:
        """Train to the relative gap `tol`.

        Parameters
        ----------
        X : array-like, sparse matrix, list of dicts, Store, or Dask array or DataFrame, of shape (n, d); or files
            The workers of a cluster read a list of files or stores. Without a cluster, the rows of a list of stores
            follow one another.
        y : array-like or Dask array of shape (n,) or (n, k), or sparse indicator matrix of shape (n, k)
            Labels, at least two different ones; of a regression the targets. By default those of the store. Each column
            of an indicator matrix of 0 and 1 is one label, and each column of targets one target: k problems over the
            same rows, with a certificate each. For a list of files, the name of the column, or None.
        sample_weight : array-like of shape (n,), optional
            Non-negative row weights, of each class some positive. A weight of 2 equals the row twice. Without `y`, the
            default is the weights of the store. For a list of files, the name of a column, or a list of one array per
            file.
        groups : array-like of shape (n,), optional
            For ``C="auto"`` with rows that belong together (several images of one patient): the choice of C leaves out
            whole groups, each alone or in ten folds.
        coef_init : array-like of the shape of ``coef_``, optional
            Initial weights. Dual solvers begin at the sub-gradients of their margins. Pegasos begins at the weights as
            published: its first iteration computes margins with them, and multiplies them by zero, unless its steps
            begin later (see :class:`~saddlesvm.Pegasos`).
        intercept_init : array-like of the shape of ``intercept_``, optional
            Initial intercepts; zero by default.
        dual_coef_init : array-like or sparse array of the shape of ``dual_coef_``, optional
            Initial dual variables in the C form, within their bounds, instead of weights. Dual solvers begin exactly
            there.

        Raises
        ------
        ValueError
            Invalid data or options. The message names what was found and what is allowed.
        ClusterLostError
            The scheduler is lost, or there is no worker; ``error.model`` is the best model so far.

        Warns
        -----
        NotCertifiedWarning
            A limit was reached before the requested gap was proven.
        """
        starts = {"coef_init": coef_init, "intercept_init": intercept_init, "dual_coef_init": dual_coef_init}
        if not isinstance(X, np.ndarray) and is_distributed(X):
            check_canonical(self)
            fit_on_cluster(self, X, y, sample_weight, {"groups": groups} | starts)
            if self.canonical is not None:
                make_canonical(self, gathered(X, y, sample_weight))
            return self
        start = None if coef_init is intercept_init is dual_coef_init is None else given_start(*starts.values())
        if not isinstance(self.C, NUMBER) and (how := made_automatic(self.C)) is not None:
            if start is not None:
                raise ValueError("coef_init and dual_coef_init are for a given C, not for C='auto'")
            check_canonical(self)
            return fit_automatically(self, how, X, y, sample_weight, groups)
        if groups is not None:
            raise ValueError("groups are for C='auto', whose choice leaves whole groups out; C is given here")
        self.check_options()
        design, y, sample_weight = checked_data(X, y, sample_weight, self, reset=True)
        posed = self._learnt(y, sample_weight, design.shape[0])
        tasks = FitTasks(self, design.X, y, sample_weight, len(posed.problems)) if in_use(self) else None
        self._solve(design, posed, tasks, start)
        self._data = None if self.reads_blocks or design.placed else Data(design.X, y, sample_weight)
        self._complete(design, y, sample_weight)
        if tasks is not None:
            tasks.end()
        if self.canonical is not None:
            make_canonical(self, self._data)
        return self

    def _learnt(self, y: Any, sample_weight: Any, n: int) -> Training:
        """The sub-problems of labels, or of targets; the model learns which classes there are."""
        return self.training_problems(y, sample_weight, n)

    def _complete(self, design: Design, y: Any, sample_weight: Any) -> None:
        """Set the attributes of a model beside those of its fits."""

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        super().check_options()
        self._penalty()
        if self.canonical is not None:
            check_canonical(self)
        made: Loss = self._made_loss()
        return made


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

    def _complete(self, design: Design, y: Any, sample_weight: Any) -> None:
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
