"""The progress bar of fits, comparisons and file readers, on standard error or in a notebook.

rich draws it in a terminal, and is loaded at first use. In a notebook only IPython is needed.
"""

from __future__ import annotations

import html
import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from rich import progress

BAR_WIDTH = 16  # characters: the words beside it fit into a line of 80
REDRAW = 0.2  # seconds between two pictures in a notebook; a guess


class Bar:
    """A bar that appears at once, and leaves no trace after :meth:`stop`.

    Parameters
    ----------
    parts : str
        The parts to show, from left to right: "spinner", "count" (pieces done of all), "bar",
        "words", "elapsed", "remaining".
    words : str
        What is being done; shown literally, with brackets.
    total : float, default=1.0
        The amount of work at which the bar is full.
    now : callable, optional
        Returns words that replace `words` while they are not empty; called at every refresh.
    """

    def __init__(
        self, parts: str, words: str, total: float = 1.0, now: Callable[[], str] = str
    ) -> None:
        display = notebook_display()
        if display:
            self.drawn: Any = NotebookBar(display, words, total)
        else:
            self.drawn = make_terminal_bar(parts, words, total, now)

    def show(self, words: str | None = None, completed: float | None = None) -> None:
        """Change the words, the amount that is complete, or both; None changes nothing."""
        self.drawn.update(0, description=words, completed=completed)

    def advance(self) -> None:
        """Count a further piece as complete."""
        self.drawn.advance(0)

    def say(self, line: str) -> None:
        """Print a line above the bar; the line stays on the screen."""
        self.drawn.console.print(line, highlight=False)

    def stop(self) -> None:
        """Remove the bar."""
        self.drawn.stop()


def make_terminal_bar(
    parts: str, words: str, total: float, now: Callable[[], str]
) -> progress.Progress:
    """Return a bar of rich's on standard error, with a single task, number 0."""
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    class WordsColumn(progress.ProgressColumn):
        """The present work, in words."""

        max_refresh = None

        def render(self, task: progress.Task) -> Text:
            return Text(now() or task.description)

    # rich draws the columns from left to right, and removes the bar at the end.
    columns_by_name = {
        "spinner": progress.SpinnerColumn(),
        "count": progress.MofNCompleteColumn(),
        "bar": progress.BarColumn(BAR_WIDTH),
        "words": WordsColumn(),
        "elapsed": progress.TimeElapsedColumn(),
        "remaining": progress.TimeRemainingColumn(),
    }
    columns = [columns_by_name[part] for part in parts.split()]
    bar = progress.Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(words, total=total)
    bar.start()
    return bar


def notebook_display() -> ModuleType | None:
    """Return IPython's ``display`` module if this runs in a notebook, else None."""
    ipython = sys.modules.get("IPython")
    if ipython is None or type(ipython.get_ipython()).__name__ != "ZMQInteractiveShell":
        return None
    return ipython.display


class NotebookBar:
    """A bar in the output of a cell, with the methods of rich's that :class:`Bar` uses.

    It needs no widgets.
    """

    def __init__(self, display: ModuleType, words: str, total: float) -> None:
        self.display = display
        self.words = words
        self.total = total
        self.completed = 0.0
        self.drawn_at = -math.inf
        self.console = self
        self.handle = display.display(display.HTML(self.page()), display_id=True)

    def page(self) -> str:
        """Return the bar and the words as HTML."""
        bar = f'<progress value="{self.completed:.4g}" max="{self.total:.4g}"></progress>'
        style = "font: 0.85em system-ui, sans-serif"
        return f'<div style="{style}">{bar} {html.escape(self.words)}</div>'

    def update(self, task: int, description: str | None, completed: float | None) -> None:
        """Change words and share, and draw them unless the last picture is recent."""
        if description is not None:
            self.words = description
        if completed is not None:
            self.completed = completed
        # Drawing takes longer than much of the work: show the newest state from time to time.
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
        """Remove the bar."""
        self.handle.update(self.display.HTML(""))
