"""Threads: when they are worth it, and how they end (kernels release the GIL, so plain ones do)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from threadpoolctl import ThreadpoolController

WORTH = 1.5e-3  # seconds of work for each thread, below which starting it costs what it saves, or more
BLAS_WORTH = 0.02  # seconds of matrix work, below which the threads of BLAS cost more than they save


def blas_for(seconds: float) -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread if the work will take no longer than its threads are worth."""
    return nullcontext() if seconds > BLAS_WORTH else _blas().limit(limits=1, user_api="blas")


@contextmanager
def threads_ahead(count: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for what a generator needs next; at the end nobody waits for them.

    An abandoned generator is closed by the garbage collector, at any moment: also in a thread that is about to start
    and holds a lock of Python's own, without which the others cannot end. Waiting for them would be for ever.
    """
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@functools.cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process: looking for them takes longer than a small factor."""
    return ThreadpoolController()


def worthwhile(seconds: float, threads: int) -> int:
    """How many of `threads` a pass of so many seconds is work for; at least one."""
    return max(1, min(threads, int(seconds / WORTH)))


def worth_threads(seconds: float) -> bool:
    """Whether a pass of so many seconds is work for two threads: to count the cores takes time."""
    return seconds >= 2 * WORTH
