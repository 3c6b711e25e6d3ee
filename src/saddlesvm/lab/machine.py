"""The origin of a report: machine, versions, and the command that repeats it."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from saddlesvm.runtime.threads import usable_cores

PACKAGES = ("saddlesvm", "numpy", "scipy", "scikit-learn", "numba", "llvmlite", "pandas", "matplotlib", "plotly")
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
    """The results of independent pieces of work, in order, done on all usable cores; not for work that is timed."""
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
