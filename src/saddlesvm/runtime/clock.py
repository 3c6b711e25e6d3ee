"""The clock of fits, which stands still while kernels are compiled, and the time that a fit and its steps have by it.

Numba says when it begins to compile a function and when it is done; what it finds in its cache is not compiled. Only
one thread compiles at a time, and hardly anything else runs meanwhile. Fits are timed and limited by :func:`clock`, and
the user who waits is told of a long compilation.

A time limit counts from the beginning of a fit, the preparation of the data included. Fits within a fit, such as those
of its folds, end with it. A step may be long: solvers ask :func:`time_is_up` between its parts, wherever they can stop.
Without a time limit, and without somebody who can stop it, the answer is always no.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar

PATIENCE = 0.5  # seconds of compilation after which it is reported
WORDS = "compiling for this processor, once"


class Watch:
    """A record of Numba's compilations, which may be nested.

    Attributes
    ----------
    state : tuple
        Seconds spent so far, and since when something is being compiled (None for nothing).
    report_at : float
        Seconds of compilation after which it is reported.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.state: tuple[float, float | None] = (0.0, None)
        self.report_at = float("inf")

    def on_start(self) -> None:
        """A compilation begins."""
        self.depth += 1
        if self.depth == 1:
            self.state = (self.state[0], time.perf_counter())
        self.report()

    def on_end(self) -> None:
        """It is done."""
        self.depth -= 1
        spent, since = self.state
        if self.depth == 0 and since is not None:
            self.state = (spent + time.perf_counter() - since, None)
        self.report()

    def report(self) -> None:
        """Report a long compilation to the listener, if there is one."""
        if self.report_at < float("inf") and seconds_compiling() >= self.report_at:
            self.report_at = float("inf")
            with contextlib.suppress(OSError, AttributeError, ValueError):  # no standard error
                print(WORDS, file=sys.stderr, flush=True)

    def read(self) -> tuple[float, float]:
        """Now, and the seconds spent compiling by now, of the same moment."""
        while True:
            state, now = self.state, time.perf_counter()
            if self.state is state:
                spent, since = state
                return now, spent if since is None else spent + now - since


WATCH = Watch()  # :mod:`saddlesvm.runtime.compiler` lets Numba report to it


def seconds_compiling() -> float:
    """Seconds that this process has spent compiling kernels."""
    return WATCH.read()[1]


def is_compiling() -> bool:
    """Whether a kernel is being compiled at this moment."""
    return WATCH.state[1] is not None


def clock() -> float:
    """Seconds since some moment, those left out in which kernels were being compiled."""
    now, spent = WATCH.read()
    return now - spent


@contextlib.contextmanager
def reporting_compilation(wanted: bool = True) -> Iterator[None]:
    """Say in a line on standard error, once, that kernels are being compiled where that takes long meanwhile.

    Within an outer call there is nothing more to say.
    """
    if not wanted or WATCH.report_at < float("inf"):
        yield
        return
    WATCH.report_at = seconds_compiling() + PATIENCE
    try:
        yield
    finally:
        WATCH.report_at = float("inf")


_began: ContextVar[float | None] = ContextVar("began", default=None)
_end_of_fit: ContextVar[float] = ContextVar("end_of_fit", default=float("inf"))
_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
_end_of_step: ContextVar[float] = ContextVar("end_of_step", default=float("inf"))


@contextlib.contextmanager
def beginning(seconds: float | None = None) -> Iterator[None]:
    """A fit begins now, which may take so many seconds (None for any); one within another ends with that at last."""
    now = clock()
    began = _began.set(now)
    end = _end_of_fit.set(_end_of_fit.get() if seconds is None else min(now + seconds, _end_of_fit.get()))
    try:
        yield
    finally:
        _began.reset(began)
        _end_of_fit.reset(end)


def end_of_fit(seconds: float | None = None) -> float:
    """The :func:`clock` at which the fit under way has to end; infinite for no limit.

    `seconds` is a limit of the caller's own, counted from the beginning of the fit, or from now outside of one.
    """
    if seconds is None:
        return _end_of_fit.get()
    began = _began.get()
    return min((clock() if began is None else began) + seconds, _end_of_fit.get())


@contextlib.contextmanager
def working_for(seconds: float, stop: threading.Event | None = None) -> Iterator[None]:
    """A step within has so many seconds, and ends where `stop`, or that of a step around it, is set."""
    before = _end_of_step.set(clock() + seconds)
    stopped = _stop.set(stop or _stop.get())
    try:
        yield
    finally:
        _end_of_step.reset(before)
        _stop.reset(stopped)


@contextlib.contextmanager
def within_share(share: float) -> Iterator[None]:
    """The work within has a share of the time that is left of the fit; its fits and steps end with it."""
    left = _end_of_fit.get() - clock()
    if left == float("inf"):
        yield
        return
    seconds = share * max(left, 0.0)
    end = _end_of_fit.set(clock() + seconds)
    try:
        with working_for(seconds):
            yield
    finally:
        _end_of_fit.reset(end)


def time_is_up(ahead: float = 0.0) -> bool:
    """Whether the present step has used its seconds, or will have in `ahead` seconds, or is to stop."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        return True
    end = _end_of_step.get()
    return end < float("inf") and clock() + ahead >= end
