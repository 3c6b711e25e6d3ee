"""Steps past corners: Newton's step without rows taken along, the optimum with all, and the optima of whole fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.over_passes import NewtonRounds
from saddlesvm.cluster.part import make_part
from saddlesvm.cluster.rounds import Training
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import Loss, is_cornerless, is_smooth
from saddlesvm.problem.problem import Problem, is_classification, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import MemoryPlan
from saddlesvm.solvers import DCD
from saddlesvm.solvers.second_order import over_passes as walks
from saddlesvm.solvers.second_order.corners import Model, Near, share_of
from saddlesvm.solvers.second_order.driver import Setting
from saddlesvm.solvers.second_order.over_files import NewtonOnFiles
from saddlesvm.solvers.second_order.over_passes import NewtonOverPasses
from saddlesvm.solvers.second_order.row_statistics import Ask, RowStatistics
from support import ALL_LOSSES, csr, labels, matrix, named
from support.mapped import D, N, mapped, streamed

CORNERED = [loss for loss in ALL_LOSSES if is_smooth(loss) and not is_cornerless(loss)]
BLOCKS = MemoryPlan(2**30, np.array([0, 90, 130, 260, 300, N]), 2, False)


@pytest.fixture
def from_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are taken along after one step."""
    monkeypatch.setattr(walks, "EASY", 1)
    monkeypatch.setattr(walks, "CLOSE", 0.0)


def looked(problem: Problem, w: np.ndarray, other: np.ndarray, share: float) -> tuple[Model, RowStatistics]:
    """The model after a pass at w with so many of the rows taken along, and the sums of the pass."""
    ask = Ask(w, np.empty(0), near=Near(other, share) if share else None)
    told = ask.empty()
    ask.add_to(told, problem.terms, problem.members)
    newton = NewtonOverPasses.begin(w, problem.loss, room=share)
    newton.corners = True
    model = newton.take(Setting(problem.loss, problem.C, problem.regularizer, 1e-6, 1e8), told)
    assert model is not None
    return model, told


def posed(loss: Loss, layout: str = "dense", C: float = 3.0) -> Problem:
    """A weighted problem of two hundred rows."""
    X = matrix(200, 4, density=0.7)
    rows = as_rows(X if layout == "dense" else csr(X), 1.0)
    return make_problem(rows, labels(X, loss), loss, C=C, weights=1.0 + np.arange(200) % 3, intercept="regularized")


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", CORNERED, ids=named)
def test_rows_taken_along_are_left_out_of_the_matrix_and_of_nothing_else(loss: Loss, layout: str) -> None:
    problem, (w, other) = posed(loss, layout), np.random.default_rng(0).normal(size=(2, 5))
    _, plain = looked(problem, w, other, 0.0)
    _, told = looked(problem, w, other, 0.2)
    assert 0 < told.counts[0] <= 0.2 * 200
    whole = told.matrix.copy()
    for piece in told.pieces:
        for i, (y, s) in enumerate(zip(piece.y, piece.weights, strict=True)):
            x = piece.X.dense_row(i)
            whole += problem.C * s * loss.curvature(x @ w, y) * np.outer(x, x)
    assert np.tril(whole) == pytest.approx(np.tril(plain.matrix))
    for mine, theirs in zip(told.values[:5], plain.values[:5], strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("loss", CORNERED, ids=named)
def test_without_rows_it_is_a_newton_step_and_with_all_of_them_the_optimum(loss: Loss) -> None:
    problem, w = posed(loss), np.random.default_rng(1).normal(size=5)
    best = fit(problem, DCD(), Limits(tol=1e-9)).certificate.primal
    model, told = looked(problem, w, w, 0.0)
    lower, gradient, step = np.tril(told.matrix), w - model.pull, model.solve(told)
    hessian = lower + np.tril(lower, -1).T + np.eye(5)
    expected = -np.linalg.solve(hessian, gradient)
    assert step.step == pytest.approx(expected) and step.fall == pytest.approx(-0.5 * gradient @ expected)
    factor = np.linalg.cholesky(hessian)
    assert step.alike == pytest.approx((factor.diagonal() ** 2 / hessian.diagonal()).min())
    before = evaluate(problem, Point(w), given_offset=True).certificate.primal
    model, told = looked(problem, w, w + 1e3, 1.0)
    step = model.solve(told)
    after = evaluate(problem, Point(w + step.step), given_offset=True).certificate.primal
    assert after <= best + 0.04 * (before - best)
    assert told.counts[0] > 190 and step.fall == pytest.approx(before - after)


@pytest.mark.usefixtures("from_the_first_step")
@pytest.mark.parametrize("kind", ["regularized", "free", "none"])
@pytest.mark.parametrize("loss", CORNERED, ids=named)
def test_stores_and_partitions_end_at_the_optimum_of_memory(loss: Loss, kind: Any, tmp_path: Path) -> None:
    X = matrix(N, D) * np.logspace(0, -2, D)
    y, s = labels(X, loss), np.where(np.arange(N) % 5 == 0, 0.0, 1.0 + np.arange(N) % 3)
    plain = make_problem(as_rows(X, 0.0 if kind == "none" else 1.0), y, loss, intercept=kind, weights=s, C=30.0)
    best = fit(plain, DCD(), Limits(tol=1e-8)).certificate
    problem = streamed(mapped(X, tmp_path), y, loss, BLOCKS, intercept=kind, weights=s, C=30.0, kept_bytes=30_000)
    found = fit(problem, NewtonOnFiles(), Limits(tol=1e-6, max_epochs=40))
    assert found.outcome is Outcome.CERTIFIED
    assert best.dual <= found.certificate.primal <= best.primal / (1.0 - 1.1e-6)
    classes, scale = np.array([-1.0, 1.0]) if is_classification(loss) else None, 0.0 if kind == "none" else 1.0
    parts = [make_part(X[k::3], y[k::3], s[k::3], classes, scale, kind, place=k) for k in range(3)]
    plan = Training(loss, 30.0, N, 1, D, tol=1e-6, max_rounds=40, free=kind == "free", scale=scale)
    rounds = NewtonRounds(plan, Engine(parts, 1), most=90)
    solution = rounds.run()
    assert solution.outcome is Outcome.CERTIFIED
    assert rounds.runs[0].corners
    assert best.dual <= solution.certificates[0].primal <= best.primal / (1.0 - 1.1e-6)


def test_too_little_room_is_none() -> None:
    assert share_of(1000, 100, 300) == 0.0
    assert share_of(1000, 100, 500) == 0.5
    assert share_of(10**6, 100, 10**5) == 1600 / 10**6
