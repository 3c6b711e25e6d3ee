"""Ctrl-C: a person's fit ends with its best model, a program's fits raise KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from saddlesvm import SVC, LinearSVC, LinearSVR, NotCertifiedWarning, Outcome
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.interrupts import PROGRAMS, InterruptHandler, catch_interrupts, raise_interrupts
from saddlesvm.solvers.small.small_solver import DENSE, INTERIOR, SMALL
from support import Every
from support.estimating import two_blobs


class Press:
    """A callback that presses Ctrl-C at the first certificate that it sees, and counts what it sees afterwards."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, record: Any) -> None:
        self.seen += 1
        if self.seen == 1:
            signal.raise_signal(signal.SIGINT)

    def __deepcopy__(self, memo: Any) -> Press:
        return self  # scikit-learn clones models for its candidates: all share one keyboard


def pressed(press: Press, **options: Any) -> LinearSVC:
    return LinearSVC(solver="sdca", tol=1e-12, random_state=0, callbacks=[Every(1), press], **options)


def searched(model: LinearSVC, X: Any, y: Any) -> Any:
    return GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2, error_score=np.nan).fit(X, y)


AROUND: dict[str, Callable[[LinearSVC, Any, Any], Any]] = {
    "grid search": searched,
    "cross-validation": lambda model, X, y: cross_val_score(model, X, y, cv=2),
    "pipeline": lambda model, X, y: make_pipeline(StandardScaler(), model).fit(X, y),
    "ensemble": lambda model, X, y: BaggingClassifier(model, n_estimators=2).fit(X, y),
    "one against the rest": lambda model, X, y: OneVsRestClassifier(model).fit(X, y),
    "search of pipelines": lambda model, X, y: cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=2),
}


@pytest.mark.parametrize("around", AROUND)
def test_programs_that_call_fits_are_interrupted(around: str, keyboard: Any) -> None:
    press = Press()
    with pytest.raises(KeyboardInterrupt):
        AROUND[around](pressed(press), *two_blobs())
    assert press.seen == 1
    assert signal.getsignal(signal.SIGINT) is keyboard


def test_the_threads_of_a_fit_within_a_program_end_with_it(keyboard: Any) -> None:
    before = set(threading.enumerate())
    endless = pressed(Press(), n_jobs=2).set_params(tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        make_pipeline(StandardScaler(), endless).fit(*load_iris(return_X_y=True))
    for thread in set(threading.enumerate()) - before:
        thread.join(60.0)
        assert not thread.is_alive(), thread


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(solver="sdca"),
        LinearSVC(multi_class="crammer_singer"),
        LinearSVC(solver="pegasos", multi_class="ovo"),
        LinearSVC(solver="sdca", n_jobs=2),
        LinearSVR(solver="dcd"),
        SVC(solver="kernel-pegasos"),
    ],
    ids=repr,
)
def test_a_fit_that_a_person_called_returns_its_best_model(model: Any, keyboard: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model.set_params(tol=1e-13, callbacks=[Every(1), Press()])
    with pytest.warns(NotCertifiedWarning, match="interrupted"):
        model.fit(X, y)
    assert model.outcome_ is Outcome.INTERRUPTED
    assert np.isfinite(model.predict(X)).all()
    assert signal.getsignal(signal.SIGINT) is keyboard


class PressedAtQuestion(threading.Event):
    """An event that is set when it has been asked for so many times."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.left = count

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
def test_a_small_fit_hears_a_press_within_its_budget(loss: str) -> None:
    """Rounding keeps these rows from a proof for hundreds of steps, all of which are one budget."""
    X, y = load_iris(return_X_y=True)
    problem = make_problem(as_rows(2.0**50 * X), np.where(y == 1, 1.0, -1.0), make_loss(loss), C=1.0)
    solver = SMALL[INTERIOR if loss == "hinge" else DENSE]
    certificate_every_thousand = Limits(tol=1e-15, max_epochs=1e4, certify_every=1e3)
    found = fit(problem, solver, certificate_every_thousand, stop=PressedAtQuestion(3))
    assert found.outcome is Outcome.INTERRUPTED
    assert found.epochs <= 4


def test_a_press_soon_after_another_is_meant_for_the_loop_around_the_fits(keyboard: Any, monkeypatch: Any) -> None:
    now = [1000.0]
    monkeypatch.setattr("saddlesvm.runtime.interrupts.time.monotonic", lambda: now[0])
    for waited, raises in ((0.0, False), (60.0, False), (1.0, True), (60.0, False)):
        now[0] += waited
        with pytest.raises(KeyboardInterrupt) if raises else pytest.warns(NotCertifiedWarning, match="interrupted"):
            pressed(Press()).fit(*two_blobs())


def stack_of(module: str, work: Callable[[], Any]) -> Any:
    """Call `work` from a function of a module of that name."""
    names: dict[str, Any] = {"__name__": module}
    exec("def call(work):\n    return work()", names)
    return names["call"](work)


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_the_stack_of_callers_tells_who_waits(program: str, keyboard: Any) -> None:
    def handled() -> bool:
        with catch_interrupts():
            return isinstance(signal.getsignal(signal.SIGINT), InterruptHandler)

    assert stack_of("__main__", handled) and stack_of(f"{program}_of_mine", handled)
    assert not stack_of(program, handled) and not stack_of(f"{program}.inner", handled)
    with raise_interrupts():
        assert not handled()
    assert handled()


def test_an_exception_stops_the_fits_of_other_threads(keyboard: Any) -> None:
    with pytest.raises(ZeroDivisionError), catch_interrupts() as stop:
        raise ZeroDivisionError
    assert stop.is_set()
    given = threading.Event()
    with pytest.raises(ZeroDivisionError), catch_interrupts(given):
        raise ZeroDivisionError
    assert not given.is_set()


def test_the_choice_of_C_is_no_single_fit(keyboard: Any) -> None:
    X, y = two_blobs()
    with pytest.raises(KeyboardInterrupt):
        LinearSVC(C="auto", callbacks=[Press()]).fit(X, y)


def test_a_second_press_while_a_fit_ends_leaves_no_handler_behind(
    keyboard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception comes where the fit removes its handler: the fits that follow must not end at once."""

    def press_first(number: int, handler: Any) -> Any:
        monkeypatch.undo()
        signal.raise_signal(signal.SIGINT)
        return signal.signal(number, handler)

    with pytest.raises(KeyboardInterrupt), catch_interrupts() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        monkeypatch.setattr(signal, "signal", press_first)
    assert signal.getsignal(signal.SIGINT) is keyboard
    assert LinearSVC().fit(*two_blobs()).outcome_ is Outcome.CERTIFIED
