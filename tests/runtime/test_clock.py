"""The clock that stands still while kernels are compiled, what is said of it, and what fits make of it."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numba import njit
from numba.core import event

from saddlesvm import LinearSVC, warmup
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.multiclass.sub_problems import SharedTime
from saddlesvm.problem.losses import SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime import clock as clocks
from saddlesvm.runtime.clock import clock, reporting_compilation, seconds_compiling
from saddlesvm.runtime.compiled import INTERPRETED
from saddlesvm.solvers.threaded.descent import ParallelDCD


class Now:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    turned = Now()
    monkeypatch.setattr(time, "perf_counter", turned)
    monkeypatch.setattr(clocks.WATCH, "state", (0.0, None))
    return turned


def test_the_clock_stands_still_while_kernels_are_compiled_however_deep(now: Now) -> None:
    began = clock()
    now.seconds += 2.0
    with event.trigger_event("numba:compile"):
        now.seconds += 3.0
        assert (clock() - began, seconds_compiling()) == (2.0, 3.0)
        with event.trigger_event("numba:compile"):
            now.seconds += 4.0
        now.seconds += 1.0
    now.seconds += 5.0
    assert (clock() - began, seconds_compiling()) == (7.0, 8.0)


def test_compilation_does_not_eat_the_time_of_fits(now: Now) -> None:
    shared = SharedTime(10.0, problems=2, jobs=1)
    with event.trigger_event("numba:compile"):
        now.seconds += 1000.0
    assert shared.share() == 5.0
    now.seconds += 4.0
    assert shared.share() == 3.0
    assert Limits(max_time=10.0).reached(1.0, clock() - 100.0) is None


def test_only_long_compilations_are_told_of_and_once(now: Now, capsys: pytest.CaptureFixture[str]) -> None:
    def compile_for(seconds: float) -> str:
        with event.trigger_event("numba:compile"):
            now.seconds += seconds
        return capsys.readouterr().err

    assert compile_for(9.0) == ""
    with reporting_compilation():
        assert compile_for(0.4) == ""
        with reporting_compilation():
            said = compile_for(0.2)
            assert said.startswith("compiling for this processor, once") and said.count("\n") == 1
        assert compile_for(9.0) == ""
    with reporting_compilation(False):
        assert compile_for(9.0) == ""


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_numba_tells_of_what_it_compiles() -> None:
    before = seconds_compiling()

    @njit
    def twice(x: float) -> float:
        return 2.0 * x

    assert twice(2.0) == 4.0
    spent = seconds_compiling() - before
    assert spent > 0.0
    assert twice(3.0) == 6.0
    assert seconds_compiling() - before == spent


def test_after_a_warmup_nothing_is_left_to_compile() -> None:
    told: list[str] = []
    assert warmup("squared_hinge", "dense", watch=lambda name, seconds: told.append(name)) >= 0.0
    assert told == ["squared_hinge, dense, float64"]
    assert warmup("squared_hinge", "dense") == 0.0
    X = np.random.default_rng(0).normal(size=(90, 4))
    assert LinearSVC(random_state=0).fit(X, np.arange(90) % 2).seconds_compiling_ == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layout": "csc"}, "layout must be"),
        ({"dtype": ["float64", "int16"]}, "dtype must be"),
        ({"dtype": "int8", "layout": "csr"}, "is for dense rows"),
        ({"loss": "hingee"}, "hingee"),
        ({"intercept": "loose"}, "intercept"),
    ],
)
def test_a_warmup_refuses_what_it_cannot_compile(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        warmup(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float16", pytest.param("int8", marks=pytest.mark.nightly)])
def test_after_a_warmup_for_a_small_type_nothing_is_left_to_compile(dtype: str) -> None:
    told: list[str] = []
    warmup("squared_hinge", ["dense", "csr"], dtype, watch=lambda name, seconds: told.append(name))
    assert told == [f"squared_hinge, dense, {dtype}"]
    X = (8.0 * np.random.default_rng(1).normal(size=(20_000, 12))).astype(dtype)
    assert LinearSVC(random_state=0).fit(X, X[:, 0] > 0).seconds_compiling_ == 0.0


def test_a_warmup_of_several_classes_leaves_nothing_to_compile() -> None:
    warmup("squared_hinge", "dense", multi_class="multinomial")
    random = np.random.default_rng(1)
    X = random.normal(size=(20_000, 6))
    model = LinearSVC(multi_class="multinomial", tol=0.1, random_state=0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert model.seconds_compiling_ == 0.0


def test_a_warmup_with_threads_leaves_nothing_to_compile() -> None:
    warmup("squared_hinge", "dense", n_jobs=2)
    X = np.random.default_rng(1).normal(size=(3_000, 60))
    problem = make_problem(as_rows(X, 1.0), np.sign(X[:, 0]), SquaredHinge(), C=1.0, intercept="regularized")
    before = seconds_compiling()
    fit(problem, ParallelDCD(2), Limits(tol=1e-2))
    assert seconds_compiling() == before
