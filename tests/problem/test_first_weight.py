"""The largest C without a weight, for every loss, penalty and intercept, and where a path begins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import l1_min_c

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.problem.first_weight import first_crossing, largest_empty_C
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.svm import C_max

L1 = {"penalty": "l1"}
KINKED = ("hinge", "absolute")
NET = {"penalty": "elasticnet", "l1_ratio": 0.5}


@pytest.fixture(scope="module")
def rows():
    """Rows of which three features matter, of two classes of different sizes."""
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 9)) + 0.3
    return X, np.where(X[:, :3].sum(axis=1) + 0.5 * random.normal(size=120) > 1.5, 1, 0)


def check_begin(model, X, y):
    """Below ``C_max`` weights of zero are optimal; above they are not if the loss has no kinks.

    At ``C = (1 - t) C_max`` the multipliers of C_max leave ``t l1 ||w||_1`` between any weights and zero, so that no
    more than the gap can be there.
    """
    first, share, t = C_max(model, X, y), 1.0 if model.penalty == "l1" else model.l1_ratio, 1e-2
    below = model.set_params(C=first * (1.0 - t), tol=1e-10).fit(X, y)
    assert np.abs(below.coef_).sum() * t * share <= 2.0 * below.certificate_.gap
    if model.loss in KINKED:
        return
    above = model.set_params(C=first * (1.0 + t)).fit(X, y)
    assert np.abs(above.coef_).sum() * t * share > 10.0 * above.certificate_.gap


@pytest.mark.parametrize("penalty", [L1, NET])
@pytest.mark.parametrize("intercept", ["none", "free", "regularized"])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
def test_the_first_weight_of_a_classifier_appears_there(rows, penalty, intercept, loss):
    check_begin(LinearSVC(loss=loss, intercept=intercept, **penalty), *rows)


@pytest.mark.parametrize("intercept", ["none", "free", "regularized"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_the_first_weight_of_a_regression_appears_there(rows, intercept, loss):
    X = rows[0]
    y = 1.0 + 2.0 * X[:, 0] + np.random.default_rng(1).normal(size=len(X))
    check_begin(LinearSVR(loss=loss, intercept=intercept, **L1), X, y)


@pytest.mark.parametrize(("loss", "other"), [("squared_hinge", "squared_hinge"), ("logistic", "log")])
def test_it_is_that_of_scikit_learn(rows, loss, other):
    X, y = rows
    for given in (X, sparse.csr_matrix(X)):
        found = C_max(LinearSVC(loss=loss, fit_intercept=False, **L1), given, y)
        np.testing.assert_allclose(found, l1_min_c(X, y, loss=other, fit_intercept=False), rtol=1e-13)


def test_weights_of_rows_count_as_repetition(rows):
    X, y = rows
    weights = np.random.default_rng(2).integers(1, 4, size=y.size)
    model = LinearSVC(loss="logistic", intercept="free", **L1)
    repeated = C_max(model, np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(C_max(model, X, y, weights), repeated, rtol=1e-12)


def test_of_several_classes_the_first_of_all_counts(rows):
    X = rows[0]
    y = np.digitize(X[:, 0], [-0.2, 0.9])
    model = LinearSVC(intercept="free", **L1)
    alone = [C_max(model, X, (y == k).astype(int)) for k in range(3)]
    np.testing.assert_allclose(C_max(model, X, y), min(alone), rtol=1e-12)
    labels = (y[:, None] == np.arange(3)).astype(int)
    np.testing.assert_allclose(C_max(model, X, labels), min(alone), rtol=1e-12)


def test_features_of_zero_never_have_a_weight(rows):
    y = rows[1]
    for intercept in ("none", "free", "regularized"):
        assert C_max(LinearSVC(intercept=intercept, **L1), np.zeros((y.size, 2)), y) == np.inf


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_features_in_another_unit_divide_it(rows, loss):
    X, y = rows
    model = LinearSVC(loss=loss, intercept="free", **L1)
    for factor in (1e-6, 1e3):
        np.testing.assert_allclose(C_max(model, factor * X, y), C_max(model, X, y) / factor, rtol=1e-9)


def test_a_penalty_without_an_l1_norm_has_weights_at_any_C(rows):
    problem = make_problem(as_rows(rows[0], 0.0), 2.0 * rows[1] - 1.0, Hinge(), C=1.0)
    assert largest_empty_C(problem) == 0.0


def test_a_penalty_that_sets_no_weight_to_zero_is_refused(rows):
    for given in ({}, {"penalty": "elasticnet", "l1_ratio": 0.0}):
        with pytest.raises(ValueError, match="C_max needs penalty='l1', or 'elasticnet' with l1_ratio above 0"):
            C_max(LinearSVC(**given), *rows)


def test_the_first_crossing_is_found_from_both_sides():
    def room(place):
        return (1.0 - place) * (3.0 - place) * (4.0 - place)

    for start in (0.01, 0.9, 1.2):
        np.testing.assert_allclose(first_crossing(room, start), 1.0)
    assert first_crossing(lambda place: 1.0, 2.0) == np.inf
    assert first_crossing(lambda place: -1.0, 2.0) == 0.0


def test_a_path_begins_there(rows):
    X, y = rows
    model = LinearSVC(loss="logistic", random_state=0, **L1)
    path = model.path(X, y)
    first = C_max(model, X, y)
    np.testing.assert_allclose(path.Cs[[0, -1]], [first, 1e3 * first])
    assert not path.models[0].coef_.any() and path.models[-1].coef_.any()
    assert path.model(path.best(X, y)).score(X, y) == path.score(X, y).max()
