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

from saddlesvm.fit.checkpoint import Checkpoint, Saved
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.outcome import FitResult, Outcome
from saddlesvm.fit.run import Run, proof
from saddlesvm.fit.trace import Callback, Trace
from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.fingerprint import fingerprint
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import clock, working_for
from saddlesvm.runtime.durable import stored_fields
from saddlesvm.runtime.interrupt import interruptible
from saddlesvm.solvers.base import check_penalty, check_place, phase_of

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
Begin = Callable[[int, threading.Event], "Fit"]


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
    with interruptible(stop) as interrupted:
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


class Fit:
    """The fit of one problem: its solver, its run so far, its callbacks and its checkpoint.

    Parameters
    ----------
    problem, solver, limits, seed, start, callbacks, checkpoint, label
        As for :func:`fit`.
    index : int, default=0
        The number of the problem in its batch.
    watch : callable, optional
        Called with the fit after every step.
    """

    def __init__(
        self,
        problem: Problem,
        solver: Any,
        limits: Limits = Limits(),
        *,
        seed: int = 0,
        start: Point | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: Checkpoint | None = None,
        label: str = "",
        index: int = 0,
        watch: Callable[[Fit], None] | None = None,
    ) -> None:
        self.problem, self.watch = problem, watch
        self.index, self.callbacks, self.checkpoint = index, callbacks, checkpoint
        check_penalty(problem, solver)
        check_place(problem, solver)
        self.run = Run(problem, solver, limits, label)
        begun = clock()
        self.state = solver.init(problem, seed, start)
        seconds = clock() - begun
        self.mark = fingerprint(problem, solver) | checkpoint.marks(problem, seed) if checkpoint else {}
        if checkpoint and limits.keep == "last":
            self.mark["keep"] = limits.keep  # the checkpoint then holds the last point, too
        self.end: tuple[Outcome, str] | None = None
        if checkpoint:
            stored_fields(self.state)  # an error, where no checkpoint can hold them, is one before any work
        stored = checkpoint.read(problem, solver, self.mark, self.state) if checkpoint else None
        self.unverified = stored is not None and problem.stored_points == "checked later"
        self.pending = stored is not None and stored.numbers["pending"]  # what follows a step is still to come
        self.leaving: Saved | None = None
        if stored is not None:
            self.state = stored.state
            self.run.restore(stored)
            self.end = self.run.end_of(stored)
        elif limits.certify_start and start is not None:
            self._certify()
        elif limits.max_time is not None and getattr(self.state, "begins_heavily", False):
            self._certify()  # its margins are known, and may take too long a second time
            self.run.begin(self.state, seconds)
            self.end = self.end or self.run.reason_to_end(self.state, stopped=False)

    def step(self) -> None:
        """Do a bounded amount of work; none where the starting point is already certified."""
        if self.end is None and not self.pending:
            run, budget = self.run, self.run.budget(self.state)
            with working_for(budget.seconds):
                state = run.solver.step(run.problem, self.state, budget)
            self.stepped(state)

    def stepped(self, state: Any) -> None:
        """Take the state after a step over, and note the time of the step."""
        run, self.state = self.run, state
        phase, before = phase_of(state) or run.solver.name, run.watches.solving
        run.watches.lap("solving", run.sharers)
        run.phases[phase] = run.phases.get(phase, 0.0) + run.watches.solving - before

    def finish_step(self, stopped: bool) -> bool:
        """After a step, certify, call callbacks and write the checkpoint when due; return whether the fit has ended."""
        going_on, self.pending, self.leaving = self.end is None, False, None
        if going_on:
            self._certify_if_due(stopped)
        if self.end is not None and self.unverified:
            self._verify()
        if self.end is not None and self.end[0] is not Outcome.CERTIFIED:
            self._improve(self.end[0])
        written = self.leaving is not None and self.leaving.numbers["pending"]
        if going_on and self.checkpoint and not written and (self.end is not None or self.checkpoint.due()):
            self._persist()
        return self.end is not None

    def _persist(self) -> None:
        """Write the checkpoint: of a run that goes on from it as if it had not ended, where no certificate ended it."""
        assert self.checkpoint is not None
        end = (str(self.end[0]), self.end[1]) if self.end and self.end[0] is not Outcome.INTERRUPTED else ()
        saved, improved = self.leaving or self.run.saved(self.state, end), self.run.improved
        if self.leaving and improved is not None and saved.points:
            saved.points["improved"] = improved
        with self.checkpoint.warned():
            self.checkpoint.write(self.mark, saved)

    def _certify_if_due(self, stopped: bool) -> None:
        """Certify where that is due, or where the fit ends."""
        run = self.run
        if run.sharers > 1:
            run.watches.wait()
        self.end = run.reason_to_end(self.state, stopped)
        for callback in self.callbacks:
            if hasattr(callback, "tick"):
                callback.tick(self.state.epochs, self.state.estimate, run.watches.total)
        if self.watch is not None:
            self.watch(self)
        if self.end is not None and self.checkpoint:
            self.leaving = run.saved(self.state, pending=True)
            self._persist()
        if self.end is not None or run.is_due(self.state):
            self._certify()

    def _verify(self) -> None:
        """Prove anew what may rest on figures of a checkpoint over files; a fit that ended by them alone goes on."""
        self.unverified = False
        if not self.run.verify() and self.end is not None and self.end[0] is Outcome.CERTIFIED:
            self.end = None

    def _improve(self, outcome: Outcome) -> None:
        """Let a fit that ended early return no model that a number would make better, which may even be certified."""
        if outcome is Outcome.RULE_MET and self.problem.intercept.homogeneous:
            return  # a solver's own rule may also say that no weights are best
        self.run.improve()
        if self.run.returned is not None and self.end is not None and self.end[0] is not Outcome.FAILED:
            certificate = proof(*self.run.returned)
            if certificate.sound and self.run.limits.prove(certificate):
                self.end = Outcome.CERTIFIED, self.run.limits.proven(certificate)

    def _certify(self) -> None:
        """Certify, call the callbacks, and note whether the fit ends; the certificate is exact where it ends anyway."""
        run = self.run
        for callback in self.callbacks:
            if hasattr(callback, "certifying"):
                callback.certifying()
        self.state = run.certify(self.state, ending=self.end is not None or self.state.epochs == 0.0)
        if run.best is None:
            self.end = self.end or (Outcome.FAILED, "no point with a finite objective")
            return
        record = run.record(self.state)
        run.trace(record)
        asked = False
        for callback in self.callbacks:
            asked |= bool(callback(record))
        run.watches.skip()
        verdict = run.verdict(self.state)
        if self.end is None and verdict is not None and verdict[0] is Outcome.NO_PROGRESS:
            other = run.solver.on_stall(run.problem, self.state)
            if other is not None:
                self.state, verdict = other, None
        self.end = verdict or self.end or ((Outcome.INTERRUPTED, "asked by a callback") if asked else None)
        if self.end is not None and run.last is not None and not run.last.exact:
            if self.end[0] is Outcome.INTERRUPTED:
                self.leaving = self.leaving or run.saved(self.state)
            run.confirm(self.state)

    def result(self) -> FitResult:
        """The best model; zeros with a certificate of NaN where no objective is finite."""
        run, state, returned = self.run, self.state, self.run.returned
        assert self.end is not None
        if returned is None:
            certificate = Certificate(np.nan, np.nan)
            model = bound = Evaluation(np.zeros(run.problem.n_features), 0.0, np.zeros(run.problem.y.size), certificate)
        else:
            model, bound = returned
            certificate = proof(model, bound)
        return FitResult(
            coef=model.coef,
            intercept=model.intercept,
            alpha=(bound if run.problem.intercept.homogeneous else model).alpha,  # see :attr:`FitResult.alpha`
            certificate=certificate,
            outcome=self.end[0],
            tol=run.limits.tol,
            gap=run.limits.gap,
            epochs=float(state.epochs),
            rows_touched=int(state.rows_touched),
            seconds_solving=run.watches.solving,
            seconds_certifying=run.watches.certifying,
            trace=run.trace,
            reason=self.end[1],
            phases=run.phases,
        )


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
        Each is called with a :class:`~saddlesvm.fit.trace.Record` of every certificate; True asks to stop. One
        that has a method ``tick(epoch, estimate, seconds)`` is also called after every slice of work.
    checkpoint : Checkpoint, optional
        The fit resumes from its file where that exists, and writes it at intervals and at the end.
    stop : threading.Event, optional
        Set from outside to interrupt the fit. Without it Ctrl-C does so.
    label : str
        Name of the sub-problem in the records.

    Returns
    -------
    FitResult
    """

    def begin(index: int, interrupted: threading.Event) -> Fit:
        return Fit(
            problem, solver, limits, seed=seed, start=start, callbacks=callbacks, checkpoint=checkpoint, label=label
        )

    return drive(InTurn(range(1), begin), stop)[0]
