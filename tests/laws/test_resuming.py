"""A killed run that goes on ends where an undisturbed one does, to the last bit: every machine, place and solver.

The kernel machines are the exception: their checkpoints hold the dual point alone (docs/guides/limits.md).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from saddlesvm import DCD, SVC, LinearSVC
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.losses import Hinge
from saddlesvm.solvers.base import Budget, SolverBase, State
from support.classes import blobs
from support.resuming import CELLS, LIMITS, Cell, KillAt, binary, differences, killed, whole_run

BRIEF = [name for name, cell in CELLS.items() if cell.brief]


@pytest.mark.parametrize("name", BRIEF)
def test_a_killed_run_ends_where_an_undisturbed_one_does(name: str, tmp_path: Path) -> None:
    cell = CELLS[name]
    whole = whole_run(cell, tmp_path)
    last = len(whole.trace) - 1
    kills = [KillAt(place) for place in sorted({0, 1, last // 2, last} & {*range(last + 1)})]
    for kill in [*kills, *([KillAt(np.inf, 1)] if cell.solver.name in ("blocks", "newton", "auto") else [])]:
        said = vars(kill).copy()
        path = killed(cell, tmp_path, kill)
        if path is None:
            continue
        resumed = whole_run(cell, tmp_path, path)
        assert (said, differences(whole, resumed)) == (said, [])
        assert differences(whole, whole_run(cell, tmp_path, path)) == []  # a call after the end


@dataclass
class OwnState(State):
    """A state from outside the package with every kind of field, none of which says anything of itself."""

    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))
    phase: int = 0
    moves: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    order: list[int] | np.ndarray = field(default_factory=lambda: np.array(["none"]))
    seen: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))
    random: np.ndarray = field(default_factory=lambda: np.array([7], dtype=np.uint64))
    large: float = 1e305
    unknown: float = np.nan
    low: int = -3
    huge: int = 10**30
    single: Any = field(default_factory=lambda: np.float32(0.1))
    flag: Any = field(default_factory=lambda: np.bool_(True))
    said: str = ""
    later: Any = None


@dataclass(frozen=True)
class Own(SolverBase):
    """Gradient descent that keeps a diary."""

    name: ClassVar[str] = "own"

    def init(self, problem: Any, seed: int, start: Any = None) -> OwnState:
        return OwnState(w=np.zeros(problem.n_features + 1))

    def step(self, problem: Any, state: OwnState, budget: Budget) -> OwnState:
        k = state.phase + 1
        state.w = state.w + 0.01 * k * np.sin(np.arange(state.w.size) + float(state.single))
        state.phase, state.weights = k, np.append(state.weights, state.w[0])
        state.moves = np.vstack([state.moves, [k, -k]])
        state.order, state.seen = np.array([f"step {k}"] * k), np.append(state.seen, k % 2 == 0)
        state.large, state.low, state.huge, state.said = state.large * 1.5, state.low - k, state.huge + k, f"after {k}"
        state.single, state.flag = np.float32(state.single * 2), np.bool_(not state.flag)
        state.unknown, state.later = (np.inf if k % 2 else np.nan), np.arange(k) * 1j
        state.random = state.random * np.uint64(3)
        state.epochs, state.rows_touched = float(k), problem.members.size * k
        return state

    def solution(self, problem: Any, state: OwnState) -> Point:
        return Point(state.w)


def test_an_own_state_with_every_kind_of_field_resumes(tmp_path: Path) -> None:
    limits, states = Limits(tol=0.0, max_epochs=9.0, certify_every=1.0), []

    @dataclass(frozen=True)
    class Watched(Own):
        def step(self, problem: Any, state: OwnState, budget: Budget) -> OwnState:
            state = super().step(problem, state, budget)
            states.append({name: repr(one) for name, one in vars(state).items()})
            return state

    cell = Cell(binary(Hinge()), Watched(), limits, True)
    whole = whole_run(cell, tmp_path)
    told = states.copy()
    for place in range(8):
        path = killed(cell, tmp_path, KillAt(place))
        assert path is not None
        states.clear()
        resumed = whole_run(cell, tmp_path, path)
        assert states == told[-len(states) :] and len(states) == (9 - place if path.exists() else 9)
        assert differences(whole, resumed) == []


def test_a_field_that_no_checkpoint_can_hold_is_named_before_any_work(tmp_path: Path) -> None:
    @dataclass
    class Listing(State):
        found: list[int] = field(default_factory=list)

    @dataclass(frozen=True)
    class Lists(Own):
        def init(self, problem: Any, seed: int, start: Any = None) -> Any:
            return Listing(w=np.zeros(problem.n_features + 1))

    with pytest.raises(TypeError, match="the field 'found' of Listing is a list, which no checkpoint can hold"):
        fit(binary(Hinge())(tmp_path), Lists(), LIMITS, checkpoint=Checkpoint(tmp_path / "c"))


@pytest.mark.parametrize("options", [{}, {"solver": "dcd"}, {"intercept": "free"}, {"n_jobs": 2}], ids=str)
@pytest.mark.parametrize("kind", [LinearSVC, SVC])
def test_an_object_is_a_checkpoint_of_several_classes(kind: Any, options: Any, tmp_path: Path) -> None:
    X, y = blobs()
    given = {"random_state": 0} | (options if kind is LinearSVC else {})
    whole = kind(**given).fit(X, y)
    for _ in range(2):
        model = kind(**given, checkpoint=Checkpoint(tmp_path / "run")).fit(X, y)
        assert model.outcome_ is Outcome.CERTIFIED
        if kind is LinearSVC:
            assert np.array_equal(model.coef_, whole.coef_) and np.array_equal(model.intercept_, whole.intercept_)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.0", "run.1", "run.2"]


def test_another_version_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with path.open("wb") as file:
        np.savez(file, header=np.frombuffer(b'{"format": "saddlesvm checkpoint 3"}', dtype=np.uint8))
    with pytest.raises(ValueError, match="'saddlesvm checkpoint 3' where 'saddlesvm checkpoint 1', the one version"):
        fit(binary(Hinge())(tmp_path), DCD(), LIMITS, checkpoint=Checkpoint(path))


def test_an_interrupted_run_ends_where_an_undisturbed_one_does(tmp_path: Path) -> None:
    for name in [name for name in BRIEF if name.startswith(("hinge, regularized", "softmax:", "logistic"))]:
        cell = CELLS[name]
        whole, path = whole_run(cell, tmp_path), tmp_path / "interrupted"
        path.unlink(missing_ok=True)
        for _ in range(4):
            stop = threading.Event()

            class Stop(KillAt):
                def tick(self, epoch: float, estimate: float, seconds: float) -> None:
                    self.steps -= 1
                    if self.steps == 0:
                        stop.set()  # noqa: B023

            given: dict[str, Any] = {"seed": 3, "checkpoint": Checkpoint(path), "stop": stop}
            problem = cell.make(tmp_path)
            result = fit(problem, cell.solver, cell.limits, **given, callbacks=[Stop(np.inf, 1)])
            if result.outcome is not Outcome.INTERRUPTED:
                break
        assert differences(whole, whole_run(cell, tmp_path, path)) == [], name
