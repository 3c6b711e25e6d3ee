"""Dual coordinate descent with the threads of one fit, which meet many times in a pass.

There are as many parts as threads. The rows are dealt out once, in blocks, and on each part runs a
dual coordinate descent of its own, with its own order and shrinking;
:mod:`saddlesvm.solvers.threaded.rounds` brings the parts together. After each pass the dual
objective is compared with that of the pass before, so that no pass lowers it. The result depends on
the seed and on the number of parts, not on the clock, nor on which thread does what.

When few rows are left active, a pass over them takes less time than the threads' meetings, and
steps on these rows disturb each other most. So one thread goes on alone with them, until all rows
come back.

Measured on two idle cores, 200,000 x 512 float32: 1.38 (squared hinge, C = 1e-3) and 1.23 times
(hinge) as fast as one thread; 1.60 and 1.37 times at C = 1e-2, where Newton's method by blocks
takes less time with one thread (0.8 s of processor time, the descent 1.5 s; squared hinge, relative
gap 1e-3). It gains nothing on 200,000 x 100, and takes 1.17 times as long where other programs use
the cores. Two threads of the BLAS, or over blocks of rows, gained at neither width (26 November
2026, on cores in use).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.base import (
    EPOCH_METERS,
    Budget,
    DualAscent,
    DualState,
    PassPosition,
    nothing,
)
from saddlesvm.solvers.costs import rows_cost
from saddlesvm.solvers.dcd import BEGUN, DCD, Deck, Goal, Iterate, descend
from saddlesvm.solvers.sdca import SDCA
from saddlesvm.solvers.threaded.aggregation import deal_parts, new_scaling
from saddlesvm.solvers.threaded.rounds import (
    CHUNK,
    COUNT,
    NUMBERS,
    SAID,
    STANDING,
    WIDE_VALUES,
    Team,
    descend_together,
)
from saddlesvm.solvers.threaded.shared_phases import apart, new_gate, side_by_side

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# Features that are brought together after every round, if there are many more features.
OFTEN = 128
# Seconds of a pass per thread: in shorter passes the meetings cost what the threads gain.
LEAST_SECONDS = 3.3e-3
# Times per pass that all of w is brought together, at least: with fewer it takes more passes.
WIDEST = 2.0
FEW_VALUES = 2_000_000  # values of active rows per thread below which one thread goes on alone
# Values of all rows per thread, at least, in units of FEW_VALUES, where shrinking soon sets most
# rows aside.
MANY = 8.0
SAMPLE = 65_536  # values that are read to find the frequent features
ROUNDING = {
    4: 1e-5,
    8: 1e-12,
}  # relative rounding error of the dual objective, by the bytes of a value of w


@dataclass
class ThreadsWork:
    """The threads besides the caller's, and the data that all threads share."""

    pool: ThreadPoolExecutor | None = None
    team: Team | None = None


@dataclass
class ParallelState(DualState):
    """The dual state, with the decks of the parts in sequence, and the numbers of each part.

    Attributes
    ----------
    parts : ndarray of shape (n,)
        Rows of the parts.
    bounds : ndarray of shape (threads + 1,)
    positions, actives : ndarray of shape (threads,)
    part_meters : ndarray of shape (threads,)
        Records like :data:`~saddlesvm.solvers.dcd.METERS`.
    randoms : ndarray of shape (threads,)
    scaling : ndarray of shape (1,)
        What the aggregation rule follows.
    numbers : ndarray of shape (1,)
        Rounds done of the present pass, and its estimate.
    alone : bool
        Whether the first thread works alone. It then uses the first place of every array that has a
        place per part, and `order` begins with the active rows of all parts.
    """

    sequence: np.ndarray = field(default_factory=nothing)
    blocks: np.ndarray = field(default_factory=nothing)
    aside: np.ndarray = field(default_factory=nothing)
    parts: np.ndarray = field(default_factory=nothing)
    bounds: np.ndarray = field(default_factory=nothing)
    positions: np.ndarray = field(default_factory=nothing)
    actives: np.ndarray = field(default_factory=nothing)
    part_meters: np.ndarray = field(default_factory=nothing)
    randoms: np.ndarray = field(default_factory=nothing)
    scaling: np.ndarray = field(default_factory=nothing)
    often: np.ndarray = field(default_factory=nothing)
    kept_w: np.ndarray = field(default_factory=nothing)
    kept_alpha: np.ndarray = field(default_factory=nothing)
    numbers: np.ndarray = field(default_factory=nothing)
    alone: bool = False
    work: ThreadsWork = field(default_factory=ThreadsWork, repr=False)


@dataclass(frozen=True)
class ParallelDCD(DualAscent):
    """Dual coordinate descent by several threads.

    Parameters
    ----------
    threads : int, default=2
    shrinking : bool, default=True
        As in :class:`~saddlesvm.solvers.dcd.DCD`.
    """

    name: ClassVar[str] = "dcd"
    threads: int = 2
    shrinking: bool = True

    def __post_init__(self) -> None:
        if not self.threads >= 1:
            raise ValueError(f"threads must be at least 1; got {self.threads!r}")

    @property
    def local(self) -> DCD:
        """The solver of a part."""
        return DCD(shrinking=self.shrinking)

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> ParallelState:
        """Zeros or the given dual point; all rows dealt out."""
        parts = deal_parts(problem.members, self.threads, seed)
        # Each part begins as a run over its rows alone would, with a seed of its own.
        starts = [
            self.local.init(replace(problem, members=part), seed * self.threads + k)
            for k, part in enumerate(parts)
        ]
        order = np.concatenate(parts)
        state = self.begin(
            ParallelState,
            problem,
            seed,
            start,
            order=order,
            random=nothing(),
            meters=np.zeros(1, EPOCH_METERS),
            sequence=order.copy(),
            blocks=np.zeros(
                (self.threads, max(one.blocks.size for one in starts)), dtype=order.dtype
            ),
            aside=np.zeros(problem.y.size, dtype=np.uint8),
            parts=order.copy(),
            bounds=np.concatenate([[0], np.cumsum([part.size for part in parts])]),
            positions=np.zeros(self.threads, dtype=np.int64),
            actives=np.array([part.size for part in parts]),
            part_meters=np.concatenate([one.meters for one in starts]),
            randoms=np.concatenate([one.random for one in starts]),
            scaling=new_scaling(),
            numbers=np.array([(0.0, np.inf)], NUMBERS),
            often=frequent_features(problem),
        )
        state.kept_w, state.kept_alpha = state.w.copy(), state.alpha.copy()
        return state

    def step(self, problem: Problem, state: ParallelState, budget: Budget) -> ParallelState:
        """Do rounds, or passes of a single thread, for about ``budget.rows`` visits.

        The step ends early after a pass whose estimate is low enough.
        """
        # Few active rows do not pay for meetings: one thread goes on alone.
        if (
            not state.alone
            and state.numbers["round"][0] == 0.0
            and state.actives.sum() <= self._few(problem)
        ):
            self._go_alone(state)
        if state.alone:
            self._step_alone(problem, state, budget)
        else:
            self._step_together(problem, state, budget)
        state.epochs = state.rows_touched / state.order.size
        return state

    def _step_together(self, problem: Problem, state: ParallelState, budget: Budget) -> None:
        """Do rounds with all threads, until few rows are active."""
        team = self._team(problem, state)
        rules = self.local.rules(problem)
        gate = new_gate(self.threads)
        # All parts are set to begin with the count of their rows.
        self._set_out(state, team, budget.rows)

        def work(k: int) -> None:
            descend_together(
                problem.terms,
                rules,
                state.alpha,
                budget.relative_gap,
                team,
                state.offset.size,
                gate,
                k,
            )

        assert state.work.pool is not None
        side_by_side(state.work.pool, work, self.threads)
        # The threads have met: what they share is the state of the run again.
        standing = team.standing[:, 0]
        state.positions[:] = standing["position"]
        state.actives[:] = standing["active"]
        state.part_meters[:] = team.meters[:, 0]
        state.randoms[:] = team.randoms[:, 0]
        state.rows_touched += int(standing["done"].sum())
        state.scaling[:] = team.scaling[0, :1]
        state.numbers[:] = team.numbers[0, :1]
        state.offset[:] = team.offsets[-1, : state.offset.size]
        state.w[:] = team.base
        state.active = int(state.actives.sum())
        state.estimate = float(state.numbers["gap"][0])
        self._judge(state)

    @staticmethod
    def _set_out(state: ParallelState, team: Team, visits: int) -> None:
        """Give the team the state of the run, and the visits that all parts together are to do."""
        standing = team.standing[:, 0]
        standing["task"] = COUNT
        standing["left"] = visits
        standing["done"] = 0.0
        standing["position"] = state.positions
        standing["active"] = state.actives
        team.meters[:, 0] = state.part_meters
        team.randoms[:, 0] = state.randoms
        team.scaling[:, 0] = state.scaling
        team.numbers[:, 0] = state.numbers
        team.offsets[:, : state.offset.size] = state.offset
        team.base[:] = state.w
        team.views[:, : state.w.size] = state.w
        team.near[:, : state.often.size] = state.w[state.often]

    def _few(self, problem: Problem) -> int:
        """Active rows up to which one thread goes on alone: never all of them."""
        return min(
            int(self.threads * FEW_VALUES / problem.values_per_row), problem.members.size - 1
        )

    def _go_alone(self, state: ParallelState) -> None:
        """Merge the active rows and the meters of all parts, for the first thread."""
        sizes = zip(state.bounds, state.actives, strict=False)
        active = np.concatenate([state.order[start : start + size] for start, size in sizes])
        state.order[: active.size] = active
        parts = state.part_meters
        meters = state.part_meters[0]
        # The bounds of shrinking are the widest of all parts; the other numbers are sums.
        meters["bound_M"] = parts["bound_M"].max()
        meters["bound_m"] = parts["bound_m"].min()
        meters["scale"] = parts["scale"].sum()
        meters["visits"] = parts["visits"].sum()
        meters["known"] = parts["known"].max()
        meters["known_at"] = state.known_at * state.order.size
        state.positions[0] = 0
        state.actives[0] = active.size
        state.alone = True

    def _step_alone(self, problem: Problem, state: ParallelState, budget: Budget) -> None:
        """Do passes with the first thread, until all rows come back."""
        rules = self.local.rules(problem)
        meters = state.part_meters[:1]
        deck = Deck(
            state.parts,
            state.order,
            state.sequence,
            state.blocks.ravel(),
            state.aside,
            state.randoms[:1],
        )
        iterate = Iterate(state.alpha, state.w, nothing(), state.offset, nothing())
        left = budget.rows
        while left > 0 and state.actives[0] < state.order.size:
            place = PassPosition(int(state.positions[0]), int(state.actives[0]))
            # To the end of the pass, or of the budget.
            rest = int(meters["length"][0] or place.active) - place.position
            goal = Goal(min(left, max(rest, 1)), budget.relative_gap, 0)
            state.positions[0], state.actives[0], done = descend(
                problem.terms, deck, rules, iterate, place, goal, meters
            )
            left -= done
            state.rows_touched += done
            if meters["estimate"][0] <= budget.relative_gap:
                break
        state.active = int(state.actives[0])
        state.estimate = float(meters["estimate"][0])
        if state.active == state.order.size:
            self._call_back(state)

    def _call_back(self, state: ParallelState) -> None:
        """Make all rows of all parts active again; all threads then begin a pass."""
        if state.alone:
            # The sums of the single thread are shared out evenly.
            state.part_meters[:] = state.part_meters[0]
            for name in ("scale", "visits", "known_at"):
                state.part_meters[name] /= self.threads
            state.numbers["gap"] = state.estimate
            state.alone = False
        for name in BEGUN:
            state.part_meters[name] = 0.0
        state.order[:] = state.parts
        state.aside[:] = 0
        state.positions[:] = 0
        state.actives[:] = np.diff(state.bounds)
        state.numbers["round"] = 0.0
        state.active = state.order.size

    @staticmethod
    def _judge(state: ParallelState) -> None:
        """Note the estimate of the last pass over all rows: the weighted mean of the parts'."""
        scales = state.part_meters["scale"]
        known = state.part_meters["known"]
        if np.isfinite(known).all() and scales.sum() > 0.0:
            state.known = float(known @ scales / scales.sum())
            state.known_at = float(state.part_meters["known_at"].sum()) / state.order.size

    def _team(self, problem: Problem, state: ParallelState) -> Team:
        """The shared data of the threads; made anew when w changes its precision."""
        if state.work.pool is None:
            state.work.pool = ThreadPoolExecutor(
                max(1, self.threads - 1), thread_name_prefix="saddlesvm"
            )
        # Views have the precision of w, which may rise from float32 to float64 in a run.
        if state.work.team is None or state.work.team.base.dtype != state.w.dtype:
            state.work.team = self._new_team(problem, state)
        return state.work.team

    def _new_team(self, problem: Problem, state: ParallelState) -> Team:
        """Make the arrays of all parts, which :meth:`_set_out` fills."""
        parts = self.threads
        often = state.often.size
        precision = state.w.dtype

        def for_each(size: int, kind: DTypeLike = precision) -> np.ndarray:
            return apart(np.zeros((parts, size), kind))

        return Team(
            bounds=state.bounds,
            members=state.parts,
            order=state.order,
            sequence=state.sequence,
            runs=state.blocks,
            aside=state.aside,
            randoms=for_each(1, state.randoms.dtype),
            views=for_each(state.w.size),
            near=for_each(often),
            change=for_each(CHUNK),
            meters=for_each(1, state.part_meters.dtype),
            scaling=for_each(1, state.scaling.dtype),
            numbers=for_each(1, NUMBERS),
            standing=for_each(1, STANDING),
            offsets=for_each(state.offset.size, np.float64),
            base=state.w.copy(),
            often=state.often,
            moves=np.stack([for_each(often), for_each(often)]),
            said=for_each(1, SAID),
            kept_w=state.kept_w,
            kept_alpha=state.kept_alpha,
            nothing=nothing(),
            values_per_row=float(problem.values_per_row),
            few=self._few(problem),
            rounding=ROUNDING[precision.itemsize],
        )

    def learn_from_certificate(
        self, problem: Problem, state: ParallelState, evaluation: Evaluation
    ) -> ParallelState:
        """Take the rebuilt weights over; call rows back if the gap comes from those set aside."""
        known = evaluation.certificate.relative_gap
        state.part_meters["known"] = known
        if state.active < state.order.size and known > 2.0 * state.estimate:
            self._call_back(state)
        state = super().learn_from_certificate(problem, state, evaluation)
        state.kept_w = state.kept_w.astype(state.w.dtype, copy=False)
        # A pass that is under way is judged from here on.
        state.kept_w[:] = state.w
        state.kept_alpha[:] = state.alpha
        state.part_meters["scale"] = state.meters["scale"][0] / (1 if state.alone else self.threads)
        return state


def threads_for(problem: Problem, solver: object) -> int:
    """The number of threads that pay for the descent on `problem`."""
    values = problem.members.size * problem.values_per_row
    seconds = problem.reading_time + rows_cost(problem)  # of a pass, at least
    worth = [seconds / LEAST_SECONDS, values / (WIDEST * WIDE_VALUES * (problem.n_features + 1))]
    if solver == DCD() and not problem.is_smooth:
        worth.append(values / (MANY * FEW_VALUES))
    return max(1, int(min(problem.threads, *worth)))


def with_threads(problem: Problem, solver: Any = None) -> Any:
    """The solver as the threads of `problem` can run it; by default dual coordinate descent.

    Threads run dual coordinate descent and ascent with default options. Any other solver is
    returned as it is; so is every solver if threads would not pay.
    """
    solver = DCD() if solver is None else solver
    plain = type(problem) is Problem and problem.is_plain
    fits = problem.threads > 1 and plain and solver in (DCD(), SDCA())
    threads = threads_for(problem, solver) if fits else 1
    return ParallelDCD(threads, shrinking=isinstance(solver, DCD)) if threads > 1 else solver


def frequent_features(problem: Problem) -> np.ndarray:
    """Return the features that threads bring together after every round; empty for all.

    They have the largest sums of squares among a sample of the rows.
    """
    X = problem.X
    if not X.sparse or X.n_features < 2 * OFTEN:
        return np.empty(0, dtype=np.int32)
    # Every so many rows are looked at, so that the sample has about SAMPLE stored values.
    taken = max(1, int(SAMPLE / problem.values_per_row))
    members = problem.members[:: max(1, problem.members.size // taken)]
    starts = X.indptr[members]
    lengths = X.indptr[members + 1] - X.indptr[members]
    # The places of the sample's values among all stored values, row after row.
    places = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    weight = np.bincount(
        X.indices[places], np.square(X.data[places], dtype=np.float64), X.n_features
    )
    # The OFTEN heaviest features, and the virtual one, which every row has.
    chosen = np.argpartition(weight, -OFTEN)[-OFTEN:]
    return np.append(np.sort(chosen), [X.n_features] if X.bias else []).astype(np.int32)
