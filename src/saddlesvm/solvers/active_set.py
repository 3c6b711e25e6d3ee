"""The active-set method for piecewise linear losses: solve for the free rows, held in memory.

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

A free intercept is charged half the square of its way from the point looked at, less if C is
small. The multipliers' sum is then that way, over C, and goes to zero with it: the rows' own
curvature is so much larger that a pass shortens the way many times (Rockafellar 1976, "Monotone
operators and the proximal point algorithm"). What is left of the sum is taken from the multipliers
of the rows taken along. So a dual point with the sum zero needs no further pass either.

It begins at the solution of a random sample of the rows. With room for 3 to 5 % of the rows it
takes four to eight passes to a gap of 1e-6 (416,666 x 60 and 3,750,000 x 100, hinge, C from 0.001
to 10,000).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.bounds import (
    Facts,
    PointSizes,
    Sums,
    add_sizes,
    dual_of,
    point_sizes,
    primal_of,
    bound_sums,
)
from saddlesvm.problem.certificate import Point, relative
from saddlesvm.problem.intercepts import SUM_ROUNDING, Intercept, balance
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import loss_sums, margins
from saddlesvm.rows.layouts import add_rows
from saddlesvm.solvers.base import nothing
from saddlesvm.solvers.free_rows import LADDER, Findings, Question, width_of
from saddlesvm.solvers.newton import Newton
from saddlesvm.solvers.over_passes import LARGEST, ROUNDED, SIZES, OverPasses, Setting
from saddlesvm.solvers.taken_rows import joined

ROUGH = 1e-3  # relative gap to which a sample is solved
CAREFUL = 0.1  # gap of a solution, as a share of the one asked for
FILLED = 0.8  # share of the room for rows that the next width is expected to fill
DRAWN = ((1e-2, 0.5), (1e-4, 0.25), (-1.0, 0.1))  # share of the room for decided rows, above a relative gap
LIGHT = 100.0  # by how much the sum of the losses' slopes is larger than the charge for a free intercept's move by 1
CROWDED = 3  # passes in a row, each at a 64th of the width, in which too many rows have the same margin


class Posed(NamedTuple):
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

    def solve(self, found: Findings) -> Solved:
        """Solve for the rows taken along; `found` is used up."""
        (loss, C, regularizer, _, memory), count = self.setting, found.taken
        free = regularizer.intercept.constrained
        rows = np.concatenate([np.empty(0, dtype=np.int64), *(one.rows for one in found.pieces)])
        pull, sizes = C * found.pull, found.sizes.copy()
        # No free row: the losses are linear, and w is the pull itself.
        if not found.pieces and not found.drawn:
            w = np.append(pull[:-1], pull[-1] + (self.w[-1] if free else 0.0))
            done = not free or _is_balanced(sizes)
            return Solved(w, pull, found.sums[1], found.sums[3], sizes, np.empty(0), rows, balanced=done)
        problem, start, stretch = self._problem(found)
        begin = Point(np.append(self.w[:-1], self.w[-1] / stretch), start)
        best = Newton(warm_up=0, memory=memory).best_from(problem, begin, self.gap, self.share)
        alpha, own = best.alpha, problem.members[:count]
        # The free rows' multipliers make up for what the decided ones leave of the sum zero.
        if free:
            decided = PointSizes(*sizes.tolist())
            balance(problem.pointwise, own, alpha, decided.negative - decided.positive)
        sums = loss_sums(problem.pointwise, own, np.zeros(count), 0.0, alpha)
        more = point_sizes(loss, problem.y, problem.norms, problem.weights, own, alpha, signs=True)
        add_sizes(sizes, np.array(more), LARGEST)
        # The rows' virtual feature is stretched: so is the pull's last place while they are added.
        pull[-1] *= stretch
        add_rows(problem.X, own, C * alpha, pull)
        pull[-1] /= stretch
        w, width = best.w.copy(), 0.0
        w[-1] *= stretch
        if self.sampled:
            width = width_of(problem.pointwise, margins(problem, best.w), FILLED * self.room)
        conjugates, charged, done = found.sums[1] + sums[1], found.sums[3] + sums[3], not free or _is_balanced(sizes)
        return Solved(w, pull, conjugates, charged, sizes, alpha[:count], rows, width, done)

    def _problem(self, found: Findings) -> tuple[Problem, np.ndarray, float]:
        """Return the problem over the rows taken along, their multipliers, and the stretch factor.

        The free rows come first. The rows drawn weigh as much as all decided rows; a linear term
        makes their slope at the point of the pass that of all. If C is small, a free intercept's
        virtual feature is stretched by the factor, and its weight shrinks.
        """
        _, C, regularizer, *_ = self.setting
        X, y, weights, norms, alpha, _ = joined([*found.pieces, *found.drawn])
        count, fixed = found.taken, C * found.pull
        # A sample alone: each row stands for n / m rows, and nothing is fixed.
        if self.sampled:
            weights *= self.sampled / y.size
            alpha, fixed = np.zeros(y.size), np.zeros(self.w.size)
        # The drawn rows stand for all decided rows; their slope at w is taken off the fixed pull,
        # which holds it already.
        elif found.drawn:
            each = (float(found.rows[0]) - count) / (y.size - count)
            weights[count:] *= each
            alpha[count:] *= each
            add_rows(X, np.arange(count, y.size, dtype=np.int32), -C * alpha, fixed)
        found.pieces, found.drawn = [], []
        stretch = 1.0
        # A charge of half the square of the intercept's way, as a penalty around the present point.
        if regularizer.intercept.constrained:
            stretch = max(1.0, np.sqrt(LIGHT / (C * max(float(found.rows[0]), 1.0))) / X.bias)
            norms = norms + (stretch**2 - 1.0) * X.bias**2
            X = X._replace(bias=stretch * X.bias)
            fixed[-1] = stretch * fixed[-1] + self.w[-1] / stretch
        fixed = fixed if fixed.any() else np.empty(0)
        problem = self.setting.problem_over(X, y, weights, norms, fixed, regularizer.intercept.of_block)
        return problem, alpha, stretch


class Solved(NamedTuple):
    """The solution over the rows taken along, together with what the decided rows told.

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
        At which the free rows would fill the room, as a sample tells; 0 without a sample.
    balanced : bool
        The multipliers have the sum that the intercept asks for, if it does.
    """

    w: np.ndarray
    pull: np.ndarray
    conjugates: float
    charged: float
    sizes: np.ndarray
    alpha: np.ndarray
    rows: np.ndarray
    width: float = 0.0
    balanced: bool = True

    def without_rows(self) -> Solved:
        """Return the solution without the rows, for readers that do not hold them."""
        return self._replace(alpha=np.empty(0), rows=np.empty(0, dtype=np.int64))


def _is_balanced(sizes: np.ndarray) -> bool:
    """Return True if positive and negative multipliers have the same sum, within rounding."""
    point = PointSizes(*sizes.tolist())
    return abs(point.positive - point.negative) <= SUM_ROUNDING * (point.positive + point.negative)


@dataclass
class ActiveSet(OverPasses):
    """The state of the method between two passes.

    Attributes
    ----------
    primal, paid : float
        The objective of `model`, and the sum of its losses.
    pull, sizes : ndarray of shape (d + 1,), (SIZES,)
        Of the best dual point so far.
    dual, conjugates, charged : float
        Its bound, and its sums.
    width : float
        Of the free rows of the next pass; 0 where a sample comes first.
    most : int
        Rows that may be taken along.
    room : float
        Their share of all rows.
    change : float
        Relative change of the objective from the pass before to the last one.
    crowded : int
        Passes in a row in which no width was narrow enough for all free rows: a multitude has the
        same margin.
    balanced : bool
        The multipliers of the best dual point have the sum that the intercept asks for, if it does.
    """

    balances: ClassVar[bool] = True
    primal: float = np.inf
    paid: float = 0.0
    pull: np.ndarray = field(default_factory=nothing)
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(SIZES))
    dual: float = -np.inf
    conjugates: float = 0.0
    charged: float = 0.0
    width: float = 0.0
    most: int = 0
    room: float = 0.0
    change: float = np.inf
    crowded: int = 0
    balanced: bool = False

    @classmethod
    def begin(cls, w: np.ndarray, most: int, rows: int) -> ActiveSet:
        """Return a run that begins at these weights, with room for so many of the rows."""
        return cls(w, model=np.zeros(w.size), pull=np.zeros(w.size), most=most, room=min(most / max(rows, 1), 1.0))

    @property
    def remark(self) -> str:
        """The free rows."""
        return f"{self.active} rows are free"

    def gives_up(self, most: int) -> bool:
        """Return True if too many rows share a margin, all is done, or `most` passes are."""
        return self.crowded >= CROWDED or self.ended or self.passes >= most

    def question(self) -> Question:
        """Return the question of the next pass; the first one draws rows if not all have room."""
        if self.width == 0.0:
            return self.sample_question(self.room)
        drawn = self._drawn()
        return Question(self.at, self.back, self.width, int((1.0 - drawn) * self.most), drawn * self.room)

    def sample_question(self, share: float) -> Question:
        """The question for a first point: rows drawn at random, a share of all."""
        return Question(self.at, nothing(), 0.0, 0, min(share, 1.0))

    def _drawn(self) -> float:
        """Return the share of the room for decided rows: the smaller the gap, the fewer move."""
        if not np.isfinite(self.width):
            return 0.0
        # The dual bound may lag behind weights that hardly move any more: decided rows do not move then.
        movement = min(self.estimate, self.change)
        return next(share for gap, share in DRAWN if not movement <= gap)

    def take(self, setting: Setting, found: Findings) -> Posed | None:
        """Learn from a pass; return the problem over the rows taken along if it is to be solved."""
        if self.width == 0.0:
            return self.of_sample(setting, int(found.rows[0]))
        w, paid = self.at, float(found.sums[0])
        self.passes, self.active = self.passes + 1, found.taken
        primal = primal_of(setting.C, paid, setting.regularizer.value(w))
        self.change = relative(abs(primal - self.before), primal, self.before)
        # The best weights so far are the model.
        if primal < self.primal:
            self.primal, self.paid, self.model = primal, paid, w
            self.estimate = relative(max(primal - self.dual, 0.0), primal, self.dual)
        width = self.width
        self._widen(found)
        if self.turns_back(setting.C, setting.regularizer, found.line, primal):
            self.width = width  # the next point is close to `back`, whose rows gave it; those found here are far away
            return None
        self.before = primal
        return Posed(w, setting, CAREFUL * setting.tol * abs(self.primal), 0.0)

    def of_sample(self, setting: Setting, rows: int) -> Posed:
        """The problem over a sample that represents so many rows."""
        return Posed(self.at, setting, 0.0, ROUGH, rows, 0.5 * self.room)

    def shortened(self) -> None:
        """End where rounding hides what is left, or the step has no length any more."""
        near = self.primal - self.dual <= ROUNDED * abs(self.primal)
        self.ended = near or np.array_equal(self.at, self.back)

    def _widen(self, found: Findings) -> None:
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
        wanted = FILLED * (1.0 - self._drawn()) * self.room
        # The width of the wanted share, by interpolation between logarithms.
        places = np.log(np.maximum(shares, 0.5 / counted)), np.log(LADDER)
        self.width *= float(np.exp(np.interp(np.log(wanted), *places)))

    def learn(self, setting: Setting, solved: Solved) -> bool:
        """Choose the next point; return True if the multipliers are the best dual point so far."""
        if self.width == 0.0:
            self.at, self.width = solved.w, solved.width
            return False
        # The multipliers of free and decided rows together are a dual point: D(a) needs no pass.
        dual = dual_of(setting.C, solved.conjugates, setting.regularizer.conjugate(solved.pull))
        former = self.dual if self.balanced or not setting.regularizer.intercept.constrained else -np.inf
        better = solved.balanced and dual > former
        if better:
            self.bound_by(dual, solved.pull, solved.conjugates, solved.charged, solved.sizes)
        self.back, self.at = self.at, solved.w
        return better

    def bound_by(self, dual: float, pull: np.ndarray, conjugates: float, charged: float, sizes: np.ndarray) -> None:
        """Take over a dual point whose multipliers have the sum that a free intercept asks for."""
        self.dual, self.conjugates, self.charged = dual, conjugates, charged
        self.pull, self.sizes, self.balanced = pull, sizes, True
        self.estimate = relative(max(self.primal - dual, 0.0), self.primal, dual)

    def bound_sums(self, facts: Facts) -> Sums:
        """The sums of the certificate of the best points, rounding bounded."""
        found, point = (self.paid, self.conjugates, np.inf, self.charged, np.inf), PointSizes(*self.sizes.tolist())
        return bound_sums(facts, found, point, self.model, self.pull)

    def proves(self, intercept: Intercept) -> bool:
        """True if there are two points, and the dual one is feasible."""
        return bool(np.isfinite(self.dual) and np.isfinite(self.primal)) and (
            self.balanced or not intercept.constrained
        )
