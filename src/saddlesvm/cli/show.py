"""The facts that the commands show: tables for people, JSON for programs; and the progress of reading.

Facts are groups of names and values. The names are identifiers, which programs read; people read them as words.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from saddlesvm.runtime.bar import Bar
from saddlesvm.runtime.shown import shown

Facts = dict[str, dict[str, Any]]
PATIENCE = 0.5  # seconds of work before a bar is drawn
SHOWN_ITEMS = 12  # of a long dict; JSON has all
FILE_WIDTH = 120  # columns of output that is no terminal
SHARES = ("accuracy", "error", "share", "excess")  # ends of names; people read these in percent
WORDS = {
    "nonzeros": "non-zeros",
    "excess": "at most above the optimum",
    "train_r2": "train R2",
    "test_r2": "test R2",
    "validation_r2": "validation R2",
    "data_r2": "R2",
    "c_from": "C from",
    "c_to": "C to",
    "liblinear_model": "LIBLINEAR model",
}


def plain(value: Any) -> Any:
    """`value` as JSON holds it: NumPy numbers as numbers, infinity and NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def as_identifier(words: str) -> str:
    """Words as a name for programs: lower case, joined by underscores."""
    return re.sub(r"\W+", "_", words.lower()).strip("_")


def in_words(name: str) -> str:
    """The name of a fact as people read it."""
    return WORDS.get(name, name.replace("_", " "))


def as_text(name: str, value: Any) -> str:
    """`value` as people read it; the name says what it measures."""
    if isinstance(value, Mapping):
        if value.keys() == {"proven", "of"}:
            return f"{value['proven']:,} of {value['of']:,}"
        items = list(value.items())
        parts = [f"{shown(str(key))}: {as_text(str(key), one)}" for key, one in items[:SHOWN_ITEMS]]
        more = len(items) - SHOWN_ITEMS
        return ", ".join(parts) + (f", and {more} more" if more > 0 else "")
    if isinstance(value, (list, tuple)):
        parts = [as_text(name, one) for one in value]
        return ("\n" if any(" " in one for one in parts) else ", ").join(parts)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return number_as_text(name, float(value))
    return shown(str(value))


def number_as_text(name: str, value: float) -> str:
    """A number as people read it: shares in percent, seconds to the millisecond."""
    if name == "excess":
        return f"{100 * max(value, 0.0):.3g} %"
    if name.endswith(SHARES) and "absolute" not in name:
        return f"{100 * value:.2f} %"
    if name.startswith("seconds"):
        return f"{value:.3f}"
    if name == "C":
        return f"{value:.4g}"
    if "gap" in name or abs(value) < 1e-3:
        return f"{value:.3g}"
    return f"{value:.8g}"


def show(facts: Facts, as_json: bool) -> None:
    """Print facts as one JSON object, or as a table for each group."""
    if as_json:
        json.dump(plain(facts), sys.stdout, indent=2)
        print()
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH)
    with console.capture() as captured:
        for place, (group, lines) in enumerate(facts.items()):
            if place:
                console.print()
            console.print(Text(shown(in_words(group)), style="bold"))
            console.print(table_of_lines(lines))
            for name, rows in lines.items():
                if is_table(rows):
                    console.print(table_of_rows(name, rows))
    sys.stdout.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def is_table(value: Any) -> bool:
    """Return True for a list of records, which is shown as a table of its own."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def table_of_lines(lines: Mapping[str, Any]) -> Table:
    """A line for each fact: its name, its value."""
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=30)
    table.add_column(overflow="fold")
    for name, value in lines.items():
        if value is not None and not is_table(value):
            table.add_row(Text(shown(f"  {in_words(name)}")), Text(as_text(name, value)))
    return table


def table_of_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """A table of records with the same names."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column(Text(f"  {in_words(name)}"))
    for column in rows[0]:
        table.add_column(in_words(column), justify="right")
    for row in rows:
        cells = ["" if value is None else as_text(column, value) for column, value in row.items()]
        table.add_row("", *map(Text, cells))
    return table


@contextmanager
def progress_bar(what: str, quiet: bool = False) -> Iterator[Callable[[float], Any]]:
    """Draw the progress of some work on standard error, if that is a terminal, and unless it is done at once.

    Parameters
    ----------
    what : str
        What is being done.
    quiet : bool, default=False
        Draw nothing.

    Yields
    ------
    callable
        Call it with the share that is done, from 0 to 1.
    """
    began = time.monotonic()
    is_drawn = not quiet and sys.stderr.isatty()
    bar: Bar | None = None

    def advance(share: float) -> None:
        nonlocal bar
        if is_drawn and bar is None and time.monotonic() - began > PATIENCE:
            bar = Bar("words bar elapsed remaining", shown(what))
        if bar is not None:
            bar.show(completed=share)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()
