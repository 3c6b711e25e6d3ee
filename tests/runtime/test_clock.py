"""The clock that stands still while kernels are compiled, what is said of it, and what fits make of it."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numba import njit
from numba.core import event

from saddlesvm import LinearSVC
from saddlesvm.fit.outcome import Limits
from saddlesvm.multiclass.sub_problems import SharedTime
from saddlesvm.runtime import clock as clocks
from saddlesvm.runtime.clock import clock, report_compilation, seconds_compiling
from saddlesvm.runtime.compiled import INTERPRETED
from saddlesvm.ship_kernels import compile_for


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
    shared = SharedTime(10.0, problems=2)
    with event.trigger_event("numba:compile"):
        now.seconds += 1000.0
    assert shared.share(1) == 5.0
    now.seconds += 4.0
    assert shared.share(1) == 3.0
    assert Limits(max_time=10.0).reached_limit(1.0, clock() - 100.0) is None


def test_only_long_compilations_are_told_of_and_once(now: Now, capsys: pytest.CaptureFixture[str]) -> None:
    def compile_during(seconds: float) -> str:
        with event.trigger_event("numba:compile"):
            now.seconds += seconds
        return capsys.readouterr().err

    assert compile_during(9.0) == ""
    with report_compilation():
        assert compile_during(0.4) == ""
        with report_compilation():
            said = compile_during(0.2)
            assert said.startswith("compiling for this processor, once") and said.count("\n") == 1
        assert compile_during(9.0) == ""
    with report_compilation(False):
        assert compile_during(9.0) == ""


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


def test_the_fits_of_a_wheel_leave_nothing_to_compile() -> None:
    compile_for(LinearSVC(loss="squared_hinge"), "dense", "float64")
    X = np.random.default_rng(1).normal(size=(20_000, 12))
    assert LinearSVC(random_state=0).fit(X, X[:, 0] > 0).seconds_compiling_ == 0.0


def test_the_fits_of_a_wheel_leave_nothing_to_compile_of_several_classes() -> None:
    compile_for(LinearSVC(loss="logistic", multi_class="multinomial"), "dense", "float64")
    X = np.random.default_rng(1).normal(size=(20_000, 6))
    model = LinearSVC(multi_class="multinomial", tol=0.1, random_state=0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert model.seconds_compiling_ == 0.0
