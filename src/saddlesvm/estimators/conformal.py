"""Prediction sets that hold the right answer with a given probability: full conformal prediction on linear models."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from saddlesvm.answers.changed import with_feature
from saddlesvm.answers.conformal import Conformal, Counts, counts_of_bounds, intervals
from saddlesvm.answers.neighbourhood import neighbourhood_of
from saddlesvm.data.door import check_design
from saddlesvm.estimators.base import TakesSparse
from saddlesvm.estimators.leave_one_out import OwnRows
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.problem.loss import loss_name
from saddlesvm.runtime.allowed import SHARE, check
from saddlesvm.runtime.threads import part_of_a_search

ENOUGH = (1e-4, 0.0)  # plain length of what the optimum of a new model may be off by: first for all, then for the rest
REFITTED = 1e-9  # relative gap of the models that are trained again
OPEN = 1e-3  # share of the rows that may stay uncompared (ties) before a model is trained again


class _Conformal(TakesSparse, MetaEstimatorMixin, BaseEstimator):
    """The common part of both estimators: the model that they wrap."""

    estimator: Any
    estimator_: Any
    classes_: np.ndarray

    def _fit(self, template: Any, X: Any, y: Any) -> OwnRows:
        """Fit the model, and return it beside its rows."""
        self.estimator_ = clone(template).fit(X, y)
        own = OwnRows(self.estimator_, X, y, None, f"{type(self).__name__}'s model")
        self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        return own

    def _rows(self, X: Any) -> Any:
        """New rows, checked."""
        check_is_fitted(self, "estimator_")
        return check_design(X, self.estimator_).X

    def predict(self, X: Any) -> np.ndarray:
        """The predictions of the model that was fitted to the rows."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))


@dataclass(eq=False, repr=False)
class ConformalSVC(ClassifierMixin, _Conformal):
    """Sets of labels that contain the right label with a given probability: full conformal prediction, without refits.

    The p-value of a label for a new row is the share of the n + 1 rows that fit no better than the new row with this
    label, in the model of all n + 1 rows. Bounds on the change of the optimum replace the training of a model for every
    row and label, and the p-values are those of the exact optima. For losses without curvature (the hinge), or with
    more than 2,500 features, models are trained again.

    Parameters
    ----------
    estimator : LinearSVC, optional
        With ``multi_class="ovr"`` and ``penalty="l2"``; ``LinearSVC(loss="logistic")`` by default. Its C is kept in the
        models with a new row.

    Attributes
    ----------
    estimator_ : LinearSVC
        Fitted to the rows.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The guarantee is for rows drawn independently from one distribution, and for a C that is not chosen on these rows.

    Examples
    --------
    >>> from saddlesvm import ConformalSVC, LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = ConformalSVC(LinearSVC(loss="logistic", C=0.1))
    >>> model = model.fit(notes.X[::2], notes.y[::2])
    >>> sets = model.predict_set(notes.X[1::2], alpha=0.1)
    >>> sets.shape
    (686, 2)
    >>> right = sets[range(686), notes.y[1::2].astype(int)]
    >>> bool(right.mean() > 0.85)
    True
    """

    estimator: LinearSVC | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model to the rows that new rows are compared with.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)

        Raises
        ------
        ValueError
            Bad data or options, or a model of another kind.
        """
        own = self._fit(LinearSVC(loss="logistic") if self.estimator is None else self.estimator, X, y)
        assert own.codes is not None
        self.classes_, self._own = self.estimator_.classes_, own
        near = own.all_vicinities
        self._conformal = None if near is None else Conformal(near, own.codes)
        return self

    def p_values(self, X: Any) -> np.ndarray:
        """The p-value of every label, shape (m, n_classes); rows that rounding leaves uncompared count as ties.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
        """
        return self.p_value_bounds(X)[1]

    def p_value_bounds(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Proven bounds of the p-values, each of shape (m, n_classes); they differ where rounding leaves a tie.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
        """
        return self._bounds(X, lambda low, high: high > low)

    def predict_set(self, X: Any, alpha: float = 0.1) -> np.ndarray:
        """The labels whose p-value exceeds alpha, shape (m, n_classes), bool.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
        alpha : float, default=0.1
            The probability that a set may lack the right label; between 0 and 1.

        Raises
        ------
        ValueError
            `alpha` is not between 0 and 1.
        """
        check("alpha", alpha, SHARE)
        return np.asarray(self._bounds(X, lambda low, high: (low <= alpha) & (high > alpha))[1] > alpha)

    def _bounds(self, X: Any, unsettled: Any) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the p-values, narrowed for rows with a label for which `unsettled` of them is true."""
        design, n = self._rows(X), self._own.design.shape[0]
        m = design.shape[0]
        counts = Counts(np.zeros((m, self.classes_.size)), np.full((m, self.classes_.size), float(n)))

        def left() -> np.ndarray:
            return np.flatnonzero(unsettled(*_p_values(counts, n)).any(axis=1))

        if self._conformal is not None:
            scale, block = self._conformal.near[0].problem.scale, self._conformal.block()
            for start in range(0, m, block):
                some = np.arange(start, min(start + block, m))
                _put(counts, some, self._conformal.first(with_feature(design[some], scale)))
            for enough in ENOUGH:
                chosen = left()
                for start in range(0, chosen.size, block):
                    some = chosen[start : start + block]
                    _put(counts, some, self._conformal.solved(with_feature(design[some], scale), enough))
        for i in left():
            if (counts.high[i] - counts.low[i]).max() > max(1.0, OPEN * n):
                self._refit(design[[i]], counts, i)
        return _p_values(counts, n)

    def _refit(self, row: Any, counts: Counts, i: int) -> None:
        """Count with models that are trained again, one for each label of row i."""
        own = self._own
        assert own.codes is not None and own.y is not None
        X = sparse.vstack([own.design, row], format="csr") if sparse.issparse(row) else np.vstack([own.design, row])
        for label, name in enumerate(self.classes_):
            y = np.append(own.y, name)
            model = clone(self.estimator_).set_params(
                C=own.model._fitted_C, lam=None, tol=REFITTED, gap=0.0, probability=False, checkpoint=None
            )
            with warnings.catch_warnings(), part_of_a_search():
                warnings.simplefilter("ignore", NotCertifiedWarning)  # its gap is part of the bounds
                model.fit(X, y)
            again = OwnRows(model, X, y, None, "a model that is trained again")
            bounds = [neighbourhood_of(*again.problem(k), again.gap(k)).score_bounds(X) for k in range(again.count)]
            low, high = (np.stack(part) for part in zip(*bounds, strict=True))
            found = counts_of_bounds(low, high, np.append(own.codes, label))
            counts.low[i, label] = max(counts.low[i, label], found[0])
            counts.high[i, label] = min(counts.high[i, label], found[1])


def _p_values(counts: Counts, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of p-values that belong to counts among n rows."""
    return (counts.low + 1.0) / (n + 1.0), (counts.high + 1.0) / (n + 1.0)


def _put(counts: Counts, rows: np.ndarray, found: Counts) -> None:
    """Narrow the counts of some rows."""
    counts.low[rows] = np.maximum(counts.low[rows], found.low)
    counts.high[rows] = np.minimum(counts.high[rows], found.high)


@dataclass(eq=False, repr=False)
class ConformalSVR(RegressorMixin, _Conformal):
    """Intervals that contain the target with a given probability: full conformal prediction in closed form.

    For a new row and a target, consider the model of all rows and the new row with this target. The interval is the
    smallest one that contains all targets whose residual is not among the largest. Only the squared loss has this
    closed form.

    Parameters
    ----------
    estimator : LinearSVR, optional
        With ``loss="squared"``; ``LinearSVR(loss="squared")`` by default. Its C is kept in the models with a new row.

    Attributes
    ----------
    estimator_ : LinearSVR
        Fitted to the rows.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from saddlesvm import ConformalSVR
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(400, 3))
    >>> y = X @ [1.0, -1.0, 0.5] + random.normal(size=400)
    >>> low, high = ConformalSVR().fit(X[:200], y[:200]).predict_interval(X[200:]).T
    >>> bool(0.8 < np.mean((low <= y[200:]) & (y[200:] <= high)) < 1.0)
    True
    """

    estimator: LinearSVR | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model to the rows that new rows are compared with.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)

        Raises
        ------
        ValueError
            Bad data or options, or a model of another kind.
        """
        template = LinearSVR(loss="squared") if self.estimator is None else self.estimator
        name = loss_name(template.check_options())
        if name != "squared":
            raise ValueError(f"ConformalSVR needs loss='squared', whose intervals have a closed form; got {name!r}")
        own = self._fit(template, X, y)
        near = own.all_vicinities
        if near is None:
            raise ValueError(
                f"ConformalSVR cannot factor the matrix of the {own.design.shape[1]:,} features, which rounding makes "
                "singular: scale the features to similar size, or choose fewer"
            )
        self._near = near[0]
        return self

    def predict_interval(self, X: Any, alpha: float = 0.1) -> np.ndarray:
        """The ends of the intervals, shape (m, 2); infinite where there are fewer than ``1 / alpha`` rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
        alpha : float, default=0.1
            The probability that an interval may lack the target; between 0 and 1.

        Raises
        ------
        ValueError
            `alpha` is not between 0 and 1.
        """
        check("alpha", alpha, SHARE)
        return intervals(self._near, with_feature(self._rows(X), self._near.problem.scale), float(alpha))
