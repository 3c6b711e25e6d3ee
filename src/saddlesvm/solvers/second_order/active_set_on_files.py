"""The active-set method over rows in files: a sweep finds the free rows and takes them along, for many problems.

A sweep reads every row once. It judges a point, and gives the pull of the decided rows and the values of the others;
the problem over these is solved in memory (:mod:`saddlesvm.solvers.second_order.active_set`). Before the first sweep a
sample is read, chunks from all over the files, and solved. A sweep's certificate reads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Certificate, Point
from saddlesvm.problem.loss import is_smooth, loss_name
from saddlesvm.problem.on_files import StreamedProblem
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.proven_sums import Sums, objectives
from saddlesvm.problem.sums import margins
from saddlesvm.rows.memory_plan import matrix_bytes
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.durable import demand
from saddlesvm.solvers.base import start_alpha
from saddlesvm.solvers.second_order.active_set import FILLED, ActiveSet, solve_free_rows
from saddlesvm.solvers.second_order.free_rows import Findings, find, width_of
from saddlesvm.solvers.sweeps import Sweeps, SweepState, SweepWork, proven

WORK_BYTES = 240  # bytes of a row taken along, besides its values


@dataclass
class ActiveSetState(SweepState):
    """The state of a run: at the end of its last sweep, from which a resumed run goes on.

    Attributes
    ----------
    alpha : ndarray of shape (n_all,)
        The best dual point so far.
    active_set : ActiveSet
    """

    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    active_set: ActiveSet = field(default_factory=lambda: ActiveSet(np.empty(0)), metadata={"prefix": "set_"})

    def check_restored(self, problem: Any) -> None:
        super().check_restored(problem)
        demand(self.active_set.back.size in (0, self.w.size), "its back has another width")


@dataclass(frozen=True)
class ActiveSetOnFiles(Sweeps):
    """The active-set method over rows in files, for piecewise linear losses; one epoch is one sweep.

    Estimators choose this solver for such rows with ``solver="auto"``, where blocks of the dual are slow.

    Parameters
    ----------
    memory : float, default=2.5e8
        Bytes that factored matrices may take.
    """

    name: ClassVar[str] = "newton"
    memory: float = field(default=2.5e8, repr=False)

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> ActiveSetState:
        """Begin; no row is read."""
        streamed = self.suited(problem)
        streamed.duals[:] = start_alpha(problem, start)
        w, active = np.zeros(problem.n_features + 1), problem.members.size
        chosen = ActiveSet.begin(w, room_for(streamed), active)
        return ActiveSetState(w=w, alpha=streamed.duals, active=active, active_set=chosen)

    def suited(self, problem: Problem) -> Any:
        """The problem; raise ValueError for a smooth loss, or multipliers of a given sum."""
        if is_smooth(problem.loss) or not problem.intercept.homogeneous:
            what = f"{loss_name(problem.loss)} with intercept {str(problem.intercept)!r}"
            raise ValueError(
                f"the active set is for piecewise linear losses whose multipliers have no given sum, not {what}"
            )
        return super().suited(problem)

    def prepare(self, problems: Sequence[Any], states: Sequence[Any]) -> None:
        """Begin at the solution of a sample: one block, of chunks from all over the files."""
        if states[0].active_set.width != 0.0:
            return
        reader = problems[0].reader
        chunks = np.unique(np.linspace(0, reader.n_chunks - 1, reader.per_block).astype(int))
        block = reader.fetch(chunks.tolist())
        for problem, state in zip(problems, states, strict=True):
            local, run = problem.local(block), state.active_set
            state.rows_touched += local.members.size
            if run.at.any():
                z = margins(local, run.at)
                run.width = width_of(local.of_members, z, 0.5 * FILLED * run.room)
                continue
            found = Findings.nothing(state.w.size)
            ask = run.ask_sample(run.most / max(local.members.size, 1))
            find(local.terms, local.members, ask, found, np.empty(0))
            rows = problem.members.size
            run.start(
                solve_free_rows(found, run.posed_sample(problem.loss, problem.C, problem.intercept, rows, self.memory))
            )

    def visit(self, problem: StreamedProblem, state: ActiveSetState, part: Part) -> None:
        """Find the free rows of a block."""
        run, work = state.active_set, state.work
        if work.found is None:
            work.begin(Findings.nothing(state.w.size), problem, None if run.passes else state.alpha)
        if work.carried is not None:
            work.carried.visit(part)
        find(problem.terms_of(part), part.rows, run.ask(), work.found, part.of(work.alpha), part.first)

    def end_of_sweep(self, problem: StreamedProblem, state: ActiveSetState, work: SweepWork, target: float) -> None:
        """Solve for the free rows."""
        run, C, found = state.active_set, problem.C, work.found
        taken = found.taken
        if work.carried is not None:
            pull, conjugates, charged, sizes = work.carried.found()
            dual = objectives(C, Sums(0.0, conjugates, 0.0, problem.regularizer.conjugate(pull)))[1]
            run.bound_by(dual, pull, conjugates, charged, np.array(sizes))
        if run.take(C, problem.regularizer, found):
            solved = solve_free_rows(found, run.posed(problem.loss, C, problem.intercept, target, self.memory))
            work.alpha[solved.rows] = solved.alpha
            if run.learn(C, problem.regularizer, solved):
                state.alpha[:] = work.alpha
        state.w, state.active, state.satisfied = run.model, taken, run.ended
        state.estimate, state.proves_itself = run.estimate, run.proves(problem.intercept)
        state.remark = f"{taken} rows are free"

    def solution(self, problem: Problem, state: ActiveSetState) -> Point:
        """The best model and dual point so far, with their certificate."""
        run = state.active_set
        if not run.proves(problem.intercept):
            return Point(state.w)
        certificate = Certificate.of(problem.strength, run.proven(problem.facts))
        return proven(problem, run.model, state.alpha, certificate)


def room_for(problem: StreamedProblem) -> int:
    """Rows that the problem may take along."""
    a_row = matrix_bytes(problem.X) / problem.y.size + WORK_BYTES
    return max(int(problem.kept_bytes / a_row), 1)
