"""Multinomial regression over rows in files: the optimum of memory, proofs that hold, one reading a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import Logistic
from saddlesvm.problem.multinomial import MultinomialProblem, make_multinomial_problem
from saddlesvm.problem.problem import Rooms
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import make_plan
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.multinomial import Multinomial
from saddlesvm.solvers.multinomial_on_files import CLASS_BYTES, MultinomialOnFiles
from saddlesvm.solvers.sweeps import KEPT_BYTES, reader_of
from support import distance_bound
from support.classes import blobs
from support.mapped import files, mapped, mapped_csr

K, N, D = 4, 2400, 6
A_ROW = 4 * D + KEPT_BYTES + CLASS_BYTES * K


def classes() -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, in float32."""
    X, y = blobs(n=N, k=K, d=D, seed=2)
    return X.astype(np.float32), y


def on_files(X: Any, y: np.ndarray, share: float = 0.3, **options: Any) -> MultinomialProblem:
    """A problem whose sample may have this share of the rows."""
    options = {"C": 0.1, "intercept": "regularized"} | options
    plan = options.pop("plan", None)
    rows = as_rows(X, 0.0 if options["intercept"] == "none" else 1.0)
    plan = plan or make_plan(rows, 2**30, 1)
    reader = BlockReader(rows, plan.edges, plan.per_block, np.zeros(y.size))
    rooms = Rooms(np.empty(0), kept_bytes=int(share * N * A_ROW))
    return make_multinomial_problem(files(reader), y, K, Logistic(), rooms=rooms, **options)


def in_memory(X: Any, y: np.ndarray, **options: Any) -> MultinomialProblem:
    options = {"C": 0.1, "intercept": "regularized"} | options
    return make_multinomial_problem(
        as_rows(X, 0.0 if options["intercept"] == "none" else 1.0), y, K, Logistic(), **options
    )


def near(one: FitResult, other: FitResult) -> bool:
    """Whether two results are as near to each other as their gaps make them."""
    return bool(np.linalg.norm(one.coef - other.coef) <= distance_bound(one.certificate.gap, other.certificate.gap))


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_the_optimum_is_that_of_memory(layout: str, intercept: str, tmp_path: Path) -> None:
    X, y = classes()
    X[np.random.default_rng(0).random(X.shape) < 0.4] = 0.0
    options: dict[str, Any] = {"weights": np.arange(N) % 5 / 2.0, "intercept": intercept}
    file = mapped(X, tmp_path) if layout == "dense" else mapped_csr(X, tmp_path)
    found = fit(on_files(file, y, **options), MultinomialOnFiles(), Limits(tol=1e-6))
    best = fit(in_memory(X, y, **options), Multinomial(), Limits(tol=1e-8))
    assert found.outcome is best.outcome is Outcome.CERTIFIED
    assert near(found, best)
    assert found.certificate.dual <= best.certificate.primal
    assert found.certificate.primal >= best.certificate.dual


@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_what_a_sweep_proves_is_true(intercept: str, tmp_path: Path) -> None:
    X, y = classes()
    problem, solver = on_files(mapped(X, tmp_path), y, intercept=intercept), MultinomialOnFiles()
    state = solver.init(problem, 0)
    for _ in range(3 * reader_of(problem).n_blocks):
        state = solver.step(problem, state, Budget(1))
    told = evaluate(problem, solver.solution(problem, state))
    W = np.column_stack([told.coef, told.intercept])
    for other in (problem, in_memory(X, y, intercept=intercept)):
        found = evaluate(other, Point(W)).certificate
        assert np.isclose(told.certificate.primal, found.primal, rtol=1e-12)
        assert np.isclose(told.certificate.dual, found.dual, rtol=1e-9)


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_any_C_is_certified_in_few_sweeps(share: float, C: float, tmp_path: Path) -> None:
    X, y = classes()
    found = fit(on_files(mapped(X, tmp_path), y, share, C=C), MultinomialOnFiles(), Limits(tol=1e-6))
    assert found.outcome is Outcome.CERTIFIED
    assert found.epochs <= 30
    assert near(found, fit(in_memory(X, y, C=C), Multinomial(), Limits(tol=1e-8)))


def test_a_start_far_out_is_no_worse_than_zero(tmp_path: Path) -> None:
    X, y = classes()
    far = Point(1e3 * np.random.default_rng(0).normal(size=(K, D + 1)))
    result = fit(on_files(mapped(X, tmp_path), y), MultinomialOnFiles(), Limits(tol=1e-9, max_epochs=2), start=far)
    assert result.certificate.primal <= 0.1 * N * np.log(K) * (1.0 + 1e-9)


def test_a_start_at_the_optimum_ends_at_once(tmp_path: Path) -> None:
    X, y = classes()
    best = fit(in_memory(X, y), Multinomial(), Limits(tol=1e-8))
    start = Point(np.column_stack([best.coef, best.intercept]))
    found = fit(on_files(mapped(X, tmp_path), y), MultinomialOnFiles(), Limits(tol=1e-6), start=start)
    assert found.outcome is Outcome.CERTIFIED
    assert found.epochs == 1.0


def test_plain_problems_are_refused() -> None:
    X, y = classes()
    with pytest.raises(ValueError, match="a MultinomialProblem there"):
        fit(in_memory(X, y), MultinomialOnFiles())
