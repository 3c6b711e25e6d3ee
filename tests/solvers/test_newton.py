"""The second-order finish: its kernels and factors against plain NumPy, and the optimum of the coordinate solvers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from conftest import (
    ALL_LOSSES,
    CLASSIFIERS,
    csr,
    distance_bound,
    features,
    labels,
    matrix,
    named,
    plain_dual,
    plain_primal,
    small_problem,
)
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.result import FitResult
from saddlesvm.problem.certificate import Point, dual_weights, evaluate
from saddlesvm.problem.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Loss,
    SmoothHinge,
    Squared,
    SquaredHinge,
    is_smooth,
)
from saddlesvm.problem.problem import Pointwise, Problem, is_classification, make_problem
from saddlesvm.rows.layouts import CSR, Rows, as_dense_row, as_rows, n_rows
from saddlesvm.solvers import DCD
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.second_order import equations as newton_equations
from saddlesvm.solvers.second_order import feature_factor
from saddlesvm.solvers.second_order.equations import FREE_PENALTY, SAMPLED, NewtonEquations
from saddlesvm.solvers.second_order.feature_factor import FeatureFactor, Plan
from saddlesvm.solvers.second_order.kernels import (
    STILL_NEAR,
    Answers,
    SmoothedTerms,
    add_outer_sparse,
    combine,
    hessian_diagonal,
    hessian_product,
    moved_shares,
    respond,
    respond_to_weights,
    search,
)
from saddlesvm.solvers.second_order.linear_algebra import cholesky, conjugate_gradients, gram_block, widened
from saddlesvm.solvers.second_order.newton import Newton, NewtonState
from saddlesvm.solvers.second_order.row_factor import RowFactor
from saddlesvm.solvers.second_order.sample import ranks, sample_of, sample_shares

every_loss = pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
TIGHT = Limits(tol=1e-9, max_epochs=500)
LAYOUTS = ["dense", "sparse"]
PRECISIONS = [np.float32, np.float64]


def rows_like(X: np.ndarray, layout: str, bias: float = 0.0) -> Rows:
    return as_rows(csr(X) if layout == "sparse" else X, bias)


def plain_rows(X: Rows) -> np.ndarray:
    """All rows in float64, the virtual feature appended."""
    return np.array([as_dense_row(X, i) for i in range(n_rows(X))])


def certified(problem: Problem, solver: Any, limits: Limits = TIGHT) -> FitResult:
    result = fit(problem, solver, limits)
    assert result.outcome is Outcome.CERTIFIED, f"{solver}: {result.message}"
    gap = plain_primal(problem, result.coef, result.intercept) - plain_dual(problem, result.alpha)
    assert gap <= 1.001 * (result.tol + 1e-11) * result.certificate.primal
    return result


def agree(*results: FitResult, digits: float = 1e-9) -> None:
    """The models are as close as their certificates say."""
    gaps = [max(result.certificate.gap, digits * result.certificate.primal) for result in results]
    for other, gap in zip(results[1:], gaps[1:], strict=True):
        assert np.linalg.norm(results[0].coef - other.coef) <= distance_bound(gaps[0], gap)
        assert abs(results[0].certificate.primal - other.certificate.primal) <= gaps[0] + gap


# Kernels


def plain_response(loss: Loss, centre: float, z: float, y: float, q: float, s: float) -> tuple[float, float]:
    """The multiplier of a row and the value of its term, by a search for the maximum of the definition."""

    def negated(a: float) -> float:
        conjugate = loss.conjugate(a, y, s)
        return conjugate + a * z + 0.5 * q * (a - centre) ** 2 if conjugate < math.inf else 1e300

    bound = s if not isinstance(loss, SquaredHinge) and loss.conjugate(10.0 * s * y, y, s) == math.inf else 40.0
    low, high = (min(0.0, bound * y), max(0.0, bound * y)) if is_classification(loss) else (-bound, bound)
    found = minimize_scalar(negated, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    best = min((float(found.x), low, high, 0.0), key=negated)
    return best, -negated(best)


def smoothed(terms: Pointwise, centre: np.ndarray, q: float) -> SmoothedTerms:
    return SmoothedTerms(*terms, 2.0, centre, q, not is_smooth(terms.loss))


def answer(terms: Pointwise, z: np.ndarray, centre: np.ndarray, q: float) -> Answers:
    answers = Answers(np.empty(z.size), np.empty(z.size), np.zeros(4))
    respond(smoothed(terms, centre, q), z, answers)
    return answers


def some_terms(loss: Loss, n: int = 40) -> tuple[Pointwise, np.ndarray, np.ndarray]:
    """Terms with weights, margins on either side of every corner, and feasible centres."""
    random = np.random.default_rng(3)
    y = random.choice([-1.0, 1.0], n) if is_classification(loss) else random.normal(size=n)
    s, z = random.uniform(0.3, 2.0, n), 2.0 * random.normal(size=n)
    sign = y if is_classification(loss) else random.choice([-1.0, 1.0], n)
    return Pointwise(loss, y, s), z, sign * s * random.choice([0.0, 0.4, 1.0], n)


@every_loss
@pytest.mark.parametrize("q", [0.7, 1e-3])
def test_multipliers_maximise_their_definition(loss: Loss, q: float) -> None:
    terms, z, centre = some_terms(loss)
    alpha, _, (paid, conjugates, coupled, _) = answer(terms, z, centre, q)
    for i in range(z.size):
        s, y = terms.weights[i], terms.y[i]
        _, value = plain_response(loss, centre[i], z[i], y, q, s)
        own = -loss.conjugate(alpha[i], y, s) - alpha[i] * z[i] - 0.5 * q * (alpha[i] - centre[i]) ** 2
        assert own >= value - 1e-9
    assert paid == pytest.approx(sum(terms.weights[i] * loss.value(z[i], terms.y[i]) for i in range(z.size)))
    assert conjugates == pytest.approx(
        sum(loss.conjugate(alpha[i], terms.y[i], terms.weights[i]) for i in range(z.size)), abs=1e-12
    )
    assert coupled == pytest.approx(alpha @ z)


@every_loss
@pytest.mark.parametrize("q", [0.7, 0.0])
def test_second_derivatives_are_those_of_the_multipliers(loss: Loss, q: float) -> None:
    if q == 0.0 and not is_smooth(loss):
        pytest.skip("a piecewise linear loss needs a proximal term")
    terms, z, centre = some_terms(loss)
    step = 1e-6
    _, bend, sums = answer(terms, z, centre, q)
    ahead, bend_ahead, _ = answer(terms, z + step, centre, q)
    behind, bend_behind, _ = answer(terms, z - step, centre, q)
    smooth = np.isclose(bend_ahead, bend_behind, rtol=1e-4)
    assert smooth.mean() > 0.8
    assert bend[smooth] == pytest.approx((-2.0 * (ahead - behind) / (2.0 * step))[smooth], abs=1e-4)
    assert sums[3] == np.count_nonzero(bend)


@every_loss
def test_without_proximal_term_multipliers_are_minus_the_derivative(loss: Loss) -> None:
    if not is_smooth(loss):
        pytest.skip("a piecewise linear loss needs a proximal term")
    terms, z, centre = some_terms(loss)
    alpha, _, _ = answer(terms, z, centre, 0.0)
    expected = [-terms.weights[i] * loss.subgradient(z[i], terms.y[i]) for i in range(z.size)]
    assert alpha == pytest.approx(expected)


@every_loss
@pytest.mark.parametrize("length", [1.0, 300.0, 1e-3])
def test_the_search_finds_the_minimum_along_the_line(loss: Loss, length: float) -> None:
    terms, z, centre = some_terms(loss)
    q, C = 0.1, 2.0
    dz = length * np.random.default_rng(5).normal(size=z.size)
    quadratic = float(length * length)

    def slope(tau: float, linear: float) -> float:
        alpha, _, _ = answer(terms, z + tau * dz, centre, q)
        return float(linear + quadratic * tau - C * alpha @ dz)

    linear = -slope(0.0, 0.0) - 3.0 * length
    alpha, bend, _ = answer(terms, z, centre, q)
    at_one, _, _ = answer(terms, z + dz, centre, q)
    arguments = (smoothed(terms, centre, q), z, dz, alpha, bend, at_one)
    tau = search(*arguments, linear, quadratic, 1e-9)
    assert tau > 0.0
    assert abs(slope(tau, linear)) <= 1e-8 * 3.0 * length
    assert search(*arguments, -slope(0.0, 0.0) + 1.0, quadratic, 1e-9) == 0.0
    flat_at_one = -slope(1.0, 0.0)
    if slope(0.0, flat_at_one) < 0.0:
        assert search(*arguments, flat_at_one, quadratic, 1e-9) == 1.0


@every_loss
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("q", [0.7, 0.0])
def test_multipliers_at_weights_are_those_at_their_margins(loss: Loss, layout: str, q: float) -> None:
    if q == 0.0 and not is_smooth(loss):
        pytest.skip("a piecewise linear loss needs a proximal term")
    terms, _, centre = some_terms(loss, 3 * STILL_NEAR)  # the members fill one block and begin another
    X = rows_like(matrix(centre.size, 6, density=0.6).astype(np.float32), layout, 1.7)
    members, w = np.arange(0, centre.size, 2), np.random.default_rng(1).normal(size=7)
    problem = make_problem(X, terms.y, loss, C=2.0, weights=terms.weights, members=members, intercept="regularized")
    its, margins = problem.of_members, plain_rows(X)[members] @ w
    expected = answer(its, margins, problem.gathered(centre), q)
    z, pulled, found = np.empty(members.size), np.ones(7), Answers(*np.empty((2, members.size)), np.zeros(4))
    respond_to_weights(X, members, w, smoothed(its, problem.gathered(centre), q), z, found, pulled)
    assert z == pytest.approx(margins)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other)
    assert pulled == pytest.approx(1.0 + found.alpha @ plain_rows(X)[members])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bias", [0.0, 1.7])
def test_products_with_rows_are_numpys(layout: str, precision: type, bias: float) -> None:
    X = rows_like(matrix(30, 6, density=0.6).astype(precision), layout, bias)
    A, random = plain_rows(X), np.random.default_rng(0)
    chosen = np.array([1, 4, 5, 17, 29])
    B, bend, factors, v = A[chosen], random.uniform(0.5, 2.0, 30), random.normal(size=5), random.normal(size=7)
    hessian = B.T @ np.diag(bend[chosen]) @ B
    out = v.copy()
    hessian_product(X, chosen, bend, v, out)
    assert out == pytest.approx(v + hessian @ v)
    out = v.copy()
    hessian_diagonal(X, chosen, bend, out)
    assert out == pytest.approx(v + np.diag(hessian))
    out = v.copy()
    combine(X, chosen, factors, out)
    assert out == pytest.approx(v + B.T @ factors)
    assert widened(X, chosen, factors) == pytest.approx(factors[:, None] * B)
    pool = np.array([0, 4, 9, 10, 29, 3])
    assert gram_block(X, chosen, pool) == pytest.approx(B @ A[pool].T)
    if isinstance(X, CSR):
        upper = np.zeros((7, 7))
        add_outer_sparse(X, chosen, factors, upper)
        assert upper == pytest.approx(np.triu(B.T @ np.diag(factors) @ B))


# Factors and conjugate gradients


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


def update(factor: FeatureFactor, bend: np.ndarray) -> Plan:
    """Bring the factor up to these second derivatives; what it did."""
    active = np.flatnonzero(bend)
    plan = factor.plan(active, bend[active])
    factor.update(plan)
    return plan


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bias", [0.0, 1.7])
@pytest.mark.parametrize("at_once", [0, feature_factor.AT_ONCE])
@pytest.mark.parametrize("kept", PRECISIONS)
def test_the_feature_factor_follows_the_active_rows(
    layout: str, precision: type, bias: float, at_once: int, kept: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_factor, "AT_ONCE", at_once)
    X = rows_like(matrix(200, 6, density=0.6).astype(precision), layout, bias)
    penalty, v = np.ones(7), np.random.default_rng(0).normal(size=7)
    factor, rel = FeatureFactor(X, penalty, 200, kept), 1e-9 if kept is np.float64 else 2e-3
    for bend in sequence(200)[:-1]:
        update(factor, bend)
        solved = factor.solve(v)
        assert solved.dtype == np.float64
        assert solved == pytest.approx(np.linalg.solve(plain_matrix(X, penalty, bend), v), rel=rel, abs=rel)


def test_the_feature_factor_keeps_shares_that_changed_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_factor, "AT_ONCE", 0)
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


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
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
    monkeypatch.setattr(newton_equations, "DENSE_PRODUCT", dict.fromkeys(newton_equations.DENSE_PRODUCT, 1e-12))


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
    assert 0 < equations.sampled.inside.size < 1000 and equations.features.sum is None
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


# Fits


def tall_problem(loss: Loss, n: int = 30_000, d: int = 8, C: float = 10.0, **options: Any) -> Problem:
    """Many more rows than features, the features of different sizes."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d)) * 10.0 ** np.linspace(-1.0, 1.0, d)
    scores = X @ np.cos(np.arange(d)) + 3.0 * random.normal(size=n)
    return make_problem(as_rows(X), np.sign(scores) if is_classification(loss) else scores, loss, C=C, **options)


def test_a_sample_is_the_problem_over_fewer_rows() -> None:
    problem = tall_problem(SquaredHinge(), n=60_000, d=80, C=1e-4, members=np.arange(1, 60_000, 2))
    shares, rank = sample_shares(problem), ranks(60_000, 0)
    assert 0.03 < shares[0] < shares[-1] <= 0.25 and np.diff(np.log(shares)) == pytest.approx(np.log(3.0))
    before = problem.members[:0]
    for share in shares:
        sample = sample_of(problem, rank, share)
        assert sample.members.size == pytest.approx(30_000 * share, rel=0.2)
        assert np.isin(sample.members, problem.members).all() and (np.diff(sample.members) > 0).all()
        assert np.isin(before, sample.members).all()
        assert sample.C * sample.members.size == pytest.approx(problem.C * problem.members.size)
        before = sample.members
    assert (ranks(60_000, 0) == rank).all() and (ranks(60_000, 1) != rank).any()


def test_a_sample_is_not_fitted_too_closely() -> None:
    problem = tall_problem(Logistic(), C=1e3)
    rank, share = ranks(30_000, 0), sample_shares(problem)[0]
    assert sample_of(problem, rank, share).C == problem.C
    between = sample_of(tall_problem(Logistic(), C=0.1), rank, share)
    assert 0.1 < between.C < 0.1 * 30_000 / between.members.size


def test_too_few_rows_or_too_little_work_have_no_sample() -> None:
    assert not sample_shares(tall_problem(Logistic(), n=500))
    assert not sample_shares(small_problem(Logistic(), n=400, d=90))


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", [SquaredHinge(), SmoothHinge(0.5), Logistic(), Squared()])
def test_a_sample_leaves_few_steps_to_all_rows(loss: Loss, intercept: Any) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(30_000, 8)) * 10.0 ** np.linspace(-1.0, 1.0, 8)
    scores = 2.0 + X @ np.cos(np.arange(8)) + 3.0 * random.normal(size=30_000)
    y = np.sign(scores) if is_classification(loss) else scores
    problem = make_problem(as_rows(X, float(intercept != "none")), y, loss, C=10.0, intercept=intercept)
    result = certified(problem, Newton())
    assert sum(row["remark"].startswith("Newton step") for row in result.trace) > 0
    assert "Newton step 5" not in result.trace[-1]["remark"]
    agree(result, certified(problem, Newton(warm_up=0)))


def test_more_rows_than_features_need_no_proximal_term_until_few_rows_bend() -> None:
    problem = small_problem(SquaredHinge(), n=300, d=6, C=1.0)
    assert Newton(warm_up=0).init(problem, 0).q == 0.0
    assert Newton(warm_up=0).init(small_problem(SquaredHinge(), n=40, d=90), 0).q > 0.0
    X = matrix(300, 30)
    y = np.where(X @ np.cos(np.arange(30)) > 0.0, 1.0, -1.0)
    separable = make_problem(as_rows(X), y, SquaredHinge(), C=1e5)
    solver = Newton(warm_up=0)
    state = solver.init(separable, 0)
    assert state.q == 0.0 and state.estimate == 1.0  # the dual point that came with the start, zero, is kept
    while state.q == 0.0:
        state = solver.step(separable, state, Budget(1))
    assert state.active < 30 and state.steps < 20
    certified(separable, Newton(warm_up=0))


@every_loss
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("C", [0.01, 100.0])
def test_every_loss_and_intercept_is_certified(loss: Loss, intercept: str, C: float) -> None:
    problem = small_problem(loss, C=C, intercept=intercept)
    own = certified(problem, Newton())
    if C < 1.0:
        agree(own, certified(problem, DCD(), Limits(tol=1e-7, max_epochs=200_000)))


@every_loss
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_more_features_than_rows(loss: Loss, intercept: str) -> None:
    certified(small_problem(loss, n=40, d=90, C=10.0, intercept=intercept), Newton())


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(0.1)], ids=named)
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_layouts_and_precisions_agree(loss: Loss, intercept: str) -> None:
    X = matrix(80, 7, density=0.7).astype(np.float32)
    y, bias = labels(X, loss), 0.0 if intercept == "none" else 1.0
    problems = [
        make_problem(as_rows(kind, bias), y, loss, C=30.0, intercept=intercept)  # type: ignore[arg-type]
        for kind in (X, X.astype(np.float64), csr(X), csr(X.astype(np.float64)))
    ]
    results = [fit(problem, Newton(), TIGHT) for problem in problems]
    assert all(result.outcome is Outcome.CERTIFIED for result in results)
    agree(*results)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic(), Absolute()], ids=named)
def test_weights_equal_repetition(loss: Loss) -> None:
    X, times = matrix(50, 4), np.random.default_rng(0).integers(0, 4, 50)
    y = labels(X, loss)
    weighted = make_problem(as_rows(X), y, loss, C=5.0, weights=times.astype(float))
    repeated = make_problem(as_rows(np.repeat(X, times, axis=0)), np.repeat(y, times), loss, C=5.0)
    agree(certified(weighted, Newton()), certified(repeated, Newton()))


@pytest.mark.parametrize("loss", CLASSIFIERS, ids=named)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_badly_scaled_features_and_large_C_are_certified(loss: Loss, precision: type) -> None:
    X = matrix(300, 8) * 10.0 ** np.linspace(-2, 3, 8)
    y = labels(matrix(300, 8), loss)
    problem = make_problem(as_rows(X.astype(precision)), y, loss, C=1e4)
    assert fit(problem, Newton(), Limits(tol=1e-6, max_epochs=500)).outcome is Outcome.CERTIFIED


@pytest.mark.parametrize("loss", CLASSIFIERS, ids=named)
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_separable_classes_are_certified_at_any_C(loss: Loss, intercept: str) -> None:
    X = matrix(150, 10)
    y = np.where(X @ np.cos(np.arange(10)) > 0.0, 1.0, -1.0)
    for C in (1.0, 1e3, 1e6):
        problem = make_problem(as_rows(X, float(intercept == "free")), y, loss, C=C, intercept=intercept)  # type: ignore[arg-type]
        assert fit(problem, Newton(), Limits(tol=1e-6, max_epochs=500)).outcome is Outcome.CERTIFIED


@pytest.mark.parametrize("loss", [Hinge(), Squared()], ids=named)
def test_duplicated_and_constant_columns_and_empty_rows(loss: Loss) -> None:
    X = matrix(60, 3)
    X = np.hstack([X, X, np.ones((60, 1)), np.zeros((60, 1))])
    X[::9] = 0.0
    certified(make_problem(as_rows(X), labels(X, loss), loss, C=100.0), Newton())


def test_little_memory_is_kept_to_and_still_certifies() -> None:
    problem = small_problem(Hinge(), n=120, d=100, C=10.0)
    result = fit(problem, Newton(memory=3e4), TIGHT)
    assert result.outcome is Outcome.CERTIFIED
    agree(result, certified(problem, Newton()))
    equations = NewtonEquations(problem, 3e4)
    assert equations.most_features < 101 and 42 * equations.most_rows**2 <= 3e4


# The state, the start, the options


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(0.1)], ids=named)
@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_the_two_terms_make_the_gap(loss: Loss, intercept: str) -> None:
    problem = small_problem(loss, C=3.0, intercept=intercept)
    solver = Newton()
    state = solver.init(problem, 0)
    for _ in range(5):
        state = solver.step(problem, state, Budget(1))
        bias = state.w[-1] * problem.scale
        gap = plain_primal(problem, state.w[:-1], bias) - plain_dual(problem, state.alpha)
        assert state.residual + state.left == pytest.approx(gap, rel=1e-6, abs=1e-9)
        assert state.gradient == pytest.approx(state.w - dual_weights(problem, state.alpha))
        assert state.z == pytest.approx(features(problem) @ state.w)


@every_loss
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_the_certificate_bears_out_what_the_solver_claims(loss: Loss, intercept: str) -> None:
    problem = small_problem(loss, C=3.0, intercept=intercept)
    solver = Newton()
    state = solver.init(problem, 0)
    for _ in range(4):
        state = solver.step(problem, state, Budget(1))
        certificate = evaluate(problem, solver.solution(problem, state)).certificate
        slack = 1e-9 * abs(certificate.primal)  # the certificate may improve on either point
        assert certificate.dual >= state.best_dual - slack
        assert certificate.primal <= state.best_primal + slack
        assert certificate.sound


def test_a_given_start_is_gone_on_from() -> None:
    problem = small_problem(Hinge(), C=10.0)
    first = certified(problem, Newton())
    start = Point(alpha=first.alpha)
    state = Newton().init(problem, 0, start)
    assert state.rows_touched == 0
    assert state.estimate <= 1e-7
    again = fit(problem, Newton(), TIGHT, start=start)
    assert again.epochs < 0.5 * first.epochs
    with pytest.raises(ValueError, match="starting dual point"):
        Newton().init(problem, 0, Point(alpha=np.zeros(3)))


def test_a_useless_start_is_dropped_where_there_is_no_proximal_term() -> None:
    problem = small_problem(Logistic(), C=10.0)
    far = Point(np.full(6, 1e5), np.zeros(60))
    assert not Newton().init(problem, 0, far).w.any()
    assert fit(problem, Newton(), TIGHT, start=far).outcome is Outcome.CERTIFIED


def test_a_fit_is_repeatable_and_survives_a_checkpoint(tmp_path: Path) -> None:
    problem = small_problem(Hinge(), C=100.0, intercept="free")
    first, second = (fit(problem, Newton(), TIGHT, seed=1) for _ in range(2))
    assert np.array_equal(first.coef, second.coef)
    path = tmp_path / "run.ckpt"
    early = fit(problem, Newton(), replace(TIGHT, max_epochs=15), seed=1, checkpoint=Checkpoint(path))
    assert early.outcome is Outcome.EPOCH_LIMIT
    resumed = fit(problem, Newton(), TIGHT, seed=1, checkpoint=Checkpoint(path))
    assert resumed.outcome is Outcome.CERTIFIED
    agree(first, resumed)


def test_the_remark_says_what_a_step_did() -> None:
    problem = small_problem(Hinge())
    state = Newton().step(problem, Newton().init(problem, 0), Budget(1))
    assert isinstance(state, NewtonState)
    assert state.remark.startswith("Newton step 1: ") and "rows bend, solved by" in state.remark


@pytest.mark.parametrize(
    ("options", "words"),
    [({"warm_up": -1}, "warm_up"), ({"proximity": -1.0}, "proximity"), ({"memory": 0.0}, "memory")],
)
def test_bad_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Newton(**options)


def test_a_piecewise_linear_loss_needs_a_proximal_term() -> None:
    with pytest.raises(ValueError, match="proximity must be positive for the piecewise linear Hinge"):
        Newton(proximity=0.0).init(small_problem(Hinge()), 0)
    assert Newton(proximity=0.0).init(small_problem(SquaredHinge()), 0).q == 0.0
