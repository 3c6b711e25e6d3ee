"""The machine that a report was made on, work in threads, and the lab's progress bar."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

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


@contextmanager
def show_progress(total: int, shown: bool = True) -> Iterator[Callable[[str], None]]:
    """Draw a bar over pieces of work on standard error, if that is a terminal.

    Parameters
    ----------
    total : int
        Pieces of work.
    shown : bool, default=True

    Yields
    ------
    callable
        Call it with the words of a piece that begins; the pieces before it are done.
    """
    if not (shown and sys.stderr.isatty()):
        yield lambda words: None
        return
    bar = Bar("count bar words elapsed", "starting", total)
    done = -1

    def begin(words: str) -> None:
        nonlocal done
        done += 1
        bar.show(words, completed=done)

    try:
        yield begin
    finally:
        bar.stop()
