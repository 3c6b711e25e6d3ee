"""Block decomposition of the dual: a large working set at a time, its kernel rows computed in one matrix product.

With ``beta = C a`` and ``f = K beta`` the negated dual of a hinge-like loss is the quadratic program

    min  (1/2) beta' (K + diag(r)) beta - y' beta + t sum_i |beta_i|     low <= beta <= high

with gradient ``g = f + r beta - y`` beside the absolute values, which only a loss with a tube has. A free intercept
adds ``sum_i beta_i = 0``; other machines ask for other sums, one in each group of rows. The solver decomposes it: a
step chooses the most violating rows, both among those in the cache and among the others, computes the missing kernel
rows in one block, solves the small problem over the chosen rows by dual coordinate ascent on its own kernel matrix, and
updates f with one product.

* No or a regularized intercept: one coordinate at a time, the one with the largest gain (Shalev-Shwartz and Zhang 2013,
  "Stochastic dual coordinate ascent", section 2, with greedy instead of random choice).
* Free intercept: two of a group at a time, along the sum that stays: sequential minimal optimisation with the
  second-order choice of Fan, Chen and Lin (2005), "Working set selection using second order information", WSS 2.

Where all rows make one working set and pair steps have done as much work as it takes, a linear problem over a factor of
the kernel matrix shows which rows are within their bounds, and equations solve for these
(:mod:`saddlesvm.kernel.linear_finish`). The point stays one of the dual.

The outer scheme is Joachims (1999), "Making large-scale SVM learning practical": decomposition, caching and shrinking
of rows that stay outside the margin; large working sets on a dense block are from Wen and others (2018), "ThunderSVM".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from saddlesvm.kernel.ascent_state import (
    PAIR,
    KernelState,
    beginning,
    contenders,
    empty_cache,
    measure,
    movable,
    rebuilt,
    violates,
    wishes,
)
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.kernel.linear_finish import can_finish, linear_dual, solved_within, work_of
from saddlesvm.kernel.pair_ascent import Small, add_kernel_rows, ascend_pairs, ascend_singly, plain, submatrix
from saddlesvm.kernel.row_table import ABSENT, NEEDED, RowTable
from saddlesvm.problem.certificate import KernelPoint
from saddlesvm.runtime.clock import clock
from saddlesvm.solvers.base import Budget, SolverBase

INNER_ACCURACY = 0.1  # violation to leave inside a working set, relative to the violation outside
INNER_STEPS = 100_000
WHOLE_UPDATES = 2_000_000  # of slopes, in pair steps over all rows, between two estimates of the gap
SHRINK_BELOW = 0.7  # share of the rows at work that must stay for shrinking to be worth its copy
SHRINK_GAP = 0.5  # relative gap from which the margins say something about the rows outside
AHEAD = 32  # kernel rows that are computed at once, for each direction of steps
FEW_VALUES, MORE_ROWS = 32, 4  # values of a row whose kernel values are cheap, and how many times as many of them
USUAL = 2.0  # violation, relative to the gap, that usually proves it where margins are about 1
FINISH_GAP = 1e-9  # relative, that the linear problem is solved to: it then shows which rows are within their bounds
WHOLE_ACCURACY = 1e-11  # violation to leave inside a working set that is the whole problem


@dataclass(frozen=True)
class Decomposition(SolverBase):
    """Block decomposition: greedy dual ascent over large working sets of rows.

    Parameters
    ----------
    block : int, default=128
        Largest number of kernel rows that a step computes; four times as many for rows of at most 32 values, whose
        kernel rows are cheap.
    working_set : int, default=2048
        Largest number of rows that a step changes, including rows whose kernel rows are in the cache.
        Up to 4,096 rows whose kernel matrix fits into the cache are one working set.
    shrinking : bool, default=True
        Skip rows that stay outside the margin, until the certificate is computed.
    """

    name: ClassVar[str] = "decomposition"

    block: int = 128
    working_set: int = 2048
    shrinking: bool = True

    def __post_init__(self) -> None:
        """A step needs a pair of rows at least."""
        if self.block < 2 or self.working_set < 2:
            raise ValueError(f"block and working_set must be at least 2; got {self.block} and {self.working_set}")

    def init(self, problem: KernelProblem, seed: int, start: KernelPoint | None = None) -> KernelState:
        """The state at `start`, made feasible, or at zero."""
        state = KernelState(**beginning(problem, start), random=np.array([seed], dtype=np.int64))
        if problem.table is None:
            measure(problem, state)
        return state

    def step(self, problem: KernelProblem, state: KernelState, budget: Budget) -> KernelState:
        """Working sets until about ``budget.rows`` rows were visited, or the gap seems small enough."""
        last = state.rows_touched + budget.rows
        end = clock() + budget.seconds
        while True:
            if problem.table is not None:
                if state.finishes == 0 and state.inner_steps > work_of(problem) and can_finish(problem):
                    self.finish(problem, state, budget.relative_gap)
                else:
                    self.improve_all(problem, state, budget.relative_gap)
                    if self.shrinking and state.estimate > budget.relative_gap and problem.views is None:
                        self.improve_active(problem, state)
            else:
                if self.shrinking:
                    set_aside(problem, state)
                self.improve(problem, state)
            if state.estimate <= budget.relative_gap or state.rows_touched >= last or clock() >= end:
                return state

    def improve_all(self, problem: KernelProblem, state: KernelState, relative_gap: float) -> None:
        """All rows as one working set, on the kernel matrix that is held whole.

        The accuracy within is what the gap asked for needs, mostly, where margins are about 1, and ten times as fine
        each time that this was not enough.
        """
        order = np.argsort(problem.side_of, kind="stable") if problem.groups else problem.members
        starts = np.searchsorted(problem.side_of[order], np.arange(len(problem.sides) + 1))
        beta, ridge, y = state.beta[order], state.ridge[order], problem.y[order]
        g = state.f[order] + ridge * beta - y
        program = whole_program(problem, state, order, starts)
        ascend = ascend_pairs if problem.intercept.constrained else ascend_singly
        accuracy = max(WHOLE_ACCURACY, min(INNER_ACCURACY * state.violation, USUAL * relative_gap))
        most = WHOLE_UPDATES // problem.n
        state.inner_steps += ascend(program, g, beta, accuracy, most)
        while program.table.marks[NEEDED] >= 0:
            compute_rows(problem, program, g, beta)
            state.inner_steps += ascend(program, g, beta, accuracy, most)
        found, f = state.beta.copy(), state.f.copy()
        found[order], f[order] = beta, g - ridge * beta + y
        state.rows_touched += problem.n
        state.epochs = state.rows_touched / problem.n
        state.held = problem.table.evaluations  # type: ignore[union-attr]
        self.take(problem, state, found, f, np.inf)
        if state.finishes:
            self.solve_free(problem, state, state.beta)

    def improve_active(self, problem: KernelProblem, state: KernelState) -> None:
        """Those rows alone as a working set whose kernel rows are held and which a violating pair may contain."""
        held = problem.table
        assert held is not None
        active = np.flatnonzero(contenders(problem, state) & (held.table.slots >= 0))
        if active.size > SHRINK_BELOW * problem.n:
            return
        before = state.beta[active]
        slots = held.table.slots[active]
        state.beta[active] = self.solve_set(problem, state, active, held.table.values, slots, active, problem.offset)
        delta = state.beta[active] - before
        moved = np.flatnonzero(delta)
        state.f += held.sums(active[moved], delta[moved]) + problem.offset * delta.sum()
        measure(problem, state)

    def solve_set(
        self,
        problem: KernelProblem,
        state: KernelState,
        rows: np.ndarray,
        table: np.ndarray,
        slots: np.ndarray,
        columns: np.ndarray,
        offset: float = 0.0,
    ) -> np.ndarray:
        """The best coefficients of a working set, shape (m,), all others as they are.

        Parameters
        ----------
        rows : int ndarray of shape (m,)
            Group by group.
        table : ndarray
            Kernel rows by slot.
        slots, columns : int ndarray of shape (m,)
            Where the kernel row of each is, and its place in the others.
        offset : float
            Added to the kernel values of the table.
        """
        beta, ridge = state.beta[rows], state.ridge[rows]
        g = state.f[rows] + ridge * beta - problem.y[rows]
        ascend = ascend_pairs if problem.intercept.constrained else ascend_singly
        starts = np.searchsorted(problem.side_of[rows], np.arange(len(problem.sides) + 1))
        K = submatrix(table, slots, columns)
        small = plain(K, ridge, (state.low[rows], state.high[rows]), problem.tube, starts)._replace(offset=offset)
        state.inner_steps += ascend(small, g, beta, INNER_ACCURACY * state.violation, INNER_STEPS)
        return beta

    def finish(self, problem: KernelProblem, state: KernelState, relative_gap: float) -> None:
        """Take over what the linear problem finds, where it is better than what pair steps came to."""
        state.finishes += 1
        state.rows_touched += problem.n
        state.epochs = state.rows_touched / problem.n
        found = linear_dual(problem, min(FINISH_GAP, relative_gap))
        if found is not None and self.solve_free(problem, state, found):
            state.remark = "a linear problem over a factor of the kernel matrix"

    def solve_free(self, problem: KernelProblem, state: KernelState, beta: np.ndarray) -> bool:
        """Solve for the free rows of `beta`; whether that is better than where the run stands, and so is taken over."""
        found = solved_within(problem, beta)
        return self.take(problem, state, found, problem.margins(found), state.estimate)

    def take(self, problem: KernelProblem, state: KernelState, beta: np.ndarray, f: np.ndarray, below: float) -> bool:
        """Move to a point whose relative gap is below a bound, and finite: kernel values may be so large that their
        rounding drives the steps."""
        before = state.beta, state.f
        state.beta, state.f = beta, f
        measure(problem, state)
        taken = state.estimate < below
        if not taken:
            state.beta, state.f = before
            measure(problem, state)
        return taken

    def improve(self, problem: KernelProblem, state: KernelState) -> None:
        """One working set: choose it, compute its missing kernel rows, solve it, bring f up to date."""
        chosen = self.choose(problem, state)
        if problem.groups:
            chosen = chosen[np.argsort(problem.side_of[state.at_work[chosen]], kind="stable")]
        slots = state.rows.fetch(chosen)
        rows, table = state.at_work[chosen], state.rows.table
        beta = self.solve_set(problem, state, rows, table, slots, chosen)
        delta = beta - state.beta[rows]
        moved = np.flatnonzero(delta)
        f = state.f[state.at_work]
        add_kernel_rows(table, slots[moved], delta[moved], f)
        state.f[state.at_work] = f
        state.beta[rows] = beta
        state.rows_touched += rows.size
        state.epochs = state.rows_touched / problem.n
        measure(problem, state)

    def choose(self, problem: KernelProblem, state: KernelState) -> np.ndarray:
        """Positions (in `at_work`) of the rows to change: at most `block` that are not in the cache."""
        most = min(self.working_set, state.rows.capacity)
        cheap = problem.values_per_row <= FEW_VALUES
        block = max(2, min(MORE_ROWS * self.block if cheap else self.block, most // 2))
        if not (state.beta.any() or problem.is_regression):
            return self.first(problem, state, min(block, most // 2))
        rise, fall = scores(problem, state)
        parts = [np.flatnonzero(problem.side_of[state.at_work] == k) for k in range(len(problem.sides))]
        if most < 2 * PAIR * len(parts):
            part = parts[int(np.argmax(np.ptp(state.steepest, axis=1)))]
            return np.unique([part[rise[part].argmax()], part[fall[part].argmax()]])
        held = state.rows.slot >= 0
        new, old = [], []
        for part in parts:
            new.append(best_of_both(rise, fall, part[~held[part]], block // len(parts)))
            old.append(best_of_both(rise, fall, part[held[part]], most // len(parts) - new[-1].size))
        return np.concatenate([*new, *old])

    def first(self, problem: KernelProblem, state: KernelState, block: int) -> np.ndarray:
        """The first working set, where all rows look alike: `block` random rows of each class."""
        y = problem.y[state.at_work]
        sides, random = [np.flatnonzero(y > 0.0), np.flatnonzero(y < 0.0)], np.random.RandomState(state.random[0])
        return np.concatenate([random.permutation(side)[:block] for side in sides])

    def solution(self, problem: KernelProblem, state: KernelState) -> KernelPoint:
        """The last iterate, which is dual feasible."""
        return KernelPoint(state.beta.copy())

    def certified(self, problem: Any, state: Any, evaluation: Any) -> Any:
        """Take the rebuilt float64 f over; if a row set aside now violates the margin, put all rows to work again."""
        rebuilt(problem, state, evaluation)
        if problem.table is not None:
            return state
        measure(problem, state)
        aside = np.ones(problem.n, dtype=bool)
        aside[state.at_work] = False
        if (violates(problem, state) & aside).any():
            state.at_work = problem.members
            state.active = problem.n
            done = state.rows.evaluations
            state.cache = empty_cache(problem)
            state.cache.evaluations = done
            measure(problem, state)
        return state


def whole_program(problem: KernelProblem, state: KernelState, order: np.ndarray, starts: np.ndarray) -> Small:
    """The quadratic program over all rows. Each group has rows of one sign.

    Parameters
    ----------
    order : ndarray of shape (n,)
        The rows, one group after the other.
    starts : ndarray of shape (groups + 1,)
        Where each group begins.
    """
    held = problem.table
    assert held is not None
    firsts, sizes = starts[:-1], np.diff(starts)
    points, signs = order, np.ones(firsts.size)
    if problem.views is not None:
        points, signs = problem.views.points[order], problem.views.signs[order[firsts]]
    columns = points[firsts].astype(np.int64)
    if not np.array_equal(points - np.repeat(columns - firsts, sizes), np.arange(points.size)):
        held, columns = RowTable.of(held.whole()[np.ix_(points, points)]), firsts
    held.table.marks[NEEDED] = ABSENT
    return Small(held.table, state.ridge[order], state.low[order], state.high[order], problem.tube, starts, columns,
                 signs, np.arange(starts.size), problem.offset)  # fmt: skip


def compute_rows(problem: KernelProblem, program: Small, g: np.ndarray, beta: np.ndarray) -> None:
    """Compute the kernel row that steps have come to, and those of the most violating rows of each group."""
    held, starts, few = problem.table, program.starts, AHEAD // program.columns.size
    assert held is not None
    wanted = [[int(program.table.marks[NEEDED])]]
    for first, last, column in zip(starts[:-1], starts[1:], program.columns, strict=True):
        slopes, own = g[first:last], beta[first:last]
        for score in (
            np.where(own < program.high[first:last], -slopes, -np.inf),
            np.where(own > program.low[first:last], slopes, -np.inf),
        ):
            score[program.table.slots[column : column + own.size] >= 0] = -np.inf
            found = np.arange(own.size) if own.size <= few else np.argpartition(-score, few)[:few]
            wanted.append(column + found[score[found] > -np.inf])
    held.fetch(np.unique(np.concatenate(wanted)))
    program.table.marks[NEEDED] = ABSENT


def scores(problem: KernelProblem, state: KernelState) -> tuple[np.ndarray, np.ndarray]:
    """How much raising, and how much lowering, the beta of each row at work violates optimality; -inf where it cannot.

    With a free intercept a beta rises as another falls: it is measured against the steepest wish of the other side.
    """
    rise, fall = wishes(problem, state, state.at_work)
    rising, falling = movable(state)
    up, down = state.steepest[problem.side_of[state.at_work]].T
    return np.where(rising, rise - down, -np.inf), np.where(falling, up - fall, -np.inf)


def best_of_both(rise: np.ndarray, fall: np.ndarray, among: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of the positions `among` all: those with the largest positive scores, half from each side."""
    first = largest(rise, among, most // 2)
    rest = np.setdiff1d(among, first, assume_unique=True)
    return np.concatenate([first, largest(fall, rest, most - first.size)])


def largest(score: np.ndarray, among: np.ndarray, most: int) -> np.ndarray:
    """The `most` positions `among` all with the largest positive score."""
    among = among[score[among] > 0.0]
    if among.size <= most:
        return among
    return among[np.argpartition(-score[among], most)[:most]]


def set_aside(problem: KernelProblem, state: KernelState) -> None:
    """Set aside rows so far outside the margin that no violating pair can contain them, if there are many."""
    if state.estimate > SHRINK_GAP:
        return
    at_work = state.at_work
    keep = np.flatnonzero((state.beta[at_work] != 0.0) | contenders(problem, state))
    if keep.size <= SHRINK_BELOW * at_work.size:
        state.rows.restrict(keep)
        state.at_work = at_work[keep]
        state.active = keep.size
