"""Runs that are killed and go on: every machine, place and solver."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm import DCD, SDCA, Newton, Pegasos
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.multinomial import make_multinomial_problem
from saddlesvm.problem.penalties import L1, ElasticNet
from saddlesvm.problem.problem import Rooms, make_problem
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import make_plan
from saddlesvm.solvers import Auto, Blocks
from saddlesvm.solvers.auto_on_files import BlocksThenActiveSet
from saddlesvm.solvers.columns.solver import Columns
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.multinomial import Multinomial
from saddlesvm.solvers.multinomial_on_files import MultinomialOnFiles
from saddlesvm.solvers.newton_on_files import NewtonOnFiles
from support import csr, labels, matrix
from support.classes import blobs
from support.mapped import files, mapped, mapped_csr, streamed

Make = Callable[[Path], Any]
LIMITS = Limits(tol=1e-7, max_epochs=60.0, certify_every=3.0)
EARLY, K = Limits(tol=1e-6, max_epochs=60.0, certify_every=1.0), 4
SHORT = Limits(tol=1e-2)
LOSSES: tuple[Loss, ...] = (Hinge(), SquaredHinge(), Logistic())
INTERCEPTS = ("none", "regularized", "free")


def binary(loss: Loss, n: int = 60, d: int = 5, sparse: bool = False, **options: Any) -> Make:
    """A machine of two classes, or a regression, in memory."""

    def make(folder: Path) -> Any:
        X = matrix(n, d)
        bias = 0.0 if options.get("intercept", "none") == "none" else 1.0
        return make_problem(as_rows(csr(X) if sparse else X, bias), labels(X, loss), loss, **{"C": 0.5} | options)

    return make


def joint(maker: Any, n: int = 120) -> Make:
    """A machine of many classes, in memory."""

    def make(folder: Path) -> Any:
        X, y = blobs(n=n, k=K, d=6, seed=1)
        rows, codes = as_rows(X), y.astype(float)
        loss = Hinge() if maker is make_joint_problem else Logistic()
        return maker(rows, codes, K, loss, C=1.0)

    return make


def on_files(loss: Loss, sparse: bool = False, **options: Any) -> Make:
    """A machine of two classes over rows in files."""

    def make(folder: Path) -> Any:
        X = matrix(400, 7).astype(np.float32)
        given = {"C": 0.5, "intercept": "regularized"} | options
        return streamed((mapped_csr if sparse else mapped)(X, folder), labels(X, loss), loss, **given)

    return make


def softmax_on_files() -> Make:
    """Multinomial regression over rows in files."""

    def make(folder: Path) -> Any:
        X, y = blobs(n=400, k=K, d=6, seed=1)
        rows = as_rows(mapped(X.astype(np.float32), folder), 0.0)
        plan = make_plan(rows, 2**30, 1)
        reader = BlockReader(rows, plan.edges, plan.per_block, np.zeros(y.size))
        rooms = Rooms(np.empty(0), kept_bytes=2**20)
        return make_multinomial_problem(files(reader), y, K, Logistic(), rooms=rooms, C=1.0)

    return make


@dataclass(frozen=True)
class Cell:
    """A machine at a place, a solver, and limits that let a run have some certificates.

    `brief` ones are in the suite, which covers pairs of choices.
    """

    make: Make
    solver: Any
    limits: Limits
    brief: bool


def cells() -> dict[str, Cell]:
    """Every machine, place and solver."""
    return {
        f"{name}: {cell.solver!r}": cell
        for kind in (of_first_order, of_newton, of_penalties, of_many_classes, over_files)
        for name, cell in kind()
    }


def of_first_order() -> Iterator[tuple[str, Cell]]:
    """Machines of two classes in memory, by coordinate descent and Pegasos."""
    averaged = (SDCA("replacement", "sgd", "average"), SDCA(output="random"), Pegasos(output="random"))
    for solver in (SDCA(), DCD(), Pegasos(4), DCD(stopping="both", threshold=1e-9), *averaged):
        yield "hinge", Cell(binary(Hinge(), C=0.1), solver, LIMITS, True)
    yield "logistic", Cell(binary(Logistic()), SDCA(), EARLY, True)
    yield "epsilon", Cell(binary(EpsilonInsensitive(0.1)), SDCA(), EARLY, False)
    large = {"n": 3_000, "d": 40, "C": 10.0, "intercept": "regularized"}
    for loss in LOSSES:
        yield f"large {type(loss).__name__}", Cell(binary(loss, **large), DCD(), EARLY, False)


def of_newton() -> Iterator[tuple[str, Cell]]:
    """Machines of two classes in memory, by Newton's method and what begins it; with each intercept."""
    for k, intercept in enumerate(INTERCEPTS):
        for j, solver in enumerate((DCD(), Newton(), Auto())):
            given: dict[str, Any] = {"intercept": intercept}
            yield f"hinge, {intercept}", Cell(binary(Hinge(), sparse=True, **given), solver, EARLY, k == j)
            yield f"squared hinge, {intercept}", Cell(binary(SquaredHinge(), **given), solver, EARLY, k != j)
    for solver in (Newton(), Auto()):
        yield "logistic", Cell(binary(Logistic()), solver, EARLY, True)
        yield "epsilon", Cell(binary(EpsilonInsensitive(0.1)), solver, EARLY, True)
    for k, loss in enumerate(LOSSES):
        for j, solver in enumerate((Auto(), Newton(memory=4e4), Newton())):
            make = binary(loss, n=3_000, d=40, C=10.0, intercept="regularized")
            yield f"large {type(loss).__name__}", Cell(make, solver, EARLY, k + j in (0, 3))


def of_penalties() -> Iterator[tuple[str, Cell]]:
    """The elastic net and the l1 norm."""
    for k, solver in enumerate((Auto(), DCD(), Columns())):
        net = ElasticNet(0.5)
        yield "elastic net", Cell(binary(SquaredHinge(), n=300, d=20, C=10.0, penalty=net), solver, EARLY, True)
        sparse = binary(Hinge(), n=200, d=500, sparse=True, penalty=net)
        yield "elastic net, sparse", Cell(sparse, solver, SHORT, k > 0)
    for k, solver in enumerate((Auto(), Columns())):
        yield "l1", Cell(binary(Logistic(), n=200, d=600, C=3.0, penalty=L1()), solver, EARLY, k == 1)
        yield "l1, hinge", Cell(binary(Hinge(), n=200, d=30, penalty=L1()), solver, EARLY, k == 0)


def of_many_classes() -> Iterator[tuple[str, Cell]]:
    """Machines of all classes at once."""
    yield "best rival", Cell(joint(make_joint_problem), CrammerSinger(), Limits(tol=1e-8, certify_every=1.0), True)
    yield "softmax", Cell(joint(make_multinomial_problem), Multinomial(), Limits(tol=1e-9), True)
    yield "softmax on files", Cell(softmax_on_files(), MultinomialOnFiles(), Limits(tol=1e-8), True)


def over_files() -> Iterator[tuple[str, Cell]]:
    """Machines of two classes whose rows are in files."""
    for sparse in (False, True):
        where, kept = "files, sparse" if sparse else "files", {"kept_bytes": 10**6}
        yield f"hinge on {where}, 0 kept", Cell(on_files(Hinge(), sparse, kept_bytes=0), Blocks(), SHORT, not sparse)
        yield f"hinge on {where}, all kept", Cell(on_files(Hinge(), sparse, **kept), Blocks(), SHORT, sparse)
        yield f"hinge on {where}", Cell(on_files(Hinge(), sparse, **kept), NewtonOnFiles(), Limits(1e-9), not sparse)
        yield f"hinge on {where}", Cell(on_files(Hinge(), sparse, **kept), BlocksThenActiveSet(), Limits(1e-9), sparse)
        yield f"elastic net on {where}", Cell(on_files(Hinge(), sparse, penalty=ElasticNet(0.5)), Blocks(), SHORT, True)
        for k, intercept in enumerate(INTERCEPTS):
            corner, smooth = (on_files(loss, sparse, intercept=intercept) for loss in LOSSES[1:])
            brief = (k == 1) == sparse
            yield f"{intercept} on {where}", Cell(corner, Blocks(), SHORT, brief)
            yield f"{intercept} on {where}", Cell(corner, NewtonOnFiles(), Limits(1e-9), brief)
            yield f"{intercept} on {where}", Cell(smooth, NewtonOnFiles(), Limits(1e-9), brief)


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


def killed(cell: Cell, folder: Path, kill: KillAt) -> Path | None:
    """The checkpoint of a run that was killed; None where it had ended before."""
    path = folder / "killed.ckpt"
    path.unlink(missing_ok=True)
    given: dict[str, Any] = {"callbacks": [kill], "checkpoint": Checkpoint(path, 1e9, 1)}
    with contextlib.suppress(KeyboardInterrupt):
        fit(cell.make(folder), cell.solver, cell.limits, seed=3, **given)
        return None
    return path


def whole_run(cell: Cell, folder: Path, checkpoint: Path | None = None) -> FitResult:
    """A run to its end, from its checkpoint where there is one."""
    kept = None if checkpoint is None else Checkpoint(checkpoint)
    return fit(cell.make(folder), cell.solver, cell.limits, seed=3, checkpoint=kept)


def agree(one: FitResult, other: FitResult) -> bool:
    """Whether two results can be of one problem: no bound of one is above an objective of the other."""
    first, second = one.certificate, other.certificate
    rounding = first.rounding + second.rounding + 1e-12 * abs(first.primal)
    return first.dual <= second.primal + rounding and second.dual <= first.primal + rounding
