"""The loop: every way in which a fit ends, what it records, that it repeats, and that it can be gone on with."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import labels, matrix, plain_dual, plain_primal, small_problem
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import ADVICE, NotCertifiedWarning, Outcome
from saddlesvm.fit.result import FitResult
from saddlesvm.fit.trace import COLUMNS, Record
from saddlesvm.problem.certificate import Certificate, Point, evaluate
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, Squared, SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Pegasos
from saddlesvm.solvers.base import Budget, SolverBase, State

SOLVERS = [
    SDCA(),
    SDCA("replacement", "sgd", "average"),
    SDCA(output="random"),
    DCD(),
    DCD(stopping="weight_change", threshold=1e-12),
    Pegasos(),
    Pegasos(4, True, "replacement", "random"),
    Pegasos(batch_size=7, output="average"),
]
every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


def equal(one: FitResult, other: FitResult) -> bool:
    """Whether two results are the same to the last bit."""
    return (
        np.array_equal(one.coef, other.coef)
        and np.array_equal(one.alpha, other.alpha)
        and (one.intercept, one.certificate, one.epochs) == (other.intercept, other.certificate, other.epochs)
    )


class Idle(SolverBase):
    """Does nothing, and hands over what it is told to."""

    alpha = 0.0

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> State:
        return State(w=np.zeros(problem.n_features + 1), active=problem.members.size)

    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        state.rows_touched += budget.rows
        state.epochs = state.rows_touched / problem.members.size
        return state

    def solution(self, problem: Problem, state: State) -> Point:
        return Point(state.w, self.alpha * problem.y)


class Infeasible(Idle):
    alpha = 2.0


class Diverging(Idle):
    def step(self, problem: Problem, state: State, budget: Budget) -> State:
        state = super().step(problem, state, budget)
        if state.epochs > 20:
            state.w = np.full_like(state.w, np.nan)
        return state


# Outcomes


@every_solver
def test_certified_means_proven(solver: Any) -> None:
    problem = small_problem(Hinge(), lam=0.1)
    result = fit(problem, solver, Limits(tol=3e-2, max_epochs=5000))
    assert result.outcome is Outcome.CERTIFIED, result.message
    assert result.certificate.gap >= 0.0 and result.certificate.relative_gap <= 3e-2
    assert result.certificate.form == "lambda"
    assert result.coef.dtype == result.alpha.dtype == np.float64
    assert (result.coef.shape, result.alpha.shape) == ((5,), (60,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result.warn()


@every_solver
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_the_result_holds_the_points_behind_its_certificate(solver: Any, intercept: str) -> None:
    problem = small_problem(Hinge(), C=0.1, intercept=intercept)
    result = fit(problem, solver, Limits(tol=1e-9, max_epochs=37))
    assert result.certificate.primal == pytest.approx(plain_primal(problem, result.coef, result.intercept), rel=1e-10)
    assert result.certificate.dual == pytest.approx(plain_dual(problem, result.alpha), rel=1e-10)


def test_the_solvers_own_rule() -> None:
    result = fit(small_problem(Hinge()), DCD(stopping="projected_gradient", threshold=0.1), Limits(tol=0.0))
    assert result.outcome is Outcome.RULE_MET
    assert 0.0 < result.certificate.relative_gap < 0.1


@every_solver
def test_a_time_limit_of_nothing_still_gives_a_certificate(solver: Any) -> None:
    result = fit(small_problem(Hinge()), solver, Limits(tol=0.0, max_time=1e-9))
    assert result.outcome is Outcome.TIME_LIMIT
    assert result.certificate.sound and result.epochs > 0.0
    assert len(result.trace) == 1


@pytest.mark.parametrize("solver", [SDCA(), DCD(), DCD(shrinking=False), Pegasos()], ids=repr)
@pytest.mark.parametrize("epochs", [1, 2.5, 3, 40])
def test_the_epoch_limit_is_exact(solver: Any, epochs: float) -> None:
    result = fit(small_problem(SquaredHinge()), solver, Limits(tol=0.0, max_epochs=epochs))
    assert result.outcome is Outcome.EPOCH_LIMIT
    assert result.epochs == epochs
    assert result.rows_touched == 60 * epochs
    assert result.trace[-1]["epoch"] == epochs


def test_batches_overshoot_by_less_than_one() -> None:
    result = fit(small_problem(Hinge()), Pegasos(7), Limits(tol=0.0, max_epochs=3))
    assert 180 <= result.rows_touched < 187


@every_solver
def test_an_event_interrupts(solver: Any) -> None:
    stop = threading.Event()
    stop.set()
    result = fit(small_problem(Hinge()), solver, Limits(tol=0.0), stop=stop)
    assert result.outcome is Outcome.INTERRUPTED
    assert result.certificate.sound and len(result.trace) == 1


@every_solver
def test_a_callback_interrupts(solver: Any) -> None:
    seen: list[Record] = []

    def after_three(record: Record) -> bool:
        seen.append(record)
        return len(seen) == 3

    limits = Limits(tol=0.0, certify_every=1)
    result = fit(small_problem(Hinge(), C=0.1), solver, limits, callbacks=[after_three])
    assert result.outcome is Outcome.INTERRUPTED
    assert len(seen) == len(result.trace) == 3
    assert np.array_equal(seen[-1].coef, result.coef)
    assert seen[-1].certificate == Certificate(result.certificate.primal, result.certificate.dual)


@every_solver
def test_ctrl_c_returns_the_best_model_so_far(solver: Any, keyboard: Any) -> None:
    seen: list[Record] = []

    def press_once(record: Record) -> None:
        seen.append(record)
        if len(seen) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    limits = Limits(tol=0.0, certify_every=1)
    result = fit(small_problem(Hinge(), C=0.1), solver, limits, callbacks=[press_once])
    assert result.outcome is Outcome.INTERRUPTED
    assert result.certificate.sound
    assert len(result.trace) == 2
    assert signal.getsignal(signal.SIGINT) is keyboard


def test_a_second_ctrl_c_ends_at_once(keyboard: Any) -> None:
    def press_twice(record: Record) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(small_problem(Hinge()), SDCA(), Limits(tol=0.0), callbacks=[press_twice])
    assert signal.getsignal(signal.SIGINT) is keyboard


def test_another_handler_of_ctrl_c_is_left_alone(keyboard: Any) -> None:
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(True))

    def press(record: Record) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    result = fit(small_problem(Hinge()), SDCA(), Limits(tol=0.0, max_epochs=5), callbacks=[press])
    assert result.outcome is Outcome.EPOCH_LIMIT
    assert pressed


def test_no_progress() -> None:
    result = fit(small_problem(Hinge()), Idle(), Limits(tol=1e-3))
    assert result.outcome is Outcome.NO_PROGRESS
    assert result.certificate.sound
    assert 64 <= result.epochs <= 512
    assert "1" in result.reason


def test_a_dual_point_that_is_not_feasible_is_a_failure() -> None:
    result = fit(small_problem(Hinge()), Infeasible(), Limits(tol=1e-3))
    assert result.outcome in (Outcome.FAILED, Outcome.NO_PROGRESS)
    assert not result.certificate.relative_gap <= 1e-3


def test_weights_that_diverge_are_a_failure_with_the_best_model_so_far() -> None:
    result = fit(small_problem(Hinge()), Diverging(), Limits(tol=1e-3))
    assert result.outcome is Outcome.FAILED
    assert "finite" in result.reason
    assert np.isfinite(result.coef).all() and result.certificate.sound


@pytest.mark.parametrize("solver", [SDCA(), SDCA(start="sgd"), DCD(), Pegasos(), Pegasos(5, True)], ids=repr)
@pytest.mark.parametrize("size", [1e200, 1e160])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_numbers_that_overflow_never_give_a_certificate_that_is_wrong(solver: Any, size: float) -> None:
    X = matrix(20, 3) * size
    problem = make_problem(as_rows(X), labels(matrix(20, 3), Hinge()), Hinge(), C=1.0)
    result = fit(problem, solver, Limits(tol=1e-3, max_epochs=300))
    assert result.coef.shape == (3,) and np.isfinite(result.coef).all()
    if result.outcome is Outcome.CERTIFIED:
        assert result.certificate.sound and result.certificate.primal <= 20.0
    else:
        assert result.message and result.outcome.advice


# What a result says


def test_every_outcome_has_advice() -> None:
    assert set(ADVICE) == set(Outcome)
    assert {str(outcome) for outcome in Outcome} == {outcome.value for outcome in Outcome}
    assert all(outcome.advice.endswith(".") for outcome in Outcome)


def test_the_warning_names_gap_and_percent() -> None:
    result = fit(small_problem(Hinge()), SDCA(), Limits(tol=1e-9, max_epochs=12))
    with pytest.warns(NotCertifiedWarning) as caught:
        result.warn(stacklevel=2)
    text = str(caught[0].message)
    assert caught[0].filename == __file__
    assert f"relative gap is {result.certificate.relative_gap:.2g}" in text
    assert f"at most {100 * result.certificate.excess:.3g} % above the optimum" in text
    for word in ("epoch_limit", "12 epochs", "1e-09", "max_iter"):
        assert word in text


def test_a_bound_that_says_nothing_is_not_made_a_percentage() -> None:
    result = fit(small_problem(EpsilonInsensitive(0.1)), Idle(), Limits(tol=1e-3, max_epochs=1))
    assert result.certificate.dual <= 0.0
    assert "%" not in result.message and "nothing is known" in result.message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tol": -1e-3}, ["tol", "-0.001"]),
        ({"tol": np.inf}, ["tol", "inf"]),
        ({"tol": np.nan}, ["tol", "nan"]),
        ({"max_epochs": 0}, ["max_epochs", "positive", "0"]),
        ({"max_time": -1.0}, ["max_time", "-1.0"]),
        ({"certify_every": np.nan}, ["certify_every", "nan"]),
    ],
)
def test_limits_out_of_range_are_named(options: dict[str, float], words: list[str]) -> None:
    with pytest.raises(ValueError) as error:
        Limits(**options)
    assert all(word in str(error.value) for word in words), str(error.value)


# The trace


@every_solver
def test_the_trace_has_a_row_for_each_certificate(solver: Any) -> None:
    records: list[Record] = []
    result = fit(
        small_problem(Hinge(), C=0.1),
        solver,
        Limits(tol=0.0, max_epochs=30),
        callbacks=[records.append],
        label="5 against 3",
    )
    assert len(records) == len(result.trace)
    assert all(tuple(row) == COLUMNS for row in result.trace)
    frame = result.trace.to_frame()
    assert tuple(frame.columns) == COLUMNS and len(frame) == len(records)
    assert set(frame["problem"]) == {"5 against 3"}
    for rising in ("epoch", "rows_touched", "seconds_solving", "seconds_certifying", "dual"):
        assert np.all(np.diff(result.trace.column(rising)) >= 0.0), rising
    assert np.all(np.diff(result.trace.column("primal")) <= 0.0)
    last = result.trace[-1]
    assert (last["primal"], last["dual"], last["epoch"]) == (*_bounds(result), result.epochs)
    assert np.allclose(result.trace.column("gap"), frame["primal"] - frame["dual"], atol=0.0)


def _bounds(result: FitResult) -> tuple[float, float]:
    return result.certificate.primal, result.certificate.dual


def test_certificates_come_when_asked_for() -> None:
    result = fit(small_problem(Hinge()), SDCA(), Limits(tol=0.0, max_epochs=7, certify_every=2))
    assert list(result.trace.column("epoch")) == [2, 4, 6, 7]


def test_a_rough_gap_is_looked_for_after_the_first_epoch() -> None:
    rough = fit(small_problem(Logistic(), C=0.01), DCD(), Limits(tol=0.1))
    assert (rough.outcome, rough.epochs) == (Outcome.CERTIFIED, 1.0)
    assert rough.certificate.relative_gap <= 0.1
    assert fit(small_problem(Logistic(), C=0.01), DCD(), Limits(tol=0.09)).epochs > 1.0


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge(), Squared()], ids=repr)
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_estimate_after_two_passes_over_all_rows_is_at_least_about_the_gap(loss: Loss, C: float) -> None:
    problem, solver = small_problem(loss, C=C), DCD(shrinking=False)
    state = solver.init(problem, 0)
    while state.epochs < 12:
        state = solver.step(problem, state, Budget(problem.members.size))
        gap = evaluate(problem, solver.solution(problem, state)).certificate.relative_gap
        assert gap <= max(2.0 * state.estimate, 1e-12)
        if state.epochs > 1:
            assert state.estimate <= state.known  # which is half a pass old


@pytest.mark.parametrize("solver", [SDCA(), DCD(), Pegasos()], ids=repr)
def test_certificates_cost_at_most_about_a_fifth(solver: Any) -> None:
    result = fit(small_problem(Hinge(), C=0.1), solver, Limits(tol=0.0, max_epochs=400))
    assert 3 <= len(result.trace) <= 0.2 * result.epochs + 1


def test_slices_of_work_are_told_to_those_who_listen() -> None:
    class Listener:
        def __init__(self) -> None:
            self.ticks: list[tuple[float, float, float]] = []

        def tick(self, epoch: float, estimate: float, seconds: float) -> None:
            self.ticks.append((epoch, estimate, seconds))

        def __call__(self, record: Record) -> None:
            assert self.ticks[-1][0] == record.epoch

    listener = Listener()
    result = fit(small_problem(Hinge()), SDCA(), Limits(tol=0.0, max_epochs=20), callbacks=[listener])
    assert len(listener.ticks) >= len(result.trace)
    assert listener.ticks[-1][0] == 20


# Repeatability


@every_solver
def test_a_seed_repeats_to_the_last_bit_also_in_parallel_threads(solver: Any) -> None:
    problem = small_problem(Hinge(), n=200, C=0.05, intercept="regularized")
    limits = Limits(tol=1e-6, max_epochs=40)
    alone = fit(problem, solver, limits, seed=7)
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda seed: fit(problem, solver, limits, seed=seed), [7, 8, 7, 7]))
    assert all(equal(alone, together[k]) for k in (0, 2, 3))
    assert not np.array_equal(alone.coef, together[1].coef)


def test_a_slice_of_work_can_be_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small_problem(Hinge(), intercept="free")
    limits = Limits(tol=0.0, max_epochs=10, certify_every=5)
    solvers = SDCA(), DCD(shrinking=False), Pegasos()
    whole = [fit(problem, solver, limits) for solver in solvers]
    monkeypatch.setattr("saddlesvm.fit.run.SLICE_VALUES", 35)
    for solver, one in zip(solvers, whole, strict=True):
        assert np.array_equal(one.coef, fit(problem, solver, limits).coef)


# Checkpoints


def stop_at(epoch: float) -> Any:
    return lambda record: record.epoch >= epoch


@every_solver
def test_a_resumed_run_ends_where_an_undisturbed_one_does(solver: Any, tmp_path: Path) -> None:
    problem, limits = small_problem(Hinge(), C=0.1), Limits(tol=0.0, max_epochs=12, certify_every=2)
    undisturbed = fit(problem, solver, limits, seed=3)
    path = tmp_path / "run.ckpt"
    first = fit(problem, solver, limits, seed=3, checkpoint=Checkpoint(path), callbacks=[stop_at(6)])
    assert first.outcome is Outcome.INTERRUPTED and first.epochs < 8
    second = fit(problem, solver, limits, seed=3, checkpoint=Checkpoint(path))
    assert second.outcome is undisturbed.outcome
    assert list(second.trace.column("epoch")) == list(undisturbed.trace.column("epoch"))
    assert second.seconds_solving > first.seconds_solving
    assert equal(undisturbed, second)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("output", ["last", "random"])
def test_a_resumed_run_never_returns_a_worse_model_than_it_had(output: str, tmp_path: Path) -> None:
    problem, solver = small_problem(Hinge()), Pegasos(output=output)
    limits = Limits(tol=0.0, max_epochs=9, certify_every=1)
    for seed in range(8):
        path = tmp_path / f"{seed}.ckpt"
        first = fit(problem, solver, limits, seed=seed, checkpoint=Checkpoint(path), callbacks=[stop_at(8)])
        second = fit(problem, solver, limits, seed=seed, checkpoint=Checkpoint(path))
        assert second.certificate.primal <= first.certificate.primal
        assert second.certificate.dual >= first.certificate.dual
        assert np.all(np.diff(second.trace.column("primal")) <= 0.0)


@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_an_interrupted_fit_goes_on_to_its_certificate(intercept: str, tmp_path: Path) -> None:
    problem, limits = small_problem(Hinge(), intercept=intercept), Limits(tol=1e-7, max_epochs=10_000)
    undisturbed = fit(problem, DCD(), limits)
    checkpoint = Checkpoint(tmp_path / "run.ckpt")
    stop = threading.Event()
    stop.set()
    assert fit(problem, DCD(), limits, checkpoint=checkpoint, stop=stop).outcome is Outcome.INTERRUPTED
    resumed = fit(problem, DCD(), limits, checkpoint=checkpoint)
    assert resumed.outcome is undisturbed.outcome is Outcome.CERTIFIED
    gap = max(undisturbed.certificate.gap, resumed.certificate.gap)
    assert abs(undisturbed.certificate.primal - resumed.certificate.primal) <= gap
    finished = fit(problem, DCD(), limits, checkpoint=checkpoint)
    assert finished.outcome is Outcome.CERTIFIED
    assert finished.epochs <= resumed.epochs + 5


def test_a_checkpoint_is_also_written_on_the_way(tmp_path: Path) -> None:
    path, sizes = tmp_path / "run.ckpt", []
    fit(
        small_problem(Hinge()),
        SDCA(),
        Limits(tol=0.0, max_epochs=6, certify_every=2),
        checkpoint=Checkpoint(path, every=0.0),
        callbacks=[lambda record: sizes.append(path.exists())],
    )
    assert sizes == [False, True, True]


def test_float32_runs_resume(tmp_path: Path) -> None:
    X = matrix(60, 5).astype(np.float32)
    problem = make_problem(as_rows(X), labels(X, Hinge()), Hinge(), C=0.5)
    limits, checkpoint = Limits(tol=0.0, max_epochs=6, certify_every=2), Checkpoint(tmp_path / "run.ckpt")
    fit(problem, SDCA(), limits, checkpoint=checkpoint, callbacks=[stop_at(4)])
    assert equal(fit(problem, SDCA(), limits, checkpoint=checkpoint), fit(problem, SDCA(), limits))


@pytest.mark.parametrize(
    ("solver", "other", "word"),
    [
        (SDCA("cyclic"), {}, "solver"),
        (SDCA(), {"C": 0.6}, "C"),
        (SDCA(), {"n": 61}, "problem"),
        (SDCA(), {"weights": np.full(60, 2.0)}, "weights"),
        (SDCA(), {"intercept": "free"}, "problem"),
        (SDCA(), {"seed": 1}, "labels"),
    ],
)
def test_a_foreign_checkpoint_is_refused(solver: Any, other: dict[str, Any], word: str, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run.ckpt")
    fit(small_problem(Hinge()), SDCA(), Limits(max_epochs=2), checkpoint=checkpoint)
    with pytest.raises(ValueError, match="belongs to another fit") as error:
        fit(small_problem(Hinge(), **other), solver, Limits(max_epochs=2), checkpoint=checkpoint)
    assert word in str(error.value) and "run.ckpt" in str(error.value)


def test_rows_of_the_same_norms_are_told_apart(tmp_path: Path) -> None:
    X = matrix(60, 5)
    problems = [make_problem(as_rows(rows), labels(X, Hinge()), Hinge(), C=0.5) for rows in (X, X[:, ::-1].copy())]
    checkpoint = Checkpoint(tmp_path / "run.ckpt")
    fit(problems[0], SDCA(), Limits(max_epochs=2), checkpoint=checkpoint)
    with pytest.raises(ValueError, match="belongs to another fit: rows"):
        fit(problems[1], SDCA(), Limits(max_epochs=2), checkpoint=checkpoint)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path, problem = tmp_path / "run.ckpt", small_problem(Hinge())
    fit(problem, SDCA(), Limits(max_epochs=2), checkpoint=Checkpoint(path))
    whole = path.read_bytes()
    truncated = [whole[:size] for size in (0, 1, 10, len(whole) // 2, len(whole) - 1)]
    other_files = [b"not a checkpoint", b"\x80\x04N.", np.arange(3).tobytes()]
    random = np.random.default_rng(0)
    changed = []
    for place in random.integers(0, len(whole), 150):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(random.integers(8))
        changed.append(bytes(flipped))
    for damaged in truncated + other_files:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"run\.ckpt"):
            fit(problem, SDCA(), Limits(max_epochs=2), checkpoint=Checkpoint(path))
    for damaged in changed:
        path.write_bytes(damaged)
        try:  # a bit that no one reads (a date) may change; nothing else than a clear refusal otherwise
            result = fit(problem, SDCA(), Limits(max_epochs=3), checkpoint=Checkpoint(path))
        except ValueError as error:
            assert "run.ckpt" in str(error)
        else:
            assert result.certificate.sound


def test_another_npz_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    with path.open("wb") as file:
        np.savez(file, header=np.frombuffer(b'{"format": "something else"}', dtype=np.uint8))
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        fit(small_problem(Hinge()), SDCA(), checkpoint=Checkpoint(path))


def test_a_checkpoint_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="folder"):
        Checkpoint(tmp_path / "missing" / "run.ckpt")
