"""The multipliers that users read: a feasible point of the dual, whose objective is the bound that the fit proved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import svm as theirs
from sklearn.datasets import load_wine, make_classification
from sklearn.preprocessing import scale

import saddlesvm as ours
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.mercer import gram

STRENGTHS = (1e-3, 0.3, 10.0, 1e3, 1e4)
ROUNDED = 1e-12  # of a sum of multipliers, or of a bound


def fitted(name: str, kernel: str, C: float, tol: float, n: int = 90) -> tuple[Any, np.ndarray, np.ndarray]:
    """A fit to noisy rows, the rows, and labels -1 and +1, or targets."""
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 3))
    z = X[:, 0] + random.normal(size=n)
    y = np.where(z > 0.0, 1.0, -1.0) if name in ("SVC", "NuSVC") else z
    options = {"nu": 0.55} if name in ("NuSVC", "OneClassSVM") else {"C": C}
    if name == "OneClassSVM":
        X += 1.0
    model = getattr(ours, name)(kernel=kernel, gamma=0.3, coef0=1.0, degree=2, tol=tol, **options)
    return model.fit(X, y), X, y


def spread(model: Any, n: int) -> np.ndarray:
    """The multipliers of all rows, with their signs, shape (n,)."""
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta


def dual_objective(model: Any, name: str, beta: np.ndarray, y: np.ndarray, f: np.ndarray) -> float:
    half = 0.5 * float(beta @ f)
    if name == "OneClassSVM":
        return -half
    linear = np.abs(beta).sum() if name == "SVC" else beta @ y - model.epsilon * np.abs(beta).sum()
    return float(linear) - half


@pytest.mark.filterwarnings("ignore:.*limited_by_rounding")  # sums of multipliers of 1e4 have no eight digits
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("C", STRENGTHS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_they_are_a_dual_point_that_proves_the_bound(name: str, kernel: str, C: float, tol: float) -> None:
    model, X, y = fitted(name, kernel, C, tol)
    beta, found = spread(model, len(X)), model.certificate_
    assert np.abs(beta).max() <= C
    assert abs(beta.sum()) <= ROUNDED * len(X) * np.abs(beta).sum()
    f = gram(model.kernel_, X) @ beta
    scores = model.decision_function(X) if name == "SVC" else model.predict(X)
    np.testing.assert_allclose(
        f + model.intercept_[0], scores, rtol=0, atol=ROUNDED * len(X) * (1 + np.abs(beta).sum())
    )
    dual = dual_objective(model, name, beta, y, f)
    assert dual == pytest.approx(found.dual, rel=0, abs=2.0 * found.dual_rounding + ROUNDED * abs(dual))
    # what each row adds to the gap: nothing is off the margin by more than the gap allows
    if name == "SVC":
        beyond, size = y * scores - 1.0, np.abs(beta)
        assert (beta * y >= 0.0).all()
    else:
        beyond = model.epsilon - np.sign(np.where(beta == 0.0, 1.0, beta)) * (y - scores)
        beyond = np.where(beta == 0.0, model.epsilon - np.abs(y - scores), beyond)
        size = np.abs(beta)
    apart = np.maximum(beyond, 0.0) * size + np.maximum(-beyond, 0.0) * (C - size)
    assert apart.sum() <= found.gap * (1.0 + 1e-6) + 2.0 * found.rounding + ROUNDED * len(X) * abs(dual)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("name", ["NuSVC", "NuSVR", "OneClassSVM"])
def test_those_of_machines_with_nu_have_the_sums_asked_for(name: str, kernel: str, tol: float) -> None:
    model, X, y = fitted(name, kernel, 2.0, tol)
    beta, n = spread(model, len(X)), len(X)
    slip = ROUNDED * n * np.abs(beta).sum()
    if name == "OneClassSVM":
        assert beta.min() >= 0.0 and beta.max() <= 1.0
        assert beta.sum() == pytest.approx(model.nu * n, abs=slip)
    elif name == "NuSVR":
        assert np.abs(beta).max() <= model.C and abs(beta.sum()) <= slip
        assert np.abs(beta).sum() <= model.C * model.nu * n + slip
    else:  # divided by rho: each class has nu n / 2 in units of the largest
        assert abs(beta.sum()) <= slip and (beta * y >= 0.0).all()
        assert np.abs(beta).max() <= np.abs(beta).sum() / (model.nu * n) * (1.0 + ROUNDED * n)


@pytest.mark.parametrize(("C", "tol"), [(1000.0, 1e-6), (1e4, 1e-3)])
def test_a_linear_kernel_at_a_large_C_has_the_support_vectors_of_libsvm(C: float, tol: float) -> None:
    X, y = make_classification(150, 5, flip_y=0.1, random_state=0)
    own = ours.SVC(kernel="linear", C=C, tol=tol).fit(X, y)
    other = theirs.SVC(kernel="linear", C=1000.0, tol=1e-6).fit(X, y)  # the same rows are off the margin from there on
    assert own.n_support_.tolist() == other.n_support_.tolist() == [26, 25]
    np.testing.assert_array_equal(own.support_, other.support_)
    assert np.abs(own.dual_coef_).max() == C
    assert np.count_nonzero(np.abs(own.dual_coef_) < C) <= X.shape[1] + 1  # the rows on the margin


def test_a_small_gap_does_not_make_all_rows_support_vectors() -> None:
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    own, other = ours.SVR(tol=1e-10).fit(X, y), theirs.SVR(tol=1e-10).fit(X, y)
    np.testing.assert_array_equal(own.support_, other.support_)
    np.testing.assert_allclose(own.dual_coef_, other.dual_coef_, atol=1e-4)


@pytest.mark.parametrize("name", ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"])
def test_a_fit_that_ends_early_has_feasible_ones_too(name: str) -> None:
    random = np.random.default_rng(5)
    X = random.normal(size=(700, 2)) + 0.5
    y = X[:, 0] + random.normal(size=700)
    y = np.where(y > 0.5, 1.0, -1.0) if name in ("SVC", "NuSVC") else y
    options: dict[str, Any] = {"nu": 0.4} if name in ("NuSVC", "OneClassSVM") else {"C": 20.0}
    # A cache too small for the kernel matrix: the solver takes working sets of a few rows.
    options |= {"solver": Decomposition(block=8, working_set=16), "cache_size": 1.0}
    with pytest.warns(ours.NotCertifiedWarning):
        model = getattr(ours, name)(max_iter=0.2, tol=1e-12, **options).fit(X, y)
    beta = spread(model, 700)
    slip = ROUNDED * 700 * np.abs(beta).sum()
    assert beta.sum() == pytest.approx(280.0 if name == "OneClassSVM" else 0.0, abs=slip)
    if name != "NuSVC":
        assert np.abs(beta).max() <= options.get("C", 1.0)
    if name == "NuSVC" and beta.any():
        assert np.abs(beta).max() <= np.abs(beta).sum() / 280.0 * (1.0 + ROUNDED * 700)


@pytest.mark.parametrize("kind", [ours.SVC, ours.SVR, ours.NuSVR])
def test_an_infinite_C_is_refused(kind: Any) -> None:
    X = np.arange(6.0)[:, None] % 3
    with pytest.raises(ValueError, match=r"C must be a positive finite number, from .*; got inf"):
        kind(C=np.inf).fit(X, X[:, 0] > 1)


def test_a_nu_without_a_margin_gives_a_dual_point_and_a_warning() -> None:
    X, y = load_wine(return_X_y=True)
    X, y = np.repeat(X[:40, :2], 2, axis=0), np.arange(80) % 2
    with pytest.warns(ours.NotCertifiedWarning, match="the optimum is w = 0"):
        model = ours.NuSVC(nu=0.5).fit(X, y)
    beta = spread(model, 80)
    assert np.abs(beta).sum() == pytest.approx(40.0) and np.abs(beta).max() <= 1.0
    assert abs(beta.sum()) <= ROUNDED * 80 * 40.0
    assert model.fit_status_ == 1


@pytest.mark.parametrize("max_iter", [1, 3, 30, -1])
@pytest.mark.parametrize(("kernel", "seed"), [("linear", 0), ("rbf", 1), ("poly", 2), ("linear", 3)])
@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")
def test_the_certificate_of_nusvc_is_that_of_its_multipliers_however_it_ends(
    kernel: str, seed: int, max_iter: int
) -> None:
    random = np.random.default_rng(seed)
    X = random.normal(size=(120, 3)) * 10.0 ** random.uniform(-2.0, 2.0)
    y = np.where(X[:, 0] + X[:, 0].std() * random.normal(size=120) > 0.0, 1, -1)
    model = ours.NuSVC(nu=random.uniform(0.1, 0.7), kernel=kernel, gamma=0.3, coef0=1.0, degree=2, tol=1e-9)
    solver = Decomposition(block=4, working_set=8)
    model.set_params(max_iter=max_iter, solver=solver).fit(X, y)
    own, again = model.certificate_, ours.certify_kernel(model, X, y)
    allowed = 2.0 * (own.rounding + again.rounding)
    assert again.primal == pytest.approx(own.primal, rel=1e-9, abs=allowed)
    assert again.dual == pytest.approx(own.dual, rel=1e-9, abs=allowed) or own.dual > again.dual  # of another point
