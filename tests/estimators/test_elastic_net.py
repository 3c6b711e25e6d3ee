"""The elastic net: certified, sparse, and the optimum that others find."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression

from saddlesvm import LinearSVC, LinearSVR, Pegasos, leave_one_out
from saddlesvm.cli import main
from saddlesvm.estimators.certify import certify_model
from saddlesvm.models.persistence import load, save

LOSSES = ["hinge", "squared_hinge", "smooth_hinge", "logistic"]


def rows(n=150, d=12, seed=0):
    """Rows of which the first three features matter, and their labels."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, np.where(X[:, :3].sum(axis=1) + 0.5 * random.normal(size=n) > 0, "yes", "no")


def objective(model, X, y):
    """The objective in the C form, by the textbook."""
    w, b = np.ravel(model.coef_), np.ravel(model.intercept_)[0]
    m = np.where(y == "yes", 1.0, -1.0) * (X @ w + b)
    short = np.maximum(0.0, 1.0 - m)
    smooth = np.where(short >= 1.0, short - 0.5, 0.5 * short**2)
    paid = {"hinge": short, "squared_hinge": short**2, "smooth_hinge": smooth, "logistic": np.logaddexp(0.0, -m)}
    square = w @ w + (b * b if model.fit_intercept and model.intercept == "regularized" else 0.0)
    return 0.5 * (1.0 - model.l1_ratio) * square + model.l1_ratio * np.abs(w).sum() + model.C * paid[model.loss].sum()


@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize("l1_ratio", [0.15, 0.9])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_is_of_scikit_learns_objective(loss, l1_ratio, intercept):
    X, y = rows()
    options = {"penalty": "elasticnet", "l1_ratio": l1_ratio, "intercept": intercept, "random_state": 0}
    model = LinearSVC(loss=loss, C=0.1, tol=1e-6, **options).fit(X, y)
    certificate = model.certificate_
    assert certificate.relative_gap <= 1e-6
    np.testing.assert_allclose(objective(model, X, y), certificate.primal, rtol=1e-9)
    random = np.random.default_rng(1)
    for _ in range(20):  # no other model is below the bound
        model.coef_ = model.coef_ + 0.05 * random.normal(size=model.coef_.shape)
        assert objective(model, X, y) >= certificate.dual


@pytest.mark.parametrize("l1_ratio", [0.15, 0.5, 0.9])
def test_the_optimum_is_that_of_logistic_regression(l1_ratio):
    X, y = rows()
    model = LinearSVC(
        loss="logistic", penalty="elasticnet", l1_ratio=l1_ratio, C=0.3, tol=1e-7, fit_intercept=False, random_state=0
    ).fit(X, y)
    other = LogisticRegression(
        solver="saga", l1_ratio=l1_ratio, C=0.3, tol=1e-10, fit_intercept=False, max_iter=20_000, random_state=0
    )
    if "penalty" in other.get_params() and other.get_params()["penalty"] == "l2":
        other.set_params(penalty="elasticnet")
    other.fit(X, y)
    apart = np.linalg.norm(other.coef_ - model.coef_)
    assert apart <= np.sqrt(2.0 * model.certificate_.gap / (1.0 - l1_ratio)) + 1e-5
    np.testing.assert_array_equal(model.coef_ == 0.0, np.abs(other.coef_) < 1e-6)


def test_weights_are_exactly_zero_and_features_can_be_selected():
    X, y = rows()
    model = LinearSVC(penalty="elasticnet", l1_ratio=0.95, C=0.02, loss="squared_hinge", random_state=0).fit(X, y)
    assert 3 <= model.n_features_selected_ < 12
    assert np.count_nonzero(model.coef_) == model.n_features_selected_
    chosen = SelectFromModel(model, prefit=True, threshold=1e-12).transform(X)
    assert chosen.shape[1] == model.n_features_selected_


@pytest.mark.parametrize(
    ("solver", "form"), [("auto", sparse.csr_matrix), ("dcd", np.float32), ("sdca", sparse.csr_matrix)]
)
def test_layouts_and_solvers_agree(solver, form):
    X, y = rows()
    options = {"penalty": "elasticnet", "l1_ratio": 0.5, "C": 0.1, "tol": 1e-6, "solver": solver, "random_state": 0}
    dense = LinearSVC(**options).fit(X, y)
    other = LinearSVC(**options).fit(form(X), y)
    gap = dense.certificate_.gap + other.certificate_.gap + 1e-6 * dense.certificate_.primal
    assert np.linalg.norm(dense.coef_ - other.coef_) <= 2.0 * np.sqrt(2.0 * gap / 0.5)


def test_the_lambda_form_is_the_C_form():
    X, y = rows()
    of_C = LinearSVC(penalty="elasticnet", C=0.1, tol=1e-8, random_state=0).fit(X, y).certificate_
    lam = 1.0 / (0.1 * len(y))
    of_lam = LinearSVC(penalty="elasticnet", lam=lam, tol=1e-8, random_state=0).fit(X, y).certificate_
    np.testing.assert_allclose(of_lam.primal, of_C.primal * lam, rtol=1e-6)


def test_regression_and_several_classes():
    X, _ = rows()
    random = np.random.default_rng(2)
    y = X[:, 0] - X[:, 1] + 0.1 * random.normal(size=len(X))
    model = LinearSVR(penalty="elasticnet", l1_ratio=0.9, C=0.05, loss="squared", random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-4
    assert set(np.flatnonzero(model.coef_)) >= {0, 1}
    three = np.digitize(y, [-0.5, 0.5])
    assert LinearSVC(penalty="elasticnet", C=0.1, random_state=0).fit(X, three).certificate_.relative_gap <= 1e-4


def test_models_are_certified_and_saved(tmp_path, capsys):
    X, y = rows()
    model = LinearSVC(penalty="elasticnet", l1_ratio=0.5, C=0.1, tol=1e-6, random_state=0).fit(X, y)
    (again,) = certify_model(model, X, y)
    np.testing.assert_allclose(again.primal, model.certificate_.primal, rtol=1e-9)
    assert again.relative_gap <= 1e-5
    save(model, tmp_path / "m.model")
    restored = load(tmp_path / "m.model")
    np.testing.assert_array_equal(restored.coef_, model.coef_)
    assert restored.penalty == "elasticnet"
    assert (
        main(["train", "heart", "--penalty", "elasticnet", "--set", "l1_ratio=0.5", "--C", "0.001", "--tol", "1e-2"])
        == 0
    )
    assert "relative gap" in capsys.readouterr().out


def test_warm_starts_along_C():
    X, y = rows()
    model = LinearSVC(penalty="elasticnet", l1_ratio=0.8, tol=1e-5, warm_start=True, random_state=0)
    for C in (0.01, 0.03, 0.1):
        model.set_params(C=C).fit(X, y)
        alone = clone(model).fit(X, y).certificate_
        assert model.certificate_.dual <= alone.primal * (1 + 1e-12)
        assert alone.dual <= model.certificate_.primal * (1 + 1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l0"}, "penalty must be 'l2', 'l1' or 'elasticnet'; got 'l0'"),
        ({"l1_ratio": 1.1}, r"l1_ratio must be from 0 \(half a square\) to 1 \(the l1 norm\); got 1.1"),
        (
            {"penalty": "l1", "solver": "dcd"},
            "'dcd' needs a square in the penalty, and L1.* has none: use solver='auto'",
        ),
        ({"solver": Pegasos(projection=True)}, "projection=True needs penalty='l2'"),
        ({"solver": "newton"}, r"supports penalty='l2' \(half a square\) only"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    X, y = rows()
    with pytest.raises(ValueError, match=message):
        LinearSVC(**{"penalty": "elasticnet"} | options).fit(X, y)


def test_leave_one_out_needs_the_square():
    X, y = rows()
    with pytest.raises(ValueError, match="C='auto' needs penalty='l2'"):
        LinearSVC(penalty="elasticnet", C="auto").fit(X, y)
    model = LinearSVC(penalty="elasticnet", C=0.1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="a leave-one-out estimate needs penalty='l2'"):
        leave_one_out(model, X, y)
