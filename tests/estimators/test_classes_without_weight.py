"""A class whose rows all weigh 0 is kept, as in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC as Liblinear

from saddlesvm import SVC, LinearSVC

IRIS = load_iris()
X, Y = IRIS.data, IRIS.target


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("split", ["ovr", "ovo"])
@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_class_without_weight_is_kept_and_not_predicted(loss: str, split: str, absent: int) -> None:
    weights = np.where(absent == Y, 0.0, 1.0)
    made: list[tuple[dict[str, Any], Any]] = [({"class_weight": {absent: 0}}, None), ({}, weights)]
    for options, of_rows in made:
        model = LinearSVC(loss=loss, multi_class=split, random_state=0, **options)
        model.fit(X, Y, sample_weight=of_rows)
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.coef_.shape == (3, 4)
        assert model.outcome_ == "certified"
        present = absent != Y
        assert (model.predict(X)[present] == Y[present]).mean() > 0.7


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_class_weight_of_zero_gives_the_model_of_scikit_learn(absent: int) -> None:
    own = LinearSVC(class_weight={absent: 0}, tol=1e-10, random_state=0).fit(X, Y)
    other = Liblinear(class_weight={absent: 0}, tol=1e-10, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(own.coef_, other.coef_, atol=1e-3)
    np.testing.assert_array_equal(own.predict(X), other.predict(X))


def test_what_needs_each_class_says_why() -> None:
    weights = np.where(Y == 2, 0.0, 1.0)
    with pytest.raises(ValueError, match="class 2 has no row of positive weight: a free intercept"):
        LinearSVC(intercept="free").fit(X, Y, sample_weight=weights)
    for split in ("multinomial", "crammer_singer"):
        with pytest.raises(ValueError, match=f"weight: with multi_class='{split}'"):
            LinearSVC(multi_class=split, class_weight={2: 0}).fit(X, Y)
    with pytest.raises(ValueError, match="class 2 has no row of positive weight"):
        SVC().fit(X, Y, sample_weight=weights)
    with pytest.raises(ValueError, match="is zero everywhere"):
        LinearSVC().fit(X, Y, sample_weight=np.zeros(150))
    with pytest.raises(ValueError, match="at least two classes need one"):
        LinearSVC(class_weight={1: 0, 2: 0}).fit(X, Y)
