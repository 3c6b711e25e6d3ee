"""Multinomial regression by the Newton method of :mod:`saddlesvm.solvers.newton`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.multinomial import ClassSums, Response, evaluation_at
from saddlesvm.rows.class_rows import block_rows
from saddlesvm.rows.device import DeviceBlocks
from saddlesvm.rows.device_array import DeviceArray
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.machines import SoftmaxMachine
from saddlesvm.solvers.newton import Newton, NewtonState, is_device, place_of
from saddlesvm.solvers.softmax_on_device import DeviceSoftmax
from saddlesvm.solvers.task import EvaluatedPoint, Task, evaluate

if TYPE_CHECKING:
    from saddlesvm.problem.multinomial import MultinomialProblem
    from saddlesvm.problem.problem import Problem

# Scores (rows times classes) that are kept; derived: 80 MB for each of some six arrays of a run.
MOST_SCORES = 10_000_000
# Scores of a block of sparse rows, which are copied block by block; derived: 16 MB.
SPARSE_SCORES = 2_000_000


@dataclass(frozen=True)
class Multinomial(Newton):
    """Newton's method for :class:`~saddlesvm.problem.multinomial.MultinomialProblem`.

    W has a column for each class.
    """

    name: ClassVar[str] = "multinomial"

    def init(self, problem: Any, seed: int, start: Point | None = None) -> NewtonState:
        """Begin at zero, or at given weights of shape (K, d + 1)."""
        W = problem.first_weights(start)
        state = NewtonState(w=W, active=problem.members.size)
        state.best.w = W
        return state

    def needs_rows(self, problem: Problem) -> bool:
        """Return False for rows on a device: a run leaves them there."""
        return not is_device(problem)

    @staticmethod
    def _task(problem: Any, state: NewtonState) -> Task:
        """The task of a problem, made once a run."""
        if state.task is not None:
            return state.task
        K = problem.n_classes
        place = place_of(problem)
        on_device = isinstance(place, DeviceBlocks)
        if problem.X.sparse:
            # Precision costs no time if a value has several products. Blocks are copies, and as
            # large as they may be.
            place.widen()
            place.block = max(1, SPARSE_SCORES // K)
        elif not on_device:
            # The sums over a block have the lengths that the account of rounding assumes.
            place.piece = block_rows(problem.X, K)
            place.block = place.piece
            place.threads = problem.threads
        ridge = np.ones(place.d + 1)
        s = problem.gather(problem.weights)
        codes = problem.gather(problem.codes)
        weights = s if s.size else 1.0
        lengths = problem.gather(problem.lengths)
        machine: SoftmaxMachine
        if isinstance(place, DeviceBlocks):
            place.keeps_scores = True
            machine = DeviceSoftmax(place, codes, weights, K, lengths)
        else:
            machine = SoftmaxMachine(codes, weights, K, lengths)
        task = Task(
            place,
            machine,
            ridge,
            problem.C,
            keeps_factor=True,
            keeps_scores=place.n * K <= MOST_SCORES and not on_device,
        )
        if problem.intercept.constrained:
            ridge[-1] = 0.0
            if isinstance(machine, DeviceSoftmax):
                vars(problem)["class_sums"] = class_sums_of(problem, machine)

            def confirm(point: EvaluatedPoint) -> tuple[np.ndarray, float]:
                found = evaluation_at(problem, point.W.T, response_of(problem, point))
                return point.A, found.certificate.dual / problem.unit

            task.balance = confirm
        state.task = task
        return task

    def solution(self, problem: Any, state: NewtonState) -> Point:
        """The weights, shape (K, d + 1), with their proof where the last pass was one."""
        task = self._task(problem, state)
        lowest = state.lowest
        if lowest is None or not lowest.is_fresh:
            task.place.widen()
            with blas_for(0.0):
                lowest = evaluate(task, state.best.w, state.centre, 0.0)
        W = np.ascontiguousarray(lowest.W.T)
        return Point(W, evaluation=evaluation_at(problem, W, response_of(problem, lowest)))


def class_sums_of(problem: MultinomialProblem, machine: DeviceSoftmax) -> ClassSums:
    """Sums over the rows of each class, by a pass over rows on a device in double precision."""
    wide = place_of(problem)
    wide.widen()
    own = np.zeros((wide.d + 1, problem.n_classes))
    for rows, block in wide.blocks():
        weights: Any = DeviceArray(machine.weights_by_class(rows))
        own += wide.pull(block, weights)
    return problem.class_sums_of(own)


def response_of(problem: MultinomialProblem, point: EvaluatedPoint) -> Response:
    """What a pass has found, as the certificate of a multinomial problem takes it."""
    pull = np.ascontiguousarray(problem.C * point.pulled.T)
    return Response(point.sums.losses, -point.sums.conjugates, point.sums.pulled_size, pull)
