"""Newton's method over passes: from the statistics of one pass over all rows to the next point, wherever the rows are.

The driver has one point at a time and what the rows tell of it (:mod:`saddlesvm.solvers.second_order.row_statistics`):
the objective, the gradient ``Rw - C sum_i a_i x_i``, and the matrix ``R + C sum_i s_i phi_i'' x_i x_i'``. It factors
the matrix, and the next pass looks at the point one full step further. That pass also sums the losses at a few other
places of the line. Where one of them promises a much lower objective, the pass after it looks there instead: the
objective falls with every point that is taken.

The multipliers at any point are dual feasible, and the pass pulls them anew from the rows. So each pass proves a bound
by itself, with the gap ``1/2 ||w - w(a)||^2``.

Where there are thousands of rows to a feature, the matrix of a random share of them is as good: with m rows, each step
near the optimum leaves some ``4 d / m`` of the gap, and sums that took most of a pass take little. The rows drawn may
miss a feature that few rows have: so the matrix is scaled to the diagonal of all rows. Objectives, pulls and
certificates are of all rows anyway.

Where a matrix of all features has no room, conjugate gradients solve the equations, a product with the matrix a pass
(:mod:`saddlesvm.solvers.second_order.conjugate`).

Where the loss' derivative has corners, and some steps have not come near the optimum, the rows about to come to a
corner are taken along in a pass, and the step goes past their corners
(:mod:`saddlesvm.solvers.second_order.corners`).

Source: Keerthi and DeCoste (2005), "A modified finite Newton method for fast solution of large scale linear SVMs", with
places to choose from instead of an exact search.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from saddlesvm.problem.bounds import Facts, PointSizes, Sums, dual_of, primal_of, summed
from saddlesvm.problem.certificate import relative
from saddlesvm.problem.intercepts import shortening
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.solvers.base import nothing
from saddlesvm.solvers.second_order.conjugate import ProductsOverPasses
from saddlesvm.solvers.second_order.corners import Model, Near, Step
from saddlesvm.solvers.second_order.driver import MATRICES, ROUNDED, SIZES, TRIALS, OverPasses, Setting
from saddlesvm.solvers.second_order.equations import FREE_PENALTY
from saddlesvm.solvers.second_order.row_statistics import LOSS_SUMS, Ask, RowStatistics, changes_alone

FAR, NEAR, NEAR_GAP = 500.0, 8000.0, 0.9  # rows per feature whose squares do, and the relative gap that parts the two
WIDE = 32  # features below which their matrix takes no time worth saving
NEAR_FALL, SLOW = 1e-3, 0.1  # relative fall from which on steps fall by that factor, or the matrix of all rows is taken
MOST_DRAWN = 12  # passes before that matrix is taken in any case
EASY, CLOSE = 6, 1e-2  # Newton steps before rows near a corner are taken along, and the relative gap at which none are
ALIKE = 1e-3  # share of a diagonal entry left to its pivot below which sums in single precision are too coarse


def is_wide(width: int, memory: float) -> bool:
    """Whether the matrices of a run over w of this length take more than `memory`, in bytes."""
    return MATRICES * 8.0 * width**2 > memory


@dataclass
class NewtonOverPasses(OverPasses):
    """The state of Newton's method over passes between two passes.

    Attributes
    ----------
    promised : float
        By how much the gradient at `back` lets the objective fall on the way to `at`.
    pull : ndarray of shape (d + 1,) or (0,)
        ``C sum_i a_i x_i`` of the multipliers at `model`, the point of the last pass.
    sums : ndarray of shape (5,) or (0,)
        The sums of its certificate, see :class:`~saddlesvm.solvers.second_order.row_statistics.RowStatistics`.
    sizes : ndarray of shape (SIZES,) or (0,)
        The sizes of its multipliers.
    signed : ndarray of shape (4,) or (0,)
        The sums of its positive and negative multipliers.
    steps : int
        Newton steps.
    changes : bool
        The matrix is kept from pass to pass, and a pass tells how it changes: few rows begin or cease to bend.
    base : ndarray of shape (d + 1,) or (0,)
        The point that `matrix` belongs to.
    matrix : ndarray of shape (d + 1, d + 1) or (0, 0)
        The matrix kept; empty where it is asked for anew.
    precise : bool
        Sums in single precision do not do: the features are too alike.
    share : float
        The share of the rows whose squares are added up.
    wide : bool
        There is no room for a matrix.
    inner : ProductsOverPasses
        The conjugate gradients that take its place.
    room : float
        The share of the rows that may be taken along.
    corners : bool
        Rows near a corner are taken along.
    primal, dual : float
        The objectives at the point that the last pass looked at.
    """

    promised: float = 0.0
    pull: np.ndarray = field(default_factory=lambda: np.empty(0))
    sums: np.ndarray = field(default_factory=lambda: np.empty(0))
    sizes: np.ndarray = field(default_factory=lambda: np.empty(0))
    signed: np.ndarray = field(default_factory=lambda: np.empty(0))
    steps: int = 0
    changes: bool = False
    base: np.ndarray = field(default_factory=lambda: np.empty(0))
    matrix: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    precise: bool = False
    share: float = 1.0
    wide: bool = False
    inner: ProductsOverPasses = field(default_factory=ProductsOverPasses)
    room: float = 0.0
    corners: bool = False
    primal: float = np.inf
    dual: float = -np.inf

    @property
    def remark(self) -> str:
        """The step, and the rows that bend."""
        found = f"Newton step {self.steps}: {self.active} rows bend"
        return f"{found}, product {self.inner.iterations + 1} for the next one" if self.inner.under_way else found

    @property
    def evaluates(self) -> bool:
        """Whether the next pass evaluates a point, and is not for a product alone."""
        return not self.inner.under_way

    @classmethod
    def begin(
        cls, w: np.ndarray, loss: Loss, wide: bool = False, room: float = 0.0, drawn: float = 0.0
    ) -> NewtonOverPasses:
        """A run that begins at these weights.

        Parameters
        ----------
        w : ndarray of shape (d + 1,)
        loss : Loss
        wide : bool, default=False
            There is no room for a matrix.
        room : float, default=0.0
            The share of the rows that may be taken along.
        drawn : float, default=0.0
            The number of rows, where the squares of a share of them may do.
        """
        newton = cls(w, model=np.zeros(w.size), pull=np.zeros(w.size), sums=np.zeros(LOSS_SUMS), sizes=np.zeros(SIZES))
        newton.signed, newton.changes = np.zeros(4), changes_alone(loss) and not wide
        newton.wide, newton.room = wide, room
        if not (newton.changes or wide or w.size <= WIDE):
            while 0.5 * newton.share * drawn >= FAR * w.size:
                newton.share *= 0.5
        return newton

    def question(self) -> Ask:
        """The question for the next pass."""
        if self.wide:
            alone, along = self.inner.under_way, self.inner.direction
            return Ask(self.at, nothing() if alone else self.back, share=0.0, along=along, alone=alone)
        base = None
        if self.base.size:
            base = self.back if np.array_equal(self.base, self.back) else self.base
        near = None
        if self.corners:
            near = Near(self.back if np.array_equal(self.model, self.back) else self.model, self.room)
        return Ask(self.at, self.back, base=base, precise=self.precise, share=self.share, near=near)

    def take(self, setting: Setting, found: RowStatistics) -> Model | None:
        """Learn from a pass, and choose the point of the next one; where rows were taken along, the model to be solved.

        `found` is used up: its matrix may be kept.
        """
        w, (_, C, regularizer, *_) = self.at, setting
        if self.inner.under_way:
            self._solve(regularizer, found)
            return None
        if self.base.size:
            self.matrix += found.matrix
        else:
            whole = self.share >= 1.0 or self.wide
            self.matrix = found.matrix if whole else scaled(found.matrix, found.diagonal)
        self.model, self.pull, self.sums, self.sizes = w, C * found.pull, found.sums, found.sizes
        self.signed = found.signed
        self.active, self.passes = int(found.bent[0]), self.passes + 1
        self.primal = primal = primal_of(C, float(found.sums[0]), regularizer.value(w))
        self.dual = dual_of(C, float(found.sums[1]), regularizer.conjugate(self.pull))
        turned = self.turns_back(C, regularizer, found.line, primal)
        if self.wide and not turned:
            self._solve(regularizer, found)
            return None
        model = Model(w, self.pull, primal, setting)
        self.estimate = relative(max(primal - self.dual, 0.0), primal, self.dual)
        if self.corners or turned:
            self._keep_matrix(w)
            return None if turned else model
        step = model.step(self.matrix)
        dual = primal - step.fall if regularizer.intercept.constrained else self.dual
        self._use_more_rows(found, relative(max(primal - dual, 0.0), primal, dual), step.fall, primal)
        self.learn(setting, step)
        self._keep_matrix(w)
        return None

    def _keep_matrix(self, w: np.ndarray) -> None:
        """Keep the matrix at w where it is found by its change from pass to pass."""
        self.base = w if self.changes and self.matrix.size and not self.corners else nothing()
        if not self.base.size:
            self.matrix = np.empty((0, 0))

    def learn(self, setting: Setting, solved: Step) -> bool:
        """Take a step; the multipliers are those of the point that it leaves."""
        w, primal = self.model, self.primal
        if setting.regularizer.intercept.constrained:  # these multipliers have another sum: the dual is no bound
            self.dual = primal - solved.fall
        self._use_precision(solved.alike)
        self.at, self.back, self.before, self.promised = w + solved.step, w, primal, 2.0 * solved.fall
        self.steps += 1
        self.estimate = relative(max(primal - self.dual, 0.0), primal, self.dual)
        self.corners = self.corners or (self.room > 0.0 and self.steps >= EASY and self.estimate > CLOSE)
        if self.corners:
            self.matrix = np.empty((0, 0))
        return False

    def _solve(self, regularizer: Regularizer, found: RowStatistics) -> None:
        """Begin conjugate gradients at the point of the pass, or go on; once they end, take the step."""
        free, bent = regularizer.intercept.constrained, regularizer.curvature(self.model)
        gradient, penalty = bent * self.model - self.pull, np.maximum(bent, FREE_PENALTY)
        if self.inner.under_way:
            self.passes += 1
            self.inner.go_on(penalty, found.product)
        else:
            self.back, self.before = self.model, self.primal
            bound = relative(max(self.primal - self.dual, 0.0), self.primal, self.dual)
            self.estimate = np.inf if free else bound
            self.inner.begin_at(gradient, penalty, found.diagonal, found.product)
        if self.inner.under_way:
            return
        fall = self.inner.fall(gradient)
        self.at, self.promised = self.back + self.inner.solution, 2.0 * fall
        self.steps += 1
        if free:  # the multipliers have another sum: there is no bound
            self.estimate = relative(fall, self.before, self.before - fall)

    def _use_precision(self, alike: float) -> None:
        """Ask for a precise matrix from now on, where the features are so alike that single precision hides them."""
        if alike < ALIKE and not self.precise:
            self.precise, self.matrix = True, np.empty((0, 0))

    def _use_more_rows(self, found: RowStatistics, gap: float, fall: float, primal: float) -> None:
        """Draw more rows from now on, where few of those drawn bend; or all, where near the end a step gains little."""
        if self.share >= 1.0:
            return
        _, total, squares = found.bent.tolist()
        drawn = self.share * total**2 / squares if squares else 0.0
        wanted, share = (NEAR if gap <= NEAR_GAP else FAR) * self.at.size, self.share
        if 2.0 * drawn < wanted:
            share = min(1.0, share * 2.0 ** np.ceil(np.log2(wanted / max(drawn, 1.0))))
        expected = 0.5 * self.promised
        near = bool(self.back.size) and expected <= NEAR_FALL * abs(primal)
        if (near and fall > SLOW * expected) or self.passes >= MOST_DRAWN:
            share = 1.0
        self.share = share

    def shortened(self) -> None:
        """Expect less of the shorter step; end where rounding hides the fall."""
        self.promised *= TRIALS[0]
        self.ended = not self.promised > ROUNDED * abs(self.before)

    def ask_balanced(self) -> Ask:
        """What a pass with balanced multipliers is to find out, which proves the last point of a free intercept."""
        return Ask(self.model, nothing(), shortening(self.signed.tolist(), 0.0), share=0.0, along=nothing())

    def balanced(self, facts: Facts, found: RowStatistics) -> Sums:
        """The sums of the certificate of that point, from what such a pass has found."""
        paid, conjugates, _, charged, _ = found.sums.tolist()
        point, pull = PointSizes(*found.sizes.tolist()), facts.C * found.pull
        return summed(facts, (paid, conjugates, np.inf, charged, np.inf), point, self.model, pull)

    def proven(self, facts: Facts) -> Sums:
        """The sums of the certificate of the point that the last pass looked at, rounding bounded."""
        sums, sizes = self.sums.tolist(), self.sizes.tolist()
        return summed(facts, tuple(sums), PointSizes(*sizes), self.model, self.pull)


def scaled(matrix: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """A matrix scaled from both sides, in place, so that it has this diagonal."""
    places = np.arange(diagonal.size)
    own = matrix[places, places]
    root = np.sqrt(np.divide(diagonal, own, out=np.zeros(own.size), where=own > 0.0))
    matrix *= root
    matrix *= root[:, None]
    matrix[places, places] = diagonal
    return matrix
