"""Threads that meet often: on cores, and in cache lines, of their own.

Two of them must not share a core while another core is idle, but Linux may leave them so for a tenth of a second. Where
the system says which core a thread is on, a thread that finds its core taken moves to a free one; after that it may run
anywhere again. On other systems this module does nothing.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def _core_finder() -> Callable[[], int]:
    """The C library's ``sched_getcpu``; where there is none, a function that returns -1."""
    if not hasattr(os, "sched_setaffinity"):
        return lambda: -1
    found: Callable[[], int] | None = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    return found or (lambda: -1)


_core = _core_finder()


def take_core(taken: set[int]) -> None:
    """Note in `taken` which core the calling thread is on, after moving it to a free one where another has it."""
    core = _core()
    if core in taken:
        allowed = os.sched_getaffinity(0)
        free = allowed - taken
        if not free:
            return
        os.sched_setaffinity(0, free)
        core = _core()
        os.sched_setaffinity(0, allowed)
    if core >= 0:
        taken.add(core)


def apart(rows: np.ndarray) -> np.ndarray:
    """A copy of a two-dimensional array whose rows are at least a cache line apart: threads write to one each."""
    copy = np.zeros((rows.shape[0], rows.shape[1] + -(-128 // rows.itemsize)), rows.dtype)
    copy[:, : rows.shape[1]] = rows
    return copy


def side_by_side(pool: ThreadPoolExecutor, work: Callable[[int], None], threads: int) -> None:
    """Begin ``work(k)`` for every k, and return when ``work(0)``, in the caller's thread, is done.

    The work is such that the first one to come does all of it, and that whoever comes later finds nothing to do. So
    nobody waits for the others: not for one that the system gives no core, nor for one that fails.
    """
    taken: set[int] = set()

    def begin(k: int) -> None:
        take_core(taken)
        work(k)

    others = [pool.submit(begin, k) for k in range(1, threads)]
    begin(0)
    for other in others:
        other.cancel()
