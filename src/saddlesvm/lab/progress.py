"""The progress bar of the lab: the present piece of work, and how many are left."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from saddlesvm.fit.trace import Record
from saddlesvm.runtime.bar import Bar


class LabProgress:
    """A bar over all cells of a comparison or experiment, on standard error where that is a terminal.

    Parameters
    ----------
    total : int
        Pieces of work.
    shown : bool, default=True
    """

    def __init__(self, total: int, shown: bool = True) -> None:
        self.total, self.shown = total, shown
        self.words = ""
        self.gap = 1.0
        self.bar: Any = None

    def __enter__(self) -> LabProgress:
        if self.shown and sys.stderr.isatty():
            self.bar = Bar("count bar words elapsed", "starting", self.total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def begin(self, words: str) -> None:
        """Show the name of the present piece of work."""
        self.words, self.gap = words, 1.0
        self._show(words)

    def done(self) -> None:
        """Count one piece of work as done."""
        if self.bar is not None:
            self.bar.advance()

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """A slice of a fit is done."""
        self._show(f"{self.words}: epoch {epoch:.0f}, gap {self.gap:.1e}, {seconds:.1f} s")

    def __call__(self, record: Record, /) -> None:
        self.gap = record.relative_gap

    def _show(self, words: str) -> None:
        if self.bar is not None:
            self.bar.show(words)
