"""The plan of a comparison, and its cells: each cell is one solver on one problem with one seed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from saddlesvm.fit.limits import Limits
from saddlesvm.lab.contenders import Contender
from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.peers import Peer
from saddlesvm.lab.progress import LabProgress
from saddlesvm.lab.runs import run_peer, run_solver, warm_up
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.problem.losses import Loss, loss_name, spelled


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
            len(self.losses) * (len(self.C) + len(self.lam)) * self.repeats * (len(self.contenders) + len(self.peers))
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
        return (self.entrant.name, self.options, spelled(self.problem.loss), self.problem.C, self.repeat)

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
                self.dataset, self.problem, self.entrant.solver, self.limits, seed=self.repeat, stop=stop, ticker=bar
            )
        else:
            rows = run_peer(self.dataset, self.problem, self.entrant, self.limits.max_time or 10.0, seed=self.repeat)
        solver, options, loss, C, repeat = self.key
        names = {"data": self.dataset.fingerprint, "solver": solver, "options": options, "loss": loss, "C": C}
        names |= {"lam": self.problem.lam, "form": "lambda" if self.problem.uses_lambda else "C", "repeat": repeat}
        return [row | names for row in rows]


def cells(dataset: Dataset, plan: Plan, notes: list[str]) -> Iterator[Cell]:
    """Every cell of the plan that can run; `notes` receives a sentence for each that cannot."""
    for loss in plan.losses:
        for C, lam in (*((C, None) for C in plan.C), *((None, lam) for lam in plan.lam)):
            problem = dataset.problem(loss, C, plan.intercept, plan.scaling, lam)
            comparable = not problem.intercept.constrained
            able = [peer for peer in plan.peers if comparable and loss_name(loss) in peer.losses]
            for peer in plan.peers:
                note = f"{peer.title} is left out for the {loss_name(loss)} loss with intercept {plan.intercept}."
                if peer not in able and note not in notes:
                    notes.append(note)
            for repeat in range(plan.repeats):
                entrants: list[Contender | Peer] = [*plan.contenders, *able]
                for entrant in entrants:
                    yield Cell(dataset, problem, entrant, plan.limits, repeat)
