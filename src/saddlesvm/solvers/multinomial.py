"""Multinomial regression by Newton's method on the primal, its equations solved by conjugate gradients.

A Newton step solves ``H v = -g`` with the gradient g and the second derivative H of the objective at W,

    g = R W - V,    H v = R v + C sum_i s_i (diag(p_i) - p_i p_i') (v x_i) x_i',

as far as the step needs, and goes along v by the first of 1, 1/2, 1/4, ... that lowers the objective enough. Each
evaluation yields the gap without further passes: ``1/2 ||g||^2`` (:mod:`saddlesvm.problem.multinomial`). A product
with H is two matrix products over blocks of rows; it is computed in the precision of the data, and so are evaluations
far from the optimum. Conjugate gradients are preconditioned with the factors of
:mod:`saddlesvm.solvers.second_order.class_factors`, made anew in each Newton step: they are what makes few iterations
enough.

A step of the solver is one pass over the rows, so that limits and interrupts are met in the middle of a Newton step.

Source: Lin, Weng and Keerthi (2008), "Trust region Newton method for large-scale logistic regression", for the products
with H; Eisenstat and Walker (1996), "Choosing the forcing terms in an inexact Newton method".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.multinomial import MultinomialProblem, Response, evaluation_at
from saddlesvm.problem.regularizer import square
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget, SolverBase, State, nothing
from saddlesvm.solvers.newton import BlockState, SoftmaxNewton, is_device, suits_classes
from saddlesvm.solvers.second_order.class_factors import Inverse, make_inverse
from saddlesvm.solvers.second_order.conjugate import FORCING, MOST_ITERATIONS, ConjugateGradients
from saddlesvm.solvers.second_order.driver import ROUNDED
from saddlesvm.solvers.second_order.linear_algebra import BLAS_SPEED

# Bytes that the probabilities of all rows may take: of many classes at most as many as the rows themselves. Beyond,
# each product computes them anew, which takes half as long again.
KEPT_BYTES, ALWAYS_KEPT = 1e9, 1.6e7
COARSE = 1e-3  # relative gap above which evaluations are in the precision of the data
COARSE_NOISE = 1e-6  # relative error of an objective that was evaluated so
ENOUGH = 1e-4  # share of the predicted decrease that a step must reach
SHORTEST = 1e-5  # of step lengths
IN_ARRAYS = SoftmaxNewton()
SHARE_LEFT = 0.3  # share of the gap asked for that the residual of the last equations may leave


@dataclass
class MultinomialWork:
    """The working data that a run can make anew.

    Attributes
    ----------
    kept : ndarray of shape (n_all, K), (0, 0) or None
        ``e_y - p`` with the probabilities p at the weights, float32; of shape (0, 0) where it takes too much memory.
    inverse : Inverse or None
        The preconditioner of this Newton step.
    proof : Evaluation or None
        The certified weights, where their evaluation was in float64: it is exact.
    """

    kept: np.ndarray | None = None
    inverse: Inverse | None = None
    proof: Evaluation | None = None


@dataclass
class DescentState(State):
    """What Newton's method for the softmax keeps between two passes, wherever the rows are.

    Attributes
    ----------
    gradient : ndarray
        Gradient at the weights that the step begins at.
    length, slope, primal : float
        Length of the step, the derivative along it, and the objective at its beginning, in the C form.
    steps, seed : int
        Newton steps; seed of the samples.
    """

    gradient: np.ndarray = field(default_factory=nothing)
    length: float = 0.0
    slope: float = 0.0
    primal: float = np.inf
    steps: int = 0
    seed: int = 0

    def accepts(self, primal: float, rounding: float = ROUNDED) -> bool:
        """Whether the step has lowered the objective enough; `rounding` is relative to it."""
        enough = self.primal + ENOUGH * self.length * self.slope + rounding * abs(self.primal)
        return not self.steps or primal <= enough


def objective_of(problem: MultinomialProblem, W: np.ndarray, found: Response) -> tuple[float, np.ndarray]:
    """Objective and gradient at weights, in the layout of the rows, by what the rows respond."""
    charged = problem.regularizer.value(problem.by_class(W))
    return primal_of(problem.C, found.paid, charged), problem.charged(W) - found.pull


@dataclass
class MultinomialState(DescentState):
    """The state of a run; its arrays are in the layout of the rows. One epoch is one pass over the rows.

    Attributes
    ----------
    equations : ConjugateGradients
        The Newton equations; their solution is the direction of the step.
    first : float
        Norm of the first gradient in the preconditioner's norm.
    solving, begun : bool
        Whether the next pass is for the equations, else it evaluates a step; whether the equations have begun.
    coarse : bool
        Whether the next evaluation is in the precision of the data.
    was_coarse : bool
        Whether the last one was.
    stuck : bool
        Whether no step lowers the objective any more, because of rounding.
    taken_at : float
        The epoch when the last step was taken.
    """

    proven: bool = True
    equations: ConjugateGradients = field(default_factory=ConjugateGradients)
    first: float = 0.0
    solving: bool = False
    begun: bool = False
    coarse: bool = False
    was_coarse: bool = False
    stuck: bool = False
    taken_at: float = 0.0
    work: MultinomialWork = field(default_factory=MultinomialWork, repr=False)

    @property
    def effort(self) -> float:
        """The epochs that the steps so far took: while equations of the next one are solved, nothing can improve."""
        return self.epochs if self.stuck else self.taken_at


@dataclass(frozen=True)
class Multinomial(SolverBase):
    """Newton's method for :class:`~saddlesvm.problem.multinomial.MultinomialProblem`."""

    name: ClassVar[str] = "multinomial"

    def init(self, problem: MultinomialProblem, seed: int, start: Point | None = None) -> MultinomialState | BlockState:
        """Begin at zero, or at given weights of shape (K, d + 1) where they are better.

        Dense rows with room for all scores are left to array code, see :mod:`saddlesvm.solvers.newton`.
        """
        return IN_ARRAYS.init(problem, seed, start) if suits_classes(problem) else self._init(problem, seed, start)

    def needs_rows(self, problem: MultinomialProblem) -> bool:
        """Whether a run visits rows: on a device it leaves them there."""
        return not is_device(problem)

    def _init(self, problem: MultinomialProblem, seed: int, start: Point | None = None) -> MultinomialState:
        W = problem.first_weights(start)
        return MultinomialState(
            w=W,
            active=problem.members.size,
            gradient=np.zeros_like(W),
            equations=self._no_equations(W),
            coarse=problem.dtype != np.float64,
            seed=seed,
        )

    def step(self, problem: MultinomialProblem, state: Any, budget: Budget) -> MultinomialState | BlockState:
        """Make passes over the rows, at least one and about ``budget.rows`` row visits."""
        if isinstance(state, BlockState):
            state = IN_ARRAYS.step(problem, state, budget)
            ends_early = state.stuck and state.estimate > budget.relative_gap > 0.0
            return self.on_stall(problem, state) or state if ends_early else state
        n, before = problem.members.size, state.rows_touched
        seconds = 4.0 * n * problem.values_per_row / BLAS_SPEED
        with blas_for(seconds):
            while True:
                if state.solving:
                    self._iterate(problem, state, budget.relative_gap)
                else:
                    self._evaluate(problem, state)
                state.rows_touched += n
                evaluated = state.solving and not state.begun
                proven = evaluated and state.estimate <= budget.relative_gap
                if state.stuck or proven or state.rows_touched - before >= budget.rows or time_is_up():
                    break
        state.epochs = state.rows_touched / n
        return state

    def _evaluate(self, problem: MultinomialProblem, state: MultinomialState) -> None:
        """Evaluate the step that is tried: take it and begin the next equations, or halve it."""
        moves = state.equations.solution.size > 0
        W = state.w + state.length * state.equations.solution if moves else state.w.copy()
        found = problem.response(W, self._room(problem, state), self._precision(problem, state.coarse))
        primal, gradient = objective_of(problem, W, found)
        if state.steps == 0 and not self._better_than_zero(problem, primal):
            state.w[:] = 0.0  # a start far out: its probabilities have nothing to go by
            state.work.proof = None
            return
        if not state.accepts(primal, COARSE_NOISE if state.coarse or state.was_coarse else ROUNDED):
            self._shorten(state)
            return
        state.w, state.primal, state.gradient, state.was_coarse = W, primal, gradient, state.coarse
        evaluation = evaluation_at(problem, problem.by_class(W), found)
        state.work.proof = None if state.coarse else evaluation
        state.estimate = evaluation.certificate.relative_gap
        state.coarse = state.coarse and state.estimate > COARSE
        state.steps, state.taken_at = state.steps + 1, state.rows_touched / problem.members.size
        state.equations, state.solving = self._no_equations(W), True  # they begin where a product is asked for
        state.begun, state.length, state.slope = False, 1.0, 0.0

    @staticmethod
    def _better_than_zero(problem: MultinomialProblem, primal: float) -> bool:
        """Whether an objective is at most that of zero weights, but for rounding."""
        at_zero = problem.C * float(problem.all_weights.sum()) * np.log(problem.n_classes)
        return bool(primal <= (1.0 + COARSE_NOISE) * at_zero)

    @staticmethod
    def _shorten(state: MultinomialState) -> None:
        """Halve the step; where none is left, evaluate the weights anew in float64, and give up after that."""
        state.length *= 0.5
        if state.length < SHORTEST:
            state.stuck = not state.coarse and not state.was_coarse
            state.coarse, state.length, state.primal = False, 0.0, np.inf

    @staticmethod
    def _no_equations(W: np.ndarray) -> ConjugateGradients:
        """Equations that have not begun, and take no memory."""
        solution, residual, direction = (np.empty((0, W.shape[1])) for _ in range(3))
        return ConjugateGradients(solution, residual, direction)

    def _begin(self, problem: MultinomialProblem, state: MultinomialState) -> None:
        """Make what the equations need, after an evaluation or a resumption; begin them at the gradient."""
        if state.work.kept is None:  # a run that was resumed
            problem.response(state.w, self._room(problem, state), self._precision(problem, state.was_coarse))
        if state.work.inverse is None:
            state.work.inverse = self._inverse(problem, state)
        if state.begun:
            return
        equations = state.equations
        equations.begin(-state.gradient, state.work.inverse)
        norm = float(np.sqrt(max(equations.size, 0.0)))
        state.first = state.first or norm
        forcing = min(FORCING, float(np.sqrt(norm / state.first))) if state.first else 0.0
        equations.target, state.begun, state.solving = forcing**2 * equations.size, True, equations.size > 0.0

    def _iterate(self, problem: MultinomialProblem, state: MultinomialState, relative_gap: float) -> None:
        """One iteration of conjugate gradients; where it is the last, the step is tried next."""
        self._begin(problem, state)
        if not state.solving:
            return
        assert state.work.inverse is not None
        equations = state.equations
        image = problem.bent(equations.direction, state.w, self._room(problem, state), problem.dtype)
        image += problem.charged(equations.direction)
        bent = equations.learn(image, state.work.inverse)
        settled = 0.5 * square(equations.residual) <= SHARE_LEFT * relative_gap * abs(state.primal)
        if not bent or equations.solved or settled or equations.iterations >= MOST_ITERATIONS:
            state.solving, state.slope = False, float(np.vdot(state.gradient, equations.solution))
            solution, state.equations = equations.solution, self._no_equations(state.w)
            state.equations.solution, state.work.inverse = solution, None

    @staticmethod
    def _room(problem: MultinomialProblem, state: MultinomialState) -> np.ndarray:
        """Where the probabilities of all rows are kept; empty if they would take too much memory."""
        if state.work.kept is None:
            shape = (problem.y.size, problem.n_classes)
            allowed = min(KEPT_BYTES, max(ALWAYS_KEPT, problem.X.nbytes))
            state.work.kept = np.empty(shape if 4 * shape[0] * shape[1] <= allowed else (0, 0), dtype=np.float32)
        return state.work.kept

    def _inverse(self, problem: MultinomialProblem, state: MultinomialState) -> Inverse:
        random = np.random.default_rng([state.seed, state.steps])
        return make_inverse(problem, state.w, self._room(problem, state), random)

    @staticmethod
    def _precision(problem: MultinomialProblem, coarse: bool) -> np.dtype:
        return problem.dtype if coarse else np.dtype(np.float64)

    def on_stall(self, problem: MultinomialProblem, state: Any) -> MultinomialState | None:
        """Go on with products over all rows where array code stalls."""
        if not isinstance(state, BlockState) or is_device(problem):
            return None
        other = self._init(problem, 0, IN_ARRAYS.solution(problem, state))
        other.rows_touched = state.rows_touched
        other.epochs = state.epochs
        return other

    def solution(self, problem: MultinomialProblem, state: Any) -> Point:
        """The weights, shape (K, d + 1), with their proof where the last evaluation was one."""
        if isinstance(state, BlockState):
            return IN_ARRAYS.solution(problem, state)
        return Point(problem.by_class(state.w), proven=state.work.proof)
