"""The lab: compare solvers with pictures and a report, and run the published experiments again.

Nothing heavy is loaded before it is used: plots, tables and reports need the extra ``saddlesvm[lab]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saddlesvm.runtime.lazy import lazily

if TYPE_CHECKING:
    from saddlesvm.lab import bounds as bounds, figures as figures, study as study
    from saddlesvm.lab.comparison import Comparison as Comparison, compare as compare
    from saddlesvm.lab.displays import GapDisplay as GapDisplay, PathDisplay as PathDisplay
    from saddlesvm.lab.experiments.reproduction import EXPERIMENTS as EXPERIMENTS, reproduce as reproduce
    from saddlesvm.lab.report import Report as Report
    from saddlesvm.lab.step_view import Watch as Watch, watch as watch
    from saddlesvm.lab.tidy import Diagnostics as Diagnostics, read_trace as read_trace, write_trace as write_trace

NAMES = {
    "saddlesvm.lab.comparison": "Comparison compare",
    "saddlesvm.lab.displays": "GapDisplay PathDisplay",
    "saddlesvm.lab.experiments.reproduction": "EXPERIMENTS reproduce",
    "saddlesvm.lab.report": "Report",
    "saddlesvm.lab.step_view": "Watch watch",
    "saddlesvm.lab.tidy": "Diagnostics read_trace write_trace",
    "": "bounds figures study",
}
HOMES = {name: home for home, names in NAMES.items() for name in names.split()}
__all__ = sorted(HOMES)

find, __dir__ = lazily(__name__, HOMES)


def __getattr__(name: str) -> Any:
    try:
        return find(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("saddlesvm"):
            raise
        raise ModuleNotFoundError(
            f"the lab needs the package {error.name!r}: install saddlesvm[lab]", name=error.name
        ) from error
