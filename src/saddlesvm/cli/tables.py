"""Facts that a command gathers, printed as tables for people or as JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import numpy as np

from saddlesvm.runtime.shown import shown

Facts = dict[str, dict[str, Any]]


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


def spoken(name: str, value: Any) -> str:
    """`value` as text for people; the name tells what it measures."""
    if isinstance(value, dict):
        told = [f"{shown(str(key))}: {spoken(str(key), one)}" for key, one in list(value.items())[:12]]
        return ", ".join(told) + (f", and {len(value) - 12} more" if len(value) > 12 else "")
    if isinstance(value, (list, tuple)):
        return "\n".join(spoken(name, one) for one in value)
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
                table.add_row(Text(shown(f"  {name}")), Text(spoken(name, value)))
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
