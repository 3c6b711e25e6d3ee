"""A killed run that goes on ends where an undisturbed one does, to the last bit: every machine, place and solver.

The kernel machines are the exception: their checkpoints hold the dual point alone (docs/guides/limits.md).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from saddlesvm import DCD, SDCA, SVC, LinearSVC, Newton, Pegasos
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.result import FitResult
from saddlesvm.problem.certificate import Point
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
from saddlesvm.solvers.base import Budget, SolverBase, State
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
        bias = 0.0 if options.get("intercept", "none") == "none" else 1.0
        return make_problem(as_rows(csr(X) if sparse else X, bias), labels(X, loss), loss, **{"C": 0.5} | options)

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
    make, limits, states = binary(Hinge()), Limits(tol=0.0, max_epochs=9.0, certify_every=1.0), []

    @dataclass(frozen=True)
    class Watched(Own):
        def step(self, problem: Any, state: OwnState, budget: Budget) -> OwnState:
            state = super().step(problem, state, budget)
            states.append({name: repr(one) for name, one in vars(state).items()})
            return state

    whole = fit(make(tmp_path), Watched(), limits)
    told = states.copy()
    for place in range(8):
        path = killed(make, Watched(), limits, tmp_path, KillAt(place))
        states.clear()
        resumed = fit(make(tmp_path), Watched(), limits, seed=3, checkpoint=Checkpoint(path))
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
    for name in [name for name in CELLS if name.startswith(("hinge, regularized", "softmax:", "logistic"))]:
        make, solver, limits = CELLS[name]
        whole, path = fit(make(tmp_path), solver, limits, seed=3), tmp_path / "interrupted"
        path.unlink(missing_ok=True)
        for _ in range(4):
            stop = threading.Event()

            class Stop(KillAt):
                def tick(self, epoch: float, estimate: float, seconds: float) -> None:
                    self.steps -= 1
                    if self.steps == 0:
                        stop.set()  # noqa: B023

            given: dict[str, Any] = {"seed": 3, "checkpoint": Checkpoint(path)}
            result = fit(make(tmp_path), solver, limits, **given, callbacks=[Stop(np.inf, 1)], stop=stop)
            if result.outcome is not Outcome.INTERRUPTED:
                break
        assert differences(whole, fit(make(tmp_path), solver, limits, **given)) == [], name
