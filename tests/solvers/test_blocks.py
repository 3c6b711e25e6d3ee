"""Block by block from files: the optima of memory, certificates that hold, one reading a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, Blocks
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.sweeps import reader_of
from support import labels, matrix
from support.mapped import D, N, close_enough, mapped, mapped_csr, streamed

INTERCEPTS = ("none", "regularized", "free")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_layouts_and_precisions_agree(layout: str, dtype: Any, tmp_path: Path) -> None:
    X = matrix(N, D, density=0.4).astype(dtype)
    y = labels(X, SquaredHinge())
    file = mapped(X, tmp_path) if layout == "dense" else mapped_csr(X, tmp_path)
    found = fit(streamed(file, y, SquaredHinge(), intercept="regularized", C=0.05), Blocks(), Limits(tol=1e-6))
    best = fit(
        make_problem(as_rows(X, 1.0), y, SquaredHinge(), C=0.05, intercept="regularized"), DCD(), Limits(tol=1e-7)
    )
    assert found.outcome is Outcome.CERTIFIED
    assert close_enough(found, best)


def test_what_a_sweep_proves_is_true(tmp_path: Path) -> None:
    """The certificate that cost no reading: its primal is the model's, its bound the dual point's, both in float64."""
    X = matrix(N, D).astype(np.float32)
    y = labels(X, Hinge())
    problem = streamed(mapped(X, tmp_path), y, Hinge(), intercept="regularized", C=0.05)
    solver = Blocks()
    state = solver.init(problem, 0)
    for _ in range(5 * reader_of(problem).n_blocks):
        state = solver.step(problem, state, Budget(1))
    judged = evaluate(problem, solver.solution(problem, state), exact=False)
    plain = make_problem(as_rows(X, 1.0), y, Hinge(), C=0.05, intercept="regularized")
    model = evaluate(plain, Point(np.append(judged.coef, judged.intercept)), given_offset=True)
    bound = evaluate(plain, Point(alpha=state.alpha))
    assert np.isclose(judged.certificate.primal, model.certificate.primal, rtol=1e-12)
    assert np.isclose(judged.certificate.dual, bound.certificate.dual, rtol=1e-12)
    assert np.allclose(state.w, dual_weights(plain, state.alpha), rtol=1e-12, atol=1e-14)


def test_a_fit_is_repeatable_bit_for_bit(tmp_path: Path) -> None:
    X = matrix(N, D)
    file, y = mapped(X, tmp_path), labels(X, Hinge())
    one, other = (fit(streamed(file, y, Hinge()), Blocks(), Limits(tol=1e-4), seed=3) for _ in range(2))
    assert np.array_equal(one.coef, other.coef)
    assert np.array_equal(one.alpha, other.alpha)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_rows_kept_to_the_end_of_a_sweep_save_sweeps(layout: str, tmp_path: Path) -> None:
    X = (matrix(N, D, density=0.7) * np.logspace(0, -1, D)).astype(np.float32)
    y = labels(X, Hinge())
    file = mapped(X, tmp_path) if layout == "dense" else mapped_csr(X, tmp_path)
    with_none, with_all, with_few = (
        fit(streamed(file, y, Hinge(), C=1.0, kept_bytes=room), Blocks(), Limits(tol=1e-4, max_epochs=2000))
        for room in (0, 10**6, 2_000)
    )
    best = fit(make_problem(as_rows(X), y, Hinge(), C=1.0), DCD(), Limits(tol=1e-6))
    for found in (with_none, with_all, with_few):
        assert found.outcome is Outcome.CERTIFIED
        assert close_enough(found, best)
    assert with_all.epochs < 0.5 * with_none.epochs


def test_plain_problems_are_refused() -> None:
    X = matrix(20, 3)
    problem: Problem = make_problem(as_rows(X), labels(X, Hinge()), Hinge(), C=1.0)
    with pytest.raises(ValueError, match="reads rows from files"):
        fit(problem, Blocks())
