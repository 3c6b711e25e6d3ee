"""Threads: when they save time, and how they end (kernels release the GIL, so plain Python threads suffice)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from threadpoolctl import ThreadpoolController

WORTH = 1.5e-3  # seconds of work per thread; with less, starting the thread costs at least what it saves
BLAS_WORTH = 0.02  # seconds of matrix work; with less, the threads of BLAS cost more than they save


def blas_for(seconds: float) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread if the work takes too few seconds to gain from more."""
    return nullcontext() if seconds > BLAS_WORTH else _blas().limit(limits=1, user_api="blas")


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
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process, kept: finding them takes longer than a small factorisation."""
    return ThreadpoolController()


def worthwhile(seconds: float, threads: int) -> int:
    """How many of `threads` a pass that takes one thread `seconds` keeps busy; at least one."""
    return max(1, min(threads, int(seconds / WORTH)))


def worth_threads(seconds: float) -> bool:
    """Whether a pass of `seconds` gains from a second thread; asked first, because counting the cores takes time."""
    return seconds >= 2 * WORTH
