"""The second-order finish: Newton's method on the primal, and the proximal point method on the dual around it.

Each Newton step minimises a quadratic model of

    F(w) = 1/2 w'Rw + C sum_i e_i(x_i.w),     e_i(z) = max_a  -s_i phi_i*(-a/s_i) - a z - (q/2) (a - c_i)^2,

followed by an exact search along the line. F is the augmented Lagrangian of the dual problem with centre c and
penalty ``t = C / q``. Its gradient is ``Rw - w(a)`` with ``a`` the maximisers, which are dual feasible: every step
yields a certificate without further passes,

    gap(w, a) = 1/2 ||w - w(a)||^2 + C sum_i [s_i phi_i(z_i) + s_i phi_i*(-a_i/s_i) + a_i z_i],

whose first term Newton's method brings to zero, and whose second term the moves of the centre do. When the first is
small beside the second, the centre moves to a and q shrinks (Rockafellar 1976). A row enters the Hessian
``R + X_J' B_J X_J`` only where its multiplier lies strictly between its bounds; usually few rows do.

Smooth losses need no proximal term: with ``q = 0`` this is Newton's method itself. Where fewer rows bend than there
are features, those with corners in their derivative (the squared and smooth hinge, the squared epsilon-insensitive
loss) take a small one, which carries them through problems that are (nearly) separable. With a free intercept ``sum_i
a_i`` comes to zero with the gradient; the bound is that of the balanced multipliers.

Where there are many more rows than features, the solver first does a few steps on random samples of the rows, each
sample contained in the next. These steps cost next to nothing, and their solution is so close to that of all rows that
Newton's method has two or three steps left (Byrd, Chin, Nocedal and Wu 2012, "Sample size selection in optimization
methods for machine learning"). The factor of all rows begins as the factor of the samples.

Source: Li, Sun and Toh (2018), "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems", algorithms SSNAL and SSN; Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of
large scale linear SVMs", for the exact search; Rockafellar (1976), "Augmented Lagrangians and applications of the
proximal point algorithm in convex programming".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import is_cornerless, is_smooth
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.sums import conjugate_sum, dual_weights, loss_sums, margins
from saddlesvm.problem.terms import Pointwise
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.base import Best, Budget, SolverBase, State, nothing, start_alpha
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.second_order.driver import FORCING, LINE_TOLERANCE, Standing
from saddlesvm.solvers.second_order.equations import PLAIN, SPANNING, NewtonEquations
from saddlesvm.solvers.second_order.first_point import (
    NOTHING_TO_FIND,
    SMALL,
    coordinate_curvature,
    evenly,
    first_proximity,
    is_nothing,
    learns_from_steps,
    sample_of,
    sample_shares,
)  # fmt: skip
from saddlesvm.solvers.second_order.kernels import (
    Answers,
    Line,
    SmoothedTerms,
    answers_at,
    respond_to_weights,
    search,
    smoothed_terms,
)

GROWTH = ((0, 3.0), (3, 5.0), (8, 3.0), (20, 2.0))  # Newton steps at a centre, at most: divisor of q when it moves
SLOW_GROWTH = ((0, 1.5), (3, 2.0), (8, 1.5))  # the same while conjugate gradients alone solve the equations: each
# step is dear there, and gets dearer as q shrinks (sparse text, 200,000 x 50,000, C = 100: see docs/measurements)
CANCELLED = 1e-6  # relative change of the margins below which their difference is too coarse
MOST_STEPS, LEFT_OF_FALL = 400, 0.03  # of a run for another method: Newton steps; gap, relative to the fall so far
ROUGH_LINE, ROUGH_FALL = 0.5, 0.2  # LINE_TOLERANCE of steps that others correct; fall that ends the first sample's


class Response(NamedTuple):
    """Margins and multipliers of the rows at given weights.

    Attributes
    ----------
    z : ndarray of shape (n,)
        Margins of the members.
    alpha, bend : ndarray of shape (n_all,)
    sums : ndarray of shape (4,)
        As in :class:`~saddlesvm.solvers.second_order.kernels.Answers`.
    w : ndarray of shape (d + 1,)
        ``w(alpha)``.
    """

    z: np.ndarray
    alpha: np.ndarray
    bend: np.ndarray
    sums: np.ndarray
    w: np.ndarray


@dataclass
class NewtonState(Standing, State):
    """The state of the second-order finish. One epoch is one Newton step: a few passes over the data.

    `alpha` and `centre` have shape (n_all,).

    Attributes
    ----------
    bend : ndarray of shape (n_all,)
        Second derivatives of the terms at the margins, times C.
    gradient : ndarray of shape (d + 1,)
    z : ndarray of shape (n,)
        Margins of the members.
    full : bool
        Whether the last step had the length that the quadratic model predicts. The next step most likely has it too:
        the solver then evaluates the rows at that step before the search along the line, which mostly confirms it.
    equations : NewtonEquations, optional
        The Newton equations with their factors.
    """

    proven: bool = True
    bend: np.ndarray = field(default_factory=nothing)
    gradient: np.ndarray = field(default_factory=nothing)
    z: np.ndarray = field(default_factory=nothing)
    full: bool = False
    equations: NewtonEquations | None = field(default=None, repr=False)

    @property
    def rule(self) -> str:
        """Why a fit ends that has nothing to find."""
        return NOTHING_TO_FIND


@dataclass(frozen=True)
class Newton(SolverBase):
    r"""Newton's method, the second-order finish of "auto", as a solver.

    Parameters
    ----------
    warm_up : int, default=10
        Epochs of dual coordinate descent before the first step, where no starting point is given. For smooth losses on
        many more rows than features, a few Newton steps on samples of the rows replace them. 0: begin at zero.
    proximity : float, optional
        The proximal term to begin with, in units of the median :math:`C \lVert x_i \rVert^2`, the curvature of a
        coordinate step. Left out: 1 for the piecewise linear losses (where the dual variables have a given sum other
        than zero, a tenth of the size of the first margins), 0.01 for those with corners in their derivative once fewer
        rows bend than there are features, 0 otherwise.
    memory : float, default=1e9
        Largest size of factored matrices, in bytes. Where they do not fit, conjugate gradients solve the equations.

    Examples
    --------
    >>> from saddlesvm import LinearSVC, Newton
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(solver=Newton(warm_up=0), C=0.01, tol=1e-2, random_state=0).fit(
    ...     notes.X, notes.y
    ... )
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "newton"
    warm_up: int = 10
    proximity: float | None = None
    memory: float = 1e9

    def __post_init__(self) -> None:
        if self.warm_up < 0:
            raise ValueError(f"warm_up must be at least 0; got {self.warm_up!r}")
        if self.proximity is not None and not 0.0 <= self.proximity < np.inf:
            raise ValueError(f"proximity must be at least 0 and finite; got {self.proximity!r}")
        if not self.memory > 0.0:
            raise ValueError(f"memory must be positive; got {self.memory!r}")

    def needs_rows(self, problem: Problem) -> bool:
        """Whether a run visits single rows: it does without where only passes over all are to be had."""
        return False

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> NewtonState:
        """Begin at the given point, at the solution of samples, or after a few epochs of dual coordinate descent."""
        touched, sampled = 0, None
        if start is None and not problem.intercept.homogeneous:
            start = evenly(problem)
        elif start is None and self.warm_up and problem.holds_rows:
            if is_smooth(problem.loss) and sample_shares(problem):
                sampled = self._of_samples(problem, seed)
                start, touched = Point(sampled.best.w), sampled.rows_touched
            else:
                start, touched = self._of_descent(problem, seed)
        alpha = start_alpha(problem, start)
        given = start is not None and start.w is not None
        w = np.array(start.w, dtype=np.float64) if given else dual_weights(problem, alpha)  # type: ignore[union-attr]
        q = first_proximity(problem, alpha, w, self.proximity)
        state = NewtonState(
            w=w,
            rows_touched=touched,
            epochs=touched / problem.members.size,
            alpha=alpha.copy(),
            bend=np.zeros(alpha.size),
            centre=alpha,
            z=np.zeros(problem.members.size),
            q=q,
            active=problem.members.size,
            full=sampled is not None and sampled.full,
            equations=None if sampled is None else sampled.equations,
        )
        self._keep_start(problem, state)
        self._evaluate_at(problem, state, w if w.any() else None)
        if q == 0.0 and w.any() and state.best.primal > self._primal_at_zero(problem):
            w[:], state.z[:] = 0.0, 0.0  # worse than zero: so far out a smooth loss has no curvature to use
            self._evaluate_at(problem, state)
        self._move_centre(problem, state, 0.0)
        return state

    @staticmethod
    def _primal_at_zero(problem: Problem) -> float:
        """The objective of w = 0, where rows of one label all have the same loss."""
        loss, y, s, small = problem.of_members
        few, weights = y[:0], s
        if is_classification(loss):
            few = np.array([1.0, -1.0])
            weights = np.array([float((s[y == one] if s.size else y == one).sum()) for one in few])
        y = few if few.size else y
        every, nowhere = np.arange(y.size, dtype=problem.members.dtype), np.zeros(y.size)
        paid = loss_sums(Pointwise(loss, y, weights, small), every, nowhere, 0.0, nowhere)[0]
        return primal_of(problem.C, float(paid), 0.0)

    @staticmethod
    def _keep_start(problem: Problem, state: NewtonState) -> None:
        """Keep the start's multipliers as the best so far: those of the margins may be worse, at zero or far out."""
        alpha = state.alpha.copy()
        if not alpha.any() and problem.intercept.homogeneous and not problem.fixed.size:
            state.best.alpha, state.best.dual = alpha, 0.0  # phi*(0) = -min phi = 0 for every loss
            return
        alpha = problem.balanced(alpha)
        charged = problem.regularizer.conjugate(dual_weights(problem, alpha))
        conjugates = conjugate_sum(problem.pointwise, problem.members, alpha, 1.0)
        state.best.alpha, state.best.dual = alpha, dual_of(problem.C, conjugates, charged)

    def _of_descent(self, problem: Problem, seed: int) -> tuple[Point, int]:
        """The point after a few epochs of dual coordinate descent, and the row visits they took."""
        solver, rows = DCD(), self.warm_up * problem.members.size
        state = solver.init(problem, seed)
        while state.rows_touched < rows and state.estimate > 0.0:
            state = solver.step(problem, state, Budget(rows - state.rows_touched))
        return Point(state.w.astype(np.float64), state.alpha), state.rows_touched

    def _of_samples(self, problem: Problem, seed: int) -> NewtonState:
        """The state after a few Newton steps on the smallest sample and one step on each larger sample.

        Its row visits count those of all samples; the fit of all rows goes on with its factors.
        """
        solver, equations = Newton(warm_up=0, memory=self.memory), NewtonEquations(problem, self.memory, seed)
        state: NewtonState | None = None
        for share in sample_shares(problem):
            sample, smaller = sample_of(problem, equations.rank, share), state
            state = solver.init(sample, seed, None if smaller is None else Point(smaller.best.w))
            state.rows_touched = 0 if smaller is None else smaller.rows_touched
            state.equations, equations.below = equations, share
            steps, before = np.inf if smaller is None else 1, np.inf
            while state.steps < steps and state.best.primal < (1.0 - ROUGH_FALL) * before:
                before = state.best.primal
                state = solver.step(sample, state, Budget(sample.members.size))
        equations.below = 1.0
        assert state is not None
        return state

    def step(self, problem: Problem, state: NewtonState, budget: Budget) -> NewtonState:
        """Do one Newton step, and move the centre as far as the step allows."""
        if state.equations is None:
            state.equations = NewtonEquations(problem, self.memory)
        equations, before = state.equations, state.gradient
        learns = state.q == 0.0 and learns_from_steps(problem) and equations.below == 1.0
        direction = equations.solve(state.bend, -before, FORCING, learns=learns)
        there = self._respond(problem, state, state.w + direction) if state.full or equations.secants.serves else None
        dz = nothing() if there is None else there.z - state.z
        if there is None or _cancel(dz, there.z):
            dz = margins(problem, direction)
        ahead, asked = problem.intercept.penalised(direction), problem.C * problem.intercept.asked
        slope = problem.regularizer.slope(state.w, direction) + asked * float(direction[-1])
        tau = search(
            _smoothed(problem, state),
            Line(state.z, dz, slope, float(ahead @ ahead)),
            problem.gathered(state.alpha),
            problem.gathered(state.bend),
            nothing() if there is None else problem.gathered(there.alpha),
            ROUGH_LINE if equations.secants.serves else LINE_TOLERANCE,
        )
        state.w += tau * direction
        state.count_step(stuck=tau == 0.0)
        n = problem.members.size
        state.rows_touched += 2 * n + equations.iterations * state.active
        state.epochs += 1.0
        state.remark = f"Newton step {state.steps}: {state.active} rows bend, solved by {equations.way}"
        state.full = abs(tau - 1.0) <= LINE_TOLERANCE
        if there is not None and tau == 1.0:
            self._evaluate(problem, state, there)
        else:
            state.z += tau * dz
            state.rows_touched += n
            self._evaluate_at(problem, state)
        if learns:
            equations.secants.learn(tau * direction, state.gradient - before)
        if self._needs_proximity(problem, state):
            state.q, state.inner = SMALL * coordinate_curvature(problem), 0
            state.centre[:] = state.best.alpha
            self._evaluate_at(problem, state)
        self._move_centre(problem, state, budget.relative_gap)
        return state

    def best_from(
        self, problem: Problem, start: Point, gap: float, share: float = 0.0, begun: float | None = None
    ) -> Best:
        """The best points of a run from a start, as part of another method.

        Parameters
        ----------
        problem : Problem
        start : Point
        gap, share : float
            The gap at which to end, in the C form, and relative to the objective. A gap will do, too, that is small
            beside the fall of the objective so far.
        begun : float, optional
            The objective at the beginning, if it is not that of the run's first point.
        """
        state = self.init(problem, 0, start)
        begun = state.best.primal if begun is None else begun
        while state.steps < MOST_STEPS and not (state.stuck or time_is_up()):
            primal = state.best.primal
            if primal - state.best.dual <= max(gap, share * abs(primal), LEFT_OF_FALL * (begun - primal)):
                break
            state = self.step(problem, state, Budget(problem.members.size))
        return state.best

    def _needs_proximity(self, problem: Problem, state: NewtonState) -> bool:
        """Whether so few rows bend that without a proximal term they would change from step to step."""
        corners = self.proximity is None and not is_cornerless(problem.loss)
        return corners and state.q == 0.0 and state.active < SPANNING * problem.n_features

    @staticmethod
    def _respond(problem: Problem, state: NewtonState, w: np.ndarray | None = None) -> Response:
        """Multipliers at the present margins; or at the margins of w, computed in the same pass over the rows."""
        members, terms = problem.members, _smoothed(problem, state)
        if w is None:
            answers = answers_at(terms, state.z)
            alpha, bend = problem.spread(answers.alpha), problem.spread(answers.bend)
            return Response(state.z, alpha, bend, answers.sums, dual_weights(problem, alpha))
        z, alpha, bend = (np.empty(members.size) for _ in range(3))

        def of_part(part: Part) -> tuple[np.ndarray, np.ndarray]:
            place = part.place
            answers, pulled = Answers(alpha[place], bend[place], np.zeros(4)), np.zeros(w.size)
            respond_to_weights(_part_of(terms, place), part.X, part.rows, w, z[place], answers, pulled)
            return answers.sums, pulled

        parts = problem.passes.each(of_part)
        sums, pulled = (np.sum(of_parts, axis=0) for of_parts in zip(*parts, strict=True))
        return Response(z, problem.spread(alpha), problem.spread(bend), sums, problem.pulled(pulled))

    def _evaluate_at(self, problem: Problem, state: NewtonState, w: np.ndarray | None = None) -> None:
        """Compute the multipliers at the present margins, or at those of w, and take them over."""
        self._evaluate(problem, state, self._respond(problem, state, w))

    def _evaluate(self, problem: Problem, state: NewtonState, response: Response) -> None:
        """Take multipliers over, and compute their gradient, the two terms of the gap, and the objectives."""
        state.z, state.alpha, state.bend = response.z, response.alpha, response.bend
        paid, conjugates, coupled, active = response.sums
        state.active = int(active)
        w_dual = response.w
        state.gradient = state.w - w_dual
        state.residual = problem.regularizer.apart(state.w, w_dual)
        alpha, left = state.alpha, problem.C * (paid + conjugates + coupled)
        if problem.intercept.constrained:
            state.gradient[-1] = problem.C * problem.intercept.asked - w_dual[-1]
            state.residual += self._unbalance(problem, state)
            alpha = problem.balanced(alpha)
            conjugates = loss_sums(problem.pointwise, problem.members, state.z, 0.0, alpha)[1]
            w_dual = dual_weights(problem, alpha)
        regularizer, paid = problem.regularizer, paid + problem.intercept.asked * float(state.w[-1])
        primal, half = primal_of(problem.C, paid, regularizer.value(state.w)), regularizer.conjugate(w_dual)
        state.judge((primal, dual_of(problem.C, conjugates, half)), left, state.w, alpha)
        if is_nothing(problem, half):
            state.satisfied = True

    @staticmethod
    def _unbalance(problem: Problem, state: NewtonState) -> float:
        """The gain of a Newton step on a free intercept alone, which is the intercept's share of the residual."""
        bend = problem.scale**2 * float(state.bend.sum())
        slope = float(state.gradient[-1])
        return 0.5 * slope * slope / bend if bend > 0.0 else (np.inf if slope else 0.0)

    def _move_centre(self, problem: Problem, state: NewtonState, target: float) -> None:
        """Move the centre as far as the point allows; after a Newton step, its margins are computed anew first."""
        plain = state.equations is not None and state.equations.way == PLAIN

        def evaluate(stepped: bool) -> None:
            self._evaluate_at(problem, state, state.w if stepped else None)

        state.move_centre(evaluate, target, SLOW_GROWTH if plain else GROWTH)

    def solution(self, problem: Problem, state: NewtonState) -> Point:
        """The best primal and the best dual point so far; the dual one alone where its sum is not zero.

        Such a machine is told by its dual variables, as the kernel machines are: the certificate is that of their w.
        """
        return Point(state.best.w if problem.intercept.homogeneous else None, state.best.alpha)

    def last_point(self, problem: Problem, state: NewtonState) -> Point:
        """The last iterate and the multipliers at its margins; these alone where their sum is not zero."""
        return Point(state.w if problem.intercept.homogeneous else None, state.alpha)


def _cancel(change: np.ndarray, z: np.ndarray) -> bool:
    """Whether margins z are so close to earlier ones that rounding shows in the change."""
    return bool(_largest(change) <= CANCELLED * _largest(z))


def _largest(values: np.ndarray) -> float:
    """The largest size of a value."""
    return float(np.maximum(values.max(), -values.min()))


def _smoothed(problem: Problem, state: NewtonState) -> SmoothedTerms:
    """The terms of the members, with the present proximal term."""
    return smoothed_terms(problem, problem.gathered(state.centre), state.q)


def _part_of(terms: SmoothedTerms, part: slice) -> SmoothedTerms:
    """The terms of some members."""
    return terms._replace(y=terms.y[part], weights=terms.weights[part], centre=terms.centre[part])
