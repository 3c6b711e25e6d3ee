"""A small problem as one matrix in float64, and the state of a solver that works on it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Point, relative
from saddlesvm.problem.loss import ArrayMethods, methods_of
from saddlesvm.problem.penalties import L1
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import clock, time_is_up
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget, SolverBase, State, nothing
from saddlesvm.solvers.small.small_equations import RAISED, RAISED_FURTHER, SmallEquations

LEAST_DIAGONAL = 1e-300  # of a matrix of inner products, beside which a lift is measured


class FoundWeights(NamedTuple):
    """A point of a run, or of several runs with a row for each.

    Its weights, its dual point, and their objectives in the C form.
    """

    u: np.ndarray
    alpha: np.ndarray
    primal: Any
    dual: Any


class Small:
    """The rows that take part in a problem as one matrix.

    Attributes
    ----------
    Z : ndarray of shape (n, m)
        The rows, the virtual feature last. If there are fewer rows than features, rows of length n
        (and one) with the same inner products, so that all systems of equations are small.
    y : ndarray of shape (n,)
    s : ndarray of shape (n,) or 1.0
    penalty : ndarray of shape (m,)
        1, but 0 for a free intercept, and if a weight is charged its size.
    bar : float
        What a weight of size 1 is charged for its size; 0 for half a square.
    C : float
    loss : Loss
    methods : ArrayMethods
    size : int
        Number of rows.
    """

    def __init__(self, problem: Problem) -> None:
        terms = problem.of_members
        self.problem = problem
        self.C = problem.C
        self.loss = problem.loss
        self.y = terms.y
        self.size = int(terms.y.size)
        self.s: Any = terms.weights if terms.weights.size else 1.0
        self.methods: ArrayMethods = methods_of(problem.loss)
        rows = problem.X.float64_matrix()
        if self.size < rows.shape[0]:
            rows = rows[problem.members]
        self.rows = rows

        # Fewer rows than features: the factor of their inner products stands for them.
        self.factor: np.ndarray | None = None
        if rows.shape[1] > self.size:
            gram = rows @ rows.T
            self.factor = lower_factor(gram.toarray() if problem.sparse else gram)
            Z = self.factor
        else:
            Z = rows.toarray() if problem.sparse else rows
        if problem.scale:
            Z = np.concatenate([Z, np.full((self.size, 1), problem.scale)], axis=1)

        # The diagonal of R'': zero for weights that are charged their size, and a free intercept.
        self.bar = problem.penalty.l1 if isinstance(problem.penalty, L1) else 0.0
        self.penalty = np.zeros(Z.shape[1]) if self.bar else np.ones(Z.shape[1])
        if problem.intercept.constrained:
            self.penalty[-1] = 0.0
        self.equations = SmallEquations(Z, self.penalty, self.C)
        self.Z: np.ndarray = self.equations.Z

    def side_by_side(self, y: np.ndarray, s: np.ndarray | float) -> Small:
        """Return the problems over the same rows with labels and weights of shape (K, n)."""
        several = copy.copy(self)
        several.y = y
        several.s = s
        return several

    def with_axes(self) -> Small:
        """Return the rows with a unit vector for each weight that is charged its size.

        It is a row whose loss is that charge.
        """
        if not self.bar:
            return self
        extended = copy.copy(self)
        # bar |u_j| is the loss of a row that is the j-th unit vector.
        rows = np.vstack([self.Z, np.eye(self.Z.shape[1])])
        extended.equations = SmallEquations(rows, self.penalty, self.C)
        extended.Z = extended.equations.Z
        return extended

    def pick(self, chosen: np.ndarray) -> Small:
        """Return some of several problems side by side."""
        weights = self.s[chosen] if np.ndim(self.s) == 2 else self.s
        return self.side_by_side(self.y[chosen], weights)

    def weights(self, alpha: np.ndarray) -> np.ndarray:
        """Return ``w(alpha)`` in the coordinates of `Z`; zero for a free intercept."""
        return self.penalty * (self.C * (alpha @ self.Z))

    def feature_weights(self, u: np.ndarray) -> np.ndarray:
        """Return weights of `Z`, shape (K, m), as weights of the features, shape (K, d + 1)."""
        found = np.zeros((len(u), self.rows.shape[1] + 1))
        features = u
        if self.problem.scale:
            features = u[:, :-1]
            found[:, -1] = u[:, -1]
        if self.factor is None:
            found[:, :-1] = features
            return found
        # Weights u belong to the rows' factor L: with L' c = u, the weights of features are X' c.
        for own, one in zip(found, features, strict=True):
            own[:-1] = dtrtrs(self.factor, one, lower=1, trans=1)[0] @ self.rows
        return found

    def start(self, start: Point | None) -> np.ndarray:
        """Return the weights of `Z` to begin at: those of a point's dual variables, or its own."""
        if start is None:
            return np.zeros(self.Z.shape[1])
        if start.w is not None and self.factor is None:
            return np.array(start.w if self.problem.scale else start.w[:-1], dtype=np.float64)
        if start.alpha is None:
            return np.zeros(self.Z.shape[1])
        # Dual variables do not give a free intercept: it is the point's own.
        u = self.weights(self.problem.gather(start.alpha))
        if start.w is not None and self.problem.scale:
            u[-1] = start.w[-1]
        return u

    def balance(self, a: np.ndarray) -> np.ndarray:
        """Return dual variables with the sum that a free intercept asks for."""
        problem = self.problem
        return problem.gather(problem.balance(problem.scatter(a)))

    def evaluate(
        self, u: np.ndarray, z: np.ndarray, a: np.ndarray, pull: np.ndarray | None = None
    ) -> FoundWeights:
        """Return the objectives of weights with margins z, and of a dual point.

        The dual point is balanced for the sum that a free intercept asks for, and shortened if the
        penalty bounds its pull. `pull` is ``w(a)`` if that is known.
        """
        if self.problem.intercept.constrained:
            a = self.balance(a)
            pull = None
        if self.bar:
            # R* is zero within the bounds of the pull, and infinite beyond.
            most = np.abs(self.C * (a @ self.Z)).max(axis=-1, keepdims=True)
            a = a * np.minimum(1.0, self.bar / most)
            charged = self.bar * np.abs(u).sum(axis=-1)
            conjugate: Any = 0.0
        else:
            pull = self.weights(a) if pull is None else pull
            charged = 0.5 * ((u * u) @ self.penalty)
            conjugate = 0.5 * (pull * pull).sum(axis=-1)
        # P = R(w) + C sum s phi(z), and D = -R*(v) - C sum s phi*(-a / s).
        of_rows: Any = self.methods.conjugate(self.loss, a, self.y, self.s).sum(axis=-1)
        primal = primal_of(self.C, self.add_losses(z), charged)
        return FoundWeights(u, a, primal, dual_of(self.C, of_rows, conjugate))

    def add_losses(self, z: np.ndarray) -> np.ndarray:
        """Return ``sum_i s_i phi_i(z_i)`` of each run."""
        return (self.s * self.methods.value(self.loss, z, self.y)).sum(axis=-1)


@dataclass(frozen=True)
class Together:
    """The ends of several runs.

    Attributes
    ----------
    w : ndarray of shape (K, d + 1)
        Weights of the features.
    a : ndarray of shape (K, n)
        Feasible multipliers.
    steps : int ndarray of shape (K,)
    """

    w: np.ndarray
    a: np.ndarray
    steps: np.ndarray


def lower_factor(gram: np.ndarray) -> np.ndarray:
    """Return a lower triangular L with ``L L' = gram``, but for rounding."""
    lift = 0.0
    while True:
        # Dependent rows make the matrix singular: the diagonal is raised until it has a factor.
        raised = gram + lift * np.eye(gram.shape[0])
        factor, failed = dpotrf(raised, lower=1, clean=1)
        if not failed:
            return np.ascontiguousarray(factor)
        largest = max(float(gram.diagonal().max()), LEAST_DIAGONAL)
        lift = max(RAISED_FURTHER * lift, RAISED * largest)


@dataclass
class SmallWork:
    """The matrix of the problem, and what the last step found; a resumed run makes them anew."""

    small: Small | None = None
    found: FoundWeights | None = None


@dataclass
class SmallState(State):
    """The state of a run on a small problem; an epoch is one step.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        The best weights so far.
    alpha : ndarray of shape (n_all,)
        The best dual point so far.
    primal, dual : float
        Their objectives, in the C form.
    stuck : bool
        True if rounding leaves nothing to gain.
    at : object
        The point that the run stands at, as its solver has it.
    """

    estimate_is_gap: bool = True
    alpha: np.ndarray = field(default_factory=nothing)
    primal: float = np.inf
    dual: float = -np.inf
    stuck: bool = False
    steps: int = 0
    at: Any = field(default=None, repr=False)
    work: SmallWork = field(default_factory=SmallWork, repr=False)


@dataclass(frozen=True)
class SmallSolver(SolverBase, ABC):
    """The base class of the solvers of small problems: steps until the budget is used up."""

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> SmallState:
        """Begin at zero, or at the starting point."""
        state = SmallState(
            w=np.zeros(problem.n_features + 1),
            alpha=np.zeros(problem.y.size),
            active=problem.members.size,
        )
        small = Small(problem)
        state.work.small = small
        with blas_for(0.0), np.errstate(all="ignore"):
            u = small.start(start)
            state.at = self.begin(small, u)
            state.primal = float(small.C * small.add_losses(np.zeros(small.size)))
            # The zero weights' objective is the first upper bound, whatever the run begins at.
            if start is None or start.alpha is None or not start.alpha.any():
                # phi*(0) = 0 for every loss, and no objective is below zero.
                state.dual = 0.0
                state.estimate = 1.0
                return state
            found = small.evaluate(u, small.Z @ u, problem.gather(start.alpha))
            best = self._keep_better(state, small, found, None)
            if best is not None:
                state.w = small.feature_weights(best[None])[0]
        return state

    @abstractmethod
    def together(self, small: Small, relative_gap: float, most: int) -> Together:
        """Return the ends of runs from zero, of several problems without a free intercept.

        Parameters
        ----------
        small : Small
            Of :meth:`Small.side_by_side`.
        relative_gap : float
            That each run comes to, unless rounding leaves nothing to gain.
        most : int
            Steps of a run.
        """

    @abstractmethod
    def begin(self, small: Small, u: np.ndarray) -> Any:
        """Return the point that the run begins at, near the weights u."""

    @abstractmethod
    def move(self, state: SmallState, small: Small) -> float:
        """Do one step, and return about what the gap is then, or less."""

    @abstractmethod
    def judge(self, state: SmallState, small: Small) -> FoundWeights:
        """Return the point that the run stands at, with its objectives."""

    def step(self, problem: Problem, state: SmallState, budget: Budget) -> SmallState:
        """Do steps until the estimate is as small as asked for, or the budget is used up."""
        small = state.work.small
        assert small is not None
        began = clock()
        before = state.epochs
        # An epoch is a step, which visits all rows.
        until = before + max(1, budget.rows // small.size)
        best = None
        with blas_for(0.0), np.errstate(all="ignore"):
            while self._goes_on(state, until, budget):
                gap = self.move(state, small)
                state.steps += 1
                state.epochs += 1.0
                state.rows_touched += small.size

                # Objectives are computed at the end, and when the gap looks small enough; the
                # primal does not rise by much.
                is_late = clock() - began > budget.seconds or time_is_up()
                is_near = not gap > budget.relative_gap * abs(state.primal)
                if is_late or is_near or state.stuck or state.epochs >= until:
                    found = self.judge(state, small)
                    state.work.found = found
                    best = self._keep_better(state, small, found, best)
                if is_late:
                    break
            if state.epochs == before:
                # There is nothing to do, which counts as an epoch, too.
                state.epochs += 1.0
            if best is not None:
                state.w = small.feature_weights(best[None])[0]
        return state

    def _goes_on(self, state: SmallState, until: float, budget: Budget) -> bool:
        """Return True if another step is due."""
        if state.epochs >= until or state.stuck:
            return False
        return state.estimate > budget.relative_gap

    def _keep_better(
        self, state: SmallState, small: Small, found: FoundWeights, best: np.ndarray | None
    ) -> np.ndarray | None:
        """Keep the better objectives of the best and the new ones; return the best weights."""
        # The best primal and the best dual point need not come from the same step.
        if found.dual > state.dual:
            state.dual = float(found.dual)
            state.alpha = small.problem.scatter(found.alpha)
        if found.primal < state.primal:
            state.primal = float(found.primal)
            best = found.u
        state.estimate = relative(state.primal - state.dual, state.primal, state.dual)
        return best

    def solution(self, problem: Problem, state: SmallState) -> Point:
        """Return the best primal and the best dual point so far."""
        return Point(state.w, state.alpha)

    def last_point(self, problem: Problem, state: SmallState) -> Point:
        """Return the point of the last step; the best one if a resumed run has done none."""
        found = state.work.found
        small = state.work.small
        if found is None or small is None:
            return self.solution(problem, state)
        return Point(small.feature_weights(found.u[None])[0], problem.scatter(found.alpha))
