"""Newton's method over partitions, in one process: few rounds at any C, and few bytes.

That it ends at the model of memory is a law: tests/laws/test_partitions.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.method import ClusterPlan, Solution
from saddlesvm.cluster.over_passes import PassOrder, PassRounds, add_answers, answer_pass, has_small_matrices
from saddlesvm.cluster.partition import Partition
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import Hinge, Logistic, SmoothHinge, SquaredHinge
from saddlesvm.solvers.newton_question import NewtonQuestion
from support import labels, matrix, named
from support.partitions import SIGNS, Engine, cut

N, D = 240, 6


def solved(parts: list[Partition], loss: Loss, C: float, **options: Any) -> Solution:
    plan = ClusterPlan(loss, C, N, 1, D, **({"tol": 1e-7, "max_rounds": 25} | options))
    return PassRounds(plan, Engine(parts)).run()


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
def test_a_few_rounds_at_any_C(C: float) -> None:
    X = matrix(N, D) * np.logspace(0, -3, D)
    y = labels(X, SquaredHinge())
    solution = solved(cut(X, y, [50, 60], SIGNS), SquaredHinge(), C, tol=1e-6)
    assert solution.outcome is Outcome.CERTIFIED
    assert solution.rounds <= 15


@pytest.mark.parametrize("kind", ["regularized", "free"])
@pytest.mark.parametrize("loss", [SquaredHinge(), SmoothHinge()], ids=named)
def test_separable_rows_of_any_size_are_certified_at_a_huge_C(loss: Loss, kind: Any) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 10))
    y = np.where(X @ random.normal(size=10) > 0.0, 1.0, -1.0)
    plan = ClusterPlan(loss, 1e6, 3000, 1, 10, tol=1e-5, max_rounds=80, free=kind == "free")
    solution = PassRounds(plan, Engine(cut(1e3 * X, y, [700, 1500], SIGNS, kind=kind)), most=300).run()
    assert solution.outcome is Outcome.CERTIFIED


def test_what_a_partition_sends_does_not_grow_with_its_rows() -> None:
    X = matrix(N, D)
    y, loss = labels(X, SquaredHinge()), SquaredHinge()
    asked = PassOrder([0], [NewtonQuestion(np.zeros(D + 1), matrix_share=1.0)], loss, 1.0, N)
    small, large = (answer_pass(one, asked).sums[0] for one in cut(X, y, [20], SIGNS))
    assert [np.shape(one) for one in small.values] == [np.shape(one) for one in large.values]
    assert not small.pieces and not large.pieces


def test_adding_answers_leaves_them_as_they_are() -> None:
    X = matrix(N, D)
    y, loss = labels(X, SquaredHinge()), SquaredHinge()
    question = NewtonQuestion(np.ones(D + 1), np.zeros(D + 1), matrix_share=1.0, kind=np.float64)
    asked = PassOrder([0], [question], loss, 1.0, N)
    answers = [answer_pass(one, asked) for one in cut(X, y, [20, 90], SIGNS)]
    before = [one.sums[0].matrix.copy() for one in answers]
    both = add_answers([add_answers(answers[:2]), answers[2]])
    [whole] = [answer_pass(one, asked) for one in cut(X, y, [], SIGNS)]
    assert np.allclose(both.sums[0].matrix, whole.sums[0].matrix)
    assert np.allclose(both.sizes, whole.sizes)
    assert all(np.array_equal(one, other.sums[0].matrix) for one, other in zip(before, answers, strict=True))


def test_what_the_method_is_for() -> None:
    assert has_small_matrices(Logistic(), 2_000, 1)
    assert not has_small_matrices(Logistic(), 47_000, 1)
    assert not has_small_matrices(Hinge(), 10, 1)


def test_a_limit_on_rounds_keeps_the_best_model() -> None:
    X = matrix(N, D)
    y = labels(X, Logistic())
    stopped = solved(cut(X, y, [20], SIGNS), Logistic(), 100.0, max_rounds=3)
    assert (stopped.rounds, stopped.outcome) == (3, Outcome.EPOCH_LIMIT)
    assert np.isfinite(stopped.certificates[0].gap)
