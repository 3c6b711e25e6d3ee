"""Ctrl-C during a fit: a flag that the loop reads between two steps, so that no state is torn."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible(stop: threading.Event | None = None) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; a second one raises KeyboardInterrupt at once.

    Only the main thread can catch signals, and only where the default handler is in place; elsewhere, and where
    `stop` is handed in by an outer call, the event is just that.
    """
    event = threading.Event() if stop is None else stop
    ours = stop is None and threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield event
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
