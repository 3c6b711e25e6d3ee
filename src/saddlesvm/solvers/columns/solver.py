"""Coordinate descent over features, for penalties that set weights to zero.

A step begins with the pull ``v = C sum_i a_i x_i`` of the multipliers at the present weights: one
pass over all rows. It says how far each feature is from optimal. The features with a weight, and
the worst of the others, are the working set. On it the solver minimises the objective by proximal
Newton steps: a quadratic model of the losses, minimised by coordinate descent
(:mod:`saddlesvm.solvers.columns.model`), and a search along the line to its minimiser. Working sets
grow with the support, so that most of the work is on features that matter.

Sparse rows with many features begin with rough models. A rough model has all features that are not
optimal, is minimised by passes over their columns alone, and leaves out the rows that hardly bend,
except on its diagonal. At large C these are most rows. On the way the penalty falls to its value
step by step, so that the support grows and never has to shrink much.

The multipliers are brought into the domain of ``R*`` by a factor (with the l1 norm: ``min(1, l1 /
max |v_j|)``), which gives a dual point and a gap at every step. Its error is in proportion to the
largest violation. Near the end the multipliers are projected instead: with B the second derivatives
and S the features with a weight or a pull at its bound, ``a - B X_S p / C`` has to first order the
pull ``v - X_S' B X_S p``, and p brings it to the bounds. That is a Newton step of the dual, and the
gap that it leaves is about the square of the gap before.

Losses with kinks have a proximal term, with a centre c and a proximity q. Newton steps bring the
first part of the gap, ``residual``, to zero. When it is small beside the second part,
``fenchel_gap``, the centre moves to the present multipliers and q shrinks.

Source: Yuan, Ho and Lin (2012), "An improved GLMNET for l1-regularized logistic regression";
Massias, Gramfort and Salmon (2018), "Celer: a fast solver for the Lasso with dual extrapolation",
for working sets; Li, Sun and Toh (2018), "A highly efficient semismooth Newton augmented
Lagrangian method for solving Lasso problems", for the proximal term.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import Shape, traits_of
from saddlesvm.problem.penalties import holds_square
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.regularizer import inner
from saddlesvm.problem.sums import bring_back, conjugate_sum, dual_weights
from saddlesvm.rows.places import sum_squares
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.base import Best, Budget, SolverBase, State, empty_array
from saddlesvm.solvers.columns.kernels import Coordinates, violations
from saddlesvm.solvers.columns.model import (
    CORNER_DAMPING,
    CURVE_DAMPING,
    TINY,
    QuadraticModel,
    WorkingSet,
    worst_of,
)
from saddlesvm.solvers.columns.store import ColumnStore
from saddlesvm.solvers.curvature import coordinate_curvature
from saddlesvm.solvers.machines import ALL, Binary, make_machine
from saddlesvm.solvers.search import find_least

LEAST_FEATURES = 100  # features of a working set, at least; guessed
GROWTH = 2.0  # features of a working set, per feature with a weight; guessed
# Features up to which all make up the working set; guessed.
FEW_FEATURES = 400
NEWTON_STEPS = 10  # Newton steps on a working set, at most; guessed
# Divisor, step by step, of a penalty that is too strong at first because features are many, and of
# q if the loss has kinks; guessed.
APPROACH = 3.0
# Violation that a working set is solved to, relative to the largest of all features; guessed.
WORKING_SHARE = 0.3
# Relative fall of the objective in a step, below which rough models no longer pay. Measured on
# rcv1-binary, l1, C = 100: 1e-9 certifies 1e-3 by rough models alone; matrices, from a fall of 2e-5
# on, take four times as long.
LEAST_FALL = 1e-9
ROUGH_STEPS = 200  # steps of rough models, at most: matrices are slow, but surer; a guess
# Violation that a model is minimised to, relative to the one it begins with, and to the one that
# the working set is solved to; models are what costs. Guessed.
INEXACT = 0.03
MODEL_SHARE = 0.3
VIOLATION_OF_GAP = 0.1  # violation, in units of l1, per relative gap asked for; guessed
LEAST_VIOLATION = 1e-15  # in units of l1, at least 1, that rounding leaves; guessed
# Factors by which a projection lowers the gap, at least and at most, where it is worth its time;
# measured on rcv1.
LEAST_GAIN = 3.0
MOST_GAIN = 100.0
AGAIN = 0.3  # gap, relative to the one that a projection left, before the next one; a guess
HARDLY_HELPED = (
    0.5  # share of the gap above which a projection counts as having hardly helped; a guess
)
NEAR_BOUND = 0.98  # share of l1 from which on a pull is kept from growing by a projection; a guess
MARGIN = 0.25  # of a projected pull to its bound, in units of l1, per relative gap asked for
MOVE_RATIO = 0.3  # ratio of the two parts of the gap at which the centre moves; a guess


@dataclass
class ColumnsState(State):
    """The state of the column solver; an epoch is a pass over all rows and work on few columns.

    Attributes
    ----------
    store : ColumnStore
    machine : Binary
        The losses of the members.
    curvatures : ndarray of shape (d + 1,)
        ``C sum_i s_i x_ij^2``, which do not change in a run.
    alpha, centre : ndarray of shape (n,)
        Multipliers at the margins of the members, and the centre of the proximal term.
    q : float
        Proximity; 0 for none.
    residual, fenchel_gap : float
        The two parts of the gap: Newton steps reduce the first, moves of the centre the second.
    steps : int
    best : Best
        The best points so far.
    pull : ndarray of shape (d + 1,)
        ``C sum_i a_i x_i`` of the multipliers at `w`.
    z : ndarray of shape (n,)
        Margins of the members.
    rough : bool
        Whether the solver still takes rough models of all features at once.
    penalty_factor : float
        What R is multiplied by: more than 1 at first, so that few features have weights; 1 at last.
    damping : float
        What is added to the diagonal of models, relative to it.
    projected : float
        The gap that the last projection of the multipliers left; infinite before, 0 if it hardly
        helped.
    features : ndarray of shape (m,)
        The features of the working set.
    working : WorkingSet, optional
        The working set, once it is needed.
    """

    estimate_is_gap: bool = True
    store: ColumnStore = field(kw_only=True, repr=False)
    machine: Binary = field(kw_only=True, repr=False)
    curvatures: np.ndarray = field(kw_only=True, repr=False)
    alpha: np.ndarray = field(default_factory=empty_array)
    centre: np.ndarray = field(default_factory=empty_array)
    q: float = 0.0
    residual: float = np.inf
    fenchel_gap: float = 0.0
    steps: int = 0
    best: Best = field(default_factory=Best)
    pull: np.ndarray = field(default_factory=empty_array)
    z: np.ndarray = field(default_factory=empty_array)
    rough: bool = False
    penalty_factor: float = 1.0
    damping: float = TINY
    projected: float = np.inf
    features: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    working: WorkingSet | None = field(default=None, repr=False)

    @property
    def handover(self) -> Best:
        """The best point so far, not the last one."""
        return self.best


@dataclass(frozen=True)
class Columns(SolverBase):
    """Coordinate descent over features, for the elastic net and the l1 norm.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(solver="columns", penalty="elasticnet", tol=1e-9).fit(
    ...     notes.X, notes.y
    ... )
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "columns"
    any_penalty: ClassVar[bool] = True
    without_square: ClassVar[bool] = True

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> ColumnsState:
        """Begin at the given weights, or at zero."""
        d = problem.n_features
        n = problem.members.size
        w = np.zeros(d + 1)
        if start is not None and start.w is not None:
            w[:] = start.w
        state = ColumnsState(
            w=w,
            store=ColumnStore(problem),
            # The solver's other loops are compiled, too, unless the problem is small.
            machine=make_machine(problem, problem.is_small),
            curvatures=problem.C * sum_squares(problem.X, problem.all_weights),
            pull=np.zeros(d + 1),
            centre=np.zeros(n),
            z=np.zeros(n),
            q=0.0 if problem.is_smooth else coordinate_curvature(problem),
            active=d,
        )
        state.best.w = np.zeros(d + 1)
        state.best.alpha = np.zeros(problem.y.size)
        state.best.dual = 0.0  # phi*(0) = -min phi = 0 for every loss
        if start is not None and start.alpha is not None and state.q > 0.0:
            state.centre[:] = problem.gather(start.alpha)
        self._evaluate(problem, state)
        l1 = penalty_factors(problem)[1].max(initial=0.0)
        state.rough = problem.sparse and d > FEW_FEATURES
        # With few features all are at work, whatever C is, and a stronger penalty at first gains
        # nothing. But rows that are most likely separable stop bending at once if C is large and
        # the loss has a corner.
        is_cornered = traits_of(problem.loss).shape is Shape.CORNERED
        if l1 > 0.0 and (d > FEW_FEATURES or (n <= d and is_cornered)):
            worst = float(self._violations(problem, state)[:-1].max(initial=0.0))
            state.penalty_factor = max(worst / (APPROACH * l1), 1.0)
        return state

    def step(self, problem: Problem, state: ColumnsState, budget: Budget) -> ColumnsState:
        """Choose a working set, minimise the objective on it, and look at all features again."""
        l1 = penalty_factors(problem)[1].max(initial=0.0)
        # On the way to the problem the penalty is too strong at first; it falls by the same factor
        # each step.
        if state.steps:
            state.penalty_factor = max(state.penalty_factor / APPROACH, 1.0)
        violation = self._violations(problem, state)
        worst = float(violation.max(initial=0.0))
        # A new working set is due if a feature outside of it is not optimal.
        if not state.steps or not self._covers(state, violation):
            state.features = self._choose(problem, state, violation)
            state.active = state.features.size
            state.working = None
        if state.working is None:
            state.working = WorkingSet(state.store, state.features, problem.intercept.present)
        # How well the working set is solved: a share of the present violation, and, once the set
        # covers all features, no more than the gap asked for needs.
        target = WORKING_SHARE * worst
        covered = self._covers(state, violation)
        if covered and state.penalty_factor == 1.0:
            target = min(target, VIOLATION_OF_GAP * budget.relative_gap * max(l1, TINY))
        self._minimise(problem, state, max(target, LEAST_VIOLATION * max(l1, 1.0)))
        state.steps += 1
        state.epochs += 1.0
        state.rows_touched += problem.members.size
        # Rough models go on while the penalty still falls or the objective gains enough by them.
        before = state.best.primal
        self._evaluate(problem, state, budget.relative_gap)
        gains = state.penalty_factor > 1.0 or state.best.primal < (1.0 - LEAST_FALL) * before
        state.rough = state.rough and gains and state.steps < ROUGH_STEPS
        # The proximal point method: the centre moves when the first part of the gap is small.
        if state.q > 0.0 and state.residual <= MOVE_RATIO * state.fenchel_gap and not time_is_up():
            state.centre[:] = state.alpha
            state.q /= APPROACH
            self._evaluate(problem, state)
        return state

    # ------------------------------------------------------------------ the working set

    @staticmethod
    def _penalty_factors(problem: Problem, state: ColumnsState) -> tuple[np.ndarray, np.ndarray]:
        """Return the :func:`penalty_factors` of the present step, which may be too strong yet."""
        square, l1 = penalty_factors(problem)
        return state.penalty_factor * square, state.penalty_factor * l1

    def _violations(self, problem: Problem, state: ColumnsState) -> np.ndarray:
        """Return how far each coordinate is from its optimum, shape (d + 1,)."""
        square, l1 = self._penalty_factors(problem, state)
        violation = np.empty(state.w.size)
        # Slopes of the smooth part: those of the square less the pull of the multipliers.
        violations(Coordinates(state.w, square * state.w - state.pull, l1, l1), violation)
        if not problem.intercept.present:
            violation[-1] = 0.0
        return violation

    def _choose(self, problem: Problem, state: ColumnsState, violation: np.ndarray) -> np.ndarray:
        """Return a working set: the features with a weight, and the worst of the others."""
        if problem.n_features <= FEW_FEATURES:
            return np.arange(problem.n_features)
        support = state.w[:-1] != 0.0
        if state.rough:
            return np.flatnonzero(support | (violation[:-1] > 0.0))
        # The set is twice as large as the support; the worst of the other features fill it up.
        size = max(LEAST_FEATURES, int(GROWTH * np.count_nonzero(support)))
        others = np.flatnonzero((violation[:-1] > 0.0) & ~support)
        room = size - int(support.sum())
        if others.size > room > 0:
            others = others[np.argpartition(-violation[others], room - 1)[:room]]
        chosen = support.copy()
        chosen[others] = True
        return np.flatnonzero(chosen)

    @staticmethod
    def _covers(state: ColumnsState, violation: np.ndarray) -> bool:
        """Return True if no feature outside the working set is far from optimal."""
        inside = np.zeros(violation.size, dtype=bool)
        inside[state.features] = inside[-1] = True
        return not violation[~inside].any()

    # ------------------------------------------------------------------ Newton steps on it

    def _minimise(self, problem: Problem, state: ColumnsState, target: float) -> None:
        """Make proximal Newton steps until every violation of the working set is below `target`."""
        working = state.working
        assert working is not None
        places = working.coordinates(problem.n_features)
        square, l1 = (parts[places] for parts in self._penalty_factors(problem, state))
        machine = state.machine
        damping = (
            CORNER_DAMPING if traits_of(problem.loss).shape is Shape.CORNERED else CURVE_DAMPING
        )
        for _ in range(1 if state.rough else NEWTON_STEPS):
            if time_is_up():
                return
            # Multipliers and second derivatives at the margins make the quadratic model at w.
            alpha, bend, _ = machine.answer(ALL, state.z, state.centre, state.q)
            w = state.w[places]
            slopes = square * w - problem.C * working.slopes(alpha)
            model = QuadraticModel(w, slopes, l1, square, problem.C * bend)
            worst = worst_of(model)
            if worst <= target:
                return
            # The model is damped in proportion to the largest curvature of each coordinate, and
            # minimised inexactly: as the Newton steps converge, so does the tolerance.
            added = square + state.damping * self._curvatures(problem, state)[places]
            accuracy = max(INEXACT * worst, MODEL_SHARE * target)
            new, moved = working.minimise(model._replace(added=added), accuracy, state.rough)
            # The penalty along the line from w to the model's minimiser: exact for the square; the
            # absolute values, which are convex, are bounded by their chord.
            change = new - w
            linear = float(l1 @ (np.abs(new) - np.abs(w))) + float((square * w) @ change)
            quadratic = float(square @ (change * change))
            tau = self._search(problem, state, moved, linear, quadratic, alpha)
            if tau == 0.0:
                return
            # A full step takes the minimiser itself, so that its zeros are exact.
            state.w[places] = new if tau == 1.0 else w + tau * change
            state.z += tau * moved
            state.damping = damping.next_share(state.damping, tau)

    def _search(
        self,
        problem: Problem,
        state: ColumnsState,
        moved: np.ndarray,
        linear: float,
        quadratic: float,
        alpha: np.ndarray,
    ) -> float:
        """Return the place to go to on a line, from 0 to 1; 0 if the objective does not fall.

        Parameters
        ----------
        moved : ndarray of shape (n,)
            How the margins change along the line.
        linear, quadratic : float
            The penalty along the line is ``linear t + quadratic t^2 / 2``.
        alpha : ndarray of shape (n,)
            The multipliers at its start.
        """

        def slope_at(t: float) -> float:
            z = state.z + t * moved
            multipliers = state.machine.dual_variables(ALL, z, state.centre, state.q)
            return linear + t * quadratic - problem.C * inner(multipliers, moved)

        first = linear - problem.C * inner(alpha, moved)
        if not -np.inf < first < 0.0:
            return 0.0
        last = slope_at(1.0)
        if last <= 0.0:
            return 1.0
        return find_least(slope_at, first, last)

    @staticmethod
    def _curvatures(problem: Problem, state: ColumnsState) -> np.ndarray:
        """Return the largest curvature along each coordinate, of the losses or proximal terms."""
        # The loss's largest curvature, or that of the proximal term of a loss with kinks.
        bend = problem.loss.largest_curvature()
        if not math.isfinite(bend):
            bend = 1.0 / (state.q or 1.0)
        return state.curvatures * bend

    # ------------------------------------------------------------------ objectives and gap

    def _evaluate(self, problem: Problem, state: ColumnsState, target: float = 0.0) -> None:
        """Compute margins, dual variables, their pull, objectives and gap."""
        kind = problem.intercept
        self._margins(problem, state)
        # A free intercept is set to its best value, so that the multipliers' sum is zero.
        if state.q == 0.0 and kind.constrained:
            shift = kind.best(
                problem.member_terms,
                np.arange(state.z.size, dtype=problem.members.dtype),
                state.z,
                0.0,
            )
            state.w[-1] += shift / problem.scale
            state.z += shift
        # Multipliers at the margins, and their pull v = C sum_i a_i x_i.
        state.alpha, bend, sums = state.machine.answer(ALL, state.z, state.centre, state.q)
        alpha = problem.scatter(state.alpha)
        state.pull = dual_weights(problem, alpha)
        # The dual point needs the sum that a free intercept asks for.
        dual_point = alpha
        pull = state.pull
        if kind.constrained:
            dual_point = problem.balance(alpha)
            if state.q > 0.0:
                pull = dual_weights(problem, dual_point)
        dual, dual_point = bring_inside(problem, dual_point, pull)
        primal = primal_of(problem.C, sums.losses, problem.regularizer.value(state.w))
        # The gap has two parts: what moves of the centre reduce, and what Newton steps reduce.
        coupled = float(np.einsum("i,i", state.alpha, state.z))
        state.fenchel_gap = problem.C * (sums.losses + sums.conjugates + coupled)
        state.residual = max(primal - dual - state.fenchel_gap, 0.0)
        state.best.keep((primal, dual), state.w, dual_point)
        if self._may_project(problem, state, target):
            before = state.best.relative_gap
            alpha = self._project(problem, state, problem.C * bend, target)
            projected, dual_point = bring_inside(problem, alpha, dual_weights(problem, alpha))
            state.best.keep((primal, projected), state.w, dual_point)
            # A projection that hardly helps is not tried again: few rows bend, or features depend
            # on each other.
            state.projected = state.best.relative_gap
            if state.projected > HARDLY_HELPED * before:
                state.projected = 0.0
        state.estimate = state.best.relative_gap
        n_weights = np.count_nonzero(state.w[:-1])
        state.remark = f"step {state.steps}: {n_weights} weights"

    @staticmethod
    def _may_project(problem: Problem, state: ColumnsState, target: float) -> bool:
        """Return True if a projection of the multipliers may bring the gap below the target."""
        if holds_square(problem.penalty) or state.penalty_factor > 1.0 or state.q > 0.0:
            return False
        # The gap that is left is about its square, and at best a small share of it. A further try
        # needs a smaller gap than the last one left. Just above the target a step is as good.
        most = min(math.sqrt(2.0 * target), MOST_GAIN * target, AGAIN * state.projected)
        return LEAST_GAIN * target < state.best.relative_gap <= most

    def _project(
        self, problem: Problem, state: ColumnsState, bend: np.ndarray, target: float
    ) -> np.ndarray:
        """Return dual variables near the multipliers, whose pull is about within its bounds."""
        l1 = penalty_factors(problem)[1]
        # The features with a weight, and those whose pull is at its bound.
        is_near = (np.abs(state.pull) > NEAR_BOUND * l1) | (state.w != 0.0)
        near = np.flatnonzero(is_near[:-1])
        working = WorkingSet(state.store, near, problem.intercept.present)
        places = working.coordinates(problem.n_features)
        # To a little inside of the bounds, which the equations are then solved to.
        room = MARGIN * target * l1[0]
        most = np.maximum(l1[places] - room, 0.0)
        pull = state.pull[places]
        w = state.w[places]
        # A weight wants its pull at the bound, and no pull wants to be beyond its bound.
        settled = pull * np.sign(w) > NEAR_BOUND * l1[places]
        wanted = np.where(settled, np.copysign(most, w), np.clip(pull, -most, most))
        change = working.move_pull(pull - wanted, bend, room)
        alpha = problem.scatter(state.alpha - change / problem.C)
        bring_back(problem.pointwise, problem.members, alpha)
        return problem.balance(alpha) if problem.intercept.constrained else alpha

    def _margins(self, problem: Problem, state: ColumnsState) -> None:
        """Compute the margins of the present weights, from the columns whose weight is not zero."""
        support = np.flatnonzero(state.w[:-1])
        state.z[:] = state.w[-1] * problem.scale
        if support.size:
            store = state.store
            state.z += store.combine(store.cover(support), state.w[support])

    def solution(self, problem: Problem, state: ColumnsState) -> Point:
        """The best primal and the best dual point so far."""
        return Point(state.best.w, state.best.alpha)

    def last_point(self, problem: Problem, state: ColumnsState) -> Point:
        """The last iterate and the multipliers at its margins."""
        return Point(state.w, problem.scatter(state.alpha))


def bring_inside(problem: Problem, alpha: np.ndarray, pull: np.ndarray) -> tuple[float, np.ndarray]:
    """Bring dual variables into the domain of R*; return their objective, and them."""
    regularizer = problem.regularizer
    # The largest factor at which R* of the pull is finite; with l1: min(1, l1 / max |v_j|).
    factor = regularizer.domain_scale(pull)
    conjugates = conjugate_sum(problem.pointwise, problem.members, alpha, factor)
    charged = regularizer.conjugate_along(pull)(factor)
    return dual_of(problem.C, float(conjugates), charged), factor * alpha


def penalty_factors(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return the factors of the square and of the absolute value of each weight, shape (d + 1,)."""
    # The intercept is last.
    square, l1 = (np.full(problem.n_features + 1, part) for part in problem.penalty.factors())
    # A free intercept costs nothing; a penalised one has a charge of its own.
    square[-1] = l1[-1] = 0.0
    if problem.intercept.present and not problem.intercept.constrained:
        square[-1], l1[-1] = problem.regularizer.intercept_factors
    return square, l1
