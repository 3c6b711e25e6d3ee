"""Newton's method over partitions, in one process: any number of them takes the same rounds to the same model."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.over_passes import Asked, NewtonRounds, answers_of, is_suited, together
from saddlesvm.cluster.part import Part, make_part
from saddlesvm.cluster.rounds import Solution, Training
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.losses import Hinge, Logistic, SquaredHinge
from saddlesvm.problem.problem import is_classification, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from saddlesvm.solvers.second_order.row_statistics import Ask
from support import ALL_LOSSES, csr, distance_bound, labels, matrix, named

N, D = 240, 6
CLASSES = np.array([-1.0, 1.0])
SMOOTH = [loss for loss in ALL_LOSSES if is_smooth(loss)]


def split(
    X: Any, y: np.ndarray, cuts: list[int], loss: Loss, weights: Any = None, scale: float = 1.0, kind: Any = ""
) -> list[Part]:
    """Neighbouring rows to a partition."""
    classes = CLASSES if is_classification(loss) else None
    kind = kind or ("regularized" if scale else "none")
    ends = [0, *cuts, y.size]
    return [
        make_part(X[a:b], y[a:b], None if weights is None else weights[a:b], classes, scale, kind)
        for a, b in pairwise(ends)
    ]


def solved(parts: list[Part], loss: Loss, C: float, problems: int = 1, **options: Any) -> Solution:
    n = sum(part.size for part in parts)
    plan = Training(loss, C, n, problems, D, **({"tol": 1e-7, "max_rounds": 25} | options))
    return NewtonRounds(plan, Engine(parts, problems)).run()


def reference(X: Any, y: np.ndarray, loss: Loss, C: float, **options: Any) -> FitResult:
    problem = make_problem(as_rows(X, 1.0), y, loss, C=C, intercept="regularized", **options)
    return fit(problem, DCD(), Limits(tol=1e-7))


def near(w: np.ndarray, gap: float, result: FitResult) -> bool:
    apart = np.linalg.norm(w - np.append(result.coef, result.intercept))
    return bool(apart <= distance_bound(gap, result.certificate.gap))


@pytest.mark.parametrize("loss", SMOOTH, ids=named)
def test_any_number_of_partitions_takes_the_same_rounds(loss: Loss) -> None:
    X = matrix(N, D)
    y, weights = labels(X, loss), np.random.default_rng(0).integers(0, 3, N).astype(float)
    best = reference(X, y, loss, 0.5, weights=weights)
    rounds = set()
    for cuts in ([], [10, 150], list(range(7, N, 7))):
        solution = solved(split(X, y, cuts, loss, weights), loss, 0.5)
        assert solution.outcome is Outcome.CERTIFIED
        assert near(solution.W[0], solution.certificates[0].gap, best)
        rounds.add(solution.rounds)
    assert len(rounds) == 1


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_a_few_rounds_at_any_C(C: float) -> None:
    X = matrix(N, D) * np.logspace(0, -3, D)
    y = labels(X, SquaredHinge())
    solution = solved(split(X, y, [50, 60], SquaredHinge()), SquaredHinge(), C, tol=1e-6)
    assert solution.outcome is Outcome.CERTIFIED
    assert solution.rounds <= 15


def test_all_classes_in_one_round_and_sparse_rows() -> None:
    X = matrix(N, D, density=0.5)
    y = np.digitize(X.sum(axis=1), [-0.5, 0.5])
    parts = [make_part(csr(X[k::3]), y[k::3], None, np.arange(3), 1.0, "regularized") for k in range(3)]
    solution = solved(parts, Logistic(), 5.0, problems=3)
    for k in range(3):
        best = reference(X, 2.0 * (y == k) - 1.0, Logistic(), 5.0)
        assert near(solution.W[k], solution.certificates[k].gap, best)


def test_a_partition_without_rows_and_one_without_an_intercept() -> None:
    X = matrix(N, D)
    y = labels(X, SquaredHinge())
    solution = solved(split(X, y, [0, 100], SquaredHinge(), scale=0.0), SquaredHinge(), 0.5)
    assert solution.outcome is Outcome.CERTIFIED
    assert (solution.W[:, -1] == 0.0).all()


@pytest.mark.parametrize("loss", SMOOTH, ids=named)
def test_a_free_intercept_is_certified(loss: Loss) -> None:
    X = matrix(N, D)
    y, weights = labels(X, loss), np.random.default_rng(0).integers(0, 3, N).astype(float)
    plan = Training(loss, 0.5, N, 1, D, tol=1e-6, max_rounds=30, free=True)
    run = NewtonRounds(plan, Engine(split(X, y, [10, 150], loss, weights, kind="free"), 1))
    solution = run.run()
    assert solution.outcome is Outcome.CERTIFIED
    problem = make_problem(as_rows(X, 1.0), y, loss, C=0.5, intercept="free", weights=weights)
    best = fit(problem, DCD(), Limits(tol=1e-6))
    own = evaluate(problem, Point(solution.W[0]), given_offset=True).certificate
    assert solution.certificates[0].primal == pytest.approx(own.primal, rel=1e-9)
    assert solution.certificates[0].dual <= best.certificate.primal
    apart = np.linalg.norm(solution.W[0][:-1] - best.coef)
    assert apart <= distance_bound(solution.certificates[0].gap, best.certificate.gap)


def test_bytes_are_counted_and_do_not_grow_with_the_rows() -> None:
    X = matrix(N, D)
    y, loss = labels(X, SquaredHinge()), SquaredHinge()
    asked = Asked([0], [Ask(np.zeros(D + 1), np.empty(0))], loss, 1.0, N)
    small, large = (answers_of(one, asked) for one in split(X, y, [20], loss))
    assert small.sent == large.sent >= 8 * (D + 1) ** 2
    solution = solved(split(X, y, [20], loss), loss, 1.0)
    assert solution.trace[-1]["bytes_down"] == 2 * 2 * 8 * (D + 1)
    assert solution.trace[-1]["bytes_up"] == 2 * large.sent


def test_adding_answers_leaves_them_as_they_are() -> None:
    X = matrix(N, D)
    y, loss = labels(X, SquaredHinge()), SquaredHinge()
    asked = Asked([0], [Ask(np.ones(D + 1), np.zeros(D + 1))], loss, 1.0, N)
    answers = [answers_of(one, asked) for one in split(X, y, [20, 90], loss)]
    before = [one.found.each[0].matrix.copy() for one in answers]
    both = together([together(answers[:2]), answers[2]])
    [whole] = [answers_of(one, asked) for one in split(X, y, [], loss)]
    assert np.allclose(both.found.each[0].matrix, whole.found.each[0].matrix)
    assert np.allclose(both.found.sizes, whole.found.sizes)
    assert all(np.array_equal(one, other.found.each[0].matrix) for one, other in zip(before, answers, strict=True))


def test_what_the_method_is_for() -> None:
    X = matrix(N, D)
    with pytest.raises(ValueError, match="smooth losses only, not hinge"):
        solved(split(X, labels(X, Hinge()), [20], Hinge()), Hinge(), 1.0)
    assert is_suited(Logistic(), 2_000, 1)
    assert not is_suited(Logistic(), 47_000, 1)
    assert not is_suited(Hinge(), 10, 1)


def test_a_limit_on_rounds_keeps_the_best_model() -> None:
    X = matrix(N, D)
    y = labels(X, Logistic())
    stopped = solved(split(X, y, [20], Logistic()), Logistic(), 100.0, max_rounds=3)
    assert (stopped.rounds, stopped.outcome) == (3, Outcome.EPOCH_LIMIT)
    assert np.isfinite(stopped.certificates[0].gap)
