"""keep="last": a fit returns the point where its solver stands, bit for bit, with the certificate of that point."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.losses import Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.penalties import ElasticNet
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers import DCD, SDCA, SOLVERS, Columns, Newton, Pegasos
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.base import Budget
from support import named, plain_dual, plain_primal, small_problem
from support.resuming import agree

EPOCHS = 3
LAST = Limits(tol=0.0, max_epochs=EPOCHS, certify_every=EPOCHS, keep="last")
PRIMAL_AND_DUAL = [Pegasos(output="last"), Pegasos(7, True, "replacement", "last"), DCD(), DCD(shrinking=False), SDCA()]
NET = ElasticNet(0.3)
PENALISED = [(one, None) for one in PRIMAL_AND_DUAL] + [(one, NET) for one in (PRIMAL_AND_DUAL[0], DCD(), SDCA())]


def driven(problem: Problem, solver: Any, seed: int = 0, epochs: int = EPOCHS) -> Any:
    """The state of a solver after some epochs of a plain loop, which certifies nothing."""
    state = solver.init(problem, seed)
    while state.epochs < epochs:
        state = solver.step(problem, state, Budget(round((epochs - state.epochs) * problem.members.size)))
    return state


def own_weights(problem: Problem, state: Any) -> np.ndarray:
    """The weights of a state, shape (d + 1,); a free intercept of Pegasos' in the last place."""
    if hasattr(state, "numbers"):
        pull = float(state.numbers["scale"][0]) * state.w.astype(np.float64)
        weights = problem.regularizer.weights(pull)
        return np.append(weights[:-1], state.numbers["intercept"][0]) if problem.intercept.lift else weights
    return problem.regularizer.weights(state.w)


def is_its_own(problem: Problem, result: Any) -> None:
    """Both objectives are those of the model and of the dual point, computed without the package's certificate."""
    unit = problem.unit
    primal, dual = plain_primal(problem, result.coef, result.intercept), plain_dual(problem, result.alpha)
    assert result.certificate.primal == pytest.approx(unit * primal, rel=1e-9)
    assert result.certificate.dual == pytest.approx(unit * dual, rel=1e-9, abs=1e-12 * unit * abs(primal))
    assert result.certificate.sound


@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize(("solver", "penalty"), PENALISED, ids=repr)
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=named)
def test_it_is_the_state_of_a_plain_loop(loss: Loss, solver: Any, intercept: str, penalty: Any) -> None:
    options = {} if penalty is None else {"penalty": penalty}
    problem = small_problem(loss, lam=1e-2, intercept=intercept, **options)
    result, state = fit(problem, solver, LAST), driven(problem, solver)
    w = own_weights(problem, state)
    assert np.array_equal(result.coef, w[:-1])
    assert result.intercept == w[-1] * problem.scale
    if hasattr(state, "alpha"):
        assert np.array_equal(result.alpha, state.alpha)
    if penalty is None:
        is_its_own(problem, result)


def test_pegasos_keeps_its_free_intercept() -> None:
    """The best one would take its place otherwise."""
    problem, solver = small_problem(Hinge(), lam=1e-3, intercept="free"), Pegasos(output="last")
    result, state = fit(problem, solver, LAST), driven(problem, solver)
    assert np.array_equal(np.append(result.coef, result.intercept), own_weights(problem, state))
    is_its_own(problem, result)


@pytest.mark.parametrize("solver", [DCD(), SDCA()], ids=repr)
def test_with_a_free_intercept_the_model_is_that_of_the_dual_variables(solver: Any) -> None:
    """Which are balanced, so that they are feasible, and have the best intercept."""
    problem = small_problem(Hinge(), intercept="free")
    result = fit(problem, solver, LAST)
    assert abs(result.alpha.sum()) <= 1e-12 * np.abs(result.alpha).sum()
    np.testing.assert_allclose(result.coef, problem.C * result.alpha @ problem.X.values, rtol=1e-10, atol=1e-12)
    is_its_own(problem, result)


@pytest.mark.parametrize("solver", [Newton(warm_up=0), Columns()], ids=repr)
def test_the_solvers_with_newton_steps_return_their_last_iterate(solver: Any) -> None:
    problem = small_problem(Logistic(), C=5.0)
    result, state = fit(problem, solver, LAST), driven(problem, solver)
    assert np.array_equal(result.coef, solver.last_point(problem, state).w[:-1])
    is_its_own(problem, result)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
def test_the_solvers_of_small_problems_do_so_too(loss: Loss) -> None:
    problem = small_problem(loss, C=5.0)
    limits = Limits(tol=0.0, max_epochs=2, certify_every=2, keep="last")
    result, state = fit(problem, Auto(), limits), driven(problem, Auto(), epochs=2)
    inner = state.inner
    assert np.array_equal(result.coef, inner.small.feature_weights(inner.best_points.last.u)[0, :-1])
    is_its_own(problem, result)


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "blocks"])
def test_every_solver_has_a_last_point_with_a_true_certificate(name: str) -> None:
    problem = small_problem(SquaredHinge(), C=5.0, intercept="regularized")
    for epochs in (1, 4):
        limits = Limits(tol=0.0, max_epochs=epochs, keep="last")
        is_its_own(problem, fit(problem, SOLVERS[name](), limits))


@pytest.mark.parametrize("solver", PRIMAL_AND_DUAL, ids=repr)
def test_callbacks_see_every_iterate(solver: Any) -> None:
    """Each record has the point of its epoch: that of a plain loop that ends there, rounding apart for dual solvers,
    whose certificates rebuild w."""
    problem, seen = small_problem(Hinge(), lam=1e-2), []
    limits = Limits(tol=0.0, max_epochs=EPOCHS, certify_every=1, keep="last")
    fit(problem, solver, limits, callbacks=[seen.append])
    assert [record.epoch for record in seen] == pytest.approx(range(1, EPOCHS + 1), rel=0.2)
    for record in seen:
        w = own_weights(problem, driven(problem, solver, epochs=round(record.epoch)))
        exact = isinstance(solver, Pegasos)
        np.testing.assert_allclose(record.coef, w[:-1], rtol=0.0 if exact else 1e-9, atol=0.0 if exact else 1e-12)
        assert record.primal == pytest.approx(problem.unit * plain_primal(problem, record.coef, 0.0), rel=1e-9)


def test_the_last_may_be_worse_than_the_best_and_is_told_with_its_own_gap() -> None:
    problem, solver = small_problem(Hinge(), lam=1e-4), Pegasos(output="last")
    limits = {"tol": 0.0, "max_epochs": 20}
    best, last = (fit(problem, solver, Limits(**limits, keep=keep)) for keep in ("best", "last"))
    assert last.certificate.primal > 1.01 * best.certificate.primal
    assert last.trace[-1]["primal"] == last.certificate.primal
    assert last.trace[-1]["relative_gap"] == last.certificate.relative_gap


def test_the_gap_to_prove_is_that_of_the_last_point() -> None:
    problem = small_problem(SquaredHinge(), C=0.05)
    result = fit(problem, Pegasos(output="last"), Limits(tol=0.05, max_epochs=5000, keep="last"))
    assert result.outcome is Outcome.CERTIFIED
    assert result.certificate.relative_gap <= 0.05
    is_its_own(problem, result)


@pytest.mark.parametrize("make", [lambda: Pegasos(output="last"), DCD, SDCA], ids=["pegasos", "dcd", "sdca"])
def test_a_checkpoint_continues_it(make: Callable[[], Any], tmp_path: Path) -> None:
    problem, place = small_problem(Hinge(), lam=1e-2), Checkpoint(tmp_path / "run")

    def until(epochs: int, **given: Any) -> Any:
        limits = Limits(tol=0.0, max_epochs=epochs, certify_every=2, keep="last")
        return fit(problem, make(), limits, seed=1, **given)

    whole = until(6)
    until(4, checkpoint=place)
    resumed, ended = until(6, checkpoint=place), until(6, checkpoint=place)
    for other in (resumed, ended):
        assert abs(other.epochs - 6.0) < 0.1
        is_its_own(problem, other)
        assert agree(whole, other)


def test_a_checkpoint_of_a_fit_that_keeps_the_best_has_no_last_point(tmp_path: Path) -> None:
    problem, place = small_problem(Hinge(), lam=1e-2), Checkpoint(tmp_path / "run")
    fit(problem, DCD(), Limits(tol=0.0, max_epochs=2), checkpoint=place)
    with pytest.raises(ValueError, match="belongs to another fit: keep"):
        fit(problem, DCD(), Limits(tol=0.0, max_epochs=2, keep="last"), checkpoint=place)
