"""The rounds over partitions, in one process: the dual never falls, and what is lost is made good.

That they end at the model of memory is a law: tests/laws/test_partitions.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import ClusterPlan, Solution
from saddlesvm.cluster.partition import Partition, make_partition
from saddlesvm.cluster.rounds import (
    PASSES,
    DualOrder,
    DualRounds,
    improve,
    safe_share,
    zero_duals,
)
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import Hinge, Loss
from saddlesvm.problem.problem import Problem, is_classification, make_problem
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from support import ALL_LOSSES, distance_bound, labels, matrix, named

N, D = 240, 6
CLASSES = np.array([-1.0, 1.0])


def split(X: Any, y: np.ndarray, K: int, loss: Loss, weights: Any = None, scale: float = 1.0) -> list[Partition]:
    """Every K-th row to a partition."""
    classes = CLASSES if is_classification(loss) else None
    kind: Any = "regularized" if scale else "none"
    return [
        make_partition(X[k::K], y[k::K], None if weights is None else weights[k::K], classes, scale, kind)
        for k in range(K)
    ]


def solved(parts: list[Partition], loss: Loss, C: float, problems: int = 1, **options: Any) -> Solution:
    n = sum(part.size for part in parts)
    options = {"tol": 1e-4} | options
    return DualRounds(ClusterPlan(loss, C, n, problems, D, **options), Engine(parts)).run()


def reference(X: Any, y: np.ndarray, loss: Loss, C: float, **options: Any) -> tuple[Problem, FitResult]:
    problem = make_problem(as_rows(X, 1.0), y, loss, C=C, intercept="regularized", **options)
    return problem, fit(problem, DCD(), Limits(tol=1e-9))


def near(solution: Solution, result: FitResult) -> bool:
    apart = np.linalg.norm(solution.W[0] - np.append(result.coef, result.intercept))
    return bool(apart <= distance_bound(solution.certificates[0].gap, result.certificate.gap))


def test_a_tight_gap() -> None:
    X = matrix(N, D)
    y = labels(X, Hinge())
    solution = solved(split(X, y, 4, Hinge()), Hinge(), 0.02, tol=1e-6)
    assert solution.outcome is Outcome.CERTIFIED
    assert near(solution, reference(X, y, Hinge(), 0.02)[1])


def test_one_partition_does_what_the_ordinary_solver_does() -> None:
    X = matrix(N, D)
    problem, _ = reference(X, labels(X, Hinge()), Hinge(), 0.1)
    state = DCD().init(problem, 5)
    for _ in range(int(PASSES)):
        state = DCD().step(problem, state, _rows(N))
    [part] = split(X, problem.y, 1, Hinge())
    order = DualOrder(np.zeros(1), np.ones(1), np.ones(1, dtype=bool), Hinge(), 0.1, 5)
    duals, report = improve(part, zero_duals(part, 1), np.zeros((1, D + 1)), order).found
    assert np.allclose(duals.change[0], state.alpha, rtol=0.0, atol=1e-12)
    assert np.allclose(report.moves[0], state.w, rtol=0.0, atol=1e-12)


def _rows(count: int) -> Any:
    from saddlesvm.solvers.base import Budget

    return Budget(count)


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
def test_the_dual_never_falls_and_w_is_that_of_the_duals(loss: Loss) -> None:
    X = np.tile(matrix(40, D), (6, 1))
    y = labels(X, loss)
    problem, _ = reference(X, y, loss, 0.5)
    engine = Engine(split(X, y, 6, loss))
    run = DualRounds(ClusterPlan(loss, 0.5, N, 1, D, tol=0.0, max_rounds=12), engine)
    before = -np.inf
    for _ in range(12):
        run.one_round()
        alpha = np.empty(N)
        for k, duals in enumerate(run.duals):
            alpha[k::6] = duals.after(run.shares)[0]
        after = evaluate(problem, Point(alpha=alpha)).certificate.dual
        assert after >= before - 1e-9 * abs(after)
        assert np.allclose(run.W[0], dual_weights(problem, alpha), rtol=0.0, atol=1e-9 * np.linalg.norm(run.W))
        before = after


def test_every_round_proves_its_bounds() -> None:
    X = matrix(N, D)
    problem, best = reference(X, labels(X, Hinge()), Hinge(), 0.02)
    run = DualRounds(ClusterPlan(Hinge(), 0.02, N, 1, D, tol=0.0), Engine(split(X, problem.y, 3, Hinge())))
    for _ in range(8):
        run.one_round()
        [found] = run.best
        own = evaluate(problem, Point(run.best_W[0]), given_offset=True).certificate
        assert found.primal == pytest.approx(own.primal, rel=1e-12)
        assert found.dual <= best.certificate.primal


def test_lost_duals_are_made_good() -> None:
    class Forgetful(Engine):
        """The fifth sum is lost, with the dual variables of the second of three partitions."""

        sums = 0
        left = iter([True, False, False, True])

        def add_up(self, results: Any, combine: Any) -> Any:
            self.sums += 1
            if self.sums == 5:
                raise OSError("a worker has gone")
            return super().add_up(results, combine)

        def survive(self, loss: Exception) -> bool:
            self.restarts += 1
            return isinstance(loss, OSError)

        def has(self, result: Any) -> bool:
            return next(self.left)

    X = matrix(N, D)
    y = labels(X, Hinge())
    engine = Forgetful(split(X, y, 3, Hinge()))
    solution = DualRounds(ClusterPlan(Hinge(), 0.02, N, 1, D), engine).run()
    assert engine.restarts == 1
    assert solution.outcome is Outcome.CERTIFIED
    assert near(solution, reference(X, y, Hinge(), 0.02)[1])


def test_rounds_are_repeatable_and_counted() -> None:
    X = matrix(N, D)
    y = labels(X, Hinge())
    first, second = (solved(split(X, y, 3, Hinge()), Hinge(), 0.02, seed=3) for _ in range(2))
    assert np.array_equal(first.W, second.W)
    row = first.trace[-1]
    assert row["round"] == first.rounds
    assert row["bytes_down"] == 3 * 8 * (D + 1)
    stopped = solved(split(X, y, 3, Hinge()), Hinge(), 0.02, max_rounds=2)
    assert (stopped.rounds, stopped.outcome) == (2, Outcome.EPOCH_LIMIT)


@pytest.mark.parametrize("bad, message", [(np.nan, "NaN in row 1"), (np.inf, "infinity")])
def test_bad_rows_are_refused_where_they_are(bad: float, message: str) -> None:
    X = matrix(4, D)
    X[1, 0] = bad
    with pytest.raises(ValueError, match=message):
        make_partition(X, np.ones(4), None, CLASSES, 1.0, "regularized")
    with pytest.raises(ValueError, match="sample_weight"):
        make_partition(matrix(4, D), np.ones(4), np.array([1.0, -1.0, 1.0, 1.0]), CLASSES, 1.0, "regularized")


def test_what_leaves_a_partition_does_not_grow_with_its_rows() -> None:
    order = DualOrder(np.zeros(1), np.ones(1), np.ones(1, dtype=bool), Hinge(), 0.1, 0)
    sizes = []
    for n in (20, 200):
        [part] = split(matrix(n, D), labels(matrix(n, D), Hinge()), 1, Hinge())
        sizes.append(improve(part, zero_duals(part, 1), np.zeros((1, D + 1)), order).sent)
    assert sizes[0] == sizes[1]


def test_sigma_follows_interference_between_one_and_the_number_of_partitions() -> None:
    X = matrix(N, D)
    parts = split(X, labels(X, Hinge()), 4, Hinge())
    rounds = DualRounds(ClusterPlan(Hinge(), 1.0, N, 1, D), Engine(parts))
    rounds.begin()
    rounds.follow_interference(0, 3.0, 1.0)
    assert rounds.sigmas[0] == 3.0
    rounds.follow_interference(0, 0.0, 1.0)
    assert 2.0 < rounds.sigmas[0] < 3.0
    rounds.follow_interference(0, 9.0, 1.0)
    assert rounds.sigmas[0] == 4.0


def test_the_share_taken_is_where_the_bound_is_largest() -> None:
    assert safe_share(1.0, 1.0) == 1.0
    assert safe_share(0.5, 1.0) == 1.0
    assert safe_share(0.2, 1.0) == pytest.approx(0.2)
    assert safe_share(-1.0, 1.0) == 0.0
