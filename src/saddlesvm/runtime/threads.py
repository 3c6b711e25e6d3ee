"""Threads: when they save time, pieces of work that they share, and fits beside each other.

Kernels release the GIL, so that plain Python threads suffice.
"""

from __future__ import annotations

import contextvars
import functools
import os
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Generic, Self, TypeVar

from threadpoolctl import ThreadpoolController

Answer = TypeVar("Answer")
Part = TypeVar("Part")

# Seconds of work for each thread; with less, waking the thread costs a good part of what it saves.
WORTH = 1.0e-3
PER_THREAD = 4  # pieces of work for each such share of the seconds; a guess
MOST_PIECES = 8  # pieces of one pass; a guess
MOST_HELPERS = 64  # threads of this process that help others; a guess
PATIENCE = 0.05  # seconds after which a thread that waits for another one notices Ctrl-C; a guess
# Seconds of matrix work; with less, the threads of BLAS cost more than they save.
BLAS_WORTH = 0.02


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def blas_for(seconds: float) -> AbstractContextManager[object]:
    """Return a context in which BLAS uses a single thread if the work is too short for more."""
    return nullcontext() if seconds > BLAS_WORTH else OneThread()


class OneThread:
    """A context in which BLAS uses a single thread.

    Contexts of several threads may overlap: the first to begin notes how many threads the libraries
    had, and the last to end gives them back. (threadpoolctl's own context takes ten times as long,
    and one that ends would give the threads back to the others.)
    """

    lock: ClassVar[threading.Lock] = threading.Lock()
    n_open: ClassVar[int] = 0
    before: ClassVar[list[tuple[Any, int]]] = []

    def __enter__(self) -> None:
        with OneThread.lock:
            if OneThread.n_open == 0:
                # The libraries that have more threads.
                counts = [(library, library.get_num_threads()) for library in _blas_libraries()]
                OneThread.before = [(library, count) for library, count in counts if count != 1]
                for library, _ in OneThread.before:
                    library.set_num_threads(1)
            OneThread.n_open += 1

    def __exit__(self, *error: object) -> None:
        with OneThread.lock:
            OneThread.n_open -= 1
            if OneThread.n_open == 0:
                for library, count in OneThread.before:
                    library.set_num_threads(count)


@functools.cache
def _blas_libraries() -> list[Any]:
    """Find the BLAS libraries of this process, once: it takes longer than a factorisation."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def worthwhile(seconds: float, threads: int) -> int:
    """Return how many of `threads` a pass of `seconds` on one thread keeps busy, at least one."""
    return max(1, min(threads, int(seconds / WORTH)))


def worth_threads(seconds: float) -> bool:
    """Return True if a pass of `seconds` gains from a second thread.

    Ask this first, because counting the cores takes time.
    """
    return seconds >= 2 * WORTH


def count_pieces(seconds: float) -> int:
    """Return into how many pieces to cut work of so many seconds; 1 if threads do not pay.

    There are more pieces than threads, so that a thread without a core of its own delays a small
    piece. The number of threads does not matter: the sums of the pieces always have the same bits.
    """
    if not worth_threads(seconds):
        return 1
    return min(MOST_PIECES, int(PER_THREAD * seconds / WORTH))


def run_pieces(work: Callable[[int], Answer], pieces: int, threads: int) -> list[Answer]:
    """Return ``work(k)`` for all k below `pieces`, done by this thread and its helpers.

    A free thread takes the next piece: a helper that comes late finds nothing to do, and nobody
    waits for it.

    Raises
    ------
    Exception
        The error of the first piece that failed.
    """
    if threads == 1 or pieces <= 1:
        return [work(k) for k in range(pieces)]
    pile = _Pile(work, pieces)
    # This thread works, too, so one helper less than threads.
    helpers = [_helpers().submit(pile.take_all) for _ in range(min(threads, pieces) - 1)]
    pile.take_all()
    # A helper that has not begun finds nothing left to do.
    for helper in helpers:
        helper.cancel()
    return pile.collect()


def run_shares(
    work: Callable[[Sequence[Part]], Answer], parts: Sequence[Part], shares: int, threads: int
) -> list[Answer]:
    """Return what a function makes of each of so many shares of neighbouring parts, in order."""

    def take_share(k: int) -> Answer:
        return work(parts[k * len(parts) // shares : (k + 1) * len(parts) // shares])

    return run_pieces(take_share, shares, threads)


class _Pile(Generic[Answer]):
    """Pieces of work that several threads take from."""

    def __init__(self, work: Callable[[int], Answer], pieces: int) -> None:
        self.work = work
        self.answers = dict[int, Answer]()
        self.errors: list[BaseException] = []
        self.left = iter(range(pieces))
        self.n_open = pieces
        self.lock = threading.Lock()
        self.done = threading.Event()

    def take_all(self) -> None:
        """Do the pieces in turn until none is left."""
        while True:
            with self.lock:
                k = next(self.left, None)
            if k is None:
                return
            try:
                self.answers[k] = self.work(k)
            except BaseException as error:
                self.errors.append(error)
            # The last piece, in whichever thread, wakes the caller.
            with self.lock:
                self.n_open -= 1
                if not self.n_open:
                    self.done.set()

    def collect(self) -> list[Answer]:
        """Return the answers, as soon as all pieces are done."""
        self.done.wait()
        if self.errors:
            raise self.errors[0]
        return [self.answers[k] for k in range(len(self.answers))]


class Schedule:
    """Fits that begin in the order in which they are added, some at a time.

    Each may wait for earlier fits. With a single thread, a fit is made when it is added. Fits that
    are added within a fit under way end with that fit.

    Parameters
    ----------
    threads : int
    stop : threading.Event
        Set if a fit or the block fails: the fits under way then end.
    """

    def __init__(self, threads: int, stop: threading.Event) -> None:
        self.stop = stop
        self.blas = OneThread()
        self.pool = None
        if threads > 1:
            self.pool = ThreadPoolExecutor(threads, thread_name_prefix="saddlesvm-fits")

    def __enter__(self) -> Self:
        # Fits side by side leave no core to the threads of BLAS.
        if self.pool is not None:
            self.blas.__enter__()
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        """Wait for the fits; if an exception ends the block, only for fits that have begun."""
        if kind is not None:
            self.stop.set()
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=kind is not None)
            self.blas.__exit__()

    def add(self, fit: Callable[..., Answer], *given: object) -> Future[Answer]:
        """Return a future of the fit, which is done already if there is a single thread."""
        if self.pool is not None:
            # The limits of the fit under way are variables of the context.
            context = contextvars.copy_context()
            return self.pool.submit(context.run, self._run, fit, *given)
        future: Future[Answer] = Future()
        future.set_result(fit(*given))
        return future

    def _run(self, fit: Callable[..., Answer], *given: object) -> Answer:
        """Make a fit, and stop the others if it fails."""
        try:
            return fit(*given)
        except BaseException:
            self.stop.set()
            raise


def wait_for_some(fits: Collection[Future[Answer]]) -> list[Future[Answer]]:
    """Wait until a fit has ended, and return all that have; Python handles signals meanwhile."""
    while True:
        ended = [fit for fit in fits if fit.done()]
        if ended:
            return ended
        wait(fits, PATIENCE, FIRST_COMPLETED)


def results_of(fits: Iterable[Future[Answer]]) -> list[Answer]:
    """Return the results of fits that have ended, or raise the first error."""
    return [wait_for_some([fit])[0].result() for fit in fits]


@functools.cache
def _helpers() -> ThreadPoolExecutor:
    """Return the threads that help, which start when they are needed, and stay."""
    return ThreadPoolExecutor(MOST_HELPERS, thread_name_prefix="saddlesvm")


# A forked process does not have the threads of its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)
