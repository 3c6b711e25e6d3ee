"""The state of a run of kernel dual ascent, and what its margins imply: offsets, violations, and the gap.

With ``beta = C a`` and ``f = K beta`` the dual has the slope ``y - f - r beta - b`` along beta, but for a tube; a row
violates optimality where that slope points into its box. A free intercept b, or another given sum of a group of rows,
makes it a matter of pairs: one coefficient rises as another falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saddlesvm.kernel.kernel_certificate import alpha_of, nearest_feasible
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.kernel.row_blocks import RowCache, row_source, signed_rows
from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Certificate, KernelPoint
from saddlesvm.problem.sums import loss_sums
from saddlesvm.solvers.base import State
from saddlesvm.solvers.second_order.first_point import NOTHING

SAMPLE = 128  # rows of each group that the rough model is made of
PAIR = 2  # rows of a pair: a step needs room for a pair of new rows and a pair of rows in the cache
BEYOND = 1e-9  # of its upper bound, that a coefficient may lie outside its box by rounding


@dataclass
class KernelState(State):
    """The state of a run of kernel dual ascent; `beta`, `f`, the bounds and the ridge cover all rows.

    Attributes
    ----------
    f : ndarray of shape (n,)
        ``K beta`` of the rows at work; of the others, what it was when they were set aside.
    at_work : ndarray
        Numbers of the rows that are not set aside, ascending: the points of the cache.
    cache : RowCache, optional
        Kernel rows over the rows at work; None if the problem holds a table of them.
    random : ndarray of shape (1,)
        The run's own generator, or the seed of one.
    offsets : ndarray of shape (groups,)
    held : int
        Kernel values in the problem's table.
    violation : float
        Largest violation of the optimality conditions among the rows at work.
    steepest : ndarray of shape (groups, 2)
        With a free intercept the strongest wish to rise and the weakest to stay, see :func:`wishes`; else zeros.
    finishes : int
        How often the linear problem was solved: once at most.
    """

    beta: np.ndarray = field(kw_only=True)
    f: np.ndarray = field(kw_only=True)
    low: np.ndarray = field(kw_only=True)
    high: np.ndarray = field(kw_only=True)
    ridge: np.ndarray = field(kw_only=True)
    at_work: np.ndarray = field(kw_only=True)
    random: np.ndarray = field(kw_only=True)
    cache: RowCache | None = field(kw_only=True)
    offsets: np.ndarray = field(kw_only=True)
    steepest: np.ndarray = field(kw_only=True)
    violation: float = np.inf
    held: int = 0
    inner_steps: int = 0
    finishes: int = 0

    @property
    def heaviness(self) -> float:
        """Support vectors: a certificate computes their kernel values with all rows, and keeps none."""
        return float(max(1, int(np.count_nonzero(self.beta))))

    @property
    def begins_heavily(self) -> bool:
        """Whether the starting point has support vectors whose kernel values are not held."""
        return self.held == 0 and bool(self.beta.any())

    @property
    def effort(self) -> float:
        """Epochs, or the visits of rows that pair steps came to, if these are more."""
        return max(self.epochs, PAIR * self.inner_steps / max(1, self.beta.size))

    @property
    def rule(self) -> str:
        """Why a fit ends that has nothing to find."""
        return "the optimum is w = 0: nu is too small, or the rows lie around the origin of the kernel's space"

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed so far; those of the certificates are not counted."""
        return self.held + (0 if self.cache is None else self.cache.evaluations)

    @property
    def rows(self) -> RowCache:
        """The cache of a problem without a table."""
        assert self.cache is not None
        return self.cache


def first_sums(problem: KernelProblem) -> np.ndarray:
    """A first point, shape (n,): zero where that has the sums asked for, or the rows that a rough model finds hardest.

    The model is the mean of the kernel functions at some rows of each group (Parzen's estimate of a density, or of the
    difference of two); each group is filled in the order of its values.
    """
    beta = np.zeros(problem.n)
    asked = [(rows, intercept.total) for rows, intercept in problem.sides]
    if not any(total for _, total in asked):
        return beta
    for rows, total in asked:
        sample = rows[:: max(1, rows.size // SAMPLE)]
        beta[sample] = problem.C * total / sample.size
    hard = problem.margins(beta) - problem.y
    beta[:] = 0.0
    high = problem.bounds[1]
    for rows, total in asked:
        order = rows[np.argsort(hard[rows], kind="stable")]
        room = np.cumsum(high[order])
        beta[order] = problem.C * np.clip(total - (room - high[order]), 0.0, high[order])
    return nearest_feasible(problem, beta)


def beginning(problem: KernelProblem, start: KernelPoint | None) -> dict[str, Any]:
    """The fields of a state at `start`, made feasible, or at zero, but for its generator."""
    low, high = problem.box()
    beta = first_sums(problem) if start is None else nearest_feasible(problem, start.beta)
    table = problem.table
    return {
        "w": np.empty(0),
        "active": problem.n,
        "beta": beta,
        "f": problem.margins(beta) if beta.any() else np.zeros(problem.n),
        "low": low,
        "high": high,
        "ridge": problem.ridge(),
        "at_work": problem.members,
        "cache": empty_cache(problem) if table is None else None,
        "offsets": np.zeros(len(problem.sides)),
        "held": 0 if table is None else table.evaluations,
        "steepest": np.zeros((len(problem.sides), 2)),
    }


def empty_cache(problem: KernelProblem) -> RowCache:
    """A cache of float32 kernel rows over all rows of a problem, none of them computed."""
    source = row_source(problem.kernel, problem.X)
    if problem.views is not None:
        source = signed_rows(source, problem.views.points, problem.views.signs)
    return RowCache(source, problem.cache_size, problem.offset)


def rebuilt(problem: KernelProblem, state: KernelState, evaluation: Any) -> None:
    """Take the float64 f of a certificate over.

    Given sums may have nothing but w = 0 for an optimum (nu is too small for the classes, or the rows lie around the
    origin): objectives and gap then go to zero together, and the fit ends once w is as good as that.
    """
    state.f = evaluation.margins.copy()
    if any(side.intercept.total for side in problem.sides):
        sizes = np.abs(state.beta) @ problem.at_rows(problem.errors.lengths)
        state.satisfied = bool(state.beta @ state.f <= NOTHING * sizes * sizes)


def measure(problem: KernelProblem, state: KernelState) -> None:
    """The offsets, the violation and the gap that f implies, as if rows that are set aside had no loss."""
    terms, alpha = problem.terms, alpha_of(problem, state.beta)
    at_work, side_of = state.at_work, problem.side_of[state.at_work]
    paid = conjugates = norm = state.violation = 0.0
    parts = [at_work] if not problem.groups else [at_work[side_of == k] for k in range(len(problem.sides))]
    for k, (part, side) in enumerate(zip(parts, problem.sides, strict=True)):
        z = state.f[part]
        state.offsets[k] = side.intercept.best(terms, part, z, float(state.offsets[k]))
        charge, conjugate, coupled, *_ = loss_sums(terms, part, z, state.offsets[k], alpha)
        paid += charge + side.intercept.paid(float(state.offsets[k]))
        conjugates += conjugate
        norm += 0.5 * problem.C * coupled
    state.estimate = Certificate(primal_of(problem.C, paid, norm), dual_of(problem.C, conjugates, norm)).relative_gap
    rise, fall = wishes(problem, state, at_work)
    rising, falling = movable(state)
    for k, side in enumerate(problem.sides):
        own = slice(None) if not problem.groups else side_of == k
        up = float(rise[own][rising[own]].max(initial=-np.inf))
        down = float(fall[own][falling[own]].min(initial=np.inf))
        free = side.intercept.constrained
        state.steepest[k] = (up, down) if free else 0.0
        state.violation = max(state.violation, up - down if free else max(up, -down))


def wishes(problem: KernelProblem, state: KernelState, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slopes of the dual in the beta of `rows`, upwards and (negative) downwards: minus its slopes on either side.

    Both are ``-(g + b)``, but for a tube.
    """
    beta = state.beta[rows]
    wish = problem.y[rows] - state.f[rows] - state.ridge[rows] * beta - state.offsets[problem.side_of[rows]]
    if problem.tube == 0.0:
        return wish, wish
    tube = problem.tube
    return wish - np.where(beta >= 0.0, tube, -tube), wish - np.where(beta > 0.0, tube, -tube)


def violates(problem: KernelProblem, state: KernelState) -> np.ndarray:
    """The rows whose slope points into their box, whatever the others do; bool, shape (n,)."""
    rise, fall = wishes(problem, state, problem.members)
    return ((rise > 0.0) & (state.beta < state.high)) | ((fall < 0.0) & (state.beta > state.low))


def movable(state: KernelState) -> tuple[np.ndarray, np.ndarray]:
    """The beta of the working set that may rise, and those that may fall."""
    beta = state.beta[state.at_work]
    return beta < state.high[state.at_work], beta > state.low[state.at_work]


def contenders(problem: KernelProblem, state: KernelState) -> np.ndarray:
    """Which of the rows at work a violating pair may contain."""
    rise, fall = wishes(problem, state, state.at_work)
    rising, falling = movable(state)
    return (rising & (rise >= -state.violation)) | (falling & (fall <= state.violation))
