"""``saddlesvm train --report``: the facts that the command prints, with pictures, in one HTML file."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from typing import Any

from saddlesvm.cli.tables import Facts, spoken
from saddlesvm.data import DataError


def check_possible(path: str | None) -> None:
    """Raise DataError, before any work, for a report that cannot be drawn."""
    if path and find_spec("matplotlib") is None:
        raise DataError(f"{path}: a report needs the lab extra: pip install 'saddlesvm[lab]'")


def write_report(path: str, model: Any, source: str, facts: Facts, names: Any = None) -> None:
    """Write the report of a model, whose features have `names`."""
    from saddlesvm.lab.model_report import model_report

    groups = {
        title: [(name, spoken(name, value)) for name, value in lines.items() if value is not None]
        for title, lines in facts.items()
    }
    command = shlex.join(["saddlesvm", *sys.argv[1:]])
    model_report(model, source, groups, command, names).write(path)
