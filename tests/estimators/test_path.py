"""Warm starts along C and cross-validation: certified throughout, the same models as single fits."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, cross_val_score

from saddlesvm import LinearSVC, LinearSVCCV, Outcome, Store
from saddlesvm.data import load_bundled
from saddlesvm.estimators.C_range import check_Cs


@pytest.fixture(scope="module")
def heart():
    return load_bundled("heart")


def test_a_number_of_values_is_a_grid():
    np.testing.assert_allclose(check_Cs(13)[[0, -1]], [1e-3, 1e3])


@pytest.mark.parametrize("Cs", [[], [0.0], [np.inf], [-1.0, 1.0], 0])
def test_bad_grids_are_refused(heart, Cs):
    with pytest.raises(ValueError, match=r"Cs.* must be"):
        LinearSVCCV(Cs=Cs).fit(heart.X, heart.y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": 1e-3}, "a path goes over C, so lam .* must be left out; got lam=0.001"),
        ({"checkpoint": "run.ckpt"}, "a checkpoint holds one fit, and a path has many: leave checkpoint out; got"),
    ],
)
def test_options_that_do_not_go_with_a_path_are_refused_before_any_work(heart, options, message):
    seen = []
    options = {"callbacks": [seen.append]} | options
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options).path(heart.X, heart.y)
    with pytest.raises(ValueError, match=message):
        LinearSVCCV(LinearSVC(**options), Cs=2).fit(heart.X, heart.y)
    assert not seen


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_smooth_losses_with_many_rows_take_a_step_or_two_from_their_neighbour(loss):
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 8))
    y = np.where(X @ np.arange(8.0) + 20.0 * random.normal(size=20_000) > 0.0, 1, -1)
    model = LinearSVC(loss=loss, tol=1e-5, warm_start=True, random_state=0).fit(X, y)
    for C in (3.0, 10.0):
        assert model.set_params(C=C).fit(X, y).n_iter_ <= 3
        assert model.outcome_ is Outcome.CERTIFIED


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("multi", [False, True])
def test_a_warm_start_in_either_direction_of_c(heart, C, multi):
    y = np.arange(heart.y.size) % 3 if multi else heart.y
    X = heart.X / heart.X.std(axis=0)
    warm = LinearSVC(C=1.0, loss="hinge", warm_start=True, tol=1e-6, random_state=0).fit(X, y)
    warm.set_params(C=C).fit(X, y)
    cold = LinearSVC(C=C, loss="hinge", tol=1e-6, random_state=0).fit(X, y)
    assert warm.outcome_ is Outcome.CERTIFIED
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)


def test_cross_validation_chooses_like_single_fits(heart):
    X = heart.X / heart.X.std(axis=0)
    search = LinearSVCCV(LinearSVC(random_state=0), Cs=[1e-3, 1e-1, 10.0], cv=4).fit(X, heart.y)
    assert search.scores_.shape == (3, 4)
    assert (search.relative_gaps_ <= 1e-4).all()
    for k, C in enumerate(search.Cs_):
        alone = cross_val_score(LinearSVC(C=C, random_state=0), X, heart.y, cv=4)
        np.testing.assert_allclose(search.scores_[k], alone, atol=0.04)
    assert search.Cs_[np.argmax(search.mean_scores_)] == search.C_
    assert search.predict(X).shape == heart.y.shape
    assert search.coef_.shape == (1, 13)
    assert search.score(X, heart.y) > 0.7


def test_one_standard_error_prefers_the_smaller_c(heart):
    X = heart.X / heart.X.std(axis=0)
    best = LinearSVCCV(Cs=5, cv=4).fit(X, heart.y)
    careful = LinearSVCCV(Cs=5, cv=4, rule="one_standard_error").fit(X, heart.y)
    assert careful.C_ <= best.C_
    with pytest.raises(ValueError, match="rule must be"):
        LinearSVCCV(rule="nonsense").fit(X, heart.y)


def test_one_split_has_no_standard_error(heart):
    X, seen = heart.X / heart.X.std(axis=0), []
    split = [(np.arange(200), np.arange(200, 297))]
    with pytest.raises(ValueError, match="needs at least two splits"):
        LinearSVCCV(LinearSVC(callbacks=[seen.append]), cv=split, rule="one_standard_error").fit(X, heart.y)
    assert not seen
    search = LinearSVCCV(Cs=3, cv=split).fit(X, heart.y)
    assert np.isnan(search.standard_errors_).all()
    assert search.scores_.shape == (3, 1)


@pytest.mark.parametrize("rule", ["best", "one_standard_error"])
def test_a_c_without_a_score_is_never_chosen(heart, rule):
    X = heart.X / heart.X.std(axis=0)
    search = LinearSVCCV(Cs=[0.01, 1.0, 100.0], cv=3, rule=rule)
    partly = search.set_params(scoring=lambda model, X, y: np.nan if model.C < 1.0 else model.score(X, y)).fit(
        X, heart.y
    )
    assert np.isnan(partly.mean_scores_[0]) and partly.C_ >= 1.0
    with pytest.raises(ValueError, match="gave NaN in some fold for every C"):
        search.set_params(scoring=lambda model, X, y: np.nan).fit(X, heart.y)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix, np.ndarray.tolist])
def test_cross_validation_takes_what_a_fit_takes(heart, kind):
    X = heart.X / heart.X.std(axis=0)
    plain = LinearSVCCV(LinearSVC(random_state=0), Cs=2, cv=2).fit(X, heart.y)
    other = LinearSVCCV(LinearSVC(random_state=0), Cs=2, cv=2).fit(kind(X), heart.y.tolist(), sample_weight=1.0)
    np.testing.assert_allclose(other.scores_, plain.scores_, atol=0.04)
    assert other.C_ == plain.C_


def test_cross_validation_on_a_store(heart, tmp_path):
    stored = Store.create(tmp_path / "heart.store", heart.X, heart.y)
    search = LinearSVCCV(LinearSVC(random_state=0), Cs=2, cv=2).fit(stored)
    plain = LinearSVCCV(LinearSVC(random_state=0), Cs=2, cv=2).fit(heart.X, heart.y)
    np.testing.assert_array_equal(search.scores_, plain.scores_)


def test_groups_stay_together(heart):
    groups = np.arange(heart.y.size) // 10
    search = LinearSVCCV(Cs=2, cv=GroupKFold(3)).fit(heart.X, heart.y, groups=groups)
    folds = list(GroupKFold(3).split(heart.X, heart.y, groups))
    by_hand = LinearSVCCV(Cs=2, cv=folds).fit(heart.X, heart.y)
    np.testing.assert_array_equal(search.scores_, by_hand.scores_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (np.where(np.arange(297)[:, None] == 200, np.nan, X), y), "NaN in row 200"),
    ],
)
def test_bad_data_are_named_before_the_folds_are_made(heart, change, message):
    with pytest.raises(ValueError, match=message):
        LinearSVCCV().fit(*change(heart.X, heart.y))


def stop_in(number, stop=lambda: True):
    """A callback that stops the fit with a given number; a fit's first record has a smaller epoch than the last."""

    def callback(record):
        callback.fits += record.epoch <= callback.epoch
        callback.epoch = record.epoch
        return callback.fits == number and stop()

    callback.fits, callback.epoch = 0, np.inf
    return callback


def search_with(callback):
    model = LinearSVC(solver="dcd", tol=1e-9, random_state=0, callbacks=[callback])
    return LinearSVCCV(model, Cs=[0.1, 1.0, 10.0], cv=2)


def test_an_interrupted_search_keeps_the_values_that_every_fold_came_to(heart):
    X = heart.X / heart.X.std(axis=0)
    full = search_with(stop_in(0)).fit(X, heart.y)
    with pytest.warns(UserWarning, match="interrupted: C is chosen among the 2 smallest of 3"):
        part = search_with(stop_in(6)).fit(X, heart.y)  # each C takes two fits, one a fold
    assert part.Cs_.tolist() == [0.1, 1.0]
    np.testing.assert_array_equal(part.scores_, full.scores_[:2])
    assert part.relative_gaps_.shape == (2, 2)
    assert part.C_ in (0.1, 1.0)
    assert part.certificate_.relative_gap <= 1e-9


@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_search_that_is_interrupted_early_says_so(heart, keyboard, by_key, number):
    presses = [signal.SIGINT]
    callback = stop_in(number, lambda: signal.raise_signal(presses.pop()) if by_key and presses else not by_key)
    search = search_with(callback)
    with pytest.raises(KeyboardInterrupt, match="before every fold had reached the smallest C"):
        search.fit(heart.X / heart.X.std(axis=0), heart.y)
    assert callback.fits == number
    assert not hasattr(search, "best_estimator_")


def test_no_press_of_ctrl_c_is_lost_between_short_fits(heart, keyboard):
    X, presses = heart.X / heart.X.std(axis=0), [signal.SIGINT]

    def press(*seen):
        return float(bool(presses and signal.raise_signal(presses.pop())))

    with pytest.raises(KeyboardInterrupt, match="before every fold had reached the smallest C"):
        LinearSVCCV(Cs=3, cv=4, scoring=press).fit(X, heart.y)


def test_a_path_is_of_an_estimator():
    with pytest.raises(TypeError, match=r"LinearSVC\(\)\.path\(X, y\)"):
        LinearSVC.path(np.eye(4), np.arange(4) % 2)
