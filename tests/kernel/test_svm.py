"""SVC, NuSVC, SVR, NuSVR and OneClassSVM: scikit-learn's checks, LIBSVM's optima, and what is kept of a fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as theirs
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import saddlesvm as ours
from saddlesvm import Certificate, NotCertifiedWarning, NuSVR, Outcome, certify_kernel
from saddlesvm.kernel.decomposition import Decomposition

NAMES = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]
LABELLED, WITH_TARGETS = ["SVC", "NuSVC"], ["SVR", "NuSVR"]
REPEATED = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
LOOSE = "compares predictions to 1e-7 at the default tol, which proves less"
EXCUSED = {
    "NuSVC": dict.fromkeys((*REPEATED, "check_class_weight_classifiers"), "the weights make nu infeasible"),
    "OneClassSVM": dict.fromkeys(REPEATED, "rows on the surface have the score zero, and either sign"),
    **{name: dict.fromkeys(REPEATED, LOOSE) for name in ("SVC", "SVR", "NuSVR")},
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # of scikit-learn, about labels of NaN
@parametrize_with_checks(
    [getattr(ours, name)() for name in NAMES],
    expected_failed_checks=lambda model: EXCUSED.get(type(model).__name__, {}),
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """120 rows or so: three classes, or targets."""
    if name in LABELLED:
        X, y = load_iris(return_X_y=True)
        return scale(X), np.array(["a", "b", "c"])[y]
    X, y = load_diabetes(return_X_y=True)
    return scale(X[:150]) + (name == "OneClassSVM"), scale(y[:150])


def both(name: str, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> tuple[Any, Any]:
    """The same machine trained by both; ours to a gap of 1e-7."""
    one = getattr(theirs, name)(**options, tol=1e-7).fit(X, y, sample_weight=sample_weight)
    return one, getattr(ours, name)(**options, tol=1e-7).fit(X, y, sample_weight=sample_weight)


def scores(model: Any, X: Any) -> np.ndarray:
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def reach(model: Any) -> float:
    """How far scores can be apart: the certified gaps and LIBSVM's own tolerance; NuSVC divides both by rho.

    Rows are no longer than 10 in the feature spaces here.
    """
    apart = 10.0 * np.sqrt(2.0 * sum(max(one.gap, 0.0) for one in model.certificates_)) + 1e-4
    return apart * (max(1.0, np.abs(model.dual_coef_).max()) if isinstance(model, ours.NuSVC) else 1.0)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("strength", [0.11, 0.33, 0.63])  # times the rows no whole numbers: offsets are unique
@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_libsvm(name, strength, kernel):
    X, y = data(name)
    options = {"C": 5.0 * strength} if name in ("SVC", "SVR") else {"nu": strength}
    other, own = both(name, X, y, kernel=kernel, gamma=0.1, **options)
    assert own.outcome_ is Outcome.CERTIFIED
    np.testing.assert_allclose(scores(own, X), scores(other, X), atol=reach(own))
    assert own.dual_coef_.shape[0] == other.dual_coef_.shape[0]
    assert own.intercept_.shape == other.intercept_.shape
    assert own.n_support_.shape == other.n_support_.shape
    assert own.support_.dtype == other.support_.dtype
    assert own.n_support_.sum() == own.support_.size == own.dual_coef_.shape[1]
    np.testing.assert_array_equal(own.support_vectors_, X[own.support_])


@pytest.mark.parametrize("name", NAMES)
def test_row_weights_mean_what_they_mean_to_libsvm(name):
    X, y = data(name)
    weights = np.random.default_rng(3).uniform(0.2, 2.0, len(X))
    options = {"kernel": "rbf", "gamma": 0.2} | ({"nu": 0.4} if "Nu" in name or "One" in name else {})
    other, own = both(name, X, y, weights, **options)
    np.testing.assert_allclose(scores(own, X), scores(other, X), atol=reach(own))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_scikit_learn_is_certified(name):
    X, y = data(name)
    weights = np.random.default_rng(3).uniform(0.2, 2.0, len(X))
    options = {"nu": 0.3} if "Nu" in name or "One" in name else {}
    other = getattr(theirs, name)(tol=1e-5, **options).fit(X, y, sample_weight=weights)
    found = ours.certify_kernel(other, X, y, sample_weight=weights)
    assert 0.0 <= found.relative_gap <= 1e-3
    with pytest.raises(ValueError):
        ours.certify_kernel(other, X[:10], y[:10])


@pytest.mark.parametrize("name", NAMES)
def test_their_model_is_no_better_than_the_bound(name):
    """LIBSVM's multipliers are feasible here: their dual objective is below our primal one, ours below theirs."""
    X, y = data(name)
    if name in LABELLED:
        X, y = X[y != "c"], y[y != "c"]
    options = {} if name in ("SVC", "SVR") else {"nu": 0.3}
    other, own = both(name, X, y, gamma=0.1, **options)
    K = rbf_kernel(X, gamma=0.1)
    beta = np.zeros(len(X))
    beta[other.support_] = other.dual_coef_[0]
    half = 0.5 * beta @ K @ beta
    scale_of = 1.0
    if name == "SVC":
        dual = np.abs(beta).sum() - half
    elif name == "SVR":
        dual = beta @ y - 0.1 * np.abs(beta).sum() - half
    elif name == "NuSVR":
        dual = beta @ y - half
    elif name == "OneClassSVM":
        dual = -half
    else:  # NuSVC divides by rho
        scale_of = 0.3 * len(X) / np.abs(beta).sum()
        dual = -half * scale_of**2
    certificate = own.certificate_
    allowed = 1e-5 * abs(dual) + 1e-9
    assert certificate.primal >= dual - allowed
    assert certificate.dual == pytest.approx(dual, abs=allowed + certificate.gap)


@pytest.mark.parametrize("name", NAMES)
def test_precomputed_callable_and_sparse_rows_give_the_same_scores(name):
    X, y = data(name)
    X, test = X[::2], X[1::4]
    y = y[::2]
    make = getattr(ours, name)
    options = {"tol": 1e-9} | ({"nu": 0.3} if "Nu" in name or "One" in name else {})
    reference = make(gamma=0.2, **options).fit(X, y)
    given = make(kernel="precomputed", **options).fit(rbf_kernel(X, gamma=0.2), y)
    called = make(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.2), **options).fit(X, y)
    rows = make(gamma=0.2, **options).fit(sparse.csr_array(X), y)
    expected, allowed = scores(reference, test), reach(reference)
    np.testing.assert_allclose(scores(given, rbf_kernel(test, X, gamma=0.2)), expected, atol=allowed)
    np.testing.assert_allclose(scores(called, test), expected, atol=allowed)
    np.testing.assert_allclose(scores(rows, sparse.csr_array(test)), expected, atol=allowed)


@pytest.mark.parametrize("name", NAMES)
def test_linear_weights_are_those_of_the_scores(name):
    X, y = data(name)
    model = getattr(ours, name)(kernel="linear").fit(X, y)
    found = model.decision_function(X) if name == "OneClassSVM" else None
    if name in LABELLED:
        found = model.set_params(decision_function_shape="ovo").decision_function(X)
    if name in WITH_TARGETS:
        found = model.predict(X)
    np.testing.assert_allclose((X @ model.coef_.T + model.intercept_).reshape(found.shape), found, atol=1e-9)
    with pytest.raises(AttributeError, match="linear"):
        model.set_params(kernel="rbf").coef_  # noqa: B018


@pytest.mark.parametrize("name", ["NuSVC", "NuSVR", "OneClassSVM"])
@pytest.mark.parametrize("nu", [0.1, 0.35, 0.7])
def test_nu_bounds_the_shares_of_errors_and_of_support_vectors(name, nu):
    X, y = data(name)
    if name in LABELLED:
        X, y = X[50:], y[50:]
    model = getattr(ours, name)(nu=nu, gamma=0.1, tol=1e-9).fit(X, y)
    slip = 1e-4
    if name == "NuSVC":
        signs = np.where(y == model.classes_[1], 1.0, -1.0)
        errors = signs * model.decision_function(X) < 1.0 - slip
    elif name == "NuSVR":
        away = np.abs(model.predict(X) - y)
        inner = (np.abs(model.dual_coef_[0]) < model.C * (1.0 - 1e-6)) & (np.abs(model.dual_coef_[0]) > 1e-6)
        errors = away > away[model.support_[inner]].max() + slip
    else:
        errors = model.decision_function(X) < -slip * abs(model.offset_)
    assert errors.mean() <= nu + 1e-9
    assert model.support_.size >= nu * len(X) - 1e-6


def test_a_fit_without_a_surface_or_a_margin_ends():
    X = scale(load_iris(return_X_y=True)[0])
    with pytest.warns(NotCertifiedWarning):
        model = ours.OneClassSVM(kernel="linear").fit(X)  # the origin is amid the rows
    assert np.abs(model.coef_).max() < 1e-3
    same = np.repeat(X[:20], 2, axis=0)
    with pytest.warns(NotCertifiedWarning, match="the optimum is w = 0: nu is too small"):
        model = ours.NuSVC().fit(same, np.arange(40) % 2)
    assert model.outcome_ is Outcome.RULE_MET


def test_a_nu_that_a_class_is_too_small_for_is_refused():
    X, y = data("NuSVC")
    with pytest.raises(ValueError, match=r"nu=0.9 is infeasible: the smaller class allows at most 0.33"):
        ours.NuSVC(nu=0.9).fit(X[:60], y[:60] == "b")
    with pytest.raises(ValueError, match=r"nu must be a number above 0, and at most 1; got 1.5"):
        ours.OneClassSVM(nu=1.5).fit(X)


def test_votes_ties_and_both_shapes():
    X, y = load_wine(return_X_y=True)
    X = scale(X)[:, :2]
    other, own = both("SVC", X, y, gamma=0.5, decision_function_shape="ovo", random_state=0)
    np.testing.assert_allclose(own.decision_function(X), other.decision_function(X), atol=1e-3)
    with pytest.raises(ValueError, match="break_ties must be False"):
        clone(own).set_params(break_ties=True).fit(X, y).predict(X)
    model = clone(own).set_params(decision_function_shape="ovr", break_ties=True).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    clear = np.abs(own.decision_function(X)).min(axis=1) > 1e-3
    np.testing.assert_array_equal(own.predict(X)[clear], other.predict(X)[clear])


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_ends_a_fit_with_a_true_bound(name):
    X, y = data(name)
    X, y = (
        np.repeat(X, 6, axis=0) + 0.3 * np.random.default_rng(0).normal(size=(6 * len(X), X.shape[1])),
        np.repeat(y, 6),
    )
    options = {"nu": 0.3} if "Nu" in name or "One" in name else {"C": 50.0}
    make = getattr(ours, name)
    with pytest.warns(NotCertifiedWarning):
        solver = Decomposition(working_set=512)
        early = make(**options, max_iter=0.05, tol=1e-9, cache_size=1.0, solver=solver).fit(X, y)
    assert early.outcome_ is Outcome.EPOCH_LIMIT
    assert early.fit_status_ == 1
    best = make(**options, tol=1e-6).fit(X, y)
    assert best.fit_status_ == 0
    assert early.certificate_.primal >= best.certificate_.dual
    assert early.certificate_.dual <= best.certificate_.primal


def test_callbacks_see_every_certificate_and_can_stop():
    X = data("OneClassSVM")[0]
    seen = []
    model = ours.OneClassSVM(callbacks=[lambda record: seen.append(record) or True], tol=0).fit(X)
    assert model.outcome_ is Outcome.INTERRUPTED
    assert len(seen) == 1
    assert seen[0].gap >= 0.0


@pytest.mark.parametrize("name", ["NuSVC", "NuSVR", "OneClassSVM"])
def test_kernel_pegasos_refuses_the_machines_with_nu(name):
    """It once wrote past the end of its arrays for NuSVR, whose rows stand in its problem twice."""
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(ValueError, match="does not solve the machines with nu"):
        getattr(ours, name)(solver="kernel-pegasos", max_iter=2).fit(X, [0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize("target", [0.0, 1.0, -1e6])
@pytest.mark.parametrize("options", [{}, {"kernel": "linear", "nu": 0.1}, {"nu": 1.0}], ids=str)
def test_equal_targets_have_a_certified_model_without_vectors(target, options):
    rows = np.random.default_rng(0).normal(size=(50, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NuSVR(**options).fit(rows, np.full(50, target))
    assert model.certificate_ == Certificate(0.0, 0.0) and str(model.outcome_) == "certified"
    assert model.support_.size == 0 and (model.predict(rows) == target).all()
    assert not certify_kernel(model, rows, np.full(50, target)).primal > 1e-9 * (1.0 + abs(target))
    again = model.fit(rows, rows[:, 0])
    assert again.support_.size and again.certificate_.relative_gap <= 1e-3


def test_classes_that_overlap_leave_no_margin_until_nu_is_raised():
    X, y = make_moons(150, noise=0.3, random_state=0)
    with pytest.warns(NotCertifiedWarning, match="nu is too small"):
        ours.NuSVC(nu=0.1, kernel="linear").fit(X, y)
    assert ours.NuSVC(nu=0.8, kernel="linear").fit(X, y).outcome_ is Outcome.CERTIFIED
