"""Tasks of a cluster that end early: at a limit of time, or if the client asks for it.

A running task cannot be cancelled. So each fit on a cluster has a name, and long tasks check an
event of that name, which the client sets in the process of every worker.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakValueDictionary

from saddlesvm.runtime.clock import limit_step

REMEMBERED = 1000  # halted fits whose tasks may still begin; a guess

_lock = threading.Lock()
_events: WeakValueDictionary[str, threading.Event] = WeakValueDictionary()
_halted: deque[str] = deque(maxlen=REMEMBERED)


class OutOfTime(Exception):
    """No result was waited for any longer, because the time of the fit is over."""


class Stopped(KeyboardInterrupt):
    """No result was waited for any longer, because Ctrl-C ended the fit."""


def is_task(block: object) -> bool:
    """Return True if a cluster computes a block of rows: for a delayed value or a future."""
    return hasattr(block, "__dask_graph__") or (hasattr(block, "key") and hasattr(block, "client"))


class TaskLimit(NamedTuple):
    """The time that a task may take: so many seconds, unless the fit of that name is halted."""

    name: str = ""
    seconds: float = float("inf")


NO_LIMIT = TaskLimit()


def event_of(name: str) -> threading.Event:
    """Return the event in this process that is set when the fit of a name is halted."""
    with _lock:
        event = _events.get(name) or threading.Event()
        _events[name] = event
        if name in _halted:
            event.set()
    return event


def halt(name: str) -> None:
    """End the tasks of a fit in this process, also tasks that have not begun."""
    with _lock:
        _halted.append(name)
        event = _events.get(name)
    if event is not None:
        event.set()


@contextmanager
def limit_task(limit: TaskLimit) -> Iterator[threading.Event]:
    """Limit the work within; yield the event that ends it (``time_is_up`` checks it, too)."""
    stop = event_of(limit.name)
    with limit_step(limit.seconds, stop):
        yield stop
