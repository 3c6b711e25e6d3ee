"""A progress bar for reading and writing files, shown once the work has taken a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.shown import shown

PATIENCE = 0.5  # seconds of work before a bar is drawn


@contextmanager
def share_bar(what: str, quiet: bool = False) -> Iterator[Callable[[float], Any] | None]:
    """Draw the progress of some work on standard error, if that is a terminal.

    Parameters
    ----------
    what : str
        What is being done.
    quiet : bool, default=False
        Draw nothing.

    Yields
    ------
    callable or None
        Call it with the share that is done, from 0 to 1; None where nothing is drawn.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    bar = _ShareBar(what)
    try:
        yield bar.advance
    finally:
        bar.stop()


class _ShareBar:
    def __init__(self, what: str) -> None:
        self.what, self.began = what, time.monotonic()
        self.bar: Bar | None = None

    def advance(self, share: float) -> None:
        """Draw the share, unless the work began only just now."""
        if self.bar is None and time.monotonic() - self.began > PATIENCE:
            self.bar = Bar("words bar elapsed remaining", shown(self.what))
        if self.bar is not None:
            self.bar.show(completed=share)

    def stop(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()
