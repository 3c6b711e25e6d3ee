"""The loop that drives any solver on any batch of problems until the fit of each has ended.

A batch advances its problems: by steps of a solver, several problems in turn, classes that share
one reading of the rows, or rounds of a cluster. :mod:`saddlesvm.fit.run` decides what happens
between the steps of a problem: certificates, callbacks, checkpoints and the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from saddlesvm.fit.checkpoint import Checkpoint, checkpoint_of
from saddlesvm.fit.outcome import Callback, FitResult, Limits, Outcome, Trace
from saddlesvm.fit.run import Fit
from saddlesvm.problem.certificate import Certificate, Point
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import NEVER, limit_step
from saddlesvm.runtime.interrupts import catch_interrupts

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
Begin = Callable[[int, threading.Event], Fit]

# Stands for the result of a problem that was not begun for lack of time; the caller that set the
# limit replaces it.
LATE = FitResult(
    coef=np.empty(0),
    intercept=0.0,
    alpha=np.empty(0),
    certificate=Certificate(np.nan, np.nan),
    outcome=Outcome.TIME_LIMIT,
    tol=0.0,
    epochs=0.0,
    rows_touched=0,
    seconds_solving=0.0,
    seconds_certifying=0.0,
    trace=Trace(),
)


class ProblemInWork(Protocol):
    """A problem of a batch that the last step advanced."""

    index: int

    def finish_step(self, stopped: bool) -> bool:
        """Certify, call callbacks and write the checkpoint when due; return True if the fit ended.

        `stopped` is True if the fit was interrupted.
        """


class Batch(Protocol[Result_co]):
    """Problems that the loop drives until the fit of each has ended.

    Attributes
    ----------
    problems : sequence of int
        Their numbers.
    """

    problems: Sequence[int]

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[ProblemInWork]:
        """Do a bounded amount of work for some of the problems `live`, and return these.

        `stop` is set if the fit is interrupted; batches that wait for long check it.
        """

    def result_of(self, index: int) -> Result_co:
        """Return the result of a problem whose fit has ended."""


def drive(batch: Batch[Result], stop: threading.Event | None = None) -> list[Result]:
    """Work on a batch until all its fits have ended; return the results in the order of problems.

    Parameters
    ----------
    batch : Batch
    stop : threading.Event, optional
        Set from outside to interrupt all fits. Without it Ctrl-C does so.
    """
    if stop is None:
        with catch_interrupts() as caught:
            return drive(batch, caught)
    results: dict[int, Result] = {}
    live = list(batch.problems)
    while live:
        # A step of the batch, which may end early if the fits are interrupted; then the
        # certificates and the end of each problem it worked on.
        with limit_step(NEVER, stop):
            worked_on = batch.advance(live, stop)
        for problem in worked_on:
            if problem.finish_step(stop.is_set()):
                results[problem.index] = batch.result_of(problem.index)
        live = [index for index in live if index not in results]
    return [results[index] for index in batch.problems]


class Ended:
    """A problem that needs no further work: no time is left, or other problems prove its gap."""

    def __init__(self, index: int) -> None:
        self.index = index

    def finish_step(self, stopped: bool) -> bool:
        """Return True: the fit has ended."""
        return True


class InTurn:
    """A batch whose problems are solved in turn; a single problem is a batch, too.

    Parameters
    ----------
    problems : sequence of int
    begin : callable
        Makes the fit of the problem with a given number, when its turn comes.
    take_result : callable, optional
        Turns a fit that has ended into its result; by default the fit's own result.
    late : callable, optional
        Returns True if no time is left to begin another problem; the remaining problems then have
        the result `LATE`.
    """

    def __init__(
        self,
        problems: Sequence[int],
        begin: Begin,
        take_result: Callable[[Fit], FitResult] | None = None,
        late: Callable[[], bool] | None = None,
    ) -> None:
        self.problems = problems
        self.begin = begin
        self.take_result = take_result
        self.late = late
        self.fit: Fit | None = None

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[ProblemInWork]:
        """Do a step of the first problem that has not ended."""
        if self.fit is None:
            if self.late is not None and self.late():
                return [Ended(index) for index in live]
            self.fit = self.begin(live[0], stop)
        self.fit.step()
        return [self.fit]

    def result_of(self, index: int) -> FitResult:
        """Return the result of the fit, and free its memory before the next fit begins."""
        if self.fit is None:
            return LATE
        ended = self.fit
        self.fit = None
        if self.take_result is None:
            return ended.result()
        return self.take_result(ended)


def fit(
    problem: Problem,
    solver: Any,
    limits: Limits = Limits(),
    *,
    seed: int = 0,
    start: Point | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoint | None = None,
    stop: threading.Event | None = None,
    label: str = "",
) -> FitResult:
    """Drive `solver` on `problem` until the requested gap is proven, or a limit is reached.

    Parameters
    ----------
    problem : Problem
    solver : Solver
    limits : Limits
    seed : int
        Seed of the run's own generator.
    start : Point, optional
        Starting point.
    callbacks : sequence of callables
        Each is called with a :class:`~saddlesvm.fit.outcome.Record` of every certificate, and stops
        the fit if it returns True. A callback with a method ``tick(epoch, estimate, seconds)`` is
        also told of every slice of work.
    checkpoint : Checkpoint, optional
        The fit resumes from its file if it exists, and writes it at intervals and at the end.
    stop : threading.Event, optional
        Set from outside to interrupt the fit. Without it Ctrl-C does so.
    label : str
        Name of the sub-problem in the records.

    Returns
    -------
    FitResult
    """
    file = checkpoint_of(checkpoint, 0, 1, seeded=True)

    def begin(index: int, interrupted: threading.Event) -> Fit:
        return Fit(
            problem,
            solver,
            limits,
            seed=seed,
            start=start,
            callbacks=callbacks,
            checkpoint=file,
            label=label,
        )

    return drive(InTurn(range(1), begin), stop)[0]
