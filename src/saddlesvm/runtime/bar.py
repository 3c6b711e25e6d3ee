"""The progress bar of fits, comparisons and file readers: rich draws it on standard error, a notebook in its own cell.

rich is loaded at first use. In a notebook nothing but IPython is needed.
"""

from __future__ import annotations

import html
import math
import sys
import time
from collections.abc import Callable
from typing import Any

BAR_WIDTH = 16  # characters: the words beside it fit into a line of 80
REDRAW = 0.2  # seconds between two pictures in a notebook
ENDS = 2  # points of a line, at least
WIDTH, HEIGHT = 160, 32  # of the curve in a notebook, in pixels


class Bar:
    """A bar that appears at once, and leaves no trace after :meth:`stop`.

    Parameters
    ----------
    parts : str
        The parts to show, from left to right: "spinner", "count" (pieces done of all), "bar", "words", "elapsed",
        "remaining".
    words : str
        What is being done; shown literally, brackets included.
    total : float, default=1.0
        The amount of work at which the bar is full.
    now : callable, optional
        Returns words that take the place of `words` while they are not empty; asked at every refresh.
    """

    def __init__(self, parts: str, words: str, total: float = 1.0, now: Callable[[], str] = str) -> None:
        display = notebook_display()
        self.drawn: Any = InNotebook(display, words, total) if display else on_terminal(parts, words, total, now)

    def show(self, words: str | None = None, completed: float | None = None) -> None:
        """Change the words, the amount that is complete, or both; None leaves one as it is."""
        self.drawn.update(0, description=words, completed=completed)

    def advance(self) -> None:
        """Count one more piece as complete."""
        self.drawn.advance(0)

    def say(self, line: str) -> None:
        """Print a line above the bar; the line stays on the screen."""
        self.drawn.console.print(line, highlight=False)

    def plot(self, value: float) -> None:
        """Add a point to the curve that a notebook shows; a terminal has none."""
        if isinstance(self.drawn, InNotebook):
            self.drawn.values.append(value)

    def stop(self) -> None:
        """Take the bar away."""
        self.drawn.stop()


def on_terminal(parts: str, words: str, total: float, now: Callable[[], str]) -> Any:
    """A bar of rich's on standard error, with one task, number 0."""
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    class Words(progress.ProgressColumn):
        """The present work, in words."""

        max_refresh = None

        def render(self, task: Any) -> Text:
            return Text(now() or task.description)

    made = {
        "spinner": progress.SpinnerColumn(),
        "count": progress.MofNCompleteColumn(),
        "bar": progress.BarColumn(BAR_WIDTH),
        "words": Words(),
        "elapsed": progress.TimeElapsedColumn(),
        "remaining": progress.TimeRemainingColumn(),
    }
    columns = [made[part] for part in parts.split()]
    drawn = progress.Progress(*columns, console=Console(stderr=True), transient=True)
    drawn.add_task(words, total=total)
    drawn.start()
    return drawn


def notebook_display() -> Any:
    """IPython's ``display`` module where this runs in a notebook; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return ipython.display if ipython is not None and type(shell).__name__ == "ZMQInteractiveShell" else None


class InNotebook:
    """A bar in the output of a cell, with the methods of rich's that :class:`Bar` uses; it needs no widgets.

    Attributes
    ----------
    values : list of float
        The points of a curve, drawn from left to right on a logarithmic scale.
    """

    def __init__(self, display: Any, words: str, total: float) -> None:
        self.display, self.words, self.total, self.completed = display, words, total, 0.0
        self.values: list[float] = []
        self.drawn_at, self.console = -math.inf, self
        self.handle = display.display(display.HTML(self.page()), display_id=True)

    def page(self) -> str:
        """The bar, the curve and the words as HTML."""
        bar = f'<progress value="{self.completed:.4g}" max="{self.total:.4g}"></progress>'
        return f'<div style="font: 0.85em system-ui, sans-serif">{bar} {self.curve()} {html.escape(self.words)}</div>'

    def curve(self) -> str:
        """The points as a line; empty where there are fewer than two."""
        logs = [math.log10(value) for value in self.values if value > 0.0]
        if len(logs) < ENDS:
            return ""
        low, span = min(logs), (max(logs) - min(logs)) or 1.0
        step = WIDTH / (len(logs) - 1)
        points = " ".join(f"{k * step:.1f},{HEIGHT * (1.0 - (y - low) / span):.1f}" for k, y in enumerate(logs))
        return (
            f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="relative gap" style="overflow: visible">'
            f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="1.5"/></svg>'
        )

    def update(self, task: int, description: str | None, completed: float | None) -> None:
        """Change words and share, and draw them unless the last picture is recent."""
        self.words = self.words if description is None else description
        self.completed = self.completed if completed is None else completed
        if time.monotonic() - self.drawn_at >= REDRAW:
            self.drawn_at = time.monotonic()
            self.handle.update(self.display.HTML(self.page()))

    def advance(self, task: int) -> None:
        """Count a piece."""
        self.update(task, None, self.completed + 1.0)

    def print(self, line: str, highlight: bool = False) -> None:
        """Show a line that stays."""
        self.display.display(self.display.HTML(html.escape(line)))

    def stop(self) -> None:
        """Take the bar away."""
        self.handle.update(self.display.HTML(""))
