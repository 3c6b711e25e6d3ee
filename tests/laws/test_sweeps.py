"""Every solver that reads files: a sweep reads every row once; a run that is stopped after any block goes on to the
model of an undisturbed run, to the last bit, and with other blocks to the same optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.losses import Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.multinomial import make_multinomial_problem
from saddlesvm.problem.problem import Rooms
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import MemoryPlan, make_plan
from saddlesvm.solvers import Blocks
from saddlesvm.solvers.auto_on_files import BlocksThenActiveSet
from saddlesvm.solvers.multinomial_on_files import CLASS_BYTES, MultinomialOnFiles
from saddlesvm.solvers.newton_on_files import NewtonOnFiles
from saddlesvm.solvers.sweeps import KEPT_BYTES, reader_of
from support import labels, matrix
from support.classes import blobs
from support.mapped import D, N, StopAt, close_enough, files, mapped, streamed

UNEQUAL = MemoryPlan(2**30, np.array([0, 90, 130, 260, 300, N]), 2, False)
FALLING = np.logspace(0, -3, D)  # sizes of features
Make = Callable[
    [Path], Callable[..., Any]
]  # takes a folder for the files; gives what makes the problem, over any blocks


@dataclass(frozen=True)
class Sweeps:
    """A problem over files, its solver, the limits of the run, the blocks to stop after, and how many
    passes a run makes besides its epochs, where that is known: the last one may prove the bound."""

    make: Make
    solver: Any
    limits: Limits
    stops: Sequence[int]
    passes: int | None = None


def two_classes(
    loss: Loss, n: int = N, d: int = D, sizes: Any = 1.0, dtype: Any = np.float64, plan: Any = None, **options: Any
) -> Make:
    """Rows of two classes in blocks."""

    def make(folder: Path) -> Callable[..., Any]:
        X = (matrix(n, d) * sizes).astype(dtype)
        file, y = mapped(X, folder), labels(X, loss)
        return lambda other=plan: streamed(file, y, loss, plan=other, **options)

    return make


def many_classes(maker: Any, machine: Sequence[Any], n: int, k: int, d: int, seed: int, kept: int, C: float) -> Make:
    """Rows of many classes in blocks, for a machine that learns all of them at once."""

    def make(folder: Path) -> Callable[..., Any]:
        X, y = blobs(n=n, k=k, d=d, seed=seed)
        rows = as_rows(mapped(X.astype(np.float32), folder), 1.0)

        def problem(other: MemoryPlan | None = None) -> Any:
            plan = other or make_plan(rows, 2**30, 1)
            reader = BlockReader(rows, plan.edges, plan.per_block, np.zeros(n))
            variables = plan.row_array((n, k)) if maker is make_joint_problem else np.empty(0)
            rooms = Rooms(variables, kept_bytes=kept)
            return maker(files(reader), y, k, *machine, rooms=rooms, C=C, intercept="regularized")

        return problem

    return make


def sweeps() -> Iterator[tuple[str, Sweeps]]:
    """Every solver that reads files."""
    for kept, stops in ((0, (1, 5, 8, 13)), (10**6, (1, 4, 6))):
        single = two_classes(Hinge(), dtype=np.float32, C=0.05, intercept="regularized", kept_bytes=kept)
        yield (
            f"blocks, {kept} bytes kept",
            Sweeps(single, Blocks(), Limits(tol=1e-3), stops, passes=None if kept else 1),
        )
    room = two_classes(Hinge(), plan=UNEQUAL, C=30.0, kept_bytes=400 * 90)  # for about 90 rows
    for name, solver in {"active set": NewtonOnFiles(), "blocks, then active set": BlocksThenActiveSet()}.items():
        yield name, Sweeps(room, solver, Limits(tol=1e-6, max_epochs=60), (1, 4, 8, 10))
    for intercept in ("regularized", "free"):
        hard = two_classes(SquaredHinge(), sizes=FALLING, plan=UNEQUAL, C=1e3, intercept=intercept)
        once = 0 if intercept == "regularized" else None
        limits = Limits(tol=1e-6, max_epochs=40)
        yield f"newton, {intercept}", Sweeps(hard, NewtonOnFiles(), limits, (1, 5, 7), passes=once)
    many = two_classes(Logistic(), 6000, 35, C=10.0)
    yield "drawn rows", Sweeps(many, NewtonOnFiles(), Limits(tol=1e-6, max_epochs=30), (11,))
    kept = int(0.3 * 2400 * (4 * 6 + KEPT_BYTES + CLASS_BYTES * 4))
    softmax = many_classes(make_multinomial_problem, (Logistic(),), 2400, 4, 6, 2, kept, 0.1)
    yield "multinomial", Sweeps(softmax, MultinomialOnFiles(), Limits(tol=1e-8), (5, 8, 19, 33), passes=0)


ALL = dict(sweeps())


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Sweeps:
    return ALL[request.param]


def stopped(problem: Any, run: Sweeps, stop_at: int, path: Path) -> None:
    """Stop a run after so many blocks; its checkpoint is in the file."""
    with pytest.raises(KeyboardInterrupt):
        fit(problem, run.solver, run.limits, callbacks=[StopAt(stop_at)], checkpoint=Checkpoint(path, 1e9, 1))


@pytest.mark.parametrize("run", ALL, indirect=True)
def test_a_run_stopped_after_any_block_goes_on_to_its_certificate(run: Sweeps, tmp_path: Path) -> None:
    problem, path = run.make(tmp_path), tmp_path
    undisturbed = fit(problem(), run.solver, run.limits)
    assert undisturbed.outcome is Outcome.CERTIFIED
    for stop_at in run.stops:
        path = tmp_path / f"run{stop_at}"
        stopped(problem(), run, stop_at, path)
        resumed = fit(problem(), run.solver, run.limits, checkpoint=Checkpoint(path))
        assert resumed.outcome is Outcome.CERTIFIED
        assert close_enough(resumed, undisturbed)
    ended = fit(problem(), run.solver, run.limits, checkpoint=Checkpoint(path))  # proven anew from the rows
    assert ended.outcome is Outcome.CERTIFIED
    assert close_enough(ended, undisturbed)


@pytest.mark.parametrize("run", ALL, indirect=True)
def test_a_run_resumes_with_other_blocks(run: Sweeps, tmp_path: Path) -> None:
    problem = run.make(tmp_path)
    begun = problem()
    stopped(begun, run, run.stops[-1], tmp_path / "run")
    n = begun.y.size
    other = MemoryPlan(2**30, np.array([0, n // 4, n // 2, n]), 1, False)
    resumed = fit(problem(other), run.solver, run.limits, checkpoint=Checkpoint(tmp_path / "run"))
    assert resumed.outcome is Outcome.CERTIFIED
    assert close_enough(resumed, fit(problem(), run.solver, run.limits))


@pytest.mark.parametrize("run", [name for name, one in ALL.items() if one.passes is not None], indirect=True)
def test_a_sweep_reads_every_row_once(run: Sweeps, tmp_path: Path) -> None:
    problem = run.make(tmp_path)()
    result, reader = fit(problem, run.solver, run.limits), reader_of(problem)
    reader.close()
    whole = sum(array.nbytes for array in reader.X.arrays)
    block = reader.per_block * np.diff(reader.edges).max() * whole / problem.y.size
    passes = result.epochs + (run.passes or 0)
    # The next block is read ahead, and Newton's method may find its first point in one.
    assert passes * whole <= reader.bytes_read <= passes * whole + 2 * block
