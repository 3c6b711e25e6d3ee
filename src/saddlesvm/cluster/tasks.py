"""Tasks of a cluster: an answer comes with its costs, and long work ends early.

A task ends at a limit of time, or if the client asks for it. A running task cannot be cancelled. So
each fit on a cluster has a name, and long tasks check an event of that name, which the client sets
in the process of every worker.
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

from saddlesvm.runtime.clock import limit_step

FIGURES = 32  # bytes of the four numbers that go with an answer; derived
REMEMBERED = 1000  # halted fits whose tasks may still begin; a guess

_lock = threading.Lock()
_events: WeakValueDictionary[str, threading.Event] = WeakValueDictionary()
_halted: deque[str] = deque(maxlen=REMEMBERED)


class Answer(NamedTuple):
    """The answer of a task, or of the tasks of several partitions together, and what it cost.

    Attributes
    ----------
    found : object
        The answer itself.
    sent : int
        Bytes that the partitions send.
    seconds : float
        Seconds of work, of the slowest partition.
    """

    found: Any
    sent: int
    seconds: float


def is_task(block: object) -> bool:
    """Return True if a cluster computes a block of rows: for a delayed value or a future."""
    return hasattr(block, "__dask_graph__") or (hasattr(block, "key") and hasattr(block, "client"))


def count_bytes(found: object) -> int:
    """Return the bytes of the arrays of an object that travels."""
    if isinstance(found, (tuple, list)) and not hasattr(found, "nbytes"):
        return sum(map(count_bytes, found))
    return int(getattr(found, "nbytes", 0))


def measure_cost(work: Callable[..., object]) -> Callable[..., Answer]:
    """Let a task return an Answer: the result of `work`, and what it cost."""

    @functools.wraps(work)
    def task(*arguments: object, **options: object) -> Answer:
        began = time.perf_counter()
        found = work(*arguments, **options)
        spent = time.perf_counter() - began
        return Answer(found, count_bytes(found) + FIGURES, spent)

    return task


def add_costs(add: Callable[[list[Any]], Any]) -> Callable[[list[Answer]], Answer]:
    """Let a task make one Answer of several; `add` combines their results."""

    @functools.wraps(add)
    def task(answers: list[Answer]) -> Answer:
        found = add([answer.found for answer in answers])
        sent = sum(answer.sent for answer in answers)
        return Answer(found, sent, max(answer.seconds for answer in answers))

    return task


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
