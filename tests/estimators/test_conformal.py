"""Conformal sets: those of models that are trained again for every row and label."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from saddlesvm import ConformalSVC, ConformalSVR, LinearSVC, LinearSVR


def clouds(n, classes, d=3, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return random.normal(size=(n, d)) + 1.2 * np.eye(max(d, classes))[y][:, :d], y


def by_refits(template, X, y, new):
    """The p-value of each label by training again, and how many rows are nearly as good as the new one."""
    classes = np.unique(y)
    found, close = np.empty((len(new), classes.size)), np.zeros((len(new), classes.size))
    for i, row in enumerate(new):
        for k, label in enumerate(classes):
            codes = np.append(np.searchsorted(classes, y), k)
            model = clone(template).set_params(tol=1e-10).fit(np.vstack([X, row]), np.append(y, label))
            scores = model.decision_function(np.vstack([X, row]))
            if scores.ndim == 1:
                fits = np.where(codes == 1, -scores, scores)
            else:
                own = scores[np.arange(codes.size), codes]
                scores[np.arange(codes.size), codes] = -np.inf
                fits = scores.max(axis=1) - own
            found[i, k] = np.mean(fits >= fits[-1])
            close[i, k] = np.mean(np.abs(fits[:-1] - fits[-1]) < 1e-4)
    return found, close


@pytest.mark.parametrize(
    ("options", "classes"),
    [
        ({"loss": "logistic", "C": 0.5}, 2),
        ({"loss": "logistic", "C": 5.0, "intercept": "free"}, 2),
        ({"loss": "squared_hinge", "C": 0.5}, 2),
        ({"loss": "logistic", "C": 0.5}, 3),
        ({"loss": "squared_hinge", "C": 0.2, "fit_intercept": False}, 3),
        ({"loss": "hinge", "C": 0.5}, 2),
    ],
)
def test_p_values_and_sets_are_those_of_refits(options, classes):
    X, y = clouds(60, classes)
    new = clouds(10 if options["loss"] != "hinge" else 3, classes, seed=1)[0]
    template = LinearSVC(random_state=0, **options)
    model = ConformalSVC(template).fit(X, y)
    exact, close = by_refits(template, X, y, new)
    low, high = model.p_value_bounds(new)
    assert (low - close <= exact + 1e-12).all()
    assert (exact <= high + close + 1e-12).all()
    assert np.mean(high - low) < 0.01
    np.testing.assert_array_equal(model.p_values(new), high)
    for alpha in (0.05, 0.2):
        sets = model.predict_set(new, alpha=alpha)
        clear = np.abs(exact - alpha) > close + 1e-12
        np.testing.assert_array_equal(sets[clear], exact[clear] > alpha)


def test_sparse_rows_and_rows_that_are_there_already():
    X, y = clouds(50, 2, seed=2)
    names = np.array(["no", "yes"])[y]
    dense = ConformalSVC(LinearSVC(loss="logistic")).fit(X, names)
    low, high = dense.p_value_bounds(X[:6])
    np.testing.assert_array_equal(low, high)  # a row ties with itself, exactly
    of_csr = ConformalSVC(LinearSVC(loss="logistic")).fit(sparse.csr_array(X), names)
    np.testing.assert_array_equal(of_csr.p_values(sparse.csr_array(X[:6])), high)
    assert dense.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="alpha must be"):
        dense.predict_set(X, alpha=1.5)
    with pytest.raises(ValueError, match="ConformalSVC's model needs multi_class='ovr'; this model has 'ovo'"):
        ConformalSVC(LinearSVC(multi_class="ovo")).fit(X, y)


def test_sets_hold_the_right_label_as_often_as_they_say():
    X, y = clouds(600, 3, seed=3)
    sets = ConformalSVC().fit(X[:200], y[:200]).predict_set(X[200:], alpha=0.2)
    share = sets[np.arange(400), y[200:]].mean()
    assert 0.73 < share < 0.87  # three and a half standard errors of 400 rows


@pytest.mark.parametrize("options", [{}, {"intercept": "free"}, {"fit_intercept": False, "C": 10.0}])
def test_intervals_end_where_refits_do(options):
    random = np.random.default_rng(4)
    X = random.normal(size=(40, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.7 + 0.4 * random.normal(size=40)
    new = random.normal(size=(4, 3))
    template = LinearSVR(loss="squared", tol=1e-8, **options)
    model = ConformalSVR(template).fit(X, y)
    ends = model.predict_interval(new, alpha=0.25)
    assert ((ends[:, 0] < model.predict(new)) & (model.predict(new) < ends[:, 1])).all()

    def p_value(row, target):
        rows, targets = np.vstack([X, row]), np.append(y, target)
        again = clone(template).set_params(tol=1e-11).fit(rows, targets)
        residuals = np.abs(targets - again.predict(rows))
        return np.mean(residuals >= residuals[-1])

    for row, (low, high) in zip(new, ends, strict=True):
        inside, outside = ((1e-4, 1e-4 * (high - low)), (-1e-4, -1e-4 * (high - low)))
        assert min(p_value(row, low + inside[1]), p_value(row, high - inside[1])) > 0.25
        assert max(p_value(row, low + outside[1]), p_value(row, high - outside[1])) <= 0.25


def test_intervals_of_few_rows_are_infinite_and_other_losses_refused():
    X, y = clouds(8, 2)
    assert np.isinf(ConformalSVR().fit(X, y).predict_interval(X, alpha=0.1)).all()
    with pytest.raises(ValueError, match=r"ConformalSVR needs loss='squared'.*; got 'huber'"):
        ConformalSVR(LinearSVR(loss="huber")).fit(X, y)


@parametrize_with_checks([ConformalSVC(), ConformalSVR()])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)
