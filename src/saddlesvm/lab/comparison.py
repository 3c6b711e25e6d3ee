"""Compare solvers on your own data: all runs go into a single tidy trace.

A run is a solver or a peer on a problem (loss and C) with a seed. The result has the findings
in words, and the report with its tables and charts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from saddlesvm.fit.outcome import Limits
from saddlesvm.lab.comparison_report import Comparison
from saddlesvm.lab.dataset import Task, make_dataset
from saddlesvm.lab.machine import show_progress
from saddlesvm.lab.peers import Peer, parse_peers, run_peer
from saddlesvm.lab.runs import label_solver, parse_solvers, run_solver, warm_up
from saddlesvm.lab.traces import tidy_trace
from saddlesvm.problem.intercepts import intercept_kind
from saddlesvm.problem.losses import Loss, is_loss, loss_name, loss_text, make_loss
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.allowed import LIMIT, POSITIVE, RELATIVE_GAP, STRENGTH, check, split_names
from saddlesvm.runtime.data_types import LabelsLike, RowsLike
from saddlesvm.runtime.interrupts import catch_interrupts

SOLVERS = "auto,dcd,sdca,pegasos"  # that are compared by default
SECONDS = 10.0  # of each run, by default


def compare(
    X: RowsLike,
    y: LabelsLike,
    *,
    solvers: object = SOLVERS,
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
    certify_every: float = 1.0,
    progress: bool = False,
    command: str = "",
) -> Comparison:
    r"""Run solvers side by side on your data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
    solvers : str, solver object, or sequence of them
        ``"dcd"``, ``"pegasos:batch_size=64,output=average"``, ``SDCA(start="sgd")``. By
        default auto, dcd, sdca and pegasos.
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
        Solvers of other packages: "sklearn" (LinearSVC, LinearSVR), "sgd" (SGDClassifier); "all"
        for both.
    intercept : {"none", "regularized", "free"}, default="none"
    intercept_scaling : float, default=1.0
    task : {"classification", "regression"}
    positive : label, optional
        The class that is compared with the rest, if there are more than two.
    name : str
        The name of the data, for the report.
    certify_every : float, default=1.0
        Epochs between certificates.
    progress : bool, default=False
        Show a progress bar on standard error.
    command : str, optional
        The command that repeats the comparison, for the report.

    Returns
    -------
    Comparison
        Ctrl-C ends the comparison and returns the finished runs, with ``interrupted`` set.

    Raises
    ------
    ValueError
        Options or data are out of range, or do not work together.

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
    check("tol", tol, RELATIVE_GAP)
    check("budget", budget, POSITIVE)
    check("certify_every", certify_every, LIMIT)
    dataset = make_dataset(X, y, test=test, task=task, positive=positive, name=name)
    entrants = [*parse_solvers(solvers), *parse_peers(peers)]
    kind = intercept_kind(intercept).name
    if C is None and lam is None:
        C = 1.0
    problems = []
    for loss in parse_losses(losses, task):
        strengths = [{"C": value} for value in check_strengths(C, "C")]
        strengths += [{"lam": value} for value in check_strengths(lam, "lam")]
        for strength in strengths:
            problem = dataset.problem(loss, intercept=kind, scaling=intercept_scaling, **strength)
            problems.append(problem)
    limits = Limits(tol=tol, max_time=budget, certify_every=certify_every)
    settings = [
        ("intercept", kind if kind == "none" else f"{kind}, scaling {intercept_scaling:g}"),
        ("each run ends at", f"relative gap {tol:g}, or {budget:g} s with certificates"),
        ("repeats", str(repeats)),
    ]
    comparison = Comparison(dataset, problems, tidy_trace([]), settings, command=command)

    # Every combination is a run.
    runs = list(list_runs(problems, entrants, repeats, comparison.notes))
    rows: list[dict[str, object]] = []
    with catch_interrupts() as stop, show_progress(len(runs), progress) as begin:
        for problem, entrant, repeat in runs:
            begin(describe_run(problem, entrant, repeat))
            if isinstance(entrant, Peer):
                rows += run_peer(dataset, problem, entrant, budget, seed=repeat)
            else:
                if repeat == 0:
                    warm_up(problem, entrant)
                rows += run_solver(dataset, problem, entrant, limits, seed=repeat, stop=stop)[0]
            if stop.is_set():
                comparison.interrupted = True
                break
    comparison.trace = tidy_trace(rows)
    return comparison


def list_runs(
    problems: list[Problem], entrants: list[Any], repeats: int, notes: list[str]
) -> Iterator[tuple[Problem, Any, int]]:
    """Yield problem, solver or peer, and seed of each run; note each peer that is left out."""
    for problem in problems:
        able = []
        for entrant in entrants:
            if isinstance(entrant, Peer) and not can_solve(entrant, problem):
                note = (
                    f"{entrant.title} is left out for the {loss_name(problem.loss)} loss with "
                    f"intercept {problem.intercept}."
                )
                if note not in notes:
                    notes.append(note)
                continue
            able.append(entrant)
        for repeat in range(repeats):
            for entrant in able:
                yield problem, entrant, repeat


def can_solve(peer: Peer, problem: Problem) -> bool:
    """Return True if a peer has the loss and the intercept of a problem."""
    # The peers have no free intercept that all of them fit alike.
    return loss_name(problem.loss) in peer.losses and not problem.intercept.constrained


def describe_run(problem: Problem, entrant: Any, repeat: int) -> str:
    """Return the words on the progress bar."""
    name = entrant.title if isinstance(entrant, Peer) else label_solver(entrant)
    strength = f"C = {problem.C:g}"
    if problem.uses_lambda:
        strength = f"lambda = {problem.lam:g}"
    return f"{name}, {loss_text(problem.loss)}, {strength}, repeat {repeat + 1}"


def parse_losses(losses: Any, task: Task) -> list[Loss]:
    """Return the losses of names, text with options, or objects."""
    if losses is None:
        losses = "epsilon_insensitive" if task == "regression" else "hinge"
    if isinstance(losses, str):
        losses = split_names(losses)
    elif is_loss(losses):
        losses = [losses]
    return [make_loss(loss, task=task) for loss in losses]


def check_strengths(given: Any, name: str) -> list[float]:
    """Return the values of C or lambda as a list; empty if none are given."""
    if given is None:
        return []
    values = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    for value in values:
        check(name, value, STRENGTH)
    return [float(value) for value in values]
