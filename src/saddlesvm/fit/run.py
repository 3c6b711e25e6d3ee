"""A fit under way: its best points, the time of its next certificate, and the reasons to stop.

Only a time limit depends on the clock. The data fix the slices of work and the epochs of the certificates, so a seeded
fit is repeatable bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saddlesvm.fit.checkpoint import NUMBERS, CheckpointFile, Saved, take_over
from saddlesvm.fit.outcome import Callback, FitResult, Limits, Outcome, Record, StallWatch, Trace, read_only
from saddlesvm.fit.points import Points, proof
from saddlesvm.problem.certificate import Certificate, Evaluation, KernelPoint, Point
from saddlesvm.problem.drowned import every_bound_drowns
from saddlesvm.problem.fingerprint import fingerprint
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.clock import clock, limit_step
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
        checkpoint: CheckpointFile | None = None,
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
        self.tries_multiples = limits.certify_every is not None and getattr(problem, "on_files", False)
        self.end: tuple[Outcome, str] | None = None
        self.earlier: dict[str, Any] = dict.fromkeys(NUMBERS, 0)
        saved = self._stored(seed)
        begun = clock()
        self.state = solver.init(problem, seed, start) if saved is None else self._begin_at(saved, seed)
        seconds = clock() - begun
        if saved is not None:
            if saved.best is not None:
                self.points.keep(self.points.evaluated(saved.best))
            self._certify()
            self.end = self.end or self.reason_to_end(stopped=False)
        elif limits.certify_start and start is not None:
            if getattr(start, "alpha", None) is not None:
                # The given point itself: a solver may begin elsewhere.
                self.points.keep(self.points.evaluated(start))
            self._certify()
        elif limits.max_time is not None and getattr(self.state, "begins_heavily", False):
            self._certify()  # its margins are known, and may take too long a second time
            self.certificate_seconds = max(self.certificate_seconds, seconds / getattr(self.state, "heaviness", 1.0))
            self.end = self.end or self.reason_to_end(stopped=False)

    def step(self) -> None:
        """Do a bounded amount of work; none where the starting point is already certified."""
        if self.end is None:
            budget = self.budget()
            with limit_step(budget.seconds):
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
        going_on = self.end is None
        if going_on:
            self._certify_if_due(stopped)
        if self.end is not None and self.end[0] is not Outcome.CERTIFIED:
            self._improve(self.end[0])
        if going_on and self.checkpoint and (self.end is not None or self.checkpoint.due()):
            self._persist()
        return self.end is not None

    def _certify_if_due(self, stopped: bool) -> None:
        """Certify where that is due, or where the fit ends."""
        if self.sharers > 1:
            self.watches.wait()
        self.end = self.reason_to_end(stopped)
        for callback in self.callbacks:
            if hasattr(callback, "tick"):
                callback.tick(self.epochs, self.state.estimate, self.watches.total)
        if self.watch is not None:
            self.watch(self)
        if self.end is not None and self.checkpoint:
            self._persist()  # the last certificate may take long
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
        """Write the checkpoint; where that fails, the fit goes on without it."""
        assert self.checkpoint is not None
        saved = self.saved()
        with self.checkpoint.warned():
            self.checkpoint.write(self.mark, saved)

    def budget(self) -> Budget:
        """Work until the next certificate or limit, in slices of bounded length."""
        n = self.problem.members.size
        stop = min(self.next_certificate(), (self.limits.max_epochs or np.inf) - self.earlier["epochs"])
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
        reached = limits.reached(self.epochs, self.watches.total, reserve=self.reserve())
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
            epoch=self.epochs,
            rows_touched=self.rows_touched,
            seconds_solving=self.watches.solving,
            seconds_certifying=self.watches.certifying,
            active=int(self.state.active),
            change=float(self.state.change),
            remark=self.state.remark,
            coef=read_only(model.coef),
            intercept=read_only(model.intercept),
            problem=self.label,
            kernel_evaluations=self.kernel_evaluations,
        )

    def saved(self) -> Saved:
        """What a checkpoint holds of the run: its last solution, its best model and bound, and what it took so far."""
        point = self.solver.solution(self.problem, self.state)
        best = None
        if not isinstance(point, KernelPoint):
            w = point.w
            if w is not None and point.tracks and not self.problem.penalty.identity():
                w = self.problem.regularizer.weights(w)  # a dual solver's running pull, as weights
            point = Point(w, point.alpha)
            returned = None if self.points.keeps_last else self.points.returned
            if returned is not None:
                model, bound = returned
                scale = self.problem.scale
                last = np.asarray(model.intercept) / scale if scale else 0.0 * np.asarray(model.intercept)
                best = Point(np.concatenate([model.coef, last[..., None]], axis=-1), bound.alpha)
        numbers = {
            "epochs": self.epochs,
            "rows_touched": self.rows_touched,
            "kernel_evaluations": self.kernel_evaluations,
            "solving": self.watches.solving,
            "certifying": self.watches.certifying,
            "phases": dict(self.phases),
        }
        state = {name: getattr(self.state, name) for name in type(self.state).carried}
        return Saved(point, best, numbers, Trace(self.trace), state)

    def _stored(self, seed: int) -> Saved | None:
        """What the checkpoint's file holds; None where there is none."""
        if self.checkpoint is None:
            return None
        self.mark = fingerprint(self.problem, self.solver) | self.checkpoint.marks(self.problem, seed)
        if self.points.keeps_last:
            self.mark["keep"] = self.limits.keep
        return self.checkpoint.read(self.problem, self.mark)

    def _begin_at(self, saved: Saved, seed: int) -> Any:
        """The state of a run that goes on from a saved solution, which no limit of the run before counts anew."""
        self.earlier = saved.numbers
        self.watches.solving = saved.numbers["solving"]
        self.watches.certifying = saved.numbers["certifying"]
        self.phases = dict(saved.numbers["phases"])
        self.trace.extend(saved.trace)
        assert self.checkpoint is not None
        # Other draws than those of the run before: repeating them would weigh their rows twice.
        seed = (seed + int(self.earlier["rows_touched"])) % 2**32
        try:
            state = self.solver.init(self.problem, seed, None if "w" in saved.state else saved.point)
            take_over(state, saved.state)
        except ValueError as error:
            path = self.checkpoint.path
            raise ValueError(f"{path} is not a readable checkpoint ({error}); remove it to start anew") from None
        return state

    @property
    def epochs(self) -> float:
        """Epochs so far, those before a checkpoint included."""
        return float(self.earlier["epochs"] + self.state.epochs)

    @property
    def rows_touched(self) -> int:
        """Row visits so far, those before a checkpoint included."""
        return int(self.earlier["rows_touched"] + self.state.rows_touched)

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed so far, those before a checkpoint included."""
        return int(self.earlier["kernel_evaluations"] + self.state.kernel_evaluations)

    def result(self) -> FitResult:
        """The best model; zeros with a certificate of NaN where no objective is finite."""
        problem, returned = self.problem, self.points.returned
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
            epochs=self.epochs,
            rows_touched=self.rows_touched,
            seconds_solving=self.watches.solving,
            seconds_certifying=self.watches.certifying,
            trace=self.trace,
            reason=self.end[1],
            phases=self.phases,
        )
