"""Probabilities of many classes: pairs couple_pairs, lone rows; predictions agree with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import log_loss

from saddlesvm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from saddlesvm.estimators.calibration import couple_pairs
from saddlesvm.estimators.held_out import draw_folds
from saddlesvm.models.persistence import load, save
from support.classes import blobs

WAYS = ("ovr", "ovo", "crammer_singer", "multinomial")


def noisy(k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Classes that overlap."""
    return make_classification(300, 6, n_informative=5, n_redundant=0, n_classes=k, flip_y=0.1, random_state=0)


def test_coupled_probabilities_minimise_what_is_to_be_minimised() -> None:
    random = np.random.default_rng(0)
    later = random.random((4, 6))
    for row, found in zip(later, couple_pairs(later), strict=True):
        r = np.zeros((4, 4))
        r[np.triu_indices(4, 1)] = 1.0 - row  # of the earlier class
        r += np.triu(1.0 - r, 1).T

        def value(p: np.ndarray, r: np.ndarray = r) -> float:
            return float(sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(4) for j in range(4)))

        least = minimize(value, np.full(4, 0.25), constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0}, tol=1e-14)
        np.testing.assert_allclose(found, least.x, atol=1e-5)
        assert found.sum() == pytest.approx(1.0) and (found >= 0.0).all()


def test_coupling_finds_the_probabilities_that_pairs_come_from() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(7), size=500)
    first, second = np.triu_indices(7, 1)
    exact = couple_pairs(p[:, second] / (p[:, first] + p[:, second]))
    np.testing.assert_allclose(exact, p, atol=1e-6)  # pairs nearer to 0 than 1e-7 are set there
    two = np.array([[0.3], [1.0]])
    np.testing.assert_allclose(couple_pairs(two), [[0.7, 0.3], [0.0, 1.0]], atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_predictions_are_the_most_probable_classes(k: int, tmp_path: Path) -> None:
    X, y = noisy(k)
    names = np.array(["a", "b", "c"])[y]
    models = [LinearSVC(multi_class=way, C=0.1, random_state=0) for way in WAYS]
    for model in models:
        fitted = model.set_params(probability=True).fit(X, names)
        p = fitted.predict_proba(X)
        assert p.shape == (y.size, k) and (p >= 0.0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert np.array_equal(fitted.predict(X), fitted.classes_[p.argmax(axis=1)])
        assert log_loss(names, p) < 0.9 * np.log(k)
        with np.errstate(divide="ignore"):
            assert np.array_equal(fitted.predict_log_proba(X), np.log(p))
        save(fitted, tmp_path / "m.model")
        again = load(tmp_path / "m.model")
        assert np.array_equal(again.predict_proba(X), p) and np.array_equal(again.predict(X), fitted.predict(X))


def test_each_label_has_curves_of_its_own() -> None:
    X, y = noisy()
    Y = np.column_stack([y == 0, y == 1, X[:, 0] > 0.0]).astype(int)
    model = LinearSVC(probability=True, random_state=0).fit(X, Y)
    p = model.predict_proba(X)
    assert np.array_equal(model.predict(X), p > 0.5)
    alone = LinearSVC(probability=True, random_state=0).fit(X, Y[:, 0])
    np.testing.assert_allclose(p[:, 0], alone.predict_proba(X)[:, 1], atol=1e-2)


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVC(C=1e5), LinearSVC(multi_class="ovo")])
def test_a_class_with_a_single_row(model: Any) -> None:
    X, y = blobs()
    y = np.where(np.arange(y.size) == 4, 7, y)
    fitted = clone(model).set_params(probability=True, random_state=0).fit(X, y)
    p = fitted.predict_proba(X)
    assert p.shape == (y.size, 4) and np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert fitted.score(X, y) > 0.8


def test_folds_keep_each_class_in_the_other_folds() -> None:
    codes = np.repeat([0, 1, 2, 3], [1, 2, 7, 40])
    weights = np.where(np.arange(50) == 20, 0.0, 1.0)
    folds = draw_folds(codes, weights, 0)
    assert folds[0] == folds[20] == -1 and (np.delete(folds, [0, 20]) >= 0).all()
    for fold in range(5):
        assert {*codes[folds != fold]} == {0, 1, 2, 3}


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVC(C="auto:low=1e-2,high=1,size=3")], ids=repr)
def test_rows_of_weight_zero_are_no_rows(model: Any) -> None:
    X, y = noisy()
    weights = np.where(np.arange(y.size) % 4 == 0, 0.0, 1.0)
    heavy = weights > 0.0
    exact = {"tol": 1e-8, "random_state": 0, "probability": True}
    model = clone(model).set_params(**exact)
    whole, part = clone(model).fit(X, y, weights), clone(model).fit(X[heavy], y[heavy])
    np.testing.assert_allclose(whole.predict_proba(X), part.predict_proba(X), atol=1e-3)


def test_class_weights_are_rows_of_the_curves_too() -> None:
    X, y = noisy(2)
    model = LinearSVC(probability=True, random_state=0)
    plain = clone(model).fit(X, y)
    heavy = clone(model).set_params(class_weight={1: 20.0}).fit(X, y)
    assert (heavy.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_labels_in_a_column() -> None:
    X, y = noisy()
    model = LinearSVC(C="auto:low=1e-2,high=1,size=3", probability=True, random_state=0)
    with pytest.warns(DataConversionWarning):
        column = clone(model).fit(X, y[:, None])
    assert np.array_equal(column.predict_proba(X), clone(column).fit(X, y).predict_proba(X))


def test_a_checkpoint_is_that_of_the_model(tmp_path: Path) -> None:
    X, y = noisy(2)
    model = LinearSVC(penalty="l1", probability=True, checkpoint=tmp_path / "run", random_state=0)
    assert model.fit(X, y).predict_proba(X).shape == (y.size, 2)


def test_unknown_methods_are_refused() -> None:
    X, y = noisy(2)
    with pytest.raises(ValueError, match="probability must be True or False; got 'platt'"):
        LinearSVC(probability="platt").fit(X, y)


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR, SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_a_gap_that_proves_nothing_is_refused(kind: Any) -> None:
    X, y = noisy(2)
    for tol in (1.0, 2):
        with pytest.raises(ValueError, match=f"tol must be a relative gap, at least 0 and below 1.*got {tol}"):
            kind(tol=tol).fit(X, y)
    with pytest.raises(ValueError, match="gap must be a number between 0 and 1"):
        LinearSVC().path(X, y, gap=2.0)


def test_the_error_of_a_choice_is_that_at_the_chosen_C() -> None:
    X, y = noisy(2)
    model = LinearSVC(C="auto:low=1e-3,high=1,size=5", random_state=0).fit(X, y)
    place = int(np.argmin(np.abs(model.choice_.Cs - model.C_)))
    assert place and model.choice_.error == model.choice_.estimates[place].error != model.choice_.estimates[0].error


def test_curves_are_those_of_the_fit() -> None:
    X, y = noisy(2)
    fitted = LinearSVC().fit(X, y).set_params(probability=True)
    with pytest.raises(NotFittedError, match="fit again"):
        fitted.predict_proba(X)
    assert np.array_equal(fitted.predict(X), clone(fitted).set_params(probability=False).fit(X, y).predict(X))
    again = fitted.fit(X, y)
    assert hasattr(again, "calibration_")
    assert not hasattr(again.set_params(probability=False).fit(X, y), "calibration_")
