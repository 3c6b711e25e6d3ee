"""Choosing C by cross-validation: a path of warm starts along the grid of C for each fold.

A fold's fit begins at the solution of the same fold with the C before: what it starts from has seen
none of the rows that judge it. Folds are lists of row numbers, and all fits read the same rows in
place. With several threads, folds are fitted side by side. Every fit's start is fixed by the grid,
so the results do not depend on the threads.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.door import checked_data
from saddlesvm.data.label_checks import check_labels, check_weights
from saddlesvm.estimators.automatic_C import RULES
from saddlesvm.estimators.C_range import check_Cs, check_model
from saddlesvm.estimators.fitted import Fitted, decide, former_fit, make_model
from saddlesvm.estimators.linear import LinearSVC
from saddlesvm.estimators.on_cluster import refuse_cluster
from saddlesvm.estimators.part_fits import PartFits, rows_of_fold
from saddlesvm.estimators.solve import fit_copy
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.rows.scores import linear_scores
from saddlesvm.runtime.allowed import check, names
from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.data_types import RowsLike
from saddlesvm.runtime.interrupts import catch_interrupts
from saddlesvm.runtime.threads import Schedule, results_of

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from saddlesvm.estimators.base import Estimator

Scorer = Callable[[Any, Any, Any], float]


class Fold:
    """A fold: its fits, the rows that judge them, and the fit with the C before."""

    def __init__(self, fits: PartFits, test: np.ndarray) -> None:
        self.fits = fits
        self.test = test
        self.X = fits.X[test]
        self.y = fits.y[test]
        self.fitted: Fitted | None = None

    @classmethod
    def from_rows(cls, whole: PartFits, train: Any, test: Any) -> Fold:
        """Return the fold of these row numbers or masks; a row drawn twice has twice the weight."""
        return cls(whole.part(*rows_of_fold(whole, train)), np.arange(whole.y.size)[test])

    def accuracy(self, fitted: Fitted) -> float:
        """Return the share of held-out rows that a model labels correctly."""
        scores = linear_scores(self.X, fitted.coef, fitted.intercept)
        return float(np.mean(decide(scores, fitted.labels, fitted.multi_class) == self.y))


class FoldSearch:
    """Fit and score every value of C in every fold.

    Parameters
    ----------
    folds : list of Fold
    Cs : ndarray of shape (k,)
        Ascending.
    scorer : callable or None
        As in scikit-learn; None for the share of right labels.
    stop : threading.Event
        Set to end all fits.
    bar : Bar, optional
        Advanced after every fit.

    Attributes
    ----------
    fits : dict of int to Fitted
        The first fold's fit with each C, by the number of the C.
    scores, gaps : ndarray of shape (k, folds)
        NaN if there is no fit.
    """

    def __init__(
        self,
        folds: list[Fold],
        Cs: np.ndarray,
        scorer: Scorer | None,
        stop: threading.Event,
        bar: Bar | None = None,
    ) -> None:
        self.folds = folds
        self.Cs = Cs
        self.scorer = scorer
        self.stop = stop
        self.bar = bar
        self.fits: dict[int, Fitted] = {}
        self.scores = np.full((Cs.size, len(folds)), np.nan)
        self.gaps = np.full((Cs.size, len(folds)), np.nan)

    def run(self, jobs: int) -> None:
        """Fit all folds at a C, then at the next, in `jobs` threads."""
        count = len(self.folds)
        judged: list[Future[None]] = []
        with Schedule(jobs, self.stop) as schedule:
            for k in range(self.Cs.size):
                for number in range(count):
                    # A fold waits for its own fit at the C before, at whose point it begins.
                    before = judged[-count] if k else None
                    judged.append(schedule.add(self._judge, k, number, before))
            results_of(judged)

    def _judge(self, k: int, number: int, before: Future[None] | None) -> None:
        """Fit a fold at the k-th C, from its point at the C before, and score it."""
        if before is not None:
            wait([before])
        if self.stop.is_set():
            return
        fold = self.folds[number]
        fitted = fold.fits.fit(float(self.Cs[k]), fold.fitted)
        if fitted.outcome is Outcome.INTERRUPTED:
            self.stop.set()
            return
        fold.fitted = fitted
        # The final fit to all rows starts at the first fold's point.
        if number == 0:
            self.fits[k] = fitted
        if self.scorer is None:
            score = fold.accuracy(fitted)
        else:
            # A scorer wants a model; accuracy needs the scores alone.
            score = float(self.scorer(make_model(fitted), fold.X, fold.y))
        self.scores[k, number] = score
        self.gaps[k, number] = fitted.certificate.relative_gap
        if self.bar is not None:
            self.bar.show(f"C = {self.Cs[k]:.3g}, fold {number + 1} of {len(self.folds)}")
            self.bar.advance()


def count_complete(gaps: np.ndarray) -> int:
    """Return the number of values of C, from the smallest, that every fold reached; warn if few.

    Raises
    ------
    KeyboardInterrupt
        No value of C was reached by every fold.
    """
    missing = np.isnan(gaps).any(axis=1)
    k = int(np.argmax(missing)) if missing.any() else len(gaps)
    if k == 0:
        raise KeyboardInterrupt(
            "the search was interrupted before every fold had reached the smallest C"
        )
    if k < len(gaps):
        warnings.warn(
            f"interrupted: C is chosen among the {k} smallest of {len(gaps)} values, which every "
            "fold completed",
            stacklevel=3,
        )
    return k


def standard_errors(scores: np.ndarray) -> np.ndarray:
    """Return standard errors of the mean of each row, shape (k,); NaN for a single column."""
    k, n_folds = scores.shape
    if n_folds == 1:
        return np.full(k, np.nan)
    return scores.std(axis=1, ddof=1) / np.sqrt(n_folds)


def _has(name: str) -> Any:
    def check(estimator: Estimator) -> bool:
        getattr(getattr(estimator, "best_estimator_", estimator._template()), name)
        return True

    return available_if(check)


@dataclass(eq=False, repr=False)
class LinearSVCCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Linear support vector classification with C chosen by cross-validation.

    Each fold is fitted along the grid of C, and each fit starts at the fold's own solution for the
    previous C. Every fit is certified. Finally, a model with the chosen C is fitted to all rows.

    Parameters
    ----------
    estimator : LinearSVC, optional
        The model whose options are used. Its C is ignored. It must have no `lam` and no
        `checkpoint`.
    Cs : int or sequence of float, default=13
        Values of C, or the number of values between 1e-3 and 1e3.
    cv : int, splitter or iterable, optional
        Folds, as in scikit-learn; 5 by default.
    scoring : str or callable, optional
        As in scikit-learn; accuracy by default.
    rule : {"best", "one_standard_error"}, default="best"
        "best": the C with the best mean score. "one_standard_error": the smallest C whose mean
        score is within a standard error of the best (Hastie, Tibshirani and Friedman 2009,
        section 7.10).
    n_jobs : int, optional
        Number of threads, spread over the folds. The result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : ndarray of shape (k,)
        The values of C that were compared.
    scores_ : ndarray of shape (k, n_folds)
    mean_scores_, standard_errors_ : ndarray of shape (k,)
        Standard errors are NaN with a single fold.
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
    verbose: int = 0

    def _template(self) -> LinearSVC:
        """Return the estimator whose options are used."""
        return LinearSVC() if self.estimator is None else self.estimator

    def fit(
        self,
        X: RowsLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> LinearSVCCV:
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
            Ctrl-C, or a callback, stopped a later fit. C is chosen among the values that every fold
            completed.
        """
        check("rule", self.rule, names(*RULES))
        Cs = check_Cs(self.Cs)
        template = clone(self._template())
        check_model(template)
        refuse_cluster(X, "LinearSVCCV", "fit LinearSVC for each C, and score it on other rows")
        checked, y, sample_weight = checked_data(X, y, sample_weight)
        design = checked.X
        y = check_labels(y, design.shape[0])
        weights = check_weights(sample_weight, y.size)
        splits = list(check_cv(self.cv, y, classifier=True).split(design, y, groups))
        if self.rule == "one_standard_error" and len(splits) < 2:
            raise ValueError(
                "rule='one_standard_error' needs at least two splits, to estimate the error; cv "
                "makes one"
            )
        whole = PartFits(template, design, y, weights)
        if whole.ready is None:
            raise ValueError(
                "LinearSVCCV needs the rows in memory, and these are read block by block: fit "
                "LinearSVC(warm_start=True) for each C, and score it on rows that were set apart"
            )
        # All rows are checked before any fit.
        checked.norms()
        with (
            warnings.catch_warnings(),
            catch_interrupts() as stop,
            contextlib.ExitStack() as ending,
        ):
            warnings.simplefilter("ignore", NotCertifiedWarning)  # the gaps are kept
            bar = None
            if self.verbose:
                bar = Bar("spinner count bar words elapsed", "", Cs.size * len(splits))
                ending.callback(bar.stop)
            folds = [Fold.from_rows(whole, train, test) for train, test in splits]
            scorer = None
            if self.scoring not in (None, "accuracy"):
                scorer = check_scoring(template, scoring=self.scoring)
            search = FoldSearch(folds, Cs, scorer, stop, bar)
            search.run(max(1, effective_n_jobs(self.n_jobs)))
        reached = count_complete(search.gaps)
        self.Cs_ = Cs[:reached]
        self.scores_ = search.scores[:reached]
        self.relative_gaps_ = search.gaps[:reached]
        # Fit all rows at the chosen C, from a point that the search found there.
        place = self._choose_by_scores()
        options = clone(template).set_params(C=self.C_, warm_start=True)
        fitted = fit_copy(options, X, y, weights, start=former_fit(search.fits[place]))
        self.best_estimator_ = make_model(fitted, warm_start=template.warm_start)
        return self

    def _choose_by_scores(self) -> int:
        """Return the index of the chosen C, and keep C and the mean scores."""
        self.mean_scores_ = self.scores_.mean(axis=1)
        self.standard_errors_ = standard_errors(self.scores_)
        place = self._choose()
        self.C_ = float(self.Cs_[place])
        return place

    def _choose(self) -> int:
        """Return the index of the chosen C; never of a C without a score in some fold (NaN)."""
        if np.isnan(self.mean_scores_).all():
            raise ValueError(
                f"scoring={self.scoring!r} gave NaN in some fold for every C: no C can be chosen"
            )
        best = int(np.nanargmax(self.mean_scores_))
        if self.rule == "best":
            return best
        # The smallest C whose score is within a standard error of the best.
        return int(
            np.argmax(self.mean_scores_ >= self.mean_scores_[best] - self.standard_errors_[best])
        )

    def __getattr__(self, name: str) -> Any:
        shown = (
            "classes_",
            "coef_",
            "intercept_",
            "certificate_",
            "n_features_in_",
            "feature_names_in_",
            "n_iter_",
        )
        if name in shown and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X: RowsLike) -> np.ndarray:
        """As :meth:`LinearSVC.decision_function`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    def predict(self, X: RowsLike) -> np.ndarray:
        """As :meth:`LinearSVC.predict`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @_has("predict_proba")
    def predict_proba(self, X: RowsLike) -> np.ndarray:
        """As :meth:`LinearSVC.predict_proba`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)
