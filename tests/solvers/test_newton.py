"""Newton's method as a solver: every problem is certified, from any start, in any layout, after a checkpoint."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Logistic,
    Loss,
    Squared,
    SquaredHinge,
)
from saddlesvm.problem.problem import Problem, is_classification, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.newton import Newton, make_task
from saddlesvm.solvers.task import STEEPEST
from support import (
    ALL_LOSSES,
    CLASSIFIERS,
    csr,
    distance_bound,
    labels,
    matrix,
    named,
    plain_dual,
    plain_primal,
    small_problem,
)

every_loss = pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
TIGHT = Limits(tol=1e-9, max_epochs=500)
PRECISIONS = [np.float32, np.float64]


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


def tall_problem(loss: Loss, n: int = 30_000, d: int = 8, C: float = 10.0, **options: Any) -> Problem:
    """Many more rows than features, the features of different sizes."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d)) * 10.0 ** np.linspace(-1.0, 1.0, d)
    scores = X @ np.cos(np.arange(d)) + 3.0 * random.normal(size=n)
    return make_problem(as_rows(X), np.sign(scores) if is_classification(loss) else scores, loss, C=C, **options)


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
        assert certificate.dual >= state.best.dual - slack
        assert certificate.primal <= state.best.primal + slack
        assert certificate.sound


def test_a_given_start_is_gone_on_from() -> None:
    problem = small_problem(Hinge(), C=10.0)
    first = certified(problem, Newton())
    start = Point(alpha=first.alpha)
    again = fit(problem, Newton(), TIGHT, start=start)
    assert again.epochs < 0.5 * first.epochs
    with pytest.raises(ValueError, match="starting dual point"):
        Newton().init(problem, 0, Point(alpha=np.zeros(3)))


def test_a_useless_start_is_dropped_where_there_is_no_proximal_term() -> None:
    problem = small_problem(Logistic(), C=10.0)
    far = Point(np.full(6, 1e5), np.zeros(60))
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


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_dual_variables_of_the_last_equations_prove_more_than_slopes(C: float, intercept: str) -> None:
    random = np.random.default_rng(4)
    X = csr(random.standard_normal((600, 20)) * (random.random((600, 20)) < 0.3))
    y = np.where(X @ random.standard_normal(20) + random.standard_normal(600) > 0, 1.0, -1.0)
    problem = make_problem(as_rows(X, float(intercept != "none")), y, Logistic(), C=C, intercept=intercept)
    solver = Newton(warm_up=0)
    gap = 1e-3
    state = solver.step(problem, solver.init(problem, 0), Budget(100 * y.size, gap))
    assert state.estimate <= gap
    # They are not the slopes of the loss at these weights, whose gap is larger.
    end = solver.solution(problem, state)
    slopes = y / (1.0 + np.exp(y * (X @ end.w[:-1] + problem.scale * end.w[-1])))
    proof = evaluate(problem, end).certificate
    by_slopes = evaluate(problem, Point(end.w, slopes)).certificate
    assert proof.relative_gap <= gap
    assert proof.gap < 0.5 * by_slopes.gap


def test_a_share_has_a_larger_C_only_while_its_rows_are_not_steep() -> None:
    random = np.random.default_rng(5)
    X = random.standard_normal((800, 5))
    y = np.where(random.random(800) < 0.5, 1.0, -1.0)
    for C in (1e-3, 1.0, 10.0, 1e3):
        problem = make_problem(as_rows(X, 0.0), y, Logistic(), C=C)
        share = make_task(problem).take_share(8)
        assert C <= share.C <= 8.0 * C * (1.0 + 1e-12)
        if share.C > C:
            assert share.C * np.median(share.norms) <= STEEPEST * (1.0 + 1e-12)


def test_the_remark_says_what_a_step_did() -> None:
    remark = certified(small_problem(Hinge(), C=100.0), Newton()).trace[-1]["remark"]
    assert remark.startswith("Newton step ")
    assert "rows bend, solved by" in remark


def test_bad_options_are_named() -> None:
    with pytest.raises(ValueError, match="memory must be positive"):
        Newton(memory=0.0)


@pytest.mark.parametrize("seed", [0, 2, 8])
def test_few_separable_rows_at_a_huge_C_take_few_passes(seed):
    # The dual optimum lies far below C times the first losses: a centre that moved too soon took
    # 162 to 256 passes, and some fits were lost.
    random = np.random.default_rng(seed)
    n, d = 120, 110
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.1)
    X *= 10.0 ** random.uniform(-2, 2, size=d)
    y = np.where(X @ random.normal(size=d) > 0.0, 1.0, -1.0)
    rows = as_rows(X.astype(np.float32), 1.0)
    problem = make_problem(rows, y, Hinge(), C=1e5, intercept="regularized")
    result = fit(problem, Newton(), Limits(tol=1e-5, max_epochs=130))
    assert result.outcome is Outcome.CERTIFIED


def test_a_fit_makes_few_arrays_of_all_rows() -> None:
    """The search along a step takes some rows at a time, and so does the curvature."""
    random = np.random.default_rng(0)
    X = random.normal(size=(150_000, 20)).astype(np.float32)
    y = X @ random.normal(size=20) + 0.1 * random.normal(size=len(X)) > 0.0
    model = LinearSVC(loss="hinge", solver="newton").fit(X, y)  # imports and compiles, too
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 19 * 8 * len(X)
