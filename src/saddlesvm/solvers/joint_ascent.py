"""The ascent of a joint machine: the loop over rows, and the two ways in which their variables are stored.

A pass visits the active rows in random order. Each row's block of variables is replaced by its best one, by the steps
of :mod:`saddlesvm.solvers.joint_steps`. A row works on some of its classes: the others sit at their bounds with slopes
that keep them there. A row that has no rival left is set aside.

With few classes, a table holds the variables of every row and class: ten bytes for each of them. With many, that is
more than the rows themselves take. At the optimum a row has variables against few rivals: of 500 classes some ten. So
each row then has a list of classes with their variables, in a pool that all rows share. A row's first visit computes
the scores of all classes, and lists those with variables other than zero and those nearest to becoming so. Later visits
compute the scores of the listed classes only, until all classes come back. A list that outgrows its place moves to the
end of the pool; a full pool is packed anew. (Lists for few classes take 0.7 to 1.9 times as long as the table.)

Source: Keerthi, Sundararajan, Chang, Hsieh and Lin (2008), "A sequential dual method for large scale multi-class
linear SVMs".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.terms import Terms, weight_of
from saddlesvm.rows.class_rows import dots
from saddlesvm.rows.prefetch import prefetch_next
from saddlesvm.runtime.compiled import inlined, kernel, record_of
from saddlesvm.runtime.randomness import make_random, shuffle
from saddlesvm.solvers.base import SAME_SLOPES, Place, State, nothing
from saddlesvm.solvers.joint_steps import Room, Row, renew_block, row_slopes, set_aside

# The sums of a pass, the largest difference of two slopes of a row, and the primal objective (divided by C) that the
# estimate of the gap is relative to: the objective at the last certificate or at the last pass over all rows.
METERS = record_of("residual", "paid", "coupled", "spread", "scale")
LEAST_SCALE = 1e-300  # of the objective
NEAR = 0.25  # of the margin, by which a class that is listed at zero may be behind those with variables
NEAR_CLASSES = 8  # so many of them, and as many again as have variables, are listed at most
SPARE = 0.25  # share of its length by which the place of a list is longer, and a packed pool than its lists
FIRST_LENGTH = 24  # classes of a list, for which a new pool has room
POOL_CLASSES = 16  # times all classes, which a pool has room for besides


class Rows(NamedTuple):
    """The rows of a run.

    Attributes
    ----------
    codes : ndarray of shape (n_all,)
        The class of each row.
    order : ndarray of shape (n,)
        Active rows first.
    random : ndarray of shape (1,), uint64
    counts : ndarray of shape (n_all,)
        How many classes each row still works on.
    room : Room
    shrink : bool
        Whether classes and rows are set aside.
    """

    codes: np.ndarray
    order: np.ndarray
    random: np.ndarray
    counts: np.ndarray
    room: Room
    shrink: bool


class Table(NamedTuple):
    """The variables of all rows and classes, and the class numbers in each row's own order: those it still works on
    first. Both of shape (n_all, K)."""

    alpha: np.ndarray
    classes: np.ndarray


class Pool(NamedTuple):
    """The lists of all rows.

    Attributes
    ----------
    starts : ndarray of shape (n_all,), int64
        Where a row's list begins.
    rooms : ndarray of shape (n_all,), int32
        The length of its place.
    every : ndarray of shape (n_all,), bool
        Whether the next visit is to all classes.
    classes, values : ndarray of shape (size,)
    used : ndarray of shape (1,), int64
        Places given away.
    """

    starts: np.ndarray
    rooms: np.ndarray
    every: np.ndarray
    classes: np.ndarray
    values: np.ndarray
    used: np.ndarray


@inlined
def listed_classes(classes: np.ndarray, count: int, a: np.ndarray, G: np.ndarray, own: int, beta: float) -> int:
    """Bring the classes to list before the others: those with variables, the row's own, and the nearest."""
    kept = 0
    for q in range(count):
        k = classes[q]
        if a[k] != 0.0 or k == own:
            classes[q], classes[kept] = classes[kept], k
            kept += 1
    most = min(count, 2 * kept + NEAR_CLASSES)
    for q in range(kept, count):
        k = classes[q]
        if kept < most and G[k] > beta - NEAR:
            classes[q], classes[kept] = classes[kept], k
            kept += 1
    return kept


@inlined
def load_list(pool: Pool, i: int, count: int, a: np.ndarray, classes: np.ndarray) -> int:
    """Write a row's variables to `a`, and its classes, or all, to `classes`; return how many these are."""
    start = pool.starts[i]
    for q in range(count):
        k = pool.classes[start + q]
        a[k] = pool.values[start + q]
        classes[q] = k
    if not pool.every[i]:
        return count
    for k in range(a.size):
        classes[k] = k
    return a.size


@inlined
def store_list(pool: Pool, row: Row, count: int) -> None:
    """Write the first `count` classes of a row and their variables to its list, and zeros in their place."""
    i, a = row.i, row.a
    if count > pool.rooms[i]:
        room = count + int(SPARE * count) + 1
        pool.starts[i], pool.rooms[i] = pool.used[0], room
        pool.used[0] += room
    start = pool.starts[i]
    for q in range(count):
        k = row.classes[q]
        pool.classes[start + q], pool.values[start + q] = k, a[k]
        a[k] = 0.0
    pool.every[i] = False


@inlined
def visit(terms: Terms, rows: Rows, pool: Pool | None, row: Row, count: int, W: np.ndarray, meters: np.ndarray) -> int:
    """Give the first `count` classes of a row their best variables; return how many the row works on from now on."""
    _, own, _, a, classes = row
    room, m = rows.room, meters[0]
    G = room.G
    dots(terms.X, row.i, W, classes, count, room.z)
    low, high, coupled, residual, paid = row_slopes(terms, row, count, room)
    m.residual += residual
    m.paid += paid
    m.coupled += coupled
    if rows.shrink:
        bar = low
        if pool is not None and not pool.every[row.i]:
            bar -= NEAR
        count = set_aside(classes, count, a, G, own, bar)
    beta = low
    if count > 1 and high - low > SAME_SLOPES:
        m.spread = max(m.spread, high - low)
        beta = renew_block(terms, row, count, W, room)
    if pool is not None:
        if pool.every[row.i]:
            count = listed_classes(classes, a.size, a, G, own, beta)
        store_list(pool, row, count)
    rows.counts[row.i] = count
    return count


@kernel
def ascend(
    terms: Terms, rows: Rows, table: Table | None, pool: Pool | None, W: np.ndarray, place: Place, most: int,
    meters: np.ndarray,
) -> Any:  # fmt: skip
    """Visit rows until the pass ends, `most` scores are computed, or the pool is full.

    The variables are in a table or in a pool; the other one is None, and compiled code knows which. Returns the
    position in the pass, the active rows, the scores computed, the passes that ended (0 or 1), and whether the pool is
    full.
    """
    (codes, order, random, counts, room, _), (position, active) = rows, place
    m, done, left, full = meters[0], 0, 0, False
    if position == 0:
        shuffle(random, order, active)
        m.residual = m.paid = m.coupled = m.spread = 0.0
    while position < active and done < most:
        prefetch_next(terms.X, order, position, active, counts, codes, terms.norms)
        i = order[position]
        own, s, count = codes[i], weight_of(terms.weights, i), counts[i]
        if table is not None:
            row = Row(i, own, s, table.alpha[i], table.classes[i])
            left = visit(terms, rows, pool, row, count, W, meters)
        if pool is not None:
            full = pool.every[i] and pool.used[0] + 2 * room.a.size > pool.values.size
            if full:
                break
            count = load_list(pool, i, count, room.a, room.classes)
            left = visit(terms, rows, pool, Row(i, own, s, room.a, room.classes), count, W, meters)
        done += count
        if left > 1:
            position += 1
        else:
            active -= 1
            order[position], order[active] = order[active], i
    passes = 0
    if position >= active:
        position, passes = 0, 1
    return position, active, done, passes, full


@kernel
def copy_lists(pool: Pool, counts: np.ndarray, starts: np.ndarray, classes: np.ndarray, values: np.ndarray) -> None:
    """Copy all lists, one behind the other, and note where each begins."""
    p = 0
    for i in range(starts.size):
        start, count = pool.starts[i], counts[i]
        starts[i] = p
        for q in range(count):
            classes[p + q], values[p + q] = pool.classes[start + q], pool.values[start + q]
        p += count


@dataclass
class AscentState(State):
    """The state of an ascent; ``w`` holds the weights of all classes in the layout of the rows.

    Attributes
    ----------
    order, random, counts
        As of :class:`Rows`.
    scored : int
        Scores ``x_i . w_k`` computed so far; n K of them are an epoch.
    known, known_at : float
        The last gap over all rows, and its epoch.
    whole : bool
        Whether the current pass goes over all classes of all rows.
    """

    order: np.ndarray = field(default_factory=nothing)
    random: np.ndarray = field(default_factory=nothing)
    counts: np.ndarray = field(default_factory=nothing)
    meters: np.ndarray = field(default_factory=nothing)
    position: int = 0
    scored: int = 0
    known: float = np.inf
    known_at: float = 0.0
    whole: bool = True

    @classmethod
    def of_rows(cls, problem: JointProblem, W: np.ndarray, seed: int, counts: np.ndarray, **own: Any) -> Any:
        """A run over all rows at these weights, which change in place; `own` are fields besides."""
        members = problem.members
        return cls(
            w=W,
            order=members.copy(),
            random=make_random(seed),
            counts=counts,
            meters=np.zeros(1, METERS),
            active=members.size,
            **own,
        )

    @property
    def stored(self) -> tuple[Table | None, Pool | None]:
        """The variables as compiled functions take them."""
        raise NotImplementedError

    def duals(self) -> Any:
        """The dual variables, shape (n_all, K), in an array or a CSR array."""
        raise NotImplementedError

    def visit(self, problem: JointProblem, most: int, shrinking: bool = True) -> tuple[int, int]:
        """Visit rows until the pass ends or `most` scores are computed: the scores, and the passes that ended."""
        K, before = problem.n_classes, self.scored
        rows = Rows(problem.codes, self.order, self.random, self.counts, Room.of(K, self.w.dtype), shrinking)
        passes, full = 0, True
        while full:
            place, left = Place(self.position, self.active), most - (self.scored - before)
            position, active, done, passes, full = ascend(
                problem.terms, rows, *self.stored, self.w, place, left, self.meters
            )
            self.position, self.active = int(position), int(active)  # NumPy's where nothing is compiled
            self.scored += int(done)
            if full:
                self.pack(0)
        self.epochs, self.rows_touched = self.scored / (self.order.size * K), self.scored // K
        return self.scored - before, passes

    def end_pass(self) -> bool:
        """Estimate the relative gap from the sums of the pass that has ended; whether it was over all rows."""
        m, whole, self.whole = self.meters[0], self.whole, False
        if whole:
            m["scale"] = m["paid"] + 0.5 * m["coupled"]
        self.estimate = float(m["residual"] / max(m["scale"], LEAST_SCALE))
        if whole:
            self.known, self.known_at = self.estimate, self.epochs
        return whole

    def pack(self, least: int) -> None:
        """Make room where the variables need more, and for so many classes."""

    def call_back(self) -> None:
        """Make all classes of all rows active again."""
        self.active, self.position, self.whole = self.order.size, 0, True


@dataclass
class TableState(AscentState):
    """The state of an ascent whose variables are in a :class:`Table`."""

    alpha: np.ndarray = field(default_factory=nothing)
    classes: np.ndarray = field(default_factory=nothing)

    @classmethod
    def begun(cls, problem: JointProblem, alpha: np.ndarray, W: np.ndarray, seed: int) -> TableState:
        """A run at these variables and weights, which change in place; all rows and classes are active."""
        n, K = alpha.shape
        classes = np.empty((n, K), dtype=np.int16 if K < 2**15 else np.int32)
        classes[:] = np.arange(K)
        state: TableState = cls.of_rows(problem, W, seed, np.full(n, K, dtype=np.int32), alpha=alpha, classes=classes)
        return state

    @property
    def stored(self) -> tuple[Table | None, Pool | None]:
        return Table(self.alpha, self.classes), None

    def duals(self) -> np.ndarray:
        """The variables, shape (n_all, K): no copy."""
        return self.alpha

    def call_back(self) -> None:
        super().call_back()
        self.counts[:] = self.classes.shape[1]


@dataclass
class ListedState(AscentState):
    """The state of an ascent whose variables are in a :class:`Pool`.

    Attributes
    ----------
    starts, rooms, every, used
        As of :class:`Pool`.
    classes, values : ndarray of shape (size,)
        As of :class:`Pool`.
    n_classes : int
    """

    starts: np.ndarray = field(default_factory=nothing)
    rooms: np.ndarray = field(default_factory=nothing)
    every: np.ndarray = field(default_factory=nothing)
    used: np.ndarray = field(default_factory=nothing)
    classes: np.ndarray = field(default_factory=lambda: np.empty(0))
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_classes: int = 0

    @classmethod
    def begun(cls, problem: JointProblem, alpha: sparse.csr_array, W: np.ndarray, seed: int) -> ListedState:
        """A run at these variables, of shape (n_all, K), and weights; all rows and classes are active."""
        n, K = alpha.shape
        counts = np.diff(alpha.indptr).astype(np.int32)
        state: ListedState = cls.of_rows(
            problem,
            W,
            seed,
            counts,
            starts=alpha.indptr[:-1].astype(np.int64),
            rooms=counts.copy(),
            every=np.ones(n, dtype=bool),
            used=np.array([alpha.nnz]),
            classes=alpha.indices.astype(np.int16 if K < 2**15 else np.int32),
            values=alpha.data.astype(np.float64),
            n_classes=K,
        )
        state.pack(FIRST_LENGTH * n)
        return state

    @property
    def pool(self) -> Pool:
        """The lists as compiled functions take them."""
        return Pool(self.starts, self.rooms, self.every, self.classes, self.values, self.used)

    @property
    def stored(self) -> tuple[Table | None, Pool | None]:
        return None, self.pool

    @property
    def alpha(self) -> np.ndarray:
        """The variables of all lists."""
        return self.values

    def _one_behind_the_other(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the rows' lists begin and end in what follows, their classes, and their variables."""
        ends = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        starts, classes, values = np.empty_like(self.starts), np.empty(ends[-1], np.int32), np.empty(ends[-1])
        copy_lists(self.pool, self.counts, starts, classes, values)
        return ends, classes, values

    def duals(self) -> sparse.csr_array:
        """The variables, shape (n_all, K): a copy."""
        ends, classes, values = self._one_behind_the_other()
        found = sparse.csr_array((values, classes, ends), shape=(self.counts.size, self.n_classes))
        found.eliminate_zeros()
        return found

    def pack(self, least: int) -> None:
        """Move the lists to a new pool, one behind the other, with room for them to grow, and for so many classes."""
        size = max(int((1.0 + SPARE) * int(self.counts.sum())), least) + POOL_CLASSES * self.n_classes
        classes, values = np.empty(size, self.classes.dtype), np.zeros(size)
        copy_lists(self.pool, self.counts, self.starts, classes, values)
        self.rooms, self.used = self.counts.copy(), np.array([int(self.counts.sum())])
        self.classes, self.values = classes, values

    def call_back(self) -> None:
        super().call_back()
        self.every[:] = True
