"""LinearSVCCV on a Dask cluster: C chosen by cross-validation, all folds and classes in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from saddlesvm import estimators
from saddlesvm.cluster.dask_engine import DaskEngine
from saddlesvm.cluster.held_out import count_right, counted_together
from saddlesvm.cluster.model import Prepared
from saddlesvm.cluster.rounds import Solution
from saddlesvm.estimators.dask import LinearSVC
from saddlesvm.estimators.path import check_Cs
from saddlesvm.runtime.internal import internal

OF_THE_BEST = (
    "classes_", "coef_", "intercept_", "certificate_", "n_features_in_", "feature_names_in_", "n_iter_"
)  # fmt: skip
RULES = ("best", "one_standard_error")
FEWEST_FOLDS = 2


def _has(name: str) -> Callable[[Any], bool]:
    def check(search: Any) -> bool:
        getattr(getattr(search, "best_estimator_", search.template()), name)
        return True

    return check


class LinearSVCCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Linear support vector classification on a Dask cluster, with C chosen by cross-validation.

    The models of all folds, and the one of all rows, are problems over the same partitions and share every round; each
    C begins where the last one ended. Every fit is certified. A row's fold is drawn at random where the row is.

    Parameters
    ----------
    estimator : saddlesvm.dask.LinearSVC, optional
        With the options to use; its C is ignored, and it must have no lam.
    Cs : int or sequence of float, default=13
        Values of C, or how many between 1e-3 and 1e3.
    cv : int, default=5
        Folds.
    scoring : None or "accuracy"
        Rows are scored where they are, so that others are for :class:`saddlesvm.LinearSVCCV`.
    rule : {"best", "one_standard_error"}, default="best"
        The best mean accuracy, or the smallest C whose mean is within one standard error of it.

    drop : None
        For one machine: here all folds of a C share the rounds.
    verbose : int, default=0
        1 prints a line a round on standard error.

    Attributes
    ----------
    C_ : float
        The chosen one.
    Cs_ : ndarray of shape (k,)
    scores_ : ndarray of shape (k, n_folds)
        Accuracies.
    mean_scores_, standard_errors_ : ndarray of shape (k,)
    relative_gaps_ : ndarray of shape (k, n_folds)
        The relative gap that each fold's fits proved, the largest of its sub-problems.
    rounds_ : ndarray of shape (k,)
        Rounds of each C.
    best_estimator_ : saddlesvm.dask.LinearSVC
        Of all rows with ``C_``.
    classes_, coef_, intercept_, certificate_, n_iter_, n_features_in_, feature_names_in_
        Of `best_estimator_`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from saddlesvm.dask import LinearSVCCV
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> X, y = da.from_array(notes.X, chunks=(686, 4)), da.from_array(notes.y, chunks=686)
    >>> with Client(processes=False, dashboard_address=None):
    ...     search = LinearSVCCV(Cs=[0.01, 1.0], cv=3).fit(X, y)
    >>> search.scores_.shape, search.C_ in (0.01, 1.0)
    ((2, 3), True)
    """

    def __init__(
        self,
        estimator: LinearSVC | None = None,
        *,
        Cs: int | Sequence[float] = 13,
        cv: int = 5,
        scoring: Any = None,
        rule: str = "best",
        drop: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.drop = drop
        self.verbose = verbose

    @internal
    def template(self) -> LinearSVC:
        """The estimator whose options are used."""
        return LinearSVC() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVCCV:
        """Choose C; see :meth:`saddlesvm.dask.LinearSVC.fit` for the data.

        Raises
        ------
        ValueError
            Bad data or options.
        """
        if self.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))}; got {self.rule!r}")
        if isinstance(self.cv, bool) or not isinstance(self.cv, int) or self.cv < FEWEST_FOLDS:
            raise ValueError(f"cv must be a number of folds, at least {FEWEST_FOLDS}, on a cluster; got {self.cv!r}")
        if self.scoring not in (None, "accuracy"):
            raise ValueError(f"on a cluster folds are scored by accuracy: leave scoring out; got {self.scoring!r}")
        if self.drop is not None:
            raise ValueError("drop is for one machine: on a cluster all folds of a C share the rounds; leave it out")
        template = clone(self.template())
        if self.verbose:
            template.set_params(verbose=self.verbose)
        if template.lam is not None:
            raise ValueError(f"C is chosen, so lam (lambda) must be left out; got lam={template.lam!r}")
        prepared = template._rows(X, y, sample_weight, self.cv)
        self.Cs_ = check_Cs(self.Cs)
        solutions, scores = [], []
        for _, solution in template._along(prepared, self.Cs_.tolist()):
            template._warn(solution)
            solutions.append(solution)
            scores.append(self._scores(prepared, solution))
        self.Cs_ = self.Cs_[: len(solutions)]  # those that there was time for
        self.scores_ = np.array(scores)
        self.mean_scores_ = self.scores_.mean(axis=1)
        self.standard_errors_ = self.scores_.std(axis=1, ddof=1) / np.sqrt(self.cv)
        self.relative_gaps_ = np.array([self._gaps(prepared, one) for one in solutions])
        self.rounds_ = np.array([one.rounds for one in solutions])
        best = self._choose()
        self.C_ = float(self.Cs_[best])
        self.best_estimator_ = template._at(self.C_, prepared.of_all_rows(solutions[best]))
        return self

    @staticmethod
    def _scores(prepared: Prepared, solution: Solution) -> np.ndarray:
        """The accuracy of each fold, shape (folds,)."""
        engine = DaskEngine(prepared.client, prepared.parts, prepared.plan.problems)
        counts = engine.total(count_right, counted_together, solution.W)
        return np.asarray(counts.right / np.maximum(counts.rows, 1))

    @staticmethod
    def _gaps(prepared: Prepared, solution: Solution) -> np.ndarray:
        """The largest relative gap of each fold's problems, shape (folds,)."""
        gaps = np.array([one.relative_gap for one in solution.certificates])
        return np.asarray(gaps.reshape(-1, prepared.split.kinds)[:-1].max(axis=1))

    def _choose(self) -> int:
        best = int(self.mean_scores_.argmax())
        if self.rule == "best":
            return best
        return int(np.argmax(self.mean_scores_ >= self.mean_scores_[best] - self.standard_errors_[best]))

    def decision_function(self, X: Any) -> Any:
        """As :meth:`saddlesvm.dask.LinearSVC.decision_function`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def predict(self, X: Any) -> Any:
        """As :meth:`saddlesvm.dask.LinearSVC.predict`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """As :meth:`saddlesvm.dask.LinearSVC.predict_proba`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """As :meth:`saddlesvm.dask.LinearSVC.score`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y, sample_weight)

    def __getattr__(self, name: str) -> Any:
        if name in OF_THE_BEST and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def to_local(self) -> estimators.LinearSVC:
        """The chosen model as a :class:`saddlesvm.LinearSVC`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.to_local()


__all__ = ["LinearSVCCV"]
