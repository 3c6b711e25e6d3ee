"""The column solver: its optimum is that of others, and its dual points are feasible."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC as OfLiblinear

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.losses import Absolute, Hinge, Huber, Logistic, Loss, SquaredHinge
from saddlesvm.problem.penalties import L1, ElasticNet, Penalty
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import Columns
from saddlesvm.solvers.columns.solver import bring_inside, penalty_factors
from saddlesvm.solvers.machines import ALL, make_machine
from support import csr, features, labels, matrix, named

SMOOTH = [SquaredHinge(), Logistic(), Huber(1.0)]
KINKED = [Hinge(), Absolute()]
every_kind = pytest.mark.parametrize("kind", ["none", "regularized", "free"])
every_penalty = pytest.mark.parametrize("penalty", [L1(1.0), ElasticNet(1.0)], ids=["l1", "elasticnet"])


def problem_of(
    loss: Loss, penalty: Penalty, kind: str = "regularized", sparse: bool = False, shape: tuple[int, int] = (50, 8),
    C: float = 0.5, **more: Any,
) -> Problem:  # fmt: skip
    X = matrix(*shape, 0, density=0.5 if sparse else 1.0)
    rows = as_rows(csr(X) if sparse else X, 0.0 if kind == "none" else 1.5)
    options: Any = {"C": C, "intercept": kind, "penalty": penalty} | more
    return make_problem(rows, labels(X, loss, 0), loss, **options)


@every_kind
@every_penalty
@pytest.mark.parametrize("loss", SMOOTH + KINKED, ids=named)
def test_every_loss_is_certified_and_its_dual_point_feasible(loss: Loss, penalty: Penalty, kind: str) -> None:
    problem = problem_of(loss, penalty, kind)
    result = fit(problem, Columns(), Limits(tol=1e-7, max_epochs=300))
    assert 0.0 <= result.certificate.relative_gap <= 1e-7
    pull = dual_weights(problem, result.alpha)
    if isinstance(penalty, L1):
        charged = pull if kind == "regularized" else pull[:-1]
        assert np.abs(charged).max() <= 1.0 + 1e-12
    if kind == "free":
        assert abs(result.alpha.sum()) <= 1e-12 * np.abs(result.alpha).sum()
    # a weight of zero has a pull of at most l1; another one is where its pull wants it
    square, l1 = penalty.factors()
    slack = math.sqrt(2.0 * result.certificate.gap * problem.C * 4.0 * problem.norms.sum()) + 1e-9
    if any(isinstance(loss, type(one)) for one in SMOOTH):
        held = result.coef != 0.0
        wanted = square * result.coef + l1 * np.sign(result.coef)
        assert np.abs(pull[:-1] - wanted)[held].max(initial=0.0) <= slack
        assert np.abs(pull[:-1])[~held].max(initial=0.0) <= l1 + slack


def plainly(problem: Problem, steps: int) -> float:
    """The objective after proximal gradient steps with momentum: no code of the package but the losses."""
    A, (square, l1) = features(problem), problem.penalty.factors()
    charges = np.full(A.shape[1], l1)
    bent = problem.loss.largest_curvature()
    length = 1.0 / (square + problem.C * bent * np.linalg.norm(A, 2) ** 2)

    def slope(w: np.ndarray) -> np.ndarray:
        g = [problem.loss.subgradient(z, y) for z, y in zip(A @ w, problem.y, strict=True)]
        return square * w + problem.C * (A.T @ np.array(g))

    w = before = np.zeros(A.shape[1])
    for k in range(steps):
        at = w + k / (k + 3.0) * (w - before)
        moved = at - length * slope(at)
        before, w = w, np.sign(moved) * np.maximum(np.abs(moved) - length * charges, 0.0)
    paid = sum(problem.loss.value(z, y) for z, y in zip(A @ w, problem.y, strict=True))
    return float(square * (w @ w) / 2.0 + charges @ np.abs(w) + problem.C * paid)


@every_penalty
@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic(), Huber(1.0)], ids=named)
def test_the_optimum_is_that_of_proximal_gradient_steps(loss: Loss, penalty: Penalty) -> None:
    problem = problem_of(loss, penalty, "none", C=1.0)
    found = fit(problem, Columns(), Limits(tol=1e-9, max_epochs=100)).certificate
    other = plainly(problem, 3000)
    assert found.dual <= other * (1.0 + 1e-12)
    assert other <= found.primal * (1.0 + 1e-6)


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=named)
@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
def test_the_optimum_is_that_of_liblinear(loss: Loss, C: float) -> None:
    X = matrix(120, 15, 1)
    y = labels(X, loss, 1)
    options: Any = {"C": C, "tol": 1e-8, "max_iter": 100_000, "random_state": 0, "intercept_scaling": 1.0}
    if isinstance(loss, SquaredHinge):
        other = OfLiblinear(penalty="l1", dual=False, **options).fit(X, y)
    else:
        other = LogisticRegression(l1_ratio=1.0, solver="liblinear", **options)
        if other.get_params().get("penalty") == "l2":
            other.set_params(penalty="l1", l1_ratio=None)
        other.fit(X, y)
    problem = make_problem(as_rows(X, 1.0), y, loss, C=C, intercept="regularized", penalty=L1(1.0))
    found = fit(problem, Columns(), Limits(tol=1e-9, max_epochs=100))
    z = X @ other.coef_.ravel() + other.intercept_[0]
    paid = sum(loss.value(one, label) for one, label in zip(z, y, strict=True))
    objective = np.abs(other.coef_).sum() + abs(other.intercept_[0]) + C * paid
    assert found.certificate.dual <= objective <= found.certificate.primal * (1.0 + 1e-6)
    assert np.array_equal(found.coef != 0.0, other.coef_.ravel() != 0.0)


@every_penalty
@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic()], ids=named)
def test_models_of_sparse_rows_lead_to_the_optimum_of_dense_rows(loss: Loss, penalty: Penalty) -> None:
    # At this C most rows hardly bend: models of sparse columns leave them out, those of dense ones do not.
    X = matrix(200, 450, 0, density=0.1)
    options: Any = {"C": 30.0, "intercept": "regularized", "penalty": penalty}
    problems = [make_problem(as_rows(rows, 1.5), labels(X, loss, 0), loss, **options) for rows in (csr(X), X)]
    sparse, dense = (fit(problem, Columns(), Limits(tol=1e-7)).certificate for problem in problems)
    assert 0.0 <= sparse.relative_gap <= 1e-7
    assert 0.0 <= dense.relative_gap <= 1e-7
    assert sparse.dual <= dense.primal
    assert dense.dual <= sparse.primal


def test_rows_of_weight_zero_count_for_nothing_and_float32_stays_close() -> None:
    X = matrix(80, 10)
    y, weights = labels(X, Logistic()), np.repeat([0.0, 1.0, 2.0, 0.5], 20)
    options: Any = {"C": 1.0, "intercept": "regularized", "penalty": L1(1.0)}
    for kind in (np.asarray, csr):
        part = make_problem(as_rows(kind(X), 1.0), y, Logistic(), weights=weights, **options)
        heavy = weights > 0.0
        rest = make_problem(as_rows(kind(X[heavy]), 1.0), y[heavy], Logistic(), weights=weights[heavy], **options)
        found, alone = (fit(one, Columns(), Limits(tol=1e-9)).certificate for one in (part, rest))
        assert found.primal == pytest.approx(alone.primal, rel=1e-8)
    single = make_problem(as_rows(X.astype(np.float32), 1.0), y, Logistic(), weights=weights, **options)
    assert fit(single, Columns(), Limits(tol=1e-9)).certificate.primal == pytest.approx(found.primal, rel=1e-5)


def test_dependent_columns_and_empty_ones_do_no_harm() -> None:
    X = matrix(60, 6)
    X = np.hstack([X, X[:, :3], np.zeros((60, 2)), X[:, :1] - X[:, 1:2]])
    for C in (0.1, 100.0):
        problem = make_problem(
            as_rows(np.ascontiguousarray(X), 1.0), labels(X, Logistic()), SquaredHinge(), C=C, intercept="regularized",
            penalty=L1(1.0),
        )  # fmt: skip
        result = fit(problem, Columns(), Limits(tol=1e-8, max_epochs=200))
        assert result.certificate.relative_gap <= 1e-8
        assert not result.coef[9:11].any()


def test_a_start_at_the_optimum_is_certified_at_once() -> None:
    problem = problem_of(Logistic(), L1(1.0), "free", shape=(60, 20), C=2.0)
    first = fit(problem, Columns(), Limits(tol=1e-9))
    w = np.append(first.coef, first.intercept / problem.scale)
    again = fit(problem, Columns(), Limits(tol=1e-8), start=Point(w, first.alpha))
    assert again.epochs <= 1.0
    assert again.certificate.relative_gap <= 1e-8


@pytest.mark.parametrize("C", [1e3, 1e6])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=named)
def test_separable_rows_are_certified_at_a_large_C(loss: Loss, C: float) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(100, 150)), np.where(random.normal(size=100) > 0.0, 1.0, -1.0)
    problem = make_problem(as_rows(X), y, loss, C=C, penalty=L1(1.0))
    assert fit(problem, Columns(), Limits(tol=1e-6, max_epochs=300)).outcome is Outcome.CERTIFIED


@every_kind
@pytest.mark.parametrize("sparse", [False, True])
def test_projected_multipliers_prove_more_than_scaled_ones(kind: str, sparse: bool) -> None:
    """Near the optimum: weights that are off by a ten-thousandth have multipliers that are, too."""
    problem = problem_of(Logistic(), L1(1.0), kind, sparse, shape=(200, 12))
    solver = Columns()
    best = fit(problem, solver, Limits(tol=1e-9, max_epochs=300))
    w = np.append(best.coef, best.intercept / (problem.scale or 1.0)) * (1.0 + 1e-4)
    state = solver.init(problem, 0, Point(w))
    _, bend, _ = make_machine(problem, True).answer(ALL, state.z, state.centre, 0.0)
    near = solver._project(problem, state, problem.C * bend, 1e-6)
    pull = dual_weights(problem, near)
    l1 = penalty_factors(problem)[1]
    scaled = bring_inside(problem, problem.balance(problem.scatter(state.alpha)), state.pull)[0]
    projected = bring_inside(problem, near, pull)[0]
    assert scaled < projected <= state.best.primal
    assert np.abs(pull)[:-1].max() <= l1[0] * (1.0 + 1e-4)
    assert state.best.primal - projected <= 0.1 * (state.best.primal - scaled)


def test_nothing_is_projected_where_the_pull_is_within_its_bounds() -> None:
    problem = problem_of(Logistic(), L1(50.0))
    solver = Columns()
    state = solver.init(problem, 0)
    _, bend, _ = make_machine(problem, True).answer(ALL, state.z, state.centre, 0.0)
    near = solver._project(problem, state, problem.C * bend, 1e-3)
    assert np.array_equal(near, problem.scatter(state.alpha))
