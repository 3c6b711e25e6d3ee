"""A small problem as one matrix in float64, and the state of a solver that works on it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Point, relative
from saddlesvm.problem.loss import ArrayMethods, has_bounded_slopes, is_smooth, methods_of, traits_of
from saddlesvm.problem.penalties import L1
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import clock, time_is_up
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Budget, SolverBase, State, nothing
from saddlesvm.solvers.small.equations import RAISED, Equations


class Found(NamedTuple):
    """A point of a run: its weights, its dual point, and their objectives in the C form; or the points of several runs,
    with a row for each."""

    u: np.ndarray
    alpha: np.ndarray
    primal: Any
    dual: Any


class Small:
    """The rows that take part in a problem as one matrix.

    Attributes
    ----------
    Z : ndarray of shape (n, m)
        The rows, the virtual feature last; where there are fewer rows than features, rows of length n (and one) with
        the same products, so that all systems of equations are small.
    y : ndarray of shape (n,)
    s : ndarray of shape (n,) or 1.0
    penalty : ndarray of shape (m,)
        1, but 0 for a free intercept, and where a weight is charged its size.
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
        self.problem, self.C, self.loss, self.y = problem, problem.C, problem.loss, terms.y
        self.size = int(terms.y.size)
        self.s: Any = terms.weights if terms.weights.size else 1.0
        self.methods: ArrayMethods = methods_of(problem.loss)
        rows = problem.X.float64_matrix()
        if problem.members.size < rows.shape[0]:
            rows = rows[problem.members]
        free, n = problem.intercept.constrained, problem.members.size
        self.factor: np.ndarray | None = None
        self.rows = rows
        if rows.shape[1] > n:
            gram = rows @ rows.T
            Z = self.factor = lower_factor(gram.toarray() if problem.sparse else gram)
        else:
            Z = rows.toarray() if problem.sparse else rows
        Z = np.hstack([Z, np.full((n, 1), problem.scale)]) if problem.scale else Z
        self.bar = problem.penalty.l1 if isinstance(problem.penalty, L1) else 0.0
        self.penalty = np.zeros(Z.shape[1]) if self.bar else np.ones(Z.shape[1])
        if free:
            self.penalty[-1] = 0.0
        self.equations = Equations(Z, self.penalty, self.C)
        self.Z: np.ndarray = self.equations.Z

    def side_by_side(self, y: np.ndarray, s: Any) -> Small:
        """The problems over the same rows with labels of shape (K, n), and weights of this shape, or those given."""
        several = copy.copy(self)
        several.y, several.s = y, s
        return several

    def with_axes(self) -> Small:
        """The rows with a unit vector for each weight that is charged its size: a row whose loss is that charge."""
        if not self.bar:
            return self
        extended = copy.copy(self)
        extended.equations = Equations(np.vstack([self.Z, np.eye(self.Z.shape[1])]), self.penalty, self.C)
        extended.Z = extended.equations.Z
        return extended

    def among(self, chosen: np.ndarray) -> Small:
        """Some of several problems side by side."""
        return self.side_by_side(self.y[chosen], self.s[chosen] if np.ndim(self.s) == 2 else self.s)

    def weights(self, alpha: np.ndarray) -> np.ndarray:
        """``w(alpha)`` in the coordinates of `Z`; zero for a free intercept."""
        return self.penalty * (self.C * (alpha @ self.Z))

    def original(self, u: np.ndarray) -> np.ndarray:
        """The weights u of `Z`, shape (K, m), as weights of the features, shape (K, d + 1)."""
        features, last = (u[:, :-1], u[:, -1:]) if self.problem.scale else (u, np.zeros((len(u), 1)))
        if self.factor is not None:
            features = np.array([dtrtrs(self.factor, one, lower=1, trans=1)[0] @ self.rows for one in features])
        return np.hstack([features, last])

    def start(self, start: Point | None) -> np.ndarray:
        """The weights of `Z` to begin at: those of a starting point's dual variables, or of its weights."""
        if start is None:
            return np.zeros(self.Z.shape[1])
        if start.w is not None and self.factor is None:
            return np.array(start.w if self.problem.scale else start.w[:-1], dtype=np.float64)
        if start.alpha is None:
            return np.zeros(self.Z.shape[1])
        u = self.weights(self.problem.gathered(start.alpha))
        if start.w is not None and self.problem.scale:
            u[-1] = start.w[-1]
        return u

    def balanced(self, a: np.ndarray) -> np.ndarray:
        """The dual variables with the sum that a free intercept asks for."""
        problem = self.problem
        spread = problem.balanced(problem.spread(a))
        return problem.gathered(spread)

    def judged(self, u: np.ndarray, z: np.ndarray, a: np.ndarray, pulled: np.ndarray | None = None) -> Found:
        """The objectives of weights with margins z, and of a dual point; `pulled` is ``w(a)`` where that is known.

        The dual point is balanced for the sum that a free intercept asks for, and shortened where the penalty bounds
        its pull.
        """
        if self.problem.intercept.constrained:
            a, pulled = self.balanced(a), None
        if self.bar:
            most = np.abs(self.C * (a @ self.Z)).max(axis=-1, keepdims=True)
            a, own, reached = a * np.minimum(1.0, self.bar / most), self.bar * np.abs(u).sum(axis=-1), 0.0
        else:
            pulled = self.weights(a) if pulled is None else pulled
            own, reached = 0.5 * ((u * u) @ self.penalty), 0.5 * (pulled * pulled).sum(axis=-1)
        conjugates: Any = self.methods.conjugate(self.loss, a, self.y, self.s).sum(axis=-1)
        return Found(u, a, primal_of(self.C, self.paid(z), own), dual_of(self.C, conjugates, reached))

    def paid(self, z: np.ndarray) -> Any:
        """``sum_i s_i phi_i(z_i)`` of each run."""
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
    """A lower triangular L with ``L L' = gram``, but for rounding."""
    lift = 0.0
    while True:
        raised = gram + lift * np.eye(gram.shape[0])
        factor, failed = dpotrf(raised, lower=1, clean=1)
        if not failed:
            return np.ascontiguousarray(factor)
        lift = max(100.0 * lift, RAISED * max(float(gram.diagonal().max()), 1e-300))


def products(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The product of each row with a matrix, one by one: a run's numbers are those of the run alone, bit for bit."""
    found: np.ndarray = np.matmul(rows[:, None], matrix)[:, 0]
    return found


def fits(problem: Problem) -> bool:
    """Whether the solvers of this room take a problem: few values, little work in a step, and half a square as penalty,
    or the sum of the weights' sizes with a loss of lines and parabolas."""
    if type(problem) is not Problem or not (problem.holds_rows and problem.intercept.homogeneous):
        return False
    takes = is_smooth(problem.loss) or has_bounded_slopes(problem.loss)
    if isinstance(problem.penalty, L1):
        tall = problem.n_features < problem.members.size and not problem.intercept.constrained
        takes = tall and traits_of(problem.loss).parabolic
    elif not problem.penalty.identity():
        return False
    return takes and problem.is_small


@dataclass
class SmallWork:
    """The matrix of the problem, and what the last step found; a resumed run makes them anew."""

    small: Small | None = None
    found: Found | None = None


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
        Whether rounding leaves nothing to gain.
    at : Group
        The point that the run stands at, as its solver has it.
    """

    proven: bool = True
    alpha: np.ndarray = field(default_factory=nothing)
    primal: float = np.inf
    dual: float = -np.inf
    stuck: bool = False
    steps: int = 0
    at: Any = field(default=None, repr=False)
    work: SmallWork = field(default_factory=SmallWork, repr=False)


@dataclass(frozen=True)
class SmallSolver(SolverBase):
    """The base class of the solvers of small problems: steps at a point until the budget is used up."""

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> SmallState:
        """Begin at zero, or at the starting point."""
        state = SmallState(
            w=np.zeros(problem.n_features + 1), alpha=np.zeros(problem.y.size), active=problem.members.size
        )
        state.work.small = small = Small(problem)
        with blas_for(0.0), np.errstate(all="ignore"):
            u = small.start(start)
            state.at, state.primal = self.begin(small, u), float(small.C * small.paid(np.zeros(small.size)))
            if start is None or start.alpha is None or not start.alpha.any():
                state.dual, state.estimate = 0.0, 1.0  # phi*(0) = 0 for every loss, and no objective is below zero
            else:
                best = self._take(state, small.judged(u, small.Z @ u, problem.gathered(start.alpha)), None)
                state.w = state.w if best is None else small.original(best[None])[0]
        return state

    def together(self, small: Small, relative_gap: float, most: int) -> Together:
        """The ends of runs from zero, of several problems side by side, without a free intercept.

        Parameters
        ----------
        small : Small
            Of :meth:`Small.side_by_side`.
        relative_gap : float
            That each run comes to, unless rounding leaves nothing to gain.
        most : int
            Steps of a run.
        """
        raise NotImplementedError

    def begin(self, small: Small, u: np.ndarray) -> Any:
        """The point that the run begins at, near the weights u."""
        raise NotImplementedError

    def move(self, state: SmallState, small: Small) -> float:
        """Do one step, and return about what the gap is then, or less."""
        raise NotImplementedError

    def judge(self, state: SmallState, small: Small) -> Found:
        """The point that the run stands at, with its objectives."""
        raise NotImplementedError

    def step(self, problem: Problem, state: SmallState, budget: Budget) -> SmallState:
        """Do steps until the estimate is as small as asked for, or the budget is used up."""
        small = state.work.small
        assert small is not None
        began, before = clock(), state.epochs
        until = before + max(1, budget.rows // small.size)
        best = None
        with blas_for(0.0), np.errstate(all="ignore"):
            while state.epochs < until and not state.stuck and state.estimate > budget.relative_gap:
                gap = self.move(state, small)
                state.steps += 1
                state.epochs += 1.0
                state.rows_touched += small.size
                late = clock() - began > budget.seconds or time_is_up()
                far = gap > budget.relative_gap * abs(state.primal)  # the primal does not rise by much
                if late or state.stuck or state.epochs >= until or not far:
                    found = state.work.found = self.judge(state, small)
                    best = self._take(state, found, best)
                if late:
                    break
            if state.epochs == before:  # there is nothing to do, which counts as an epoch too
                state.epochs += 1.0
            if best is not None:
                state.w = small.original(best[None])[0]
        return state

    def _take(self, state: SmallState, found: Found, best: np.ndarray | None) -> np.ndarray | None:
        """Keep the better of the best and the new objectives, and their points."""
        if found.dual > state.dual:
            state.dual, state.alpha = float(found.dual), state.work.small.problem.spread(found.alpha)  # type: ignore[union-attr]
        if found.primal < state.primal:
            state.primal, best = float(found.primal), found.u
        state.estimate = relative(state.primal - state.dual, state.primal, state.dual)
        return best

    def solution(self, problem: Problem, state: SmallState) -> Point:
        """The best primal and the best dual point so far."""
        return Point(state.w, state.alpha)

    def last_point(self, problem: Problem, state: SmallState) -> Point:
        """The point of the last step; the best one where a resumed run has done none."""
        found, small = state.work.found, state.work.small
        if found is None or small is None:
            return self.solution(problem, state)
        return Point(small.original(found.u[None])[0], problem.spread(found.alpha))
