"""The active-set method over partitions: few rounds at any C, and what travels; and which method is chosen.

That all methods end at the model of memory is a law: tests/laws/test_partitions.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.choice import choose_method
from saddlesvm.cluster.method import ClusterPlan, Solution
from saddlesvm.cluster.over_passes import (
    PassOrder,
    PassRounds,
    add_answers,
    answer_pass,
    room_for_rows,
)
from saddlesvm.cluster.partition import Partition
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.losses import Hinge, Logistic
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from saddlesvm.solvers.free_rows import FreeRowQuestion
from support import ALL_LOSSES, labels, matrix, named
from support.partitions import SIGNS, Engine, classes_of, cut

N, D = 400, 5
KINKED = [loss for loss in ALL_LOSSES if not is_smooth(loss)]


def narrowed(parts: list[Partition], loss: Loss, C: float, room: float, **options: Any) -> Solution:
    n = sum(part.size for part in parts)
    given = {"tol": 1e-6, "max_rounds": 60, "free": parts[0].intercept == "free"}
    plan = ClusterPlan(loss, C, n, options.pop("problems", 1), D, **(given | options))
    return PassRounds(plan, Engine(parts), most=int(room * n)).run()


def reference(X: Any, y: np.ndarray, loss: Loss, C: float, **options: Any) -> FitResult:
    problem = make_problem(as_rows(X, 1.0), y, loss, C=C, **({"intercept": "regularized"} | options))
    return fit(problem, DCD(), Limits(tol=1e-7))


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("loss", KINKED, ids=named)
def test_a_free_intercept_is_proven_without_a_round_of_its_own(loss: Loss, C: float) -> None:
    X = matrix(N, D)
    y, weights = labels(X, loss), np.random.default_rng(0).integers(0, 3, N).astype(float)
    solution = narrowed(cut(X, y, [10, 150, 150], classes_of(loss), weights, "free"), loss, C, 0.4)
    assert solution.outcome is Outcome.CERTIFIED and solution.rounds <= 25
    problem = make_problem(as_rows(X, 1.0), y, loss, C=C, intercept="free", weights=weights)
    own = evaluate(problem, Point(solution.W[0]), given_offset=True).certificate
    assert solution.certificates[0].primal == pytest.approx(own.primal, rel=1e-9)
    best = fit(problem, DCD(), Limits(tol=1e-7)).certificate
    assert solution.certificates[0].dual <= best.primal
    assert solution.certificates[0].primal >= best.dual


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_any_C_takes_a_few_rounds_with_a_proof(C: float) -> None:
    X = matrix(N, D)
    y = labels(X, Hinge())
    solution = narrowed(cut(X, y, [40, 300], SIGNS), Hinge(), C, 0.3)
    assert solution.outcome is Outcome.CERTIFIED and solution.rounds <= 25
    problem = make_problem(as_rows(X, 1.0), y, Hinge(), C=C, intercept="regularized")
    own = evaluate(problem, Point(solution.W[0]), given_offset=True).certificate
    assert solution.certificates[0].primal == pytest.approx(own.primal, rel=1e-9)
    assert solution.certificates[0].dual <= reference(X, y, Hinge(), C).certificate.primal


def test_what_is_found_together_is_what_one_finds_and_is_left_as_it_is() -> None:
    X = matrix(N, D)
    y, w = labels(X, Hinge()), np.random.default_rng(1).normal(size=D + 1)
    asked = PassOrder([0], [FreeRowQuestion(w, np.empty(0), 0.3, N, 0.0)], Hinge(), 1.0, N)
    apart = [answer_pass(part, asked) for part in cut(X, y, [30, 200], SIGNS)]
    [whole] = [answer_pass(part, asked) for part in cut(X, y, [], SIGNS)]
    before = [one.sums[0].pull.copy() for one in apart]
    both = add_answers([add_answers(apart[:2]), apart[2]])
    for mine, theirs in zip(both.sums[0].values, whole.sums[0].values, strict=True):
        if not isinstance(mine, list) and mine.size != whole.sums[0].counts.size:  # counted in a strip of eight
            assert np.allclose(mine, theirs)
    assert both.sums[0].taken == whole.sums[0].taken > 0
    assert all(np.array_equal(one, other.sums[0].pull) for one, other in zip(before, apart, strict=True))


def test_small_partitions_draw_rows_of_their_own() -> None:
    X = matrix(N, D)
    y = labels(X, Hinge())
    asked = PassOrder([0], [FreeRowQuestion(np.zeros(D + 1), np.empty(0), 0.0, 0, 0.2)], Hinge(), 1.0, N)
    parts = cut(X, y, list(range(20, N, 20)), SIGNS)
    found = [answer_pass(part, asked).sums[0] for part in parts]
    drawn = [sum(piece.y.size for piece in [*sums.pieces, *sums.drawn]) for sums in found]
    assert len(set(drawn)) > 1
    assert 0.5 * 0.2 * N <= sum(drawn) <= 2.0 * 0.2 * N


def test_rows_of_one_margin_are_given_up() -> None:
    X, y = np.ones((N, D)), np.tile([1.0, 1.0, -1.0], N)[:N]
    solution = narrowed(cut(X, y, [100], SIGNS), Hinge(), 1.0, 0.05, tol=1e-9)
    assert solution.outcome in (Outcome.NO_PROGRESS, Outcome.CERTIFIED)
    assert "free" in solution.reason or solution.outcome is Outcome.CERTIFIED


def test_the_method_is_chosen_by_what_would_travel() -> None:
    def method(loss: Loss, n: int, d: int, n_bytes: float, solver: str = "auto", **options: Any) -> str:
        return choose_method(solver, ClusterPlan(loss, 1.0, n, 1, d, **options), int(n_bytes), 2**28)

    assert method(Logistic(), 10**9, 100, 8e11) == "newton"
    assert method(Logistic(), 10**5, 50_000, 1e8) == "gather"
    assert method(Logistic(), 60_000, 100, 5e7) == "newton"
    assert method(Logistic(), 60_000, 1000, 2e6) == "gather"  # fewer bytes than the matrices
    for solver in ("auto", "newton"):
        with pytest.raises(ValueError, match=r"memory='953675M'\. Otherwise take fewer features"):
            method(Logistic(), 10**9, 50_000, 1e12, solver)
    assert method(Hinge(), 10**5, 100, 8e7) == "gather"
    assert method(Hinge(), 10**7, 100, 8e9) == "newton"
    assert method(Hinge(), 10**7, 100, 8e9, free=True) == "newton"
    with pytest.raises(ValueError, match=r"memory='762940M'\. Otherwise take a smooth loss"):
        method(Hinge(), 10**9, 100, 8e11)
    with pytest.raises(ValueError, match="memory allows 256 MiB"):
        method(Hinge(), 10**9, 100, 8e11, "gather")
    assert room_for_rows(1000, 1000 * 952, 2, 2e6) == 1000


@pytest.mark.parametrize("loss", KINKED, ids=named)
def test_the_first_round_leaves_a_certified_model(loss: Loss) -> None:
    X = matrix(N, D)
    y = labels(X, loss)
    solution = narrowed(cut(X, y, [100], classes_of(loss)), loss, 1.0, 0.3, max_rounds=1)
    [found] = solution.certificates
    problem = make_problem(as_rows(X, 1.0), y, loss, C=1.0, intercept="regularized")
    assert found.primal == pytest.approx(evaluate(problem, Point(solution.W[0])).certificate.primal, rel=1e-9)
    assert found.dual <= reference(X, y, loss, 1.0).certificate.primal
