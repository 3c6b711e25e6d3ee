"""Multinomial regression over rows in files: Newton's method with a sample of the rows.

A sweep reads every row once. It gives the objective, the gradient and with it the gap at its
weights (:mod:`saddlesvm.problem.multinomial`), and takes a sample of the rows along, with few rows
whose class is certain, since these hardly bend the objective. Conjugate gradients over the sample
find the step (:mod:`saddlesvm.solvers.newton_over_passes`). From one sweep to the next the weights,
gradients and moves are kept, and nothing of a row: there are no dual variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.multinomial import MultinomialProblem, Response, evaluation_at
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.machines import SoftmaxMachine
from saddlesvm.solvers.newton_on_files import NewtonOnFiles
from saddlesvm.solvers.newton_over_passes import NewtonOverPasses
from saddlesvm.solvers.over_passes import OverPasses
from saddlesvm.solvers.sweeps import FILLED, KEPT_BYTES, SweepWork

# Rows a feature in a block from which on it gives a first solution; measured on Fashion-MNIST.
ENOUGH = 2
CLASS_BYTES = 24  # of a row of the sample for each class: its bend, and work on it; derived


@dataclass(frozen=True)
class MultinomialOnFiles(NewtonOnFiles):
    """Newton's method for multinomial regression over rows that are read block by block.

    Estimators choose this solver for such rows with ``multi_class="multinomial"``. One epoch is one
    sweep.
    """

    name: ClassVar[str] = "multinomial"
    kind: ClassVar[type[Problem]] = MultinomialProblem

    def begins_at_weights(self, problem: Problem) -> bool:
        """Return False: a start has the weights of all classes."""
        return False

    def first_weights(self, problem: Any, start: Point | None) -> np.ndarray:
        """Return the weights of a start, or zero, shape (d + 1, K)."""
        W: np.ndarray = problem.first_weights(start)
        return W

    def begin_method(self, problem: Any, w: np.ndarray) -> NewtonOverPasses:
        """Begin the method at these weights, with room for a sample of the rows."""
        n = problem.members.size
        # As many rows as fit are taken along.
        row_bytes = problem.row_bytes + KEPT_BYTES + CLASS_BYTES * problem.n_classes
        room = min(1.0, FILLED * problem.rooms.kept_bytes / row_bytes / max(n, 1))
        free = problem.scale if problem.intercept.constrained else 0.0
        method = NewtonOverPasses.begin(w, n, room=room, free=free)
        paid_at_zero = problem.all_weights.sum() * np.log(problem.n_classes)
        method.at_zero = primal_of(problem.C, paid_at_zero, 0.0)
        return method

    def step_together(
        self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]
    ) -> list[Any]:
        """Read one block; products with it take one thread."""
        with blas_for(0.0):
            return super().step_together(problems, states, budgets)

    def machine_of(self, local: Any) -> SoftmaxMachine:
        """Return the machine of the rows of a sample."""
        s = local.gather(local.weights)
        codes = local.gather(local.codes)
        lengths = local.gather(local.lengths)
        return SoftmaxMachine(codes, s if s.size else 1.0, local.n_classes, lengths)

    def least_rows(self, method: OverPasses) -> int:
        """Return the least rows of a block whose solution is worth beginning at."""
        return ENOUGH * len(method.at)

    def end_sweep(self, problem: Any, state: Any, work: SweepWork, target: float) -> None:
        """Take a step by the sums of a whole sweep, which prove its point."""
        super().end_sweep(problem, state, work, target)
        state.proves_itself = True
        state.estimate_is_gap = True
        state.estimate = evaluate_sums(problem, state.method).certificate.relative_gap

    def solution(self, problem: Any, state: Any) -> Point:
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
    pull = np.ascontiguousarray(problem.C * sums.pulled.T)
    found = Response(paid, -conjugates, pulled, pull)
    return evaluation_at(problem, np.ascontiguousarray(method.model.T), found)
