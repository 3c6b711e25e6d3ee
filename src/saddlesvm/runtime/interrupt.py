"""Ctrl-C during a fit sets a flag; the loop reads it between two steps, so that the state stays consistent."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Handler:
    """The signal handler of Ctrl-C: the first signal sets the event, a second one raises KeyboardInterrupt."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()


@contextmanager
def interruptible(stop: threading.Event | None = None) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; a second one raises KeyboardInterrupt at once.

    Only the main thread can catch signals, and only where the default handler is in place. Within an outer call, in any
    thread, all inner calls share the outer event, so that Ctrl-C ends all the fits of a path or a search. Elsewhere,
    and where `stop` is given, no signal handler is installed.
    """
    handler = signal.getsignal(signal.SIGINT)
    if stop is None and isinstance(handler, Handler):
        yield handler.event
        return
    event = threading.Event() if stop is None else stop
    ours = stop is None and threading.current_thread() is threading.main_thread()
    if not ours or handler is not signal.default_int_handler:
        yield event
        return
    signal.signal(signal.SIGINT, Handler(event))
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
