"""Sweeps over rows in files: what solvers have in common that read all blocks, add up what they find, and take a step.

A step of the fit's loop reads one block, for any number of problems over the same files. Between sweeps a run keeps its
point, and nothing of a row but dual variables; a resumed run repeats the sweep that was under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.on_files import CarriedDuals
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.passes import FromFiles, Part
from saddlesvm.runtime.durable import Workspace
from saddlesvm.solvers.base import Budget, SolverBase, State

FILLED = 0.9  # share of the room that rows drawn, or likely to be free, are to fill
KEPT_BYTES = 64  # bytes of a kept row besides its values


@dataclass
class SweepWork(Workspace):
    """The findings of the present sweep so far.

    Attributes
    ----------
    block : int
        The block that is due.
    found : object
        The findings in the rows of the blocks before, as the solver has them; None before the first block.
    alpha : ndarray of shape (n_all,)
        Their multipliers.
    carried : CarriedDuals, optional
        The dual point that the first sweep began with.
    """

    block: int = 0
    found: Any = None
    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    carried: CarriedDuals | None = None

    def begin(self, found: Any, problem: Problem, carried: np.ndarray | None) -> None:
        """Begin a sweep with findings in no row; `carried` is the dual point that it is to prove beside its own."""
        spare = problem.rooms.spare
        self.found, self.alpha = found, np.zeros(problem.y.size) if spare is None else spare
        self.carried = CarriedDuals(problem, carried) if carried is not None and carried.any() else None


@dataclass
class KeptRows(Workspace):
    """The values of the rows kept in this sweep, block by block; a resumed run reads them again.

    Attributes
    ----------
    pieces : list of Dense or CSR
    count : int
        Rows of all pieces.
    """

    pieces: list[Rows] = field(default_factory=list)
    count: int = 0

    def add(self, piece: Rows) -> None:
        """Keep some more."""
        self.pieces.append(piece)
        self.count += piece.n_rows


@dataclass
class SweepState(State):
    """The state of a run: at the end of its last sweep, from which a resumed run goes on.

    Attributes
    ----------
    sweeps, visited : int
        Sweeps so far, and row visits of the one under way.
    proves_itself : bool
        Each sweep proves its point: a certificate reads nothing.
    work : SweepWork
        The sweep under way.
    """

    sweeps: int = 0
    visited: int = 0
    proves_itself: bool = False
    work: SweepWork = field(default_factory=SweepWork, repr=False)


def reader_of(problem: Problem) -> BlockReader:
    """What reads the rows of a problem over files."""
    passes = problem.passes
    assert isinstance(passes, FromFiles)
    return passes.reader


@dataclass(frozen=True)
class OverFiles(SolverBase):
    """The base class of solvers over rows in files, which work on several problems at once."""

    kind: ClassVar[type[Problem]] = Problem

    def suited(self, problem: Problem) -> Any:
        """The problem; raise ValueError for one that the solver does not take."""
        if not problem.on_files or not isinstance(problem, self.kind):
            kind = self.kind.__name__
            raise ValueError(
                f"{type(self).__name__} reads rows from files: use it in an estimator, or with a {kind} there"
            )
        return problem

    def step(self, problem: Problem, state: Any, budget: Budget) -> Any:
        """Read one block."""
        return self.step_together([problem], [state], [budget])[0]

    def step_together(self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]) -> list[Any]:
        """Read one block for several problems over the same files, whose runs are at the same block."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sweeps(OverFiles):
    """The base class of solvers whose epoch is one sweep over all blocks, at the end of which they take a step."""

    def resumed(self, problem: Problem, state: Any) -> Any:
        """Begin the sweep again, which was under way."""
        state.rows_touched, state.visited, state.epochs = state.rows_touched - state.visited, 0, float(state.sweeps)
        return state

    def step_together(self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]) -> list[Any]:
        """Read one block for several problems over the same files, whose sweeps are at the same block."""
        streamed = [self.suited(problem) for problem in problems]
        self.prepare(streamed, states)
        passes = streamed[0].passes
        assert isinstance(passes, FromFiles)
        part = passes.part(states[0].work.block, again=True)
        for problem, state, budget in zip(streamed, states, budgets, strict=True):
            own, work = part.among(problem.members), state.work
            self.visit(problem, state, own)
            state.rows_touched += own.rows.size
            state.visited += own.rows.size
            work.block += 1
            if work.block < passes.reader.n_blocks:
                state.epochs += (part.last - part.first) / problem.y.size
                continue
            state.sweeps, state.visited, state.work = state.sweeps + 1, 0, SweepWork()
            state.epochs = float(state.sweeps)
            self.end_of_sweep(problem, state, work, budget.relative_gap)
        return list(states)

    def prepare(self, problems: Sequence[Any], states: Sequence[Any]) -> None:
        """The preparation before the first block: nothing."""

    def visit(self, problem: Any, state: Any, part: Part) -> None:
        """Add what the rows of a block say to the findings of the sweep."""
        raise NotImplementedError

    def end_of_sweep(self, problem: Any, state: Any, work: SweepWork, target: float) -> None:
        """Take a step by the findings of a whole sweep."""
        raise NotImplementedError


def proven(problem: Problem, w: np.ndarray, alpha: np.ndarray, certificate: Certificate) -> Point:
    """A point that a sweep has proven."""
    return Point(w, alpha, proven=Evaluation.of(problem, w, alpha, certificate))
