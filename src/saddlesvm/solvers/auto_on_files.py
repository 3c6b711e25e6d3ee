"""The solver of rows in files in the place of one over rows in memory, chosen before any is read.

Newton's method takes a handful of sweeps whatever C is, but needs room for matrices of the
features. Losses with kinks begin with blocks of the dual, which certify easy problems in a few
sweeps, and problems of which many rows have one margin. The active-set method then goes on if there
is room for the rows that are free. Where there is no room, and for the elastic net, blocks of the
dual need none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.penalties import L2, Penalty
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.memory_plan import KEPT_SHARE
from saddlesvm.solvers.active_set import INSIDE
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.base import Budget, SolverBase, empty_array
from saddlesvm.solvers.blocks import Blocks
from saddlesvm.solvers.newton import Newton
from saddlesvm.solvers.newton_on_files import FACTORS, NewtonOnFiles
from saddlesvm.solvers.phases import Choosing, ChosenState
from saddlesvm.solvers.sweeps import OverFiles
from saddlesvm.solvers.taken_rows import WORK_BYTES

# Matrices of Newton's method: the sum, its change, its factor, and room to lift the diagonal.
MATRICES = 4
MATRICES_SHARE = 0.25  # of the memory, for matrices and their factors; a guess
DESCENT_SWEEPS = 5  # sweeps of blocks before the active set; measured on the same rows
MOST_SWEEPS = 20  # sweeps of the active set, at most: blocks then go on; a guess
DESCENT = "blocks"
ACTIVE_SET = "active set"


@dataclass
class BlocksThenActiveSetState(ChosenState):
    """The state of a run."""

    phase: str = DESCENT

    @property
    def point(self) -> Point:
        """The present point; weights of zero if no weights judged were better."""
        if self.phase == DESCENT and not self.inner.last.model.any():
            return Point(np.zeros(self.w.size), self.alpha)
        return Point(self.w.astype(np.float64), self.alpha)


@dataclass(frozen=True)
class BlocksThenActiveSet(OverFiles, Choosing):
    """Blocks of the dual, the active-set method, and blocks again if too many rows are free.

    All problems that share the readings change over together, at the end of a sweep.

    Parameters
    ----------
    factors : float, default=2.5e8
        Bytes that factored matrices of the active set may take.
    """

    name: ClassVar[str] = "auto"
    phases: ClassVar[tuple[str, ...]] = (DESCENT, ACTIVE_SET)
    factors: float = field(default=FACTORS, repr=False)

    def init(
        self, problem: Problem, seed: int, start: Point | None = None
    ) -> BlocksThenActiveSetState:
        """Begin with blocks; with the active set if a start has weights alone."""
        state = BlocksThenActiveSetState(w=empty_array(), seed=seed)
        if start is not None and start.w is not None and start.alpha is None:
            state.phase = ACTIVE_SET
        state.inner = self.at_work(problem, state).init(problem, seed, start)
        state.update()
        return state

    def at_work(self, problem: Problem, state: BlocksThenActiveSetState) -> OverFiles:
        """Return the solver at work."""
        return Blocks() if state.phase == DESCENT else NewtonOnFiles(factors=self.factors)

    def begins_at_weights(self, problem: Problem) -> bool:
        """Return True: the active set takes the weights of a start."""
        return True

    def step_together(
        self,
        problems: Sequence[Problem],
        states: Sequence[BlocksThenActiveSetState],
        budgets: Sequence[Budget],
    ) -> list[BlocksThenActiveSetState]:
        """Read one block for several problems over the same files, all in the same phase."""
        first = states[0]
        # The certificates of the sweep before have ended some problems; the others change over.
        is_between = first.phase == DESCENT and first.inner.position == 0
        has_given_way = first.course.rests_until > 0.0
        if is_between and first.inner.sweeps >= DESCENT_SWEEPS and not has_given_way:
            self.change_all(problems, states, ACTIVE_SET, "the active set goes on")
        solver = self.at_work(problems[0], first)
        inner = solver.step_together(problems, [state.inner for state in states], budgets)
        for state, own in zip(states, inner, strict=True):
            state.inner = own
            state.update()
        is_whole = first.phase == ACTIVE_SET and inner[0].work.block == 0
        if is_whole and any(own.method.gives_up(MOST_SWEEPS) for own in inner):
            for state in states:
                state.course.rest(state.epochs)
            self.change_all(problems, states, DESCENT, "too many rows are free: back to blocks")
        return list(states)

    def change_all(
        self,
        problems: Sequence[Problem],
        states: Sequence[BlocksThenActiveSetState],
        phase: str,
        why: str,
    ) -> None:
        """Let another solver go on for all problems."""
        for problem, state in zip(problems, states, strict=True):
            self.change(problem, state, phase, why)


def solver_on_files(
    solver: SolverBase, loss: Loss, penalty: Penalty, X: Rows, memory: float, problems: int = 1
) -> SolverBase:
    """Return the solver over rows in files for one over rows in memory; others as they are.

    Parameters
    ----------
    solver : SolverBase
    loss : Loss
    penalty : Penalty
    X : Rows
        The rows in files.
    memory : float
        Bytes that training may take.
    problems : int, default=1
        How many problems share the readings, and the memory.

    Raises
    ------
    ValueError
        The matrices of Newton's method have no room in the memory.
    """
    if not isinstance(solver, (Auto, Newton)):
        return solver
    # Every problem keeps matrices; rows taken along are factored for one problem at a time.
    room = MATRICES_SHARE * memory
    width = X.n_features + 1
    matrix_bytes = MATRICES * 8 * width**2 * problems
    if isinstance(solver, Newton):
        if matrix_bytes > room:
            enough = -(-matrix_bytes // int(MATRICES_SHARE * 2**20))
            raise ValueError(
                f"solver='newton' over rows in files needs matrices of {X.n_features:,} features "
                f"for {problems} problems: give memory='{enough}M', or solver='auto'"
            )
        return NewtonOnFiles(factors=room)
    if not isinstance(penalty, L2):
        return Blocks()
    if is_smooth(loss):
        return Blocks() if matrix_bytes > room else NewtonOnFiles(factors=room)
    # About one free row for each weight is strictly inside its bounds at the optimum.
    row_bytes = X.nbytes / X.n_rows + WORK_BYTES
    n_free = KEPT_SHARE * memory / problems / row_bytes
    return BlocksThenActiveSet(room) if n_free >= INSIDE * width else Blocks()
