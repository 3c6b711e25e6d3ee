"""Block minimisation of the dual, for rows that are not in memory.

The rows are cut into blocks. The solver reads a block at a time and improves its dual variables
against the shared weights by two passes of dual coordinate descent; all other variables stay:

    a_B  <-  (about) argmax_{a_B} D(a_B, a_rest),      w  <-  w + C sum_{i in B} (change of a_i) x_i

A sweep visits all rows once. On the way it computes the sums that certify the weights it began with
(see :mod:`saddlesvm.solvers.sweeps`). The weights are float64. After each block the rows whose
variable changed correct them, so that they equal w(a) but for the last bits, also if coordinate
descent runs in float32.

Unlike the paper, the solver composes the blocks anew in each sweep, from chunks of some megabytes.
With fixed blocks, the optimum's share of each block settles slowly, the more slowly the more rows a
block has and the larger C is. With new blocks, a sweep of k passes over each block does about as
much as k passes over data in memory (20,000 x 20 rows, C = 0.1, 8 blocks of 16 chunks: a gap of
1e-4 in 28 sweeps of one pass and 14 of two, as in memory; a gap of 3e-2 with fixed blocks).

At the end of a sweep, the rows whose dual variable lies strictly inside its bounds are still in
memory, as many as the plan has room for: coordinate descent goes on with them alone, until their
share of the gap is small or they were visited many times. They are the rows that the optimum
depends on, and elsewhere a sweep would move them once or twice (hinge, 60,000 x 60 rows, C = 1, to
a gap of 1e-4: 5 sweeps; without, a gap of 8e-4 after 60).

Source: Yu, Hsieh, Chang and Lin (2010), "Large linear classification when data cannot fit in
memory", algorithms 1 and 2, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from saddlesvm.problem.bounds import LossSums, bound_sums, primal_of
from saddlesvm.problem.certificate import Certificate, Evaluation, JudgedPoint, Point, relative
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import conjugate_sum, dual_weights, loss_sums, margins, sums_at_zero
from saddlesvm.rows.files import BlockReader, RowBlock, stacked_rows
from saddlesvm.rows.layouts import Rows, add_rows
from saddlesvm.runtime.randomness import SEEDS, draw, make_random, shuffle
from saddlesvm.solvers.base import Budget, empty_array, is_fine
from saddlesvm.solvers.curvature import is_bending
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.sweeps import KEPT_BYTES, OverFiles, SweepState, reader_of

# Visits to a row while its block is in memory, at most. Measured: with one, a sweep takes as long,
# and 3 to 14 % more sweeps are needed; with more, only slow disks would gain.
MOST_VISITS = 2.0
KEPT_VISITS = 10.0  # visits to kept rows in a sweep, for each row of all; a guess
KEPT_FALL = 0.02  # fall of the kept rows' gap that ends these visits; a guess
KEPT_SHARE_OF_TARGET = 0.1  # the same as a share of the gap that is asked for; a guess


@dataclass
class Judgement:
    """The findings of the whole sweeps so far.

    Attributes
    ----------
    model : ndarray of shape (d + 1,)
        The best weights that a sweep judged; empty before the first sweep ends.
    primal_paid, bound_conjugates : float
        Sums over all rows of ``s phi`` at these weights, and of ``s phi*(-a / s)`` at the dual
        point of the last sweep.
    bound_w : ndarray of shape (d + 1,)
        The weights of that dual point.
    """

    model: np.ndarray = field(default_factory=lambda: np.empty(0))
    primal_paid: float = 0.0
    bound_conjugates: float = 0.0
    bound_w: np.ndarray = field(default_factory=lambda: np.empty(0))

    def primal(self, problem: Problem) -> float:
        """The objective of the model, in the C form."""
        return primal_of(problem.C, self.primal_paid, problem.regularizer.value(self.model))


@dataclass
class BlocksState(SweepState):
    """The state of a run.

    Attributes
    ----------
    w : ndarray of shape (d + 1,), float64
        The pull ``v(alpha)``, which is w if R is half the squared norm, plus the multiplier of a
        free intercept in its last place.
    alpha : ndarray of shape (n_all,)
        Dual variables.
    order, following : ndarray of shape (n_chunks,)
        The chunks in the order of this sweep, and of the next sweep (drawn when the last block of
        this sweep is due).
    position : int
        Chunks done in this sweep.
    judged : ndarray of shape (d + 1,)
        The weights that this sweep judges: its first weights.
    paid, conjugates : float
        Sums over this sweep's rows so far of ``s phi`` at the judged weights, and of ``s phi*(-a /
        s)``.
    last : Judgement
    kept : ndarray of shape (k,), int64
        The rows kept in this sweep.
    fine : bool
        Whether float32 weights would hide the gap.
    """

    alpha: np.ndarray = field(default_factory=empty_array)
    order: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    following: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    random: np.ndarray = field(default_factory=empty_array)
    offset: np.ndarray = field(default_factory=empty_array)
    judged: np.ndarray = field(default_factory=lambda: np.empty(0))
    paid: float = 0.0
    conjugates: float = 0.0
    last: Judgement = field(default_factory=Judgement)
    kept: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    values: list[Rows] = field(default_factory=list, repr=False)
    position: int = 0
    fine: bool = False
    target: float = 0.0


@dataclass(frozen=True)
class Blocks(OverFiles):
    """Block minimisation of the dual over rows that are read block by block.

    Examples
    --------
    Estimators choose this solver for mapped rows beyond half of `memory`; a name asks for it:

    >>> import tempfile
    >>> from saddlesvm import LinearSVC, Store
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> store = Store.create(tempfile.mkdtemp() + "/notes.store", notes.X, notes.y)
    >>> model = LinearSVC(solver="blocks", C=0.01, tol=1e-3, random_state=0).fit(store)
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "blocks"
    any_penalty: ClassVar[bool] = True

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> BlocksState:
        """Begin at zero, without reading any row, or at the given dual point."""
        self.check_problem(problem)
        alpha = problem.rooms.duals
        if start is None or start.alpha is None:
            alpha[:] = 0.0
        elif start.alpha is not alpha:
            alpha[:] = start.alpha
        w = np.zeros(problem.n_features + 1)
        if alpha.any():
            w = dual_weights(problem, alpha)
        offset = problem.intercept.multiplier(None if start is None else start.w)
        # A free intercept's multiplier is part of the last weight.
        if offset.size:
            w[-1] += offset[0]
        # Blocks are composed anew in each sweep: the chunks in a random order.
        order = np.arange(reader_of(problem).n_chunks, dtype=np.int32)
        random = make_random(seed)
        shuffle(random, order, order.size)
        return BlocksState(
            w=w,
            alpha=alpha,
            order=order,
            random=random,
            offset=offset,
            judged=problem.regularizer.weights(w).copy(),
            active=problem.members.size,
        )

    def step_together(
        self,
        problems: Sequence[Problem],
        states: Sequence[BlocksState],
        budgets: Sequence[Budget],
    ) -> list[BlocksState]:
        """Read one block for several problems, whose runs have one seed and the same progress."""
        # The same seed gives every problem the same chunks.
        reader = reader_of(problems[0])
        due = [self.next_blocks(reader, state) for state in states]
        chunks, then = due[0]
        block = reader.fetch(chunks, then)
        for problem, state, budget in zip(problems, states, budgets, strict=True):
            state.target = budget.relative_gap
            self.visit(problem, state, block)
            state.position += len(chunks)
            if state.position < state.order.size:
                state.epochs += block.X.n_rows / problem.y.size
                continue
            self._improve_kept(problem, state)
            self._end_sweep(problem, state)
        return list(states)

    @staticmethod
    def next_blocks(reader: BlockReader, state: BlocksState) -> tuple[list[int], list[int]]:
        """Return the chunks of the block that is due, and of the one after it.

        The last block prepares the next sweep.
        """
        size = reader.per_block
        count = state.order.size
        stop = min(state.position + size, count)
        now = state.order[state.position : stop].tolist()
        if stop < count:
            return now, state.order[stop : stop + size].tolist()
        # The next sweep's order is drawn now, so that its first block can be read ahead.
        if not state.following.size:
            state.following = state.order.copy()
            shuffle(state.random, state.following, count)
        return now, state.following[:size].tolist()

    def visit(self, problem: Problem, state: BlocksState, block: RowBlock) -> None:
        """Add a block's losses at the judged weights, and improve its dual variables."""
        local = problem.restrict_to_rows(block.X, block.numbers)
        alpha = state.alpha[block.numbers]
        # The losses of the judged weights come first, while the block is in the cache.
        z = margins(local, state.judged)
        paid = loss_sums(local.pointwise, local.members, z, 0.0, np.zeros(alpha.size)).paid
        state.paid += float(paid)
        # a_B <- about argmax D(a_B, a_rest), and w follows.
        self._descend(local, state, alpha, MOST_VISITS)
        state.alpha[block.numbers] = alpha
        state.conjugates += _sum_conjugates(local, alpha)
        _keep_free_rows(problem, state, block, local, alpha)

    def _improve_kept(self, problem: Problem, state: BlocksState) -> None:
        """Descend over the rows kept in this sweep, while all others stand still."""
        kept = state.kept
        if kept.size:
            local = problem.restrict_to_rows(stacked_rows(state.values), kept)
            alpha = state.alpha[kept]
            before = _sum_conjugates(local, alpha)
            # KEPT_VISITS for each row of all, as visits for each kept row.
            most_visits = KEPT_VISITS * problem.members.size / max(local.members.size, 1)
            # Go on until their share of the gap is small.
            enough = KEPT_SHARE_OF_TARGET * state.target
            self._descend(local, state, alpha, most_visits, KEPT_FALL, enough)
            state.alpha[kept] = alpha
            state.conjugates += _sum_conjugates(local, alpha) - before
        state.kept = kept[:0]
        state.values = []

    def _descend(
        self,
        local: Problem,
        state: BlocksState,
        alpha: np.ndarray,
        most_visits: float,
        fall: float = 0.0,
        enough: float = 0.0,
    ) -> None:
        """Do passes of coordinate descent over some rows, whose dual variables are `alpha`.

        They end after so many visits a row, or if a pass gains no more than `enough`, or than this
        share of what the first pass has gained.
        """
        solver = DCD()
        former = alpha.copy()
        inner = solver.init(local, draw(state.random, SEEDS))
        inner.alpha = alpha
        # float32 rows meet float32 weights, as in memory, until the gap is too small for them.
        is_precise = local.X.dtype == np.float64 or state.fine
        inner.w = state.w if is_precise else state.w.astype(np.float32)
        gain = np.inf
        visits = 0
        size = local.members.size
        # One pass after the other over the rows that are still active, if there are any.
        while inner.active and gain > enough and visits + inner.active <= most_visits * size:
            inner = solver.step(local, inner, Budget(inner.active))
            gain = float(inner.estimate)
            if visits == 0:
                enough = max(enough, fall * gain)
            visits = int(inner.rows_touched)
        state.rows_touched += visits
        if not is_precise:
            # The changes of the variables correct the weights in double precision.
            change = np.zeros(state.w.size)
            add_rows(local.X, local.members, alpha - former, change)
            state.w += local.C * change

    def _estimate_sweep(self, problem: Problem, state: BlocksState) -> Evaluation:
        """Return a quick estimate of the model and the dual point of the last whole sweep."""
        last = state.last
        running = (last.bound_w, last.bound_conjugates)
        certificate = certify_sweep(problem, last.model, last.primal_paid, state.alpha, running)
        return Evaluation.from_weights(problem, last.model, state.alpha, certificate, exact=False)

    def _end_sweep(self, problem: Problem, state: BlocksState) -> None:
        """Judge the sweep, move a free intercept's multiplier, and begin the next sweep."""
        found = Judgement(state.judged, state.paid, state.conjugates, state.w.copy())
        last = state.last
        if last.model.size and last.primal(problem) <= found.primal(problem):
            found.model = last.model
            found.primal_paid = last.primal_paid
        state.last = found
        state.paid = 0.0
        state.conjugates = 0.0

        # The gap, in the C form.
        proof = self._estimate_sweep(problem, state).certificate
        gap = max((proof.gap - proof.rounding) / problem.unit, 0.0)
        primal = proof.primal / problem.unit
        if state.offset.size:
            # The multiplier of a free intercept follows the last weight (method of multipliers).
            multiplier = state.w[-1]
            gap += abs(state.offset[0] * (multiplier - state.offset[0]))
            state.w[-1] = 2.0 * multiplier - state.offset[0]
            state.offset[0] = multiplier
        state.estimate = relative(gap, primal, primal - gap)
        state.fine = is_fine(problem, proof)

        state.order = state.following
        state.following = empty_array()
        state.judged = problem.regularizer.weights(state.w).copy()
        state.position = 0
        state.sweeps += 1
        state.epochs = float(state.sweeps)

    def solution(self, problem: Problem, state: BlocksState) -> Point:
        """Return the last iterate, with the certificate of the best weights that a sweep judged."""
        if not state.last.model.size:
            return self.last_point(problem, state)
        last = state.last
        alpha = state.alpha
        judged = self._estimate_sweep(problem, state)

        def prove() -> Certificate:
            return certify_sweep(problem, last.model, last.primal_paid, alpha)

        # The quick estimate decides whether the exact certificate, a pass, is worth its time.
        return JudgedPoint(
            state.w, alpha, True, (judged,), judged=judged, prove=prove, enough=state.target
        )

    def last_point(self, problem: Problem, state: BlocksState) -> Point:
        """Return the last iterate, not the judged weights; its certificate reads all rows."""
        return Point(state.w, state.alpha, tracks=True)

    def learn_from_certificate(
        self, problem: Problem, state: BlocksState, evaluation: Evaluation
    ) -> BlocksState:
        """Take the multiplier of a free intercept over."""
        if state.offset.size:
            moved = evaluation.intercept / problem.scale - state.offset[0]
            state.offset[0] += moved
            state.w[-1] += moved
        return state


def certify_sweep(
    problem: Problem,
    model: np.ndarray,
    paid: float,
    alpha: np.ndarray,
    running: tuple[np.ndarray, float] | None = None,
) -> Certificate:
    """Return the certificate of a model with its sum of losses, and of a dual point.

    Parameters
    ----------
    model : ndarray of shape (d + 1,)
    paid : float
    alpha : ndarray of shape (n_all,)
    running : pair of ndarray of shape (d + 1,) and float, optional
        The running pull of the dual point, and its sum of conjugates: the certificate is then a
        quick estimate. Without them one pass over the rows gives the pull.
    """
    # One pass gives the pull of the present variables; sums over them need no rows.
    if running is None:
        pull = dual_weights(problem, alpha)
        at_zero = sums_at_zero(problem, alpha)
        conjugates = at_zero.conjugates
        charged = at_zero.conjugate_sizes
    else:
        pull, conjugates = running
        charged = abs(conjugates)
    sizes = problem.point_sizes(alpha)
    # Losses and variables belong to different points: no sum of products a_i z_i is known.
    found = LossSums(paid, conjugates, np.inf, charged, np.inf)
    sums = bound_sums(problem.facts, found, sizes, model, pull)
    return Certificate.from_sums(problem.strength, sums)


def _sum_conjugates(local: Problem, alpha: np.ndarray) -> float:
    """Return the sum of the rows' ``s phi*(-a / s)``."""
    return float(conjugate_sum(local.pointwise, local.members, alpha, 1.0))


def _keep_free_rows(
    problem: Problem, state: BlocksState, block: RowBlock, local: Problem, alpha: np.ndarray
) -> None:
    """Keep the rows of a block whose dual variable is inside its bounds, if there is room."""
    # A smooth loss has hardly any variable at a bound: all rows would be kept.
    if is_smooth(local.loss):
        return
    # The members whose dual variable is strictly inside its bounds.
    inside = local.members[is_bending(local, local.members, alpha)]
    room = int(problem.rooms.kept_bytes / (KEPT_BYTES + problem.row_bytes))
    # As many as the room that earlier blocks have left.
    kept = inside[: max(room - state.kept.size, 0)]
    if kept.size:
        state.values.append(block.X.take(kept))
        state.kept = np.concatenate([state.kept, block.numbers[kept]])
