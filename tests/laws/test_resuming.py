"""A killed run that goes on ends where an undisturbed one does, to the last bit: every machine, place and solver.

The kernel machines are the exception: their checkpoints hold the dual point alone (docs/guides/limits.md).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import DCD, SDCA, Newton, Pegasos
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.result import FitResult
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.joint_losses import BEST_RIVAL, SOFTMAX, TopKHinge
from saddlesvm.problem.joint_on_disk import make_streamed_joint_problem
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.multinomial import make_multinomial_problem
from saddlesvm.problem.multinomial_on_disk import make_streamed_multinomial_problem
from saddlesvm.problem.on_disk import Rooms
from saddlesvm.problem.penalties import L1, ElasticNet
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import make_plan
from saddlesvm.solvers import Auto, Blocks
from saddlesvm.solvers.automatic.on_files import AutoOnFiles
from saddlesvm.solvers.columns.solver import Columns
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.joint_blocks import JointBlocks
from saddlesvm.solvers.multinomial import Multinomial
from saddlesvm.solvers.multinomial_on_files import MultinomialOnFiles
from saddlesvm.solvers.second_order.narrowing_on_files import NarrowingOnFiles
from saddlesvm.solvers.second_order.on_files import NewtonOnFiles
from saddlesvm.solvers.threaded.descent import ParallelDCD
from support import csr, labels, matrix
from support.classes import blobs
from support.mapped import mapped, mapped_csr, streamed

Make = Callable[[Path], Any]
LIMITS = Limits(tol=1e-7, max_epochs=60.0, certify_every=3.0)
EARLY, K, MOST = Limits(tol=1e-6, max_epochs=60.0, certify_every=1.0), 4, 8


def binary(loss: Loss, n: int = 60, d: int = 5, sparse: bool = False, **options: Any) -> Make:
    """A machine of two classes, or a regression, in memory."""

    def make(folder: Path) -> Any:
        X = matrix(n, d)
        return make_problem(as_rows(csr(X) if sparse else X), labels(X, loss), loss, **{"C": 0.5} | options)

    return make


def joint(loss: Any, n: int = 120) -> Make:
    """A machine of many classes, in memory."""

    def make(folder: Path) -> Any:
        X, y = blobs(n=n, k=K, d=6, seed=1)
        rows, codes = as_rows(X), y.astype(float)
        if loss is SOFTMAX:
            return make_multinomial_problem(rows, codes, K, Logistic(), C=1.0)
        return make_joint_problem(rows, codes, K, Hinge(), loss, C=1.0)

    return make


def on_files(loss: Loss, sparse: bool = False, **options: Any) -> Make:
    """A machine of two classes over rows in files."""

    def make(folder: Path) -> Any:
        X = matrix(400, 7).astype(np.float32)
        given = {"C": 0.5, "intercept": "regularized"} | options
        return streamed((mapped_csr if sparse else mapped)(X, folder), labels(X, loss), loss, **given)

    return make


def joint_on_files(loss: Any) -> Make:
    """A machine of many classes over rows in files."""

    def make(folder: Path) -> Any:
        X, y = blobs(n=400, k=K, d=6, seed=1)
        rows = as_rows(mapped(X.astype(np.float32), folder), 0.0)
        plan = make_plan(rows, 2**30, 1)
        reader = BlockReader(rows, plan.edges, plan.per_block, np.zeros(y.size))
        if loss is SOFTMAX:
            rooms = Rooms(np.empty(0), kept_bytes=2**20)
            return make_streamed_multinomial_problem(rows, y, K, Logistic(), reader=reader, rooms=rooms, C=1.0)
        rooms = Rooms(plan.row_array((y.size, K)), kept_bytes=2**17)
        return make_streamed_joint_problem(rows, y, K, Hinge(), loss, reader=reader, rooms=rooms, C=1.0)

    return make


def cells() -> dict[str, tuple[Make, Any, Limits]]:
    """Every machine, place and solver, with what lets a run have some certificates."""
    found: dict[str, tuple[Make, Any, Limits]] = {}

    def add(name: str, make: Make, solver: Any, limits: Limits = LIMITS) -> None:
        found[f"{name}: {solver!r}"] = make, solver, limits

    first_order = (SDCA(), SDCA("replacement", "sgd", "average"), SDCA(output="random"), DCD(), Pegasos(4))
    for solver in (*first_order, DCD(stopping="both", threshold=1e-9), Pegasos(output="random"), ParallelDCD(2)):
        add("hinge", binary(Hinge(), C=0.1), solver)
    for intercept in ("none", "regularized", "free"):
        for solver in (DCD(), Newton(), Auto()):
            add(f"hinge, {intercept}", binary(Hinge(), sparse=True, intercept=intercept), solver, EARLY)
            add(f"squared hinge, {intercept}", binary(SquaredHinge(), intercept=intercept), solver, EARLY)
    for solver in (SDCA(), Newton(), Auto()):
        add("logistic", binary(Logistic()), solver, EARLY)
        add("epsilon", binary(EpsilonInsensitive(0.1)), solver, EARLY)
    large: dict[str, Any] = {"n": 3_000, "d": 40, "C": 10.0, "intercept": "regularized"}
    for solver in (Auto(), Newton(), Newton(memory=4e4), ParallelDCD(2)):
        for loss in (Hinge(), SquaredHinge(), Logistic()):
            add(f"large {type(loss).__name__}", binary(loss, **large), solver, EARLY)
    for solver in (Auto(), DCD(), Columns()):
        net = ElasticNet(0.5)
        add("elastic net", binary(SquaredHinge(), n=300, d=20, C=10.0, penalty=net), solver, EARLY)
        add("elastic net, sparse", binary(Hinge(), n=200, d=500, sparse=True, penalty=net), solver, EARLY)
    for solver in (Auto(), Columns()):
        add("l1", binary(Logistic(), n=200, d=600, C=3.0, penalty=L1()), solver, EARLY)
        add("l1, hinge", binary(Hinge(), n=200, d=30, penalty=L1()), solver, EARLY)
    for machine in (BEST_RIVAL, TopKHinge(2)):
        add(type(machine).__name__, joint(machine), CrammerSinger(), Limits(tol=1e-10, certify_every=1.0))
        add(f"{type(machine).__name__} on files", joint_on_files(machine), JointBlocks(), Limits(tol=1e-6))
    add("softmax", joint(SOFTMAX), Multinomial(), Limits(tol=1e-9))
    add("softmax on files", joint_on_files(SOFTMAX), MultinomialOnFiles(), Limits(tol=1e-8))
    for sparse in (False, True):
        where = "files, sparse" if sparse else "files"
        for kept in (0, 10**6):
            add(f"hinge on {where}, {kept} kept", on_files(Hinge(), sparse, kept_bytes=kept), Blocks(), Limits(1e-4))
        for intercept in ("none", "regularized", "free"):
            add(
                f"{intercept} on {where}", on_files(SquaredHinge(), sparse, intercept=intercept), Blocks(), Limits(1e-5)
            )
            add(
                f"{intercept} on {where}",
                on_files(SquaredHinge(), sparse, intercept=intercept),
                AutoOnFiles(),
                Limits(1e-9),
            )
            add(
                f"{intercept} on {where}",
                on_files(Logistic(), sparse, intercept=intercept),
                NewtonOnFiles(),
                Limits(1e-9),
            )
        add(f"hinge on {where}", on_files(Hinge(), sparse, kept_bytes=10**6), NarrowingOnFiles(), Limits(1e-9))
        add(f"hinge on {where}", on_files(Hinge(), sparse, kept_bytes=10**6), AutoOnFiles(), Limits(1e-9))
        add(f"elastic net on {where}", on_files(Hinge(), sparse, penalty=ElasticNet(0.5)), Blocks(), Limits(1e-4))
    return found


CELLS = cells()


class KillAt:
    """A callback that ends a fit as a kill would, at a certificate or, with `steps`, after so many steps."""

    def __init__(self, certificates: float, steps: float = np.inf) -> None:
        self.certificates, self.steps = certificates, steps

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Count a step down."""
        self.steps -= 1
        if self.steps < 0:
            raise KeyboardInterrupt

    def __call__(self, record: Any) -> None:
        self.certificates -= 1
        if self.certificates < 0:
            raise KeyboardInterrupt


def bits(result: FitResult) -> list[Any]:
    """All of a result that does not depend on the clock."""
    timed = ("seconds_solving", "seconds_certifying")
    trace = [{name: one for name, one in row.items() if name not in timed} for row in result.trace]
    arrays = [np.asarray(one).tobytes() for one in (result.coef, result.intercept, result.alpha)]
    return [result.outcome, result.certificate, result.epochs, *arrays, trace]


def killed(make: Make, solver: Any, limits: Limits, folder: Path, kill: KillAt) -> Path:
    """The checkpoint of a run that was killed."""
    path = folder / "killed.ckpt"
    path.unlink(missing_ok=True)
    with pytest.raises(KeyboardInterrupt):
        fit(make(folder), solver, limits, seed=3, callbacks=[kill], checkpoint=Checkpoint(path, 1e9, 1))
    return path


def differences(one: FitResult, other: FitResult) -> list[str]:
    """In what two results differ."""
    names = ("outcome", "certificate", "epochs", "coef", "intercept", "alpha", "trace")
    return [name for name, a, b in zip(names, bits(one), bits(other), strict=True) if a != b]


@pytest.mark.parametrize("name", CELLS)
def test_a_killed_run_ends_where_an_undisturbed_one_does(name: str, tmp_path: Path) -> None:
    make, solver, limits = CELLS[name]
    whole = fit(make(tmp_path), solver, limits, seed=3)
    count = len(whole.trace)
    places = sorted({*range(min(count, 3)), *np.linspace(0, count - 1, min(count, MOST)).astype(int).tolist()})
    kills = [KillAt(place) for place in places] + [KillAt(np.inf, 1)]
    for kill in kills[: len(places) + (solver.name in ("blocks", "newton", "auto"))]:
        said = vars(kill).copy()
        try:
            path = killed(make, solver, limits, tmp_path, kill)
        except pytest.fail.Exception:
            continue  # the run had ended before
        resumed = fit(make(tmp_path), solver, limits, seed=3, checkpoint=Checkpoint(path))
        assert (said, differences(whole, resumed)) == (said, [])


@pytest.mark.parametrize("name", CELLS)
def test_a_call_after_the_end_returns_the_same(name: str, tmp_path: Path) -> None:
    make, solver, limits = CELLS[name]
    path = tmp_path / "ended.ckpt"
    first, second = (fit(make(tmp_path), solver, limits, seed=3, checkpoint=Checkpoint(path)) for _ in range(2))
    assert differences(first, second) == []
