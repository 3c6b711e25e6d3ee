"""The runs of the lab: solvers by name, their labels, and a fit as rows of a trace."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Record
from saddlesvm.lab.dataset import Dataset
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import loss_text
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.allowed import split_names
from saddlesvm.solvers import make_solver
from saddlesvm.solvers.base import Budget

if TYPE_CHECKING:
    from saddlesvm.solvers.base import SolverBase

# Epochs between two certificates, as a share of the epochs done. A certificate every epoch would
# slow a long run down, and lets a solver that stops on the gap recall rows that shrinking had set
# aside.
GROWTH = 0.1
WARM_ROWS = 256  # row visits of the run that loads compiled kernels
# The columns of the trace that bear the names of a record's fields.
RECORDED = (
    "epoch",
    "rows_touched",
    "seconds_solving",
    "seconds_certifying",
    "primal",
    "dual",
    "gap",
    "relative_gap",
    "remark",
)


def parse_solvers(solvers: str | Any | Iterable[Any]) -> list[Any]:
    """Return solver objects from names, text with options, and solver objects.

    Parameters
    ----------
    solvers : str, solver object, or sequence of them
        A string may name several: ``"dcd,pegasos:batch_size=64,output=average"``. A part with a
        ``=`` is a further option of the solver before it.

    Raises
    ------
    ValueError
        A solver or option is unknown, a value is out of range, or a solver is named twice.
    """
    is_single = isinstance(solvers, str) or not isinstance(solvers, Iterable)
    given: list[Any] = [solvers] if is_single else list(solvers)
    found: list[Any] = []
    for item in given:
        named = split_names(item) if isinstance(item, str) else [item]
        found += [make_solver(solver) for solver in named]
    if not found:
        raise ValueError("no solver is named; give at least one")
    labels = [label_solver(solver) for solver in found]
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"the solver {label} is named twice: leave one of the two out")
    return found


def changed_options(solver: Any) -> str:
    """Return the options of a solver object that differ from the defaults, as text."""
    parts = []
    for option in dataclasses.fields(solver):
        value = getattr(solver, option.name)
        if value != option.default:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            parts.append(f"{option.name}={text}")
    return ",".join(parts)


def label_solver(solver: Any) -> str:
    """Return the name and the options of a solver object, for legends and tables."""
    return join_label(solver.name, changed_options(solver))


def join_label(name: str, options: str) -> str:
    """Return name and options as a label."""
    return f"{name} ({options})" if options else name


def warm_up(problem: Problem, solver: object) -> None:
    """Run a solver for a moment, so that compiled kernels are loaded before the clock starts."""
    limits = Limits(tol=0.0, max_epochs=min(1.0, WARM_ROWS / problem.members.size))
    fit(problem, solver, limits)
    evaluate(problem, Point(w=np.zeros(problem.n_features + 1)))


def run_solver(
    dataset: Dataset,
    problem: Problem,
    solver: Any,
    limits: Limits,
    *,
    seed: int = 0,
    stop: threading.Event | None = None,
) -> tuple[list[dict[str, object]], FitResult]:
    """Fit, and measure the errors when the clock has stopped.

    Parameters
    ----------
    dataset : Dataset
    problem : Problem
    solver : solver object
    limits : Limits
    seed : int
        It is also the number of the repeat.
    stop : threading.Event, optional
        Ends the fit.

    Returns
    -------
    rows : list of dict
        Rows of the trace; the last row has the outcome.
    result : FitResult
    """
    # Certificates become rarer as the run goes on.
    rarer = replace(limits, certify_every=limits.certify_every or 1.0, certify_growth=GROWTH)
    records: list[Record] = []
    result = fit(problem, solver, rarer, seed=seed, callbacks=[records.append], stop=stop)
    # The clock of the fit has stopped: the errors take no time of it.
    rows = trace_rows(dataset, records)
    if rows:
        rows[-1]["outcome"] = str(result.outcome)
    names = name_run(problem, solver.name, changed_options(solver), seed)
    return [row | names for row in rows], result


def name_run(problem: Problem, solver: str, options: str, repeat: int) -> dict[str, object]:
    """Return the columns of the trace that name a run."""
    return {
        "solver": solver,
        "options": options,
        "loss": loss_text(problem.loss),
        "C": problem.C,
        "lam": problem.lam,
        "form": "lambda" if problem.uses_lambda else "C",
        "repeat": repeat,
    }


def trace_rows(dataset: Dataset, records: list[Record]) -> list[dict[str, object]]:
    """Return the records of a fit as rows of the trace, without the columns that name the run."""
    if not records:
        return []
    coefs = np.array([record.coef for record in records])
    intercepts = np.array([record.intercept for record in records])
    # One product with the rows gives the errors of all models.
    train, test = dataset.errors_of(coefs, intercepts)
    rows = []
    for k, record in enumerate(records):
        row = {name: getattr(record, name) for name in RECORDED}
        row["train_error"] = float(train[k])
        row["test_error"] = float(test[k])
        row["active_rows"] = record.active
        row["change_of_w"] = record.change if math.isfinite(record.change) else math.nan
        rows.append(row)
    return rows


def iterates(
    problem: Problem,
    solver: SolverBase,
    epochs: np.ndarray | list[float],
    seed: int = 0,
    start: Point | None = None,
) -> Iterator[tuple[Any, Point]]:
    """Yield state and point of a solver at the given epochs.

    A fit would keep its best point; these are the iterates themselves. The weights of a point are a
    copy; the state and the dual variables change with the next step.

    Parameters
    ----------
    problem : Problem
    solver : solver object
    epochs : sequence of float
        Ascending.
    seed : int
    start : Point, optional
    """
    state = solver.init(problem, seed, start)
    n = problem.members.size
    for epoch in epochs:
        # A step may visit fewer rows than it is allowed to.
        while (left := round((epoch - state.epochs) * n)) > 0:
            state = solver.step(problem, state, Budget(left))
        point = solver.solution(problem, state)
        w = None if point.w is None else point.w.copy()
        yield state, Point(w, point.alpha, point.tracks)
