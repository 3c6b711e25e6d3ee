"""A fit under way: its best points, the time of its next certificate, and the reasons to stop.

Only a time limit depends on the clock. The data fix the slices of work and the epochs of the certificates, so a seeded
fit is repeatable bit for bit.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from saddlesvm.fit.checkpoint import Saved
from saddlesvm.fit.limits import Limits, StallWatch
from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.restored import certified_anew, is_confirmed
from saddlesvm.fit.trace import Record, Trace, read_only
from saddlesvm.problem.certificate import Certificate, Evaluation, Point, evaluate
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rescaling import better
from saddlesvm.runtime.clock import clock, working_for
from saddlesvm.solvers.base import Budget, phase_of

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


def proof(model: Evaluation, bound: Evaluation) -> Certificate:
    """The certificate of the model at one point by the dual objective of another."""
    return model.certificate.bounded_by(bound.certificate)


class Run:
    """One fit under way: its best points, the time of its next certificate, and the reasons to stop.

    Attributes
    ----------
    sharers : int
        Problems that share a reading of the rows, this one included. They divide the time of a step among them; a
        certificate's pass serves one problem alone, and so counts `sharers` times.
    """

    def __init__(self, problem: Problem, solver: Any, limits: Limits, label: str) -> None:
        self.sharers = 1
        self.problem, self.solver, self.limits, self.label = problem, solver, limits, label
        self.keeps_last = limits.keep == "last"  # whether the fit returns the solver's last point, whatever it is
        self.point = solver.last_point if self.keeps_last else solver.solution
        self.watches = Stopwatches()
        self.phases: dict[str, float] = {}
        self.trace = Trace()
        self.last: Evaluation | None = None
        self.best: Evaluation | None = None
        self.bound: Evaluation | None = None
        self.improved: Evaluation | None = None
        self.passes = 0.0
        self.certified_at = 0.0  # epochs
        self.ratio = 1.0
        self.certificate_seconds = 0.0  # of the last one, by the state's own measure of how heavy it is
        self.stall = StallWatch()
        # As the end does, so that a run stopped later never returns a worse model; over files, where that is asked for.
        self.tries_multiples = limits.certify_every is not None and problem.stored_points == "checked later"

    @property
    def chosen(self) -> tuple[Evaluation, Evaluation]:
        """The model and the dual point that a fit would return if it ended now.

        Both are those of the last certificate where it alone proves the gap asked for, or where the fit keeps the last
        point; else the best of each.
        """
        assert self.best is not None
        if self.last is not None and (self.keeps_last or self.limits.prove(self.last.certificate)):
            return self.last, self.last
        return self.best, self.highest

    @property
    def highest(self) -> Evaluation:
        """The point with the best bound: the last one, which may be a quick one, or the best of all exact ones."""
        if self.last is None or (self.bound is not None and self.bound.certificate.dual > self.last.certificate.dual):
            assert self.bound is not None
            return self.bound
        return self.last

    @property
    def aim(self) -> float:
        """The relative gap to reach, 0 where the fit asks for none: the larger of `tol` and, once a certificate says
        what the objective is, of `gap`."""
        if not self.limits.gap or self.best is None:
            return self.limits.tol
        certificate = self.best.certificate
        size = max(abs(certificate.primal), abs(certificate.dual))
        return max(self.limits.tol, self.limits.gap / size) if 0.0 < size < np.inf else self.limits.tol

    def budget(self, state: Any) -> Budget:
        """Work until the next certificate or limit, in slices of bounded length."""
        n = self.problem.members.size
        stop = min(self.next_certificate(state), self.limits.max_epochs or np.inf)
        until = max(1, round((stop - state.epochs) * n)) if stop < np.inf else np.inf
        values = SLICE_VALUES * (1 if self.problem.threads == 1 else THREAD_SLICES * self.problem.threads)
        slice_rows = max(1, int(values / self.problem.values_per_row))
        limit = self.limits.max_time or np.inf
        seconds = (limit if self.passes else FIRST_SHARE * limit) - self.watches.total - self.reserve(state)
        return Budget(int(min(until, slice_rows)), self.threshold(), max(seconds, 0.0))

    def reserve(self, state: Any) -> float:
        """Seconds that the end of the fit will take: the last certificate, and the search for a better multiple."""
        once = self.certificate_seconds * getattr(state, "heaviness", 1.0)
        return max(once, min(ENDING_CERTIFICATES * once, 0.5 * (self.limits.max_time or 0.0)))

    def threshold(self) -> float:
        """The estimate below which a certificate is due, given the last quotient of gap and estimate."""
        return EAGERNESS * self.aim / self.ratio

    def next_certificate(self, state: Any) -> float:
        """The epoch of the next scheduled certificate."""
        if self.limits.certify_every is not None:
            return self.certified_at + max(self.limits.certify_every, self.limits.certify_growth * self.certified_at)
        if getattr(state, "proves_itself", False):  # a certificate costs nothing
            return self.certified_at + 1.0
        if self.certified_at == 0.0 and self.aim >= ROUGH and not state.proven:
            return 1.0
        share = ESTIMATED_SHARE if np.isfinite(state.estimate) else CERTIFICATE_SHARE
        return max((self.passes + QUICK_PASSES) * self.sharers / share, 1.3 * self.certified_at)

    def reason_to_end(self, state: Any, stopped: bool) -> tuple[Outcome, str] | None:
        """The limit, interrupt or rule of the solver that ends the fit now, or None."""
        limits = self.limits
        if stopped:
            return Outcome.INTERRUPTED, "interrupted"
        if not np.isfinite(state.w).all():
            return Outcome.FAILED, "the weights are not finite"
        reached = limits.reached(state.epochs, self.watches.total, reserve=self.reserve(state))
        if reached is not None:
            return reached
        if state.satisfied:
            return Outcome.RULE_MET, state.rule
        if self.solver.exhausted(state):
            return Outcome.EPOCH_LIMIT, "the solver's own limit"
        return None

    def is_due(self, state: Any) -> bool:
        """Whether the schedule, the solver's estimate or a time limit asks for a certificate."""
        unknown = self.passes == 0.0 and self.watches.total >= FIRST_SHARE * (self.limits.max_time or np.inf)
        return unknown or state.epochs >= self.next_certificate(state) - 1e-9 or self.promising(state)

    def promising(self, state: Any) -> bool:
        """Whether the solver's estimate says that the gap asked for is reached."""
        return self.aim > 0.0 and state.estimate <= self.threshold()

    def certify(self, state: Any, ending: bool) -> Any:
        """Certify: by a quick estimate first, and exactly where this certificate may end the fit."""
        self.watches.lap("solving")
        before = self.watches.certifying
        point = self.point(self.problem, state)
        fine = state.w.dtype == np.float64  # close to the optimum: what a quick estimate omits is no longer small
        likely = ending or self.promising(state) or not point.tracks or (fine and not point.read)
        evaluation = self.evaluated(point, exact=likely)
        self.passes += EXACT_PASSES if likely else QUICK_PASSES
        if not evaluation.exact and self.decisive(evaluation):
            evaluation = self.evaluated(point)
            self.passes += EXACT_PASSES
        self.certified_at = state.epochs
        if 0.0 <= state.estimate < np.inf:
            ratio = evaluation.certificate.relative_gap / max(state.estimate, SMALLEST_ESTIMATE)
            self.ratio = float(np.clip(ratio, *RATIOS))
        state = self.solver.certified(self.problem, state, evaluation)
        for known in point.known:
            self.keep(known)
        self.keep(evaluation)
        if self.tries_multiples and not self.limits.prove(proof(*self.chosen)):
            self.improve(evaluation)
            if getattr(point, "judged", evaluation) is not evaluation:
                self.improve(point.judged)
        self.watches.lap("certifying")
        self.certificate_seconds = (self.watches.certifying - before) / getattr(state, "heaviness", 1.0)
        return state

    def begin(self, state: Any, seconds: float) -> None:
        """Note that the starting point's margins took so many seconds, as those of a certificate will."""
        self.certificate_seconds = max(self.certificate_seconds, seconds / getattr(state, "heaviness", 1.0))

    def evaluated(self, point: Any, exact: bool = True) -> Evaluation:
        """The certificate of a point; the last one of a primal solver has its own free intercept, not the best one."""
        if self.keeps_last and isinstance(point, Point) and point.w is not None and not point.tracks:
            return evaluate(self.problem, point, exact=exact, given_offset=True)
        return evaluate(self.problem, point, exact=exact)

    def decisive(self, quick: Evaluation) -> bool:
        """Whether a quick estimate says what only an exact certificate may: that the gap is reached, or negative."""
        seen = quick.certificate
        if self.keeps_last:
            return self.limits.prove(seen) or not seen.sound
        if self.best is not None and self.best.certificate.primal < seen.primal:
            seen = self.best.certificate.bounded_by(seen)
        if self.bound is not None:
            seen = seen.better_of(seen.bounded_by(self.bound.certificate))
        return self.limits.prove(seen) or not seen.sound

    def confirm(self, state: Any) -> None:
        """Put an exact certificate in the place of the last record's quick one: the fit ends with it."""
        self.keep(self.evaluated(self.point(self.problem, state)))
        self.watches.lap("certifying")
        self.trace.pop()
        self.trace(self.record(state))

    def keep(self, evaluation: Evaluation) -> None:
        """Remember the last point, the best model and the best bound; a quick estimate bounds nothing."""
        own = evaluation.certificate
        if not (np.isfinite(own.primal) and own.dual < np.inf):
            return
        self.last = evaluation
        if self.best is None or own.primal <= self.best.certificate.primal:
            self.best = evaluation
        if evaluation.exact and (self.bound is None or own.dual >= self.bound.certificate.dual):
            self.bound = replace(evaluation, alpha=self.problem.kept_duals(evaluation.alpha))

    def verify(self) -> bool:
        """Read the rows for the model and the dual point that the fit would return: whether their claims are confirmed.

        Where they are not, what the rows say takes the place of all points so far.
        """
        if self.returned is None:
            return True
        model, bound = self.returned
        found = certified_anew(self.problem, model, bound.alpha)
        self.watches.lap("certifying")
        if is_confirmed(proof(model, bound), found.certificate):
            return True
        self.last = self.best = found
        self.bound = replace(found, alpha=self.problem.kept_duals(found.alpha))
        self.improved = None
        return self.limits.prove(found.certificate)

    def improve(self, model: Evaluation | None = None) -> None:
        """Look for a better model among the multiples of one, of the best where none is given, and the best intercept
        alone.

        It stands apart from the best one: a fit that goes on from here goes the way of an undisturbed one. A fit that
        keeps the last point leaves it as it is.
        """
        if self.keeps_last:
            return
        with working_for((self.limits.max_time or np.inf) - self.watches.total):
            point = better(self.problem, model or self.best)
        if point is not None:
            found = evaluate(self.problem, point)
            lowest = self.improved or self.best
            if np.isfinite(found.certificate.primal) and (
                lowest is None or found.certificate.primal < lowest.certificate.primal
            ):
                self.improved = found
        self.watches.lap("certifying")

    @property
    def returned(self) -> tuple[Evaluation, Evaluation] | None:
        """The model and the dual point that the fit returns; None where no objective was finite."""
        if self.keeps_last and self.last is not None:
            return self.last, self.last
        if self.best is not None and (self.improved is None or self.limits.prove(proof(*self.chosen))):
            return self.chosen
        points = [one for one in (self.improved, self.bound, self.best) if one is not None]
        if not points:
            return None
        model = min(points, key=lambda one: one.certificate.primal)
        exact = [one for one in points if one.exact]
        return model, max(exact, key=lambda one: one.certificate.dual)

    def record(self, state: Any) -> Record:
        """The record of the last certificate; it describes the result of a fit that ended now."""
        model, bound = self.chosen
        certificate = proof(model, bound)
        return Record(
            epoch=float(state.epochs),
            rows_touched=int(state.rows_touched),
            seconds_solving=self.watches.solving,
            seconds_certifying=self.watches.certifying,
            primal=certificate.primal,
            dual=certificate.dual,
            gap=certificate.gap,
            relative_gap=certificate.relative_gap,
            active=int(state.active),
            change=float(state.change),
            remark=state.remark,
            coef=read_only(model.coef),
            intercept=read_only(model.intercept),
            problem=self.label,
            form=certificate.form,
            primal_rounding=certificate.primal_rounding,
            dual_rounding=certificate.dual_rounding,
            kernel_evaluations=int(state.kernel_evaluations),
        )

    def saved(self, state: Any, end: tuple[str, ...] = (), pending: bool = False) -> Saved:
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
        points = {
            "best": self.best,
            "bound": self.bound,
            "improved": self.improved,
            "last": self.last if end or self.keeps_last else None,
        }
        if self.problem.stored_points == "made anew":
            points, end = {}, ()
        found = {name: one for name, one in points.items() if one is not None}
        limits = {
            name: given if given is None or isinstance(given, str) else float(given)
            for name, given in asdict(self.limits).items()
        }
        return Saved(state, numbers, found, Trace(self.trace), limits, end)

    def restore(self, saved: Saved) -> None:
        """Take over the numbers, points and trace of a saved run."""
        self.watches.solving, self.watches.certifying = saved.numbers["solving"], saved.numbers["certifying"]
        self.certified_at, self.passes = saved.numbers["certified_at"], saved.numbers["passes"]
        self.ratio, self.phases = saved.numbers["ratio"], dict(saved.numbers["phases"])
        self.stall.history = [tuple(seen) for seen in saved.numbers["history"]]
        self.best, self.bound = saved.points.get("best"), saved.points.get("bound")
        self.improved, self.last = saved.points.get("improved"), saved.points.get("last")
        self.stall.phase = saved.numbers["phase"]
        self.trace.extend(saved.trace)

    def end_of(self, saved: Saved) -> tuple[Outcome, str] | None:
        """The end of a restored run, which stands where nothing is asked for that it has not shown; else None."""
        now = self.saved(saved.state)
        known = self.best is not None and self.bound is not None
        proven = known and self.returned is not None and self.limits.prove(proof(*self.returned))
        if saved.end and saved.limits == now.limits and (proven or saved.end[0] != str(Outcome.CERTIFIED)):
            return Outcome(saved.end[0]), saved.end[1]
        if saved.end and proven:
            return Outcome.CERTIFIED, "the gap is proven already"
        if not known or saved.numbers["pending"]:
            return None
        return self.reason_to_end(saved.state, stopped=False)  # the run may have been killed at its end

    def verdict(self, state: Any) -> tuple[Outcome, str] | None:
        """The decision after the last certificate: certified, failed, rule met, limited by rounding, or no progress."""
        assert self.best is not None
        certificate = proof(self.best, self.highest)
        if not certificate.sound:
            return Outcome.FAILED, f"the gap is {certificate.gap:.3g}"
        chosen = proof(*self.chosen)
        gap = chosen.relative_gap
        if self.limits.prove(chosen):
            return Outcome.CERTIFIED, self.limits.proven(chosen)
        if state.satisfied:
            return Outcome.RULE_MET, state.rule
        # The targets of a regression are rounded too: an objective that their last places explain is as good as zero.
        noise = getattr(self.problem, "target_noise", 0.0) * self.problem.unit
        if self.last is not None and self.last.exact and chosen.limited(self.aim, noise):
            return Outcome.LIMITED_BY_ROUNDING, f"relative gap {gap:.2g}, {chosen.rounding_share:.2g} of it rounding"
        if self.stall.stalled(state.effort, certificate, phase_of(state)) and self.aim > 0.0:
            return Outcome.NO_PROGRESS, f"the gap has stayed at {gap:.2g} during the last half of the work"
        return None
