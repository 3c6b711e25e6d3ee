"""Newton's equations: the two factors, conjugate gradients, a sample of rows as preconditioner."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from saddlesvm.problem.losses import Hinge, Logistic
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import Rows, as_rows
from saddlesvm.solvers import costs
from saddlesvm.solvers.second_order import factors
from saddlesvm.solvers.second_order.conjugate import conjugate_gradients
from saddlesvm.solvers.second_order.equations import FREE_PENALTY, SAMPLED, NewtonEquations
from saddlesvm.solvers.second_order.factors import FeatureFactor, RowFactor, Update
from saddlesvm.solvers.second_order.kernels import (
    moved_shares,
)
from saddlesvm.solvers.second_order.linear_algebra import cholesky
from support import (
    matrix,
    others_nightly,
    small_problem,
)
from support.newton import plain_rows, rows_like

LAYOUTS = ["dense", "sparse"]
PRECISIONS = [np.float32, np.float64]


def test_cholesky_lifts_a_matrix_that_rounding_made_indefinite() -> None:
    v = np.random.default_rng(0).normal(size=(6, 3))
    singular = np.asfortranarray(v @ v.T)
    factor = np.tril(cholesky(singular))
    assert np.linalg.norm(factor @ factor.T - singular) <= 1e-4 * np.linalg.norm(singular)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        cholesky(np.asfortranarray(-np.eye(3)))


def test_conjugate_gradients_solve_and_say_when_they_do_not() -> None:
    random = np.random.default_rng(0)
    V = random.normal(size=(20, 20))
    A, b = V @ V.T + 0.1 * np.eye(20), random.normal(size=20)
    exact, start = np.linalg.solve(A, b), random.normal(size=20)
    for x, most in ((np.zeros(20), 200), (start, 200)):
        found, _, solved = conjugate_gradients(lambda v: A @ v, lambda v: v, b, x, 1e-12, most)
        assert solved
        assert found == pytest.approx(exact, rel=1e-6)
    found, iterations, solved = conjugate_gradients(
        lambda v: A @ v, np.linalg.inv(A).__matmul__, b, np.zeros(20), 0.1, 9
    )
    assert solved and iterations == 1
    assert found == pytest.approx(exact)
    _, iterations, solved = conjugate_gradients(lambda v: A @ v, lambda v: v, b, np.zeros(20), 1e-12, 3)
    assert iterations == 3 and not solved


def sequence(n: int, seed: int = 1) -> list[np.ndarray]:
    """Second derivatives as a run has them: rows enter and leave, few or many; the common value changes."""
    random = np.random.default_rng(seed)
    mask, value, bends = random.random(n) < 0.5, 1.0, []
    for share in (0.0, 0.02, 0.05, 0.02, 0.5, 0.02, 0.02, 0.0):
        mask ^= random.random(n) < share
        bends.append(np.where(mask, value, 0.0))
        value *= 4.0 if share in (0.5, 0.0) else 1.0
    return [*bends, bends[-1] * random.uniform(0.5, 2.0, n)]


def plain_matrix(X: Rows, penalty: np.ndarray, bend: np.ndarray) -> np.ndarray:
    A = plain_rows(X)
    return np.diag(penalty) + A.T @ (bend[:, None] * A)


def update(factor: FeatureFactor, bend: np.ndarray) -> Update:
    """Bring the factor up to these second derivatives; what it did."""
    active = np.flatnonzero(bend)
    plan = factor.plan(active, bend[active])
    factor.update(plan)
    return plan


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bias", [0.0, 1.7])
@pytest.mark.parametrize("at_once", [0, factors.AT_ONCE])
@pytest.mark.parametrize("kept", PRECISIONS)
def test_the_feature_factor_follows_the_active_rows(
    layout: str, precision: type, bias: float, at_once: int, kept: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factors, "AT_ONCE", at_once)
    X = rows_like(matrix(200, 6, density=0.6).astype(precision), layout, bias)
    penalty, v = np.ones(7), np.random.default_rng(0).normal(size=7)
    factor, rel = FeatureFactor(X, penalty, 200, kept), 1e-9 if kept is np.float64 else 2e-3
    for bend in sequence(200)[:-1]:
        update(factor, bend)
        solved = factor.solve(v)
        assert solved.dtype == np.float64
        assert solved == pytest.approx(np.linalg.solve(plain_matrix(X, penalty, bend), v), rel=rel, abs=rel)


def test_the_feature_factor_keeps_shares_that_changed_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factors, "AT_ONCE", 0)
    X = rows_like(matrix(200, 6), "dense")
    factor, bend = FeatureFactor(X, np.ones(7), 200), np.random.default_rng(0).uniform(0.5, 1.0, 200)
    assert update(factor, bend).anew
    assert update(factor, 1.1 * bend).rows.size == 0
    bend[3] *= 5.0
    assert update(factor, bend).rows.tolist() == [3]
    bend[7] = 0.0
    assert update(factor, bend).rows.tolist() == [7]
    assert factor.share[7] == 0.0


@pytest.mark.parametrize("unit", [0.5, 2.0])
def test_shares_that_moved_are_those_of_numpy(unit: float) -> None:
    random = np.random.default_rng(0)
    active, former = np.sort(random.permutation(60)[:40]), random.choice([0.0, 0.5, 0.6, 1.0], 60)
    bend, places = unit * random.choice([0.5, 0.6, 0.75, 1.0], 40), np.empty(40, dtype=np.intp)
    count, few = moved_shares(active, bend, unit, former, 0.3, places)
    share, old = bend / unit, former[active]
    far = np.abs(share - old) > 0.3 * np.maximum(share, old)
    assert places[:count].tolist() == np.flatnonzero(far).tolist()
    assert few == np.count_nonzero((share != old) & ~far) > 0


@pytest.mark.parametrize(
    ("layout", "precision", "intercept"),
    others_nightly(
        itertools.product(LAYOUTS, PRECISIONS, ["none", "regularized", "free"]),
        {
            ("dense", np.float32, "free"),
            ("dense", np.float64, "regularized"),
            ("sparse", np.float32, "none"),
            ("sparse", np.float64, "free"),
        }.__contains__,
    ),
)
def test_the_row_factor_follows_the_active_rows(layout: str, precision: type, intercept: str) -> None:
    X = rows_like(matrix(200, 300, density=0.6).astype(precision), layout, 0.0 if intercept == "none" else 1.7)
    penalty, v = np.ones(301), np.random.default_rng(0).normal(size=301)
    penalty[-1] = FREE_PENALTY if intercept == "free" else 1.0
    factor = RowFactor(X, penalty, 200)
    sizes = set()
    for bend in sequence(200):
        factor.update(np.flatnonzero(bend), bend)
        assert factor.factor is not None
        sizes.add(factor.factor.size)
        expected = np.linalg.solve(plain_matrix(X, penalty, bend), v)
        assert factor.solve(v) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert 0 in sizes and max(sizes) > 0  # new factors, and bordered ones
    assert factor.cache.pool.size <= 200


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize(
    ("n", "d", "memory", "way"),
    [
        (200, 6, 1e9, "features"),
        (40, 300, 1e9, "rows"),
        (200, 210, 5e5, "heaviest rows"),
        (200, 90, 1e4, "conjugate gradients"),
    ],
)
def test_newtons_equations_are_solved_in_every_way(n: int, d: int, memory: float, way: str, intercept: str) -> None:
    problem = small_problem(Hinge(), n=n, d=d, intercept=intercept)
    equations = NewtonEquations(problem, memory)
    bend, rhs = np.random.default_rng(0).uniform(1.0, 3.0, n), np.random.default_rng(1).normal(size=d + 1)
    bend[::7] = 0.0
    if intercept == "none":
        rhs[-1] = 0.0
    for factored in (True, False):
        equations.stiff = factored
        direction = equations.solve(bend, rhs, 1e-10)
        expected = np.linalg.solve(plain_matrix(problem.X, equations.penalty, bend), rhs)
        assert direction == pytest.approx(expected, rel=1e-5, abs=1e-8)
        assert not factored or equations.way == way
    assert equations.solve(np.zeros(n), rhs, 1e-10) == pytest.approx(rhs / equations.penalty)


def test_products_alone_solve_newtons_equations_where_a_factor_is_dearer() -> None:
    problem = make_problem(rows_like(matrix(600, 900, density=0.01), "sparse"), np.ones(600), Hinge(), C=1.0)
    equations, rhs = NewtonEquations(problem, 1e9), np.random.default_rng(0).normal(size=901)
    direction = equations.solve(np.full(600, 0.1), rhs, 1e-10)
    assert equations.way == "conjugate gradients"
    expected = np.linalg.solve(plain_matrix(problem.X, equations.penalty, np.full(600, 0.1)), rhs)
    assert direction == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.fixture
def cheap_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products with the matrix are reckoned cheap; factors are not."""
    monkeypatch.setattr(costs, "DENSE_COST", 1e-13)


@pytest.mark.usefixtures("cheap_products")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_a_sample_of_rows_preconditions_newtons_equations(precision: type, intercept: str) -> None:
    X = rows_like(matrix(20_000, 40).astype(precision), "dense", 0.0 if intercept == "none" else 1.7)
    problem = make_problem(X, np.ones(20_000), Logistic(), C=1.0, intercept=intercept)
    equations, bend = NewtonEquations(problem, 1e9), np.random.default_rng(0).uniform(0.05, 0.25, 20_000)
    equations.stiff = True  # conjugate gradients alone have been too slow before
    rhs = np.random.default_rng(1).normal(size=41)
    rhs[-1] *= intercept != "none"
    direction = equations.solve(bend, rhs, 0.01)
    assert equations.way == SAMPLED and 1 < equations.iterations <= 10
    assert 0 < equations.sampled.inside.size < 1000 and equations.features.sum.size == 0
    expected = np.linalg.solve(plain_matrix(X, equations.penalty, bend), rhs)
    assert np.linalg.norm(direction - expected) <= 0.02 * np.linalg.norm(expected)


@pytest.mark.usefixtures("cheap_products")
def test_a_sample_that_misses_what_matters_still_leads_downhill_and_gives_way_to_all_rows() -> None:
    A = np.zeros((20_000, 40))
    A[:, 0] = 1.0
    A[np.arange(20_000) % 2000 == 0, 1 + np.arange(10)] = np.arange(1.0, 11.0)  # ten rows, a feature each
    A[:, 11:] = 0.01 * np.random.default_rng(0).normal(size=(20_000, 29))
    problem = make_problem(as_rows(A), np.ones(20_000), Logistic(), C=1.0)
    equations, bend = NewtonEquations(problem, 1e9), np.full(20_000, 1e4)
    equations.stiff = True
    rhs, before = np.append(np.random.default_rng(1).normal(size=40), 0.0), equations.sample
    assert equations.solve(bend, rhs, 1e-8) @ rhs > 0.0
    assert equations.way == SAMPLED and equations.sample > before
    while equations.way == SAMPLED:
        direction = equations.solve(bend, rhs, 1e-8)
    assert equations.way == "features"
    assert direction == pytest.approx(np.linalg.solve(plain_matrix(problem.X, equations.penalty, bend), rhs), rel=1e-5)
