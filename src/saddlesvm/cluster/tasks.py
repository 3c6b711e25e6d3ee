"""Tasks: what they find comes with what it cost, and those that work for long end early.

A task ends at a limit of time, or when the client asks for it. A task that runs cannot be cancelled. So each fit on a
cluster has a name; tasks that may take long look at an event of that name, which the client sets in every worker's
process, beside whatever runs there.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from saddlesvm.runtime.clock import working_for

FIGURES = 32  # bytes of the four numbers that go with an answer
REMEMBERED = 1000  # names of fits that were halted, for tasks of theirs that have not begun

_lock = threading.Lock()
_events: WeakValueDictionary[str, threading.Event] = WeakValueDictionary()
_halted: deque[str] = deque(maxlen=REMEMBERED)


class Answer(NamedTuple):
    """The answer of a task, or of the tasks of several partitions together, and what it cost.

    Attributes
    ----------
    found : object
        What was asked for; its ``nbytes`` are the bytes that travel.
    sent : int
        Bytes that the partitions send.
    work, longest : float
        Seconds of work, summed over the partitions, and of the slowest partition.
    parts : int
        Number of partitions.
    """

    found: Any
    sent: int
    work: float
    longest: float
    parts: int

    @property
    def nbytes(self) -> int:
        """Bytes that a partition sends, in the mean."""
        return self.sent // max(self.parts, 1)


def measured(work: Callable[..., Any]) -> Callable[..., Answer]:
    """A task that does `work`, and tells what that cost."""

    @functools.wraps(work)
    def task(*arguments: Any, **options: Any) -> Answer:
        began = time.perf_counter()
        found = work(*arguments, **options)
        spent = time.perf_counter() - began
        return Answer(found, found.nbytes + FIGURES, spent, spent, 1)

    return task


def combined(add: Callable[[list[Any]], Any]) -> Callable[[list[Answer]], Answer]:
    """A task that makes one answer of several; `add` makes one of what they found, and changes none of them."""

    @functools.wraps(add)
    def task(answers: list[Answer]) -> Answer:
        found = add([one.found for one in answers])
        _, sent, work, seconds, parts = zip(*answers, strict=True)
        return Answer(found, sum(sent), sum(work), max(seconds), sum(parts))

    return task


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
    """The event that ends the work within; :func:`~saddlesvm.runtime.clock.time_is_up` knows of it, too."""
    stop = event_of(until.name)
    with working_for(until.seconds, stop):
        yield stop
