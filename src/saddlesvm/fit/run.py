"""A fit under way: its best points, the time of its next certificate, and the reasons to stop.

Only a time limit depends on the clock. The data fix the slices of work and the epochs of the certificates, so a seeded
fit is repeatable bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from saddlesvm.fit.checkpoint import Checkpoint, Saved
from saddlesvm.fit.outcome import Callback, FitResult, Limits, Outcome, Record, StallWatch, Trace, read_only
from saddlesvm.fit.points import Points, proof
from saddlesvm.fit.restored import POINTS
from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.drowned import every_bound_drowns
from saddlesvm.problem.fingerprint import fingerprint
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import clock, working_for
from saddlesvm.runtime.durable import stored_fields
from saddlesvm.solvers.base import Budget, check_penalty, check_place, phase_of

SLICE_VALUES = 4_000_000  # stored values that one step may touch: some 10 ms of work
THREAD_SLICES = 4  # such slices per thread in one step of several threads, which are slow to begin together
CERTIFICATE_SHARE = 0.2  # passes for certificates, as a share of all passes
ESTIMATED_SHARE = 0.05  # the same share for solvers that estimate the gap themselves
QUICK_PASSES, EXACT_PASSES = 1.0, 2.0  # passes over the data that a quick and an exact certificate take
ROUGH = 0.1  # relative gap that one epoch often reaches
FIRST_SHARE = 0.25  # share of a time limit after which there must have been a certificate: it shows what the end takes
ENDING_CERTIFICATES = 6.0  # that take as long as the end of a fit
EAGERNESS = 0.9  # share of the gap asked for at which the solver's estimate triggers a certificate
SMALLEST_ESTIMATE = 1e-300
FALLING = 0.5  # share of the objective of the certificate before, above which an objective does not fall
RATIOS = (0.1, 1e12)  # least and largest believable quotient of gap and estimate


class Stopwatches:
    """Seconds spent solving, certifying, and waiting while other problems of the batch had their turn."""

    def __init__(self) -> None:
        self.solving = self.certifying = self.waiting = 0.0
        self.last = clock()

    def lap(self, kind: str, sharers: int = 1) -> None:
        """Add the time since the last lap to the stopwatch `kind`: this problem's share of it among all `sharers`."""
        now = clock()
        own = (now - self.last) / sharers
        setattr(self, kind, getattr(self, kind) + own)
        self.waiting += now - self.last - own
        self.last = now

    def wait(self) -> None:
        """The time since the last lap went to other problems of the batch."""
        self.lap("waiting")

    def skip(self) -> None:
        """Leave out the time since the last lap: it belongs to callbacks."""
        self.last = clock()

    @property
    def total(self) -> float:
        """Seconds that count towards a time limit: all but those of callbacks."""
        return self.solving + self.certifying + self.waiting


class Fit:
    """The fit of one problem: its points, the time of its next certificate, its callbacks, and the reasons to stop.

    Parameters
    ----------
    problem, solver, limits, seed, start, callbacks, checkpoint, label
        As for :func:`saddlesvm.fit.loop.fit`.
    index : int, default=0
        The number of the problem in its batch.
    watch : callable, optional
        Called with the fit after every step.

    Attributes
    ----------
    sharers : int
        Problems that share a reading of the rows, this one included. They divide the time of a step among them; a
        certificate's pass serves one problem alone, and so counts `sharers` times.
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
        check_penalty(problem, solver)
        check_place(problem, solver)
        self.problem, self.solver, self.limits, self.label = problem, solver, limits, label
        self.index, self.watch, self.callbacks, self.checkpoint = index, watch, callbacks, checkpoint
        self.points, self.sharers = Points(problem, limits), 1
        self.point = solver.last_point if self.points.keeps_last else solver.solution
        self.watches, self.trace, self.stall = Stopwatches(), Trace(), StallWatch()
        self.phases: dict[str, float] = {}
        self.passes = self.certified_at = 0.0  # certified_at: epochs
        self.ratio = 1.0
        self.primal_before = np.inf  # the lowest objective at the certificate before the last one
        self.certificate_seconds = 0.0  # of the last one, by the state's own measure of how heavy it is
        # As the end does, so that a run stopped later never returns a worse model; over files, where that is asked for.
        self.tries_multiples = limits.certify_every is not None and problem.stored_points == "checked later"
        self.end: tuple[Outcome, str] | None = None
        self.leaving: Saved | None = None
        begun = clock()
        self.state = solver.init(problem, seed, start)
        seconds = clock() - begun
        stored = self._stored(seed)
        self.unverified = stored is not None and problem.stored_points == "checked later"
        self.pending = stored is not None and stored.numbers["pending"]  # what follows a step is still to come
        if stored is not None:
            self.restore(stored)
            self.end = self.end_of(stored)
        elif limits.certify_start and start is not None:
            if getattr(start, "alpha", None) is not None:
                # The given point itself: a solver may begin elsewhere.
                self.points.keep(self.points.evaluated(start))
            self._certify()
        elif limits.max_time is not None and getattr(self.state, "begins_heavily", False):
            self._certify()  # its margins are known, and may take too long a second time
            self.certificate_seconds = max(self.certificate_seconds, seconds / getattr(self.state, "heaviness", 1.0))
            self.end = self.end or self.reason_to_end(stopped=False)

    def _stored(self, seed: int) -> Saved | None:
        """What the checkpoint's file holds; None where there is none."""
        if self.checkpoint is None:
            return None
        self.mark = fingerprint(self.problem, self.solver) | self.checkpoint.marks(self.problem, seed)
        if self.points.keeps_last:
            self.mark["keep"] = self.limits.keep  # the checkpoint then holds the last point, too
        stored_fields(self.state)  # an error, where no checkpoint can hold them, is one before any work
        return self.checkpoint.read(self.problem, self.solver, self.mark, self.state)

    def step(self) -> None:
        """Do a bounded amount of work; none where the starting point is already certified."""
        if self.end is None and not self.pending:
            budget = self.budget()
            with working_for(budget.seconds):
                state = self.solver.step(self.problem, self.state, budget)
            self.stepped(state)

    def stepped(self, state: Any) -> None:
        """Take the state after a step over, and note the time of the step."""
        self.state = state
        phase, before = phase_of(state) or self.solver.name, self.watches.solving
        self.watches.lap("solving", self.sharers)
        self.phases[phase] = self.phases.get(phase, 0.0) + self.watches.solving - before

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

    def _certify_if_due(self, stopped: bool) -> None:
        """Certify where that is due, or where the fit ends."""
        if self.sharers > 1:
            self.watches.wait()
        self.end = self.reason_to_end(stopped)
        for callback in self.callbacks:
            if hasattr(callback, "tick"):
                callback.tick(self.state.epochs, self.state.estimate, self.watches.total)
        if self.watch is not None:
            self.watch(self)
        if self.end is not None and self.checkpoint:
            self.leaving = self.saved(pending=True)
            self._persist()
        if self.end is not None or self.is_due():
            self._certify()

    def _certify(self) -> None:
        """Certify, call the callbacks, and note whether the fit ends; the certificate is exact where it ends anyway."""
        for callback in self.callbacks:
            if hasattr(callback, "certifying"):
                callback.certifying()
        self.certify(ending=self.end is not None or self.state.epochs == 0.0)
        if self.points.best is None:
            self.end = self.end or (Outcome.FAILED, "no point with a finite objective")
            return
        record = self.record()
        self.trace(record)
        asked = False
        for callback in self.callbacks:
            asked |= bool(callback(record))
        self.watches.skip()
        verdict = self.verdict()
        if self.end is None and verdict is not None and verdict[0] is Outcome.NO_PROGRESS:
            other = self.solver.on_stall(self.problem, self.state)
            if other is not None:
                self.state, verdict = other, None
        self.end = verdict or self.end or ((Outcome.INTERRUPTED, "asked by a callback") if asked else None)
        if self.end is not None and self.points.last is not None and not self.points.last.exact:
            if self.end[0] is Outcome.INTERRUPTED:
                self.leaving = self.leaving or self.saved()
            self.confirm()

    def certify(self, ending: bool) -> None:
        """Certify: by a quick estimate first, and exactly where this certificate may end the fit."""
        self.watches.lap("solving")
        before = self.watches.certifying
        point = self.point(self.problem, self.state)
        fine = self.state.w.dtype == np.float64  # close to the optimum: what a quick estimate omits is no longer small
        likely = ending or self.promising() or not point.tracks or (fine and not point.read)
        evaluation = self.points.evaluated(point, exact=likely)
        self.passes += EXACT_PASSES if likely else QUICK_PASSES
        if not evaluation.exact and self.points.decisive(evaluation):
            evaluation = self.points.evaluated(point)
            self.passes += EXACT_PASSES
        self.certified_at = self.state.epochs
        if 0.0 <= self.state.estimate < np.inf:
            ratio = evaluation.certificate.relative_gap / max(self.state.estimate, SMALLEST_ESTIMATE)
            self.ratio = float(np.clip(ratio, *RATIOS))
        self.state = self.solver.certified(self.problem, self.state, evaluation)
        for known in point.known:
            self.points.keep(known)
        self.points.keep(evaluation)
        if self.tries_multiples and not self.limits.prove(proof(*self.points.chosen)):
            self._search(evaluation)
            if getattr(point, "judged", evaluation) is not evaluation:
                self._search(point.judged)
        self.watches.lap("certifying")
        self.certificate_seconds = (self.watches.certifying - before) / getattr(self.state, "heaviness", 1.0)

    def confirm(self) -> None:
        """Put an exact certificate in the place of the last record's quick one: the fit ends with it."""
        self.points.keep(self.points.evaluated(self.point(self.problem, self.state)))
        self.watches.lap("certifying")
        self.trace.pop()
        self.trace(self.record())

    def _verify(self) -> None:
        """Prove anew what may rest on figures of a checkpoint over files; a fit that ended by them alone goes on."""
        self.unverified, confirmed = False, self.points.verify()
        self.watches.lap("certifying")
        if not confirmed and self.end is not None and self.end[0] is Outcome.CERTIFIED:
            self.end = None

    def _improve(self, outcome: Outcome) -> None:
        """Let a fit that ended early return no model that a number would make better, which may even be certified."""
        if outcome is Outcome.RULE_MET and self.problem.intercept.homogeneous:
            return  # a solver's own rule may also say that no weights are best
        self._search()
        if self.points.returned is not None and self.end is not None and self.end[0] is not Outcome.FAILED:
            certificate = proof(*self.points.returned)
            if certificate.sound and self.limits.prove(certificate):
                self.end = Outcome.CERTIFIED, self.limits.proven(certificate)

    def _search(self, model: Evaluation | None = None) -> None:
        """Look for a better model in the time that is left."""
        self.points.improve((self.limits.max_time or np.inf) - self.watches.total, model)
        self.watches.lap("certifying")

    def _persist(self) -> None:
        """Write the checkpoint: of a run that goes on from it as if it had not ended, where no certificate ended it."""
        assert self.checkpoint is not None
        end = (str(self.end[0]), self.end[1]) if self.end and self.end[0] is not Outcome.INTERRUPTED else ()
        saved, improved = self.leaving or self.saved(end), self.points.improved
        if self.leaving and improved is not None and saved.points:
            saved.points["improved"] = improved
        with self.checkpoint.warned():
            self.checkpoint.write(self.mark, saved)

    def budget(self) -> Budget:
        """Work until the next certificate or limit, in slices of bounded length."""
        n = self.problem.members.size
        stop = min(self.next_certificate(), self.limits.max_epochs or np.inf)
        until = max(1, round((stop - self.state.epochs) * n)) if stop < np.inf else np.inf
        values = SLICE_VALUES * (1 if self.problem.threads == 1 else THREAD_SLICES * self.problem.threads)
        slice_rows = max(1, int(values / self.problem.values_per_row))
        limit = self.limits.max_time or np.inf
        seconds = (limit if self.passes else FIRST_SHARE * limit) - self.watches.total - self.reserve()
        return Budget(int(min(until, slice_rows)), self.threshold(), max(seconds, 0.0))

    def reserve(self) -> float:
        """Seconds that the end of the fit will take: the last certificate, and the search for a better multiple."""
        once = self.certificate_seconds * getattr(self.state, "heaviness", 1.0)
        return max(once, min(ENDING_CERTIFICATES * once, 0.5 * (self.limits.max_time or 0.0)))

    def threshold(self) -> float:
        """The estimate below which a certificate is due, given the last quotient of gap and estimate."""
        return EAGERNESS * self.points.aim / self.ratio

    def next_certificate(self) -> float:
        """The epoch of the next scheduled certificate."""
        if self.limits.certify_every is not None:
            return self.certified_at + max(self.limits.certify_every, self.limits.certify_growth * self.certified_at)
        if getattr(self.state, "proves_itself", False):  # a certificate costs nothing
            return self.certified_at + 1.0
        if self.certified_at == 0.0 and self.points.aim >= ROUGH and not self.state.proven:
            return 1.0
        share = ESTIMATED_SHARE if np.isfinite(self.state.estimate) else CERTIFICATE_SHARE
        return max((self.passes + QUICK_PASSES) * self.sharers / share, 1.3 * self.certified_at)

    def is_due(self) -> bool:
        """Whether the schedule, the solver's estimate or a time limit asks for a certificate."""
        unknown = self.passes == 0.0 and self.watches.total >= FIRST_SHARE * (self.limits.max_time or np.inf)
        return unknown or self.state.epochs >= self.next_certificate() - 1e-9 or self.promising()

    def promising(self) -> bool:
        """Whether the solver's estimate says that the gap asked for is reached."""
        return self.points.aim > 0.0 and self.state.estimate <= self.threshold()

    def reason_to_end(self, stopped: bool) -> tuple[Outcome, str] | None:
        """The limit, interrupt or rule of the solver that ends the fit now, or None."""
        limits = self.limits
        if stopped:
            return Outcome.INTERRUPTED, "interrupted"
        if not np.isfinite(self.state.w).all():
            return Outcome.FAILED, "the weights are not finite"
        reached = limits.reached(self.state.epochs, self.watches.total, reserve=self.reserve())
        if reached is not None:
            return reached
        if self.state.satisfied:
            return Outcome.RULE_MET, self.state.rule
        if self.solver.exhausted(self.state):
            return Outcome.EPOCH_LIMIT, "the solver's own limit"
        return None

    def verdict(self) -> tuple[Outcome, str] | None:
        """The decision after the last certificate: certified, failed, rule met, limited by rounding, or no progress."""
        assert self.points.best is not None
        certificate = proof(self.points.best, self.points.highest)
        if not certificate.sound:
            return Outcome.FAILED, f"the gap is {certificate.gap:.3g}"
        chosen = proof(*self.points.chosen)
        gap = chosen.relative_gap
        if self.limits.prove(chosen):
            return Outcome.CERTIFIED, self.limits.proven(chosen)
        if self.state.satisfied:
            return Outcome.RULE_MET, self.state.rule
        # The targets of a regression are rounded too: an objective that their last places explain is as good as zero.
        noise = getattr(self.problem, "target_noise", 0.0) * self.problem.unit
        if self.points.last is not None and self.points.last.exact and chosen.limited(self.points.aim, noise):
            return Outcome.LIMITED_BY_ROUNDING, f"relative gap {gap:.2g}, {chosen.rounding_share:.2g} of it rounding"
        before, self.primal_before = self.primal_before, certificate.primal
        falls = certificate.primal < FALLING * before
        if (
            self.points.aim > 0.0
            and not falls
            and every_bound_drowns(self.problem, certificate.primal / self.problem.unit)
        ):
            return Outcome.LIMITED_BY_ROUNDING, "the rounding of every bound is more than the objective"
        if self.stall.stalled(self.state.effort, certificate, phase_of(self.state)) and self.points.aim > 0.0:
            return Outcome.NO_PROGRESS, f"the gap has stayed at {gap:.2g} during the last half of the work"
        return None

    def record(self) -> Record:
        """The record of the last certificate; it describes the result of a fit that ended now."""
        model, bound = self.points.chosen
        return Record.of(
            proof(model, bound),
            epoch=float(self.state.epochs),
            rows_touched=int(self.state.rows_touched),
            seconds_solving=self.watches.solving,
            seconds_certifying=self.watches.certifying,
            active=int(self.state.active),
            change=float(self.state.change),
            remark=self.state.remark,
            coef=read_only(model.coef),
            intercept=read_only(model.intercept),
            problem=self.label,
            kernel_evaluations=int(self.state.kernel_evaluations),
        )

    def saved(self, end: tuple[str, ...] = (), pending: bool = False) -> Saved:
        """The state that a resumed run needs.

        `end` is the outcome and the reason with which certificates have ended the run, if they have; `pending` says
        that what follows a step is still to come.
        """
        numbers: dict[str, Any] = {
            "pending": pending,
            "solving": self.watches.solving,
            "certifying": self.watches.certifying,
            "certified_at": self.certified_at,
            "passes": self.passes,
            "ratio": self.ratio,
            "history": list(self.stall.history),
            "phase": self.stall.phase,
            "phases": dict(self.phases),
        }
        found = {name: one for name in POINTS if (one := getattr(self.points, name)) is not None}
        if not (end or self.points.keeps_last):
            found.pop("last", None)
        if self.problem.stored_points == "made anew":
            found, end = {}, ()
        limits = {
            name: given if given is None or isinstance(given, str) else float(given)
            for name, given in asdict(self.limits).items()
        }
        return Saved(self.state, numbers, found, Trace(self.trace), limits, end)

    def restore(self, saved: Saved) -> None:
        """Take over the state, numbers, points and trace of a saved run."""
        self.state = saved.state
        self.watches.solving, self.watches.certifying = saved.numbers["solving"], saved.numbers["certifying"]
        self.certified_at, self.passes = saved.numbers["certified_at"], saved.numbers["passes"]
        self.ratio, self.phases = saved.numbers["ratio"], dict(saved.numbers["phases"])
        self.stall.history = [tuple(seen) for seen in saved.numbers["history"]]
        for name in POINTS:
            setattr(self.points, name, saved.points.get(name))
        self.stall.phase = saved.numbers["phase"]
        self.trace.extend(saved.trace)

    def end_of(self, saved: Saved) -> tuple[Outcome, str] | None:
        """The end of a restored run, which stands where nothing is asked for that it has not shown; else None."""
        now = self.saved()
        known = self.points.best is not None and self.points.bound is not None
        proven = known and self.points.returned is not None and self.limits.prove(proof(*self.points.returned))
        if saved.end and saved.limits == now.limits and (proven or saved.end[0] != str(Outcome.CERTIFIED)):
            return Outcome(saved.end[0]), saved.end[1]
        if saved.end and proven:
            return Outcome.CERTIFIED, "the gap is proven already"
        if not known or saved.numbers["pending"]:
            return None
        return self.reason_to_end(stopped=False)  # the run may have been killed at its end

    def result(self) -> FitResult:
        """The best model; zeros with a certificate of NaN where no objective is finite."""
        state, problem, returned = self.state, self.problem, self.points.returned
        assert self.end is not None
        if returned is None:
            certificate = Certificate(np.nan, np.nan)
            model = bound = Evaluation(
                np.zeros(self.problem.n_features), 0.0, np.zeros(self.problem.y.size), certificate
            )
        else:
            model, bound = returned
            certificate = proof(model, bound)
        return FitResult(
            coef=model.coef,
            intercept=model.intercept,
            alpha=(bound if problem.intercept.homogeneous else model).alpha,  # see :attr:`FitResult.alpha`
            certificate=certificate,
            outcome=self.end[0],
            tol=self.limits.tol,
            gap=self.limits.gap,
            epochs=float(state.epochs),
            rows_touched=int(state.rows_touched),
            seconds_solving=self.watches.solving,
            seconds_certifying=self.watches.certifying,
            trace=self.trace,
            reason=self.end[1],
            phases=self.phases,
        )
