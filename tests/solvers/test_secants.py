"""Newton steps by the factor of a sample, corrected by the last steps: the inverse, when it serves, and whole fits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.losses import Logistic, Loss, Squared, SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.problem.sums import loss_sums
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.second_order.equations import SAMPLED, NewtonEquations
from saddlesvm.solvers.second_order.newton import Newton
from saddlesvm.solvers.second_order.secants import MOST, Secants
from support import plain_dual, plain_primal, small_problem
from support.resuming import agree

D = 6


def tall(C: float = 1.0) -> Problem:
    """Many more rows than features, so that a sample's factor is the cheapest."""
    random = np.random.default_rng(0)
    X = random.standard_normal((60_000, 48), dtype=np.float32)
    y = np.where(X @ random.standard_normal(48) + 2.0 * random.standard_normal(60_000) > 0.0, 1.0, -1.0)
    return make_problem(as_rows(X), y, Logistic(), C=C)


def test_the_inverse_is_that_of_the_update_formula() -> None:
    random = np.random.default_rng(1)
    root = random.normal(size=(D, D))
    matrix, inverse, secants = np.eye(D) + root @ root.T, np.diag(random.uniform(0.5, 2.0, D)), Secants()
    first = inverse.copy()
    for _ in range(4):
        s = random.normal(size=D)
        y = matrix @ s
        secants.learn(s, y)
        left = np.eye(D) - np.outer(s, y) / (s @ y)
        inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ y)
    v = random.normal(size=D)
    np.testing.assert_allclose(secants.inverse(v, lambda r: first @ r), inverse @ v, rtol=1e-10)
    np.testing.assert_allclose(secants.inverse(y, lambda r: first @ r), s, rtol=1e-10, atol=1e-12)


def test_the_latest_steps_are_kept_and_those_that_do_not_bend_are_not() -> None:
    secants, random = Secants(), np.random.default_rng(2)
    secants.learn(np.ones(D), -np.ones(D))
    secants.learn(np.zeros(D), np.ones(D))
    assert not secants.steps.size
    for k in range(MOST + 3):
        s = random.normal(size=D)
        secants.learn(s, s * (k + 1.0))
    assert secants.steps.shape == secants.changes.shape == (MOST, D)
    np.testing.assert_array_equal(secants.steps[-1], s)


def test_a_direction_is_given_as_long_as_steps_gain_enough() -> None:
    secants, v = Secants(), np.ones(D)
    assert secants.direction(v, lambda r: r) is not None and secants.serves
    assert secants.direction(0.4 * v, lambda r: r) is not None
    assert secants.direction(0.3 * v, lambda r: r) is None and not secants.serves
    secants.pause()
    assert secants.direction(v, lambda r: r) is not None
    assert secants.direction(v, lambda r: -r) is None


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_steps_without_products_certify_the_same_optimum(C: float) -> None:
    problem, limits = tall(C), Limits(tol=1e-8, max_epochs=50)
    solver = Newton()
    state = solver.init(problem, 0)
    served = products = 0
    while state.estimate > limits.tol and state.steps < 50:
        state = solver.step(problem, state, Budget(problem.members.size))
        assert state.equations is not None
        served, products = served + state.equations.secants.serves, products + state.equations.iterations
    assert state.equations.way == SAMPLED and served >= 3 and served >= products
    result = fit(problem, solver, limits)
    assert result.outcome is Outcome.CERTIFIED
    gap = plain_primal(problem, result.coef, result.intercept) - plain_dual(problem, result.alpha)
    assert gap <= 1.001 * (limits.tol + 1e-11) * result.certificate.primal


def test_a_fit_that_is_resumed_is_certified(tmp_path: Path) -> None:
    problem, solver = tall(), Newton()
    whole = fit(problem, solver, Limits(tol=1e-8, max_epochs=50))
    path = tmp_path / "run.npz"
    fit(problem, solver, Limits(tol=1e-8, max_epochs=3), checkpoint=Checkpoint(path))
    resumed = fit(problem, solver, Limits(tol=1e-8, max_epochs=50), checkpoint=Checkpoint(path))
    assert resumed.outcome is Outcome.CERTIFIED
    assert agree(whole, resumed)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Squared()])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_at_zero_is_the_sum_over_all_rows(loss: Loss, weighted: bool) -> None:
    problem = small_problem(loss, n=50, d=5)
    if weighted:
        weights = np.random.default_rng(0).uniform(0.5, 2.0, 50)
        problem = make_problem(problem.X, problem.y, loss, C=problem.C, weights=weights)
    zeros = np.zeros(50)
    paid = loss_sums(problem.pointwise, problem.members, zeros, 0.0, zeros)[0]
    expected = primal_of(problem.C, float(paid), 0.0)
    assert Newton._primal_at_zero(problem) == pytest.approx(expected, rel=1e-12)


def test_the_first_equations_cost_what_they_cost_row_by_row() -> None:
    problem = tall()
    equations, bend = NewtonEquations(problem, 1e9), np.full(problem.y.size, 0.25 * problem.C)
    condition = 0.25 * problem.C * float(np.median(problem.norms))
    whole = equations.expected(np.arange(problem.y.size), bend)
    assert equations.expected_at_first(problem.y.size, condition) == pytest.approx(whole, rel=0.1)
