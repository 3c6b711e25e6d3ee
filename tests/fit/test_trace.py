"""The trace of a fit, when certificates come, and that a seed repeats a fit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import COLUMNS, FitResult, Limits, Outcome, Record
from saddlesvm.problem.certificate import evaluate
from saddlesvm.problem.losses import Hinge, Logistic, Loss, Squared, SquaredHinge
from saddlesvm.solvers import DCD, SDCA, Pegasos
from saddlesvm.solvers.base import Budget
from support import small_problem
from support.fitting import SOLVERS, equal

every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


@every_solver
def test_the_trace_has_a_row_for_each_certificate(solver: Any) -> None:
    records: list[Record] = []
    result = fit(
        small_problem(Hinge(), C=0.1),
        solver,
        Limits(tol=0.0, max_epochs=30),
        callbacks=[records.append],
        label="5 against 3",
    )
    assert len(records) == len(result.trace)
    assert all(tuple(row) == COLUMNS for row in result.trace)
    frame = pd.DataFrame(result.trace)
    assert tuple(frame.columns) == COLUMNS and len(frame) == len(records)
    assert set(frame["problem"]) == {"5 against 3"}
    for rising in ("epoch", "rows_touched", "seconds_solving", "seconds_certifying", "dual"):
        assert np.all(np.diff(result.trace.column(rising)) >= 0.0), rising
    assert np.all(np.diff(result.trace.column("primal")) <= 0.0)
    last = result.trace[-1]
    primal, dual = _bounds(result)
    assert (last["primal"], last["dual"], last["epoch"]) == (primal, dual, result.epochs)
    assert np.allclose(result.trace.column("gap"), frame["primal"] - frame["dual"], atol=0.0)


def _bounds(result: FitResult) -> tuple[float, float]:
    return result.certificate.primal, result.certificate.dual


def test_certificates_come_when_asked_for() -> None:
    result = fit(small_problem(Hinge()), SDCA(), Limits(tol=0.0, max_epochs=7, certify_every=2))
    assert list(result.trace.column("epoch")) == [2, 4, 6, 7]


def test_a_rough_gap_is_looked_for_after_the_first_epoch() -> None:
    rough = fit(small_problem(Logistic(), C=0.01), DCD(), Limits(tol=0.1))
    assert (rough.outcome, rough.epochs) == (Outcome.CERTIFIED, 1.0)
    assert rough.certificate.relative_gap <= 0.1
    assert fit(small_problem(Logistic(), C=0.01), DCD(), Limits(tol=0.09)).epochs > 1.0


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Squared()], ids=repr)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_estimate_after_two_passes_over_all_rows_is_at_least_about_the_gap(loss: Loss, C: float) -> None:
    problem, solver = small_problem(loss, C=C), DCD(shrinking=False)
    state = solver.init(problem, 0)
    while state.epochs < 12:
        state = solver.step(problem, state, Budget(problem.members.size))
        gap = evaluate(problem, solver.solution(problem, state)).certificate.relative_gap
        assert gap <= max(2.0 * state.estimate, 1e-12)
        if state.epochs > 1:
            assert state.estimate <= state.known  # which is half a pass old


@pytest.mark.parametrize("solver", [SDCA(), DCD(), Pegasos()], ids=repr)
def test_certificates_cost_at_most_about_a_fifth(solver: Any) -> None:
    result = fit(small_problem(Hinge(), C=0.1), solver, Limits(tol=0.0, max_epochs=400))
    assert 3 <= len(result.trace) <= 0.2 * result.epochs + 1


def test_slices_of_work_are_told_to_those_who_listen() -> None:
    class Listener:
        def __init__(self) -> None:
            self.ticks: list[tuple[float, float, float]] = []

        def tick(self, epoch: float, estimate: float, seconds: float) -> None:
            self.ticks.append((epoch, estimate, seconds))

        def __call__(self, record: Record) -> None:
            assert self.ticks[-1][0] == record.epoch

    listener = Listener()
    result = fit(small_problem(Hinge()), SDCA(), Limits(tol=0.0, max_epochs=20), callbacks=[listener])
    assert len(listener.ticks) >= len(result.trace)
    assert listener.ticks[-1][0] == 20


@every_solver
def test_a_seed_repeats_to_the_last_bit_also_in_parallel_threads(solver: Any) -> None:
    problem = small_problem(Hinge(), n=200, C=0.05, intercept="regularized")
    limits = Limits(tol=1e-6, max_epochs=40)
    alone = fit(problem, solver, limits, seed=7)
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda seed: fit(problem, solver, limits, seed=seed), [7, 8, 7, 7]))
    assert all(equal(alone, together[k]) for k in (0, 2, 3))
    assert not np.array_equal(alone.coef, together[1].coef)


def test_a_slice_of_work_can_be_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small_problem(Hinge(), intercept="free")
    limits = Limits(tol=0.0, max_epochs=10, certify_every=5)
    solvers = SDCA(), DCD(shrinking=False), Pegasos()
    whole = [fit(problem, solver, limits) for solver in solvers]
    monkeypatch.setattr("saddlesvm.fit.run.SLICE_VALUES", 35)
    for solver, one in zip(solvers, whole, strict=True):
        assert np.array_equal(one.coef, fit(problem, solver, limits).coef)
