"""The progress bar of fits, comparisons and file readers on standard error; rich draws it, loaded at first use."""

from __future__ import annotations

from typing import Any

BAR_WIDTH = 30  # characters


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
    """

    def __init__(self, parts: str, words: str, total: float = 1.0) -> None:
        from rich import progress
        from rich.console import Console

        made = {
            "spinner": progress.SpinnerColumn(),
            "count": progress.MofNCompleteColumn(),
            "bar": progress.BarColumn(BAR_WIDTH),
            "words": progress.TextColumn("{task.description}", markup=False),
            "elapsed": progress.TimeElapsedColumn(),
            "remaining": progress.TimeRemainingColumn(),
        }
        self.drawn: Any = progress.Progress(
            *(made[part] for part in parts.split()), console=Console(stderr=True), transient=True
        )
        self.task = self.drawn.add_task(words, total=total)
        self.drawn.start()

    def show(self, words: str | None = None, completed: float | None = None) -> None:
        """Change the words, the amount that is complete, or both; None leaves one as it is."""
        self.drawn.update(self.task, description=words, completed=completed)

    def advance(self) -> None:
        """Count one more piece as complete."""
        self.drawn.advance(self.task)

    def say(self, line: str) -> None:
        """Print a line above the bar; the line stays on the screen."""
        self.drawn.console.print(line, highlight=False)

    def stop(self) -> None:
        """Take the bar away."""
        self.drawn.stop()
