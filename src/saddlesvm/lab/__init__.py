"""The lab: compare solvers, watch them, and the parts to write an experiment with.

Modules are imported when they are used. Plots, tables and reports need the extra ``lab``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saddlesvm.runtime.extras import how_to_install
from saddlesvm.runtime.lazy import lazy_attributes

if TYPE_CHECKING:
    from saddlesvm.fit.loop import fit as fit
    from saddlesvm.fit.outcome import FitResult as FitResult, Limits as Limits
    from saddlesvm.lab import bounds as bounds, figures as figures, study as study
    from saddlesvm.lab.charts import Chart as Chart, Series as Series
    from saddlesvm.lab.comparison import (
        Comparison as Comparison,
        compare as compare,
        run_plan as run_plan,
    )
    from saddlesvm.lab.dataset import Dataset as Dataset, make_dataset as make_dataset
    from saddlesvm.lab.diagnostics import Diagnostics as Diagnostics
    from saddlesvm.lab.displays import GapDisplay as GapDisplay, PathDisplay as PathDisplay
    from saddlesvm.lab.machine import (
        LabProgress as LabProgress,
        machine_rows as machine_rows,
        run_in_threads as run_in_threads,
    )
    from saddlesvm.lab.report import (
        Picture as Picture,
        Prose as Prose,
        Report as Report,
        Section as Section,
        Switch as Switch,
        Table as Table,
    )
    from saddlesvm.lab.runs import (
        Contender as Contender,
        Plan as Plan,
        changed_options as changed_options,
        hinge_objective as hinge_objective,
        iterates as iterates,
        make_contender as make_contender,
        parse_contenders as parse_contenders,
        run_solver as run_solver,
        warm_up as warm_up,
    )
    from saddlesvm.lab.step_view import Watch as Watch, watch as watch
    from saddlesvm.lab.traces import (
        read_trace as read_trace,
        tidy_trace as tidy_trace,
        write_trace as write_trace,
    )
    from saddlesvm.lab.verdict import (
        count_text as count_text,
        medians as medians,
        reach_times as reach_times,
        seconds_text as seconds_text,
    )
    from saddlesvm.problem.problem import Problem as Problem
    from saddlesvm.runtime.interrupts import catch_interrupts as catch_interrupts
    from saddlesvm.runtime.threads import usable_cores as usable_cores

NAMES = {
    "saddlesvm.lab.comparison": "Comparison compare",
    "saddlesvm.lab.diagnostics": "Diagnostics",
    "saddlesvm.lab.displays": "GapDisplay PathDisplay",
    "saddlesvm.lab.step_view": "Watch watch",
    "saddlesvm.lab.traces": "read_trace write_trace",
    "": "bounds figures study",
}
# The parts that the experiments (experiments/ beside the package) are written with.
PARTS = {
    "saddlesvm.fit.loop": "fit",
    "saddlesvm.fit.outcome": "FitResult Limits",
    "saddlesvm.lab.charts": "Chart Series",
    "saddlesvm.lab.comparison": "run_plan",
    "saddlesvm.lab.dataset": "Dataset make_dataset",
    "saddlesvm.lab.machine": "LabProgress machine_rows run_in_threads",
    "saddlesvm.lab.report": "Picture Prose Report Section Switch Table",
    "saddlesvm.lab.runs": (
        "Contender Plan changed_options hinge_objective iterates make_contender parse_contenders "
        "run_solver warm_up"
    ),
    "saddlesvm.lab.traces": "tidy_trace",
    "saddlesvm.lab.verdict": "count_text medians reach_times seconds_text",
    "saddlesvm.problem.problem": "Problem",
    "saddlesvm.runtime.interrupts": "catch_interrupts",
    "saddlesvm.runtime.threads": "usable_cores",
}
HOMES = {
    name: home
    for homes in (NAMES, PARTS)
    for home, names in homes.items()
    for name in names.split()
}
__all__ = sorted(name for names in NAMES.values() for name in names.split())

find, __dir__ = lazy_attributes(__name__, HOMES)


def __getattr__(name: str) -> Any:
    try:
        return find(name)
    except ModuleNotFoundError as error:
        # A module of this package that is missing is a fault here, and no missing extra.
        if error.name is None or error.name.startswith("saddlesvm"):
            raise
        raise ModuleNotFoundError(
            f"the lab needs the package {error.name!r}: {how_to_install('lab')}", name=error.name
        ) from error
