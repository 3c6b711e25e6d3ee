"""Threads within one fit: the same certificate, repeatable, never a lower dual, one thread where they do not pay."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.multiclass.sub_problems import threads_each
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.compiled import INTERPRETED
from saddlesvm.solvers import DCD, SDCA
from saddlesvm.solvers.auto import FINISH, Auto
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.threaded.aggregation import (
    BLOCK,
    be_careful,
    deal_parts,
    follow,
    measure_rho,
    new_scaling,
    safe_share,
)
from saddlesvm.solvers.threaded.descent import ParallelDCD, threads_for, with_threads
from saddlesvm.solvers.threaded.shared_phases import side_by_side
from support import (
    ALL_LOSSES,
    csr,
    distance_bound,
    labels,
    matrix,
    named,
    others_nightly,
    plain_dual,
    plain_primal,
    small_problem,
)

pytestmark = pytest.mark.skipif(INTERPRETED, reason="threads share work in compiled code only")

THREADED = (Hinge, SquaredHinge, EpsilonInsensitive)  # each signature of the threads' kernel takes 6 s to compile
every_loss = pytest.mark.parametrize("loss", others_nightly(ALL_LOSSES, lambda loss: type(loss) in THREADED), ids=named)
TIGHT = Limits(tol=1e-6)
HINGE = Hinge()


def close(problem: Problem, one: FitResult, other: FitResult) -> bool:
    """Whether two certified models are as near as their gaps say they must be."""
    apart = np.linalg.norm(one.coef - other.coef)
    gaps = (one.certificate.gap / problem.unit, other.certificate.gap / problem.unit)
    return bool(apart <= distance_bound(*gaps))


@pytest.fixture(params=[0, 2_000_000], ids=["never alone", "alone with few rows"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether one thread goes on alone where few rows are active."""
    monkeypatch.setattr("saddlesvm.solvers.threaded.descent.FEW_VALUES", request.param)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("threads", [1, 2, 3])
@every_loss
def test_each_kind_of_loss_is_certified_at_the_same_optimum(loss: Any, threads: int) -> None:
    problem = small_problem(loss, n=200, intercept="regularized")
    result = fit(problem, ParallelDCD(threads), TIGHT)
    assert result.outcome is Outcome.CERTIFIED
    assert plain_primal(problem, result.coef, result.intercept) == pytest.approx(result.certificate.primal, rel=1e-9)
    assert plain_dual(problem, result.alpha) == pytest.approx(result.certificate.dual, rel=1e-9)
    assert close(problem, result, fit(problem, DCD(), TIGHT))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("sparse", [False, True])
def test_weights_intercepts_and_layouts(intercept: Any, sparse: bool) -> None:
    X = matrix(300, 8, density=0.5 if sparse else 1.0)
    y = labels(X, Hinge())
    weights = np.random.default_rng(0).integers(0, 4, size=300).astype(float)
    design = as_rows(csr(X) if sparse else X, 0.0 if intercept == "none" else 1.0)
    problem = make_problem(design, y, Hinge(), C=0.3, weights=weights, intercept=intercept)
    result = fit(problem, ParallelDCD(2), TIGHT)
    assert result.outcome is Outcome.CERTIFIED
    assert close(problem, result, fit(problem, DCD(), TIGHT))


@pytest.mark.parametrize("tol", [1e-4, pytest.param(1e-8, marks=pytest.mark.nightly)])  # w is float64 below 1e-5
def test_float32_rows_reach_a_fine_gap(tol: float) -> None:
    problem = make_problem(as_rows(matrix(400, 6).astype(np.float32)), labels(matrix(400, 6), Hinge()), Hinge(), C=0.5)
    assert fit(problem, ParallelDCD(2), Limits(tol=tol)).outcome is Outcome.CERTIFIED


def test_wide_sparse_rows_bring_frequent_features_together_more_often() -> None:
    X, y = text(2000, 5000)
    problem = make_problem(as_rows(X), y, Hinge(), C=1.0)
    solver = ParallelDCD(2)
    often = solver.init(problem, 0).often
    counts = np.bincount(X.indices, X.data**2, X.shape[1])
    assert 0 < often.size < X.shape[1]
    assert counts[often].min() >= np.delete(counts, often).max()
    result = fit(problem, solver, TIGHT)
    assert result.outcome is Outcome.CERTIFIED
    assert close(problem, result, fit(problem, DCD(), TIGHT))


def text(n: int, d: int, per_row: int = 20) -> tuple[Any, np.ndarray]:
    """Sparse rows whose features have frequencies like those of words."""
    random = np.random.default_rng(0)
    frequency = 1.0 / np.arange(1, d + 1) ** 0.9
    columns = random.choice(d, size=n * per_row, p=frequency / frequency.sum())
    X = np.zeros((n, d))
    X[np.repeat(np.arange(n), per_row), columns] = random.uniform(0.1, 1.0, n * per_row)
    scores = X @ random.normal(size=d)
    return csr(X), np.where(scores > np.median(scores), 1.0, -1.0)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("threads", [2, 4])
def test_a_fit_is_repeatable(threads: int) -> None:
    problem = small_problem(Hinge(), n=3000, C=2.0)
    first, second = (fit(problem, ParallelDCD(threads), Limits(tol=1e-4), seed=7) for _ in range(2))
    assert np.array_equal(first.coef, second.coef)
    assert np.array_equal(first.alpha, second.alpha)
    other = fit(problem, ParallelDCD(threads), Limits(tol=1e-4), seed=8)
    assert not np.array_equal(first.alpha, other.alpha)


@pytest.mark.usefixtures("few")
@every_loss
def test_a_pass_never_lowers_the_dual(loss: Any) -> None:
    X = np.tile(matrix(50, 4), (8, 1))  # rows in many copies: the parts agree, and adding up without scaling overshoots
    problem = make_problem(as_rows(X), labels(X, loss), loss, C=5.0)
    solver = ParallelDCD(4)
    state = solver.init(problem, 0)
    before = evaluate(problem, Point(alpha=state.alpha)).certificate.dual
    for _ in range(12):
        state = solver.step(problem, state, Budget(problem.members.size))
        after = evaluate(problem, Point(alpha=state.alpha)).certificate.dual
        assert after >= before - 1e-9 * abs(before)
        before = after


@pytest.mark.usefixtures("few")
def test_w_is_that_of_the_dual_point_after_every_step() -> None:
    problem = small_problem(SquaredHinge(), n=2000, intercept="regularized")
    solver = ParallelDCD(3)
    state = solver.init(problem, 0)
    for rows in (100, 777, 2000, 5000):
        state = solver.step(problem, state, Budget(rows))
        w = np.append(state.alpha @ np.asarray(problem.X.values), state.alpha.sum()) * problem.C
        assert np.allclose(state.w, w, rtol=0.0, atol=1e-9 * np.linalg.norm(w))


def test_parts_are_even_disjoint_and_ascending() -> None:
    members = np.flatnonzero(np.random.default_rng(0).random(100_000) < 0.9).astype(np.int32)
    parts = deal_parts(members, 3, seed=1)
    assert np.array_equal(np.sort(np.concatenate(parts)), members)
    assert all((np.diff(part) > 0).all() for part in parts)
    assert max(map(len, parts)) - min(map(len, parts)) <= 2 * BLOCK
    assert all(part.dtype == members.dtype for part in parts)
    few = deal_parts(np.arange(10, dtype=np.int32), 4, seed=0)
    assert sorted(map(len, few)) == [2, 2, 3, 3]


def test_sigma_follows_rho_between_one_and_the_safe_number() -> None:
    scaling = new_scaling()
    measure_rho(scaling, 3.0, 1.0)
    follow(scaling, 4)
    assert scaling["sigma"] == 3.0
    measure_rho(scaling, 0.0, 1.0)
    follow(scaling, 4)
    assert 2.0 < scaling["sigma"] < 3.0
    for _ in range(5):
        be_careful(scaling, 4)
    follow(scaling, 4)
    assert scaling["sigma"] == scaling["least"] == 4.0


def test_the_share_taken_is_where_the_bound_is_largest() -> None:
    assert safe_share(1.0, 1.0) == 1.0
    assert safe_share(0.5, 1.0) == 1.0
    assert safe_share(0.2, 1.0) == pytest.approx(0.2)
    assert safe_share(-1.0, 1.0) == 0.0


def test_one_thread_goes_on_alone_with_few_rows_until_all_come_back() -> None:
    problem = small_problem(Hinge(), n=2000, C=2.0)
    solver = ParallelDCD(2)
    state = solver.init(problem, 0)
    seen = []
    for _ in range(200):
        state = solver.step(problem, state, Budget(500))
        assert state.active == int(state.actives[0] if state.alone else state.actives.sum())
        if state.alone:
            assert np.unique(state.order[: state.active]).size == state.active < problem.members.size
        elif state.active == problem.members.size:
            assert np.array_equal(np.sort(state.order), problem.members)
        seen.append(state.alone)
    turns = [seen[k + 1] for k in range(len(seen) - 1) if seen[k + 1] != seen[k]]
    assert turns[:2] == [True, False]


@pytest.mark.usefixtures("few")
def test_all_rows_may_be_set_aside() -> None:
    problem = small_problem(Hinge(), n=500, C=1e-7)  # every margin is below 1, every dual variable at its bound
    result = fit(problem, ParallelDCD(2), Limits(tol=0.0, max_epochs=6))
    assert result.outcome is Outcome.EPOCH_LIMIT
    assert result.certificate.relative_gap < 1e-12


@pytest.mark.usefixtures("few")
def test_a_checkpoint_is_continued(tmp_path: Path) -> None:
    problem = small_problem(Hinge(), n=2000, C=2.0)
    path = tmp_path / "state"
    stopped = fit(problem, ParallelDCD(2), Limits(tol=1e-6, max_epochs=3), checkpoint=Checkpoint(path))
    assert stopped.outcome is Outcome.EPOCH_LIMIT
    result = fit(problem, ParallelDCD(2), Limits(tol=1e-6), checkpoint=Checkpoint(path))
    assert result.outcome is Outcome.CERTIFIED
    assert result.epochs > 3
    assert close(problem, result, fit(problem, DCD(), TIGHT))


def test_a_start_is_taken_up() -> None:
    problem = small_problem(SquaredHinge(), n=500)
    done = fit(problem, DCD(), Limits(tol=1e-8))
    again = fit(problem, ParallelDCD(2), Limits(tol=1e-6), start=Point(alpha=done.alpha))
    assert again.epochs <= 3


def sized(n: int, d: int, stored: int, loss: Any = HINGE, threads: int = 2) -> Problem:
    """A problem that says of itself to be so large; the matrix has no values."""
    nothing = sparse.csr_matrix((n, d))
    problem = replace(make_problem(as_rows(nothing), np.ones(n), loss, C=1.0), threads=threads)
    problem.__dict__["values_per_row"] = stored / n
    return problem


def test_which_solvers_run_in_threads() -> None:
    assert with_threads(replace(small_problem(Hinge()), threads=2), DCD()) == DCD()
    large = sized(100_000, 1000, 50_000_000, threads=3)
    assert with_threads(large) == with_threads(large, DCD()) == ParallelDCD(3)
    assert with_threads(large, SDCA()) == ParallelDCD(3, shrinking=False)
    assert with_threads(large, SDCA(output="average")) == SDCA(output="average")
    assert with_threads(large, DCD(stopping="weight_change")) == DCD(stopping="weight_change")
    assert with_threads(replace(large, threads=1)) == DCD()


def test_threads_are_used_where_they_pay() -> None:
    """The cases that were measured with two threads (docs/guides/distributed.md), and larger ones."""
    smooth = SquaredHinge()
    assert threads_for(sized(20_000, 10_000, 1_300_000, smooth), DCD()) == 1  # a pass is over too soon
    assert threads_for(sized(50_000, 10_000, 3_200_000, smooth), DCD()) == 1
    assert threads_for(sized(50_000, 10_000, 3_200_000, Logistic()), DCD()) == 2
    assert threads_for(sized(100_000, 47_000, 6_800_000, smooth), DCD()) == 2
    assert threads_for(sized(100_000, 300_000, 7_000_000, smooth), DCD()) == 1  # w is hardly ever brought together
    assert threads_for(sized(1_000_000, 300_000, 70_000_000, smooth, 3), DCD()) == 3
    assert threads_for(sized(300_000, 47_000, 20_000_000), DCD()) == 1  # most of the visits are by one thread
    assert threads_for(sized(300_000, 47_000, 20_000_000), SDCA()) == 2  # which sets no rows aside
    assert threads_for(sized(800_000, 47_000, 54_000_000), DCD()) == 2
    assert threads_for(sized(800_000, 47_000, 54_000_000, threads=8), DCD()) == 3


@pytest.fixture
def threads_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small problems are worth threads, too."""
    for name in ("LEAST_SECONDS", "WIDEST", "MANY"):
        monkeypatch.setattr(f"saddlesvm.solvers.threaded.descent.{name}", 1e-9)
    monkeypatch.setattr("saddlesvm.runtime.threads.WORTH", 1e-9)


def test_threads_are_not_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saddlesvm.multiclass.sub_problems.cpu_count", lambda: 8)
    monkeypatch.setattr("saddlesvm.multiclass.sub_problems.effective_n_jobs", lambda n_jobs: n_jobs or 1)
    assert [threads_each(jobs, 8) for jobs in (1, 2, 3, 8)] == [8, 4, 2, 1]
    assert threads_each(1, 100) == 8
    assert threads_each(1, None) == 1


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("solver", ["auto", "dcd", "sdca"])
def test_estimators_use_the_threads(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    step = ParallelDCD.step
    monkeypatch.setattr(ParallelDCD, "step", lambda self, *given: used.append(self.threads) or step(self, *given))
    monkeypatch.setattr("saddlesvm.multiclass.sub_problems.cpu_count", lambda: 2)
    X = matrix(4000, 5)
    y = labels(X, Hinge())
    one = LinearSVC(loss="hinge", solver=solver, random_state=0).fit(X, y)
    assert not used
    two = LinearSVC(loss="hinge", solver=solver, random_state=0, n_jobs=2).fit(X, y)
    assert set(used) == {2}
    assert two.outcome_ is Outcome.CERTIFIED
    apart = np.hypot(np.linalg.norm(one.coef_ - two.coef_), one.intercept_[0] - two.intercept_[0])
    assert apart <= distance_bound(one.certificate_.gap, two.certificate_.gap)
    LinearSVR(random_state=0, n_jobs=2, solver=solver).fit(X, X @ np.arange(5.0))


def nobody_else(pool: Any, work: Callable[[int], None], threads: int) -> None:
    """Only the caller's thread comes."""
    work(0)


def the_last_one(pool: Any, work: Callable[[int], None], threads: int) -> None:
    """Only the thread of the last part comes; the caller's comes when all is done."""
    work(threads - 1)
    work(0)


def too_late(pool: Any, work: Callable[[int], None], threads: int) -> None:
    """All others come when all is done, in threads of their own."""
    work(0)
    for done in [pool.submit(work, k) for k in range(1, threads)]:
        done.result()


def twice_as_many(pool: Any, work: Callable[[int], None], threads: int) -> None:
    """Two threads come for every part."""
    with ThreadPoolExecutor(2 * threads) as more:
        for done in [more.submit(work, k % threads) for k in range(2 * threads)]:
            done.result()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("come", [nobody_else, the_last_one, too_late, twice_as_many])
def test_the_parts_say_what_comes_out_not_the_threads(come: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = text(1500, 2000)
    for problem in (small_problem(Hinge(), n=1500, C=2.0), make_problem(as_rows(X), y, SquaredHinge(), C=1.0)):
        known = fit(problem, ParallelDCD(3), Limits(tol=1e-4), seed=7)
        with monkeypatch.context() as own:
            own.setattr("saddlesvm.solvers.threaded.descent.side_by_side", come)
            found = fit(problem, ParallelDCD(3), Limits(tol=1e-4), seed=7)
        assert known.outcome is Outcome.CERTIFIED
        assert np.array_equal(known.alpha, found.alpha)
        assert np.array_equal(known.coef, found.coef)


def test_nobody_waits_for_a_thread_that_does_not_come_or_fails() -> None:
    never, came = threading.Event(), []

    def work(k: int) -> None:
        came.append(k)
        if k == 1:
            raise MemoryError("no room")
        if k == 2:
            never.wait()

    with ThreadPoolExecutor(2) as pool:
        side_by_side(pool, work, 4)
        never.set()
    assert 0 in came
    with pytest.raises(MemoryError), ThreadPoolExecutor(1) as pool:
        side_by_side(pool, lambda k: work(k + 1), 2)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)
def test_the_automatic_solver_changes_over_with_threads_too(loss: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12)) * np.logspace(0, 3, 12)  # unscaled features: descent alone has no end in sight
    y = np.where(X @ rng.normal(size=12) + 100.0 * rng.normal(size=300) > 0.0, 1.0, -1.0)
    results = []
    for threads in (1, 2):
        problem = replace(make_problem(as_rows(X), y, loss, C=10.0), threads=threads)
        assert isinstance(with_threads(problem), ParallelDCD if threads == 2 else DCD)
        results.append(fit(problem, Auto(), Limits(tol=1e-6)))
        assert results[-1].outcome is Outcome.CERTIFIED
        assert FINISH in results[-1].phases
    assert close(problem, *results)
