"""Kernel machines over landmarks: certified, never better than exact ones, and a start for these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

from saddlesvm import SVC, SVR, KernelSVC, OneClassSVM, certify_kernel
from saddlesvm.estimators.persistence import load, save
from saddlesvm.fit.outcome import Outcome
from saddlesvm.rows.kernels import Kernel
from saddlesvm.rows.landmarks import draw_landmarks, make_landmarks


def machine(name: str, **options: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A machine and 900 rows for it."""
    X, y = make_moons(900, noise=0.25, random_state=1)
    if name == "SVC":
        return SVC(gamma=2.0, random_state=0, **options), X, np.where(y > 0, "moon", "other")
    if name == "KernelSVC":
        return KernelSVC(gamma=2.0, random_state=0, **options), X, y
    if name == "SVR":
        return SVR(gamma=2.0, epsilon=0.05, C=5.0, **options), X[:, :1], X[:, 1]
    return OneClassSVM(gamma=2.0, nu=0.1, **options), X, y


NAMES = ["SVC", "KernelSVC", "SVR", "OneClassSVM"]


@pytest.mark.parametrize("name", NAMES)
def test_both_certificates_enclose_what_they_are_about(name: str) -> None:
    """The optimum over landmarks is above the exact one, which is above the exact dual value of the multipliers."""
    model, X, y = machine(name, approximation=30)
    model.fit(X, y)
    exact = clone(model).set_params(approximation=None, tol=1e-5).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.support_.size <= 30
    own, whole = model.certificate_, exact.certificate_
    again = certify_kernel(model, X, y)
    few = 1e-4 * abs(own.primal)  # float32 features
    assert own.primal >= whole.dual - few
    assert again.primal == pytest.approx(own.primal, rel=1e-4)
    assert again.dual <= whole.primal
    assert again.sound
    assert again.dual <= own.dual + few


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_every_intercept_is_certified_over_landmarks(intercept: str) -> None:
    """One against the rest: the landmarks' objective is that of the model in the exact problem."""
    X, y = load_digits(n_class=3, return_X_y=True)
    options = {"intercept": intercept, "intercept_scaling": 2.0, "C": 0.1}
    model = KernelSVC(approximation=40, random_state=0, tol=1e-4, **options).fit(X, y)
    exact = KernelSVC(tol=1e-5, **options).fit(X, y)
    assert model.dual_coef_.shape == (3, 40) and model.n_support_.sum() == 40
    proven = certify_kernel(model, X, y)
    assert proven.primal == pytest.approx(model.certificate_.primal, rel=1e-4)  # float32 features
    assert proven.sound and proven.dual <= exact.certificate_.primal
    assert exact.certificate_.dual <= proven.primal


@pytest.mark.parametrize("name", NAMES)
def test_more_landmarks_come_nearer(name: str) -> None:
    gaps = []
    for count in (8, 200):
        model, X, y = machine(name, approximation=count, tol=1e-4)
        gaps.append(certify_kernel(model.fit(X, y), X, y).relative_gap)
    assert gaps[1] < 0.2 * gaps[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_exact_solver_goes_on_from_the_multipliers(name: str) -> None:
    model, X, y = machine(name, approximation=30, exact_tol=1e-3)
    model.fit(X, y)
    assert not hasattr(model, "multipliers_")
    assert model.certificate_.relative_gap <= 1e-3
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert certify_kernel(model, X, y).relative_gap <= 1.1e-3


def test_a_start_that_suffices_is_not_worked_on() -> None:
    model, X, y = machine("SVC", approximation=400, tol=1e-4, exact_tol=0.5)
    assert model.fit(X, y).n_iter_ == 1
    assert len(model.trace_) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_predicts_the_same(name: str, tmp_path: Path) -> None:
    model, X, y = machine(name, approximation=20)
    save(model.fit(X, y), tmp_path / "landmarks.model")
    again = load(tmp_path / "landmarks.model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.approximation == 20
    assert certify_kernel(again, X, y) == certify_kernel(model, X, y)


def test_pairs_share_the_landmarks() -> None:
    X, y = load_digits(n_class=4, return_X_y=True)
    model = SVC(approximation=150, random_state=0).fit(X, y)
    exact = SVC().fit(X, y)
    assert model.dual_coef_.shape == (6, 150)
    assert model.multipliers_.shape == (6, len(y))
    assert model.n_support_.sum() == model.support_.size == 150
    assert (np.diff(y[model.support_]) >= 0).all()
    assert (model.predict(X) == exact.predict(X)).mean() > 0.97
    assert model.certificate_.primal >= exact.certificate_.dual
    proven = certify_kernel(model, X, y)
    assert exact.certificate_.dual <= proven.primal and proven.dual <= exact.certificate_.primal
    assert proven.primal == pytest.approx(model.certificate_.primal, rel=1e-6) and proven.relative_gap < 0.2
    on = SVC(approximation=150, exact_tol=1e-3, random_state=0).fit(X, y)
    assert on.certificate_.primal >= exact.certificate_.dual
    assert exact.certificate_.primal >= on.certificate_.dual


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_a_seed_repeats_a_fit_and_forms_of_the_rows_agree(kernel: str) -> None:
    model, X, y = machine("SVC", approximation=25, kernel=kernel, coef0=1.0)
    one, two = clone(model).fit(X, y), clone(model).fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    sparse_rows = clone(model).fit(sparse.csr_array(X), y)
    assert sparse_rows.certificate_.primal == pytest.approx(one.certificate_.primal, rel=2e-2)


def test_rows_without_weight_are_no_landmarks() -> None:
    model, X, y = machine("SVC", approximation=40)
    weights = np.random.default_rng(0).integers(0, 2, len(X)).astype(float)
    model.fit(X, y, sample_weight=weights)
    assert weights[model.support_].all()
    assert certify_kernel(model, X, y, sample_weight=weights).sound


def test_auto_takes_small_problems_as_they_are() -> None:
    model, X, y = machine("SVC", approximation="auto")
    assert not hasattr(model.fit(X, y), "multipliers_")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"approximation": 0}, "a whole number of landmarks above 0"),
        ({"approximation": "all"}, "None, 'auto' or a whole number"),
        ({"approximation": 5, "kernel": "sigmoid"}, "positive semi-definite kernel.*got kernel='sigmoid'"),
        ({"approximation": 5, "solver": "kernel-pegasos"}, "needs solver='auto'"),
        ({"exact_tol": 1e-3}, "exact_tol needs approximation"),
        ({"approximation": 5, "exact_tol": 0.0}, "exact_tol must be"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], words: str) -> None:
    model, X, y = machine("SVC", **options)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)


def test_features_have_the_kernel_values_of_the_landmarks() -> None:
    """All landmarks' own features reproduce their kernel matrix; of other rows they never exceed k(x, x)."""
    X = scale(load_digits().data)[:400]
    kernel = Kernel("rbf", 0.01)
    random = np.random.RandomState(3)
    rows = draw_landmarks(kernel, X, np.arange(400), 60, random)
    assert rows.size == np.unique(rows).size == 60
    landmarks = make_landmarks(kernel, X, rows)
    features = landmarks.features(X)
    np.testing.assert_allclose(features[rows] @ features[rows].T, kernel(X[rows], X[rows]), atol=1e-4)
    assert np.einsum("ij,ij->i", features, features).max() <= 1.0 + 1e-4
    first = make_landmarks(kernel, X, rows[:20]).features(X)
    np.testing.assert_allclose(landmarks.features(X, first), features, atol=1e-4)
    more = draw_landmarks(kernel, X, np.arange(100, 200), 40, random, rows[:20])
    np.testing.assert_array_equal(more[:20], rows[:20])
    assert ((more[20:] >= 100) & (more[20:] < 200)).all()


def test_repeated_rows_leave_nothing_to_draw() -> None:
    X = np.repeat(np.eye(3), 50, axis=0)
    rows = draw_landmarks(Kernel("rbf", 1.0), X, np.arange(150), 40, np.random.RandomState(0))
    assert rows.size == 3


def test_a_warm_start_goes_on_from_the_multipliers() -> None:
    model, X, y = machine("SVC", approximation=30, tol=1e-4)
    model.fit(X, y).set_params(approximation=None, warm_start=True, tol=1e-3).fit(X, y)
    assert not hasattr(model, "multipliers_")
    assert model.certificate_.relative_gap <= 1e-3
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


@pytest.mark.parametrize("C", [0.3, 100.0])
@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM])
def test_the_certificate_is_that_of_the_models_own_scores_in_float64(kind, C):
    random = np.random.default_rng(4)
    X = random.normal(size=(800, 4)) + 1.0
    z = X[:, 0] + X[:, 1] ** 2 + 0.3 * random.normal(size=800)
    y = np.where(z > 3.0, 1, -1) if kind is SVC else z
    options = {"nu": 0.2} if kind is OneClassSVM else {"C": C}
    model = kind(approximation=100, gamma=0.3, tol=3e-5, **options).fit(X, y)  # float32's rounding counts
    beta, K = model.dual_coef_[0], rbf_kernel(model.support_vectors_, gamma=0.3)
    scores = model.predict(X) if kind is SVR else model.decision_function(X)
    if kind is SVC:
        paid = C * np.maximum(0.0, 1.0 - y * scores).sum()
    elif kind is SVR:
        paid = C * np.maximum(0.0, np.abs(scores - y) - model.epsilon).sum()
    else:
        paid = np.maximum(0.0, -scores).sum() - 160.0 * model.offset_[0]
    primal, found = 0.5 * float(beta @ K @ beta) + float(paid), model.certificate_
    assert primal <= found.primal + 1e-13 * abs(primal)
    jitter = 0.5e-9 * float(beta @ beta)  # of the kernel matrix of the landmarks
    assert found.primal - primal <= found.primal_rounding + jitter + 1e-10 * abs(primal)
