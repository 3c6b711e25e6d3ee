"""The solvers of the dual-coordinate-descent tables: the papers' with each stopping rule, ours, and scikit-learn's.

The papers' lines are the algorithm's own last iterate (``keep="last"``), rows permuted singly; a fit of ours would give
the best model that a certificate found on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddlesvm import LinearSVC, Outcome
from saddlesvm.solvers import DCD

TOLERANCE = 1e-4
THEIRS = "scikit-learn"
FITTED_WITH_CERTIFICATE = "DCD, gap 1e-4"


@dataclass(frozen=True)
class Entrant:
    """A line of the tables: its name, and a function that makes its estimator for a C and a number of passes."""

    name: str
    make: Callable[[float, int], Any]


def papers(shrinking: bool, stopping: str) -> Callable[[float, int], Any]:
    """The algorithm with a rule of the literature, and scikit-learn's limit: on passes over the active rows."""

    def make(C: float, passes: int) -> LinearSVC:
        solver = DCD(shrinking=shrinking, stopping=stopping, threshold=TOLERANCE, max_passes=passes, run_length=1)
        return LinearSVC(C=C, loss="squared_hinge", solver=solver, tol=0.0, keep="last", random_state=0)

    return make


def to_a_gap(C: float, passes: int) -> LinearSVC:
    """Our descent, stopped on the certified gap or by the same limit."""
    return LinearSVC(C=C, loss="squared_hinge", solver=DCD(max_passes=passes), tol=TOLERANCE, random_state=0)


def theirs(C: float, passes: int) -> Any:
    """scikit-learn's estimator as published."""
    from sklearn.svm import LinearSVC as Theirs

    return Theirs(C=C, loss="squared_hinge", dual=True, tol=TOLERANCE, max_iter=passes, random_state=0)


def default(C: float, passes: int) -> LinearSVC:
    """Our estimator as it is, with the solver it chooses itself."""
    return LinearSVC(C=C, loss="squared_hinge", tol=TOLERANCE, max_time=10.0, random_state=0)


ENTRANTS = (
    Entrant("DCD", papers(False, "projected_gradient")),
    Entrant("DCD, shrinking", papers(True, "projected_gradient")),
    Entrant("DCD, change of w", papers(False, "weight_change")),
    Entrant("DCD, shrinking, change of w", papers(True, "weight_change")),
    Entrant("DCD, both rules", papers(False, "both")),
    Entrant("DCD, shrinking, both rules", papers(True, "both")),
    Entrant(FITTED_WITH_CERTIFICATE, to_a_gap),
    Entrant("default, gap 1e-4", default),
    Entrant(THEIRS, theirs),
)


def passes_of(model: Any) -> float:
    """The largest number of passes of a fitted estimator."""
    return float(np.max(model.n_iter_))


def ended(model: Any) -> str:
    """ ", cut" where a limit on passes ended the fit, and no rule; else nothing."""
    outcome = getattr(model, "outcome_", None)
    if outcome is None:
        return ", cut" if passes_of(model) >= model.max_iter else ""
    return ", cut" if outcome is Outcome.EPOCH_LIMIT else ""
