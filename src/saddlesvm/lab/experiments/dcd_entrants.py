"""The solvers of the dual-coordinate-descent tables: ours with both stopping rules, and scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from saddlesvm import LinearSVC
from saddlesvm.solvers import DCD

TOLERANCE = 1e-4
THEIRS = "scikit-learn"
FITTED_WITH_CERTIFICATE = "DCD, gap 1e-4"


@dataclass(frozen=True)
class Entrant:
    """A line of the tables: its name, and a function that makes its estimator for a C and a number of passes."""

    name: str
    make: Callable[[float, int], Any]


def ours(shrinking: bool, stopping: str) -> Callable[[float, int], Any]:
    """Our estimator with one of the stopping rules, and scikit-learn's limit: on passes over the active rows."""

    def make(C: float, passes: int) -> LinearSVC:
        solver = DCD(shrinking=shrinking, stopping=stopping, threshold=TOLERANCE, max_passes=passes)
        tol = TOLERANCE if stopping == "gap" else 0.0
        return LinearSVC(C=C, loss="squared_hinge", solver=solver, tol=tol, random_state=0)

    return make


def theirs(C: float, passes: int) -> Any:
    """scikit-learn's estimator as published."""
    from sklearn.svm import LinearSVC as Theirs

    return Theirs(C=C, loss="squared_hinge", dual=True, tol=TOLERANCE, max_iter=passes, random_state=0)


def default(C: float, passes: int) -> LinearSVC:
    """Our estimator as it is, with the solver it chooses itself."""
    return LinearSVC(C=C, loss="squared_hinge", tol=TOLERANCE, max_time=10.0, random_state=0)


ENTRANTS = (
    Entrant("DCD", ours(False, "projected_gradient")),
    Entrant("DCD, shrinking", ours(True, "projected_gradient")),
    Entrant("DCD, change of w", ours(False, "weight_change")),
    Entrant("DCD, shrinking, change of w", ours(True, "weight_change")),
    Entrant(FITTED_WITH_CERTIFICATE, ours(True, "gap")),
    Entrant("default, gap 1e-4", default),
    Entrant(THEIRS, theirs),
)
