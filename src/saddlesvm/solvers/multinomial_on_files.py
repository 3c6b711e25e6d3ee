"""Multinomial regression over rows in files: Newton's method with a sample of the rows.

A sweep reads every row once. It gives the objective, the gradient and with it the gap at its
weights (:mod:`saddlesvm.problem.multinomial`), and takes a sample of the rows along, with few rows
whose class is certain, since these hardly bend the objective. Conjugate gradients over the sample
find the step (:mod:`saddlesvm.solvers.newton_over_passes`). From one sweep to the next the weights,
gradients and moves are kept, and nothing of a row: there are no dual variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.multinomial import MultinomialProblem, Response, evaluation_at
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget, empty_array
from saddlesvm.solvers.machines import SoftmaxMachine
from saddlesvm.solvers.newton_over_passes import NewtonOverPasses
from saddlesvm.solvers.over_passes import Setting
from saddlesvm.solvers.sweeps import (
    FEWEST_BLOCKS,
    FILLED,
    KEPT_BYTES,
    Sweeps,
    SweepState,
    SweepWork,
    read_sample,
    reader_of,
    solve_sample,
)

if TYPE_CHECKING:
    from saddlesvm.solvers.base import State

# Rows a feature in a block from which on it gives a first solution; measured on Fashion-MNIST.
ENOUGH = 2
CLASS_BYTES = 24  # of a row of the sample for each class: its bend, and work on it; derived


@dataclass
class ClassPassesState(SweepState):
    """The state of a run: at the end of its last sweep.

    Attributes
    ----------
    method : NewtonOverPasses
    """

    method: NewtonOverPasses = field(default_factory=lambda: NewtonOverPasses(empty_array()))


@dataclass(frozen=True)
class MultinomialOnFiles(Sweeps):
    """Newton's method for multinomial regression over rows that are read block by block.

    Estimators choose this solver for such rows with ``multi_class="multinomial"``. One epoch is one
    sweep.
    """

    name: ClassVar[str] = "multinomial"
    kind: ClassVar[type[Problem]] = MultinomialProblem

    def init(self, problem: MultinomialProblem, seed: int, start: Point | None = None) -> State:
        """Begin at zero, or at given weights of shape (K, d + 1); no row is read."""
        streamed = self.check_problem(problem)
        W = np.ascontiguousarray(streamed.by_class(streamed.first_weights(start)).T)
        n = problem.members.size
        # As many rows as fit are taken along.
        row_bytes = problem.row_bytes + KEPT_BYTES + CLASS_BYTES * problem.n_classes
        room = min(1.0, FILLED * problem.rooms.kept_bytes / row_bytes / max(n, 1))
        free = problem.scale if problem.intercept.constrained else 0.0
        method = NewtonOverPasses.begin(W, n, room=room, free=free)
        return ClassPassesState(w=W, active=n, method=method)

    def step_together(
        self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]
    ) -> list[Any]:
        """Read one block; products with it take one thread."""
        with blas_for(0.0):
            return super().step_together(problems, states, budgets)

    def prepare(self, problems: Sequence[Any], states: Sequence[Any]) -> None:
        """Begin at the solution of one block, of chunks from all over the files."""
        [problem] = problems
        [state] = states
        method = state.method
        if method.passes or method.at.any() or state.work.block:
            return
        n_blocks = reader_of(problem).n_blocks
        n = problem.members.size
        if n_blocks < FEWEST_BLOCKS or n / n_blocks < ENOUGH * len(method.at):
            return
        local = problem.restrict_to_block(read_sample(problem))
        s = local.gather(local.weights)
        codes = local.gather(local.codes)
        lengths = local.gather(local.lengths)
        machine = SoftmaxMachine(codes, s if s.size else 1.0, problem.n_classes, lengths)
        method.start_at(solve_sample(local, machine, n, method.at))
        state.rows_touched += local.members.size

    def visit(self, problem: Problem, state: ClassPassesState, part: Part) -> None:
        """Add what the rows of a block answer."""
        question = state.method.question()
        if state.work.found is None:
            state.work.found = question.empty()
        question.add_to(state.work.found, problem.terms_of(part), part.rows, first=part.first)

    def end_sweep(self, problem: Any, state: Any, work: SweepWork, target: float) -> None:
        """Judge the point of the sweep, and choose that of the next one."""
        method = state.method
        setting = Setting(problem.loss, problem.C, problem.regularizer, target, 0.0)
        method.learn_from_pass(setting, work.found)
        state.proves_itself = True
        state.estimate_is_gap = True
        state.w = method.model
        state.estimate = evaluate_sums(problem, method).certificate.relative_gap
        paid_at_zero = problem.all_weights.sum() * np.log(problem.n_classes)
        at_zero = primal_of(problem.C, paid_at_zero, 0.0)
        if method.passes == 1 and method.point.primal > at_zero:
            # Far out, the objective may have no curvature to use: the run begins at zero instead.
            method.start_at(np.zeros_like(method.at))
        elif state.estimate > target:
            method.choose(setting, work.found.pieces)
        state.active = method.active
        state.remark = method.remark
        state.satisfied = method.ended

    def solution(self, problem: MultinomialProblem, state: ClassPassesState) -> Point:
        """Return the weights of the last whole sweep, with their certificate."""
        streamed = self.check_problem(problem)
        W = np.ascontiguousarray(state.w.T)
        if not state.method.passes:
            return Point(W)
        return Point(W, evaluation=evaluate_sums(streamed, state.method))


def evaluate_sums(problem: MultinomialProblem, method: NewtonOverPasses) -> Evaluation:
    """Return the proof that the last sweep gives of its weights."""
    sums = method.sums
    assert sums is not None
    paid, conjugates, pulled = sums.sums[:3].tolist()
    pull = np.ascontiguousarray(problem.X.by_class(problem.C * sums.pulled.T))
    found = Response(paid, -conjugates, pulled, pull)
    return evaluation_at(problem, np.ascontiguousarray(method.model.T), found)
