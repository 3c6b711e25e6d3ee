"""Probabilities for every loss, from leave-one-out estimates of the scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV

from saddlesvm import LinearSVC
from saddlesvm.estimators.calibration import ScoreColumn, fit_sigmoids, probabilities
from saddlesvm.models.persistence import load, save


def rows(n=400, seed=0, classes=2):
    """Clouds that overlap, and their labels."""
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    return random.normal(size=(n, 3)) + 1.2 * np.eye(3)[y], y


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_probabilities_are_as_good_as_by_folds(loss):
    X, y = rows()
    Z, t = rows(seed=1)
    model = LinearSVC(loss=loss, probability=True, random_state=0).fit(X, y)
    found = model.predict_proba(Z)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    folds = CalibratedClassifierCV(LinearSVC(loss=loss, random_state=0), method="sigmoid", cv=5, ensemble=False).fit(
        X, y
    )
    own, other = (np.mean((p[:, 1] - t) ** 2) for p in (found, folds.predict_proba(Z)))  # Brier scores
    assert own <= 1.1 * other


def test_three_classes_and_a_saved_model(tmp_path):
    X, y = rows(classes=3)
    model = LinearSVC(loss="hinge", probability=True, random_state=0).fit(X, y)
    assert model.calibration_.shape == (3, 2)
    found = model.predict_proba(X)
    assert (found.argmax(axis=1) == y).mean() > 0.6
    save(model, tmp_path / "m.model")
    np.testing.assert_array_equal(load(tmp_path / "m.model").predict_proba(X), found)


def test_where_estimates_cannot_be_trusted_folds_take_their_place():
    random = np.random.default_rng(2)
    X, y = random.normal(size=(40, 60)), np.arange(40) % 2
    found = LinearSVC(C=1e4, probability=True, random_state=0).fit(X, y).predict_proba(X)
    assert found.max() < 0.95  # noise: the rows say nothing, whatever the training error


def test_a_sigmoid_finds_the_curve_that_made_the_labels():
    random = np.random.default_rng(3)
    z = random.normal(size=20_000) * 3.0
    column = ScoreColumn(z, random.random(20_000) < expit(1.7 * z - 0.5), np.ones(20_000))
    curves = fit_sigmoids([column])
    np.testing.assert_allclose(curves, [[1.7, -0.5]], atol=0.1)
    np.testing.assert_allclose(probabilities(curves, z[:, None])[:, 0], expit(1.7 * z - 0.5), atol=0.12)


def test_weights_stand_for_repeated_rows():
    random = np.random.default_rng(4)
    z = random.normal(size=60)
    y = random.random(60) < expit(z)
    times = random.integers(1, 4, 60)
    repeated = ScoreColumn(np.repeat(z, times), np.repeat(y, times), np.ones(times.sum()))
    weighted = fit_sigmoids([ScoreColumn(z, y, times.astype(float))])
    np.testing.assert_allclose(weighted, fit_sigmoids([repeated]), rtol=1e-4)


def test_without_probability_only_some_losses_have_them():
    X, y = rows()
    assert not hasattr(LinearSVC(loss="hinge").fit(X, y), "predict_proba")
    assert not hasattr(LinearSVC(loss="hinge", multi_class="ovo").fit(X, y), "predict_proba")


def test_a_chosen_C_is_calibrated_too():
    X, y = rows(n=150)
    model = LinearSVC(C="auto:low=1e-2,high=1", loss="hinge", probability=True, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (150, 2)
