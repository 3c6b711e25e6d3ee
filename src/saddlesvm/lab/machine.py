"""The machine that a report was made on, work in threads, and the lab's progress bar."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from saddlesvm.fit.outcome import Record
from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.threads import usable_cores

PACKAGES = (
    "saddlesvm",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "llvmlite",
    "pandas",
    "matplotlib",
)
Answer = TypeVar("Answer")


def machine_rows() -> list[tuple[str, str]]:
    """Return processor, cores, memory, system and versions, as pairs of words for a table."""
    rows = [
        ("processor", processor()),
        ("cores for this process", str(usable_cores())),
        ("memory", memory()),
        ("system", platform.platform()),
        ("Python", platform.python_version()),
    ]
    for name in PACKAGES:
        number = version_of(name)
        if number:
            rows.append((name, number))
    return rows


def processor() -> str:
    """Return the name of the processor, as far as the system reports it."""
    # Linux names the processor in a file; on other systems Python knows it.
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    if names:
        return names[0]
    return platform.processor() or platform.machine()


def run_in_threads(work: Callable[[object], Answer], pieces: Iterable[object]) -> list[Answer]:
    """Do independent pieces of work on all cores, untimed; return the results in order."""
    with threadpool_limits(1), ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(work, pieces))


def memory() -> str:
    """Return the main memory in GiB; "unknown" if the system does not report it."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.1f} GiB"


def version_of(name: str) -> str:
    """Return the version of a package; empty if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


class LabProgress:
    """A bar over all cells of a comparison or experiment, on standard error if it is a terminal.

    Parameters
    ----------
    total : int
        Pieces of work.
    shown : bool, default=True
    """

    def __init__(self, total: int, shown: bool = True) -> None:
        self.total = total
        self.shown = shown
        self.words = ""
        self.gap = 1.0
        self.bar: Any = None

    def __enter__(self) -> LabProgress:
        if self.shown and sys.stderr.isatty():
            self.bar = Bar("count bar words elapsed", "starting", self.total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def begin(self, words: str) -> None:
        """Show the name of the piece of work that begins."""
        self.words = words
        self.gap = 1.0
        self._show(words)

    def done(self) -> None:
        """Count a piece of work as done."""
        if self.bar is not None:
            self.bar.advance()

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Show how far a fit has come."""
        self._show(f"{self.words}: epoch {epoch:.0f}, gap {self.gap:.1e}, {seconds:.1f} s")

    def __call__(self, record: Record, /) -> None:
        """Note the gap of a certificate."""
        self.gap = record.relative_gap

    def _show(self, words: str) -> None:
        """Show words beside the bar, if any."""
        if self.bar is not None:
            self.bar.show(words)
