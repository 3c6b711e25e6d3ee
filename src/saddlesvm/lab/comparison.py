"""Compare solvers on your own data: all runs go into a single tidy trace.

A run is a solver or a peer on a problem (loss and C) with a seed. The result has the findings
in words, and the report with its tables and charts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from saddlesvm.fit.outcome import Limits
from saddlesvm.kernel.kernel_problem import check_kernel_loss
from saddlesvm.lab import traces
from saddlesvm.lab.comparison_report import Comparison as Comparison
from saddlesvm.lab.dataset import Dataset, Task, check_intercept, make_dataset, with_kernel
from saddlesvm.lab.machine import LabProgress, command_line
from saddlesvm.lab.peers import parse_peers
from saddlesvm.lab.runs import Plan, as_list, list_cells, parse_contenders
from saddlesvm.problem.losses import Loss, is_loss, make_loss
from saddlesvm.runtime.allowed import STRENGTH, check, split_names
from saddlesvm.runtime.data_types import LabelsLike, RowsLike
from saddlesvm.runtime.interrupts import catch_interrupts

# The solvers that are compared by default.
LINEAR_SOLVERS = "auto,dcd,sdca,pegasos"
KERNEL_SOLVERS = "auto,kernel-pegasos"
SECONDS = 10.0  # of each run, by default


def compare(
    X: RowsLike,
    y: LabelsLike,
    *,
    solvers: object = None,
    C: float | Sequence[float] | None = None,
    lam: float | Sequence[float] | None = None,
    losses: object = None,
    repeats: int = 1,
    test: tuple[object, object] | None = None,
    budget: float = SECONDS,
    tol: float = 1e-6,
    peers: str | Sequence[str] = (),
    intercept: str = "none",
    intercept_scaling: float = 1.0,
    task: Task = "classification",
    positive: object = None,
    name: str = "data",
    image_shape: tuple[int, int] | None = None,
    certify_every: float = 1.0,
    kernel: str | Callable[..., object] | None = None,
    gamma: str | float = "scale",
    degree: float = 3,
    coef0: float = 0.0,
    trace: str | os.PathLike[str] | None = None,
    progress: bool = False,
    command: str | None = None,
) -> Comparison:
    r"""Run solvers side by side on your data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
    solvers : str, solver object, or sequence of them
        ``"dcd"``, ``"pegasos:batch_size=64,output=average"``, ``SDCA(start="sgd")``. By
        default auto, dcd, sdca and pegasos; with a kernel auto and kernel-pegasos.
    C, lam : float or sequence of float
        Either C, the price of errors, or lambda, :math:`C = 1 / (\lambda n)`; ``C=1.0`` by
        default. With `lam`, objectives, tables and figures are in the lambda form.
    losses : str, Loss, or sequence of them, optional
        By default the hinge; for a regression, the epsilon-insensitive loss.
    repeats : int, default=1
        Runs with the seeds 0, 1, ...
    test : tuple (X, y), optional
        A test part.
    budget : float, default=10.0
        Seconds for each run, certificates included.
    tol : float, default=1e-6
        Relative duality gap at which a run ends.
    peers : str or sequence of str
        Solvers of other packages, by the names of :data:`saddlesvm.lab.peers.PEERS`; "all" for
        every peer that is installed.
    intercept : {"none", "regularized", "free"}, default="none"
    intercept_scaling : float, default=1.0
    task : {"classification", "regression"}
    positive : label, optional
        The class that is compared with the rest, if there are more than two.
    name : str
        The name of the data, for the report.
    image_shape : tuple of int, optional
        Height and width, if a row is an image.
    certify_every : float, default=1.0
        Epochs between certificates.
    kernel : str or callable, optional
        A kernel such as "rbf", as in :class:`~saddlesvm.SVC`; the solvers are then solvers of
        kernel machines.
    gamma, degree, coef0
        Parameters of the kernel.
    trace : path, optional
        A ``.parquet`` or ``.csv`` file. It is written after every run, and runs that it already
        holds are skipped.
    progress : bool, default=False
        Show a progress bar on standard error.
    command : str, optional
        The command that repeats the comparison, for the report; by default the command line of this
        process.

    Returns
    -------
    Comparison
        Ctrl-C ends the comparison and returns the finished runs, with ``interrupted`` set.

    Raises
    ------
    ValueError
        Options or data are out of range or do not work together, or the trace is of other data.
    DataError
        The trace file cannot be read or written.

    Examples
    --------
    >>> from saddlesvm.lab import compare
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> found = compare(
    ...     notes.X, notes.y, solvers=["dcd", "sdca"], C=0.01, tol=1e-3, name="banknote"
    ... )
    >>> sorted(set(found.trace["solver"])), bool(found.trace["relative_gap"].min() <= 1e-3)
    (['dcd', 'sdca'], True)
    """
    if C is not None and lam is not None:
        raise ValueError("give either C or lam (lambda), not both: C = 1 / (lambda n)")
    if not isinstance(repeats, int) or repeats < 1:
        raise ValueError(f"repeats must be a whole number of at least 1; got {repeats!r}")
    dataset = make_dataset(
        X, y, test=test, task=task, positive=positive, name=name, image_shape=image_shape
    )
    # Kernel machines have solvers of their own, and no peers.
    has_kernel = kernel is not None
    if kernel is not None:
        if peers:
            raise ValueError("the peers solve linear problems: leave them out with a kernel")
        dataset = with_kernel(dataset, kernel, gamma, degree, coef0)
    if solvers is None:
        solvers = KERNEL_SOLVERS if has_kernel else LINEAR_SOLVERS
    if C is None and lam is None:
        C = 1.0
    # Every combination of these is a run.
    plan = Plan(
        contenders=parse_contenders(solvers, kernels=has_kernel),
        peers=parse_peers(peers if isinstance(peers, str) else list(peers)),
        losses=parse_losses(losses, task, has_kernel),
        C=check_strengths(C, "C"),
        lam=check_strengths(lam, "lam"),
        repeats=repeats,
        limits=Limits(tol=tol, max_time=budget, certify_every=certify_every),
        intercept=check_intercept(intercept),
        scaling=intercept_scaling,
    )
    command = command or command_line()
    return run_plan(dataset, plan, trace=trace, progress=progress, command=command)


def run_plan(
    dataset: Dataset,
    plan: Plan,
    *,
    trace: str | os.PathLike[str] | None = None,
    progress: bool = False,
    command: str = "",
) -> Comparison:
    """Run every cell of a plan that the trace file does not hold yet, as :func:`compare` does."""
    kept = finished_runs(trace, dataset)
    done = traces.done_cells(kept)
    rows: list[dict[str, Any]] = kept.to_dict("records")
    comparison = Comparison(dataset, plan, kept, command=command)
    with catch_interrupts() as stop, LabProgress(plan.cells, progress) as bar:
        for cell in list_cells(dataset, plan, comparison.notes):
            # Runs that the trace file holds are not done again.
            if cell.key not in done:
                bar.begin(cell.words)
                rows += cell.run(stop, bar)
                # Written after every run, so that nothing is lost if the comparison is killed.
                if trace is not None and not stop.is_set():
                    traces.write_trace(traces.tidy_trace(rows), trace)
            bar.done()
            if stop.is_set():
                comparison.interrupted = True
                break
    comparison.trace = traces.tidy_trace(rows)
    return comparison


def finished_runs(trace: str | os.PathLike[str] | None, dataset: Dataset) -> pd.DataFrame:
    """Return the finished runs of an existing trace file; an empty trace if there is none."""
    if trace is None:
        return traces.tidy_trace([])
    traces.check_ending(trace)
    if not Path(trace).exists():
        return traces.tidy_trace([])
    frame = traces.drop_unfinished(traces.read_trace(trace))
    # Each run names its data by their fingerprint.
    others = set(frame["data"]) - {dataset.fingerprint}
    if others:
        raise ValueError(
            f"{os.fspath(trace)}: is a trace of other data; give another file, or remove it"
        )
    return frame


def parse_losses(losses: Any, task: Task, kernels: bool) -> list[Loss]:
    """Return the losses of names, text with options, or objects."""
    if losses is None:
        given = ["epsilon_insensitive" if task == "regression" else "hinge"]
    elif isinstance(losses, str):
        given = split_names(losses)
    elif is_loss(losses):
        given = [losses]
    else:
        given = list(losses)
    made = [make_loss(loss, task=task) for loss in given]
    return [check_kernel_loss(loss) for loss in made] if kernels else made


def check_strengths(given: object, name: str) -> list[float]:
    """Return the values of C or lambda as a list; empty if none are given."""
    if given is None:
        return []
    values = as_list(given)
    for value in values:
        check(name, value, STRENGTH)
    return [float(value) for value in values]
