"""Newton's equations of rows in memory: each way solves them, and the search finds a lower place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.matrix import as_rows
from saddlesvm.rows.places import Memory
from saddlesvm.solvers.equations import conjugate_gradients
from saddlesvm.solvers.memory_equations import SHARE, FeatureFactor, MemoryEquations
from saddlesvm.solvers.newton import Newton
from saddlesvm.solvers.search import find_least
from saddlesvm.solvers.task import evaluate

SIZES = {"features": (300, 12, 5000), "rows": (40, 90, 5000), "conjugate gradients": (60, 30, 3)}


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("way", SIZES)
def test_each_way_solves_the_equations(way: str, intercept: Any, kind: Any, layout: Any) -> None:
    n, d, most_side = SIZES[way]
    random = np.random.default_rng(0)
    values = (random.standard_normal((n, d)) * (random.random((n, d)) < 0.5)).astype(kind)
    y = np.where(random.random(n) < 0.5, -1.0, 1.0)
    bias = float(intercept != "none")
    problem = make_problem(as_rows(layout(values), bias), y, make_loss("logistic"), C=2.0, intercept=intercept)
    solver = Newton()
    task = solver._task(problem, solver.init(problem, 0))
    task.most_side = most_side
    task.place.widen()
    point = evaluate(task, 0.1 * random.standard_normal(d + 1), np.empty(0), 0.0)
    equations = MemoryEquations(task)
    equations.is_stiff = way != "conjugate gradients"  # products alone would do here
    equations.renew(point, np.empty(0), 0.0, 2.0)
    found = equations.direction(point.gradient)
    whole = np.column_stack([values.astype(float), np.full(n, task.place.constant)])
    share = 1.0 / (1.0 + np.exp(-y * (whole @ point.W)))
    matrix = np.diag(equations.ridge) + 2.0 * whole.T @ ((share * (1.0 - share))[:, None] * whole)
    residual = matrix @ found + point.gradient
    assert equations.way == way
    left = 1e-9 if way == "features" else 0.5
    assert np.linalg.norm(residual) <= left * np.linalg.norm(point.gradient)


def test_equations_that_serve_again_sum_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    n, d = 300, 12
    values = sparse.csr_array(random.standard_normal((n, d)) * (random.random((n, d)) < 0.5))
    y = np.where(random.random(n) < 0.5, -1.0, 1.0)
    problem = make_problem(as_rows(values, 1.0), y, make_loss("logistic"), C=2.0, intercept="regularized")
    solver = Newton()
    task = solver._task(problem, solver.init(problem, 0))
    point = evaluate(task, 0.1 * random.standard_normal(d + 1), np.empty(0), 0.0)
    equations = MemoryEquations(task)
    equations.renew(point, np.empty(0), 0.0, 2.0)
    first = equations.direction(point.gradient)
    assert equations.way == "features"
    monkeypatch.setattr(Memory, "gram", None)
    monkeypatch.setattr(Memory, "multiply", None)
    assert np.array_equal(equations.direction(point.gradient), first)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_factor_follows_the_bends_by_the_rows_that_changed(kind: Any) -> None:
    random = np.random.default_rng(1)
    n, d = 200, 9
    values = random.standard_normal((n, d)).astype(kind)
    whole = np.column_stack([values.astype(float), np.ones(n)])
    factor = FeatureFactor(Memory(as_rows(values, 1.0), np.arange(n)), np.ones(d + 1), False)
    bends = np.where(random.random(n) < 0.5, 2.0, 0.0)
    for size in (1.0, 1.0, 0.25, 4.0):
        # A few rows enter or leave, and all bends are scaled.
        some = random.choice(n, 7, replace=False)
        bends[some] = 2.0 - bends[some]
        factor.update(size * bends)
        matrix = np.eye(d + 1) + whole.T @ ((size * bends)[:, None] * whole)
        target = random.standard_normal(d + 1)
        assert np.allclose(factor.solve(target), np.linalg.solve(matrix, target), rtol=1e-9)


def test_the_first_factor_takes_bends_beside_which_others_are_no_number() -> None:
    values = np.random.default_rng(3).standard_normal((20, 4))
    whole = np.column_stack([values, np.ones(20)])
    factor = FeatureFactor(Memory(as_rows(values, 1.0), np.arange(20)), np.ones(5), False)
    bends = np.full(20, 1e-320)
    bends[3] = 1e5
    factor.update(bends)
    matrix = np.eye(5) + 1e5 * np.outer(whole[3], whole[3])
    assert matrix @ factor.solve(np.ones(5)) == pytest.approx(np.ones(5), rel=1e-6)


def test_a_share_of_dense_rows_solves_the_equations_of_all() -> None:
    random = np.random.default_rng(2)
    n, d = 8_000, 600
    values = random.standard_normal((n, d))
    y = np.where(random.random(n) < 0.5, -1.0, 1.0)
    problem = make_problem(as_rows(values, 1.0), y, make_loss("logistic"), C=100.0, intercept="regularized")
    solver = Newton()
    task = solver._task(problem, solver.init(problem, 0))
    point = evaluate(task, np.zeros(d + 1), np.empty(0), 0.0)
    equations = MemoryEquations(task)
    equations.is_stiff = True
    equations.renew(point, np.empty(0), 0.0, 1.0)
    equations.forcing = 1e-3
    found = equations.direction(point.gradient)
    whole = np.column_stack([values, np.ones(n)])
    matrix = np.eye(d + 1) + 25.0 * whole.T @ whole
    residual = matrix @ found + point.gradient
    assert equations.way == SHARE
    assert np.linalg.norm(residual) <= 0.01 * np.linalg.norm(point.gradient)


def test_a_share_is_a_good_preconditioner_where_few_rows_bend_much() -> None:
    """At scores far from zero the second derivatives of the logistic loss differ by orders of magnitude."""
    random = np.random.default_rng(3)
    n, d = 8_000, 300
    values = random.standard_normal((n, d)).astype(np.float32)
    y = np.where(values[:, 0] > 0.0, 1.0, -1.0)
    problem = make_problem(as_rows(values, 1.0), y, make_loss("logistic"), C=100.0, intercept="regularized")
    task = Newton()._task(problem, Newton().init(problem, 0))
    W = np.zeros(d + 1)
    W[0] = 12.0
    point = evaluate(task, W, np.empty(0), 0.0)
    equations = MemoryEquations(task)
    equations.take_bends(task.C * task.machine.bend(slice(0, n), point.Z, point.A, np.empty(0), 0.0))
    factor = equations.factor_of_share(4 * d, True)
    found, is_solved = conjugate_gradients(equations.multiply, factor.solve, -point.gradient, 8, 0.1)
    assert is_solved
    assert np.vdot(found, point.gradient) < 0.0


@pytest.mark.parametrize("seed", range(40))
def test_the_search_ends_lower_than_it_began(seed: int) -> None:
    random = np.random.default_rng(seed)
    places = np.sort(10.0 ** random.uniform(-6.0, 2.0, 12))
    rises = 10.0 ** random.uniform(-3.0, 8.0, 12)

    def slope_at(place: float) -> float:
        return float(place - 1.0 + rises @ np.maximum(place - places, 0.0))

    found = find_least(slope_at, slope_at(0.0), slope_at(1.0))
    value = 0.5 * found**2 - found + 0.5 * float(rises @ np.maximum(found - places, 0.0) ** 2)
    assert found > 0.0
    assert value < 0.0
