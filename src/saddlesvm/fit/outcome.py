"""When a fit stops, what it records, and how it ended: the outcome, the model, and advice."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from saddlesvm.problem.certificate import Certificate
from saddlesvm.runtime.option_names import Keep
from saddlesvm.solvers.base import EPOCH_ROUNDING

# What to do about each outcome.
ADVICE = {
    "certified": "The requested gap is proven. There is nothing to do.",
    "rule_met": (
        "The solver's own stopping rule was met first. Lower its threshold, or stop by the gap."
    ),
    "stationary": (
        "The problem is not convex, and no gap bounds the distance to its optimum. Use a positive "
        "semi-definite kernel, such as 'rbf', or add a multiple of the identity to a precomputed "
        "matrix."
    ),
    "time_limit": "Raise max_time, lower C, or raise tol.",
    "epoch_limit": "Raise max_iter (None for no limit), or lower C.",
    "interrupted": (
        "This is the best model so far. A linear model goes on from it with warm_start or a "
        "checkpoint."
    ),
    "no_progress": ("The gap stopped falling. Lower C, use float64 data, or use solver='auto'."),
    "limited_by_rounding": (
        "float64 arithmetic cannot prove a smaller gap: rounding alone may exceed tol. Scale the "
        "features (and targets) to similar, moderate size, lower C, or raise tol."
    ),
    "failed": (
        "The arithmetic failed (overflow, or a negative gap). Scale the features to moderate size. "
        "If they already have moderate size, please report this as a bug."
    ),
}

# Epochs before which no fit counts as stalled; guessed.
STALL_EPOCHS = 64
# Factor by which the gap or an objective must improve whenever the epochs double; guessed.
STALL_FACTOR = 0.98
# Epochs beyond which only the gap counts; guessed.
LONG_EPOCHS = 20_000
# Factor by which the gap must then fall whenever the epochs double: 1 / sqrt(epochs) has 0.71.
LONG_FACTOR = 0.7
# Share of the primal objective that a smaller dual objective counts as; guessed.
TINY_SHARE = 1e-6

# What a record takes from a certificate, and the fields of a record that a trace leaves out.
FIGURES = ("primal", "dual", "gap", "relative_gap", "form", "primal_rounding", "dual_rounding")
FIGURES_OF = attrgetter(*FIGURES)
LEFT_OUT = ("coef", "intercept", "form", "primal_rounding", "dual_rounding")


class NotCertifiedWarning(ConvergenceWarning):
    """A fit stopped before the requested relative gap was proven.

    Examples
    --------
    >>> import warnings
    >>> from saddlesvm import LinearSVC, NotCertifiedWarning
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotCertifiedWarning)
    ...     model = LinearSVC(solver="sdca", max_iter=1).fit(notes.X, notes.y)
    >>> print(model.outcome_)
    epoch_limit
    """


class Outcome(StrEnum):
    """Why a fit ended, in order of severity, as text; ``advice`` recommends what to do.

    Examples
    --------
    >>> from saddlesvm import Outcome
    >>> Outcome.CERTIFIED == "certified"
    True
    >>> str(Outcome.CERTIFIED), Outcome.CERTIFIED.advice
    ('certified', 'The requested gap is proven. There is nothing to do.')
    """

    def __reduce__(self) -> tuple[type[Outcome], tuple[str]]:
        # In a form that skops, which knows no enumerations, can write and read.
        return Outcome, (self.value,)

    CERTIFIED = "certified"
    RULE_MET = "rule_met"
    STATIONARY = "stationary"
    EPOCH_LIMIT = "epoch_limit"
    TIME_LIMIT = "time_limit"
    LIMITED_BY_ROUNDING = "limited_by_rounding"
    NO_PROGRESS = "no_progress"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def advice(self) -> str:
        """Advice for the user, as a sentence."""
        return ADVICE[self]


@dataclass(frozen=True)
class Limits:
    """When to stop, and which point to return.

    Attributes
    ----------
    tol : float, default=1e-4
        Relative duality gap to prove; 0 never stops on it.
    gap : float, default=0.0
        Duality gap to prove in the units of the objective, which ends the fit, too; 0 never does.
    max_epochs : float, optional
    max_time : float, optional
        Seconds, certificates included.
    certify_every : float, optional
        Epochs between certificates. Left out, the fit certifies at growing intervals, and when the
        solver's estimate is below `tol`.
    certify_growth : float, default=0.0
        With `certify_every`: the interval is at least this share of the epochs done, so that
        certificates become rarer.
    keep : {"best", "last"}, default="best"
        The best model and the best dual point that the run had at a certificate, which a multiple
        of the weights may still improve; or the solver's own last point, as it is, with the gap
        between its own two objectives. The gap of the last point is then the gap to prove.
    """

    tol: float = 1e-4
    max_epochs: float | None = None
    max_time: float | None = None
    certify_every: float | None = None
    certify_growth: float = 0.0
    keep: Keep = "best"
    gap: float = 0.0

    def prove(self, certificate: Certificate) -> bool:
        """Return True if a certificate proves a requested gap."""
        relative = self.tol > 0.0 and certificate.relative_gap <= self.tol
        return relative or (self.gap > 0.0 and certificate.gap <= self.gap)

    def describe(self, certificate: Certificate) -> str:
        """Return in words the gap that a certificate proves: the relative gap if that is enough."""
        if certificate.relative_gap <= self.tol:
            return f"relative gap {certificate.relative_gap:.2g}"
        return f"gap {certificate.gap:.2g}"

    def reached_limit(
        self, epochs: float, seconds: float, unit: str = "epochs", reserve: float = 0.0
    ) -> tuple[Outcome, str] | None:
        """Return the outcome and the reason if a limit on epochs or seconds is reached; else None.

        `reserve` are the seconds that the end of the fit will still take.
        """
        if self.max_epochs is not None and epochs >= self.max_epochs - EPOCH_ROUNDING:
            return Outcome.EPOCH_LIMIT, f"{epochs:.0f} {unit}"
        if self.max_time is not None and seconds + reserve >= self.max_time:
            return Outcome.TIME_LIMIT, f"{seconds:.3g} s"
        return None


class StallWatch:
    """Remembers the certificates of a fit, to see whether they still improve.

    Parameters
    ----------
    least : float, default=STALL_EPOCHS
        Epochs, or rounds, before which there is no verdict.

    Attributes
    ----------
    history : list of tuple
        Epochs (or equivalent work), relative gap, primal and dual of each certificate of the
        present phase.
    phase : str
    """

    def __init__(self, least: float = STALL_EPOCHS) -> None:
        self.least = least
        self.phase = ""
        self.history: list[tuple[float, float, float, float]] = []

    def is_stalled(self, epochs: float, certificate: Certificate, phase: str = "") -> bool:
        """Return True if gap and objectives have hardly moved since half as many epochs.

        Only certificates of the same phase are compared. After very many epochs a gap that falls
        too slowly counts as one that does not fall: the fit would never end.
        """
        if phase != self.phase:
            self.phase = phase
            self.history = []
        now = (float(epochs), certificate.relative_gap, certificate.primal, certificate.dual)
        self.history.append(now)

        # The last certificate of the first half of the work.
        earlier = [seen for seen in self.history if seen[0] <= 0.5 * epochs]
        if epochs < self.least or not earlier:
            return False
        epochs_then, gap, primal, dual = earlier[-1]
        if epochs_then >= LONG_EPOCHS and certificate.relative_gap > LONG_FACTOR * gap:
            return True

        # Neither the gap nor the primal objective has fallen, nor the dual objective risen, enough.
        least_rise = (1.0 - STALL_FACTOR) * max(abs(dual), TINY_SHARE * abs(primal))
        enough_fallen = primal - (1.0 - STALL_FACTOR) * abs(primal)
        gap_stands = certificate.relative_gap > STALL_FACTOR * gap
        primal_stands = certificate.primal > enough_fallen
        dual_stands = certificate.dual < dual + least_rise
        return gap_stands and primal_stands and dual_stands


def read_only(value: Any) -> Any:
    """Return the value itself, or a read-only view of an array: callbacks cannot change the fit."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


@dataclass(frozen=True)
class Record:
    """The state of a run when a certificate was computed.

    Attributes
    ----------
    epoch : float
        Passes over the data so far.
    rows_touched : int
    seconds_solving, seconds_certifying : float
        Time spent so far, measured separately.
    primal, dual, gap, relative_gap : float
    active : int
        Number of rows that the solver still works on.
    change : float
        Norm of the change of w in the last pass; NaN if the solver does not measure it.
    remark : str
        The solver's decision, as text.
    coef : ndarray of shape (d,)
        Weights of the model that the fit would return now, read-only. The recorder does not keep
        them. With ``keep="last"``, the weights of the solver's iterate.
    intercept : float
    problem : str
        Name of the sub-problem, if there are several.
    form : {"C", "lambda"}
        The form of `primal` and `dual`.
    kernel_evaluations : int
        Kernel values that the solver computed so far; 0 for linear machines.
    primal_rounding, dual_rounding : float
        Bounds on the rounding in both objectives, see :class:`~saddlesvm.Certificate`. Not a column
        of a trace.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> seen = []
    >>> model = LinearSVC(callbacks=[lambda record: seen.append(record.relative_gap)]).fit(
    ...     notes.X, notes.y
    ... )
    >>> seen[-1] == model.certificate_.relative_gap
    True
    """

    epoch: float
    rows_touched: int
    seconds_solving: float
    seconds_certifying: float
    primal: float
    dual: float
    gap: float
    relative_gap: float
    active: int
    change: float
    remark: str
    coef: np.ndarray = field(repr=False)
    intercept: float = 0.0
    problem: str = ""
    form: str = "C"
    kernel_evaluations: int = 0
    primal_rounding: float = 0.0
    dual_rounding: float = 0.0

    @classmethod
    def from_certificate(cls, certificate: Certificate, **more: Any) -> Record:
        """Return the record of a certificate; `more` are its other fields."""
        return cls(**dict(zip(FIGURES, FIGURES_OF(certificate), strict=True)), **more)

    @property
    def certificate(self) -> Certificate:
        """The certificate behind the record (in the form the problem reports)."""
        return Certificate(
            self.primal, self.dual, self.form, self.primal_rounding, self.dual_rounding
        )


COLUMNS = tuple(column.name for column in fields(Record) if column.name not in LEFT_OUT)
VALUES = attrgetter(*COLUMNS)


class Callback(Protocol):
    """Called with a record of each certificate. Returning True stops the fit, like an interrupt."""

    def __call__(self, record: Record, /) -> bool | None: ...


class Trace(list[dict[str, Any]]):
    """The recorder of a fit: a list with a dict for each certificate, by :data:`COLUMNS`.

    ``pandas.DataFrame(trace)`` makes a table of it.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> trace = LinearSVC(random_state=0).fit(notes.X, notes.y).trace_
    >>> bool(trace.column("relative_gap")[-1] <= 1e-4), list(trace[0])[:2]
    (True, ['epoch', 'rows_touched'])
    """

    def __call__(self, record: Record, /) -> None:
        self.append(dict(zip(COLUMNS, VALUES(record), strict=True)))

    def column(self, name: str) -> np.ndarray:
        """Return a column as an array."""
        return np.array([row[name] for row in self])


@dataclass(frozen=True)
class FitResult:
    """The result of a fit.

    Attributes
    ----------
    coef : ndarray of shape (d,), float64
    intercept : float
    alpha : ndarray of shape (n_all,), float64
        Dual point behind the certificate. If its sum is given, and is not zero: the dual point
        whose weights the model has, unless these are zero.
    certificate : Certificate
    outcome : Outcome
    tol : float
        The requested relative gap.
    epochs : float
    rows_touched : int
    seconds_solving, seconds_certifying : float
    trace : Trace
    reason : str
        Why the fit ended, in words.
    phases : dict of str to float
        Seconds of solving, by solver, or by phase if the solver has several.
    gap : float
        The requested gap in the units of the objective; 0 for none.
    """

    coef: np.ndarray
    intercept: float
    alpha: np.ndarray
    certificate: Certificate
    outcome: Outcome
    tol: float
    # A fit that has nothing to do keeps the zeros.
    epochs: float = 0.0
    rows_touched: int = 0
    seconds_solving: float = 0.0
    seconds_certifying: float = 0.0
    trace: Trace = field(default_factory=Trace, repr=False)
    reason: str = ""
    phases: dict[str, float] = field(default_factory=dict)
    gap: float = 0.0

    def replace_certificate(self, certificate: Certificate, why: str) -> FitResult:
        """Return the result with a certificate that also counts the rounding of `why`."""
        found = replace(self, certificate=certificate)
        enough = 0.0 < self.tol >= certificate.relative_gap or 0.0 < self.gap >= certificate.gap
        if self.outcome is not Outcome.CERTIFIED or enough:
            return found
        reason = f"relative gap {certificate.relative_gap:.2g}, rounding of {why} included"
        return replace(found, outcome=Outcome.LIMITED_BY_ROUNDING, reason=reason)

    def remove_bound(self, evidence: str) -> FitResult:
        """Return the result without a dual bound: `evidence` says why the problem is not convex."""
        gap = self.certificate.relative_gap
        unbounded = replace(self.certificate, dual=-np.inf, dual_rounding=0.0)
        # Weak duality needs a convex problem: without it no dual value is a bound.
        if self.outcome is not Outcome.CERTIFIED:
            reason = f"{self.reason}; the kernel is not positive semi-definite: {evidence}"
            outcome = self.outcome
            # A negative gap is then no failure of the arithmetic.
            if outcome is Outcome.FAILED and -np.inf < gap < 0.0:
                outcome = Outcome.NO_PROGRESS
            return replace(self, certificate=unbounded, outcome=outcome, reason=reason)
        reason = (
            f"the kernel is not positive semi-definite: {evidence}; a relative gap of {gap:.2g} "
            "between both objectives says how nearly stationary the model is, and bounds no other "
            "model's objective"
        )
        return replace(self, certificate=unbounded, outcome=Outcome.STATIONARY, reason=reason)

    @property
    def message(self) -> str:
        """The text of the warning of an early stop: outcome, meaning of the gap, and advice."""
        if self.outcome is Outcome.STATIONARY:
            return f"not certified ({self.outcome}): {self.reason}. {self.outcome.advice}"
        return warning_text(self.outcome, self.reason, self.certificate, self.tol, self.gap)

    def warn(self, stacklevel: int = 3, hints: Sequence[str] = ()) -> None:
        """Warn if a requested gap was not proven; `hints` say what was found in the data."""
        if self.outcome is not Outcome.CERTIFIED and max(self.tol, self.gap) > 0.0:
            found = "".join(f" Found in the data: {hint}." for hint in hints)
            warnings.warn(self.message + found, NotCertifiedWarning, stacklevel=stacklevel)


def warning_text(
    outcome: Outcome, reason: str, certificate: Certificate, tol: float, gap: float = 0.0
) -> str:
    """Return the warning of an early end: why, what the gap means, and advice."""
    # What is known of the distance from the optimum.
    excess = certificate.excess
    if np.isfinite(excess):
        meaning = f"the objective is at most {100 * max(excess, 0.0):.3g} % above the optimum"
    elif certificate.dual == -np.inf:
        meaning = "no dual bound is known, so nothing is known about the optimum"
    else:
        meaning = "the dual bound is not positive yet, so nothing is known about the optimum"

    # The gaps beside the requested ones; the relative one if none was requested.
    relative = f"the relative gap is {certificate.relative_gap:.2g}, {tol:.2g} was asked for"
    absolute = f"the gap is {certificate.gap:.2g}, {gap:.2g} was asked for"
    gaps = []
    if tol > 0.0 or not gap > 0.0:
        gaps.append(relative)
    if gap > 0.0:
        gaps.append(absolute)
    return (
        f"stopped before the certificate ({outcome}, {reason}): {'; '.join(gaps)}; {meaning}. "
        f"{outcome.advice}"
    )
