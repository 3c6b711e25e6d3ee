"""The time that goes into compiling kernels: kept apart from the time of fits, and reported to the user who waits.

Numba says when it begins to compile a function and when it is done; what it finds in its cache is not compiled. Only
one thread compiles at a time, and hardly anything else runs meanwhile. So a clock that stands still during compilation
is the one by which fits are timed and limited: :func:`clock`.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

__all__ = ["clock", "is_compiling", "seconds_compiling", "telling"]

PATIENCE = 0.5  # seconds of compilation after which it is told
WORDS = "compiling for this processor, once (`saddlesvm warmup` does it ahead)"


class Watch:
    """A record of Numba's compilations, which may be nested.

    Attributes
    ----------
    state : tuple
        Seconds spent so far, and since when something is being compiled (None for nothing).
    told_at : float
        Seconds of compilation after which it is reported.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.state: tuple[float, float | None] = (0.0, None)
        self.told_at = float("inf")

    def on_start(self) -> None:
        """A compilation begins."""
        self.depth += 1
        if self.depth == 1:
            self.state = (self.state[0], time.perf_counter())
        self.tell()

    def on_end(self) -> None:
        """It is done."""
        self.depth -= 1
        spent, since = self.state
        if self.depth == 0 and since is not None:
            self.state = (spent + time.perf_counter() - since, None)
        self.tell()

    def tell(self) -> None:
        """Report a long compilation to the listener, if there is one."""
        if self.told_at < float("inf") and seconds_compiling() >= self.told_at:
            self.told_at = float("inf")
            with contextlib.suppress(OSError, AttributeError, ValueError):  # no standard error
                print(WORDS, file=sys.stderr, flush=True)

    def read(self) -> tuple[float, float]:
        """Now, and the seconds spent compiling by now, of the same moment."""
        while True:
            state, now = self.state, time.perf_counter()
            if self.state is state:
                spent, since = state
                return now, spent if since is None else spent + now - since


WATCH = Watch()  # :mod:`saddlesvm.runtime.compiler` lets Numba tell it


def seconds_compiling() -> float:
    """Seconds that this process has spent compiling kernels."""
    return WATCH.read()[1]


def is_compiling() -> bool:
    """Whether a kernel is being compiled at this moment."""
    return WATCH.state[1] is not None


def clock() -> float:
    """Seconds since some moment, those left out in which kernels were being compiled."""
    now, spent = WATCH.read()
    return now - spent


@contextlib.contextmanager
def telling(wanted: bool = True) -> Iterator[None]:
    """Say in a line on standard error, once, that kernels are being compiled where that takes long meanwhile.

    Within an outer call there is nothing more to say.
    """
    if not wanted or WATCH.told_at < float("inf"):
        yield
        return
    WATCH.told_at = seconds_compiling() + PATIENCE
    try:
        yield
    finally:
        WATCH.told_at = float("inf")
