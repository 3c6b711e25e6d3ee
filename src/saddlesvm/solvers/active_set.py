"""The active-set method: solve for the free rows, held in memory.

It is for piecewise linear losses, and for losses with corners if nearly all rows lie where the loss
is linear: separable rows at a large C.

At weights w, the losses of decided rows are replaced by their linear pieces, ``-a_i z -
phi_i*(-a_i)``; the free rows U (:mod:`saddlesvm.solvers.free_rows`) keep their losses. What comes
of it is a problem of the same kind over few rows, with a pull f that stands still:

    min over w of  R(w) - f.w + C sum_{i in U} s_i phi_i(x_i.w),    f = C sum_{i not in U} a_i x_i,

which Newton's method for rows in memory solves. Its multipliers, together with those of the decided
rows, are a dual point, whose bound needs no further pass. The next pass judges the solution. If no
decided row has crossed over to another piece, it is the optimum of all rows; if some have, the pass
finds other free rows, and a lower place on the line if the solution went too far.

Far from the optimum decided rows do cross over. So a part of the room is for a sample of them,
which weighs as much as they all do; a linear term corrects the sample's slope at w to that of all
(as variance reduction does in stochastic gradients). The sample says how the objective bends beyond
the free rows.

A free intercept is charged half the square of its way from the point looked at, less if the
objective is small. The multipliers' sum is then that way, over C, and goes to zero with it: the
rows' own curvature is so much larger that a pass shortens the way many times (Rockafellar 1976,
"Monotone operators and the proximal point algorithm"). What is left of the sum is taken from the
multipliers of the rows taken along. So a dual point with the sum zero needs no further pass either.

It begins at the solution of a random sample of the rows. With room for 3 to 5 % of the rows it
takes four to eight passes to a gap of 1e-6 (416,666 x 60 and 3,750,000 x 100, hinge, C from 0.001
to 10,000).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from saddlesvm.problem.bounds import (
    LossSums,
    PointSizes,
    add_sizes,
    dual_of,
    point_sizes,
    primal_of,
)
from saddlesvm.problem.certificate import Point, relative
from saddlesvm.problem.intercepts import SUM_ROUNDING, balance
from saddlesvm.problem.loss import Loss, is_cornerless
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import loss_sums, margins
from saddlesvm.rows.layouts import add_rows
from saddlesvm.solvers.base import empty_array
from saddlesvm.solvers.free_rows import LADDER, FreeRowQuestion, FreeRowSums, width_of
from saddlesvm.solvers.newton import Newton
from saddlesvm.solvers.over_passes import LARGEST, OverPasses, Setting, sizes_of_labels
from saddlesvm.solvers.search import PLACES, find_better
from saddlesvm.solvers.taken_rows import join_pieces

if TYPE_CHECKING:
    from saddlesvm.solvers.newton_over_passes import NewtonOverPasses

ROUGH = 1e-3  # relative gap to which a sample is solved; a guess
# Gap of a solution, as a share of the one asked for: at first, its factor if a solution does not
# move the point, and at least; guesses.
CAREFUL = 0.1
MORE_CARE = 0.1
LEAST_CARE = 1e-6
FILLED = 0.8  # share of the room for rows that the next width is expected to fill; a guess
# Share of the room for decided rows, above a relative gap; guesses.
DRAWN = ((1e-2, 0.5), (1e-4, 0.25), (-1.0, 0.1))
# How much larger the objective is than the charge for a free intercept's move by 1, at least; a
# guess.
LIGHT = 100.0
# Passes in a row, each at a 64th of the width, in which too many rows have the same margin.
CROWDED = 3
# Rows for each feature that must have room: about one is strictly inside its bounds.
INSIDE = 4
FIRST_WIDTH = 1.0  # of a run that follows Newton's method: a margin; a guess
ROUNDED = 1e-13  # change of the objective, relative to it, that rounding hides; a guess


class TakenProblem(NamedTuple):
    """The problem over the rows taken along.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        Where to begin.
    setting : Setting
    gap, share : float
        The gap at which to end, in the C form, and relative to the objective; the larger counts.
    sampled : int
        The rows are a sample that stands for so many; 0 for none.
    room : float
        The share of the rows for which there is room.
    """

    w: np.ndarray
    setting: Setting
    gap: float
    share: float
    sampled: int = 0
    room: float = 0.0

    def solve(self, found: FreeRowSums) -> TakenSolution:
        """Solve for the rows taken along; `found` is used up."""
        setting = self.setting
        C = setting.C
        is_free = setting.regularizer.intercept.constrained
        count = found.taken
        pull = C * found.pull
        sizes = found.sizes.copy()

        if not found.pieces and not found.drawn:
            return self.solve_linear(found, pull)
        no_rows = np.empty(0, dtype=np.int64)
        rows = np.concatenate([no_rows, *(piece.rows for piece in found.pieces)])

        # Newton's method for rows in memory. A stretched virtual feature has a weight that is as
        # much smaller.
        problem, start, stretch = self.pose(found)
        begin = Point(np.append(self.w[:-1], self.w[-1] / stretch), start)
        newton = Newton(warm_up=0, memory=setting.memory)
        best = newton.best_from(problem, begin, self.gap, self.share)
        alpha = best.alpha
        free = problem.members[:count]
        # The free rows' multipliers make up for what the decided ones leave of the sum zero.
        if is_free:
            decided = PointSizes(*sizes.tolist())
            balance(problem.pointwise, free, alpha, decided.negative - decided.positive)

        # The sums of the dual point over all rows: those of the decided rows, which the pass has
        # found, and those of the free rows.
        decided_sums = LossSums(*found.sums.tolist())
        zeros = np.zeros(count)
        sums = loss_sums(problem.pointwise, free, zeros, 0.0, alpha)
        free_sizes = point_sizes(
            setting.loss, problem.y, problem.norms, problem.weights, free, alpha, signs=True
        )
        add_sizes(sizes, np.array(free_sizes), LARGEST)
        # The rows' virtual feature is stretched: so is the pull's last place while they are added.
        pull[-1] *= stretch
        add_rows(problem.X, free, C * alpha, pull)
        pull[-1] /= stretch
        w = best.w.copy()
        w[-1] *= stretch
        width = 0.0
        if self.sampled:
            width = width_of(problem.pointwise, margins(problem, best.w), FILLED * self.room)
        return TakenSolution(
            w=w,
            pull=pull,
            conjugates=decided_sums.conjugates + sums.conjugates,
            charged=decided_sums.conjugate_sizes + sums.conjugate_sizes,
            sizes=sizes,
            alpha=alpha[:count],
            rows=rows,
            width=width,
            is_balanced=not is_free or has_equal_signs(sizes),
        )

    def solve_linear(self, found: FreeRowSums, pull: np.ndarray) -> TakenSolution:
        """Solve if no row is free: the losses are linear, and w is the pull itself."""
        # w = C sum_i a_i x_i; a free intercept is charged from its present place.
        is_free = self.setting.regularizer.intercept.constrained
        sums = LossSums(*found.sums.tolist())
        w = pull.copy()
        if is_free:
            w[-1] += self.w[-1]
        return TakenSolution(
            w=w,
            pull=pull,
            conjugates=sums.conjugates,
            charged=sums.conjugate_sizes,
            sizes=found.sizes,
            alpha=np.empty(0),
            rows=np.empty(0, dtype=np.int64),
            is_balanced=not is_free or has_equal_signs(found.sizes),
        )

    def pose(self, found: FreeRowSums) -> tuple[Problem, np.ndarray, float]:
        """Return the problem over the rows taken along, their multipliers, and the stretch factor.

        The free rows come first. The rows drawn weigh as much as all decided rows; a linear term
        makes their slope at the point of the pass that of all. If the objective is small, a free
        intercept's virtual feature is stretched by the factor, and its weight shrinks.
        """
        setting = self.setting
        C = setting.C
        intercept = setting.regularizer.intercept
        X, y, weights, norms, alpha, _ = join_pieces([*found.pieces, *found.drawn])
        count = found.taken
        fixed = C * found.pull
        if self.sampled:
            # A sample alone: each row stands for n / m rows, and nothing is fixed.
            weights *= self.sampled / y.size
            alpha = np.zeros(y.size)
            fixed = np.zeros(self.w.size)
        elif found.drawn:
            # Each drawn row stands for so many decided rows. The slope of the drawn rows at w is
            # taken off the fixed pull, which holds it already.
            n_drawn = y.size - count
            decided_per_drawn = (float(found.rows[0]) - count) / n_drawn
            weights[count:] *= decided_per_drawn
            alpha[count:] *= decided_per_drawn
            add_rows(X, np.arange(count, y.size, dtype=np.int32), -C * alpha, fixed)
        found.pieces = []
        found.drawn = []
        stretch = 1.0
        if intercept.constrained:
            # A penalty around this point: the intercept's way from b to b' is charged
            # (b' - b)^2 / (2 (stretch bias)^2). With this stretch a way of 1 costs at most a share
            # 1 / (2 LIGHT) of the objective, whatever C and the size of the rows are.
            paid = float(found.sums[0])
            objective = primal_of(C, paid, setting.regularizer.value(self.w))
            if objective > 0.0:
                stretch = max(1.0, np.sqrt(LIGHT / objective) / X.bias)
            norms = norms + (stretch**2 - 1.0) * X.bias**2
            X = X._replace(bias=stretch * X.bias)
            fixed[-1] = stretch * fixed[-1] + self.w[-1] / stretch
        problem = Problem(
            X,
            y,
            setting.loss,
            C,
            weights,
            norms,
            np.arange(y.size, dtype=np.int32),
            intercept.block_intercept,
            y.size,
            fixed=fixed if fixed.any() else np.empty(0),
        )
        return problem, alpha, stretch


class TakenSolution(NamedTuple):
    """The solution over the rows taken along, together with the sums over the decided rows.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
    pull : ndarray of shape (d + 1,)
        ``C sum_i a_i x_i`` over all rows.
    conjugates, charged : float
        Sums over all rows, as of :func:`~saddlesvm.problem.sums.loss_sums`.
    sizes : ndarray of shape (SIZES,)
        Of all multipliers.
    alpha, rows : ndarray of shape (k,)
        Multipliers and numbers of the rows taken along.
    width : float
        The width at which the free rows would fill the room, by a sample; 0 without a sample.
    is_balanced : bool
        True if the multipliers have the sum that the intercept asks for, if it does.
    """

    w: np.ndarray
    pull: np.ndarray
    conjugates: float
    charged: float
    sizes: np.ndarray
    alpha: np.ndarray
    rows: np.ndarray
    width: float = 0.0
    is_balanced: bool = True

    def without_rows(self) -> TakenSolution:
        """Return the solution without the rows, for readers that do not hold them."""
        return self._replace(alpha=np.empty(0), rows=np.empty(0, dtype=np.int64))


def has_equal_signs(sizes: np.ndarray) -> bool:
    """Return True if positive and negative multipliers have the same sum, within rounding."""
    point = PointSizes(*sizes.tolist())
    return abs(point.positive - point.negative) <= SUM_ROUNDING * (point.positive + point.negative)


@dataclass
class ActiveSet(OverPasses):
    """The state of the method between two passes.

    Attributes
    ----------
    line_start : ndarray of shape (d + 1,) or (0,)
        The last point taken, from which a full step led to `at`; empty if there is none, or if
        `at` is a place of the line that is known to be lower.
    start_primal : float
        The objective at `line_start`, in the C form.
    width : float
        The next pass takes along rows whose multiplier a change of their margin by this much may
        change; 0 if a sample comes first.
    most : int
        Number of rows that may be taken along.
    room : float
        That number as a share of all rows.
    change : float
        Relative change of the objective from the pass before to the last one.
    crowded : int
        Passes in a row in which even the narrowest width had too many free rows, because many rows
        have the same margin.
    care : float
        The gap of the next solution, as a share of the one asked for.
    """

    line_start: np.ndarray = field(default_factory=empty_array)
    start_primal: float = np.inf
    width: float = 0.0
    most: int = 0
    room: float = 0.0
    change: float = np.inf
    crowded: int = 0
    care: float = CAREFUL

    @classmethod
    def begin(cls, w: np.ndarray, most: int, rows: int) -> ActiveSet:
        """Return a run that begins at these weights, with room for so many of the rows."""
        room = min(most / max(rows, 1), 1.0)
        return cls(w, model=np.zeros(w.size), pull=np.zeros(w.size), most=most, room=room)

    @classmethod
    def follow(
        cls, newton: NewtonOverPasses | ActiveSet, loss: Loss, most: int
    ) -> ActiveSet | None:
        """Return a run that goes on from Newton's method over passes if that overshoots.

        None if it does not, if it proves its last point first, if an active set went before, if the
        loss has no corners, or if there is no room for the rows near them.
        """
        if isinstance(newton, ActiveSet) or not newton.overshoots or newton.proving:
            return None
        if newton.is_last:
            return None
        if is_cornerless(loss):
            return None
        if most < INSIDE * newton.at.size:
            return None
        run = cls.begin(newton.run.best.w, most, newton.n)
        run.width = FIRST_WIDTH
        if run.room >= 1.0:
            run.width = np.inf
        elif not run.at.any():
            # All rows have one margin at zero weights: the solution of a sample comes first.
            run.width = 0.0
        run.keep_best_of(newton)
        return run

    @property
    def remark(self) -> str:
        """The free rows."""
        return f"{self.active} rows are free"

    def gives_up(self, most: int) -> bool:
        """Return True if too many rows share a margin, all is done, or `most` passes are."""
        return self.crowded >= CROWDED or self.ended or self.passes >= most

    def question(self) -> FreeRowQuestion:
        """Return the question of the next pass; the first one draws rows if not all have room."""
        if self.width == 0.0:
            return self.sample_question(self.room)
        # Divide the room between free rows and a sample of the decided rows.
        drawn = self.share_for_decided()
        most = int((1.0 - drawn) * self.most)
        return FreeRowQuestion(
            self.at, self.line_start, self.width, most=most, drawn=drawn * self.room
        )

    def sample_question(self, share: float) -> FreeRowQuestion:
        """Return the question for a first point: rows drawn at random, a share of all."""
        return FreeRowQuestion(
            self.at, line_start=empty_array(), width=0.0, most=0, drawn=min(share, 1.0)
        )

    def share_for_decided(self) -> float:
        """Return the share of the room for decided rows: the smaller the gap, the fewer move."""
        if not np.isfinite(self.width):
            return 0.0
        # The dual bound may lag behind weights that hardly move any more: decided rows do not move
        # then.
        movement = min(self.estimate, self.change)
        return next(share for gap, share in DRAWN if not movement <= gap)

    def learn_from_pass(self, setting: Setting, found: FreeRowSums) -> TakenProblem | None:
        """Learn from a pass; return the problem over the rows taken along if it is to be solved."""
        if self.width == 0.0:
            self.prove_start(setting, found)
            return self.sample_problem(setting, int(found.rows[0]))
        self.passes += 1
        self.active = found.taken
        paid = float(found.sums[0])
        primal = primal_of(setting.C, paid, setting.regularizer.value(self.at))
        self.change = relative(abs(primal - self.start_primal), primal, self.start_primal)

        self.keep_weights(primal, paid)
        width = self.width
        self.set_width(found)
        w = self.at
        if self.turn_back(setting, found.line, primal):
            # The next point is close to `line_start`, whose rows gave the former width; the rows
            # found here are far away.
            self.width = width
            return None
        self.start_primal = primal
        # The weights hardly move any more: a more careful solution shows whether the bound lags.
        if self.change <= MORE_CARE * setting.tol and self.care > LEAST_CARE:
            self.care *= MORE_CARE
        gap = self.care * setting.tol * abs(self.primal)
        return TakenProblem(w, setting, gap=gap, share=0.0)

    def prove_start(self, setting: Setting, found: FreeRowSums) -> None:
        """Take over the first point with its multipliers: no row is free in a pass of width 0."""
        sums = LossSums(*found.sums.tolist())
        primal = primal_of(setting.C, sums.paid, setting.regularizer.value(self.at))
        self.keep_weights(primal, sums.paid)
        if setting.regularizer.intercept.constrained and not has_equal_signs(found.sizes):
            self.sizes = sizes_of_labels(found.sizes)
            return
        pull = setting.C * found.pull
        dual = dual_of(setting.C, sums.conjugates, setting.regularizer.conjugate(pull))
        self.keep_bound(dual, pull, sums, found.sizes.copy())

    def sample_problem(self, setting: Setting, rows: int) -> TakenProblem:
        """Return the problem over a sample that represents so many rows."""
        return TakenProblem(
            self.at, setting, gap=0.0, share=ROUGH, sampled=rows, room=0.5 * self.room
        )

    def turn_back(self, setting: Setting, line: np.ndarray, primal: float) -> bool:
        """Turn to another place on the line if it is much lower, or the objective has not fallen.

        Parameters
        ----------
        setting : Setting
        line : ndarray of shape (len(PLACES),)
            ``sum_i s_i phi_i`` at the places of the line.
        primal : float
            The objective at the point of the pass.
        """
        if not self.line_start.size:
            return False
        step = self.at - self.line_start
        points = (self.line_start + place * step for place in PLACES)
        charged = np.array([setting.regularizer.value(point) for point in points])
        better = find_better(self.start_primal, primal, primal_of(setting.C, line, charged))
        if better > 0.0:
            self.at = self.line_start + better * step
            self.line_start = empty_array()
            return True
        if primal < self.start_primal:
            return False
        near = self.line_start + PLACES[0] * step
        if np.array_equal(near, self.line_start) and self.care > LEAST_CARE:
            # The step has no length: a more careful solution shows if there is one with a length.
            self.care *= MORE_CARE
            return False
        # The step was too long: to the nearest place. The end is where rounding hides what is left.
        is_rounding = self.primal - self.dual <= ROUNDED * abs(self.primal)
        self.ended = is_rounding or np.array_equal(near, self.line_start)
        self.at = near
        return True

    def set_width(self, found: FreeRowSums) -> None:
        """Choose the width at which about as many rows are free as there is room for."""
        self.room = min(self.most / max(float(found.rows[0]), 1.0), 1.0)
        if self.room >= 1.0:
            self.width = np.inf
        counted = found.counts[-1]
        if not counted or not np.isfinite(self.width):
            return
        # Shares of free rows at the widths of the ladder; they rise with the width.
        shares = np.maximum.accumulate(found.counts[:-1]) / counted
        self.crowded = self.crowded + 1 if shares[0] > self.room else 0
        wanted = FILLED * (1.0 - self.share_for_decided()) * self.room
        # The width of the wanted share, by interpolation of log width over log share; a share of
        # zero counts as half a row.
        log_shares = np.log(np.maximum(shares, 0.5 / counted))
        self.width *= float(np.exp(np.interp(np.log(wanted), log_shares, np.log(LADDER))))

    def learn_from_solution(self, setting: Setting, solved: TakenSolution) -> bool:
        """Choose the next point; return True if the multipliers are the best dual point so far."""
        if self.width == 0.0:
            self.at = solved.w
            self.width = solved.width
            return False
        # The multipliers of free and decided rows together are a dual point: D(a) needs no pass.
        dual = dual_of(setting.C, solved.conjugates, setting.regularizer.conjugate(solved.pull))
        is_better = False
        if solved.is_balanced:
            sums = LossSums(np.inf, solved.conjugates, np.inf, solved.charged, np.inf)
            is_better = self.keep_bound(dual, solved.pull, sums, solved.sizes)
        self.line_start = self.at
        self.at = solved.w
        return is_better
