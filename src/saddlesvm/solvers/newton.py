"""Newton's method on the primal, within the proximal point method if the loss has kinks.

It minimises

    F(W) = 1/2 W'RW + C sum_i e_i(x_i . W)

in array code over blocks of rows. Here e_i is the loss itself if it is smooth; otherwise the loss
smoothed with a centre and a proximity q (:mod:`saddlesvm.solvers.machines`). A pass over the rows
evaluates one point: scores, dual variables and their pull ``V = C sum_i a_i x_i``; so the gradient
``RW - V`` and, as the dual variables are feasible, a gap:

    P(W) - D(A) = 1/2 ||W - V||^2 + C sum_i [s_i phi_i(z_i) + s_i phi_i*(-a_i / s_i) + a_i z_i].

Newton's steps bring the first term to zero. The second is zero for a smooth loss; for one with
kinks, the centre moves to the dual variables and q shrinks when the first term is small beside it
(Rockafellar 1976).

A step is a direction and a search along it (:mod:`saddlesvm.solvers.search`): scores are linear
along the line, so that slopes need the scores of its two ends, and no row. Then the rows are
visited whose dual variables have changed. If no scores are kept, a pass evaluates the end of the
step, and the next one a place before it if the objective rises there.

Large problems begin at the solution of a share of the rows. The last step of a smooth loss without
corners may end with the dual variables that its equations predict (:func:`proves_target`).

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large
scale linear SVMs"; Rockafellar (1976), "Augmented Lagrangians and applications of the proximal
point algorithm in convex programming".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Point, evaluate_responses, relative
from saddlesvm.problem.loss import (
    has_array_methods,
    has_bounded_slopes,
    is_smooth,
    methods_of,
)
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.responses import Margins
from saddlesvm.problem.sums import conjugate_sum, dual_weights
from saddlesvm.rows.device import refuse_device
from saddlesvm.rows.places import FLOAT64, IN_CACHE, Memory, RowsByPasses
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.threads import blas_for, worthwhile
from saddlesvm.solvers.base import Best, Budget, SolverBase, State, empty_array, start_alpha
from saddlesvm.solvers.class_equations import ClassEquations
from saddlesvm.solvers.costs import values_cost
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.equations import Equations, MatrixEquations
from saddlesvm.solvers.machines import Binary, ResponseSums, SoftmaxMachine, make_machine
from saddlesvm.solvers.memory_equations import MemoryEquations, largest_side
from saddlesvm.solvers.search import find_better, find_least, find_lowest
from saddlesvm.solvers.task import (
    EvaluatedPoint,
    Task,
    add_up,
    evaluate,
    evaluate_response,
    few_rows,
    objective_at_zero,
    pull_of,
    respond_all,
    score_all,
)

# Sums of float32 rows serve down to this relative gap; measured: their error is 1e-6.
FLOAT32_GAP = 3e-5

# A run on many rows begins on a share of them: one row in `stride`.
SHARE_ROWS = 15  # least rows of the share for each unknown; guessed
LEAST_STRIDE = 3  # a larger share is no share, but all rows; guessed
MOST_STRIDE = 16  # guessed
# The share is left at this relative gap; guessed. Or if a pass lowers the objective by less than
# this part of it; measured, 30,000 x 50 to 100,000 x 20.
SHARE_GAP = 1e-3
LEAST_FALL = 0.02
MOST_OF_SHARE = 30  # passes over the share at most; guessed
# Of sparse rows and a loss with corners, a second share of so many times the rows follows: the
# first may hardly have a row with a rare feature. Measured on a9a, squared hinge, C = 0.1 to 1000:
# two shares take .9 of one in the mean, .75 at C >= 10. On dense rows they take 1 to 1.2.
NEXT_SHARE = 4

# A step that leaves more than this share of the gap is slow: its equations do not serve again, or
# the next ones are made of more rows; guessed.
SLOW = 0.3
# The same for one score a row in memory, where new equations take little longer than a pass;
# measured on a9a, logistic: between 0.01 and 0.1 makes no difference.
SLOW_IN_MEMORY = 0.1
# The same for equations that take no product with the rows; measured, 10,000 x 256 in 100 classes.
SLOW_AND_ROUGH = 0.7

# The proximal point method: the centre moves if the first term of the gap is at most CLOSE times
# the second, and q is divided by GROWTH. CLOSE is guessed. GROWTH is measured: 3 after few steps
# and 1.5 after many take as long on nine data sets.
CLOSE = 0.3
GROWTH = 2.0
# Fall of the dual objective, relative to it, that rounding of float32 sums explains; guessed.
DUAL_ROUNDING = 1e-6
# Moves of the centre in a row while rounding hides what steps gain; guessed.
MOST_HIDDEN = 3
# First share of the rows that bend for a loss with kinks: at least this, and at least so many rows
# a feature; guessed.
FIRST_BENDING = 0.1
FIRST_BENDING_ROWS = 10.0
# A loss with corners takes a proximal term if fewer rows bend for each feature than this: they do
# not span the features; guessed.
SPANNING = 0.8
CORNER_PROXIMITY = 0.01  # its q, in units of the median C ||x_i||^2; guessed

# Rise of F along a step, and fall of F at one centre, that rounding may explain, relative to F;
# guessed.
F_RISE = 1e-10
F_FALL = 1e-13

# The search goes back if the slope at the end of a step is more than this share of the first slope;
# guessed.
TOO_STEEP = 0.5
SLOPE_ROUNDING = 4.0  # roundings of each score that a slope may have; guessed
EXACT = 0.1  # the same for either sign, if a search takes no pass; guessed

# Rows a feature below which descent comes before the first step of array code; guessed.
FEW_ROWS = 20

# A run as part of another method (:meth:`Newton.best_from`): its steps at most, and the gap at
# which it may end, relative to the fall of the objective so far; guessed.
MOST_STEPS = 400
GAP_OF_FALL = 0.03


@dataclass
class NewtonState(State):
    """The state of a run. One epoch is one pass over the rows.

    Attributes
    ----------
    w : ndarray
        The weights that the next pass evaluates.
    centre : ndarray of shape (n,)
        Of the proximal term; empty for smooth losses.
    centre_dual : float
        The dual objective at the centre, if it is known.
    q : float
        Proximity; 0 for smooth losses, and until the first pass.
    fineness : float
        The curvature is made of so many times more rows than at first.
    gap_before : float
        The gap of the point that the last step began at.
    steps : int
        Newton steps so far.
    idle_passes : int
        Passes in a row that improved no objective.
    hidden : int
        Moves of the centre in a row at which rounding hid what steps gain.
    lowest_smoothed : float
        The lowest smoothed objective F at this centre so far.
    has_begun, stuck : bool
        Whether a pass was made; whether rounding leaves nothing to gain.
    best : Best
        The best points so far.
    task : Task, optional
    step_start : EvaluatedPoint, optional
        The point that the present step began at; None if the next pass ends no step.
    precomputed : EvaluatedPoint, optional
        The point at the same weights, if the next pass evaluates them with another proximal term.
    last, lowest, highest : EvaluatedPoint, optional
        The point of the last pass, and those with the best objectives.
    equations : Equations, optional
        Newton's equations, as the last steps used them.
    keeps_equations : bool
        True if the last step did well with equations of an earlier point.
    """

    estimate_is_gap: bool = True
    centre: np.ndarray = field(default_factory=lambda: np.empty(0))
    centre_dual: float = -np.inf
    q: float = 0.0
    fineness: float = 1.0
    gap_before: float = np.inf
    steps: int = 0
    idle_passes: int = 0
    hidden: int = 0
    lowest_smoothed: float = np.inf
    has_begun: bool = False
    stuck: bool = False
    best: Best = field(default_factory=Best)
    task: Task | None = field(default=None, repr=False)
    step_start: EvaluatedPoint | None = field(default=None, repr=False)
    precomputed: EvaluatedPoint | None = field(default=None, repr=False)
    last: EvaluatedPoint | None = field(default=None, repr=False)
    lowest: EvaluatedPoint | None = field(default=None, repr=False)
    highest: EvaluatedPoint | None = field(default=None, repr=False)
    equations: Equations | None = field(default=None, repr=False)
    keeps_equations: bool = False

    @property
    def handover(self) -> Best:
        """The best point so far, not the last one."""
        return self.best

    @property
    def is_stuck(self) -> bool:
        """Return True if passes only evaluate the last point again."""
        return self.stuck


def advance(task: Task, state: NewtonState, target: float) -> None:
    """Evaluate the next point, and choose the one after it."""
    place = task.place
    if state.estimate < FLOAT32_GAP and place.widen():
        # Sums of float32 rows end here, and nothing that rests on them may stay.
        state.precomputed = None
        begin_again(state)
    is_given = not state.has_begun and bool(state.w.any())
    if not state.has_begun:
        begin(task, state)
    if state.step_start is not None and task.keeps_scores:
        end = finish_step(task, state, state.step_start, target)
        if end is None:
            return
        point = end
    elif state.precomputed is not None:
        # F has changed, but not the weights: their scores serve again.
        former = state.precomputed
        point = evaluate(task, state.w, state.centre, state.q, former, former.Z)
    else:
        point = evaluate(task, state.w, state.centre, state.q)
    if is_given and not task.machine.kinked and not point.primal < objective_at_zero(task):
        # Far out, a loss may have no curvature to use: the run begins at zero instead.
        state.w = np.zeros_like(state.w)
        point = evaluate(task, state.w, state.centre, state.q)
    state.precomputed = None
    state.last = point
    choose_next(task, state, point, target)


def choose_next(task: Task, state: NewtonState, point: EvaluatedPoint, target: float) -> None:
    """Judge the point that a pass has evaluated, and choose the point of the next pass."""
    if settle_point(task, state, point, target):
        take_step(task, state, point, point.primal - point.dual)


def settle_point(task: Task, state: NewtonState, point: EvaluatedPoint, target: float) -> bool:
    """Judge the point of a pass, and choose the next one; return True if a step must choose it."""
    place = task.place
    judge(task, state, point, target)

    # 1. The end of the run: sums in float32 are confirmed in double precision, at the best point.
    is_at_end = state.estimate <= target or state.stuck
    if is_at_end and place.widen():
        state.w = state.best.w
        begin_again(state)
        return False
    if state.estimate <= target:
        return False
    if state.stuck:
        # Rounding may hide what steps gain at this centre, but not what its next move gains.
        if state.q > 0.0 and state.hidden < MOST_HIDDEN and np.isfinite(point.F):
            state.stuck = False
            state.idle_passes = 0
            move_centre(state, point)
            state.hidden += 1
        return False

    # 2. Without scores, the search for a better place on the line of a step takes another pass.
    start = state.step_start
    if start is not None and not task.keeps_scores:
        D = point.W - start.W
        better_t = 0.0
        if point.line is not None:
            # The pass has computed F at places of the line, too: take the lowest.
            better_t = find_better(start.F, point.F, point.line)
        if better_t > 0.0:
            state.w = start.W + better_t * D
            state.step_start = None
            return False
        # Directional derivatives of F at the start and the end of the step.
        first_slope = float(np.vdot(start.gradient, D))
        last_slope = float(np.vdot(point.gradient, D))
        is_higher = start.F + F_RISE * abs(start.F) < point.F
        if last_slope > 0.0 and (last_slope > TOO_STEEP * abs(first_slope) or is_higher):
            # The minimum of a cubic through both ends is the next end of the same step.
            t = find_lowest(start.F, point.F, first_slope, last_slope)
            state.w = start.W + t * D
            return False

    # 3. The proximal point method: the first term of the gap, gap - fenchel_gap, is small enough.
    if state.q > 0.0 and is_solved(task, state, point):
        move_centre(state, point)
        state.hidden = 0
        return False
    return True


def is_solved(task: Task, state: NewtonState, point: EvaluatedPoint) -> bool:
    """Return True if a point solves the problem at this centre well enough to move the centre."""
    gap = point.primal - point.dual
    is_close = gap - point.fenchel_gap <= CLOSE * point.fenchel_gap
    # Few rows may be separable. The dual objective is then so far below the second term that a
    # point may seem solved and still lower it, as no solution does.
    has_risen = point.dual >= state.centre_dual - DUAL_ROUNDING * abs(state.centre_dual)
    return is_close and (has_risen or task.place.n >= FEW_ROWS * task.place.d)


def move_centre(state: NewtonState, point: EvaluatedPoint) -> None:
    """Move the centre to the dual variables at a point, and shrink the proximity."""
    state.centre = point.A
    state.centre_dual = point.dual
    state.q /= GROWTH
    state.lowest_smoothed = np.inf
    state.precomputed = point
    state.step_start = None


def begin_again(state: NewtonState) -> None:
    """Forget what rests on float32 sums."""
    state.stuck = False
    state.idle_passes = 0
    state.lowest_smoothed = np.inf
    state.best.primal = np.inf
    state.best.dual = -np.inf
    state.estimate = np.inf
    state.step_start = None


def take_step(task: Task, state: NewtonState, point: EvaluatedPoint, gap: float) -> None:
    """Go along the solution of Newton's equations at a point, which has this gap."""
    start = state.step_start

    # 1. The equations of an earlier point serve again while the gap falls fast enough. The last
    # step s changed the gradient by y; with this pair they are corrected (L-BFGS).
    equations = None
    may_serve = task.keeps_factor and state.q == 0.0
    if may_serve and state.equations is not None and state.equations.serves:
        equations = state.equations
    least_share = SLOW
    if task.keeps_scores and not task.machine.columns:
        least_share = SLOW_IN_MEMORY
    elif equations is not None and equations.is_rough:
        least_share = SLOW_AND_ROUGH
    is_slow = gap > least_share * state.gap_before
    if equations is not None and start is not None:
        equations.learn(point.W - start.W, point.gradient - start.gradient)
    # If even corrected equations are slow, the next ones are made of twice as many rows.
    if is_slow and state.keeps_equations:
        state.fineness *= 2.0
    state.keeps_equations = equations is not None and not is_slow

    # 2. Otherwise new equations are made at this point.
    if point.curvature is not None:
        # If a pass is expensive, it has computed the curvature already. If it did so from a
        # share of the rows, the corrections of the last steps stay.
        secants = [] if equations is None else equations.secants
        state.keeps_equations = not is_slow or equations is None
        if equations is None or point.curvature.is_new:
            equations = make_equations(task, point, state)
            if not point.curvature.is_whole:
                equations.secants = secants
        state.active = point.curvature.bent
    elif equations is None or not state.keeps_equations:
        equations = make_equations(task, point, state)
        state.active = equations.bent
        if needs_proximity(task, state):
            add_proximity(task, state, point, equations)
            return

    # 3. The step: the next pass evaluates its end.
    state.equations = equations
    state.step_start = point
    state.gap_before = gap
    state.w = point.W + equations.direction(point.gradient)
    if not np.isfinite(state.w).all():
        # No row bends, so far out: another method has to go on.
        state.w = state.best.w
        state.step_start = None
        state.stuck = True
    state.steps += 1
    solved = ""
    if equations.way:
        solved = f", solved by {equations.way}"
    state.remark = f"Newton step {state.steps}: {state.active} rows bend{solved}"


def add_proximity(
    task: Task, state: NewtonState, point: EvaluatedPoint, equations: Equations
) -> None:
    """Give a loss with corners a proximal term: so few rows bend that they change at each step."""
    state.q = CORNER_PROXIMITY * coordinate_curvature_of(task)
    state.remark = f"a proximal term, since {equations.bent} rows bend"
    # The best dual variables so far are its centre.
    if state.highest is not None:
        state.centre = state.highest.A
    elif not state.centre.size:
        state.centre = np.zeros(task.place.n)
    state.equations = equations
    state.precomputed = point
    state.step_start = None


def make_equations(task: Task, point: EvaluatedPoint, state: NewtonState) -> Equations:
    """Return Newton's equations at a point."""
    if isinstance(task.machine, SoftmaxMachine):
        return ClassEquations(task, point, state.centre, state.q, state.fineness)
    if point.curvature is not None:
        return MatrixEquations(task, point.curvature)
    if task.curvature_at is not None:
        return MatrixEquations(task, task.curvature_at(task, point.W))
    former = state.equations
    equations = former if isinstance(former, MemoryEquations) else MemoryEquations(task)
    equations.renew(point, state.centre, state.q, state.fineness)
    return equations


def needs_proximity(task: Task, state: NewtonState) -> bool:
    """Return True if a loss with corners in its derivative needs a proximal term and has none."""
    may_take_one = task.machine.cornered and task.norms.size > 0
    return state.q == 0.0 and may_take_one and state.active < SPANNING * task.place.d


def begin(task: Task, state: NewtonState) -> None:
    """Begin at the solution of a share of the rows if no point is given, and smooth kinks."""
    state.has_begun = True
    place = task.place
    machine = task.machine

    # Many rows, and no point is given: a share of them, every stride-th, is solved first.
    stride = min(MOST_STRIDE, place.n // (SHARE_ROWS * state.w.size))
    is_given = bool(state.w.any())
    strides = [stride]
    if place.is_sparse and machine.cornered:
        strides.append(stride // NEXT_SHARE)
    begins_on_shares = place.n * place.d > IN_CACHE and not is_given
    for stride in strides:
        if stride >= LEAST_STRIDE and begins_on_shares:
            few = task.take_share(stride)
            state.w, passes = solve_roughly(few, state.w)
            state.rows_touched += passes * few.place.n

    if isinstance(machine, Binary) and machine.kinked:
        # A given point that is worse than zero is left. With q = 0 the centre does not count.
        Z = score_all(place, state.w)
        _, sums = machine.respond(slice(0, place.n), Z, Z, 0.0)
        half_square = 0.5 * float(np.vdot(state.w, task.ridge * state.w))
        linear = float(np.sum(task.linear * state.w))
        primal = primal_of(task.C, sums.losses, half_square + linear)
        is_worse = not primal < objective_at_zero(task)
        if is_given and is_worse:
            state.w = np.zeros_like(state.w)
            state.centre = empty_array()
            state.centre_dual = -np.inf
            Z[:] = 0.0
        smooth(task, machine, state, Z)


def smooth(task: Task, machine: Binary, state: NewtonState, Z: np.ndarray) -> None:
    """Choose the first proximity of a loss with kinks, by the scores at the first point."""
    if not state.centre.size:
        # Enough rows bend for the curvature of all features.
        spanning = FIRST_BENDING_ROWS * task.place.d / task.place.n
        share_of_rows = min(1.0, max(FIRST_BENDING, spanning))
        state.centre, state.q = machine.first_proximity(Z, share_of_rows)
    else:
        # From dual variables that are nearly right: as large as the curvature of a coordinate step.
        state.q = coordinate_curvature_of(task)


def coordinate_curvature_of(task: Task) -> float:
    """Return the median of C ||x_i||^2 over the rows that are not zero."""
    norms = task.norms[task.norms > 0.0]
    if not norms.size:
        return task.C
    return task.C * float(np.median(norms))


def needs_descent(problem: Problem) -> bool:
    """Return True if a run begins after some descent."""
    if problem.fixed.size:
        return False
    rows = problem.members.size
    if problem.in_arrays:
        # Array code begins at zero, unless the loss has corners and rows are so few that they may
        # be separable: dual variables then lie far below C, and no proximal term fits them at
        # first.
        return not problem.is_cornerless and rows < FEW_ROWS * problem.n_features
    # A smooth loss over many rows a feature begins at the solution of a share of the rows instead.
    return not (problem.is_smooth and has_share(problem))


def has_share(problem: Problem) -> bool:
    """Return True if the rows are so many that a run begins on a share of them."""
    return problem.members.size >= LEAST_STRIDE * SHARE_ROWS * (problem.n_features + 1)


def descend_first(problem: Problem, seed: int, epochs: int) -> tuple[Point, int]:
    """Return the point after epochs of dual coordinate descent, and the rows that it visited."""
    solver = DCD()
    rows = epochs * problem.members.size
    state = solver.init(problem, seed)
    while state.rows_touched < rows and state.estimate > 0.0:
        state = solver.step(problem, state, Budget(rows - state.rows_touched))
    return Point(state.w.astype(np.float64), state.alpha), state.rows_touched


def solve_roughly(task: Task, w: np.ndarray) -> tuple[np.ndarray, int]:
    """Solve the task of a share of the rows as far as it pays; return weights and passes."""
    state = NewtonState(w=w)
    falls = True
    passes = 0
    while falls and passes < MOST_OF_SHARE and state.estimate > SHARE_GAP:
        before = state.best.primal
        advance(task, state, SHARE_GAP)
        passes += 1
        falls = state.best.primal < (1.0 - LEAST_FALL) * before
    return state.best.w, passes


def judge(task: Task, state: NewtonState, point: EvaluatedPoint, target: float) -> None:
    """Keep a point if it is the best so far, and estimate the gap."""
    best = state.best
    A = point.A
    dual = point.dual

    # 1. With a free intercept the dual objective of a pass is an estimate. It becomes a bound only
    # if the dual variables get the required sum, which takes a pass: worth it near the target.
    estimate = np.inf
    if task.balance is not None:
        estimate = relative(point.primal - dual, point.primal, dual)
        if estimate <= target:
            A, dual = task.balance(point)
            estimate = np.inf
        else:
            dual = -np.inf

    # 2. Progress: a lower objective, a higher bound, or a lower F at this centre.
    is_lower = point.primal < best.primal
    is_higher = dual > best.dual
    state.idle_passes += 1
    if is_lower or is_higher:
        state.idle_passes = 0
    if state.lowest_smoothed - F_FALL * abs(point.F) > point.F:
        state.lowest_smoothed = point.F
        state.idle_passes = 0

    # 3. The best weights and the best dual variables, which may come from different passes.
    if task.machine.columns and not task.machine.kinked:
        # The softmax hands out no dual variables: one point has to bring both bounds.
        gap = point.primal - dual
        best_gap = best.primal - best.dual
        is_lower = gap < best_gap or (gap == best_gap == np.inf and is_lower)
        is_higher = is_lower
    if is_lower:
        best.primal = point.primal
        best.w = point.W
        state.lowest = point
    if is_higher:
        best.dual = dual
        best.alpha = A
        state.highest = point
    state.estimate = estimate
    if estimate == np.inf:
        state.estimate = best.relative_gap

    # 4. The end: only rounding left.
    state.stuck = state.idle_passes >= task.patience or not np.isfinite(point.F)


def proves_target(
    task: Task,
    state: NewtonState,
    start: EvaluatedPoint,
    Z: np.ndarray,
    losses: float,
    target: float,
) -> bool:
    """Return True if dual variables that change as the equations say prove the target.

    At the end of an exact step the pull of ``a_i - bend_i dz_i`` is R W: the first term of the gap
    is zero, and the second small. The slopes of the loss have such a gap a step later.
    """
    machine = task.machine
    equations = state.equations
    if not isinstance(machine, Binary) or machine.kinked or machine.cornered:
        return False
    if not isinstance(equations, MemoryEquations) or equations.secants or not equations.is_exact:
        return False

    # 1. It is worth a try near the optimum, where the gap is about the square of the fall.
    W = state.w
    primal = primal_of(task.C, losses, task.regularizer_at(W))
    fall = -float(np.vdot(start.gradient, W - start.W))
    if fall * fall > target * primal * primal:
        return False

    # 2. The gap if none of them had to be moved back to its bounds.
    A = machine.bring_inside(start.A - equations.bends * (Z - start.Z) / task.C)
    conjugates = machine.conjugates(A)
    dual = dual_of(task.C, conjugates, 0.5 * float(np.vdot(W, task.ridge * W)))
    if abs(relative(primal - dual, primal, dual)) > target:
        return False

    # 3. The gap itself, by a pass for their pull.
    fenchel_gap = task.C * (losses + conjugates + float(np.vdot(A, Z)))
    sums = ResponseSums(losses, losses, conjugates)
    point = add_up(task, W, Z, A, sums, fenchel_gap, pull_of(task.place, A), True)
    judge(task, state, point, target)
    if state.estimate > target:
        return False
    state.last = point
    return True


def finish_step(
    task: Task, state: NewtonState, start: EvaluatedPoint, target: float
) -> EvaluatedPoint | None:
    """Search along a step and evaluate the place that is found; None if its end was enough."""
    # 1. Scores are linear along the step, so that slopes of F need no pass over the rows:
    # F'(t) = (R W + linear) . D - C sum_i a_i(z_i) dz_i.
    W = state.w
    D = W - start.W
    is_fresh = task.place.kind == FLOAT64
    if is_fresh:
        Z = score_all(task.place, W)
    else:
        # The difference of two scores of float32 rows would have the rounding of both.
        Z = score_all(task.place, D)
        Z += start.Z
    ridge = task.ridge_of_weights

    def change(rows: slice) -> np.ndarray:
        # Of a few rows at a time: no array of all rows is made beside those of the two points.
        difference: np.ndarray = Z[rows] - start.Z[rows]
        return difference

    def slope_of(W: np.ndarray, pulls: float) -> float:
        return float(np.vdot(ridge * W + task.linear, D)) - task.C * pulls

    def slope_at(t: float) -> float:
        pulls = 0.0
        for rows in few_rows(task):
            dZ = change(rows)
            scores = start.Z[rows] + t * dZ
            A = task.machine.dual_variables(rows, scores, state.centre, state.q)
            pulls += float(np.vdot(A, dZ))
        return slope_of(start.W + t * D, pulls)

    # 2. The end of the step is good enough if F is nearly flat there.
    A, sums = respond_all(task, Z, state.centre, state.q)
    if is_fresh and proves_target(task, state, start, Z, sums.losses, target):
        return None
    first_slope = float(np.vdot(start.gradient, D))
    pulls = sum(float(np.vdot(A[rows], change(rows))) for rows in few_rows(task))
    last_slope = slope_of(W, pulls)
    is_far = abs(last_slope) > EXACT * abs(first_slope)
    if task.machine.columns:
        # With several scores a row, a search takes as long as products: it only goes back.
        is_far = last_slope > TOO_STEEP * abs(first_slope)
    if is_far:
        # So much of a slope may be rounding of the scores, or of their differences.
        sizes = 0.0
        for rows in few_rows(task):
            rounded = Z[rows] if is_fresh else change(rows)
            sizes += float(np.abs(A[rows] * rounded).sum())
        unit = float(np.finfo(task.place.kind).eps)
        is_far = first_slope < -SLOPE_ROUNDING * unit * task.C * sizes
    if is_far:
        t = find_least(slope_at, first_slope, last_slope)
        state.w = start.W + t * D
        # In place: memory holds few arrays of all rows.
        del A
        Z -= start.Z
        Z *= t
        Z += start.Z
        A, sums = respond_all(task, Z, state.centre, state.q)
        is_fresh = False

    # 3. The point there; dual variables that are as they were at the start have their pull.
    return evaluate_response(task, state.w, Z, A, sums, state.q, start, is_fresh)


@dataclass(frozen=True)
class Newton(SolverBase):
    """Newton's method on the primal, within the proximal point method if the loss has kinks.

    Estimators take it with ``solver="newton"``, and ``solver="auto"`` ends with it.

    Parameters
    ----------
    warm_up : int, default=10
        Passes of dual coordinate descent before the first step, on problems that need them.
    memory : float, default=1e9
        Bytes that factored matrices may take; beyond them, conjugate gradients find the steps.

    Raises
    ------
    ValueError
        `warm_up` is negative, or `memory` is not positive.

    Examples
    --------
    >>> from saddlesvm import LinearSVC, Newton
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(solver=Newton(warm_up=0), C=1.0, tol=1e-6).fit(notes.X, notes.y)
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "newton"
    warm_up: int = 10
    memory: float = 1e9

    def __post_init__(self) -> None:
        if self.warm_up < 0:
            raise ValueError(f"warm_up must be at least 0; got {self.warm_up!r}")
        if not self.memory > 0.0:
            raise ValueError(f"memory must be positive; got {self.memory!r}")

    def needs_rows(self, problem: Problem) -> bool:
        """Return False: passes over all rows are enough."""
        return False

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> NewtonState:
        """Begin at the given point; else at zero, or after some descent (see needs_descent)."""
        if is_device(problem) and not suits(problem):
            refuse_device(problem.place)
        # 1. The starting point.
        touched = 0
        if start is None and self.warm_up and problem.holds_rows and needs_descent(problem):
            start, touched = descend_first(problem, seed, self.warm_up)
        alpha = start_alpha(problem, start)
        w = np.zeros(problem.n_features + 1)
        if start is not None and start.w is not None:
            w = np.array(start.w, dtype=np.float64)
        elif alpha.any():
            w = dual_weights(problem, alpha)

        # 2. The best points so far: the weights, and the dual variables with their bound.
        state = NewtonState(w=w, active=problem.members.size, rows_touched=touched)
        state.best.w = w
        state.best.alpha = alpha
        if alpha.any():
            state.centre = problem.gather(alpha)
            # The given dual variables may be better than those of the margins at the given weights.
            state.best.alpha = problem.balance(alpha)
            state.best.dual = dual_at(problem, state.best.alpha)
            state.centre_dual = state.best.dual
        elif not problem.fixed.size:
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
        if isinstance(task.machine, Binary) and task.keeps_scores:
            state.best.alpha = problem.scatter(state.best.alpha)  # other solvers go on from it
        return state

    def best_from(self, problem: Problem, start: Point, gap: float, share: float) -> Best:
        """Return the best points of a run from a start, as part of another method.

        Parameters
        ----------
        problem : Problem
        start : Point
        gap, share : float
            The gap at which to end, in the C form, and relative to the objective. The run also
            ends when the gap is small beside the fall of the objective so far.
        """
        state = self.init(problem, 0, start)
        task = self._task(problem, state)
        first_primal = np.inf
        with blas_for(0.0), np.errstate(all="ignore"):
            while state.steps < MOST_STEPS and not (state.stuck or time_is_up()):
                advance(task, state, share)
                # Enough: the gap asked for, or little beside what the run has gained so far.
                primal = state.best.primal
                if first_primal == np.inf:
                    first_primal = primal
                enough = max(gap, share * abs(primal), GAP_OF_FALL * (first_primal - primal))
                if primal - state.best.dual <= enough:
                    break
        state.best.alpha = problem.scatter(state.best.alpha)
        return state.best

    def _task(self, problem: Problem, state: NewtonState) -> Task:
        """Return the task of a problem, made once a run."""
        if state.task is None:
            state.task = make_task(problem, self.memory)
        return state.task

    def solution(self, problem: Problem, state: NewtonState) -> Point:
        """Return the best points so far, with their certificate if one pass has found both."""
        lowest = state.lowest
        alpha = problem.scatter(state.best.alpha)
        is_constrained = problem.intercept.constrained
        if lowest is not None and is_constrained and lowest.dual > state.best.dual:
            # These dual variables may be better, but it was not worth a pass yet to give them the
            # required sum: the certificate does so.
            alpha = problem.scatter(lowest.A)
        if is_constrained:
            # The certificate finds the best free intercept and balances the dual variables.
            return Point(state.best.w, alpha)
        if lowest is None or lowest is not state.highest or not lowest.is_fresh:
            return Point(state.best.w, alpha)
        # One pass found the best weights and the best dual variables, and computed scores and pull
        # from the rows in double precision, with no updates since. These are the sums that the
        # certificate would compute by another pass; its bound on rounding holds for them.
        at = Margins(problem, lowest.W, z=lowest.Z)
        return Point(
            lowest.W, alpha, evaluation=evaluate_responses(at, alpha, problem.C * lowest.pulled)
        )

    def last_point(self, problem: Problem, state: NewtonState) -> Point:
        """Return the point of the last pass."""
        last = state.last
        if last is None or not last.A.size or last.A.ndim > 1:
            return self.solution(problem, state)
        return Point(last.W, problem.scatter(last.A))


def make_task(problem: Problem, memory: float = 1e9) -> Task:
    """Return the task of a problem; its factors take at most so many bytes."""
    place = place_of(problem)
    if not place.is_sparse and problem.holds_rows:
        place.threads = worthwhile(values_cost(problem), problem.threads)
    ridge = np.ones(place.d + 1)
    machine = make_machine(problem, problem.in_arrays)
    task = Task(place, machine, ridge, problem.C, problem.is_smooth)
    if problem.intercept.constrained:
        ridge[-1] = 0.0

        def balance(point: EvaluatedPoint) -> tuple[np.ndarray, float]:
            # Rounding may take a dual variable beyond its bound, where its conjugate is infinite.
            A = machine.bring_inside(problem.gather(problem.balance(problem.scatter(point.A))))
            pulled = point.pulled + pull_of(place, A - point.A)
            features = problem.C * pulled[:-1]
            conjugate = 0.5 * float(np.vdot(features, features))
            return A, dual_of(problem.C, machine.conjugates(A), conjugate)

        task.balance = balance
    task.norms = problem.gather(problem.norms)
    # Factors need single rows; conjugate gradients need only passes.
    task.most_side = 0
    if problem.holds_rows:
        task.most_side = largest_side(memory)
    # The linear term: rows that are left out.
    if problem.fixed.size:
        task.linear = -problem.fixed
    return task


def dual_at(problem: Problem, alpha: np.ndarray) -> float:
    """Return the dual objective of dual variables that have the required sum."""
    conjugate = problem.regularizer.conjugate(dual_weights(problem, alpha))
    conjugates = conjugate_sum(problem.pointwise, problem.members, alpha, 1.0)
    return dual_of(problem.C, conjugates, conjugate)


def suits(problem: Problem) -> bool:
    """Return True if the method takes a problem: half a square, and a loss with array methods."""
    # Rows in memory or on a device, two classes or targets.
    if type(problem) is not Problem or not problem.in_arrays:
        return False
    if not (problem.holds_rows or is_device(problem)):
        return False
    # Half a square, zero dual variables as a start, and no row left out.
    if not problem.is_plain or problem.fixed.size:
        return False
    # Smooth losses, and losses with kinks that can be smoothed.
    loss = problem.loss
    if not has_array_methods(loss):
        return False
    return is_smooth(loss) or (has_bounded_slopes(loss) and methods_of(loss).dual_step is not None)


def is_device(problem: Problem) -> bool:
    """Return True if the rows are on a device."""
    return problem.place is not None and problem.place.in_arrays


def place_of(problem: Any) -> Memory:
    """Return the rows of a problem as blocks."""
    if is_device(problem):
        place: Memory = problem.passes.blocks_of()
        return place
    if not problem.holds_rows:
        return RowsByPasses(problem.passes)
    return Memory(problem.X, problem.members)
