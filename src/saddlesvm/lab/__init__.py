"""The lab: compare solvers with pictures and a report, and run the published experiments again.

Nothing heavy is loaded before it is used: plots, tables and reports need the extra ``saddlesvm[lab]``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saddlesvm.lab import bounds as bounds
    from saddlesvm.lab import figures as figures
    from saddlesvm.lab import study as study
    from saddlesvm.lab.comparison import compare as compare
    from saddlesvm.lab.comparison_report import Comparison as Comparison
    from saddlesvm.lab.diagnostics import Diagnostics as Diagnostics
    from saddlesvm.lab.displays import GapDisplay as GapDisplay
    from saddlesvm.lab.displays import PathDisplay as PathDisplay
    from saddlesvm.lab.experiments.reproduction import EXPERIMENTS as EXPERIMENTS
    from saddlesvm.lab.experiments.reproduction import reproduce as reproduce
    from saddlesvm.lab.report import Report as Report
    from saddlesvm.lab.step_view import Watch as Watch
    from saddlesvm.lab.step_view import watch as watch
    from saddlesvm.lab.tidy import read_trace as read_trace
    from saddlesvm.lab.tidy import write_trace as write_trace

HOMES = {
    "Comparison": "comparison_report",
    "Diagnostics": "diagnostics",
    "EXPERIMENTS": "experiments.reproduction",
    "GapDisplay": "displays",
    "PathDisplay": "displays",
    "Report": "report",
    "Watch": "step_view",
    "bounds": "",
    "compare": "comparison",
    "figures": "",
    "read_trace": "tidy",
    "reproduce": "experiments.reproduction",
    "study": "",
    "watch": "step_view",
    "write_trace": "tidy",
}

__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = importlib.import_module(f"{__name__}.{HOMES[name] or name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("saddlesvm"):
            raise
        raise ModuleNotFoundError(
            f"the lab needs the package {error.name!r}: install saddlesvm[lab]", name=error.name
        ) from error
    return getattr(home, name) if HOMES[name] else home


def __dir__() -> list[str]:
    return sorted([*globals(), *HOMES])
