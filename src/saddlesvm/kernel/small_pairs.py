"""Small kernel problems, such as the pairs of many classes: solved and certified in compiled code, many at a time.

A problem of some hundred rows takes the solver less time than Python takes to pose it. Here the problems of a bundle
are laid out one after the other, the kernel matrix is that of all points, and two compiled loops take turns: pair steps
to some accuracy, and the sums of certificates. Where the matrix of all points is too large, a bundle is one pair, which
computes the kernel rows that it needs. The formulas are those of a single fit. A problem that this does not certify,
because rounding, a hard problem or an interrupt is in the way, is left to the fit of its own that it would otherwise
have had.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from saddlesvm.fit.loop import Batch, Ended, Worked
from saddlesvm.fit.outcome import FitResult, Outcome, Record, Trace
from saddlesvm.kernel.ascent_state import SAMPLE
from saddlesvm.kernel.kernel_errors import KernelErrors
from saddlesvm.kernel.kernel_sums import (
    COMMON,
    PLACES,
    SUMS,
    BoxedLoss,
    OfGroup,
    Programs,
    best_offsets,
    certificate_sums,
    expand_each,
)
from saddlesvm.kernel.mercer import leaf_of
from saddlesvm.kernel.nu_machines import PLAIN, Layout, Machine, Model, ModelFacts
from saddlesvm.kernel.pair_ascent import Small, pair_steps
from saddlesvm.kernel.row_table import HELD, RowTable, whole_table
from saddlesvm.multiclass.fits import TogetherFirst
from saddlesvm.problem.bounds import (
    UNIT,
    Bounded,
    Move,
    PointSizes,
    Room,
    RowSizes,
    ValueSums,
    gamma,
    loss_sizes,
    sums_of_values,
    to_the_sum,
)
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.problem import Strength
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.compiled import searching_kernel
from saddlesvm.solvers.second_order.first_point import NOTHING

FIRST_ACCURACY = 1.5  # violation, relative to the gap asked for, that often proves it where margins are about 1
FINER = (0.01, 0.5)  # the least and the largest share of an accuracy that the next one is
AIM = 0.5  # share of the gap asked for that the next accuracy aims at
MOST_STEPS = 100_000  # pair steps of a round
STEPS_ALONE = 5_000  # of a round of a problem with a matrix of its own, where a fit shrinks: that pays for hard ones
ROUNDS = 8  # after which a pair has a fit of its own


@dataclass(eq=False)
class Task:
    """The common part of all problems of a model.

    Attributes
    ----------
    gram : ndarray of shape (n, n), optional
        The kernel matrix of all points, which then stand class by class.
    errors : KernelErrors
        Of all points.
    X : array of shape (n, d)
    rows : sequence of int ndarray
        The points of each class.
    targets : ndarray of shape (n,), optional
        Of the points, where the layout has no labels.
    machine : Machine
    layout : Layout
    C, tol : float
    weights : ndarray of shape (n,), optional
        Positive.
    solver : str
        The name of the solver, for the times of the phases.
    most : int
        Pair steps of a round at most.
    """

    gram: np.ndarray | None
    errors: KernelErrors
    X: np.ndarray
    rows: Sequence[np.ndarray]
    targets: np.ndarray | None
    machine: Machine
    layout: Layout
    C: float
    tol: float
    weights: np.ndarray | None
    solver: str
    most: int = MOST_STEPS

    @cached_property
    def loss(self) -> BoxedLoss:
        """The loss, as compiled code takes it."""
        return BoxedLoss.of(self.layout.loss)

    def laid_out(self, classes: np.ndarray) -> tuple[Programs, np.ndarray]:
        """The problems over the classes of each part, shape (k, parts), of one problem without a kernel matrix of all
        points; and the point of each row."""
        count, parts = classes.shape
        sizes = np.array([rows.size for rows in self.rows])[classes]
        starts = np.zeros((count, parts + 1), dtype=np.int64)
        np.cumsum(sizes, axis=1, out=starts[:, 1:])
        totals = starts[:, -1]
        begins = np.concatenate([[0], np.cumsum(totals)])
        points = np.concatenate([self.rows[c] for c in classes.ravel()])
        if self.gram is None:
            table, columns = RowTable(self.errors.kernel, self.X[points]).table, starts[:, :-1]
        else:
            table, columns = whole_table(self.gram), np.array([rows[0] for rows in self.rows])[classes]
        s = np.ones(points.size) if self.weights is None else self.weights[points]
        loss, heavy = self.loss, sizes
        if self.weights is not None:
            heavy = np.array([self.weights[rows].sum() for rows in self.rows])[classes]
        y = self.labels_of(points, sizes)
        low, high = self.box_of(y, s)
        ridge, errors = loss.ridge, self.errors
        counts = totals.tolist()
        mixing = {m: errors.mixing(m, UNIT) for m in set(counts)}
        return Programs(
            table=table,
            begins=begins,
            starts=starts,
            columns=columns,
            signs=np.array(self.layout.signs),
            groups=np.array(self.layout.groups),
            totals=self.machine.totals(heavy.astype(np.float64)),
            tube=loss.tube,
            y=y,
            low=low,
            high=high,
            ridge=ridge / (self.C * s) if ridge else np.zeros(y.size),
            lengths=errors.lengths[points],
            weights=np.empty(0) if self.weights is None else s,
            bases=errors.bases[:, points],
            mixing=np.array([mixing[m] for m in counts]),
            leaves=np.array([leaf_of(m) for m in counts]),
            C=self.C,
        ), points

    def labels_of(self, points: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Labels or targets of the rows, whose parts have these sizes, shape (k, parts)."""
        labels = self.layout.signs if self.layout.labels is None else self.layout.labels
        found = np.repeat(np.tile(labels, len(sizes)), sizes.ravel())
        return found if self.layout.labels is not None or self.targets is None else found * self.targets[points]

    def box_of(self, y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of beta of rows with these labels and weights."""
        loss, ahead = self.loss, y > 0.0
        low, high = np.where(ahead, loss.low, loss.least), np.where(ahead, loss.high, loss.most)
        return self.C * low * s, self.C * high * s

    def model_of(self, programs: Programs, k: int, beta: np.ndarray, certified: tuple[Certificate, Any]) -> Model:
        """The model of problem k, with the coefficients of its points."""
        if self.machine is PLAIN:
            return Model(beta, certified[1], certified[0])
        own, offsets = slice(int(programs.begins[k]), int(programs.begins[k + 1])), certified[1]

        def of_points(beta: np.ndarray) -> np.ndarray:
            parts = np.split(beta, programs.starts[k, 1:-1])
            signed = [sign * part for sign, part in zip(self.layout.signs, parts, strict=True)]
            twice = len(signed) == 2 and programs.columns[k, 0] == programs.columns[k, 1]
            return signed[0] + signed[1] if twice else np.concatenate(signed)

        weights = programs.weights[own]
        heavy = float(weights.sum()) if weights.size else float(beta.size)
        facts = ModelFacts(of_points, float(programs.lengths[own].max()), self.C * heavy)
        return self.machine.model(facts, beta, offsets, certified[0])


def program_of(programs: Programs, k: int, first: int, end: int) -> Small:
    """The quadratic program of problem k, with the rows from `first` to `end`."""
    return Small(programs.table, programs.ridge[first:end], programs.low[first:end], programs.high[first:end],
                 programs.tube, programs.starts[k], programs.columns[k], programs.signs, programs.groups,
                 0.0)  # fmt: skip


@searching_kernel
def solve_each(programs: Programs, live: np.ndarray, point: tuple[np.ndarray, np.ndarray], room: np.ndarray,
               extremes: np.ndarray, accuracy: np.ndarray, steps: np.ndarray, most: int) -> None:  # fmt: skip
    """Pair steps on each of the problems `live`, `most` at most, to its own accuracy.

    Parameters
    ----------
    point : tuple of two ndarrays of shape (rows,)
        The gradients and the coefficients, changed in place.
    room : ndarray of shape (3, m)
        Overwritten; m rows are the most that a problem has.
    extremes : ndarray of shape (groups, 2)
        Overwritten.
    accuracy : ndarray of shape (problems,)
    steps : int ndarray of shape (problems,)
        The steps made are added.
    """
    g, beta = point
    for k in live:
        first, end = programs.begins[k], programs.begins[k + 1]
        small = Small(programs.table, programs.ridge[first:end], programs.low[first:end], programs.high[first:end],
                      programs.tube, programs.starts[k], programs.columns[k], programs.signs, programs.groups,
                      0.0)  # fmt: skip
        steps[k] += pair_steps(small, g[first:end], beta[first:end], room, extremes, accuracy[k], most)


def certificate_of(task: Task, totals: Sequence[float], rows: int, numbers: Sequence[float]) -> tuple[Certificate, Any]:
    """The certificate of a problem, and the offsets of its groups; the offset of a single group is a number.

    Parameters
    ----------
    totals : sequence of float
        Of the groups.
    rows : int
        Of the problem.
    numbers : sequence of float
        As :func:`~saddlesvm.kernel.kernel_sums.certificate_sums` has found them.
    """
    paid, conjugates, charged, norm, paired, slip, squares, largest, own, beta_f, away, length = numbers[:COMMON]
    n, asked, error, moves, offsets = float(rows), 0.0, 0.0, [], []
    for k, total in enumerate(totals):
        group = OfGroup(*numbers[COMMON + k * PLACES : COMMON + (k + 1) * PLACES])
        moves.append(move_of(group, total, charged))
        asked, error = asked + total * group.offset, error + gamma(8.0) * abs(total * group.offset)
        offsets.append(group.offset)
    half = Bounded(0.5 * norm, 0.5 * (own + gamma(n + 4.0) * beta_f))
    errors = RowSizes(n, 0.0, 0.0, slip, squares, largest)
    found = ValueSums(paid, conjugates, charged, paired, errors, away + UNIT * length)
    loss, cost = loss_sizes(task.layout.loss, n), Bounded(asked, error)
    sums = sums_of_values(loss, task.C, found, (half, half), cost, moves)
    if any(totals):
        sums = sums._replace(at_zero=-math.inf)
    return Certificate.of(Strength(task.C, rows), sums), np.array(offsets) if len(offsets) > 1 else offsets[0]


def move_of(group: OfGroup, total: float, charged: float) -> Move:
    """The move of a group's dual variables to their sum; `charged` is the sum of the conjugates' sizes."""
    room = Room(group.room, group.room_length, group.charged_at_top)
    sizes = PointSizes(0.0, 0.0, group.alpha_length, 0.0, group.positive, group.negative)
    return to_the_sum(sizes, group.rows, charged, total, lambda: room)


class SmallPairs(TogetherFirst):
    """A batch of small problems, see the module.

    Parameters
    ----------
    problems : sequence of int
    task : Task
    classes : ndarray of shape (problems, parts)
        The classes of points of the parts of each.
    labels : sequence of str
    rest : callable
        As of :class:`~saddlesvm.multiclass.fits.TogetherFirst`.
    kept : callable
        Makes of the points of an ended problem, and their coefficients, what is kept of both.
    """

    def __init__(
        self,
        problems: Sequence[int],
        task: Task,
        classes: np.ndarray,
        labels: Sequence[str],
        rest: Callable[[list[int]], Batch[FitResult]],
        kept: Callable[[np.ndarray, np.ndarray], Any],
    ) -> None:
        super().__init__(problems, rest)
        self.task, self.classes, self.labels, self.kept = task, classes, labels, kept
        self.begun = False

    def begin(self) -> None:
        """Lay the problems out, with all coefficients zero, or a first point that has the sums asked for."""
        self.laid_out, self.points = self.task.laid_out(self.classes)
        programs, count, rows = self.laid_out, len(self.problems), self.laid_out.y.size
        self.beta, self.g, self.f = np.zeros(rows), -programs.y, np.empty((2, rows))
        self.totals = programs.totals.tolist()
        most = int(np.diff(programs.begins).max())
        self.room = np.empty((3, most))
        self.offsets = np.zeros(programs.totals.shape)
        self.numbers = np.empty((count, COMMON + PLACES * programs.totals.shape[1]))
        self.accuracy = np.full(count, FIRST_ACCURACY * self.task.tol)
        self.steps = np.zeros(count, dtype=np.int64)
        self.seconds, self.traces = np.zeros((count, 2)), [Trace() for _ in self.problems]
        self.live, self.round, self.begun = np.arange(count), 0, True
        if programs.totals.any():
            self.take_first_point()

    def take_first_point(self) -> None:
        """Fill each group in the order of the values that a rough model has, see
        :func:`~saddlesvm.kernel.ascent_state.first_sums`."""
        programs, C = self.laid_out, self.task.C
        groups = (programs.begins[:-1, None] + programs.starts[:, programs.groups[:-1]]).ravel()
        sizes, totals = np.diff(np.append(groups, self.beta.size)), C * programs.totals.ravel()
        own = np.repeat(np.arange(sizes.size), sizes)
        chosen = (np.arange(own.size) - groups[own]) % np.maximum(1, sizes // SAMPLE)[own] == 0
        self.beta[chosen] = (totals / np.bincount(own[chosen]))[own[chosen]]
        self.sum_up()
        order = np.lexsort((self.f[0] - programs.y, own))
        high = programs.high[order]
        before = np.concatenate([[0.0], np.cumsum(high)])
        filled = before[:-1] - before[groups][own]
        self.beta[order] = np.clip(totals[own] - filled, 0.0, high)
        self.sum_up()
        self.g += self.f[0]
        for k, (certificate, _) in enumerate(self.certificates()):
            size = max(abs(certificate.primal), abs(certificate.dual))
            self.accuracy[k] *= size / totals.reshape(len(self.totals), -1)[k].sum()

    def sum_up(self) -> None:
        """The sums of the certificates of all problems that are left."""
        programs, loss, live = self.laid_out, self.task.loss, self.live
        expand_each(programs, live, self.beta, self.f)
        best_offsets(programs, loss, live, self.f[0], self.offsets)
        certificate_sums(programs, loss, live, (self.beta, self.f[0], self.f[1]), self.offsets, self.numbers)

    def certificates(self) -> list[tuple[Certificate, Any]]:
        """The certificates of the problems that are left, and their offsets."""
        sizes = np.diff(self.laid_out.begins).tolist()
        numbers = self.numbers.tolist()
        return [certificate_of(self.task, self.totals[k], sizes[k], numbers[k]) for k in self.live.tolist()]

    def worked(self, stop: threading.Event) -> list[Worked] | None:
        """A round: those whose gap is proven by it."""
        if not self.begun:
            self.begin()
        if not self.live.size or self.round >= ROUNDS or stop.is_set():
            return None
        began, before = clock(), self.steps.copy()
        self.solve()
        solved = clock()
        self.sum_up()
        found = self.certificates()
        self.round += 1
        self.seconds[self.live] += np.array([solved - began, clock() - solved]) / self.live.size
        done, left = [], []
        for k, certified in zip(self.live.tolist(), found, strict=True):
            model = self.task.model_of(self.laid_out, k, self.beta[self.rows(k)], certified)
            self.add_record(k, *certified)
            certificate, gap = model.certificate, model.certificate.relative_gap
            if certificate.sound and gap <= self.task.tol:
                done.append(Ended(self.problems[k]))
                self.results[self.problems[k]] = self.result(k, model)
            elif np.isfinite(gap) and not self.is_zero(k) and not self.is_hard(k, before):
                left.append(k)
                share = AIM * self.task.tol / gap if gap > 0.0 else FINER[0]
                self.accuracy[k] *= min(max(share, FINER[0]), FINER[1])
        self.live = np.array(left, dtype=np.int64)
        return list(done)

    def solve(self) -> None:
        """Pair steps on the problems that are left. Those on a single one are as compiled as in a fit of its own."""
        programs, g, beta, most = self.laid_out, self.g, self.beta, self.task.most
        extremes = np.empty((len(self.task.layout.groups), 2))
        if len(self.problems) == 1:
            small = program_of(programs, 0, 0, beta.size)
            self.steps[0] += pair_steps(small, g, beta, self.room, extremes, float(self.accuracy[0]), most)
        else:
            solve_each(programs, self.live, (g, beta), self.room, extremes, self.accuracy, self.steps, most)

    def is_zero(self, k: int) -> bool:
        """Whether the sums asked for leave nothing but w = 0, as far as rounding shows: a fit of its own ends then."""
        norm, size = self.numbers[k, [SUMS.index("paired_norm"), SUMS.index("beta_length")]].tolist()
        return any(self.totals[k]) and norm <= NOTHING * size * size

    def is_hard(self, k: int, before: np.ndarray) -> bool:
        """Whether a round took all steps that it may, of a problem whose fit of its own has other means."""
        return self.task.gram is not None and bool(self.steps[k] - before[k] >= self.task.most)

    def rows(self, k: int) -> slice:
        """The rows of the problem k of this bundle."""
        return slice(int(self.laid_out.begins[k]), int(self.laid_out.begins[k + 1]))

    def add_record(self, k: int, certificate: Certificate, offsets: Any) -> None:
        """Add a certificate to the trace of a problem."""
        own = self.rows(k)
        size = own.stop - own.start
        held = min(size, int(self.laid_out.table.marks[HELD]))
        self.traces[k](Record.of(
            certificate, epoch=float(self.round), rows_touched=self.round * size,
            seconds_solving=float(self.seconds[k, 0]), seconds_certifying=float(self.seconds[k, 1]), active=size,
            change=np.nan, remark="", coef=self.beta[own], intercept=offsets, problem=self.labels[k],
            kernel_evaluations=size * held,
        ))  # fmt: skip

    def result(self, k: int, model: Model) -> FitResult:
        """The result of a problem whose gap is proven."""
        own, (solving, certifying), certificate = self.rows(k), self.seconds[k].tolist(), model.certificate
        return FitResult(
            coef=self.kept(self.points[own][: model.coef.size], model.coef), intercept=model.intercept,
            alpha=self.f[1][own].copy(), certificate=certificate, outcome=Outcome.CERTIFIED, tol=self.task.tol,
            epochs=float(self.round), rows_touched=self.round * (own.stop - own.start), seconds_solving=solving,
            seconds_certifying=certifying, trace=self.traces[k],
            reason=f"relative gap {certificate.relative_gap:.2g}", phases={self.task.solver: solving},
        )  # fmt: skip
