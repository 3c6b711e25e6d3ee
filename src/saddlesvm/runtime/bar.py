"""A progress bar on standard error, that of fits, of comparisons and of files: drawn by rich, loaded when one is."""

from __future__ import annotations

from typing import Any

BAR_WIDTH = 30  # characters


class Bar:
    """A bar that is there from now on, and gone without a trace once it is stopped.

    Parameters
    ----------
    parts : str
        What stands beside each other: of "spinner", "count" (pieces of all), "bar", "words", "elapsed", "remaining".
    words : str
        What is being done; shown as it is, whatever brackets it has.
    total : float, default=1.0
        What it takes for the bar to be full.
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
        """Draw other words, or how much is complete; what is left out stays."""
        self.drawn.update(self.task, description=words, completed=completed)

    def advance(self) -> None:
        """One more piece is complete."""
        self.drawn.advance(self.task)

    def say(self, line: str) -> None:
        """Print a line above the bar, which stays."""
        self.drawn.console.print(line, highlight=False)

    def stop(self) -> None:
        """Take the bar away."""
        self.drawn.stop()
