"""Sweeps over rows in files: read all blocks, add up what they tell, and take a step.

A step of the fit's loop reads one block, for any number of problems over the same files. Between
sweeps a run keeps its point, and nothing of a row but dual variables; a resumed run repeats the
sweep that was under way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.problem import Problem
from saddlesvm.rows.files import BlockReader, RowBlock
from saddlesvm.rows.passes import FromFiles
from saddlesvm.rows.places import Memory
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget, SolverBase, State
from saddlesvm.solvers.machines import Binary, SoftmaxMachine
from saddlesvm.solvers.newton import solve_roughly
from saddlesvm.solvers.task import Task

FILLED = 0.9  # share of the room that rows drawn, or likely to be free, are to fill; a guess
KEPT_BYTES = 64  # bytes of a kept row besides its values; derived
FEWEST_BLOCKS = 3  # blocks of the files from which on one is worth a first solution; a guess


@dataclass
class SweepWork:
    """The sweep under way.

    Attributes
    ----------
    block : int
        The block that is due.
    found : object
        The sums of the blocks before, as the solver has them; None before the first block.
    alpha : ndarray of shape (n_all,)
        The multipliers of their rows.
    carried : CarriedDuals, optional
        The dual point that the first sweep began with.
    """

    block: int = 0
    found: Any = None
    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    carried: Any = None


@dataclass
class SweepState(State):
    """The state of a run: at the end of its last sweep, from which a resumed run goes on.

    Attributes
    ----------
    sweeps : int
        Sweeps so far.
    work : SweepWork
        The sweep under way.
    """

    sweeps: int = 0
    work: SweepWork = field(default_factory=SweepWork, repr=False)


def reader_of(problem: Problem) -> BlockReader:
    """Return what reads the rows of a problem over files."""
    passes = problem.passes
    assert isinstance(passes, FromFiles)
    return passes.reader


def read_sample(problem: Problem) -> RowBlock:
    """Read one block of chunks from all over the files."""
    reader = reader_of(problem)
    chunks = np.linspace(0, reader.n_chunks - 1, reader.per_block).astype(int)
    return reader.fetch(np.unique(chunks).tolist())


def solve_sample(
    local: Problem, machine: Binary | SoftmaxMachine, n: int, W: np.ndarray
) -> np.ndarray:
    """Nearly solve the problem of some rows, which weigh as much as n rows; begin at W."""
    place = Memory(local.X, local.members)
    # A free intercept is not penalised; C grows by n / m, as each row stands for so many.
    ridge = np.ones(place.d + 1)
    if local.intercept.constrained:
        ridge[-1] = 0.0
    norms = local.norms[local.members]
    task = Task(place, machine, ridge, local.C * n / place.n, keeps_factor=True, norms=norms)
    with blas_for(0.0), np.errstate(all="ignore"):
        return solve_roughly(task, W)[0]


@dataclass(frozen=True)
class OverFiles(SolverBase, ABC):
    """The base class of solvers over rows in files, which work on several problems at once."""

    kind: ClassVar[type[Problem]] = Problem

    def check_problem(self, problem: Problem) -> Any:
        """Return the problem; raise ValueError for one that the solver does not take."""
        if not problem.on_files or not isinstance(problem, self.kind):
            kind = self.kind.__name__
            raise ValueError(
                f"{type(self).__name__} reads rows from files: use it in an estimator, or with a "
                f"{kind} there"
            )
        return problem

    def step(self, problem: Problem, state: Any, budget: Budget) -> State:
        """Read one block."""
        return self.step_together([problem], [state], [budget])[0]

    @abstractmethod
    def step_together(
        self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]
    ) -> list[Any]:
        """Read one block for several problems, whose runs are at the same block."""
