"""A progress bar for long work: a callback of the fit like any other, drawn on standard error."""

from __future__ import annotations

import math
import threading
import time
from types import TracebackType
from typing import Any

from saddlesvm.fit.outcome import Record
from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.clock import is_compiling

EARLY = 0.05  # share of the way below which no time left is shown: too uncertain; guessed
SMALLEST_GAP = 1e-300  # the smallest gap that a logarithm is taken of, near the smallest number


class ProgressBar:
    """A line: what happens now, the gap and its target, and the time left.

    The bar shows how far the relative gap has come on its way from 1 to `tol` on a logarithmic
    scale, for all problems.

    Parameters
    ----------
    tol : float
        The requested relative gap.
    problems : int, default=1
        Number of sub-problems under the bar.
    max_epochs, max_time : float, optional
        Limits; the bar shows whichever end is nearest.

    Attributes
    ----------
    work : str
        What a step of the solver is.
    """

    def __init__(
        self,
        tol: float,
        problems: int = 1,
        max_epochs: float | None = None,
        max_time: float | None = None,
    ) -> None:
        self.tol = tol
        self.problems = problems
        self.max_epochs = max_epochs or math.inf
        self.max_time = max_time or math.inf
        self.work = "solving"
        self.gap = 1.0
        self.said = ""
        self.done = 0
        self.share = 0.0
        self.began = time.monotonic()
        self.lock = threading.Lock()
        self.bar: Any = None

    def __enter__(self) -> ProgressBar:
        self.bar = Bar("spinner bar words elapsed", "reading the first rows", now=self._compiling)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def _compiling(self) -> str:
        """Return what the bar says while a kernel is compiled; empty otherwise."""
        return f"{self._position()}compiling for this processor, once" if is_compiling() else ""

    def _position(self) -> str:
        """Return the number of the problem among several."""
        if self.problems <= 1:
            return ""
        return f"problem {min(self.done + 1, self.problems)} of {self.problems}, "

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Show a slice of work."""
        # How far the gap has come from 1 to tol, on a logarithmic scale.
        gap = min(self.gap, estimate)
        way = 0.0
        if 0.0 < self.tol < 1.0:
            way = math.log(min(max(gap, SMALLEST_GAP), 1.0)) / math.log(self.tol)

        # The nearest end counts: the gap, or a limit.
        nearest = max(way, epoch / self.max_epochs, seconds / self.max_time)
        with self.lock:
            self.share = (self.done + min(1.0, nearest)) / self.problems
            words = (
                f"{self._position()}{self.work}, gap {self.gap:.0e} of {self.tol:.0e}, "
                f"epoch {epoch:.0f}{self._time_left()}"
            )
            self.bar.show(words, self.share)

    def _time_left(self) -> str:
        """Return the time left in words, estimated from the share that is done."""
        if not EARLY < self.share < 1.0:
            return ""
        seconds = (time.monotonic() - self.began) * (1.0 - self.share) / self.share
        return f", {format_time(seconds)} left"

    def __call__(self, record: Record, /) -> None:
        self.gap = record.relative_gap
        decision = record.remark.partition(" | ")[0]
        if decision.startswith("epoch ") and decision != self.said:
            self.said = decision
            self.bar.say(decision)

    def next_problem(self) -> None:
        """Count a problem as done."""
        with self.lock:
            self.done += 1
            self.gap = 1.0


def format_time(seconds: float) -> str:
    """Return seconds in words, in minutes or hours if there are many."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1.0):.0f} s"
