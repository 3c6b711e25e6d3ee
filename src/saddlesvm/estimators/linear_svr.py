"""LinearSVR: a drop-in replacement for scikit-learn's, with a proven bound on its distance from the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin

from saddlesvm.data import inputs
from saddlesvm.data.columns_of_labels import check_target_columns, has_columns
from saddlesvm.estimators.accountable import Accountable, check_canonical, gathered, make_canonical
from saddlesvm.estimators.automatic_C import AutomaticC, Choice, fit_automatically, made_automatic, refuse_groups
from saddlesvm.estimators.base import all_or_nothing, store
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.linear_model import LinearModel, Training
from saddlesvm.estimators.on_cluster import TakesClusters, fit_on_cluster, is_distributed, over_blocks
from saddlesvm.estimators.path_search import HasPath
from saddlesvm.estimators.proven import Data
from saddlesvm.estimators.register import register_estimator
from saddlesvm.estimators.sklearn_callbacks import FitTasks, with_callbacks
from saddlesvm.multiclass.given_start import given_start
from saddlesvm.multiclass.sub_problems import SubProblem, each_target
from saddlesvm.problem.losses import Loss, make_loss
from saddlesvm.problem.penalties import BlockPenalty, Penalty
from saddlesvm.runtime.internal import internal
from saddlesvm.runtime.words import ClusterSolver, DualOption, Intercept, Keep, PenaltyName, RegressionLoss, SolverName
from saddlesvm.solvers.base import SolverBase


@register_estimator(
    task="regression",
    options=("penalty", "l1_ratio", "epsilon", "checkpoint", "memory", "canonical", "liblinear"),
)
class LinearSVR(HasPath, Accountable, TakesClusters, RegressorMixin, LinearModel):
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

    coef_: np.ndarray
    intercept_: float | np.ndarray
    dual_coef_: Any
    C_: float
    choice_: Choice
    path_: CertifiedPath
    phases_: dict[str, float]

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float | Literal["auto"] | AutomaticC = 1.0,
        lam: float | None = None,
        loss: RegressionLoss | Loss | type[Loss] = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept: Intercept = "regularized",
        intercept_scaling: float = 1.0,
        penalty: PenaltyName | Penalty | BlockPenalty = "l2",
        l1_ratio: float = 0.15,
        dual: DualOption = "auto",
        solver: SolverName | ClusterSolver | SolverBase = "auto",
        max_iter: int | None = None,
        max_time: float | None = None,
        certify_every: float | None = None,
        keep: Keep = "best",
        gap: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Sequence[Any] | None = None,
        checkpoint: Any = None,
        memory: int | str | None = None,
        canonical: int | None = None,
    ) -> None:
        store(locals())

    @all_or_nothing
    @with_callbacks
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
        """Train to the relative gap `tol`; see :meth:`LinearSVC.fit`.

        Parameters
        ----------
        X : array-like, sparse matrix or Store of shape (n, d)
        y : array-like of shape (n,) or (n, k)
            Finite numbers. Each of several columns is one problem over the same rows, with its own certificate.
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,), optional
            For ``C="auto"``: rows that are left out together.
        coef_init, intercept_init : array-like of the shapes of ``coef_`` and ``intercept_``, optional
            Initial model.
        dual_coef_init : array-like of the shape of ``dual_coef_``, optional
            Initial dual variables, instead of weights.
        """
        if is_distributed(X):
            given = {"groups": groups, "coef_init": coef_init, "intercept_init": intercept_init}
            check_canonical(self)
            fit_on_cluster(self, X, y, sample_weight, given | {"dual_coef_init": dual_coef_init})
            if self.canonical is not None:
                make_canonical(self, gathered(X, y, sample_weight))
            return self
        start = given_start(coef_init, intercept_init, dual_coef_init)
        if (how := made_automatic(self.C)) is not None:
            if start is not None:
                raise ValueError("coef_init and dual_coef_init are for a given C, not for C='auto'")
            check_canonical(self)
            return fit_automatically(self, how, X, y, sample_weight, groups)
        refuse_groups(groups)
        self.check_options()
        X, y, sample_weight = inputs.parts_of(X, y, sample_weight, self.memory)
        X = inputs.check_design(self, X, reset=True)
        posed = self.training_problems(y, sample_weight, X.shape[0])
        several, makers = has_columns(y), [lambda one=one: one for one in posed.problems]
        tasks = FitTasks(self, X, y, sample_weight, len(makers))
        self._solve(X, makers, posed.loss, posed.weights, self.n_jobs, tasks, start)
        self._data = None if self.reads_blocks else Data(X, y, sample_weight)
        if not several:
            self.coef_, self.intercept_ = self.coef_[0], float(np.ravel(self.intercept_)[0])
        tasks.end()
        if self.canonical is not None:
            make_canonical(self, self._data)
        return self

    def check_options(self) -> Loss:
        """The loss; every option that does not depend on the data is checked."""
        self._check_common()
        self._penalty()
        if self.canonical is not None:
            check_canonical(self)
        if self.dual not in ("auto", True, False):
            raise ValueError(f"dual must be 'auto', True or False (it has no effect); got {self.dual!r}")
        return make_loss(self.loss, epsilon=self.epsilon, task="regression")

    @internal
    def training_problems(self, y: Any, sample_weight: Any, n: int) -> Training:
        """The problems, one a column, that this model solves on targets; see :meth:`LinearSVC.training_problems`."""
        weights = inputs.check_weights(sample_weight, n)
        if has_columns(y):
            problems = [make() for make in each_target(check_target_columns(y, n))]
            return Training(problems, self.check_options(), weights)
        targets = inputs.check_targets(y, n)
        return Training([SubProblem(0, "", targets)], self.check_options(), weights)

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
