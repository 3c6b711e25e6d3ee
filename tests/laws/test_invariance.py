"""What must not change an optimum: layouts, precisions, repeated rows, their order, the form of the intercept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC, SVR

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos
from support import (
    csr,
    distance_bound,
    labels,
    matrix,
    named,
    plain_primal,
    shuffled,
    small_problem,
)
from support.solving import TIGHT, certified, run, weights_of

DUAL = pytest.mark.parametrize("solver", [SDCA(), DCD()], ids=["sdca", "dcd"])
SOME = pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=named)


def same_optimum(one: FitResult, other: FitResult) -> None:
    gaps = one.certificate.gap, other.certificate.gap
    assert abs(one.certificate.primal - other.certificate.primal) <= max(gaps) + 1e-10 * one.certificate.primal
    assert np.linalg.norm(weights_of(one)[:-1] - weights_of(other)[:-1]) <= distance_bound(*gaps)


@pytest.mark.parametrize("solver", [SDCA(), DCD(), Pegasos(3)], ids=["sdca", "dcd", "pegasos"])
@SOME
def test_dense_equals_sparse_equals_mapped(solver: Any, loss: Loss, tmp_path: Path) -> None:
    dense = matrix(60, 5, density=0.7)
    y = labels(dense, loss)
    np.save(tmp_path / "X.npy", dense)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    states = [
        run(make_problem(as_rows(X, 1.0), y, loss, C=0.5, intercept="regularized"), solver, 4)
        for X in (dense, mapped, csr(dense))
    ]
    assert np.array_equal(states[0].w, states[1].w)
    assert states[0].w == pytest.approx(states[2].w, rel=1e-9, abs=1e-11)
    result = fit(
        make_problem(as_rows(csr(dense), 1.0), y, loss, C=0.5, intercept="regularized"), solver, Limits(tol=1e-2)
    )
    assert result.outcome is Outcome.CERTIFIED


@pytest.mark.parametrize("shape", [(60, 5), (20, 50)], ids=["tall", "wide"])
@pytest.mark.parametrize("solver", [SDCA(), DCD(), Newton(), Pegasos(3)], ids=["sdca", "dcd", "newton", "pegasos"])
@SOME
def test_the_order_of_the_indices_in_a_row_does_not_matter(solver: Any, loss: Loss, shape: tuple[int, int]) -> None:
    tidy = csr(matrix(*shape, density=0.7))
    y = labels(tidy.toarray(), loss)
    states = [
        run(make_problem(as_rows(X, 1.0), y, loss, C=0.5, intercept="regularized"), solver, 4)
        for X in (tidy, shuffled(tidy))
    ]
    assert states[0].w == pytest.approx(states[1].w, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(("solver", "layout"), [(SDCA(), "dense"), (DCD(), "csr")], ids=["sdca", "dcd"])
def test_float32_data_reach_the_same_certificate(solver: Any, layout: str) -> None:
    """The data are the same numbers in both precisions, so it is the same problem."""
    narrow = matrix(60, 5, density=0.7).astype(np.float32)
    y = labels(narrow, Hinge())
    X32, X64 = narrow, narrow.astype(np.float64)
    sparse64 = layout == "csr"
    made = [make_problem(as_rows(csr(X, np.int64) if sparse64 else X), y, Hinge(), C=2.0) for X in (X32, X64)]
    one, other = (certified(problem, solver) for problem in made)
    same_optimum(one, other)
    assert one.coef.dtype == np.float64


def test_pegasos_in_float32_stays_near_float64() -> None:
    narrow = matrix(60, 5).astype(np.float32)
    y = labels(narrow, Hinge())
    one, other = (
        run(make_problem(as_rows(X), y, Hinge(), lam=0.1), Pegasos(output="last"), 3)
        for X in (narrow, narrow.astype(np.float64))
    )
    assert one.w.dtype == np.float32
    w = one.numbers["scale"] * one.w.astype(np.float64), other.numbers["scale"] * other.w
    # 180 steps, each with a relative rounding of 2^-24 a place
    assert np.linalg.norm(w[0] - w[1]) <= 180 * 6 * 2.0**-24 * np.linalg.norm(w[1]) + 1e-12


ALL_SOLVERS = [
    (SDCA(), TIGHT),
    (DCD(), TIGHT),
    (Pegasos(4), Limits(tol=2e-3, max_epochs=20_000)),
]
every_solver = pytest.mark.parametrize(("solver", "limits"), ALL_SOLVERS, ids=["sdca", "dcd", "pegasos"])


@every_solver
@SOME
def test_weights_equal_repetition(solver: Any, limits: Limits, loss: Loss) -> None:
    X = matrix(30, 4)
    y, times = labels(X, loss), np.arange(30) % 4
    weighted = make_problem(as_rows(X), y, loss, C=0.05, weights=times.astype(float))
    repeated = make_problem(as_rows(np.repeat(X, times, axis=0)), np.repeat(y, times), loss, C=0.05)
    same_optimum(certified(weighted, solver, limits), certified(repeated, solver, limits))


@every_solver
@SOME
def test_rows_of_weight_zero_are_as_absent(solver: Any, limits: Limits, loss: Loss) -> None:
    X = matrix(60, 4)
    y, weights = labels(X, loss), np.tile([1.0, 0.0, 1.5], 20)
    kept = weights > 0
    whole = make_problem(as_rows(X), y, loss, C=0.05, weights=weights)
    part = make_problem(as_rows(np.ascontiguousarray(X[kept])), y[kept], loss, C=0.05, weights=weights[kept])
    one, other = run(whole, solver, 3), run(part, solver, 3)
    assert np.array_equal(one.w, other.w)
    with_zeros, without = certified(whole, solver, limits), certified(part, solver, limits)
    same_optimum(with_zeros, without)
    assert not with_zeros.alpha[~kept].any()


@every_solver
@SOME
def test_rows_outside_the_members_are_as_absent(solver: Any, limits: Limits, loss: Loss) -> None:
    X = matrix(60, 4)
    y, members = labels(X, loss), np.flatnonzero(np.arange(60) % 3)
    some = make_problem(as_rows(X), y, loss, lam=0.3, members=members)
    alone = make_problem(as_rows(np.ascontiguousarray(X[members])), y[members], loss, lam=0.3)
    one, other = run(some, solver, 3), run(alone, solver, 3)
    assert np.array_equal(one.w, other.w)
    assert some.C == alone.C


@every_solver
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_the_order_of_the_rows_does_not_matter(solver: Any, limits: Limits, intercept: str) -> None:
    X = matrix(60, 4)
    y, order = labels(X, Hinge()), np.random.default_rng(0).permutation(60)
    bias = 1.0 if intercept == "free" else 0.0
    limits = replace(limits, tol=max(limits.tol, 1e-7))
    if isinstance(solver, Pegasos) and intercept == "free":
        limits = replace(limits, tol=5e-2)
    made = [
        make_problem(as_rows(X[rows], bias), y[rows], Hinge(), C=0.05, intercept=intercept)  # type: ignore[arg-type]
        for rows in (np.arange(60), order)
    ]
    same_optimum(*(certified(problem, solver, limits) for problem in made))


@every_solver
@SOME
def test_a_regularized_intercept_is_an_appended_column(solver: Any, limits: Limits, loss: Loss) -> None:
    X = matrix(60, 4)
    y, scale = labels(X, loss), 2.5
    virtual = make_problem(as_rows(X, scale), y, loss, C=0.05, intercept="regularized")
    column = make_problem(as_rows(np.hstack([X, np.full((60, 1), scale)])), y, loss, C=0.05)
    one, other = run(virtual, solver, 4), run(column, solver, 4)
    assert one.w == pytest.approx(other.w[:-1], rel=1e-8, abs=1e-10)
    result, reference = certified(virtual, solver, limits), certified(column, solver, limits)
    gaps = result.certificate.gap, reference.certificate.gap
    assert abs(result.certificate.primal - reference.certificate.primal) <= max(gaps) + 1e-10
    assert abs(result.intercept / scale - reference.coef[-1]) <= distance_bound(*gaps)


@pytest.mark.parametrize("scale", [1.0, 10.0])
@DUAL
def test_a_free_intercept_finds_libsvms_optimum(solver: Any, scale: float) -> None:
    X = matrix(80, 4) + 0.5
    y, t = labels(X, Hinge()), labels(X, EpsilonInsensitive())
    for loss, target, theirs in (
        (Hinge(), y, SVC(kernel="linear", C=0.7, tol=1e-9)),
        (EpsilonInsensitive(0.2), t, SVR(kernel="linear", C=0.7, epsilon=0.2, tol=1e-9)),
    ):
        theirs.fit(X, target)
        problem = make_problem(as_rows(X, scale), target, loss, C=0.7, intercept="free")
        result = certified(problem, solver, Limits(tol=1e-7, max_epochs=100_000))
        reached = plain_primal(problem, theirs.coef_.ravel(), float(theirs.intercept_[0]))
        gap = max(result.certificate.gap, 0.0)
        assert result.certificate.dual <= reached * (1 + 1e-12)
        assert abs(reached - result.certificate.primal) <= gap + 1e-6 * reached
        distance = np.linalg.norm(result.coef - theirs.coef_.ravel())
        assert distance <= distance_bound(gap, gap + 1e-6 * reached)


@DUAL
def test_a_free_intercept_of_a_smooth_loss_is_scipys(solver: Any) -> None:
    problem = small_problem(Logistic(), intercept="free")

    def primal(point: np.ndarray) -> float:
        return plain_primal(problem, point[:-1], point[-1])

    theirs = minimize(primal, np.zeros(6), method="BFGS", options={"gtol": 1e-8})
    result = certified(problem, solver)
    assert abs(result.certificate.primal - theirs.fun) <= max(result.certificate.gap, 0.0) + 1e-8 * theirs.fun
    assert result.certificate.dual <= theirs.fun * (1 + 1e-12)
