"""Points that lose rows without a pass over the others: their certificates hold, and steps lead to the optimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.answers.steps import KeptPoint
from saddlesvm.estimators.certify import certify_model
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.layouts import as_rows
from support import csr, small_problem

LOSSES = ["hinge", "squared_hinge", "logistic"]


def exact_objectives(problem: Problem, w: np.ndarray, alpha: np.ndarray) -> tuple[Any, Any]:
    """Primal and dual objective in long floats, of the squared hinge."""
    rows = np.hstack([problem.X.values, np.full((problem.y.size, 1), problem.scale)]).astype(np.longdouble)
    kept, s = problem.members, problem.row_weights[problem.members].astype(np.longdouble)
    rows, y, a, w = rows[kept], problem.y[kept], alpha[kept].astype(np.longdouble), w.astype(np.longdouble)
    short, pull = np.maximum(0.0, 1.0 - y * (rows @ w)), problem.C * (rows.T @ a)
    conjugates = -y * a + a * a / (4.0 * s)
    return 0.5 * w @ w + problem.C * (s * short**2).sum(), -problem.C * conjugates.sum() - 0.5 * pull @ pull


def test_certificates_of_points_that_lost_rows_hold_for_the_rows_that_are_left() -> None:
    problem = small_problem(make_loss("squared_hinge"), weights=np.linspace(0.5, 2.0, 60))
    w = np.linspace(-0.5, 0.5, problem.n_features + 1)
    w[-1] *= problem.scale != 0.0
    found = evaluate(problem, Point(w))
    point = KeptPoint(problem, w, found.alpha, found.certificate)
    for k in range(0, 30, 3):
        gone = np.zeros(60, dtype=bool)
        gone[k : k + 3] = True
        point, found = point.without(gone, np.inf)
        primal, dual = exact_objectives(point.problem, w, found.alpha)
        assert dual - 1e-9 * abs(dual) <= found.certificate.dual <= dual
        assert primal <= found.certificate.primal <= primal + 1e-9 * abs(primal)
        assert point.known is not None
        np.testing.assert_allclose(point.known.pull, dual_weights(point.problem, found.alpha), rtol=1e-9, atol=1e-12)
    assert point.problem.members.tolist() == list(range(30, 60))


def rows_of(n: int = 3000, d: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are too many for NumPy's twins of the kernels, and labels with noise."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.4)
    return X, np.where(X @ random.normal(size=d) + random.normal(size=n) > 0.0, 1, 0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("layout", [np.ascontiguousarray, csr, np.float32], ids=["dense", "csr", "float32"])
def test_rows_are_forgotten_one_after_the_other_and_every_model_is_certified(loss: str, layout: Any) -> None:
    X, y = rows_of()
    X = layout(X)
    model = LinearSVC(loss=loss, random_state=0).fit(X, y)
    left, random = np.arange(len(y)), np.random.default_rng(1)
    for count in (1, 1, 30, 300):
        gone = random.choice(left.size, count, replace=False)
        model.forget(gone)
        left = np.delete(left, gone)
        assert str(model.outcome_) == "certified"
        assert model.dual_coef_.shape == (1, left.size)
        own, judged = model.certificate_, certify_model(model, X[left], y[left], refine=50)[0]
        assert own.relative_gap <= model.tol
        assert own.primal == pytest.approx(judged.primal, rel=1e-9)
        assert own.dual <= judged.primal
        assert judged.dual <= own.primal
    fresh = LinearSVC(loss=loss, random_state=0, tol=1e-6).fit(X[left], y[left])
    away = np.linalg.norm(np.append(model.coef_ - fresh.coef_, model.intercept_ - fresh.intercept_))
    assert away <= sum(np.sqrt(2.0 * one.certificate_.gap) for one in (model, fresh))
    assert model.training_data().X.shape == (left.size, X.shape[1])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("layout", [np.ascontiguousarray, csr], ids=["dense", "csr"])
def test_rows_are_learned_and_forgotten_in_turn(loss: str, layout: Any) -> None:
    X, y = rows_of()
    X, weights = layout(X), np.linspace(0.5, 1.5, len(y))
    model = LinearSVC(loss=loss, random_state=0).fit(X[:2000], y[:2000], sample_weight=weights[:2000])
    known = np.arange(2000)
    for last in (2001, 2002, 2030, 2300):
        more = np.arange(known.max() + 1, last)
        model.update(X[more], y[more], sample_weight=weights[more]).forget(range(0, 60, 20))
        known = np.delete(np.append(known, more), range(0, 60, 20))
        own = model.certificate_
        judged = certify_model(model, X[known], y[known], sample_weight=weights[known], refine=50)[0]
        assert own.relative_gap <= model.tol
        assert own.primal == pytest.approx(judged.primal, rel=1e-9)
        assert own.dual <= judged.primal
        assert judged.dual <= own.primal
        assert model.dual_coef_.shape == (1, known.size)
    np.testing.assert_array_equal(model.training_data().y, y[known])
    whole = LinearSVC(loss=loss, random_state=0, tol=1e-6).fit(X[known], y[known], sample_weight=weights[known])
    away = np.linalg.norm(np.append(model.coef_ - whole.coef_, model.intercept_ - whole.intercept_))
    assert away <= sum(np.sqrt(2.0 * one.certificate_.gap) for one in (model, whole))
    assert LinearSVC(loss=loss).fit(X, y).update(X[:3], np.array([0, 1, 2])).classes_.tolist() == [0, 1, 2]


def test_a_regression_and_labels_forget_rows_too() -> None:
    X, y = rows_of()
    targets = X @ np.linspace(-1.0, 1.0, X.shape[1]) + 0.1 * np.random.default_rng(2).normal(size=len(y))
    for loss in ("squared", "epsilon_insensitive"):
        model = LinearSVR(loss=loss, random_state=0).fit(X[:-9], targets[:-9]).forget(range(20))
        model.update(X[-9:], targets[-9:])
        assert model.certificate_.primal == pytest.approx(
            certify_model(model, X[20:], targets[20:])[0].primal, rel=1e-9
        )
    labels = np.column_stack([y, X[:, 0] > 0.0]).astype(int)
    several = LinearSVC(random_state=0).fit(X, labels).forget(range(20))
    assert several.dual_coef_.shape == (2, len(y) - 20)
    assert several.certificate_.relative_gap <= several.tol


def test_other_parameters_pose_another_problem_to_what_is_kept() -> None:
    X, y = rows_of()
    model = LinearSVC(random_state=0).fit(X, y)
    model.set_params(C=0.01)
    model.forget([3])
    model.set_params(C=0.1).forget([4])
    left = np.delete(np.arange(len(y)), [3, 5])
    fresh = LinearSVC(random_state=0, C=0.1).fit(X[left], y[left])
    assert model.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=3e-4)


def test_a_class_that_loses_all_rows_is_refused_and_the_model_stays() -> None:
    X, y = rows_of()
    y = np.where(np.arange(len(y)) < 5, 2, y)
    model = LinearSVC(random_state=0).fit(X, y)
    two = model.forget(range(4)).coef_
    assert model.forget([0]).classes_.tolist() == [0, 1]
    assert two.shape[0] == 3


def test_members_that_are_fewer_keep_the_sizes_that_bound_rounding() -> None:
    problem = small_problem(make_loss("hinge"))
    problem = replace(problem, X=as_rows(problem.X.values, problem.X.bias))
    fewer = problem.among(problem.members[5:])
    assert fewer.row_sizes is problem.row_sizes
    assert fewer.n == problem.members.size - 5
