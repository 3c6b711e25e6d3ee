"""The clock of fits, which stands still while kernels are compiled, and the time that a fit and its steps have by it.

Numba says when it begins to compile a function and when it is done; what it finds in its cache is not compiled. Only
one thread compiles at a time, and hardly anything else runs meanwhile. Fits are timed and limited by :func:`clock`, and
the user who waits is told of a long compilation.

A time limit counts from the beginning of a fit, the preparation of the data included. Fits within a fit, such as those
of its folds, end with it. A step may be long: solvers ask :func:`time_is_up` between its parts, wherever they can stop.
Without a time limit, and without somebody who can stop it, the answer is always no.

The progress bar of fits, comparisons and file readers: rich draws it on standard error, a notebook in its own cell.

rich is loaded at first use. In a notebook nothing but IPython is needed.
"""

from __future__ import annotations

import contextlib
import html
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

PATIENCE = 0.5  # seconds of compilation after which it is reported
WORDS = "compiling for this processor, once (`saddlesvm warmup` does it ahead)"


class Watch:
    """A record of Numba's compilations, which may be nested.

    Attributes
    ----------
    state : tuple
        Seconds spent so far, and since when something is being compiled (None for nothing).
    report_at : float
        Seconds of compilation after which it is reported.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.state: tuple[float, float | None] = (0.0, None)
        self.report_at = float("inf")

    def on_start(self) -> None:
        """A compilation begins."""
        self.depth += 1
        if self.depth == 1:
            self.state = (self.state[0], time.perf_counter())
        self.report()

    def on_end(self) -> None:
        """It is done."""
        self.depth -= 1
        spent, since = self.state
        if self.depth == 0 and since is not None:
            self.state = (spent + time.perf_counter() - since, None)
        self.report()

    def report(self) -> None:
        """Report a long compilation to the listener, if there is one."""
        if self.report_at < float("inf") and seconds_compiling() >= self.report_at:
            self.report_at = float("inf")
            with contextlib.suppress(OSError, AttributeError, ValueError):  # no standard error
                print(WORDS, file=sys.stderr, flush=True)

    def read(self) -> tuple[float, float]:
        """Now, and the seconds spent compiling by now, of the same moment."""
        while True:
            state, now = self.state, time.perf_counter()
            if self.state is state:
                spent, since = state
                return now, spent if since is None else spent + now - since


WATCH = Watch()  # :mod:`saddlesvm.runtime.compiler` lets Numba report to it


def seconds_compiling() -> float:
    """Seconds that this process has spent compiling kernels."""
    return WATCH.read()[1]


def is_compiling() -> bool:
    """Whether a kernel is being compiled at this moment."""
    return WATCH.state[1] is not None


def clock() -> float:
    """Seconds since some moment, those left out in which kernels were being compiled."""
    now, spent = WATCH.read()
    return now - spent


@contextlib.contextmanager
def reporting_compilation(wanted: bool = True) -> Iterator[None]:
    """Say in a line on standard error, once, that kernels are being compiled where that takes long meanwhile.

    Within an outer call there is nothing more to say.
    """
    if not wanted or WATCH.report_at < float("inf"):
        yield
        return
    WATCH.report_at = seconds_compiling() + PATIENCE
    try:
        yield
    finally:
        WATCH.report_at = float("inf")


_began: ContextVar[float | None] = ContextVar("began", default=None)
_end_of_fit: ContextVar[float] = ContextVar("end_of_fit", default=float("inf"))
_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)
_end_of_step: ContextVar[float] = ContextVar("end_of_step", default=float("inf"))


@contextlib.contextmanager
def beginning(seconds: float | None = None) -> Iterator[None]:
    """A fit begins now, which may take so many seconds (None for any); one within another ends with that at last."""
    now = clock()
    began = _began.set(now)
    end = _end_of_fit.set(_end_of_fit.get() if seconds is None else min(now + seconds, _end_of_fit.get()))
    try:
        yield
    finally:
        _began.reset(began)
        _end_of_fit.reset(end)


def end_of_fit(seconds: float | None = None) -> float:
    """The :func:`clock` at which the fit under way has to end; infinite for no limit.

    `seconds` is a limit of the caller's own, counted from the beginning of the fit, or from now outside of one.
    """
    if seconds is None:
        return _end_of_fit.get()
    began = _began.get()
    return min((clock() if began is None else began) + seconds, _end_of_fit.get())


@contextlib.contextmanager
def working_for(seconds: float, stop: threading.Event | None = None) -> Iterator[None]:
    """A step within has so many seconds, and ends where `stop`, or that of a step around it, is set."""
    before = _end_of_step.set(clock() + seconds)
    stopped = _stop.set(stop or _stop.get())
    try:
        yield
    finally:
        _end_of_step.reset(before)
        _stop.reset(stopped)


def time_is_up(ahead: float = 0.0) -> bool:
    """Whether the present step has used its seconds, or will have in `ahead` seconds, or is to stop."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        return True
    end = _end_of_step.get()
    return end < float("inf") and clock() + ahead >= end


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
