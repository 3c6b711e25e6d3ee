"""A killed run goes on from its last solution, and is certified: every machine, place and solver."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from saddlesvm import DCD, LinearSVC
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.losses import Hinge
from saddlesvm.solvers.base import Budget, SolverBase, State
from support.classes import blobs
from support.resuming import CELLS, LIMITS, KillAt, agree, binary, killed, whole_run

BRIEF = [name for name, cell in CELLS.items() if cell.brief]


@pytest.mark.parametrize("name", BRIEF)
def test_a_killed_run_goes_on_and_is_certified(name: str, tmp_path: Path) -> None:
    cell = CELLS[name]
    whole = whole_run(cell, tmp_path)
    last = len(whole.trace) - 1
    kills = [KillAt(place) for place in sorted({0, 1, last // 2, last} & {*range(last + 1)})]
    for kill in [*kills, *([KillAt(np.inf, 1)] if cell.solver.name in ("blocks", "newton", "auto") else [])]:
        path = killed(cell, tmp_path, kill)
        if path is None:
            continue
        held = np.load(path) if path.exists() else None
        resumed = whole_run(cell, tmp_path, path)
        assert resumed.certificate.sound and agree(whole, resumed)
        if whole.outcome is Outcome.CERTIFIED and cell.limits.max_epochs is None:
            assert resumed.outcome is Outcome.CERTIFIED
        if held is not None:
            assert not {name for name in held.files if held[name].dtype.hasobject}
            ended = whole_run(cell, tmp_path, path)  # a call after the end
            assert ended.certificate.sound and agree(whole, ended)
            if resumed.outcome is Outcome.CERTIFIED:
                assert ended.outcome is Outcome.CERTIFIED


@dataclass
class OwnState(State):
    """A state from outside the package: two fields of it are carried, the others are not."""

    carried: ClassVar[tuple[str, ...]] = ("sums", "steps")
    sums: np.ndarray = field(default_factory=lambda: np.zeros(3))
    steps: int = 0
    diary: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Own(SolverBase):
    """Gradient descent that keeps a diary."""

    name: ClassVar[str] = "own"

    def init(self, problem: Any, seed: int, start: Any = None) -> OwnState:
        w = np.zeros(problem.n_features + 1) if start is None else np.array(start.w)
        return OwnState(w=w)

    def step(self, problem: Any, state: OwnState, budget: Budget) -> OwnState:
        state.w = state.w + 0.01
        state.sums = state.sums + 1.0
        state.steps += 1
        state.diary.append(f"after {state.steps}")
        state.epochs += 1.0
        state.rows_touched += problem.members.size
        return state

    def solution(self, problem: Any, state: OwnState) -> Point:
        return Point(state.w)


def test_a_solver_from_outside_goes_on_with_its_weights_and_the_fields_that_it_names(tmp_path: Path) -> None:
    states = []

    @dataclass(frozen=True)
    class Watched(Own):
        def step(self, problem: Any, state: OwnState, budget: Budget) -> OwnState:
            state = super().step(problem, state, budget)
            states.append((state.w[0], state.steps, state.sums[0], len(state.diary)))
            return state

    path = tmp_path / "run"
    for epochs in (4.0, 7.0):
        result = fit(
            binary(Hinge())(tmp_path),
            Watched(),
            Limits(tol=0.0, max_epochs=epochs, certify_every=1.0),
            checkpoint=Checkpoint(path),
        )
        assert (result.epochs, result.rows_touched) == (epochs, 60 * epochs)
    assert [steps for _, steps, _, _ in states] == [1, 2, 3, 4, 5, 6, 7]
    assert [count for *_, count in states] == [1, 2, 3, 4, 1, 2, 3]
    np.testing.assert_allclose([w for w, *_ in states], 0.01 * np.arange(1, 8))
    assert result.trace.column("epoch").tolist() == [1.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0, 7.0]


@pytest.mark.parametrize(
    "change", [{"state_sums": np.zeros(4)}, {"state_steps": np.array(-1)}, {"state_other": np.zeros(1)}]
)
def test_carried_fields_of_another_shape_are_refused(change: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "run"
    fit(binary(Hinge())(tmp_path), Own(), Limits(tol=0.0, max_epochs=2.0), checkpoint=Checkpoint(path))
    with np.load(path) as stored:
        arrays = dict(stored)
    with path.open("wb") as file:
        np.savez(file, **(arrays | change))
    with pytest.raises(ValueError, match="run is not a readable checkpoint"):
        fit(binary(Hinge())(tmp_path), Own(), Limits(tol=0.0, max_epochs=3.0), checkpoint=Checkpoint(path))


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    for name in [name for name in BRIEF if name.startswith(("hinge, regularized", "softmax:", "logistic"))]:
        cell = CELLS[name]
        whole = whole_run(cell, tmp_path)
        path = tmp_path / "interrupted"
        path.unlink(missing_ok=True)
        stop = threading.Event()
        stop.set()
        given: dict[str, Any] = {"seed": 3, "checkpoint": Checkpoint(path), "stop": stop}
        first = fit(cell.make(tmp_path), cell.solver, cell.limits, **given)
        assert first.outcome in (Outcome.INTERRUPTED, Outcome.CERTIFIED)
        assert agree(whole, whole_run(cell, tmp_path, path)), name


@pytest.mark.parametrize("options", [{}, {"solver": "dcd"}, {"intercept": "free"}, {"n_jobs": 2}], ids=str)
def test_an_object_is_a_checkpoint_of_several_classes(options: Any, tmp_path: Path) -> None:
    X, y = blobs()
    given = {"random_state": 0} | options
    whole = LinearSVC(**given).fit(X, y)
    for _ in range(2):
        model = LinearSVC(**given, checkpoint=Checkpoint(tmp_path / "run")).fit(X, y)
        assert model.outcome_ is Outcome.CERTIFIED
        assert (
            abs(model.certificate_.primal - whole.certificate_.primal)
            <= whole.certificate_.gap + model.certificate_.gap
        )
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.0", "run.1", "run.2"]


def test_another_version_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with path.open("wb") as file:
        np.savez(file, header=np.frombuffer(b'{"format": "saddlesvm checkpoint 2"}', dtype=np.uint8))
    with pytest.raises(ValueError, match="'saddlesvm checkpoint 2'; only 'saddlesvm checkpoint 3' can be read"):
        fit(binary(Hinge())(tmp_path), DCD(), LIMITS, checkpoint=Checkpoint(path))
