"""A task of Newton's method, and its points, each evaluated by a pass over the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.bounds import dual_of, primal_of
from saddlesvm.rows.places import FLOAT64, Memory
from saddlesvm.solvers.machines import Binary, Softmax, Sums

ZEROS = 2**18  # scores at zero that are evaluated at once
LONG = 8  # passes without a lower objective or a higher bound; guessed
FREE = 1e-8  # R of a free intercept in equations: positive, so that a step is finite where no row bends; guessed
NOTHING = 1e-10  # squared norm of weights, relative to what their terms could add up to, that counts as zero
BALANCED = 1e-3  # of the sum that multipliers are asked for, what they may lack to be judged; guessed
RUN = 16  # neighbouring rows of a share, so that memory is read in longer pieces


@dataclass
class Task:
    """What a run minimises: rows, loss, regulariser and strength.

    Attributes
    ----------
    place : Memory
    machine : Binary or Softmax
    ridge : ndarray of shape (d + 1,)
        The diagonal of R: 1, but 0 for a free intercept.
    C : float
    keeps_factor : bool
        True if a factor may serve for several steps, because curvature changes smoothly.
    keeps_scores : bool
        Whether points hold the scores and multipliers of all rows; else a pass forgets them block by block.
    held : float
        What Newton's equations take for R at least.
    patience : int
        Passes in a row without a better bound after which rounding leaves nothing to gain.
    confirm : callable, optional
        Called with a point whose gap seems to be small enough: the multipliers, and a bound that
        counts, if a free intercept asks for sums of the multipliers that they have nearly.
    linear : ndarray of shape (d + 1,), or (1,) if it is zero
        Of a term ``linear . W`` of the objective: minus the pull of rows that are left out, and C times the sum that an
        intercept asks of the multipliers.
    norms : ndarray of shape (n,)
        ``||x_i||^2``, which say how large a proximity is.
    most_side : int
        Features, or rows, of a factor at most.
    """

    place: Memory
    machine: Binary | Softmax
    ridge: np.ndarray
    C: float
    keeps_factor: bool = False
    keeps_scores: bool = True
    held: float = FREE
    patience: int = LONG
    confirm: Callable[[Found], tuple[np.ndarray, float]] | None = None
    linear: np.ndarray = field(default_factory=lambda: np.zeros(1))
    norms: np.ndarray = field(default_factory=lambda: np.empty(0))
    most_side: int = 5000

    def take(self, every: int) -> Task:
        """Return the task of every k-th run of 16 rows, weighted as if they were all."""
        rows = np.flatnonzero(np.arange(self.place.n) // RUN % every == 0)
        C = self.C * self.place.n / rows.size
        few = self.place.take(rows)
        norms = self.norms[rows] if self.norms.size else self.norms
        return replace(self, place=few, machine=self.machine.take(rows), C=C, confirm=None, norms=norms)

    def is_nothing(self, point: Found) -> bool:
        """Return True if a one-class machine's weights are as good as zero: no relative gap falls then."""
        if not self.is_one_class:
            return False
        features = self.C * point.pulled[:-1]
        size = float(self.linear[-1])
        if abs(float(point.gradient[-1])) > BALANCED * abs(size):
            return False
        return float(features @ features) <= NOTHING * size * size

    @property
    def is_one_class(self) -> bool:
        """Return True if a free intercept asks for a sum of the multipliers other than zero."""
        return self.ridge[-1] == 0.0 and bool(self.linear[-1] != 0.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of weights."""
        return (self.place.d + 1, *self.machine.columns)


class Curvature(NamedTuple):
    """What a pass tells of the second derivatives at a point.

    Attributes
    ----------
    bent : int
        Number of all rows that bend.
    matrix : ndarray of shape (d + 1, d + 1), optional
        ``sum_i bend_i x_i x_i'``, as a share of them tells it.
    is_coarse : bool
        Whether its products are in single precision.
    few : Memory, optional
        Rows for products, of which the equations of several classes need some.
    bends : ndarray
        Their bends, as if they were all.
    machine : Softmax, optional
        Their machine.
    is_whole : bool
        Whether the matrix is that of all rows.
    """

    bent: int
    matrix: np.ndarray | None
    is_coarse: bool
    few: Memory | None
    bends: np.ndarray
    machine: Softmax | None = None
    is_whole: bool = False

    @property
    def is_new(self) -> bool:
        """Whether anything but a number was told."""
        return self.matrix is not None or self.few is not None


@dataclass
class Found:
    """What a pass finds at the weights W.

    Attributes
    ----------
    W, Z, A : ndarray
        Weights, scores, and multipliers of the rows; the last two are empty if a task keeps none.
    pulled : ndarray
        ``sum_i a_i x_i``.
    gradient : ndarray
        Of the smoothed objective F.
    F, primal, dual : float
        The dual objective is an estimate until multipliers have the sum that a free intercept asks
        for.
    left : float
        The second term of the gap.
    sums : Sums
    is_fresh : bool
        Whether scores and pull come from the rows themselves, in double precision.
    curvature : Curvature, optional
        If the pass computed it.
    line : ndarray, optional
        F at places of the line that led here, if the pass computed it.
    """

    W: np.ndarray
    Z: np.ndarray
    A: np.ndarray
    pulled: np.ndarray
    gradient: np.ndarray
    F: float
    primal: float
    dual: float
    left: float
    sums: Sums
    is_fresh: bool
    curvature: Curvature | None = None
    line: np.ndarray | None = None


def evaluate(task: Task, W: np.ndarray, centre: np.ndarray, q: float, known: Found | None = None) -> Found:
    """Return scores, multipliers, gradient and both objectives at W, by a pass over the rows.

    `known` has the scores at W already: then only rows whose multipliers change are visited.
    """
    place = task.place
    machine = task.machine
    if known is None:
        kept = place.n if task.keeps_scores else 0
        Z = np.empty((kept, *machine.columns))
        A = np.empty_like(Z)
        pulled = np.zeros(task.shape)
        sums = np.zeros(len(Sums._fields))
        for rows, block in place.blocks():
            scores = place.scores(block, W)
            multipliers, found = machine.respond(rows, scores, centre, q)
            pulled += place.pull(block, multipliers)
            sums += found
            if kept:
                Z[rows] = scores
                A[rows] = multipliers
    else:
        Z = known.Z
        A, found = machine.respond(slice(0, place.n), Z, centre, q)
        sums = np.array(found)
        pulled = known.pulled + pull_of_change(place, A - known.A)
    totals = Sums(*sums.tolist())
    # The second term of the gap, which is zero for smooth losses: their multipliers are the slopes at the scores.
    left = task.C * (totals.paid + totals.conjugates + float(np.vdot(A, Z))) if machine.kinked or q > 0.0 else 0.0
    is_fresh = known is None and place.kind == FLOAT64
    return add_up(task, W, Z, A, totals, left, pulled, is_fresh)


def add_up(
    task: Task,
    W: np.ndarray,
    Z: np.ndarray,
    A: np.ndarray,
    sums: Sums,
    left: float,
    pulled: np.ndarray,
    is_fresh: bool,
) -> Found:
    """Objectives and gradient at W from the sums over all rows."""
    machine = task.machine
    ridge = task.ridge.reshape(-1, *(1,) * len(machine.columns))
    half = 0.5 * float(np.vdot(W, ridge * W))
    half += float(np.sum(task.linear * W))
    V = task.C * pulled - task.linear
    reached = 0.5 * float(np.vdot(V, ridge * V))
    gradient = ridge * W - V
    # A free intercept has no part in the norm: multipliers have to sum to zero instead. About what that will cost:
    lacking = gradient * (1.0 - ridge)
    reached += float(np.abs(lacking * W).sum()) + 0.5 * float(np.vdot(lacking, lacking))
    return Found(
        W=W,
        Z=Z,
        A=A,
        pulled=pulled,
        gradient=gradient,
        F=half + task.C * sums.smoothed,
        primal=primal_of(task.C, sums.paid, half),
        dual=dual_of(task.C, sums.conjugates, reached),
        sums=sums,
        left=left,
        is_fresh=is_fresh,
    )


def pull_of_change(place: Memory, change: np.ndarray) -> np.ndarray:
    """Return the pull of changes of multipliers; if half of them are zero, other rows are visited only."""
    rows = np.flatnonzero(change.reshape(place.n, -1).any(axis=1))
    few = place
    if 2 * rows.size < place.n:
        few = place.take(rows)
        change = change[rows]
    pulled = np.zeros((place.d + 1, *change.shape[1:]))
    for part, block in few.blocks():
        pulled += few.pull(block, change[part])
    return pulled


def objective_at_zero(task: Task) -> float:
    """The objective at zero weights; no row is read."""
    machine = task.machine
    size = max(1, ZEROS // max(1, *machine.columns, 1))
    paid = 0.0
    for first in range(0, task.place.n, size):
        rows = slice(first, min(first + size, task.place.n))
        zeros = np.zeros((rows.stop - first, *machine.columns))
        paid += machine.respond(rows, zeros, zeros, 0.0)[1].paid
    return primal_of(task.C, paid, 0.0)
