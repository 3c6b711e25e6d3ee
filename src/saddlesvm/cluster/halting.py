"""Tasks that work for long and end early: at a limit of time, or when the client asks for it.

A task that runs cannot be cancelled. So each fit on a cluster has a name; tasks that may take long look at an event of
that name, which the client sets in every worker's process, beside whatever runs there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakValueDictionary

from saddlesvm.runtime.deadline import working_for

REMEMBERED = 1000  # names of fits that were halted, for tasks of theirs that have not begun

_lock = threading.Lock()
_events: WeakValueDictionary[str, threading.Event] = WeakValueDictionary()
_halted: deque[str] = deque(maxlen=REMEMBERED)


class Until(NamedTuple):
    """The time that a task may take: so many seconds, while the fit of that name is not halted."""

    name: str = ""
    seconds: float = float("inf")


ANY_TIME = Until()


def event_of(name: str) -> threading.Event:
    """The event in this process that is set when the fit of a name is halted."""
    with _lock:
        event = _events.get(name) or threading.Event()
        _events[name] = event
        if name in _halted:
            event.set()
    return event


def halt(name: str) -> None:
    """End the tasks of a fit in this process, those that have not begun as soon as they begin."""
    with _lock:
        _halted.append(name)
        event = _events.get(name)
    if event is not None:
        event.set()


@contextmanager
def working_until(until: Until) -> Iterator[threading.Event]:
    """The event that ends the work within; :func:`~saddlesvm.runtime.deadline.time_is_up` knows of it, too."""
    stop = event_of(until.name)
    with working_for(until.seconds, stop):
        yield stop
