"""The lab: compare solvers, watch them, and the parts to write an experiment with.

It needs the extra ``lab``: matplotlib and pandas.
"""

from saddlesvm.fit.loop import fit as fit
from saddlesvm.fit.outcome import FitResult as FitResult, Limits as Limits
from saddlesvm.problem.problem import Problem as Problem
from saddlesvm.runtime.extras import import_extra
from saddlesvm.runtime.interrupts import catch_interrupts as catch_interrupts
from saddlesvm.runtime.threads import usable_cores as usable_cores

for package in ("matplotlib", "pandas"):
    import_extra(package, "lab", "the lab")

from saddlesvm.lab import bounds, figures  # noqa: E402
from saddlesvm.lab.charts import Chart as Chart, Picture as Picture, Series as Series  # noqa: E402
from saddlesvm.lab.comparison import compare  # noqa: E402
from saddlesvm.lab.comparison_report import Comparison  # noqa: E402
from saddlesvm.lab.dataset import Dataset as Dataset, make_dataset as make_dataset  # noqa: E402
from saddlesvm.lab.diagnostics import Diagnostics  # noqa: E402
from saddlesvm.lab.machine import (  # noqa: E402
    machine_rows as machine_rows,
    run_in_threads as run_in_threads,
    show_progress as show_progress,
)
from saddlesvm.lab.report import (  # noqa: E402
    Prose as Prose,
    Report as Report,
    Section as Section,
    TextTable as TextTable,
)
from saddlesvm.lab.runs import (  # noqa: E402
    iterates as iterates,
    label_solver as label_solver,
    parse_solvers as parse_solvers,
    run_solver as run_solver,
    warm_up as warm_up,
)
from saddlesvm.lab.step_view import Watch, watch  # noqa: E402
from saddlesvm.lab.traces import tidy_trace as tidy_trace  # noqa: E402
from saddlesvm.lab.verdict import (  # noqa: E402
    count_text as count_text,
    medians as medians,
    reach_times as reach_times,
    seconds_text as seconds_text,
)

# The other names above are the parts that experiments are written with.
__all__ = [
    "Comparison",
    "Diagnostics",
    "Watch",
    "bounds",
    "compare",
    "figures",
    "watch",
]
