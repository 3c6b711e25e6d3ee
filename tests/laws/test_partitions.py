"""Partitions are a place like another: every method over them, in one process, has the model of rows in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from saddlesvm.cluster.method import ClusterMethod, ClusterPlan, Solution
from saddlesvm.cluster.one_worker import OneWorker
from saddlesvm.cluster.over_passes import PassRounds
from saddlesvm.cluster.partition import make_partition
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from support import ALL_LOSSES, csr, distance_bound, labels, matrix, named
from support.partitions import Engine, classes_of, cut

N, D = 240, 5
CUTS = ([], [10, 150, 150], list(range(7, N, 7)))  # one partition, one of them empty, many
SHARE = 0.4  # of the rows, that the active set may take along


class Method(NamedTuple):
    """A method: what it takes, C and tol with which it is quick, and its options."""

    make: Callable[..., ClusterMethod]
    takes: Callable[[Loss, str], bool]
    C: float
    tol: float
    options: dict[str, Any]


METHODS = {
    "newton": Method(PassRounds, lambda loss, kind: is_smooth(loss), 0.5, 1e-6, {}),
    "active set": Method(PassRounds, lambda loss, kind: not is_smooth(loss), 0.5, 1e-6, {"most": int(SHARE * N)}),
    "one worker": Method(OneWorker, lambda loss, kind: True, 0.5, 1e-6, {}),
}
TAKEN = [
    pytest.param(method, loss, kind, id=f"{name}-{named(loss)}-{kind}")
    for name, method in METHODS.items()
    for loss in ALL_LOSSES
    for kind in ("regularized", "free", "none")
    if method.takes(loss, kind)
]


def solved(method: Method, parts: list[Any], loss: Loss, kind: str = "regularized", problems: int = 1) -> Solution:
    options: dict[str, Any] = {"free": kind == "free", "scale": 0.0 if kind == "none" else 1.0, "max_rounds": 200}
    plan = ClusterPlan(loss, method.C, N, problems, D, tol=method.tol, **options)
    return method.make(plan, Engine(parts), **method.options).run()


@pytest.mark.parametrize("method, loss, kind", TAKEN)
def test_any_number_of_partitions_has_the_model_of_memory(method: Method, loss: Loss, kind: Any) -> None:
    X = matrix(N, D)
    y, s = labels(X, loss), np.random.default_rng(0).integers(0, 3, N).astype(float)
    scale = 0.0 if kind == "none" else 1.0
    problem = make_problem(as_rows(X, scale), y, loss, C=method.C, intercept=kind, weights=s)
    best = fit(problem, DCD(), Limits(tol=1e-7))
    rounds = set()
    for cuts in CUTS:
        solution = solved(method, cut(X, y, cuts, classes_of(loss), s, kind), loss, kind)
        found, w = solution.certificates[0], solution.W[0]
        assert solution.outcome is Outcome.CERTIFIED
        own = evaluate(problem, Point(w), given_offset=True).certificate
        assert found.primal == pytest.approx(own.primal, rel=1e-9)
        assert best.certificate.dual <= found.primal and found.dual <= best.certificate.primal
        apart = w[:-1] - best.coef if kind == "free" else w - np.append(best.coef, best.intercept)
        assert np.linalg.norm(apart) <= distance_bound(found.gap, best.certificate.gap)
        assert scale or w[-1] == 0.0
        rounds.add(solution.rounds)
    if method.make is OneWorker or (
        method.make is PassRounds and is_smooth(loss)
    ):  # the sums are the same, wherever the rows are cut
        assert len(rounds) == 1


@pytest.mark.parametrize("name", METHODS)
def test_all_classes_share_the_rounds_of_sparse_rows(name: str) -> None:
    method = METHODS[name]._replace(options={option: int(0.9 * N) for option in METHODS[name].options})
    X, loss = matrix(N, D, density=0.5), Hinge() if name == "active set" else SquaredHinge()
    y = np.digitize(X.sum(axis=1), [-0.5, 0.5])
    parts = [make_partition(csr(X[k::3]), y[k::3], None, np.arange(3), 1.0, "regularized", number=k) for k in range(3)]
    solution = solved(method, parts, loss, problems=3)
    assert solution.outcome is Outcome.CERTIFIED
    for k, certificate in enumerate(solution.certificates):
        signs = np.where(y == k, 1.0, -1.0)
        problem = make_problem(as_rows(X, 1.0), signs, loss, C=method.C, intercept="regularized")
        best = fit(problem, DCD(), Limits(tol=1e-7))
        apart = np.linalg.norm(solution.W[k] - np.append(best.coef, best.intercept))
        assert apart <= distance_bound(certificate.gap, best.certificate.gap)
