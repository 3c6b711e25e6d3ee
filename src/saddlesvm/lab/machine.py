"""The origin of a report (machine, versions, command), the progress of the lab on a terminal, and
its data.

Data of experiments are taken from a given folder, from the cache folder, or from OpenML through
scikit-learn.
"""

from __future__ import annotations

import os
import platform
import shlex
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
ENGINES = ("liblinear-official", "cyanure", "sklearn-contrib-lightning")
Answer = TypeVar("Answer")


def machine_rows() -> list[tuple[str, str]]:
    """Processor, cores, memory, system and versions, as pairs of words for a table."""
    rows = [
        ("processor", processor()),
        ("cores for this process", str(usable_cores())),
        ("memory", memory()),
        ("system", platform.platform()),
        ("Python", platform.python_version()),
    ]
    return rows + [(name, found) for name in (*PACKAGES, *ENGINES) if (found := installed(name))]


def processor() -> str:
    """Name of the processor, as far as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def in_threads(work: Callable[[Any], Answer], pieces: Iterable[Any]) -> list[Answer]:
    """The results of independent pieces of work, in order, done on all usable cores; not for work
    that is timed.
    """
    with threadpool_limits(1), ThreadPoolExecutor(usable_cores()) as pool:
        return list(pool.map(work, pieces))


def memory() -> str:
    """Main memory in GiB; "unknown" where the system does not report it."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{size / 2**30:.1f} GiB"


def installed(name: str) -> str:
    """Version of an installed distribution; empty if it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def command_line() -> str:
    """The command that this process was started with, the program by its bare name."""
    program, *arguments = sys.argv or ["python"]
    return shlex.join([Path(program).name or "python", *arguments])


class LabProgress:
    """A bar over all cells of a comparison or experiment, on standard error where that is a
    terminal.

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
        """Show the name of the present piece of work."""
        self.words = words
        self.gap = 1.0
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
