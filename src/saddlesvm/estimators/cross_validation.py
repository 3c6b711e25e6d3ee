"""Choosing C by cross-validation: a grid of C for all rows, and from there for every fold."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.door import check_labels, check_weights, checked_data
from saddlesvm.estimators.base import TakesSparse
from saddlesvm.estimators.fold_search import Fold, FoldSearch, FoldSearchOnFiles, Table
from saddlesvm.estimators.linear_svc import LinearSVC
from saddlesvm.estimators.on_cluster import TakesClusters, is_distributed, search_on_cluster
from saddlesvm.estimators.part_fits import PartFits
from saddlesvm.estimators.path import check_Cs, check_model
from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.runtime.allowed import SHARE, check
from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.lazy import internal
from saddlesvm.runtime.threads import interruptible

RULES = ("best", "one_standard_error")


def reached_by_all(Cs: np.ndarray, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of C that every fold reached, with scores and gaps, shape (k, n_folds); warns if some are missing.

    Raises
    ------
    KeyboardInterrupt
        No value of C was reached by every fold.
    """
    missing = ~(table.done.all(axis=1) | table.given_up)
    k = int(np.argmax(missing)) if missing.any() else Cs.size
    if not table.done[:k].all(axis=1).any():
        raise KeyboardInterrupt("the search was interrupted before every fold had reached the smallest C")
    if k < Cs.size:
        came = f"interrupted: C is chosen among the {k} smallest of {Cs.size}, those that every fold completed"
        warnings.warn(came, stacklevel=3)
    return Cs[:k], table.scores[:k], table.gaps[:k]


def standard_errors(scores: np.ndarray) -> np.ndarray:
    """Standard errors of the mean of each row's scores, shape (k,); NaN with one column."""
    k, n_folds = scores.shape
    return scores.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.full(k, np.nan)


def _has(name: str) -> Any:
    def check(estimator: Any) -> bool:
        getattr(getattr(estimator, "best_estimator_", estimator.template()), name)
        return True

    return available_if(check)


@dataclass(eq=False, repr=False)
class LinearSVCCV(TakesClusters, TakesSparse, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Linear support vector classification with C chosen by cross-validation.

    All rows are fitted along the grid of C. Each fit starts at the solution for the previous C. The fit of a fold
    starts at the solution of all rows for the same C. Every fit is certified. Finally, a model with the chosen C is
    fitted to all rows.

    Parameters
    ----------
    estimator : LinearSVC, optional
        The model whose options are used. Its C is ignored. It must have no `lam` and no `checkpoint`.
    Cs : int or sequence of float, default=13
        Values of C, or the number of values between 1e-3 and 1e3.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn; 5 by default.
    scoring : str or callable, optional
        As in scikit-learn; accuracy by default.
    rule : {"best", "one_standard_error"}, default="best"
        "best": the C with the best mean score. "one_standard_error": the smallest C whose mean score is within one
        standard error of the best (Hastie, Tibshirani and Friedman 2009, section 7.10).
    n_jobs : int, optional
        Number of threads, spread over the fits of the folds and of all rows. The result does not depend on it.
    drop : float, optional
        Significance level between 0 and 1. After each fold, values of C that are significantly worse than the best are
        dropped, and their scores are NaN from then on. The test is the sign test on held-out rows that exactly one of
        the two models gets right, at this level over the number of values. 1e-3 saves much time, 0.05 more. The level
        is approximate, because the folds' models are not independent. For accuracy only.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : ndarray of shape (k,)
        The values of C that were compared.
    scores_ : ndarray of shape (k, n_folds)
        NaN where a value of C was dropped (`drop`).
    mean_scores_, standard_errors_ : ndarray of shape (k,)
        Standard errors are NaN with one fold.
    relative_gaps_ : ndarray of shape (k, n_folds)
        The relative gap that each fit proved.
    best_estimator_ : LinearSVC
        Fitted to all rows with ``C_``.
    classes_, coef_, intercept_, certificate_, n_features_in_
        Attributes of `best_estimator_`.

    Examples
    --------
    >>> from saddlesvm import LinearSVC, LinearSVCCV
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> search = LinearSVCCV(LinearSVC(random_state=0), Cs=[0.01, 1.0], cv=3).fit(
    ...     notes.X, notes.y
    ... )
    >>> search.scores_.shape, search.C_ in (0.01, 1.0)
    ((2, 3), True)
    """

    estimator: LinearSVC | None = None
    _: KW_ONLY
    Cs: int | Sequence[float] = 13
    cv: Any = None
    scoring: Any = None
    rule: str = "best"
    n_jobs: int | None = None
    drop: float | None = None
    verbose: int = 0

    @internal
    def template(self) -> LinearSVC:
        """The estimator whose options are used."""
        return LinearSVC() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> LinearSVCCV:
        """Choose C and fit it to all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`LinearSVC.fit`. The fits use the weights; the scores are not weighted.
        groups : array-like of shape (n,), optional
            For a splitter that keeps groups together.

        Raises
        ------
        ValueError
            Invalid data or options, or no score for any C.
        KeyboardInterrupt
            Ctrl-C, or a callback, stopped a fit before every fold had completed the smallest C.

        Warns
        -----
        UserWarning
            Ctrl-C, or a callback, stopped a later fit. C is chosen among the values that every fold completed.
        """
        if self.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))}; got {self.rule!r}")
        if self.drop is not None:
            check("drop", self.drop, SHARE)
            if self.scoring not in (None, "accuracy"):
                raise ValueError(f"drop compares values of C by accuracy: leave scoring out; got {self.scoring!r}")
        Cs = check_Cs(self.Cs)
        template = clone(self.template())
        check_model(template)
        if is_distributed(X):
            models = search_on_cluster(self, template, X, y, sample_weight, Cs)
            self.best_estimator_ = models[self._choose_by_scores()]
            return self
        checked, y, sample_weight = checked_data(X, y, sample_weight)
        design = checked.X
        y = check_labels(y, design.shape[0])
        weights = check_weights(sample_weight, y.size)
        splits = list(check_cv(self.cv, y, classifier=True).split(design, y, groups))
        if self.rule == "one_standard_error" and len(splits) < 2:
            raise ValueError("rule='one_standard_error' needs at least two splits, to estimate the error; cv makes one")
        whole = PartFits(template, design, y, weights)
        if whole.ready is None:
            self._refuse_for_files()
        else:
            checked.norms()
        with warnings.catch_warnings(), interruptible() as stop, contextlib.ExitStack() as ending:
            warnings.simplefilter("ignore", NotCertifiedWarning)  # the gaps are kept
            bar = None
            if self.verbose:
                bar = Bar("spinner count bar words elapsed", "all rows", Cs.size * (1 + len(splits)))
                ending.callback(bar.stop)
            search: FoldSearch | FoldSearchOnFiles
            if whole.ready is None:
                search = FoldSearchOnFiles(whole, splits, Cs, stop, bar)
                table = search.run()
            else:
                folds = [Fold.made(whole, train, test) for train, test in splits]
                scorer = None if self.scoring in (None, "accuracy") else check_scoring(template, scoring=self.scoring)
                search = FoldSearch(whole, folds, Cs, scorer, self.drop, stop, bar)
                table = search.run(max(1, effective_n_jobs(self.n_jobs)))
        self.Cs_, self.scores_, self.relative_gaps_ = reached_by_all(Cs, table)
        place = self._choose_by_scores()
        self.best_estimator_ = template.set_params(C=self.C_, warm_start=True)
        template.begin_at(search.models[place].former_fit())
        template.fit(X, y, sample_weight=weights).set_params(warm_start=self.template().warm_start)
        return self

    def _choose_by_scores(self) -> int:
        """The index of the chosen C, which is kept with the mean scores."""
        self.mean_scores_ = self.scores_.mean(axis=1)
        self.standard_errors_ = standard_errors(self.scores_)
        place = self._choose()
        self.C_ = float(self.Cs_[place])
        return place

    def _refuse_for_files(self) -> None:
        """Raise ValueError for what goes with rows in memory only; these are read block by block."""
        if self.drop is not None:
            raise ValueError("drop needs rows in memory, and these are read block by block: leave drop out")
        if self.scoring not in (None, "accuracy"):
            raise ValueError(
                "rows that are read block by block are scored by accuracy only: leave scoring out; got "
                f"{self.scoring!r}"
            )

    def _choose(self) -> int:
        """The index of the chosen C; a C without a score in some fold (NaN) is never chosen."""
        if np.isnan(self.mean_scores_).all():
            raise ValueError(f"scoring={self.scoring!r} gave NaN in some fold for every C: no C can be chosen")
        best = int(np.nanargmax(self.mean_scores_))
        if self.rule == "best":
            return best
        return int(np.argmax(self.mean_scores_ >= self.mean_scores_[best] - self.standard_errors_[best]))

    def __getattr__(self, name: str) -> Any:
        shown = ("classes_", "coef_", "intercept_", "certificate_", "n_features_in_", "feature_names_in_", "n_iter_")
        if name in shown and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def decision_function(self, X: Any) -> np.ndarray:
        """As :meth:`LinearSVC.decision_function`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        """As :meth:`LinearSVC.predict`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """As :meth:`LinearSVC.predict_proba`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)
