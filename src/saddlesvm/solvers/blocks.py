"""Block minimisation of the dual, for rows that are not in memory.

The rows are cut into blocks. The solver reads a block at a time and improves its dual variables
against the shared weights by one or a few passes of dual coordinate descent; all other variables
stay:

    a_B  <-  (about) argmax_{a_B} D(a_B, a_rest),      w  <-  w + C sum_{i in B} (change of a_i) x_i

A sweep visits all rows once. On the way it computes the sums that certify the weights it began with (see
:mod:`saddlesvm.solvers.sweeps`). The weights are float64. After each block the rows whose variable changed correct
them, so that they equal w(a) but for the last bits, also if coordinate descent runs in float32.

Unlike the paper, the solver composes the blocks anew in each sweep, from chunks of some megabytes. With fixed blocks,
the optimum's share of each block settles slowly, the more slowly the more rows a block has and the larger C is. With
new blocks, a sweep of k passes over each block does about as much as k passes over data in memory (20,000 x 20 rows,
C = 0.1, 8 blocks of 16 chunks: a gap of 1e-4 in 28 sweeps of one pass and 14 of two, as in memory; a gap of 3e-2 with
fixed blocks).

At the end of a sweep, the rows whose dual variable lies strictly inside its bounds are still in memory, as many as the
plan has room for: coordinate descent goes on with them alone, until their share of the gap is small or they were
visited many times. They are the rows that the optimum depends on, and elsewhere a sweep would move them once or twice
(hinge, 60,000 x 60 rows, C = 1, to a gap of 1e-4: 5 sweeps; without, a gap of 8e-4 after 60).

Source: Yu, Hsieh, Chang and Lin (2010), "Large linear classification when data cannot fit in memory", algorithms 1 and
2, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.certificate import Certificate, Evaluation, JudgedPoint, Point, relative
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import conjugate_sum, dual_weights, loss_sums, margins
from saddlesvm.rows.files import RowBlock, stacked_rows
from saddlesvm.rows.layouts import add_rows
from saddlesvm.runtime.randomness import SEEDS, draw, make_random, shuffle
from saddlesvm.solvers.base import Budget, is_fine, nothing
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.smoothed import bending_rows
from saddlesvm.solvers.sweeps import KEPT_BYTES, KeptRows, OverFiles, SweepState, certificate_of_sweep, reader_of

READING = 2.0  # cost of reading a row, in row visits: a guess between fast and slow disks
MOST_VISITS = 2.0  # visits per row, at most, while its block is in memory: with more, only slow disks would gain
KEPT_VISITS, KEPT_FALL = 10.0, 0.02  # visits to kept rows in a sweep, per row of all; fall of their gap that ends them
Another = Callable[[list[float], float, float], bool]  # of the gains so far, visits a row so far and in the next pass


@dataclass
class Judgement:
    """The findings of the whole sweeps so far.

    Attributes
    ----------
    model : ndarray of shape (d + 1,)
        The best weights that a sweep judged; empty before the first sweep ends.
    primal_paid, bound_conjugates : float
        Sums over all rows of ``s phi`` at these weights, and of ``s phi*(-a / s)`` at the dual point of the last sweep.
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
    edges : ndarray of shape (n_chunks + 1,)
        Row numbers at which the chunks begin and end.
    order, following : ndarray of shape (n_chunks,)
        The chunks in the order of this sweep, and of the next sweep (drawn when the last block of
        this sweep is due).
    position : int
        Chunks done in this sweep.
    judged : ndarray of shape (d + 1,)
        The weights that this sweep judges: its first weights.
    paid, conjugates : float
        Sums over this sweep's rows so far of ``s phi`` at the judged weights, and of ``s phi*(-a / s)``.
    last : Judgement
    kept : ndarray of shape (k,), int64
        The rows kept in this sweep.
    norms : ndarray of shape (n_all,)
        The squared norms of the rows read so far, which a new process does not know yet.
    fine : bool
        Whether float32 weights would hide the gap.
    fall : float
        Ratio of a block's residual in its second pass to that in its first, when last measured.
    """

    alpha: np.ndarray = field(default_factory=nothing)
    edges: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    order: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    following: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    random: np.ndarray = field(default_factory=nothing)
    offset: np.ndarray = field(default_factory=nothing)
    judged: np.ndarray = field(default_factory=lambda: np.empty(0))
    paid: float = 0.0
    conjugates: float = 0.0
    last: Judgement = field(default_factory=Judgement)
    kept: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    norms: np.ndarray = field(default_factory=nothing)
    values: KeptRows = field(default_factory=KeptRows, repr=False)
    position: int = 0
    fine: bool = False
    fall: float = 1.0
    target: float = 0.0


@dataclass(frozen=True)
class Blocks(OverFiles):
    """Block minimisation of the dual over rows that are read block by block.

    Parameters
    ----------
    passes : int, default=0
        Passes of coordinate descent over a block while it is in memory; more passes suit slow disks. 0 chooses the
        number, up to two visits per row: another pass follows while its expected gain per visit is above the average
        gain that reading and visiting the block had so far.
    rows : int, default=0
        Rows of a block; 0 for as many as `memory` allows.

    Examples
    --------
    Estimators choose this solver if mapped rows take more than half of `memory`; an object sets its options:

    >>> import tempfile
    >>> from saddlesvm import LinearSVC, Store
    >>> from saddlesvm.solvers import Blocks
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> store = Store.create(tempfile.mkdtemp() + "/notes.store", notes.X, notes.y)
    >>> model = LinearSVC(solver=Blocks(passes=4), C=0.01, tol=1e-3, random_state=0).fit(
    ...     store
    ... )
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "blocks"
    any_penalty: ClassVar[bool] = True
    state: ClassVar[type[BlocksState]] = BlocksState
    passes: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        for option in ("passes", "rows"):
            given = getattr(self, option)
            if not isinstance(given, (int, np.integer)) or given < 0:
                raise ValueError(f"{option} must be a whole number, at least 0; got {given!r}")

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> BlocksState:
        """Begin at zero, without reading any row, or at the given dual point."""
        streamed = self.suited(problem)
        alpha = streamed.rooms.duals
        if start is None or start.alpha is None:
            alpha[:] = 0.0
        elif start.alpha is not alpha:
            alpha[:] = start.alpha
        w = self._running_weights(streamed, alpha)
        offset = problem.intercept.multiplier(None if start is None else start.w)
        if offset.size:
            w[-1] += offset[0]
        state = self.state(w=w, alpha=alpha, random=make_random(seed), offset=offset, active=problem.members.size)
        begin_sweep(streamed, state)
        return state

    def step_together(
        self, problems: Sequence[Problem], states: Sequence[BlocksState], budgets: Sequence[Budget]
    ) -> list[BlocksState]:
        """Read a block for several problems over the same files; their runs have the same seed and progress."""
        streamed = [self.adapted(problem, state) for problem, state in zip(problems, states, strict=True)]
        due = [self.next_blocks(problem, state) for problem, state in zip(streamed, states, strict=True)]
        chunks, then = due[0]  # the same seed gives every problem the same chunks
        reader = reader_of(streamed[0])
        asking = [state for problem, state in zip(streamed, states, strict=True) if self._asks_margins(problem)]
        asking = asking[: reader.judges]
        judged = [state.judged for state in asking]
        first, last = states[0].position == 0, states[0].following.size > 0  # of this sweep
        block = reader.fetch(chunks, [] if first else judged, then, [] if last else judged)
        for state, budget in zip(states, budgets, strict=True):
            state.target = budget.relative_gap
        return [self.visit(problem, state, block) for problem, state in zip(streamed, states, strict=True)]

    def adapted(self, problem: Problem, state: BlocksState) -> Problem:
        """Adapt the state of a resumed run: use the problem's array of dual variables, and its present blocks."""
        streamed = self.suited(problem)
        if state.alpha is not streamed.rooms.duals:
            streamed.rooms.duals[:] = state.alpha
            state.alpha = streamed.rooms.duals
        if state.norms is not streamed.norms:
            streamed.norms[:] = state.norms
            state.norms = streamed.norms
        if not np.array_equal(state.edges, reader_of(streamed).edges):
            begin_sweep(streamed, state)
        if state.values.count != state.kept.size:
            state.values.add(streamed.X.taken(state.kept))
        return streamed

    @staticmethod
    def next_blocks(problem: Problem, state: BlocksState) -> tuple[list[int], list[int]]:
        """The chunks of the block that is due, and of the block after it; the last block prepares the next sweep."""
        size, count = reader_of(problem).per_block, state.order.size
        stop = min(state.position + size, count)
        if stop == count and not state.following.size:
            state.following = state.order.copy()
            shuffle(state.random, state.following, count)
        then = state.following[:size] if stop == count else state.order[stop : stop + size]
        return state.order[state.position : stop].tolist(), then.tolist()

    def visit(self, problem: Problem, state: BlocksState, block: RowBlock) -> BlocksState:
        """Add a block's losses at the judged weights to the sums, and improve its dual variables."""
        local, alpha = problem.of_block(block), block.gather(state.alpha)
        state.paid += self._paid(local, state, block)
        self._descend(local, state, alpha, partial(self._another, state))
        block.scatter(alpha, state.alpha)
        state.conjugates += self._conjugates(local, alpha)
        self._keep(problem, state, block, local, alpha)
        state.position += len(block.chunks)
        if state.position == state.order.size:
            self._improve_kept(problem, state)
            self._end_of_sweep(problem, state)
        else:
            state.epochs += block.size / problem.y.size
        return state

    def _paid(self, local: Any, state: Any, block: RowBlock) -> float:
        """The losses of a block's rows at the judged weights."""
        z = _judged_margins(local, block, state.judged)
        return float(loss_sums(local.pointwise, local.members, z, 0.0, np.zeros(block.size))[0])

    def _conjugates(self, local: Any, alpha: np.ndarray) -> float:
        """The sum of the rows' ``s phi*(-a / s)``."""
        return float(conjugate_sum(local.pointwise, local.members, alpha, 1.0))

    def _worth_keeping(self, problem: Any, state: Any, block: RowBlock, local: Any, alpha: np.ndarray) -> np.ndarray:
        """The rows of a block that are worth keeping: their dual variable is strictly inside its bounds."""
        if is_smooth(local.loss):
            return np.empty(0, dtype=np.int64)
        mask = np.zeros(alpha.size)
        bending_rows(local.pointwise, local.members, alpha, mask)
        return np.flatnonzero(mask)

    def _room(self, problem: Any) -> int:
        """The number of rows that may be kept."""
        return int(problem.rooms.kept_bytes / (KEPT_BYTES + problem.row_bytes))

    def _keep(self, problem: Any, state: BlocksState, block: RowBlock, local: Any, alpha: np.ndarray) -> None:
        """Keep the rows of a block that are worth it, while there is room for them."""
        worth = self._worth_keeping(problem, state, block, local, alpha)
        kept = worth[: max(self._room(problem) - state.kept.size, 0)]
        if kept.size:
            state.values.add(block.X.taken(kept))
            numbers = np.concatenate([np.arange(part.start, part.stop) for part in block.parts])
            state.kept = np.concatenate([state.kept, numbers[kept]])

    def _improve_kept(self, problem: Problem, state: BlocksState) -> None:
        """Passes of coordinate descent over the rows kept in this sweep, with all others fixed."""
        rows, kept = state.kept, state.values
        if rows.size:
            local, alpha = problem.of_rows(stacked_rows(kept.pieces), rows), state.alpha[rows]
            before = self._conjugates(local, alpha)
            self._solve_kept(problem, state, local, alpha)
            state.alpha[rows] = alpha
            state.conjugates += self._conjugates(local, alpha) - before
        state.kept, state.values = rows[:0], KeptRows()

    def _solve_kept(self, problem: Problem, state: BlocksState, local: Any, alpha: np.ndarray) -> None:
        """Improve the kept rows' variables `alpha` until their share of the gap is small, or for many visits."""
        most = KEPT_VISITS * problem.members.size / max(local.members.size, 1)

        def another(gains: list[float], visits: float, active: float) -> bool:
            falling = len(gains) < 2 or gains[-1] > max(KEPT_FALL * gains[0], 0.1 * state.target)
            return visits + active <= most and falling

        self._descend(local, state, alpha, another)

    def _descend(self, local: Any, state: BlocksState, alpha: np.ndarray, another: Another) -> None:
        """Passes of coordinate descent over some rows, whose dual variables are `alpha`, while `another` pays."""
        solver = DCD()
        former = alpha.copy()
        inner = solver.init(local, draw(state.random, SEEDS))
        inner.alpha = alpha
        precise = local.X.dtype == np.float64 or state.fine
        inner.w = state.w if precise else state.w.astype(np.float32)
        gains: list[float] = []
        visits = 0
        size = local.members.size
        while size and another(gains, visits / size, inner.active / size):
            inner = solver.step(local, inner, Budget(inner.active))
            visits = int(inner.rows_touched)
            gains.append(float(inner.estimate))
        state.rows_touched += visits
        if not precise:
            change = np.zeros(state.w.size)
            add_rows(local.X, local.members, alpha - former, change)
            state.w += local.C * change

    def _another(self, state: BlocksState, gains: list[float], visits: float, active: float) -> bool:
        """Whether a further pass over the block pays, judged by the residuals of the passes so far.

        `visits` and `active` are average visits per row, so far and in the next pass. The first block of a sweep has
        two passes, to measure by how much the residual falls.
        """
        done = len(gains)
        if done == 2 and gains[0] > 0.0:
            state.fall = min(1.0, gains[1] / gains[0])
        if self.passes or done == 0:
            return done < max(self.passes, 1)
        if visits + active > MOST_VISITS or gains[-1] <= 0.0:
            return False
        if done == 1 and state.position == 0:
            return True
        fall = state.fall if done == 1 else gains[-1] / max(gains[-2], 1e-300)
        return gains[-1] * min(fall, 1.0) >= sum(gains) / (READING + visits)

    def _judged(self, problem: Any, state: BlocksState) -> Evaluation:
        """A quick estimate of the model and the dual point of the last whole sweep."""
        last = state.last
        model = self._weights(problem, last.model)
        running = self._weights(problem, last.bound_w), last.bound_conjugates
        certificate = self._certificate(problem, model, last.primal_paid, state.alpha, running)
        return Evaluation.of(problem, model, state.alpha, certificate, exact=False)

    def _asks_margins(self, problem: Problem) -> bool:
        """Return True if the margins of all rows are computed as they are read: half of them take part."""
        return 2 * problem.members.size >= problem.y.size

    def _running_weights(self, problem: Problem, alpha: np.ndarray) -> np.ndarray:
        """Return the pull of dual variables as a state keeps it: in a row; zeros are not read."""
        return dual_weights(problem, alpha) if alpha.any() else np.zeros(problem.n_features + 1)

    def _weights(self, problem: Any, flat: np.ndarray) -> np.ndarray:
        """Return weights that a state keeps in a row, in the shape of the model's."""
        return flat

    def _certificate(
        self,
        problem: Any,
        model: np.ndarray,
        paid: float,
        alpha: np.ndarray,
        running: tuple[np.ndarray, float] | None = None,
    ) -> Certificate:
        """The certificate of a judged model; its arguments are as for
        :func:`~saddlesvm.solvers.sweeps.certificate_of_sweep`."""
        return certificate_of_sweep(problem, model, paid, alpha, running)

    def _end_of_sweep(self, problem: Problem, state: BlocksState) -> None:
        """Note what the sweep has proven, move a free intercept's multiplier, and begin the next sweep."""
        found, last = Judgement(state.judged, state.paid, state.conjugates, state.w.copy()), state.last
        if last.model.size and last.primal(problem) <= found.primal(problem):
            found.model, found.primal_paid = last.model, last.primal_paid
        state.last, state.paid, state.conjugates = found, 0.0, 0.0
        proof = self._judged(problem, state).certificate
        gap, primal = max((proof.gap - proof.rounding) / problem.unit, 0.0), proof.primal / problem.unit
        if state.offset.size:
            gap += abs(state.offset[0] * (state.w[-1] - state.offset[0]))
            state.offset[0], state.w[-1] = state.w[-1], 2.0 * state.w[-1] - state.offset[0]
        state.estimate, state.fine = relative(gap, primal, primal - gap), is_fine(problem, proof)
        state.order, state.following = state.following, nothing()
        state.judged = problem.regularizer.weights(state.w).copy()
        state.position, state.sweeps = 0, state.sweeps + 1
        state.epochs = float(state.sweeps)

    def solution(self, problem: Problem, state: BlocksState) -> Point:
        """The last iterate, with the certificate of the best weights that a sweep judged."""
        if not state.last.model.size:
            return self.last_point(problem, state)
        judged, last, alpha = self._judged(self.suited(problem), state), state.last, state.alpha

        def prove() -> Certificate:
            return self._certificate(problem, self._weights(problem, last.model), last.primal_paid, alpha)

        W = self._weights(problem, state.w)
        return JudgedPoint(W, alpha, True, (judged,), judged=judged, prove=prove, enough=state.target)

    def last_point(self, problem: Problem, state: BlocksState) -> Point:
        """The last iterate, whose certificate reads all rows; not the weights that the last sweep judged."""
        return Point(self._weights(self.suited(problem), state.w), state.alpha, tracks=True)

    def certified(self, problem: Problem, state: BlocksState, evaluation: Evaluation) -> BlocksState:
        """Take the multiplier of a free intercept over."""
        if state.offset.size:
            moved = evaluation.intercept / problem.scale - state.offset[0]
            state.offset[0] += moved
            state.w[-1] += moved
        return state


def _judged_margins(local: Problem, block: RowBlock, judged: np.ndarray) -> np.ndarray:
    """The members' margins, shape (n,), at weights that the block was mostly read with."""
    known = block.margins_of(judged)
    if known is None:
        return margins(local, judged)
    return known if known.size == local.members.size else known[local.members]


def begin_sweep(problem: Problem, state: BlocksState) -> BlocksState:
    """Begin a sweep over the present blocks."""
    state.edges = reader_of(problem).edges.copy()
    state.order = np.arange(reader_of(problem).n_chunks, dtype=np.int32)
    shuffle(state.random, state.order, state.order.size)
    state.following, state.position = nothing(), 0
    state.kept, state.values, state.norms = np.empty(0, dtype=np.int64), KeptRows(), problem.norms
    state.judged, state.epochs = problem.regularizer.weights(state.w).copy(), float(state.sweeps)
    state.paid = state.conjugates = 0.0
    return state
