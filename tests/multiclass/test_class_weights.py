"""Class weights where each class has a problem of its own: its factor counts there alone, as in LIBLINEAR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC as Liblinear

from saddlesvm import SVC, LinearSVC, LinearSVCCV, certify, certify_kernel, leave_one_out
from saddlesvm.data import Store
from saddlesvm.estimators.certify import certify_model
from saddlesvm.estimators.fitted import fitted_value
from saddlesvm.estimators.part_fits import PartFits
from saddlesvm.multiclass.fits import sides_of
from saddlesvm.multiclass.sub_problems import one_vs_rest
from support import distance_bound
from support.classes import blobs

FACTORS = {0: 5.0, 1: 0.2, 2: 2.0}
LOSSES = ["hinge", "squared_hinge", "logistic"]
TOL = 1e-7


def uneven(seed: int = 0, k: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Overlapping classes of different sizes, and row weights."""
    X, y = blobs(240, 4, k, seed)
    random = np.random.default_rng(seed)
    kept = (y == 0) | (random.random(y.size) < 0.4)
    return X[kept], y[kept], 0.5 + random.random(int(kept.sum()))


def by_rows(X: Any, y: np.ndarray, factors: Any, weights: np.ndarray | None = None, **options: Any) -> list[LinearSVC]:
    """Each class against the rest: the factor of the class is in the weights of its own rows."""
    s = np.ones(y.size) if weights is None else weights
    return [
        LinearSVC(tol=TOL, random_state=0, **options).fit(X, y == k, s * np.where(y == k, factors[k], 1.0))
        for k in np.unique(y)
    ]


def assert_near(model: Any, alone: list[LinearSVC]) -> None:
    """Each class's model is as near to its reference as their gaps say."""
    for k, one in enumerate(alone):
        gaps = model.certificates_[k].gap, one.certificate_.gap
        apart = np.append(model.coef_[k] - one.coef_[0], model.intercept_[k] - one.intercept_[0])
        assert np.linalg.norm(apart) <= distance_bound(*gaps)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("given", [FACTORS, "balanced"])
def test_each_class_has_its_factor_in_its_own_problem(loss: str, given: Any) -> None:
    X, y, weights = uneven()
    factors = FACTORS
    if given == "balanced":
        factors = weights.sum() / (3.0 * np.bincount(y, weights))
    model = LinearSVC(loss=loss, class_weight=given, tol=TOL).fit(X, y, weights)
    assert_near(model, by_rows(X, y, factors, weights, loss=loss))
    again = certify_model(model, X, y, sample_weight=weights)
    assert [one.primal for one in again] == pytest.approx([one.primal for one in model.certificates_], rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("given", [FACTORS, "balanced"])
def test_the_optimum_is_that_of_scikit_learns_LinearSVC(loss: str, given: Any) -> None:
    X, y, _ = uneven()
    model = LinearSVC(loss=loss, class_weight=given, tol=TOL).fit(X, y)
    other = Liblinear(loss=loss, class_weight=given, tol=1e-10, max_iter=10**6, random_state=0).fit(X, y)
    theirs = LinearSVC(loss=loss, class_weight=given, tol=TOL).fit(X, y)
    theirs.coef_, theirs.intercept_ = other.coef_, other.intercept_
    for k, (ours, found) in enumerate(zip(model.certificates_, certify_model(theirs, X, y), strict=True)):
        assert ours.primal <= found.primal + ours.gap
        apart = np.append(model.coef_[k] - other.coef_[k], model.intercept_[k] - other.intercept_[k])
        assert np.linalg.norm(apart) <= distance_bound(ours.gap, found.primal - ours.dual)


def test_the_logistic_optimum_is_that_of_scikit_learns_one_against_the_rest() -> None:
    X, y, _ = uneven()
    model = LinearSVC(loss="logistic", intercept="free", class_weight=FACTORS, tol=1e-9).fit(X, y)
    for k, factor in FACTORS.items():
        plain = LogisticRegression(tol=1e-10, max_iter=10**5, class_weight={1: factor})
        other = OneVsRestClassifier(plain).fit(X, (y == k).astype(int))
        one = other.estimators_[0]
        assert model.coef_[k] == pytest.approx(one.coef_[0], abs=1e-4)
        assert model.intercept_[k] == pytest.approx(one.intercept_[0], abs=1e-4)


def test_two_classes_and_pairs_and_joint_machines_count_rows() -> None:
    X, y, weights = uneven()
    for way in ("ovo", "crammer_singer", "multinomial"):
        factors = np.array([FACTORS[k] for k in range(3)])
        one = LinearSVC(multi_class=way, class_weight=FACTORS, tol=TOL).fit(X, y, weights)
        other = LinearSVC(multi_class=way, tol=TOL).fit(X, y, weights * factors[y])
        assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2 * TOL)


def test_lambda_and_warm_starts_and_problems_not_begun() -> None:
    X, y, weights = uneven()
    options = {"loss": "hinge", "lam": 0.01}
    model = LinearSVC(class_weight=FACTORS, tol=1e-3, warm_start=True, **options).fit(X, y, weights)
    model.set_params(tol=TOL).fit(X, y, weights)
    for ours, one in zip(model.certificates_, by_rows(X, y, FACTORS, weights, **options), strict=True):
        assert ours.primal == pytest.approx(one.certificate_.primal, rel=2 * TOL)
    problems = one_vs_rest(y, np.arange(3), np.array([FACTORS[k] for k in range(3)]))
    sides = sides_of(problems, [0, 2], weights)
    for k, found in zip((0, 2), sides, strict=True):
        assert found == pytest.approx([weights[y != k].sum(), FACTORS[k] * weights[y == k].sum(), y.size])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_in_files(loss: str, tmp_path: Any) -> None:
    X, y, weights = uneven()
    random = np.random.default_rng(0)
    chosen = random.integers(y.size, size=20_000)
    y, weights = y[chosen], weights[chosen]
    X = np.hstack([X[chosen], random.normal(size=(chosen.size, 60))])  # more than half of the memory
    Store.create(tmp_path / "rows.store", X, y, sample_weight=weights)
    alone = by_rows(X, y, FACTORS, weights, loss=loss, C=0.01)
    for solver in ("auto", "blocks"):
        options = {"loss": loss, "class_weight": FACTORS, "C": 0.01, "random_state": 0}
        model = LinearSVC(**options, solver=solver, memory="16M", tol=1e-3).fit(Store(tmp_path / "rows.store"))
        assert fitted_value(model).reads_blocks
        assert_near(model, alone)


def test_partial_fits() -> None:
    X, y, weights = uneven()
    options = {"loss": "hinge", "solver": "pegasos", "lam": 0.1, "random_state": 0}
    model = LinearSVC(class_weight=FACTORS, **options).partial_fit(X, y, [0, 1, 2], weights)
    for k, factor in FACTORS.items():
        s = weights * np.where(y == k, factor, 1.0)
        strength = {"loss": "hinge", "lam": 0.1, "sample_weight": s, "penalized_intercept": True}
        found = certify(X, y == k, model.coef_[k], model.intercept_[k], **strength)
        assert model.certificates_[k].primal == pytest.approx(found.primal, rel=1e-12)


def test_a_fold_is_a_fit_of_its_rows() -> None:
    X, y, weights = uneven()
    whole = PartFits(LinearSVC(class_weight="balanced", tol=TOL), X, y, weights)
    chosen = np.arange(y.size) % 4 != 0
    part = whole.part(chosen, weights)
    model = part.fit(0.1, part.fit(0.01))
    alone = LinearSVC(class_weight="balanced", C=0.1, tol=TOL).fit(X[chosen], y[chosen], weights[chosen])
    for k in range(3):
        gaps = model.certificates[k].gap, alone.certificates_[k].gap
        assert np.linalg.norm(model.coef[k] - alone.coef_[k]) <= distance_bound(*gaps)


def test_searches_and_paths_and_the_choice_of_C() -> None:
    X, y, weights = uneven()
    search = LinearSVCCV(LinearSVC(class_weight=FACTORS, tol=TOL), Cs=[0.1], cv=3).fit(X, y, weights)
    assert_near(search.best_estimator_, by_rows(X, y, FACTORS, weights, C=0.1))
    path = LinearSVC(class_weight=FACTORS).path(X, y, C=(0.05, 0.2), gap=1e-4, sample_weight=weights)
    assert_near(path.model(0.1), by_rows(X, y, FACTORS, weights, C=0.1))
    chosen = LinearSVC(C="auto:low=0.05,high=0.2,size=3", class_weight=FACTORS, tol=TOL).fit(X, y, weights)
    assert_near(chosen, by_rows(X, y, FACTORS, weights, C=chosen.C_))


def test_leave_one_out_estimates_are_those_of_each_class_alone() -> None:
    X, y, weights = uneven()
    model = LinearSVC(class_weight=FACTORS, C=0.1, tol=1e-9).fit(X, y, weights)
    margins = leave_one_out(model, X, y, weights).margins
    for k, one in enumerate(by_rows(X, y, FACTORS, weights, C=0.1)):
        s = weights * np.where(y == k, FACTORS[k], 1.0)
        assert margins[:, k] == pytest.approx(leave_one_out(one, X, y == k, s).margins, abs=1e-2)


def test_kernel_machines() -> None:
    X, y, weights = uneven()
    model = SVC(class_weight=FACTORS, tol=1e-6).fit(X, y, weights)
    of_classes = weights * np.array([FACTORS[k] for k in sorted(FACTORS)])[y]
    by_rows = SVC(gamma=model.kernel_.gamma, tol=1e-6).fit(X, y, of_classes)
    for one, other in zip(model.certificates_, by_rows.certificates_, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=2e-6)
    assert certify_kernel(model, X, y, sample_weight=weights).relative_gap <= 2e-6
