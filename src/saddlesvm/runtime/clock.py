"""The clock of fits, which stops while kernels are compiled, and the time limits of fits and steps.

Numba says when it begins to compile a function and when it is done; kernels that it finds in its
cache are not compiled. Only a single thread compiles at a time, and hardly anything else runs
meanwhile. Fits are timed and limited by :func:`clock`, and the user is told of a long compilation.

A time limit counts from the beginning of a fit, the preparation of the data included. Fits within a
fit, such as the fits of its folds, end with it. A step may be long: solvers call :func:`time_is_up`
between its parts, wherever they can stop. Without a time limit, and without anybody who can stop
it, it always returns False.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar

PATIENCE = 0.5  # seconds of compilation after which it is reported; a guess
COMPILING_WORDS = "compiling for this processor, once"
NEVER = float("inf")
# The limits of the fit and the step under way, by :func:`clock`.
_began: ContextVar[float | None] = ContextVar("began", default=None)
_end_of_fit: ContextVar[float] = ContextVar("end_of_fit", default=NEVER)
_end_of_step: ContextVar[float] = ContextVar("end_of_step", default=NEVER)
_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


class CompilationWatch:
    """A record of Numba's compilations, which may be nested.

    Attributes
    ----------
    state : tuple
        Seconds spent so far, and the time since when something is being compiled, or None.
    report_at : float
        Seconds of compilation after which it is reported.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.state: tuple[float, float | None] = (0.0, None)
        self.report_at = NEVER

    def on_start(self) -> None:
        """Note that a compilation begins."""
        self.depth += 1
        if self.depth == 1:
            self.state = (self.state[0], time.perf_counter())
        self.report()

    def on_end(self) -> None:
        """Note that a compilation is done."""
        self.depth -= 1
        spent, since = self.state
        if self.depth == 0 and since is not None:
            self.state = (spent + time.perf_counter() - since, None)
        self.report()

    def report(self) -> None:
        """Report a long compilation on standard error, if anybody wants to know."""
        if self.report_at < NEVER and seconds_compiling() >= self.report_at:
            self.report_at = NEVER
            # There may be no standard error.
            with contextlib.suppress(OSError, AttributeError, ValueError):
                print(COMPILING_WORDS, file=sys.stderr, flush=True)

    def read(self) -> tuple[float, float]:
        """Return the time, and the seconds spent compiling until then."""
        # Another thread may change the state between the two: read again then.
        while True:
            state = self.state
            now = time.perf_counter()
            if self.state is state:
                spent, since = state
                return now, spent if since is None else spent + now - since


WATCH = CompilationWatch()  # :mod:`saddlesvm.runtime.compiler` lets Numba report to it


def seconds_compiling() -> float:
    """Return the seconds that this process has spent compiling kernels."""
    return WATCH.read()[1]


def is_compiling() -> bool:
    """Return True if a kernel is being compiled at this moment."""
    return WATCH.state[1] is not None


def clock() -> float:
    """Return seconds since some moment, without the time in which kernels were compiled."""
    now, spent = WATCH.read()
    return now - spent


@contextlib.contextmanager
def report_compilation(wanted: bool = True) -> Iterator[None]:
    """Say on standard error, once, that kernels are being compiled, if that takes long.

    Within an outer call there is nothing more to say.
    """
    if not wanted or WATCH.report_at < NEVER:
        yield
        return
    # Only what is compiled from now on counts.
    WATCH.report_at = seconds_compiling() + PATIENCE
    try:
        yield
    finally:
        WATCH.report_at = NEVER


@contextlib.contextmanager
def begin_fit(seconds: float | None = None) -> Iterator[None]:
    """Begin a fit that may take so many seconds (None for no limit).

    A fit within another fit ends with that fit at the latest.
    """
    now = clock()
    end = _end_of_fit.get()
    if seconds is not None:
        # A fit within another one may not end later than that.
        end = min(now + seconds, end)
    began_before = _began.set(now)
    end_before = _end_of_fit.set(end)
    try:
        yield
    finally:
        _began.reset(began_before)
        _end_of_fit.reset(end_before)


def end_of_fit(seconds: float | None = None) -> float:
    """Return the :func:`clock` at which the fit under way has to end; infinite for no limit.

    `seconds` is a limit of the caller, from the beginning of the fit, or from now without a fit.
    """
    if seconds is None:
        return _end_of_fit.get()
    began = _began.get()
    start = clock() if began is None else began
    return min(start + seconds, _end_of_fit.get())


@contextlib.contextmanager
def limit_step(seconds: float, stop: threading.Event | None = None) -> Iterator[None]:
    """Limit a step to so many seconds; it also ends if `stop`, or an outer `stop`, is set."""
    end_before = _end_of_step.set(clock() + seconds)
    stop_before = _stop.set(stop or _stop.get())
    try:
        yield
    finally:
        _end_of_step.reset(end_before)
        _stop.reset(stop_before)


@contextlib.contextmanager
def limit_to_share(share: float) -> Iterator[None]:
    """Limit fits and steps to a share of the time that is left of the fit."""
    left = _end_of_fit.get() - clock()
    if left == NEVER:
        yield
        return
    seconds = share * max(left, 0.0)
    end_before = _end_of_fit.set(clock() + seconds)
    try:
        with limit_step(seconds):
            yield
    finally:
        _end_of_fit.reset(end_before)


def time_is_up(ahead: float = 0.0) -> bool:
    """Return True if the step has to end now, or in `ahead` seconds."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        return True
    # Reading the clock takes longer than this comparison.
    end = _end_of_step.get()
    return end < NEVER and clock() + ahead >= end
