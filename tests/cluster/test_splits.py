"""Problems side by side over the same partitions: pairs of classes have the models of their own rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.one_worker import OneWorker
from saddlesvm.cluster.over_passes import PassRounds
from saddlesvm.cluster.partition import Split
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.losses import Hinge, Loss, SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from support import distance_bound, matrix
from support.partitions import Engine, cut

N, D, K = 300, 5, 3


def rows() -> tuple[np.ndarray, np.ndarray]:
    X = matrix(N, D)
    return X, np.digitize(X.sum(axis=1), [-0.7, 0.7])


def test_numbers_mean_a_pair() -> None:
    split = Split(4, multi_class="ovo")
    assert (split.n_problems, Split(2, "ovo").n_problems, Split(0).n_problems, Split(4).n_problems) == (6, 1, 1, 4)
    y, pairs = np.tile(np.arange(4.0), 3), list(combinations(range(4), 2))
    for number, sub in enumerate(split.sub_problems(y)):
        first, second = pairs[number]
        assert sub.members is not None
        assert np.array_equal(sub.members, np.flatnonzero(np.isin(y, [first, second])))
        assert np.array_equal(sub.y[sub.members], np.where(y[sub.members] == second, 1.0, -1.0))


@pytest.mark.parametrize("make", [PassRounds, OneWorker])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=["hinge", "squared_hinge"])
def test_every_pair_has_the_model_of_its_rows(make: Any, loss: Loss) -> None:
    X, y = rows()
    parts = cut(X, y, [40, 40, 200], np.arange(K), multi_class="ovo")
    split = parts[0].split
    plan = ClusterPlan(loss, 0.5, N, split.n_problems, D, tol=1e-6, max_rounds=200)
    method = make(plan, Engine(parts), **({"most": N} if make is PassRounds else {}))
    solution = method.run()
    assert solution.outcome is Outcome.CERTIFIED
    for k in range(split.n_problems):
        sub = split.sub_problems(y)[k]
        own = slice(None) if sub.members is None else sub.members
        problem = make_problem(as_rows(X[own], 1.0), sub.y[own], loss, C=0.5, intercept="regularized")
        best = fit(problem, DCD(), Limits(tol=1e-7))
        apart = np.linalg.norm(solution.W[k] - np.append(best.coef, best.intercept))
        assert apart <= distance_bound(solution.certificates[k].gap, best.certificate.gap)
