"""Threads that meet often must not share a core while another is idle: Linux may leave them so for a tenth of a second.

Where the system says which core a thread is on, the one that finds it taken moves to a free one, and may then run
anywhere again. Elsewhere nothing is done.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable


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
