"""Block decomposition of the dual: a large working set at a time, its kernel rows computed in one
product.

With ``beta = C a`` and ``f = K beta`` the negated dual of a hinge-like loss is the quadratic
program

    min  (1/2) beta' K beta - y' beta + t sum_i |beta_i|     low <= beta <= high

with gradient ``g = f - y`` beside the absolute values, which only a loss with a tube has.
A free intercept adds ``sum_i beta_i = 0``; other machines give other sums, a sum for each group of
rows.

Up to some thousand rows, whose kernel matrix fits into memory, are a single working set on a table
of their kernel rows. More rows are decomposed: a step chooses the most violating rows, both among
those in the cache and among the others, computes the missing kernel rows in one block, solves the
small problem over the chosen rows on its own kernel matrix, and updates f with a product.

* No intercept: a coordinate at a time, with the largest gain
  (Shalev-Shwartz and Zhang 2013, "Stochastic dual coordinate ascent", section 2, with greedy
  instead of random choice).
* Free intercept: two of a group at a time, along the sum that stays: sequential minimal
  optimisation with the second-order choice of Fan, Chen and Lin (2005), WSS 2.

If all rows are a single working set and pair steps have done as much work as it takes, a linear
problem over a factor of the kernel matrix shows which rows are within their bounds, and equations
solve for these (:mod:`saddlesvm.kernel.linear_finish`). The point stays a point of the dual.

The outer scheme is Joachims (1999), "Making large-scale SVM learning practical": decomposition,
caching and shrinking of rows that stay outside the margin. Large working sets on a dense block are
from Wen and others (2018), "ThunderSVM".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from saddlesvm.kernel.ascent_state import (
    PAIR,
    KernelState,
    dual_slopes,
    empty_cache,
    find_contenders,
    find_movable,
    find_violating,
    first_state,
    measure,
    take_margins,
)
from saddlesvm.kernel.kernel_certificate import KernelEvaluation
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.kernel.linear_finish import can_finish, linear_dual, solve_free_rows, work_of
from saddlesvm.kernel.pair_ascent import (
    QuadraticProgram,
    add_kernel_rows,
    ascend_pairs,
    ascend_singly,
    program_over,
    submatrix,
)  # fmt: skip
from saddlesvm.kernel.row_blocks import BYTES
from saddlesvm.kernel.row_table import ABSENT, NEEDED, RowTable
from saddlesvm.problem.certificate import Evaluation, KernelPoint
from saddlesvm.runtime.clock import clock
from saddlesvm.solvers.base import Budget, SolverBase

# Violation to leave inside a working set, relative to the violation outside (tried)
INNER_ACCURACY = 0.1
INNER_STEPS = 100_000  # steps on a working set, at most
# Slopes updated by steps over all rows, between two estimates of the gap: some ms
WHOLE_UPDATES = 2_000_000
# Share of the rows at work that must stay if shrinking is to be worth its copy (guessed)
SHRINK_BELOW = 0.7
# Relative gap below which the margins say something about the rows outside (guessed)
SHRINK_GAP = 0.5
AHEAD = 32  # kernel rows computed at once for a table, for each direction of steps (tried)
FEW_VALUES = 32  # values of a row, up to which its kernel row is cheap beside a step
MORE_ROWS = 2  # factor of the rows in a block if rows have few values (tried)
# Violation that usually proves a relative gap, divided by that gap, if margins are about 1 (seen)
USUAL = 2.0
# Relative gap of the linear problem: it then shows which rows are within their bounds
FINISH_GAP = 1e-9
WHOLE_ACCURACY = 1e-11  # least violation asked for inside a working set that is the whole problem


@dataclass(frozen=True)
class Decomposition(SolverBase):
    """Block decomposition: greedy dual ascent over large working sets of rows.

    Parameters
    ----------
    block : int, default=256
        Largest number of kernel rows that a step computes; twice as many for rows of at most 32
        values, whose kernel rows are cheap.
    working_set : int, default=2048
        Largest number of rows that a step changes, including rows whose kernel rows are in the
        cache. It grows with the support vectors within their bounds, up to a set whose kernel
        matrix takes the memory of the cache. Up to 4,096 rows whose kernel matrix fits into the
        cache are a single working set.
    shrinking : bool, default=True
        Skip rows that stay outside the margin, until the certificate is computed.
    """

    name: ClassVar[str] = "decomposition"

    block: int = 256
    working_set: int = 2048
    shrinking: bool = True

    def __post_init__(self) -> None:
        """A step needs a pair of rows at least."""
        if self.block < 2 or self.working_set < 2:
            raise ValueError(
                f"block and working_set must be at least 2; got {self.block} and {self.working_set}"
            )

    def init(
        self, problem: KernelProblem, seed: int, start: KernelPoint | None = None
    ) -> KernelState:
        """The state at `start`, made feasible, or at a first point."""
        state = first_state(problem, start, seed)
        if problem.table is None:
            measure(problem, state)
        return state

    def step(self, problem: KernelProblem, state: KernelState, budget: Budget) -> KernelState:
        """Solve working sets until `budget.rows` rows were visited, or the gap seems small."""
        allowed_visits = state.rows_touched + budget.rows
        deadline = clock() + budget.seconds
        while True:
            # A table: a step works on all rows. A cache: on a working set of the rows that are not
            # set aside.
            if problem.table is not None:
                self.improve_table(problem, state, budget.relative_gap)
            else:
                if self.shrinking:
                    shrink(problem, state)
                self.improve(problem, state)
            if (
                state.estimate <= budget.relative_gap
                or state.rows_touched >= allowed_visits
                or clock() >= deadline
            ):
                return state

    def improve_table(
        self, problem: KernelProblem, state: KernelState, relative_gap: float
    ) -> None:
        """Improve a problem that holds a table: by the linear problem if due, else by steps."""
        # The linear problem is solved once, when the steps have cost as much as it will.
        is_due = state.finishes == 0 and state.inner_steps > work_of(problem)
        if is_due and can_finish(problem):
            self.finish(problem, state, relative_gap)
            return
        self.improve_all(problem, state, relative_gap)
        if self.shrinking and state.estimate > relative_gap and problem.views is None:
            self.improve_active(problem, state)

    def improve_all(self, problem: KernelProblem, state: KernelState, relative_gap: float) -> None:
        """Take steps over all rows as a single working set."""
        # Order the rows group by group.
        order = problem.group_order
        starts = np.searchsorted(problem.group_of[order], np.arange(len(problem.all_groups) + 1))
        beta = state.beta[order]
        y = problem.y[order]
        # The gradient g = f - y of the quadratic program.
        g = state.f[order] - y
        program = whole_program(problem, state, order, starts)
        ascend = ascend_pairs if problem.intercept.constrained else ascend_singly
        # End at the violation that usually proves the gap; if that was not enough, at a tenth of
        # the violation before.
        accuracy = max(WHOLE_ACCURACY, min(INNER_ACCURACY * state.violation, USUAL * relative_gap))
        # A step updates n slopes.
        most_steps = WHOLE_UPDATES // problem.n
        # Steps stop at a kernel row that compiled code cannot compute: compute it, and go on.
        state.inner_steps += ascend(program, g, beta, accuracy, most_steps)
        while program.table.marks[NEEDED] >= 0:
            compute_rows(problem, program, g, beta)
            state.inner_steps += ascend(program, g, beta, accuracy, most_steps)
        # Bring beta and f = g + y back into the order of the problem.
        new_beta = state.beta.copy()
        f = state.f.copy()
        new_beta[order] = beta
        f[order] = g + y
        state.rows_touched += problem.n
        state.epochs = state.rows_touched / problem.n
        state.held = table_of(problem).evaluations
        # Take the point unless its gap is not finite.
        self.move_if_better(problem, state, new_beta, f, np.inf)
        if state.finishes:
            self.solve_free(problem, state, state.beta)

    def improve_active(self, problem: KernelProblem, state: KernelState) -> None:
        """Improve the rows whose kernel rows are held and which a violating pair may contain."""
        held = table_of(problem)
        active = np.flatnonzero(find_contenders(problem, state) & (held.slots >= 0))
        if active.size == 0 or active.size > SHRINK_BELOW * problem.n:
            return
        before = state.beta[active]
        slots = held.slots[active]
        state.beta[active] = self.solve_set(problem, state, active, held.values, slots, active)
        # The other rows' f follows from the coefficients that moved.
        delta = state.beta[active] - before
        moved = np.flatnonzero(delta)
        state.f += held.sums(active[moved], delta[moved])
        measure(problem, state)

    def solve_set(
        self,
        problem: KernelProblem,
        state: KernelState,
        rows: np.ndarray,
        table: np.ndarray,
        slots: np.ndarray,
        columns: np.ndarray,
    ) -> np.ndarray:
        """Return the best coefficients of a working set, shape (m,), with all others as they are.

        Parameters
        ----------
        rows : int ndarray of shape (m,)
            Group by group.
        table : ndarray
            Kernel rows by slot.
        slots, columns : int ndarray of shape (m,)
            The slot of each row's kernel row, and the column of the row in it.
        """
        beta = state.beta[rows]
        # All other rows act through the gradient g = f - y alone.
        g = state.f[rows] - problem.y[rows]
        starts = np.searchsorted(problem.group_of[rows], np.arange(len(problem.all_groups) + 1))
        box = (state.low[rows], state.high[rows])
        program = program_over(submatrix(table, slots, columns), box, problem.tube, starts)
        ascend = ascend_pairs if problem.intercept.constrained else ascend_singly
        # Rows of a table: no more work than steps over all rows, so that the linear problem is not
        # put off.
        most_steps = INNER_STEPS
        if problem.table is not None:
            most_steps = WHOLE_UPDATES // rows.size
        accuracy = INNER_ACCURACY * state.violation
        state.inner_steps += ascend(program, g, beta, accuracy, most_steps)
        return beta

    def finish(self, problem: KernelProblem, state: KernelState, relative_gap: float) -> None:
        """Solve the linear problem, and take its point if it is better than the steps' point."""
        state.finishes += 1
        state.rows_touched += problem.n
        state.epochs = state.rows_touched / problem.n
        candidate = linear_dual(problem, min(FINISH_GAP, relative_gap))
        if candidate is not None and self.solve_free(problem, state, candidate):
            state.remark = "a linear problem over a factor of the kernel matrix"

    def solve_free(self, problem: KernelProblem, state: KernelState, beta: np.ndarray) -> bool:
        """Solve for the rows strictly inside their bounds; move there if it is better."""
        solved = solve_free_rows(problem, beta)
        return self.move_if_better(problem, state, solved, problem.margins(solved), state.estimate)

    def move_if_better(
        self,
        problem: KernelProblem,
        state: KernelState,
        beta: np.ndarray,
        f: np.ndarray,
        below: float,
    ) -> bool:
        """Move to a point if its relative gap is below a bound; return True if it is."""
        # With huge kernel values rounding drives the steps: the gap may be infinite or NaN, which
        # is never below the bound.
        before = (state.beta, state.f)
        state.beta = beta
        state.f = f
        measure(problem, state)
        is_better = state.estimate < below
        if not is_better:
            state.beta, state.f = before
            measure(problem, state)
        return is_better

    def improve(self, problem: KernelProblem, state: KernelState) -> None:
        """Choose a working set, compute its missing kernel rows, solve it, and update f."""
        # In ascending order, so that the gathering of their matrix reads the kernel rows in order.
        chosen = np.sort(self.choose_working_set(problem, state))
        if problem.groups:
            chosen = chosen[np.argsort(problem.group_of[state.at_work[chosen]], kind="stable")]
        slots = state.rows.fetch(chosen)
        table = state.rows.table
        rows = state.at_work[chosen]
        beta = self.solve_set(problem, state, rows, table, slots, chosen)
        # f += K delta, by the kernel rows of the coefficients that moved.
        delta = beta - state.beta[rows]
        moved = np.flatnonzero(delta)
        f = state.f[state.at_work]
        add_kernel_rows(table, slots[moved], delta[moved], f)
        state.f[state.at_work] = f
        state.beta[rows] = beta
        state.rows_touched += rows.size
        state.epochs = state.rows_touched / problem.n
        measure(problem, state)

    def choose_working_set(self, problem: KernelProblem, state: KernelState) -> np.ndarray:
        """Return positions of the rows to change: at most `block` outside the cache."""
        # Free support vectors depend on each other: a set without some of them takes many more
        # steps. The matrix of the set, in float32, may take as much memory as the cache.
        is_free = (state.beta > state.low) & (state.beta < state.high) & (state.beta != 0.0)
        most_in_memory = math.isqrt(int(problem.cache_size * 2**20 / BYTES))
        wanted = max(self.working_set, min(int(np.count_nonzero(is_free)), most_in_memory))
        most = min(wanted, state.rows.capacity)
        block = self.block
        if problem.values_per_row <= FEW_VALUES:
            block = MORE_ROWS * self.block
        block = max(2, min(block, most // 2))
        # At zero all rows of a class look alike.
        if not (state.beta.any() or problem.is_regression):
            return self.first_working_set(problem, state, min(block, most // 2))
        rise, fall = violation_scores(problem, state)
        parts = [
            np.flatnonzero(problem.group_of[state.at_work] == k)
            for k in range(len(problem.all_groups))
        ]
        # A cache without room for two pairs of each group: the most violating pair only.
        if most < 2 * PAIR * len(parts):
            part = parts[int(np.argmax(np.ptp(state.steepest, axis=1)))]
            return np.unique([part[rise[part].argmax()], part[fall[part].argmax()]])
        # The most violating new rows, whose kernel rows cost time, and as many held rows as there
        # is room for.
        held = state.rows.slot >= 0
        new = []
        old = []
        for part in parts:
            new.append(pick_violating(rise, fall, part[~held[part]], block // len(parts)))
            old.append(
                pick_violating(rise, fall, part[held[part]], most // len(parts) - new[-1].size)
            )
        return np.concatenate([*new, *old])

    def first_working_set(
        self, problem: KernelProblem, state: KernelState, block: int
    ) -> np.ndarray:
        """Return `block` random rows of each class."""
        y = problem.y[state.at_work]
        random = np.random.RandomState(state.random[0])
        sides = [np.flatnonzero(y > 0.0), np.flatnonzero(y < 0.0)]
        return np.concatenate([random.permutation(side)[:block] for side in sides])

    def solution(self, problem: KernelProblem, state: KernelState) -> KernelPoint:
        """The last iterate, which is dual feasible."""
        return KernelPoint(state.beta.copy())

    def learn_from_certificate(
        self, problem: KernelProblem, state: KernelState, evaluation: Evaluation
    ) -> KernelState:
        """Take the certificate's f in float64; use all rows again if a row set aside violates."""
        assert isinstance(evaluation, KernelEvaluation)
        take_margins(problem, state, evaluation)
        if problem.table is not None:
            return state
        # The new margins also show violations among rows that were set aside.
        measure(problem, state)
        aside = np.ones(problem.n, dtype=bool)
        aside[state.at_work] = False
        if (find_violating(problem, state) & aside).any():
            # Cached rows have a column for each row at work only: begin a new cache, and keep the
            # count.
            state.at_work = problem.members
            state.active = problem.n
            evaluations = state.rows.evaluations
            state.cache = empty_cache(problem)
            state.cache.evaluations = evaluations
            measure(problem, state)
        return state


def table_of(problem: KernelProblem) -> RowTable:
    """Return the table of a problem that is known to hold it."""
    assert problem.table is not None
    return problem.table


def whole_program(
    problem: KernelProblem, state: KernelState, order: np.ndarray, starts: np.ndarray
) -> QuadraticProgram:
    """Return the quadratic program over all rows. Each group has rows of one sign.

    Parameters
    ----------
    order : ndarray of shape (n,)
        The rows, group by group.
    starts : ndarray of shape (groups + 1,)
        First row of each group, and n.
    """
    held = table_of(problem)
    firsts = starts[:-1]
    sizes = np.diff(starts)
    points = order
    signs = np.ones(firsts.size)
    if problem.views is not None:
        points = problem.views.points[order]
        signs = problem.views.signs[order[firsts]]
    # A program needs groups of consecutive points: else the matrix is copied in the order of the
    # rows.
    columns = points[firsts].astype(np.int64)
    if not np.array_equal(points - np.repeat(columns - firsts, sizes), np.arange(points.size)):
        held = RowTable.from_matrix(held.whole()[np.ix_(points, points)])
        columns = firsts
    held.table.marks[NEEDED] = ABSENT
    return QuadraticProgram(
        table=held.table,
        low=state.low[order],
        high=state.high[order],
        tube=problem.tube,
        starts=starts,
        columns=columns,
        signs=signs,
        groups=np.arange(starts.size),
        segments=np.zeros(firsts.size, dtype=np.int64),
    )


def compute_rows(
    problem: KernelProblem, program: QuadraticProgram, g: np.ndarray, beta: np.ndarray
) -> None:
    """Compute the kernel row that steps need, and the rows that violate most in each group."""
    held = table_of(problem)
    starts = program.starts
    # The groups share the kernel rows computed ahead.
    most_rows = AHEAD // program.columns.size
    # First the row at which the steps stopped; then, in each group, rows that they will want soon.
    wanted = [np.array([program.table.marks[NEEDED]])]
    for first, last, column in zip(starts[:-1], starts[1:], program.columns, strict=True):
        slopes = g[first:last]
        own = beta[first:last]
        is_held = held.slots[column : column + own.size] >= 0
        # beta may rise along -g below its upper bound, and fall along g above its lower bound.
        rise = np.where(own < program.high[first:last], -slopes, -np.inf)
        fall = np.where(own > program.low[first:last], slopes, -np.inf)
        # The rows with the steepest slopes whose kernel rows are missing.
        for score in (rise, fall):
            score[is_held] = -np.inf
            best = np.arange(own.size)
            if own.size > most_rows:
                best = np.argpartition(-score, most_rows)[:most_rows]
            wanted.append(column + best[score[best] > -np.inf])
    held.fetch(np.unique(np.concatenate(wanted)))
    program.table.marks[NEEDED] = ABSENT


def violation_scores(problem: KernelProblem, state: KernelState) -> tuple[np.ndarray, np.ndarray]:
    """Return how steeply the dual ascends as each row's beta rises and falls; -inf at its bound."""
    # With a free intercept a beta rises only as another falls: subtract that one's best slope.
    rise, fall = dual_slopes(problem, state, state.at_work)
    may_rise, may_fall = find_movable(state)
    up, down = state.steepest[problem.group_of[state.at_work]].T
    return np.where(may_rise, rise - down, -np.inf), np.where(may_fall, up - fall, -np.inf)


def pick_violating(
    rise: np.ndarray, fall: np.ndarray, candidates: np.ndarray, most: int
) -> np.ndarray:
    """Return at most `most` candidates with the largest positive scores, half of each kind."""
    first = pick_largest(rise, candidates, most // 2)
    rest = np.setdiff1d(candidates, first, assume_unique=True)
    return np.concatenate([first, pick_largest(fall, rest, most - first.size)])


def pick_largest(score: np.ndarray, candidates: np.ndarray, most: int) -> np.ndarray:
    """Return the `most` candidates with the largest positive score."""
    positive = candidates[score[candidates] > 0.0]
    if positive.size <= most:
        return positive
    return positive[np.argpartition(-score[positive], most)[:most]]


def shrink(problem: KernelProblem, state: KernelState) -> None:
    """Set aside rows too far outside the margin for any violating pair, if there are many."""
    if state.estimate > SHRINK_GAP:
        return
    at_work = state.at_work
    keep = np.flatnonzero((state.beta[at_work] != 0.0) | find_contenders(problem, state))
    # A step needs a row: at a solution of zeros no row may move.
    if 0 < keep.size <= SHRINK_BELOW * at_work.size:
        state.rows.restrict(keep)
        state.at_work = at_work[keep]
        state.active = keep.size
