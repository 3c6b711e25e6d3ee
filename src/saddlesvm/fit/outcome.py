"""How a fit ended: why, with which model and certificate, and what the user can do."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from saddlesvm.fit.trace import Trace
from saddlesvm.problem.certificate import Certificate, Evaluation


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


class Outcome(Enum):
    """Why a fit ended, in order of severity; the value is a name, and ``advice`` recommends what to do.

    Examples
    --------
    >>> from saddlesvm import Outcome
    >>> str(Outcome.CERTIFIED), Outcome.CERTIFIED.advice
    ('certified', 'The requested gap is proven. There is nothing to do.')
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return Outcome, (self.value,)  # as skops, which knows no enumerations, can write and read it

    CERTIFIED = "certified"
    RULE_MET = "rule_met"
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

    def __str__(self) -> str:
        return self.value


ADVICE = {
    Outcome.CERTIFIED: "The requested gap is proven. There is nothing to do.",
    Outcome.RULE_MET: ("The solver's own stopping rule was met first. Lower its threshold, or stop by the gap."),
    Outcome.TIME_LIMIT: "Raise max_time, scale the features to similar size, lower C, or raise tol.",
    Outcome.EPOCH_LIMIT: "Raise max_iter (None for no limit), scale the features to similar size, or lower C.",
    Outcome.INTERRUPTED: "This is the best model so far; fit again with warm_start or a checkpoint to continue.",
    Outcome.NO_PROGRESS: (
        "The gap stopped falling. Scale the features to similar size, lower C, use float64 data, or use solver='auto'."
    ),
    Outcome.LIMITED_BY_ROUNDING: (
        "float64 arithmetic cannot prove a smaller gap: rounding alone may exceed tol. Scale the features (and "
        "targets) to similar, moderate size, lower C, or raise tol."
    ),
    Outcome.FAILED: (
        "The arithmetic failed (overflow, or a negative gap). Scale the features to moderate size. If they already "
        "have moderate size, please report this as a bug."
    ),
}


@dataclass(frozen=True)
class FitResult:
    """The result of a fit.

    Attributes
    ----------
    coef : ndarray of shape (d,), float64
    intercept : float
    alpha : ndarray of shape (n_all,), float64
        Dual point behind the certificate. Where its sum is given, and is not zero: the dual point whose weights the
        model has, unless these are zero.
    certificate : Certificate
    outcome : Outcome
    tol : float
        The relative gap that was asked for.
    epochs : float
    rows_touched : int
    seconds_solving, seconds_certifying : float
    trace : Trace
    reason : str
        Why the fit ended, in words.
    phases : dict of str to float
        Seconds of solving, by solver, or by phase where the solver has several.
    gap : float
        The gap that was asked for in the units of the objective; 0 where none was.
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
    gap: float = 0.0

    @classmethod
    def of(cls, found: Evaluation, alpha: Any, tol: float, phase: str) -> FitResult:
        """The result of a point that was found without a fit, in a phase of no known time; `alpha` is what is kept."""
        certificate = found.certificate
        enough = tol > 0.0 and certificate.relative_gap <= tol
        outcome = Outcome.CERTIFIED if enough else Outcome.NO_PROGRESS
        model = found.coef, found.intercept, alpha, certificate
        return cls(*model, outcome, tol, 0.0, 0, 0.0, 0.0, Trace(), phases={phase: 0.0})

    def recertified(self, certificate: Certificate, why: str) -> FitResult:
        """The result with a certificate that counts more rounding, `why`; certified where that still proves enough."""
        found = replace(self, certificate=certificate)
        enough = 0.0 < self.tol >= certificate.relative_gap or 0.0 < self.gap >= certificate.gap
        if self.outcome is not Outcome.CERTIFIED or enough:
            return found
        reason = f"relative gap {certificate.relative_gap:.2g}, rounding of {why} included"
        return replace(found, outcome=Outcome.LIMITED_BY_ROUNDING, reason=reason)

    @property
    def message(self) -> str:
        """The text of the warning of an early stop: outcome, meaning of the gap, and advice."""
        return uncertified(self.outcome, self.reason, self.certificate, self.tol, self.gap)

    def warn(self, stacklevel: int = 3, hints: Sequence[object] = ()) -> None:
        """Warn if the certificate asked for (if one was) was not reached; `hints` say what was found in the data."""
        if self.outcome is not Outcome.CERTIFIED and max(self.tol, self.gap) > 0.0:
            found = "".join(f" Found in the data: {hint}." for hint in hints)
            warnings.warn(self.message + found, NotCertifiedWarning, stacklevel=stacklevel)


def uncertified(outcome: Outcome, reason: str, certificate: Certificate, tol: float, gap: float = 0.0) -> str:
    """The warning of a fit that ended before it was certified: how, what the gap means, and advice."""
    excess = certificate.excess
    if np.isfinite(excess):
        meaning = f"the objective is at most {100 * max(excess, 0.0):.3g} % above the optimum"
    else:
        meaning = "the dual bound is not positive yet, so nothing is known about the optimum"
    found = [(f"the relative gap is {certificate.relative_gap:.2g}, {tol:.2g} was asked for", tol)]
    found += [(f"the gap is {certificate.gap:.2g}, {gap:.2g} was asked for", gap)]
    asked = "; ".join(text for text, least in found if least > 0.0) or found[0][0]
    return f"stopped before the certificate ({outcome}, {reason}): {asked}; {meaning}. {outcome.advice}"
