"""Penalties that are no square, joint machines, and one lambda for problems over fewer rows: the models of memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.choice import choose_method
from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.one_worker import OneWorker
from saddlesvm.cluster.partition import count_right, count_rows, set_factors
from saddlesvm.cluster.rounds import DualRounds
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.multiclass.splits import JOINT, JointSubProblem, solver_for
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import Hinge, Loss, SquaredHinge
from saddlesvm.problem.penalties import L1, L2, Penalty, elastic_net
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import Auto
from support import LOSSES_BY_KIND, distance_bound, labels, matrix, named
from support.partitions import SIGNS, classes_of, cut

N, D, K = 300, 6, 3
CUTS = [40, 40, 190]
NET = elastic_net(0.6)


def digits() -> tuple[np.ndarray, np.ndarray]:
    X = matrix(N, D)
    return X, np.digitize(X.sum(axis=1), [-0.7, 0.7])


@pytest.mark.parametrize("loss", LOSSES_BY_KIND, ids=named)
def test_the_elastic_net_in_rounds_has_the_model_of_memory(loss: Loss) -> None:
    X = matrix(N, D)
    y, weights = labels(X, loss), np.random.default_rng(0).integers(0, 3, N).astype(float)
    parts = cut(X, y, CUTS, classes_of(loss), weights)
    C, share = 0.02 / NET.share, NET.share
    plan = ClusterPlan(loss, C, N, 1, D, tol=1e-5, penalty=NET.penalty, share=share, max_rounds=400)
    run = DualRounds(plan, Engine(parts))
    solution = run.run()
    assert solution.outcome is Outcome.CERTIFIED
    duals = [row["dual"] for row in solution.trace]
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in pairwise(duals))
    options: dict[str, Any] = {"intercept": "regularized", "weights": weights, "penalty": NET.penalty, "share": share}
    problem = make_problem(as_rows(X, 1.0), y, loss, C=C, **options)
    best, own = fit(problem, Auto(), Limits(1e-8)), evaluate(problem, Point(solution.W[0])).certificate
    assert solution.certificates[0].primal == pytest.approx(own.primal, rel=1e-9)
    assert solution.certificates[0].dual <= best.certificate.primal
    gaps = (one.gap / share for one in (solution.certificates[0], best.certificate))
    assert np.linalg.norm(solution.W[0] - np.append(best.coef, best.intercept)) <= distance_bound(*gaps)


def test_weights_are_zero_that_the_elastic_net_sets_to_zero() -> None:
    X = np.column_stack([matrix(N, 3), 1e-3 * matrix(N, 3, 1)])
    y = labels(X[:, :3], Hinge())
    plan = ClusterPlan(Hinge(), 0.02, N, 1, D, tol=1e-3, penalty=NET.penalty)
    solution = DualRounds(plan, Engine(cut(X, y, CUTS, SIGNS))).run()
    assert not solution.W[0, 3:-1].any() and solution.W[0, :3].any()


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
def test_joint_machines_on_one_worker_with_folds(machine: str, classes: int) -> None:
    X, y = digits()
    y = np.minimum(y, classes - 1)
    weights = np.random.default_rng(0).integers(1, 3, N).astype(float)
    parts = cut(X, y, CUTS, np.arange(classes), weights, multi_class=machine, folds=2)
    split, joint = parts[0].split, JOINT[machine].joint
    loss, vectors = JOINT[machine].loss, split.n_vectors
    assert (split.n_problems, vectors) == (3, 1 if classes == 2 else 3)
    given: dict[str, Any] = {"joint": joint, "vectors": vectors}
    plan = ClusterPlan(loss, 0.5, N, split.n_problems, D, tol=1e-6, **given)
    solution = choose_method("auto", plan, 8 * N * D, 2**24)(plan, Engine(parts)).run()
    assert solution.outcome is Outcome.CERTIFIED and solution.W.shape == (3 * vectors, D + 1)
    fold = np.concatenate([part.fold for part in parts])
    for k in range(3):
        members = np.flatnonzero(fold != k)
        sub = JointSubProblem(0, "", y.astype(float), members, classes, joint)
        problem = sub.problem(as_rows(X, 1.0), loss, C=0.5, weights=weights, intercept="regularized")
        best = fit(problem, solver_for(machine, "auto"), Limits(1e-7))
        W = np.column_stack([best.coef, best.intercept])
        told = W if vectors > 1 else W[1:] - W[:1]
        apart = np.linalg.norm(solution.W[k * vectors : (k + 1) * vectors] - told)
        # the difference of two vectors is sqrt(2) times as far as both together
        assert apart <= np.sqrt(2.0) * distance_bound(solution.certificates[k].gap, best.certificate.gap)
    right, rows = Engine(parts).persist(count_right, sum, solution.W)
    assert rows.sum() == N and (right > 0.5 * rows).all()


@pytest.mark.parametrize("solver", ["newton", "gather", "rounds"])
def test_one_lambda_for_problems_over_fewer_rows(solver: str) -> None:
    X, y = digits()
    lam, tol = 0.05, 1e-5
    parts = cut(X, y, CUTS, np.arange(K), multi_class="ovo", folds=2)
    split = parts[0].split
    counts = np.sum([count_rows(part) for part in parts], axis=0)
    parts = [set_factors(part, N / counts) for part in parts]
    plan = ClusterPlan(
        SquaredHinge(), 1.0 / (lam * N), N, split.n_problems, D, tol=tol, uses_lambda=True, max_rounds=300
    )
    solution = choose_method(solver, plan, 8 * N * D, 2**24)(plan, Engine(parts)).run()
    assert solution.outcome is Outcome.CERTIFIED
    fold = np.concatenate([part.fold for part in parts])
    for k in range(split.n_problems):
        sub = split.sub_problems(y, fold)[k]
        own = sub.members
        assert own is not None and own.size == counts[k]
        problem = make_problem(as_rows(X[own], 1.0), sub.y[own], SquaredHinge(), lam=lam, intercept="regularized")
        best = fit(problem, Auto(), Limits(1e-7)).certificate
        seen = solution.certificates[k]
        assert seen.form == "lambda" and seen.primal == pytest.approx(best.primal, rel=2.0 * tol)
        assert seen.dual <= best.primal


def test_what_only_goes_with_all_rows_together_is_said() -> None:
    def refused(solver: str, memory: int = 2**28, penalty: Penalty | None = None, machine: str = "") -> str:
        joint = JOINT[machine].joint if machine else None
        plan = ClusterPlan(Hinge(), 1.0, 10**7, 1, 100, penalty=penalty or L2(), joint=joint)
        with pytest.raises(ValueError) as error:
            choose_method(solver, plan, 8 * 10**9, memory)
        return str(error.value)

    for solver in ("auto", "gather"):
        assert "memory='7630M'" in refused(solver, machine="crammer_singer")
        assert "memory='7630M'" in refused(solver, penalty=L1())
    assert "solver='auto' or 'gather'" in refused("rounds", 2**40, machine="multinomial")
    assert "'elasticnet'" in refused("newton", 2**40, L1())
    assert "penalty='l2' only" in refused("newton", penalty=NET.penalty)
    with pytest.raises(ValueError, match="intercept='free' works on a cluster where all rows fit"):
        choose_method(
            "auto", ClusterPlan(Hinge(), 1.0, 10**7, 1, 100, penalty=NET.penalty, free=True), 8 * 10**9, 2**28
        )
    plan = ClusterPlan(Hinge(), 1.0, 10**7, 1, 100, penalty=NET.penalty)
    assert choose_method("auto", plan, 8 * 10**9, 2**28) is DualRounds
    assert choose_method("auto", plan, 8 * 10**9, 2**40) is OneWorker
