"""The progress bar of fits, comparisons and file readers, on standard error or in a notebook.

rich draws it, in a notebook by ipywidgets, and is loaded at first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich import progress

BAR_WIDTH = 16  # characters: the words beside it fit into a line of 80


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
        self.drawn = draw_bar(parts, words, total, now)

    def show(self, words: str | None = None, completed: float | None = None) -> None:
        """Change the words, the amount that is complete, or both; None changes nothing."""
        self.drawn.update(self.drawn.task_ids[0], description=words, completed=completed)

    def advance(self) -> None:
        """Count a further piece as complete."""
        self.drawn.advance(self.drawn.task_ids[0])

    def say(self, line: str) -> None:
        """Print a line above the bar; the line stays on the screen."""
        self.drawn.console.print(line, highlight=False)

    def stop(self) -> None:
        """Remove the bar."""
        self.drawn.stop()


def draw_bar(parts: str, words: str, total: float, now: Callable[[], str]) -> progress.Progress:
    """Draw a bar of rich's on standard error, with a single task."""
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
