"""Grids of C in several threads: certified, the same for any number of threads beyond one, and ended early as any."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, Outcome
from saddlesvm.estimators import path as paths
from saddlesvm.estimators.path import threads_over

CS = np.array([0.01, 0.1, 1.0, 10.0])


@pytest.fixture(autouse=True)
def small_fits_go_side_by_side(monkeypatch):
    monkeypatch.setattr(paths, "PASSES", 1e6)


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 12))
    return X, np.where(X @ random.normal(size=12) + random.normal(size=400) > 0.0, "yes", "no")


def path(rows, jobs, **options):
    return LinearSVC.path(*rows, Cs=CS, n_jobs=jobs, **{"tol": 1e-4, "random_state": 0} | options)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("solver", ["auto", "dcd", "newton"])
def test_threads_prove_the_same_gaps_about_the_same_models(rows, loss, solver):
    one, two, three = (path(rows, jobs, loss=loss, solver=solver) for jobs in (1, 2, 3))
    assert two.outcomes == [Outcome.CERTIFIED] * CS.size
    np.testing.assert_array_equal(two.coefs, three.coefs)
    np.testing.assert_array_equal(two.Cs, CS)
    for a, b in zip(one.models, two.models, strict=True):
        w, v = (np.append(m.coef_, m.intercept_) for m in (a, b))
        assert np.linalg.norm(w - v) <= sum(np.sqrt(2.0 * max(m.certificate_.gap, 0.0)) for m in (a, b)) + 1e-9


def test_the_models_have_the_options_that_were_asked_for(rows):
    made = path(rows, 2, random_state=np.random.RandomState(3)).models
    for model, C in zip(made, CS, strict=True):
        assert (model.C, model.n_jobs, model.warm_start) == (C, 2, False)
        assert isinstance(model.random_state, np.random.RandomState)
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.score(*rows) > 0.5


def test_a_random_state_gives_the_same_path_again(rows):
    first, again = (path(rows, 2, random_state=np.random.RandomState(3)) for _ in range(2))
    np.testing.assert_array_equal(first.coefs, again.coefs)


@pytest.mark.parametrize("options", [{"penalty": "l1", "loss": "squared_hinge"}, {"intercept": "free"}])
def test_penalties_and_intercepts_of_all_kinds(rows, options):
    assert path(rows, 2, **options).outcome is Outcome.CERTIFIED


def test_regression(rows):
    made = LinearSVR.path(rows[0], rows[0][:, 0], Cs=CS, n_jobs=2, random_state=0)
    assert made.outcome is Outcome.CERTIFIED


def test_a_point_is_handed_over_before_the_fit_ends(rows, monkeypatch):
    early, end = [], paths.HandOver.end

    def noted(self, model):
        early.append(self.ready.is_set())
        end(self, model)

    monkeypatch.setattr(paths.HandOver, "end", noted)
    path(rows, 2, loss="hinge", solver="dcd", tol=1e-8)
    assert any(early)


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (None, {"callbacks": [lambda record: False]}),
        (None, {"verbose": 1}),
        (None, {"tol": 0.0}),
        (None, {"n_jobs": 1}),
        (np.arange(400) % 3, {}),
        (None, {"multi_class": "multinomial", "loss": "logistic"}),
    ],
)
def test_fits_that_gain_nothing_follow_each_other(rows, y, options):
    model = LinearSVC(**{"n_jobs": 2} | options)
    assert threads_over(model, rows[0], rows[1] if y is None else y, CS) == 1


def test_small_rows_follow_each_other(rows, monkeypatch):
    monkeypatch.undo()
    assert threads_over(LinearSVC(n_jobs=2), *rows, CS) == 1


def test_a_time_limit_ends_the_path_with_what_there_is(rows):
    with pytest.warns(NotCertifiedWarning):
        made = path(rows, 2, tol=1e-13, max_time=1e-4, loss="hinge")
    assert 1 <= len(made.models) <= CS.size
    assert made.outcome is Outcome.TIME_LIMIT


def test_an_error_in_one_fit_is_that_of_the_path(rows, monkeypatch):
    fit = paths.fit_copy

    def failing(template, *data, **given):
        if float(template.C) == 0.1:
            raise RuntimeError("the second fit fails")
        return fit(template, *data, **given)

    monkeypatch.setattr(paths, "fit_copy", failing)
    with pytest.raises(RuntimeError, match="the second fit fails"):
        path(rows, 2)
