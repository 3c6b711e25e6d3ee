"""The fits of all sub-problems of a model: in turn, in threads, or side by side."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from joblib import Parallel, delayed

from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import Batch, Fit, InTurn, drive
from saddlesvm.fit.progress import ProgressBar
from saddlesvm.fit.result import FitResult
from saddlesvm.fit.trace import Callback
from saddlesvm.multiclass.sub_problems import SubProblem, workers
from saddlesvm.runtime.interrupt import interruptible

Result = TypeVar("Result")


def tell_nobody(sub: SubProblem) -> Sequence[Callback]:
    """No callbacks."""
    return ()


@dataclass(kw_only=True)
class Fits(ABC):
    """The common part of the fits of a model's sub-problems.

    Attributes
    ----------
    makers : sequence of callables
        Each makes a :class:`~saddlesvm.multiclass.sub_problems.SubProblem` when its turn comes.
    solver : Solver
    limits : Limits
        Limits of each fit.
    seed : int
        The k-th sub-problem is solved with ``seed + k``.
    n_jobs : int, optional
        Threads over the batches.
    told : callable
        The callbacks of a sub-problem.
    bar : ProgressBar, optional
        Told of every record, and of every sub-problem that is done.
    """

    makers: Sequence[Callable[[], SubProblem]]
    solver: Any
    limits: Limits
    seed: int
    n_jobs: int | None = None
    told: Callable[[SubProblem], Sequence[Callback]] = tell_nobody
    bar: ProgressBar | None = None

    @abstractmethod
    def problem(self, sub: SubProblem) -> Any:
        """The regularised risk problem behind a sub-problem."""

    def begin(self, index: int, stop: threading.Event) -> Fit:
        """Make the fit of the sub-problem `index`, for the loop to drive."""
        sub = self.makers[index]()
        return Fit(
            self.problem(sub), self.solver, self.limits, seed=self.seed + index, callbacks=self.callbacks(sub),
            label=sub.label, index=index,
        )  # fmt: skip

    def callbacks(self, sub: SubProblem) -> list[Callback]:
        """The callbacks that the fit of a sub-problem calls with its certificates."""
        return [*self.told(sub), *([self.bar] if self.bar else ())]

    def finished(self, fit: Fit) -> FitResult:
        """Return the part of an ended fit that is kept."""
        if self.bar:
            self.bar.next_problem()
        return fit.result()

    def batches(self) -> Sequence[Batch[FitResult]]:
        """The batches that the loop drives: one per sub-problem."""
        return [InTurn([k], self.begin, self.finished) for k in range(len(self.makers))]

    def solve(self) -> list[FitResult]:
        """Solve all sub-problems; return their results in order."""
        return drive_all(self.batches(), self.n_jobs)


def drive_all(batches: Sequence[Batch[Result]], n_jobs: int | None) -> list[Result]:
    """Drive batches one after the other, or in `n_jobs` threads; Ctrl-C stops all, with their best models so far."""
    with interruptible() as stop:
        jobs = workers(len(batches), n_jobs)
        if jobs == 1:
            return [result for batch in batches for result in drive(batch, stop)]
        solved = Parallel(n_jobs=jobs, require="sharedmem")(delayed(drive)(batch, stop) for batch in batches)
        return [result for results in solved for result in results]
