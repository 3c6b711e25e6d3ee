"""Problems side by side over the same partitions: pairs of classes and folds have the models of their own rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.choice import choose_method
from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.partition import Split, count_right, draw_folds, join_partitions
from saddlesvm.cluster.rounds import deal_rows
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.losses import Hinge, Loss, SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from support import distance_bound, matrix
from support.partitions import cut

N, D, K = 300, 5, 3


def rows() -> tuple[np.ndarray, np.ndarray]:
    X = matrix(N, D)
    return X, np.digitize(X.sum(axis=1), [-0.7, 0.7])


def test_numbers_mean_a_fold_and_a_kind() -> None:
    split = Split(4, multi_class="ovo", folds=3)
    assert (split.n_kinds, split.n_problems) == (6, 24)
    assert (Split(2, "ovo").n_kinds, Split(0, folds=2).n_problems, Split(4).n_kinds) == (1, 3, 4)
    y, fold = np.tile(np.arange(4.0), 3), np.repeat(np.arange(3), 4)
    every, pairs = split.sub_problems(y, fold), list(combinations(range(4), 2))
    for number, sub in enumerate(every):
        left_out, (first, second) = number // 6, pairs[number % 6]
        assert sub.members is not None
        assert np.array_equal(sub.members, np.flatnonzero(np.isin(y, [first, second]) & (fold != left_out)))
        assert np.array_equal(sub.y[sub.members], np.where(y[sub.members] == second, 1.0, -1.0))


def test_folds_are_even_and_travel_with_their_rows() -> None:
    fold = draw_folds(1001, 5, 0, 3)
    assert np.ptp(np.bincount(fold, minlength=5)) <= 1
    assert not np.array_equal(fold, draw_folds(1001, 5, 0, 4))
    X, y = rows()
    [part] = cut(X, y, [], np.arange(K), folds=4)
    again = join_partitions(deal_rows(part, 3, 0))
    order, before = np.lexsort(again.X.values.T), np.lexsort(part.X.values.T)
    assert np.array_equal(again.fold[order], part.fold[before])


@pytest.mark.parametrize("solver", ["newton", "gather", "rounds"])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=["hinge", "squared_hinge"])
@pytest.mark.parametrize("options", [{"multi_class": "ovo"}, {"folds": 2}, {"multi_class": "ovo", "folds": 2}], ids=str)
def test_every_problem_has_the_model_of_its_rows(solver: str, loss: Loss, options: dict[str, Any]) -> None:
    X, y = rows()
    C, tol = (0.05, 1e-4) if solver == "rounds" else (0.5, 1e-6)
    parts = cut(X, y, [40, 40, 200], np.arange(K), **options)
    split, fold = parts[0].split, np.concatenate([part.fold for part in parts])
    plan = ClusterPlan(loss, C, N, split.n_problems, D, tol=tol, max_rounds=200)
    solution = choose_method(solver, plan, 8 * N * D, 2**24)(plan, Engine(parts)).run()
    assert solution.outcome is Outcome.CERTIFIED
    for k in range(split.n_problems):
        sub = split.sub_problems(y, fold)[k]
        own = slice(None) if sub.members is None else sub.members
        problem = make_problem(as_rows(X[own], 1.0), sub.y[own], loss, C=C, intercept="regularized")
        best = fit(problem, DCD(), Limits(tol=1e-7))
        apart = np.linalg.norm(solution.W[k] - np.append(best.coef, best.intercept))
        assert apart <= distance_bound(solution.certificates[k].gap, best.certificate.gap)


def test_held_out_rows_are_counted() -> None:
    X, y = rows()
    parts = cut(X, y, [40, 40, 200], np.arange(K), folds=3)
    W = np.random.default_rng(0).normal(size=(parts[0].split.n_problems, D + 1))
    right, counts = sum(count_right(part, W) for part in parts)
    fold = np.concatenate([part.fold for part in parts])
    for k in range(3):
        scores = np.column_stack([X, np.ones(N)])[fold == k] @ W[k * K : (k + 1) * K].T
        assert counts[k] == np.count_nonzero(fold == k)
        assert right[k] == np.count_nonzero(scores.argmax(axis=1) == y[fold == k])
