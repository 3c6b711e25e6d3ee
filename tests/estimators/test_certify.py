"""certify: true for any model, tight for a good one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC as TheirSVC

from saddlesvm import LinearSVC, LinearSVR, certify
from saddlesvm.estimators.certify import certify_model
from saddlesvm.models import liblinear_models, persistence


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    return X, np.where(X[:, 0] + rng.normal(size=200) > 0, 1, 0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("max_iter", [1, 10, 100_000])
def test_scikit_learns_models(data, loss, max_iter):
    X, y = data
    optimum = LinearSVC(loss=loss, tol=1e-9, random_state=0).fit(X, y).certificate_
    theirs = TheirSVC(loss=loss, dual=True, max_iter=max_iter, random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn.svm._base.warnings.warn", lambda *_: None)
        theirs.fit(X, y)
    found = certify(X, y, theirs.coef_, theirs.intercept_, loss=loss, C=1.0, penalized_intercept=True)
    assert found.gap >= 0.0
    assert found.dual <= optimum.primal
    refined = certify(X, y, theirs.coef_, theirs.intercept_, loss=loss, C=1.0, penalized_intercept=True, refine=20)
    assert found.dual <= refined.dual <= optimum.primal
    assert refined.primal == found.primal


def test_our_own_dual_point_gives_our_own_certificate(data):
    X, y = data
    model = LinearSVC(loss="hinge", tol=1e-6, random_state=0).fit(X, y)
    again = certify(
        X, y, model.coef_, model.intercept_, loss="hinge", C=1.0, dual=model.dual_coef_, penalized_intercept=True
    )
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert again.relative_gap <= 1e-6 + 1e-9


def test_a_free_intercept_is_judged_as_it_stands(data):
    X, y = data
    model = LinearSVC(loss="hinge", intercept="free", tol=1e-6, random_state=0).fit(X, y)
    own = certify(X, y, model.coef_, model.intercept_, loss="hinge", C=1.0)
    worse = certify(X, y, model.coef_, model.intercept_ + 1.0, loss="hinge", C=1.0)
    assert own.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert worse.primal > own.primal


def test_regression(data):
    X, _ = data
    y = X[:, 0] * 3.0
    model = LinearSVR(loss="squared", fit_intercept=False, tol=1e-8, random_state=0).fit(X, y)
    found = certify(X, y, model.coef_, loss="squared", C=1.0)
    assert 0.0 <= found.relative_gap < 1e-4


WAYS = {
    "ovr": {"class_weight": {0: 2.0}, "penalty": "elasticnet", "l1_ratio": 0.2},
    "ovo": {"sample_weight": np.arange(1, 151)},
    "crammer_singer": {"loss": "hinge"},
    "multinomial": {"loss": "logistic"},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_weights_of_several_classes_are_certified_together(way):
    X, y = load_iris(return_X_y=True)
    options = {"C": 0.1, "multi_class": way} | WAYS[way]
    weights = options.pop("sample_weight", None)
    model = LinearSVC(**options, tol=1e-6, random_state=0).fit(X, y, weights)
    options |= {"sample_weight": weights, "penalized_intercept": True}
    dual = getattr(model, "dual_coef_", None)  # that of the softmax follows from the weights
    own = certify(X, y, model.coef_, model.intercept_, dual=dual, **options)
    assert own.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert 0.0 <= own.relative_gap <= 1.1e-6
    derived = certify(X, y, model.coef_, model.intercept_, **options)
    assert derived.primal == own.primal
    assert derived.dual <= own.primal


def test_scikit_learns_models_of_several_classes():
    X, y = load_iris(return_X_y=True)
    theirs = TheirSVC(tol=1e-10, max_iter=100_000).fit(X, y)
    rest = certify(X, y, theirs.coef_, theirs.intercept_, C=1.0, penalized_intercept=True)
    assert 0.0 <= rest.relative_gap < 1e-4
    softmax = LogisticRegression(tol=1e-8, max_iter=1000).fit(X, y)
    options = {"loss": "logistic", "C": 1.0, "multi_class": "multinomial"}
    assert 0.0 <= certify(X, y, softmax.coef_, softmax.intercept_, **options).relative_gap < 1e-4


def test_several_labels_and_targets(data):
    X, y = data
    labels = np.column_stack([y, X[:, 1] > 0])
    model = LinearSVC(tol=1e-8, random_state=0).fit(X, labels)
    found = certify(X, labels, model.coef_, model.intercept_, C=1.0, penalized_intercept=True)
    assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    targets = X[:, :2] * 3.0
    model = LinearSVR(loss="squared", fit_intercept=False, tol=1e-8, random_state=0).fit(X, targets)
    found = certify(X, targets, model.coef_, loss="squared", C=1.0)
    assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coef": np.ones(4)}, r"coef has shape \(1, 4\); these classes and features need \(1, 5\)"),
        ({"coef": np.full(5, np.nan)}, "must be finite"),
        ({"dual": np.ones(3)}, r"dual has shape \(1, 3\); these weights and rows need \(1, 200\)"),
        ({"dual": np.full(200, np.nan)}, "dual must hold finite numbers"),
        ({"refine": -1}, "refine must be a whole number of at least 0; got -1"),
        ({"refine": 1.5}, "refine must be a whole number of at least 0; got 1.5"),
        ({"intercept_scaling": 0}, "intercept_scaling must be a positive finite number, from 1e-100 to 1e100; got 0"),
        ({"C": -1.0}, "C must be a positive"),
        ({"C": None}, "give C or lam"),
        ({"y": np.zeros(200)}, "y holds 1 class only, 0.0: at least two are needed"),
        ({"y": np.arange(200) % 3}, r"coef has shape \(1, 5\); these classes and features need \(3, 5\)"),
        ({"intercept": np.ones(2)}, "with an intercept for each vector of weights"),
        ({"lam": 1.0}, "give either C or lam"),
        ({"multi_class": "all"}, "multi_class must be "),
    ],
)
def test_bad_input_is_named(data, change, message):
    X, y = data
    given = {"X": X, "y": y, "coef": np.ones(5), "C": 1.0} | change
    with pytest.raises(ValueError, match=message):
        certify(given.pop("X"), given.pop("y"), given.pop("coef"), **given)


@pytest.mark.parametrize("intercept", ["regularized", "free", None])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("strength", [{"C": 0.1}, {"lam": 0.05}])
def test_a_model_of_many_classes_is_certified_as_it_was_trained(multi_class, intercept, strength):
    if (multi_class, intercept) == ("crammer_singer", "free"):
        return
    X, y = load_iris(return_X_y=True)
    options = {"fit_intercept": intercept is not None, "intercept": intercept or "regularized"}
    model = LinearSVC(loss="hinge", multi_class=multi_class, tol=1e-5, random_state=0, **options, **strength).fit(X, y)
    found = certify_model(model, X, y)
    assert [one.primal for one in found] == pytest.approx([one.primal for one in model.certificates_], rel=1e-9)
    assert all(0.0 <= one.relative_gap <= 1.1e-5 for one in found)
    derived, refined = (certify_model(model, X, y, refine=epochs, **strength) for epochs in (0, 20))
    for own, loose, better in zip(found, derived, refined, strict=True):
        assert loose.dual <= better.dual <= own.primal
        assert loose.primal == better.primal == pytest.approx(own.primal, rel=1e-12)


@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "crammer_singer"])
def test_a_dual_point_of_other_labels_proves_nothing_false(multi_class):
    X, y = load_iris(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(y)
    options = {"loss": "hinge", "multi_class": multi_class, "random_state": 0}
    model, best = (LinearSVC(**options).fit(X, labels) for labels in (y, mixed))
    assert sum(one.dual for one in certify_model(model, X, mixed)) <= best.certificate_.primal
    with pytest.raises(ValueError, match="does not hold the label 2; the model knows"):
        certify_model(model, X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="holds the label 5; the model knows"):
        certify_model(model, X, np.where(y == 2, 5, y))


def test_the_joint_machine_of_two_classes_and_of_liblinear(data, tmp_path):
    X, y = data
    model = LinearSVC(loss="hinge", multi_class="crammer_singer", tol=1e-6, random_state=0).fit(X, y)
    [own] = certify_model(model, X, y)
    assert own.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert 0.0 <= own.relative_gap <= 1.1e-6
    liblinear_models.save_liblinear(model, tmp_path / "m")
    [read] = certify_model(persistence.load(tmp_path / "m"), X, y)
    assert read.primal == pytest.approx(own.primal, rel=1e-9)
    assert 0.0 <= read.dual <= own.primal
