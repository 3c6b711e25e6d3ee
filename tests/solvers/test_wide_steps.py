"""Newton's method where a matrix of all features has no room: products told by passes, on files and on partitions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster import over_passes
from saddlesvm.cluster.choice import choose_method
from saddlesvm.cluster.method import ClusterPlan, Solution
from saddlesvm.cluster.over_passes import PassRounds
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import Hinge, Logistic, SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import MemoryPlan
from saddlesvm.solvers import DCD
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.conjugate import ProductsOverPasses
from saddlesvm.solvers.newton_on_files import NewtonOnFiles
from saddlesvm.solvers.sweeps import reader_of
from support import csr, distance_bound, labels, matrix, named
from support.mapped import D, N, StopAt, mapped, streamed
from support.partitions import Engine, cut

BLOCKS = MemoryPlan(2**30, np.array([0, 90, 130, 260, 300, N]), 2, False)
WIDE = NewtonOnFiles(memory=0.0)


def on_files(X: Any, y: np.ndarray, loss: Loss, **options: Any) -> Problem:
    """A problem over three blocks."""
    return streamed(X, y, loss, plan=BLOCKS, **options)


def test_conjugate_gradients_reach_the_solution_in_as_many_products_as_there_are_features() -> None:
    rows, gradient = np.random.default_rng(2).normal(size=(40, 6)), np.arange(1.0, 7.0)
    penalty, inner = np.ones(6), ProductsOverPasses()
    inner.begin_at(gradient, penalty, (rows**2).sum(axis=0), np.empty(0))
    H = np.eye(6) + rows.T @ rows

    def fall() -> float:
        return float(-gradient @ inner.solution - 0.5 * inner.solution @ H @ inner.solution)

    falls = []
    inner.target = 1e-20
    while inner.under_way and inner.iterations < 6:
        inner.go_on(penalty, rows.T @ (rows @ inner.direction))
        falls.append(fall())
    best = np.linalg.solve(H, -gradient)
    assert np.allclose(inner.solution, best, rtol=1e-8)
    assert falls == sorted(falls)
    assert falls[-1] == pytest.approx(-0.5 * gradient @ best)
    inner.begin_at(
        gradient, penalty, (rows**2).sum(axis=0), rows.T @ (rows @ inner.direction)
    )  # with a product at hand
    assert fall() >= 0.0


def test_what_a_sweep_proves_is_true_between_looks_too(tmp_path: Path) -> None:
    X = matrix(N, D).astype(np.float32) * np.logspace(0, -2, D).astype(np.float32)
    y = labels(X, Logistic())
    problem = on_files(mapped(X, tmp_path), y, Logistic(), intercept="regularized", C=100.0)
    plain = make_problem(as_rows(X, 1.0), y, Logistic(), intercept="regularized", C=100.0)
    before, alone = np.inf, 0
    state = WIDE.init(problem, 0)
    for _ in range(14):
        alone += state.method.products.under_way
        for _ in range(reader_of(problem).n_blocks):
            state = WIDE.step(problem, state, Budget(1))
        seen = evaluate(problem, WIDE.solution(problem, state))
        again = evaluate(plain, Point(np.append(seen.coef, seen.intercept), seen.alpha)).certificate
        assert seen.certificate.primal == pytest.approx(again.primal, rel=1e-12)
        assert seen.certificate.dual <= again.dual + 1e-12 * abs(again.dual)
        assert seen.certificate.primal <= before * (1.0 + 1e-12)
        before = seen.certificate.primal
    assert 0 < alone < 14


def test_with_another_memory_a_run_goes_on(tmp_path: Path) -> None:
    X = matrix(N, D)
    file, y, path = mapped(X, tmp_path), labels(X, Logistic()), tmp_path / "run"
    begun = on_files(file, y, Logistic(), C=1e3)
    with pytest.raises(KeyboardInterrupt):
        fit(begun, WIDE, Limits(tol=1e-6), callbacks=[StopAt(8)], checkpoint=Checkpoint(path, 1e9, 1))
    resumed = fit(on_files(file, y, Logistic(), C=1e3), NewtonOnFiles(), checkpoint=Checkpoint(path))
    assert resumed.outcome is Outcome.CERTIFIED


def solved(X: Any, y: np.ndarray, cuts: list[int], loss: Loss, kind: Any = "regularized", **options: Any) -> Solution:
    """By products of the rows of partitions."""
    classes = np.unique(y)
    problems = classes.size if classes.size > 2 else 1
    plan = ClusterPlan(loss, 5.0, N, problems, D, tol=1e-6, max_rounds=90, free=kind == "free")
    return PassRounds(plan, Engine(cut(X, y, cuts, classes, None, kind))).run()


def reference(X: np.ndarray, y: np.ndarray, loss: Loss, kind: Any = "regularized") -> FitResult:
    return fit(make_problem(as_rows(X, 1.0), y, loss, C=5.0, intercept=kind), DCD(), Limits(tol=1e-7))


@pytest.mark.parametrize("kind", ["regularized", "free"])
@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=named)
def test_any_number_of_partitions_takes_the_same_rounds(loss: Loss, kind: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(over_passes, "MOST_BYTES", 0)
    X = matrix(N, D)
    y = labels(X, loss)
    found = [solved(X, y, cuts, loss, kind) for cuts in ([], [10, 150], list(range(7, N, 7)))]
    best = reference(X, y, loss, kind)
    for one in found:
        assert one.outcome is Outcome.CERTIFIED
        apart = np.linalg.norm(one.W[0][:-1] - best.coef)
        assert apart <= distance_bound(one.certificates[0].gap, best.certificate.gap)
    assert len({one.rounds for one in found}) == 1


def test_all_classes_of_sparse_rows_share_the_rounds(monkeypatch: Any) -> None:
    monkeypatch.setattr(over_passes, "MOST_BYTES", 0)
    X = matrix(N, D, density=0.5)
    y = np.digitize(X.sum(axis=1), [-0.5, 0.5])
    found = solved(csr(X), y, [100, 200], Logistic())
    assert found.outcome is Outcome.CERTIFIED
    for k in range(3):
        best = reference(X, 2.0 * (y == k) - 1.0, Logistic())
        apart = np.linalg.norm(found.W[k] - np.append(best.coef, best.intercept))
        assert apart <= distance_bound(found.certificates[k].gap, best.certificate.gap)


def test_a_smooth_loss_over_many_features_takes_products_by_itself() -> None:
    wide = ClusterPlan(Logistic(), 1.0, 10**6, 1, 47_000, scale=0.0)
    assert choose_method("auto", wide, 10**9, 10**8, 8) == "newton"
    assert choose_method("auto", replace(wide, free=True), 10**9, 10**8, 8) == "newton"
    kinked = ClusterPlan(Hinge(), 1.0, 10**6, 1, 47_000, scale=0.0)
    with pytest.raises(ValueError, match="take a smooth loss"):
        choose_method("auto", kinked, 10**9, 10**8, 8)
