"""The l1 norm behind the estimators: certified, saved, selected by, along a path, and what does not work with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.svm import LinearSVC as OfLiblinear

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.cli import main
from saddlesvm.estimators.certify import certify_model
from saddlesvm.fit.outcome import Outcome
from saddlesvm.models.persistence import load, save


def rows(n=150, d=12, seed=0):
    """Rows of which the first three features matter, and their labels."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, np.where(X[:, :3].sum(axis=1) + 0.5 * random.normal(size=n) > 0, "yes", "no")


def test_the_default_model_is_that_of_scikit_learn():
    X, y = rows()
    model = LinearSVC(penalty="l1", C=0.1, tol=1e-9, random_state=0).fit(X, y)
    other = OfLiblinear(penalty="l1", dual=False, C=0.1, tol=1e-9, max_iter=100_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-5)


@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_the_elastic_net_ends_at_the_l1_norm(intercept):
    X, y = rows()
    options = {"C": 0.1, "tol": 1e-7, "random_state": 0, "intercept": intercept}
    l1 = LinearSVC(penalty="l1", **options).fit(X, y)
    at_one = LinearSVC(penalty="elasticnet", l1_ratio=1.0, **options).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(at_one.certificate_.primal, l1.certificate_.primal, rtol=1e-6)
    np.testing.assert_array_equal(at_one.coef_ != 0.0, l1.coef_ != 0.0)


@pytest.mark.parametrize("C", [1.0, 10.0, 1000.0])
def test_a_loss_without_curvature_at_the_start_is_certified(C):
    X, y = rows(n=3000, d=20)
    model = LinearSVC(penalty="l1", loss="smooth_hinge", solver="columns", C=C, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED


def test_features_are_selected_and_models_saved_and_certified(tmp_path, capsys):
    X, y = rows()
    model = LinearSVC(penalty="l1", C=0.05, tol=1e-6, random_state=0).fit(X, y)
    assert 3 <= model.n_features_selected_ < 12
    # scikit-learn's own threshold for models with penalty="l1" keeps the weights that are not zero
    chosen = SelectFromModel(LinearSVC(penalty="l1", C=0.05, tol=1e-6, random_state=0)).fit(X, y)
    np.testing.assert_array_equal(chosen.get_support(), model.coef_[0] != 0.0)
    (proof,) = certify_model(model, X, y)
    assert proof.relative_gap <= 1e-5
    save(model, tmp_path / "m.model")
    np.testing.assert_array_equal(load(tmp_path / "m.model").coef_, model.coef_)
    model.coef_ = sparse.csr_array(model.coef_)  # kept as such, in the file and from it
    save(model, tmp_path / "m.model")
    again = load(tmp_path / "m.model").coef_
    assert again.nnz == model.coef_.nnz
    np.testing.assert_array_equal(again.toarray(), model.coef_.toarray())
    assert main(["train", "heart", "--penalty", "l1", "--C", "0.01", "--tol", "1e-6"]) == 0
    assert "relative gap" in capsys.readouterr().out


def test_a_path_of_warm_starts_reaches_what_single_fits_reach():
    X, y = rows()
    model = LinearSVC(penalty="l1", loss="logistic", tol=1e-6, warm_start=True, random_state=0)
    for C in (0.01, 0.05, 0.2):
        model.set_params(C=C).fit(X, y)
        alone = clone(model).fit(X, y).certificate_
        assert model.certificate_.relative_gap <= 1e-6
        assert model.certificate_.dual <= alone.primal
        assert alone.dual <= model.certificate_.primal


def test_several_classes_and_regression():
    X, _ = rows()
    y = 3.0 + X[:, 0] - X[:, 1] + 0.1 * np.random.default_rng(2).normal(size=len(X))
    model = LinearSVR(penalty="l1", C=0.1, loss="huber", intercept="free", tol=1e-6, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-6
    assert set(np.flatnonzero(model.coef_)) == {0, 1}
    three = np.digitize(y, [2.5, 3.5])
    assert LinearSVC(penalty="l1", C=0.1, random_state=0).fit(X, three).certificate_.relative_gap <= 1e-4


@pytest.mark.parametrize("solver", ["dcd", "sdca"])
def test_a_solver_that_needs_the_square_says_what_goes(solver):
    X, y = rows()
    with pytest.raises(ValueError, match=f"'{solver}' needs a square.*use solver='auto' or 'columns'"):
        LinearSVC(penalty="l1", solver=solver).fit(X, y)
