"""The common part of SVC and NuSVC: a problem for each pair of classes, as scikit-learn keeps them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data import inputs
from saddlesvm.estimators.base import Classes
from saddlesvm.estimators.calibration import fitted_curves, probabilities
from saddlesvm.estimators.class_weights import class_factors
from saddlesvm.estimators.kernel_coefficients import duals_of
from saddlesvm.estimators.landmarks import Approximation
from saddlesvm.estimators.svm import SVM, TRUTH
from saddlesvm.fit.result import FitResult
from saddlesvm.multiclass.kernel_fit import Coefficients
from saddlesvm.multiclass.one_vs_one import one_vs_one, vote
from saddlesvm.problem.kernel import FEW, has_shared
from saddlesvm.problem.losses import Loss
from saddlesvm.problem.nu import Machine
from saddlesvm.rows.kernels import Kernel, expand
from saddlesvm.runtime.allowed import check
from saddlesvm.runtime.internal import internal
from saddlesvm.runtime.randomness import seed_of
from saddlesvm.solvers.base import one_of

FOLDS = 5  # of the rows, for scores of rows that a model was not trained on


def _gives_probabilities(model: Any) -> bool:
    if not model.probability:
        raise AttributeError("predict_proba needs probability=True")
    return True


class PairwiseClassifier(Classes, ClassifierMixin, SVM):
    """The base class of SVC and NuSVC: one problem for each pair of classes, kept as scikit-learn keeps them."""

    n_iter_: Any
    decision_function_shape: str
    break_ties: bool
    probability: bool

    def _check_classifier(self) -> None:
        self._check_kernel()
        one_of("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        check("break_ties", self.break_ties, TRUTH)
        check("probability", self.probability, TRUTH)

    def _fit_pairs(self, X: Any, y: Any, sample_weight: Any, loss: Loss, machine: Machine) -> None:
        """Solve the problems of all pairs of classes, and keep their coefficients."""
        X = self._check_design(X, reset=True)
        codes = self._encode(y, X.shape[0])
        sample_weight = inputs.check_weights(sample_weight, X.shape[0])
        weights, _ = self._weights(sample_weight, codes)
        self.class_weight_ = class_factors(self.class_weight, self.classes_, codes, sample_weight)
        self.kernel_ = Kernel(self.kernel, self._gamma(X, sample_weight), self.degree, self.coef0)
        found = self._approximated(X, one_vs_one(codes, self.classes_), loss, weights)
        if found is not None and self.exact_tol is None:
            results = found.results
            self._keep_landmarks(codes, found)
        else:
            order = np.argsort(codes, kind="stable") if self._shares(X) else None
            starts = None if found is None else found.multipliers
            results = self._solve_pairs(X, codes, loss, weights, machine, order, starts)
            self._check_results(results)
            self._keep_pairs(codes, results, order)
        self._keep_vectors(X, results)
        if self.probability:
            self._calibrate(X, codes, sample_weight)

    def _note(self, results: list[FitResult]) -> None:
        super()._note(results)
        self.n_iter_ = np.maximum(1, np.ceil([result.epochs for result in results])).astype(np.int32)

    def _shares(self, X: Any) -> bool:
        """Whether the pairs share a kernel matrix: parts of it are taken quickly where rows stand class by class."""
        shared = self.classes_.size > 2 or X.shape[0] <= FEW
        return shared and has_shared(self.kernel_, X, self.cache_size)

    def _solve_pairs(
        self,
        X: Any,
        codes: np.ndarray,
        loss: Loss,
        weights: Any,
        machine: Machine,
        order: np.ndarray | None,
        starts: Any = None,
    ) -> list[FitResult]:
        """Solve the problems of all pairs, over the rows in this order."""
        if order is not None:
            X, codes, weights = X[order], codes[order], None if weights is None else weights[order]
        return self._solve(X, one_vs_one(codes, self.classes_), loss, weights, machine, order, starts)

    def _check_results(self, results: list[FitResult]) -> None:
        """Raise ValueError for results that no model can be made of."""

    def _keep_pairs(self, codes: np.ndarray, results: list[FitResult], order: np.ndarray | None) -> None:
        """Support vectors in the order of their classes, and the coefficients of each in its class's pairs.

        A support vector of class i has its coefficient against class j in row ``j - 1`` where j is later, else in row
        j. Scores of pairs are positive for the earlier class; those of two classes alone for the later one.

        Parameters
        ----------
        order : ndarray, optional
            The rows in the order in which they were fitted, if that is another.
        """
        K, parts = self.classes_.size, [Coefficients(*result.coef) for result in results]
        if order is not None:
            parts = [Coefficients(order[rows], values) for rows, values in parts]
        place = np.full(codes.size, -1)
        for rows, _ in parts:
            place[rows] = 0
        support = np.flatnonzero(place == 0)
        support = support[np.argsort(codes[support], kind="stable")]
        place[support] = np.arange(support.size)
        own, sign = codes[support], 1.0 if K == 2 else -1.0
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.bincount(own, minlength=K).astype(np.int32)
        self.intercept_ = sign * np.array([result.intercept for result in results])
        self.dual_coef_ = np.zeros((K - 1, support.size))
        for (i, j), (rows, values) in zip(combinations(range(K), 2), parts, strict=True):
            at = place[rows]
            self.dual_coef_[np.where(own[at] == i, j - 1, i), at] = sign * values

    def _keep_landmarks(self, codes: np.ndarray, found: Approximation) -> None:
        """The landmarks take the place of the support vectors, class by class; each pair has a coefficient of each."""
        rows, K = found.landmarks.rows, self.classes_.size
        order = np.argsort(codes[rows], kind="stable")
        sign = 1.0 if K == 2 else -1.0
        self.support_ = rows[order].astype(np.int32)
        self.n_support_ = np.bincount(codes[rows], minlength=K).astype(np.int32)
        self.intercept_ = sign * np.array([result.intercept for result in found.results])
        self.dual_coef_ = sign * found.coefficients[:, order]

    def _calibrate(self, X: Any, codes: np.ndarray, sample_weight: np.ndarray | None) -> None:
        """Fit a curve from score to probability for each class, to scores of rows in folds that were left out."""
        smallest = int(np.bincount(codes).min())
        if smallest < 2:
            raise ValueError("probability=True needs two rows of each class at least, to leave some out")
        folds = StratifiedKFold(min(FOLDS, smallest), shuffle=True, random_state=seed_of(self.random_state))
        scores = np.zeros((codes.size, 1 if self.classes_.size == 2 else self.classes_.size))
        for inside, outside in folds.split(codes, codes):
            part = clone(self).set_params(probability=False, decision_function_shape="ovr", verbose=0)
            rows = (inside, inside) if self.kernel_.precomputed else (inside,)
            seen = X[np.ix_(*rows)] if self.kernel_.precomputed else X[inside]
            weights = None if sample_weight is None else sample_weight[inside]
            part.fit(seen, self.classes_[codes[inside]], sample_weight=weights)
            others = X[np.ix_(outside, inside)] if self.kernel_.precomputed else X[outside]
            scores[outside] = part.decision_function(others).reshape(outside.size, -1)
        positive = codes[:, None] == (np.array([1]) if scores.shape[1] == 1 else np.arange(scores.shape[1]))
        self.calibration_ = fitted_curves(scores, positive, sample_weight, "sigmoid")

    def _pair_scores(self, X: Any) -> np.ndarray:
        """Scores of the pairs, shape (rows, pairs): positive for the earlier class, or the later one of two."""
        check_is_fitted(self)
        X = self._check_design(X, reset=False)
        K, ends = self.classes_.size, np.concatenate([[0], np.cumsum(self.n_support_)])
        centres, dual = self._centres(), duals_of(self)
        if dual.shape[0] == K * (K - 1) // 2:  # two classes, or landmarks
            return expand(self.kernel_, X, centres, dual.T) + self.intercept_
        parts = [slice(ends[c], ends[c + 1]) for c in range(K)]
        of_class = [expand(self.kernel_, X, centres[part], dual[:, part].T) for part in parts]
        pairs = list(combinations(range(K), 2))
        return np.column_stack([of_class[i][:, j - 1] + of_class[j][:, i] for i, j in pairs]) + self.intercept_

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores, computed in blocks over the support vectors only.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (rows, d)
            Of shape (rows, n) for a precomputed kernel: kernel values between the rows and the training data.

        Returns
        -------
        ndarray of shape (rows,), (rows, n_classes) or (rows, n_classes (n_classes - 1) / 2)
            Two classes: positive for ``classes_[1]``. More: the votes a class, ties broken by scores, or a score a
            pair, positive for its earlier class.
        """
        scores = self._pair_scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return vote(-scores, self.classes_.size) if self.decision_function_shape == "ovr" else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, shape (rows,): the one with most votes; `break_ties` says which of several.

        Raises
        ------
        ValueError
            Ties are to be broken by scores of classes, but ``decision_function_shape="ovo"``.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False where decision_function_shape='ovo'")
        scores = self._pair_scores(X)
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0.0).astype(np.intp)]
        votes = vote(-scores, self.classes_.size)
        return self.classes_[(votes if self.break_ties else np.round(votes)).argmax(axis=1)]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, shape (rows, n_classes).

        Each class has a sigmoid of its score, fitted by Platt's method to rows that were left out; more than two are
        scaled to sum to 1.

        Raises
        ------
        NotFittedError
            The model was fitted with ``probability=False``.
        """
        check_is_fitted(self)
        if not hasattr(self, "calibration_"):
            raise NotFittedError("predict_proba is not available when fitted with probability=False: fit again")
        scores = self._pair_scores(X)
        if scores.shape[1] == 1:
            positive = probabilities(self.calibration_, scores)
            return np.hstack([1.0 - positive, positive])
        positive = probabilities(self.calibration_, vote(-scores, self.classes_.size))
        return positive / np.maximum(positive.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @internal
    def problem_duals(self) -> np.ndarray:
        """The coefficients of the support vectors in each pair's score, shape (pairs, n_support)."""
        K, ends = self.classes_.size, np.concatenate([[0], np.cumsum(self.n_support_)])
        own = duals_of(self)
        if own.shape[0] == K * (K - 1) // 2:
            return own
        dual = np.zeros((K * (K - 1) // 2, self.support_.size))
        for k, (i, j) in enumerate(combinations(range(K), 2)):
            dual[k, ends[i] : ends[i + 1]] = own[j - 1, ends[i] : ends[i + 1]]
            dual[k, ends[j] : ends[j + 1]] = own[i, ends[j] : ends[j + 1]]
        return dual
