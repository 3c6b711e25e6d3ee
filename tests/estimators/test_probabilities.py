"""Probabilities of classes, and what a choice of C says of its error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from saddlesvm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from saddlesvm.estimators.held_out import draw_folds
from saddlesvm.models.persistence import load, save


def noisy(k: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Classes that overlap."""
    return make_classification(300, 6, n_informative=5, n_redundant=0, n_classes=k, flip_y=0.1, random_state=0)


def test_folds_keep_each_class_in_the_other_folds() -> None:
    codes = np.repeat([0, 1, 2, 3], [1, 2, 7, 40])
    weights = np.where(np.arange(50) == 20, 0.0, 1.0)
    folds = draw_folds(codes, weights, 0)
    assert folds[0] == folds[20] == -1 and (np.delete(folds, [0, 20]) >= 0).all()
    for fold in range(5):
        assert {*codes[folds != fold]} == {0, 1, 2, 3}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("way", ["ovr", "multinomial"])
def test_probabilities_of_the_logistic_loss_are_those_of_the_classes(k: int, way: str, tmp_path: Path) -> None:
    X, y = noisy(k)
    names = np.array(["a", "b", "c"])[y]
    fitted = LinearSVC(loss="logistic", multi_class=way, C=0.1, random_state=0).fit(X, names)
    p = fitted.predict_proba(X)
    assert p.shape == (y.size, k) and (p >= 0.0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.array_equal(fitted.predict(X), fitted.classes_[p.argmax(axis=1)])
    assert log_loss(names, p) < 0.9 * np.log(k)
    save(fitted, tmp_path / "m.model")
    assert np.array_equal(load(tmp_path / "m.model").predict_proba(X), p)


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
