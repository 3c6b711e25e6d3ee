"""Small kernel problems, such as the pairs of many classes: solved and certified in compiled code,
many at a time.

Python takes longer to pose a problem of some hundred rows than the solver takes to solve it. So the
problems of a bundle are laid out in turn over the kernel matrix of all points. A compiled loop
takes pair steps on each of them until the gap that the steps' own numbers give is small, and
another one computes the sums of certificates. If compiled code can compute the kernel rows, pairs
share a table and compute the parts of rows that they need; a single problem, or a pair of so many
that the matrix of all points would be too large, has a table of its own. The formulas are the same
as for a single fit. A problem that this does not certify, because of rounding, hardness or an
interrupt, gets a fit of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.fit.loop import Batch, Ended, ProblemInWork
from saddlesvm.fit.outcome import FitResult, Outcome, Record, Trace
from saddlesvm.kernel.ascent_state import SAMPLE, ZERO_NORM
from saddlesvm.kernel.kernel_errors import KernelErrors, mix_errors
from saddlesvm.kernel.kernel_sums import (
    COMMON,
    PLACES,
    BoxedLoss,
    JudgedRows,
    best_offsets,
    boxed_loss,
    certificate_of_sums,
    certificate_sums,
    conjugate_value,
    half_square,
    loss_value,
)
from saddlesvm.kernel.mercer import leaf_of
from saddlesvm.kernel.nu_machines import PLAIN, Layout, Machine, ModelFacts, PublishedModel
from saddlesvm.kernel.pair_ascent import QuadraticProgram, pair_steps
from saddlesvm.kernel.row_table import HELD, KernelTable, RowTable, place_of, whole_table
from saddlesvm.problem.bounds import UNIT, dual_of, primal_of
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.problem import Strength
from saddlesvm.problem.terms import weight_of
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.compiled import arithmetic, kernel, searching_kernel

# Violation, relative to the gap asked for, that may prove it if margins are about 1 (guessed)
FIRST_ACCURACY = 3.0
# Least and largest ratio of an accuracy to the one before (guessed)
LEAST_RATIO = 0.01
LARGEST_RATIO = 0.7
AIM = 0.9  # share of the gap asked for that the steps end at: rounding has the rest (guessed)
ROUNDS = 40  # accuracies after which a problem gets a fit of its own (guessed)
# Pair steps after which a problem gets a fit of its own (measured: 400 to 1,000 rows, C up to 1e5)
MOST_STEPS = 100_000
TINY = 1e-300  # instead of an objective of zero (derived)


class Programs(NamedTuple):
    """Problems whose rows stand problem by problem, and part by part.

    Attributes
    ----------
    table : KernelTable
        Kernel values.
    judged : JudgedRows
        The rows as certificates take them.
    begins : ndarray of shape (problems + 1,)
        First row of each problem, and the number of rows.
    starts : ndarray of shape (problems, parts + 1)
        First row of each part within the problem, and the rows of all parts.
    columns : ndarray of shape (problems, parts)
        The first point of each part; the others follow.
    signs : ndarray of shape (parts,)
        -1.0 and 1.0: the kernel value of two rows is that of their points times both signs.
    groups : ndarray of shape (groups + 1,)
        The first part of each group, and the number of parts.
    segments : int ndarray of shape (problems, parts)
        The segments of the table's rows that have the values with the points of each part.
    tube : float
        See :class:`~saddlesvm.kernel.kernel_problem.KernelProblem`.
    low, high : ndarray of shape (rows,)
        The box of beta.
    bases : ndarray of shape (3, rows)
        See :class:`~saddlesvm.kernel.kernel_errors.KernelErrors`.
    mixing : ndarray of shape (problems, 3, 3)
        The same.
    leaves : ndarray of shape (problems,)
        How many products are added up before their sum is added to the whole.
    """

    table: KernelTable
    judged: JudgedRows
    begins: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    signs: np.ndarray
    groups: np.ndarray
    segments: np.ndarray
    tube: float
    low: np.ndarray
    high: np.ndarray
    bases: np.ndarray
    mixing: np.ndarray
    leaves: np.ndarray


@dataclass(eq=False)
class PairsTask:
    """The facts that all small problems of a model share: their points, classes and options.

    Attributes
    ----------
    gram : ndarray of shape (n, n), optional
        The kernel matrix of all points, which then stand class by class.
    is_shared : bool
        Without a matrix: problems share a table of kernel rows over all points, which stand class
        by class; else each has a table of its own points.
    jobs : int
        Number of threads.
    errors : KernelErrors
        Of all points.
    X : array of shape (n, d)
    rows : sequence of int ndarray
        The points of each class.
    classes : ndarray of shape (problems, parts)
        The classes of points of the parts of each problem.
    labels : sequence of str
        The name of each problem.
    targets : ndarray of shape (n,), optional
        Of the points, if the layout has no labels.
    machine : Machine
    layout : Layout
    C, tol : float
    weights : ndarray of shape (n,), optional
        Positive.
    solver : str
        The name of the solver, for the times of the phases.
    """

    gram: np.ndarray | None
    is_shared: bool
    jobs: int
    errors: KernelErrors
    X: np.ndarray
    rows: Sequence[np.ndarray]
    classes: np.ndarray
    labels: Sequence[str]
    targets: np.ndarray | None
    machine: Machine
    layout: Layout
    C: float
    tol: float
    weights: np.ndarray | None
    solver: str

    @cached_property
    def loss(self) -> BoxedLoss:
        """The loss, as compiled code takes it."""
        return boxed_loss(self.layout.loss)

    @cached_property
    def class_table(self) -> KernelTable:
        """The table that all bundles share."""
        return self.make_class_table()

    def make_class_table(self) -> KernelTable:
        """Return a table of all points, whose rows have a segment for each class."""
        bounds = np.append([rows[0] for rows in self.rows], self.X.shape[0])
        return RowTable(self.errors.kernel, self.X, bounds).table

    def lay_out(self, classes: np.ndarray) -> tuple[Programs, np.ndarray]:
        """Return the problems over these classes, shape (k, parts), and the point of each row."""
        # The rows of each problem, part by part. A part has the points of one class.
        count, parts = classes.shape
        sizes = np.array([rows.size for rows in self.rows])[classes]
        starts = np.zeros((count, parts + 1), dtype=np.int64)
        np.cumsum(sizes, axis=1, out=starts[:, 1:])
        totals = starts[:, -1]
        begins = np.concatenate([[0], np.cumsum(totals)])
        points = np.concatenate([self.rows[c] for c in classes.ravel()])
        # Their kernel values: a table of all points, or, for a single problem, of its points alone.
        columns = np.array([rows[0] for rows in self.rows])[classes]
        segments = np.zeros_like(classes)
        if self.gram is not None:
            table = whole_table(self.gram)
        elif self.is_shared:
            # Threads must not write to the same table.
            table = self.class_table if self.jobs == 1 else self.make_class_table()
            segments = classes
        else:
            table = RowTable(self.errors.kernel, self.X[points]).table
            columns = starts[:, :-1]
        # Labels and weights; the sums of weights in each part give the sums of the dual variables.
        loss = self.loss
        y = self.labels_of(points, sizes)
        s = np.ones(points.size)
        row_weights = np.empty(0)  # as certificates take them: empty if all are 1
        weight_sums = sizes
        if self.weights is not None:
            s = self.weights[points]
            row_weights = s
            weight_sums = np.array([self.weights[rows].sum() for rows in self.rows])[classes]
        low, high = self.box_of(y, s)
        # Bounds on rounding depend on the number of rows.
        counts = totals.tolist()
        mixing = {m: self.errors.mixing(m, UNIT) for m in set(counts)}
        groups = np.array(self.layout.groups)
        judged = JudgedRows(
            groups=begins[:-1, None] + starts[:, groups],
            totals=self.machine.totals(weight_sums.astype(np.float64)),
            y=y,
            lengths=self.errors.lengths[points],
            top=high / self.C,
            weights=row_weights,
            C=self.C,
        )
        programs = Programs(
            table=table,
            judged=judged,
            begins=begins,
            starts=starts,
            columns=columns,
            signs=np.array(self.layout.signs),
            groups=groups,
            segments=segments,
            tube=loss.tube,
            low=low,
            high=high,
            bases=self.errors.bases[:, points],
            mixing=np.array([mixing[m] for m in counts]),
            leaves=np.array([leaf_of(m) for m in counts]),
        )
        return programs, points

    def labels_of(self, points: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return labels or targets of the rows, whose parts have these sizes, shape (k, parts)."""
        # A label for each part; without labels its sign, by which a regression takes its targets.
        part_labels = self.layout.labels
        if part_labels is None:
            part_labels = self.layout.signs
        row_labels = np.repeat(np.tile(part_labels, len(sizes)), sizes.ravel())
        if self.layout.labels is None and self.targets is not None:
            return row_labels * self.targets[points]
        return row_labels

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

        def sum_at_points(beta: np.ndarray) -> np.ndarray:
            # Each group of rows has a sign; a regression has each point twice, once for either side
            # of the tube.
            parts = np.split(beta, programs.starts[k, 1:-1])
            signed = [sign * part for sign, part in zip(self.layout.signs, parts, strict=True)]
            has_points_twice = len(signed) == 2 and programs.columns[k, 0] == programs.columns[k, 1]
            if has_points_twice:
                return signed[0] + signed[1]
            return np.concatenate(signed)

        weights = programs.judged.weights[own]
        total_weight = float(beta.size)
        if weights.size:
            total_weight = float(weights.sum())
        longest = float(programs.judged.lengths[own].max())
        facts = ModelFacts(sum_at_points, longest, self.C * total_weight)
        return self.machine.model(facts, beta, offsets, certificate)


@arithmetic
def program_of(programs: Programs, k: int, first: int, end: int) -> QuadraticProgram:
    """Return the quadratic program of problem k, with the rows from `first` to `end`."""
    return QuadraticProgram(
        programs.table,
        programs.low[first:end],
        programs.high[first:end],
        programs.tube,
        programs.starts[k],
        programs.columns[k],
        programs.signs,
        programs.groups,
        programs.segments[k],
    )


@searching_kernel
def solve_each(
    programs: Programs,
    loss: BoxedLoss,
    point: tuple[np.ndarray, np.ndarray],
    room: np.ndarray,
    extremes: np.ndarray,
    tol: float,
    accuracy: np.ndarray,
    steps: np.ndarray,
) -> None:
    """Take pair steps on each problem until its gap is small, or there were too many.

    Parameters
    ----------
    point : tuple of two ndarrays of shape (rows,)
        The gradients and the coefficients, changed in place.
    room : ndarray of shape (3, m)
        Overwritten; m rows are the most that a problem has.
    extremes : ndarray of shape (groups + 1, 2)
        Overwritten.
    tol : float
        The relative gap asked for.
    accuracy : ndarray of shape (problems,)
        The violation at which the gap is looked at first; overwritten.
    steps : int ndarray of shape (problems,)
        The steps made are added.
    """
    g, beta = point
    for k in range(steps.size):
        first = programs.begins[k]
        end = programs.begins[k + 1]
        program = program_of(programs, k, first, end)
        for _ in range(ROUNDS):
            # Steps up to an accuracy; then the gap by their own numbers, without kernel values.
            left = MOST_STEPS - steps[k]
            steps[k] += pair_steps(
                program, g[first:end], beta[first:end], room, extremes, accuracy[k], left
            )
            gap = estimate_gap(programs, loss, k, g, beta, extremes)
            if gap <= AIM * tol or steps[k] >= MOST_STEPS:
                break
            # The next accuracy is that of the gap asked for, if gap and violation are proportional.
            accuracy[k] *= min(max(AIM * tol / gap, LEAST_RATIO), LARGEST_RATIO)


@kernel
def estimate_gap(
    programs: Programs,
    loss: BoxedLoss,
    k: int,
    g: np.ndarray,
    beta: np.ndarray,
    extremes: np.ndarray,
) -> float:
    """Return the relative gap of problem k, not counting rounding; zero at a w of zero.

    Parameters
    ----------
    g, beta : ndarrays of shape (rows,)
    extremes : ndarray of shape (groups + 1, 2)
        The extreme slopes of each group, by :func:`~saddlesvm.kernel.pair_ascent.pair_steps`.
    """
    judged = programs.judged
    paid = 0.0
    conjugates = 0.0
    squared_norm = 0.0
    largest_norm = 0.0
    given = 0.0
    for group in range(judged.totals.shape[1]):
        # The offset at which slopes up and down are as far from zero.
        offset = -0.5 * (extremes[group, 0] + extremes[group, 1])
        total = judged.totals[k, group]
        given += total
        paid += total * offset
        for i in range(judged.groups[k, group], judged.groups[k, group + 1]):
            y = judged.y[i]
            s = weight_of(judged.weights, i)
            # Margins come from the gradients, g = f - y.
            paid += s * loss_value(loss, -g[i] - offset, y)
            conjugates += conjugate_value(loss, beta[i] / judged.C, y)
            squared_norm += beta[i] * (g[i] + y)
            largest_norm += abs(beta[i]) * judged.lengths[i]
    # Given sums may leave nothing but w = 0, to which a fit of its own comes, too.
    if given != 0.0 and squared_norm <= ZERO_NORM * largest_norm * largest_norm:
        return 0.0
    primal = primal_of(judged.C, paid, 0.5 * squared_norm)
    dual = dual_of(judged.C, conjugates, 0.5 * squared_norm)
    return (primal - dual) / max(abs(primal), abs(dual), TINY)


@kernel
def expand_each(programs: Programs, beta: np.ndarray, f: np.ndarray) -> None:
    """Compute ``f = K beta`` and alpha of all problems, summed as in ``mercer.expand``.

    Parameters
    ----------
    beta : ndarray of shape (rows,)
    f : ndarray of shape (2, rows)
        Overwritten: the values, and ``beta / C`` within its bounds.
    """
    for k in range(programs.leaves.size):
        begin = programs.begins[k]
        end = programs.begins[k + 1]
        columns = programs.columns[k]
        starts = programs.starts[k]
        # The place of alpha holds the sums of the leaf under way until the values are done.
        values = f[0][begin:end]
        leaf_sums = f[1][begin:end]
        in_leaf = 0
        for t in range(values.size):
            values[t] = 0.0
            leaf_sums[t] = 0.0
        # Add the kernel row of every support vector j, a stretch for each part.
        for part in range(columns.size):
            for j in range(starts[part], starts[part + 1]):
                if beta[begin + j] == 0.0:
                    continue
                point = columns[part] + j - starts[part]
                for other in range(columns.size):
                    b = beta[begin + j] * programs.signs[part] * programs.signs[other]
                    first = starts[other]
                    last = starts[other + 1]
                    column = columns[other]
                    into = leaf_sums[first:last]
                    place = place_of(programs.table, point, programs.segments[k, other], column)
                    of_row = programs.table.values[place : place + last - first]
                    for t in range(into.size):
                        into[t] += b * of_row[t]
                # A full leaf goes into the sum: each product takes part in few additions.
                in_leaf += 1
                if in_leaf == programs.leaves[k]:
                    in_leaf = 0
                    for t in range(values.size):
                        values[t] += leaf_sums[t]
                        leaf_sums[t] = 0.0
        for t in range(values.size):
            values[t] += leaf_sums[t]
        # alpha = beta / C, within its bounds.
        for i in range(begin, end):
            f[1, i] = min(max(beta[i], programs.low[i]), programs.high[i]) / programs.judged.C


class SmallPairs:
    """A batch of small problems that are solved together, and singly if that does not certify them.

    See the module.

    Parameters
    ----------
    problems : sequence of int
    task : PairsTask
    make_rest : callable
        Makes a batch of problems that need a fit of their own.
    pick : callable
        Makes of the points of an ended problem, and their coefficients, what is kept of both.
    """

    def __init__(
        self,
        problems: Sequence[int],
        task: PairsTask,
        make_rest: Callable[[list[int]], Batch[FitResult]],
        pick: Callable[[np.ndarray, np.ndarray], Any],
    ) -> None:
        self.problems = problems
        self.task = task
        self.make_rest = make_rest
        self.pick = pick
        self.rest: Batch[FitResult] | None = None
        self.results: dict[int, FitResult] = {}

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[ProblemInWork]:
        """Solve all problems together; then fit the problems that this did not certify singly."""
        done: list[ProblemInWork] = []
        if self.rest is None:
            if not stop.is_set():
                done = self.solve_together()
            self.rest = self.make_rest([k for k in live if k not in self.results])
        return done or self.rest.advance(live, stop)

    def result_of(self, index: int) -> FitResult:
        """Return the result of a problem."""
        if index in self.results:
            return self.results.pop(index)
        assert self.rest is not None
        return self.rest.result_of(index)

    def begin(self) -> None:
        """Lay the problems out, at zero or at a first point that has the given sums."""
        self.programs, self.points = self.task.lay_out(self.task.classes[np.asarray(self.problems)])
        judged = self.programs.judged
        # The point of each problem: at zero the gradient g = f - y is -y.
        self.beta = np.zeros(judged.y.size)
        self.g = -judged.y
        self.f = np.empty((2, judged.y.size))
        self.accuracy = np.full(len(self.problems), FIRST_ACCURACY * self.task.tol)
        if judged.totals.any():
            self.take_first_point()

    def take_first_point(self) -> None:
        """Fill each group in the order of a rough model's values, as `first_point` does."""
        programs = self.programs
        # The groups of all problems one after the other: where each begins, its size and its sum.
        begins = (programs.begins[:-1, None] + programs.starts[:, programs.groups[:-1]]).ravel()
        sizes = np.diff(np.append(begins, self.beta.size))
        totals = self.task.C * programs.judged.totals.ravel()
        group_of = np.repeat(np.arange(sizes.size), sizes)
        # The rough model: each sum spread over a sample of the group's rows.
        place = np.arange(group_of.size) - begins[group_of]
        chosen = place % np.maximum(1, sizes // SAMPLE)[group_of] == 0
        self.beta[chosen] = (totals / np.bincount(group_of[chosen]))[group_of[chosen]]
        expand_each(programs, self.beta, self.f)
        # Fill the hardest rows of each group up to their bounds, until its sum is reached.
        order = np.lexsort((self.f[0] - programs.judged.y, group_of))
        high = programs.high[order]
        before = np.concatenate([[0.0], np.cumsum(high)])
        filled = before[:-1] - before[begins][group_of]
        self.beta[order] = np.clip(totals[group_of] - filled, 0.0, high)
        expand_each(programs, self.beta, self.f)
        self.g += self.f[0]
        # An accuracy is a violation: a share of the objective, whose parts are beta'f / 2 and
        # beta'y, divided by the sum of the dual variables, which is what a change of all slopes by
        # 1 changes the objective by.
        sizes = self.beta * (np.abs(programs.judged.y) + 0.5 * self.f[0])
        objectives = np.add.reduceat(sizes, programs.begins[:-1])
        sums = programs.judged.totals.sum(axis=1)
        self.accuracy *= np.abs(objectives) / (self.task.C * sums)

    def solve_together(self) -> list[ProblemInWork]:
        """Solve and certify all problems; return the problems whose gap is proven."""
        count = len(self.problems)
        began = clock()
        self.begin()
        self.solve()
        solved = clock()
        self.sum_up()
        certified = [self.certificate_of(k) for k in range(count)]
        # All problems have the same share of the time.
        seconds = ((solved - began) / count, (clock() - solved) / count)

        # Models whose gap is not small enough are dropped: these problems get fits of their own.
        done: list[ProblemInWork] = []
        for k, found in enumerate(certified):
            model = self.task.model_of(self.programs, k, self.beta[self.rows(k)], found)
            if model.certificate.sound and model.certificate.relative_gap <= self.task.tol:
                done.append(Ended(self.problems[k]))
                self.results[self.problems[k]] = self.result(k, found, model, seconds)
        return done

    def solve(self) -> None:
        """Take pair steps on all problems."""
        programs = self.programs
        count = len(self.problems)
        room = np.empty((3, int(np.diff(programs.begins).max())))
        extremes = np.empty((programs.groups.size, 2))
        solve_each(
            programs,
            self.task.loss,
            (self.g, self.beta),
            room,
            extremes,
            self.task.tol,
            self.accuracy,
            np.zeros(count, dtype=np.int64),
        )

    def sum_up(self) -> None:
        """Compute the sums of the certificates of all problems."""
        programs = self.programs
        judged = programs.judged
        loss = self.task.loss
        live = np.arange(len(self.problems))
        # 1. Kernel sums, computed anew: those of the steps have the rounding of many updates.
        expand_each(programs, self.beta, self.f)
        values, alpha = self.f

        # 2. Bounds on the rounding of these sums, and with them on beta' K beta / 2.
        slips = np.empty(values.size)
        self.halves = []
        for k in live.tolist():
            own = self.rows(k)
            beta = self.beta[own]
            bases = programs.bases[:, own]
            slips[own] = mix_errors(programs.mixing[k], bases, np.abs(beta))
            self.halves.append(half_square(beta, values[own], slips[own]))

        # 3. The best offset of each group, and the sums of both objectives at it.
        self.offsets = np.zeros(judged.totals.shape)
        best_offsets(judged, loss, live, values, self.offsets)
        point = (values, slips, self.beta, alpha)
        self.numbers = np.empty((live.size, COMMON + PLACES * judged.totals.shape[1]))
        certificate_sums(judged, loss, live, point, self.offsets, self.numbers)

    def certificate_of(self, k: int) -> tuple[Certificate, Any]:
        """Return the certificate of problem k, and its groups' offsets; a number for one group."""
        offsets = self.offsets[k].copy()
        own = self.rows(k)
        certificate = certificate_of_sums(
            self.task.layout.loss,
            Strength(self.task.C, own.stop - own.start),
            self.programs.judged.totals[k].tolist(),
            self.numbers[k].tolist(),
            (self.halves[k], self.halves[k]),
        )
        return certificate, offsets if offsets.size > 1 else float(offsets[0])

    def rows(self, k: int) -> slice:
        """Return the rows of problem k of this bundle."""
        return slice(int(self.programs.begins[k]), int(self.programs.begins[k + 1]))

    def result(
        self,
        k: int,
        certified: tuple[Certificate, Any],
        model: PublishedModel,
        seconds: tuple[float, float],
    ) -> FitResult:
        """Return the result of a problem whose gap is proven, with a trace of one record."""
        own = self.rows(k)
        size = own.stop - own.start
        solving, certifying = seconds
        certificate, offsets = certified
        # The record has the numbers of the solver's own problem; the result those of the model.
        trace = Trace()
        trace(
            Record.from_certificate(
                certificate,
                epoch=1.0,
                rows_touched=size,
                seconds_solving=solving,
                seconds_certifying=certifying,
                active=size,
                change=np.nan,
                remark="",
                coef=self.beta[own],
                intercept=offsets,
                problem=self.task.labels[self.problems[k]],
                kernel_evaluations=min(size * size, int(self.programs.table.marks[HELD])),
            )
        )
        return FitResult(
            coef=self.pick(self.points[own][: model.coef.size], model.coef),
            intercept=model.intercept,
            alpha=self.f[1][own].copy(),
            certificate=model.certificate,
            outcome=Outcome.CERTIFIED,
            tol=self.task.tol,
            epochs=1.0,
            rows_touched=size,
            seconds_solving=solving,
            seconds_certifying=certifying,
            trace=trace,
            reason=f"relative gap {model.certificate.relative_gap:.2g}",
            phases={self.task.solver: solving},
        )
