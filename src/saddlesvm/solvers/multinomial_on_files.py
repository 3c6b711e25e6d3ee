"""Multinomial regression over rows in files: Newton's method over passes, with a sample of the rows.

A sweep reads every row once. At the weights that it looks at it gives the objective, the gradient
and with it the gap (:mod:`saddlesvm.problem.multinomial`), and it takes a sample of the rows along,
in which there are few rows whose class is certain, since these hardly bend the objective. Conjugate
gradients over the sample find the step (:mod:`saddlesvm.solvers.newton_over_passes`). Between
sweeps the weights, gradients and moves are kept, and nothing of a row: there are no dual variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.multinomial import MultinomialProblem, Response, evaluation_at
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.passes import Part
from saddlesvm.rows.places import Memory
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget, nothing
from saddlesvm.solvers.machines import Softmax
from saddlesvm.solvers.newton import solve_roughly
from saddlesvm.solvers.newton_on_files import FEWEST_BLOCKS, PassesOverFiles
from saddlesvm.solvers.newton_over_passes import NewtonOverPasses
from saddlesvm.solvers.over_passes import Setting
from saddlesvm.solvers.sweeps import FILLED, KEPT_BYTES, SweepState, SweepWork, reader_of
from saddlesvm.solvers.task import Task

ENOUGH = 2  # rows a feature in a block from which on it gives a first solution; measured on Fashion-MNIST
CLASS_BYTES = 24  # of a row of the sample for each class: its bend, and work on it


@dataclass
class ClassPassesState(SweepState):
    """The state of a run: at the end of its last sweep.

    Attributes
    ----------
    method : NewtonOverPasses
    """

    method: NewtonOverPasses = field(default_factory=lambda: NewtonOverPasses(nothing()))


@dataclass(frozen=True)
class MultinomialOnFiles(PassesOverFiles):
    """Newton's method for multinomial regression over rows that are read block by block; an epoch is a sweep.

    Estimators choose this solver for such rows with ``multi_class="multinomial"``.
    """

    name: ClassVar[str] = "multinomial"
    kind: ClassVar[type[Problem]] = MultinomialProblem

    def init(self, problem: Any, seed: int, start: Point | None = None) -> Any:
        """Begin at zero, or at given weights of shape (K, d + 1); no row is read."""
        streamed = self.suited(problem)
        W = np.ascontiguousarray(streamed.by_class(streamed.first_weights(start)).T)
        n = problem.members.size
        a_row = problem.row_bytes + KEPT_BYTES + CLASS_BYTES * problem.n_classes
        room = min(1.0, FILLED * problem.rooms.kept_bytes / a_row / max(n, 1))
        free = problem.scale if problem.intercept.constrained else 0.0
        method = NewtonOverPasses.begin(W, n, room=room, free=free)
        return ClassPassesState(w=W, active=n, method=method)

    def begins_at_weights(self, problem: Problem) -> bool:
        """Return False: the sub-problem gives nothing but weights as a start."""
        return False

    def step_together(self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]) -> list[Any]:
        """Read a block for several problems over the same files; products with it take a single thread."""
        with blas_for(0.0):
            return super().step_together(problems, states, budgets)

    def prepare(self, problems: Sequence[Any], states: Sequence[Any]) -> None:
        """Begin at the solution of a block, of chunks from all over the files."""
        [problem] = problems
        [state] = states
        method = state.method
        reader = reader_of(problem)
        rows = problem.members.size / reader.n_blocks
        is_first = not (method.passes or method.at.any() or state.work.block)
        if not is_first or reader.n_blocks < FEWEST_BLOCKS or rows < ENOUGH * len(method.at):
            return
        chunks = np.unique(np.linspace(0, reader.n_chunks - 1, reader.per_block).astype(int))
        local = problem.of_block(reader.fetch(chunks.tolist()))
        place = Memory(local.X, local.members)
        s = local.gathered(local.weights)
        codes = local.gathered(local.codes)
        count = problem.n_classes
        machine = Softmax(codes, s if s.size else 1.0, count, local.gathered(local.lengths))
        ridge = np.ones(place.d + 1)
        if problem.intercept.constrained:
            ridge[-1] = 0.0
        C = local.C * problem.members.size / place.n
        task = Task(place, machine, ridge, C, keeps_factor=True)
        with np.errstate(all="ignore"):
            method.start_at(solve_roughly(task, method.at)[0])
        state.rows_touched += place.n

    def visit(self, problem: Problem, state: Any, part: Part) -> None:
        """Add what the rows of a block answer."""
        question = state.method.question()
        if state.work.found is None:
            state.work.found = question.empty()
        question.add_to(state.work.found, problem.terms_of(part), part.rows, first=part.first)

    def end_of_sweep(self, problem: Any, state: Any, work: SweepWork, target: float) -> None:
        """Take the step, or shorten the last step."""
        method = state.method
        setting = Setting(problem.loss, problem.C, problem.regularizer, target, 0.0)
        method.take(setting, work.found)
        state.proves_itself = True
        state.proven = True
        state.w = method.model
        state.estimate = evaluate_sums(problem, method).certificate.relative_gap
        at_zero = primal_of(problem.C, problem.all_weights.sum() * np.log(problem.n_classes), 0.0)
        if method.passes == 1 and method.found.primal > at_zero:
            # Far out, the objective may have no curvature to use: the run begins at zero instead.
            method.start_at(np.zeros_like(method.at))
        elif state.estimate > target:
            method.choose(setting, work.found.pieces)
        state.active = method.active
        state.remark = method.remark
        state.satisfied = method.ended

    def solution(self, problem: Any, state: Any) -> Point:
        """The weights of the last whole sweep, with its certificate."""
        streamed = self.suited(problem)
        if not state.method.passes:
            return Point(np.ascontiguousarray(state.w.T))
        return Point(np.ascontiguousarray(state.w.T), proven=evaluate_sums(streamed, state.method))


def evaluate_sums(problem: Any, method: NewtonOverPasses) -> Evaluation:
    """The proof that the last sweep gives of its weights."""
    told = method.told
    assert told is not None
    paid, conjugates, pulled = told.sums[:3].tolist()
    pull = np.ascontiguousarray(problem.X.by_class(problem.C * told.pulled.T))
    found = Response(paid, -conjugates, pulled, pull)
    return evaluation_at(problem, np.ascontiguousarray(method.model.T), found)
