"""Newton's method if a pass over the rows is dear: each pass evaluates a point for the next step.

The steps are those of :mod:`saddlesvm.solvers.newton`. The rows are asked once for each point
(:mod:`saddlesvm.solvers.newton_question`), so that a method that reads files or asks the workers
of a cluster makes one pass a step, and proves a bound by each. Nothing of a row is kept: the
search along a line knows both of its ends and no scores between. A method stands between two
passes with a question; files (sweeps) and clusters (rounds) carry it out.

For several classes a sample of the rows is taken along in each pass, and conjugate
gradients over it find the step in memory, corrected by what the last steps told.

If hardly more rows bend than there are features, a step along directions that no such row holds is
far too long, and a shorter step along it is of no use. A loss with corners then goes on with the
active set (:mod:`saddlesvm.solvers.active_set`), see :attr:`NewtonOverPasses.overshoots`; and over
files with Newton's method again where that gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saddlesvm.problem.bounds import (
    LossSums,
    dual_of,
    primal_of,
)
from saddlesvm.problem.certificate import relative
from saddlesvm.problem.intercepts import shortening
from saddlesvm.rows.files import stacked_rows
from saddlesvm.rows.places import FLOAT64, Memory
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import empty_array
from saddlesvm.solvers.equations import ROWS_PER_PASS
from saddlesvm.solvers.machines import Binary, ResponseSums, SoftmaxMachine
from saddlesvm.solvers.newton import NewtonState, choose_next
from saddlesvm.solvers.newton_question import NewtonQuestion, NewtonSums
from saddlesvm.solvers.over_passes import OverPasses, Setting, sizes_of_labels
from saddlesvm.solvers.search import PLACES
from saddlesvm.solvers.taken_rows import TakenRows
from saddlesvm.solvers.task import FREE_RIDGE, EvaluatedPoint, PassCurvature, Task, add_up

FAR = 0.1  # relative gap above which losses at places of a line are asked for; a guess
LEAST_BEND = 1e-3  # share of the largest curvature that a step assumes if no row bends; a guess
PATIENCE = 20  # passes without a better bound: shorter steps need some; a guess
# Products a value of the rows from which on a matrix takes longer than the pass; measured on
# 40,000 x 300.
DEAR = 100
# Rows a feature that tell the matrix at first: a pass costs more than their products; a guess.
PER_FEATURE = 500
# Rows that bend for each unknown, below which a step that goes too far is given up; a guess.
FEW = 3.0


class UnreadRows:
    """Rows that only passes reach: their number and shape.

    Attributes
    ----------
    n, d : int
    kind : dtype
    """

    kind = FLOAT64

    def __init__(self, n: int, d: int) -> None:
        self.n = n
        self.d = d

    def widen(self) -> bool:
        """Return False: passes are in double precision from the first."""
        return False


@dataclass
class NewtonOverPasses(OverPasses):
    """The state of Newton's method between two passes.

    Attributes
    ----------
    n : int
        Number of all rows.
    room : float
        The share of the rows that may be taken along in a pass.
    free : float
        Value of a free intercept's feature; 0 for other intercepts.
    run : NewtonState
        The state of the method.
    point : EvaluatedPoint, optional
        The point that the last pass evaluated.
    sums : NewtonSums, optional
        The sums of that pass.
    gap : float
        The relative gap at that point; an estimate if the intercept is free.
    last_question : NewtonQuestion, optional
        The question of that pass.
    start_bent : int
        The number of rows that bend at the beginning of the last step.
    overshoots : bool
        True if a step went too far from a point at which hardly more rows bend than there are
        features: the active set suits, if the loss has corners.
    at_zero : float
        The objective of zero weights, for several classes.
    proving : bool
        True if the next pass gives the dual variables of the last point, whose gap seems small
        enough, the sum that a free intercept asks for.
    is_last : bool
        True if the active set went before, in vain: the method then goes on to the end.
    """

    n: int = 0
    room: float = 0.0
    free: float = 0.0
    run: NewtonState = field(default_factory=lambda: NewtonState(empty_array()))
    point: EvaluatedPoint | None = None
    sums: NewtonSums | None = None
    gap: float = np.inf
    last_question: NewtonQuestion | None = None
    start_bent: int = 0
    overshoots: bool = False
    at_zero: float = np.inf
    proving: bool = False
    is_last: bool = False

    @classmethod
    def begin(
        cls, W: np.ndarray, n: int, *, room: float = 0.0, free: float = 0.0
    ) -> NewtonOverPasses:
        """Begin a run over n rows at weights of shape (d + 1,) or (d + 1, K)."""
        run = NewtonState(W, active=n, has_begun=True)
        run.best.w = W
        zeros = np.zeros_like(W)
        return cls(W, model=zeros, pull=zeros, n=n, room=room, free=free, run=run)

    @classmethod
    def go_on_from(cls, former: OverPasses, n: int, free: float) -> NewtonOverPasses:
        """Go on from the best weights of the active set, whose passes gain nothing."""
        method = cls.begin(former.model, n, free=free)
        method.keep_best_of(former)
        method.is_last = True
        return method

    def start_at(self, W: np.ndarray) -> None:
        """Begin at these weights instead."""
        self.at = W
        self.run.w = W
        self.run.best.w = W

    @property
    def remark(self) -> str:
        """The step, and the rows that bend."""
        return self.run.remark

    @property
    def takes_along(self) -> bool:
        """True if rows are taken along: for several classes one matrix does not do."""
        return self.at.ndim > 1

    def question(self) -> NewtonQuestion:
        """Return the question of the next pass."""
        if self.proving:
            assert self.point is not None
            assert self.sums is not None
            shorter = shortening(self.sums.signed.tolist(), 0.0)
            return NewtonQuestion(self.point.W, shorten=shorter, signs=True)
        # Losses at places of the line, while the gap is large.
        line_start = empty_array()
        base = self.run.step_start
        if base is not None and self.gap > FAR:
            line_start = base.W
        # The first, coarse steps need no more than a matrix in single precision.
        precision: type = np.float64
        if self.run.fineness == 1.0:
            precision = np.float32
        taken_share = 0.0
        if self.takes_along:
            taken_share = self.room
        return NewtonQuestion(
            self.at,
            line_start=line_start,
            matrix_share=self.share_for_matrix(),
            kind=precision,
            taken_share=taken_share,
            draw_seed=self.passes,
            signs=self.free > 0.0,
        )

    def share_for_matrix(self) -> float:
        """Return the share of the rows for the matrix; 0 if the last one may serve again."""
        if self.takes_along:
            return 0.0
        # As many rows as their products cost no more than the pass, and some for each feature; more
        # as the steps get finer.
        d = self.at.shape[0] - 1
        wanted = max(PER_FEATURE * (d + 1), ROWS_PER_PASS * self.n / max(1, d))
        share = min(1.0, self.run.fineness * wanted / self.n)
        # Near the optimum the last matrix serves again, if a new one takes longer than the pass.
        run = self.run
        may_serve_again = run.equations is not None and run.keeps_equations
        if may_serve_again and self.gap < FAR and share * d > DEAR:
            return 0.0
        return share

    def learn_from_pass(self, setting: Setting, found: NewtonSums) -> None:
        """Learn from a pass, and choose the point of the next one; `found` is used up."""
        asked = self.question()
        self.last_question = asked
        self.passes += 1
        if self.proving:
            self.learn_from_proof(setting, found)
            return
        # Objectives and gradient at the point; the loss is not smoothed, and no scores or dual
        # variables are kept.
        self.sums = found
        task = self.make_task(setting)
        paid, conjugates = found.sums[:2].tolist()
        sums = ResponseSums(losses=paid, smoothed=paid, conjugates=conjugates, pulled_size=0.0)
        self.point = add_up(
            task,
            W=self.at,
            Z=empty_array(),
            A=empty_array(),
            sums=sums,
            fenchel_gap=0.0,
            pulled=found.pulled,
            is_fresh=True,
        )
        gap = max(self.point.primal - self.point.dual, 0.0)
        self.gap = relative(gap, self.point.primal, self.point.dual)
        if asked.line_start.size:
            # The objective at places of the line from the last point: C (losses) + 1/2 W'RW. The
            # ridge is a column if W has one for each class.
            step = self.at - asked.line_start
            points = (asked.line_start + place * step for place in PLACES)
            ridge = task.ridge_of_weights
            charged = np.array([0.5 * float(np.vdot(W, ridge * W)) for W in points])
            self.point.line = primal_of(setting.C, found.line, charged)
        if self.passes == 1 and self.takes_along and not self.point.primal < self.at_zero:
            # Far out, the objective may have no curvature to use: the run begins at zero instead.
            self.start_at(np.zeros_like(self.at))
            return
        self.keep_best(setting, self.point, found)
        self.choose(setting, found.pieces)
        # The multipliers get the sum that a free intercept asks for by a pass of its own.
        if self.free and not self.takes_along and (self.gap <= setting.tol or self.ended):
            self.proving = True
            self.ended = False

    def keep_best(self, setting: Setting, point: EvaluatedPoint, found: NewtonSums) -> None:
        """Keep the point of a pass, and its dual variables unless they lack their sum."""
        if self.takes_along:
            # The softmax hands out no dual variables: the last point is proven by its own sums.
            self.model = self.at
            return
        sums = LossSums(*found.sums.tolist())
        self.keep_weights(point.primal, sums.paid)
        if self.free:
            if self.dual == -np.inf:
                self.sizes = sizes_of_labels(found.sizes)
            return
        is_higher = self.keep_bound(point.dual, setting.C * found.pulled, sums, found.sizes)
        if is_higher and self.model is self.at:
            # Both points belong to this pass, so that the sum of their products is known.
            self.products = sums.products
            self.product_sizes = sums.product_sizes

    def learn_from_proof(self, setting: Setting, found: NewtonSums) -> None:
        """Take over the bound of dual variables that have the sum asked for."""
        self.proving = False
        self.ended = self.run.stuck
        sums = LossSums(*found.sums.tolist())
        pull = setting.C * found.pulled
        dual = dual_of(setting.C, sums.conjugates, setting.regularizer.conjugate(pull))
        self.keep_bound(dual, pull, sums, found.sizes)

    def make_task(self, setting: Setting) -> Task:
        """Return what the method minimises, without rows."""
        ridge = np.ones(self.at.shape[0])
        if self.free:
            ridge[-1] = 0.0
        machine: Binary | SoftmaxMachine = Binary(setting.loss, empty_array(), 1.0)
        if self.takes_along:
            machine = SoftmaxMachine(empty_array(), 1.0, self.at.shape[1], empty_array())
        place: Any = UnreadRows(self.n, self.at.shape[0] - 1)
        task = Task(place, machine, ridge, setting.C, keeps_factor=True, keeps_scores=False)
        task.patience = PATIENCE
        if self.free:
            task.balance = know_no_bound
        sums = self.sums
        if self.takes_along or sums is None:
            return task
        if sums.n_bent == 0 and sums.pulled.any():
            # If no row bends, but some pull, a step assumes that a share of them all bends: else it
            # is far too long.
            task.least_ridge = max(FREE_RIDGE, LEAST_BEND * self.largest_bend(setting, sums))
        return task

    def largest_bend(self, setting: Setting, sums: NewtonSums) -> float:
        """Return the mean diagonal of Newton's matrix if every row bends as much as it can."""
        # C (largest second derivative) sum_i ||x_i||^2 / (d + 1): the trace, for each weight.
        curvature = setting.loss.largest_curvature()
        return setting.C * curvature * sums.squared_norms / self.at.size

    def choose(self, setting: Setting, pieces: list[TakenRows]) -> None:
        """Choose the point of the next pass, by the sums of the last one and rows taken along."""
        point = self.point
        sums = self.sums
        run = self.run
        assert point is not None
        assert sums is not None
        assert self.last_question is not None
        n_bent = sums.n_bent
        if self.takes_along:
            curvature = curvature_of_sample(n_bent, pieces, self.at.shape[1])
        else:
            # Without a matrix of this pass, the equations of an earlier pass serve again.
            curvature = PassCurvature(
                bent=n_bent,
                matrix=sums.matrix if sums.matrix.size else None,
                is_coarse=run.fineness == 1.0,
                few=None,
                bends=empty_array(),
                machine=None,
                is_whole=self.last_question.matrix_share >= 1.0,
            )
        point.curvature = curvature
        base = run.step_start
        with blas_for(0.0), np.errstate(all="ignore"):
            choose_next(self.make_task(setting), run, point, setting.tol)
            if run.step_start is point:
                # A new step begins here.
                self.start_bent = n_bent
            elif base is not None and run.step_start is base:
                # The step went too far: a shorter one is of no use if few rows bend.
                self.overshoots |= self.start_bent < FEW * self.at.size
        point.curvature = None
        if self.takes_along and run.equations is not None:
            run.equations = run.equations.without_rows()
        self.at = run.w
        self.active = n_bent
        self.ended = run.stuck


def know_no_bound(point: EvaluatedPoint) -> tuple[np.ndarray, float]:
    """Return no bound: a pass of its own gives the multipliers the sum that is asked for."""
    return point.A, -np.inf


def curvature_of_sample(bent: int, pieces: list[TakenRows], count: int) -> PassCurvature:
    """Return the curvature of several classes by rows taken along; `pieces` is used up."""
    if not pieces:
        return PassCurvature(bent=bent, matrix=None, is_coarse=False, few=None, bends=empty_array())
    codes = np.concatenate([piece.y for piece in pieces]).astype(np.intp)
    weights = np.concatenate([piece.weights for piece in pieces])
    bends = np.concatenate([piece.alpha for piece in pieces])
    values = [piece.X for piece in pieces]
    pieces.clear()
    few = Memory(stacked_rows(values), np.arange(codes.size))
    machine = SoftmaxMachine(codes, weights, count, empty_array())
    return PassCurvature(
        bent=bent, matrix=None, is_coarse=False, few=few, bends=bends, machine=machine
    )
