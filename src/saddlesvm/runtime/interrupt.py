"""Ctrl-C during a fit: whoever called the fit decides what it means.

A fit that a person called ends with the best model so far. The handler of the signal only sets an event; the loop reads
it between two steps, so that the state stays consistent. A fit that a program called as one of many (a grid search, a
pipeline, an ensemble, a process of a pool) must not return a model that is half trained, because the program would use
it like any other: there Ctrl-C raises KeyboardInterrupt, as in all of Python. The names of the packages in the stack of
callers tell which of the two a fit is.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

# Packages that call fits as parts of something larger. `multiprocessing` runs the processes of every pool.
PROGRAMS = frozenset({"dask_ml", "imblearn", "joblib", "mlxtend", "multiprocessing", "optuna", "sklearn", "skopt"})
DECORATORS = ("sklearn.callback",)  # scikit-learn's code around every fit that has its callbacks, also a person's
IMPATIENCE = 5.0  # seconds after one Ctrl-C in which the next one is meant for the program, whatever it does by then

_searching: ContextVar[bool] = ContextVar("searching", default=False)


class Handler:
    """The signal handler of Ctrl-C: the first signal sets the event, a second one raises KeyboardInterrupt.

    So does a signal that comes soon after one that ended another fit: that one was a step of the caller's loop.
    """

    last_press = float("-inf")

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        impatient = now - Handler.last_press < IMPATIENCE
        Handler.last_press = now
        if impatient or self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()


def called_by_a_program(frame: FrameType | None) -> bool:
    """Whether one of :data:`PROGRAMS` is among a frame and its callers."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in PROGRAMS and not module.startswith(DECORATORS):
            return True
        frame = frame.f_back
    return False


@contextmanager
def part_of_a_search() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt in the fits within, whose models are compared and not returned."""
    before = _searching.set(True)
    try:
        yield
    finally:
        _searching.reset(before)


@contextmanager
def interruptible(stop: threading.Event | None = None) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets where a person called the fit; a second one raises KeyboardInterrupt at once.

    Only the main thread can catch signals, and only where the default handler is in place. Within an outer call, in any
    thread, all inner calls share the outer event, so that Ctrl-C ends all the fits of a path or a search. Elsewhere,
    where a program called the fit, and where `stop` is given, no signal handler is installed. An event that was made
    here is set where the fits end by an exception, for those that still run in other threads.
    """
    handler = signal.getsignal(signal.SIGINT)
    if stop is None and isinstance(handler, Handler):
        yield handler.event
        return
    if stop is not None:
        yield stop
        return
    event = threading.Event()
    try:
        with _handled(event):
            yield event
    except BaseException:
        event.set()
        raise


@contextmanager
def _handled(event: threading.Event) -> Iterator[None]:
    """Let Ctrl-C set an event, where it may."""
    ours = threading.current_thread() is threading.main_thread()
    plain = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not (ours and plain) or _searching.get() or called_by_a_program(sys._getframe()):
        yield
        return
    signal.signal(signal.SIGINT, Handler(event))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
