"""The output of a command: its facts, as tables for people or as JSON for programs, and the progress of its reading."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.shown import shown

Facts = dict[str, dict[str, Any]]
PATIENCE = 0.5  # seconds of work before a bar is drawn


def plain(value: Any) -> Any:
    """`value` as JSON holds it: NumPy numbers as numbers, infinity and NaN as null."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def in_words(name: str, value: Any) -> str:
    """`value` as text for people; the name says what it measures."""
    if isinstance(value, dict):
        parts = [f"{shown(str(key))}: {in_words(str(key), one)}" for key, one in list(value.items())[:12]]
        return ", ".join(parts) + (f", and {len(value) - 12} more" if len(value) > 12 else "")
    if isinstance(value, (list, tuple)):
        return "\n".join(in_words(name, one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        value = float(value)
        if "accuracy" in name:
            return f"{100 * value:.2f} %"
        if "seconds" in name:
            return f"{value:.3f}"
        return f"{value:.3g}" if "gap" in name or abs(value) < 1e-3 else f"{value:.8g}"
    return shown(str(value))


def show(facts: Facts, as_json: bool) -> None:
    """Print facts as one table per group, or as one JSON object."""
    if as_json:
        json.dump(plain(facts), sys.stdout, indent=2)
        print()
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for place, (group, lines) in enumerate(facts.items()):
        if place:
            table.add_row("", "")
        table.add_row(Text(shown(group)), "")
        for name, value in lines.items():
            if value is not None:
                table.add_row(Text(shown(f"  {name}")), Text(in_words(name, value)))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


@contextmanager
def progress_bar(what: str, quiet: bool = False) -> Iterator[Callable[[float], Any] | None]:
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
