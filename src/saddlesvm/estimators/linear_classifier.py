"""Methods of linear classifiers besides fitting all rows at once: it scores, predicts, and learns from later rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from saddlesvm.data import inputs
from saddlesvm.estimators.base import Classes, all_or_nothing
from saddlesvm.estimators.calibration import class_probabilities, of_classes, probabilities
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.estimators.on_cluster import over_blocks
from saddlesvm.estimators.partial_fit import PegasosStream, check_stream
from saddlesvm.estimators.proven import ProvesLabels
from saddlesvm.estimators.several_labels import SeveralLabels
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.one_vs_one import vote
from saddlesvm.multiclass.sub_problems import one_vs_rest
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.joint_losses import softmax
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.problem import resolve_C
from saddlesvm.rows import layouts as rows
from saddlesvm.runtime.internal import internal
from saddlesvm.runtime.randomness import seed_of
from saddlesvm.solvers.pegasos import Pegasos
from saddlesvm.solvers.register import make_solver


def _gives_probabilities(estimator: Any) -> bool:
    if estimator.probability or estimator.multi_class == "multinomial":
        return True
    if estimator.multi_class != "ovr":
        raise AttributeError(
            "predict_proba needs probability=True, or multi_class='ovr' or 'multinomial'; this model has "
            f"{estimator.multi_class!r}"
        )
    if not hasattr(estimator._made_loss(), "probability"):
        raise AttributeError(
            "predict_proba needs probability=True, or a loss with probabilities, loss='logistic'; "
            f"this model has loss={estimator.loss!r}"
        )
    return True


def _is_pegasos(estimator: Any) -> bool:
    if estimator.multi_class != "ovr":
        raise AttributeError(f"partial_fit needs multi_class='ovr'; got {estimator.multi_class!r}")
    if estimator.penalty == "l1":
        raise AttributeError("partial_fit needs penalty='l2' or 'elasticnet'; got 'l1'")
    if not isinstance(make_solver(estimator.solver), Pegasos):
        raise AttributeError(f"partial_fit needs an online solver, solver='pegasos'; got {estimator.solver!r}")
    return True


class LinearClassifier(SeveralLabels, Classes, ClassifierMixin, ProvesLabels, LinearModel):
    """The base class of LinearSVC."""

    loss: Any
    width: float
    decision_function_shape: str
    calibration_: np.ndarray

    def _made_loss(self) -> Any:
        return make_loss(self.loss, width=self.width, task="classification")

    @available_if(_is_pegasos)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One more pass of Pegasos, over rows that need not be in memory together with the ones before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like, optional
            All labels there will be, at least two; needed in the first call, unless the model was fitted before. A call
            after :meth:`fit` is a first one: it begins anew.
        sample_weight : array-like of shape (n,), optional

        Raises
        ------
        ValueError
            Bad data or options, ``class_weight="balanced"``, or classes other than those of the first call.

        Notes
        -----
        lambda stays what it is in the first call: `lam`, or ``1 / (C n)`` with the n of that call. ``certificate_``
        holds for the rows of the last call only.
        """
        loss = self.check_options()
        first = not hasattr(self, "_stream")
        self.forget_data()
        known = check_stream(classes, getattr(self, "classes_", None), first, self.class_weight)
        if first:
            self._forget()
            self.classes_ = known
        X = inputs.check_design(self, X, reset=first)
        codes = inputs.codes_among(inputs.check_labels(y, X.shape[0]), known)
        own = inputs.check_weights(sample_weight, codes.size)
        weights, factors = self._times_class_weights(own, codes, self.multi_class)
        inputs.finite_norms(rows.as_rows(X))
        if first:
            posed = self._posed()
            _, lam = resolve_C(posed.get("C"), posed.get("lam"), X.shape[0])
            self._stream = PegasosStream(
                make_solver(self.solver), loss, self._intercept_kind(), self.intercept_scaling, lam,
                seed_of(self.random_state), posed.get("penalty"),
            )  # fmt: skip
        problems = [make() for make in one_vs_rest(codes, known, factors)]
        self.coef_, self.intercept_, self.certificates_ = self._stream.learn(X, problems, weights)
        self.certificate_ = Certificate.total(self.certificates_)
        self.n_iter_ = self._stream.passes
        return self

    @over_blocks
    def decision_function(self, X: Any) -> np.ndarray:
        """Signed scores, shape (n,) for two classes (positive: ``classes_[1]``), (n, n_classes) for more, or labels.

        With ``multi_class="ovo"`` and ``decision_function_shape="ovo"`` shape (n, n_pairs): pairs in the order (0, 1),
        (0, 2), ..., (1, 2), ..., positive for the later class.
        """
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        if self.multi_class == "ovo" and self.decision_function_shape == "ovr":
            return vote(scores, self.classes_.size)
        return scores

    @over_blocks
    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row, shape (n,); an indicator matrix where one was fitted, of its kind.

        With `probability` the class with the largest probability, or the labels with a probability above a half.
        """
        if not self._is_calibrated():
            return self.decide(self._scores(X))
        found = self.predict_proba(X)
        return self._indicated(found - 0.5) if self.multilabel_ else self.classes_[found.argmax(axis=1)]

    def _is_calibrated(self) -> bool:
        """Whether curves give the probabilities; after :meth:`partial_fit` there are none."""
        return bool(self.probability) and hasattr(self, "calibration_")

    @internal
    def decide(self, scores: np.ndarray) -> np.ndarray:
        """The predicted class for scores of shape (n, 1), (n, n_classes) or (n, n_pairs), shape (n,), or the labels."""
        if self.multilabel_:
            return self._indicated(scores)
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0).astype(np.intp)]
        if self.multi_class == "ovo":
            scores = vote(scores, self.classes_.size)
        return self.classes_[scores.argmax(axis=1)]

    @available_if(_gives_probabilities)
    @over_blocks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, shape (n, n_classes); for losses that have some, such as the logistic one.

        With ``multi_class="multinomial"`` they are the softmax of the scores. With more than two classes the
        one-against-rest probabilities are scaled to sum to 1, as in scikit-learn, and those of pairs are coupled (Wu,
        Lin and Weng, 2004). Those of the labels of an indicator matrix are neither: a row may have several.
        """
        scores = self._scores(X).astype(np.float64)
        if self.probability:
            if not hasattr(self, "calibration_"):
                raise NotFittedError("predict_proba needs a model that was fitted with probability=True: fit again")
            if self.multilabel_:
                return probabilities(self.calibration_, scores)
            return class_probabilities(self.calibration_, scores, self.multi_class == "ovo")
        if self.multi_class == "multinomial":
            return softmax(splits.each_class(scores.T).T)
        positive = self._made_loss().probability(scores)
        return positive if self.multilabel_ else of_classes(positive)

    @available_if(_gives_probabilities)
    @over_blocks
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
