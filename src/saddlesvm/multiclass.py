"""Many classes over the binary machinery: which sub-problems there are, and how they share the data.

All sub-problems use the same rows, squared norms and threads; a pair of classes is a view by row numbers, never a copy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from saddlesvm.certificate import Certificate
from saddlesvm.fit import FitResult
from saddlesvm.interrupt import interruptible
from saddlesvm.outcome import Outcome

SEVERITY = (
    Outcome.CERTIFIED,
    Outcome.RULE_MET,
    Outcome.EPOCH_LIMIT,
    Outcome.TIME_LIMIT,
    Outcome.NO_PROGRESS,
    Outcome.INTERRUPTED,
    Outcome.FAILED,
)


@dataclass(frozen=True)
class SubProblem:
    """One two-class problem of a many-class one.

    Attributes
    ----------
    index : int
        Its place among the sub-problems.
    label : str
        Its name in the records.
    y : ndarray of shape (n_all,)
        -1 and +1; anything for rows that are not members.
    members : ndarray or None
        The rows that take part; None for all.
    """

    index: int
    label: str
    y: np.ndarray
    members: np.ndarray | None = None


def one_vs_rest(codes: np.ndarray, classes: np.ndarray) -> list[Callable[[], SubProblem]]:
    """Each class against all others, made when its turn comes; for two classes the second against the first."""
    if classes.size == 2:
        return [lambda: SubProblem(0, "", 2.0 * (codes == 1) - 1.0)]

    def make(k: int) -> Callable[[], SubProblem]:
        return lambda: SubProblem(k, f"{classes[k]} against the rest", 2.0 * (codes == k) - 1.0)

    return [make(k) for k in range(classes.size)]


def solve_all(
    problems: Sequence[Callable[[], SubProblem]],
    solve: Callable[[SubProblem, threading.Event], FitResult],
    n_jobs: int | None,
) -> list[FitResult]:
    """Solve the sub-problems, in threads where asked for; Ctrl-C stops all of them with what they have."""
    with interruptible() as stop:
        jobs = min(effective_n_jobs(n_jobs), len(problems))
        if jobs == 1:
            return [solve(make(), stop) for make in problems]
        work = (delayed(lambda make: solve(make(), stop))(make) for make in problems)
        return list(Parallel(n_jobs=jobs, require="sharedmem")(work))


def total_certificate(results: Sequence[FitResult]) -> Certificate:
    """Sums of the primal and dual objectives: the certificate of all sub-problems as one separable problem."""
    primal = sum(result.certificate.primal for result in results)
    dual = sum(result.certificate.dual for result in results)
    return Certificate(primal, dual, results[0].certificate.form)


def worst_outcome(results: Sequence[FitResult]) -> FitResult:
    """The result whose outcome is worst; the largest gap among equals."""
    return max(results, key=lambda result: (SEVERITY.index(result.outcome), result.certificate.relative_gap))
