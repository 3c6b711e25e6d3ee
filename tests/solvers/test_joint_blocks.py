"""Joint machines block by block from files: the optima of memory, certificates that hold, few sweeps at any C."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.crammer_singer import JointProblem, make_joint_problem
from saddlesvm.problem.joint_losses import BEST_RIVAL, JointLoss, TopKHinge
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import Rooms
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import make_plan
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.joint_blocks import JointBlocks
from saddlesvm.solvers.sweeps import reader_of
from support import others_nightly
from support.classes import blobs
from support.mapped import close_enough, files, mapped, mapped_csr

K, N = 5, 600
ROOM = 200  # kept rows that there is room for: 10 features make some 50 rows lie between their bounds
A_ROW = 4 * 10 + 64 + 80 * K
HINGES = [BEST_RIVAL, TopKHinge(2)]


def classes() -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, in float32."""
    X, y = blobs(n=N, k=K, d=10, seed=1)
    return X.astype(np.float32), y


def on_files(X: Any, y: np.ndarray, joint: JointLoss = BEST_RIVAL, **options: Any) -> JointProblem:
    """A problem of eight blocks or so."""
    options = {"C": 0.3, "intercept": "regularized"} | options
    kept, plan = options.pop("kept_bytes", ROOM * A_ROW), options.pop("plan", None)
    rows = as_rows(X, 1.0 if options["intercept"] == "regularized" else 0.0)
    plan = plan or make_plan(rows, 2**30, 1)
    reader = BlockReader(rows, plan.edges, plan.per_block, np.zeros(y.size))
    rooms = Rooms(plan.row_array((y.size, K)), kept_bytes=kept)
    return make_joint_problem(files(reader), y, K, Hinge(), joint, rooms=rooms, **options)


def in_memory(X: Any, y: np.ndarray, joint: JointLoss = BEST_RIVAL, **options: Any) -> JointProblem:
    options = {"C": 0.3, "intercept": "regularized"} | options
    bias = 1.0 if options["intercept"] == "regularized" else 0.0
    return make_joint_problem(as_rows(X, bias), y, K, Hinge(), joint, **options)


@pytest.mark.parametrize(
    ("joint", "layout", "intercept"),
    others_nightly(
        itertools.product(HINGES, ["dense", "csr"], ["none", "regularized"]),
        lambda case: (case[0] == BEST_RIVAL) == (case[1] == "dense") == (case[2] == "none"),
    ),
    ids=str,
)
def test_the_optimum_is_that_of_memory(joint: JointLoss, layout: str, intercept: str, tmp_path: Path) -> None:
    X, y = classes()
    X[np.random.default_rng(0).random(X.shape) < 0.4] = 0.0
    options: dict[str, Any] = {"weights": np.arange(N) % 4 / 2.0, "intercept": intercept}
    file = mapped(X, tmp_path) if layout == "dense" else mapped_csr(X, tmp_path)
    found = fit(on_files(file, y, joint, **options), JointBlocks(), Limits(tol=1e-6))
    best = fit(in_memory(X, y, joint, **options), CrammerSinger(), Limits(tol=1e-7))
    assert found.outcome is best.outcome is Outcome.CERTIFIED
    assert close_enough(found, best)
    assert found.certificate.dual <= best.certificate.primal
    assert found.certificate.primal >= best.certificate.dual


@pytest.mark.parametrize("joint", HINGES, ids=str)
def test_what_a_sweep_proves_is_true(joint: JointLoss, tmp_path: Path) -> None:
    X, y = classes()
    problem, solver = on_files(mapped(X, tmp_path), y, joint), JointBlocks()
    state = solver.init(problem, 0)
    for _ in range(3 * reader_of(problem).n_blocks):
        state = solver.step(problem, state, Budget(1))
    judged = evaluate(problem, solver.solution(problem, state), exact=False)
    plain = in_memory(X, y, joint)
    model = evaluate(plain, Point(np.column_stack([judged.coef, judged.intercept]), state.alpha))
    assert np.isclose(judged.certificate.primal, model.certificate.primal, rtol=1e-12)
    assert np.isclose(judged.certificate.dual, model.certificate.dual, rtol=1e-12)
    exact = evaluate(problem, Point(np.column_stack([judged.coef, judged.intercept]), state.alpha))
    assert np.isclose(exact.certificate.primal, model.certificate.primal, rtol=1e-14)
    assert np.isclose(exact.certificate.dual, model.certificate.dual, rtol=1e-14)
    assert np.allclose(problem.each_class(state.w), dual_weights(plain, state.alpha), rtol=1e-12, atol=1e-14)


def test_any_C_is_certified_in_few_sweeps(tmp_path: Path) -> None:
    X, y = classes()
    file = mapped(X, tmp_path)
    for C, most in ((0.01, 12), (1.0, 16), (100.0, 24)):
        found = fit(on_files(file, y, C=C), JointBlocks(), Limits(tol=1e-6))
        assert found.outcome is Outcome.CERTIFIED
        assert found.epochs <= most
        best = fit(in_memory(X, y, C=C), CrammerSinger(), Limits(tol=1e-7))
        assert close_enough(found, best)


def test_a_fit_that_ends_at_once_is_no_worse_than_zero(tmp_path: Path) -> None:
    X, y = classes()
    problem = on_files(100.0 * mapped(X, tmp_path), y, C=100.0)
    result = fit(problem, JointBlocks(), Limits(tol=1e-9, max_epochs=0.2))
    assert result.certificate.primal <= 100.0 * N * (1.0 + 1e-9)


def test_a_start_at_duals_of_an_earlier_fit(tmp_path: Path) -> None:
    X, y = classes()
    file = mapped(X, tmp_path)
    earlier = fit(in_memory(X, y), CrammerSinger(), Limits(tol=1e-8))
    problem = on_files(file, y)
    begun = fit(problem, JointBlocks(), Limits(tol=1e-4), start=Point(alpha=problem.taken_over(earlier.alpha.T, 1.0)))
    assert begun.outcome is Outcome.CERTIFIED
    assert begun.epochs <= 2.0 < fit(on_files(file, y), JointBlocks(), Limits(tol=1e-4)).epochs


def test_plain_problems_are_refused() -> None:
    X, y = classes()
    with pytest.raises(ValueError, match="a JointProblem there"):
        fit(in_memory(X, y), JointBlocks())
