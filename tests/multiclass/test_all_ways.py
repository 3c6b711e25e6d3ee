"""What the three ways with many classes share: warm starts, threads, limits, probabilities, class weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from saddlesvm import LinearSVC, NotCertifiedWarning, Outcome
from saddlesvm.kernel.svc import SVC
from saddlesvm.multiclass import sub_problems as multiclass
from support import distance_bound
from support.classes import blobs

WAYS = ("ovr", "ovo", "crammer_singer")


@pytest.mark.parametrize("way", WAYS)
def test_a_warm_start_ends_at_once_and_threads_change_nothing(way):
    X, y = blobs(k=5, n=150)
    model = LinearSVC(multi_class=way, loss="hinge", tol=1e-4, random_state=0, warm_start=True).fit(X, y)
    again = LinearSVC(multi_class=way, loss="hinge", tol=1e-4, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    cold = model.n_iter_
    model.set_params(tol=2e-4).fit(X, y)
    assert model.n_iter_ <= max(2, cold // 3)
    assert model.outcome_ is Outcome.CERTIFIED


def test_a_warm_start_after_another_way_begins_anew_where_it_must():
    X, y = blobs()
    model = LinearSVC(loss="hinge", warm_start=True, tol=1e-6)
    for way in (*WAYS, *reversed(WAYS)):
        model.set_params(multi_class=way).fit(X, y)
        fresh = LinearSVC(loss="hinge", multi_class=way, tol=1e-6).fit(X, y)
        assert np.linalg.norm(model.coef_ - fresh.coef_) <= 3 * distance_bound(
            model.certificate_.gap, fresh.certificate_.gap
        )


FOUR = np.arange(90) % 4


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("crammer_singer", FOUR % 2), ("crammer_singer", FOUR % 3)),
        (("crammer_singer", FOUR % 3), ("crammer_singer", FOUR)),
        (("crammer_singer", FOUR), ("ovo", FOUR)),
        (("ovo", FOUR), ("crammer_singer", FOUR)),
        (("ovo", FOUR % 3), ("crammer_singer", FOUR % 3)),
    ],
)
def test_a_start_of_other_classes_is_left_where_it_does_not_fit(before, after):
    X = np.random.default_rng(0).normal(size=(90, 4))
    model = LinearSVC(warm_start=True, random_state=0)
    for way, y in (before, after):
        model.set_params(multi_class=way).fit(X, y)
    cold = LinearSVC(multi_class=way, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.coef_.shape == cold.coef_.shape
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-4)


@pytest.mark.parametrize("way", WAYS)
def test_calibrated_probabilities(way):
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifierCV(LinearSVC(multi_class=way, loss="hinge", tol=1e-3), cv=3, ensemble=False).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert -np.log(probabilities[np.arange(150), y]).mean() < np.log(3) / 2
    assert model.score(X, y) > 0.85


def test_a_time_limit_is_shared_fairly(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(multiclass, "clock", lambda: now[0])
    monkeypatch.setattr("saddlesvm.runtime.clock.clock", lambda: now[0])
    clock = multiclass.SharedTime(12.0, problems=4)
    assert clock.share(2) == pytest.approx(6.0)
    now[0] += 2.0
    clock.count_done()
    clock.count_done()
    assert clock.share(2) == pytest.approx(10.0)
    clock.count_done()
    assert clock.share(2) == pytest.approx(10.0)
    now[0] += 20.0
    assert 0.0 < clock.share(2) < 1e-6
    assert multiclass.SharedTime(None, 4).share(2) is None


def test_a_share_of_the_time_is_at_least_an_eighth():
    assert multiclass.SharedTime(80.0, 4).share(1) == pytest.approx(20.0, rel=0.1)
    assert multiclass.SharedTime(80.0, 1000).share(1) == pytest.approx(10.0, rel=0.1)


def test_one_time_limit_holds_for_the_whole_fit():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(NotCertifiedWarning, match="time_limit"):
        model = LinearSVC(multi_class="ovo", C=1e3, tol=1e-12, max_time=0.02).fit(X, y)  # which each pair alone meets
    assert model.seconds_solving_ + model.seconds_certifying_ < 45 * 0.02


UNMET = "compares predictions to 1e-7 at the default tol; test_class_weights_are_row_weights holds them to their gaps"
EXCUSED = {f"check_sample_weight_equivalence_on_{form}_data": UNMET for form in ("dense", "sparse")}


@parametrize_with_checks(
    [LinearSVC(multi_class="ovo"), LinearSVC(multi_class="crammer_singer")],
    expected_failed_checks=lambda estimator: EXCUSED if estimator.multi_class == "crammer_singer" else {},
)
@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", [*(LinearSVC(multi_class=way) for way in ("crammer_singer", "multinomial")), SVC()])
def test_a_class_without_weight_is_refused_if_all_classes_are_solved_together(model):
    X, y = load_iris(return_X_y=True)
    for weighted in (y != 2, y == 0):
        with pytest.raises(ValueError, match=r"class [12] has no row of positive weight: .*every class needs one"):
            model.fit(X, y, sample_weight=weighted.astype(float))


@pytest.mark.parametrize("way", ["ovr", "ovo"])
def test_a_class_without_weight_is_kept_if_two_others_have_some(way):
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(multi_class=way)
    assert model.fit(X, y, sample_weight=(y != 2).astype(float)).classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"class 1 has no row of positive weight: at least two classes need one"):
        model.fit(X, y, sample_weight=(y == 0).astype(float))


def test_class_weights_are_row_weights():
    X, y = blobs()
    for way in sorted({*WAYS} - {"ovr"}):  # test_class_weights.py has that
        by_class = LinearSVC(multi_class=way, class_weight={0: 2.0, 2: 0.5}, tol=1e-7).fit(X, y)
        by_row = LinearSVC(multi_class=way, tol=1e-7).fit(X, y, np.array([2.0, 1.0, 0.5])[y])
        assert by_class.certificate_.primal == pytest.approx(by_row.certificate_.primal, rel=2e-7)
