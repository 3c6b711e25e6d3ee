"""Which features have a weight: a certified model has those of the optimum, and the true ones among them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning
from saddlesvm.svm import C_max

TRUE = 8  # features that matter, of 600


def rows(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(300, 600))
    weights = np.where(np.arange(600) < TRUE, 2.0 * random.choice([-1.0, 1.0], 600), 0.0)
    return X, X @ weights + 0.5 * random.normal(size=300)


def solved(model, X, y):
    """The features of a fit to a gap of 1e-12, but for what rounding adds to the proof."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)  # where rounding alone is more
        found = model.set_params(tol=1e-12).fit(X, y)
    assert found.certificate_.relative_gap - found.certificate_.rounding_share <= 1e-12
    return np.flatnonzero(found.coef_)


@pytest.mark.parametrize("penalty", [{"penalty": "l1"}, {"penalty": "elasticnet", "l1_ratio": 0.9}])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_default_model_has_the_features_of_the_optimum(loss, penalty, seed):
    X, scores = rows(seed)
    X, y = (sparse.csr_matrix(X) if seed else X), np.where(scores > 0.0, 1, 0)
    model = LinearSVC(loss=loss, random_state=0, **penalty)
    model.set_params(C=4.0 * C_max(model, X, y)).fit(X, y)
    selected = np.flatnonzero(model.coef_)
    assert {*range(TRUE)} <= {*selected.tolist()}
    assert model.n_features_selected_ < 30
    np.testing.assert_array_equal(selected, solved(model, X, y))


def test_so_has_a_regression():
    X, y = rows(2)
    model = LinearSVR(loss="squared", penalty="l1", intercept="free", random_state=0)
    model.set_params(C=10.0 * C_max(model, X, y)).fit(X, y)
    selected = np.flatnonzero(model.coef_)
    np.testing.assert_array_equal(selected, np.arange(TRUE))
    np.testing.assert_array_equal(selected, solved(model, X, y))
