"""Newton's method for Crammer and Singer's machine, with proximal points as for losses with kinks.

The loop is that of :mod:`saddlesvm.solvers.newton`.

With a centre c and a proximity q, the loss of a row becomes its smoothed self

    e_i(z) = max_a  a_{y_i} - a . z - (q / 2) ||a - c_i||^2    over the row's dual feasible a.

In ``p = s e_y - a`` the feasible a are a simplex, ``p >= 0`` with the sum s, so that the maximiser
is a projection: ``p_k = max(v_k - theta, 0)`` with ``v = s e_y - c + G / q``, ``G_k = e_ik + z_k``,
and the theta that makes the sum s. The f classes F with ``p_k > 0`` bend together, by ``(I_F - 1 1'
/ f) / q``.

Where the ascent over single rows is slow, this ends fits that it would not: 500 x 20, 4 classes, C
= 10 to 1e5 in 0.05 s, where the ascent alone takes 1.6 s or ends without a certificate (26 November
2026).

Source: Li, Sun and Toh (2018), "A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems"; Rockafellar (1976), "Augmented Lagrangians and applications of the
proximal point algorithm in convex programming"; Condat (2016), "Fast projection onto the simplex
and the l1 ball".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.class_rows import block_rows
from saddlesvm.solvers.base import AT_BOUND, Budget
from saddlesvm.solvers.class_equations import MOST_UNKNOWNS
from saddlesvm.solvers.costs import CALLS, values_cost
from saddlesvm.solvers.curvature import coordinate_curvature
from saddlesvm.solvers.linear_algebra import factor_cost
from saddlesvm.solvers.machines import ResponseSums, SoftmaxMachine
from saddlesvm.solvers.newton import Newton, NewtonState, place_of
from saddlesvm.solvers.task import Task

LEAST_PROXIMITY = 1e-150  # by which C can be divided
# In units of the median curvature of a coordinate step, ``C ||x_i||^2``; measured.
FIRST_PROXIMITY = 0.1
ROW_COST = 3e-8  # seconds that a pass takes for each row and class, besides its products; measured
# Rows times classes up to which their scores and multipliers are kept in memory.
MOST_BLOCKS = 20_000_000
STEPS = 6.0  # Newton steps that a run takes at least,
STEPS_A_POWER = 9.0  # and for each power of ten that the gap falls by; measured
PASSES_A_STEP = 1.7  # measured, as the two above, on digits and made rows
PRODUCTS_A_STEP = 50.0  # if conjugate gradients solve the equations; guessed


class BestRival(SoftmaxMachine):
    """The loss ``phi = max_k (e_k + z_k) - z_y``; ``e_k`` is 0 for the own class y, else 1."""

    kinked = True

    def take(self, rows: np.ndarray | slice) -> BestRival:
        """The machine of some rows."""
        return BestRival(self.classes[rows], self.weights(rows), self.ones.size, self.lengths[rows])

    def respond(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> tuple[np.ndarray, ResponseSums]:
        """The multipliers of some rows at scores Z, and their sums."""
        y = self.classes[rows]
        places = np.arange(y.size)
        A = self.dual_variables(rows, Z, centre, q)
        own = Z[places, y]
        # Phi at the scores: the largest of e_k + z_k, less the own score.
        ahead = Z + 1.0
        ahead[places, y] = own
        paid = float(np.sum(self.weights(rows) * (ahead.max(axis=1) - own)))
        gained = float(A[places, y].sum())
        # e_i at its maximiser: a_y - a . z - (q / 2) ||a - c||^2.
        away = A - centre[rows]
        smoothed = gained - float(np.vdot(A, Z)) - 0.5 * q * float(np.vdot(away, away))
        return A, ResponseSums(paid, smoothed, -gained)

    def dual_variables(
        self, rows: np.ndarray | slice, Z: np.ndarray, centre: np.ndarray, q: float
    ) -> np.ndarray:
        """The multipliers of some rows at scores Z: a projection to the simplex, by sorting."""
        y = self.classes[rows]
        s = self.weights(rows)
        places = np.arange(y.size)
        # v = s e_y - c + G / q of the module's text.
        v = (Z + 1.0) / q - centre[rows]
        v[places, y] += s - 1.0 / q
        # Differences to the largest keep their digits; theta lies within s below it.
        v -= v.max(axis=1)[:, None]
        ordered = -np.sort(-v, axis=1)
        sums = np.cumsum(ordered, axis=1)
        sums -= s[:, None] if isinstance(s, np.ndarray) else s
        counts = np.arange(1.0, v.shape[1] + 1.0)
        # The k largest are positive as long as the k-th exceeds the theta that they would have.
        positive = np.maximum((ordered * counts > sums).sum(axis=1), 1)
        theta = sums[places, positive - 1] / positive
        # a = s e_y - p: the rivals' entries are -p_k, and the own one is the sum of their sizes.
        A = -np.maximum(v - theta[:, None], 0.0)
        A[places, y] = 0.0
        taken = -(A @ self.ones)
        A[places, y] = np.minimum(taken, s)
        return A

    def bend(
        self, rows: np.ndarray | slice, Z: np.ndarray, A: np.ndarray, centre: np.ndarray, q: float
    ) -> np.ndarray:
        """1 / q for the classes of some rows that bend together, and 0 for the others."""
        y = self.classes[rows]
        s = self.weights(rows)
        least = AT_BOUND * (s[:, None] if isinstance(s, np.ndarray) else s)
        # p = s e_y - a: the classes with p_k > 0 bend, and a class alone cannot.
        p = -A
        p[np.arange(y.size), y] += s
        free = p > least
        free &= (free.sum(axis=1) > 1)[:, None]
        return free / q

    def diagonal(self, rows: np.ndarray | slice, bends: np.ndarray) -> np.ndarray:
        """The second derivatives by each score: ``(1 - 1 / f) / q``."""
        counts = np.count_nonzero(bends, axis=1)
        return bends * (1.0 - 1.0 / np.maximum(counts, 1))[:, None]

    def curve(self, rows: np.ndarray | slice, bends: np.ndarray, dZ: np.ndarray) -> np.ndarray:
        """Return how far the multipliers of some rows fall along a change of their scores."""
        total = bends @ self.ones
        # (I_F - 1 1' / f) / q times the change: each class less the mean of those that bend.
        mean = np.einsum("ik,ik->i", bends, dZ) / np.where(total > 0.0, total, 1.0)
        curved: np.ndarray = bends * (dZ - mean[:, None])
        return curved


@dataclass
class RivalState(NewtonState):
    """The state of a run; `cost` is that of the last step, in rough seconds."""

    cost: float = 0.0


@dataclass(frozen=True)
class JointNewton(Newton):
    """Newton's method for a joint problem, from a dual feasible point.

    Parameters
    ----------
    q : float, default=0.0
        The proximity to begin with; 0 for the usual one.
    """

    name: ClassVar[str] = "joint_newton"
    q: float = 0.0

    def init(self, problem: Any, seed: int, start: Point | None = None) -> RivalState:
        """Begin at a dual feasible point."""
        assert start is not None
        assert start.alpha is not None
        alpha = np.asarray(start.alpha)
        W = np.ascontiguousarray(dual_weights(problem, alpha).T)
        state = RivalState(w=W, active=problem.members.size, centre=alpha[problem.members])
        # The proximity begins in proportion to the curvature that a row's own step sees.
        state.q = max(self.q or FIRST_PROXIMITY * coordinate_curvature(problem), LEAST_PROXIMITY)
        state.best.w = W
        state.best.alpha = alpha
        return state

    def _task(self, problem: Any, state: NewtonState) -> Task:
        """The task of a problem, made once a run."""
        if state.task is None:
            place = place_of(problem)
            place.widen()
            if not problem.X.sparse:
                # A block's scores stay in the cache as well.
                place.piece = block_rows(problem.X, problem.n_classes)
                place.block = place.piece
            s = problem.gather(problem.weights)
            codes = problem.gather(problem.codes)
            machine = BestRival(codes, s if s.size else 1.0, problem.n_classes, np.ones(codes.size))
            state.task = Task(place, machine, np.ones(place.d + 1), problem.C)
        return state.task

    def step(self, problem: Any, state: Any, budget: Budget) -> RivalState:
        """Make passes over the rows, at least one and about ``budget.rows`` row visits."""
        n = problem.members.size
        steps = state.steps
        passes = state.rows_touched / n
        state = super().step(problem, state, budget)
        # The work of this step, which the choice between both methods compares.
        state.cost = (state.rows_touched / n - passes) * pass_cost(problem)
        state.cost += (state.steps - steps) * equations_cost(problem, state.active / n)
        if len(state.best.alpha) < problem.y.size:
            # The ascent goes on from the variables of all rows.
            alpha = np.zeros((problem.y.size, problem.n_classes))
            alpha[problem.members] = state.best.alpha
            state.best.alpha = alpha
        return state

    def solution(self, problem: Any, state: NewtonState) -> Point:
        """The best points so far."""
        return Point(np.ascontiguousarray(state.best.w.T), state.best.alpha)


def finish_fits(problem: JointProblem) -> bool:
    """Return True if the memory has room for the scores and multipliers of all rows."""
    return problem.y.size * problem.n_classes <= MOST_BLOCKS


def pass_cost(problem: JointProblem) -> float:
    """Rough seconds of a pass over the rows."""
    return 2.0 * values_cost(problem) + ROW_COST * problem.members.size * problem.n_classes + CALLS


def equations_cost(problem: JointProblem, share: float) -> float:
    """Rough seconds of solving Newton's equations, if this share of the rows bends."""
    unknowns = problem.n_classes * (problem.n_features + 1)
    if unknowns <= MOST_UNKNOWNS:
        return factor_cost(unknowns)
    return PRODUCTS_A_STEP * share * 2.0 * values_cost(problem)


def step_cost(problem: JointProblem, alpha: np.ndarray) -> float:
    """Rough seconds of a Newton step near a dual point."""
    bent = 0
    for some in problem.slices(problem.y.size):
        own = problem.codes[some]
        weights = problem.all_weights[some]
        rivals = alpha[some]
        taken = rivals[np.arange(own.size), own]
        # A row bends if two of its classes share its weight.
        bent += int(
            np.count_nonzero((taken > 0.0) & ((taken < weights) | ((rivals < 0.0).sum(axis=1) > 1)))
        )
    return PASSES_A_STEP * pass_cost(problem) + equations_cost(problem, bent / problem.members.size)


def steps_between(gap: float, target: float) -> float:
    """Newton steps from one relative gap to another."""
    return STEPS + STEPS_A_POWER * float(np.log10(gap / target))
