"""The runs of a comparison: the solvers, given by name, as objects or as text with options; and the
plan.

A cell of the plan is a solver or a peer on one problem with one seed. It gives rows of the trace.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from saddlesvm.runtime.allowed import names_in
from saddlesvm.solvers import make_solver
from saddlesvm.solvers.base import Budget


@dataclass(frozen=True)
class Contender:
    """A solver with its options.

    Attributes
    ----------
    solver : object
        Solver object.
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
    """Contenders from names, text with options, and solver objects.

    Parameters
    ----------
    solvers : str, solver object, or sequence of them
        A string may name several: ``"dcd,pegasos:batch_size=64,output=average"``. A part with a
        ``=`` goes on with the options of the solver before it.
    kernels : bool, default=False
        Whether they are solvers of kernel machines.

    Raises
    ------
    ValueError
        An unknown solver or option, a value out of range, or the same contender twice.
    """
    given = (
        [solvers]
        if isinstance(solvers, str) or not isinstance(solvers, Iterable)
        else list(solvers)
    )
    found: list[Contender] = []
    made = make_kernel_solver if kernels else make_solver
    for one in given:
        found += [
            contender(made(named)) for named in (names_in(one) if isinstance(one, str) else [one])
        ]
    if not found:
        raise ValueError("no solver is named; give at least one")
    labels = [contender.label for contender in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(f"the solver {twice} is named twice")
    return found


def contender(solver: Any) -> Contender:
    """A solver object as a contender."""
    return Contender(solver, options_of(solver))


def options_of(solver: Any) -> str:
    """The options of a solver object that differ from the defaults."""
    given = {one.name: getattr(solver, one.name) for one in dataclasses.fields(solver)}
    other = {
        one.name: given[one.name]
        for one in dataclasses.fields(solver)
        if given[one.name] != one.default
    }
    return ",".join(
        f"{name}={str(one).lower() if isinstance(one, bool) else one}"
        for name, one in other.items()
    )


def label_of(name: str, options: str) -> str:
    """Name and options as a contender's label writes them."""
    return f"{name} ({options})" if options else name


def as_list(given: Any) -> list[Any]:
    """A list of one, or the sequence as a list."""
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


GROWTH = 0.1  # epochs between certificates, as a share of the epochs done
KERNEL_GROWTH = 0.5  # the same for kernel machines, whose certificates compute kernel values anew
WARM_ROWS = 256
RECORDED = (  # of a fit's record: the columns of the trace that bear the same names
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


def warm_up(problem: Any, solver: Any) -> None:
    """Run a solver for a moment, so that compiled kernels are loaded before the clock starts."""
    limits = Limits(tol=0.0, max_epochs=min(1.0, WARM_ROWS / problem.members.size))
    fit(problem, solver, limits)
    if isinstance(problem, Problem):
        evaluate(problem, Point(w=np.zeros(problem.n_features + 1)))


def run_solver(
    dataset: Dataset,
    problem: Any,
    solver: Any,
    limits: Limits,
    *,
    seed: int = 0,
    stop: threading.Event | None = None,
    ticker: Any = None,
) -> tuple[list[dict[str, Any]], FitResult]:
    """Fit and measure; the errors are computed when the clock has stopped.

    A certificate every epoch would slow a long run down, and lets a solver that stops on the gap
    recall rows that shrinking had set aside. So certificates become rarer as the run goes on.

    Returns
    -------
    rows : list of dict
        The last one carries the outcome.
    result : FitResult
    """
    # Errors are computed from the records afterwards: the clock of the fit has stopped then.
    records: list[Record] = []
    growth = GROWTH if isinstance(problem, Problem) else KERNEL_GROWTH
    rarer = replace(limits, certify_every=limits.certify_every or 1.0, certify_growth=growth)
    callbacks: list[Any] = [records.append, *([] if ticker is None else [ticker])]
    result = fit(problem, solver, rarer, seed=seed, callbacks=callbacks, stop=stop)
    rows = rows_of(dataset, records)
    if rows:
        rows[-1]["outcome"] = str(result.outcome)
    return rows, result


def rows_of(dataset: Dataset, records: list[Record]) -> list[dict[str, Any]]:
    """The records of a fit as rows of the trace, without the columns that name the cell."""
    if not records:
        return []
    coefs = np.array([record.coef for record in records])
    errors = dataset.errors_of(coefs, np.array([record.intercept for record in records]))
    return [
        {name: getattr(record, name) for name in RECORDED}
        | {
            "train_error": train,
            "test_error": test,
            "active_rows": record.active,
            "change_of_w": record.change if math.isfinite(record.change) else math.nan,
        }
        for record, train, test in zip(records, *(one.tolist() for one in errors), strict=True)
    ]


def run_peer(
    dataset: Dataset, problem: Problem, peer: Peer, seconds: float, *, seed: int = 0
) -> list[dict[str, Any]]:
    """Climb a peer's ladder and evaluate every rung by our objective."""
    setting = setting_of(dataset, problem)
    for _ in peer.climb(setting, seed, 0.0, ladder=(1,)):
        pass  # the first fit in a process loads code; the comparison does not time that
    rows = [peer_row(dataset, problem, rung) for rung in peer.climb(setting, seed, seconds)]
    rows[-1]["outcome"] = rows[-1]["outcome"] or "time_limit"
    return rows


def peer_row(dataset: Dataset, problem: Problem, rung: Rung) -> dict[str, Any]:
    """A peer's model as a row of the trace."""
    evaluation = evaluation_of(problem, rung.w)
    train, test = dataset.errors(evaluation.coef, evaluation.intercept)
    certificate = evaluation.certificate
    return {
        name: getattr(certificate, name) for name in ("primal", "dual", "gap", "relative_gap")
    } | {
        "epoch": rung.epochs,
        "rows_touched": int(rung.epochs * problem.n) if math.isfinite(rung.epochs) else 0,
        "seconds_solving": rung.seconds,
        "seconds_certifying": 0.0,
        "train_error": train,
        "test_error": test,
        "active_rows": problem.n,
        "outcome": "rule_met" if rung.converged else "",
    }


def evaluation_of(problem: Problem, w: np.ndarray) -> Evaluation:
    """Objective and gap of weights that were found elsewhere, in float64."""
    return evaluate(problem, Point(w=full_weights(problem, w)))


def iterates(
    problem: Problem,
    solver: Any,
    epochs: np.ndarray | list[float],
    seed: int = 0,
    start: Point | None = None,
) -> Iterator[tuple[Any, Point]]:
    """State and point of a solver at the given epochs, as they are, without the fit's choice of the
    best one.

    The weights of a point are a copy; the state, and the dual variables, change with the next step.

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
        while (left := round((epoch - state.epochs) * n)) > 0:
            state = solver.step(problem, state, Budget(left))
        point = solver.solution(problem, state)
        yield state, Point(None if point.w is None else point.w.copy(), point.alpha, point.tracks)


def hinge_objective(data: Dataset, lam: float, w: np.ndarray | None) -> float:
    """The hinge objective in the lambda form, of weights with a place for the virtual feature."""
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
        Of every single run.
    intercept : {"none", "regularized", "free"}
    scaling : float
        Value of the constant feature of a regularised intercept.
    lam : sequence of float
        More problems, in the lambda form: their objectives are those of that form.
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
        return (
            len(self.losses)
            * (len(self.C) + len(self.lam))
            * self.repeats
            * (len(self.contenders) + len(self.peers))
        )


@dataclass(frozen=True, eq=False)
class Cell:
    """One run: a solver on a problem with a seed."""

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
    def key(self) -> tuple[Any, ...]:
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
        who = self.entrant.label if isinstance(self.entrant, Contender) else self.entrant.title
        problem = self.problem
        strength = f"lambda = {problem.lam:g}" if problem.uses_lambda else f"C = {problem.C:g}"
        return f"{who}, {spelled(problem.loss)}, {strength}, repeat {self.repeat + 1}"

    def run(self, stop: threading.Event, bar: LabProgress) -> list[dict[str, Any]]:
        """The rows of the run, named."""
        if isinstance(self.entrant, Contender):
            if self.repeat == 0:
                warm_up(self.problem, self.entrant.solver)
            rows, _ = run_solver(
                self.dataset,
                self.problem,
                self.entrant.solver,
                self.limits,
                seed=self.repeat,
                stop=stop,
                ticker=bar,
            )
        else:
            rows = run_peer(
                self.dataset,
                self.problem,
                self.entrant,
                self.limits.max_time or 10.0,
                seed=self.repeat,
            )
        solver, options, loss, C, repeat = self.key
        names = {
            "data": self.dataset.fingerprint,
            "solver": solver,
            "options": options,
            "loss": loss,
            "C": C,
        }
        names |= {
            "lam": self.problem.lam,
            "form": "lambda" if self.problem.uses_lambda else "C",
            "repeat": repeat,
        }
        return [row | names for row in rows]


def cells(dataset: Dataset, plan: Plan, notes: list[str]) -> Iterator[Cell]:
    """Every cell of the plan that can run; `notes` receives a sentence for each that cannot."""
    for loss in plan.losses:
        for C, lam in (*((C, None) for C in plan.C), *((None, lam) for lam in plan.lam)):
            problem = dataset.problem(loss, C, plan.intercept, plan.scaling, lam)
            comparable = not problem.intercept.constrained
            able = [peer for peer in plan.peers if comparable and loss_name(loss) in peer.losses]
            for peer in plan.peers:
                note = (
                    f"{peer.title} is left out for the {loss_name(loss)} loss with intercept "
                    f"{plan.intercept}."
                )
                if peer not in able and note not in notes:
                    notes.append(note)
            for repeat in range(plan.repeats):
                entrants: list[Contender | Peer] = [*plan.contenders, *able]
                for entrant in entrants:
                    yield Cell(dataset, problem, entrant, plan.limits, repeat)
