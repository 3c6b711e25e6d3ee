"""Newton's method where a pass over the rows is dear: every pass evaluates a point and tells what the next step needs.

The steps are those of :mod:`saddlesvm.solvers.newton`. What differs is how rows are asked
(:mod:`saddlesvm.solvers.look`): once for each point, so that a method that reads files or asks the workers of a cluster
makes one pass a step, and proves a bound by each. Nothing of a row is kept: the search along a line knows both of its
ends and no scores between. A method stands between two passes with a question; files (sweeps) and clusters (rounds)
carry it out.

Where there are too many features for a matrix of them, conjugate gradients take a pass for each product. Of several
classes a sample of the rows is taken along in each pass, and conjugate gradients over it find the step in memory,
corrected by what the last steps told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saddlesvm.problem.bounds import Facts, PointSizes, Sums as ProvenSums, primal_of, summed
from saddlesvm.problem.certificate import relative
from saddlesvm.problem.intercepts import shortening
from saddlesvm.rows.files import stacked_rows
from saddlesvm.rows.places import FLOAT64, Memory
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import nothing
from saddlesvm.solvers.equations import AT_EASE
from saddlesvm.solvers.look import Look, Looked
from saddlesvm.solvers.machines import Binary, Softmax, Sums
from saddlesvm.solvers.newton import BlockState, choose_next, needs_step
from saddlesvm.solvers.search import PLACES
from saddlesvm.solvers.second_order.conjugate import ProductsOverPasses
from saddlesvm.solvers.second_order.driver import MATRICES, OverPasses, Setting
from saddlesvm.solvers.taken_rows import Taken
from saddlesvm.solvers.task import FREE, Curvature, Found, Task, add_up

FAR = 0.1  # relative gap above which the places of a line are looked at; guessed
LEAST_BEND = 1e-3  # share of the largest curvature that a step assumes if no row bends; guessed
PATIENCE = 20  # passes without a better bound: shorter steps need some; guessed
DEAR = 100  # products a value of the rows from which on a matrix takes longer than the pass; measured, 40,000 x 300
PER_FEATURE = 500  # rows a feature that tell the matrix at first: a pass costs more than their products


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


def is_wide(width: int, memory: float) -> bool:
    """Return True if the matrices of a run over weights of this length take more than `memory`, in bytes."""
    return MATRICES * 8.0 * width**2 > memory


@dataclass
class NewtonOverPasses(OverPasses):
    """The state of Newton's method over passes between two passes.

    Attributes
    ----------
    n : int
        Number of all rows.
    room : float
        The share of the rows that may be taken along in a pass.
    wide : bool
        There is no room for a matrix of the features.
    free : float
        Value of a free intercept's feature; 0 for other intercepts.
    run : BlockState
        The state of the method.
    found : Found, optional
        What the last pass has found.
    told : Looked, optional
        Its sums.
    inner : ProductsOverPasses
        Conjugate gradients, if there is no room for a matrix.
    gap : float
        The relative gap there, as far as it is known.
    """

    n: int = 0
    room: float = 0.0
    wide: bool = False
    free: float = 0.0
    run: BlockState = field(default_factory=lambda: BlockState(nothing()))
    found: Found | None = None
    told: Looked | None = None
    inner: ProductsOverPasses = field(default_factory=ProductsOverPasses)
    gap: float = np.inf
    asked: Any = None

    @classmethod
    def begin(
        cls, W: np.ndarray, n: int, *, wide: bool = False, room: float = 0.0, free: float = 0.0
    ) -> NewtonOverPasses:
        """A run over n rows that begins at weights of shape (d + 1,) or (d + 1, K).

        Parameters
        ----------
        W : ndarray
        n : int
        wide : bool, default=False
            There is no room for a matrix of the features.
        room : float, default=0.0
            The share of the rows that may be taken along in a pass.
        free : float, default=0.0
            Value of a free intercept's feature; 0 for other intercepts.
        """
        run = BlockState(W, active=n, begun=True)
        run.best.w = W
        return cls(W, model=np.zeros_like(W), n=n, room=room, wide=wide, free=free, run=run)

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
        """Whether rows are taken along: of several classes, for which one matrix does not do."""
        return self.at.ndim > 1

    @property
    def evaluates(self) -> bool:
        """Whether the next pass evaluates a point, and is not for a product alone."""
        return not self.inner.under_way

    def question(self) -> Look:
        """The question of the next pass."""
        if self.inner.under_way:
            assert self.found is not None
            return Look(self.found.W, product=self.inner.direction, alone=True)
        telling = self.telling()
        kind = np.float32 if self.run.fineness == 1.0 else np.float64
        along = self.room if self.takes_along else 0.0
        base = self.run.work.base
        back = nothing()
        if base is not None and self.gap > FAR:
            back = base.W
        product = nothing()
        if self.wide and not self.takes_along:
            product = self.inner.direction if self.inner.direction.size else self.at
        return Look(
            self.at,
            back,
            telling,
            kind,
            product,
            along=along,
            draw=self.passes,
            signs=self.free > 0.0,
        )

    def telling(self) -> float:
        """The share of the rows that tells the matrix; 0 if there is none, or the last one may serve again."""
        if self.wide or self.takes_along:
            return 0.0
        d = self.at.shape[0] - 1
        enough = self.run.fineness * max(PER_FEATURE * (d + 1), AT_EASE * self.n / max(1, d))
        telling = min(1.0, enough / self.n)
        work = self.run.work
        serves = work.equations is not None and work.served
        if serves and self.gap < FAR and telling * d > DEAR:
            return 0.0
        return telling

    def take(self, setting: Setting, found: Looked) -> None:
        """Learn from a pass, and choose the point of the next one.

        If rows are taken along, :meth:`choose` chooses it.
        """
        asked = self.question()
        self.asked = asked
        self.passes += 1
        if self.inner.under_way:
            self.inner.go_on(self.penalty(setting), setting.C * found.product)
            self.step_along_products()
            return
        self.model = self.at
        self.told = found
        task = self.task(setting)
        paid, conjugates = found.sums[:2].tolist()
        sums = Sums(paid, paid, conjugates, 0.0)
        self.found = add_up(task, self.at, nothing(), nothing(), sums, 0.0, found.pulled, True)
        self.gap = relative(max(self.found.primal - self.found.dual, 0.0), self.found.primal, self.found.dual)
        if asked.back.size:
            ends = asked.back
            ahead = self.at - ends
            points = (ends + place * ahead for place in PLACES)
            ridge = task.ridge.reshape(-1, *(1,) * (self.at.ndim - 1))
            charged = np.array([0.5 * float(np.vdot(W, ridge * W)) for W in points])
            self.found.line = primal_of(setting.C, found.line, charged)
        if self.takes_along:
            return
        if self.wide:
            self.begin_products(setting)
        else:
            self.choose(setting)

    def penalty(self, setting: Setting) -> np.ndarray:
        """The diagonal of the regulariser, positive."""
        task = self.task(setting)
        penalty: np.ndarray = np.maximum(task.ridge, task.held)
        return penalty

    def begin_products(self, setting: Setting) -> None:
        """Begin conjugate gradients at the point of the pass, whose next products are a pass each."""
        found, told, run = self.found, self.told, self.run
        assert found is not None
        assert told is not None
        self.active = int(told.bent[1])
        run.active = self.active
        is_due = needs_step(self.task(setting), run, found, setting.tol)
        self.at = run.w
        self.estimate = self.gap if self.free else run.best.relative_gap
        self.ended = run.stuck
        if is_due:
            former = self.inner.direction.size > 0
            product = setting.C * told.product if former else nothing()
            self.inner.begin_at(found.gradient, self.penalty(setting), setting.C * told.diagonal, product)
            run.work.base = found
            self.step_along_products()

    def step_along_products(self) -> None:
        """Take the step, once conjugate gradients have ended."""
        if not self.inner.under_way:
            assert self.found is not None
            run = self.run
            run.w = self.found.W + self.inner.solution
            run.steps += 1
            run.remark = f"Newton step {run.steps}: {self.active} rows bend"
            self.at = run.w

    def task(self, setting: Setting) -> Task:
        """What the method minimises, without rows."""
        ridge = np.ones(self.at.shape[0])
        if self.free:
            ridge[-1] = 0.0
        machine: Any = Binary(setting.loss, nothing(), 1.0)
        if self.at.ndim > 1:
            machine = Softmax(nothing(), 1.0, self.at.shape[1], nothing())
        place: Any = UnreadRows(self.n, self.at.shape[0] - 1)
        task = Task(place, machine, ridge, setting.C, keeps_factor=True, keeps_scores=False)
        task.patience = PATIENCE
        if self.free:
            task.confirm = unproven
        told = self.told
        if self.at.ndim == 1 and told is not None and told.bent[1] == 0.0:
            # Far out, where no row bends, a step assumes that a share of them all did: else it would be far too long.
            most = setting.C * setting.loss.largest_curvature() * told.bent[2] / self.at.size
            task.held = max(FREE, LEAST_BEND * most)
        return task

    def choose(self, setting: Setting, pieces: list[Taken] | None = None) -> None:
        """Choose the point of the next pass, by the sums of the last one and the rows taken along."""
        found, told, run = self.found, self.told, self.run
        assert found is not None
        assert told is not None
        bent = int(told.bent[1])
        if self.takes_along:
            found.curvature = curvature_of_sample(bent, pieces or [], self.at.shape[1])
        else:
            matrix = told.matrix if told.matrix.size else None
            is_coarse = run.fineness == 1.0
            is_whole = self.asked.telling >= 1.0
            found.curvature = Curvature(bent, matrix, is_coarse, None, nothing(), None, is_whole)
        with blas_for(0.0), np.errstate(all="ignore"):
            choose_next(self.task(setting), run, found, setting.tol)
        found.curvature = None
        if self.takes_along and run.work.equations is not None:
            run.work.equations = run.work.equations.without_rows()
        self.at = run.w
        self.active = bent
        self.estimate = self.gap if self.free else run.best.relative_gap
        self.ended = run.stuck

    def ask_balanced(self) -> Look:
        """What a pass with balanced multipliers is to find out, which proves the last point of a free intercept."""
        assert self.told is not None
        return Look(self.model, shorten=shortening(self.told.signed.tolist(), 0.0), signs=True)

    def balanced(self, facts: Facts, found: Looked) -> ProvenSums:
        """The sums of the certificate of that point, from what such a pass has found."""
        paid, conjugates, _, charged, _ = found.sums.tolist()
        sizes = PointSizes(*found.sizes.tolist())
        sums = (paid, conjugates, np.inf, charged, np.inf)
        return summed(facts, sums, sizes, self.model, facts.C * found.pulled)

    def proven(self, facts: Facts) -> ProvenSums:
        """The sums of the certificate of the point that the last pass looked at, rounding bounded."""
        assert self.told is not None
        sums = tuple(self.told.sums.tolist())
        sizes = PointSizes(*self.told.sizes.tolist())
        return summed(facts, sums, sizes, self.model, facts.C * self.told.pulled)


def unproven(point: Found) -> tuple[np.ndarray, float]:
    """No bound: the multipliers have yet to get the sum that a free intercept asks for, in a pass of its own."""
    return point.A, -np.inf


def curvature_of_sample(bent: int, pieces: list[Taken], count: int) -> Curvature:
    """The curvature of several classes as rows tell it that were taken along; `pieces` is used up."""
    if not pieces:
        return Curvature(bent, None, False, None, nothing())
    codes = np.concatenate([one.y for one in pieces]).astype(np.intp)
    weights = np.concatenate([one.weights for one in pieces])
    bends = np.concatenate([one.alpha for one in pieces])
    values = [one.X for one in pieces]
    pieces.clear()
    few = Memory(stacked_rows(values), np.arange(codes.size))
    machine = Softmax(codes, weights, count, nothing())
    return Curvature(bent, None, False, few, bends, machine)
