"""The result of a fit: a model, its certificate, the reason why the fit ended, and the trace."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.fit.trace import Trace
from saddlesvm.problem.certificate import Certificate, Evaluation


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
        return cls(
            found.coef,
            found.intercept,
            alpha,
            certificate,
            outcome,
            tol,
            0.0,
            0,
            0.0,
            0.0,
            Trace(),
            phases={phase: 0.0},
        )

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
