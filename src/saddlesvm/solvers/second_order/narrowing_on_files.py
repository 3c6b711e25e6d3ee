"""Narrowing over rows in files: a sweep finds the undecided rows and takes them along, for any number of problems.

A sweep reads every row once. It judges a point, and gives the pull of the decided rows and the values of the others;
the problem over these is solved in memory (:mod:`saddlesvm.solvers.second_order.narrowing`). Before the first sweep a
sample is read, chunks from all over the files, and solved. A sweep's certificate reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.loss import is_smooth, loss_name
from saddlesvm.problem.on_disk import CarriedDuals, StreamedProblem
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.proven_sums import Facts, Sums, objectives
from saddlesvm.problem.sums import margins
from saddlesvm.rows.memory_plan import matrix_bytes
from saddlesvm.rows.passes import FromFiles, Part
from saddlesvm.runtime.durable import Workspace, demand
from saddlesvm.solvers.base import Budget, SolverBase, State, at_sweep_start, start_alpha
from saddlesvm.solvers.second_order.narrowing import FILLED, Narrowing, settle
from saddlesvm.solvers.second_order.undecided import Findings, find, width_of

WORK_BYTES = 240  # bytes of a row taken along, besides its values


@dataclass
class SearchWork(Workspace):
    """What the sweep under way has found so far.

    Attributes
    ----------
    block : int
        The block that is due.
    found : Findings, optional
    alpha : ndarray of shape (n_all,)
        Multipliers of the rows of the blocks before.
    carried : CarriedDuals, optional
        The dual point that the first sweep began with.
    """

    block: int = 0
    found: Findings | None = None
    alpha: np.ndarray | None = None
    carried: CarriedDuals | None = None


@dataclass
class NarrowingState(State):
    """Where a run stands: at the end of its last sweep, from which a resumed run goes on.

    Attributes
    ----------
    alpha : ndarray of shape (n_all,)
        The best dual point so far.
    sweeps, visited : int
        Sweeps so far, and row visits of the one under way.
    proves_itself : bool
        Each sweep proves its point: a certificate reads nothing.
    narrowing : Narrowing
    search : SearchWork
        The sweep under way.
    """

    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    sweeps: int = 0
    visited: int = 0
    proves_itself: bool = False
    narrowing: Narrowing = field(default_factory=lambda: Narrowing(np.empty(0)), metadata={"prefix": "narrow_"})
    search: SearchWork = field(default_factory=SearchWork, repr=False)

    def check_restored(self, problem: Any) -> None:
        super().check_restored(problem)
        demand(self.narrowing.back.size in (0, self.w.size), "its back has another width")


@dataclass(frozen=True)
class NarrowingOnFiles(SolverBase):
    """Narrowing over rows that are read block by block, for piecewise linear losses; one epoch is one sweep.

    Estimators choose this solver for such rows with ``solver="auto"``, where blocks of the dual are slow.

    Parameters
    ----------
    memory : float, default=2.5e8
        Bytes that factored matrices may take.
    """

    name: ClassVar[str] = "newton"
    memory: float = field(default=2.5e8, repr=False)

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> NarrowingState:
        """Begin; no row is read."""
        streamed = _suited(problem)
        streamed.duals[:] = start_alpha(problem, start)
        w, active = np.zeros(problem.n_features + 1), problem.members.size
        narrowing = Narrowing.begin(w, room_for(streamed), active)
        return NarrowingState(w=w, alpha=streamed.duals, active=active, narrowing=narrowing)

    def resumed(self, problem: Problem, state: NarrowingState) -> NarrowingState:
        """Begin the sweep again."""
        return at_sweep_start(state)

    def step(self, problem: Problem, state: NarrowingState, budget: Budget) -> NarrowingState:
        """Read one block."""
        return self.step_together([problem], [state], [budget])[0]

    def step_together(
        self, problems: Sequence[Problem], states: Sequence[NarrowingState], budgets: Sequence[Budget]
    ) -> list[NarrowingState]:
        """Read one block for several problems over the same files, whose sweeps are at the same block."""
        streamed = [_suited(problem) for problem in problems]
        passes = streamed[0].passes
        assert isinstance(passes, FromFiles)
        if states[0].narrowing.width == 0.0:
            self._sample(streamed, states)
        part = passes.part(states[0].search.block, again=True)
        for problem, state, budget in zip(streamed, states, budgets, strict=True):
            self._visit(problem, state, part.among(problem.members), budget.relative_gap)
        return list(states)

    def _sample(self, problems: Sequence[StreamedProblem], states: Sequence[NarrowingState]) -> None:
        """Begin at the solution of a sample: one block, of chunks from all over the files."""
        reader = problems[0].reader
        chunks = np.unique(np.linspace(0, reader.n_chunks - 1, reader.per_block).astype(int))
        block = reader.fetch(chunks.tolist())
        for problem, state in zip(problems, states, strict=True):
            local, run = problem.local(block), state.narrowing
            state.rows_touched += local.members.size
            if run.at.any():
                z = margins(local, run.at)
                run.width = width_of(local.of_members, z, 0.5 * FILLED * run.room)
                continue
            found = Findings.nothing(state.w.size)
            ask = run.ask_sample(run.most / max(local.members.size, 1))
            find(local.terms, local.members, ask, found, np.empty(0))
            rows = problem.members.size
            run.start(settle(found, run.posed_sample(problem.loss, problem.C, problem.intercept, rows, self.memory)))

    def _visit(self, problem: StreamedProblem, state: NarrowingState, part: Part, tol: float) -> None:
        """Look at the rows of a block, and solve where it was the last one of the sweep."""
        search = state.search
        if search.found is None or search.alpha is None:
            search.found, search.alpha = Findings.nothing(state.w.size), problem.spare_duals()
            if not state.narrowing.looks and state.alpha.any():
                search.carried = CarriedDuals(problem, state.alpha)
        if search.carried is not None:
            search.carried.visit(part)
        ask, alpha = state.narrowing.ask(), part.of(search.alpha)
        find(problem.terms_of(part), part.rows, ask, search.found, alpha, part.first)
        state.rows_touched += part.rows.size
        state.visited += part.rows.size
        search.block += 1
        if search.block == problem.reader.n_blocks:
            self._end_of_sweep(problem, state, search.found, search.alpha, tol)
        else:
            state.epochs += (part.last - part.first) / problem.y.size

    def _end_of_sweep(
        self, problem: StreamedProblem, state: NarrowingState, found: Findings, alpha: np.ndarray, tol: float
    ) -> None:
        """Solve for the undecided rows, and begin the next sweep."""
        run, C, taken = state.narrowing, problem.C, found.taken
        if state.search.carried is not None:
            pull, conjugates, charged, sizes = state.search.carried.found()
            dual = objectives(C, Sums(0.0, conjugates, 0.0, problem.regularizer.conjugate(pull)))[1]
            run.bound_by(dual, pull, conjugates, charged, np.array(sizes))
        if run.take(C, problem.regularizer, found):
            settled = settle(found, run.posed(problem.loss, C, problem.intercept, tol, self.memory))
            alpha[settled.rows] = settled.alpha
            if run.learn(C, problem.regularizer, settled):
                state.alpha[:] = alpha
        state.w, state.active, state.satisfied = run.model, taken, run.ended
        state.estimate, state.sweeps = run.estimate, state.sweeps + 1
        state.proves_itself = run.proves(problem.intercept)
        state.epochs, state.visited = float(state.sweeps), 0
        state.remark = f"{taken} rows are undecided"
        state.search = SearchWork()

    def solution(self, problem: Problem, state: NarrowingState) -> Point:
        """The best model and dual point so far, with their certificate."""
        streamed, run = _suited(problem), state.narrowing
        if not run.proves(problem.intercept):
            return Point(state.w)
        facts = Facts(problem.loss, problem.C, problem.regularizer, streamed.row_sizes)
        certificate = Certificate.of(problem.strength, run.proven(facts))
        judged = Evaluation(run.model[:-1].copy(), float(run.model[-1] * problem.scale), state.alpha, certificate)
        return Point(run.model, state.alpha, proven=judged)


def room_for(problem: StreamedProblem) -> int:
    """Rows that the problem may take along."""
    a_row = matrix_bytes(problem.X) / problem.y.size + WORK_BYTES
    return max(int(problem.kept_bytes / a_row), 1)


def _suited(problem: Problem) -> StreamedProblem:
    if not isinstance(problem, StreamedProblem):
        raise ValueError("narrowing reads rows from files: use it with a StreamedProblem")
    if is_smooth(problem.loss) or not problem.intercept.homogeneous:
        what = f"{loss_name(problem.loss)} with intercept {str(problem.intercept)!r}"
        raise ValueError(f"narrowing takes piecewise linear losses whose multipliers have no given sum, not {what}")
    return problem
