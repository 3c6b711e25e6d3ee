"""What Ctrl-C means during a fit.

Whoever called a fit decides it. A fit that a person called ends with the best model so far: the
handler of the signal only sets an event, and the loop reads it between two steps, so that the state
stays consistent. A fit that a program called among many (a grid search, a pipeline, an
ensemble, a process of a pool) must not return a model that is half trained, because the program
would use it like any other: there Ctrl-C raises KeyboardInterrupt, as everywhere in Python. The
names of the packages among the callers tell which of the two a fit is.
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

# Packages that call fits as parts of something larger; `multiprocessing` runs every pool.
PROGRAMS = frozenset(
    {"dask_ml", "imblearn", "joblib", "mlxtend", "multiprocessing", "optuna", "sklearn", "skopt"}
)
# Seconds after one Ctrl-C in which the next one is meant for the program; a guess.
IMPATIENCE = 5.0

_searching: ContextVar[bool] = ContextVar("searching", default=False)


class InterruptHandler:
    """The handler of Ctrl-C: the first signal sets the event, the second raises KeyboardInterrupt.

    So does a signal soon after a signal that ended another fit: that fit was a step of the caller's
    loop.
    """

    last_press = float("-inf")

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        is_impatient = now - InterruptHandler.last_press < IMPATIENCE
        InterruptHandler.last_press = now
        # Two quick presses, or a second one for the same fit, mean now.
        if is_impatient or self.event.is_set():
            # Remove the handler before the exception, which may come while the fit installs or
            # removes it. Left behind, its event would end all fits that follow.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            raise KeyboardInterrupt
        self.event.set()


def is_called_by_program(frame: FrameType | None) -> bool:
    """Return True if a frame or a caller of it is among :data:`PROGRAMS`."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in PROGRAMS:
            return True
        frame = frame.f_back
    return False


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt in fits of which models are compared, not returned."""
    before = _searching.set(True)
    try:
        yield
    finally:
        _searching.reset(before)


@contextmanager
def catch_interrupts(stop: threading.Event | None = None) -> Iterator[threading.Event]:
    """Provide an event that the first Ctrl-C sets; the second raises KeyboardInterrupt.

    This is for fits that a person called. Only the main thread can catch signals, and only if the
    default handler is installed. Within an outer call, in any thread, all inner calls share the
    outer event, so that Ctrl-C ends all fits of a path or a search. If a program called the fit, or
    if `stop` is given, no signal handler is installed. An event that was made here is set if the
    fits end by an exception, for fits that still run in other threads.
    """
    handler = signal.getsignal(signal.SIGINT) if stop is None else None
    known = handler.event if isinstance(handler, InterruptHandler) else stop
    if known is not None:
        yield known
        return
    event = threading.Event()
    is_main = threading.current_thread() is threading.main_thread()
    is_default = handler is signal.default_int_handler
    is_person = not _searching.get() and not is_called_by_program(sys._getframe())
    catches = is_main and is_default and is_person
    if catches:
        signal.signal(signal.SIGINT, InterruptHandler(event))
    try:
        yield event
    except BaseException:
        # Other threads that share the event have to stop, too.
        event.set()
        raise
    finally:
        if catches:
            signal.signal(signal.SIGINT, signal.default_int_handler)
