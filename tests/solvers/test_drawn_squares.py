"""Newton's matrix from a share of the rows, where there are many more rows than features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import Logistic, Loss, SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.second_order import over_passes
from saddlesvm.solvers.second_order.over_files import NewtonOnFiles
from saddlesvm.solvers.second_order.row_statistics import Ask, RowStatistics
from saddlesvm.solvers.sweeps import reader_of
from support import labels, matrix, named
from support.mapped import mapped, streamed

N, D = 6000, 35
LOSSES = [SquaredHinge(), Logistic()]


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw rows in problems that a test can afford."""
    monkeypatch.setattr(over_passes, "FAR", 20.0)
    monkeypatch.setattr(over_passes, "NEAR", 80.0)


def on_files(X: np.ndarray, y: np.ndarray, loss: Loss, folder: Path, **options: Any) -> Problem:
    """A problem over some blocks of a file."""
    return streamed(mapped(X, folder), y, loss, **options)


def told_of(problem: Problem, ask: Ask) -> RowStatistics:
    """What all rows tell."""
    told = ask.empty()
    ask.add_to(told, problem.terms, problem.members)
    return told


def skew(half: np.ndarray, whole: np.ndarray) -> float:
    """How far one matrix is from another at most, as a share of the other, along any direction."""
    root = np.linalg.cholesky(whole)
    inner = np.linalg.solve(root, np.linalg.solve(root, half).T)
    return float(np.abs(np.linalg.eigvalsh(inner) - 1.0).max())


def full(told: RowStatistics) -> np.ndarray:
    """A matrix from its lower triangle, lifted as the regulariser does."""
    lower = np.tril(told.matrix)
    return lower + np.tril(lower, -1).T + np.eye(len(lower))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_a_share_changes_the_matrix_alone_and_by_little(loss: Loss, dtype: Any) -> None:
    X = matrix(N, 8).astype(dtype)
    problem = make_problem(as_rows(X), labels(X, loss), loss, C=2.0)
    w, back = np.random.default_rng(1).normal(size=(2, 9))
    whole = told_of(problem, Ask(w, back))
    for share in (0.5, 0.25, 0.0):
        drawn = told_of(problem, Ask(w, back, share=share))
        for name in ("sums", "line", "bent", "signed", "pull", "product", "sizes"):
            assert np.array_equal(getattr(drawn, name), getattr(whole, name))
        if share:
            assert np.allclose(drawn.diagonal, whole.matrix.diagonal(), rtol=1e-5, atol=0.0)
            bending = whole.bent[1] ** 2 / whole.bent[2]  # rows that bend as the mean of them does
            assert skew(full(drawn), full(whole)) <= 3.0 * np.sqrt(9 / (share * bending))
        else:
            assert not drawn.matrix.any()


def test_a_matrix_is_scaled_to_a_diagonal() -> None:
    """A row that nobody drew counts by its diagonal alone."""
    squares = np.asfortranarray(np.tril([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 9.0]]))
    found = over_passes.scaled(squares, np.array([1.0, 5.0, 36.0]))
    assert np.allclose(found, [[1.0, 0.0, 0.0], [0.0, 5.0, 0.0], [2.0, 0.0, 36.0]])


@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_the_optimum_is_reached_in_few_more_sweeps(
    intercept: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, loss = matrix(N, D), Logistic()
    y, limits = labels(X, loss), Limits(tol=1e-7, max_epochs=30)
    found = fit(on_files(X, y, loss, tmp_path, intercept=intercept, C=10.0), NewtonOnFiles(), limits)
    problem = make_problem(as_rows(X, 1.0), y, loss, C=10.0, intercept=intercept)
    again = evaluate(problem, Point(np.append(found.coef, found.intercept), found.alpha)).certificate
    assert again.relative_gap <= 1e-7
    monkeypatch.setattr(over_passes, "FAR", np.inf)
    monkeypatch.setattr(over_passes, "NEAR", np.inf)
    whole = fit(on_files(X, y, loss, tmp_path, intercept=intercept, C=10.0), NewtonOnFiles(), limits)
    assert found.epochs <= whole.epochs + 2.0  # there are 25 times fewer rows to a feature than usual


def test_rare_features_take_no_more_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten features that a handful of rows have each: the rows drawn say next to nothing of them."""
    X = matrix(N, D)
    X[:, :10] *= np.random.default_rng(3).random((N, 10)) < 1e-3
    y, limits = labels(X, Logistic()), Limits(tol=1e-7, max_epochs=30)
    found = fit(on_files(X, y, Logistic(), tmp_path, C=1e3), NewtonOnFiles(), limits)
    assert found.outcome is Outcome.CERTIFIED
    monkeypatch.setattr(over_passes, "FAR", np.inf)
    assert found.epochs <= fit(on_files(X, y, Logistic(), tmp_path, C=1e3), NewtonOnFiles(), limits).epochs + 3.0


def test_rows_are_drawn_while_the_optimum_is_far(tmp_path: Path) -> None:
    X = matrix(N, D)
    problem = on_files(X, labels(X, Logistic()), Logistic(), tmp_path, C=10.0)
    solver = NewtonOnFiles()
    state = solver.init(problem, 0)
    shares = []
    while not state.method.passes or state.estimate > 1e-10:
        for _ in range(reader_of(problem).n_blocks):
            state = solver.step(problem, state, Budget(1))
        shares.append(state.method.share)
    assert shares[0] < shares[-1]
    assert shares == sorted(shares)
