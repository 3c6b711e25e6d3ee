"""The fits of a list of problems: classes, pairs, targets, folds; in turn, in threads or together.

A sub-problem that the time limit leaves no room to begin gets the model without weights: its best
intercept and its certificate take two sums of row weights, and no pass over the rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from typing import Any, Protocol, TypeVar

import numpy as np

from saddlesvm.fit.checkpoint import checkpoint_of
from saddlesvm.fit.loop import LATE, Batch, InTurn, drive
from saddlesvm.fit.outcome import Callback, FitResult, Limits, Outcome
from saddlesvm.fit.progress import ProgressBar
from saddlesvm.fit.run import Fit
from saddlesvm.multiclass.sub_problems import SharedTime, SubProblem, workers
from saddlesvm.problem.bounds import Sums, gamma, primal_of
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.loss import Loss, subgradient, value
from saddlesvm.problem.problem import Strength, resolve_C
from saddlesvm.runtime.compiled import kernel
from saddlesvm.runtime.interrupts import catch_interrupts
from saddlesvm.runtime.threads import Schedule, results_of

Result = TypeVar("Result")

BUNDLE = 64  # problems that a batch has at least if a single thread solves all; guessed
# An intercept without weights is at most of this size, in units of the scores; guessed.
FARTHEST = 1e4
HALVINGS = 80  # of the interval around an intercept: it then has the last bit; derived
ROUNDINGS = 64.0  # units in the last place by which two losses and their sum may be off; derived
NO_TIME_LEFT = "no time was left to begin"  # the reason of a fit that was not begun


def no_callbacks(sub: SubProblem) -> Sequence[Callback]:
    """No callbacks."""
    return ()


class MachineRows(Protocol):
    """The rows of all problems of a list, and what depends on the kind of machine over them.

    Attributes
    ----------
    reads_together : bool
        True if each block of rows is read once for all problems, which then share the whole time.
    """

    @property
    def reads_together(self) -> bool: ...

    def pose(self, sub: SubProblem) -> Any:
        """Return the problem behind a sub-problem."""

    def begin_at(self, fits: Fits, sub: SubProblem, problem: Any) -> dict[str, Any]:
        """Return where the fit of a sub-problem begins, and what else its fit has of its own."""

    def publish(self, fits: Fits, fit: Fit, result: FitResult) -> FitResult:
        """Return the result of an ended fit as models keep it."""

    def solve_at_once(self, fits: Fits) -> dict[int, FitResult]:
        """Return the results of small problems that are solved at once, by their numbers."""

    def batch_together(self, fits: Fits) -> Sequence[Batch[FitResult]] | None:
        """Return batches of problems that are solved together; None if they are solved in turn."""

    def without_weights(self, tol: float) -> tuple[WithoutWeights, np.ndarray | None] | None:
        """Return the model of sub-problems for which no time is left, and the weights of the rows.

        None if all begin, whatever time it takes: if a start is better, or there is no such model.
        """

    def complete(self, results: list[FitResult]) -> list[FitResult]:
        """Return all results with what is known of them at the end; close what was open."""


@dataclass(kw_only=True)
class Fits:
    """The fits of a list of problems: classes, pairs, targets, folds, or values of C.

    They are solved in turn, in threads, or together; the rows say which, and how each is posed.

    Attributes
    ----------
    problems : sequence of SubProblem
    rows : MachineRows
    solver : Solver
    limits : Limits
        Limits of each fit; a time limit is that of all fits together.
    seed : int
        The k-th sub-problem is solved with ``seed + k``.
    n_jobs : int, optional
        Threads over the batches.
    callbacks_of : callable
        The callbacks of a sub-problem.
    checkpoint : path-like or Checkpoint, optional
    seeded : bool
        True if the seed was given, not drawn anew for each fit: a checkpoint then fits this seed
        only.
    verbose : bool
        True to show a progress bar.
    bar : ProgressBar, optional
        Shows every record, and every sub-problem that is done.
    clock : SharedTime
    """

    problems: Sequence[SubProblem]
    rows: MachineRows
    solver: Any
    limits: Limits
    seed: int
    n_jobs: int | None = None
    callbacks_of: Callable[[SubProblem], Sequence[Callback]] = no_callbacks
    checkpoint: Any = None
    seeded: bool = False
    verbose: bool = False
    bar: ProgressBar | None = field(init=False, default=None)
    clock: SharedTime = field(init=False)

    def __post_init__(self) -> None:
        # Fits that read the same blocks go on together: the time is a single share.
        count = 1 if self.rows.reads_together else len(self.problems)
        self.clock = SharedTime(self.limits.max_time, count)

    @cached_property
    def jobs(self) -> int:
        """Sub-problems that are solved at the same time."""
        return workers(len(self.problems), self.n_jobs)

    @property
    def is_unwatched(self) -> bool:
        """Return True if nobody looks on at the sub-problems, and only a gap ends a fit."""
        limits = self.limits
        has_limit = (
            limits.max_time is not None
            or limits.max_epochs is not None
            or limits.certify_every is not None
        )
        wants_more = limits.tol == 0.0 or limits.keep == "last" or self.checkpoint is not None
        is_watched = self.callbacks_of is not no_callbacks or self.verbose
        return not (has_limit or wants_more or is_watched)

    def solve(self) -> list[FitResult]:
        """Solve all sub-problems, under a progress bar if requested; return their results."""
        if not self.verbose:
            return self.solve_all()
        limits = self.limits
        with ProgressBar(
            limits.tol, len(self.problems), limits.max_epochs, limits.max_time
        ) as self.bar:
            return self.solve_all()

    def solve_all(self) -> list[FitResult]:
        """Solve all sub-problems; return their results in order."""
        results: list[FitResult] = []
        try:
            done = self.rows.solve_at_once(self) if self.is_unwatched else {}
            left = [k for k in range(len(self.problems)) if k not in done]
            if left:
                batches = self.rows.batch_together(self)
                if batches is None:
                    batches = self.batches_in_turn(bundles_of(left, 1, self.jobs))
                done.update(zip(left, drive_all(batches, self.jobs), strict=True))
            results = [done[k] for k in range(len(self.problems))]
            if self.limits.max_time is not None:
                results = self.add_late_models(results)
        finally:
            results = self.rows.complete(results)
        return results

    def begin(self, index: int, stop: threading.Event) -> Fit:
        """Make the fit of the sub-problem `index`, with its share of the time, for the loop."""
        sub = self.problems[index]
        problem = self.rows.pose(sub)
        own = self.rows.begin_at(self, sub, problem)
        limits = self.limits
        # Fits in turn share what is left of max_time.
        if limits.max_time is not None:
            limits = replace(limits, max_time=self.clock.share(self.jobs))
        callbacks = list(self.callbacks_of(sub))
        if self.bar:
            callbacks.append(self.bar)
        checkpoint = checkpoint_of(self.checkpoint, index, len(self.problems), self.seeded)
        # Each problem draws rows by a seed of its own; what `begin_at` returns goes before the
        # common options.
        common = {"solver": self.solver, "limits": limits, "seed": self.seed + index}
        return Fit(
            problem,
            callbacks=callbacks,
            checkpoint=checkpoint,
            label=sub.label,
            index=index,
            **common | own,
        )

    def take_result(self, fit: Fit) -> FitResult:
        """Return the result of an ended fit."""
        self.clock.count_done()
        if self.bar:
            self.bar.next_problem()
        return self.rows.publish(self, fit, fit.result())

    def batches_in_turn(self, bundles: Sequence[Sequence[int]]) -> Sequence[Batch[FitResult]]:
        """Return a batch for each bundle of sub-problems, which are solved in turn."""
        late = None if self.limits.max_time is None else self.is_late
        return [InTurn(bundle, self.begin, self.take_result, late) for bundle in bundles]

    def batch_of(self, problems: Sequence[int]) -> Batch[FitResult]:
        """Return a batch of some problems, solved in turn."""
        return self.batches_in_turn([problems])[0]

    def is_late(self) -> bool:
        """Return True if no time is left to begin another sub-problem."""
        return self.clock.is_over() and self.rows.without_weights(self.limits.tol) is not None

    def add_late_models(self, results: list[FitResult]) -> list[FitResult]:
        """Put the models of sub-problems that were not begun in their places among the results."""
        left = [k for k, result in enumerate(results) if result is LATE]
        known = self.rows.without_weights(self.limits.tol) if left else None
        if known is None:
            return results
        common, weights = known
        models = common.results(sides_of(self.problems, left, weights))
        for k, result in zip(left, models, strict=True):
            results[k] = result
            if self.bar:
                self.bar.next_problem()
        return results


def bundles_of(problems: Sequence[int], together: int, jobs: int) -> list[Sequence[int]]:
    """Return problems in bundles of at least `together`, larger bundles in a single thread."""
    size = together * -(-BUNDLE // together) if jobs == 1 else together
    return [problems[k : k + size] for k in range(0, len(problems), size)]


def drive_all(batches: Sequence[Batch[Result]], jobs: int) -> list[Result]:
    """Drive batches in turn, or in `jobs` threads; Ctrl-C ends all with their best models."""
    with catch_interrupts() as stop:
        if jobs == 1 or len(batches) == 1:
            return list(chain.from_iterable(map(drive, batches, repeat(stop))))
        with Schedule(min(jobs, len(batches)), stop) as schedule:
            results = results_of([schedule.add(drive, batch, stop) for batch in batches])
            return list(chain.from_iterable(results))


@dataclass(frozen=True)
class WithoutWeights:
    """The common part of the results of sub-problems that were not begun.

    Attributes
    ----------
    loss : Loss
        Of a classification.
    C, lam : float or None
        Whichever was given.
    share : float
        As of :class:`~saddlesvm.problem.problem.Strength`.
    charge : float
        An intercept b is charged ``charge b^2 / 2``; infinite if it must be zero.
    tol : float
    coef, alpha : ndarray or CSR array
        Zeros, as the results of fits have them.
    """

    loss: Loss
    C: float | None
    lam: float | None
    share: float
    charge: float
    tol: float
    coef: Any
    alpha: Any

    def results(self, sides: np.ndarray) -> list[FitResult]:
        """Return the results of sub-problems with these sums; those with equal sums share a result.

        `sides` is the array that :func:`sides_of` returns.
        """
        different, which = np.unique(sides, axis=0, return_inverse=True)
        results = [self._result(one) for one in different]
        return [results[k] for k in np.ravel(which)]

    def _result(self, sides: np.ndarray) -> FitResult:
        # Sums of the weights in both classes, and the number of rows.
        negative, positive, n = sides
        C, _ = resolve_C(self.C, self.lam, int(n))
        strength = Strength(C, int(n), uses_lambda=self.C is None, share=self.share)
        b, paid = best_constant(self.loss, negative, positive, self.charge / C)
        # The regulariser; an intercept of zero costs nothing, even at an infinite charge.
        charged = 0.0
        if b:
            charged = 0.5 * self.charge * b * b
        rounding = gamma(n + ROUNDINGS) * primal_of(C, paid, charged)
        certificate = Certificate.from_sums(
            strength,
            Sums(
                paid=paid,
                conjugates=0.0,
                regularizer=charged,
                regularizer_conjugate=0.0,
                primal_rounding=rounding,
            ),
        )
        return FitResult(
            coef=self.coef,
            intercept=b,
            alpha=self.alpha,
            certificate=certificate,
            outcome=Outcome.TIME_LIMIT,
            tol=self.tol,
            reason=NO_TIME_LEFT,
        )


@kernel
def best_constant(
    loss: Loss, negative: float, positive: float, charge: float
) -> tuple[float, float]:
    """The best intercept b without weights, and what the losses then pay.

    Parameters
    ----------
    loss : Loss
    negative, positive : float
        Sums of the rows' weights in both classes.
    charge : float
        An intercept b is charged ``charge b^2 / 2``; infinite if it must be zero.
    """
    farthest = FARTHEST if charge < np.inf else 0.0
    low = -farthest
    high = farthest
    # The slope of a convex function rises: its zero is bracketed by halves.
    for _ in range(HALVINGS):
        b = 0.5 * (low + high)
        slope = charge * b
        slope += positive * subgradient(loss, b, 1.0)
        slope += negative * subgradient(loss, b, -1.0)
        if slope >= 0.0:
            high = b
        if slope <= 0.0:
            low = b
    b = 0.5 * (low + high)
    return b, positive * value(loss, b, 1.0) + negative * value(loss, b, -1.0)


def sides_of(
    problems: Sequence[SubProblem], which: Sequence[int], weights: np.ndarray | None
) -> np.ndarray:
    """Sum the weights of the rows in both classes of sub-problems, and count their rows.

    Parameters
    ----------
    problems : sequence of SubProblem
        If it has a method ``sides(weights)``, that returns the sums of all of them.
    which : sequence of int
    weights : ndarray of shape (n_all,), optional

    Returns
    -------
    ndarray of shape (which, 3)
        The sum over y = -1, that over y = +1, and the number of rows.
    """
    if hasattr(problems, "sides"):
        every: np.ndarray = problems.sides(weights)
        return every[np.asarray(which)]
    found = np.empty((len(which), 3))
    for row, k in enumerate(which):
        sub = problems[k]
        members = slice(None) if sub.members is None else sub.members
        positive = sub.y[members] > 0
        all_weights = sub.row_weights(weights)
        own = np.ones(positive.size)
        if all_weights is not None:
            own = all_weights[members]
        found[row] = own[~positive].sum(), own[positive].sum(), positive.size
    return found
