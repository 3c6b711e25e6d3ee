"""When the present fit began, when it has to end, and until when its present step may work.

A time limit counts from the beginning of a fit, the preparation of the data included. Fits within a fit, such as those
of its folds, end with it. A step may be long: solvers ask :func:`time_is_up` between its parts, wherever they can stop.
Without a time limit, and without somebody who can stop it, the answer is always no.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from saddlesvm.runtime.compiling import clock

__all__ = ["beginning", "end_of_fit", "time_is_up", "working_for"]

_began: ContextVar[float | None] = ContextVar("began", default=None)
_end_of_fit: ContextVar[float] = ContextVar("end_of_fit", default=float("inf"))
_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
_end_of_step: ContextVar[float] = ContextVar("end_of_step", default=float("inf"))


@contextmanager
def beginning(seconds: float | None = None) -> Iterator[None]:
    """A fit begins now, which may take so many seconds (None for any); one within another ends with that at last."""
    began = _began.set(clock())
    end = _end_of_fit.set(end_of_fit(seconds))
    try:
        yield
    finally:
        _began.reset(began)
        _end_of_fit.reset(end)


def end_of_fit(seconds: float | None = None) -> float:
    """The :func:`~saddlesvm.runtime.compiling.clock` at which the fit under way has to end; infinite for no limit.

    `seconds` is a limit of the caller's own, counted from the beginning of the fit, or from now outside of one.
    """
    if seconds is None:
        return _end_of_fit.get()
    began = _began.get()
    return min((clock() if began is None else began) + seconds, _end_of_fit.get())


@contextmanager
def working_for(seconds: float, stop: threading.Event | None = None) -> Iterator[None]:
    """A step within has so many seconds, and ends where `stop`, or that of a step around it, is set."""
    before = _end_of_step.set(clock() + seconds)
    stopped = _stop.set(stop or _stop.get())
    try:
        yield
    finally:
        _end_of_step.reset(before)
        _stop.reset(stopped)


def time_is_up(ahead: float = 0.0) -> bool:
    """Whether the present step has used its seconds, or will have in `ahead` seconds, or is to stop."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        return True
    end = _end_of_step.get()
    return end < float("inf") and clock() + ahead >= end
