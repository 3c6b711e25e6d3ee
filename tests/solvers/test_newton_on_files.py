"""Newton's method over sweeps: what a sweep tells, the optima of memory, any C, runs that are stopped and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from saddlesvm import LinearSVC, Store
from saddlesvm.fit.loop import drive, fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.fit.run import Fit
from saddlesvm.multiclass.linear_fit import ClassSweep
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import Logistic, SmoothHinge, SquaredHinge
from saddlesvm.problem.problem import Problem, Rooms, make_problem
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import MemoryPlan, make_plan
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.newton_on_files import NewtonOnFiles
from saddlesvm.solvers.sweeps import reader_of
from support import labels, matrix
from support.mapped import D, N, files, mapped, streamed

BLOCKS = MemoryPlan(2**30, np.array([0, 90, 130, 260, 300, N]), 2, False)


def many_blocks(X: Any, y: np.ndarray, loss: Loss, **options: Any) -> Problem:
    """A problem over three blocks of unequal size."""
    return streamed(X, y, loss, plan=BLOCKS, **options)


def test_features_that_are_nearly_alike_are_summed_in_double_precision(tmp_path: Path) -> None:
    """Two columns apart by 1e-4 of their size: sums in single precision would hide the difference."""
    X = matrix(N, D).astype(np.float32)
    X[:, 1] = X[:, 0] * (1.0 + np.float32(1e-4) * X[:, 2])
    problem = many_blocks(mapped(X, tmp_path), labels(X, SquaredHinge()), SquaredHinge(), C=1e8)
    solver = NewtonOnFiles()
    assert fit(problem, solver, Limits(tol=1e-6, max_epochs=40)).outcome is Outcome.CERTIFIED


def test_features_that_few_rows_have_take_no_more_sweeps(tmp_path: Path) -> None:
    """The rows that tell the curvature are drawn: they may miss some that alone have a feature."""
    X = matrix(20_000, D)
    X[:, -1] = 0.0
    X[::7_000, -1] = 100.0
    y = labels(X, Logistic())
    rows = as_rows(X)
    problem = streamed(mapped(X, tmp_path), y, Logistic(), plan=make_plan(rows, 2**24, 1), C=10.0)
    found = fit(problem, NewtonOnFiles(), Limits(tol=1e-6, max_epochs=40))
    assert found.outcome is Outcome.CERTIFIED
    assert found.epochs <= 15


def test_a_free_intercept_is_proven_by_one_more_sweep(tmp_path: Path) -> None:
    X = matrix(N, D)
    problem = many_blocks(mapped(X, tmp_path), labels(X, Logistic()), Logistic(), C=1e3, intercept="free")
    found = fit(problem, NewtonOnFiles(), Limits(tol=1e-6, max_epochs=20, certify_every=100.0))
    assert found.outcome is Outcome.CERTIFIED
    assert reader_of(problem).bytes_read <= (found.epochs + 1.0) * X.nbytes  # the next block is read ahead
    plain = make_problem(as_rows(X, problem.scale), problem.y, Logistic(), C=1e3, intercept="free")
    again = evaluate(plain, Point(np.append(found.coef, found.intercept / problem.scale), found.alpha)).certificate
    assert again.dual >= found.certificate.dual - 1e-9 * abs(again.dual)
    assert again.primal <= found.certificate.primal + 1e-9 * abs(again.primal)


def test_what_a_sweep_proves_is_true(tmp_path: Path) -> None:
    """The certificate of every sweep, that cost no reading, is that of its point in memory."""
    X = matrix(N, D).astype(np.float32)
    y = labels(X, SquaredHinge())
    problem = many_blocks(mapped(X, tmp_path), y, SquaredHinge(), intercept="regularized", C=3.0)
    plain = make_problem(as_rows(X, 1.0), y, SquaredHinge(), intercept="regularized", C=3.0)
    solver, before = NewtonOnFiles(), np.inf
    state = solver.init(problem, 0)
    for _ in range(6):
        for _ in range(reader_of(problem).n_blocks):
            state = solver.step(problem, state, Budget(1))
        seen = evaluate(problem, solver.solution(problem, state))
        again = evaluate(plain, Point(np.append(seen.coef, seen.intercept), seen.alpha)).certificate
        assert seen.certificate.primal == pytest.approx(again.primal, rel=1e-12)
        assert seen.certificate.dual <= again.dual + 1e-12 * abs(again.dual)
        assert seen.certificate.primal <= before * (1.0 + 1e-12)
        before = seen.certificate.primal


def test_a_step_that_is_too_long_is_shortened(tmp_path: Path) -> None:
    """Separable rows at a large C: full steps overshoot, and the objective falls all the same."""
    X = matrix(N, D)
    y = np.where(X @ np.ones(D) > 0.0, 1.0, -1.0)
    problem = many_blocks(mapped(X, tmp_path), y, SquaredHinge(), C=1e4)
    assert fit(problem, NewtonOnFiles(), Limits(tol=1e-6, max_epochs=60)).outcome is Outcome.CERTIFIED


def test_problems_share_readings(tmp_path: Path) -> None:
    X = matrix(N, D) * np.logspace(0, -3, D)
    file = mapped(X, tmp_path)
    first = many_blocks(file, labels(X, Logistic()), Logistic(), C=1e3)
    reader = BlockReader(first.X, BLOCKS.edges, BLOCKS.per_block, first.norms)
    y = labels(X, Logistic())
    problems = [
        make_problem(files(reader), sign * y, Logistic(), rooms=Rooms(np.zeros(N)), C=1e3) for sign in (1.0, -1.0)
    ]

    def begin(index: int, stop: Any) -> Fit:
        return Fit(problems[index], NewtonOnFiles(), Limits(tol=1e-6, max_epochs=30), index=index)

    one, other = drive(ClassSweep(range(2), begin, lambda ended: ended.result()))
    reader.close()
    assert one.outcome is other.outcome is Outcome.CERTIFIED
    assert np.allclose(one.coef, -other.coef, rtol=0.0, atol=1e-6 * np.abs(one.coef).max())
    ahead = BLOCKS.per_block * np.diff(BLOCKS.edges).max() / N  # of a block that gives Newton's method its first point
    assert reader.bytes_read <= (one.epochs + 1 + ahead) * X.nbytes


@pytest.mark.parametrize("loss", ["hinge", "smooth_hinge"])
def test_three_overlapping_classes_take_few_sweeps_in_little_memory(tmp_path: Path, loss: str) -> None:
    """Methods that take rows along, or begin where no row bends, would take some 30."""
    random = np.random.default_rng(0)
    y = np.arange(24_000) % 3
    X = random.normal(size=(3, 60))[y] + 2.0 * random.normal(size=(y.size, 60))
    X[random.random(X.shape) < 0.5] = 0.0
    store = Store.create(tmp_path / "rows", csr_matrix(X), y)
    model = LinearSVC(loss=loss, C=0.1, tol=1e-3, max_iter=12, memory="16M", random_state=0)
    model.fit(store.X, y)
    assert model.outcome_ is Outcome.CERTIFIED


def test_rows_in_memory_are_refused() -> None:
    X = matrix(N, D)
    with pytest.raises(ValueError, match="reads rows from files"):
        fit(make_problem(as_rows(X), labels(X, SquaredHinge()), SquaredHinge(), C=1.0), NewtonOnFiles())


def fit_of_uneven_features(tmp_path: Path, C: float, intercept: str, kept_bytes: int) -> FitResult:
    """Fit rows whose features have sizes from 1e-4 to 1e4, in two blocks: too few to begin at the solution of one."""
    random = np.random.default_rng(1)
    X = random.normal(size=(2_000, 8)) * np.logspace(-4, 4, 8)
    y = np.where(X[:, -1] + 1e4 * random.normal(size=2_000) > 0.0, 1.0, -1.0)
    plan = MemoryPlan(196_000, np.array([0, 1_000, 2_000]), 1, False)
    options = {"C": C, "intercept": intercept, "kept_bytes": kept_bytes}
    problem = streamed(mapped(X, tmp_path), y, SmoothHinge(), plan=plan, **options)
    return fit(problem, NewtonOnFiles(), Limits(tol=1e-4, max_epochs=80))


@pytest.mark.parametrize(("C", "intercept"), [(1e-3, "none"), (1.0, "none"), (1.0, "free")])
def test_where_no_row_bends_at_zero_the_active_set_begins_at_a_sample(tmp_path: Path, C: float, intercept: str) -> None:
    """All rows have one margin there."""
    assert fit_of_uneven_features(tmp_path, C, intercept, 140_000).outcome is Outcome.CERTIFIED


@pytest.mark.parametrize("intercept", ["none", "free", "regularized"])
def test_newtons_method_goes_on_where_an_active_set_gains_nothing(tmp_path: Path, intercept: str) -> None:
    """With so little room an active set alone has a gap of 1 after 64 sweeps."""
    found = fit_of_uneven_features(tmp_path, 1e3, intercept, 20_000)
    assert found.outcome is Outcome.CERTIFIED
    assert found.epochs <= 25
