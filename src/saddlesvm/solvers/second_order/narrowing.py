"""Narrowing: piecewise linear losses over rows that are elsewhere, by a problem over the undecided rows in memory.

At weights w, the losses of decided rows are replaced by their linear pieces, ``-a_i z - phi_i*(-a_i)``; the undecided
rows U (:mod:`saddlesvm.solvers.second_order.undecided`) keep their losses. What comes of it is a problem of the same
kind over few rows, with a pull f that stands still:

    min over w of  R(w) - f.w + C sum_{i in U} s_i phi_i(x_i.w),      f = C sum_{i not in U} a_i x_i,

which the second-order method for rows in memory solves. Its multipliers, together with those of the decided rows, are a
dual point, whose bound needs no further pass. The next pass judges the solution. Where no decided row has crossed over
to another piece, it is the optimum of all rows; where some have, the pass finds other undecided rows, and a lower place
on the line where the solution went too far.

Far from the optimum decided rows do cross over. So a part of the room is for a sample of them, which weighs as much as
they all do; a linear term corrects the sample's slope at w to that of all (as variance reduction does in stochastic
gradients). The sample says how the objective bends beyond the undecided rows.

A free intercept is charged half the square of its way from the point looked at. The multipliers' sum is then that way,
over C, and goes to zero with it: the rows' own curvature is so much larger that a pass shortens the way many times
(Rockafellar 1976, "Monotone operators and the proximal point algorithm").

It begins at the solution of a random sample of the rows. With room for 3 to 5 % of the rows it takes four to eight
passes to a gap of 1e-6 (416,666 x 60 and 3,750,000 x 100, hinge, C from 0.001 to 10,000).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Point, relative
from saddlesvm.problem.intercepts import Intercept
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.proven_sums import Facts, Sums, objectives, summed
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.problem.rounding import PointSizes, add_sizes, point_sizes
from saddlesvm.problem.sums import loss_sums, margins
from saddlesvm.rows.files import stacked_rows
from saddlesvm.rows.layouts import add_rows
from saddlesvm.runtime.durable import Group
from saddlesvm.solvers.base import Budget, nothing
from saddlesvm.solvers.second_order.looks import SIZES, TRIALS
from saddlesvm.solvers.second_order.newton import Newton
from saddlesvm.solvers.second_order.undecided import LADDER, LARGEST, Findings, Piece, Question, width_of
from saddlesvm.solvers.second_order.walk import ENOUGH, ROUNDED

ROUGH = 1e-3  # relative gap to which a sample is solved
CAREFUL, SHARE = 0.1, 0.03  # gap of a solution: share of the one asked for, or of the fall so far, if that is larger
FILLED = 0.8  # share of the room for rows that the next width is expected to fill
DRAWN = ((1e-2, 0.5), (1e-4, 0.25), (-1.0, 0.1))  # share of the room for decided rows, above a relative gap
MOST_STEPS = 400  # Newton steps over the undecided rows


class Posed(NamedTuple):
    """What is to be solved over the rows taken along.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        Where to begin.
    loss : Loss
    C : float
    intercept : Intercept
    gap, share : float
        The gap at which to end, in the C form, and relative to the objective; the larger counts.
    memory : float
        Bytes for factors.
    sampled : int
        The rows are a sample that stands for so many; 0 for none.
    room : float
        The share of the rows for which there is room.
    """

    w: np.ndarray
    loss: Loss
    C: float
    intercept: Intercept
    gap: float
    share: float
    memory: float
    sampled: int = 0
    room: float = 0.0


class Settled(NamedTuple):
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
        At which the undecided rows would fill the room, as a sample tells; 0 where there is no sample.
    """

    w: np.ndarray
    pull: np.ndarray
    conjugates: float
    charged: float
    sizes: np.ndarray
    alpha: np.ndarray
    rows: np.ndarray
    width: float = 0.0

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return 2 * self.w.nbytes + self.sizes.nbytes + self.alpha.nbytes + self.rows.nbytes + 24


def settle(found: Findings, posed: Posed) -> Settled:
    """Solve for the rows taken along; `found` is used up."""
    count, rows = found.taken, np.concatenate([np.empty(0, dtype=np.int64), *(one.rows for one in found.pieces)])
    pull, sizes = posed.C * found.pull, found.sizes.copy()
    if not found.pieces and not found.drawn:
        return Settled(pull.copy(), pull, found.sums[1], found.sums[3], sizes, np.empty(0), rows)
    problem, start = _problem(found, posed)
    solver = Newton(warm_up=0, memory=posed.memory)
    state = solver.init(problem, 0, Point(posed.w, start))
    begun = state.best.primal
    while state.steps < MOST_STEPS and not state.stuck:
        seen = state.best
        if seen.primal - seen.dual <= max(posed.gap, posed.share * abs(seen.primal), SHARE * (begun - seen.primal)):
            break
        state = solver.step(problem, state, Budget(problem.members.size))
    alpha, own = state.best.alpha, problem.members[:count]
    sums = loss_sums(problem.pointwise, own, np.zeros(count), 0.0, alpha)
    more = point_sizes(posed.loss, problem.y, problem.norms, problem.weights, own, alpha)
    add_sizes(sizes, np.array(more), LARGEST)
    add_rows(problem.X, own, posed.C * alpha, pull)
    width = 0.0
    if posed.sampled:
        width = width_of(problem.pointwise, margins(problem, state.best.w), FILLED * posed.room)
    return Settled(
        state.best.w, pull, found.sums[1] + sums[1], found.sums[3] + sums[3], sizes, alpha[:count], rows, width
    )


def _problem(found: Findings, posed: Posed) -> tuple[Problem, np.ndarray]:
    """The problem over the rows taken along, the undecided ones first, and their multipliers at the point looked at.

    The rows drawn weigh as much as all decided rows; a linear term lets the slope at that point be that of all.
    """
    pieces: list[Piece] = [*found.pieces, *found.drawn]
    y, norms, alpha = (np.concatenate([piece[k] for piece in pieces]) for k in (1, 3, 4))
    weights = np.concatenate([piece.weights if piece.weights.size else np.ones(piece.y.size) for piece in pieces])
    X, count, fixed = stacked_rows([piece.X for piece in pieces]), found.taken, posed.C * found.pull
    every = np.arange(y.size, dtype=np.int32)
    if posed.sampled:
        weights *= posed.sampled / y.size
        alpha, fixed = np.zeros(y.size), np.zeros(posed.w.size)
    elif found.drawn:
        each = (float(found.rows[0]) - count) / (y.size - count)
        weights[count:] *= each
        alpha[count:] *= each
        add_rows(X, every[count:], -posed.C * alpha, fixed)
    found.pieces, found.drawn = [], []
    if posed.intercept.constrained:
        fixed[-1] += posed.w[-1]
    problem = Problem(
        X=X,
        y=y,
        loss=posed.loss,
        C=posed.C,
        weights=weights,
        norms=norms,
        members=every,
        intercept=posed.intercept.of_block,
        n=y.size,
        fixed=fixed if fixed.any() else np.empty(0),
    )
    return problem, alpha


@dataclass
class Narrowing(Group):
    """Where the method stands between two passes.

    Attributes
    ----------
    at : ndarray of shape (d + 1,)
        The point that the next pass looks at.
    back : ndarray of shape (d + 1,) or (0,)
        The point that the line to `at` comes from; empty where there is none.
    before : float
        The objective at `back`, in the C form.
    model : ndarray of shape (d + 1,)
        The best point so far.
    primal, paid : float
        Its objective, and the sum of its losses.
    pull, sizes : ndarray of shape (d + 1,), (SIZES,)
        Of the best dual point so far.
    dual, conjugates, charged : float
        Its bound, and its sums.
    width : float
        Of the undecided rows of the next pass; 0 where a sample comes first.
    most : int
        Rows that may be taken along.
    room : float
        Their share of all rows.
    looks : int
        Passes so far.
    ended : bool
        Nothing more is to be gained.
    crowded : int
        Passes in a row in which no width was narrow enough for all undecided rows: a multitude has the same margin.
    floor : float
        A bound that was there before: dual points below it are no news.
    """

    at: np.ndarray
    back: np.ndarray = field(default_factory=nothing)
    before: float = np.inf
    model: np.ndarray = field(default_factory=nothing)
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
    looks: int = 0
    ended: bool = False
    crowded: int = 0
    floor: float = -np.inf

    @classmethod
    def begin(cls, w: np.ndarray, most: int, rows: int) -> Narrowing:
        """A run that begins at these weights, with room for so many of the rows."""
        return cls(w, model=np.zeros(w.size), pull=np.zeros(w.size), most=most, room=min(most / max(rows, 1), 1.0))

    def ask(self) -> Question:
        """What the next pass is to find out."""
        drawn = self._drawn()
        return Question(self.at, self.back, self.width, int((1.0 - drawn) * self.most), drawn * self.room)

    def _drawn(self) -> float:
        """The share of the room that is for decided rows: the fewer will cross over, the smaller."""
        if not np.isfinite(self.width):
            return 0.0
        return next(share for gap, share in DRAWN if not self.estimate <= gap)

    def take(self, C: float, regularizer: Regularizer, found: Findings) -> bool:
        """Learn from a pass; returns whether the rows taken along are to be solved for."""
        w, paid = self.at, float(found.sums[0])
        self.looks += 1
        primal = objectives(C, Sums(paid, 0.0, regularizer.value(w), 0.0))[0]
        if primal < self.primal:
            self.primal, self.paid, self.model = primal, paid, w
        self._widen(found)
        place = self._better_place(C, regularizer, found, primal)
        if place > 0.0:
            self.at, self.back = self.back + place * (w - self.back), nothing()
        elif self.back.size and not primal < self.before:
            self.at = self.back + TRIALS[0] * (w - self.back)
            self.ended = self.primal - self.dual <= ROUNDED * abs(self.primal) or np.array_equal(self.at, self.back)
        else:
            self.before = primal
            return True
        return False

    def _better_place(self, C: float, regularizer: Regularizer, found: Findings, primal: float) -> float:
        """The place on the line where the objective falls much lower than at the point looked at; 0 for none."""
        if not self.back.size:
            return 0.0
        ahead = self.at - self.back
        charged = np.array([regularizer.value(self.back + place * ahead) for place in TRIALS])
        line = charged + C * found.line
        best = int(line.argmin())
        fall = self.before - float(line[best])
        return 0.0 if not fall > 0.0 or self.before - primal >= ENOUGH * fall else TRIALS[best]

    def _widen(self, found: Findings) -> None:
        """Choose the width at which about as many rows as there is room for are undecided, by those counted."""
        self.room = min(self.most / max(float(found.rows[0]), 1.0), 1.0)
        if self.room >= 1.0:
            self.width = np.inf
        counted = found.counts[-1]
        if not counted or not np.isfinite(self.width):
            return
        shares = np.maximum.accumulate(found.counts[:-1]) / counted
        self.crowded = self.crowded + 1 if shares[0] > self.room else 0
        wanted = FILLED * (1.0 - self._drawn()) * self.room
        places = np.log(np.maximum(shares, 0.5 / counted)), np.log(LADDER)
        self.width *= float(np.exp(np.interp(np.log(wanted), *places)))

    def ask_sample(self, share: float) -> Question:
        """What is to be found out for a first point: rows drawn at random, a share of all."""
        return Question(self.at, nothing(), 0.0, 0, min(share, 1.0))

    def posed_sample(self, loss: Loss, C: float, intercept: Intercept, rows: int, memory: float) -> Posed:
        """What is to be solved over a sample that stands for so many rows."""
        return Posed(self.at, loss, C, intercept, 0.0, ROUGH, memory, rows, 0.5 * self.room)

    def start(self, settled: Settled) -> None:
        """Begin at the solution of a sample."""
        self.at, self.width = settled.w, settled.width

    def posed(self, loss: Loss, C: float, intercept: Intercept, tol: float, memory: float) -> Posed:
        """What is to be solved for the point that was looked at."""
        return Posed(self.at, loss, C, intercept, CAREFUL * tol * abs(self.primal), 0.0, memory)

    def learn(self, C: float, regularizer: Regularizer, settled: Settled) -> bool:
        """Choose the next point from a solution; returns whether its dual point is the best so far."""
        sums = Sums(0.0, settled.conjugates, 0.0, regularizer.conjugate(settled.pull))
        dual = objectives(C, sums)[1]
        better = dual > max(self.dual, self.floor)
        if (
            regularizer.intercept.constrained
        ):  # an estimate: the multipliers' sum comes to zero from solution to solution
            dual, better = dual - abs(float(settled.pull[-1] * settled.w[-1])), True
        if better:
            self.dual, self.conjugates, self.charged = dual, settled.conjugates, settled.charged
            self.pull, self.sizes = settled.pull, settled.sizes
        self.back, self.at = self.at, settled.w
        return better

    @property
    def estimate(self) -> float:
        """The relative gap that the passes have seen."""
        return relative(max(self.primal - self.dual, 0.0), self.primal, self.dual)

    def proven(self, facts: Facts) -> Sums:
        """The sums of the certificate of the best points, rounding bounded."""
        found = (self.paid, self.conjugates, np.inf, self.charged, np.inf)
        return summed(facts, found, PointSizes(*self.sizes.tolist()), self.model, self.pull)
