"""The facts that the commands print: tables for people, JSON for programs; and progress bars.

Facts are groups of names and values. The names are identifiers for programs; people read words.
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
from saddlesvm.runtime.safe_text import escape_hidden

Facts = dict[str, dict[str, Any]]

PATIENCE = 0.5  # seconds of work before a progress bar is drawn
ITEMS_SHOWN = 12  # entries of a long dict in a table; JSON has all
FILE_WIDTH = 120  # columns of a table that is not printed on a terminal
PERCENT = ("accuracy", "error", "share", "excess")  # ends of the names that are shown in percent
WORDS = {
    "nonzeros": "non-zeros",
    "nonzero_weights": "non-zero weights",
    "excess": "at most above the optimum",
    "train_r2": "train R2",
    "test_r2": "test R2",
    "validation_r2": "validation R2",
    "data_r2": "R2",
    "c": "C",
    "c_from": "C from",
    "c_to": "C to",
    "leave_one_out_error": "leave-one-out error",
    "liblinear_model": "LIBLINEAR model",
}


def make_plain(value: object) -> object:
    """Return a value as JSON holds it: NumPy numbers as numbers, infinity and NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): make_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [make_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def make_identifier(words: str) -> str:
    """Return words as a name for programs: lower case, joined by underscores."""
    return re.sub(r"\W+", "_", words.lower()).strip("_")


def write_name(name: str) -> str:
    """Return the name of a fact as people read it."""
    return WORDS.get(name, name.replace("_", " "))


def write_value(name: str, value: object) -> str:
    """Return a value as people read it; the name says what it measures."""
    if isinstance(value, Mapping):
        if value.keys() == {"proven", "of"}:
            return f"{value['proven']:,} of {value['of']:,}"
        # A long dict is cut; JSON has all of it.
        items = list(value.items())[:ITEMS_SHOWN]
        parts = [f"{escape_hidden(str(key))}: {write_value(str(key), item)}" for key, item in items]
        if len(value) > ITEMS_SHOWN:
            parts.append(f"and {len(value) - ITEMS_SHOWN} more")
        return ", ".join(parts)
    if isinstance(value, (list, tuple)):
        parts = [write_value(name, item) for item in value]
        has_sentences = any(" " in part for part in parts)
        return ("\n" if has_sentences else ", ").join(parts)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return write_number(name, float(value))
    return escape_hidden(str(value))


def write_number(name: str, value: float) -> str:
    """Return a number as people read it: shares in percent, seconds to the millisecond."""
    if name == "excess":
        return f"{100 * max(value, 0.0):.3g} %"
    if name.endswith(PERCENT) and "absolute" not in name:
        return f"{100 * value:.2f} %"
    if name.startswith("seconds"):
        return f"{value:.3f}"
    if name == "C":
        return f"{value:.4g}"
    if "gap" in name or abs(value) < 1e-3:
        return f"{value:.3g}"
    return f"{value:.8g}"


def show(facts: Facts, as_json: bool) -> None:
    """Print facts as a JSON object, or as a table for each group."""
    if as_json:
        json.dump(make_plain(facts), sys.stdout, indent=2)
        print()
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH)
    with console.capture() as captured:
        for number, (group, lines) in enumerate(facts.items()):
            if number > 0:
                console.print()
            console.print(Text(escape_hidden(write_name(group)), style="bold"))
            console.print(table_of_lines(lines))
            for name, records in lines.items():
                if is_list_of_records(records):
                    console.print(table_of_records(name, records))
    # Rich pads lines with spaces, which nobody needs in a file.
    sys.stdout.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def is_list_of_records(value: object) -> bool:
    """Return True for a list of records, which becomes a table of its own."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def table_of_lines(lines: Mapping[str, object]) -> Table:
    """Return a table with a line for each fact: its name, its value."""
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=30)
    table.add_column(overflow="fold")
    for name, value in lines.items():
        if value is not None and not is_list_of_records(value):
            table.add_row(
                Text(escape_hidden(f"  {write_name(name)}")), Text(write_value(name, value))
            )
    return table


def table_of_records(name: str, records: Sequence[Mapping[str, object]]) -> Table:
    """Return a table of records with the same names."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column(Text(f"  {write_name(name)}"))
    for column in records[0]:
        table.add_column(write_name(column), justify="right")
    for record in records:
        cells = [
            Text("" if value is None else write_value(column, value))
            for column, value in record.items()
        ]
        table.add_row("", *cells)
    return table


@contextmanager
def progress_bar(what: str, quiet: bool = False) -> Iterator[Callable[[float], object]]:
    """Draw the progress of work on standard error, if that is a terminal and the work takes long.

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
    # The bar appears only if the work takes longer than the patience.
    began = time.monotonic()
    is_drawn = not quiet and sys.stderr.isatty()
    bar: Bar | None = None

    def advance(share: float) -> None:
        nonlocal bar
        if is_drawn and bar is None and time.monotonic() - began > PATIENCE:
            bar = Bar("words bar elapsed remaining", escape_hidden(what))
        if bar is not None:
            bar.show(completed=share)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()
