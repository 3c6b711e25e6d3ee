"""Block minimisation of the dual of a joint machine, for rows that are not in memory.

It goes on as :mod:`saddlesvm.solvers.blocks` does, with K dual variables a row: a block of rows is read, its variables
move by the steps of :mod:`saddlesvm.solvers.crammer_singer` against the shared weights of all classes, and it gives way
to the next one. A sweep's certificate reads nothing.

The rows that the optimum depends on are those with several classes strictly between their bounds. They are kept in
memory as the blocks go by, and beside them, as far as there is room, the rows whose scores are nearest to such a
change. At the end of a sweep the problem over the kept rows, all others fixed, is solved by coordinate ascent and then
by Newton's method (:mod:`saddlesvm.solvers.second_order.joint`). So a handful of sweeps is enough, whatever C is, where
there is room for several times as many rows as end up between their bounds. These are at most about as many as there
are weights. 20,000 x 16 rows, 26 classes, room for 2,400 rows, to 1e-6: 8 sweeps at C = 0.01, 12 at 1 and 12 at 100;
without kept rows, gaps of 8e-5 and 2e-2 after 30 sweeps at C = 0.01 and 1.

Source: Yu, Hsieh, Chang and Lin (2010), "Large linear classification when data cannot fit in memory"; Keerthi,
Sundararajan, Chang, Hsieh and Lin (2008), "A sequential dual method for large scale multi-class linear SVMs".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Certificate, certificate_at
from saddlesvm.problem.crammer_singer import JointProblem, Scores
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.proven_sums import Sums, dual_of, primal_of
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.class_rows import add_combinations
from saddlesvm.rows.files import RowBlock
from saddlesvm.runtime.clock import time_is_up
from saddlesvm.runtime.durable import Workspace
from saddlesvm.runtime.randomness import SEEDS, draw
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import nothing
from saddlesvm.solvers.blocks import KEPT_FALL, Another, Blocks, BlocksState
from saddlesvm.solvers.costs import joint_epoch_cost
from saddlesvm.solvers.joint_ascent import TableState
from saddlesvm.solvers.second_order.joint import JointFinish
from saddlesvm.solvers.sweeps import FILLED, KEPT_BYTES

CLASS_BYTES = 80  # bytes of a kept row for each class: its variables, and what Newton's method needs of it
BINS, FIRST_BIN, PER_OCTAVE = 64, -20, 2  # distances are counted in so many bins, the first at 2**FIRST_BIN
VISITS = 5.0  # visits to a kept row by coordinate ascent, at most, before Newton's method goes on
LEFT = 0.002  # share of the whole gap that the kept rows' own may keep
FEWEST_STEPS, MOST_STEPS = 15, 60  # Newton steps of a sweep that a limit on their cost leaves, and at most
EPOCHS = 20.0  # cost of a sweep's Newton steps, at most, in visits of all rows


@dataclass
class Distances(Workspace):
    """How far the rows of the block at work are from a change of their sub-gradient, at the judged weights."""

    of_rows: np.ndarray = field(default_factory=nothing)


@dataclass
class JointBlocksState(BlocksState):
    """The state of a run; all weights are kept in one row, in the layout of the rows.

    Attributes
    ----------
    w : ndarray of shape (K * (d + 1),), float64
    alpha : ndarray of shape (n_all, K)
    near : ndarray of shape (BINS,)
        How many rows of this sweep are how far from a change of their sub-gradient.
    free_rows : int
        Rows of this sweep with several classes strictly between their bounds.
    distances : Distances
    """

    near: np.ndarray = field(default_factory=lambda: np.zeros(BINS))
    free_rows: int = 0
    distances: Distances = field(default_factory=Distances, repr=False)


@dataclass(frozen=True)
class JointBlocks(Blocks):
    """Block minimisation of the dual of Crammer and Singer's, or the top-k, machine over rows in files.

    Estimators choose this solver for such rows. One epoch is one sweep.

    Parameters
    ----------
    passes, rows : int
        As of :class:`~saddlesvm.solvers.blocks.Blocks`.
    memory : float, default=inf
        Bytes that the matrices of Newton's method may take.
    """

    any_penalty: ClassVar[bool] = False
    state: ClassVar[type[BlocksState]] = JointBlocksState
    kind: ClassVar[type[Problem]] = JointProblem
    memory: float = field(default=np.inf, repr=False)

    def _paid(self, local: JointProblem, state: JointBlocksState, block: RowBlock) -> float:
        """The losses of a block's rows at the judged weights, whose distances are noted."""
        W = local.laid_out(state.judged)
        paid, apart = 0.0, np.empty(block.size)
        with blas_for(0.0):
            for part, own, weights in local.blocks(np.float64):
                scores = part.scores(W)
                paid += float(weights @ local.joint.values(scores, own))
                apart[part.rows] = local.joint.apart(scores, own)
        state.distances.of_rows = apart
        return paid

    def _asks_margins(self, problem: Problem) -> bool:
        """Whether the margins of all rows are computed as they are read: no, their scores are when they are visited."""
        return False

    def _running_weights(self, problem: Problem, alpha: np.ndarray) -> np.ndarray:
        assert isinstance(problem, JointProblem)
        W = dual_weights(problem, alpha) if alpha.any() else np.zeros((alpha.shape[1], problem.n_features + 1))
        return problem.in_layout(W).ravel()

    def _weights(self, problem: JointProblem, flat: np.ndarray) -> np.ndarray:
        return problem.each_class(flat)

    def _certificate(
        self,
        problem: JointProblem,
        model: np.ndarray,
        paid: float,
        alpha: np.ndarray,
        running: tuple[np.ndarray, float] | None = None,
    ) -> Certificate:
        if running is None:
            return certificate_at(Scores(problem, model, paid), alpha, dual_weights(problem, alpha))
        regularizer, (pull, conjugates) = problem.regularizer, running
        sums = Sums(paid, conjugates, regularizer.value(model), regularizer.conjugate(pull))
        return Certificate.of(problem.strength, sums)

    def _conjugates(self, local: JointProblem, alpha: np.ndarray) -> float:
        members = local.members
        return float(local.joint.conjugates(alpha[members], local.codes[members], local.row_weights[members]).sum())

    def _descend(self, local: JointProblem, state: BlocksState, alpha: np.ndarray, another: Another) -> None:
        precise = local.X.dtype == np.float64 or state.fine
        W = local.laid_out(state.w)
        moving, former = (W, alpha) if precise else (W.astype(np.float32), alpha.copy())
        inner = TableState.begun(local, alpha, moving, draw(state.random, SEEDS))
        size = local.members.size * local.n_classes
        gains: list[float] = []
        while inner.active and another(gains, inner.epochs, inner.counts[inner.order[: inner.active]].sum() / size):
            inner.visit(local, size)
            gains.append(float(inner.meters["residual"][0]))
        state.rows_touched += inner.rows_touched
        if not precise:
            former -= alpha
            moved, change = np.flatnonzero(former.any(axis=1)), np.zeros(W.shape)
            add_combinations(local.X, moved, former, change)
            W -= local.C * change

    def _room(self, problem: JointProblem) -> int:
        each = problem.row_bytes + CLASS_BYTES * problem.n_classes
        return int(problem.rooms.kept_bytes / (KEPT_BYTES + each))

    def _worth_keeping(
        self, problem: Any, state: JointBlocksState, block: RowBlock, local: JointProblem, alpha: np.ndarray
    ) -> np.ndarray:
        """The rows with several classes between their bounds, and as many of the nearest as will find room."""
        members, chosen = local.members, np.zeros(block.size, dtype=bool)
        chosen[members] = several_between(local, alpha)[members]
        others = members[~chosen[members]]
        octaves = np.log2(np.maximum(state.distances.of_rows[others], 2.0**FIRST_BIN)) - FIRST_BIN
        places = np.minimum(PER_OCTAVE * octaves, BINS - 1).astype(np.int64)
        state.near += np.bincount(places, minlength=BINS)
        state.free_rows += int(np.count_nonzero(chosen))
        done = (state.position + len(block.chunks)) / state.order.size
        left = FILLED * self._room(problem) * done - state.free_rows
        chosen[others] = np.cumsum(state.near)[places] <= left
        return np.flatnonzero(chosen)

    def _solve_kept(self, problem: Problem, state: BlocksState, local: Any, alpha: np.ndarray) -> None:
        """Coordinate ascent over the kept rows, and Newton's method until their share of the gap is small."""
        primal, dual = self._objectives(problem, state)
        enough = max(LEFT * (primal - dual), 0.1 * state.target * primal)
        residuals: list[float] = []

        def another(gains: list[float], visits: float, active: float) -> bool:
            residuals[:] = gains
            falling = len(gains) < 2 or gains[-1] > KEPT_FALL * gains[0]
            return visits + active <= VISITS and falling

        self._descend(local, state, alpha, another)
        if residuals and problem.C * residuals[-1] > enough:
            self._finish(problem, state, local, alpha, enough)

    def _finish(self, problem: Any, state: BlocksState, local: JointProblem, alpha: np.ndarray, enough: float) -> None:
        """Newton's method for the kept rows; their variables are taken over where they prove more."""
        W = local.each_class(state.w)
        own = np.arange(alpha.shape[0]), local.codes
        before = dual_of(problem.C, -float(alpha[own].sum()), problem.regularizer.conjugate(W))
        finish = JointFinish(local, alpha, fixed=W - dual_weights(local, alpha), memory=self.memory)
        cost, most = 0.0, EPOCHS * joint_epoch_cost(problem)
        while finish.steps < (FEWEST_STEPS if cost > most else MOST_STEPS) and not time_is_up():
            best = finish.best
            if best.primal - best.dual <= enough:
                break
            finish.step(enough / max(abs(best.primal), abs(best.dual)))
            cost += finish.cost
        if finish.best.dual > before:
            alpha[:] = finish.best.alpha
            W[:] = finish.pull

    def _objectives(self, problem: Any, state: BlocksState) -> tuple[float, float]:
        """The primal objective of the weights that this sweep judges, and the dual one, in the C form."""
        C, regularizer = problem.C, problem.regularizer
        primal = primal_of(C, state.paid, regularizer.value(state.judged))
        return primal, dual_of(C, state.conjugates, regularizer.conjugate(state.w))

    def _end_of_sweep(self, problem: Problem, state: BlocksState) -> None:
        assert isinstance(state, JointBlocksState)
        state.remark, state.active = f"{state.free_rows} rows are free", max(state.free_rows, 1)
        state.near, state.free_rows = np.zeros(BINS), 0
        super()._end_of_sweep(problem, state)


def several_between(problem: JointProblem, alpha: np.ndarray) -> np.ndarray:
    """Which rows have two classes or more strictly between their bounds, shape (n,)."""
    rows, own, weights = np.arange(alpha.shape[0]), problem.codes, problem.all_weights
    free = (alpha < 0.0) & (alpha > -problem.joint.most(weights)[:, None])
    free[rows, own] = (alpha[rows, own] > 0.0) & (alpha[rows, own] < weights)
    return np.asarray(free.sum(axis=1) > 1)
