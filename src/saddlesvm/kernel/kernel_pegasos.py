"""Kernel Pegasos: the primal sub-gradient method with w known through sums of violations only.

Shalev-Shwartz, Singer, Srebro and Cotter (2011), "Pegasos: primal estimated sub-gradient solver for
SVM", section 4, figure 3. Step t draws a row i; if ``y_i f_i < 1`` for ``f = (1 / (lambda t)) sum_j
alpha_j y_j k(x_j, .)``, it adds one to ``alpha_i``. Here the sums ``sum_j alpha_j y_j k(x_j, x_i)``
are kept for all rows i: a visit without a violation then costs nothing, and with a violation
a kernel row. Kernel rows that the next draws will need are computed in blocks.

A loss of targets adds ``-phi'(f_i)`` in place of ``y_i`` (section 5). Row weights scale what is
added. A batch of k rows is judged by the same f and counts 1 / k a row. A free intercept takes
sub-gradient steps of its own (section 6); the model gets the best intercept for the last iterate
instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from saddlesvm.kernel.kernel_certificate import nearest_feasible
from saddlesvm.kernel.kernel_problem import KernelProblem
from saddlesvm.kernel.row_blocks import RowCache
from saddlesvm.problem.certificate import KernelPoint, Point
from saddlesvm.problem.loss import subgradient
from saddlesvm.problem.sums import dual_of_margins
from saddlesvm.problem.terms import Pointwise, weight_of
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.compiled import allocating_kernel, inlined
from saddlesvm.runtime.randomness import below, make_random
from saddlesvm.solvers.base import Budget, SolverBase, State

CHUNK = 4096  # rows drawn at a time, and searched for kernel rows to compute (guessed)


@allocating_kernel
def draw_rows(random: np.ndarray, n: int, count: int) -> np.ndarray:
    """Return `count` random rows, with replacement."""
    draws = np.empty(count, np.int64)
    for k in range(count):
        draws[k] = below(random, n)
    return draws


@inlined
def negative_slope(terms: Pointwise, i: int, z: float) -> float:
    """Return ``-s_i phi_i'(z)``: for the hinge y_i if the margin is violated, else 0."""
    return -weight_of(terms.weights, i) * subgradient(terms.loss, z, terms.y[i])


@allocating_kernel
def visit_batches(
    terms: Pointwise,
    held: tuple[np.ndarray, np.ndarray],
    draws: np.ndarray,
    size: int,
    t: int,
    scale: float,
    iterate: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> int:
    """Visit batches of draws from step t on; stop at a draw whose kernel row is missing.

    Returns the number of draws before it, of which whole batches are used.

    Parameters
    ----------
    held : tuple of two ndarrays
        Kernel rows by slot, and the slot of each row; negative if its kernel row is not held.
    scale : float
        ``C n / size``: the iterate is ``w_t = (scale / t) sum_j alpha_j k(x_j, .)``.
    iterate : tuple of three ndarrays
        The free intercept, empty without one; alpha, shape (n,); ``sum_j alpha_j k(x_j, x_i)``,
        shape (n,).
    """
    table, slot = held
    bias, alpha, sums = iterate
    slopes = np.empty(size)
    for start in range(0, draws.size, size):
        # eta = 1 / (lambda t), times 1 / k: w_t = eta sum_j alpha_j k(x_j, .)
        eta = scale / t
        offset = bias[0] if bias.size else 0.0
        # Judge all rows of the batch by w_t, before any of them changes it.
        for k in range(size):
            i = draws[start + k]
            slopes[k] = negative_slope(terms, i, eta * sums[i] + offset)
            if slopes[k] != 0.0 and slot[i] < 0:
                return start + k
        # Add the violations, and their kernel rows to the sums.
        for k in range(size):
            if slopes[k] != 0.0:
                i = draws[start + k]
                alpha[i] += slopes[k]
                if bias.size:
                    bias[0] += eta * slopes[k]
                row = table[slot[i]]
                for j in range(sums.size):
                    sums[j] += slopes[k] * row[j]
        t += 1
    return draws.size


def first_missing(cache: RowCache, rows: np.ndarray, most: int) -> np.ndarray:
    """Return the first `most` distinct rows that are not held."""
    missing = rows[cache.slot[rows] < 0]
    return missing[np.sort(np.unique(missing, return_index=True)[1])[:most]]


@dataclass
class KernelPegasosState(State):
    """The state of a run of kernel Pegasos.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        Sums of ``-s_i phi_i'`` over the visits: for the hinge y_i times the number of violations.
    sums : ndarray of shape (n,)
        ``K alpha``.
    bias : ndarray of shape (1,) or (0,)
        The free intercept; empty for the other kinds.
    steps : int
        Batches so far (t in the paper).
    """

    alpha: np.ndarray = field(kw_only=True)
    sums: np.ndarray = field(kw_only=True)
    bias: np.ndarray = field(kw_only=True)
    random: np.ndarray = field(kw_only=True)
    steps: int = 0
    cache: RowCache = field(kw_only=True)

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed so far, without the certificates."""
        return self.cache.evaluations


@dataclass(frozen=True)
class KernelPegasos(SolverBase):
    """Pegasos in the feature space of a kernel: random sub-gradient steps on the primal.

    Parameters
    ----------
    batch_size : int, default=1
        Rows per step (k in the paper).
    block : int, default=64
        Kernel rows to compute at a time.

    Examples
    --------
    >>> from saddlesvm import SVC, KernelPegasos
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = SVC(
    ...     solver=KernelPegasos(batch_size=10), lam=1e-2, tol=0.2, random_state=0
    ... ).fit(notes.X, notes.y)
    >>> print(model.outcome_)
    certified
    """

    name: ClassVar[str] = "kernel-pegasos"

    batch_size: int = 1
    block: int = 64

    def __post_init__(self) -> None:
        """Refuse numbers that are not positive."""
        if self.batch_size < 1 or self.block < 1:
            raise ValueError(
                f"batch_size and block must be at least 1; got {self.batch_size} and {self.block}"
            )

    def init(
        self, problem: KernelProblem, seed: int, start: Point | None = None
    ) -> KernelPegasosState:
        """Begin at zero; the first step of the method would forget any other start.

        Raises
        ------
        ValueError
            The machine has a nu, or the kernel rows of a batch do not fit into the cache.
        """
        if problem.views is not None or not problem.intercept.homogeneous:
            raise ValueError(
                "kernel Pegasos does not solve the machines with nu: use solver='auto'"
            )
        cache = RowCache(problem.row_source, problem.cache_size)
        # A batch needs the kernel rows of all its violations at once.
        if cache.capacity < min(self.batch_size, problem.n):
            raise ValueError(
                f"cache_size={problem.cache_size:g} MB holds {cache.capacity} kernel rows; a batch "
                "of "
                f"{self.batch_size} may need more: raise cache_size or lower batch_size"
            )
        return KernelPegasosState(
            w=np.empty(0),
            active=problem.n,
            alpha=np.zeros(problem.n),
            sums=np.zeros(problem.n),
            bias=problem.intercept.multiplier(None),
            random=make_random(seed),
            cache=cache,
        )

    def step(
        self, problem: KernelProblem, state: KernelPegasosState, budget: Budget
    ) -> KernelPegasosState:
        """Whole batches, about ``budget.rows`` draws."""
        left = max(1, budget.rows // self.batch_size)
        end = clock() + budget.seconds
        while left > 0 and clock() < end:
            batches = min(left, max(1, CHUNK // self.batch_size))
            draws = draw_rows(state.random, problem.n, batches * self.batch_size)
            self.visit(problem, state, draws)
            left -= batches
        state.epochs = state.rows_touched / problem.n
        return state

    def visit(self, problem: KernelProblem, state: KernelPegasosState, draws: np.ndarray) -> None:
        """Visit the draws; if a kernel row is missing, compute a block of the rows needed next."""
        cache = state.cache
        scale = self.scale(problem)
        iterate = (state.bias, state.alpha, state.sums)
        while draws.size:
            used = visit_batches(
                problem.terms,
                (cache.table, cache.slot),
                draws,
                self.batch_size,
                state.steps + 1,
                scale,
                iterate,
            )
            # Whole batches are done; the batch of the missing row is visited again.
            batches, place = divmod(used, self.batch_size)
            state.steps += batches
            state.rows_touched += used - place
            draws = draws[used - place :]
            if draws.size:
                self.fetch_ahead(problem, state, draws, place)

    def fetch_ahead(
        self, problem: KernelProblem, state: KernelPegasosState, draws: np.ndarray, place: int
    ) -> None:
        """Fetch the kernel rows of the next batch, and of later draws that violate now.

        That of the draw at `place` is missing.
        """
        cache = state.cache
        slopes = np.empty(problem.n)
        eta = self.scale(problem) / (state.steps + 1)
        held = cache.touch(np.unique(draws[: self.batch_size]))
        most = min(cache.capacity - held, max(self.block, self.batch_size))
        offset = float(state.bias[0]) if state.bias.size else 0.0
        dual_of_margins(problem.terms, problem.members, eta * state.sums, offset, slopes)
        slopes[draws[place]] = np.inf  # needed, whatever rounding says
        cache.fetch(first_missing(cache, draws[slopes[draws] != 0.0], most))

    def scale(self, problem: KernelProblem) -> float:
        """Return ``1 / (lambda k)`` for the mean over the rows that take part."""
        return problem.C * problem.n / self.batch_size

    def solution(self, problem: KernelProblem, state: KernelPegasosState) -> KernelPoint:
        """Return the last iterate w_(T+1), and its nearest feasible dual point."""
        beta = state.alpha * (self.scale(problem) / max(1, state.steps))
        return KernelPoint(beta, nearest_feasible(problem, beta))
