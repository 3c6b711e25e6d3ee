"""Why a fit ended, and what the user can do."""

from __future__ import annotations

from enum import Enum
from typing import Any

from sklearn.exceptions import ConvergenceWarning


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
    """Why a fit ended: the value is the name of the reason, ``advice`` recommends what to do.

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
    TIME_LIMIT = "time_limit"
    EPOCH_LIMIT = "epoch_limit"
    INTERRUPTED = "interrupted"
    NO_PROGRESS = "no_progress"
    LIMITED_BY_ROUNDING = "limited_by_rounding"
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
