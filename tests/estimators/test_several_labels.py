"""Several labels or targets in one fit: each column as if it were fitted alone, saved, certified, and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import accuracy_score, r2_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import check_classifier_multioutput

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.data import DataError
from saddlesvm.estimators.certify import certify_model
from saddlesvm.estimators.leave_one_out import leave_one_out
from saddlesvm.models.liblinear_models import save_liblinear
from saddlesvm.models.persistence import load, save
from support import distance_bound, matrix

X, Y = make_multilabel_classification(150, 8, n_classes=4, random_state=0)
ROWS = matrix(90, 5, seed=2)
TARGETS = ROWS @ matrix(5, 3, seed=1)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
@pytest.mark.parametrize("given", [np.asarray, np.ndarray.tolist, sparse.csr_matrix, sparse.csc_array])
def test_each_label_is_fitted_as_if_alone(loss: str, given: Any) -> None:
    several = LinearSVC(loss=loss, tol=1e-6, random_state=0).fit(X, given(Y))
    assert several.multilabel_ and several.coef_.shape == (4, 8) and several.dual_coef_.shape == (4, 150)
    for k, certificate in enumerate(several.certificates_):
        alone = LinearSVC(loss=loss, tol=1e-6, random_state=0).fit(X, Y[:, k])
        away = distance_bound(certificate.gap, alone.certificate_.gap)
        assert np.linalg.norm(several.coef_[k] - alone.coef_[0]) <= away
        assert certificate.relative_gap <= 1e-6


def test_predictions_are_indicators_of_the_kind_that_was_fitted() -> None:
    dense, thin = (LinearSVC(random_state=0).fit(X, labels) for labels in (Y, sparse.csr_array(Y)))
    scores = dense.decision_function(X)
    np.testing.assert_array_equal(dense.predict(X), scores > 0)
    assert sparse.issparse(thin.predict(X))
    np.testing.assert_array_equal(thin.predict(X).toarray(), dense.predict(X))
    assert dense.score(X, Y) == accuracy_score(Y, dense.predict(X)) == thin.score(X, sparse.csr_array(Y))
    of_sklearn = OneVsRestClassifier(LinearSVC(random_state=0)).fit(X, Y)
    np.testing.assert_array_equal(of_sklearn.predict(X), dense.predict(X))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_scikit_learn_checks_of_several_outputs(loss: str) -> None:
    check_classifier_multioutput("LinearSVC", LinearSVC(loss=loss))


def test_probabilities_of_labels_stand_each_alone() -> None:
    model = LinearSVC(loss="logistic", random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), 1.0 / (1.0 + np.exp(-model.decision_function(X))))


def test_a_label_that_never_occurs_is_fitted_unless_the_intercept_is_free() -> None:
    labels = Y.copy()
    labels[:, 1], labels[:, 2] = 0, 1
    predicted = LinearSVC(random_state=0).fit(X, labels).predict(X)
    assert not predicted[:, 1].any() and predicted[:, 2].all()
    with pytest.raises(ValueError, match="column 1 of y is 0 everywhere, and a free intercept"):
        LinearSVC(intercept="free").fit(X, labels)


def test_a_fit_to_one_column_forgets_the_indicator() -> None:
    model = LinearSVC(random_state=0).fit(X, Y)
    assert model.fit(X, Y[:, 0]).predict(X).shape == (150,)
    assert not model.multilabel_


def test_each_target_is_fitted_as_if_alone() -> None:
    several = LinearSVR(tol=1e-6, random_state=0).fit(ROWS, TARGETS)
    assert several.coef_.shape == (3, 5) and several.intercept_.shape == (3,)
    for k, certificate in enumerate(several.certificates_):
        alone = LinearSVR(tol=1e-6, random_state=0).fit(ROWS, TARGETS[:, k])
        assert np.linalg.norm(several.coef_[k] - alone.coef_) <= distance_bound(certificate.gap, alone.certificate_.gap)
    assert several.score(ROWS, TARGETS) == r2_score(TARGETS, several.predict(ROWS))


@pytest.mark.parametrize(
    ("model", "rows", "several"),
    [
        (LinearSVC(), X, Y),
        (LinearSVC(), X, sparse.csr_array(Y)),
        (LinearSVC(), X, Y[:, :2]),
        (LinearSVR(), ROWS, TARGETS),
    ],
)
def test_models_come_back_and_are_certified(model: Any, rows: np.ndarray, several: Any, tmp_path: Path) -> None:
    model.set_params(random_state=0).fit(rows, several)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.score(rows, several) == model.score(rows, several)
    assert again.certificates_ == model.certificates_
    assert max(one.relative_gap for one in certify_model(again, rows, several)) <= 2.0 * model.tol
    with pytest.raises(DataError, match="no models of several labels or targets"):
        save_liblinear(model, tmp_path / "liblinear")


@pytest.mark.parametrize(
    ("options", "labels", "said"),
    [
        ({"multi_class": "ovo"}, Y, "needs multi_class='ovr'; got 'ovo'"),
        ({"class_weight": "balanced"}, Y, "class_weight='balanced' needs a y of shape"),
        ({}, 3 * Y, "must be an indicator matrix, of 0 and 1 only"),
        ({}, Y[:-1], "X has 150 rows, y 149"),
        ({}, sparse.csr_array(Y[:, :1]), "needs two columns or more"),
    ],
)
def test_what_labels_cannot_be_is_said(options: dict[str, Any], labels: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LinearSVC(**options).fit(X, labels)


def test_C_is_chosen_for_all_labels_together() -> None:
    model = LinearSVC(C="auto:low=1e-2,high=1e2,size=3", random_state=0).fit(X, Y)
    errors = [leave_one_out(model.path_.model(C), X, Y).error for C in model.choice_.Cs]
    assert errors == pytest.approx(model.choice_.errors)
    alone = [LinearSVC(C=model.choice_.Cs[0]).fit(X, column) for column in Y.T]
    each = [leave_one_out(one, X, column).error for one, column in zip(alone, Y.T, strict=True)]
    assert model.choice_.errors[0] == pytest.approx(np.mean(each), abs=0.02)
    assert model.predict(X).shape == Y.shape
    with pytest.raises(ValueError, match="C='auto' needs a y of shape"):
        LinearSVR(C="auto").fit(ROWS, TARGETS)


def test_what_targets_cannot_be_is_said() -> None:
    with pytest.raises(ValueError, match="targets must be dense"):
        LinearSVR().fit(ROWS, sparse.csr_array(TARGETS))
    with pytest.raises(ValueError, match="a leave-one-out estimate needs a y of shape"):
        leave_one_out(LinearSVR().fit(ROWS, TARGETS), ROWS, TARGETS)
