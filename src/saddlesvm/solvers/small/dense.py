"""Small problems as one matrix in float64, and the loop of the methods that work on them.

Several problems over the same rows take their steps together, as arrays with a row for each. The
methods are Newton's (:mod:`.small_newton`) and an interior point method (:mod:`.interior_point`).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import ArrayMethods, methods_of
from saddlesvm.problem.penalties import L1
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.small.small_equations import (
    RAISED,
    RAISED_FURTHER,
    SmallEquations,
    products,
)

LEAST_DIAGONAL = 1e-300  # of a matrix of inner products, beside which a lift is measured


class FoundWeights(NamedTuple):
    """Points of runs with a row for each: weights, dual points, and objectives in the C form."""

    u: np.ndarray
    alpha: np.ndarray
    primal: np.ndarray
    dual: np.ndarray


class Small:
    """The rows that take part in K problems as one matrix, with labels and weights for each.

    Attributes
    ----------
    Z : ndarray of shape (n, m)
        The rows, the virtual feature last. If there are fewer rows than features, rows of length n
        (and one) with the same inner products, so that all systems of equations are small.
    y : ndarray of shape (K, n)
    s : ndarray of shape (K, n) or 1.0
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
        self.y = terms.y[None]
        self.size = int(terms.y.size)
        self.s: Any = terms.weights[None] if terms.weights.size else 1.0
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
        """Return the dual variables of a single problem with the sum that its intercept asks for.

        An array of shape (1, n), as the given one.
        """
        problem = self.problem
        return problem.gather(problem.balance(problem.scatter(a[0])))[None]

    def evaluate(self, u: np.ndarray, a: np.ndarray, z: np.ndarray | None = None) -> FoundWeights:
        """Return the objectives of weights and of dual points.

        A dual point is balanced for the sum that a free intercept asks for, and shortened if the
        penalty bounds its pull. `z` are the margins of the weights, if they are known.
        """
        if z is None:
            z = products(u, self.Z.T)
        if self.problem.intercept.constrained:
            a = self.balance(a)
        if self.bar:
            # R* is zero within the bounds of the pull, and infinite beyond.
            most = np.abs(self.C * (a @ self.Z)).max(axis=1, keepdims=True)
            a = a * np.minimum(1.0, self.bar / most)
            charged = self.bar * np.abs(u).sum(axis=1)
            conjugate: Any = 0.0
        else:
            pull = self.weights(a)
            charged = 0.5 * ((u * u) @ self.penalty)
            conjugate = 0.5 * (pull * pull).sum(axis=1)
        # P = R(w) + C sum s phi(z), and D = -R*(v) - C sum s phi*(-a / s).
        of_rows: Any = self.methods.conjugate(self.loss, a, self.y, self.s).sum(axis=1)
        primal: Any = primal_of(self.C, self.add_losses(z), charged)
        return FoundWeights(u, a, primal, dual_of(self.C, of_rows, conjugate))

    def add_losses(self, z: np.ndarray) -> np.ndarray:
        """Return ``sum_i s_i phi_i(z_i)`` of each run."""
        return (self.s * self.methods.value(self.loss, z, self.y)).sum(axis=1)


class Runs(ABC):
    """The points that the runs of a method stand at, one for each of K problems.

    Attributes
    ----------
    words : tuple of str
        What a step is called, and what the rows do that :meth:`count_active` counts.
    are_together : bool
        True if the runs of several problems take their steps together.
    """

    words: ClassVar[tuple[str, str]]
    are_together: bool = True

    @abstractmethod
    def take_step(self) -> np.ndarray:
        """Take a step of each run; return about the gaps or less, NaN if a run gains nothing."""

    @abstractmethod
    def point(self) -> FoundWeights:
        """Return weights and dual points, with their objectives."""

    @abstractmethod
    def pick(self, chosen: np.ndarray) -> Self:
        """Return some of the runs."""

    @abstractmethod
    def count_active(self) -> int:
        """Return how many rows bend, or have free dual variables."""


class Ends:
    """The best weights and the best dual points of runs, which need not come from the same step.

    Attributes
    ----------
    u : ndarray of shape (K, m)
    a : ndarray of shape (K, n)
        Feasible dual variables.
    primal, dual : ndarray of shape (K,)
        Objectives in the C form.
    steps : int ndarray of shape (K,)
    stuck : bool ndarray of shape (K,)
        True if rounding leaves nothing to gain.
    last : FoundWeights or None
        The last points that were evaluated.
    """

    def __init__(self, small: Small) -> None:
        count = len(small.y)
        self.u = np.zeros((count, small.Z.shape[1]))
        self.a = np.zeros(small.y.shape)
        # Zero weights are the first upper bound. phi*(0) = 0 for every loss.
        self.primal: np.ndarray = small.C * small.add_losses(self.a)
        self.dual = np.zeros(count)
        self.steps = np.zeros(count, dtype=int)
        self.stuck = np.zeros(count, dtype=bool)
        self.last: FoundWeights | None = None

    def keep(self, live: np.ndarray, found: FoundWeights) -> None:
        """Keep the better objectives of the runs `live`, and what belongs to them."""
        self.last = found
        lower = (found.primal < self.primal[live]).tolist()
        higher = (found.dual > self.dual[live]).tolist()
        for k, run in enumerate(live.tolist()):
            if lower[k]:
                self.u[run] = found.u[k]
                self.primal[run] = found.primal[k]
            if higher[k]:
                self.a[run] = found.alpha[k]
                self.dual[run] = found.dual[k]

    def gaps(self) -> np.ndarray:
        """Return the relative gaps."""
        size = np.maximum(np.abs(self.primal), np.abs(self.dual))
        return (self.primal - self.dual) / np.where(size > 0.0, size, 1.0)


def advance(
    runs: Runs, ends: Ends, relative_gap: float, most: int, live: np.ndarray | None = None
) -> None:
    """Let runs take steps until each has come to the gap, or gains nothing; `most` steps at most.

    `live` are the numbers of the runs among the ends; all by default.
    """
    if live is None:
        live = np.arange(ends.steps.size)
    for step in range(1, most + 1):
        gaps = runs.take_step()
        ends.steps[live] += 1

        # Objectives are computed at the end, and once a gap may be small enough, or is no number.
        near = ~(gaps > relative_gap * ends.primal[live])
        if step == most:
            near[:] = True
        if not near.any():
            continue
        ends.stuck[live] = ~np.isfinite(gaps)
        ends.keep(live, runs.point())

        # Runs that have ended leave the others.
        going = ~near | ((ends.gaps()[live] > relative_gap) & ~ends.stuck[live])
        if going.all():
            continue
        if not going.any():
            break
        live = live[going]
        runs = runs.pick(going)


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
