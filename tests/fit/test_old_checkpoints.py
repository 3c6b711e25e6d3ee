"""Runs stored by version 2 of the checkpoints, which wrote records as plain arrays, go on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Auto, Newton, Pegasos
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.threaded.descent import ParallelDCD
from support import matrix, small_problem

STORED = Path(__file__).parents[1] / "support" / "checkpoints"


class Trusting(Checkpoint):
    """A checkpoint that is read whatever problem it belongs to: sums over its rows end on other bits elsewhere."""

    def read(self, problem: Any, mark: dict[str, Any], state: Any) -> Any:
        return super().read(problem, {}, state)


def plain(folder: Path) -> Any:
    return small_problem(Hinge(), n=40, d=3)


def joint(folder: Path) -> Any:
    codes = (np.arange(40) * 7 % 3).astype(float)
    return make_joint_problem(as_rows(matrix(40, 3)), codes, 3, Hinge(), C=0.5)


CELLS: dict[str, tuple[Callable[[Path], Any], Any, float]] = {
    "dcd": (plain, DCD(), 1e-6),
    "sdca": (plain, SDCA(output="average"), 1e-2),
    "pegasos": (plain, Pegasos(), 2e-2),
    "newton": (plain, Newton(), 1e-6),
    "auto": (plain, Auto(), 1e-6),
    "threads": (plain, ParallelDCD(2), 1e-4),
    "crammer_singer": (joint, CrammerSinger(), 1e-4),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_stored_run_goes_on(name: str, tmp_path: Path) -> None:
    make, solver, tol = CELLS[name]
    problem, path = make(tmp_path), tmp_path / "run.ckpt"
    shutil.copy(STORED / f"{name}.npz", path)
    saved = Trusting(path).read(problem, {}, solver.init(problem, 3))
    assert saved is not None
    begun = saved.state.epochs
    bound = saved.points["bound"]
    assert evaluate(problem, Point(alpha=bound.alpha)).certificate.dual == pytest.approx(bound.certificate.dual)
    result = fit(problem, solver, Limits(tol=tol, max_epochs=2000), seed=3, checkpoint=Trusting(path))
    assert result.outcome is Outcome.CERTIFIED
    assert result.epochs > begun
    assert list(result.trace.column("epoch"))[: len(saved.trace)] == list(saved.trace.column("epoch"))


@pytest.mark.parametrize("name", ["dcd", "sdca", "pegasos", "threads"])
def test_records_hold_what_was_stored_as_plain_numbers(name: str, tmp_path: Path) -> None:
    make, solver, _ = CELLS[name]
    problem = make(tmp_path)
    saved = Trusting(STORED / f"{name}.npz").read(problem, {}, solver.init(problem, 3))
    assert saved is not None
    column = "numbers" if name == "pegasos" else "meters"
    record = getattr(saved.state, column)
    with np.load(STORED / f"{name}.npz") as arrays:
        np.testing.assert_array_equal(record.view(np.float64), arrays[f"state.{column}"])
    if name == "pegasos":  # the iterate is its scale times the stored vector
        assert 0.0 < record["scale"][0] <= 1.0
