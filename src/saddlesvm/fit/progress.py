"""A progress bar for long work: a callback of the fit like any other, drawn on standard error."""

from __future__ import annotations

import math
import threading
from types import TracebackType
from typing import Any

from saddlesvm.fit.trace import Record
from saddlesvm.runtime.bar import Bar


class ProgressBar:
    """Draws how far the relative gap has come on its way from 1 to `tol` (on a log scale), for one or more problems.

    Parameters
    ----------
    tol : float
        The relative gap asked for.
    problems : int, default=1
        Number of sub-problems under one bar.
    max_epochs, max_time : float, optional
        Limits; the bar shows whichever end is nearest.
    """

    def __init__(
        self, tol: float, problems: int = 1, max_epochs: float | None = None, max_time: float | None = None
    ) -> None:
        self.tol, self.problems = tol, problems
        self.max_epochs, self.max_time = max_epochs or math.inf, max_time or math.inf
        self.gap = 1.0
        self.said = ""
        self.done = 0
        self.lock = threading.Lock()
        self.bar: Any = None

    def __enter__(self) -> ProgressBar:
        self.bar = Bar("spinner bar words elapsed", "reading the first rows")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Note a slice of work."""
        gap = min(self.gap, estimate)
        way = math.log(min(max(gap, 1e-300), 1.0)) / math.log(self.tol) if 0.0 < self.tol < 1.0 else 0.0
        share = min(1.0, max(way, epoch / self.max_epochs, seconds / self.max_time))
        with self.lock:
            of = f"problem {self.done + 1} of {self.problems}, " if self.problems > 1 else ""
            said = f"{of}epoch {epoch:.0f}, relative gap {self.gap:.1e} of {self.tol:.0e}"
            self.bar.show(said, (self.done + share) / self.problems)

    def __call__(self, record: Record, /) -> None:
        self.gap = record.relative_gap
        decision = record.remark.partition(" | ")[0]
        if decision.startswith("epoch ") and decision != self.said:
            self.said = decision
            self.bar.say(decision)

    def next_problem(self) -> None:
        """One of the problems is done."""
        with self.lock:
            self.done += 1
            self.gap = 1.0
