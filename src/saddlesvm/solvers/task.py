"""A task of Newton's method, and its points, each evaluated by a pass over the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.rows.matrix import pieces
from saddlesvm.rows.places import FLOAT64, Memory
from saddlesvm.runtime.threads import run_pieces
from saddlesvm.solvers.machines import Binary, ResponseSums, SoftmaxMachine

Answer = TypeVar("Answer")

CACHED_SCORES = 2**15  # scores that are evaluated at once: 256 KB; guessed
# The pull is updated by the rows whose dual variables change if these are less than this share of
# the rows whose dual variables are not zero; guessed.
FEWER_CHANGED = 0.7
# Passes in a row without a lower objective or a higher bound that end a run; guessed.
IDLE_PASSES = 8
# What equations take for the zero in R that belongs to a free intercept: positive, so that a step
# is finite if no row bends; guessed.
FREE_RIDGE = 1e-8
# C ||x_i||^2 of the median row up to which a share has a larger C than all rows. Measured, a9a and
# 30,000 x 200: without the limit C = 100 takes up to 1.6 times the passes; 12 to 400 are alike.
STEEPEST = 120.0
# Rows of a share that are neighbours in memory, which is read in long pieces; guessed.
GROUP_ROWS = 16


@dataclass
class Task:
    """What a run minimises: rows, loss, regulariser and strength.

    Attributes
    ----------
    place : Memory
    machine : Binary or SoftmaxMachine
    ridge : ndarray of shape (d + 1,)
        The diagonal of R: 1, but 0 for a free intercept.
    C : float
    keeps_factor : bool
        True if a factor may serve for several steps, because curvature changes smoothly.
    keeps_scores : bool
        True if points hold the scores and dual variables of all rows; otherwise a pass forgets them
        block by block.
    least_ridge : float
        Newton's equations take this for a smaller number on the diagonal of R.
    patience : int
        Passes in a row without a better bound after which rounding leaves nothing to gain.
    balance : callable, optional
        Only for a free intercept, which requires a sum of the dual variables. Called with a point
        whose gap seems small enough; returns dual variables that have the sum, and their bound.
    linear : ndarray of shape (d + 1,), or (1,) if it is zero
        A linear term ``linear . W`` of the objective: minus the pull of rows that are left out
        because their dual variables are known.
    norms : ndarray of shape (n,)
        ``||x_i||^2``, which say how large a proximity is.
    most_side : int
        Features, or rows, of a factor at most.
    curvature_at : callable, optional
        Only where rows are not visited one by one: returns the curvature of a task at
        weights.
    """

    place: Memory
    machine: Binary | SoftmaxMachine
    ridge: np.ndarray
    C: float
    keeps_factor: bool = False
    keeps_scores: bool = True
    least_ridge: float = FREE_RIDGE
    patience: int = IDLE_PASSES
    balance: Callable[[EvaluatedPoint], tuple[np.ndarray, float]] | None = None
    linear: np.ndarray = field(default_factory=lambda: np.zeros(1))
    norms: np.ndarray = field(default_factory=lambda: np.empty(0))
    most_side: int = 5000
    curvature_at: Callable[[Task, np.ndarray], PassCurvature] | None = None

    def take_share(self, stride: int) -> Task:
        """Return the task of every stride-th group of 16 rows, weighted as if they were all."""
        rows = np.flatnonzero(np.arange(self.place.n) // GROUP_ROWS % stride == 0)
        few = self.place.take(rows)
        # The losses of the share stand for all losses: C grows as the number of rows shrinks.
        C = self.C * self.place.n / rows.size
        norms = self.norms
        if norms.size:
            # But a few rows would give rare features large weights, from which steps return slowly.
            norms = norms[rows]
            if C * float(np.median(norms)) > STEEPEST:
                C = max(self.C, STEEPEST / float(np.median(norms)))
        return replace(
            self, place=few, machine=self.machine.take(rows), C=C, balance=None, norms=norms
        )

    def regularizer_at(self, W: np.ndarray) -> float:
        """Return ``1/2 W'RW + linear . W``."""
        half_square = 0.5 * float(np.vdot(W, self.ridge_of_weights * W))
        return half_square + float(np.sum(self.linear * W))

    @property
    def ridge_of_weights(self) -> np.ndarray:
        """Return the diagonal of R: shape (d + 1,), or (d + 1, 1) for several classes."""
        return self.ridge.reshape(-1, *(1,) * len(self.machine.columns))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of weights."""
        return (self.place.d + 1, *self.machine.columns)


class PassCurvature(NamedTuple):
    """The second derivatives at a point, as a pass has summed them.

    Attributes
    ----------
    bent : int
        Number of all rows that bend, that is, have a positive second derivative.
    matrix : ndarray of shape (d + 1, d + 1), optional
        ``sum_i bend_i x_i x_i'``, estimated from a share of the rows.
    is_coarse : bool
        True if its products are in single precision.
    few : Memory, optional
        Rows for products, which the equations of several classes need.
    bends : ndarray
        The bends of these rows, weighted as if they were all.
    machine : SoftmaxMachine, optional
        The machine of these rows.
    is_whole : bool
        True if the matrix is that of all rows.
    """

    bent: int
    matrix: np.ndarray | None
    is_coarse: bool
    few: Memory | None
    bends: np.ndarray
    machine: SoftmaxMachine | None = None
    is_whole: bool = False

    @property
    def is_new(self) -> bool:
        """Return True if the pass has computed more than the number of rows that bend."""
        return self.matrix is not None or self.few is not None


@dataclass
class EvaluatedPoint:
    """A point that a pass has evaluated.

    Attributes
    ----------
    W, Z, A : ndarray
        Weights, scores, and dual variables of the rows; the last two are empty if a task keeps
        none.
    pulled : ndarray
        ``sum_i a_i x_i``.
    gradient : ndarray
        The gradient of the smoothed objective F.
    F, primal, dual : float
        The smoothed objective, and both objectives. The dual one is an estimate until dual
        variables have the sum that a free intercept asks for.
    fenchel_gap : float
        The second term of the gap, ``C sum_i [s_i phi_i(z_i) + s_i phi_i*(-a_i / s_i) + a_i z_i]``:
        how far the dual variables are from slopes of the loss.
    sums : ResponseSums
        Of the losses and the conjugates over the rows.
    is_fresh : bool
        True if scores and pull were computed from all rows in this pass, in double precision.
    curvature : PassCurvature, optional
        If the pass computed it.
    line : ndarray, optional
        F at places of the step that led here, if the pass computed it.
    """

    W: np.ndarray
    Z: np.ndarray
    A: np.ndarray
    pulled: np.ndarray
    gradient: np.ndarray
    F: float
    primal: float
    dual: float
    fenchel_gap: float
    sums: ResponseSums
    is_fresh: bool
    curvature: PassCurvature | None = None
    line: np.ndarray | None = None


def evaluate(
    task: Task,
    W: np.ndarray,
    centre: np.ndarray,
    q: float,
    near: EvaluatedPoint | None = None,
    Z: np.ndarray | None = None,
) -> EvaluatedPoint:
    """Return scores, dual variables, gradient and both objectives at W.

    Parameters
    ----------
    task : Task
    W : ndarray
    centre, q
        The proximal term.
    near : EvaluatedPoint, optional
        A point with dual variables near those at W: only rows where they differ are visited for
        the pull, if these are few.
    Z : ndarray, optional
        The scores at W, if they are known.
    """
    place = task.place
    is_fresh = Z is None and place.kind == FLOAT64
    if not task.keeps_scores:
        # A pass over all rows, block by block.
        nowhere = np.empty((0, *task.machine.columns))
        narrow = place.narrow(W)
        sums_of_blocks: dict[int, ResponseSums] = {}

        def add_block(rows: slice, block: Any, pulled: np.ndarray) -> None:
            A_block, found = task.machine.respond(rows, place.scores(block, narrow), centre, q)
            pulled += place.pull(block, A_block)
            sums_of_blocks[rows.start] = found

        pulled = place.sum_blocks(add_block, task.shape)
        # Added in the order of the rows, whichever thread came first.
        in_order = [sums_of_blocks[start] for start in sorted(sums_of_blocks)]
        sums = np.add.reduce(in_order)
        return add_up(task, W, nowhere, nowhere, ResponseSums(*sums), 0.0, pulled, is_fresh)
    if Z is None:
        Z = score_all(place, W)
    A, totals = respond_all(task, Z, centre, q)
    return evaluate_response(task, W, Z, A, totals, q, near, is_fresh)


def few_rows(task: Task) -> Iterator[slice]:
    """Return slices of all rows, so short that arrays of their scores stay in the cache."""
    size = max(1, CACHED_SCORES // math.prod(task.machine.columns))
    return pieces(task.place.n, size)


def each_of_few(task: Task, work: Callable[[slice], Answer]) -> list[Answer]:
    """Return what a function makes of each slice of :func:`few_rows`; threads share them."""
    parts = list(few_rows(task))
    return run_pieces(lambda k: work(parts[k]), len(parts), task.place.threads)


def respond_all(
    task: Task, Z: np.ndarray, centre: np.ndarray, q: float
) -> tuple[np.ndarray, ResponseSums]:
    """Return the dual variables of all rows at scores Z, and their sums."""
    A = np.empty_like(Z)

    def respond(rows: slice) -> ResponseSums:
        A[rows], found = task.machine.respond(rows, Z[rows], centre, q)
        return found

    sums = np.sum(each_of_few(task, respond), axis=0)
    return A, ResponseSums(*sums.tolist())


def evaluate_response(
    task: Task,
    W: np.ndarray,
    Z: np.ndarray,
    A: np.ndarray,
    sums: ResponseSums,
    q: float,
    near: EvaluatedPoint | None,
    is_fresh: bool,
) -> EvaluatedPoint:
    """Return the point at W, whose scores and dual variables are known, with its pull."""
    # The second term of the gap. It is zero for a smooth loss: the dual variables are its slopes.
    fenchel_gap = 0.0
    if task.machine.kinked or q > 0.0:
        fenchel_gap = task.C * (sums.losses + sums.conjugates + float(np.vdot(A, Z)))
    # The pull of the dual variables nearby, plus that of their changes, if fewer rows change than
    # pull. If the slope of the loss is nowhere constant, all change.
    may_stay = task.machine.kinked or task.machine.cornered or q > 0.0
    if near is not None and may_stay:
        changed = int(np.count_nonzero(near.A != A))
        if changed < FEWER_CHANGED * np.count_nonzero(A):
            pulled = near.pulled + pull_of(task.place, A, near.A)
            return add_up(task, W, Z, A, sums, fenchel_gap, pulled, False)
    return add_up(task, W, Z, A, sums, fenchel_gap, pull_of(task.place, A), is_fresh)


def add_up(
    task: Task,
    W: np.ndarray,
    Z: np.ndarray,
    A: np.ndarray,
    sums: ResponseSums,
    fenchel_gap: float,
    pulled: np.ndarray,
    is_fresh: bool,
) -> EvaluatedPoint:
    """Return the point at W, with objectives and gradient, from the sums over all rows."""
    ridge = task.ridge_of_weights
    # 1/2 W'RW + linear . W, and its conjugate 1/2 V'RV at V = C sum_i a_i x_i - linear.
    regularizer = task.regularizer_at(W)
    V = task.C * pulled - task.linear
    conjugate = 0.5 * float(np.vdot(V, ridge * V))
    gradient = ridge * W - V
    # A free intercept b has no part in the norm; its dual variables must have a certain sum
    # instead. They lack r = R W - V of it at the intercept. To give them the sum costs the dual
    # objective about |r b| + r^2 / 2.
    lacking_sum = gradient * (1.0 - ridge)
    conjugate += float(np.abs(lacking_sum * W).sum()) + 0.5 * float(
        np.vdot(lacking_sum, lacking_sum)
    )
    return EvaluatedPoint(
        W=W,
        Z=Z,
        A=A,
        pulled=pulled,
        gradient=gradient,
        F=regularizer + task.C * sums.smoothed,
        primal=primal_of(task.C, sums.losses, regularizer),
        dual=dual_of(task.C, sums.conjugates, conjugate),
        sums=sums,
        fenchel_gap=fenchel_gap,
        is_fresh=is_fresh,
    )


def score_all(place: Memory, W: np.ndarray) -> np.ndarray:
    """Return ``x_i . W`` of all rows of a place."""
    Z = np.empty((place.n, *W.shape[1:]))

    def score(blocks: Iterable[tuple[slice, Any]]) -> None:
        for rows, block in blocks:
            Z[rows] = place.scores(block, W)

    place.each_piece(score)
    return Z


def pull_of(place: Memory, A: np.ndarray, former: np.ndarray | float = 0.0) -> np.ndarray:
    """Return ``sum_i (a_i - former_i) x_i``, by a pass over the rows where this is not zero."""

    def differences(rows: slice | np.ndarray) -> np.ndarray:
        # Of some rows at a time: no array of all rows is made.
        if isinstance(former, np.ndarray):
            return A[rows] - former[rows]
        return A[rows]

    # Copying the rows that pull pays if they are fewer than half.
    pulls = np.not_equal(A, former)
    if A.ndim == 2:
        pulls = pulls.any(axis=1)
    if 2 * np.count_nonzero(pulls) < place.n:
        rows = np.flatnonzero(pulls)
        return place.pull_some(rows, differences(rows))

    def add_block(part: slice, block: Any, pulled: np.ndarray) -> None:
        pulled += place.pull(block, differences(part))

    return place.sum_blocks(add_block, (place.d + 1, *A.shape[1:]))


def objective_at_zero(task: Task) -> float:
    """Return the objective at zero weights, without reading a row."""
    machine = task.machine
    losses = 0.0
    for rows in few_rows(task):
        zeros = np.zeros((rows.stop - rows.start, *machine.columns))
        # With q = 0 the centre does not count.
        _, sums = machine.respond(rows, zeros, zeros, 0.0)
        losses += sums.losses
    return primal_of(task.C, losses, 0.0)
