"""The one loop that drives any solver: stopping, limits, certificates, trace, progress, interrupt, checkpoint.

Nothing that a fit computes depends on the clock (but for the moment a time limit ends it): slices of work and the
epochs at which a certificate is asked for are fixed by the data, so a seeded fit is repeatable bit for bit.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from saddlesvm.certificate import Certificate, Evaluation, Point, evaluate
from saddlesvm.checkpoint import Checkpoint, Saved, fingerprint
from saddlesvm.interrupt import interruptible
from saddlesvm.outcome import NotCertifiedWarning, Outcome
from saddlesvm.problem import Problem
from saddlesvm.solvers.base import Budget
from saddlesvm.trace import Callback, Record, Trace

SLICE_VALUES = 4_000_000  # stored values that one step may touch: some 10 ms of work
THREAD_SLICES = 4  # as many for each thread of several, which are slow to begin together
CERTIFICATE_SHARE = 0.2  # passes for certificates, as a share of all passes
ESTIMATED_SHARE = 0.05  # the same for solvers that know about where they are without
GLANCE_PASSES, EXACT_PASSES = 1.0, 2.0
EAGERNESS = 0.9  # of the gap asked for, at which the estimate is trusted to say that it is reached
SMALLEST_ESTIMATE = 1e-300
RATIOS = (0.1, 1e12)  # believable quotients of gap and estimate
STALL_EPOCHS = 64  # no verdict of "no progress" before
STALL_FACTOR = 0.98  # the gap, or an objective, must move by this factor whenever the epochs double
TINY_SHARE = 1e-6  # of the primal objective: a dual one below it counts as that much


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Attributes
    ----------
    tol : float, default=1e-4
        Relative duality gap to prove; 0 never stops on the gap.
    max_epochs : float, optional
    max_time : float, optional
        Seconds, certificates included.
    certify_every : float, optional
        Epochs between certificates; left out, at growing intervals and when the solver's estimate is below `tol`.
    certify_growth : float, default=0.0
        With `certify_every`: at least this share of the epochs done between certificates, so that they become rarer.
    certify_start : bool, default=False
        Certify the point that the fit starts from before any work: it may do.
    """

    tol: float = 1e-4
    max_epochs: float | None = None
    max_time: float | None = None
    certify_every: float | None = None
    certify_growth: float = 0.0
    certify_start: bool = False

    def __post_init__(self) -> None:
        for name in ("max_epochs", "max_time", "certify_every"):
            given = getattr(self, name)
            if given is not None and not given > 0:
                raise ValueError(f"{name} must be positive, or None for no limit; got {given!r}")
        if not 0.0 <= self.tol < np.inf:
            raise ValueError(f"tol must be at least 0 and finite; got {self.tol!r}")


@dataclass(frozen=True)
class FitResult:
    """What a fit returns.

    Attributes
    ----------
    coef : ndarray of shape (d,), float64
    intercept : float
    alpha : ndarray of shape (n_all,), float64
        Dual point behind the certificate.
    certificate : Certificate
    outcome : Outcome
    tol : float
        The relative gap that was asked for.
    epochs : float
    rows_touched : int
    seconds_solving, seconds_certifying : float
    trace : Trace
    reason : str
        Why it ended, in words.
    phases : dict of str to float
        Seconds solving by what was at work: the solver, or the phases of one that has several.
    """

    coef: np.ndarray
    intercept: float
    alpha: np.ndarray
    certificate: Certificate
    outcome: Outcome
    tol: float
    epochs: float
    rows_touched: int
    seconds_solving: float
    seconds_certifying: float
    trace: Trace = field(repr=False)
    reason: str = ""
    phases: dict[str, float] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """Outcome, what the gap means, and advice: what the warning of an early stop says."""
        excess = self.certificate.excess
        if np.isfinite(excess):
            meaning = f"the objective is at most {100 * max(excess, 0.0):.3g} % above the optimum"
        else:
            meaning = "the dual bound is not positive yet, so nothing is known about the optimum"
        return (
            f"stopped before the certificate ({self.outcome}, {self.reason}): the relative gap is "
            f"{self.certificate.relative_gap:.2g}, {self.tol:.2g} was asked for; {meaning}. {self.outcome.advice}"
        )

    def warn(self, stacklevel: int = 3, hints: Sequence[object] = ()) -> None:
        """Warn if the certificate asked for (if one was) was not reached; `hints` say what was found in the data."""
        if self.outcome is not Outcome.CERTIFIED and self.tol > 0.0:
            found = "".join(f" Found in the data: {hint}." for hint in hints)
            warnings.warn(self.message + found, NotCertifiedWarning, stacklevel=stacklevel)


class Stopwatches:
    """Time spent solving and certifying, and since the start."""

    def __init__(self) -> None:
        self.solving = self.certifying = 0.0
        self.began = self.last = time.perf_counter()

    def lap(self, kind: str) -> None:
        """Add the time since the last lap to the stopwatch `kind`."""
        now = time.perf_counter()
        setattr(self, kind, getattr(self, kind) + now - self.last)
        self.last = now

    def skip(self) -> None:
        """Leave out the time since the last lap: it belongs to callbacks."""
        self.last = time.perf_counter()

    @property
    def total(self) -> float:
        """Seconds on both stopwatches."""
        return self.solving + self.certifying


class Run:
    """One fit under way: what is known, when to look next, and why to stop."""

    def __init__(self, problem: Problem, solver: Any, limits: Limits, label: str) -> None:
        self.problem, self.solver, self.limits, self.label = problem, solver, limits, label
        self.watches = Stopwatches()
        self.phases: dict[str, float] = {}
        self.trace = Trace()
        self.last: Evaluation | None = None
        self.best: Evaluation | None = None
        self.bound: Evaluation | None = None
        self.passes = 0.0
        self.looked_at = 0.0
        self.ratio = 1.0
        self.history: list[tuple[float, float, float, float]] = []

    @property
    def certificate(self) -> Certificate:
        """The best model's objective with the best bound seen."""
        assert self.best is not None and self.bound is not None
        own, bound = self.best.certificate, self.bound.certificate.dual
        return Certificate(own.primal, bound, own.form)

    def budget(self, state: Any) -> Budget:
        """Work until the next certificate or limit, in slices of bounded length."""
        n = self.problem.members.size
        stops = [self.next_look(np.isfinite(state.estimate)), self.limits.max_epochs or np.inf]
        until = max(1, round((min(stops) - state.epochs) * n)) if np.isfinite(min(stops)) else np.inf
        values = SLICE_VALUES * (1 if self.problem.threads == 1 else THREAD_SLICES * self.problem.threads)
        slice_rows = max(1, int(values / self.problem.values_per_row))
        seconds = (self.limits.max_time or np.inf) - self.watches.total
        return Budget(int(min(until, slice_rows)), self.threshold(), max(seconds, 0.0))

    def threshold(self) -> float:
        """The estimate at which a certificate is worth asking for, from how gap and estimate compared before."""
        return EAGERNESS * self.limits.tol / self.ratio

    def next_look(self, estimated: bool) -> float:
        """The epoch of the next scheduled certificate."""
        if self.limits.certify_every is not None:
            return self.looked_at + max(self.limits.certify_every, self.limits.certify_growth * self.looked_at)
        share = ESTIMATED_SHARE if estimated else CERTIFICATE_SHARE
        return max((self.passes + GLANCE_PASSES) / share, 1.3 * self.looked_at)

    def reason_to_end(self, state: Any, stopped: bool) -> tuple[Outcome, str] | None:
        """A limit, an interrupt or the solver's own rule, if one ends the fit now."""
        limits = self.limits
        if stopped:
            return Outcome.INTERRUPTED, "interrupted"
        if not np.isfinite(state.w).all():
            return Outcome.FAILED, "the weights are not finite"
        if limits.max_epochs is not None and state.epochs >= limits.max_epochs - 1e-9:
            return Outcome.EPOCH_LIMIT, f"{state.epochs:.0f} epochs"
        if limits.max_time is not None and self.watches.total >= limits.max_time:
            return Outcome.TIME_LIMIT, f"{self.watches.total:.3g} s"
        if state.satisfied:
            return Outcome.RULE_MET, "the solver's own stopping rule"
        return None

    def worked(self, phase: str) -> None:
        """Note the time of a step."""
        before = self.watches.solving
        self.watches.lap("solving")
        self.phases[phase] = self.phases.get(phase, 0.0) + self.watches.solving - before

    def look_due(self, state: Any) -> bool:
        """Whether the schedule or the solver's estimate asks for a certificate."""
        return state.epochs >= self.next_look(np.isfinite(state.estimate)) - 1e-9 or self.promising(state)

    def promising(self, state: Any) -> bool:
        """Whether the solver's estimate says that the gap asked for is reached."""
        return self.limits.tol > 0.0 and state.estimate <= self.threshold()

    def look(self, state: Any, ending: bool) -> Any:
        """Certify: a glance first, and the exact certificate where it may be the last."""
        self.watches.lap("solving")
        point = self.solver.solution(self.problem, state)
        likely = ending or self.promising(state) or not point.tracks
        evaluation = evaluate(self.problem, point, exact=likely)
        self.passes += EXACT_PASSES if likely and state.w.dtype != np.float64 else GLANCE_PASSES
        glance = not likely
        if glance and (evaluation.certificate.relative_gap <= self.limits.tol or not evaluation.certificate.sound):
            evaluation = evaluate(self.problem, point)
            self.passes += EXACT_PASSES
        self.looked_at = state.epochs
        if 0.0 <= state.estimate < np.inf:
            seen = evaluation.certificate.relative_gap / max(state.estimate, SMALLEST_ESTIMATE)
            self.ratio = float(np.clip(seen, *RATIOS))
        state = self.solver.certified(self.problem, state, evaluation)
        self.keep(evaluation)
        self.watches.lap("certifying")
        return state

    def keep(self, evaluation: Evaluation) -> None:
        """Remember the last point, the best model and the best bound."""
        own = evaluation.certificate
        if not (np.isfinite(own.primal) and own.dual < np.inf):
            return
        self.last = evaluation
        if self.best is None or own.primal <= self.best.certificate.primal:
            self.best = evaluation
        if self.bound is None or own.dual >= self.bound.certificate.dual:
            self.bound = evaluation

    def record(self, state: Any) -> Record:
        """The record of the last certificate, of the best model and bound so far."""
        certificate = self.certificate
        assert self.best is not None
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
            coef=self.best.coef,
            intercept=self.best.intercept,
            problem=self.label,
        )

    def saved(self, state: Any) -> Saved:
        """Everything that a resumed run must know."""
        numbers: dict[str, Any] = {
            "solving": self.watches.solving,
            "certifying": self.watches.certifying,
            "looked_at": self.looked_at,
            "passes": self.passes,
            "ratio": self.ratio,
            "history": self.history,
            "phases": self.phases,
        }
        points = {"best": self.best, "bound": self.bound}
        return Saved(state, numbers, {name: one for name, one in points.items() if one is not None}, self.trace)

    def restore(self, saved: Saved) -> None:
        """Go on where a saved run was."""
        self.watches.solving, self.watches.certifying = saved.numbers["solving"], saved.numbers["certifying"]
        self.looked_at, self.passes = saved.numbers["looked_at"], saved.numbers["passes"]
        self.ratio, self.phases = saved.numbers["ratio"], dict(saved.numbers["phases"])
        self.history = [tuple(seen) for seen in saved.numbers["history"]]
        self.best, self.bound = saved.points.get("best"), saved.points.get("bound")
        self.last = self.best
        self.trace.extend(saved.trace)

    def verdict(self, state: Any) -> tuple[Outcome, str] | None:
        """What the last certificate decides: certified, failed, or no progress."""
        certificate = self.certificate
        if not certificate.sound:
            return Outcome.FAILED, f"the gap is {certificate.gap:.3g}"
        gap = certificate.relative_gap
        if gap <= self.limits.tol and self.limits.tol > 0.0:
            return Outcome.CERTIFIED, f"relative gap {gap:.2g}"
        if self.stalled(state, certificate) and self.limits.tol > 0.0:
            return Outcome.NO_PROGRESS, f"the gap has stayed at {gap:.2g} since epoch {0.5 * state.epochs:.0f}"
        return None

    def stalled(self, state: Any, certificate: Certificate) -> bool:
        """Whether neither the gap nor either objective has moved since half as many epochs."""
        now = (float(state.epochs), certificate.relative_gap, certificate.primal, certificate.dual)
        self.history.append(now)
        earlier = [seen for seen in self.history if seen[0] <= 0.5 * now[0]]
        if now[0] < STALL_EPOCHS or not earlier:
            return False
        _, gap, primal, dual = earlier[-1]
        least = (1.0 - STALL_FACTOR) * max(abs(dual), TINY_SHARE * abs(primal))
        return now[1] > STALL_FACTOR * gap and now[2] > STALL_FACTOR * primal and now[3] < dual + least


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
    """Drive `solver` on `problem` until its relative gap is proven to be at most ``limits.tol``, or a limit is reached.

    Parameters
    ----------
    problem : Problem
    solver : Solver
    limits : Limits
    seed : int
        Of the run's own generator.
    start : Point, optional
        Where to begin.
    callbacks : sequence of callables
        Each is called with a :class:`~saddlesvm.trace.Record` of every certificate; True asks to stop. One that has a
        method ``tick(epoch, estimate, seconds)`` is also told of every slice of work.
    checkpoint : Checkpoint, optional
        Continued from if its file exists; written every so often, and at the end.
    stop : threading.Event, optional
        Set from outside to interrupt the fit. Without it Ctrl-C does so.
    label : str
        Name of the sub-problem in the records.

    Returns
    -------
    FitResult
    """
    run = Run(problem, solver, limits, label)
    state = solver.init(problem, seed, start)
    mark = fingerprint(problem, solver) if checkpoint else {}
    stored = checkpoint.read(mark, state) if checkpoint else None
    if stored is not None:
        state = stored.state
        run.restore(stored)
    tickers = [callback.tick for callback in callbacks if hasattr(callback, "tick")]
    with interruptible(stop) as interrupted:
        end: tuple[Outcome, str] | None = None
        if limits.certify_start and start is not None and stored is None:
            state, end = _certify(run, state, None, callbacks)
        while end is None:
            state = solver.step(problem, state, run.budget(state))
            run.worked(getattr(state, "phase", solver.name))
            end = run.reason_to_end(state, interrupted.is_set())
            for tick in tickers:
                tick(state.epochs, state.estimate, run.watches.total)
            if end is not None or run.look_due(state):
                state, end = _certify(run, state, end, callbacks)
            if run.best is None and end is not None:
                break
            if checkpoint and (end is not None or checkpoint.due()):
                checkpoint.write(mark, run.saved(state))
    return _result(run, state, end)


def _certify(
    run: Run, state: Any, end: tuple[Outcome, str] | None, callbacks: Sequence[Callback]
) -> tuple[Any, tuple[Outcome, str] | None]:
    """Look, tell the callbacks, and say whether that ends the fit; exact where `end` says that it ends anyway."""
    state = run.look(state, ending=end is not None or state.epochs == 0.0)
    if run.best is None:
        return state, end or (Outcome.FAILED, "no point with a finite objective")
    record = run.record(state)
    asked = [callback(record) for callback in (run.trace, *callbacks)]
    run.watches.skip()
    return state, run.verdict(state) or end or ((Outcome.INTERRUPTED, "asked by a callback") if any(asked) else None)


def _result(run: Run, state: Any, end: tuple[Outcome, str]) -> FitResult:
    """The last point where that is certified by itself; otherwise the best model with the best bound."""
    model, bound, last = run.best, run.bound, run.last
    if model is None or bound is None or last is None:
        width, nothing = run.problem.n_features, Certificate(np.nan, np.nan)
        model = bound = last = Evaluation(np.zeros(width), 0.0, np.zeros(run.problem.y.size), nothing)
        certificate = nothing
    elif end[0] is Outcome.CERTIFIED and last.certificate.relative_gap <= run.limits.tol:
        model, bound, certificate = last, last, last.certificate
    else:
        certificate = run.certificate
    return FitResult(
        coef=model.coef,
        intercept=model.intercept,
        alpha=bound.alpha,
        certificate=certificate,
        outcome=end[0],
        tol=run.limits.tol,
        epochs=float(state.epochs),
        rows_touched=int(state.rows_touched),
        seconds_solving=run.watches.solving,
        seconds_certifying=run.watches.certifying,
        trace=run.trace,
        reason=end[1],
        phases=run.phases,
    )
