"""Runs stopped after every sweep, over every machine and place: what a longer run proves is never less."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.over_passes import PassRounds
from saddlesvm.cluster.partition import make_partition
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_problem import make_kernel_problem
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, SquaredHinge
from saddlesvm.problem.multinomial import make_multinomial_problem
from saddlesvm.problem.problem import is_classification
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import SOLVERS, Blocks
from saddlesvm.solvers.auto_on_files import BlocksThenActiveSet
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.multinomial import Multinomial
from saddlesvm.solvers.newton_on_files import NewtonOnFiles
from support import labels, matrix, named, small_problem
from support.classes import blobs
from support.mapped import mapped, streamed
from support.partitions import Engine

TOL = 1e-7
SWEEPS = (1, 2, 3, 5)
LOSSES: list[Loss] = [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(0.2)]
KINDS = ["none", "regularized", "free"]
COSTS = [0.01, 100.0]
KIND = pytest.mark.parametrize("kind", KINDS)
COST = pytest.mark.parametrize("C", COSTS)
# Every pair of a loss, an intercept and a cost, in half of their product.
POSED = pytest.mark.parametrize(
    ("loss", "kind", "C"),
    [
        pytest.param(loss, kind, COSTS[(i + j) % 2], id=f"{named(loss)}-{kind}")
        for i, loss in enumerate(LOSSES)
        for j, kind in enumerate(KINDS)
    ],
)


def slack(one: Certificate) -> float:
    """What the rounding of two evaluations of one point can make of its objectives."""
    return 2.0 * one.rounding + 1e-9 * abs(one.primal)


def no_worse_than_zero(seen: list[Certificate]) -> None:
    """Assert that every certificate is at least as good as that of the dual point zero."""
    for one in seen:
        assert one.dual >= 0.0
        assert np.isfinite(one.primal)
        assert one.relative_gap <= 1.0


def never_worse(seen: list[Certificate]) -> None:
    """Assert that neither objective gets worse from a certificate to the next."""
    for one, later in itertools.pairwise(seen):
        assert later.dual >= one.dual - slack(one)
        assert later.primal <= one.primal + slack(one)


def stopped(run: Callable[[int], Any]) -> list[Any]:
    """The results of runs that were stopped after every sweep."""
    return [run(sweeps) for sweeps in SWEEPS]


def recorded(problem: Any, solver: Any, limits: Limits) -> list[Certificate]:
    """What the records of a run say, and its result at the end."""
    seen: list[Certificate] = []
    result = fit(problem, solver, limits, callbacks=[lambda record: seen.append(record.certificate)])
    return [*seen, result.certificate]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, kind in SOLVERS.items()
        if name not in ("blocks", "columns") and kind.__module__.startswith("saddlesvm.")
    ],
)
@POSED
def test_in_memory(name: str, loss: Loss, kind: str, C: float) -> None:
    problem = small_problem(loss, n=120, d=6, C=C, intercept=kind)
    seen = recorded(problem, SOLVERS[name](), Limits(TOL, max_epochs=6, certify_every=1.0))
    never_worse(seen)
    no_worse_than_zero(seen)


@pytest.mark.parametrize("solver", [Blocks(), NewtonOnFiles(), BlocksThenActiveSet()], ids=lambda s: s.name)
@POSED
def test_over_files(solver: Any, loss: Loss, kind: str, C: float, tmp_path: Path) -> None:
    """Neither objective of a longer run is worse, multiples at its end included.

    The bounds of balanced points, with a free intercept, and of multiples are left out: they may be lower.
    """
    X = matrix(200, 6)
    file, y = mapped(X, tmp_path), labels(X, loss)

    def run(sweeps: int) -> Any:
        problem = streamed(file, y, loss, C=C, intercept=kind, kept_bytes=20_000)
        return recorded(problem, solver, Limits(TOL, max_epochs=sweeps, certify_every=1.0))

    runs = stopped(run)
    for seen in runs:
        never_worse(seen)
        no_worse_than_zero(seen)
    for (*_, one, end), (*_, later, last) in itertools.pairwise(runs):
        assert kind == "free" or later.dual >= one.dual - slack(one)
        assert last.primal <= end.primal + slack(end)


@POSED
def test_over_partitions(loss: Loss, kind: Any, C: float) -> None:
    X, n = matrix(200, 6), 200
    y, scale = labels(X, loss), 0.0 if kind == "none" else 1.0
    classes = np.array([-1.0, 1.0]) if is_classification(loss) else None
    parts = [make_partition(X[k::3], y[k::3], None, classes, scale, kind, number=k) for k in range(3)]

    def run(rounds: int) -> Any:
        plan = ClusterPlan(loss, C, n, 1, 6, tol=TOL, max_rounds=rounds, free=kind == "free", scale=scale)
        return PassRounds(plan, Engine(parts), most=40).run()

    seen = [result.certificates[0] for result in stopped(run)]
    never_worse(seen)
    no_worse_than_zero(seen)


@pytest.mark.parametrize("machine", ["joint", "multinomial"])
@COST
def test_of_all_classes_at_once(machine: str, C: float) -> None:
    X, y = blobs(n=150, k=3, d=4, seed=1)
    rows, solver = as_rows(X, 1.0), CrammerSinger() if machine == "joint" else Multinomial()
    make, loss = (make_joint_problem, Hinge()) if machine == "joint" else (make_multinomial_problem, Logistic())
    problem = make(rows, y, 3, loss, C=C, intercept="regularized")  # type: ignore[operator]
    seen = recorded(problem, solver, Limits(TOL, max_epochs=6, certify_every=1.0))
    never_worse(seen)
    no_worse_than_zero(seen)


@KIND
@COST
def test_with_a_kernel(kind: Any, C: float) -> None:
    X = matrix(100, 4)
    problem, _ = make_kernel_problem(X, Kernel("rbf", 0.1), labels(X, Hinge()), Hinge(), C=C, intercept=kind)
    seen = recorded(problem, Decomposition(), Limits(TOL, max_epochs=6, certify_every=1.0))
    never_worse(seen)
    no_worse_than_zero(seen)
