"""Penalties that are no square, and joint machines: the models of memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.choice import choose_method
from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.one_worker import OneWorker
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.multiclass.splits import JOINT, JointSubProblem, solver_for
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.problem.penalties import L1, L2, Penalty, elastic_net
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import Auto
from support import distance_bound, labels, matrix
from support.partitions import SIGNS, Engine, cut

N, D, K = 300, 6, 3
CUTS = [40, 40, 190]
NET = elastic_net(0.6)


def digits() -> tuple[np.ndarray, np.ndarray]:
    X = matrix(N, D)
    return X, np.digitize(X.sum(axis=1), [-0.7, 0.7])


@pytest.mark.parametrize("penalty", [L1(), NET.penalty], ids=["l1", "elasticnet"])
def test_every_penalty_on_one_worker(penalty: Penalty) -> None:
    X = matrix(N, D)
    y = labels(X, Hinge())
    plan = ClusterPlan(SquaredHinge(), 0.5, N, 1, D, tol=1e-6, penalty=penalty, uses_lambda=True)
    solution = OneWorker(plan, Engine(cut(X, y, CUTS, SIGNS))).run()
    assert solution.outcome is Outcome.CERTIFIED
    options: dict[str, Any] = {"lam": 2.0 / N, "intercept": "regularized", "penalty": penalty}
    problem = make_problem(as_rows(X, 1.0), y, SquaredHinge(), **options)
    reference = fit(problem, Auto(), Limits(1e-8)).certificate
    assert solution.certificates[0].form == "lambda"
    assert reference.dual <= solution.certificates[0].primal <= reference.primal * (1.0 + 1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("machine", JOINT)
def test_joint_machines_on_one_worker(machine: str, classes: int) -> None:
    X, y = digits()
    y = np.minimum(y, classes - 1)
    weights = np.random.default_rng(0).integers(1, 3, N).astype(float)
    parts = cut(X, y, CUTS, np.arange(classes), weights, multi_class=machine)
    split = parts[0].split
    loss, vectors = JOINT[machine].loss, split.n_vectors
    assert (split.n_problems, vectors) == (1, 1 if classes == 2 else 3)
    plan = ClusterPlan(loss, 0.5, N, 1, D, tol=1e-6, is_joint=True, vectors=vectors)
    assert choose_method("auto", plan, 8 * N * D, 2**24) == "gather"
    solution = OneWorker(plan, Engine(parts)).run()
    assert solution.outcome is Outcome.CERTIFIED and solution.W.shape == (vectors, D + 1)
    sub = JointSubProblem(0, "", y.astype(float), None, classes, JOINT[machine].kind)
    problem = sub.problem(as_rows(X, 1.0), loss, C=0.5, weights=weights, intercept="regularized")
    best = fit(problem, solver_for(machine, "auto"), Limits(1e-7))
    W = np.column_stack([best.coef, best.intercept])
    told = W if vectors > 1 else W[1:] - W[:1]
    # the difference of two vectors is sqrt(2) times as far as both together
    apart = np.linalg.norm(solution.W - told)
    assert apart <= np.sqrt(2.0) * distance_bound(solution.certificates[0].gap, best.certificate.gap)


def test_what_only_goes_with_all_rows_together_is_said() -> None:
    def refused(solver: str, memory: int = 2**28, penalty: Penalty | None = None, machine: str = "") -> str:
        plan = ClusterPlan(Hinge(), 1.0, 10**7, 1, 100, penalty=penalty or L2(), is_joint=bool(machine))
        with pytest.raises(ValueError) as error:
            choose_method(solver, plan, 8 * 10**9, memory)
        return str(error.value)

    for solver in ("auto", "gather"):
        assert "memory='7630M'" in refused(solver, machine="crammer_singer")
        assert "memory='7630M'" in refused(solver, penalty=L1())
    assert "with solver='auto'" in refused("newton", 2**40, machine="multinomial")
    assert "take penalty='l2'" in refused("newton", 2**40, L1())
    assert "take penalty='l2'" in refused("auto", penalty=NET.penalty)
    plan = ClusterPlan(Hinge(), 1.0, 10**7, 1, 100, penalty=NET.penalty)
    assert choose_method("auto", plan, 8 * 10**9, 2**40) == "gather"
