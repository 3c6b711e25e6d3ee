"""Threads: when they save time, and how they end; and what Ctrl-C means during a fit.

Kernels release the GIL, so plain Python threads suffice.

Whoever called a fit decides what Ctrl-C means. A fit that a person called ends with the best model so far. The handler
of the signal only sets an event; the loop reads it between two steps, so that the state stays consistent. A fit that a
program called as one of many (a grid search, a pipeline, an ensemble, a process of a pool) must not return a model that
is half trained, because the program would use it like any other: there Ctrl-C raises KeyboardInterrupt, as in all of
Python. The names of the packages in the stack of callers tell which of the two a fit is.
"""

from __future__ import annotations

import contextvars
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import FrameType
from typing import Any, Generic, Self, TypeVar

from threadpoolctl import ThreadpoolController

Answer = TypeVar("Answer")

WORTH = 1.0e-3  # seconds of work per thread; with less, waking the thread costs a good part of what it saves
PER_THREAD, MOST_PIECES = 4, 8  # pieces of work for each such share of the seconds; pieces at most
MOST_HELPERS = 64  # threads of this process that help others
PATIENCE = 0.05  # seconds after which who waits for another thread notices Ctrl-C
BLAS_WORTH = 0.02  # seconds of matrix work; with less, the threads of BLAS cost more than they save


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def blas_for(seconds: float) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread if the work takes too few seconds to gain from more."""
    return nullcontext() if seconds > BLAS_WORTH else OneThread()


class OneThread:
    """A context in which BLAS uses one thread. (That of threadpoolctl takes ten times as long as this one, which only
    asks where it has nothing to change.)"""

    def __enter__(self) -> None:
        self.before = []
        for library in _blas():
            if (count := library.get_num_threads()) != 1:
                self.before.append((library, count))
                library.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        for library, count in self.before:
            library.set_num_threads(count)


@contextmanager
def threads_ahead(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that prepare what a generator needs next; nobody waits for them at the end.

    An abandoned generator is closed by the garbage collector, at any moment: also in a thread that is about to start
    and holds a lock of the interpreter, which the other threads need to end. Waiting for them there would never end.
    """
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@functools.cache
def _blas() -> list[Any]:
    """The BLAS libraries of this process, kept: finding them takes longer than a small factorisation."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def worthwhile(seconds: float, threads: int) -> int:
    """The number of `threads` that a pass of `seconds` on one thread keeps busy; at least one."""
    return max(1, min(threads, int(seconds / WORTH)))


def worth_threads(seconds: float) -> bool:
    """Whether a pass of `seconds` gains from a second thread; asked first, because counting the cores takes time."""
    return seconds >= 2 * WORTH


def pieces_of(seconds: float) -> int:
    """The number of pieces to cut work of so many seconds into, for any number of threads; 1 where threads do not pay.

    There are more pieces than threads, so that a thread without a core of its own holds up one small piece.
    """
    return min(MOST_PIECES, int(PER_THREAD * seconds / WORTH)) if worth_threads(seconds) else 1


def shared(work: Callable[[int], Answer], pieces: int, threads: int) -> list[Answer]:
    """``work(k)`` for all k below `pieces`, in their order, each done by the caller or by one of its helpers.

    Whoever is free takes the next piece: a helper that comes late finds nothing to do, and nobody waits for it.

    Raises
    ------
    Exception
        That of the first piece that failed.
    """
    if threads == 1 or pieces == 1:
        return [work(k) for k in range(pieces)]
    pile = _Pile(work, pieces)
    helpers = [_helpers().submit(pile.take_all) for _ in range(min(threads, pieces) - 1)]
    pile.take_all()
    for helper in helpers:
        helper.cancel()
    return pile.collected()


class _Pile(Generic[Answer]):
    """Pieces of work that several threads take from."""

    def __init__(self, work: Callable[[int], Answer], pieces: int) -> None:
        self.work, self.answers = work, dict[int, Answer]()
        self.errors: list[BaseException] = []
        self.left, self.open = iter(range(pieces)), pieces
        self.lock, self.done = threading.Lock(), threading.Event()

    def take_all(self) -> None:
        """Do one piece after the other until none is left."""
        while (k := self._next()) is not None:
            try:
                self.answers[k] = self.work(k)
            except BaseException as error:
                self.errors.append(error)
            with self.lock:
                self.open -= 1
                if not self.open:
                    self.done.set()

    def _next(self) -> int | None:
        with self.lock:
            return next(self.left, None)

    def collected(self) -> list[Answer]:
        """The answers, when all pieces are done."""
        self.done.wait()
        if self.errors:
            raise self.errors[0]
        return [self.answers[k] for k in range(len(self.answers))]


class Schedule:
    """Fits that begin in the order in which they are added, so many at a time; each may wait for those before it.

    With one thread, a fit is made when it is added. Fits that are added within a fit under way end with that one.

    Parameters
    ----------
    threads : int
    stop : threading.Event
        Set where a fit or the block fails: the fits under way then end.
    """

    def __init__(self, threads: int, stop: threading.Event) -> None:
        self.stop = stop
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="saddlesvm-fits") if threads > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *error: object) -> None:
        """Wait for the fits; where an exception ends the block, only for those that have begun."""
        if kind is not None:
            self.stop.set()
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=kind is not None)

    def add(self, fit: Callable[..., Answer], *given: Any) -> Future[Answer]:
        """What the fit will return, or has returned where there is one thread."""
        if self.pool is not None:
            return self.pool.submit(contextvars.copy_context().run, self._made, fit, *given)
        made: Future[Answer] = Future()
        made.set_result(fit(*given))
        return made

    def _made(self, fit: Callable[..., Answer], *given: Any) -> Answer:
        try:
            return fit(*given)
        except BaseException:
            self.stop.set()
            raise


def some_ended(fits: Collection[Future[Answer]]) -> list[Future[Answer]]:
    """Those fits that have ended, one at least; the signal handlers of Python run while this waits for it."""
    while not (ended := [fit for fit in fits if fit.done()]):
        wait(fits, PATIENCE, FIRST_COMPLETED)
    return ended


def results_of(fits: Iterable[Future[Answer]]) -> list[Answer]:
    """What fits return, when all have ended, in their order; or the exception of the first that failed."""
    return [some_ended([fit])[0].result() for fit in fits]


@functools.cache
def _helpers() -> ThreadPoolExecutor:
    """The threads that help, started when they are asked for and kept."""
    return ThreadPoolExecutor(MOST_HELPERS, thread_name_prefix="saddlesvm")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # a child has none of its parent's threads


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
    handler = signal.getsignal(signal.SIGINT) if stop is None else None
    known = handler.event if isinstance(handler, Handler) else stop
    if known is not None:
        yield known
        return
    event, ours = threading.Event(), threading.current_thread() is threading.main_thread()
    plain = handler is signal.default_int_handler
    caught = ours and plain and not _searching.get() and not called_by_a_program(sys._getframe())
    if caught:
        signal.signal(signal.SIGINT, Handler(event))
    try:
        yield event
    except BaseException:
        event.set()
        raise
    finally:
        if caught:
            signal.signal(signal.SIGINT, signal.default_int_handler)
