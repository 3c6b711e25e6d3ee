"""A run over files that a new process goes on with, after any block of a sweep: the same state at the sweep's end."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import make_plan
from saddlesvm.runtime.durable import Group, restored, stored, stored_fields
from saddlesvm.solvers import Blocks
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.sweeps import reader_of
from support.classes import blobs
from support.mapped import mapped, streamed

K, N, ROOM = 5, 1_000, 1 << 17
BUDGET = Budget(1)


def hinge(folder: Path) -> tuple[Any, Problem]:
    """Blocks, and a hinge problem whose rows in the middle are kept."""
    X, y = blobs(n=N, k=2, d=10, seed=1)
    file = mapped(X.astype(np.float32), folder)
    plan = make_plan(as_rows(file, 0.0), 2**30, 1)
    return Blocks(), streamed(file, np.where(y == 0, 1.0, -1.0), Hinge(), plan, C=1.0, kept_bytes=ROOM)


@pytest.mark.parametrize("made", [hinge])
def test_a_sweep_ends_the_same_when_a_new_process_goes_on(made: Any, tmp_path: Path) -> None:
    solver, problem = made(tmp_path)
    state, blocks = solver.init(problem, 3), reader_of(problem).n_blocks
    seen = []
    for _ in range(3 * blocks):
        state = solver.step(problem, state, BUDGET)
        seen.append({name: np.copy(one) for name, one in stored_fields(state).items() if name != "remark"})
    assert any(one["kept"].size for one in seen)
    for done in range(2 * blocks, 3 * blocks - 1):
        solver, again = made(tmp_path)
        other = restored(solver.init(again, 3), seen[done])
        for _ in range(done + 1, 3 * blocks):
            other = solver.step(again, other, BUDGET)
        found = stored_fields(other)
        differing = {name for name, one in seen[-1].items() if not np.array_equal(one, found[name])}
        assert differing == set()


class Meters(Group):
    """An array of records, as plain Python reads them."""

    __stored__: ClassVar = stored("found")

    def __init__(self) -> None:
        self.found = np.zeros(1, np.dtype((np.record, [("length", np.float64)])))


def test_records_have_named_fields_again() -> None:
    read = np.ones(1, [("length", np.float64)])
    assert restored(Meters(), {"found": read}).found[0].length == 1.0
