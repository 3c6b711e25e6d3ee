"""A fit under way: its best points, the time of its next certificate, and the reasons to stop.

Only a time limit depends on the clock. The data fix the slices of work and the epochs of the
certificates, so a seeded fit is repeatable bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.fit.checkpoint import Checkpoint, Saved
from saddlesvm.fit.outcome import (
    Callback,
    FitResult,
    Limits,
    Outcome,
    Record,
    StallWatch,
    Trace,
    read_only,
)
from saddlesvm.fit.points import Points, proof
from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.fingerprint import fingerprint
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.without_loss import find_without_loss
from saddlesvm.runtime.clock import clock, limit_step
from saddlesvm.solvers.base import (
    EPOCH_ROUNDING,
    Budget,
    check_penalty,
    check_place,
    phase_of,
)

if TYPE_CHECKING:
    from saddlesvm.solvers.base import State

# Stored values that one step may touch: some 10 ms of work, measured.
SLICE_VALUES = 4_000_000
# Such slices per thread in one step of several threads, which are slow to begin together; guessed.
THREAD_SLICES = 4
# Passes for certificates as a share of all passes, and the same share for solvers that estimate the
# gap themselves; guessed.
CERTIFICATE_SHARE = 0.2
ESTIMATED_SHARE = 0.05
# Passes over the data that a quick and an exact certificate take; counted in the code.
QUICK_PASSES = 1.0
EXACT_PASSES = 2.0
# Least factor from the epoch of a certificate to that of the next one; guessed.
CERTIFICATE_GROWTH = 1.3
# Relative gap that one epoch often reaches; guessed.
ROUGH = 0.1
# Ends after which a model without loss may prove the gap: rounding is what is left.
HELPED_WITHOUT_LOSS = (Outcome.LIMITED_BY_ROUNDING, Outcome.NO_PROGRESS)
# Share of a time limit after which there must have been a certificate, whose time tells how long
# the end of the fit takes; guessed.
FIRST_SHARE = 0.25
# The end of a fit takes as long as so many certificates, or this share of the time limit, at most;
# guessed.
ENDING_CERTIFICATES = 6.0
ENDING_SHARE = 0.5
# Share of the requested gap at which the solver's estimate triggers a certificate; guessed.
EAGERNESS = 0.9
# The smallest estimate that divides a gap, near the smallest number.
SMALLEST_ESTIMATE = 1e-300
# Least and largest believable quotient of gap and estimate; guessed.
RATIOS = (0.1, 1e12)


class Stopwatches:
    """Seconds spent solving, certifying, and waiting for other problems of the batch."""

    def __init__(self) -> None:
        self.solving = 0.0
        self.certifying = 0.0
        self.waiting = 0.0
        self.last = clock()

    def lap(self, kind: str, sharers: int = 1) -> None:
        """Add the time since the last lap, divided by the `sharers`, to the stopwatch `kind`."""
        now = clock()
        own = (now - self.last) / sharers
        setattr(self, kind, getattr(self, kind) + own)
        # The shares of the other problems pass for this one, too.
        self.waiting += now - self.last - own
        self.last = now

    def wait(self) -> None:
        """Count the time since the last lap as waiting for other problems of the batch."""
        self.lap("waiting")

    def skip(self) -> None:
        """Leave out the time since the last lap: it belongs to callbacks."""
        self.last = clock()

    @property
    def total(self) -> float:
        """Seconds that count towards a time limit: all but the time of callbacks."""
        return self.solving + self.certifying + self.waiting


class Fit:
    """The fit of a problem: its points, its certificates, its callbacks, and the reasons to stop.

    Parameters
    ----------
    problem, solver, limits, seed, start, callbacks, checkpoint, label
        As for :func:`saddlesvm.fit.loop.fit`.
    index : int, default=0
        The number of the problem in its batch.

    Attributes
    ----------
    sharers : int
        Problems that share a reading of the rows, this problem included. They divide the time of a
        step among them; a certificate's pass serves a problem alone, and so counts `sharers` times.
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
    ) -> None:
        check_penalty(problem, solver)
        check_place(problem, solver)
        self.problem = problem
        self.solver = solver
        self.limits = limits
        self.label = label
        self.index = index
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.points = Points(problem, limits)
        self.sharers = 1
        # Asks the solver for the point to certify.
        self.point = solver.last_point if self.points.keeps_last else solver.solution
        self.watches = Stopwatches()
        self.trace = Trace()
        self.stall = StallWatch()
        self.phases: dict[str, float] = {}  # seconds of each phase
        self.passes = 0.0  # over the rows, for certificates
        self.certified_at = 0.0  # the epoch of the last certificate
        self.ratio = 1.0  # the gap of the last certificate by the solver's estimate
        # Seconds of the last certificate, for a state of heaviness 1.
        self.certificate_seconds = 0.0
        self.end: tuple[Outcome, str] | None = None  # how the fit has ended, and why
        # The counts of the run that a checkpoint continues.
        self.earlier = {"epochs": 0.0, "rows_touched": 0}
        saved = self._read_checkpoint(seed)
        begun = clock()
        if saved is None:
            self.state = solver.init(problem, seed, start)
        else:
            self.state = self._continue_from(saved, seed)
        seconds = clock() - begun

        # A first certificate, if the starting point may suffice, or if the time for one is unknown.
        if saved is not None:
            if saved.best:
                self.points.keep(self.points.evaluate(Point(saved.best["w"], saved.best["alpha"])))
            self._certify_and_decide()
            self.end = self.end or self.reason_to_end(stopped=False)
        elif limits.max_time is not None and self.state.begins_heavily:
            # The margins of the start are known, and may take too long a second time.
            self._certify_and_decide()
            once = seconds / self.state.heaviness
            self.certificate_seconds = max(self.certificate_seconds, once)
            self.end = self.end or self.reason_to_end(stopped=False)

    def step(self) -> None:
        """Do a bounded amount of work; none if the starting point is already certified."""
        if self.end is None:
            budget = self.budget()
            with limit_step(budget.seconds):
                state = self.solver.step(self.problem, self.state, budget)
            self.accept_step(state)

    def accept_step(self, state: State) -> None:
        """Take over the state after a step, and add the step's time to its phase."""
        self.state = state
        phase = phase_of(state) or self.solver.name
        before = self.watches.solving
        self.watches.lap("solving", self.sharers)
        self.phases[phase] = self.phases.get(phase, 0.0) + self.watches.solving - before

    def finish_step(self, stopped: bool) -> bool:
        """Certify, call callbacks and write the checkpoint when due; return True if it ended."""
        was_running = self.end is None
        if was_running:
            self._certify_if_due(stopped)
        if self.end is not None and self.end[0] in HELPED_WITHOUT_LOSS:
            self._try_without_loss()
        has_ended = self.end is not None
        if was_running and self.checkpoint and (has_ended or self.checkpoint.is_due()):
            self.checkpoint.write(self.mark, self.snapshot())
        return has_ended

    def _certify_if_due(self, stopped: bool) -> None:
        """Certify if that is due, or if the fit ends."""
        if self.sharers > 1:
            self.watches.wait()
        self.end = self.reason_to_end(stopped)
        for callback in self.callbacks:
            if hasattr(callback, "tick"):
                callback.tick(self.epochs, self.state.estimate, self.watches.total)
        if self.end is not None and self.checkpoint:
            # Before the last certificate, which may take long.
            self.checkpoint.write(self.mark, self.snapshot())
        if self.end is not None or self.is_due():
            self._certify_and_decide()

    def _certify_and_decide(self) -> None:
        """Certify, call the callbacks, and decide whether the fit ends."""
        # Exact if the fit ends anyway, and at the start.
        is_last = self.end is not None or self.is_stuck()
        self.certify(ending=is_last or self.state.epochs == 0.0)
        if self.points.best is None:
            self.end = self.end or (Outcome.FAILED, "no point with a finite objective")
            return

        # Record the certificate, and let each callback see it; their time does not count.
        model, bound = self.points.choice
        certificate = proof(model, bound)
        record = self.record(model, certificate)
        self.trace(record)
        is_stop_requested = False
        for callback in self.callbacks:
            is_stop_requested |= bool(callback(record))
        self.watches.skip()

        # A solver without progress may hand over to another way.
        verdict = self.verdict(certificate)
        if self.end is None and verdict is not None and verdict[0] is Outcome.NO_PROGRESS:
            other = self.solver.on_stall(self.problem, self.state)
            if other is not None:
                self.state = other
                verdict = None
        # The verdict counts first, then a limit, then the callbacks.
        self.end = verdict or self.end
        if self.end is None and is_stop_requested:
            self.end = (Outcome.INTERRUPTED, "asked by a callback")
        if self.end is not None and self.points.last is not None and not self.points.last.exact:
            self.confirm()

    def certify(self, ending: bool) -> None:
        """Certify quickly first, and exactly if this certificate may end the fit."""
        self.watches.lap("solving")
        before = self.watches.certifying
        point = self.point(self.problem, self.state)

        # A solver that works in float64 is close to the optimum: there, what a quick estimate
        # omits is no longer small.
        is_fine = self.state.w.dtype == np.float64
        is_exact = ending or self.is_promising() or not point.tracks
        is_exact = is_exact or (is_fine and not point.read)
        evaluation = self.points.evaluate(point, exact=is_exact)
        self.passes += EXACT_PASSES if is_exact else QUICK_PASSES
        if not evaluation.exact and self.points.is_decisive(evaluation):
            evaluation = self.points.evaluate(point)
            self.passes += EXACT_PASSES
        self.certified_at = self.state.epochs

        # By how much the solver's estimate is too small; its next estimates are corrected by it.
        if 0.0 <= self.state.estimate < np.inf:
            estimate = max(self.state.estimate, SMALLEST_ESTIMATE)
            ratio = evaluation.certificate.relative_gap / estimate
            self.ratio = float(np.clip(ratio, *RATIOS))

        # Tell the solver, and keep the best of its points.
        self.state = self.solver.learn_from_certificate(self.problem, self.state, evaluation)
        for known in point.known:
            self.points.keep(known)
        self.points.keep(evaluation)
        self.watches.lap("certifying")
        seconds = self.watches.certifying - before
        self.certificate_seconds = seconds / self.state.heaviness

    def confirm(self) -> None:
        """Replace the quick certificate of the last record by an exact one to end the fit."""
        self.points.keep(self.points.evaluate(self.point(self.problem, self.state)))
        self.watches.lap("certifying")
        self.trace.pop()
        model, bound = self.points.choice
        self.trace(self.record(model, proof(model, bound)))

    def _try_without_loss(self) -> None:
        """Look at a model whose rows pay no loss: if C is large, it may prove the gap after all."""
        point = None
        if self.points.best is not None and not self.points.keeps_last:
            point = find_without_loss(self.problem, self.points.best)
        if point is None:
            return
        self.points.keep(self.points.evaluate(point))
        certificate = proof(*self.points.choice)
        if certificate.sound and self.limits.prove(certificate):
            self.end = Outcome.CERTIFIED, self.limits.describe(certificate)

    def budget(self) -> Budget:
        """Return how much the next step may do: until a certificate or limit, at most a slice."""
        # Rows until the next certificate, or until the limit on epochs.
        most_epochs = (self.limits.max_epochs or np.inf) - self.earlier["epochs"]
        stop = min(self.next_certificate(), most_epochs)
        rows_left = np.inf
        if stop < np.inf:
            rows_left = max(1, round((stop - self.state.epochs) * self.problem.members.size))

        # Rows of a slice.
        threads = self.problem.threads
        slices = 1 if threads == 1 else THREAD_SLICES * threads
        slice_rows = max(1, int(SLICE_VALUES * slices / self.problem.values_per_row))

        # Seconds until the time limit, or until the first certificate has to begin.
        limit = self.limits.max_time or np.inf
        if not self.passes:
            limit = FIRST_SHARE * limit
        seconds = limit - self.watches.total - self.reserve()
        return Budget(int(min(rows_left, slice_rows)), self.threshold(), max(seconds, 0.0))

    def reserve(self) -> float:
        """Return the seconds for the last certificate and the search for a better multiple."""
        if self.limits.max_time is None:
            return 0.0
        once = self.certificate_seconds * self.state.heaviness
        return max(once, min(ENDING_CERTIFICATES * once, ENDING_SHARE * self.limits.max_time))

    def threshold(self) -> float:
        """Return the solver's estimate of the gap below which a certificate is due."""
        return EAGERNESS * self.points.aim / self.ratio

    def next_certificate(self) -> float:
        """Return the epoch of the next scheduled certificate."""
        limits = self.limits
        if limits.certify_every is not None:
            wait = max(limits.certify_every, limits.certify_growth * self.certified_at)
            return self.certified_at + wait

        # A certificate of such a state costs nothing.
        if self.state.proves_itself:
            return self.certified_at + 1.0

        # A rough gap is often reached by the first epoch.
        if self.certified_at == 0.0 and self.points.aim >= ROUGH and not self.state.estimate_is_gap:
            return 1.0

        # Otherwise certificates take a fixed share of all passes, and become rarer.
        share = ESTIMATED_SHARE if np.isfinite(self.state.estimate) else CERTIFICATE_SHARE
        by_share = (self.passes + QUICK_PASSES) * self.sharers / share
        return max(by_share, CERTIFICATE_GROWTH * self.certified_at)

    def is_due(self) -> bool:
        """Return True if the schedule, the solver's estimate or a time limit asks to certify."""
        latest_first = FIRST_SHARE * (self.limits.max_time or np.inf)
        if self.passes == 0.0 and self.watches.total >= latest_first:
            return True
        is_late = self.state.epochs >= self.next_certificate() - EPOCH_ROUNDING
        return is_late or self.is_promising() or self.is_stuck()

    def is_promising(self) -> bool:
        """Return True if the solver's estimate says that the requested gap is reached."""
        return self.points.aim > 0.0 and self.state.estimate <= self.threshold()

    def is_stuck(self) -> bool:
        """Return True if a gap was requested, and the solver says that it can gain no more."""
        is_far = self.state.estimate > self.threshold()
        return self.points.aim > 0.0 and is_far and self.state.is_stuck

    def reason_to_end(self, stopped: bool) -> tuple[Outcome, str] | None:
        """Return the limit, interrupt or rule of the solver that ends the fit now, or None."""
        limits = self.limits
        if stopped:
            return Outcome.INTERRUPTED, "interrupted"
        if not np.isfinite(self.state.w).all():
            return Outcome.FAILED, "the weights are not finite"
        # Time is kept for the last certificate.
        limit = limits.reached_limit(self.epochs, self.watches.total, reserve=self.reserve())
        if limit is not None:
            return limit
        if self.state.satisfied:
            return Outcome.RULE_MET, self.state.rule
        if self.solver.exhausted(self.state):
            return Outcome.EPOCH_LIMIT, "the solver's own limit"
        return None

    def verdict(self, chosen: Certificate) -> tuple[Outcome, str] | None:
        """Return how the last certificate ends the fit, and why; None if it does not.

        `chosen` is the certificate of the result of a fit that would end now.
        """
        points = self.points
        assert points.best is not None
        certificate = proof(points.best, points.highest)
        if not certificate.sound:
            return Outcome.FAILED, f"the gap is {certificate.gap:.3g}"
        gap = chosen.relative_gap
        if self.limits.prove(chosen):
            return Outcome.CERTIFIED, self.limits.describe(chosen)
        if self.state.satisfied:
            return Outcome.RULE_MET, self.state.rule

        # Rounding alone may be more than the requested gap. The targets of a regression are rounded
        # too: an objective that their last places explain is as good as zero.
        noise = getattr(self.problem, "target_noise", 0.0) * self.problem.unit
        is_exact = points.last is not None and points.last.exact
        if is_exact and chosen.is_limited_by_rounding(points.aim, noise):
            reason = f"relative gap {gap:.2g}, {chosen.rounding_share:.2g} of it rounding"
            return Outcome.LIMITED_BY_ROUNDING, reason

        # The watch has to see every certificate, also if no gap was requested. A run that goes on
        # from a checkpoint may stand as long as an undisturbed one: all work counts.
        effort = self.earlier["epochs"] + self.state.effort
        is_stalled = self.stall.is_stalled(effort, certificate, phase_of(self.state))
        if self.is_stuck():
            return Outcome.NO_PROGRESS, f"at a gap of {gap:.2g}, {self.state.obstacle}"
        if is_stalled and points.aim > 0.0:
            reason = f"the gap has stayed at {gap:.2g} during the last half of the work"
            return Outcome.NO_PROGRESS, reason
        return None

    def record(self, model: Evaluation, certificate: Certificate) -> Record:
        """Return the record of the result of a fit that would end now.

        The best model and the best bound need not come from the same certificate.
        """
        return Record.from_certificate(
            certificate,
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
            kernel_evaluations=self.state.kernel_evaluations,
        )

    def snapshot(self) -> Saved:
        """Return what a checkpoint holds: the last solution, the best points, and the counts."""
        point = self.solver.solution(self.problem, self.state)
        best = {}
        w = point.w
        if w is not None and point.tracks and not self.problem.is_plain:
            # A dual solver tracks the gradient of the regulariser, which gives the weights.
            w = self.problem.regularizer.weights(w)
        # A solver has weights, dual variables, or both.
        fields = {"w": w, "alpha": point.alpha}
        solution = {name: array for name, array in fields.items() if array is not None}
        returned = None if self.points.keeps_last else self.points.result
        if returned is not None:
            # The intercept as the weight of the virtual feature, which may be absent.
            model, bound = returned
            scale = self.problem.scale
            intercept = np.asarray(model.intercept)
            last = intercept / scale if scale else 0.0 * intercept
            w = np.concatenate([model.coef, last[..., None]], axis=-1)
            best = {"w": w, "alpha": bound.alpha}
        numbers = {
            "epochs": self.epochs,
            "rows_touched": self.rows_touched,
            "solving": self.watches.solving,
            "certifying": self.watches.certifying,
            "phases": dict(self.phases),
        }
        state = {name: getattr(self.state, name) for name in type(self.state).carried}
        return Saved(solution, best, state, numbers, list(self.trace))

    def _read_checkpoint(self, seed: int) -> Saved | None:
        """Return the contents of the checkpoint's file; None if there is none."""
        if self.checkpoint is None:
            return None
        # A checkpoint is taken over by the same problem, solver and seed only.
        self.mark = fingerprint(self.problem, self.solver)
        self.mark = self.mark | self.checkpoint.marks(self.problem, seed)
        if self.points.keeps_last:
            self.mark["keep"] = self.limits.keep
        return self.checkpoint.read(self.mark)

    def _continue_from(self, saved: Saved, seed: int) -> State:
        """Return the state of a run that continues a saved run; its counts and time go on."""
        self.earlier = saved.numbers
        self.watches.solving = saved.numbers["solving"]
        self.watches.certifying = saved.numbers["certifying"]
        self.phases = dict(saved.numbers["phases"])
        self.trace.extend(saved.trace)
        # Other draws than those of the run before: repeating them would weigh their rows twice.
        seed = (seed + int(self.earlier["rows_touched"])) % 2**32
        # A state with its own weights needs no point to begin at.
        start: Point | None = None
        if "w" not in saved.state:
            start = Point(saved.point.get("w"), saved.point.get("alpha"))
        state: State = self.solver.init(self.problem, seed, start)
        for name, found in saved.state.items():
            fresh = getattr(state, name)
            # Numbers are arrays without axes in the file.
            is_array = isinstance(fresh, np.ndarray)
            setattr(state, name, found if is_array else type(fresh)(found))
        return state

    @property
    def epochs(self) -> float:
        """Epochs so far, also before a checkpoint."""
        return float(self.earlier["epochs"] + self.state.epochs)

    @property
    def rows_touched(self) -> int:
        """Row visits so far, also before a checkpoint."""
        return int(self.earlier["rows_touched"] + self.state.rows_touched)

    def result(self) -> FitResult:
        """Return the best model; zeros with a certificate of NaN if no objective is finite."""
        problem = self.problem
        returned = self.points.result
        assert self.end is not None
        # No objective was finite: zeros, and a certificate that proves nothing.
        if returned is None:
            certificate = Certificate(np.nan, np.nan)
            weights = np.zeros(problem.n_features)
            duals = np.zeros(problem.y.size)
            model = Evaluation(weights, 0.0, duals, certificate)
            bound = model
        else:
            model, bound = returned
            certificate = proof(model, bound)
        dual_point = bound if problem.intercept.homogeneous else model
        return FitResult(
            coef=model.coef,
            intercept=model.intercept,
            alpha=dual_point.alpha,
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
