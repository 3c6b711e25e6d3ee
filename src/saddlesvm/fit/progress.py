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

EARLY = 0.05  # share of the way below which no time is told


class ProgressBar:
    """One line: what happens now (reading, compiling, solving, certifying), the gap and its target, the time left.

    The bar shows how far the relative gap has come on its way from 1 to `tol` on a logarithmic scale, for one or more
    problems. In a notebook the gaps of the certificates are drawn as a curve.

    Parameters
    ----------
    tol : float
        The relative gap asked for.
    problems : int, default=1
        Number of sub-problems under one bar.
    max_epochs, max_time : float, optional
        Limits; the bar shows whichever end is nearest.

    Attributes
    ----------
    work : str
        What a step of the solver is.
    """

    def __init__(
        self, tol: float, problems: int = 1, max_epochs: float | None = None, max_time: float | None = None
    ) -> None:
        self.tol, self.problems = tol, problems
        self.max_epochs, self.max_time = max_epochs or math.inf, max_time or math.inf
        self.work = "solving"
        self.gap = 1.0
        self.said = ""
        self.done = 0
        self.epoch = self.share = 0.0
        self.began = time.monotonic()
        self.lock = threading.Lock()
        self.bar: Any = None

    def __enter__(self) -> ProgressBar:
        self.bar = Bar("spinner bar words elapsed", "reading the first rows", now=self._compiling)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def _compiling(self) -> str:
        return f"{self._of()}compiling for this processor, once" if is_compiling() else ""

    def _of(self) -> str:
        return f"problem {min(self.done + 1, self.problems)} of {self.problems}, " if self.problems > 1 else ""

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Note a slice of work."""
        gap = min(self.gap, estimate)
        way = math.log(min(max(gap, 1e-300), 1.0)) / math.log(self.tol) if 0.0 < self.tol < 1.0 else 0.0
        with self.lock:
            self.epoch = epoch
            self.share = (
                self.done + min(1.0, max(way, epoch / self.max_epochs, seconds / self.max_time))
            ) / self.problems
            self._show(self.work)

    def certifying(self) -> None:
        """A certificate begins."""
        with self.lock:
            self._show("certifying")

    def _show(self, phase: str) -> None:
        gap = f"gap {self.gap:.0e} of {self.tol:.0e}"
        self.bar.show(f"{self._of()}{phase}, {gap}, epoch {self.epoch:.0f}{self._left()}", self.share)

    def _left(self) -> str:
        """The time left, estimated from the share that is done."""
        if not EARLY < self.share < 1.0:
            return ""
        seconds = (time.monotonic() - self.began) * (1.0 - self.share) / self.share
        return f", {shown_time(seconds)} left"

    def __call__(self, record: Record, /) -> None:
        self.gap = record.relative_gap
        self.bar.plot(record.relative_gap)
        decision = record.remark.partition(" | ")[0]
        if decision.startswith("epoch ") and decision != self.said:
            self.said = decision
            self.bar.say(decision)

    def next_problem(self) -> None:
        """One of the problems is done."""
        with self.lock:
            self.done += 1
            self.gap = 1.0


def shown_time(seconds: float) -> str:
    """Seconds in words, in minutes or hours where there are many."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1.0):.0f} s"
