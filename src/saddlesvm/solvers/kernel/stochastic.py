"""Stochastic dual coordinate ascent with a kernel.

With ``beta = C a`` and ``f = K beta`` a step draws a row i and moves beta_i to the best place, the others fixed:

    beta_i += argmin_d  (1/2) (K_ii + r_i) d^2 + (f_i + r_i beta_i - y_i) d     low_i <= beta_i + d <= high_i

(r is zero for the hinge), which is the step of :mod:`saddlesvm.solvers.sdca` with ``w = sum_i beta_i k(x_i, .)``. The
sums f are kept for all rows: a visit that moves nothing then costs nothing, one that does costs one kernel row. Rows
that the next draws will need are computed in blocks. Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual
coordinate ascent methods for regularized loss minimization", section 2, which notes that the step needs inner products
only.

An intercept that is free of penalty fixes the sum of beta, so no coefficient can move alone: a step then draws a row
and a partner, and moves both along the sum that stays, as Necoara (2013), "Random coordinate descent algorithms for
multi-agent convex optimization over networks", does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.arithmetic import soft_threshold
from saddlesvm.problem.kernel import KernelProblem
from saddlesvm.problem.kernel_certificate import KernelPoint
from saddlesvm.runtime.allowed import one_of
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.compiled import allocating_kernel, inlined
from saddlesvm.runtime.randomness import below, seeded, shuffle
from saddlesvm.solvers.base import Budget, SolverBase
from saddlesvm.solvers.kernel.ascent import TAU, falling, rising
from saddlesvm.solvers.kernel.pegasos import Held, draw_rows, first_missing
from saddlesvm.solvers.kernel.state import KernelState, beginning, measure, measured, movable, rebuilt, violates, wishes


class Program(NamedTuple):
    """The quadratic program over beta; all arrays have the shape (n,)."""

    y: np.ndarray
    ridge: np.ndarray
    low: np.ndarray
    high: np.ndarray
    tube: float


class Draws(NamedTuple):
    """The rows to visit, and their partners (empty where coefficients move alone)."""

    rows: np.ndarray
    partners: np.ndarray


@allocating_kernel
def draw_partners(
    random: np.ndarray, rows: np.ndarray, side_of: np.ndarray, by_group: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """For each row a random one of its group g: of ``by_group[starts[g] : starts[g + 1]]``."""
    partners = np.empty(rows.size, np.int64)
    for k in range(rows.size):
        first, last = starts[side_of[rows[k]]], starts[side_of[rows[k]] + 1]
        partners[k] = by_group[first + below(random, last - first)]
    return partners


@inlined
def slope_of(program: Program, beta: np.ndarray, f: np.ndarray, i: int) -> float:
    """The slope of the program along beta_i, without the absolute value."""
    return f[i] + program.ridge[i] * beta[i] - program.y[i]


@inlined
def moves(program: Program, beta: np.ndarray, f: np.ndarray, i: int) -> bool:
    """Whether beta_i wants to move into its box."""
    g = slope_of(program, beta, f, i)
    can_rise = rising(g, beta[i], program.tube) < 0.0 and beta[i] < program.high[i]
    return can_rise or (falling(g, beta[i], program.tube) > 0.0 and beta[i] > program.low[i])


@inlined
def trades(program: Program, beta: np.ndarray, f: np.ndarray, i: int, j: int) -> bool:
    """Whether beta_i wants to rise by what beta_j falls."""
    if i == j or beta[i] >= program.high[i] or beta[j] <= program.low[j]:
        return False
    up = rising(slope_of(program, beta, f, i), beta[i], program.tube)
    return up < falling(slope_of(program, beta, f, j), beta[j], program.tube)


@inlined
def move(program: Program, beta: np.ndarray, f: np.ndarray, i: int, row: np.ndarray) -> None:
    """Bring beta_i to its best place; `row` is its kernel row."""
    q = max(row[i] + program.ridge[i], TAU)
    aim = soft_threshold(beta[i] - slope_of(program, beta, f, i) / q, program.tube / q)
    before, beta[i] = beta[i], min(max(aim, program.low[i]), program.high[i])
    step = beta[i] - before
    for k in range(f.size):
        f[k] += step * row[k]


@inlined
def trade(program: Program, beta: np.ndarray, f: np.ndarray, i: int, j: int, held: Held) -> None:
    """Let beta_i rise by what beta_j falls, as far as is best or a bound, or zero where the slope jumps, allows."""
    Ki, Kj, tube = held.table[held.slot[i]], held.table[held.slot[j]], program.tube
    q = max(Ki[i] + program.ridge[i] + Kj[j] + program.ridge[j] - 2.0 * Ki[j], TAU)
    up = rising(slope_of(program, beta, f, i), beta[i], tube)
    down = falling(slope_of(program, beta, f, j), beta[j], tube)
    top = 0.0 if tube > 0.0 and beta[i] < 0.0 < program.high[i] else program.high[i]
    floor = 0.0 if tube > 0.0 and beta[j] > 0.0 > program.low[j] else program.low[j]
    room_i, room_j = top - beta[i], beta[j] - floor
    s = min((down - up) / q, room_i, room_j)
    beta[i] = top if s == room_i else beta[i] + s
    beta[j] = floor if s == room_j else beta[j] - s
    for k in range(f.size):
        f[k] += s * (Ki[k] - Kj[k])


@allocating_kernel
def visit_draws(program: Program, held: Held, draws: Draws, beta: np.ndarray, f: np.ndarray) -> int:
    """Steps along the draws until one needs a kernel row that is not held; the number of draws used."""
    slot = held.slot
    for k in range(draws.rows.size):
        i = draws.rows[k]
        if not draws.partners.size:
            if moves(program, beta, f, i):
                if slot[i] < 0:
                    return k
                move(program, beta, f, i, held.table[slot[i]])
            continue
        j = draws.partners[k]
        rises, falls = trades(program, beta, f, i, j), trades(program, beta, f, j, i)
        if rises or falls:
            if slot[i] < 0 or slot[j] < 0:
                return k
            if falls:
                i, j = j, i
            trade(program, beta, f, i, j, held)
    return draws.rows.size


@dataclass
class KernelSDCAState(KernelState):
    """The state of a run of stochastic ascent; `order` and `position` are those of the epoch's permutation."""

    order: np.ndarray = field(kw_only=True)
    position: int = 0

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed so far; those of the certificates are not counted."""
        return self.held or self.cache.evaluations


@dataclass(frozen=True)
class KernelSDCA(SolverBase):
    """Stochastic dual coordinate ascent with a kernel, a random row (or pair of rows) at a time.

    Parameters
    ----------
    block : int, default=64
        Kernel rows to compute at a time.
    sampling : {"permutation", "replacement"}, default="permutation"
        A new random order each epoch, or independent draws.

    Notes
    -----
    :class:`~saddlesvm.solvers.kernel.decomposition.KernelDecomposition` chooses its rows and is much faster.

    Examples
    --------
    >>> from saddlesvm import KernelSDCA, KernelSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = KernelSVC(solver=KernelSDCA(), intercept="regularized", random_state=0).fit(
    ...     notes.X, notes.y
    ... )
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "kernel-sdca"

    block: int = 64
    sampling: str = "permutation"

    def __post_init__(self) -> None:
        """The block is positive, the sampling is known."""
        one_of("sampling", self.sampling, ("permutation", "replacement"))
        if self.block < 1:
            raise ValueError(f"block must be at least 1; got {self.block}")

    def init(self, problem: KernelProblem, seed: int, start: KernelPoint | None = None) -> KernelSDCAState:
        """The state at `start`, made feasible, or at zero."""
        order = problem.members.astype(np.int64)
        state = KernelSDCAState(**beginning(problem, start), random=seeded(seed), order=order)
        measure(problem, state)
        return state

    def resumed(self, problem: KernelProblem, state: KernelSDCAState) -> KernelSDCAState:
        """Compute the margins and what they imply."""
        return measured(problem, state)

    def step(self, problem: KernelProblem, state: KernelSDCAState, budget: Budget) -> KernelSDCAState:
        """About ``budget.rows`` visits, by whole epochs or the rest of one; the estimate is brought up to date."""
        last = state.rows_touched + budget.rows
        end = clock() + budget.seconds
        while state.rows_touched < last and clock() < end:
            count = min(last - state.rows_touched, problem.n - state.position)
            self.visit(problem, state, self.drawn(problem, state, count))
            state.rows_touched += count
            state.epochs = state.rows_touched / problem.n
            if state.position == 0:
                measure(problem, state)
                if state.estimate <= budget.relative_gap:
                    break
        return state

    def drawn(self, problem: KernelProblem, state: KernelSDCAState, count: int) -> Draws:
        """The next `count` rows, at most the rest of the epoch, and their partners."""
        if self.sampling == "replacement":
            rows = draw_rows(state.random, problem.n, count)
        else:
            if state.position == 0:
                shuffle(state.random, state.order, problem.n)
            rows = state.order[state.position : state.position + count].copy()
        state.position = (state.position + count) % problem.n
        if not problem.intercept.constrained:
            return Draws(rows, np.empty(0, np.int64))
        by_group = np.argsort(problem.side_of, kind="stable")
        starts = np.searchsorted(problem.side_of[by_group], np.arange(len(problem.sides) + 1))
        return Draws(rows, draw_partners(state.random, rows, problem.side_of, by_group, starts))

    def visit(self, problem: KernelProblem, state: KernelSDCAState, draws: Draws) -> None:
        """Work through the draws; wherever kernel rows are missing, compute a block of those needed next."""
        cache = state.cache
        program = Program(problem.y, state.ridge, state.low, state.high, problem.tube)
        while True:
            used = visit_draws(program, Held(cache.table, cache.slot), draws, state.beta, state.f)
            draws = Draws(draws.rows[used:], draws.partners[used:])
            if not draws.rows.size:
                return
            held = cache.touch(np.unique(np.concatenate([draws.rows[:1], draws.partners[:1]])))
            # In a small cache half of the rows stay: they may be ones that were looked ahead for and are still to come.
            most = min(cache.capacity - held, max(2, min(self.block, cache.capacity // 2)))
            cache.fetch(first_missing(cache, rows_needed(problem, state, draws), most))

    def solution(self, problem: KernelProblem, state: KernelSDCAState) -> KernelPoint:
        """The last iterate, which is dual feasible."""
        return KernelPoint(state.beta.copy())

    def certified(self, problem: Any, state: Any, evaluation: Any) -> Any:
        """Take the rebuilt float64 f over."""
        rebuilt(problem, state, evaluation)
        measure(problem, state)
        return state


def rows_needed(problem: KernelProblem, state: KernelSDCAState, draws: Draws) -> np.ndarray:
    """The rows that the draws would need as things are now, in their order: those of the first draw before all."""
    i, j = draws
    if not j.size:
        return np.concatenate([i[:1], i[violates(problem, state)[i]]])
    rise, fall = wishes(problem, state, problem.members)
    rising, falling = movable(state)
    up, down = np.where(rising, rise, -np.inf), np.where(falling, fall, np.inf)
    trades = (i != j) & ((up[i] > down[j]) | (up[j] > down[i]))
    trades[0] = True
    return np.column_stack(draws)[trades].ravel()
