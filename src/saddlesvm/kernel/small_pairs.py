"""Small kernel problems, such as the pairs of many classes: solved and certified in compiled code,
many at a time.

Python takes longer to pose a problem of some hundred rows than the solver takes to solve it. So the
problems of a bundle are laid out in turn over the kernel matrix of all points, and two compiled
loops take turns: pair steps to some accuracy, and the sums of certificates. If the matrix of all
points is too large, a bundle is a single pair, which computes the kernel rows that it needs. The
formulas are the same as for a single fit. A problem that this does not certify, because of
rounding, hardness or an interrupt, gets a fit of its own.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from saddlesvm.fit.loop import Batch, Ended, ProblemInWork
from saddlesvm.fit.outcome import FitResult, Outcome, Record, Trace
from saddlesvm.kernel.ascent_state import SAMPLE
from saddlesvm.kernel.kernel_errors import KernelErrors
from saddlesvm.kernel.kernel_sums import (
    COMMON,
    LENGTH,
    NORM,
    PLACES,
    SHORT,
    BoxedLoss,
    GroupSums,
    Programs,
    best_offsets,
    certificate_sums,
    expand_each,
)
from saddlesvm.kernel.mercer import leaf_of
from saddlesvm.kernel.nu_machines import PLAIN, Layout, Machine, ModelFacts, PublishedModel
from saddlesvm.kernel.pair_ascent import QuadraticProgram, pair_steps
from saddlesvm.kernel.row_table import HELD, RowTable, whole_table
from saddlesvm.multiclass.fits import TogetherFirst
from saddlesvm.problem.bounds import (
    PAIRED,
    UNIT,
    Bounded,
    Move,
    PointSizes,
    Room,
    RowSizes,
    ValueSums,
    gamma,
    loss_sizes,
    move_to_sum,
    sums_of_values,
)
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.problem import Strength
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.compiled import arithmetic, searching_kernel
from saddlesvm.solvers.task import NOTHING

# Violation, relative to the gap asked for, that often proves it if margins are about 1 (seen)
FIRST_ACCURACY = 1.5
FINER = (0.01, 0.5)  # least and largest ratio of an accuracy to the one before
AIM = 0.5  # share of the gap asked for that the next accuracy aims at
MOST_STEPS = 100_000  # pair steps of a round, at most
# The same for a problem that a fit of its own may shrink, which pays for hard ones (tried)
STEPS_ALONE = 5_000
ROUNDS = 8  # rounds after which a problem gets a fit of its own (guessed)


@dataclass(eq=False)
class PairsTask:
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
        Of the points, if the layout has no labels.
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

    def lay_out(self, classes: np.ndarray) -> tuple[Programs, np.ndarray]:
        """Return the problems over the parts' classes, (k, parts), and the point of each row.

        Without a kernel matrix of all points, k is 1.
        """
        # The rows of each problem, part by part.
        count, parts = classes.shape
        sizes = np.array([rows.size for rows in self.rows])[classes]
        starts = np.zeros((count, parts + 1), dtype=np.int64)
        np.cumsum(sizes, axis=1, out=starts[:, 1:])
        totals = starts[:, -1]
        begins = np.concatenate([[0], np.cumsum(totals)])
        points = np.concatenate([self.rows[c] for c in classes.ravel()])
        # Their kernel values: of all points, or of the only problem's points.
        if self.gram is None:
            table = RowTable(self.errors.kernel, self.X[points]).table
            columns = starts[:, :-1]
        else:
            table = whole_table(self.gram)
            columns = np.array([rows[0] for rows in self.rows])[classes]
        # Labels and weights; the sums of weights in each part give the sums of the dual variables.
        loss = self.loss
        y = self.labels_of(points, sizes)
        s = np.ones(points.size)
        weight_sums = sizes
        if self.weights is not None:
            s = self.weights[points]
            weight_sums = np.array([self.weights[rows].sum() for rows in self.rows])[classes]
        low, high = self.box_of(y, s)
        # Bounds on rounding depend on the number of rows.
        counts = totals.tolist()
        mixing = {m: self.errors.mixing(m, UNIT) for m in set(counts)}
        programs = Programs(
            table=table,
            begins=begins,
            starts=starts,
            columns=columns,
            signs=np.array(self.layout.signs),
            groups=np.array(self.layout.groups),
            totals=self.machine.totals(weight_sums.astype(np.float64)),
            tube=loss.tube,
            y=y,
            low=low,
            high=high,
            ridge=loss.ridge / (self.C * s) if loss.ridge else np.zeros(y.size),
            lengths=self.errors.lengths[points],
            weights=np.empty(0) if self.weights is None else s,
            bases=self.errors.bases[:, points],
            mixing=np.array([mixing[m] for m in counts]),
            leaves=np.array([leaf_of(m) for m in counts]),
            C=self.C,
        )
        return programs, points

    def labels_of(self, points: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return labels or targets of the rows, whose parts have these sizes, shape (k, parts)."""
        labels = self.layout.signs if self.layout.labels is None else self.layout.labels
        each = np.repeat(np.tile(labels, len(sizes)), sizes.ravel())
        if self.layout.labels is None and self.targets is not None:
            return each * self.targets[points]
        return each

    def box_of(self, y: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of beta of rows with these labels and weights."""
        loss = self.loss
        is_positive = y > 0.0
        low = np.where(is_positive, loss.low, loss.least)
        high = np.where(is_positive, loss.high, loss.most)
        return self.C * low * s, self.C * high * s

    def model_of(
        self, programs: Programs, k: int, beta: np.ndarray, certified: tuple[Certificate, Any]
    ) -> PublishedModel:  # fmt: skip
        """Return the model of problem k, with the coefficients of its points."""
        certificate, offsets = certified
        if self.machine is PLAIN:
            return PublishedModel(beta, offsets, certificate)
        own = slice(int(programs.begins[k]), int(programs.begins[k + 1]))

        def of_points(beta: np.ndarray) -> np.ndarray:
            # Each group of rows has a sign; a regression has each point twice, once for either side
            # of the tube.
            parts = np.split(beta, programs.starts[k, 1:-1])
            signed = [sign * part for sign, part in zip(self.layout.signs, parts, strict=True)]
            has_points_twice = len(signed) == 2 and programs.columns[k, 0] == programs.columns[k, 1]
            return signed[0] + signed[1] if has_points_twice else np.concatenate(signed)

        weights = programs.weights[own]
        weight = float(weights.sum()) if weights.size else float(beta.size)
        facts = ModelFacts(of_points, float(programs.lengths[own].max()), self.C * weight)
        return self.machine.model(facts, beta, offsets, certificate)


@arithmetic
def program_of(programs: Programs, k: int, first: int, end: int) -> QuadraticProgram:
    """Return the quadratic program of problem k, with the rows from `first` to `end`."""
    return QuadraticProgram(
        programs.table,
        programs.ridge[first:end],
        programs.low[first:end],
        programs.high[first:end],
        programs.tube,
        programs.starts[k],
        programs.columns[k],
        programs.signs,
        programs.groups,
        0.0,
    )


@searching_kernel
def solve_each(
    programs: Programs,
    live: np.ndarray,
    point: tuple[np.ndarray, np.ndarray],
    room: np.ndarray,
    extremes: np.ndarray,
    accuracy: np.ndarray,
    steps: np.ndarray,
    most: int,
) -> None:
    """Take pair steps on each of the problems `live`, `most` at most, to its own accuracy.

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
        first = programs.begins[k]
        end = programs.begins[k + 1]
        program = program_of(programs, k, first, end)
        steps[k] += pair_steps(
            program, g[first:end], beta[first:end], room, extremes, accuracy[k], most
        )


def certificate_of(
    task: PairsTask, totals: Sequence[float], rows: int, numbers: Sequence[float]
) -> tuple[Certificate, Any]:  # fmt: skip
    """Return the certificate of a problem, and its groups' offsets; a number for one group.

    Parameters
    ----------
    totals : sequence of float
        Of the groups.
    rows : int
        Of the problem.
    numbers : sequence of float
        As :func:`~saddlesvm.kernel.kernel_sums.certificate_sums` has computed them.
    """
    paid, conjugates, charged, norm, paired, slip, squares, largest, own, beta_f, away, length = (
        numbers[:COMMON]
    )
    n = float(rows)
    # A free intercept pays its offset times the given sum of alpha.
    cost = 0.0
    cost_error = 0.0
    moves = []
    offsets = []
    for k, total in enumerate(totals):
        group = GroupSums(*numbers[COMMON + k * PLACES : COMMON + (k + 1) * PLACES])
        moves.append(move_of_group(group, total, charged))
        cost = cost + total * group.offset
        cost_error = cost_error + gamma(8.0) * abs(total * group.offset)
        offsets.append(group.offset)
    # Model and dual point are the same function: half its squared norm, with the error of beta' f.
    half = Bounded(0.5 * norm, 0.5 * (own + gamma(n + 4.0) * beta_f))
    errors = RowSizes(n, 0.0, 0.0, slip, squares, largest)
    found = ValueSums(paid, conjugates, charged, paired, errors, away + UNIT * length)
    sizes = loss_sizes(task.layout.loss, n)
    sums = sums_of_values(sizes, task.C, found, (half, half), Bounded(cost, cost_error), moves)
    if any(totals):
        # Zero is not feasible: it proves nothing.
        sums = sums._replace(at_zero=-math.inf)
    return Certificate.of(Strength(task.C, rows), sums), np.array(offsets) if len(
        offsets
    ) > 1 else offsets[0]


def move_of_group(group: GroupSums, total: float, charged: float) -> Move:
    """Return the move of a group's duals to their sum; `charged` sums the conjugates' sizes."""
    room = Room(group.room, group.room_length, group.charged_at_top)
    sizes = PointSizes(0.0, 0.0, group.alpha_length, 0.0, group.positive, group.negative)
    # The kernel adds SHORT variables, then their sum; few rows meet no more than in array code.
    additions = max(PAIRED, SHORT + group.rows / SHORT + 8.0)
    return move_to_sum(sizes, group.rows, charged, total, lambda: room, additions)


class SmallPairs(TogetherFirst):
    """A batch of small problems, see the module.

    Parameters
    ----------
    problems : sequence of int
    task : PairsTask
    classes : ndarray of shape (problems, parts)
        The classes of points of the parts of each.
    labels : sequence of str
    rest : callable
        As of :class:`~saddlesvm.multiclass.fits.TogetherFirst`.
    pick : callable
        Makes of the points of an ended problem, and their coefficients, what is kept of both.
    """

    def __init__(
        self,
        problems: Sequence[int],
        task: PairsTask,
        classes: np.ndarray,
        labels: Sequence[str],
        rest: Callable[[list[int]], Batch[FitResult]],
        pick: Callable[[np.ndarray, np.ndarray], Any],
    ) -> None:
        super().__init__(problems, rest)
        self.task = task
        self.classes = classes
        self.labels = labels
        self.pick = pick
        self.begun = False

    def begin(self) -> None:
        """Lay the problems out, at zero or at a first point that has the given sums."""
        self.begun = True
        self.programs, self.points = self.task.lay_out(self.classes)
        programs = self.programs
        count = len(self.problems)
        rows = programs.y.size
        self.totals = programs.totals.tolist()
        # The point of each problem: at zero the gradient is -y.
        self.beta = np.zeros(rows)
        self.g = -programs.y
        self.f = np.empty((2, rows))
        self.offsets = np.zeros(programs.totals.shape)
        # Room for steps and for the sums of certificates.
        self.room = np.empty((3, int(np.diff(programs.begins).max())))
        self.numbers = np.empty((count, COMMON + PLACES * programs.totals.shape[1]))
        # The course of each problem.
        self.live = np.arange(count)
        self.round = 0
        self.accuracy = np.full(count, FIRST_ACCURACY * self.task.tol)
        self.steps = np.zeros(count, dtype=np.int64)
        self.seconds = np.zeros((count, 2))
        self.traces = [Trace() for _ in self.problems]
        if programs.totals.any():
            self.take_first_point()

    def take_first_point(self) -> None:
        """Fill each group in the order of a rough model's values, as `first_point` does."""
        programs = self.programs
        # The groups of all problems one after the other: where each begins, its size and its sum.
        begins = (programs.begins[:-1, None] + programs.starts[:, programs.groups[:-1]]).ravel()
        sizes = np.diff(np.append(begins, self.beta.size))
        totals = self.task.C * programs.totals.ravel()
        group_of = np.repeat(np.arange(sizes.size), sizes)
        # The rough model: each sum spread over a sample of the group's rows.
        place = np.arange(group_of.size) - begins[group_of]
        chosen = place % np.maximum(1, sizes // SAMPLE)[group_of] == 0
        self.beta[chosen] = (totals / np.bincount(group_of[chosen]))[group_of[chosen]]
        self.sum_up()
        # Fill the hardest rows of each group up to their bounds, until its sum is reached.
        order = np.lexsort((self.f[0] - programs.y, group_of))
        high = programs.high[order]
        before = np.concatenate([[0.0], np.cumsum(high)])
        filled = before[:-1] - before[begins][group_of]
        self.beta[order] = np.clip(totals[group_of] - filled, 0.0, high)
        self.sum_up()
        self.g += self.f[0]
        # The accuracy is relative to the objective, in the units of the violation.
        for k, (certificate, _) in enumerate(self.certificates()):
            size = max(abs(certificate.primal), abs(certificate.dual))
            self.accuracy[k] *= size / totals.reshape(len(self.totals), -1)[k].sum()

    def sum_up(self) -> None:
        """Compute the sums of the certificates of all problems that are left."""
        programs = self.programs
        loss = self.task.loss
        live = self.live
        expand_each(programs, live, self.beta, self.f)
        best_offsets(programs, loss, live, self.f[0], self.offsets)
        certificate_sums(
            programs, loss, live, (self.beta, self.f[0], self.f[1]), self.offsets, self.numbers
        )

    def certificates(self) -> list[tuple[Certificate, Any]]:
        """Return the certificates of the problems that are left, and their offsets."""
        sizes = np.diff(self.programs.begins).tolist()
        numbers = self.numbers.tolist()
        return [
            certificate_of(self.task, self.totals[k], sizes[k], numbers[k])
            for k in self.live.tolist()
        ]

    def solve_together(self, stop: threading.Event) -> list[ProblemInWork] | None:
        """Solve and certify the problems that are left; return the problems whose gap is proven."""
        if not self.begun:
            self.begin()
        if not self.live.size or self.round >= ROUNDS or stop.is_set():
            return None
        began = clock()
        before = self.steps.copy()
        self.solve()
        solved = clock()
        self.sum_up()
        certified = self.certificates()
        self.round += 1
        self.seconds[self.live] += np.array([solved - began, clock() - solved]) / self.live.size
        done = []
        left = []
        for k, found in zip(self.live.tolist(), certified, strict=True):
            model = self.task.model_of(self.programs, k, self.beta[self.rows(k)], found)
            self.add_record(k, *found)
            gap = model.certificate.relative_gap
            if model.certificate.sound and gap <= self.task.tol:
                done.append(Ended(self.problems[k]))
                self.results[self.problems[k]] = self.result(k, model)
            elif np.isfinite(gap) and not self.is_zero(k) and not self.is_hard(k, before):
                left.append(k)
                # The next accuracy aims at half the gap asked for, if gap and violation are
                # proportional.
                share = AIM * self.task.tol / gap if gap > 0.0 else FINER[0]
                self.accuracy[k] *= min(max(share, FINER[0]), FINER[1])
        self.live = np.array(left, dtype=np.int64)
        return list(done)

    def solve(self) -> None:
        """Take pair steps on the problems left; a single one shares the code of other fits."""
        programs = self.programs
        most = self.task.most
        extremes = np.empty((len(self.task.layout.groups), 2))
        if len(self.problems) == 1:
            program = program_of(programs, 0, 0, self.beta.size)
            steps = pair_steps(
                program, self.g, self.beta, self.room, extremes, float(self.accuracy[0]), most
            )
            self.steps[0] += steps
        else:
            point = (self.g, self.beta)
            solve_each(
                programs, self.live, point, self.room, extremes, self.accuracy, self.steps, most
            )

    def is_zero(self, k: int) -> bool:
        """Return True if the given sums leave nothing but w = 0: a fit of its own then ends."""
        norm = float(self.numbers[k, NORM])
        size = float(self.numbers[k, LENGTH])
        return any(self.totals[k]) and norm <= NOTHING * size * size

    def is_hard(self, k: int, before: np.ndarray) -> bool:
        """Return True if a round took all steps allowed, and a fit of its own has other means."""
        return self.task.gram is not None and bool(self.steps[k] - before[k] >= self.task.most)

    def rows(self, k: int) -> slice:
        """Return the rows of problem k of this bundle."""
        return slice(int(self.programs.begins[k]), int(self.programs.begins[k + 1]))

    def add_record(self, k: int, certificate: Certificate, offsets: Any) -> None:
        """Add a certificate to the trace of a problem."""
        own = self.rows(k)
        size = own.stop - own.start
        held = min(size, int(self.programs.table.marks[HELD]))
        record = Record.from_certificate(
            certificate,
            epoch=float(self.round),
            rows_touched=self.round * size,
            seconds_solving=float(self.seconds[k, 0]),
            seconds_certifying=float(self.seconds[k, 1]),
            active=size,
            change=np.nan,
            remark="",
            coef=self.beta[own],
            intercept=offsets,
            problem=self.labels[k],
            kernel_evaluations=size * held,
        )
        self.traces[k](record)

    def result(self, k: int, model: PublishedModel) -> FitResult:
        """Return the result of a problem whose gap is proven."""
        own = self.rows(k)
        solving, certifying = self.seconds[k].tolist()
        certificate = model.certificate
        return FitResult(
            coef=self.pick(self.points[own][: model.coef.size], model.coef),
            intercept=model.intercept,
            alpha=self.f[1][own].copy(),
            certificate=certificate,
            outcome=Outcome.CERTIFIED,
            tol=self.task.tol,
            epochs=float(self.round),
            rows_touched=self.round * (own.stop - own.start),
            seconds_solving=solving,
            seconds_certifying=certifying,
            trace=self.traces[k],
            reason=f"relative gap {certificate.relative_gap:.2g}",
            phases={self.task.solver: solving},
        )
