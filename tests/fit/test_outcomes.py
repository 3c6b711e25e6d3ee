"""How a fit ends: every outcome, what it proves, and what the result says."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import ADVICE, LONG_EPOCHS, Limits, NotCertifiedWarning, Outcome, Record, StallWatch
from saddlesvm.problem.certificate import Certificate, Point
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Pegasos
from saddlesvm.solvers.base import Budget, SolverBase, State
from support import labels, matrix, plain_dual, plain_primal, small_problem
from support.fitting import SOLVERS

every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


class Idle(SolverBase):
    """Does nothing, and hands over what it is told to."""

    alpha = 0.0

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> State:
        return State(w=np.zeros(problem.n_features + 1), active=problem.members.size)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        state.rows_touched += budget.rows
        state.epochs = state.rows_touched / problem.members.size
        return state

    def solution(self, problem: Problem, state: State) -> Point:
        return Point(state.w, self.alpha * problem.y)


class Infeasible(Idle):
    alpha = 2.0


class Diverging(Idle):
    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        state = super().step(problem, state, budget)
        if state.epochs > 20:
            state.w = np.full_like(state.w, np.nan)
        return state


def test_more_rounding_takes_a_certificate_away_where_it_proves_too_little() -> None:
    result = fit(small_problem(Hinge(), intercept="regularized"), DCD(), Limits(tol=1e-4))
    proven = result.certificate
    wider = replace(proven, dual=proven.dual - 0.5 * abs(proven.primal))
    assert result.replace_certificate(proven, "shares").outcome is Outcome.CERTIFIED
    found = result.replace_certificate(wider, "shares")
    assert (found.outcome, found.certificate) == (Outcome.LIMITED_BY_ROUNDING, wider)
    assert found.reason == f"relative gap {wider.relative_gap:.2g}, rounding of shares included"
    by_gap = replace(result, gap=2.0 * wider.gap)
    assert by_gap.replace_certificate(wider, "shares").outcome is Outcome.CERTIFIED
    stopped = replace(result, outcome=Outcome.INTERRUPTED)
    assert stopped.replace_certificate(wider, "shares") == replace(stopped, certificate=wider)


@every_solver
def test_certified_means_proven(solver: Any) -> None:
    problem = small_problem(Hinge(), lam=0.1)
    result = fit(problem, solver, Limits(tol=3e-2, max_epochs=5000))
    assert result.outcome is Outcome.CERTIFIED, result.message
    assert result.certificate.gap >= 0.0 and result.certificate.relative_gap <= 3e-2
    assert result.certificate.form == "lambda"
    assert result.coef.dtype == result.alpha.dtype == np.float64
    assert (result.coef.shape, result.alpha.shape) == ((5,), (60,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result.warn()


@every_solver
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_the_result_holds_the_points_behind_its_certificate(solver: Any, intercept: str) -> None:
    problem = small_problem(Hinge(), C=0.1, intercept=intercept)
    result = fit(problem, solver, Limits(tol=1e-9, max_epochs=37))
    assert result.certificate.primal == pytest.approx(plain_primal(problem, result.coef, result.intercept), rel=1e-10)
    assert result.certificate.dual == pytest.approx(plain_dual(problem, result.alpha), rel=1e-10)


def test_the_solvers_own_rule() -> None:
    result = fit(small_problem(Hinge()), DCD(stopping="projected_gradient", threshold=0.1), Limits(tol=0.0))
    assert result.outcome is Outcome.RULE_MET
    assert 0.0 < result.certificate.relative_gap < 0.1


@every_solver
def test_a_time_limit_of_nothing_still_gives_a_certificate(solver: Any) -> None:
    result = fit(small_problem(Hinge()), solver, Limits(tol=0.0, max_time=1e-9))
    assert result.outcome is Outcome.TIME_LIMIT
    assert result.certificate.sound and result.epochs > 0.0
    assert len(result.trace) == 1


@pytest.mark.parametrize("solver", [SDCA(), DCD(), DCD(shrinking=False), Pegasos()], ids=repr)
@pytest.mark.parametrize("epochs", [1, 2.5, 3, 40])
def test_the_epoch_limit_is_exact(solver: Any, epochs: float) -> None:
    result = fit(small_problem(SquaredHinge()), solver, Limits(tol=0.0, max_epochs=epochs))
    assert result.outcome is Outcome.EPOCH_LIMIT
    assert result.epochs == epochs
    assert result.rows_touched == 60 * epochs
    assert result.trace[-1]["epoch"] == epochs


def test_batches_overshoot_by_less_than_one() -> None:
    result = fit(small_problem(Hinge()), Pegasos(7), Limits(tol=0.0, max_epochs=3))
    assert 180 <= result.rows_touched < 187


@every_solver
def test_an_event_interrupts(solver: Any) -> None:
    stop = threading.Event()
    stop.set()
    result = fit(small_problem(Hinge()), solver, Limits(tol=0.0), stop=stop)
    assert result.outcome is Outcome.INTERRUPTED
    assert result.certificate.sound and len(result.trace) == 1


@every_solver
def test_a_callback_interrupts(solver: Any) -> None:
    seen: list[Record] = []

    def after_three(record: Record) -> bool:
        seen.append(record)
        return len(seen) == 3

    limits = Limits(tol=0.0, certify_every=1)
    result = fit(small_problem(Hinge(), C=0.1), solver, limits, callbacks=[after_three])
    assert result.outcome is Outcome.INTERRUPTED
    assert len(seen) == len(result.trace) == 3
    assert result.certificate.primal <= seen[-1].primal and result.certificate.dual >= seen[-1].dual


@every_solver
def test_ctrl_c_returns_the_best_model_so_far(solver: Any, keyboard: Any) -> None:
    seen: list[Record] = []

    def press_once(record: Record) -> None:
        seen.append(record)
        if len(seen) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    limits = Limits(tol=0.0, certify_every=1)
    result = fit(small_problem(Hinge(), C=0.1), solver, limits, callbacks=[press_once])
    assert result.outcome is Outcome.INTERRUPTED
    assert result.certificate.sound
    assert len(result.trace) == 2
    assert signal.getsignal(signal.SIGINT) is keyboard


def test_a_second_ctrl_c_ends_at_once(keyboard: Any) -> None:
    def press_twice(record: Record) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(small_problem(Hinge()), SDCA(), Limits(tol=0.0), callbacks=[press_twice])
    assert signal.getsignal(signal.SIGINT) is keyboard


def test_another_handler_of_ctrl_c_is_left_alone(keyboard: Any) -> None:
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(True))

    def press(record: Record) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    result = fit(small_problem(Hinge()), SDCA(), Limits(tol=0.0, max_epochs=5), callbacks=[press])
    assert result.outcome is Outcome.EPOCH_LIMIT
    assert pressed


def test_no_progress() -> None:
    result = fit(small_problem(Hinge()), Idle(), Limits(tol=1e-3))
    assert result.outcome is Outcome.NO_PROGRESS
    assert result.certificate.sound
    assert 64 <= result.epochs <= 512
    assert "1" in result.reason


def test_a_dual_point_that_is_not_feasible_is_a_failure() -> None:
    result = fit(small_problem(Hinge()), Infeasible(), Limits(tol=1e-3))
    assert result.outcome in (Outcome.FAILED, Outcome.NO_PROGRESS)
    assert not result.certificate.relative_gap <= 1e-3


def test_weights_that_diverge_are_a_failure_with_the_best_model_so_far() -> None:
    result = fit(small_problem(Hinge()), Diverging(), Limits(tol=1e-3))
    assert result.outcome is Outcome.FAILED
    assert "finite" in result.reason
    assert np.isfinite(result.coef).all() and result.certificate.sound


@pytest.mark.parametrize("solver", [SDCA(), SDCA(start="sgd"), DCD(), Pegasos(), Pegasos(5, True)], ids=repr)
@pytest.mark.parametrize("size", [1e200, 1e160])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_numbers_that_overflow_never_give_a_certificate_that_is_wrong(solver: Any, size: float) -> None:
    X = matrix(20, 3) * size
    problem = make_problem(as_rows(X), labels(matrix(20, 3), Hinge()), Hinge(), C=1.0)
    result = fit(problem, solver, Limits(tol=1e-3, max_epochs=300))
    assert result.coef.shape == (3,) and np.isfinite(result.coef).all()
    if result.outcome is Outcome.CERTIFIED:
        assert result.certificate.sound and result.certificate.primal <= 20.0
    else:
        assert result.message and result.outcome.advice


def test_every_outcome_has_advice() -> None:
    assert set(ADVICE) == set(Outcome)
    assert {str(outcome) for outcome in Outcome} == {outcome.value for outcome in Outcome}
    assert all(outcome.advice.endswith(".") for outcome in Outcome)


def test_the_warning_names_gap_and_percent() -> None:
    result = fit(small_problem(Hinge()), SDCA(), Limits(tol=1e-9, max_epochs=12))
    with pytest.warns(NotCertifiedWarning) as caught:
        result.warn(stacklevel=2)
    text = str(caught[0].message)
    assert caught[0].filename == __file__
    assert f"relative gap is {result.certificate.relative_gap:.2g}" in text
    assert f"at most {100 * result.certificate.excess:.3g} % above the optimum" in text
    for word in ("epoch_limit", "12 epochs", "1e-09", "max_iter"):
        assert word in text


def test_a_bound_that_says_nothing_is_not_made_a_percentage() -> None:
    result = fit(small_problem(EpsilonInsensitive(0.1)), Idle(), Limits(tol=1e-3, max_epochs=1))
    assert result.certificate.dual <= 0.0
    assert "%" not in result.message and "nothing is known" in result.message


def test_beyond_many_epochs_a_gap_that_falls_slowly_stands() -> None:
    def ends_at(power: float) -> float | None:
        watch, epoch = StallWatch(), 100.0
        while epoch < 1e9:
            gap = epoch**-power
            if watch.is_stalled(epoch, Certificate(1.0 + gap, 1.0)):
                return epoch
            epoch *= 1.1
        return None

    assert ends_at(1.0) is None and ends_at(0.6) is None
    assert 2 * LONG_EPOCHS <= (ends_at(0.3) or 0.0) <= 4 * LONG_EPOCHS
