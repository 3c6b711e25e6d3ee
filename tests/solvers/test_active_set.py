"""The active-set method: what a pass over the rows tells, the problem over free rows, the optima, resumed runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.bounds import dual_of
from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.problem.sums import conjugate_sum, dual_weights
from saddlesvm.problem.terms import Pointwise
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import MemoryPlan
from saddlesvm.solvers import DCD
from saddlesvm.solvers.active_set import ActiveSet, TakenProblem
from saddlesvm.solvers.auto_on_files import BlocksThenActiveSet
from saddlesvm.solvers.free_rows import FreeRowQuestion, free_rows, width_of
from saddlesvm.solvers.newton import GAP_OF_FALL
from saddlesvm.solvers.newton_on_files import NewtonOnFiles
from saddlesvm.solvers.over_passes import Setting
from saddlesvm.solvers.search import PLACES
from support import ALL_LOSSES, csr, labels, matrix, named
from support.mapped import D, N, mapped, streamed

KINKED = [loss for loss in ALL_LOSSES if not is_smooth(loss)]
BLOCKS = MemoryPlan(2**30, np.array([0, 90, 130, 260, 300, N]), 2, False)
ROOM = 400 * 90  # bytes for about 90 rows


def narrow(X: Any, y: np.ndarray, loss: Loss, **options: Any) -> Problem:
    """A problem over three blocks of unequal size, with room for some of the rows."""
    problem = streamed(X, y, loss, plan=BLOCKS, **options)
    object.__setattr__(problem, "rooms", problem.rooms._replace(kept_bytes=ROOM))
    return problem


def at_random(loss: Loss, layout: str) -> tuple[Any, np.ndarray]:
    """A weighted problem of sixty rows, and two points."""
    X = matrix(60, 4, density=0.6)
    rows = as_rows(X if layout == "dense" else csr(X), 1.0)
    s = 1.0 + np.arange(60) % 3
    problem = make_problem(rows, labels(X, loss), loss, C=0.7, weights=s, intercept="regularized")
    return problem, np.random.default_rng(1).normal(size=(2, 5))


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("loss", KINKED, ids=named)
def test_a_pass_tells_what_plain_sums_do(loss: Loss, layout: str) -> None:
    problem, (w, back) = at_random(loss, layout)
    question = FreeRowQuestion(w, back, 0.4, 100, 0.5)
    found, alpha, chosen = question.empty(), np.zeros(60), np.arange(60)[10:50]
    for part in (chosen[:7], chosen[7:]):
        question.add_to(found, problem.terms, part, alpha)
    dense = np.array([problem.X.dense_row(i) for i in chosen])
    y, s, z, before = problem.y[chosen], problem.weights[chosen], dense @ w, dense @ back
    a = np.array([-s[k] * loss.subgradient(z[k], y[k]) for k in range(chosen.size)])
    ends = [[loss.subgradient(z[k] + move, y[k]) for move in (-0.4, 0.4)] for k in range(chosen.size)]
    inside = np.array([low != high for low, high in ends])

    def paid(margins: np.ndarray) -> float:
        return sum(s[k] * loss.value(m, y[k]) for k, m in enumerate(margins))

    assert found.sums[0] == pytest.approx(paid(z))
    assert found.sums[1] == pytest.approx(sum(loss.conjugate(a[k], y[k], s[k]) for k in np.flatnonzero(~inside)))
    assert found.line == pytest.approx([paid(before + t * (z - before)) for t in PLACES])
    assert found.pull == pytest.approx(dense[~inside].T @ a[~inside])
    assert np.array_equal(np.concatenate([piece.rows for piece in found.pieces]), chosen[inside])
    drawn = np.concatenate([piece.rows for piece in found.drawn])
    assert 0 < drawn.size < np.count_nonzero(~inside)
    assert not np.isin(drawn, chosen[inside]).any()
    assert alpha[chosen] == pytest.approx(a)


@pytest.mark.parametrize("loss", KINKED, ids=named)
def test_decided_rows_keep_their_multiplier_within_the_width(loss: Loss) -> None:
    problem, (w, _) = at_random(loss, "dense")
    z = np.array([problem.X.dense_row(i) @ w for i in range(60)])
    points, every = Pointwise(loss, problem.y, problem.weights), np.arange(60)
    width = width_of(points, z, 0.5)
    mask = free_rows(points, every, z, width)
    assert mask.mean() <= 0.5
    assert free_rows(points, every, z, 1.3 * width).mean() > 0.5
    for move in width * np.linspace(-1.0, 1.0, 7):
        kept = [loss.subgradient(z[i] + move, problem.y[i]) == loss.subgradient(z[i], problem.y[i]) for i in every]
        assert np.array(kept)[~mask].all()


@pytest.mark.parametrize("loss", KINKED, ids=named)
def test_a_solution_bounds_the_objective_everywhere(loss: Loss) -> None:
    """Whatever rows are free, the dual point is feasible, and its bound lies below the optimum."""
    problem, points = at_random(loss, "csr")
    best = fit(problem, DCD(), Limits(tol=1e-9)).certificate
    for w in points:
        for width, most, drawn in ((0.3, 100, 0.0), (0.3, 5, 0.3), (0.0, 0, 0.2), (np.inf, 100, 0.0)):
            question, alpha = FreeRowQuestion(w, np.empty(0), width, most, drawn), np.zeros(60)
            found = question.empty()
            question.add_to(found, problem.terms, problem.members, alpha)
            before = problem.regularizer.value(w) + problem.C * found.sums[0]
            solved = TakenProblem(w, Setting(loss, problem.C, problem.regularizer, 1e-6, 1e8), 1e-12, 1e-8).solve(found)
            alpha[solved.rows] = solved.alpha
            assert solved.pull == pytest.approx(dual_weights(problem, alpha))
            plain = conjugate_sum(problem.pointwise, problem.members, alpha, 1.0)
            assert solved.conjugates == pytest.approx(plain)
            bound = dual_of(problem.C, plain, problem.regularizer.conjugate(solved.pull))
            assert bound <= best.primal + 1e-9 * abs(best.primal)
            if np.isinf(width):
                assert bound >= best.primal - GAP_OF_FALL * (before - best.primal) - 1e-8 * abs(best.primal)


def test_blocks_go_on_where_a_multitude_has_one_margin(tmp_path: Path) -> None:
    """Unequal classes that nothing tells apart: all rows have the margin 1, by a constant feature."""
    X = np.zeros((N, D))
    X[:, 0] = 1.0
    problem = narrow(mapped(X, tmp_path), np.where(np.arange(N) % 4 == 0, -1.0, 1.0), Hinge(), C=10.0)
    alone = fit(problem, NewtonOnFiles(), Limits(tol=1e-6))
    assert alone.outcome is Outcome.NO_PROGRESS
    assert "give more memory" in alone.reason
    assert fit(problem, BlocksThenActiveSet(), Limits(tol=1e-6)).outcome is Outcome.CERTIFIED


def test_a_step_back_keeps_the_width_of_the_rows_around_its_beginning() -> None:
    """A solution may lie far off, as with noisy labels: its margins say nothing of the free rows on the way."""
    loss = Hinge()
    problem, (ahead, _) = at_random(loss, "dense")
    run, setting = ActiveSet.begin(np.zeros(5), 20, 60), Setting(loss, problem.C, problem.regularizer, 1e-6, 1e8)
    run.width = 1.5

    def look() -> bool:
        found = run.question().empty()
        run.question().add_to(found, problem.terms, problem.members)
        return run.learn_from_pass(setting, found) is not None

    assert look()  # the first point stays, and what is to come is a solution's
    run.at, run.line_start, width = 1e3 * ahead, run.at, run.width
    assert not look()
    assert np.abs(run.at).max() < np.abs(1e3 * ahead).max()
    assert run.width == width
