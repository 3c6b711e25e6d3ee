"""Newton's method over rows on a device, for smooth losses: nothing of a row leaves it.

A pass computes scores, losses, dual variables and their pull block by block on the device, and
hands out sums. Newton's matrix is that of all rows, a pass of its own: a device multiplies faster
than it gathers. A last pass proves the gap in double precision, and with a free intercept the one
before it adds up the dual variables, so that their sum can be made zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.problem.bounds import PointSizes, add_sizes, bound_sums, largest_among, point_sizes
from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.intercepts import shorten, shortening, signed_sums
from saddlesvm.problem.loss import has_array_methods, is_cornerless, is_smooth
from saddlesvm.problem.penalties import L2
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import SUMS, LossSums, loss_sums
from saddlesvm.problem.terms import Pointwise
from saddlesvm.rows.array_libraries import sent
from saddlesvm.rows.device import DeviceBlocks
from saddlesvm.rows.device_array import DeviceArray
from saddlesvm.rows.places import FLOAT64
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.auto_on_files import bends_at_zero
from saddlesvm.solvers.base import SolverBase, empty_array
from saddlesvm.solvers.machines import Binary
from saddlesvm.solvers.newton import FEW_ROWS, Newton, NewtonState, place_of
from saddlesvm.solvers.task import EvaluatedPoint, PassCurvature, Task

if TYPE_CHECKING:
    from saddlesvm.problem.loss import Loss
    from saddlesvm.problem.penalties import Penalty

LARGEST = largest_among(PointSizes)
NO_SCORES = np.empty(0)


def solver_on_device(
    solver: SolverBase, loss: Loss, penalty: Penalty, shape: tuple[int, int]
) -> SolverBase:
    """Return the solver over rows on a device for one over rows in memory; others as they are."""
    if not (isinstance(solver, Auto) or type(solver) is Newton):
        return solver
    if not (isinstance(penalty, L2) and is_smooth(loss) and has_array_methods(loss)):
        return solver
    # The first step needs rows that bend at zero scores. A loss with corners also needs more rows
    # that bend than features at every step: else it takes a proximal term, and with it the dual
    # variables of all rows.
    if not bends_at_zero(loss):
        return solver
    if not is_cornerless(loss) and shape[0] < FEW_ROWS * shape[1]:
        return solver
    return NewtonOnDevice()


@dataclass(frozen=True)
class NewtonOnDevice(Newton):
    """Newton's method over rows on a device, whose dual variables are not kept.

    Estimators choose it for tensors of torch and arrays of CuPy.
    """

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> NewtonState:
        """Begin at zero, or at given weights."""
        w = np.zeros(problem.n_features + 1)
        if start is not None and start.w is not None:
            w = np.array(start.w, dtype=np.float64)
        state = NewtonState(w=w, active=problem.members.size)
        state.best.w = w
        return state

    def _task(self, problem: Problem, state: NewtonState) -> Task:
        """Return the task of a problem, made once a run."""
        if state.work.task is not None:
            return state.work.task
        place = blocks_of(problem)
        machine = Binary(problem.loss, *labels_and_weights(problem, place))
        ridge = np.ones(place.d + 1)
        task = Task(place, machine, ridge, problem.C, keeps_factor=True, keeps_scores=False)
        task.curvature_at = curvature_at
        if problem.intercept.constrained:
            ridge[-1] = 0.0

            def confirm(point: EvaluatedPoint) -> tuple[np.ndarray, float]:
                found = prove(problem, machine, point.W)
                return point.A, found.dual / problem.unit

            task.balance = confirm
        state.work.task = task
        return task

    def solution(self, problem: Problem, state: NewtonState) -> Point:
        """Return the best weights, with their proof."""
        task = self._task(problem, state)
        w = state.best.w
        certificate = prove(problem, task.machine, w)
        evaluation = Evaluation.from_weights(problem, w, empty_array(), certificate)
        return Point(w, evaluation=evaluation)

    def last_point(self, problem: Problem, state: NewtonState) -> Point:
        """Return the best weights: the dual variables of other passes are not kept."""
        return self.solution(problem, state)


def labels_and_weights(problem: Problem, place: DeviceBlocks) -> tuple[Any, Any]:
    """Return labels and weights of the members on the device; 1 if all weights are."""
    terms = problem.member_terms
    y = DeviceArray(sent(terms.y, place.array, dtype=place.xp.float64))
    if not terms.weights.size:
        return y, 1.0
    return y, DeviceArray(sent(terms.weights, place.array, dtype=place.xp.float64))


def blocks_of(problem: Problem) -> DeviceBlocks:
    """Return the rows of a problem as blocks whose scores stay on the device."""
    place = place_of(problem)
    assert isinstance(place, DeviceBlocks)
    place.keeps_scores = True
    return place


def curvature_at(task: Task, W: np.ndarray) -> PassCurvature:
    """Return the matrix of all rows at weights, by a pass of its own."""
    place = task.place
    assert isinstance(place, DeviceBlocks)
    matrix = np.zeros((place.d + 1, place.d + 1))
    bent = 0
    for rows, block in place.blocks():
        Z = place.scores(block, W)
        bends = task.machine.bend(rows, Z, NO_SCORES, NO_SCORES, 0.0)
        bent += int(np.count_nonzero(bends))
        place.add_outer_products(matrix, block, bends)
    is_coarse = place.kind != FLOAT64
    return PassCurvature(bent, matrix, is_coarse, None, empty_array(), is_whole=True)


def prove(problem: Problem, machine: Binary, W: np.ndarray) -> Certificate:
    """Return the certificate of weights, by a pass in double precision, or two."""
    place = blocks_of(problem)
    place.widen()
    norms = DeviceArray(sent(problem.gather(problem.norms), place.array))
    is_free = problem.intercept.constrained

    def visit(rows: slice, block: Any) -> tuple[Pointwise, slice, Any, Any]:
        """Return the terms of a block, all its rows, their scores and their dual variables."""
        every = slice(0, rows.stop - rows.start)
        weights = machine.weights(rows)
        if isinstance(weights, float):
            weights = empty_array()
        points = Pointwise(problem.loss, machine.y[rows], weights)
        Z = place.scores(block, W)
        return points, every, Z, machine.dual_variables(rows, Z, NO_SCORES, 0.0)

    # A free intercept: the sums of the dual variables tell which are shortened, and by how much.
    shorter = None
    if is_free:
        signed = np.zeros(4)
        for rows, block in place.blocks():
            points, every, _, A = visit(rows, block)
            signed += signed_sums(points, every, A)
        shorter = shortening(signed.tolist(), 0.0)

    sums = np.zeros(SUMS)
    sizes = np.zeros(len(PointSizes._fields))
    pulled = np.zeros(place.d + 1)
    for rows, block in place.blocks():
        points, every, Z, A = visit(rows, block)
        if shorter is not None:
            shorten(points, every, A, *shorter)
        sums += loss_sums(points, every, Z, 0.0, A)
        own = point_sizes(
            problem.loss, points.y, norms[rows], points.weights, every, A, signs=is_free
        )
        add_sizes(sizes, np.array(own), LARGEST)
        pulled += place.pull(block, A)
    found = bound_sums(
        problem.facts, LossSums(*sums.tolist()), PointSizes(*sizes.tolist()), W, problem.C * pulled
    )
    return Certificate.from_sums(problem.strength, found)
