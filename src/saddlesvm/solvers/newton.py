"""Newton's method on the primal, in array code over blocks of rows; the proximal point method around it for kinks.

It minimises

    F(W) = 1/2 W'RW + C sum_i e_i(x_i . W)

where e_i is the loss itself if that is smooth, and else its smoothed self with a centre and a proximity q
(:mod:`saddlesvm.solvers.machines`). A pass over the rows evaluates one point: scores, multipliers, their pull
``V = C sum_i a_i x_i``, and with them the gradient ``RW - V`` and a gap, because the multipliers are dual feasible:

    P(W) - D(A) = 1/2 ||W - V||^2 + C sum_i [s_i phi_i(z_i) + s_i phi_i*(-a_i / s_i) + a_i z_i].

Newton's steps bring the first term to zero. The second is zero for a smooth loss; for one with kinks, the centre moves
to the multipliers and q shrinks when the first term is small beside it (Rockafellar 1976).

A step is a direction and a pass that evaluates its end. Where the objective has a slope upwards there, a search along
the line (:mod:`saddlesvm.solvers.search`) goes back; it needs scores only. Large problems begin at the solution of a
share of the rows.

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large scale linear SVMs";
Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point algorithm in convex programming".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Point, certified, relative
from saddlesvm.problem.loss import (
    has_array_methods,
    has_bounded_slopes,
    is_cornerless,
    is_smooth,
    methods_of,
)
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.responses import Margins
from saddlesvm.problem.sums import conjugate_sum, dual_weights, margins
from saddlesvm.rows.device import refuse_device
from saddlesvm.rows.places import IN_CACHE, Elsewhere, Memory
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import Best, Budget, SolverBase, State, nothing, start_alpha
from saddlesvm.solvers.class_equations import ClassEquations
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.equations import Equations, ToldEquations
from saddlesvm.solvers.machines import Binary, CompiledBinary, Softmax
from saddlesvm.solvers.memory_equations import PRODUCTS, MemoryEquations, largest_side, score_all
from saddlesvm.solvers.search import find_better, find_least, find_lowest
from saddlesvm.solvers.task import Found, Task, evaluate, objective_at_zero, pull_of_change

NARROW_GAP = 3e-5  # relative gap down to which sums of float32 rows serve; measured: their error is 1e-6
AT_START = 15  # rows of a first share for each unknown, at least
SMALLER = 16  # how many times fewer rows the first share has, at most
SHARE_GAP = 1e-3  # relative gap at which a share of the rows is left for all; or
LEAST_FALL = 0.02  # share of its objective that a step on it has to gain; measured on 30,000 x 50 ... 100,000 x 20
SLOW = 0.3  # share of the gap that a step leaves if its curvature was too coarse
CLOSE = 0.3  # ratio of the first term of the gap to the second at which the centre moves
GROWTH = ((3, 3.0), (8, 2.0), (10**9, 1.5))  # Newton steps at a centre, at most: divisor of q when it moves
SLOW_GROWTH = ((3, 1.5), (8, 2.0), (10**9, 1.5))  # the same where products solve the equations, harder as q shrinks
NOTHING_TO_FIND = "the optimum is w = 0: nu is too small, or the rows lie around the origin"
RISE = 1e-10  # of an objective, relative to it, that rounding explains
ROUNDED = 1e-13  # the same of F at one centre
SPANNING = 0.8  # rows that bend, for each feature, below which a loss with corners takes a proximal term
SMALL = 0.01  # that term, in units of the median C ||x_i||^2; a guess
FIRST_PROXIMITY = 0.1  # of a one-class machine, in units of the median size of the first scores; a guess
EXACT = 0.1  # the share of the first slope that is left where every step is searched
FEW_ROWS = 20  # rows a feature below which descent comes before the first step of array code; guessed
TOO_STEEP = 0.5  # slope at the end of a step, as a share of that at its beginning, at which the search goes back
MOST_HIDDEN = 3  # moves of the centre in a row while rounding hides what steps gain; guessed
MOST_OF_SHARE = 30  # passes over it
# Of a run for another method: steps, and the gap relative to the fall of the objective so far.
MOST_STEPS = 400
LEFT_OF_FALL = 0.03


@dataclass
class NewtonWork:
    """What a run can make anew by a pass.

    Attributes
    ----------
    task : Task, optional
    base : Found, optional
        The point that the present step began at.
    known : Found, optional
        Scores and multipliers at or near the next point, which save a pass over the rows.
    last, lowest, highest : Found, optional
        The point of the last pass, and those with the best objectives.
    equations : Equations, optional
        Those of the last steps.
    served : bool
        Whether they served for more than one step.
    """

    task: Task | None = None
    base: Found | None = None
    known: Found | None = None
    last: Found | None = None
    lowest: Found | None = None
    highest: Found | None = None
    equations: Equations | None = None
    served: bool = False


@dataclass
class NewtonState(State):
    """The state of a run. One epoch is one pass over the rows.

    Attributes
    ----------
    w : ndarray
        The weights that the next pass evaluates.
    centre : ndarray of shape (n,)
        Of the proximal term; empty for smooth losses.
    q : float
        Proximity; 0 for smooth losses, and until a run has begun.
    fineness : float
        How many more rows tell the curvature than at first.
    apart : float
        The gap of the point that the last step began at.
    inner, steps : int
        Newton steps at this centre, and in total.
    vain : int
        Passes since an objective got better.
    hidden : int
        Moves of the centre in a row at which rounding hid what steps gain.
    least : float
        The smoothed objective F at this centre.
    begun, stuck : bool
        Whether a pass was made; whether rounding leaves nothing to gain.
    best : Best
        The best points so far.
    """

    proven: bool = True
    centre: np.ndarray = field(default_factory=lambda: np.empty(0))
    q: float = 0.0
    fineness: float = 1.0
    apart: float = np.inf
    inner: int = 0
    steps: int = 0
    vain: int = 0
    hidden: int = 0
    least: float = np.inf
    begun: bool = False
    stuck: bool = False
    best: Best = field(default_factory=Best)
    work: NewtonWork = field(default_factory=NewtonWork, repr=False)

    @property
    def rule(self) -> str:
        """The end of one-class machines whose optimum is zero, where no relative gap falls."""
        return NOTHING_TO_FIND


def advance(task: Task, state: NewtonState, target: float) -> None:
    """Evaluate the next point, and choose the one after it."""
    place = task.place
    work = state.work
    if min(state.best.relative_gap, state.estimate) < NARROW_GAP and place.widen():
        # Sums of float32 rows end here, and nothing that rests on them may stay.
        work.known = None
        begin_again(state)
    is_given = not state.begun and bool(state.w.any())
    if not state.begun:
        begin(task, state)
    point = evaluate(task, state.w, state.centre, state.q, work.known)
    if is_given and not task.machine.kinked and not point.primal < objective_at_zero(task):
        # Far out, a loss may have no curvature to use: the run begins at zero instead.
        state.w = np.zeros_like(state.w)
        point = evaluate(task, state.w, state.centre, state.q)
    work.known = None
    work.last = point
    choose_next(task, state, point, target)


def choose_next(task: Task, state: NewtonState, point: Found, target: float) -> None:
    """Judge the point that a pass has evaluated, and choose the one that the next pass evaluates."""
    if needs_step(task, state, point, target):
        take_step(task, state, point, point.primal - point.dual)


def needs_step(task: Task, state: NewtonState, point: Found, target: float) -> bool:
    """Judge the point that a pass has evaluated; return True if a step from it is due."""
    place = task.place
    work = state.work
    judge(task, state, point, target)
    if (state.estimate <= target or state.stuck) and place.widen():
        # What float32 sums say, or hide, is confirmed in double precision at the best point.
        state.w = state.best.w
        begin_again(state)
        return False
    if state.estimate <= target:
        return False
    if state.stuck:
        # Rounding may hide what steps at this centre gain, and not what its next move does.
        if state.q > 0.0 and state.inner > 0 and state.hidden < MOST_HIDDEN and np.isfinite(point.F):
            state.stuck = False
            state.vain = 0
            move_centre(state, point)
            state.hidden += 1
        return False
    base = work.base
    if base is not None:
        # The pass has evaluated the end of a step: the search goes back where it lies too far.
        D = point.W - base.W
        better = 0.0 if point.line is None else find_better(base.F, point.F, point.line)
        if better > 0.0:
            state.w = base.W + better * D
            work.base = None
            return False
        first = float(np.vdot(base.gradient, D))
        last = float(np.vdot(point.gradient, D))
        is_higher = base.F + RISE * abs(base.F) < point.F
        is_far = last > 0.0 and (last > TOO_STEEP * abs(first) or is_higher)
        if isinstance(work.equations, MemoryEquations) and (state.q > 0.0 or place.is_sparse):
            # Rows leave the curvature along a step, so that it may be too short as well. Where the next direction is
            # dear, as on sparse rows, an exact search is worth its multipliers.
            is_far = abs(last) > EXACT * abs(first)
        if is_far:
            go_back(task, state, base, point, first, last)
            return False
    apart = point.primal - point.dual
    if state.q > 0.0 and apart - point.left <= CLOSE * point.left:
        move_centre(state, point)
        state.hidden = 0
        return False
    return True


def move_centre(state: NewtonState, point: Found) -> None:
    """Move the centre to the multipliers at a point, and shrink the proximity."""
    work = state.work
    state.centre = point.A
    is_plain = work.equations is not None and work.equations.way == PRODUCTS
    growth = SLOW_GROWTH if is_plain else GROWTH
    state.q /= next(factor for steps, factor in growth if state.inner <= steps)
    state.inner = 0
    state.least = np.inf
    work.known = point
    work.base = None


def begin_again(state: NewtonState) -> None:
    """Forget what rests on float32 sums."""
    state.stuck = False
    state.vain = 0
    state.least = np.inf
    state.best.primal = np.inf
    state.best.dual = -np.inf
    state.estimate = np.inf
    state.work.base = None


def take_step(task: Task, state: NewtonState, point: Found, apart: float) -> None:
    """Go along the solution of Newton's equations at a point, whose gap is `apart`."""
    work = state.work
    # A factor serves again, corrected by the last step, while the gap falls; a coarse one has then done its work.
    equations = work.equations if task.keeps_factor and state.q == 0.0 else None
    if equations is not None and not equations.serves:
        equations = None
    is_slow = apart > SLOW * state.apart
    if equations is not None and work.base is not None:
        equations.learn(point.W - work.base.W, point.gradient - work.base.gradient)
    if is_slow and work.served:
        state.fineness *= 2.0
    work.served = equations is not None and not is_slow
    if point.curvature is not None:
        # Where a pass is dear, it has told the curvature already. What the last steps told corrects that of a share.
        secants = [] if equations is None else equations.secants
        work.served = not is_slow or equations is None
        if equations is None or point.curvature.is_new:
            equations = make_equations(task, point, state)
            if not point.curvature.is_whole:
                equations.secants = secants
        state.active = point.curvature.bent
    elif equations is None or not work.served:
        equations = make_equations(task, point, state)
        state.active = equations.bent
        if needs_proximity(task, state):
            # So few rows bend that they change from step to step: a proximal term keeps them together.
            state.q = SMALL * coordinate_curvature_of(task)
            state.remark = f"a proximal term, since {equations.bent} rows bend"
            if work.highest is not None:
                state.centre = work.highest.A
            elif not state.centre.size:
                state.centre = np.zeros(task.place.n)
            work.equations = equations
            work.known = point
            work.base = None
            return
    work.equations = equations
    work.base = point
    state.apart = apart
    state.w = point.W + equations.direction(point.gradient)
    if not np.isfinite(state.w).all():
        # No row bends, so far out: another method has to go on.
        state.w = state.best.w
        state.stuck = True
    state.inner += 1
    state.steps += 1
    solved = f", solved by {equations.way}" if equations.way else ""
    state.remark = f"Newton step {state.steps}: {state.active} rows bend{solved}"


def make_equations(task: Task, point: Found, state: NewtonState) -> Equations:
    """Newton's equations at a point."""
    if isinstance(task.machine, Softmax):
        return ClassEquations(task, point, state.centre, state.q, state.fineness)
    if point.curvature is not None:
        return ToldEquations(task, point.curvature)
    former = state.work.equations
    equations = former if isinstance(former, MemoryEquations) else MemoryEquations(task)
    equations.renew(point, state.centre, state.q, state.fineness)
    return equations


def needs_proximity(task: Task, state: NewtonState) -> bool:
    """Return True if a loss with corners in its derivative asks for a proximal term, and has none."""
    is_free = state.q == 0.0 and task.machine.cornered and task.norms.size > 0
    return is_free and state.active < SPANNING * task.place.d


def begin(task: Task, state: NewtonState) -> None:
    """Begin at the solution of a share of the rows, and smooth a loss with kinks, where no point is given."""
    state.begun = True
    place = task.place
    unknowns = state.w.size
    every = min(SMALLER, place.n // (AT_START * unknowns))
    given = bool(state.w.any())
    if every >= 3 and place.n * place.d > IN_CACHE and not given:
        few = task.take(every)
        state.w, passes = solve_roughly(few, state.w)
        state.rows_touched += passes * few.place.n
    machine = task.machine
    if isinstance(machine, Binary) and machine.kinked:
        Z = score_all(place, state.w)
        paid = machine.respond(slice(0, place.n), Z, Z, 0.0)[1].paid
        half = 0.5 * float(np.vdot(state.w, task.ridge * state.w)) + float(np.sum(task.linear * state.w))
        is_worse = not primal_of(task.C, paid, half) < objective_at_zero(task)
        if given and is_worse and not task.is_one_class:
            state.w = np.zeros_like(state.w)
            state.centre = nothing()
            Z[:] = 0.0
        smooth(task, machine, state, Z)


def smooth(task: Task, machine: Binary, state: NewtonState, Z: np.ndarray) -> None:
    """Choose the first proximity of a loss with kinks, by the scores at the first point."""
    if not state.centre.size:
        # As many rows bend as tell the curvature of all features.
        share_of_rows = min(1.0, max(0.1, 10.0 * task.place.d / task.place.n))
        state.centre, state.q = machine.first_proximity(Z, share_of_rows)
    elif task.is_one_class:
        # The size of the scores of a one-class machine goes with C, and says how large a proximity is.
        state.q = FIRST_PROXIMITY * float(np.median(np.abs(Z))) or task.C
    else:
        # From multipliers that are nearly right: as large as the curvature of a coordinate step.
        state.q = coordinate_curvature_of(task)


def coordinate_curvature_of(task: Task) -> float:
    """The median of C ||x_i||^2 over the rows that are not zero."""
    norms = task.norms[task.norms > 0.0]
    return task.C * float(np.median(norms)) if norms.size else task.C


def evenly(problem: Problem) -> Point:
    """The first point of a one-class machine, whose multipliers have a given sum.

    They go the same share of the way to their bounds: w is then the mean of the rows, times the sum. The objective is
    ``R(w)`` plus a term of the first degree in w and the intercept: multiply C by a number, and the solution is
    multiplied by it.
    """
    alpha = problem.balanced(np.zeros(problem.y.size))
    w = dual_weights(problem, alpha)
    w[-1] = 0.0
    offset = problem.intercept.best(problem.pointwise, problem.members, margins(problem, w), 0.0)
    w[-1] = offset / problem.scale
    return Point(w, alpha)


def is_left_to_descent(problem: Problem) -> bool:
    """Return True if a run begins after some descent."""
    if problem.fixed.size:
        return False
    rows = problem.members.size
    if problem.in_arrays:
        # Array code begins at zero, unless rows are so few that they may be separable: multipliers
        # then lie far below C, and no proximal term fits them from the start.
        return not is_cornerless(problem.loss) and rows < FEW_ROWS * problem.n_features
    # A smooth loss over many rows a feature begins at the solution of a share of the rows instead.
    return not (is_smooth(problem.loss) and has_share(problem))


def has_share(problem: Problem) -> bool:
    """Return True if there are so many rows a feature that a share of them is worth a first solution."""
    return problem.members.size >= 3 * AT_START * (problem.n_features + 1)


def after_descent(problem: Problem, seed: int, epochs: int) -> tuple[Point, int]:
    """The point after some epochs of dual coordinate descent, and the rows that it visited."""
    solver = DCD()
    rows = epochs * problem.members.size
    state = solver.init(problem, seed)
    while state.rows_touched < rows and state.estimate > 0.0:
        state = solver.step(problem, state, Budget(rows - state.rows_touched))
    return Point(state.w.astype(np.float64), state.alpha), state.rows_touched


def solve_roughly(task: Task, w: np.ndarray) -> tuple[np.ndarray, int]:
    """Solve the task of a share of the rows as far as it pays; return weights, and passes over the share."""
    state = NewtonState(w=w)
    falls = True
    passes = 0
    while falls and passes < MOST_OF_SHARE and state.estimate > SHARE_GAP:
        before = state.best.primal
        advance(task, state, SHARE_GAP)
        passes += 1
        falls = state.best.primal < (1.0 - LEAST_FALL) * before
    return state.best.w, passes


def judge(task: Task, state: NewtonState, point: Found, target: float) -> None:
    """Keep a point where it is the best so far, and estimate the gap."""
    best = state.best
    A = point.A
    dual = point.dual
    estimate = np.inf
    if task.confirm is not None:
        estimate = relative(point.primal - dual, point.primal, dual)
        if estimate <= target:
            # Only now is it worth a pass to give the multipliers the sum that is asked for.
            A, dual = task.confirm(point)
            estimate = np.inf
        else:
            dual = -np.inf
    is_lower = point.primal < best.primal
    is_higher = dual > best.dual
    state.vain = 0 if is_lower or is_higher else state.vain + 1
    if state.least - ROUNDED * abs(point.F) > point.F:
        # Newton's method makes progress at this centre, whatever the two objectives do.
        state.least = point.F
        state.vain = 0
    if task.machine.columns and not task.machine.kinked:
        # No multipliers are handed out: one point has to bring both bounds.
        gap = point.primal - dual
        least = best.primal - best.dual
        is_lower = gap < least or (gap == least == np.inf and is_lower)
        is_higher = is_lower
    if is_lower:
        best.primal = point.primal
        best.w = point.W
        state.work.lowest = point
    if is_higher:
        best.dual = dual
        best.alpha = A
        state.work.highest = point
    state.estimate = best.relative_gap if estimate == np.inf else estimate
    if task.is_nothing(point):
        state.satisfied = True
    state.stuck = state.vain >= task.patience or not np.isfinite(point.F)


def go_back(task: Task, state: NewtonState, base: Found, end: Found, first: float, last: float) -> None:
    """Search along a step that went too far; the next pass visits only rows whose multipliers change."""
    D = end.W - base.W
    if not task.keeps_scores:
        # Without scores a cubic tells where to look next, from the same beginning; the next pass evaluates all rows.
        state.w = base.W + find_lowest(base.F, end.F, first, last) * D
        return
    dZ = end.Z - base.Z
    ridge = task.ridge.reshape(-1, *(1,) * len(task.machine.columns))
    every = slice(0, task.place.n)

    def slope_at(share: float) -> float:
        W = base.W + share * D
        A = task.machine.multipliers(every, base.Z + share * dZ, state.centre, state.q)
        return float(np.vdot(ridge * W + task.linear, D) - task.C * np.vdot(A, dZ))

    share = find_least(slope_at, first, last)
    state.w = base.W + share * D
    state.work.known = replace(end, Z=base.Z + share * dZ)
    state.work.base = None


@dataclass(frozen=True)
class Newton(SolverBase):
    """Newton's method in array code."""

    name: ClassVar[str] = "newton"
    warm_up: int = 10
    memory: float = 1e9

    def __post_init__(self) -> None:
        if self.warm_up < 0:
            raise ValueError(f"warm_up must be at least 0; got {self.warm_up!r}")
        if not self.memory > 0.0:
            raise ValueError(f"memory must be positive; got {self.memory!r}")

    def needs_rows(self, problem: Problem) -> bool:
        """Return False: where only passes over all rows are to be had, a run does with them."""
        return False

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> NewtonState:
        """Begin at the given point; else at zero, or, for a loss with kinks over sparse rows, after some descent."""
        if is_device(problem) and not suits(problem):
            refuse_device(problem.place)
        touched = 0
        if start is None and not problem.intercept.homogeneous:
            start = evenly(problem)
        elif start is None and self.warm_up and problem.holds_rows and is_left_to_descent(problem):
            start, touched = after_descent(problem, seed, self.warm_up)
        alpha = start_alpha(problem, start)
        w = np.zeros(problem.n_features + 1)
        if start is not None and start.w is not None:
            w = np.array(start.w, dtype=np.float64)
        elif alpha.any():
            w = dual_weights(problem, alpha)
        state = NewtonState(w=w, active=problem.members.size, rows_touched=touched)
        state.best.w = w
        state.best.alpha = alpha
        if alpha.any():
            state.centre = problem.gathered(alpha).copy()
            # The given multipliers may be better than those of the margins at the given weights.
            state.best.alpha = problem.balanced(alpha)
            state.best.dual = dual_at(problem, state.best.alpha)
        elif problem.intercept.homogeneous and not problem.fixed.size:
            state.best.dual = 0.0  # phi*(0) = -min phi = 0 for each loss
        return state

    def step(self, problem: Problem, state: NewtonState, budget: Budget) -> NewtonState:
        """Make passes over the rows, at least one and about ``budget.rows`` row visits."""
        n = problem.members.size
        until = state.rows_touched + max(1, budget.rows)
        task = self._task(problem, state)
        with blas_for(0.0), np.errstate(all="ignore"):
            while True:
                advance(task, state, budget.relative_gap)
                state.rows_touched += n
                is_late = time_is_up()
                is_done = state.stuck or state.estimate <= budget.relative_gap
                if is_done or is_late or state.rows_touched >= until:
                    break
        state.epochs = state.rows_touched / n
        if isinstance(task.machine, Binary):
            state.best.alpha = problem.spread(state.best.alpha)  # other solvers go on from it
        return state

    def best_from(self, problem: Problem, start: Point, gap: float, share: float) -> Best:
        """The best points of a run from a start, as part of another method.

        Parameters
        ----------
        problem : Problem
        start : Point
        gap, share : float
            The gap at which to end, in the C form, and relative to the objective. A gap will do, too, that is small
            beside the fall of the objective so far.
        """
        state = self.init(problem, 0, start)
        task = self._task(problem, state)
        begun = np.inf
        with blas_for(0.0), np.errstate(all="ignore"):
            while state.steps < MOST_STEPS and not (state.stuck or time_is_up()):
                advance(task, state, share)
                primal = state.best.primal
                if begun == np.inf:
                    begun = primal
                enough = max(gap, share * abs(primal), LEFT_OF_FALL * (begun - primal))
                if primal - state.best.dual <= enough:
                    break
        state.best.alpha = problem.spread(state.best.alpha)
        return state.best

    def _task(self, problem: Problem, state: NewtonState) -> Task:
        """The task of a problem, made once a run."""
        if state.work.task is None:
            state.work.task = make_task(problem, self.memory)
        return state.work.task

    def solution(self, problem: Problem, state: NewtonState) -> Point:
        """The best points so far, with their certificate if one pass has found both."""
        lowest = state.work.lowest
        alpha = problem.spread(state.best.alpha)
        if lowest is not None and problem.intercept.constrained and lowest.dual > state.best.dual:
            # Multipliers whose sum was not worth a pass yet: the certificate gives them the one asked for.
            alpha = problem.spread(lowest.A)
        if not problem.intercept.homogeneous:
            return Point(None, alpha)  # told by its dual variables: the certificate is that of their weights
        if lowest is None or lowest is not state.work.highest or not lowest.is_fresh:
            return Point(state.best.w, alpha)
        if problem.intercept.constrained:
            return Point(state.best.w, alpha)  # the best free intercept is found anew, and multipliers balanced
        at = Margins(problem, lowest.W, z=lowest.Z)
        return Point(lowest.W, alpha, proven=certified(at, alpha, problem.C * lowest.pulled))

    def last_point(self, problem: Problem, state: NewtonState) -> Point:
        """The point of the last pass; its multipliers alone where their sum is not zero."""
        last = state.work.last
        if last is None or not last.A.size or last.A.ndim > 1:
            return self.solution(problem, state)
        alpha = problem.spread(last.A)
        return Point(last.W if problem.intercept.homogeneous else None, alpha)


def make_task(problem: Problem, memory: float = 1e9) -> Task:
    """The task of a problem."""
    place = place_of(problem)
    ridge = np.ones(place.d + 1)
    machine = (CompiledBinary if is_compiled(problem) else Binary).of(problem)
    task = Task(place, machine, ridge, problem.C, is_smooth(problem.loss))
    if problem.intercept.constrained:
        ridge[-1] = 0.0

        def balance(point: Found) -> tuple[np.ndarray, float]:
            # Rounding may take a multiplier at its bound beyond, where its conjugate is infinite.
            A = machine.bring_inside(problem.gathered(problem.balanced(problem.spread(point.A))))
            pulled = point.pulled + pull_of_change(place, A - point.A)
            features = problem.C * pulled[:-1]
            reached = 0.5 * float(np.vdot(features, features))
            return A, dual_of(problem.C, machine.conjugates(A), reached)

        task.confirm = balance
    task.norms = problem.gathered(problem.norms)
    # Factors are made of single rows, products of passes.
    task.most_side = largest_side(memory) if problem.holds_rows else 0
    if problem.fixed.size or not problem.intercept.homogeneous:
        task.linear = -problem.fixed if problem.fixed.size else np.zeros(place.d + 1)
        task.linear[-1] += problem.C * problem.intercept.asked
    return task


def dual_at(problem: Problem, alpha: np.ndarray) -> float:
    """The dual objective of multipliers whose sum is the one asked for."""
    reached = problem.regularizer.conjugate(dual_weights(problem, alpha))
    return dual_of(problem.C, conjugate_sum(problem.pointwise, problem.members, alpha, 1.0), reached)


def is_compiled(problem: Problem) -> bool:
    """Return True if compiled loops answer the scores: where rows are many, or the loss takes numbers only."""
    if problem.in_arrays:
        return not is_smooth(problem.loss) and methods_of(problem.loss).dual_step is None
    return not is_device(problem)


def suits(problem: Problem) -> bool:
    """Whether the method takes a problem: half a square, one score a row, a loss with methods on arrays."""
    if type(problem) is not Problem or not problem.in_arrays or not (problem.holds_rows or is_device(problem)):
        return False
    if not (problem.penalty.identity() and problem.intercept.homogeneous) or problem.fixed.size:
        return False
    loss = problem.loss
    if not has_array_methods(loss):
        return False
    return is_smooth(loss) or (has_bounded_slopes(loss) and methods_of(loss).dual_step is not None)


def is_device(problem: Problem) -> bool:
    """Whether the rows are on a device."""
    return problem.place is not None and problem.place.in_arrays


def place_of(problem: Any) -> Memory:
    """The rows of a problem as blocks."""
    if is_device(problem):
        place: Memory = problem.passes.blocks_of()
        return place
    if not problem.holds_rows:
        return Elsewhere(problem.passes)
    return Memory(problem.X, problem.members)
