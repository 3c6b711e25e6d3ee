"""The state of dual ascent on a kernel problem, and what its margins say: offsets, violation, gap.

With ``beta = C a`` and ``f = K beta`` the dual has the slope ``y - f - b`` along beta, but for a
tube. A row violates optimality if that slope points into its box. A free intercept b, or
another given sum of a group of rows, couples the coefficients: if one rises, another falls, so that
the largest slope upwards is compared with the least slope that another row may fall by.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from saddlesvm.kernel.kernel_certificate import KernelEvaluation, alpha_of, nearest_feasible
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.kernel.row_blocks import RowCache, SignedRows
from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.problem.certificate import Certificate, KernelPoint
from saddlesvm.problem.sums import loss_sums
from saddlesvm.solvers.base import State

SAMPLE = 128  # rows of each group that make the rough model of a first point (guessed)
PAIR = 2  # rows of a pair
# Squared norm of weights, relative to what their terms could add up to, that counts as zero;
# guessed.
ZERO_NORM = 1e-10


@dataclass
class KernelState(State):
    """The state of a run of kernel dual ascent; `beta`, `f` and the box cover all rows.

    Attributes
    ----------
    f : ndarray of shape (n,)
        ``K beta`` of the rows at work; of the others, its value when they were set aside.
    at_work : ndarray
        Numbers of the rows that are not set aside, ascending: the points of the cache.
    cache : RowCache, optional
        Kernel rows over the rows at work; None if the problem holds a table of them.
    random : ndarray of shape (1,)
        The seed of the first working set.
    offsets : ndarray of shape (groups,)
    held : int
        Number of kernel values in the problem's table.
    inner_steps : int
        Steps of single coordinates or pairs so far.
    violation : float
        Largest violation of the optimality conditions among the rows at work.
    steepest : ndarray of shape (groups, 2)
        With a free intercept the largest slope upwards and the least downwards, see
        :func:`dual_slopes`; else zeros.
    finishes : int
        How often the linear problem was solved: once at most.
    """

    beta: np.ndarray = field(kw_only=True)
    f: np.ndarray = field(kw_only=True)
    low: np.ndarray = field(kw_only=True)
    high: np.ndarray = field(kw_only=True)
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
        """Support vectors: a certificate computes their kernel values with all rows, and keeps
        none.
        """
        return float(max(1, int(np.count_nonzero(self.beta))))

    @property
    def begins_heavily(self) -> bool:
        """Whether the starting point has support vectors whose kernel values are not held."""
        return self.held == 0 and bool(self.beta.any())

    @property
    def effort(self) -> float:
        """Epochs, or the row visits of all pair steps, if these are more."""
        return max(self.epochs, PAIR * self.inner_steps / max(1, self.beta.size))

    @property
    def rule(self) -> str:
        """Why a fit ends that has nothing to find."""
        nothing = "the optimum is w = 0: nu is too small, or the rows lie around the origin of the"
        return f"{nothing} kernel's space"

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed so far, without the certificates."""
        return self.held + (0 if self.cache is None else self.cache.evaluations)

    @property
    def rows(self) -> RowCache:
        """The cache of a problem without a table."""
        assert self.cache is not None
        return self.cache


def first_point(problem: KernelProblem) -> np.ndarray:
    """Return a first beta with the given sums: zero, or the hardest rows for a rough model.

    The model is the mean of the kernel functions at some rows of each group (Parzen's estimate of a
    density, or of the difference of two). Each group is filled in the order of its values.
    """
    beta = np.zeros(problem.n)
    groups = [(rows, intercept.total) for rows, intercept in problem.all_groups]
    if not any(total for _, total in groups):
        return beta
    # The rough model: the sum of each group, spread over a sample of its rows.
    for rows, total in groups:
        sample = rows[:: max(1, rows.size // SAMPLE)]
        beta[sample] = problem.C * total / sample.size
    # The lower f_i - y_i is, the more row i pays: such rows come first.
    hardness = problem.margins(beta) - problem.y
    # Fill the hardest rows of each group up to their bounds, until its sum is reached.
    beta[:] = 0.0
    high = problem.bounds[1]
    for rows, total in groups:
        order = rows[np.argsort(hardness[rows], kind="stable")]
        filled = np.cumsum(high[order]) - high[order]
        beta[order] = problem.C * np.clip(total - filled, 0.0, high[order])
    return nearest_feasible(problem, beta)


def first_state(problem: KernelProblem, start: KernelPoint | None, seed: int) -> KernelState:
    """Return the state at `start`, made feasible, or at a first point."""
    # A start may come from another problem, such as the fit at the last C of a path: its values may
    # lie outside these bounds.
    low, high = problem.box()
    beta = first_point(problem) if start is None else nearest_feasible(problem, start.beta)
    table = problem.table
    groups = len(problem.all_groups)
    return KernelState(
        w=np.empty(0),
        active=problem.n,
        beta=beta,
        f=problem.margins(beta) if beta.any() else np.zeros(problem.n),
        low=low,
        high=high,
        at_work=problem.members,
        random=np.array([seed], dtype=np.int64),
        cache=empty_cache(problem) if table is None else None,
        offsets=np.zeros(groups),
        steepest=np.zeros((groups, 2)),
        held=0 if table is None else table.evaluations,
    )


def empty_cache(problem: KernelProblem) -> RowCache:
    """Return a cache of float32 kernel rows over all rows of a problem, none of them computed."""
    source = problem.row_source
    if problem.views is not None:
        signs = problem.views.signs.astype(np.float32)
        source = SignedRows(source, problem.views.points, signs)
    return RowCache(source, problem.cache_size)


def take_margins(problem: KernelProblem, state: KernelState, evaluation: KernelEvaluation) -> None:
    """Take the float64 margins of a certificate, and end a fit whose optimum is w = 0.

    Given sums may have nothing but w = 0 for an optimum (nu is too small for the classes, or the
    rows lie around the origin). Objectives and gap then go to zero together, and the fit ends once
    w is as good as zero.
    """
    state.f = evaluation.margins.copy()
    if any(group.intercept.total for group in problem.all_groups):
        # ||w||^2 = beta' f beside (sum_i |beta_i| ||x_i||)^2, the largest that it could be.
        largest_norm = np.abs(state.beta) @ problem.sizes_at_rows(problem.errors.lengths)
        squared_norm = state.beta @ state.f
        state.satisfied = bool(squared_norm <= ZERO_NORM * largest_norm * largest_norm)


def measure(problem: KernelProblem, state: KernelState) -> None:
    """Compute the offsets, violation and gap of f; rows set aside count as without loss."""
    at_work = state.at_work
    group_of = problem.group_of[at_work]
    parts: list[np.ndarray] = [at_work]
    if problem.groups:
        parts = [at_work[group_of == k] for k in range(len(problem.all_groups))]
    measure_gap(problem, state, parts)
    # The violation: of each slope alone, or of two slopes whose coefficients move together.
    rise, fall = dual_slopes(problem, state, at_work)
    may_rise, may_fall = find_movable(state)
    state.violation = 0.0
    for k, group in enumerate(problem.all_groups):
        own = slice(None) if not problem.groups else group_of == k
        up = float(rise[own][may_rise[own]].max(initial=-np.inf))
        down = float(fall[own][may_fall[own]].min(initial=np.inf))
        if group.intercept.constrained:
            state.steepest[k] = (up, down)
            state.violation = max(state.violation, up - down)
        else:
            state.steepest[k] = 0.0
            state.violation = max(state.violation, up, -down)


def measure_gap(problem: KernelProblem, state: KernelState, parts: list[np.ndarray]) -> None:
    """Choose the best offset of each group, and estimate the gap of the rows in the parts."""
    terms = problem.terms
    alpha = alpha_of(problem, state.beta)
    paid = 0.0
    conjugates = 0.0
    half_norm = 0.0
    for k, (part, group) in enumerate(zip(parts, problem.all_groups, strict=True)):
        z = state.f[part]
        state.offsets[k] = group.intercept.best(terms, part, z, float(state.offsets[k]))
        sums = loss_sums(terms, part, z, state.offsets[k], alpha)
        paid += sums.paid + group.intercept.paid(float(state.offsets[k]))
        conjugates += sums.conjugates
        # Half the squared norm is (1/2) beta' f = (C / 2) sum_i a_i f_i.
        half_norm += 0.5 * problem.C * sums.products
    # P = C (losses) + ||w||^2 / 2 and D = -C (conjugates) - ||w||^2 / 2.
    primal = primal_of(problem.C, paid, half_norm)
    dual = dual_of(problem.C, conjugates, half_norm)
    state.estimate = Certificate(primal, dual).relative_gap


def dual_slopes(
    problem: KernelProblem, state: KernelState, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return the slopes of the dual as the beta of `rows` rise, and (negative) as they fall.

    Both are ``-(g + b)``, but for a tube.
    """
    beta = state.beta[rows]
    offsets = state.offsets[problem.group_of[rows]]
    slope = problem.y[rows] - state.f[rows] - offsets
    if problem.tube == 0.0:
        return slope, slope
    tube = problem.tube
    rise = slope - np.where(beta >= 0.0, tube, -tube)
    fall = slope - np.where(beta > 0.0, tube, -tube)
    return rise, fall


def find_violating(problem: KernelProblem, state: KernelState) -> np.ndarray:
    """Return which rows have a slope that points into their box, shape (n,)."""
    rise, fall = dual_slopes(problem, state, problem.members)
    rises = (rise > 0.0) & (state.beta < state.high)
    falls = (fall < 0.0) & (state.beta > state.low)
    return rises | falls


def find_movable(state: KernelState) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows at work may rise, and which may fall."""
    beta = state.beta[state.at_work]
    return beta < state.high[state.at_work], beta > state.low[state.at_work]


def find_contenders(problem: KernelProblem, state: KernelState) -> np.ndarray:
    """Return which rows at work a violating pair may contain."""
    # With the best offset, the largest slope up U and the least slope down D enclose zero, and
    # U - D is the violation. So a row is in a violating pair only if its slope up exceeds
    # D >= -violation, or its slope down is below U <= violation.
    rise, fall = dual_slopes(problem, state, state.at_work)
    may_rise, may_fall = find_movable(state)
    return (may_rise & (rise >= -state.violation)) | (may_fall & (fall <= state.violation))
