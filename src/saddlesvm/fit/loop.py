"""The one loop that drives any solver on any batch of problems: work, certificates, callbacks, checkpoints, ends.

A batch advances its problems: by steps of one solver, several problems in turn, classes that share one reading of the
rows, or rounds of a cluster. :mod:`saddlesvm.fit.run` decides what happens between the steps of one problem.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import filterfalse
from typing import Any, Protocol, TypeVar

import numpy as np

from saddlesvm.fit.checkpoint import Checkpoint, checkpoint_of
from saddlesvm.fit.outcome import Callback, FitResult, Limits, Outcome, Trace
from saddlesvm.fit.run import Fit
from saddlesvm.problem.certificate import Certificate, Point
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.interrupts import catch_interrupts

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
Begin = Callable[[int, threading.Event], Fit]


class Worked(Protocol):
    """A problem of a batch that was worked on."""

    index: int

    def finish_step(self, stopped: bool) -> bool:
        """Certify, call callbacks and write the checkpoint when due; return whether the fit has ended.

        `stopped` is true when the fit was interrupted.
        """


class Batch(Protocol[Result_co]):
    """Problems that one loop drives until the fit of each has ended.

    Attributes
    ----------
    problems : sequence of int
        Their numbers.
    """

    problems: Sequence[int]

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[Worked]:
        """Do a bounded amount of work for the problems `live`, or for some of them; return the ones worked on.

        `stop` is set when the fit is interrupted; batches that wait for long check it.
        """

    def finished(self, index: int) -> Result_co:
        """Return the result of a problem whose fit has ended."""


def drive(batch: Batch[Result], stop: threading.Event | None = None) -> list[Result]:
    """Work on a batch until the fits of all its problems have ended; return the results in the order of the problems.

    Parameters
    ----------
    batch : Batch
    stop : threading.Event, optional
        Set from outside to interrupt all fits. Without it Ctrl-C does so.
    """
    results: dict[int, Result] = {}
    live = list(batch.problems)
    with catch_interrupts(stop) as interrupted:
        while live:
            for worked in batch.advance(live, interrupted):
                if worked.finish_step(interrupted.is_set()):
                    results[worked.index] = batch.finished(worked.index)
            live = list(filterfalse(results.__contains__, live))
    return list(map(results.__getitem__, batch.problems))


class Ended:
    """A problem of a batch that needs no further work: no time is left for it, or its gap is proven with others'."""

    def __init__(self, index: int) -> None:
        self.index = index

    def finish_step(self, stopped: bool) -> bool:
        """Return True: it has ended."""
        return True


# Stands for the result of a problem that was not begun; whoever gave the time replaces it.
LATE = FitResult(
    np.empty(0), 0.0, np.empty(0), Certificate(np.nan, np.nan), Outcome.TIME_LIMIT, 0.0, 0.0, 0, 0.0, 0.0, Trace()
)


class InTurn:
    """A batch whose problems are solved one after the other; a single problem is a batch of one.

    Parameters
    ----------
    problems : sequence of int
    begin : callable
        Makes the fit of the problem with a given number, when its turn comes.
    finished : callable, optional
        Turns a fit that has ended into its result; by default the fit's own result.
    late : callable, optional
        Says whether no time is left to begin another problem; those that are left then have the result `LATE`.
    """

    def __init__(
        self,
        problems: Sequence[int],
        begin: Begin,
        finished: Callable[[Fit], FitResult] | None = None,
        late: Callable[[], bool] | None = None,
    ) -> None:
        self.problems, self.begin, self.finish, self.late = problems, begin, finished, late
        self.fit: Fit | None = None

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[Worked]:
        """Do a step of the first problem that is left."""
        if self.fit is None:
            if self.late is not None and self.late():
                return [Ended(index) for index in live]
            self.fit = self.begin(live[0], stop)
        self.fit.step()
        return [self.fit]

    def finished(self, index: int) -> FitResult:
        """Return the result of the fit, and free its memory before the next one begins."""
        if self.fit is None:
            return LATE
        ended, self.fit = self.fit, None
        return self.finish(ended) if self.finish else ended.result()


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
    """Drive `solver` on `problem` until the gap that `limits` ask for is proven, or a limit is reached.

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
        Each is called with a :class:`~saddlesvm.fit.outcome.Record` of every certificate; True asks to stop. One
        that has a method ``tick(epoch, estimate, seconds)`` is also called after every slice of work.
    checkpoint : Checkpoint, optional
        The fit resumes from its file if there is one, and writes it at intervals and at the end.
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
