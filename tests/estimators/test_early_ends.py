"""Fits that end early or fail: limits, warnings, callbacks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from saddlesvm import DCD, SVC, LinearSVC, LinearSVR, NotCertifiedWarning, Outcome
from support.estimating import two_blobs


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return two_blobs()


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVR(), SVC(), LinearSVC(solver=DCD())])
def test_a_fit_without_any_end_is_refused(blobs, model):
    X, y = blobs
    with pytest.raises(ValueError, match="tol=0 never ends a fit: give gap, max_iter or max_time too"):
        model.set_params(tol=0).fit(X, (y == "yes").astype(float))


@pytest.mark.parametrize(
    "end",
    [
        {"max_iter": 2},
        {"max_time": 0.01},
        {"callbacks": [lambda record: True]},
        {"solver": DCD(stopping="projected_gradient")},
        {"solver": DCD(max_passes=2)},
    ],
)
def test_a_fit_without_tolerance_ends_by_other_means(blobs, end):
    assert LinearSVC(tol=0.0, **end).fit(*blobs).outcome_ is not Outcome.CERTIFIED


def test_a_run_cut_by_its_solvers_own_limit_met_no_rule(blobs):
    """The papers' rule is met, or the passes are used up: two outcomes, and passes are those over active rows."""
    rule = {"stopping": "projected_gradient", "threshold": 1e-2}
    met = LinearSVC(solver=DCD(**rule), tol=0.0, random_state=0).fit(*blobs)
    assert met.outcome_ is Outcome.RULE_MET
    cut = LinearSVC(solver=DCD(**rule, max_passes=2), tol=0.0, random_state=0).fit(*blobs)
    assert cut.outcome_ is Outcome.EPOCH_LIMIT
    assert np.max(cut.n_iter_) <= 2


def test_an_early_stop_warns_with_the_gap(blobs):
    with pytest.warns(NotCertifiedWarning, match=r"relative gap is .* asked for; the objective is at most"):
        model = LinearSVC(solver="dcd", tol=1e-12, max_iter=2, random_state=0).fit(*blobs)
    assert model.outcome_ is Outcome.EPOCH_LIMIT
    assert model.certificate_.relative_gap > 1e-12


@pytest.mark.parametrize("model", [LinearSVC(), LinearSVR(), SVC(solver="kernel-pegasos")])
def test_the_warning_of_an_early_stop_names_the_line_that_called(blobs, model):
    X, y = blobs
    with pytest.warns(NotCertifiedWarning) as caught:
        model.set_params(tol=1e-12, max_time=1e-9).fit(X, (y == "yes").astype(float))
    assert caught[0].filename == __file__


def test_a_fit_that_fails_leaves_the_model_as_it_was(blobs):
    X, y = blobs
    model = LinearSVC(random_state=0).fit(X, y)
    before = dict(vars(model))
    for rows, labels, weights in [
        (X[:, :4], np.full(300, "one"), None),
        (X[:, :4], np.where(X[:, 0] > 0, "a", "b"), -np.ones(300)),
        (np.where(X > 2, np.nan, X), y, None),
    ]:
        with pytest.raises(ValueError):
            model.fit(rows, labels, sample_weight=weights)
        assert vars(model) == before
    fresh = LinearSVC()
    with pytest.raises(ValueError):
        fresh.fit(X, y[:-1])
    assert vars(fresh) == vars(LinearSVC())


@pytest.mark.parametrize(
    ("multi_class", "change"),
    [
        ("ovr", lambda record: record.coef.fill(7.0)),
        ("crammer_singer", lambda record: record.coef.fill(7.0)),
        ("crammer_singer", lambda record: record.intercept.fill(7.0)),
    ],
)
def test_a_callback_cannot_change_the_model(multi_class, change):
    with pytest.raises(ValueError, match="read-only"):
        LinearSVC(multi_class=multi_class, callbacks=[change]).fit(*load_iris(return_X_y=True))
