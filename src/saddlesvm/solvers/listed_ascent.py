"""The ascent of a joint machine of many classes, which stores the variables other than zero only.

At the optimum a row has variables against few rivals: of 500 classes some ten. The other state of
:mod:`saddlesvm.solvers.crammer_singer` stores ten bytes for each row and class, which are more than the rows themselves
where classes outnumber features. Here each row has a list of classes with their variables, in a pool that all rows
share. The steps are those of :mod:`saddlesvm.solvers.joint_steps`.

A row's first visit computes the scores of all classes, and lists those with variables other than zero and those nearest
to becoming so. Later visits compute the scores of the listed classes only, until all classes come back. A list that
outgrows its place moves to the end of the pool; a full pool is packed anew.
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
from saddlesvm.runtime.compiled import allocating_kernel, inlined, kernel
from saddlesvm.runtime.durable import demand, growing
from saddlesvm.runtime.randomness import seeded, shuffle
from saddlesvm.solvers.base import SAME_SLOPES, Place, nothing
from saddlesvm.solvers.joint_steps import (
    METERS,
    Room,
    Row,
    Visits,
    renew_block,
    row_slopes,
    set_aside,
)  # fmt: skip

NEAR = 0.25  # of the margin, by which a class that is listed at zero may be behind those with variables
NEAR_CLASSES = 8  # so many of them, and as many again as have variables, are listed at most
SPARE = 0.25  # share of its length by which the place of a list is longer, and a packed pool than its lists
FIRST_LENGTH = 24  # classes of a list, for which a new pool has room
POOL_CLASSES = 16  # times all classes, which a pool has room for besides


class Rows(NamedTuple):
    """The classes of all rows, the rows of a run in their order, the random state, and the number of classes."""

    codes: np.ndarray
    order: np.ndarray
    random: np.ndarray
    n_classes: int


class Pool(NamedTuple):
    """The lists of all rows.

    Attributes
    ----------
    starts : ndarray of shape (n_all,), int64
        Where a row's list begins.
    rooms, counts : ndarray of shape (n_all,), int32
        The length of its place, and of the list.
    every : ndarray of shape (n_all,), bool
        Whether the next visit is to all classes.
    classes, values : ndarray of shape (size,)
    used : ndarray of shape (1,), int64
        Places given away.
    """

    starts: np.ndarray
    rooms: np.ndarray
    counts: np.ndarray
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
def load_list(pool: Pool, i: int, a: np.ndarray, classes: np.ndarray) -> int:
    """Write a row's variables to `a`, and its classes, or all, to `classes`; return how many these are."""
    start, count = pool.starts[i], pool.counts[i]
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
def store_list(pool: Pool, i: int, a: np.ndarray, classes: np.ndarray, count: int) -> None:
    """Write the first `count` classes and their variables to a row's list, and zeros to `a`."""
    if count > pool.rooms[i]:
        room = count + int(SPARE * count) + 1
        pool.starts[i], pool.rooms[i] = pool.used[0], room
        pool.used[0] += room
    start = pool.starts[i]
    for q in range(count):
        k = classes[q]
        pool.classes[start + q], pool.values[start + q] = k, a[k]
        a[k] = 0.0
    pool.counts[i], pool.every[i] = count, False


@allocating_kernel
def ascend_lists(
    terms: Terms,
    rows: Rows,
    pool: Pool,
    W: np.ndarray,
    place: Place,
    most: int,
    meters: np.ndarray,
) -> Any:
    """Visit rows until the pass ends, `most` scores are computed, or the pool is full.

    Returns the position in the pass, the active rows, the scores computed, the passes that ended (0 or 1), and whether
    the pool is full.
    """
    (codes, order, random, K), (position, active) = rows, place
    m, done, full = meters[0], 0, False
    z, G, a, classes = np.empty(K, dtype=W.dtype), np.empty(K), np.zeros(K), np.empty(K, dtype=np.int64)
    room = Room(z, G, np.empty(K), np.empty(K))
    if position == 0:
        shuffle(random, order, active)
        m.residual = m.paid = m.coupled = m.estimate = m.spread = 0.0
    while position < active and done < most:
        prefetch_next(terms.X, order, position, active, pool.counts, codes, terms.norms)
        i = order[position]
        every = pool.every[i]
        if every and pool.used[0] + 2 * K > pool.values.size:
            full = True
            break
        own, s = codes[i], weight_of(terms.weights, i)
        count = load_list(pool, i, a, classes)
        dots(terms.X, i, W, classes, count, z)
        done += count
        row = Row(i, own, s, a, classes)
        low, high, coupled, residual, paid = row_slopes(terms, row, count, room)
        m.residual += residual
        m.paid += paid
        m.coupled += coupled
        count = set_aside(classes, count, a, G, own, low if every else low - NEAR)
        beta = low
        if count > 1 and high - low > SAME_SLOPES:
            m.spread = max(m.spread, high - low)
            beta = renew_block(terms, row, count, W, room)
        if every:
            count = listed_classes(classes, K, a, G, own, beta)
        store_list(pool, i, a, classes, count)
        if count > 1:
            position += 1
        else:
            active -= 1
            order[position], order[active] = order[active], i
    passes = 0
    if position >= active:
        position, passes = 0, 1
        m.estimate = m.residual / max(m.paid + 0.5 * m.coupled, 1e-300)
    return position, active, done, passes, full


@kernel
def copy_lists(pool: Pool, starts: np.ndarray, classes: np.ndarray, values: np.ndarray) -> None:
    """Copy all lists, one behind the other, and note where each begins."""
    p = 0
    for i in range(starts.size):
        start, count = pool.starts[i], pool.counts[i]
        starts[i] = p
        for q in range(count):
            classes[p + q], values[p + q] = pool.classes[start + q], pool.values[start + q]
        p += count


@dataclass
class ListedState(Visits):
    """The state of an ascent with lists; ``w`` holds the weights of all classes in the layout of the rows.

    Attributes
    ----------
    starts, rooms, counts, every, used
        As of :class:`Pool`.
    classes, values : ndarray of shape (size,)
        As of :class:`Pool`.
    n_classes : int
    """

    starts: np.ndarray = field(default_factory=nothing)
    rooms: np.ndarray = field(default_factory=nothing)
    counts: np.ndarray = field(default_factory=nothing)
    every: np.ndarray = field(default_factory=nothing)
    used: np.ndarray = field(default_factory=nothing)
    classes: np.ndarray = growing()
    values: np.ndarray = growing()
    n_classes: int = 0

    @classmethod
    def begun(cls, problem: JointProblem, alpha: sparse.csr_array, W: np.ndarray, seed: int) -> ListedState:
        """A run at these variables, of shape (n_all, K), and weights; all rows and classes are active."""
        n, K = alpha.shape
        counts = np.diff(alpha.indptr).astype(np.int32)
        state = cls(
            w=W,
            starts=alpha.indptr[:-1].astype(np.int64),
            rooms=counts.copy(),
            counts=counts,
            every=np.ones(n, dtype=bool),
            used=np.array([alpha.nnz]),
            classes=alpha.indices.astype(np.int16 if K < 2**15 else np.int32),
            values=alpha.data.astype(np.float64),
            n_classes=K,
            order=problem.members.copy(),
            random=seeded(seed),
            meters=np.zeros(1, METERS),
            active=problem.members.size,
        )
        state.pack(FIRST_LENGTH * n)
        return state

    def check_restored(self, problem: Any) -> None:
        self.check_positions(problem, max(self.active - 1, 0))
        size, lengths = self.values.size, self.rooms.astype(np.int64)
        demand(self.classes.size == size, "its lists of classes and of variables differ in length")
        demand(((self.counts >= 0) & (self.counts <= lengths)).all(), "its counts of classes are out of range")
        demand(((self.starts >= 0) & (self.starts + lengths <= size)).all(), "its lists are out of range")
        demand(0 <= int(self.used[0]) <= size, "its pool is out of range")
        held = self.starts + lengths <= self.used[0]
        demand(held[lengths > 0].all(), "its lists are out of range")
        _, classes, _ = self._one_behind_the_other()
        demand(((classes >= 0) & (classes < self.n_classes)).all(), "its classes of a row are out of range")
        demand(self.n_classes == problem.n_classes, "its number of classes is another")
        rows = np.repeat(np.arange(self.counts.size), self.counts)
        demand(np.unique(rows * self.n_classes + classes).size == rows.size, "its classes of a row are not different")
        begins = self.starts[self.rooms > 0]
        ends = np.sort(begins + lengths[self.rooms > 0])
        demand((np.sort(begins)[1:] >= ends[:-1]).all(), "its lists overlap")

    @property
    def pool(self) -> Pool:
        """The lists as compiled functions take them."""
        return Pool(self.starts, self.rooms, self.counts, self.every, self.classes, self.values, self.used)

    @property
    def alpha(self) -> np.ndarray:
        """The variables of all lists."""
        return self.values

    def _one_behind_the_other(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the rows' lists begin and end in what follows, their classes, and their variables."""
        ends = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        starts, classes, values = np.empty_like(self.starts), np.empty(ends[-1], np.int32), np.empty(ends[-1])
        copy_lists(self.pool, starts, classes, values)
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
        copy_lists(self.pool, self.starts, classes, values)
        self.rooms, self.used = self.counts.copy(), np.array([int(self.counts.sum())])
        self.classes, self.values = classes, values

    def visit(self, problem: JointProblem, most: int, shrinking: bool = True) -> tuple[int, int]:
        """Visit rows until the pass ends or `most` scores are computed: the scores, and the passes that ended."""
        K, before = self.n_classes, self.scored
        rows = Rows(problem.codes, self.order, self.random, K)
        passes, full = 0, True
        while full:
            place = Place(self.position, self.active)
            position, active, done, passes, full = ascend_lists(
                problem.terms, rows, self.pool, self.w, place, most - (self.scored - before), self.meters
            )
            self.position, self.active = int(position), int(active)  # NumPy's where nothing is compiled
            self.scored += int(done)
            if full:
                self.pack(0)
        self.epochs, self.rows_touched = self.scored / (self.order.size * K), self.scored // K
        return self.scored - before, passes

    def call_back(self) -> None:
        """Make all classes of all rows active again."""
        self.active, self.position, self.whole = self.order.size, 0, True
        self.every[:] = True
