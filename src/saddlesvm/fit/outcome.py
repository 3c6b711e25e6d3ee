"""Why a fit ended, and what a person can do about it."""

from __future__ import annotations

from enum import Enum
from typing import Any

from sklearn.exceptions import ConvergenceWarning


class NotCertifiedWarning(ConvergenceWarning):
    """A fit stopped before the relative gap that was asked for was proven.

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
    """The closed set of ways in which a fit ends; the value names it, ``advice`` says what to do.

    Examples
    --------
    >>> from saddlesvm import Outcome
    >>> str(Outcome.CERTIFIED), Outcome.CERTIFIED.advice
    ('certified', 'The gap asked for is proven; nothing to do.')
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
        """A sentence for a person."""
        return ADVICE[self]

    def __str__(self) -> str:
        return self.value


ADVICE = {
    Outcome.CERTIFIED: "The gap asked for is proven; nothing to do.",
    Outcome.RULE_MET: (
        "The solver's own stopping rule was met first. Tighten its threshold, or leave stopping to the gap."
    ),
    Outcome.TIME_LIMIT: "Raise max_time, scale the features to similar size, lower C, or ask for a looser tol.",
    Outcome.EPOCH_LIMIT: "Raise max_iter (None for no limit), scale the features to similar size, or lower C.",
    Outcome.INTERRUPTED: "This is the best model so far; fit again with warm_start or a checkpoint to go on.",
    Outcome.NO_PROGRESS: (
        "The gap stopped falling. Scale the features to similar size, lower C, use float64 data, or use solver='auto'."
    ),
    Outcome.LIMITED_BY_ROUNDING: (
        "The model is as good as float64 can tell: rounding alone may be more than tol. Scale the features (and "
        "targets) to similar, moderate size, lower C, or ask for a looser tol."
    ),
    Outcome.FAILED: (
        "The arithmetic broke down (overflow, or a gap that is negative). Scale the features to "
        "moderate size; if they are, please report this as a bug."
    ),
}
