"""Small problems over the same rows that are solved and certified together, in NumPy.

A problem of some hundred rows takes the solver less time than Python takes to pose it, to call
NumPy for each of its steps and to certify it. Here all classes take their steps together, and the
sums of their certificates are sums of arrays with a row for each. Fits in turn take 2.2 to 2.5
times as long for three classes (iris, wine), and 4.5 to 5 times for ten classes of 400 x 10 (26
November 2026). The formulas are the same as for a single fit. A class that this does not certify,
because rounding or a hard problem is in the way, is left to a fit of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from saddlesvm.fit.outcome import FitResult, Limits, Outcome, Record, Trace
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.certificate import Certificate, certificates_of
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.small.dense import Small
from saddlesvm.solvers.small.small_solver import solve_together

EAGERNESS = 0.9  # share of the requested gap at which the steps end; guessed
# Steps after which the classes that are left have a fit of their own; guessed.
MOST_STEPS = 100


def solve_classes(
    subs: Sequence[SubProblem],
    problem: Problem,
    phase: str,
    common_weights: np.ndarray | None,
    limits: Limits,
) -> dict[int, FitResult]:
    """Solve all classes side by side; return the results of those whose gap is proven.

    Parameters
    ----------
    subs : sequence of SubProblem
        All with all rows.
    problem : Problem
        That of the first; its intercept is not free.
    phase : {DENSE, INTERIOR}
        Its solver.
    common_weights : ndarray of shape (n,), optional
        The weights of the rows, before the factors of the classes.
    limits : Limits
    """
    # Nothing is compiled here: the plain clock tells the time.
    began = perf_counter()
    # The labels of problem k are row k of y; row weights likewise, if any problem has its own.
    y = np.array([problem.gather(sub.y) for sub in subs], dtype=np.float64)
    weights = None
    if common_weights is not None or any(sub.factor != 1.0 for sub in subs):
        weights = np.ones(y.shape)
        for k, sub in enumerate(subs):
            own = sub.row_weights(common_weights)
            if own is not None:
                weights[k] = problem.gather(own)

    # The solver of a single small problem, with one more axis for the problems.
    with blas_for(0.0), np.errstate(all="ignore"):
        small = Small(problem, y, 1.0 if weights is None else weights)
        best = solve_together(phase, small, EAGERNESS * limits.tol, MOST_STEPS)
        W = small.feature_weights(best.u)
        solved = perf_counter()
        certificates = certificates_of(problem, small.rows, y, weights, W, best.a)
    # Each class is charged an equal part of the time: of solving, and of certifying.
    seconds = (solved - began) / len(y), (perf_counter() - solved) / len(y)

    # Keep what the certificates prove; the rest is solved in turn.
    results = {}
    for k, certificate in enumerate(certificates):
        if limits.prove(certificate) and certificate.sound:
            end = W[k], best.a[k], int(best.steps[k])
            label = subs[k].label
            results[k] = make_result(problem, phase, label, certificate, end, seconds, limits)
    return results


def make_result(
    problem: Problem,
    phase: str,
    label: str,
    certificate: Certificate,
    end: tuple[np.ndarray, np.ndarray, int],
    seconds: tuple[float, float],
    limits: Limits,
) -> FitResult:
    """Return the result of a problem whose gap is proven.

    Parameters
    ----------
    end : tuple of (ndarray of shape (d + 1,), ndarray of shape (n,), int)
        Weights, dual variables and steps.
    seconds : tuple of float
        Of solving and of certifying.
    """
    w, a, steps = end
    solving, certifying = seconds
    # The last weight belongs to the virtual feature, whose value is `scale`.
    coef = w[:-1].copy()
    intercept = float(w[-1] * problem.scale)
    touched = steps * a.size
    # The dual variables of a result are in the C form, an array with one row.
    alpha = problem.scatter(problem.C * a)[None]
    # A single record: each step looked at all rows, so a step is an epoch.
    trace = Trace()
    trace(
        Record.from_certificate(
            certificate,
            epoch=float(steps),
            rows_touched=touched,
            seconds_solving=solving,
            seconds_certifying=certifying,
            active=a.size,
            change=np.nan,
            remark=f"{phase}: {steps} steps, side by side",
            coef=coef,
            intercept=intercept,
            problem=label,
        )
    )
    return FitResult(
        coef=coef,
        intercept=intercept,
        alpha=alpha,
        certificate=certificate,
        tol=limits.tol,
        outcome=Outcome.CERTIFIED,
        epochs=float(steps),
        rows_touched=touched,
        seconds_solving=solving,
        seconds_certifying=certifying,
        trace=trace,
        reason=limits.describe(certificate),
        phases={phase: solving},
        gap=limits.gap,
    )
