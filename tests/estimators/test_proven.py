"""What linear estimators prove of the exact optimum: closer fits never contradict it, and missing data are an error."""

from __future__ import annotations

import doctest
import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, load, save
from saddlesvm.answers.labels import label_by_differences, label_by_largest, label_by_sign, label_by_votes
from saddlesvm.estimators import certified_path, exact_optimum
from saddlesvm.estimators.certify import certify_model
from saddlesvm.multiclass.sub_problems import vote

WAYS = ["ovr", "ovo", "crammer_singer", "multinomial"]
OPTIONS = [
    {"loss": "hinge"}, {"loss": "squared_hinge"}, {"loss": "smooth_hinge"}, {"loss": "logistic"},
    {"loss": "logistic", "penalty": "elasticnet"}, {"loss": "logistic", "penalty": "l1"},
    {"loss": "hinge", "intercept": "free"}, {"loss": "squared_hinge", "intercept": "free"},
    {"loss": "logistic", "fit_intercept": False}, {"loss": "squared_hinge", "lam": 0.01},
]  # fmt: skip


rounded = pytest.mark.filterwarnings(f"ignore::{NotCertifiedWarning.__module__}.NotCertifiedWarning")


def cloud(n=80, d=4, seed=0, classes=2):
    """Overlapping clouds, and their labels."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return random.normal(size=(n, d)) + np.eye(classes, d)[y], y


@pytest.mark.parametrize("options", OPTIONS, ids=lambda one: "-".join(map(str, one.values())))
def test_closer_fits_are_within_the_bounds(options):
    X, y = cloud()
    asked, _ = cloud(seed=1)
    model = LinearSVC(tol=1e-2, random_state=0, **options).fit(X, y)
    exact = LinearSVC(tol=1e-12, random_state=0, **options).fit(X, y)
    low, high = model.decision_bounds(asked)
    away = np.sqrt(2.0 * max(exact.certificate_.gap, 0.0)) * (2.0 + np.linalg.norm(asked, axis=1))
    scores = exact.decision_function(asked)
    assert (low - away - 1e-8 <= scores).all()
    assert (scores <= high + away + 1e-8).all()
    proven = model.is_proven(asked)
    assert (model.predict(asked) == exact.predict(asked))[proven].all()
    if options.get("penalty") != "l1":
        assert proven.mean() > 0.9
    least, most = model.coef_bounds()
    assert (least <= exact.coef_ + away.max() + 1e-8).all()
    assert (exact.coef_ - away.max() - 1e-8 <= most).all()


@rounded
@pytest.mark.parametrize("way", WAYS)
def test_labels_of_many_classes_are_those_of_closer_fits(way):
    X, y = load_iris(return_X_y=True)
    loss = {"multinomial": "logistic"}.get(way, "squared_hinge" if way in ("ovr", "ovo") else "hinge")
    model = LinearSVC(loss=loss, multi_class=way, tol=1e-2, random_state=0).fit(X, y)
    proven = model.is_proven(X)
    exact = LinearSVC(loss=loss, multi_class=way, tol=1e-11, random_state=0).fit(X, y)
    assert (model.predict(X) == exact.predict(X))[proven].all()
    assert proven.mean() > 0.8
    low, high = model.decision_bounds(X)
    assert low.shape == high.shape == (150, 3)
    assert (low <= X @ exact.coef_.T + exact.intercept_ + 1e-3).all()
    assert model.settle(X).all()
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))


@rounded
def test_several_labels_and_targets_layouts_and_weights():
    X, y = cloud(classes=3)
    indicator = np.eye(3, dtype=int)[y]
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], size=len(y))
    several = LinearSVC(random_state=0).fit(X.astype(np.float32), indicator, sample_weight=weights)
    assert several.is_proven(X).shape == (80, 3)
    for rows in (X, sparse.csr_array(X)):
        targets = LinearSVR(loss="huber", random_state=0, tol=1e-2) if rows is X else LinearSVR(random_state=0)
        two = targets.fit(rows, np.column_stack([X[:, 0], X[:, 1] - 2.0]), sample_weight=weights)
        low, high = two.decision_bounds(rows)
        exact = clone(two).set_params(tol=1e-12).fit(rows, np.column_stack([X[:, 0], X[:, 1] - 2.0]), weights)
        assert ((low - 1e-4 <= exact.predict(rows)) & (exact.predict(rows) <= high + 1e-4)).all()
        one = clone(two).fit(rows, X[:, 0])
        assert one.decision_bounds(rows)[0].shape == (80,)
        assert one.coef_bounds()[0].shape == one.coef_.shape


def test_the_l1_norm_has_certain_zeros():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 30))
    y = (X[:, 0] + 0.3 * random.normal(size=200) > 0).astype(int)
    model = LinearSVC(penalty="l1", loss="logistic", C=0.05, random_state=0).fit(X, y)
    low, high = model.coef_bounds()
    zero = ((low == 0.0) & (high == 0.0))[0]
    assert zero.sum() >= 25
    assert not model.set_params(tol=1e-12).fit(X, y).coef_[0, zero].any()


def test_settling_ends_with_the_optimums_labels():
    X, y = cloud()
    model = LinearSVC(loss="logistic", tol=0.5, random_state=0).fit(X, y)
    exact = LinearSVC(loss="logistic", tol=1e-12, random_state=0).fit(X, y)
    assert model.settle(X).all()
    np.testing.assert_array_equal(model.predict(X), exact.predict(X))
    assert model.certificate_.relative_gap < 0.5
    assert model.tol == 0.5


def test_a_row_on_the_boundary_is_not_proven():
    X = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    model = LinearSVC(random_state=0).fit(X, [1, 0, 1, 0])
    np.testing.assert_array_equal(model.settle([[0.0], [1.0]]), [False, True])


def test_a_model_without_its_data_asks_for_them(tmp_path):
    X, y = cloud()
    model = LinearSVC(random_state=0).fit(X, y)
    save(model, tmp_path / "model")
    for bare in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        with pytest.raises(ValueError, match=r"call prove\(X, y\)"):
            bare.decision_bounds(X)
        np.testing.assert_array_equal(bare.prove(X, y).is_proven(X), model.is_proven(X))
        np.testing.assert_array_equal(bare.decision_bounds(X), model.decision_bounds(X))
    with pytest.raises(ValueError, match="does not hold the label"):
        load(tmp_path / "model").prove(X[y == 0], y[y == 0])
    with pytest.raises(ValueError, match="NaN"):
        model.is_proven(np.full((1, 4), np.nan))


def test_parameters_that_are_changed_count_from_the_next_fit_on():
    X, y = cloud()
    model = LinearSVC(random_state=0).fit(X, y)
    first = model.decision_bounds(X)
    labels = model.predict(X)
    model.set_params(C=0.01, multi_class="ovo")
    np.testing.assert_array_equal(model.decision_bounds(X), first)
    np.testing.assert_array_equal(model.predict(X), labels)
    model.fit(X[:40], y[:40])
    alone = LinearSVC(C=0.01, random_state=0).fit(X[:40], y[:40])
    np.testing.assert_allclose(model.decision_bounds(X), alone.decision_bounds(X), atol=1e-6)
    assert (first[0] > model.decision_bounds(X)[1]).any()


def test_weights_that_are_assigned_count_for_certificates_and_bounds():
    X, y = cloud()
    model = LinearSVC(random_state=0).fit(X, y)
    exact = model.decision_bounds(X)
    model.coef_ = 0.5 * model.coef_
    [certificate] = certify_model(model, X, y)
    assert certificate.gap > model.certificate_.gap
    low, high = model.decision_bounds(X)
    assert (low <= exact[1]).all() and (exact[0] <= high).all()


def test_any_scores_between_the_bounds_have_the_proven_label():
    random = np.random.default_rng(0)
    for n_classes in (3, 4):
        pairs = n_classes * (n_classes - 1) // 2
        for width, rule, decide in (
            (n_classes, label_by_largest, lambda z: z.argmax(axis=1)),
            (
                pairs,
                partial(label_by_votes, n_classes=n_classes),
                lambda z, k=n_classes: vote(z, k).argmax(1),
            ),
        ):
            middle = random.normal(size=(300, width))
            reach = 0.3 * random.random((300, width))
            label, proven = rule(middle - reach, middle + reach)
            assert 0.2 < proven.mean() < 1.0
            for _ in range(50):
                z = middle + reach * random.choice([-1.0, 1.0, 0.3], size=middle.shape)
                np.testing.assert_array_equal(decide(z)[proven], label[proven])
    label, proven = label_by_sign(np.array([[-1.0, 0.1, -np.inf, -2.0]]), np.array([[1.0, 0.2, np.inf, 0.0]]))
    assert label.tolist() == [[0, 1, 0, 0]]
    assert proven.tolist() == [[False, True, False, True]]
    assert label_by_differences(np.array([[1.0, 2.0]]), np.array([0.5]))[1].all()


def test_top_features_have_bounds():
    X, y = cloud(classes=3)
    for options in ({"multi_class": "ovr"}, {"multi_class": "ovo"}):
        model = LinearSVC(random_state=0, **options).fit(X, y)
        plain, bounded = model.top_features(2), model.top_features(2, bounds=True)
        assert plain.keys() == bounded.keys()
        for key, told in bounded.items():
            assert [one[:2] for one in told] == plain[key]
            assert all(low - 0.1 <= weight <= high + 0.1 and low <= high for _, weight, low, high in told)
    target = LinearSVR(random_state=0).fit(X, X[:, 0])
    assert [len(one) for one in target.top_features(1, bounds=True)[0]] == [4]


def test_the_examples_of_methods_run():
    for module in (exact_optimum, certified_path):
        assert doctest.testmod(module).failed == 0
