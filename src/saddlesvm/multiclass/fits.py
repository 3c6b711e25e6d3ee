"""The fits of all sub-problems of a model: in turn, in threads, or side by side."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed

from saddlesvm.fit.checkpoint import checkpoint_of
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import LATE, Batch, Fit, InTurn, drive
from saddlesvm.fit.progress import ProgressBar
from saddlesvm.fit.result import FitResult
from saddlesvm.fit.trace import Callback
from saddlesvm.multiclass.not_begun import WithoutWeights, sides_of
from saddlesvm.multiclass.sub_problems import SharedTime, SubProblem, workers
from saddlesvm.runtime.interrupt import interruptible

Result = TypeVar("Result")

BUNDLE = 64  # problems that one batch has at least where they are solved in a single thread


def tell_nobody(sub: SubProblem) -> Sequence[Callback]:
    """No callbacks."""
    return ()


@dataclass(kw_only=True)
class Fits(ABC):
    """The common part of the fits of a model's sub-problems.

    Attributes
    ----------
    problems : sequence of SubProblem
    solver : Solver
    limits : Limits
        Limits of each fit; a time limit is that of all fits together.
    seed : int
        The k-th sub-problem is solved with ``seed + k``.
    n_jobs : int, optional
        Threads over the batches.
    told : callable
        The callbacks of a sub-problem.
    checkpoint : path-like or Checkpoint, optional
    seeded : bool
        Whether the seed was given, not drawn anew for each fit: a checkpoint then fits this seed only.
    bar : ProgressBar, optional
        Told of every record, and of every sub-problem that is done.
    clock : SharedTime
    jobs : int
        Sub-problems that are solved at the same time.
    """

    problems: Sequence[SubProblem]
    solver: Any
    limits: Limits
    seed: int
    n_jobs: int | None = None
    told: Callable[[SubProblem], Sequence[Callback]] = tell_nobody
    checkpoint: Any = None
    seeded: bool = True
    bar: ProgressBar | None = None
    clock: SharedTime = field(init=False)
    jobs: int = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = workers(len(self.problems), self.n_jobs)
        self.clock = SharedTime(self.limits.max_time, len(self.problems), self.jobs)

    @property
    def unwatched(self) -> bool:
        """Whether nobody looks on as the sub-problems are solved, and nothing but a gap ends a fit."""
        limits = self.limits
        limited = (limits.max_time, limits.max_epochs, limits.certify_every) != (None, None, None) or limits.tol == 0.0
        watched = self.bar or self.checkpoint is not None or self.told is not tell_nobody
        return not (limited or watched or limits.keep == "last")

    @abstractmethod
    def without_weights(self) -> tuple[WithoutWeights, np.ndarray | None] | None:
        """What is told of the sub-problems that the time limit leaves no room to begin, and the weights of the rows.

        None where all begin, whatever time it takes: a start is better than nothing, or nothing is no model.
        """

    @abstractmethod
    def begin(self, index: int, stop: threading.Event) -> Fit:
        """Make the fit of the sub-problem `index`, for the loop to drive."""

    def fit_of(self, index: int, sub: SubProblem, problem: Any, **given: Any) -> Fit:
        """The fit of the sub-problem `index`, with its share of the time, its callbacks and its checkpoint.

        `given` are options of :class:`~saddlesvm.fit.loop.Fit` that take the place of those of all sub-problems.
        """
        limits, callbacks = self.limits, list(self.told(sub))
        if limits.max_time is not None:
            limits = replace(limits, max_time=self.clock.share())
        if self.bar:
            callbacks.append(self.bar)
        common = {"solver": self.solver, "limits": limits, "seed": self.seed + index}
        checkpoint = checkpoint_of(self.checkpoint, index, len(self.problems), seeded=self.seeded)
        return Fit(problem, callbacks=callbacks, checkpoint=checkpoint, label=sub.label, index=index, **common | given)

    def finished(self, fit: Fit) -> FitResult:
        """Return the part of an ended fit that is kept."""
        self.clock.done()
        if self.bar:
            self.bar.next_problem()
        return fit.result()

    def batches(self) -> Sequence[Batch[FitResult]]:
        """The batches that the loop drives: one per sub-problem."""
        return self.in_turn(bundles_of(range(len(self.problems)), 1, self.jobs))

    def in_turn(self, bundles: Sequence[Sequence[int]]) -> Sequence[Batch[FitResult]]:
        """A batch for each bundle of sub-problems."""
        late = None if self.limits.max_time is None else self.late
        batches = []
        for bundle in bundles:
            batches.append(InTurn(bundle, self.begin, self.finished, late))
        return batches

    def late(self) -> bool:
        """Whether no time is left to begin another sub-problem."""
        return self.clock.over() and self.without_weights() is not None

    def solve(self) -> list[FitResult]:
        """Solve all sub-problems; return their results in order."""
        results = drive_all(self.batches(), self.n_jobs)
        return results if self.limits.max_time is None else self.with_late(results)

    def with_late(self, results: list[FitResult]) -> list[FitResult]:
        """The results, those of sub-problems that were not begun put in their places."""
        left = [k for k, result in enumerate(results) if result is LATE]
        known = self.without_weights() if left else None
        if known is not None:
            common, weights = known
            for k, result in zip(left, common.results(sides_of(self.problems, left, weights)), strict=True):
                results[k] = result
                if self.bar:
                    self.bar.next_problem()
        return results


def bundles_of(problems: range, together: int, jobs: int) -> list[range]:
    """Problems in bundles of about as many as begin together; larger ones where a single thread solves all."""
    size = together * -(-BUNDLE // together) if jobs == 1 else together
    bundles = []
    while problems:
        bundles.append(problems[:size])
        problems = problems[size:]
    return bundles


def drive_all(batches: Sequence[Batch[Result]], n_jobs: int | None) -> list[Result]:
    """Drive batches one after the other, or in `n_jobs` threads; Ctrl-C stops all, with their best models so far."""
    with interruptible() as stop:
        jobs = workers(len(batches), n_jobs)
        if jobs == 1:
            solved: Iterable[list[Result]] = map(drive, batches, repeat(stop))
        else:
            solved = Parallel(n_jobs=jobs, require="sharedmem")(delayed(drive)(batch, stop) for batch in batches)
        return list(chain.from_iterable(solved))
