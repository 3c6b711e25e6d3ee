"""Many pairs of classes: solved and certified in compiled code, small ones over one kernel matrix many at a time.

A pair of some hundred rows takes the solver less time than Python takes to pose its problem. Here the pairs of a bundle
are laid out one after the other, the kernel matrix is that of all points, and two compiled loops take turns: pair steps
to some accuracy, and the sums of certificates. Where the matrix of all points is too large, a bundle is one pair, which
computes the kernel rows that it needs. The formulas are those of a single fit. A pair that this does not certify,
because rounding, a hard problem or an interrupt is in the way, is left to the fit of its own that it would otherwise
have had.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddlesvm.fit.loop import Ended, InTurn, Worked
from saddlesvm.fit.outcome import FitResult, Outcome
from saddlesvm.fit.trace import Record, Trace
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.kernel_certificate import PointErrors, with_rounding
from saddlesvm.problem.kernel_sums import SUMS, PairProblems, certificate_sums
from saddlesvm.problem.loss import Loss, Shape, traits_of
from saddlesvm.problem.problem import Strength
from saddlesvm.problem.proven_sums import Sums
from saddlesvm.problem.rounding import UNIT, PointSizes, RowSizes, gamma, unbalance
from saddlesvm.rows.kernel_errors import KernelErrors
from saddlesvm.rows.kernels import leaf_of
from saddlesvm.rows.row_table import HELD, RowTable, whole_table
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.compiled import searching_kernel
from saddlesvm.solvers.kernel.ascent import Small
from saddlesvm.solvers.kernel.pairs import pair_steps

FIRST_ACCURACY = 1.5  # violation, relative to the gap asked for, that often proves it where margins are about 1
FINER = (0.1, 0.5)  # the least and the largest share of an accuracy that the next one is
AIM = 0.5  # share of the gap asked for that the next accuracy aims at
MOST_STEPS = 100_000  # pair steps of a round
STEPS_ALONE = 5_000  # of a round of a pair with a matrix of its own: a fit of its own shrinks, which pays for hard ones
ROUNDS = 8  # after which a pair has a fit of its own


@dataclass(frozen=True)
class Task:
    """The common part of all pairs of a model.

    Attributes
    ----------
    gram : ndarray of shape (n, n), optional
        The kernel matrix of all points, which then stand class by class.
    errors : KernelErrors
        Of all points.
    X : array of shape (n, d)
    rows : sequence of int ndarray
        The points of each class.
    loss : Loss
    C, tol : float
    weights : ndarray of shape (n,), optional
        Positive.
    solver : str
        The name of the solver, for the times of the phases.
    """

    gram: np.ndarray | None
    errors: KernelErrors
    X: np.ndarray
    rows: Sequence[np.ndarray]
    loss: Loss
    C: float
    tol: float
    weights: np.ndarray | None
    solver: str

    def laid_out(self, pairs: np.ndarray) -> tuple[PairProblems, np.ndarray]:
        """The problems of pairs of classes, shape (k, 2), of one pair without a kernel matrix of all points; and the
        point of each row."""
        sizes = np.array([rows.size for rows in self.rows])[pairs]
        totals = sizes.sum(axis=1)
        begins = np.concatenate([[0], np.cumsum(totals)])
        points = np.concatenate([self.rows[c] for c in pairs.ravel()])
        if self.gram is None:
            table, columns = RowTable(self.errors.kernel, self.X[points]).table, np.array([[0, sizes[0, 0]]])
        else:
            table, columns = whole_table(self.gram), np.array([rows[0] for rows in self.rows])[pairs]
        y = np.repeat(np.tile([-1.0, 1.0], len(pairs)), sizes.ravel())
        s = np.ones(points.size) if self.weights is None else self.weights[points]
        (least, most), (low, high) = self.loss.bounds(-1.0, 1.0), self.loss.bounds(1.0, 1.0)
        ahead, loss, errors = y > 0.0, self.loss, self.errors
        ridge: float = loss.ridge()  # type: ignore[attr-defined]
        different, which = np.unique(totals, return_inverse=True)
        return PairProblems(
            table=table,
            begins=begins,
            starts=np.column_stack([np.zeros(len(pairs), dtype=np.int64), sizes[:, 0], totals]),
            columns=columns,
            y=y,
            low=self.C * np.where(ahead, low, least) * s,
            high=self.C * np.where(ahead, high, most) * s,
            ridge=ridge / (self.C * s) if ridge else np.zeros(y.size),
            lengths=errors.lengths[points],
            weights=np.empty(0) if self.weights is None else s,
            bases=errors.bases[:, points],
            mixing=np.array([errors.mixing(m, UNIT) for m in different.tolist()])[which],
            leaves=np.array([leaf_of(m) for m in different.tolist()])[which],
            C=self.C,
        ), points


@searching_kernel
def solve_each(pairs: PairProblems, live: np.ndarray, point: tuple[np.ndarray, np.ndarray], room: np.ndarray,
               accuracy: np.ndarray, steps: np.ndarray, one: tuple[np.ndarray, ...], most: int) -> None:  # fmt: skip
    """Pair steps on each of the problems `live`, `most` at most, to its own accuracy.

    Parameters
    ----------
    point : tuple of two ndarrays of shape (rows,)
        The gradients and the coefficients, changed in place.
    room : ndarray of shape (3, m)
        Overwritten; m rows are the most that a problem has.
    accuracy : ndarray of shape (pairs,)
    steps : int ndarray of shape (pairs,)
        The steps made are added.
    one : tuple of ndarrays
        The signs and the groups of a program with one group of two parts, and room for its extremes.
    """
    signs, groups, extremes = one
    g, beta = point
    for k in live:
        first, end = pairs.begins[k], pairs.begins[k + 1]
        small = Small(pairs.table, pairs.ridge[first:end], pairs.low[first:end], pairs.high[first:end], 0.0,
                      pairs.starts[k], pairs.columns[k], signs, groups, 0.0)  # fmt: skip
        steps[k] += pair_steps(small, g[first:end], beta[first:end], room, extremes, accuracy[k], most)


def certificate_of(task: Task, rows: int, numbers: np.ndarray) -> tuple[Certificate, float]:
    """The certificate of a pair, and its offset.

    Parameters
    ----------
    rows : int
        Of the pair.
    numbers : ndarray of shape (sums,)
        As :func:`~saddlesvm.problem.kernel_sums.certificate_sums` has found them.
    """
    found = dict(zip(SUMS, numbers.tolist(), strict=True))
    n, C, half = float(rows), task.C, 0.5 * found["paired_norm"]
    sizes = PointSizes(0.0, 0.0, 0.0, found["positive"] + found["negative"], found["positive"], found["negative"])
    errors = RowSizes(n, 0.0, 0.0, found["slip"], found["slip_squares"], found["largest_slip"])
    share = unbalance(sizes, RowSizes(n, 0.0, 0.0, 0.0, 0.0, 0.0))
    own = 0.5 * (found["beta_slip"] + gamma(n + 4.0) * found["beta_f"])
    shift = C * share * found["alpha_length"] + found["away_length"] + UNIT * found["beta_length"]
    sums = Sums(found["paid"], found["conjugates"], half, half)
    point = PointErrors(errors, sizes, own, own, shift, share * found["charged"])
    sums = with_rounding(task.loss, C, sums, found["charged"], point)
    return Certificate.of(Strength(C, rows, False), sums), found["offset"]


class SmallPairs:
    """A batch of pairs, see the module.

    Parameters
    ----------
    problems : sequence of int
    task : Task
    pairs : ndarray of shape (problems, 2)
        The two classes of each.
    labels : sequence of str
    rest : callable
        Makes a batch of those pairs that need a fit of their own.
    kept : callable
        Makes of the points of an ended pair, and their coefficients, what is kept of both.
    """

    def __init__(
        self,
        problems: Sequence[int],
        task: Task,
        pairs: np.ndarray,
        labels: Sequence[str],
        rest: Callable[[list[int]], InTurn],
        kept: Callable[[np.ndarray, np.ndarray], Any],
    ) -> None:
        self.problems, self.task, self.pairs, self.labels = problems, task, pairs, labels
        self.make_rest, self.kept = rest, kept
        self.rest: InTurn | None = None
        self.results: dict[int, FitResult] = {}
        self.begun = False

    def begin(self) -> None:
        """Lay the problems out, with all coefficients zero."""
        self.laid_out, self.points = self.task.laid_out(self.pairs)
        count, rows = len(self.problems), self.laid_out.y.size
        self.beta, self.g, self.f = np.zeros(rows), -self.laid_out.y, np.empty((2, rows))
        most = int(np.diff(self.laid_out.begins).max())
        self.room, self.members = np.empty((3, most)), np.arange(most, dtype=np.int32)
        self.accuracy = np.full(count, FIRST_ACCURACY * self.task.tol)
        self.steps, self.numbers = np.zeros(count, dtype=np.int64), np.empty((count, len(SUMS)))
        self.seconds, self.traces = np.zeros((count, 2)), [Trace() for _ in self.problems]
        self.live, self.round, self.begun = np.arange(count), 0, True

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[Worked]:
        """Solve and certify all pairs that are left once; those that need it have a fit of their own at last."""
        if not self.begun:
            self.begin()
        if self.live.size and self.round < ROUNDS and not stop.is_set():
            return self.worked()
        if self.rest is None:
            self.rest = self.make_rest(live)
            self.live = self.live[:0]
        return self.rest.advance(live, stop)

    def worked(self) -> list[Worked]:
        """A round: those whose gap is proven by it."""
        began = clock()
        one = np.ones(2), np.array([0, 2]), np.empty((1, 2))
        most = STEPS_ALONE if self.task.gram is None else MOST_STEPS
        point = self.g, self.beta
        solve_each(self.laid_out, self.live, point, self.room, self.accuracy, self.steps, one, most)
        solved = clock()
        kinked = traits_of(self.task.loss).shape is Shape.KINKED
        given = (self.laid_out, self.task.loss, kinked, self.live, self.members)
        certificate_sums(*given, self.beta, self.f, self.numbers)
        sizes = np.diff(self.laid_out.begins)
        found = [certificate_of(self.task, int(sizes[k]), self.numbers[k]) for k in self.live]
        self.round += 1
        self.seconds[self.live] += np.array([solved - began, clock() - solved]) / self.live.size
        done, left = [], []
        for k, (certificate, offset) in zip(self.live.tolist(), found, strict=True):
            self.note(k, certificate, offset)
            gap = certificate.relative_gap
            if certificate.sound and gap <= self.task.tol:
                done.append(Ended(self.problems[k]))
                self.results[self.problems[k]] = self.result(k, certificate, offset)
            elif np.isfinite(gap):
                left.append(k)
                share = AIM * self.task.tol / gap if gap > 0.0 else FINER[0]
                self.accuracy[k] *= min(max(share, FINER[0]), FINER[1])
        self.live = np.array(left, dtype=np.int64)
        return list(done)

    def rows(self, k: int) -> slice:
        """The rows of the pair k of this bundle."""
        return slice(int(self.laid_out.begins[k]), int(self.laid_out.begins[k + 1]))

    def note(self, k: int, certificate: Certificate, offset: float) -> None:
        """Add a certificate to the trace of a pair."""
        own = self.rows(k)
        size = own.stop - own.start
        held = min(size, int(self.laid_out.table.marks[HELD]))
        self.traces[k](Record(
            epoch=float(self.round), rows_touched=self.round * size, seconds_solving=float(self.seconds[k, 0]),
            seconds_certifying=float(self.seconds[k, 1]), primal=certificate.primal, dual=certificate.dual,
            gap=certificate.gap, relative_gap=certificate.relative_gap, active=size, change=np.nan, remark="",
            coef=self.beta[own], intercept=offset, problem=self.labels[k], form=certificate.form,
            kernel_evaluations=size * held, primal_rounding=certificate.primal_rounding,
            dual_rounding=certificate.dual_rounding,
        ))  # fmt: skip

    def result(self, k: int, certificate: Certificate, offset: float) -> FitResult:
        """The result of a pair whose gap is proven."""
        own, (solving, certifying) = self.rows(k), self.seconds[k].tolist()
        return FitResult(
            coef=self.kept(self.points[own], self.beta[own]), intercept=offset, alpha=self.f[1][own].copy(),
            certificate=certificate, outcome=Outcome.CERTIFIED, tol=self.task.tol, epochs=float(self.round),
            rows_touched=self.round * (own.stop - own.start), seconds_solving=solving, seconds_certifying=certifying,
            trace=self.traces[k], reason=f"relative gap {certificate.relative_gap:.2g}",
            phases={self.task.solver: solving},
        )  # fmt: skip

    def finished(self, index: int) -> FitResult:
        """Return the result of a pair."""
        if index in self.results:
            return self.results.pop(index)
        assert self.rest is not None
        return self.rest.finished(index)
