"""Compare solvers on one's own data: every run (solver or peer, loss, C, repeat) goes into one tidy trace."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from saddlesvm.fit.outcome import Limits
from saddlesvm.lab import tidy
from saddlesvm.lab.comparison_report import Comparison
from saddlesvm.lab.dataset import Dataset, Task, check_intercept, make_dataset, with_kernel
from saddlesvm.lab.machine import LabProgress, command_line
from saddlesvm.lab.peers import parse_peers
from saddlesvm.lab.runs import Plan, as_list, cells, parse_contenders
from saddlesvm.problem.kernel import check_kernel_loss
from saddlesvm.problem.losses import Loss, is_loss, make_loss, split_losses
from saddlesvm.runtime.allowed import STRENGTH, check
from saddlesvm.runtime.threads import interruptible

LINEAR, OF_KERNELS = "dcd,sdca,pegasos", "kernel-decomposition,kernel-sdca,kernel-pegasos"  # compared by default


def compare(
    X: Any,
    y: Any,
    *,
    solvers: Any = None,
    C: float | Sequence[float] | None = None,
    lam: float | Sequence[float] | None = None,
    losses: Any = None,
    repeats: int = 1,
    test: tuple[Any, Any] | None = None,
    budget: float = 10.0,
    tol: float = 1e-6,
    peers: str | Sequence[str] = (),
    intercept: str = "none",
    intercept_scaling: float = 1.0,
    task: Task = "classification",
    positive: Any = None,
    name: str = "data",
    image_shape: tuple[int, int] | None = None,
    certify_every: float = 1.0,
    kernel: str | Callable[..., Any] | None = None,
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
        ``"dcd"``, ``"pegasos:batch_size=64,output=average"``, ``SDCA(start="sgd")``. Left out: dcd, sdca and pegasos;
        with a kernel kernel-decomposition, kernel-sdca and kernel-pegasos.
    C, lam : float or sequence of float
        One of them: the weight of the losses, :math:`C = 1 / (\lambda n)`, or lambda; ``C=1.0`` when both are left out.
        With `lam`, objectives, tables and figures are in the lambda form.
    losses : str, Loss, or sequence of them, optional
        Default: the hinge, for a regression the epsilon-insensitive loss.
    repeats : int, default=1
        Runs with the seeds 0, 1, ...
    test : tuple (X, y), optional
        A test part.
    budget : float, default=10.0
        Seconds for each run, certificates included.
    tol : float, default=1e-6
        Relative duality gap at which a run ends.
    peers : str or sequence of str
        Other packages' solvers, by the names of :data:`saddlesvm.lab.peers.PEERS`; "all" for those installed.
    intercept : {"none", "regularized", "free"}, default="none"
    intercept_scaling : float, default=1.0
    task : {"classification", "regression"}
    positive : label, optional
        The class compared with the rest, where there are more than two.
    name : str
        Of the data, for the report.
    image_shape : tuple of int, optional
        Height and width, where a row is an image.
    certify_every : float, default=1.0
        Epochs between certificates.
    kernel : str or callable, optional
        A kernel such as "rbf", as in :class:`~saddlesvm.KernelSVC`; the solvers are then those of kernel machines.
    gamma, degree, coef0
        Of the kernel.
    trace : path, optional
        ``.parquet`` or ``.csv``: written after every run; runs that it already holds are skipped.
    progress : bool, default=False
        Show a progress bar on standard error.
    command : str, optional
        The command that repeats the comparison, for the report; by default the command line of this process.

    Returns
    -------
    Comparison
        Ctrl-C ends the comparison and returns the finished runs, with ``interrupted`` set.

    Raises
    ------
    ValueError
        Options or data that are out of range or do not fit each other, or a trace of other data.
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
    dataset = make_dataset(X, y, test=test, task=task, positive=positive, name=name, image_shape=image_shape)
    if kernel is not None:
        dataset = with_kernel(dataset, kernel, gamma, degree, coef0)
    if kernel is not None and peers:
        raise ValueError("the peers solve linear problems: leave them out with a kernel")
    default = "epsilon_insensitive" if task == "regression" else "hinge"
    if C is not None and lam is not None:
        raise ValueError("give either C or lam (lambda), not both: C = 1 / (lambda n)")
    if not isinstance(repeats, int) or repeats < 1:
        raise ValueError(f"repeats must be a whole number of at least 1; got {repeats!r}")
    plan = Plan(
        contenders=parse_contenders(solvers or (LINEAR if kernel is None else OF_KERNELS), kernels=kernel is not None),
        peers=parse_peers(peers if isinstance(peers, str) else list(peers)),
        losses=[_loss(one, task, kernel is not None) for one in _losses(losses, default)],
        C=[] if lam is not None else [_positive(one, "C") for one in as_list(1.0 if C is None else C)],
        lam=[] if lam is None else [_positive(one, "lam") for one in as_list(lam)],
        repeats=repeats,
        limits=Limits(tol=tol, max_time=budget, certify_every=certify_every),
        intercept=check_intercept(intercept),
        scaling=intercept_scaling,
    )
    return run_plan(dataset, plan, trace=trace, progress=progress, command=command or command_line())


def run_plan(
    dataset: Dataset,
    plan: Plan,
    *,
    trace: str | os.PathLike[str] | None = None,
    progress: bool = False,
    command: str = "",
) -> Comparison:
    """Run every cell of a plan that the trace file does not hold yet; parameters as for :func:`compare`."""
    kept = _earlier(trace, dataset)
    done = tidy.done_cells(kept)
    rows: list[dict[str, Any]] = kept.to_dict("records")
    found = Comparison(dataset, plan, kept, command=command)
    with interruptible() as stop, LabProgress(plan.cells, progress) as bar:
        for cell in cells(dataset, plan, found.notes):
            if cell.key not in done:
                bar.begin(cell.words)
                rows += cell.run(stop, bar)
                if trace is not None and not stop.is_set():
                    tidy.write_trace(tidy.tidy(rows), trace)
            bar.done()
            if stop.is_set():
                found.interrupted = True
                break
    found.trace = tidy.tidy(rows)
    return found


def _earlier(trace: str | os.PathLike[str] | None, dataset: Dataset) -> pd.DataFrame:
    """The finished cells of an existing trace file."""
    if trace is None:
        return tidy.tidy([])
    tidy.check_ending(trace)
    if not Path(trace).exists():
        return tidy.tidy([])
    frame = tidy.without_unfinished(tidy.read_trace(trace))
    others = set(frame["data"]) - {dataset.fingerprint}
    if others:
        raise ValueError(f"{os.fspath(trace)}: is a trace of other data; give another file, or remove it")
    return frame


def _losses(losses: Any, default: str) -> list[Any]:
    """The losses as a list; a single loss object, which is a tuple itself, becomes a list of one."""
    if losses is None:
        return [default]
    if isinstance(losses, str):
        return split_losses(losses)
    return [losses] if is_loss(losses) else list(losses)


def _loss(loss: Any, task: Task, kernels: bool) -> Loss:
    made = make_loss(loss, task=task)
    return check_kernel_loss(made) if kernels else made


def _positive(value: float, name: str) -> float:
    check(name, value, STRENGTH)
    return float(value)
