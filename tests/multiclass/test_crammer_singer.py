"""Crammer and Singer's joint machine: its laws, its optima, its refusals."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import LinearSVC as Liblinear

from saddlesvm import LinearSVC, NotCertifiedWarning, Outcome
from saddlesvm.problem import crammer_singer
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.joint_losses import best_rival_losses, leads
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows import class_rows
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.joint_ascent import threshold
from support import Every, csr, distance_bound
from support.classes import blobs


def joint(X, y, *, bias=1.0, k=None, **options):
    options = {"C": 0.3} | options if "lam" not in options else options
    kind = "regularized" if bias else "none"
    return make_joint_problem(as_rows(X, bias), y, k or int(y.max()) + 1, Hinge(), intercept=kind, **options)


def joint_primal(X, y, coef, intercept, C, weights=None):
    """Crammer and Singer's objective, written without the package's certificate."""
    z = X @ coef.T + intercept
    own = z[np.arange(len(y)), y]
    rivals = z + 1.0 - np.eye(coef.shape[0])[y]
    paid = (np.ones(len(y)) if weights is None else weights) @ (rivals.max(axis=1) - own)
    return 0.5 * (np.vdot(coef, coef) + intercept @ intercept) + C * paid


def feasible(random, problem):
    """A random dual feasible point of a joint problem."""
    y, k = problem.codes, problem.n_classes
    alpha = -random.exponential(size=(y.size, k)) * (random.random((y.size, k)) < 0.5)
    return problem.feasible(alpha)


@pytest.mark.parametrize("seed", range(6))
def test_the_threshold_makes_the_block_sum_to_zero(seed):
    random = np.random.default_rng(seed)
    count, own = int(random.integers(2, 9)), 1
    B, A, s = random.normal(size=count) * 10.0 ** random.integers(-2, 3), random.exponential(), random.exponential()

    def total(beta):
        block = np.minimum(np.where(np.arange(count) == own, s, 0.0), (beta - B) / A)
        return block.sum()

    wide = 1e3 + abs(B).max() * count + A * s * count
    found = threshold(B, count, own, A, s, np.empty(count))
    assert found == pytest.approx(brentq(total, -wide, wide, xtol=1e-13), rel=1e-9, abs=1e-9)


def test_a_threshold_of_small_variables_is_precise_where_the_bounds_are_large():
    B = np.array([0.3, 0.1, -0.7])
    assert threshold(B, 3, 1, 1e12, 1.0, np.empty(3)) == pytest.approx(0.2, rel=1e-15)


def test_rows_without_loss_pay_exactly_nothing():
    random = np.random.default_rng(0)
    scores, own = random.normal(size=(500, 4)), random.integers(0, 4, 500)
    scores[np.arange(500), own] = -np.inf
    scores[np.arange(500), own] = scores.max(axis=1) + 1.0 + 1e-9
    assert not best_rival_losses(scores, own).any()
    assert leads(scores, own) == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("C", [1e3, 1e6, 1e10])
@pytest.mark.parametrize("layout", ["dense", "float32", "csr"])
def test_separable_rows_are_certified_at_any_C(layout, C):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(200, 300)), random.integers(0, 4, 200)
    if layout == "csr":
        X = csr(np.where(random.random(X.shape) < 0.1, X, 0.0))
    X = X.astype(np.float32) if layout == "float32" else X
    model = LinearSVC(multi_class="crammer_singer", loss="hinge", C=C, tol=1e-6, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_weak_duality_of_the_joint_problem(seed):
    random = np.random.default_rng(seed)
    X, y = blobs(seed=seed)
    weights = random.exponential(size=len(y))
    problem = joint(X, y, weights=weights)
    alpha, W = feasible(random, problem), random.normal(size=(3, 5))
    own = evaluate(problem, Point(alpha=alpha))
    other = evaluate(problem, Point(W, alpha))
    assert own.certificate.gap >= 0.0
    assert other.certificate.gap >= 0.0
    assert np.array_equal(other.coef, W[:, :-1]) and np.array_equal(other.intercept, W[:, -1])
    assert own.certificate.dual == pytest.approx(other.certificate.dual)
    assert other.certificate.primal == pytest.approx(joint_primal(X, y, W[:, :-1], W[:, -1], problem.C, weights))
    np.testing.assert_allclose(dual_weights(problem, alpha)[:, :-1], problem.C * alpha.T @ X, atol=1e-12)
    np.testing.assert_allclose(problem.feasible(alpha), alpha, atol=1e-14)


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")  # scikit-learn 1.6 says so at its own end, too
@pytest.mark.parametrize("name", ["iris", "digits"])
@pytest.mark.parametrize("C", [0.01, 0.5])
def test_the_joint_machine_agrees_with_liblinear(name, C):
    X, y = load_iris(return_X_y=True) if name == "iris" else load_digits(return_X_y=True)
    X = X / X.max()
    ours = LinearSVC(multi_class="crammer_singer", C=C, tol=1e-5, random_state=0).fit(X, y)
    theirs = Liblinear(multi_class="crammer_singer", C=C, tol=1e-8, max_iter=100_000, random_state=0).fit(X, y)
    certificate = ours.certificate_
    reached = joint_primal(X, y, theirs.coef_, theirs.intercept_, C)
    assert ours.outcome_ is Outcome.CERTIFIED
    own = joint_primal(X, y, ours.coef_, ours.intercept_, C)
    assert certificate.primal == pytest.approx(own, abs=1.01 * certificate.primal_rounding + 1e-12 * own)
    assert certificate.dual <= reached <= certificate.primal * (1 + 1e-6)


@pytest.mark.parametrize("form", ["float32", "csr", "no shrinking", "lambda", "repeated"])
def test_the_joint_optimum_does_not_depend_on_the_form(form):
    X, y = blobs(k=4)
    weights = np.arange(len(y)) % 3.0
    reference = LinearSVC(multi_class="crammer_singer", tol=1e-7, random_state=0).fit(X, y, weights)
    options = {"multi_class": "crammer_singer", "tol": 1e-7, "random_state": 1}
    if form == "float32":
        single = X.astype(np.float32)
        reference.fit(single.astype(np.float64), y, weights)
        other = LinearSVC(**options).fit(single, y, weights)
    elif form == "csr":
        other = LinearSVC(**options).fit(csr(X), y, weights)
    elif form == "no shrinking":
        other = LinearSVC(**options, solver=CrammerSinger(shrinking=False)).fit(X, y, weights)
    elif form == "lambda":
        other = LinearSVC(**options, lam=1.0 / len(y)).fit(X, y, weights)
        assert other.certificate_.primal * len(y) == pytest.approx(reference.certificate_.primal, rel=2e-7)
    else:
        times = weights.astype(int)
        other = LinearSVC(**options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    gaps = [model.certificate_.gap * (len(y) if model.lam else 1.0) for model in (reference, other)]
    assert np.linalg.norm(reference.coef_ - other.coef_) <= distance_bound(*gaps)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("some", [False, True], ids=["all rows", "some rows"])
def test_a_certificate_holds_the_scores_of_some_rows_at_a_time(sparse, some, monkeypatch):
    X, y = blobs(400, 5, 60)
    members = {"members": np.arange(0, 400, 2)} if some else {}
    problem = joint(csr(X) if sparse else X, y, **members)
    alpha = feasible(np.random.default_rng(0), problem)
    W = dual_weights(problem, alpha)
    points = [Point(None, alpha), Point(W, None), Point(W, alpha), Point(W, alpha, tracks=True)]
    whole = [evaluate(problem, point, exact=not point.tracks).certificate for point in points]
    monkeypatch.setattr(crammer_singer, "SIZED_VALUES", 1_000)
    monkeypatch.setattr(class_rows, "BLOCK_VALUES", 4_000)
    monkeypatch.setattr(class_rows, "FEWEST_ROWS", 1)
    for point, expected in zip(points, whole, strict=True):
        tracemalloc.start()
        found = evaluate(problem, point, exact=not point.tracks).certificate
        peak = tracemalloc.get_traced_memory()[1] - (alpha.nbytes if point.alpha is None else 0)
        tracemalloc.stop()
        np.testing.assert_allclose((found.primal, found.dual), (expected.primal, expected.dual), rtol=1e-12)
        assert peak < alpha.nbytes / 2


def test_two_classes_of_the_joint_machine_are_the_binary_machine_with_twice_C():
    X, y = blobs(k=2)
    both = LinearSVC(multi_class="crammer_singer", C=0.5, tol=1e-8).fit(X, y)
    binary = LinearSVC(loss="hinge", C=1.0, tol=1e-8).fit(X, y)
    assert both.coef_.shape == binary.coef_.shape
    assert 2 * both.certificate_.primal == pytest.approx(binary.certificate_.primal, rel=2e-8)
    far = distance_bound(binary.certificate_.gap) + 2.0 * distance_bound(both.certificate_.gap)
    assert np.linalg.norm(both.coef_ - binary.coef_) <= far
    apart = np.linalg.norm(both.dual_coef_ @ X - both.coef_)  # half the square of it, in each class, is in the gap
    assert apart <= 2.0 * distance_bound(both.certificate_.gap)


def test_a_row_of_zeros_is_certified_too():
    X, y = blobs()
    X[4] = 0.0
    model = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-6).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED


def test_a_joint_fit_goes_on_from_its_checkpoint(tmp_path):
    X, y = blobs(k=4)
    options = {"multi_class": "crammer_singer", "tol": 1e-6, "random_state": 3, "callbacks": [Every(1)]}
    straight = LinearSVC(**options, checkpoint=tmp_path / "straight").fit(X, y)
    with pytest.warns(NotCertifiedWarning):
        LinearSVC(**options | {"callbacks": [Every(1, lambda record: True)]}, checkpoint=tmp_path / "state").fit(X, y)
    resumed = LinearSVC(**options, checkpoint=tmp_path / "state").fit(X, y)
    assert resumed.outcome_ is Outcome.CERTIFIED
    gaps = straight.certificate_.gap, resumed.certificate_.gap
    assert np.linalg.norm(straight.coef_ - resumed.coef_) <= distance_bound(*gaps)


def test_the_joint_problem_refuses_what_it_does_not_have():
    X, y = blobs()
    for options, said in [
        ({"loss": "logistic"}, "hinge"),
        ({"intercept": "free"}, "free intercept"),
        ({"solver": "sdca"}, "solver of its own"),
    ]:
        with pytest.raises(ValueError, match=said):
            LinearSVC(multi_class="crammer_singer", **options).fit(X, y)
    with pytest.raises(ValueError, match="multi_class"):
        LinearSVC(multi_class="all").fit(X, y)
    with pytest.raises(ValueError, match="supports multi_class"):
        LinearSVC(solver=CrammerSinger()).fit(X, y)
    with pytest.raises(ValueError, match="hinge"):
        make_joint_problem(as_rows(X), y, 3, SquaredHinge(), C=1.0)


@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize("empty", [False, True])
def test_a_visit_leaves_the_row_without_a_share_of_the_gap(intercept, empty):
    X, y = blobs(n=8, k=4, seed=3)
    X[0] *= not empty
    design = as_rows(X, 0.0 if intercept == "none" else 1.0)
    for row in range(8):
        given = {"C": 2.0, "members": np.array([row]), "intercept": intercept}
        problem = make_joint_problem(design, y, 4, Hinge(), **given)
        state = CrammerSinger().step(problem, CrammerSinger().init(problem, 0), Budget(1))
        certificate = evaluate(problem, CrammerSinger().solution(problem, state)).certificate
        assert abs(certificate.gap) <= 1e-12 * certificate.primal
