"""The curves from scores to probabilities of a fitted model, from rows that are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from saddlesvm.data import inputs
from saddlesvm.data.columns_of_labels import check_indicator
from saddlesvm.estimators.calibration import (
    columns_of,
    fitted_curves,
    fitted_softmax,
    folds_of,
    held_out_scores,
    method_of,
)
from saddlesvm.estimators.leave_one_out import estimated
from saddlesvm.multiclass.splits import JOINT
from saddlesvm.multiclass.sub_problems import one_vs_rest
from saddlesvm.runtime.interrupt import part_of_a_search


def calibrated(model: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """The curves from scores to probabilities of a fitted classifier, see :func:`fitted_curves`.

    They are fitted to leave-one-out estimates of its rows' scores. Where there are none, or they cannot be trusted, to
    the scores of models that were trained on the other folds of five. Rows count with the weights of their classes.
    """
    posed = model.training_problems(y, sample_weight, inputs.as_design(X).shape[0])
    margins = None
    if model.multi_class == "ovr" and model._penalty().penalty.identity():
        found = estimated(model, X, y, sample_weight)
        margins = found.margins if found.trusted else None
    if margins is None:
        margins = _scores_of_folds(model, X, y, sample_weight)
    margins = margins.reshape(len(margins), -1)
    method, problems = method_of(model.probability), posed.problems
    if model.multilabel_:
        columns = columns_of(problems, margins, posed.weights)
        alone = [[one] for one in columns] if method == "temperature" else [columns]  # labels do not share one
        return np.concatenate([fitted_curves(some, method) for some in alone])
    codes = np.searchsorted(model.classes_, inputs.check_labels(y, len(margins)))
    if model.multi_class in JOINT:
        problems = one_vs_rest(codes, model.classes_)
    if method == "temperature" and model.multi_class != "ovo" and model.classes_.size > 2:
        weights = np.ones(codes.size) if posed.weights is None else posed.weights
        weights = weights * np.array([sub.factor for sub in problems])[codes]
        counted = weights > 0.0
        return fitted_softmax(margins[counted], codes[counted], weights[counted])
    return fitted_curves(columns_of(problems, margins, posed.weights), method)


def _scores_of_folds(model: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Scores of each row by a model that was trained on the other folds."""
    design = inputs.as_design(X)
    n = design.shape[0]
    weights = inputs.check_weights(sample_weight, n)
    if model.multilabel_:
        labels, codes = check_indicator(y, n).toarray(), np.zeros(n, dtype=np.intp)
    else:
        labels = inputs.check_labels(y, n)
        codes = np.searchsorted(model.classes_, labels)

    def of_others(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        other = clone(model).set_params(
            C=model._fitted_C, lam=None, probability=False, checkpoint=None, warm_start=False,
            decision_function_shape="ovo",
        )  # fmt: skip
        with part_of_a_search():
            other.fit(design[train], labels[train], sample_weight=None if weights is None else weights[train])
        return np.asarray(other.decision_function(design[test]))

    return held_out_scores(folds_of(codes, weights, 0), lambda rows: model._scores(design[rows]), of_others)
