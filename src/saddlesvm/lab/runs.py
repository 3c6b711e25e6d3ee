"""The runs of a comparison: solvers with their options, and the plan of what runs on what.

A cell of the plan is a solver or a peer on a problem with a seed. It gives rows of the trace.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Record
from saddlesvm.kernel.kernel_fits import make_kernel_solver
from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.machine import LabProgress
from saddlesvm.lab.peers import Peer, Rung, full_weights, setting_of
from saddlesvm.problem.certificate import Evaluation, Point, evaluate
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.problem.losses import Loss, loss_name, spelled
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.allowed import split_names
from saddlesvm.solvers import make_solver
from saddlesvm.solvers.base import Budget

if TYPE_CHECKING:
    from saddlesvm.solvers.base import SolverBase

# Epochs between two certificates, as a share of the epochs done. A certificate every epoch would
# slow a long run down, and lets a solver that stops on the gap recall rows that shrinking had set
# aside. Certificates of kernel machines compute kernel values anew, so they are rarer.
GROWTH = 0.1
KERNEL_GROWTH = 0.5
WARM_ROWS = 256  # row visits of the run that loads compiled kernels
PEER_SECONDS = 10.0  # for the ladder of a peer, if the plan has no limit
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
    "kernel_evaluations",
    "remark",
)


@dataclass(frozen=True)
class Contender:
    """A solver with its options.

    Attributes
    ----------
    solver : object
        A solver object.
    options : str
        The options that are not the defaults, as ``name=value`` joined by commas.
    """

    solver: Any
    options: str

    @property
    def name(self) -> str:
        """Name of the solver."""
        return str(self.solver.name)

    @property
    def label(self) -> str:
        """Name and options for legends and tables."""
        return label_of(self.name, self.options)


def parse_contenders(
    solvers: str | Any | Iterable[Any], *, kernels: bool = False
) -> list[Contender]:
    """Return contenders from names, text with options, and solver objects.

    Parameters
    ----------
    solvers : str, solver object, or sequence of them
        A string may name several: ``"dcd,pegasos:batch_size=64,output=average"``. A part with a
        ``=`` is a further option of the solver before it.
    kernels : bool, default=False
        Whether they are solvers of kernel machines.

    Raises
    ------
    ValueError
        A solver or option is unknown, a value is out of range, or a contender is named twice.
    """
    is_single = isinstance(solvers, str) or not isinstance(solvers, Iterable)
    given: list[Any] = [solvers] if is_single else list(solvers)
    make = make_kernel_solver if kernels else make_solver
    contenders: list[Contender] = []
    for item in given:
        named = split_names(item) if isinstance(item, str) else [item]
        contenders += [make_contender(make(solver)) for solver in named]
    if not contenders:
        raise ValueError("no solver is named; give at least one")
    labels = [contender.label for contender in contenders]
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"the solver {label} is named twice: leave one of the two out")
    return contenders


def make_contender(solver: object) -> Contender:
    """Return a solver object as a contender."""
    return Contender(solver, changed_options(solver))


def changed_options(solver: Any) -> str:
    """Return the options of a solver object that differ from the defaults, as text."""
    parts = []
    for option in dataclasses.fields(solver):
        value = getattr(solver, option.name)
        if value != option.default:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            parts.append(f"{option.name}={text}")
    return ",".join(parts)


def label_of(name: str, options: str) -> str:
    """Return name and options as a contender's label has them."""
    return f"{name} ({options})" if options else name


def as_list(given: Any) -> list[Any]:
    """Return a sequence as a list, and a single value as a list with it."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        return list(given)
    return [given]


def warm_up(problem: Problem, solver: object) -> None:
    """Run a solver for a moment, so that compiled kernels are loaded before the clock starts."""
    limits = Limits(tol=0.0, max_epochs=min(1.0, WARM_ROWS / problem.members.size))
    fit(problem, solver, limits)
    if isinstance(problem, Problem):
        evaluate(problem, Point(w=np.zeros(problem.n_features + 1)))


def run_solver(
    dataset: Dataset,
    problem: Problem,
    solver: object,
    limits: Limits,
    *,
    seed: int = 0,
    stop: threading.Event | None = None,
    ticker: object = None,
) -> tuple[list[dict[str, object]], FitResult]:
    """Fit, and measure the errors when the clock has stopped.

    Returns
    -------
    rows : list of dict
        Rows of the trace; the last row has the outcome.
    result : FitResult
    """
    # Certificates become rarer as the run goes on.
    growth = GROWTH if isinstance(problem, Problem) else KERNEL_GROWTH
    rarer = replace(limits, certify_every=limits.certify_every or 1.0, certify_growth=growth)
    records: list[Record] = []
    callbacks: list[Any] = [records.append]
    if ticker is not None:
        callbacks.append(ticker)
    result = fit(problem, solver, rarer, seed=seed, callbacks=callbacks, stop=stop)
    # The clock of the fit has stopped: the errors take no time of it.
    rows = trace_rows(dataset, records)
    if rows:
        rows[-1]["outcome"] = str(result.outcome)
    return rows, result


def trace_rows(dataset: Dataset, records: list[Record]) -> list[dict[str, object]]:
    """Return the records of a fit as rows of the trace, without the columns that name the cell."""
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


def run_peer(
    dataset: Dataset, problem: Problem, peer: Peer, seconds: float, *, seed: int = 0
) -> list[dict[str, object]]:
    """Climb a peer's ladder of fits, and evaluate every fit by our objective."""
    setting = setting_of(dataset, problem)
    # The first fit in a process loads code, which the comparison does not time.
    for _ in peer.climb(setting, seed, 0.0, ladder=(1,)):
        pass
    rows = [peer_row(dataset, problem, rung) for rung in peer.climb(setting, seed, seconds)]
    rows[-1]["outcome"] = rows[-1]["outcome"] or "time_limit"
    return rows


def peer_row(dataset: Dataset, problem: Problem, rung: Rung) -> dict[str, object]:
    """Return a peer's model as a row of the trace."""
    evaluation = evaluate_weights(problem, rung.w)
    train, test = dataset.errors(evaluation.coef, evaluation.intercept)
    certificate = evaluation.certificate
    return {
        "primal": certificate.primal,
        "dual": certificate.dual,
        "gap": certificate.gap,
        "relative_gap": certificate.relative_gap,
        "epoch": rung.epochs,
        "rows_touched": int(rung.epochs * problem.n) if math.isfinite(rung.epochs) else 0,
        "seconds_solving": rung.seconds,
        "seconds_certifying": 0.0,
        "train_error": train,
        "test_error": test,
        "active_rows": problem.n,
        "outcome": "rule_met" if rung.converged else "",
    }


def evaluate_weights(problem: Problem, w: np.ndarray) -> Evaluation:
    """Return objective and gap, in float64, of weights that another package found."""
    return evaluate(problem, Point(w=full_weights(problem, w)))


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


def hinge_objective(data: Dataset, lam: float, w: np.ndarray | None) -> float:
    """Return the hinge objective in the lambda form; `w` has a place for the virtual feature."""
    assert w is not None
    coef = w[:-1].astype(np.float64)
    margins = data.y * np.asarray(data.X @ coef.astype(data.X.dtype), dtype=np.float64)
    return float(np.maximum(0.0, 1.0 - margins).mean() + 0.5 * lam * coef @ coef)


@dataclass(frozen=True, eq=False)
class Plan:
    """The parts of a comparison.

    Attributes
    ----------
    contenders : list of Contender
    peers : list of Peer
    losses : list of Loss
    C : list of float
    repeats : int
        Seeds 0 to repeats - 1.
    limits : Limits
        The limits of each run.
    intercept : {"none", "regularized", "free"}
    scaling : float
        Value of the constant feature of a regularised intercept.
    lam : sequence of float
        More problems, whose objectives are in the lambda form.
    """

    contenders: list[Contender]
    peers: list[Peer]
    losses: list[Loss]
    C: list[float]
    repeats: int
    limits: Limits
    intercept: InterceptName = "none"
    scaling: float = 1.0
    lam: Sequence[float] = ()

    @property
    def cells(self) -> int:
        """Number of runs."""
        n_problems = len(self.losses) * (len(self.C) + len(self.lam))
        n_solvers = len(self.contenders) + len(self.peers)
        return n_problems * n_solvers * self.repeats


@dataclass(frozen=True, eq=False)
class Cell:
    """A run: a solver on a problem with a seed."""

    dataset: Dataset
    problem: Any
    entrant: Contender | Peer
    limits: Limits
    repeat: int

    @property
    def options(self) -> str:
        """The solver's options that are not its defaults."""
        return self.entrant.options if isinstance(self.entrant, Contender) else ""

    @property
    def key(self) -> tuple[object, ...]:
        """The values that identify the cell in a trace."""
        return (
            self.entrant.name,
            self.options,
            spelled(self.problem.loss),
            self.problem.C,
            self.repeat,
        )

    @property
    def words(self) -> str:
        """The words on the progress bar."""
        problem = self.problem
        if isinstance(self.entrant, Contender):
            name = self.entrant.label
        else:
            name = self.entrant.title
        strength = f"lambda = {problem.lam:g}" if problem.uses_lambda else f"C = {problem.C:g}"
        return f"{name}, {spelled(problem.loss)}, {strength}, repeat {self.repeat + 1}"

    def run(self, stop: threading.Event, bar: LabProgress) -> list[dict[str, object]]:
        """Run the cell, and return its rows with the columns that name it."""
        problem = self.problem
        # A solver of ours is certified along the way; a peer is fitted again and again.
        if isinstance(self.entrant, Contender):
            solver = self.entrant.solver
            if self.repeat == 0:
                warm_up(problem, solver)
            rows, _ = run_solver(
                self.dataset,
                problem,
                solver,
                self.limits,
                seed=self.repeat,
                stop=stop,
                ticker=bar,
            )
        else:
            seconds = self.limits.max_time or PEER_SECONDS
            rows = run_peer(self.dataset, problem, self.entrant, seconds, seed=self.repeat)
        names = {
            "data": self.dataset.fingerprint,
            "solver": self.entrant.name,
            "options": self.options,
            "loss": spelled(problem.loss),
            "C": problem.C,
            "lam": problem.lam,
            "form": "lambda" if problem.uses_lambda else "C",
            "repeat": self.repeat,
        }
        return [row | names for row in rows]


def list_cells(dataset: Dataset, plan: Plan, notes: list[str]) -> Iterator[Cell]:
    """Yield the cells of the plan that can run; add a sentence to `notes` for each that cannot."""
    strengths: list[tuple[float | None, float | None]] = [(C, None) for C in plan.C]
    strengths += [(None, lam) for lam in plan.lam]
    for loss in plan.losses:
        able = []
        for peer in plan.peers:
            # Peers have no free intercept that all of them fit alike.
            if plan.intercept != "free" and loss_name(loss) in peer.losses:
                able.append(peer)
                continue
            note = (
                f"{peer.title} is left out for the {loss_name(loss)} loss with intercept "
                f"{plan.intercept}."
            )
            if note not in notes:
                notes.append(note)
        for C, lam in strengths:
            problem = dataset.problem(loss, C, plan.intercept, plan.scaling, lam)
            entrants: list[Contender | Peer] = [*plan.contenders, *able]
            for repeat in range(plan.repeats):
                for entrant in entrants:
                    yield Cell(dataset, problem, entrant, plan.limits, repeat)
