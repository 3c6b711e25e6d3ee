"""What other programs and people's eyes need of a model: skops, the strongest features, one meaning of no intercept."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from saddlesvm import SVC, LinearSVC, LinearSVR, Outcome
from saddlesvm.estimators.certify import certify_model
from saddlesvm.models.persistence import load, save
from support import matrix

X, y = load_iris(return_X_y=True)
ROWS = matrix(60, 4, seed=1)
SIGNS = ROWS @ np.array([1.0, -2.0, 0.5, 0.0]) > 0.0


@pytest.mark.parametrize("outcome", list(Outcome))
def test_an_outcome_is_its_name_alone_when_it_is_written(outcome: Outcome) -> None:
    kind, arguments = outcome.__reduce__()  # what skops writes, which knows no enumerations
    assert kind(*arguments) is outcome
    assert pickle.loads(pickle.dumps(outcome)) is outcome


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVR(), SVC()], ids=lambda model: type(model).__name__)
def test_skops_writes_and_reads(model: Any) -> None:
    skops = pytest.importorskip("skops.io")
    model.set_params(random_state=0).fit(X, y)
    written = skops.dumps(model)
    again = skops.loads(written, trusted=skops.get_untrusted_types(data=written))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate_ == model.certificate_ and again.outcome_ is model.outcome_


def test_the_strongest_features_come_first_and_speak_for_their_class() -> None:
    model = LinearSVC(random_state=0).fit(ROWS, np.where(SIGNS, "yes", "no"))
    found = model.top_features(2, names=["up", "down", "little", "nothing"])
    assert found["yes"][0][0] == "up" and found["no"][0][0] == "down"
    assert found["yes"][0][1] > 0.0 > found["no"][0][1]
    assert found["no"][0] == ("down", model.coef_[0, 1])


@pytest.mark.parametrize(("multi_class", "keys"), [("ovr", 3), ("ovo", 6), ("crammer_singer", 3)])
def test_every_class_has_its_features(multi_class: str, keys: int) -> None:
    model = LinearSVC(multi_class=multi_class, random_state=0).fit(X, y)
    found = model.top_features(3)
    assert len(found) == keys
    for best in found.values():
        sizes = [abs(weight) for _, weight in best]
        assert sizes == sorted(sizes, reverse=True) and len(best) <= 3


def test_the_features_of_targets_and_labels() -> None:
    targets = np.column_stack([ROWS[:, 0], -ROWS[:, 3]])
    found = LinearSVR(random_state=0).fit(ROWS, targets).top_features(1)
    assert found[0][0][0] == 0 and found[1][0][0] == 3 and found[1][0][1] < 0.0
    labels = np.column_stack([SIGNS, ~SIGNS]).astype(int)
    assert list(LinearSVC(random_state=0).fit(ROWS, labels).top_features(1)) == [0, 1]


@pytest.mark.parametrize(
    ("options", "said"), [({"n": 0}, "whole number of at least 1; got 0"), ({"names": ["a"]}, "the model has 4")]
)
def test_what_features_cannot_be_is_said(options: dict[str, Any], said: str) -> None:
    model = LinearSVR(random_state=0).fit(ROWS, ROWS[:, 0])
    with pytest.raises(ValueError, match=said):
        model.top_features(**options)


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR])
def test_no_intercept_means_the_same_in_both_ways_to_say_it(kind: Any) -> None:
    named = kind(intercept="none", random_state=0).fit(ROWS, SIGNS.astype(int))
    told = kind(fit_intercept=False, random_state=0).fit(ROWS, SIGNS.astype(int))
    assert named.certificates_ == told.certificates_ and not np.any(named.intercept_)
    np.testing.assert_array_equal(named.coef_, told.coef_)
    assert certify_model(named, ROWS, SIGNS.astype(int)) == certify_model(told, ROWS, SIGNS.astype(int))


@pytest.mark.parametrize(
    ("model", "target"),
    [(LinearSVC(), y), (LinearSVC(penalty="l1", C=0.05), SIGNS), (LinearSVR(), ROWS[:, 0])],
    ids=["classes", "l1", "regression"],
)
def test_sparse_weights_are_the_same_model(model: Any, target: np.ndarray, tmp_path: Path) -> None:
    rows = X if len(target) == len(X) else ROWS
    model.set_params(random_state=0).fit(rows, target)
    plain, predicted, gap = model.coef_, model.predict(rows), model.certificate_.relative_gap
    model.coef_ = sparse.csr_array(np.atleast_2d(plain))
    for same in (rows, sparse.csr_array(rows)):
        np.testing.assert_allclose(model.predict(same), predicted, rtol=1e-12)
    assert certify_model(model, rows, target)[0].relative_gap <= max(gap, 1e-3)
    assert model.top_features(2) and model.n_features_selected_ == np.atleast_2d(plain).any(axis=0).sum()
    save(model, tmp_path / "m")
    again: Any = load(tmp_path / "m")
    assert sparse.issparse(again.coef_)
    np.testing.assert_array_equal(again.coef_.toarray(), np.atleast_2d(plain))
    model.set_params(warm_start=True).fit(rows, target)
    assert model.coef_.shape == plain.shape and not sparse.issparse(model.coef_)
