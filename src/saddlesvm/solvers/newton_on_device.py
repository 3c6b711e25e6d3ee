"""Newton's method over rows on a device, for smooth losses: only sums over the rows leave it.

A pass computes scores, losses, dual variables and their pull block by block on the device, in
double precision, and returns their sums. Newton's matrix is that of all rows, by a pass of its own
in single precision: a device multiplies faster than it gathers a share of the rows. A last pass
proves the gap. If the intercept is free, the pass before it adds up the dual variables, so that
their sum can be made zero.

It takes a quarter and a tenth of the time of Newton's method with vectors of all rows in NumPy:
1,000,000 x 768 float16 and 5,000,000 x 128 float32 rows, logistic loss, to 1e-3 on an H100
(docs/measurements/devices.md has the seconds).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.problem.bounds import (
    LossSums,
    PointSizes,
    add_sizes,
    bound_sums,
    largest_among,
    point_sizes,
)
from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.intercepts import shorten, shortening, signed_sums
from saddlesvm.problem.loss import has_array_methods, is_cornerless, is_smooth
from saddlesvm.problem.penalties import L2
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import SUMS, loss_sums
from saddlesvm.problem.terms import Pointwise
from saddlesvm.rows.array_libraries import copy_to_device
from saddlesvm.rows.device import DeviceBlocks
from saddlesvm.rows.device_array import DeviceArray
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.base import SolverBase, empty_array
from saddlesvm.solvers.curvature import bends_at_zero
from saddlesvm.solvers.machines import Binary
from saddlesvm.solvers.newton import FEW_ROWS, Newton, NewtonState, place_of
from saddlesvm.solvers.task import EvaluatedPoint, PassCurvature, Task

if TYPE_CHECKING:
    from saddlesvm.problem.loss import Loss
    from saddlesvm.problem.penalties import Penalty

# The fields of PointSizes that are largest values; the others are sums.
LARGEST = largest_among(PointSizes)
# For arguments that a smooth loss with one score a row does not need.
NO_SCORES = np.empty(0)


def solver_on_device(
    solver: SolverBase, loss: Loss, penalty: Penalty, shape: tuple[int, int]
) -> SolverBase:
    """Return this module's solver in place of one for rows in memory, if it takes the problem."""
    # Other solvers stay, and so do subclasses of Newton.
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


@dataclass
class DeviceState(NewtonState):
    """The state of a run.

    Attributes
    ----------
    proven : tuple of (ndarray, Certificate or None)
        The weights that were proven last, and their certificate.
    """

    proven: tuple[np.ndarray, Certificate | None] = (NO_SCORES, None)


@dataclass(frozen=True)
class NewtonOnDevice(Newton):
    """Newton's method over rows on a device, whose dual variables are not kept.

    Estimators choose it for tensors of torch and arrays of CuPy.
    """

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> DeviceState:
        """Begin at zero, or at given weights."""
        w = np.zeros(problem.n_features + 1)
        if start is not None and start.w is not None:
            w = np.array(start.w, dtype=np.float64)
        state = DeviceState(w=w, active=problem.members.size)
        state.best.w = w
        return state

    def _task(self, problem: Problem, state: Any) -> Task:
        """Return the task of a problem, made once a run."""
        if state.task is not None:
            return state.task
        place = blocks_of(problem)
        machine = Binary(problem.loss, *labels_and_weights(problem, place))
        ridge = np.ones(place.d + 1)
        task = Task(place, machine, ridge, problem.C, keeps_factor=True, keeps_scores=False)
        task.curvature_at = curvature_at
        if problem.intercept.constrained:
            ridge[-1] = 0.0

            def prove_bound(point: EvaluatedPoint) -> tuple[np.ndarray, float]:
                # The dual variables have their sum only in a proof, which is kept for `solution`.
                certificate = prove(problem, machine, point.W)
                state.proven = (point.W, certificate)
                return point.A, certificate.dual / problem.unit

            task.balance = prove_bound
        state.task = task
        return task

    def solution(self, problem: Problem, state: Any) -> Point:
        """Return the best weights, with their proof."""
        machine: Any = self._task(problem, state).machine
        w = state.best.w
        # With a free intercept, a pass near the target has proven these weights already.
        proven_weights, certificate = state.proven
        if proven_weights is not w or certificate is None:
            certificate = prove(problem, machine, w)
        evaluation = Evaluation.from_weights(problem, w, empty_array(), certificate)
        return Point(w, evaluation=evaluation)

    def last_point(self, problem: Problem, state: Any) -> Point:
        """Return the best weights: the dual variables of other passes are not kept."""
        return self.solution(problem, state)


def labels_and_weights(problem: Problem, place: DeviceBlocks) -> tuple[Any, Any]:
    """Return labels and weights of the members on the device; 1 if all weights are."""
    terms = problem.member_terms
    y = DeviceArray(copy_to_device(terms.y, place.array, dtype=place.xp.float64))
    if not terms.weights.size:
        return y, 1.0
    return y, DeviceArray(copy_to_device(terms.weights, place.array, dtype=place.xp.float64))


def blocks_of(problem: Problem) -> DeviceBlocks:
    """Return the rows of a problem as blocks whose scores stay on the device."""
    place = place_of(problem)
    assert isinstance(place, DeviceBlocks)
    place.keeps_scores = True
    place.widen()
    return place


def curvature_at(task: Task, W: np.ndarray) -> PassCurvature:
    """Return the matrix of all rows at weights, by a pass of its own."""
    place = task.place
    assert isinstance(place, DeviceBlocks)
    bent = 0

    def bends_of(rows: slice, block: Any) -> Any:
        # C enters where the equations are made.
        nonlocal bent
        bends: Any = task.machine.bend(rows, place.scores(block, W), NO_SCORES, NO_SCORES, 0.0)
        if isinstance(bends, np.ndarray):
            # A number, the same for all rows.
            bends = DeviceArray(copy_to_device(bends, place.array))
        bent += int(np.count_nonzero(bends))
        return bends

    matrix = place.outer_products(bends_of)
    return PassCurvature(bent, matrix, True, None, empty_array(), is_whole=True)


def prove(problem: Problem, machine: Binary, W: np.ndarray) -> Certificate:
    """Return the certificate of weights, by a double precision pass; two for free intercepts."""
    place = blocks_of(problem)
    norms: Any = DeviceArray(copy_to_device(problem.gather(problem.norms), place.array))
    is_free = problem.intercept.constrained

    def visit(rows: slice, block: Any) -> tuple[Pointwise, Any, Any, Any]:
        """Return the terms of a block, all its rows, their scores and their dual variables."""
        every = slice(0, rows.stop - rows.start)
        weights = machine.weights(rows)
        if isinstance(weights, float):
            weights = empty_array()
        points = Pointwise(problem.loss, machine.y[rows], weights)
        Z = place.scores(block, W)
        return points, every, Z, machine.dual_variables(rows, Z, NO_SCORES, 0.0)

    # 1. A free intercept requires dual variables whose sum is zero. The sums of the positive and of
    # the negative ones say which are shortened, and by how much.
    shorter = None
    if is_free:
        signed = np.zeros(4)
        for rows, block in place.blocks():
            points, every, _, A = visit(rows, block)
            signed += signed_sums(points, every, A)
        shorter = shortening(signed.tolist(), 0.0)

    # 2. Losses and conjugates, the sizes on which bounds on rounding rest, and the pull.
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

    # 3. Both objectives, with bounds on the rounding of these sums.
    found = bound_sums(
        problem.facts, LossSums(*sums.tolist()), PointSizes(*sizes.tolist()), W, problem.C * pulled
    )
    return Certificate.from_sums(problem.strength, found)
