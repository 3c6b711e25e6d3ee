"""Tasks: what they find comes with what it cost, weights travel where they count, and long work ends early.

A partition of a text collection has a third of the words, or a hundredth. It gets w at these places, and the change
that it proposes is zero at all others.

A task ends at a limit of time, or when the client asks for it. A task that runs cannot be cancelled. So each fit on a
cluster has a name; long tasks check an event of that name, which the client sets in every worker's
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

import numpy as np

from saddlesvm.rows.layouts import Rows
from saddlesvm.runtime.clock import limit_step

FIGURES = 32  # bytes of the four numbers that go with an answer
WORTH = 0.6  # share of the places below which numbers and places take fewer bytes than all numbers: 12 bytes for 8
NONE = np.empty(0, dtype=np.int32)
REMEMBERED = 1000  # names of fits that were halted, for tasks of theirs that have not begun

_lock = threading.Lock()
_events: WeakValueDictionary[str, threading.Event] = WeakValueDictionary()
_halted: deque[str] = deque(maxlen=REMEMBERED)


class Answer(NamedTuple):
    """The answer of a task, or of the tasks of several partitions together, and what it cost.

    Attributes
    ----------
    found : object
        What was asked for.
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


def is_task(block: Any) -> bool:
    """Whether a block of rows is to be computed, or is being computed, on a cluster: a delayed value or a future."""
    return hasattr(block, "__dask_graph__") or (hasattr(block, "key") and hasattr(block, "client"))


def bytes_of(found: Any) -> int:
    """Bytes of the arrays of an object that travels, besides which it has a few numbers at most."""
    if isinstance(found, (tuple, list)) and not hasattr(found, "nbytes"):
        return sum(map(bytes_of, found))
    return int(getattr(found, "nbytes", 0))


def measured(work: Callable[..., Any]) -> Callable[..., Answer]:
    """A task that does `work`, and tells what that cost."""

    @functools.wraps(work)
    def task(*arguments: Any, **options: Any) -> Answer:
        began = time.perf_counter()
        found = work(*arguments, **options)
        spent = time.perf_counter() - began
        return Answer(found, bytes_of(found) + FIGURES, spent, spent, 1)

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
    with limit_step(until.seconds, stop):
        yield stop


class Places(NamedTuple):
    """Vectors of length `width` that are zero outside some places.

    Attributes
    ----------
    values : ndarray of shape (problems, k)
    places : ndarray of shape (k,), int32
        Ascending.
    width : int
    """

    values: np.ndarray
    places: np.ndarray
    width: int

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.values.nbytes + self.places.nbytes


Vectors = np.ndarray | Places


def whole(vectors: Vectors) -> np.ndarray:
    """All places, shape (problems, width)."""
    if isinstance(vectors, np.ndarray):
        return vectors
    all_of = np.zeros((len(vectors.values), vectors.width))
    all_of[:, vectors.places] = vectors.values
    return all_of


def at(vectors: np.ndarray, places: np.ndarray) -> Vectors:
    """The vectors at these places, as far as the others are of no use; all of them where `places` is empty."""
    if not places.size:
        return vectors
    return Places(np.ascontiguousarray(vectors[:, places]), places, vectors.shape[1])


def without_zeros(vectors: np.ndarray) -> Vectors:
    """The places where a vector is not zero, if that is shorter."""
    places = np.flatnonzero(vectors.any(axis=0)).astype(np.int32)
    return at(vectors, places) if 0 < places.size < WORTH * vectors.shape[1] else vectors


def added(first: Vectors, second: Vectors) -> Vectors:
    """The sum, without zeros where both are."""
    total = whole(first) + whole(second)
    both = isinstance(first, Places) and isinstance(second, Places)
    return without_zeros(total) if both else total


def touched(X: Rows) -> np.ndarray:
    """The places of w that some rows have, the intercept's included; empty where they have most of them."""
    if not X.sparse or not X.indices.size:
        return NONE
    width = X.n_features + 1
    places = np.append(np.unique(X.indices), width - 1).astype(np.int32)
    return places if places.size < WORTH * width else NONE
